/* SPDX-License-Identifier: Apache-2.0 */
/* rootfs: masked and read-only paths; see rootfs.h for why here and why so. */
#define LR_ROOM "rootfs"
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/str.h"
#include "src/rootfs/internal.h"
#include "src/sys/syscalls.h"

/* In the host's tree, the working directory while paths are masked. */
#define NULL_FILE "dev/null"
#define EMPTY_DIR "proc" /* the empty tmpfs covers this one: every host has it */

static int check_null(struct lr_err *err)
{
	struct stat st;

	if (lstat(NULL_FILE, &st) < 0)
		return lr_fail(err, errno, "the host's /dev/null, to mask files with");
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3)) {
		lr_refuse(err, ENODEV, "the host's /dev/null is not character device 1:3");
		return lr_err_hint(err, "files are masked with it: repair /dev on the host");
	}
	return 0;
}

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

/* Of what callers have masked, these are directories. Below /sys nearly everything is. */
static bool is_dir_by_name(const char *path)
{
	return lr_has_prefix(path, "/sys/") ||
	       lr_has_word("/proc/acpi /proc/asound /proc/scsi", path);
}

static int bind(const char *source, const char *path)
{
	return mount(source, path, NULL, MS_BIND, NULL) < 0 ? -errno : 0;
}

/*
 * No question first: a missing path is the answer to the mount. A cover of the wrong kind is
 * refused (ENOTDIR), but only after the kernel has cloned it, and it waits for an RCU grace period
 * to take that down (20 to 50 us here): hence the guess. Both refused: what should be a directory
 * on the way to the path is none.
 */
int lr_rootfs_mask_path(const char *path, char kind, const struct lr_rootfs_covers *covers,
			struct lr_err *err)
{
	bool dir = kind == 'd' || (kind != 'f' && is_dir_by_name(path));
	int r = bind(dir ? covers->dir : covers->file, path);

	if (r == -ENOTDIR)
		r = bind(dir ? covers->file : covers->dir, path);
	return r == 0 || r == -ENOENT || r == -ENOTDIR ? 0 : lr_fail(err, -r, "masking %s", path);
}

static int mask_all(const struct lr_rootfs_plan *plan, const struct lr_rootfs_state *state,
		    struct lr_err *err)
{
	static const struct lr_rootfs_covers covers = {.file = NULL_FILE, .dir = EMPTY_DIR};
	int r = 0;

	if (lr_rootfs_enter_host(plan, state) < 0)
		return lr_fail(err, errno, "entering the host's root");
	r = check_null(err);
	if (r == 0)
		r = make_null(plan, err);
	if (r == 0)
		r = make_empty(plan, err);
	for (size_t i = 0; i < plan->masked.n && r == 0; i++) {
		r = lr_rootfs_mask_path(plan->masked.v[i], 0, &covers, err);
		if (r < 0)
			lr_err_at(err, "linux.maskedPaths[%zu]", i);
	}
	if (r == 0 && chdir("/") < 0)
		r = lr_fail(err, errno, "returning to the container's root");
	return r;
}

int lr_rootfs_mask(const struct lr_rootfs_plan *plan, struct lr_rootfs_state *state,
		   struct lr_err *err)
{
	if (plan->masked.n && mask_all(plan, state, err) < 0)
		return lr_err_step(err, "protect");
	lr_debug("rootfs: %zu paths masked", plan->masked.n);
	return 0;
}

/*
 * The path is looked up twice by mount(2) and once more by mount_setattr(2), and in a volume that
 * others write to it may lead elsewhere each time. But nowhere out of the container: the host's
 * tree is gone by now (with --no-pivot: out of reach of paths, and no descriptor of ours leads
 * there), and the kernel binds nothing that is not in the caller's mount namespace (EINVAL), even
 * if a magic link leads there, of /proc/self/fd for one. What belongs to no namespace it does bind
 * since Linux 6.15: see procfs.c. And if the last look finds no mount, it fails, and the container
 * with it. Who can make it find another one, or nothing, could as well move the path away.
 *
 * Kernels without mount_setattr(2) (before 5.12) get what runc does: the mount itself, not those
 * below.
 */
int lr_rootfs_readonly_path(const char *path, struct lr_err *err)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
	int r;

	if (mount(path, path, NULL, MS_BIND | MS_REC, NULL) < 0) {
		r = -errno;
		if (r == -ENOENT || r == -ENOTDIR)
			return 0;
	} else {
		r = lr_mount_setattr(AT_FDCWD, path, AT_RECURSIVE, &attr);
		if (lr_rootfs_not_offered(r))
			r = lr_rootfs_remount_ro(path);
	}
	if (r < 0)
		lr_fail(err, -r, "making %s read-only", path);
	if (r == -EINVAL)
		lr_err_hint(err, "a symbolic link on the way leads out of the container, or what "
				 "is mounted there is unbindable");
	return r;
}

int lr_rootfs_readonly_all(const struct lr_rootfs_plan *plan, struct lr_err *err)
{
	for (size_t i = 0; i < plan->readonly_paths.n; i++) {
		if (lr_rootfs_readonly_path(plan->readonly_paths.v[i], err) < 0) {
			lr_err_at(err, "linux.readonlyPaths[%zu]", i);
			return lr_err_step(err, "protect");
		}
	}
	lr_debug("rootfs: %zu paths read-only", plan->readonly_paths.n);
	return 0;
}
