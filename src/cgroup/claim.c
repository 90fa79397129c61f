/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: several who start at once under one name. Between the making of a cgroup and its first
 * process it is as empty as one that was left behind, so "has no processes" does not tell whose it
 * is. Who makes or reuses one has a lock on it until its process is in. The lock is the kernel's:
 * it goes with the last descriptor, so nobody has to clean up after one who was killed; and a
 * process that was cloned meanwhile shares it, until it has joined and closes its own.
 */
#define LR_ROOM "cgroup"

#include "src/cgroup/internal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* flock(2) asks for no more than that a file can be opened: these are for their owner alone, and
 * nobody else can keep him from his cgroup. NULL: this hierarchy has none. */
static const char *private_file(const char *hierarchy)
{
	if (!*hierarchy)
		return "cgroup.kill"; /* 5.14 */
	return lr_cgroup_name_has(hierarchy, "devices") ? "devices.allow" : NULL;
}

void lr_cgroup_claim_order(struct lr_cgroup_plan *plan)
{
	int i = lr_cgroup_find(&plan->ref, LR_CTRL_DEVICES);

	if (i <= 0)
		return;
	struct lr_cgroup_place place = plan->ref.v[i];
	struct lr_cgroup_target target = plan->targets[i];

	memmove(&plan->ref.v[1], &plan->ref.v[0], (size_t)i * sizeof(place));
	memmove(&plan->targets[1], &plan->targets[0], (size_t)i * sizeof(target));
	plan->ref.v[0] = place;
	plan->targets[0] = target;
}

static bool is_gone(int r)
{
	return r == -ENOENT || r == -ENODEV;
}

/* What is locked; *path, in buf, is its name. */
static int open_lock(const struct lr_cgroup_place *p, char buf[PATH_MAX], const char **path)
{
	const char *file = private_file(p->hierarchy);
	int fd, r = file ? lr_cgroup_path(buf, p->path, file) : 0;

	if (r < 0)
		return r;
	if (file) {
		*path = buf;
		fd = lr_open(buf, O_WRONLY | O_CLOEXEC);
		if (fd >= 0)
			return fd;
		if (errno != ENOENT && errno != EACCES && errno != EPERM)
			return -errno;
	}
	*path = p->path;
	fd = lr_open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Whoever had the lock before may have removed the cgroup, and somebody made it anew. */
static bool is_there(int fd, const char *path)
{
	struct stat ours, now;

	return fstat(fd, &ours) == 0 && stat(path, &now) == 0 && ours.st_dev == now.st_dev &&
	       ours.st_ino == now.st_ino;
}

int lr_cgroup_claim(struct lr_cgroup_plan *plan, const struct lr_cgroup_place *p, bool fresh,
		    struct lr_err *err)
{
	char buf[PATH_MAX];
	const char *path = p->path;
	LR_CLEANUP_FD int fd = open_lock(p, buf, &path);

	if (is_gone(fd))
		return -ESTALE;
	if (fd == -EACCES || fd == -EPERM || fd == -EROFS) {
		lr_debug("cgroup: %s is used without a claim: %s", p->path, lr_strerror(-fd));
		return 0;
	}
	if (fd < 0)
		return lr_fail(err, -fd, "cannot claim the cgroup %s", p->path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK
			       ? -EBUSY
			       : lr_fail(err, errno, "cannot claim the cgroup %s", p->path);
	/* What was made just now nobody else removes: they were refused. */
	if (!fresh && !is_there(fd, path))
		return -ESTALE;
	plan->hold = lr_take_fd(&fd);
	plan->hold_file = path == buf ? private_file(p->hierarchy) : NULL;
	return 0;
}
