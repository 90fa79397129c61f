/* SPDX-License-Identifier: Apache-2.0 */
/* ns: entering, leaving and mapping. System calls only. */
#define LR_ROOM "namespace"
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/ns/ns.h"
#include "src/sys/procfs.h"
#include "src/sys/syscalls.h"

/* Names below /proc/thread-self/ns of what children are born into. */
static const char *const own_names[LR_NS_KINDS] = {
	[LR_NS_USER] = "user",
	[LR_NS_TIME] = "time_for_children",
	[LR_NS_PID] = "pid_for_children",
	[LR_NS_NET] = "net",
	[LR_NS_IPC] = "ipc",
	[LR_NS_UTS] = "uts",
	[LR_NS_CGROUP] = "cgroup",
	[LR_NS_MOUNT] = "mnt",
};

/*
 * A joined cgroup namespace, like a new one, comes after the cgroup: where cgroup2 is mounted with
 * nsdelegate (systemd does) the kernel lets nobody into a cgroup that is not below the root of his
 * own namespace (ENOENT).
 */
bool lr_ns_cgroup_first(const struct lr_ns_plan *p)
{
	return p->join[LR_NS_CGROUP] && !p->staged && p->create & CLONE_NEWUSER;
}

static int open_joined(const struct lr_ns_plan *p, enum lr_ns_kind k, int *ret, struct lr_err *err)
{
	LR_CLEANUP_FD int fd = lr_open(p->join[k], O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0) {
		lr_fail(err, errno, "open the %s namespace %s", lr_ns_name(k), p->join[k]);
		lr_err_hint(
			err,
			"does the process it belongs to still run? without a path, a new one is "
			"made");
		return lr_err_at(err, "linux.namespaces[%zu].path", p->index[k]);
	}
	int type = ioctl(fd, NS_GET_NSTYPE);
	if (type < 0 || (unsigned)type != lr_ns_flag(k)) {
		lr_refuse(err, EINVAL, "%s is not a %s namespace", p->join[k], lr_ns_name(k));
		lr_err_hint(err,
			    "the file must be of the kind that \"type\" says: /proc/PID/ns/...");
		return lr_err_at(err, "linux.namespaces[%zu].path", p->index[k]);
	}
	*ret = lr_take_fd(&fd);
	return 0;
}

int lr_ns_open(const struct lr_ns_plan *p, struct lr_ns_fds *fds, struct lr_err *err)
{
	for (int k = 0; k < LR_NS_KINDS; k++)
		fds->join[k] = fds->own[k] = LR_NOFD;
	for (int k = 0; k < LR_NS_KINDS; k++) {
		bool make_time = k == LR_NS_TIME && p->create & CLONE_NEWTIME && !p->staged;
		int r = p->join[k] ? open_joined(p, k, &fds->join[k], err) : 0;
		bool step = p->join[k] && k != LR_NS_USER && !lr_ns_child_joins(p, k);
		if (r >= 0 && (make_time || (step && !p->staged))) {
			char path[64];
			snprintf(path, sizeof(path), "/proc/thread-self/ns/%s", own_names[k]);
			fds->own[k] = lr_open(path, O_RDONLY | O_CLOEXEC);
			if (fds->own[k] < 0)
				r = lr_fail(err, errno, "open %s", path);
		}
		if (r < 0) {
			lr_ns_close(fds);
			return r;
		}
	}
	return 0;
}

void lr_ns_close(struct lr_ns_fds *fds)
{
	for (int k = 0; k < LR_NS_KINDS; k++) {
		fds->join[k] = lr_close(fds->join[k]);
		fds->own[k] = lr_close(fds->own[k]);
	}
}

static int join(const struct lr_ns_plan *p, const struct lr_ns_fds *fds, enum lr_ns_kind k,
		struct lr_err *err)
{
	int r = lr_setns(fds->join[k], (int)lr_ns_flag(k));

	if (r >= 0)
		return 0;
	lr_fail(err, -r, "join the %s namespace %s", lr_ns_name(k), p->join[k]);
	if (r == -EPERM)
		lr_err_hint(err, "CAP_SYS_ADMIN is needed in the user namespace that owns it");
	return lr_err_at(err, "linux.namespaces[%zu]", p->index[k]);
}

/* A time namespace takes its offsets only until the first process is in it. */
static int make_time(const struct lr_ns_plan *p, struct lr_err *err)
{
	int r = lr_unshare(CLONE_NEWTIME);
	if (r < 0) {
		lr_fail(err, -r, "create a time namespace");
		lr_err_hint(err, "the kernel needs CONFIG_TIME_NS (Linux 5.6)");
		return lr_err_at(err, "linux.namespaces[%zu]", p->index[LR_NS_TIME]);
	}
	if (!p->time_offsets)
		return 0;
	LR_CLEANUP_FD int procfd = lr_procfs_open(err);
	if (procfd < 0)
		return procfd;
	r = lr_procfs_write(procfd, "self/timens_offsets", p->time_offsets,
			    strlen(p->time_offsets));
	if (r < 0) {
		lr_fail(err, -r, "set the time offsets");
		if (r == -ERANGE)
			lr_err_hint(err, "no clock may become negative or pass 146 years");
		return lr_err_at(err, "linux.timeOffsets");
	}
	return 0;
}

int lr_ns_step_in(const struct lr_ns_plan *p, struct lr_ns_fds *fds, struct lr_err *err)
{
	int r = 0;

	if (p->create & CLONE_NEWTIME)
		r = make_time(p, err);
	for (int k = 0; r >= 0 && k < LR_NS_KINDS; k++)
		if (fds->join[k] >= 0 && k != LR_NS_USER && !lr_ns_child_joins(p, k))
			r = join(p, fds, k, err);
	return r;
}

int lr_ns_step_out(const struct lr_ns_plan *p, struct lr_ns_fds *fds, struct lr_err *err)
{
	(void)p;
	for (int k = 0; k < LR_NS_KINDS; k++) {
		if (fds->own[k] < 0)
			continue;
		int r = lr_setns(fds->own[k], (int)lr_ns_flag(k));
		if (r < 0)
			return lr_fail(err, -r, "return to the runtime's own %s namespace",
				       lr_ns_name(k));
		fds->own[k] = lr_close(fds->own[k]);
	}
	return 0;
}

int lr_ns_join_user(struct lr_ns_fds *fds, struct lr_err *err)
{
	int r = lr_setns(fds->join[LR_NS_USER], CLONE_NEWUSER);

	return r < 0 ? lr_fail(err, -r, "join the user namespace") : 0;
}

int lr_ns_become_root(struct lr_err *err)
{
	/* Raw calls: libc's wrappers signal every thread, and there is one. */
	if (syscall(SYS_setgroups, 0, NULL) < 0 && errno != EPERM)
		return lr_fail(err, errno, "drop supplementary groups");
	if (syscall(SYS_setresgid, 0, 0, 0) < 0)
		return lr_err_hint(
			(lr_fail(err, errno, "become group 0 of the user namespace"), err),
			"linux.gidMappings must map container id 0");
	if (syscall(SYS_setresuid, 0, 0, 0) < 0)
		return lr_err_hint(
			(lr_fail(err, errno, "become user 0 of the user namespace"), err),
			"linux.uidMappings must map container id 0");
	return 0;
}

int lr_ns_enter_rest(const struct lr_ns_plan *p, struct lr_ns_fds *fds, struct lr_err *err)
{
	int r = 0;

	if (p->create & CLONE_NEWCGROUP) {
		r = lr_unshare(CLONE_NEWCGROUP);
		if (r < 0) {
			lr_fail(err, -r, "create a cgroup namespace");
			return lr_err_at(err, "linux.namespaces[%zu]", p->index[LR_NS_CGROUP]);
		}
	}
	/* The mount namespace is the last of them. */
	for (int k = 0; r >= 0 && k < LR_NS_KINDS; k++)
		if (fds->join[k] >= 0 && lr_ns_child_joins(p, k))
			r = join(p, fds, k, err);
	return r;
}
