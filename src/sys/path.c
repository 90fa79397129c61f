/* SPDX-License-Identifier: Apache-2.0 */
/* sys: opening and making paths below a root; see path.h. */
#include "src/sys/path.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/sys/path_walk.h"
#include "src/sys/syscalls.h"

/* A racing rename makes the kernel give up with EAGAIN; it says itself that a retry may succeed. */
#define RACE_RETRIES 16

bool lr_path_no_openat2;

static int open_below(int rootfd, const char *path, int flags, mode_t mode, bool links)
{
	struct open_how how = {
		.flags = (unsigned)(flags | O_CLOEXEC),
		.mode = flags & O_CREAT ? mode : 0,
		.resolve =
			RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | (links ? 0 : RESOLVE_NO_SYMLINKS),
	};
	int fd = -ENOSYS;

	for (int i = 0; !lr_path_no_openat2 && i < RACE_RETRIES; i++) {
		fd = lr_openat2(rootfd, path, &how);
		if (fd != -EAGAIN)
			break;
	}
	if (fd == -ENOSYS || fd == -EPERM)
		return lr_path_walk(rootfd, path, flags, mode, links);
	return fd;
}

int lr_open_in(int rootfd, const char *path, int flags, mode_t mode)
{
	return open_below(rootfd, path, flags, mode, true);
}

int lr_open_in_nolinks(int rootfd, const char *path, int flags, mode_t mode)
{
	return open_below(rootfd, path, flags, mode, false);
}

static int open_dir(int rootfd, const char *path)
{
	return lr_open_in(rootfd, path, O_PATH | O_DIRECTORY, 0);
}

int lr_mkdir_in(int rootfd, const char *path, mode_t mode)
{
	int fd = open_dir(rootfd, path);
	if (fd != -ENOENT)
		return fd;

	/* Make what is missing, front to back. Each prefix is resolved from the root again, so a
	 * link that appears meanwhile still cannot lead outside. */
	char prefix[PATH_MAX];
	size_t len = strlen(path);
	if (len >= sizeof(prefix))
		return -ENAMETOOLONG;

	LR_CLEANUP_FD int dir = open_dir(rootfd, "/");
	if (dir < 0)
		return dir;
	for (size_t i = 0; i < len;) {
		i += strspn(path + i, "/");
		size_t start = i;
		i += strcspn(path + i, "/");
		if (i == start)
			break;
		memcpy(prefix, path, i);
		prefix[i] = '\0';

		int below = open_dir(rootfd, prefix);
		if (below == -ENOENT) {
			if (mkdirat(dir, prefix + start, mode) < 0 && errno != EEXIST)
				return -errno;
			below = open_dir(rootfd, prefix);
		}
		if (below < 0)
			return below;
		lr_close(dir);
		dir = below;
	}
	return lr_take_fd(&dir);
}

int lr_mkfile_in(int rootfd, const char *path, mode_t mode)
{
	int fd = lr_open_in(rootfd, path, O_PATH, 0);
	if (fd != -ENOENT)
		return fd;

	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	char dir[PATH_MAX] = "/";
	if (!*name || lr_streq(name, ".") || lr_streq(name, ".."))
		return -EINVAL;
	if (slash > path) {
		if ((size_t)(slash - path) >= sizeof(dir))
			return -ENAMETOOLONG;
		memcpy(dir, path, (size_t)(slash - path));
		dir[slash - path] = '\0';
	}
	LR_CLEANUP_FD int dirfd = lr_mkdir_in(rootfd, dir, 0755);
	if (dirfd < 0)
		return dirfd;
	/* O_EXCL takes no link for an answer, so a dangling one is an error, not a way out. */
	LR_CLEANUP_FD int made =
		openat(dirfd, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, mode);
	if (made < 0 && errno != EEXIST)
		return -errno;
	return lr_open_in(rootfd, path, O_PATH, 0);
}

long lr_fs_magic(int fd)
{
	struct statfs sfs;

	return fstatfs(fd, &sfs) < 0 ? -errno : (long)sfs.f_type;
}

/* mkdir that is content with a directory already there. */
static int mkdir_or_is(const char *path, mode_t mode)
{
	struct stat st;

	if (mkdir(path, mode) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	if (stat(path, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int lr_mkdir_p(const char *path, mode_t mode)
{
	int r = mkdir_or_is(path, mode);
	if (r != -ENOENT)
		return r;

	char prefix[PATH_MAX];
	const char *slash = strrchr(path, '/');
	if (!slash || slash == path)
		return -ENOENT;
	if ((size_t)(slash - path) >= sizeof(prefix))
		return -ENAMETOOLONG;
	memcpy(prefix, path, (size_t)(slash - path));
	prefix[slash - path] = '\0';
	r = lr_mkdir_p(prefix, mode);
	return r < 0 ? r : mkdir_or_is(path, mode);
}

int lr_open_beneath(int dir, const char *path, int flags)
{
	const struct open_how how = {
		.flags = (unsigned)(flags | O_NOFOLLOW | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
			   RESOLVE_NO_XDEV,
	};

	return lr_path_no_openat2 ? -ENOSYS : lr_openat2(dir, path, &how);
}

/*
 * A directory to be emptied, unless a mount lies on it: RESOLVE_NO_XDEV sees bind mounts of the
 * same file system too, which a comparison of devices does not.
 */
static int open_unmounted(int parent, const char *name)
{
	const int flags = O_DIRECTORY | O_RDONLY | O_NOFOLLOW | O_CLOEXEC;
	int r = lr_open_beneath(parent, name, flags);
	if (r != -ENOSYS && r != -EPERM)
		return r;

	LR_CLEANUP_FD int fd = openat(parent, name, flags);
	struct statx stx = {0};
	if (fd < 0)
		return -errno;
	/* Where statx is refused as well, the caller's comparison of devices is all there is. */
	r = lr_statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stx);
	if (r < 0 && r != -ENOSYS && r != -EPERM)
		return r;
	return stx.stx_attributes & STATX_ATTR_MOUNT_ROOT ? -EXDEV : lr_take_fd(&fd);
}

static int remove_below(int parent, const char *name, dev_t dev)
{
	if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;

	int fd = open_unmounted(parent, name);
	if (fd < 0)
		return fd;
	LR_CLEANUP_DIR DIR *dir = fdopendir(fd);
	if (!dir) {
		int r = -errno;
		lr_close(fd);
		return r;
	}
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_dev != dev)
		return -EXDEV;
	for (struct dirent *e; errno = 0, (e = readdir(dir));) {
		if (lr_streq(e->d_name, ".") || lr_streq(e->d_name, ".."))
			continue;
		int r = remove_below(fd, e->d_name, dev);
		if (r < 0)
			return r;
	}
	if (errno)
		return -errno;
	return unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

int lr_remove_tree(int dirfd, const char *name)
{
	const char *slash = strrchr(name, '/');
	LR_CLEANUP_FD int parent = LR_NOFD;
	struct stat st;

	/* The way to the tree is the caller's and may cross mounts; the tree itself may not
	 * be one. */
	if (slash) {
		char dir[PATH_MAX];
		size_t len = slash == name ? 1 : (size_t)(slash - name);
		if (!slash[1])
			return -EINVAL;
		if (len >= sizeof(dir))
			return -ENAMETOOLONG;
		memcpy(dir, name, len);
		dir[len] = '\0';
		parent = openat(dirfd, dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (parent < 0)
			return errno == ENOENT ? 0 : -errno;
		dirfd = parent;
		name = slash + 1;
	}
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	return remove_below(dirfd, name, st.st_dev);
}

bool lr_path_leads_to(const char *path, const struct stat *st)
{
	LR_CLEANUP_FD int root = lr_open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	LR_CLEANUP_FD int fd =
		root < 0 ? root : lr_open_in_nolinks(root, path, O_PATH | O_NOFOLLOW, 0);
	struct statx x;

	return fd >= 0 &&
	       lr_statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &x) >= 0 &&
	       makedev(x.stx_dev_major, x.stx_dev_minor) == st->st_dev && x.stx_ino == st->st_ino;
}
