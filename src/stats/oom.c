/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats: learning that the kernel ran out of memory for a container. v1 signals an eventfd that
 * is registered with memory.oom_control; v2 modifies memory.events, which inotify sees.
 */
#define LR_ROOM "stats"

#include "src/stats/stats.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/cgroup/files.h"

static int kills_v2(const char *dir, uint64_t *n)
{
	char text[1024];
	ssize_t r = lr_cgroup_read(dir, "memory.events", text, sizeof(text));

	if (r < 0)
		return (int)r;
	/* oom_kill counts victims; a kernel before 4.20 has only "oom". */
	if (!lr_cgroup_flat_get(text, "oom_kill", n) && !lr_cgroup_flat_get(text, "oom", n))
		return -EOPNOTSUPP;
	return 0;
}

static int open_v2(struct lr_stats_oom *oom)
{
	char path[PATH_MAX];
	int r = kills_v2(oom->path, &oom->seen);

	if (r < 0)
		return r;
	oom->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (oom->fd < 0)
		return -errno;
	r = lr_cgroup_path(path, oom->path, "memory.events");
	if (r == 0 && inotify_add_watch(oom->fd, path, IN_MODIFY) < 0)
		r = -errno;
	/* The directory's removal gives no event; its becoming empty does. */
	if (r == 0)
		r = lr_cgroup_path(path, oom->path, "cgroup.events");
	if (r == 0 && inotify_add_watch(oom->fd, path, IN_MODIFY) < 0)
		r = -errno;
	return r;
}

static int open_v1(struct lr_stats_oom *oom)
{
	char path[PATH_MAX], text[32];
	int r = lr_cgroup_path(path, oom->path, "memory.oom_control");

	if (r < 0)
		return r;
	oom->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (oom->fd < 0)
		return -errno;
	oom->aux = lr_open(path, O_RDONLY | O_CLOEXEC);
	if (oom->aux < 0)
		return -errno;
	snprintf(text, sizeof(text), "%d %d", oom->fd, oom->aux);
	return lr_cgroup_put(oom->path, "cgroup.event_control", text);
}

int lr_stats_oom_open(const struct lr_cgroup_ref *ref, struct lr_stats_oom *oom, struct lr_err *err)
{
	const char *dir = lr_cgroup_dir(ref, LR_CTRL_MEMORY);
	int r = lr_cgroup_ref_check(ref, err);

	*oom = (struct lr_stats_oom)LR_STATS_OOM_INIT;
	if (r < 0)
		return r;
	if (!dir)
		return lr_refuse(err, EOPNOTSUPP,
				 "without the memory controller nothing tells of out-of-memory");
	oom->v2 = ref->mode == LR_CGROUP_V2;
	snprintf(oom->path, sizeof(oom->path), "%s", dir);
	r = oom->v2 ? open_v2(oom) : open_v1(oom);
	if (r < 0) {
		lr_stats_oom_close(oom);
		return lr_fail(err, -r, "cannot watch %s for out-of-memory", dir);
	}
	return 0;
}

static int read_v2(struct lr_stats_oom *oom)
{
	char buf[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	uint64_t now = 0;
	int n, r;

	while (read(oom->fd, buf, sizeof(buf)) > 0)
		; /* which file it was does not matter: both are read */
	r = kills_v2(oom->path, &now);
	if (r < 0)
		return r == -ENOENT || r == -ENODEV ? -ENODEV : r;
	if (now > oom->seen) {
		n = (int)(now - oom->seen);
		oom->seen = now;
		return n;
	}
	return lr_cgroup_populated(oom->path) == 0 ? -ENODEV : 0;
}

static int read_v1(struct lr_stats_oom *oom)
{
	char path[PATH_MAX];
	uint64_t n = 0;

	if (read(oom->fd, &n, sizeof(n)) < 0)
		return errno == EAGAIN ? 0 : -errno;
	/* Removal of the cgroup signals the eventfd as well. */
	if (lr_cgroup_path(path, oom->path, "cgroup.event_control") < 0 || access(path, F_OK) < 0)
		return -ENODEV;
	return n > INT_MAX ? INT_MAX : (int)n;
}

int lr_stats_oom_read(struct lr_stats_oom *oom)
{
	return oom->v2 ? read_v2(oom) : read_v1(oom);
}

void lr_stats_oom_close(struct lr_stats_oom *oom)
{
	oom->fd = lr_close(oom->fd);
	oom->aux = lr_close(oom->aux);
}
