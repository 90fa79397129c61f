/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle: whose root it is that a seed changes files of; see seeded.h. */
#define LR_ROOM "seed"
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "src/base/str.h"
#include "src/lifecycle/seeded.h"
#include "src/sys/proc.h"

/* Whether it is the very directory that was looked at, or a negative errno: nobody knows. Where there is
 * nothing, or nothing that could be looked at, it is another one. */
static int is_at(const char *path, const struct stat *place)
{
	static const int elsewhere[] = {ENOENT, ENOTDIR, ELOOP, ESRCH, EACCES, ENOTCONN, ESTALE};
	struct stat st;

	if (stat(path, &st) == 0)
		return st.st_dev == place->st_dev && st.st_ino == place->st_ino;
	for (size_t i = 0; i < LR_ARRAY_SIZE(elsewhere); i++)
		if (errno == elsewhere[i])
			return 0;
	return -errno;
}

/* By what its process has, and by what its bundle says: one of them may lie on the other. One that is
 * being made has no process yet. */
static int uses(const struct lr_record *r, const struct stat *place)
{
	char path[32];

	if (r->pid && lr_proc_alive(r->pid, r->start_time) == 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/root", r->pid);
	int rc = r->pid ? is_at(path, place) : 0;
	return rc || !r->rootfs ? rc : is_at(r->rootfs, place);
}

static int advise(struct lr_err *err, const char *hint)
{
	lr_err_hint(err, "%s", hint);
	return lr_err_at(err, "root.path");
}

/* Of one that nothing is known of it may be the root. */
static int unknown(const char *id, struct lr_err *why, struct lr_err *err)
{
	lr_err_hint(why,
		    "the seed changes files of its root, which container %s may have, too; "
		    "`delete --force` removes what can't be read",
		    id);
	if (err)
		*err = *why;
	return -why->code;
}

static int check_other(const struct lr_store *store, const char *id, const struct stat *place,
		       struct lr_arena *a, struct lr_err *err)
{
	struct lr_record other;
	struct lr_err why = {0};

	int rc = lr_store_load(store, id, a, &other, NULL, NULL, &why);
	if (rc == -ENOENT || rc == -ENODATA) /* made or deleted just now */
		return 0;
	if (rc >= 0) {
		rc = uses(&other, place);
		if (rc < 0)
			lr_fail(&why, -rc, "look at the root of %s", id);
	}
	if (rc < 0)
		return unknown(id, &why, err);
	if (!rc)
		return 0;
	lr_refuse(err, EBUSY, "the seed changes files of its root, which container %s has, too",
		  id);
	return advise(err, "give it a root of its own, as a new overlay mount or a copy");
}

int lr_seeded_check_root(const struct lr_store *store, const struct lr_record *r, bool many,
			 struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct oci_strv ids;
	struct stat place, host;

	if (many) {
		lr_refuse(err, EBUSY,
			  "the seed changes files of its root, which several containers "
			  "would share");
		return advise(err, "continue it once for each bundle, with a root of its own");
	}
	/* A directory, whatever mount it is seen by. */
	if (stat(r->rootfs, &place) < 0 || stat("/", &host) < 0)
		return lr_fail(err, errno, "look at the root %s", r->rootfs);
	if (place.st_dev == host.st_dev && place.st_ino == host.st_ino) {
		lr_refuse(err, EBUSY,
			  "the seed changes files of its root, which is the host's here");
		return advise(err, "give it a root of its own");
	}
	int rc = lr_store_list(store, a, &ids, err);
	for (size_t i = 0; rc >= 0 && i < ids.n; i++)
		if (!lr_streq(ids.v[i], r->id))
			rc = check_other(store, ids.v[i], &place, a, err);
	return rc < 0 ? rc : 0;
}
