/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle: whose root it is that a seed changes files of; see seeded.h. */
#define LR_ROOM "seed"
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "src/base/str.h"
#include "src/lifecycle/seeded.h"
#include "src/sys/proc.h"

/* A directory, whatever mount it is seen by. */
struct place {
	dev_t device;
	ino_t inode;
};

static bool place_of(const char *path, struct place *ret)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return false;
	*ret = (struct place){st.st_dev, st.st_ino};
	return true;
}

static bool is_at(const char *path, const struct place *place)
{
	struct place other;

	return place_of(path, &other) && other.device == place->device &&
	       other.inode == place->inode;
}

/* By what its process has, and by what its bundle says: one of them may lie on the other. One that is
 * being made has no process yet. */
static bool uses(const struct lr_record *r, const struct place *place)
{
	char path[32];

	if (r->pid && lr_proc_alive(r->pid, r->start_time) == 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/root", r->pid);
	return (r->pid && is_at(path, place)) || (r->rootfs && is_at(r->rootfs, place));
}

static int refuse(struct lr_err *err, const char *hint)
{
	lr_err_hint(err, "%s", hint);
	return lr_err_at(err, "root.path");
}

int lr_seeded_check_root(const struct lr_store *store, const struct lr_record *r, bool many,
			 struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct oci_strv ids;
	struct place place;

	if (many) {
		lr_refuse(err, EBUSY,
			  "the seed changes files of its root, which several containers "
			  "would share");
		return refuse(err, "continue it once for each bundle, with a root of its own");
	}
	if (!place_of(r->rootfs, &place))
		return lr_fail(err, errno, "look at the root %s", r->rootfs);
	if (is_at("/", &place)) {
		lr_refuse(err, EBUSY,
			  "the seed changes files of its root, which is the host's here");
		return refuse(err, "give it a root of its own");
	}
	int rc = lr_store_list(store, a, &ids, err);
	for (size_t i = 0; rc >= 0 && i < ids.n; i++) {
		struct lr_record other;
		if (lr_streq(ids.v[i], r->id))
			continue;
		/* Who is deleted just now, or can't be read, is told of by `list`. */
		if (lr_store_load(store, ids.v[i], a, &other, NULL, NULL, NULL) < 0 ||
		    !uses(&other, &place))
			continue;
		lr_refuse(err, EBUSY,
			  "the seed changes files of its root, which container %s has, too",
			  ids.v[i]);
		return refuse(err, "give it a root of its own, as a new overlay mount or a copy");
	}
	return rc < 0 ? rc : 0;
}
