/* SPDX-License-Identifier: Apache-2.0 */
/* sys: running from a sealed copy of ourselves; see selfexe.h. */
#define LR_ROOM "selfexe"
#include "src/sys/selfexe.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/sys/syscalls.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

bool lr_selfexe_is_sealed(void)
{
	/* Only shmem-backed files know seals: anything else answers EINVAL. */
	LR_CLEANUP_FD int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int seals = fd < 0 ? -1 : fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & SEALS) == SEALS;
}

static int copy_all(int from, int to)
{
	struct stat st;

	if (fstat(from, &st) < 0)
		return -errno;
	for (off_t done = 0; done < st.st_size;) {
		ssize_t n = sendfile(to, from, NULL, (size_t)(st.st_size - done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += n;
	}
	return 0;
}

static int make_copy(int exe)
{
	LR_CLEANUP_FD int fd =
		lr_memfd_create("lean-runtime", MFD_ALLOW_SEALING | MFD_CLOEXEC | MFD_EXEC);
	if (fd == -EINVAL) /* before Linux 6.3: executable anyway */
		fd = lr_memfd_create("lean-runtime", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	if (fd < 0)
		return fd;
	int r = copy_all(exe, fd);
	if (r < 0)
		return r;
	return fcntl(fd, F_ADD_SEALS, SEALS) < 0 ? -errno : lr_take_fd(&fd);
}

int lr_selfexe_seal(char **argv, char **envp, struct lr_err *err)
{
	LR_CLEANUP_FD int exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (exe < 0)
		return lr_fail(err, errno, "open /proc/self/exe");
	int seals = fcntl(exe, F_GET_SEALS);
	if (seals >= 0 && (seals & SEALS) == SEALS)
		return 0;

	LR_CLEANUP_FD int copy = make_copy(exe);
	if (copy < 0) {
		lr_fail(err, -copy, "make a sealed copy of the runtime");
		return lr_err_hint(err,
				   "memfd_create must be allowed, with vm.memfd_noexec below 2");
	}
	int r = lr_execveat(copy, "", argv, envp, AT_EMPTY_PATH);
	lr_fail(err, -r, "execute the sealed copy of the runtime");
	return lr_err_hint(err, "vm.memfd_noexec or a security module may forbid it");
}
