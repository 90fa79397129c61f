/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys: the walk. A stack of directory descriptors, one for each component below the root, so that
 * ".." is a pop and never asks the kernel for a parent that somebody may have moved meanwhile.
 */
#include "src/sys/path_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/sys/path.h"

#define DEPTH_MAX 64 /* directories below the root; descriptors held at once */
#define LINKS_MAX 40 /* as the kernel's own limit */

struct walk {
	int root;
	int stack[DEPTH_MAX];
	size_t depth;
	unsigned links;
	char rest[PATH_MAX]; /* what is still to be resolved */
};

static int top(const struct walk *w)
{
	return w->depth ? w->stack[w->depth - 1] : w->root;
}

static void pop(struct walk *w)
{
	if (w->depth)
		lr_close(w->stack[--w->depth]);
}

/* Takes the first component off w->rest. Returns its length, 0 at the end; -ENAMETOOLONG. */
static int next(struct walk *w, char name[NAME_MAX + 1], bool *more)
{
	char *p = w->rest + strspn(w->rest, "/");
	size_t len = strcspn(p, "/");

	if (len > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, p, len);
	name[len] = '\0';
	*more = p[len] == '/';
	memmove(w->rest, p + len, strlen(p + len) + 1);
	return (int)len;
}

/*
 * A magic link of procfs shows where it leads as an absolute path or as "type:[inode]"; procfs'
 * plain links ("self", "mounts", "net") are relative. openat2 refuses the former only.
 */
static bool is_magic(const char *target, size_t n)
{
	return target[0] == '/' || target[0] == '(' || memchr(target, ':', n);
}

/* Puts a link's target in front of what is still to come. */
static int follow(struct walk *w, int link)
{
	char target[PATH_MAX];

	if (++w->links > LINKS_MAX)
		return -ELOOP;
	ssize_t n = readlinkat(link, "", target, sizeof(target));
	if (n < 0)
		return -errno;
	if (n == 0)
		return -ENOENT;
	if (lr_fs_magic(link) == PROC_SUPER_MAGIC && is_magic(target, (size_t)n))
		return -ELOOP;
	/* The rest is empty or begins with the slash that ended the link's name. */
	size_t rest = strlen(w->rest);
	if ((size_t)n + rest + 1 > sizeof(w->rest))
		return -ENAMETOOLONG;
	memmove(w->rest + n, w->rest, rest + 1);
	memcpy(w->rest, target, (size_t)n);
	if (target[0] == '/')
		while (w->depth)
			pop(w);
	return 0;
}

static int push(struct walk *w, int fd)
{
	if (w->depth == DEPTH_MAX) {
		lr_close(fd);
		return -ENAMETOOLONG;
	}
	w->stack[w->depth++] = fd;
	return 0;
}

/* Opens the last component for real; -EAGAIN when it was a link that has been unfolded. */
static int finish(struct walk *w, const char *name, int flags, mode_t mode, bool links)
{
	int fd = openat(top(w), name, flags | O_NOFOLLOW | O_CLOEXEC, mode);
	bool link_itself = (flags & (O_PATH | O_NOFOLLOW)) == (O_PATH | O_NOFOLLOW);

	if (fd < 0 && errno != ELOOP && !(errno == ENOTDIR && flags & O_DIRECTORY))
		return -errno;
	int why = errno;

	LR_CLEANUP_FD int probe =
		fd >= 0 ? fd : openat(top(w), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	if (probe < 0 || fstat(probe, &st) < 0)
		return -errno;
	if (!S_ISLNK(st.st_mode))
		return fd >= 0 ? lr_take_fd(&probe) : -why;
	if (!links)
		return -ELOOP;
	if (link_itself)
		return lr_take_fd(&probe);
	if (flags & O_NOFOLLOW || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
		return -ELOOP;
	int r = follow(w, probe);
	return r < 0 ? r : -EAGAIN;
}

static int walk(struct walk *w, int flags, mode_t mode, bool links)
{
	for (;;) {
		char name[NAME_MAX + 1];
		bool more;
		int len = next(w, name, &more);
		if (len < 0)
			return len;
		if (len == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
			if (len == 2 && name[1] == '.')
				pop(w);
			if (w->rest[strspn(w->rest, "/")])
				continue;
			/* Ends at a directory we hold already. */
			int fd = openat(top(w), ".", (flags & ~(O_CREAT | O_EXCL)) | O_CLOEXEC);
			return fd < 0 ? -errno : fd;
		}

		if (!w->rest[strspn(w->rest, "/")]) {
			int r = finish(w, name, more ? flags | O_DIRECTORY : flags, mode, links);
			if (r == -EAGAIN)
				continue;
			return r;
		}

		LR_CLEANUP_FD int fd = openat(top(w), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		struct stat st;
		if (fd < 0 || fstat(fd, &st) < 0)
			return -errno;
		int r;
		if (S_ISDIR(st.st_mode))
			r = push(w, lr_take_fd(&fd));
		else if (!S_ISLNK(st.st_mode))
			r = -ENOTDIR;
		else
			r = links ? follow(w, fd) : -ELOOP;
		if (r < 0)
			return r;
	}
}

int lr_path_walk(int rootfd, const char *path, int flags, mode_t mode, bool links)
{
	struct walk w = {.root = rootfd};
	size_t len = strlen(path);

	if (len == 0)
		return -ENOENT;
	if (len >= sizeof(w.rest))
		return -ENAMETOOLONG;
	memcpy(w.rest, path, len + 1);
	int fd = walk(&w, flags, mode, links);
	while (w.depth)
		pop(&w);
	return fd;
}
