/* SPDX-License-Identifier: Apache-2.0 */
/* lean: counts what is ready, used and lost; and removes it. */
#define LR_ROOM "lean"
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/str.h"
#include "src/lean/internal.h"

enum state { FREE, USED, DIRTY };
static const char *const dirs[] = {[FREE] = "free", [USED] = "used", [DIRTY] = "dirty"};

static struct lr_lean_pool_row *row_of(struct lr_lean_pool *p, const struct lr_lean_home *h,
				       const char *name, struct lr_arena *a)
{
	size_t len = strcspn(name, ".");

	for (size_t i = 0; i < p->n; i++)
		if (strlen(p->v[i].key) == len && memcmp(p->v[i].key, name, len) == 0)
			return &p->v[i];
	p->v = lr_grow(a, p->v, p->n, sizeof(*p->v));
	char *key = lr_strndup(a, name, len);
	if (!p->v || !key)
		return NULL;
	p->v[p->n] = (struct lr_lean_pool_row){.key = key, .rootfs = lr_lean_key_title(h, key, a)};
	return &p->v[p->n++];
}

static int count(struct lr_lean_pool *p, const struct lr_lean_home *h, int store, enum state state,
		 struct lr_arena *a, struct lr_err *err)
{
	LR_CLEANUP_DIR DIR *d = lr_opendir_at(h->fd, dirs[state]);

	if (!d && errno == ENOENT)
		return 0; /* it is being drained */
	if (!d)
		return lr_fail(err, errno, "open %s/%s", h->path, dirs[state]);
	for (struct dirent *e; (errno = 0, e = readdir(d));) {
		if (e->d_name[0] == '.')
			continue;
		struct lr_lean_pool_row *row = row_of(p, h, e->d_name, a);
		if (!row)
			return lr_fail(err, ENOMEM, "list the pool");
		if (state == FREE)
			row->free++;
		else if (lr_lean_slot_is_lost(h, store, e->d_name))
			row->lost++;
		else
			row->used++;
	}
	return errno ? lr_fail(err, errno, "read %s/%s", h->path, dirs[state]) : 0;
}

int lr_lean_pool_status(int store, const char *store_path, struct lr_arena *a,
			struct lr_lean_pool *ret, struct lr_err *err)
{
	LR_CLEANUP_HOME struct lr_lean_home h = LR_LEAN_HOME_NONE;
	struct lr_lean_pool p = {0};

	int r = lr_lean_home_open(store, store_path, LR_LEAN_HOME_FIND, a, &h, err);
	if (r == -ENOENT) {
		*ret = p;
		return 0;
	}
	for (enum state s = FREE; r >= 0 && s <= DIRTY; s++)
		r = count(&p, &h, store, s, a, err);
	if (r < 0)
		return r;
	LR_CLEANUP_FD int net = lr_lean_pin_open(&h, "net/" LR_LEAN_NET_SHARED);
	p.shared_net = net >= 0;
	p.path = h.path;
	*ret = p;
	return 0;
}

/*
 * Counts the slots themselves, free or used: a slot that moves from used to free meanwhile would be
 * missed by counting one directory after the other.
 */
static int count_slots(const struct lr_lean_home *h, unsigned *ret, struct lr_err *err)
{
	LR_CLEANUP_DIR DIR *d = lr_opendir_at(h->fd, "slot");

	if (!d)
		return lr_fail(err, errno, "open %s/slot", h->path);
	*ret = 0;
	for (struct dirent *e; (errno = 0, e = readdir(d));)
		*ret += e->d_name[0] != '.';
	/* The home of a slot that was not seen would be removed. */
	return errno ? lr_fail(err, errno, "read %s/slot", h->path) : 0;
}

/* The directories above the slots' control groups, which are empty when no slot is left. */
static int remove_parents(const struct lr_lean_home *h, struct lr_arena *a, struct lr_err *err)
{
	const char *parent = lr_lean_cgroup_parent(h, a);
	struct lr_cgroup_layout *l;

	int r = parent ? lr_cgroup_probe(a, &l, err) : lr_fail(err, ENOMEM, "make a path");
	if (r < 0)
		return r;
	for (size_t i = 0; i < l->n; i++) {
		const char *path = lr_strf(a, "%s%s", l->hierarchies[i].mountpoint, parent);
		if (!path)
			return lr_fail(err, ENOMEM, "make a path");
		/* EROFS: nothing could be made there either. The kernel says so even if the
		 * directory does not exist. */
		if (rmdir(path) < 0 && errno != ENOENT && errno != EROFS)
			return lr_fail(err, errno, "remove %s", path);
	}
	return 0;
}

static int drain_home(int store, struct lr_lean_home *h, unsigned *left, struct lr_arena *a,
		      struct lr_err *err)
{
	unsigned slots;

	int r = lr_lean_home_whole(store, h, err);
	if (r == -ENOSPC || r == -EDQUOT) {
		/* There was no space for its lock, so nobody has put anything into it: it is
		 * removed without one. */
		lr_err_clear(err);
		return lr_lean_home_remove(store, h, err);
	}
	LR_CLEANUP_FD int lock = r < 0 ? r : lr_lean_home_lock(h, LOCK_EX, err);
	if (lock < 0)
		return lock == -ESTALE ? 0 : lock; /* somebody else drains it */
	r = lr_lean_sweep(h, store, true, a, err);
	if (r < 0)
		return r;
	/* Containers that are in it keep it. */
	r = lr_lean_pin_remove(h, "net/" LR_LEAN_NET_SHARED);
	if (r < 0)
		return lr_fail(err, -r, "remove %s/net/" LR_LEAN_NET_SHARED, h->path);
	r = count_slots(h, &slots, err);
	if (r < 0)
		return r;
	*left += slots;
	if (slots)
		return 0;
	r = lr_lean_image_forget(h, err);
	if (r >= 0)
		r = remove_parents(h, a, err);
	return r < 0 ? r : lr_lean_home_remove(store, h, err);
}

/* Removes what was kept ready in mount namespaces that are gone: nobody is left in them to do
 * so. */
static int drain_orphans(int store, const char *store_path, unsigned *left, struct lr_arena *a,
			 struct lr_err *err)
{
	LR_CLEANUP_DIR DIR *d = lr_opendir_at(store, LR_LEAN_DIR);
	int r = 0;

	if (!d)
		return errno == ENOENT ? 0
				       : lr_fail(err, errno, "open %s/" LR_LEAN_DIR, store_path);
	for (struct dirent *e; r >= 0 && (errno = 0, e = readdir(d));) {
		LR_CLEANUP_HOME struct lr_lean_home h = LR_LEAN_HOME_NONE;
		const char *in_it = lr_strf(a, "%s/", e->d_name);
		if (!in_it)
			return lr_fail(err, ENOMEM, "make a path");
		if (!lr_lean_home_is_orphan(e->d_name))
			continue;
		r = lr_lean_home_named(store, store_path, in_it, a, &h, err);
		if (r >= 0)
			r = drain_home(store, &h, left, a, err);
	}
	return r >= 0 && errno ? lr_fail(err, errno, "read %s/" LR_LEAN_DIR, store_path) : r;
}

int lr_lean_pool_drain(int store, const char *store_path, unsigned *left, struct lr_arena *a,
		       struct lr_err *err)
{
	LR_CLEANUP_HOME struct lr_lean_home h = LR_LEAN_HOME_NONE;

	*left = 0;
	int r = drain_orphans(store, store_path, left, a, err);
	if (r < 0)
		return r;
	r = lr_lean_home_open(store, store_path, LR_LEAN_HOME_FIND, a, &h, err);
	r = r == -ENOENT ? 0 : r < 0 ? r : drain_home(store, &h, left, a, err);
	if (r >= 0)
		lr_lean_homes_bury(store);
	return r;
}
