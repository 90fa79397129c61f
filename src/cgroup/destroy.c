/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup: removal of whole trees, whatever the container left in them. */
#define LR_ROOM "cgroup"

#include "src/cgroup/internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

/*
 * Removes what is below the directory fd stands for, which is closed. Goes down by openat and up by
 * "..", holding one descriptor however deep a container has nested its cgroups; ".." is safe, as
 * cgroupfs has no symbolic links and does not move directories between parents. -EBUSY when a
 * sub-cgroup has processes.
 */
static int remove_below(int fd)
{
	bool fresh = false; /* just came down: if there is nothing to go on with, it is stuck */
	size_t depth = 0;

	for (;;) {
		LR_CLEANUP_DIR DIR *d = fdopendir(fd);
		struct dirent *e;
		int next = LR_NOFD;

		if (!d) {
			int r = -errno;
			lr_close(fd);
			return r;
		}
		while (next < 0 && (e = readdir(d))) {
			if (e->d_name[0] == '.' || e->d_type != DT_DIR)
				continue;
			if (unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR) == 0 || errno == ENOENT) {
				fresh = false;
				continue;
			}
			if (errno != EBUSY && errno != ENOTEMPTY)
				return -errno;
			next = openat(dirfd(d), e->d_name,
				      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			if (next < 0 && errno != ENOENT)
				return -errno;
		}
		if (next >= 0) {
			depth++;
			fresh = true;
		} else if (fresh) {
			return -EBUSY;
		} else if (depth == 0) {
			return 0;
		} else {
			next = openat(dirfd(d), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			if (next < 0)
				return -errno;
			depth--;
		}
		fd = next;
	}
}

static int remove_tree(const char *path, bool kill)
{
	int fd, r;

	if (rmdir(path) == 0 || errno == ENOENT)
		return 0;
	if (errno != EBUSY && errno != ENOTEMPTY)
		return -errno;
	/* Whose processes we may not kill, his empty sub-cgroups we may not remove. */
	r = kill ? 0 : lr_cgroup_populated(path);
	if (r != 0)
		return r < 0 ? r : -EBUSY;
	fd = lr_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	r = remove_below(fd);
	if (r < 0)
		return r;
	return rmdir(path) == 0 || errno == ENOENT ? 0 : -errno;
}

/* All hierarchies, in spite of one that resists: what is gone is gone. */
static int remove_all(const struct lr_cgroup_ref *ref, bool kill, const char **where)
{
	int r = 0;

	for (size_t i = ref->n; i-- > 0;) {
		int one = remove_tree(ref->v[i].path, kill);

		if (one < 0 && (r == 0 || r == -EBUSY)) {
			r = one;
			*where = ref->v[i].path;
		}
	}
	return r;
}

/* Until something may have changed: v2 tells, v1 is asked again. */
static void wait_a_little(const struct lr_cgroup_ref *ref, unsigned round)
{
	int i = lr_cgroup_find_v2(ref);
	unsigned us = round < 8 ? 100U << round : 25000;
	char path[PATH_MAX], text[256];
	uint64_t populated;
	LR_CLEANUP_FD int fd = LR_NOFD;

	if (i >= 0 && lr_cgroup_path(path, ref->v[i].path, "cgroup.events") == 0)
		fd = lr_open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		ssize_t n = read(fd, text, sizeof(text) - 1);
		struct pollfd p = {.fd = fd, .events = POLLPRI};

		text[n > 0 ? n : 0] = '\0';
		if (n > 0 && lr_cgroup_flat_get(text, "populated", &populated) && populated) {
			poll(&p, 1, 100);
			return;
		}
	}
	lr_sleep_us(us);
}

struct names {
	char text[128];
	size_t n;
};

static int name_pid(pid_t pid, void *arg)
{
	struct names *s = arg;
	size_t len = strlen(s->text);

	if (s->n++ < 8)
		snprintf(s->text + len, sizeof(s->text) - len, "%s%d", len ? ", " : "", (int)pid);
	return 0;
}

static int give_up(const char *where, int r, struct lr_err *err)
{
	struct names s = {0};

	lr_fail(err, -r, "cannot remove the cgroup %s", where);
	if (r == -EBUSY && lr_cgroup_each_pid(where, name_pid, &s) == 0 && s.n)
		lr_err_hint(err, "processes are left in it: %s%s", s.text, s.n > 8 ? ", ..." : "");
	return r;
}

int lr_cgroup_fs_destroy(const struct lr_cgroup_ref *ref, bool kill, struct lr_err *err)
{
	int64_t end = 0;
	const char *where = "";
	int r;

	for (unsigned round = 0;; round++) {
		r = remove_all(ref, kill, &where);
		if (r != -EBUSY)
			break;
		if (!end) {
			end = lr_now_ms() + LR_CGROUP_WAIT_MS;
			/* Dying processes cannot die while frozen (v1). */
			if (kill && lr_cgroup_is_frozen(ref) == 1 &&
			    lr_cgroup_freeze(ref, false, NULL) < 0)
				lr_debug("cgroup: cannot thaw %s", ref->relative);
		} else if (lr_now_ms() >= end) {
			break;
		}
		if (kill && lr_cgroup_signal_all(ref, SIGKILL, NULL) < 0)
			lr_debug("cgroup: cannot kill all in %s yet", ref->relative);
		wait_a_little(ref, round);
	}
	return r < 0 ? give_up(where, r, err) : 0;
}
