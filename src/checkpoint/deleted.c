/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint: files that were deleted, and are still open. criu makes them again beside their old names, opens them, and
 * deletes them, with its own root and its own rights. A link on the way would have it do that in any directory of
 * the host, where others can use what it has made. So the directory has to be there, and the way to it to be
 * without links, when the container is saved and again before it is restored. Whoever may write to the root or to a
 * volume can still put a link there while criu is at work.
 */
#define LR_ROOM "checkpoint"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/checkpoint/internal.h"
#include "src/sys/path.h"

static const struct lr_criu_mount *mount_of(const struct lr_criu_mount *v, size_t n, int32_t id)
{
	for (size_t i = 0; i < n; i++)
		if (id >= 0 && v[i].id == (uint32_t)id)
			return &v[i];
	return NULL;
}

static int refuse(const char *path, const char *why, struct lr_err *err)
{
	lr_refuse(err, EOPNOTSUPP, "%.160s was deleted, and is still open: %s", path, why);
	return lr_err_hint(err, "criu makes it again, by its path, when the container is restored");
}

/* The directory of `path`, below `root`. */
static int check_directory(int root, const char *path, const char *name, struct lr_arena *a,
			   struct lr_err *err)
{
	const char *const slash = strrchr(path, '/');
	const char *const dir =
		!slash || slash == path ? "/" : lr_strndup(a, path, (size_t)(slash - path));

	if (!dir)
		return lr_fail(err, ENOMEM, "look at what was deleted");
	LR_CLEANUP_FD int fd = lr_open_in_nolinks(root, dir, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd >= 0)
		return 0;
	if (fd == -ELOOP)
		return refuse(name, "the way to it leads through a link now", err);
	if (fd == -ENOENT || fd == -ENOTDIR)
		return refuse(name, "its directory is not there any more", err);
	return lr_fail(err, -fd, "look at the directory of %.160s", name);
}

int lr_deleted_check_saved(pid_t pid, const struct lr_criu_remap *v, size_t n,
			   const struct lr_criu_mount *mounts, size_t n_mounts, struct lr_arena *a,
			   struct lr_err *err)
{
	char path[32];
	int r = 0;

	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	LR_CLEANUP_FD int root = n ? lr_open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : LR_NOFD;
	if (n && root < 0)
		return lr_fail(err, errno, "open %s", path);
	for (size_t i = 0; i < n && r >= 0; i++) {
		const struct lr_criu_mount *m = mount_of(mounts, n_mounts, v[i].mount);
		if (m && m->first)
			r = check_directory(root, v[i].path, v[i].path, a, err);
		else
			r = refuse(v[i].path,
				   "it is in a mount namespace of the container's own "
				   "making",
				   err);
	}
	return r;
}

/* Where what the mount shows is on the host; NULL: it is made anew, or nowhere. */
static const char *place_of(const struct lr_restore_plan *p, const char *rootfs,
			    const struct lr_criu_mount *m, struct lr_arena *a)
{
	for (size_t i = 0; i < p->n_saved; i++) {
		const struct lr_criu_mount *whole = &p->saved[i];
		const char *rest =
			m->device == whole->device ? lr_path_below(m->root, whole->root) : NULL;
		const char *base = NULL;
		if (!rest)
			continue;
		if (!whole->key && whole->first && lr_streq(whole->point, "/"))
			base = rootfs;
		for (size_t k = 0; whole->key && k < p->n && !base; k++)
			if (lr_streq(p->binds[k].name, whole->key))
				base = p->binds[k].source;
		if (base)
			return lr_concat(a, base, rest, NULL);
	}
	return NULL;
}

static int check_one(const struct lr_restore_plan *p, const char *rootfs,
		     const struct lr_criu_remap *d, struct lr_arena *a, struct lr_err *err)
{
	const struct lr_criu_mount *m = mount_of(p->saved, p->n_saved, d->mount);
	const char *below = m ? lr_path_below(d->path, m->point) : NULL;

	if (!below)
		return refuse(d->path, "the images do not say in which mount", err);
	const char *place = place_of(p, rootfs, m, a);
	if (!place)
		return 0;
	LR_CLEANUP_FD int root = lr_open(place, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return lr_fail(err, errno, "open %.160s, where a file was deleted", place);
	return check_directory(root, *below ? below : "/", d->path, a, err);
}

int lr_deleted_check(const struct lr_restore_plan *p, const char *rootfs,
		     const struct lr_criu_remap *v, size_t n, struct lr_arena *a,
		     struct lr_err *err)
{
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++)
		r = check_one(p, rootfs, &v[i], a, err);
	return r;
}
