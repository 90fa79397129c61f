/* SPDX-License-Identifier: Apache-2.0 */
/* rootfs: masked and read-only paths; see rootfs.h for why here and why so. */
#define LR_ROOM "rootfs"
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "src/base/log.h"
#include "src/base/str.h"
#include "src/rootfs/internal.h"
#include "src/sys/path.h"
#include "src/sys/syscalls.h"

static bool is_root(int rootfd, int fd)
{
	struct stat root, st;

	return fstat(fd, &st) == 0 && fstat(rootfd, &root) == 0 && st.st_dev == root.st_dev &&
	       st.st_ino == root.st_ino;
}

#define TOP_INO 1 /* of the root directory of a procfs or sysfs */

static int refuse_top(const char *path, struct lr_err *err)
{
	lr_refuse(err, ESTALE, "%s is no longer what mounts of config.json put there", path);
	return lr_err_hint(err, "somebody else renames directories of the root file system");
}

/*
 * A rename takes along what is mounted on a directory, in every mount namespace. So whoever shares
 * the rootfs can put an empty directory in the place of /proc while we look there: nothing would be
 * found and nothing masked, and all of it lie open once the other is back. What is below is looked
 * up in the file system itself, which must be the one that config.json has mounted.
 */
static int open_top(int rootfd, const char *path, long magic, struct lr_err *err)
{
	LR_CLEANUP_FD int fd = lr_open_in_nolinks(rootfd, path, O_PATH | O_DIRECTORY, 0);
	struct stat st;
	long is = fd < 0 ? fd : lr_fs_magic(fd);

	if (is >= 0 && fstat(fd, &st) < 0)
		is = -errno;
	if (is < 0 && is != -ENOENT && is != -ENOTDIR && is != -ELOOP)
		return lr_fail(err, (int)-is, "open %s in the container's root", path);
	return is == magic && st.st_ino == TOP_INO ? lr_take_fd(&fd) : refuse_top(path, err);
}

/*
 * `*from` is the root directory, open since it was mounted (mount/bench.c), and nobody else can have
 * mounted anything on it. What is protected in it stays so wherever it is renamed to. But the
 * container is to have it in its place, so that is looked at, by one call.
 */
static int take_top(int rootfd, const char *path, int *from, struct lr_err *err)
{
	struct stat st = {0};

	if (fstatat(rootfd, path + 1, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno != ENOENT)
		return lr_fail(err, errno, "open %s in the container's root", path);
	return S_ISDIR(st.st_mode) && st.st_ino == TOP_INO ? lr_take_fd(from)
							   : refuse_top(path, err);
}

/* Where to look for *path, which becomes the path there. */
static int open_base(const struct lr_rootfs_plan *plan, struct lr_rootfs_state *s,
		     struct lr_rootfs_tops *t, const char **path, struct lr_err *err)
{
	const char *p = *path + strspn(*path, "/");
	bool sys = strncmp(p, "sys", 3) == 0;
	size_t n = sys ? 3 : strncmp(p, "proc", 4) == 0 ? 4 : 0;
	int *top = sys ? &t->sys : &t->proc;

	if (n == 0 || (p[n] && p[n] != '/') || !(sys ? plan->has_sys : plan->has_proc) ||
	    strstr(p, ".."))
		return s->rootfd;
	const char *where = sys ? "/sys" : "/proc";
	int *made = sys ? &s->sysfs : &s->procfs;
	if (*top < 0)
		*top = *made >= 0 ? take_top(s->rootfd, where, made, err)
				  : open_top(s->rootfd, where, sys ? SYSFS_MAGIC : PROC_SUPER_MAGIC,
					     err);
	p += n;
	p += strspn(p, "/");
	*path = *p ? p : ".";
	return *top;
}

/* *root: that is where the path leads, and what is mounted there shows to nobody whose root it is
 * already. -ENOENT: there is no such path. Another -errno: *err has the text. */
static int open_target(const struct lr_rootfs_plan *plan, struct lr_rootfs_state *s,
		       struct lr_rootfs_tops *t, const char *whole, bool *root, struct lr_err *err)
{
	const char *path = whole;
	int base = open_base(plan, s, t, &path, err);

	if (base < 0)
		return base;
	/* Most paths have no link, and then lead where they say. */
	int fd = lr_open_in_nolinks(base, path, O_PATH, 0);
	bool says = fd != -ELOOP && !strstr(whole, "..") && whole[strspn(whole, "/.")];

	if (fd == -ELOOP)
		fd = lr_open_in(base, path, O_PATH, 0);
	if (fd == -ENOENT || fd == -ENOTDIR)
		return -ENOENT;
	*root = fd >= 0 && !says && is_root(s->rootfd, fd);
	if (fd < 0)
		lr_fail(err, -fd, "open %s in the container's root", whole);
	if (fd == -ELOOP)
		lr_err_hint(err, "a symbolic link on the way leads to one of procfs' that lead "
				 "anywhere, or in a circle");
	return fd;
}

/* Whether known.c can protect it: `path` is one of its, and config.json has mounted that file system.
 * 1, 0, or -errno and *err. */
static int find_known(const struct lr_rootfs_plan *plan, struct lr_rootfs_state *s,
		      struct lr_rootfs_tops *t, const char *path, struct lr_rootfs_known *ret,
		      struct lr_err *err)
{
	ret->name = path;
	if (!lr_rootfs_is_known(path, &ret->dir))
		return 0;
	ret->top = open_base(plan, s, t, &ret->name, err);
	return ret->top < 0 ? ret->top : ret->top != s->rootfd;
}

/* Nothing is asked about the path but to open it: a cover of the wrong kind is refused. */
static int mask(const struct lr_rootfs_plan *plan, struct lr_rootfs_state *s,
		struct lr_rootfs_tops *t, const char *path, struct lr_err *err)
{
	struct lr_rootfs_known known;
	bool root = false;
	int r = find_known(plan, s, t, path, &known, err);

	if (r < 0)
		return r;
	r = r ? lr_rootfs_known_mask(plan, s, t, &known) : -ENOTSUP;
	if (r == 0 || r == -ENOENT)
		return 0;
	t->cwd = LR_NOFD; /* lr_rootfs_cover_dir may change it */
	t->may_be_covered = true;
	/* What is tried first: below /sys nearly everything is a directory. */
	bool dir = known.dir || lr_has_prefix(path, "/sys/");
	/* Closed at once, as all that leads below a protection: see lr_close_late. */
	LR_CLEANUP_FD int at = open_target(plan, s, t, path, &root, err);

	if (at < 0)
		return at == -ENOENT ? 0 : at;
	if (root)
		return lr_refuse(err, EPERM, "masking %s: it leads to the container's root", path);
	r = dir ? lr_rootfs_cover_dir(plan, s, at) : lr_rootfs_cover_file(plan, s, path, at);
	if (r == -ENOTDIR || r == -EINVAL) { /* mount(2), move_mount(2) */
		int other = dir ? lr_rootfs_cover_file(plan, s, path, at)
				: lr_rootfs_cover_dir(plan, s, at);
		r = other == -ENOTDIR ? r : other;
	}
	return r < 0 ? lr_fail(err, -r, "masking %s", path) : 0;
}

static int bind_readonly(int at)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
	LR_CLEANUP_FD_LATE int tree = lr_open_tree(
		at, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
	int r = tree;

	if (r >= 0)
		r = lr_mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr);
	if (r >= 0)
		r = lr_move_mount(tree, "", at, "",
				  MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
	return r;
}

/*
 * Kernels without these calls (mount_setattr(2): before 5.12) get what runc does: the mount itself
 * is read-only, not those below.
 */
static int make_readonly(const struct lr_rootfs_plan *plan, struct lr_rootfs_state *s,
			 struct lr_rootfs_tops *t, const char *path, struct lr_err *err)
{
	struct lr_rootfs_known known;
	bool root = false;
	int r = find_known(plan, s, t, path, &known, err);

	if (r < 0)
		return r;
	r = r ? lr_rootfs_known_readonly(plan, t, &known) : -ENOTSUP;
	if (r == 0 || r == -ENOENT)
		return 0;
	t->may_be_covered = true;
	LR_CLEANUP_FD int at = open_target(plan, s, t, path, &root, err);

	if (at < 0)
		return at == -ENOENT ? 0 : at;
	r = root ? lr_rootfs_set_ro(s->rootfd) : bind_readonly(at);
	if (lr_not_offered(r) && !root && !plan->prepared)
		r = lr_rootfs_bind_ro(s->rootfd, path, at, at, MS_REC);
	if (r < 0)
		lr_fail(err, -r, "making %s read-only", path);
	if (r == -EINVAL)
		lr_err_hint(err, "what is mounted there is unbindable");
	return r;
}

static int protect(const struct lr_rootfs_plan *plan, struct lr_rootfs_state *s,
		   struct lr_rootfs_tops *t, struct lr_err *err)
{
	int r = 0;

	for (size_t i = 0; i < plan->masked.n && r >= 0; i++)
		if ((r = mask(plan, s, t, plan->masked.v[i], err)) < 0)
			lr_err_at(err, "linux.maskedPaths[%zu]", i);
	lr_rootfs_covers_close(s);
	for (size_t i = 0; i < plan->readonly_paths.n && r >= 0; i++)
		if ((r = make_readonly(plan, s, t, plan->readonly_paths.v[i], err)) < 0)
			lr_err_at(err, "linux.readonlyPaths[%zu]", i);
	return r;
}

int lr_rootfs_protect(const struct lr_rootfs_plan *plan, struct lr_rootfs_state *state,
		      struct lr_err *err)
{
	struct lr_rootfs_tops t = {.proc = LR_NOFD, .sys = LR_NOFD, .cwd = LR_NOFD};
	int r = protect(plan, state, &t, err);

	/* What leads below a protection is closed at once. */
	(void)(t.may_be_covered ? lr_close(t.proc) : lr_close_late(t.proc));
	(void)(t.may_be_covered ? lr_close(t.sys) : lr_close_late(t.sys));
	if (r < 0)
		return lr_err_step(err, "protect");
	lr_debug("rootfs: %zu paths masked, %zu read-only", plan->masked.n, plan->readonly_paths.n);
	return 0;
}
