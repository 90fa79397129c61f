/* SPDX-License-Identifier: Apache-2.0 */
/* rootfs: masked and read-only paths; see rootfs.h for why here and why so. */
#define LR_ROOM "rootfs"
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/str.h"
#include "src/rootfs/internal.h"
#include "src/sys/path.h"
#include "src/sys/syscalls.h"

#define NULL_FILE "/dev/null" /* the host's */

/*
 * A copy of the host's null device's mount, read-only: it can be written to as ever, but root in
 * the container cannot change its mode, owner or times through a masked path, and with them those
 * of the host's /dev/null.
 */
static int null_tree(struct lr_err *err)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
	LR_CLEANUP_FD int tree = lr_open_tree(
		AT_FDCWD, NULL_FILE, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	int r = tree < 0 ? tree : lr_mount_setattr(tree, "", AT_EMPTY_PATH, &attr);

	if (r >= 0)
		return lr_take_fd(&tree);
	return lr_rootfs_not_offered(r) ? r : lr_fail(err, -r, "a null device, to mask files with");
}

static int check_null(int fd, struct lr_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return lr_fail(err, errno, "the host's " NULL_FILE ", to mask files with");
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3)) {
		lr_refuse(err, ENODEV, "the host's " NULL_FILE " is not character device 1:3");
		return lr_err_hint(err, "files are masked with it: repair /dev on the host");
	}
	return 0;
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

/* What is being masked: `path`, open as `at`. */
struct masking {
	const struct lr_rootfs_plan *plan;
	int rootfd, null; /* null: of null_tree */
	bool null_used;   /* it is mounted */
	const char *path;
	int at;
	char by_fd[40]; /* `at` as a path, for mount(2), while the host's /proc is there */
};

static void name_by_fd(char buf[40], int fd)
{
	snprintf(buf, 40, "/proc/self/fd/%d", fd);
}

/* Without move_mount(2) or mount_setattr(2). What was mounted has to be opened to be made
 * read-only: if the path leads elsewhere by then, that is no mount, and it fails. */
static int cover_file_old(const struct masking *m)
{
	char mounted[40];

	if (bind(NULL_FILE, m->by_fd) < 0)
		return -errno;
	LR_CLEANUP_FD int fd = lr_open_in(m->rootfd, m->path, O_PATH, 0);
	name_by_fd(mounted, fd);
	return fd < 0 ? fd : lr_rootfs_remount_ro(mounted);
}

static int cover_file(struct masking *m)
{
	LR_CLEANUP_FD int copy = LR_NOFD;
	int tree = m->null, r = m->null;

	/* Before Linux 6.15 only a mount of our namespace can be copied: the first goes itself. */
	if (m->null_used && tree >= 0)
		tree = r = copy = lr_open_tree(m->null, "",
					       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	if (tree >= 0)
		r = lr_move_mount(tree, "", m->at, "",
				  MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
	m->null_used = m->null_used || r == 0;
	return lr_rootfs_not_offered(r) ? cover_file_old(m) : r;
}

static int cover_dir(const struct masking *m)
{
	const char *on = ".";

	if (fchdir(m->at) < 0) {
		if (errno == ENOTDIR)
			return -ENOTDIR;
		on = m->by_fd; /* root of a user namespace may not enter what it may cover */
	}
	return mount("tmpfs", on, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
		     m->plan->empty_data) < 0
		       ? -errno
		       : 0;
}

/*
 * Nothing is asked about the path but to open it. A cover of the wrong kind is refused, which for a
 * file's costs an RCU grace period to take down a copy (20 to 50 us here): hence the guess.
 */
static int mask_one(struct masking *m, struct lr_err *err)
{
	/* Closed at once: it leads to what is masked (lr_close_late). */
	LR_CLEANUP_FD int at = lr_open_in(m->rootfd, m->path, O_PATH, 0);

	if (at == -ENOENT || at == -ENOTDIR)
		return 0;
	if (at < 0)
		return lr_fail(err, -at, "masking %s", m->path);
	m->at = at;
	name_by_fd(m->by_fd, at);
	bool dir = is_dir_by_name(m->path);
	int r = dir ? cover_dir(m) : cover_file(m);
	if (r == -ENOTDIR || r == -EINVAL) { /* of the wrong kind: mount(2), move_mount(2) */
		int other = dir ? cover_file(m) : cover_dir(m);
		r = other == -ENOTDIR ? r : other;
	}
	return r < 0 ? lr_fail(err, -r, "masking %s", m->path) : 0;
}

static int mask_all(const struct lr_rootfs_plan *plan, int rootfd, struct lr_err *err)
{
	LR_CLEANUP_FD int null = null_tree(err);
	LR_CLEANUP_FD int file = LR_NOFD;
	struct masking m = {.plan = plan, .rootfd = rootfd, .null = null};

	if (null < 0 && !lr_rootfs_not_offered(null))
		return null;
	if (null < 0 && (file = lr_open(NULL_FILE, O_PATH | O_NOFOLLOW | O_CLOEXEC)) < 0)
		return lr_fail(err, errno, "the host's " NULL_FILE ", to mask files with");
	int r = check_null(null < 0 ? file : null, err);
	for (size_t i = 0; i < plan->masked.n && r == 0; i++) {
		m.path = plan->masked.v[i];
		r = mask_one(&m, err);
		if (r < 0)
			lr_err_at(err, "linux.maskedPaths[%zu]", i);
	}
	return r;
}

int lr_rootfs_mask(const struct lr_rootfs_plan *plan, const struct lr_rootfs_state *state,
		   struct lr_err *err)
{
	if (plan->masked.n && mask_all(plan, state->rootfd, err) < 0)
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
