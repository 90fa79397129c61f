/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: see given.h. */
#define LR_ROOM "forkd"
#include "src/forkd/given.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"

/* What a descriptor of no file is called. A file's name has a slash. */
static ssize_t kind_of(int fd, char *text, size_t size)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(path, text, size - 1);
	if (n < 0)
		return -errno;
	text[n] = 0;
	return n;
}

int given_is_uffd(int fd)
{
	char text[64];
	ssize_t n = kind_of(fd, text, sizeof(text));

	return n < 0 ? (int)n : lr_streq(text, "anon_inode:[userfaultfd]");
}

bool given_is_exported(int fd)
{
	char text[64];

	return kind_of(fd, text, sizeof(text)) > 0 && lr_streq(text, "anon_inode:[lean-seed]");
}

bool given_tells_all(int uffd)
{
	const unsigned all = UFFD_FEATURE_EVENT_FORK | UFFD_FEATURE_EVENT_REMAP |
			     UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_UNMAP;
	char path[40], text[1024];
	unsigned features = 0;

	if (given_is_uffd(uffd) != 1)
		return false;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", uffd);
	if (lr_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return false;
	const char *api = strstr(text, "API:");
	if (!api || sscanf(api, "API: %*x:%x", &features) != 1 || (features & all) != all)
		return false;
	int flags = fcntl(uffd, F_GETFL);
	return flags >= 0 && fcntl(uffd, F_SETFL, flags | O_NONBLOCK) == 0;
}

bool given_is_cgroup(int fd)
{
	struct statfs fs;
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) && fstatfs(fd, &fs) == 0 &&
	       fs.f_type == CGROUP2_SUPER_MAGIC;
}

bool given_is_member(int cgroup, pid_t pid)
{
	LR_CLEANUP_FD int fd = openat(cgroup, "cgroup.procs", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	bool found = false;
	long one;

	if (!f)
		return false;
	fd = LR_NOFD;
	while (!found && fscanf(f, "%ld", &one) == 1)
		found = one == pid;
	fclose(f);
	return found;
}

static bool has_seals(int fd, int all)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & all) == all;
}

bool given_is_sealed(int fd)
{
	return has_seals(fd, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW);
}

int given_make(const void *bytes, size_t n, struct lr_err *err)
{
	LR_CLEANUP_FD int fd = memfd_create("descriptor", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return lr_fail(err, errno, "make a file in memory");
	if (lr_write_full(fd, bytes, n) != (ssize_t)n ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK) < 0)
		return lr_fail(err, errno, "write the descriptor");
	return lr_take_fd(&fd);
}

bool given_keeps_size(int fd)
{
	return has_seals(fd, F_SEAL_SHRINK | F_SEAL_GROW);
}
