/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rootfs: --no-pivot leaves the host's tree mounted under the container's root, where a process
 * with enough capabilities can uncover it. What gives power over the host, its proc and sysfs, is
 * detached first. Finding it means to read mountinfo, which starts avoid else; but nobody starts
 * containers from an initramfs a thousand times a second.
 */
#define LR_ROOM "rootfs"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

#include "src/base/str.h"
#include "src/rootfs/internal.h"
#include "src/sys/procfs.h"

#define LINE_MAX_BYTES (4 * PATH_MAX) /* two paths with some escapes, and options */
#define MOUNTS_MAX     100000         /* fs.mount-max of the kernel */

struct scan {
	int fd;
	size_t start, end;
	char buf[2 * LINE_MAX_BYTES];
};

/* The next line without its newline; NULL at the end (*r 0) or on an error. */
static char *next_line(struct scan *s, int *r)
{
	for (;;) {
		char *nl = memchr(s->buf + s->start, '\n', s->end - s->start);
		if (nl) {
			char *line = s->buf + s->start;
			*nl = '\0';
			s->start = (size_t)(nl - s->buf) + 1;
			return line;
		}
		memmove(s->buf, s->buf + s->start, s->end - s->start);
		s->end -= s->start;
		s->start = 0;
		*r = s->end == sizeof(s->buf) ? -EFBIG : 0;
		if (*r < 0)
			return NULL;
		ssize_t n = read(s->fd, s->buf + s->end, sizeof(s->buf) - s->end);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			*r = n < 0 ? -errno : 0;
			return NULL;
		}
		s->end += (size_t)n;
	}
}

/* The mount point if the line is a proc or sysfs, or NULL. proc_pid_mountinfo(5): fields 5 (mount
 * point) and the first behind " - " (type). */
static char *kernel_fs(char *line)
{
	char *type = strstr(line, " - ");
	if (!type)
		return NULL;
	type += 3;
	if (!lr_has_prefix(type, "proc ") && !lr_has_prefix(type, "sysfs "))
		return NULL;
	char *point = line;
	for (int field = 1; field < 5; field++) {
		point = strchr(point, ' ');
		if (!point)
			return NULL;
		point++;
	}
	char *end = strchr(point, ' ');
	if (!end)
		return NULL;
	*end = '\0';
	lr_path_unescape(point);
	return point;
}

/* An unmount propagates by the mount above; so does what is mounted below by `point` itself. */
static int deafen(const char *point, struct lr_err *err)
{
	char dir[PATH_MAX];

	if (mount(NULL, point, NULL, MS_SLAVE | MS_REC, NULL) < 0)
		return lr_fail(err, errno, "stopping propagation of the host's %s", point);
	snprintf(dir, sizeof(dir), "%s", point);
	for (char *slash; (slash = strrchr(dir, '/'));) {
		slash[slash == dir] = '\0';
		if (mount(NULL, dir, NULL, MS_SLAVE, NULL) == 0)
			return 0;
		if (errno != EINVAL || slash == dir) /* EINVAL: no mount point, go on upwards */
			break;
	}
	return lr_fail(err, errno, "stopping propagation above the host's %s", point);
}

/* 1: it is gone. 0: it is covered, and its line stays. */
static int hide(const char *point, bool host_is_deaf, struct lr_err *err)
{
	if (!host_is_deaf) {
		int r = deafen(point, err);
		if (r < 0)
			return r;
	}
	if (umount2(point, MNT_DETACH) == 0)
		return 1;
	/* Locked: it came with the mount namespace of a more privileged user namespace. */
	if (errno != EINVAL && errno != EPERM)
		return lr_fail(err, errno, "detaching the host's %s", point);
	if (mount("tmpfs", point, "tmpfs", MS_RDONLY, "nr_inodes=1") == 0 || errno == ENOTDIR)
		return 0;
	return lr_fail(err, errno, "covering the host's %s", point);
}

/* Hides the first that counts, past `skip` of them. 1: one is gone; 0: one is covered; -ENOENT: no
 * more. */
static int hide_next(int procfd, const char *root, size_t skip, bool host_is_deaf,
		     struct lr_err *err)
{
	struct scan s = {.fd = LR_NOFD};
	int r;

	LR_CLEANUP_FD int fd = lr_procfs_openat(procfd, "self/mountinfo", O_RDONLY);
	if (fd < 0)
		return lr_fail(err, -fd, "opening the list of mounts");
	s.fd = fd;
	for (char *line; (line = next_line(&s, &r));) {
		char *point = kernel_fs(line);
		if (!point || lr_path_below(point, root))
			continue;
		if (skip-- == 0)
			return hide(point, host_is_deaf, err);
	}
	return r < 0 ? lr_fail(err, -r, "reading the list of mounts") : -ENOENT;
}

int lr_rootfs_hide_host(int rootfd, bool host_is_deaf, struct lr_err *err)
{
	char root[PATH_MAX], link[32];

	LR_CLEANUP_FD int procfd = lr_procfs_open(err);
	if (procfd < 0)
		return procfd;
	snprintf(link, sizeof(link), "self/fd/%d", rootfd);
	ssize_t n = readlinkat(procfd, link, root, sizeof(root) - 1);
	if (n < 0)
		return lr_fail(err, errno, "finding where the root file system is mounted");
	root[n] = '\0';

	size_t covered = 0;
	for (int i = 0; i < MOUNTS_MAX; i++) {
		int r = hide_next(procfd, root, covered, host_is_deaf, err);
		if (r == -ENOENT)
			return 0;
		if (r < 0)
			return r;
		covered += r == 0;
	}
	return lr_refuse(err, EAGAIN, "the host's mounts do not come to an end");
}
