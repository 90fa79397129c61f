/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint: whether a container's first process is where config.json has put it.
 *
 * All others of the container are compared with it (capture/proc.c), and a child's first process is where the
 * child's config.json puts it: who has gone elsewhere, to have less there, would be back.
 *
 * Nothing is said of namespaces that config.json makes for the container: a child's are new ones, whichever
 * its parent was in. Of a mount namespace the mounts are compared (mounted.c), and the root.
 */
#define LR_ROOM "checkpoint"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/capture.h"
#include "src/checkpoint/internal.h"
#include "src/sys/syscalls.h"

/* ---- namespaces ------------------------------------------------------------------------------ */

/* All but user, of which a pid namespace tells (compare_user), and pid, which nobody leaves. */
static const struct kind {
	const char *type, *name; /* as config.json has it; as /proc/PID/ns does */
} kinds[] = {
	{"network", "net"},   {"ipc", "ipc"},   {"uts", "uts"},
	{"cgroup", "cgroup"}, {"mount", "mnt"}, {"time", "time"},
};

static const char *article(const char *name)
{
	return *name == 'i' ? "an" : "a";
}

static void refuse_space(const struct lr_capture_refuse *to, const char *name)
{
	char what[64];

	snprintf(what, sizeof(what), "%s %s namespace of its own", article(name), name);
	to->tell(to->capture, what);
}

/* Where that in which it began can't be looked at, nobody knows whether it is still there. */
static void refuse_untold(const struct lr_capture_refuse *to, const char *name, const char *path,
			  int code)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const char *what = lr_strf(a, "%s %s namespace that can't be compared: look at %s: %s",
				   article(name), name, path, lr_strerror(code));

	to->tell(to->capture, what ? what : "a namespace that can't be compared");
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* False: it has ended, which others find out, or the kernel has no such namespaces; or it is refused. */
static bool look_at_its(pid_t pid, const char *name, const struct lr_capture_refuse *to,
			struct stat *ret)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, name);
	if (stat(path, ret) == 0)
		return true;
	if (errno != ENOENT && errno != ESRCH)
		refuse_untold(to, name, path, errno);
	return false;
}

/* A pid namespace belongs to the user namespace in which it was made: the container's own, if config.json has
 * one, and else that of who has created it. No process leaves the one, so it tells of the other for good, and
 * it matters not where we are called from. */
static void compare_user(pid_t pid, const struct lr_capture_refuse *to)
{
	struct stat its, began;
	char path[40];

	if (!look_at_its(pid, "user", to, &its))
		return;
	snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	LR_CLEANUP_FD int space = lr_open(path, O_RDONLY | O_CLOEXEC);
	if (space < 0 && (errno == ENOENT || errno == ESRCH))
		return;
	LR_CLEANUP_FD int owner = space < 0 ? space : ioctl(space, NS_GET_USERNS);
	if (owner < 0 || fstat(owner, &began) < 0)
		refuse_untold(to, "user", path, errno);
	else if (!is_same(&its, &began))
		refuse_space(to, "user");
}

/* Where config.json names none, a container is in those of who has created it. */
static void compare_space(const struct lr_checkpoint_job *job, pid_t pid, const struct kind *k,
			  const struct lr_capture_refuse *to)
{
	const char *joined = lr_checkpoint_joined(job->config, k->type);
	struct stat its, began;
	char own[32];

	if (lr_checkpoint_own(job->config, k->type) || !look_at_its(pid, k->name, to, &its))
		return;
	snprintf(own, sizeof(own), "/proc/self/ns/%s", k->name);
	const char *path = joined ? joined : own;
	if (stat(path, &began) < 0)
		refuse_untold(to, k->name, path, errno);
	else if (!is_same(&its, &began))
		refuse_space(to, k->name);
}

void lr_first_spaces(const struct lr_checkpoint_job *job, pid_t pid,
		     const struct lr_capture_refuse *to)
{
	/* Without one of its own it is refused anyway (lr_checkpoint_fork_config). */
	if (lr_checkpoint_own(job->config, "pid"))
		compare_user(pid, to);
	/* Without the right to go elsewhere nobody does but by a user namespace of its own, which is seen above; and what
	 * was joined may be gone. */
	for (size_t i = 0; i < LR_ARRAY_SIZE(kinds) && lr_checkpoint_has_admin(job->config); i++)
		compare_space(job, pid, &kinds[i], to);
}

/* ---- root ------------------------------------------------------------------------------------ */

/* By what the kernel knows, as one of FUSE may be served by a process that is held. False: it is gone, or refused. */
static bool look_at_directory(const char *path, const struct lr_capture_refuse *to,
			      struct stat *ret)
{
	struct statx x;
	const int r = lr_statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &x);

	if (r < 0 && r != -ENOENT && r != -ESRCH)
		to->tell(to->capture, "a root that can't be compared with config.json's");
	if (r < 0)
		return false;
	*ret = (struct stat){.st_dev = makedev(x.stx_dev_major, x.stx_dev_minor),
			     .st_ino = x.stx_ino};
	return true;
}

/* `root` is where its own root is, from the root of its mount namespace (chroot(2)): from there the path leads up to
 * that. */
static const char *path_to_top(pid_t pid, const char *root, struct lr_arena *a)
{
	const char *path = lr_strf(a, "/proc/%d/root", pid);

	for (size_t i = 0; path && root[i]; i++)
		if (root[i] == '/' && root[i + 1])
			path = lr_concat(a, path, "/..", NULL);
	return path;
}

/* As is what a manager leaves that has unmounted the root, or has it in another mount namespace than ours. No container
 * has an empty root. */
static bool is_empty(const char *path)
{
	LR_CLEANUP_DIR DIR *d = lr_opendir_at(AT_FDCWD, path);
	size_t n = 0;

	while (d && n < 3 && readdir(d))
		n++;
	return n < 3;
}

void lr_first_root(const struct lr_checkpoint_job *job, const char *root,
		   const struct lr_capture_refuse *to)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct stat began, its;

	if (!job->rootfs || !lr_checkpoint_own(job->config, "mount") ||
	    !lr_checkpoint_has_admin(job->config) ||
	    lr_checkpoint_mounts_root(&job->config->mounts))
		return;
	const char *top = path_to_top(job->pid, root, a);
	if (!top || !look_at_directory(job->rootfs, to, &began) ||
	    !look_at_directory(top, to, &its))
		return;
	if (!is_same(&its, &began) && !is_empty(job->rootfs))
		to->tell(to->capture, "a root that is not config.json's (pivot_root(2))");
}
