/* SPDX-License-Identifier: Apache-2.0 */
/* lean: prepared network namespaces: one for all, and a pool of private ones. */
#define LR_ROOM "lean"
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/str.h"
#include "src/lean/prove.h"
#include "src/netdev/netdev.h"
#include "src/sys/syscalls.h"

#define SHARED "net/" LR_LEAN_NET_SHARED
#define PRINT  "net/print"

struct making {
	struct lr_lean_home *home;
	const char *pin;
	bool print; /* keep what a new one looks like */
};

static int save_print(const struct lr_lean_home *h, struct lr_err *err)
{
	char text[LR_LEAN_PRINT_MAX], tmp[64];
	int n = lr_lean_net_print(text, sizeof(text));

	if (n < 0)
		return lr_fail(err, -n, "look at a new network namespace");
	snprintf(tmp, sizeof(tmp), PRINT ".%d", getpid());
	LR_CLEANUP_FD int fd = openat(h->fd, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ssize_t r = fd < 0 ? -errno : lr_write_full(fd, text, (size_t)n);
	if (r >= 0 && renameat(h->fd, tmp, h->fd, PRINT) < 0)
		r = -errno;
	return r < 0 ? lr_fail(err, (int)-r, "write %s/" PRINT, h->path) : 0;
}

static int make_net(void *arg, struct lr_err *err)
{
	const struct making *m = arg;
	int r = lr_unshare(CLONE_NEWNET);

	if (r < 0)
		return lr_fail(err, -r, "make a network namespace");
	LR_CLEANUP_FD int fd = LR_NOFD;
	r = lr_netdev_lo_up(&fd, err);
	fd = lr_close(fd); /* save_print would count it */
	return r >= 0 && m->print ? save_print(m->home, err) : r;
}

static int pin_net(void *arg, pid_t child, struct lr_err *err)
{
	const struct making *m = arg;

	return lr_lean_pin_make(m->home, m->pin, child, "net", err);
}

static int make_shared(struct lr_lean_home *h, int store, struct lr_arena *a, struct lr_err *err)
{
	struct making m = {.home = h, .pin = SHARED};
	const struct lr_lean_maker maker = {make_net, pin_net, &m};

	int r = lr_lean_home_fit(h, err);
	LR_CLEANUP_FD int lock = r < 0 ? r : lr_lean_home_lock(h, LOCK_EX, err);
	if (lock < 0)
		return lock;
	if (!lr_lean_home_mounted(h))
		return -ESTALE;
	r = lr_lean_pin_open(h, SHARED);
	if (r >= 0)
		return r; /* somebody was faster */
	r = lr_lean_pin_file(h, SHARED);
	if (r < 0)
		return lr_fail(err, -r, "create %s/" SHARED, h->path);
	/* Free templates show the last shared namespace in /sys, if there was one. */
	r = lr_lean_sweep(h, store, true, a, err);
	if (r >= 0)
		r = lr_lean_make(&maker, err);
	if (r < 0)
		return r;
	r = lr_lean_pin_open(h, SHARED);
	return r < 0 ? lr_fail(err, -r, "open %s/" SHARED, h->path) : r;
}

int lr_lean_net_shared(struct lr_lean_home *h, int store, struct lr_arena *a, struct lr_err *err)
{
	int fd = lr_lean_pin_open(h, SHARED);

	return fd >= 0 ? fd : make_shared(h, store, a, err);
}

static int make_private(struct lr_lean_home *h, const char *id, unsigned *n, struct lr_arena *a,
			struct lr_err *err)
{
	char pin[LR_LEAN_NAME], used[LR_LEAN_NAME];
	struct making m = {.home = h, .pin = pin, .print = true};
	const struct lr_lean_maker maker = {make_net, pin_net, &m};

	int r = lr_lean_home_fit(h, err);
	LR_CLEANUP_FD int lock = r < 0 ? r : lr_lean_home_lock(h, LOCK_SH, err);
	if (lock < 0)
		return lock;
	if (!lr_lean_home_mounted(h))
		return -ESTALE;
	r = lr_lean_slot_number(h, LR_LEAN_NET_KEY, id, n, err);
	if (r < 0)
		return r;
	lr_lean_slot_path(pin, "slot", LR_LEAN_NET_KEY, *n, NULL);
	lr_lean_slot_path(used, "used", LR_LEAN_NET_KEY, *n, id);
	r = lr_lean_make(&maker, err);
	if (r >= 0) {
		r = lr_lean_pin_open(h, pin);
		if (r < 0)
			lr_fail(err, -r, "open %s/%s", h->path, pin);
	}
	if (r < 0 && lr_lean_slot_remove(h, pin + strlen("slot/"), used, a, NULL) < 0)
		lr_debug("lean: %s/%s is left", h->path, used);
	return r;
}

int lr_lean_net_take(struct lr_lean_home *h, const char *id, bool fresh, unsigned *n,
		     struct lr_arena *a, struct lr_err *err)
{
	char pin[LR_LEAN_NAME], used[LR_LEAN_NAME];

	if (!fresh && lr_lean_slot_grab(h, LR_LEAN_NET_KEY, id, n)) {
		lr_lean_slot_path(pin, "slot", LR_LEAN_NET_KEY, *n, NULL);
		lr_lean_slot_path(used, "used", LR_LEAN_NET_KEY, *n, id);
		int fd = lr_lean_pin_open(h, pin);
		if (fd >= 0)
			return fd;
		lr_debug("lean: %s/%s has lost its namespace", h->path, pin);
		int r = lr_lean_slot_remove(h, pin + strlen("slot/"), used, a, err);
		if (r < 0)
			return r;
	}
	return make_private(h, id, n, a, err);
}

static bool is_clean(const struct lr_lean_home *h, const char *name, struct lr_arena *a)
{
	char pin[LR_LEAN_NAME], print[LR_LEAN_PRINT_MAX];

	snprintf(pin, sizeof(pin), "slot/%s", name);
	LR_CLEANUP_FD int fd = lr_lean_pin_open(h, pin);
	return fd >= 0 && lr_read_file_at(h->fd, PRINT, print, sizeof(print)) > 0 &&
	       lr_lean_net_is_new(fd, print, a);
}

void lr_lean_net_back(const struct lr_lean_home *h, const char *name, const char *id, bool used,
		      struct lr_arena *a)
{
	struct lr_err why = {0};

	if (lr_streq(name, LR_LEAN_NET_SHARED))
		return;
	if (lr_lean_slot_release(h, name, id, !used || is_clean(h, name, a), a, &why) < 0)
		lr_warn("lean: %s", why.msg);
}

int lr_lean_net_mark(const struct lr_lean_home *h, const char *name, const char *id,
		     struct lr_err *err)
{
	if (!lr_streq(name, LR_LEAN_NET_SHARED))
		return lr_lean_slot_mark(h, name, id, err);
	/* The containers that are in it keep it; the next ones get a new one. */
	LR_CLEANUP_FD int lock = lr_lean_home_lock(h, LOCK_EX, err);
	int r = lock < 0 ? lock : lr_lean_pin_remove(h, SHARED);
	return r < 0 && r != -ESTALE ? lr_fail(err, -r, "leave %s/" SHARED " to its users", h->path)
				     : 0;
}
