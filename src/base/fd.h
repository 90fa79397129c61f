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

/* Whole reads and writes, restarted on EINTR. Bytes done, or -errno. A short read means EOF. */
ssize_t lr_read_full(int fd, void *buf, size_t n);
ssize_t lr_write_full(int fd, const void *buf, size_t n);

/*
 * Small kernel files (/proc, cgroupfs): reads at most size - 1 bytes and ends them with a NUL;
 * -EFBIG when the file is larger. Returns the length. dirfd and path as for openat(2).
 */
ssize_t lr_read_file_at(int dirfd, const char *path, char *buf, size_t size);
/* Opens without creating, one write(2) of the whole text. 0 or -errno. */
int lr_write_file_at(int dirfd, const char *path, const char *text);

#endif
