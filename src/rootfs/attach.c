/* SPDX-License-Identifier: Apache-2.0 */
/* rootfs: the rootfs becomes a mount of the new mount namespace; see rootfs.h. */
#define LR_ROOM "rootfs"
#include <linux/capability.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/rootfs/internal.h"
#include "src/sys/syscalls.h"

/*
 * Sets the propagation of the mount that the rootfs lies on. Only the root of a mount takes it
 * (EINVAL elsewhere), so it is tried from the rootfs upwards: no mountinfo is read.
 */
static int set_parent(const struct lr_rootfs_plan *plan, struct lr_err *err)
{
	if (chdir(plan->path) < 0)
		return lr_fail(err, errno, "root directory %s", plan->path);
	struct stat here, up;
	if (stat(".", &here) < 0)
		return lr_fail(err, errno, "root directory %s", plan->path);
	for (;;) {
		if (mount(NULL, ".", NULL, plan->parent_flags, NULL) == 0)
			return 0;
		if (errno != EINVAL)
			return lr_fail(err, errno, "stopping propagation above %s", plan->path);
		if (chdir("..") < 0 || stat(".", &up) < 0)
			return lr_fail(err, errno, "directory above %s", plan->path);
		if (up.st_dev == here.st_dev && up.st_ino == here.st_ino)
			return lr_fail(err, EINVAL, "no mount holds %s", plan->path);
		here = up;
	}
}

static int fail_attach(const struct lr_rootfs_plan *plan, int r, struct lr_err *err)
{
	lr_fail(err, -r, "root directory %s", plan->path);
	lr_err_at(err, "root.path");
	if (r == -ENOENT || r == -ENOTDIR)
		return lr_err_hint(err,
				   "root.path is taken from the bundle and must be a directory");
	if (r == -EACCES)
		return lr_err_hint(err, "root of the user namespace needs search permission on "
					"every directory above it");
	return r;
}

static int attach_bind(const struct lr_rootfs_plan *plan, struct lr_err *err)
{
	if (mount(plan->dir, plan->dir, NULL, MS_BIND | MS_REC, NULL) < 0)
		return fail_attach(plan, -errno, err);
	int fd = lr_open(plan->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? fail_attach(plan, -errno, err) : fd;
}

static int attach_tree(const struct lr_rootfs_plan *plan, struct lr_err *err)
{
	LR_CLEANUP_FD int fd = lr_open_tree(AT_FDCWD, plan->dir,
					    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	if (lr_not_offered(fd))
		return attach_bind(plan, err);
	if (fd < 0)
		return fail_attach(plan, fd, err);
	int r = lr_move_mount(fd, "", AT_FDCWD, plan->dir, MOVE_MOUNT_F_EMPTY_PATH);
	if (lr_not_offered(r))
		return attach_bind(plan, err);
	return r < 0 ? fail_attach(plan, r, err) : lr_take_fd(&fd);
}

/*
 * A clone of a shared mount is a peer of the host's. What the copy of all mounts for another user
 * namespace does to those (CL_SHARED_TO_SLAVE), or linux.rootfsPropagation asks for, is done here.
 */
int lr_rootfs_prepare(const struct lr_rootfs_plan *plan, struct lr_rootfs_state *state,
		      struct lr_err *err)
{
	const unsigned long private = MS_PRIVATE | MS_REC;

	if (!plan->userns || !plan->new_mount_ns)
		return 0;
	LR_CLEANUP_FD int fd = lr_open_tree(AT_FDCWD, plan->dir,
					    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	if (lr_not_offered(fd))
		return 0; /* an ordinary user's directories are its container's, too */
	if (fd < 0)
		return fail_attach(plan, fd, err);
	struct mount_attr attr = {
		.propagation = (plan->attach_flags & private) == private ? MS_PRIVATE : MS_SLAVE,
	};
	int r = lr_mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr);
	if (lr_not_offered(r))
		return 0; /* 5.2 to 5.11: by the child */
	if (r < 0)
		return fail_attach(plan, r, err);
	state->tree = lr_take_fd(&fd);
	return 0;
}

bool lr_rootfs_can_be_bare(const struct lr_rootfs_plan *plan)
{
	return plan->new_mount_ns && !plan->userns && !plan->prepared && !plan->no_pivot &&
	       lr_rootfs_host_is_deaf(plan);
}

bool lr_rootfs_may_be_first(long type)
{
	return type == RAMFS_MAGIC || type == TMPFS_MAGIC;
}

/* What a bare namespace has below the rootfs is a copy of the first of all mounts, and root of the
 * container may uncover that. Where the host never left it, it is the host's root. */
static bool host_is_first_mount(void)
{
	struct statfs fs;

	return statfs("/", &fs) < 0 || lr_rootfs_may_be_first((long)fs.f_type);
}

/* A filter may deny calls that mount(2) with paths of the host's would take the place of. What it lets
 * through fails otherwise. */
static bool mounts_by_descriptors(void)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};

	return !lr_not_offered(lr_fsopen(NULL, FSOPEN_CLOEXEC)) &&
	       !lr_not_offered(lr_move_mount(LR_NOFD, "", LR_NOFD, "",
					     MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH)) &&
	       !lr_not_offered(lr_mount_setattr(LR_NOFD, "", AT_EMPTY_PATH, &attr));
}

void lr_rootfs_make_bare(const struct lr_rootfs_plan *plan, struct lr_rootfs_state *state)
{
	LR_CLEANUP_FD int fd = lr_open_tree(AT_FDCWD, plan->dir,
					    OPEN_TREE_NAMESPACE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	/* For want of mknod(2), devices are bound, from paths of the host's. */
	if (fd >= 0 && !host_is_first_mount() && mounts_by_descriptors() && lr_has_cap(CAP_MKNOD))
		state->bare = lr_take_fd(&fd);
}

/* A clone of the host's shared mounts is their peer, until it is told otherwise. */
static int enter_bare(const struct lr_rootfs_plan *plan, struct lr_rootfs_state *state,
		      struct lr_err *err)
{
	/* For what only mount(2) does (remounting a file system), with paths of /proc. */
	LR_CLEANUP_FD int proc = lr_open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = lr_setns(state->bare, CLONE_NEWNS);

	if (r < 0)
		return lr_fail(err, -r, "enter a mount namespace made of %s", plan->path);
	if (mount(NULL, "/", NULL, plan->attach_flags, NULL) < 0)
		return lr_fail(err, errno, "setting the propagation of %s", plan->path);
	int fd = lr_open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fail_attach(plan, -errno, err);
	state->rootfd = fd;
	state->proc = lr_take_fd(&proc);
	lr_debug("rootfs: %s is alone in its mount namespace", plan->path);
	return 0;
}

/* Hooks find the container at its path; where nobody in the user namespace could reach that, any
 * place does, and "/" is one that nothing looks through before the pivot. */
static int attach_prepared(const struct lr_rootfs_plan *plan, struct lr_rootfs_state *state,
			   struct lr_err *err)
{
	LR_CLEANUP_FD int fd = lr_take_fd(&state->tree);

	int r = lr_move_mount(fd, "", AT_FDCWD, plan->dir, MOVE_MOUNT_F_EMPTY_PATH);
	if (r == -EACCES) {
		r = lr_move_mount(fd, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH);
		state->over = r == 0;
	}
	if (lr_not_offered(r))
		return attach_bind(plan, err);
	return r < 0 ? fail_attach(plan, r, err) : lr_take_fd(&fd);
}

int lr_rootfs_attach(const struct lr_rootfs_plan *plan, struct lr_rootfs_state *state,
		     struct lr_err *err)
{
	if (state->bare >= 0)
		return enter_bare(plan, state, err);
	if (plan->prepared || !plan->new_mount_ns) {
		int fd =
			lr_open(plan->prepared ? "/" : plan->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return fail_attach(plan, -errno, err);
		state->rootfd = fd;
		return 0;
	}

	if (mount(NULL, "/", NULL, plan->attach_flags, NULL) < 0) {
		int code = errno;
		lr_fail(err, code, "setting the propagation of the host's mounts");
		if (code == EINVAL)
			lr_err_hint(err,
				    "the root directory of the runtime is no mount: does it run "
				    "in a chroot?");
		return -code;
	}
	if (plan->parent_flags) {
		int r = set_parent(plan, err);
		if (r == -EACCES && state->tree >= 0) {
			lr_err_clear(err);
			r = mount(NULL, "/", NULL, plan->parent_flags, NULL) < 0
				    ? lr_fail(err, errno, "stopping propagation of \"/\"")
				    : 0;
		}
		if (r < 0)
			return r;
	}
	int fd = state->tree >= 0 ? attach_prepared(plan, state, err) : attach_tree(plan, err);
	if (fd < 0)
		return fd;
	state->rootfd = fd;
	lr_debug("rootfs: %s attached%s", plan->path, state->over ? " over /" : "");
	return 0;
}

bool lr_rootfs_has_bench(const struct lr_rootfs_plan *plan, const struct lr_rootfs_state *state)
{
	return plan->new_mount_ns && !plan->prepared && state->bare < 0 &&
	       lr_rootfs_host_is_deaf(plan);
}

void lr_rootfs_state_close(struct lr_rootfs_state *s)
{
	if (!s)
		return;
	s->rootfd = lr_close_late(s->rootfd); /* of attach */
	s->tree = lr_close(s->tree);
	s->bare = lr_close(s->bare);
	s->proc = lr_close(s->proc);
	s->procfs = lr_close(s->procfs);
	s->sysfs = lr_close(s->sysfs);
	lr_rootfs_covers_close(s);
}
