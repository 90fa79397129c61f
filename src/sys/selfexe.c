/* SPDX-License-Identifier: Apache-2.0 */
/* sys: running from a sealed copy of ourselves; see selfexe.h. */
#define LR_ROOM "selfexe"
#include "src/sys/selfexe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/sys/syscalls.h"

#define COPY_MODE 0500
#define SEALS     (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* Sealed; or a copy of make_unlinked: without a name, and nobody opens for writing what is executed
 * (ETXTBSY). A program deleted by an upgrade is neither: its mode is another. */
static bool is_copy(int exe)
{
	struct stat st;
	/* Only shmem-backed files know seals: anything else answers EINVAL. */
	int seals = fcntl(exe, F_GET_SEALS);

	if (seals >= 0 && (seals & SEALS) == SEALS)
		return true;
	return fstat(exe, &st) == 0 && st.st_nlink == 0 && st.st_uid == geteuid() &&
	       (st.st_mode & 07777) == COPY_MODE;
}

bool lr_selfexe_is_sealed(void)
{
	LR_CLEANUP_FD int fd = lr_open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	return fd >= 0 && is_copy(fd);
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

/* A second descriptor, for reading; the kernel does not execute what is open for writing. */
static int reopen(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int again = lr_open(path, O_RDONLY | O_CLOEXEC);
	return again < 0 ? -errno : again;
}

/*
 * Where memfd_create is filtered, or vm.memfd_noexec is 2: a file that never had a name, for this
 * run only. A container that gets hold of it cannot write while any process runs from it, and later
 * writes to what nobody will execute.
 */
static int make_unlinked(int exe)
{
	/* Debian mounts /run noexec. O_EXCL: it cannot get a name later. */
	static const char *const dirs[] = {"/run", "/dev/shm", "/tmp", "/var/tmp"};
	int r = -EACCES;

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		struct statvfs fs;
		LR_CLEANUP_FD int fd =
			lr_open(dirs[i], O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, COPY_MODE);
		if (fd < 0 || fstatvfs(fd, &fs) < 0 || fs.f_flag & ST_NOEXEC)
			continue;
		r = copy_all(exe, fd);
		if (r == 0 && fchmod(fd, COPY_MODE) < 0)
			r = -errno;
		LR_CLEANUP_FD int copy = r == 0 ? reopen(fd) : LR_NOFD;
		/* Seen as what it is (not so with root_squash), or it would copy itself for
		 * ever. */
		if (copy >= 0 && is_copy(copy))
			return lr_take_fd(&copy);
	}
	return r < 0 ? r : -EACCES;
}

static bool no_memfd(int r)
{
	return r == -ENOSYS || r == -EPERM || r == -EACCES;
}

/* Only returns to tell why not. */
static int execute(int copy, char **argv, char **envp)
{
	char path[32];
	int r = lr_execveat(copy, "", argv, envp, AT_EMPTY_PATH);

	if (r != -ENOSYS && r != -EPERM)
		return r;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", copy);
	execve(path, argv, envp);
	return -errno;
}

int lr_selfexe_seal(char **argv, char **envp, struct lr_err *err)
{
	LR_CLEANUP_FD int exe = lr_open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (exe < 0)
		return lr_fail(err, errno, "open /proc/self/exe");
	if (is_copy(exe))
		return 0;

	LR_CLEANUP_FD int copy = make_copy(exe);
	if (no_memfd(copy)) {
		int why = copy;
		copy = make_unlinked(exe);
		if (copy < 0) {
			lr_fail(err, -why, "make a sealed copy of the runtime");
			return lr_err_hint(err,
					   "memfd_create must be allowed, with vm.memfd_noexec "
					   "below 2, or /run, /dev/shm, /tmp or /var/tmp be "
					   "without noexec");
		}
	}
	if (copy < 0)
		return lr_fail(err, -copy, "make a sealed copy of the runtime");
	int r = execute(copy, argv, envp);
	if (no_memfd(r)) {
		/* vm.memfd_noexec=2 on a kernel that lets it be made, or a security module. */
		lr_close(copy);
		copy = make_unlinked(exe);
		if (copy >= 0)
			r = execute(copy, argv, envp);
	}
	lr_fail(err, -r, "execute the sealed copy of the runtime");
	return lr_err_hint(err, "vm.memfd_noexec or a security module may forbid it");
}
