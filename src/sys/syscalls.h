/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys: the system calls that Debian 12's glibc or musl does not wrap, or wraps with a trap. All
 * return a result >= 0 or -errno; none allocates; all are safe after clone. Structures and
 * constants come from this header, so that no other file has to combine <sys/mount.h> and
 * <linux/mount.h>.
 */
#ifndef LR_SYS_SYSCALLS_H
#define LR_SYS_SYSCALLS_H

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/types.h>

/* musl leaves these to the kernel's headers, with which glibc's own declarations clash. */
#ifndef MOUNT_ATTR_RDONLY
#include <linux/mount.h>
#endif
#ifndef STATX_TYPE
#include <linux/stat.h>
#endif

/* True for what a newer call answers that the kernel, or a filter over it, does not offer: an older
 * one may do. */
static inline bool lr_not_offered(int r)
{
	return r == -ENOSYS || r == -EPERM;
}

int lr_openat2(int dirfd, const char *path, const struct open_how *how);
pid_t lr_clone3(const struct clone_args *args, size_t size); /* fork-like: args->stack must be 0 */

/* Mount API. */
int lr_open_tree(int dirfd, const char *path, unsigned flags);
int lr_move_mount(int from_fd, const char *from, int to_fd, const char *to, unsigned flags);
int lr_mount_setattr(int dirfd, const char *path, unsigned flags, struct mount_attr *attr);
int lr_fsopen(const char *fs, unsigned flags);
int lr_fsconfig(int fd, unsigned cmd, const char *key, const void *value, int aux);
int lr_fsmount(int fd, unsigned flags, unsigned attr_flags);
int lr_pivot_root(const char *new_root, const char *put_old);
/* Not libc's faccessat(): that hides a missing call behind a guess of its own. */
int lr_faccessat2(int dirfd, const char *path, int mode, int flags);
int lr_statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *st);

bool lr_has_cap(int cap); /* in the effective set */

int lr_pidfd_open(pid_t pid, unsigned flags);
int lr_pidfd_send_signal(int pidfd, int sig);
int lr_pidfd_getfd(int pidfd, int fd); /* close-on-exec */
int lr_process_mrelease(int pidfd);    /* of one that was killed: frees its memory */
int lr_close_range(unsigned first, unsigned last, unsigned flags);
int lr_memfd_create(const char *name, unsigned flags);
int lr_execveat(int dirfd, const char *path, char *const argv[], char *const envp[], int flags);
/* The default action for a signal; also for 32 and 33, which libc keeps to itself. */
int lr_signal_default(int sig);
int lr_setns(int fd, int nstype);
int lr_unshare(int flags);

/* preadv2(2) and pwritev2(2) with RWF_NOWAIT at the file's own position; errno is set as well. */
ssize_t lr_read_nowait(int fd, void *buf, size_t n);
ssize_t lr_write_nowait(int fd, const void *buf, size_t n);

/* getdents64(2), for where the heap of opendir(3) is in the way. libc has the structure under one
 * name or another. */
struct lr_dirent {
	uint64_t ino;
	int64_t off;
	unsigned short len;
	unsigned char type;
	char name[];
};
ssize_t lr_getdents(int fd, void *buf, size_t size);

/* A directory entry by entry, without the heap. */
struct lr_dir {
	int fd;
	ssize_t at, n;
	_Alignas(struct lr_dirent) char entries[2048];
};
/* fd: an open directory; it stays the caller's. */
static inline void lr_dir_begin(struct lr_dir *d, int fd)
{
	d->fd = fd;
	d->at = d->n = 0;
}
/* The next one; NULL: there is none, or, if errno is not 0, it can't be read. */
const struct lr_dirent *lr_dir_next(struct lr_dir *d);

/* struct sched_attr of sched_setattr(2), version 1 (5.3), which libc has only since 2.41. */
struct lr_sched_attr {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime;
	uint64_t deadline;
	uint64_t period;
	uint32_t util_min;
	uint32_t util_max;
};

/* What older headers lack; values are kernel ABI. */
#ifndef OPEN_TREE_NAMESPACE
#define OPEN_TREE_NAMESPACE 2 /* Linux 7.0 */
#endif
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif
#ifndef MS_NOSYMFOLLOW
#define MS_NOSYMFOLLOW 256
#endif
#ifndef ST_NOSYMFOLLOW
#define ST_NOSYMFOLLOW 0x2000 /* what statfs(2) says of it */
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif
#ifndef MOUNT_ATTR_NOSYMFOLLOW
#define MOUNT_ATTR_NOSYMFOLLOW 0x00200000
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

#endif
