/* SPDX-License-Identifier: Apache-2.0 */
/* init: the program of stub.c as a sealed file. */
#define LR_ROOM "stub"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/init/process.h"
#include "src/init/stub.h" /* made by the build */
#include "src/sys/syscalls.h"

bool lr_init_stub_allowed(const struct lr_seccomp_prog *filter, struct lr_arena *arena)
{
	/* The system calls of stub.c, and the one that executes it. */
	static const int calls[] = {SYS_execveat,       SYS_fcntl, SYS_rt_sigaction,
				    SYS_rt_sigprocmask, SYS_prctl, SYS_read,
				    SYS_execve,         SYS_write, SYS_exit_group};

	return lr_seccomp_allows(filter, calls, LR_ARRAY_SIZE(calls), arena);
}

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

#ifndef LR_NO_STUB

/* Whether the call exists and is allowed to us: in the child it is too late to find out. */
static int may_execute(void)
{
	char *const none[] = {NULL};
	int r = lr_execveat(LR_NOFD, "", none, none, AT_EMPTY_PATH);

	return r == -ENOSYS || r == -EPERM ? r : 0;
}

int lr_init_stub_open(struct lr_err *err)
{
	LR_CLEANUP_FD int fd =
		lr_memfd_create(LR_STUB_NAME, MFD_ALLOW_SEALING | MFD_CLOEXEC | MFD_EXEC);
	if (fd == -EINVAL) /* before Linux 6.3: executable anyway */
		fd = lr_memfd_create(LR_STUB_NAME, MFD_ALLOW_SEALING | MFD_CLOEXEC);
	ssize_t n = fd < 0 ? fd : lr_write_full(fd, stub, sizeof(stub));
	if (n >= 0 && fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		n = -errno;
	if (n >= 0)
		n = may_execute();
	if (n >= 0)
		return lr_take_fd(&fd);
	lr_fail(err, (int)-n, "make the sealed program that executes the container's");
	return lr_err_hint(err, "memfd_create and execveat must be allowed, with sysctl "
				"vm.memfd_noexec below 2");
}

#else

int lr_init_stub_open(struct lr_err *err)
{
	return lr_refuse(err, ENOSYS, "not ported to this machine (src/init/stub.c)");
}

#endif
