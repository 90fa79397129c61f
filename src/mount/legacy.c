/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount: mount(2) on descriptors, for kernels before 5.12 and for filters that refuse the newer
 * calls. The path given to the kernel is a magic link of procfs, so nothing is looked up twice.
 */
#define LR_ROOM "mount"
#include "src/mount/internal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "src/base/str.h"
#include "src/sys/procfs.h"

bool lr_mount_no_new_api;

struct pair {
	uint64_t attr;
	unsigned long ms, st;
};

static const struct pair pairs[] = {
	{MOUNT_ATTR_RDONLY, MS_RDONLY, ST_RDONLY},
	{MOUNT_ATTR_NOSUID, MS_NOSUID, ST_NOSUID},
	{MOUNT_ATTR_NODEV, MS_NODEV, ST_NODEV},
	{MOUNT_ATTR_NOEXEC, MS_NOEXEC, ST_NOEXEC},
	{MOUNT_ATTR_NODIRATIME, MS_NODIRATIME, ST_NODIRATIME},
	{MOUNT_ATTR_NOSYMFOLLOW, MS_NOSYMFOLLOW, ST_NOSYMFOLLOW},
};

unsigned long lr_mount_ms_flags(uint64_t attr)
{
	unsigned long ms = 0;

	for (size_t i = 0; i < LR_ARRAY_SIZE(pairs); i++)
		if (attr & pairs[i].attr)
			ms |= pairs[i].ms;
	switch (attr & MOUNT_ATTR__ATIME) {
	case MOUNT_ATTR_NOATIME:
		return ms | MS_NOATIME;
	case MOUNT_ATTR_STRICTATIME:
		return ms | MS_STRICTATIME;
	default:
		return ms | MS_RELATIME;
	}
}

int lr_mount_attr_of(int fd, uint64_t *attr)
{
	struct statfs sfs;

	if (fstatfs(fd, &sfs) < 0)
		return -errno;
	*attr = 0;
	for (size_t i = 0; i < LR_ARRAY_SIZE(pairs); i++)
		if ((unsigned long)sfs.f_flags & pairs[i].st)
			*attr |= pairs[i].attr;
	if (sfs.f_flags & ST_NOATIME)
		*attr |= MOUNT_ATTR_NOATIME;
	else if (!(sfs.f_flags & ST_RELATIME))
		*attr |= MOUNT_ATTR_STRICTATIME;
	return 0;
}

int lr_mount_legacy(const struct lr_mount_env *env, int fd, const char *source, const char *type,
		    unsigned long flags, const char *data)
{
	char path[40];

	if (env->procfd < 0) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		return mount(source, path, type, flags, data) < 0 ? -errno : 0;
	}
	LR_CLEANUP_FD int cwd = lr_open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fchdir(env->procfd) < 0)
		return -errno;
	snprintf(path, sizeof(path), "self/fd/%d", fd);
	int r = mount(source, path, type, flags, data) < 0 ? -errno : 0;
	if (cwd < 0 || fchdir(cwd) < 0)
		if (chdir("/") < 0 && r == 0)
			r = -errno;
	return r;
}

/* 1: fd is the root of that mount; 0: it is not; -ENOSYS: before Linux 5.8 the kernel does not
 * tell. */
static int is_mount(int fd, const char *id)
{
	struct statx st;

	if (lr_statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0 || !(st.stx_mask & STATX_MNT_ID))
		return -ENOSYS;
	return st.stx_mnt_id == strtoull(id, NULL, 10) &&
	       (st.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

/*
 * `base` is where the mount `top` is seen; what is mounted below is looked up from there, since the
 * same path from our root may lead to a mount of the host's: a root that nobody may search the way
 * to has been put over "/". For the same reason a line may be about a mount of the host's.
 */
static int remount_line(char *line, const struct lr_mount_env *env, int top, const char *base,
			size_t base_len, const struct lr_mount_change *c)
{
	/* id parent major:minor root mountpoint ... */
	char *p = line;

	for (int i = 0; i < 4 && p; i++)
		if ((p = strchr(p, ' ')))
			p++;
	if (!p)
		return 0;
	p[strcspn(p, " ")] = '\0';
	lr_path_unescape(p);
	if (strncmp(p, base, base_len) != 0 || (p[base_len] && p[base_len] != '/'))
		return 0;

	const char *below = p + base_len + strspn(p + base_len, "/");
	LR_CLEANUP_FD int fd = openat(top, *below ? below : ".", O_PATH | O_NOFOLLOW | O_CLOEXEC);
	uint64_t attr;
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	int is = is_mount(fd, line);
	if (is == 0) /* or hidden below another one: nobody reaches it either */
		return 0;
	int r = lr_mount_attr_of(fd, &attr);
	if (r < 0)
		return r;
	attr = (attr & ~c->clear) | c->set;
	r = lr_mount_legacy(env, fd, NULL, NULL, MS_REMOUNT | MS_BIND | lr_mount_ms_flags(attr),
			    NULL);
	return r == -EINVAL && is < 0 && *below ? 0 : r; /* no mount */
}

int lr_mount_path_of(const struct lr_mount_env *env, int fd, char *buf, size_t size)
{
	char link[40];

	snprintf(link, sizeof(link), "%sself/fd/%d", env->procfd >= 0 ? "" : "/proc/", fd);
	ssize_t n = readlinkat(env->procfd >= 0 ? env->procfd : AT_FDCWD, link, buf, size - 1);
	if (n < 0)
		return -errno;
	buf[n] = '\0';
	return (size_t)n == size - 1 ? -ENAMETOOLONG : 0;
}

int lr_mount_legacy_recursive(const struct lr_mount_env *env, int fd,
			      const struct lr_mount_change *c)
{
	char base[PATH_MAX], buf[4 * PATH_MAX];
	size_t have = 0;
	int r = lr_mount_path_of(env, fd, base, sizeof(base));

	if (r < 0)
		return r;
	size_t base_len = lr_streq(base, "/") ? 0 : strlen(base);
	LR_CLEANUP_FD int in = env->procfd >= 0
				       ? lr_procfs_openat(env->procfd, "self/mountinfo", O_RDONLY)
				       : lr_open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (in < 0)
		return in == -1 ? -errno : in;
	for (;;) {
		ssize_t n = read(in, buf + have, sizeof(buf) - 1 - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : have ? -EIO : 0;
		have += (size_t)n;
		buf[have] = '\0';
		char *line = buf, *end;
		while ((end = strchr(line, '\n'))) {
			*end = '\0';
			if ((r = remount_line(line, env, fd, base, base_len, c)) < 0)
				return r;
			line = end + 1;
		}
		have -= (size_t)(line - buf);
		if (have == sizeof(buf) - 1)
			return -E2BIG;
		memmove(buf, line, have);
	}
}
