/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys: running from a read-only mount that nobody can reach; see selfexe.h.
 *
 * The mount is a clone of the one that the program's directory is on. Its only holder is a
 * descriptor that execve closes, and then it belongs to no mount namespace: mount_setattr(2),
 * remounts, binds and open_tree(2) all refuse such a mount, whatever capabilities the caller has
 * (EINVAL; check_mnt and is_mounted in fs/namespace.c). The directory is cloned and not the file,
 * as the root of a mount could be given to fspick(2), which leads to the options of the whole file
 * system.
 */
#define LR_ROOM "selfexe"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/sys/selfexe.h"
#include "src/sys/syscalls.h"

#define SELF "/proc/self/exe"

/* The path as the kernel sees it: of a file at the root of a mount in no namespace, "/NAME". */
static ssize_t own_path(char path[PATH_MAX])
{
	ssize_t n = readlink(SELF, path, PATH_MAX - 1);

	path[n > 0 ? n : 0] = '\0';
	return n;
}

static bool is_detached(const char *path)
{
	struct statvfs fs;

	if (path[0] != '/' || strchr(path + 1, '/'))
		return false;
	/* A program in the real "/" looks the same, but its mount can be cloned. */
	LR_CLEANUP_FD int tree = lr_open_tree(AT_FDCWD, SELF, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	return tree == -EINVAL && statvfs(SELF, &fs) == 0 && fs.f_flag & ST_RDONLY;
}

/* Another mount may cover the file, or the file have another name by now. */
static bool is_self(int tree, const char *name)
{
	struct stat a, b;

	return fstatat(tree, name, &a, AT_SYMLINK_NOFOLLOW) == 0 && stat(SELF, &b) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool lr_selfexe_mounted(char **argv, char **envp)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
	char path[PATH_MAX], *slash;

	if (own_path(path) <= 0)
		return false;
	if (is_detached(path))
		return true;
	slash = strrchr(path, '/');
	if (!slash || path[0] != '/')
		return false;
	*slash = '\0';
	LR_CLEANUP_FD int tree = lr_open_tree(AT_FDCWD, slash == path ? "/" : path,
					      OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0 || lr_mount_setattr(tree, "", AT_EMPTY_PATH, &attr) < 0 ||
	    !is_self(tree, slash + 1))
		return false;
	(void)lr_execveat(tree, slash + 1, argv, envp, 0);
	return false;
}

int lr_selfexe_protect(char **argv, char **envp, struct lr_err *err)
{
	return lr_selfexe_mounted(argv, envp) ? 0 : lr_selfexe_seal(argv, envp, err);
}
