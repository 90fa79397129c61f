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
#define IN_IMAGES     (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

#define MOST_COMPARED 200000000u

struct judge {
	const struct lr_saved_rules *rules;
	const struct lr_criu_mount *v, *root;
	size_t n;
	const struct lr_criu_mount **named; /* those with a key */
	size_t n_named;
	uint32_t *anew; /* sorted: devices of file systems that are made anew as a whole */
	size_t n_anew;
	uint32_t *ids; /* sorted: of the mounts of the first process's namespace */
	size_t n_ids;
	uint32_t *peers; /* sorted: groups that a mount in the images is of */
	size_t n_peers;
};

static int compare(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static const struct lr_name types[] = {
	{"binfmt_misc", LR_CRIU_FS_BINFMT_MISC},
	{"cgroup", LR_CRIU_FS_CGROUP},
	{"cgroup2", LR_CRIU_FS_CGROUP2},
	{"debugfs", LR_CRIU_FS_DEBUGFS},
	{"devpts", LR_CRIU_FS_DEVPTS},
	{"fusectl", LR_CRIU_FS_FUSECTL},
	{"mqueue", LR_CRIU_FS_MQUEUE},
	{"proc", LR_CRIU_FS_PROC},
	{"pstore", LR_CRIU_FS_PSTORE},
	{"securityfs", LR_CRIU_FS_SECURITYFS},
	{"sysfs", LR_CRIU_FS_SYSFS},
	{"tmpfs", LR_CRIU_FS_TMPFS},
	{"tracefs", LR_CRIU_FS_TRACEFS},
};

bool lr_saved_is_anew(const char *type)
{
	return lr_name_find(types, LR_ARRAY_SIZE(types), type);
}

static const char *type_of(const struct lr_criu_mount *m)
{
	return lr_name_of(types, LR_ARRAY_SIZE(types), m->type);
}

static bool leads_nowhere(const struct lr_criu_mount *m)
{
	return type_of(m) && !m->fsname && !m->plugin;
}

bool lr_saved_has(const struct lr_criu_mount *v, size_t n, const char *type, const char *root)
{
	for (size_t i = 0; i < n; i++)
		if (!v[i].key && leads_nowhere(&v[i]) && lr_streq(type_of(&v[i]), type) &&
		    lr_streq(v[i].root, root))
			return true;
	return false;
}

static bool is_root_of_first(const struct judge *j, const struct lr_criu_mount *m)
{
	return m->first && lr_streq(m->point, "/") &&
	       !bsearch(&m->parent, j->ids, j->n_ids, sizeof(*j->ids), compare);
}

static int sort_out(struct judge *j, struct lr_arena *a, struct lr_err *err)
{
	j->named = lr_alloc_n(a, j->n + 1, sizeof(*j->named));
	j->anew = lr_new_n(a, j->n + 1, uint32_t);
	j->ids = lr_new_n(a, j->n + 1, uint32_t);
	j->peers = lr_new_n(a, j->n + 1, uint32_t);
	if (!j->named || !j->anew || !j->ids || !j->peers)
		return lr_fail(err, ENOMEM, "look at what was saved");
	for (size_t i = 0; i < j->n; i++) {
		if (j->v[i].first)
			j->ids[j->n_ids++] = j->v[i].id;
		if (j->v[i].peers)
			j->peers[j->n_peers++] = j->v[i].peers;
	}
	qsort(j->ids, j->n_ids, sizeof(*j->ids), compare);
	qsort(j->peers, j->n_peers, sizeof(*j->peers), compare);
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
	if (!j->root)
		return lr_refuse(err, EBADMSG, "the images have no root of the container's");
	return j->n_named * (uint64_t)j->n > MOST_COMPARED
		       ? lr_refuse(err, E2BIG,
				   "%zu of the %zu mounts are of config.json: that is too much",
				   j->n_named, j->n)
		       : 0;
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

/* It has all attributes that the name has anywhere; of one that the images lack, nobody knows. */
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

/* Of volumes that overlap, one that allows it is enough: from which criu has bound it is seen when it is
 * restored (verify.c). */
static int judge_part(const struct judge *j, const struct lr_criu_mount *m, struct lr_err *err)
{
	const bool of_root = shows_part_of(m, j->root);
	bool lacks = false;

	if (of_root && (!j->rules->readonly || m->flags & MOUNT_ATTR_RDONLY))
		return 0;
	for (size_t i = 0; i < j->n_named; i++) {
		if (!shows_part_of(m, j->named[i]) || !is_bound(m))
			continue;
		if (is_part_as_named(j, j->named[i]->key, m))
			return 0;
		lacks = true;
	}
	if (lacks || of_root)
		lacks_attributes(m, err);
	if (of_root)
		return lr_err_at(err, "root.readonly");
	if (lacks)
		return -EPERM;
	if (!leads_nowhere(m) ||
	    !bsearch(&m->device, j->anew, j->n_anew, sizeof(*j->anew), compare))
		return unknown(m, err);
	return 0;
}

static bool is_named_private(const struct judge *j, const char *key)
{
	for (size_t i = 0; i < j->rules->n; i++)
		if (lr_streq(j->rules->v[i].name, key) && j->rules->v[i].private)
			return true;
	return false;
}

/* Where volumes overlap, all that show it are private. */
static bool is_private(const struct judge *j, const struct lr_criu_mount *m)
{
	bool private = j->rules->private && shows_part_of(m, j->root);

	if (m->key)
		return is_named_private(j, m->key);
	if (!private && shows_part_of(m, j->root))
		return false;
	for (size_t i = 0; i < j->n_named; i++) {
		if (!shows_part_of(m, j->named[i]))
			continue;
		if (!is_named_private(j, j->named[i]->key))
			return false;
		private = true;
	}
	return private;
}

/* What it hears from and the images lack is the host's for criu. */
static int judge_master(const struct judge *j, const struct lr_criu_mount *m, struct lr_err *err)
{
	if (!m->master || bsearch(&m->master, j->peers, j->n_peers, sizeof(*j->peers), compare) ||
	    !is_private(j, m))
		return 0;
	return lr_refuse(
		err, EPERM,
		"what is mounted on %.128s would hear of the host's mounts, and is private "
		"in config.json",
		m->point);
}

static int judge_one(const struct judge *j, const struct lr_criu_mount *m, struct lr_err *err)
{
	bool known;

	int r = judge_master(j, m, err);
	if (r < 0 || m == j->root)
		return r; /* verify.c sees to the root's attributes */
	/* criu would make it again, by its old path: in a directory of the host's, if links lead there now. */
	if (m->deleted) {
		lr_refuse(err, EOPNOTSUPP,
			  "what is mounted on %.128s was deleted, or replaced, since: %.128s",
			  m->point, m->root);
		return lr_err_hint(err, "unmount it, or mount what has that name now");
	}
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

/* ---- the rules ------------------------------------------------------------------------------ */

static bool are_private(const struct oci_strv *options)
{
	bool private = false;

	for (size_t i = 0; options && i < options->n; i++) {
		if (lr_has_word("private rprivate unbindable runbindable", options->v[i]))
		private = true;
		else if (lr_has_word("slave rslave shared rshared", options->v[i])) private = false;
	}
	return private;
}

void lr_saved_begin(struct lr_saved_rules *rules, const struct oci_config *c)
{
	const char *const how = c->linux_ ? c->linux_->rootfs_propagation : NULL;

	*rules = (struct lr_saved_rules){
		.readonly = c->root && c->root->readonly,
		.private = how && lr_has_word("private rprivate unbindable", how),
	};
}

int lr_saved_allow(struct lr_saved_rules *rules, const char *name, const struct oci_strv *options,
		   uint64_t set, struct lr_arena *a, struct lr_err *err)
{
	struct lr_saved_name *v = lr_grow(a, rules->v, rules->n, sizeof(*v));

	if (!v || !name)
		return lr_fail(err, ENOMEM, "plan");
	rules->v = v;
	v[rules->n++] = (struct lr_saved_name){name, set | lr_checkpoint_attributes(options),
					       are_private(options)};
	return 0;
}
