/* SPDX-License-Identifier: Apache-2.0 */
/*
 * devrule: loading the device program and hanging it on a v2 directory, by raw bpf(2).
 *
 * A program of ours that is already there (known by its name) is replaced in one step
 * (BPF_F_REPLACE, Linux 5.6), so that no device is open or closed to the container in between;
 * programs of others (systemd's) stay, and all of them must allow an access.
 */
#define LR_ROOM "cgroup" /* what it has to say is about that */

#include "src/devrule/devrule.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"

#define PROG_NAME "lr_devices"
#define MAX_PROGS 64 /* the kernel's limit per cgroup and type */
#define LOG_SIZE  4096

static int sys_bpf(int cmd, union bpf_attr *attr)
{
	int r = (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));

	return r < 0 ? -errno : r;
}

static int load(const struct bpf_insn *insns, size_t n, struct lr_err *err)
{
	union bpf_attr attr;
	char log[LOG_SIZE] = "";
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
	attr.insns = (uintptr_t)insns;
	attr.insn_cnt = (uint32_t)n;
	attr.license = (uintptr_t) "Apache-2.0"; /* uses no GPL-only helper */
	memcpy(attr.prog_name, PROG_NAME, sizeof(PROG_NAME));
	/* The verifier works under a 4096-page budget that other loaders may hold: EAGAIN. */
	for (int i = 0; (fd = sys_bpf(BPF_PROG_LOAD, &attr)) == -EAGAIN && i < 5; i++)
		;
	if (fd >= 0)
		return fd;
	if (fd != -EPERM) { /* once more, for what the verifier says */
		attr.log_buf = (uintptr_t)log;
		attr.log_size = sizeof(log);
		attr.log_level = 1;
		int again = sys_bpf(BPF_PROG_LOAD, &attr);
		if (again >= 0)
			return again;
	}
	lr_fail(err, -fd, "cannot load the device program%s%.200s", log[0] ? ": " : "", log);
	lr_err_at(err, "linux.resources.devices");
	return lr_err_hint(err,
			   fd == -EPERM || fd == -EACCES
				   ? "needs CAP_BPF or CAP_SYS_ADMIN in the initial user namespace"
				   : "needs a kernel with CONFIG_CGROUP_BPF");
}

static int prog_info(int fd, struct bpf_prog_info *info)
{
	union bpf_attr attr;

	memset(info, 0, sizeof(*info));
	memset(&attr, 0, sizeof(attr));
	attr.info.bpf_fd = (uint32_t)fd;
	attr.info.info_len = sizeof(*info);
	attr.info.info = (uintptr_t)info;
	return sys_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr);
}

/* A descriptor of a program of ours on this cgroup, other than the one with id `skip`; how many
 * there are. LR_NOFD: none, or we may not look. */
static int find_ours(int dirfd, uint32_t skip, unsigned *count)
{
	uint32_t ids[MAX_PROGS] = {0};
	union bpf_attr attr;
	int found = LR_NOFD;

	*count = 0;
	memset(&attr, 0, sizeof(attr));
	attr.query.target_fd = (uint32_t)dirfd;
	attr.query.attach_type = BPF_CGROUP_DEVICE;
	attr.query.prog_ids = (uintptr_t)ids;
	attr.query.prog_cnt = MAX_PROGS;
	if (sys_bpf(BPF_PROG_QUERY, &attr) < 0)
		return LR_NOFD;
	for (uint32_t i = 0; i < attr.query.prog_cnt; i++) {
		struct bpf_prog_info info;
		union bpf_attr a;
		int fd;

		memset(&a, 0, sizeof(a));
		a.prog_id = ids[i];
		fd = ids[i] == skip ? LR_NOFD : sys_bpf(BPF_PROG_GET_FD_BY_ID, &a);
		if (fd >= 0 && prog_info(fd, &info) == 0 && lr_streq(info.name, PROG_NAME)) {
			++*count;
			if (found < 0)
				found = lr_take_fd(&fd);
		}
		lr_close(fd);
	}
	return found;
}

static int attach(int dirfd, int prog, int replace)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.target_fd = (uint32_t)dirfd;
	attr.attach_bpf_fd = (uint32_t)prog;
	attr.attach_type = BPF_CGROUP_DEVICE;
	attr.attach_flags = BPF_F_ALLOW_MULTI;
	if (replace >= 0) {
		attr.attach_flags |= BPF_F_REPLACE;
		attr.replace_bpf_fd = (uint32_t)replace;
	}
	return sys_bpf(BPF_PROG_ATTACH, &attr);
}

static int detach(int dirfd, int prog)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.target_fd = (uint32_t)dirfd;
	attr.attach_bpf_fd = (uint32_t)prog;
	attr.attach_type = BPF_CGROUP_DEVICE;
	return sys_bpf(BPF_PROG_DETACH, &attr);
}

/* More than one of ours: left by an update that was interrupted without BPF_F_REPLACE. */
static void detach_others(int dirfd, int prog)
{
	struct bpf_prog_info info;
	unsigned left = 1;

	if (prog_info(prog, &info) < 0)
		return;
	for (int i = 0; left && i < MAX_PROGS; i++) {
		LR_CLEANUP_FD int extra = find_ours(dirfd, info.id, &left);

		if (extra < 0 || detach(dirfd, extra) < 0)
			return;
	}
}

int lr_devrules_attach(const char *dir, const struct bpf_insn *insns, size_t n, bool fresh,
		       struct lr_err *err)
{
	LR_CLEANUP_FD int dirfd = lr_open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	LR_CLEANUP_FD int prog = LR_NOFD, old = LR_NOFD;
	unsigned ours = 0;
	int r;

	if (dirfd < 0)
		return lr_fail(err, errno, "cannot open %s", dir);
	prog = load(insns, n, err);
	if (prog < 0)
		return prog;
	/* Without the right to look, add: the container is restricted by both then. */
	if (!fresh)
		old = find_ours(dirfd, 0, &ours);
	r = attach(dirfd, prog, old);
	if (r == -EINVAL && old >= 0) {
		/* No BPF_F_REPLACE: both for a moment, the stricter of the two. */
		r = attach(dirfd, prog, LR_NOFD);
		if (r == 0)
			r = detach(dirfd, old);
	}
	if (r < 0)
		return lr_fail(err, -r, "cannot attach the device program to %s", dir);
	if (ours > 1)
		detach_others(dirfd, prog);
	lr_debug("cgroup: device program of %zu instructions attached to %s", n, dir);
	return 0;
}
