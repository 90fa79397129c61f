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
	for (size_t i = 0; i < p->n; i++) {
		struct lr_restore_bind *b = &p->binds[i];
		const struct lr_checkpoint_mount *found = NULL;
		for (size_t k = 0; k < n; k++)
			if (lr_streq(mounts[k].point, b->at))
				found = &mounts[k];
		if (!found)
			return lr_refuse(err, EPROTO, "the mount of %s is not found again",
					 b->source);
		b->device = lr_strdup(a, found->device);
		b->root = below(lr_strdup(a, found->root), b->source + b->top, a);
		if (!b->device || !b->root)
			return lr_fail(err, ENOMEM, "restore");
	}
	return 0;
}

/* It shows a part of what another mount shows whole, and nothing of the host's: criu has made the
 * one from the other. */
static bool is_the_containers_own(const struct lr_checkpoint_mount *m,
				  const struct lr_checkpoint_mount *mounts, size_t n)
{
	if (lr_streq(m->point, "/"))
		return true;
	for (size_t i = 0; i < n; i++)
		if (&mounts[i] != m && lr_streq(mounts[i].device, m->device) &&
		    lr_streq(mounts[i].root, "/") && !lr_streq(m->root, "/"))
			return true;
	return false;
}

static int verify_one(const struct lr_restore_plan *p, const struct lr_checkpoint_mount *mounts,
		      size_t n, const struct lr_checkpoint_mount *m, struct lr_err *err)
{
	bool named = false, hosts = false;

	if (p->readonly && lr_streq(m->point, "/") && !(m->attributes & MOUNT_ATTR_RDONLY)) {
		lr_refuse(err, EPERM,
			  "the root would be writable, as it was when the container was saved");
		return lr_err_at(err, "root.readonly");
	}
	for (size_t i = 0; i < p->n; i++) {
		const struct lr_restore_bind *b = &p->binds[i];
		if (!lr_streq(b->device, m->device))
			continue;
		hosts |= b->configured;
		if (!lr_streq(b->root, m->root))
			continue;
		/* What config.json mounts twice counts as it says once. */
		if ((m->attributes & b->set) == b->set)
			return 0;
		named = true;
	}
	if (named)
		lr_refuse(err, EPERM,
			  "%.128s would be mounted on %.128s without the attributes that "
			  "config.json gives it",
			  m->root, m->point);
	else if (hosts && !is_the_containers_own(m, mounts, n))
		lr_refuse(err, EPERM,
			  "%.128s would be mounted on %.128s, and is not in config.json", m->root,
			  m->point);
	else
		return 0;
	return lr_err_hint(err, "the container has moved its mount points before it was saved, or "
				"config.json is another one than then");
}

int lr_restore_verify(const struct lr_restore_plan *p, const struct lr_checkpoint_mount *mounts,
		      size_t n, struct lr_err *err)
{
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++)
		r = verify_one(p, mounts, n, &mounts[i], err);
	return r;
}
