/* SPDX-License-Identifier: Apache-2.0 */
/* rootfs: masked and read-only paths; see rootfs.h for why here and why so. */
#define LR_ROOM "rootfs"
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/rootfs/internal.h"
#include "src/sys/path.h"
#include "src/sys/syscalls.h"

/* In the host's tree, the working directory while paths are masked. */
#define NULL_FILE "dev/null"
#define EMPTY_DIR "proc" /* the empty tmpfs covers this one: every host has it */

static bool is_missing(int r)
{
	return r == -ENOENT || r == -ENOTDIR;
}

static int check_null(int oldfd, struct lr_err *err)
{
	struct stat st;

	if (fstatat(oldfd, NULL_FILE, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return lr_fail(err, errno, "the host's /dev/null, to mask files with");
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3)) {
		lr_refuse(err, ENODEV, "the host's /dev/null is not character device 1:3");
		return lr_err_hint(err, "files are masked with it: repair /dev on the host");
	}
	return 0;
}

/* What masks paths, in the host's tree, made when first needed. */
struct covers {
	bool null, empty;
};

/* Mounts on `name` must not show on the host. pivot has seen to that; without it, where the config
 * leaves the host's mounts shared, only "/" itself is a slave. EINVAL: no mount point, so the mount
 * above counts. */
static int deafen(const struct lr_rootfs_plan *plan, const char *name, struct lr_err *err)
{
	if (plan->no_pivot && mount(NULL, name, NULL, MS_SLAVE, NULL) < 0 && errno != EINVAL)
		return lr_fail(err, errno, "stopping propagation of the host's /%s", name);
	return 0;
}

/*
 * The host's null device on a read-only mount, which its binds inherit: it can be written to as
 * ever, but root in the container cannot change its mode, owner or times through a masked path,
 * and with them those of the host's /dev/null.
 */
static int make_null(const struct lr_rootfs_plan *plan, struct lr_err *err)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
	int r = deafen(plan, "dev", err);

	if (r == 0)
		r = deafen(plan, NULL_FILE, err);
	if (r < 0)
		return r;
	if (mount(NULL_FILE, NULL_FILE, NULL, MS_BIND, NULL) < 0)
		return lr_fail(err, errno, "a null device, to mask files with");
	r = lr_mount_setattr(AT_FDCWD, NULL_FILE, 0, &attr);
	if (lr_rootfs_not_offered(r))
		r = lr_rootfs_remount_ro(NULL_FILE);
	return r < 0 ? lr_fail(err, -r, "a read-only null device, to mask files with") : 0;
}

static int make_empty(const struct lr_rootfs_plan *plan, struct lr_err *err)
{
	int r = deafen(plan, EMPTY_DIR, err);

	if (r == 0 && mount("tmpfs", EMPTY_DIR, "tmpfs",
			    MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, plan->empty_data) < 0)
		r = lr_fail(err, errno, "an empty tmpfs, to mask directories with");
	return r;
}

/*
 * stat(2) first: a bind onto the wrong kind fails only after the kernel has cloned the mount, and
 * waits for an RCU grace period to take it down (20 to 50 us here); for a path that is missing it
 * is the cheaper question, too.
 */
static int mask(const struct lr_rootfs_plan *plan, const char *path, struct covers *have,
		struct lr_err *err)
{
	struct stat st;
	int r = 0;

	if (stat(path, &st) < 0)
		return is_missing(-errno) ? 0 : lr_fail(err, errno, "masking %s", path);
	bool dir = S_ISDIR(st.st_mode);
	if (dir && !have->empty) {
		r = make_empty(plan, err);
		have->empty = true;
	} else if (!dir && !have->null) {
		r = make_null(plan, err);
		have->null = true;
	}
	if (r < 0)
		return r;
	if (mount(dir ? EMPTY_DIR : NULL_FILE, path, NULL, MS_BIND, NULL) < 0 && errno != ENOENT)
		return lr_fail(err, errno, "masking %s", path);
	return 0;
}

static int mask_all(const struct lr_rootfs_plan *plan, int oldfd, struct lr_err *err)
{
	struct covers have = {0};
	int r = check_null(oldfd, err);

	if (r < 0)
		return r;
	if (fchdir(oldfd) < 0)
		return lr_fail(err, errno, "entering the host's root");
	for (size_t i = 0; i < plan->masked.n; i++) {
		r = mask(plan, plan->masked.v[i], &have, err);
		if (r < 0)
			return lr_err_at(err, "linux.maskedPaths[%zu]", i);
	}
	if (chdir("/") < 0)
		return lr_fail(err, errno, "returning to the container's root");
	return 0;
}

static int readonly_bind(const char *path)
{
	if (mount(path, path, NULL, MS_BIND | MS_REC, NULL) < 0)
		return -errno;
	return lr_rootfs_remount_ro(path);
}

/*
 * The bind is read-only, with everything below it, before anybody can see it; nosuid, nodev and
 * the like stay as they are. The path is resolved once, and magic links are not followed: our own
 * descriptors, which /proc/self/fd of the container shows now, lead to the host, and a path that
 * changes between two looks (a volume that others write to) must not bring it in.
 *
 * Kernels without mount_setattr(2) (before 5.12) get what runc does: the mount itself, not those
 * below, by its path.
 */
static int readonly_tree(int rootfd, const char *path)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};

	LR_CLEANUP_FD int at = lr_open_in(rootfd, path, O_PATH, 0);
	if (at < 0)
		return at;
	LR_CLEANUP_FD int fd = lr_open_tree(
		at, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH);
	if (fd < 0)
		return lr_rootfs_not_offered(fd) ? readonly_bind(path) : fd;
	int r = lr_mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr);
	if (lr_rootfs_not_offered(r))
		return readonly_bind(path);
	if (r < 0)
		return r;
	r = lr_move_mount(fd, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
	return lr_rootfs_not_offered(r) ? readonly_bind(path) : r;
}

int lr_rootfs_protect(const struct lr_rootfs_plan *plan, struct lr_rootfs_state *state,
		      struct lr_err *err)
{
	if (plan->masked.n) {
		int r = mask_all(plan, state->oldfd, err);
		if (r < 0)
			return lr_err_step(err, "protect");
	}
	for (size_t i = 0; i < plan->readonly_paths.n; i++) {
		const char *path = plan->readonly_paths.v[i];
		int r = readonly_tree(state->rootfd, path);
		if (r < 0 && !is_missing(r)) {
			lr_fail(err, -r, "making %s read-only", path);
			lr_err_at(err, "linux.readonlyPaths[%zu]", i);
			return lr_err_step(err, "protect");
		}
	}
	lr_debug("rootfs: %zu paths masked, %zu read-only", plan->masked.n, plan->readonly_paths.n);
	return 0;
}
