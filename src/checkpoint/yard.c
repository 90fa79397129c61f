/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint: the host's cgroups, for criu to find. It would mount each hierarchy itself, and whoever mounts cgroup v2
 * in the host's cgroup namespace sets the options of all its mounts: nsdelegate, memory_recursiveprot and their like
 * would be gone, as criu names none (its issue 3029).
 */
#define LR_ROOM "checkpoint"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
#include "src/sys/proc.h"
#include "src/sys/syscalls.h"

#define ROOT_INODE 1 /* of a hierarchy; a bind mount of one of its directories has another */

/* No warning: standard error may be the container's, too, and criu compares how much is in such a file. */
static int tell(const char *why, const char *name)
{
	lr_debug("criu mounts cgroups itself, and may take nsdelegate and other options from the "
		 "host's cgroup v2: %s "
		 "(%s)",
		 why, name);
	return 0;
}

/* As criu calls it. */
static const char *name_of(const char *hierarchy)
{
	if (!*hierarchy)
		return "unified";
	return lr_has_prefix(hierarchy, "name=") ? hierarchy + strlen("name=") : hierarchy;
}

/* Where the whole of it is mounted; NULL: nowhere that is known. */
static const char *whole(const struct lr_cgroup_layout *l, const char *hierarchy)
{
	const struct lr_cgroup_hierarchy *h = lr_cgroup_mounted(l, hierarchy);
	struct stat st;

	return h && stat(h->mountpoint, &st) == 0 && st.st_ino == ROOT_INODE ? h->mountpoint : NULL;
}

int lr_yard_plan(const struct lr_cgroup_layout *l, char *text, struct lr_arena *a,
		 struct lr_yard *ret, struct lr_err *err)
{
	struct lr_cgroup_line line;
	struct lr_yard y = {0};
	int r;

	while ((r = lr_cgroup_line(&text, &line, err)) > 0) {
		struct lr_yard_entry one = {name_of(line.hierarchy), whole(l, line.hierarchy)};
		struct lr_yard_entry *v;
		/* criu wants all of them. */
		if (!one.where)
			return tell("the whole of a hierarchy is not mounted below /sys/fs/cgroup",
				    one.name);
		v = lr_grow(a, y.v, y.n, sizeof(*v));
		if (!v)
			return lr_fail(err, ENOMEM, "look for cgroups");
		v[y.n++] = one;
		y.v = v;
	}
	if (r == 0)
		*ret = y;
	return r;
}

int lr_yard_look(const struct lr_checkpoint_opts *o, struct lr_arena *a, struct lr_yard *ret,
		 struct lr_err *err)
{
	struct lr_cgroup_layout *layout;
	struct stat space;
	char *text;

	*ret = (struct lr_yard){0};
	/* It mounts none then. */
	if (o->cgroups && lr_streq(o->cgroups, "ignore"))
		return 0;
	/* A mount that is made in another namespace changes no options, and /proc/self/cgroup has other paths there. */
	if (stat("/proc/self/ns/cgroup", &space) < 0)
		return errno == ENOENT ? 0 : lr_fail(err, errno, "look at the cgroup namespace");
	if (space.st_ino != LR_PROC_FIRST_CGROUP_NS)
		return 0;
	int r = lr_cgroup_probe(a, &layout, err);
	/* Only v2 has such options. */
	if (r < 0 || !lr_cgroup_mounted(layout, ""))
		return r;
	r = lr_cgroup_text(getpid(), a, &text, err);
	return r < 0 ? r : lr_yard_plan(layout, text, a, ret, err);
}

int lr_yard_link(const struct lr_yard *y, int *ret, struct lr_err *err)
{
	LR_CLEANUP_FD int fd = LR_NOFD;

	*ret = LR_NOFD;
	if (!y->n)
		return 0;
	fd = lr_detached_open("tmpfs", "700", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (lr_not_offered(fd))
		return tell("fsopen(2) is not to be had", "unified");
	if (fd < 0)
		return lr_fail(err, -fd, "make a directory of cgroups for criu");
	for (size_t i = 0; i < y->n; i++)
		if (symlinkat(y->v[i].where, fd, y->v[i].name) < 0)
			return lr_fail(err, errno, "show criu %s", y->v[i].where);
	*ret = lr_take_fd(&fd);
	return 0;
}

int lr_yard_bind(const struct lr_yard *y, const char *at, struct lr_err *err)
{
	if (!y->n)
		return 0;
	if (mkdir(at, 0700) < 0)
		return lr_fail(err, errno, "make %s for criu", at);
	for (size_t i = 0; i < y->n; i++) {
		char path[PATH_MAX];
		if ((size_t)snprintf(path, sizeof(path), "%s/%s", at, y->v[i].name) >= sizeof(path))
			return lr_fail(err, ENAMETOOLONG, "make %s for criu", at);
		if (mkdir(path, 0700) < 0)
			return lr_fail(err, errno, "make %s for criu", path);
		if (mount(y->v[i].where, path, NULL, MS_BIND, NULL) < 0)
			return lr_fail(err, errno, "bind %s for criu", y->v[i].where);
	}
	return 0;
}
