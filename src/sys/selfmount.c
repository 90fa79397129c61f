/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys: running from a read-only mount that nobody can reach; see selfexe.h.
 *
 * The mount is a clone of the one that the program's directory is on. Its only holder is a
 * descriptor, and when that is closed it belongs to no mount namespace: mount_setattr(2),
 * remounts, binds and open_tree(2) all refuse such a mount, whatever capabilities the caller has
 * (EINVAL; check_mnt and is_mounted in fs/namespace.c). The directory is cloned and not the file,
 * as the root of a mount could be given to fspick(2), which leads to the options of the whole file
 * system.
 */
#define LR_ROOM "selfexe"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/sys/selfexe.h"
#include "src/sys/syscalls.h"

#define SELF "/proc/self/exe"

/* Of this process, as /proc/self/exe is: there is one. */
static int holder = LR_NOFD;
static bool mounted;

/* execveat(2) tells the new program what it was given: "/dev/fd/N/NAME". */
static int given_fd(void)
{
	static const char prefix[] = "/dev/fd/";
	const char *name = (const char *)getauxval(AT_EXECFN);
	char *end;

	if (!name || !lr_has_prefix(name, prefix))
		return LR_NOFD;
	long fd = strtol(name + strlen(prefix), &end, 10);
	return *end == '/' && fd > 2 && fd < INT_MAX ? (int)fd : LR_NOFD;
}

/* Who else starts us by a descriptor of a read-only mount's root does no harm: nobody in another
 * mount namespace can change that one either. */
static bool is_mount_of_self(int fd)
{
	struct statx root, self;
	struct statvfs fs;

	return lr_statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &root) == 0 &&
	       lr_statx(AT_FDCWD, SELF, 0, STATX_MNT_ID, &self) == 0 &&
	       root.stx_mask & self.stx_mask & STATX_MNT_ID && root.stx_mnt_id == self.stx_mnt_id &&
	       root.stx_attributes & STATX_ATTR_MOUNT_ROOT && fstatvfs(fd, &fs) == 0 &&
	       fs.f_flag & ST_RDONLY;
}

static bool take_holder(void)
{
	int fd = given_fd();

	if (fd < 0 || !is_mount_of_self(fd) || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return false;
	holder = fd;
	mounted = true;
	return true;
}

void lr_selfexe_let_go(void)
{
	holder = lr_close(holder);
}

/*
 * Another mount may cover the file, or the file have another name by now. Without statx(2) and its
 * numbers of mounts, the new program would not know what it was given, and leave it open.
 */
static bool is_self(int tree, const char *name)
{
	struct statx a;
	struct stat b;

	return lr_statx(tree, name, AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_MNT_ID, &a) == 0 &&
	       a.stx_mask & STATX_MNT_ID && stat(SELF, &b) == 0 &&
	       makedev(a.stx_dev_major, a.stx_dev_minor) == b.st_dev && a.stx_ino == b.st_ino;
}

bool lr_selfexe_mounted(char **argv, char **envp)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
	char path[PATH_MAX], *slash;

	if (take_holder())
		return true;
	ssize_t n = readlink(SELF, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	slash = strrchr(path, '/');
	if (!slash || path[0] != '/')
		return false;
	*slash = '\0';
	LR_CLEANUP_FD int tree =
		lr_open_tree(AT_FDCWD, slash == path ? "/" : path, OPEN_TREE_CLONE);
	if (tree < 0 || lr_mount_setattr(tree, "", AT_EMPTY_PATH, &attr) < 0 ||
	    !is_self(tree, slash + 1))
		return false;
	(void)lr_execveat(tree, slash + 1, argv, envp, 0);
	return false;
}

/* Both ways leave their mark; without it there is nothing to look at. */
bool lr_selfexe_is_hidden(void)
{
	const char *name = (const char *)getauxval(AT_EXECFN);
	bool by_fd =
		name && (lr_has_prefix(name, "/dev/fd/") || lr_has_prefix(name, "/proc/self/fd/"));

	return mounted || (by_fd && (take_holder() || lr_selfexe_is_sealed()));
}

int lr_selfexe_hide(char **argv, char **envp, struct lr_err *err)
{
	return lr_selfexe_mounted(argv, envp) ? 0 : lr_selfexe_seal(argv, envp, err);
}
