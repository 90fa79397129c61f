/* SPDX-License-Identifier: Apache-2.0 */
/* netdev: linux.netDevices; see netdev.h. */
#define LR_ROOM "netdev"
#include <net/if.h>
#include <stdio.h>
#include <sys/stat.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/netdev/netdev.h"
#include "src/netdev/rtnl.h"
#include "src/sys/procfs.h"
#include "src/sys/syscalls.h"

#define TEMPLATE_MAX 32768 /* how far the kernel itself counts */

/* One of the two network namespaces. */
struct side {
	struct lr_rtnl nl;
	int nsfd;
};

/* A device that has left, and how it was. */
struct moved {
	const char *host_name;
	char name[IFNAMSIZ];
	unsigned flags;
	struct lr_rtnl_addrs addrs;
};

static int fail_link(struct lr_rtnl *nl, int r, const char *what, const char *name,
		     struct lr_err *err)
{
	if (nl->why[0])
		return lr_fail(err, -r, "%s %s (%s)", what, name, nl->why);
	return lr_fail(err, -r, "%s %s", what, name);
}

/* Opens the handle to the other namespace from inside it, and returns. */
static int open_target(struct side *host, struct side *target, struct lr_err *err)
{
	int r = lr_setns(target->nsfd, CLONE_NEWNET);
	if (r < 0)
		return lr_fail(err, -r, "entering the container's network namespace");
	int opened = lr_rtnl_open(&target->nl);
	r = lr_setns(host->nsfd, CLONE_NEWNET);
	if (r < 0)
		return lr_fail(err, -r, "returning to the runtime's network namespace");
	return opened < 0 ? lr_fail(err, -opened, "a netlink socket in the container") : 0;
}

static int open_sides(struct side *host, struct side *target, struct lr_err *err)
{
	struct stat a, b;

	LR_CLEANUP_FD int procfd = lr_procfs_open(err);
	if (procfd < 0)
		return procfd;
	host->nsfd = lr_procfs_open_magic(procfd, "thread-self/ns/net", O_RDONLY);
	if (host->nsfd < 0)
		return lr_fail(err, -host->nsfd, "opening the runtime's network namespace");
	if (fstat(host->nsfd, &a) < 0 || fstat(target->nsfd, &b) < 0)
		return lr_fail(err, errno, "comparing network namespaces");
	if (a.st_dev == b.st_dev && a.st_ino == b.st_ino) {
		lr_refuse(err, EINVAL, "the container's network namespace is the runtime's own");
		return lr_err_at(err, "linux.netDevices");
	}
	int r = lr_rtnl_open(&host->nl);
	if (r < 0)
		return lr_fail(err, -r, "a netlink socket");
	return open_target(host, target, err);
}

/* The name the device gets: as given, if it is free, or the first free one of the template. The
 * kernel would move first and fail to rename afterwards. */
static int choose_name(struct side *target, const struct lr_netdev *d, char name[IFNAMSIZ],
		       struct lr_err *err)
{
	struct lr_rtnl_link other;
	const char *percent = d->is_template ? strchr(d->name, '%') : NULL;

	for (int i = 0; i < (percent ? TEMPLATE_MAX : 1); i++) {
		int n = percent ? snprintf(name, IFNAMSIZ, "%.*s%d%s", (int)(percent - d->name),
					   d->name, i, percent + 2)
				: snprintf(name, IFNAMSIZ, "%s", d->name);
		if (n >= IFNAMSIZ)
			break;
		int r = lr_rtnl_link_by_name(&target->nl, name, &other);
		if (r == -ENODEV)
			return 0;
		if (r < 0)
			return fail_link(&target->nl, r, "looking in the container for", name, err);
	}
	return lr_refuse(err, EEXIST, "the container has a device of the name %s already", d->name);
}

/* IPv4 labels begin with the device's name; none at all gets the plain name. */
static void relabel(struct lr_rtnl_addr *a, const char *old, const char *name)
{
	size_t from = strlen(old), to = strlen(name), all = strlen(a->label);

	if (strncmp(a->label, old, from) != 0 || a->label[from] != ':' ||
	    all - from + to >= sizeof(a->label)) {
		a->label[0] = '\0';
		return;
	}
	memmove(a->label + to, a->label + from, all - from + 1);
	memcpy(a->label, name, to);
}

/* The device has arrived at `to` as m->name: what the move took is given back. */
static int restore(struct side *to, struct moved *m, const char *old, const char *name, bool up,
		   struct lr_err *err)
{
	struct lr_rtnl_link link;
	int r = lr_rtnl_link_by_name(&to->nl, name, &link);

	if (r < 0)
		return fail_link(&to->nl, r, "finding the moved device", name, err);
	for (size_t i = 0; i < m->addrs.n; i++) {
		relabel(&m->addrs.v[i], old, name);
		r = lr_rtnl_addr_add(&to->nl, link.index, &m->addrs.v[i]);
		if (r < 0)
			return fail_link(&to->nl, r, "giving its addresses back to", name, err);
	}
	r = up ? lr_rtnl_link_up(&to->nl, link.index) : 0;
	return r < 0 ? fail_link(&to->nl, r, "setting up", name, err) : 0;
}

/* Best effort: the error that led here is the one to report. */
static void bring_back(struct side *host, struct side *target, struct moved *m)
{
	struct lr_rtnl_link link;
	struct lr_err err = {0};
	int r = lr_rtnl_link_by_name(&target->nl, m->name, &link);

	if (r == 0)
		r = lr_rtnl_link_move(&target->nl, link.index, host->nsfd, m->host_name);
	if (r == 0)
		r = restore(host, m, m->name, m->host_name, m->flags & IFF_UP, &err);
	if (r < 0)
		lr_warn("netdev: %s could not be brought back as it was: %s", m->host_name,
			lr_strerror(-r));
}

/* 1 if the device has left, even if what follows failed; 0 if not. *r is the result. */
static size_t move_one(struct side *host, struct side *target, const struct lr_netdev *d,
		       struct moved *m, struct lr_arena *arena, int *r, struct lr_err *err)
{
	struct lr_rtnl_link link;

	m->host_name = d->host_name;
	*r = lr_rtnl_link_by_name(&host->nl, d->host_name, &link);
	if (*r < 0) {
		fail_link(&host->nl, *r, "network device", d->host_name, err);
		if (*r == -ENODEV)
			lr_err_hint(err,
				    "it must be in the runtime's own network namespace: ip link");
		return 0;
	}
	m->flags = link.flags;
	if (link.flags & IFF_LOOPBACK) {
		*r = lr_refuse(err, EINVAL, "%s is a loopback device, which cannot move",
			       d->host_name);
		return 0;
	}
	*r = lr_rtnl_addrs(&host->nl, link.index, arena, &m->addrs);
	if (*r < 0) {
		fail_link(&host->nl, *r, "reading the addresses of", d->host_name, err);
		return 0;
	}
	*r = choose_name(target, d, m->name, err);
	if (*r < 0)
		return 0;
	*r = lr_rtnl_link_move(&host->nl, link.index, target->nsfd, m->name);
	if (*r < 0) {
		fail_link(&host->nl, *r, "moving network device", d->host_name, err);
		if (*r == -EINVAL)
			lr_err_hint(err, "some kinds of devices are bound to their namespace");
		/* The kernel renames last: the device may be there, under its old name. */
		if (lr_rtnl_link_by_name(&host->nl, d->host_name, &link) != -ENODEV)
			return 0;
		snprintf(m->name, sizeof(m->name), "%s", d->host_name);
		return 1;
	}
	*r = restore(target, m, d->host_name, m->name, true, err);
	lr_debug("netdev: %s moved to the container as %s, %zu addresses", d->host_name, m->name,
		 m->addrs.n);
	return 1;
}

static int move_all(const struct lr_netdev_plan *plan, struct side *host, struct side *target,
		    struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
	struct moved *moved = arena ? lr_new_n(arena, plan->n, struct moved) : NULL;
	size_t gone = 0;
	int r = 0;

	if (!moved)
		return lr_fail(err, ENOMEM, "moving network devices");
	for (size_t i = 0; i < plan->n && r == 0; i++) {
		gone += move_one(host, target, &plan->v[i], &moved[i], arena, &r, err);
		if (r < 0)
			lr_err_add_path(err, "linux.netDevices.%s", plan->v[i].host_name);
	}
	if (r < 0) {
		while (gone)
			bring_back(host, target, &moved[--gone]);
	}
	return r;
}

int lr_netdev_move(const struct lr_netdev_plan *plan, int netns_fd, struct lr_err *err)
{
	struct side host = {.nl.fd = LR_NOFD, .nsfd = LR_NOFD};
	struct side target = {.nl.fd = LR_NOFD, .nsfd = netns_fd};

	if (plan->n == 0)
		return 0;
	int r = open_sides(&host, &target, err);
	if (r == 0)
		r = move_all(plan, &host, &target, err);
	lr_close(host.nl.fd);
	lr_close(host.nsfd);
	lr_close(target.nl.fd);
	return r;
}
