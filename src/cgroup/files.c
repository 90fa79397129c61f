/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup: a cgroup's files, by name. */
#define LR_ROOM "cgroup"

#include "src/cgroup/internal.h"
#include "src/sys/syscalls.h"

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

void lr_cgroup_batch_close(struct lr_cgroup_batch *b)
{
	for (size_t i = 0, n; i < b->n; i += n) {
		unsigned first = (unsigned)b->v[i];

		for (n = 1; i + n < b->n && b->v[i + n] == b->v[i] + (int)n;)
			n++;
		/* Not before Linux 5.9, and in some sandboxes. */
		if (n > 1 && lr_close_range(first, first + (unsigned)n - 1, 0) == 0)
			continue;
		for (size_t k = 0; k < n; k++)
			lr_close(b->v[i + k]);
	}
	b->n = 0;
}

void lr_cgroup_batch_add(struct lr_cgroup_batch *b, int fd)
{
	if (!b || fd < 0) {
		lr_close(fd);
		return;
	}
	if (b->n == LR_ARRAY_SIZE(b->v))
		lr_cgroup_batch_close(b);
	b->v[b->n++] = fd;
}

static int open_in(const char *dir, const char *file, int flags)
{
	char path[PATH_MAX];
	int fd, r = lr_cgroup_path(path, dir, file);

	if (r < 0)
		return r;
	fd = lr_open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* These files come whole in one read(2); asking for the end would be a second one. */
static ssize_t read_once(int fd, char *buf, size_t size)
{
	ssize_t n;

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

ssize_t lr_cgroup_read_batched(struct lr_cgroup_batch *b, const char *dir, const char *file,
			       char *buf, size_t size)
{
	int fd = open_in(dir, file, O_RDONLY);
	ssize_t n = fd < 0 ? fd : read_once(fd, buf, size);

	lr_cgroup_batch_add(b, fd);
	return n;
}

ssize_t lr_cgroup_read(const char *dir, const char *file, char *buf, size_t size)
{
	return lr_cgroup_read_batched(NULL, dir, file, buf, size);
}

int lr_cgroup_put_batched(struct lr_cgroup_batch *b, const char *dir, const char *file,
			  const char *value)
{
	int fd = open_in(dir, file, O_WRONLY);
	int r = fd < 0 ? fd : lr_write_once(fd, value, strlen(value));

	lr_cgroup_batch_add(b, fd);
	return r;
}

int lr_cgroup_put(const char *dir, const char *file, const char *value)
{
	return lr_cgroup_put_batched(NULL, dir, file, value);
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
