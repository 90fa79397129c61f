/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount: tmpcopyup: what a tmpfs is about to cover is copied into it: owners, modes, times, links,
 * devices, extended attributes. A walk by descriptors with small buffers on the stack and no heap;
 * the depth is bounded. There is no recursion, so that a small stack is enough: a child may be on
 * that of a program's thread. Hard links become separate files. What is mounted below is not
 * copied.
 */
#define LR_ROOM "mount"
#include "src/mount/internal.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/str.h"

#define DEPTH_MAX 200 /* two descriptors and 64 bytes of stack each */
#define CHUNK     (1 << 20)

static int copy_data(int from, int to)
{
	for (;;) {
		ssize_t n = sendfile(to, from, NULL, CHUNK);
		if (n == 0)
			return 0;
		if (n < 0 && errno == EINVAL) /* the file system has no splice */
			break;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
	for (;;) {
		char buf[4096];
		ssize_t n = read(from, buf, sizeof(buf));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		ssize_t w = lr_write_full(to, buf, (size_t)n);
		if (w < 0)
			return (int)w;
	}
}

/* Best effort: tmpfs has some attributes only in some kernels, and others need privileges. */
static void copy_xattrs(int from, int to)
{
	char names[1024], value[1024];
	ssize_t len = flistxattr(from, names, sizeof(names));

	for (char *p = names; len > 0 && p < names + len; p += strlen(p) + 1) {
		ssize_t n = fgetxattr(from, p, value, sizeof(value));
		if (lr_streq(p, "security.selinux")) /* the tmpfs has its own label */
			continue;
		if (n < 0 || fsetxattr(to, p, value, (size_t)n, 0) < 0)
			lr_debug("mount: tmpcopyup: attribute %s is not copied: %s", p,
				 lr_strerror(errno));
	}
}

/* Owner first: chown(2) takes set-id bits and file capabilities away. If our user namespace does
 * not know the owner, the copy is its root's, and must not lend that to whoever executes it. */
static int copy_meta(int from, int to, const struct stat *st)
{
	const struct timespec times[2] = {st->st_atim, st->st_mtim};

	bool owned = fchown(to, st->st_uid, st->st_gid) == 0;
	if (!owned && errno != EPERM && errno != EINVAL)
		return -errno;
	if (fchmod(to, st->st_mode & (owned ? 07777 : 01777)) < 0)
		return -errno;
	copy_xattrs(from, to);
	return futimens(to, times) < 0 ? -errno : 0;
}

/* Who shares the files may have put another one in its place: its contents must not get the owner
 * and the set-id bits of the one that was looked at. */
static int look_again(int fd, struct stat *ret)
{
	if (fstat(fd, ret) < 0)
		return -errno;
	return S_ISREG(ret->st_mode) ? 0 : -ESTALE;
}

static int copy_file(int dir, const char *name, int to_dir)
{
	LR_CLEANUP_FD int from = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	int r = from < 0 ? -errno : look_again(from, &st);
	if (r < 0)
		return r;
	LR_CLEANUP_FD int to =
		openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return -errno;
	r = copy_data(from, to);
	return r < 0 ? r : copy_meta(from, to, &st);
}

/* Links, devices, pipes and sockets: made by name, with nothing inside. */
static int copy_special(int dir, const char *name, int to_dir, const struct stat *st)
{
	const struct timespec times[2] = {st->st_atim, st->st_mtim};

	if (S_ISLNK(st->st_mode)) {
		char target[PATH_MAX];
		ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);
		if (n < 0)
			return -errno;
		target[n] = '\0';
		if (symlinkat(target, to_dir, name) < 0)
			return -errno;
	} else if (mknodat(to_dir, name, st->st_mode, st->st_rdev) < 0) {
		if (errno != EPERM)
			return -errno;
		lr_warn("tmpcopyup: device %s is left out: not allowed in a user namespace", name);
		return 0;
	}
	if (fchownat(to_dir, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0 &&
	    errno != EPERM && errno != EINVAL)
		return -errno;
	/* The umask may have taken bits from mknod; a link has no mode. */
	if (!S_ISLNK(st->st_mode) && fchmodat(to_dir, name, st->st_mode & 07777, 0) < 0)
		return -errno;
	return utimensat(to_dir, name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

/* A directory whose copy is under way. */
struct level {
	int from, to;
	uint32_t uid, gid, mode;
	struct timespec atime, mtime; /* before it was read */
	int64_t next;                 /* where to read on in `from` */
};

/* Where the walk is, from the top to the directory that is read now. */
struct walk {
	struct level level[DEPTH_MAX];
	int depth;
};

/* Goes down into a directory; not into a mount, whose directory stays empty. */
static int enter(struct walk *w, const char *name)
{
	const struct level *up = &w->level[w->depth - 1];
	struct statx sx;
	struct stat st;

	if (mkdirat(up->to, name, 0700) < 0)
		return -errno;
	LR_CLEANUP_FD int from =
		openat(up->from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	LR_CLEANUP_FD int to =
		openat(up->to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (from < 0 || to < 0 || fstat(from, &st) < 0)
		return -errno;
	if (lr_statx(from, "", AT_EMPTY_PATH, STATX_TYPE, &sx) >= 0 &&
	    sx.stx_attributes & STATX_ATTR_MOUNT_ROOT)
		return copy_meta(from, to, &st);
	if (w->depth == DEPTH_MAX)
		return -ENAMETOOLONG;
	w->level[w->depth++] = (struct level){
		.from = lr_take_fd(&from),
		.to = lr_take_fd(&to),
		.uid = st.st_uid,
		.gid = st.st_gid,
		.mode = st.st_mode,
		.atime = st.st_atim,
		.mtime = st.st_mtim,
	};
	return 0;
}

/* Goes back up. Owner, mode and times come last: what was made inside has changed the times. */
static int leave(struct walk *w)
{
	struct level *l = &w->level[--w->depth];
	const struct stat st = {
		.st_uid = l->uid,
		.st_gid = l->gid,
		.st_mode = l->mode,
		.st_atim = l->atime,
		.st_mtim = l->mtime,
	};

	int r = copy_meta(l->from, l->to, &st);
	lr_close(l->from);
	lr_close(l->to);
	return r;
}

static int copy_entry(struct walk *w, const char *name)
{
	const struct level *l = &w->level[w->depth - 1];
	struct stat st;

	if (lr_streq(name, ".") || lr_streq(name, ".."))
		return 0;
	if (fstatat(l->from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	int r = S_ISREG(st.st_mode)   ? copy_file(l->from, name, l->to)
		: S_ISDIR(st.st_mode) ? enter(w, name)
				      : copy_special(l->from, name, l->to, &st);
	if (r < 0)
		lr_debug("mount: tmpcopyup: %s: error %d", name, -r);
	return r;
}

/* Copies entries of the deepest directory: up to its end (0), or until one is entered (1). */
static int copy_entries(struct walk *w)
{
	_Alignas(struct lr_dirent) char buf[1024];
	struct level *l = &w->level[w->depth - 1];
	int depth = w->depth;
	ssize_t n;

	/* The last read may have had more entries than were copied before the walk went down. */
	if (l->next && lseek(l->from, l->next, SEEK_SET) < 0)
		return -errno;
	while ((n = lr_getdents(l->from, buf, sizeof(buf))) > 0) {
		for (long i = 0; i < n;) {
			const struct lr_dirent *e = (const struct lr_dirent *)(buf + i);
			i += e->len;
			l->next = e->off;
			int r = copy_entry(w, e->name);
			if (r < 0 || w->depth > depth)
				return r < 0 ? r : 1;
		}
	}
	return (int)n;
}

static int copy_tree(int from, int to)
{
	struct walk w = {.depth = 1};
	int r = 0;

	w.level[0] = (struct level){.from = from, .to = to};
	while (r >= 0) {
		r = copy_entries(&w);
		if (r != 0)
			continue;
		if (w.depth == 1)
			break;
		r = leave(&w);
	}
	while (--w.depth > 0) {
		lr_close(w.level[w.depth].from);
		lr_close(w.level[w.depth].to);
	}
	return r;
}

int lr_mount_copyup(int from, int to, struct lr_err *err)
{
	int r = copy_tree(from, to);

	if (r < 0) {
		lr_fail(err, -r, "tmpcopyup");
		if (r == -ENOSPC)
			lr_err_hint(err, "the tmpfs is smaller than what the image has there: "
					 "raise \"size\"");
	}
	return r;
}
