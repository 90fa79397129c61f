/* SPDX-License-Identifier: Apache-2.0 */
/* sys: raw system calls; see syscalls.h. */
#include "src/sys/syscalls.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static inline int ret(long r)
{
	return r < 0 ? -errno : (int)r;
}

int lr_openat2(int dirfd, const char *path, const struct open_how *how)
{
	return ret(syscall(SYS_openat2, dirfd, path, how, sizeof(*how)));
}

pid_t lr_clone3(const struct clone_args *args, size_t size)
{
	return ret(syscall(SYS_clone3, args, size));
}

int lr_open_tree(int dirfd, const char *path, unsigned flags)
{
	return ret(syscall(SYS_open_tree, dirfd, path, flags));
}

int lr_move_mount(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	return ret(syscall(SYS_move_mount, from_fd, from, to_fd, to, flags));
}

int lr_mount_setattr(int dirfd, const char *path, unsigned flags, struct mount_attr *attr)
{
	return ret(syscall(SYS_mount_setattr, dirfd, path, flags, attr, sizeof(*attr)));
}

int lr_fsopen(const char *fs, unsigned flags)
{
	return ret(syscall(SYS_fsopen, fs, flags));
}

int lr_fsconfig(int fd, unsigned cmd, const char *key, const void *value, int aux)
{
	return ret(syscall(SYS_fsconfig, fd, cmd, key, value, aux));
}

int lr_fsmount(int fd, unsigned flags, unsigned attr_flags)
{
	return ret(syscall(SYS_fsmount, fd, flags, attr_flags));
}

int lr_pivot_root(const char *new_root, const char *put_old)
{
	return ret(syscall(SYS_pivot_root, new_root, put_old));
}

int lr_statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *st)
{
	return ret(syscall(SYS_statx, dirfd, path, flags, mask, st));
}

int lr_faccessat2(int dirfd, const char *path, int mode, int flags)
{
	return ret(syscall(SYS_faccessat2, dirfd, path, mode, flags));
}

bool lr_has_cap(int cap)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[2] = {0};

	return syscall(SYS_capget, &head, sets) == 0 && sets[cap / 32].effective >> cap % 32 & 1;
}

int lr_pidfd_open(pid_t pid, unsigned flags)
{
	return ret(syscall(SYS_pidfd_open, pid, flags));
}

int lr_pidfd_send_signal(int pidfd, int sig)
{
	return ret(syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0));
}

int lr_pidfd_getfd(int pidfd, int fd)
{
	return ret(syscall(SYS_pidfd_getfd, pidfd, fd, 0));
}

#ifndef SYS_process_mrelease /* Debian 12's musl lacks it */
#define SYS_process_mrelease 448
#endif

int lr_process_mrelease(int pidfd)
{
	return ret(syscall(SYS_process_mrelease, pidfd, 0));
}

int lr_close_range(unsigned first, unsigned last, unsigned flags)
{
	return ret(syscall(SYS_close_range, first, last, flags));
}

int lr_memfd_create(const char *name, unsigned flags)
{
	return ret(syscall(SYS_memfd_create, name, flags));
}

int lr_execveat(int dirfd, const char *path, char *const argv[], char *const envp[], int flags)
{
	return ret(syscall(SYS_execveat, dirfd, path, argv, envp, flags));
}

int lr_signal_default(int sig)
{
	/* The kernel's struct sigaction, which differs from libc's; zero is SIG_DFL in either. */
	static const char zero[64];

	return ret(syscall(SYS_rt_sigaction, sig, zero, NULL, _NSIG / 8));
}

int lr_setns(int fd, int nstype)
{
	return ret(syscall(SYS_setns, fd, nstype));
}

int lr_unshare(int flags)
{
	return ret(syscall(SYS_unshare, flags));
}

ssize_t lr_getdents(int fd, void *buf, size_t size)
{
	long r = syscall(SYS_getdents64, fd, buf, size);

	return r < 0 ? -errno : r;
}

const struct lr_dirent *lr_dir_next(struct lr_dir *d)
{
	if (d->at == d->n) {
		d->at = 0;
		d->n = lr_getdents(d->fd, d->entries, sizeof(d->entries));
	}
	/* A directory that was removed has no entries. */
	errno = d->n < 0 && d->n != -ENOENT ? (int)-d->n : 0;
	if (d->n <= 0) {
		d->n = 0;
		return NULL;
	}
	const struct lr_dirent *e = (const struct lr_dirent *)(d->entries + d->at);
	d->at += e->len;
	return e;
}

/* The offset of -1, "the file's own position", is the same in both halves that some ABIs split it
 * into. */
ssize_t lr_read_nowait(int fd, void *buf, size_t n)
{
	const struct iovec iov = {buf, n};
	long r = syscall(SYS_preadv2, fd, &iov, 1, -1L, -1L, RWF_NOWAIT);

	return r < 0 ? -errno : r;
}

ssize_t lr_write_nowait(int fd, const void *buf, size_t n)
{
	const struct iovec iov = {(void *)(size_t)buf, n};
	long r = syscall(SYS_pwritev2, fd, &iov, 1, -1L, -1L, RWF_NOWAIT);

	return r < 0 ? -errno : r;
}
