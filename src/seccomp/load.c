/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp: the one system call that matters, and questions to the kernel. */
#define LR_ROOM "seccomp"
#include "src/seccomp/internal.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"

#ifndef SECCOMP_FILTER_FLAG_TSYNC_ESRCH
#define SECCOMP_FILTER_FLAG_TSYNC_ESRCH (1UL << 4)
#endif

const char *const lr_seccomp_flags[] = {
	"SECCOMP_FILTER_FLAG_LOG",
	"SECCOMP_FILTER_FLAG_SPEC_ALLOW",
	"SECCOMP_FILTER_FLAG_TSYNC",
	"SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV",
	NULL,
};

static const unsigned flag_bits[] = {
	SECCOMP_FILTER_FLAG_LOG,
	SECCOMP_FILTER_FLAG_SPEC_ALLOW,
	SECCOMP_FILTER_FLAG_TSYNC,
	LR_SECCOMP_WAIT_KILLABLE,
};

/* A known flag gets as far as reading the program, from address 0. */
static bool kernel_knows(unsigned flags)
{
	/* It is only taken together with a listener (5.19). */
	if (flags & LR_SECCOMP_WAIT_KILLABLE)
		flags |= SECCOMP_FILTER_FLAG_NEW_LISTENER;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, NULL) < 0 && errno == EFAULT;
}

bool lr_seccomp_flag_supported(const char *name)
{
	for (size_t i = 0; lr_seccomp_flags[i]; i++)
		if (lr_streq(lr_seccomp_flags[i], name))
			return kernel_knows(flag_bits[i]);
	return false;
}

static int explain(int code, unsigned flags, struct lr_err *err)
{
	lr_fail(err, code, "cannot load the system call filter");
	lr_err_step(err, "seccomp");
	for (size_t i = 0; code == EINVAL && lr_seccomp_flags[i]; i++)
		if ((flags & flag_bits[i]) && !kernel_knows(flag_bits[i])) {
			lr_refuse(err, code, "this kernel does not know %s", lr_seccomp_flags[i]);
			lr_err_step(err, "seccomp");
			lr_err_at(err, "linux.seccomp.flags");
			return lr_err_hint(err, "leave the flag out, or use a newer kernel");
		}
	lr_err_at(err, "linux.seccomp");
	switch (code) {
	case EACCES:
		return lr_err_hint(err, "it needs CAP_SYS_ADMIN, or noNewPrivileges");
	case EBUSY:
		return lr_err_hint(err, "a filter with a listener is in place already: "
					"SCMP_ACT_NOTIFY does not nest");
	case EINVAL:
	case ENOSYS:
		return lr_err_hint(err, "the kernel needs CONFIG_SECCOMP_FILTER, and 5.0 or newer "
					"for SCMP_ACT_NOTIFY");
	default:
		return -code;
	}
}

int lr_seccomp_load(const struct lr_seccomp_prog *prog, int *listener_fd, struct lr_err *err)
{
	struct sock_fprog fprog = {.len = prog->n, .filter = prog->v};
	unsigned flags = prog->flags;

	if (listener_fd)
		*listener_fd = LR_NOFD;
	if (prog->notify) {
		flags |= SECCOMP_FILTER_FLAG_NEW_LISTENER;
		/* Both return a number: TSYNC must say otherwise which thread it failed on. */
		if (flags & SECCOMP_FILTER_FLAG_TSYNC)
			flags |= SECCOMP_FILTER_FLAG_TSYNC_ESRCH;
	} else {
		flags &= ~(unsigned)LR_SECCOMP_WAIT_KILLABLE; /* about listeners only */
	}
	/* Nothing may be logged behind this line: the filter may forbid it. */
	lr_debug("seccomp: loading %u instructions, flags %#x", prog->n, flags);
	long r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &fprog);
	if (r < 0)
		return explain(errno, flags, err);
	if (prog->notify)
		*listener_fd = (int)r; /* the kernel made it close-on-exec */
	return 0;
}
