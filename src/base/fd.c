/* SPDX-License-Identifier: Apache-2.0 */
/* base: descriptors; see fd.h. */
#include "src/base/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int lr_close(int fd)
{
	if (fd >= 0) {
		int saved = errno;
		close(fd);
		errno = saved;
	}
	return LR_NOFD;
}

void lr_freep(void *p)
{
	int saved = errno;
	free(*(void **)p);
	errno = saved;
}

void lr_closedirp(DIR **d)
{
	int saved = errno;
	if (*d)
		closedir(*d);
	errno = saved;
}

ssize_t lr_read_full(int fd, void *buf, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = read(fd, (char *)buf + done, n - done);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			break;
		done += (size_t)r;
	}
	return (ssize_t)done;
}

ssize_t lr_write_full(int fd, const void *buf, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = write(fd, (const char *)buf + done, n - done);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		done += (size_t)r;
	}
	return (ssize_t)done;
}

ssize_t lr_read_file_at(int dirfd, const char *path, char *buf, size_t size)
{
	LR_CLEANUP_FD int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;

	/* A full buffer means that there may be more: nothing is silently cut. */
	ssize_t n = lr_read_full(fd, buf, size);
	if (n < 0)
		return n;
	if ((size_t)n == size)
		return -EFBIG;
	buf[n] = '\0';
	return n;
}

int lr_write_once(int fd, const void *value, size_t len)
{
	ssize_t n;

	do
		n = write(fd, value, len);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

int lr_write_file_at(int dirfd, const char *path, const char *text)
{
	LR_CLEANUP_FD int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : lr_write_once(fd, text, strlen(text));
}

DIR *lr_opendir_at(int dirfd, const char *path)
{
	int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d)
		lr_close(fd);
	return d;
}
