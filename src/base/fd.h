/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base: file descriptors that close themselves. The "no descriptor" value is LR_NOFD (-EBADF):
 * passing it to a system call by mistake fails, where -1 or AT_FDCWD might not.
 */
#ifndef LR_BASE_FD_H
#define LR_BASE_FD_H

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/types.h>

#include "src/base/err.h"

#define LR_NOFD (-EBADF)

/* open(2). musl's own, asked for O_CLOEXEC, makes a second system call for kernels that did not
 * know the flag. */
#define lr_open(path, ...) openat(AT_FDCWD, path, __VA_ARGS__)

/* Closes if fd >= 0, keeps errno, returns LR_NOFD: fd = lr_close(fd). */
int lr_close(int fd);
static inline void lr_closep(int *fd)
{
	*fd = lr_close(*fd);
}
#define LR_CLEANUP_FD __attribute__((cleanup(lr_closep)))

/*
 * For what runs in a process that ends soon, in exit or in close_range(2) and execve, as a
 * container's first one does: leaving a descriptor to that end saves a system call. Only low ones
 * are left, so however many there are, they fit into every usual RLIMIT_NOFILE. Never for one that
 * leads to the host's files: between here and the end, paths of the container's are looked up, and
 * /proc/self/fd is among what they may name (CVE-2024-21626).
 */
#define LR_FD_LATE 64
static inline int lr_close_late(int fd)
{
	return fd < LR_FD_LATE ? LR_NOFD : lr_close(fd);
}
static inline void lr_close_latep(int *fd)
{
	*fd = lr_close_late(*fd);
}
#define LR_CLEANUP_FD_LATE __attribute__((cleanup(lr_close_latep)))

static inline int lr_take_fd(int *fd)
{
	int r = *fd;
	*fd = LR_NOFD;
	return r;
}

/* free(3) and closedir(3) as cleanup attributes. */
void lr_freep(void *p);
#define LR_CLEANUP_FREE __attribute__((cleanup(lr_freep)))
struct __dirstream;
void lr_closedirp(struct __dirstream **d);
#define LR_CLEANUP_DIR __attribute__((cleanup(lr_closedirp)))
/* opendir(3) of a path as for openat(2); not of a symbolic link. */
struct __dirstream *lr_opendir_at(int dirfd, const char *path);

/* Whole reads and writes, restarted on EINTR. Bytes done, or -errno. A short read means EOF. */
ssize_t lr_read_full(int fd, void *buf, size_t n);
ssize_t lr_write_full(int fd, const void *buf, size_t n);

/*
 * Small kernel files (/proc, cgroupfs): reads at most size - 1 bytes and ends them with a NUL;
 * -EFBIG when the file is larger. Returns the length. dirfd and path as for openat(2).
 */
ssize_t lr_read_file_at(int dirfd, const char *path, char *buf, size_t size);
/* One write(2) of the whole: kernel files take a value whole or not at all. 0 or -errno. */
int lr_write_once(int fd, const void *value, size_t len);
/* The same of a file, which must exist. */
int lr_write_file_at(int dirfd, const char *path, const char *text);

#endif
