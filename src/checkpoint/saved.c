/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint: whether what criu has saved may be restored.
 *
 * criu mounts again what its images have, in all mount namespaces of a container. What it does not bind it
 * mounts with the options that the images have, and paths in these lead the kernel through the host's
 * directories by then: so an overlay that a process of the container's has mounted in a namespace of its own
 * would be made of any directories of the host. Each mount in the images has to be
 *
 *   the root      what the first process's namespace has as its root, which criu is given
 *   named         bound under a name that config.json, or the runtime, gives it
 *   a part        of one of these, from which criu binds it
 *   made anew     a file system whose options lead nowhere, or a part of one
 *
 * and has to have the attributes that config.json gives to what it shows. The images are judged, and not
 * the container: that may change up to the moment at which criu looks, but they are what will be mounted.
 */
#define LR_ROOM "checkpoint"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/str.h"
#include "src/checkpoint/internal.h"
#include "src/sys/syscalls.h"

/* All that the images have of attributes; the numbers are those of MS_*, too. */
#define IN_IMAGES (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

struct judge {
	const struct lr_saved_rules *rules;
	const struct lr_criu_mount *v, *root;
	size_t n;
	const struct lr_criu_mount **named; /* those with a key */
	size_t n_named;
	uint32_t *anew; /* sorted: devices of file systems that are made anew as a whole */
	size_t n_anew;
};

static int compare(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Those of plan.c, as the images have them. */
static bool leads_nowhere(const struct lr_criu_mount *m)
{
	switch (m->type) {
	case LR_CRIU_FS_PROC:
	case LR_CRIU_FS_SYSFS:
	case LR_CRIU_FS_BINFMT_MISC:
	case LR_CRIU_FS_TMPFS:
	case LR_CRIU_FS_DEVPTS:
	case LR_CRIU_FS_PSTORE:
	case LR_CRIU_FS_SECURITYFS:
	case LR_CRIU_FS_FUSECTL:
	case LR_CRIU_FS_DEBUGFS:
	case LR_CRIU_FS_CGROUP:
	case LR_CRIU_FS_MQUEUE:
	case LR_CRIU_FS_TRACEFS:
	case LR_CRIU_FS_CGROUP2:
		return true;
	default:
		return false;
	}
}

static bool is_root_of_first(const struct judge *j, const struct lr_criu_mount *m)
{
	if (!m->first || !lr_streq(m->point, "/"))
		return false;
	for (size_t i = 0; i < j->n; i++)
		if (j->v[i].first && j->v[i].id == m->parent)
			return false;
	return true;
}

static int sort_out(struct judge *j, struct lr_arena *a, struct lr_err *err)
{
	j->named = lr_alloc_n(a, j->n + 1, sizeof(*j->named));
	j->anew = lr_new_n(a, j->n + 1, uint32_t);
	if (!j->named || !j->anew)
		return lr_fail(err, ENOMEM, "look at what was saved");
	for (size_t i = 0; i < j->n; i++) {
		const struct lr_criu_mount *m = &j->v[i];
		if (m->key)
			j->named[j->n_named++] = m;
		else if (!j->root && is_root_of_first(j, m))
			j->root = m;
		else if (leads_nowhere(m) && lr_streq(m->root, "/"))
			j->anew[j->n_anew++] = m->device;
	}
	qsort(j->anew, j->n_anew, sizeof(*j->anew), compare);
	return j->root ? 0 : lr_refuse(err, EBADMSG, "the images have no root of the container's");
}

/* config.json may mount twice at one destination, and the images do not say which of the two that is. */
static bool is_as_named(const struct judge *j, const struct lr_criu_mount *m, bool *known)
{
	*known = false;
	for (size_t i = 0; i < j->rules->n; i++) {
		const struct lr_saved_name *name = &j->rules->v[i];
		if (!lr_streq(name->name, m->key))
			continue;
		*known = true;
		if (!(name->set & IN_IMAGES & ~m->flags))
			return true;
	}
	return false;
}

/* Nothing looks at a part again when it is restored. So it has all attributes that the name has anywhere;
 * of one that the images lack, nobody knows. */
static bool is_part_as_named(const struct judge *j, const char *key, const struct lr_criu_mount *m)
{
	for (size_t i = 0; i < j->rules->n; i++)
		if (lr_streq(j->rules->v[i].name, key) &&
		    j->rules->v[i].set & ~(m->flags & IN_IMAGES))
			return false;
	return true;
}

/* Whether criu takes both for one file system: else it would mount another. It can't mount one whose type it
 * does not know. */
static bool is_of_one(const struct lr_criu_mount *m, const struct lr_criu_mount *other)
{
	return m->device == other->device && m->type == other->type &&
	       (m->type == LR_CRIU_FS_OTHER ||
		(lr_streq(m->source, other->source) && lr_streq(m->options, other->options)));
}

static bool shows_part_of(const struct lr_criu_mount *m, const struct lr_criu_mount *whole)
{
	return is_of_one(m, whole) && lr_path_below(m->root, whole->root);
}

/* A whole file system need not be bound: criu might mount it before it has what is named. */
static bool is_bound(const struct lr_criu_mount *m)
{
	return m->type == LR_CRIU_FS_OTHER || leads_nowhere(m) || !lr_streq(m->root, "/");
}

static int unknown(const struct lr_criu_mount *m, struct lr_err *err)
{
	lr_refuse(err, EOPNOTSUPP,
		  "what is mounted on %.128s%s (%.64s, %.128s of it) is not in config.json, so it "
		  "could not be restored",
		  m->point, m->first ? "" : ", in a mount namespace of the container's own making,",
		  m->source, m->root);
	return lr_err_hint(err, "unmount it, or have it in `mounts` when the container is created");
}

static int lacks_attributes(const struct lr_criu_mount *m, struct lr_err *err)
{
	lr_refuse(err, EPERM,
		  "%.128s would be mounted on %.128s%s without the attributes that config.json "
		  "gives it",
		  m->root, m->point,
		  m->first ? "" : ", in a mount namespace of the container's own making,");
	return lr_err_hint(err,
			   "the container has mounted it otherwise, or has moved its mount points");
}

/* Nobody can tell from which of them criu will bind it, so it needs the attributes of all. */
static int judge_part(const struct judge *j, const struct lr_criu_mount *m, struct lr_err *err)
{
	bool found = shows_part_of(m, j->root);

	if (found && j->rules->readonly && !(m->flags & MOUNT_ATTR_RDONLY)) {
		lacks_attributes(m, err);
		return lr_err_at(err, "root.readonly");
	}
	for (size_t i = 0; i < j->n_named; i++) {
		if (!shows_part_of(m, j->named[i]))
			continue;
		found |= is_bound(m);
		if (!is_part_as_named(j, j->named[i]->key, m))
			return lacks_attributes(m, err);
	}
	if (!found && leads_nowhere(m))
		found = bsearch(&m->device, j->anew, j->n_anew, sizeof(*j->anew), compare);
	return found ? 0 : unknown(m, err);
}

static int judge_one(const struct judge *j, const struct lr_criu_mount *m, struct lr_err *err)
{
	bool known;

	if (m == j->root)
		return 0; /* verify.c sees to its attributes */
	if (!m->key)
		return judge_part(j, m, err);
	if (is_as_named(j, m, &known))
		return 0;
	return known ? lacks_attributes(m, err) : unknown(m, err);
}

int lr_saved_judge(const struct lr_saved_rules *rules, const struct lr_criu_mount *v, size_t n,
		   struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct judge j = {.rules = rules, .v = v, .n = n};

	int r = sort_out(&j, a, err);
	for (size_t i = 0; i < n && r >= 0; i++)
		r = judge_one(&j, &v[i], err);
	return r;
}

int lr_saved_judge_images(const struct lr_saved_rules *rules, int dir, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_criu_mount *v;
	size_t n;

	int r = lr_criu_read_mounts(dir, a, &v, &n, err);
	return r < 0 ? r : lr_saved_judge(rules, v, n, err);
}

/* ---- the rules ------------------------------------------------------------------------------ */

int lr_saved_allow(struct lr_saved_rules *rules, const char *name, uint64_t set, struct lr_arena *a,
		   struct lr_err *err)
{
	struct lr_saved_name *v = lr_grow(a, rules->v, rules->n, sizeof(*v));

	if (!v || !name)
		return lr_fail(err, ENOMEM, "plan");
	rules->v = v;
	v[rules->n++] = (struct lr_saved_name){name, set};
	return 0;
}
