/* SPDX-License-Identifier: Apache-2.0 */
/* lean: prepared network namespaces. */
#define LR_ROOM "lean"
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "src/lean/internal.h"
#include "src/netdev/netdev.h"
#include "src/sys/syscalls.h"

#define SHARED "net/" LR_LEAN_NET_SHARED

static int make_net(void *arg, struct lr_err *err)
{
	int r = lr_unshare(CLONE_NEWNET);

	if (r < 0)
		return lr_fail(err, -r, "make a network namespace");
	return lr_netdev_lo_up(err);
}

struct target {
	const struct lr_lean_home *home;
	const char *name;
};

static int pin_net(void *arg, pid_t child, struct lr_err *err)
{
	const struct target *t = arg;

	return lr_lean_pin_make(t->home, t->name, child, "net", err);
}

static int make_shared(struct lr_lean_home *h, struct lr_err *err)
{
	struct target t = {h, SHARED};
	const struct lr_lean_maker maker = {make_net, pin_net, &t};

	int r = lr_lean_home_fit(h, err);
	LR_CLEANUP_FD int lock = r < 0 ? r : lr_lean_home_lock(h, err);
	if (lock < 0)
		return lock;
	r = lr_lean_pin_open(h, SHARED, CLONE_NEWNET);
	if (r >= 0)
		return r; /* somebody was faster */
	LR_CLEANUP_FD int file =
		openat(h->fd, SHARED, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (file < 0)
		return lr_fail(err, errno, "create %s/" SHARED, h->path);
	r = lr_lean_make(&maker, err);
	if (r < 0)
		return r;
	r = lr_lean_pin_open(h, SHARED, CLONE_NEWNET);
	return r < 0 ? lr_fail(err, -r, "open %s/" SHARED, h->path) : r;
}

int lr_lean_net_shared(struct lr_lean_home *h, struct lr_err *err)
{
	int fd = lr_lean_pin_open(h, SHARED, CLONE_NEWNET);

	return fd >= 0 ? fd : make_shared(h, err);
}

int lr_lean_net_mark(const struct lr_lean_home *h, const char *name, struct lr_err *err)
{
	if (strcmp(name, LR_LEAN_NET_SHARED) != 0)
		return 0;
	/* Those who are in it keep it; the next ones get a new one. */
	LR_CLEANUP_FD int lock = lr_lean_home_lock(h, err);
	int r = lock < 0 ? lock : lr_lean_pin_remove(h, SHARED);
	return r < 0 ? lr_fail(err, -r, "leave %s/" SHARED " to its users", h->path) : 0;
}
