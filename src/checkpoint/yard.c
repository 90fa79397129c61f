/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint: the host's cgroups, for criu to find. It would mount each hierarchy itself, and whoever mounts cgroup v2
 * in the host's cgroup namespace sets the options of all its mounts: nsdelegate, memory_recursiveprot and their like
 * would be gone, as criu names none (its issue 3029).
 */
#define LR_ROOM "checkpoint"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/cgroup/cgroup.h"
#include "src/checkpoint/internal.h"
#include "src/sys/detached.h"
#include "src/sys/path.h"
#include "src/sys/syscalls.h"

#define HOSTS_NAMESPACE 0xeffffffb /* the inode of the first cgroup namespace, in every kernel */
#define ROOT_INODE      1 /* of a hierarchy: not a directory of it that is bound somewhere */

int lr_yard_read_cgroup(pid_t pid, struct lr_arena *a, char **ret, struct lr_err *err)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	*ret = lr_alloc(a, 65536);
	ssize_t n = *ret ? lr_read_file_at(AT_FDCWD, path, *ret, 65536) : -ENOMEM;
	return n < 0 ? lr_fail(err, (int)-n, "read %s", path) : 0;
}

/* As criu calls it. */
static const char *name_of(const char *hierarchy)
{
	if (!*hierarchy)
		return "unified";
	return lr_has_prefix(hierarchy, "name=") ? hierarchy + strlen("name=") : hierarchy;
}

/* Where the whole of a hierarchy is mounted; *ret NULL: nowhere that is known. */
static int find(const struct lr_cgroup_layout *l, const char *hierarchy, const char **ret)
{
	struct stat st;
	size_t i = 0;

	*ret = NULL;
	while (i < l->n && !lr_streq(l->hierarchies[i].name, hierarchy))
		i++;
	if (i == l->n)
		return 0;
	if (stat(l->hierarchies[i].mountpoint, &st) < 0)
		return -errno;
	if (st.st_ino == ROOT_INODE)
		*ret = l->hierarchies[i].mountpoint;
	return 0;
}

/* A line: "4:memory:/user/x", "1:name=systemd:/", "0::/". Nowhere: `where` is NULL. */
static int find_line(const struct lr_cgroup_layout *l, char *line, struct lr_yard_entry *ret)
{
	(void)strsep(&line, ":");
	const char *hierarchy = strsep(&line, ":");

	if (!line)
		return -EPROTO;
	ret->name = name_of(hierarchy);
	return find(l, hierarchy, &ret->where);
}

/* criu wants all of them, or none. */
static int fill(struct lr_yard *y, const struct lr_cgroup_layout *l, char *text, struct lr_arena *a)
{
	char *line;
	int r = 0;

	while (r >= 0 && (line = strsep(&text, "\n")) && *line) {
		struct lr_yard_entry *v = lr_grow(a, y->v, y->n, sizeof(*v));
		if (!v)
			return -ENOMEM;
		y->v = v;
		r = find_line(l, line, &v[y->n]);
		if (r >= 0 && !v[y->n++].where) {
			lr_debug("criu mounts the cgroups itself: \"%s\" is not found whole",
				 v[y->n - 1].name);
			y->n = 0;
			break;
		}
	}
	return r;
}

int lr_yard_look(struct lr_arena *a, struct lr_yard *ret, struct lr_err *err)
{
	struct lr_cgroup_layout *layout;
	struct stat space;
	char *text;

	*ret = (struct lr_yard){0};
	/* Who is in another namespace changes no options, and sees paths that begin elsewhere. */
	if (stat("/proc/self/ns/cgroup", &space) < 0)
		return errno == ENOENT ? 0 : lr_fail(err, errno, "look at the cgroup namespace");
	if (space.st_ino != HOSTS_NAMESPACE)
		return 0;
	int r = lr_cgroup_probe(a, &layout, err);
	if (r < 0 || layout->mode == LR_CGROUP_NONE || layout->mode == LR_CGROUP_V1)
		return r;
	r = lr_yard_read_cgroup(getpid(), a, &text, err);
	if (r < 0)
		return r;
	r = fill(ret, layout, text, a);
	return r < 0 ? lr_fail(err, -r, "look for cgroups") : 0;
}

int lr_yard_links(const struct lr_yard *y, int *ret, struct lr_err *err)
{
	LR_CLEANUP_FD int fd = LR_NOFD;

	*ret = LR_NOFD;
	if (!y->n)
		return 0;
	fd = lr_detached_open("tmpfs", "700", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (lr_not_offered(fd))
		return 0;
	if (fd < 0)
		return lr_fail(err, -fd, "make a directory of cgroups for criu");
	for (size_t i = 0; i < y->n; i++)
		if (symlinkat(y->v[i].where, fd, y->v[i].name) < 0)
			return lr_fail(err, errno, "show criu %s", y->v[i].where);
	*ret = lr_take_fd(&fd);
	return 0;
}

int lr_yard_binds(const struct lr_yard *y, const char *at, struct lr_err *err)
{
	if (!y->n)
		return 0;
	if (mkdir(at, 0700) < 0)
		return lr_fail(err, errno, "make %s for criu", at);
	for (size_t i = 0; i < y->n; i++) {
		char path[4096];
		if ((size_t)snprintf(path, sizeof(path), "%s/%s", at, y->v[i].name) >= sizeof(path))
			return lr_fail(err, ENAMETOOLONG, "make %s for criu", at);
		if (mkdir(path, 0700) < 0 || mount(y->v[i].where, path, NULL, MS_BIND, NULL) < 0)
			return lr_fail(err, errno, "bind %s for criu", y->v[i].where);
	}
	return 0;
}
