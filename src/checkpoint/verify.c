/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint: whether what was restored may do no more with the host's files than config.json says.
 * Pure.
 *
 * Names and attributes in the images can be of two different mounts, so neither counts here: a
 * mount is what it shows, which is a device and a part of it.
 */
#define LR_ROOM "restore"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/str.h"
#include "src/checkpoint/internal.h"
#include "src/sys/syscalls.h"

static const char *below(const char *root, const char *rest, struct lr_arena *a)
{
	const char *base = lr_streq(root, "/") ? "" : root;

	if (!*rest || lr_streq(rest, "/"))
		return root;
	return lr_concat(a, base, *rest == '/' ? "" : "/", rest, NULL);
}

int lr_restore_identify(struct lr_restore_plan *p, const struct lr_checkpoint_mount *mounts,
			size_t n, struct lr_arena *a, struct lr_err *err)
{
	p->host = mounts;
	p->n_host = n;
	p->root = NULL;
	for (size_t k = 0; k < n; k++)
		if (lr_streq(mounts[k].point, p->opts.root))
			p->root = &mounts[k];
	if (!p->root)
		return lr_refuse(err, EPROTO, "the mount of the root is not found again");
	for (size_t i = 0; i < p->n; i++) {
		struct lr_restore_bind *b = &p->binds[i];
		const struct lr_checkpoint_mount *found = NULL;
		for (size_t k = 0; k < n; k++)
			if (lr_streq(mounts[k].point, b->at))
				found = &mounts[k];
		if (!found)
			return lr_refuse(err, EPROTO, "the mount of %s is not found again",
					 b->source);
		b->device = found->device;
		b->root = below(found->root, b->source + b->top, a);
		if (!b->root)
			return lr_fail(err, ENOMEM, "restore");
	}
	return 0;
}

static bool shows_part_of(const struct lr_checkpoint_mount *m, const char *device, const char *root)
{
	return lr_streq(m->device, device) && lr_path_below(m->root, root);
}

bool lr_restore_lacks_readonly(const struct lr_restore_plan *p, const struct lr_checkpoint_mount *m)
{
	if (!p->readonly || m->attributes & MOUNT_ATTR_RDONLY ||
	    !shows_part_of(m, p->root->device, p->root->root))
		return false;
	for (size_t i = 0; i < p->n; i++)
		if (shows_part_of(m, p->binds[i].device, p->binds[i].root) &&
		    !(p->binds[i].set & MOUNT_ATTR_RDONLY))
			return false;
	return true;
}

static bool is_on_host(const struct lr_restore_plan *p, const struct lr_checkpoint_mount *m)
{
	for (size_t i = 0; i < p->n_host; i++)
		if (lr_streq(p->host[i].device, m->device))
			return true;
	return false;
}

/* Of some file systems there is one for the host and its containers, or for all that share a namespace. */
static bool is_made_anew(const struct lr_restore_plan *p, const struct lr_checkpoint_mount *m)
{
	if (!lr_saved_is_anew(m->type))
		return false;
	return !is_on_host(p, m) || (!lr_has_word("tmpfs devpts", m->type) &&
				     lr_saved_has(p->saved, p->n_saved, m->type, m->root));
}

static int verify_one(const struct lr_restore_plan *p, const struct lr_checkpoint_mount *m,
		      struct lr_err *err)
{
	const bool of_root = shows_part_of(m, p->root->device, p->root->root);
	bool named = false;

	if (of_root && (!p->readonly || m->attributes & MOUNT_ATTR_RDONLY))
		return 0;
	for (size_t i = 0; i < p->n; i++) {
		const struct lr_restore_bind *b = &p->binds[i];
		if (!shows_part_of(m, b->device, b->root))
			continue;
		/* Of what config.json mounts twice, or in parts, one that allows it is enough. */
		if ((m->attributes & b->set) == b->set)
			return 0;
		named = true;
	}
	if (of_root) {
		lr_refuse(err, EPERM, "%.128s, of the root, would be writable on %.128s", m->root,
			  m->point);
		return lr_err_at(err, "root.readonly");
	}
	if (named)
		lr_refuse(err, EPERM,
			  "%.128s would be mounted on %.128s without the attributes that "
			  "config.json gives it",
			  m->root, m->point);
	else if (!is_made_anew(p, m))
		lr_refuse(err, EPERM,
			  "%.128s (%.32s) would be mounted on %.128s, and is not in config.json",
			  m->root, m->type, m->point);
	else
		return 0;
	return lr_err_hint(err, "the container has moved its mount points before it was saved, or "
				"config.json, or what it mounts, is another one than then");
}

int lr_restore_verify(const struct lr_restore_plan *p, const struct lr_checkpoint_mount *mounts,
		      size_t n, struct lr_err *err)
{
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++)
		r = verify_one(p, &mounts[i], err);
	return r;
}

static int compare_points(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int lr_restore_verify_points(const struct lr_restore_plan *p,
			     const struct lr_checkpoint_mount *mounts, size_t n, struct lr_arena *a,
			     struct lr_err *err)
{
	const char **points = lr_alloc_n(a, n + 1, sizeof(*points));

	if (!points)
		return lr_fail(err, ENOMEM, "look at what was restored");
	for (size_t i = 0; i < n; i++)
		points[i] = mounts[i].point;
	qsort(points, n, sizeof(*points), compare_points);
	for (size_t i = 0; i < p->n_saved; i++) {
		const char *const point = p->saved[i].point;
		if (!p->saved[i].first ||
		    bsearch(&point, points, n, sizeof(*points), compare_points))
			continue;
		lr_refuse(err, EPERM, "what was mounted on %.128s would be mounted elsewhere",
			  point);
		return lr_err_hint(err,
				   "a link leads there, which was not there when it was saved");
	}
	return 0;
}
