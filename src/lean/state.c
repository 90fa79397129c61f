/* SPDX-License-Identifier: Apache-2.0 */
/* lean: who has which slot, told by links of a file; see internal.h. */
#define LR_ROOM "lean"
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/str.h"
#include "src/lean/internal.h"

void lr_lean_slot_path(char path[LR_LEAN_NAME], const char *dir, const char *key, unsigned n,
		       const char *id)
{
	snprintf(path, LR_LEAN_NAME, "%s/%.32s.%u%s%.220s", dir, key, n, id ? "@" : "",
		 id ? id : "");
}

int lr_lean_slot_number(const struct lr_lean_home *h, const char *key, const char *id,
			unsigned *ret, struct lr_err *err)
{
	char used[LR_LEAN_NAME], slot[LR_LEAN_NAME];

	for (unsigned n = 0; n < LR_LEAN_SLOTS_MAX; n++) {
		lr_lean_slot_path(slot, "slot", key, n, NULL);
		if (faccessat(h->fd, slot, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			continue;
		/* The link that says whose it is comes before the slot. */
		lr_lean_slot_path(used, "used", key, n, id);
		int r = lr_lean_pin_file(h, used);
		if (r < 0)
			return lr_fail(err, -r, "create %s/%s", h->path, used);
		if (linkat(h->fd, used, h->fd, slot, 0) == 0) {
			*ret = n;
			return 0;
		}
		int why = errno;
		(void)unlinkat(h->fd, used, 0);
		if (why != EEXIST) /* somebody was faster */
			return lr_fail(err, why, "create %s/%s", h->path, slot);
	}
	return lr_refuse(err, ENOSPC, "%d slots are in use", LR_LEAN_SLOTS_MAX);
}

static bool grab(const struct lr_lean_home *h, const char *key, const char *id, unsigned n)
{
	char from[LR_LEAN_NAME], to[LR_LEAN_NAME];

	lr_lean_slot_path(from, "free", key, n, NULL);
	lr_lean_slot_path(to, "used", key, n, id);
	return renameat(h->fd, from, h->fd, to) == 0;
}

bool lr_lean_slot_grab(const struct lr_lean_home *h, const char *key, const char *id, unsigned *n)
{
	size_t len = strlen(key);
	uint32_t free_one;

	/* The lowest first: if no two containers run at once, it is free. */
	*n = 0;
	if (grab(h, key, id, 0))
		return true;
	LR_CLEANUP_DIR DIR *d = lr_opendir_at(h->fd, "free");
	for (struct dirent *e; d && (e = readdir(d));) {
		if (strncmp(e->d_name, key, len) != 0 || e->d_name[len] != '.' ||
		    lr_parse_u32(e->d_name + len + 1, &free_one) < 0 || !grab(h, key, id, free_one))
			continue;
		*n = free_one;
		return true;
	}
	return false;
}

const char *lr_lean_cgroup_parent(const struct lr_lean_home *h, struct lr_arena *a)
{
	/* By the home's path, so that two roots never have the same control group. */
	return lr_strf(a, "/lean-runtime.%016" PRIx64, lr_hash(LR_HASH, h->path, strlen(h->path)));
}

/* The control groups that a slot of that name has, if its key has any. */
static int cgroup_of(const struct lr_lean_home *h, const char *slot, struct lr_arena *a,
		     struct lr_cgroup_ref *ret, struct lr_err *err)
{
	const char *parent = lr_lean_cgroup_parent(h, a);
	char *key = lr_strndup(a, slot, strcspn(slot, "."));
	struct lr_cgroup_layout l;
	int r = parent && key ? lr_lean_key_layout(h, key, a, &l) : -ENOMEM;

	if (r < 0)
		return lr_fail(err, -r, "%s/key/%s", h->path, key ? key : "");
	struct lr_cgroup_ref ref = {.mode = l.mode,
				    .v = lr_new_n(a, l.n + 1, struct lr_cgroup_place),
				    .relative = lr_strf(a, "%s/%s", parent, slot)};
	if (!ref.v || !ref.relative)
		return lr_fail(err, ENOMEM, "make the plan");
	for (size_t i = 0; i < l.n; i++) {
		char *path = lr_strf(a, "%s%s", l.hierarchies[i].mountpoint, ref.relative);
		if (!path)
			return lr_fail(err, ENOMEM, "make the plan");
		ref.v[ref.n++] = (struct lr_cgroup_place){l.hierarchies[i].name, path};
	}
	*ret = ref;
	return 0;
}

int lr_lean_slot_remove(const struct lr_lean_home *h, const char *slot, const char *state,
			struct lr_arena *a, struct lr_err *err)
{
	char pin[LR_LEAN_NAME];
	struct lr_cgroup_ref cgroup;
	struct stat st;

	if (fstatat(h->fd, state, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : lr_fail(err, errno, "look at %s/%s", h->path, state);
	/* The slot's file is removed before this link: a slot that is half removed still has an
	 * owner. */
	if (st.st_nlink > 1) {
		int r = cgroup_of(h, slot, a, &cgroup, err);
		if (r >= 0 && cgroup.n)
			r = lr_cgroup_destroy(&cgroup, true, err);
		if (r < 0)
			return r;
		snprintf(pin, sizeof(pin), "slot/%s", slot);
		r = lr_lean_pin_remove(h, pin);
		if (r < 0)
			return lr_fail(err, -r, "remove %s/%s", h->path, pin);
	}
	(void)unlinkat(h->fd, state, 0);
	lr_debug("lean: slot %s removed", slot);
	return 0;
}

/* The number of a slot by its name. */
static bool parse_slot(const char *slot, uint32_t *n)
{
	const char *dot = strchr(slot, '.');

	return dot && dot - slot <= 32 && lr_parse_u32(dot + 1, n) >= 0;
}

bool lr_lean_slot_return(int store, const char *in_record, const char *id)
{
	char used[2 * LR_LEAN_NAME], back[2 * LR_LEAN_NAME];
	int home = (int)lr_lean_home_in(in_record);
	const char *slot = in_record + home + 1;
	uint32_t n;

	if (home == 0 || !parse_slot(slot, &n) || n >= LR_LEAN_SLOTS_KEPT)
		return false;
	snprintf(used, sizeof(used), "%s/%.*s/used/%.64s@%.220s", LR_LEAN_DIR, home, in_record,
		 slot, id);
	snprintf(back, sizeof(back), "%s/%.*s/free/%.64s", LR_LEAN_DIR, home, in_record, slot);
	return renameat(store, used, store, back) == 0;
}

int lr_lean_slot_release(const struct lr_lean_home *h, const char *slot, const char *id,
			 bool reusable, struct lr_arena *a, struct lr_err *err)
{
	char used[LR_LEAN_NAME], back[LR_LEAN_NAME], dirty[LR_LEAN_NAME];
	uint32_t n;

	if (!parse_slot(slot, &n))
		return lr_refuse(err, EPROTO, "the record names no slot: \"%.64s\"", slot);
	snprintf(used, sizeof(used), "used/%s@%.220s", slot, id);
	snprintf(dirty, sizeof(dirty), "dirty/%s@%.220s", slot, id);
	snprintf(back, sizeof(back), "free/%s", slot);
	if (reusable && n < LR_LEAN_SLOTS_KEPT) {
		if (renameat(h->fd, used, h->fd, back) == 0)
			return 0;
		if (errno != ENOENT)
			return lr_fail(err, errno, "give back %s/%s", h->path, used);
	}
	/* Neither link is there if a runtime was killed right after it had given the slot back:
	 * then nothing is removed. */
	int r = lr_lean_slot_remove(h, slot, used, a, err);
	return r < 0 ? r : lr_lean_slot_remove(h, slot, dirty, a, err);
}

int lr_lean_slot_mark(const struct lr_lean_home *h, const char *slot, const char *id,
		      struct lr_err *err)
{
	char used[LR_LEAN_NAME], dirty[LR_LEAN_NAME];

	snprintf(used, sizeof(used), "used/%.64s@%.220s", slot, id);
	snprintf(dirty, sizeof(dirty), "dirty/%.64s@%.220s", slot, id);
	if (renameat(h->fd, used, h->fd, dirty) < 0 && errno != ENOENT)
		return lr_fail(err, errno, "mark %s/%s", h->path, used);
	return 0;
}

/* ---- what is left ------------------------------------------------------------------------- */

/* Takes it under a name that no container has, and removes it. 1: done; 0: somebody was faster. */
static int take_away(const struct lr_lean_home *h, const char *dir, const char *name,
		     struct lr_arena *a, struct lr_err *err)
{
	char from[LR_LEAN_NAME], to[LR_LEAN_NAME], slot[64];

	snprintf(from, sizeof(from), "%s/%s", dir, name);
	snprintf(slot, sizeof(slot), "%.*s", (int)strcspn(name, "@"), name);
	snprintf(to, sizeof(to), "dirty/%s@.%d", slot, getpid());
	if (renameat(h->fd, from, h->fd, to) < 0)
		return errno == ENOENT ? 0 : lr_fail(err, errno, "take %s/%s", h->path, from);
	int r = lr_lean_slot_remove(h, slot, to, a, err);
	return r < 0 ? r : 1;
}

bool lr_lean_slot_is_lost(const struct lr_lean_home *h, int store, const char *name)
{
	const char *at = strchr(name, '@');

	/* A name with a dot first is no container's: a runtime that makes or removes a slot has it,
	 * and was killed unless slots are being made right now. */
	if (at && at[1] == '.')
		return !lr_lean_home_warms(h);
	return at && faccessat(store, at + 1, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

/*
 * A slot whose file has no other link has no owner, and would count as in use for ever. A killed
 * runtime leaves none (internal.h), but a loss of power may, or a copied ROOT. Then nothing is
 * mounted on it either; if something were, the file's links could not be seen.
 */
static int take_orphan(const struct lr_lean_home *h, const char *slot, struct lr_arena *a,
		       struct lr_err *err)
{
	char path[LR_LEAN_NAME], state[LR_LEAN_NAME];
	struct stat st, home;

	snprintf(path, sizeof(path), "slot/%.64s", slot);
	snprintf(state, sizeof(state), "dirty/%.64s@.%d", slot, getpid());
	if (fstatat(h->fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0 || fstat(h->fd, &home) < 0 ||
	    st.st_dev != home.st_dev || st.st_nlink != 1)
		return 0;
	if (linkat(h->fd, path, h->fd, state, 0) < 0)
		return errno == ENOENT ? 0 : lr_fail(err, errno, "take %s/%s", h->path, path);
	int r = lr_lean_slot_remove(h, slot, state, a, err);
	return r < 0 ? r : 1;
}

enum place { FREE, USED, DIRTY, SLOT, PLACES };
static const char *const places[] = {
	[FREE] = "free", [USED] = "used", [DIRTY] = "dirty", [SLOT] = "slot"};

static int sweep_entry(const struct lr_lean_home *h, int store, bool all, enum place where,
		       const char *name, struct lr_arena *a, struct lr_err *err)
{
	if (where == SLOT)
		return take_orphan(h, name, a, err);
	bool nobodys = where == FREE ? all : lr_lean_slot_is_lost(h, store, name);
	return nobodys ? take_away(h, places[where], name, a, err) : 0;
}

/* Returns the first error, but goes on after it. */
static int sweep_place(const struct lr_lean_home *h, int store, bool all, enum place where,
		       struct lr_arena *a, int *done, struct lr_err *err)
{
	LR_CLEANUP_DIR DIR *d = lr_opendir_at(h->fd, places[where]);
	int first = 0;

	if (!d)
		return errno == ENOENT ? 0
				       : lr_fail(err, errno, "open %s/%s", h->path, places[where]);
	for (struct dirent *e; (errno = 0, e = readdir(d));) {
		struct lr_err why = {0};
		if (e->d_name[0] == '.')
			continue;
		int r = sweep_entry(h, store, all, where, e->d_name, a, &why);
		*done += r > 0;
		if (r < 0 && first == 0) {
			first = r;
			if (err)
				*err = why;
		}
	}
	if (errno && first == 0)
		return lr_fail(err, errno, "read %s/%s", h->path, places[where]);
	return first;
}

int lr_lean_sweep(const struct lr_lean_home *h, int store, bool all, struct lr_arena *a,
		  struct lr_err *err)
{
	int done = 0, first = 0;

	for (enum place where = FREE; where < PLACES; where++) {
		int r = sweep_place(h, store, all, where, a, &done, first < 0 ? NULL : err);
		first = first < 0 ? first : r;
	}
	return first < 0 ? first : done;
}
