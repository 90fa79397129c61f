/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup: a cgroup's files, by name. */
#define LR_ROOM "cgroup"

#include "src/cgroup/internal.h"

#include <fcntl.h>
#include <unistd.h>

int lr_cgroup_path(char buf[PATH_MAX], const char *dir, const char *file)
{
	size_t d = strlen(dir), f = strlen(file);

	if (d + 1 + f >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(buf, dir, d);
	buf[d] = '/';
	memcpy(buf + d + 1, file, f + 1);
	return 0;
}

bool lr_cgroup_flat_get(const char *text, const char *key, uint64_t *ret)
{
	size_t len = strlen(key);

	for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		if (strncmp(p, key, len) == 0 && p[len] == ' ') {
			*ret = strtoull(p + len + 1, NULL, 10);
			return true;
		}
	}
	return false;
}

ssize_t lr_cgroup_read(const char *dir, const char *file, char *buf, size_t size)
{
	char path[PATH_MAX];
	LR_CLEANUP_FD int fd = LR_NOFD;
	ssize_t n = lr_cgroup_path(path, dir, file);

	if (n < 0)
		return n;
	fd = lr_open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* These files come whole in one read(2); asking for the end would be a second one. */
	do
		n = read(fd, buf, size);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if ((size_t)n == size)
		return -EFBIG;
	buf[n] = '\0';
	return n;
}

int lr_cgroup_put(const char *dir, const char *file, const char *value)
{
	char path[PATH_MAX];
	int r = lr_cgroup_path(path, dir, file);

	return r < 0 ? r : lr_write_file_at(AT_FDCWD, path, value);
}

char *lr_cgroup_slurp(struct lr_arena *arena, const char *dir, const char *file)
{
	char path[PATH_MAX];
	LR_CLEANUP_FD int fd = LR_NOFD;

	if (lr_cgroup_path(path, dir, file) < 0)
		return NULL;
	fd = lr_open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	for (size_t size = 4096; size <= 1U << 20; size *= 4) {
		char *buf = lr_alloc(arena, size);
		ssize_t n = buf ? pread(fd, buf, size - 1, 0) : -1;
		size_t have = 0;

		while (n > 0 && (have += (size_t)n) < size - 1)
			n = pread(fd, buf + have, size - 1 - have, (off_t)have);
		if (n < 0)
			return NULL;
		if (have < size - 1)
			return buf;
	}
	return NULL;
}
