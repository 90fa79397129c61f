/* SPDX-License-Identifier: Apache-2.0 */
/* lean: what its files share. Nobody else includes it. */
#ifndef LR_LEAN_INTERNAL_H
#define LR_LEAN_INTERNAL_H

#include "src/lean/lean.h"

#define LR_LEAN_DIR ".lean" /* in ROOT */
/* Slots with a higher number are made when many containers run at once, and removed when they are
 * given back. */
#define LR_LEAN_SLOTS_KEPT 16
#define LR_LEAN_SLOTS_MAX  4096

/* ROOT/.lean/m<inode>, see lean.h. */
struct lr_lean_home {
	int fd;
	const char *path; /* absolute */
	const char *name; /* "m<inode>" */
};
#define LR_LEAN_HOME_NONE                                                                          \
	{                                                                                          \
		.fd = LR_NOFD                                                                      \
	}
void lr_lean_home_close(struct lr_lean_home *h);
#define LR_CLEANUP_HOME __attribute__((cleanup(lr_lean_home_close)))

/* "m<inode>" of the caller's mount namespace; NULL with *err. */
const char *lr_lean_home_name(struct lr_arena *a, struct lr_err *err);

/* Opens it. -ENOENT: there is none; -ESTALE: it is being drained right now. */
enum lr_lean_home_make {
	LR_LEAN_HOME_FIND,
	LR_LEAN_HOME_MAKE,   /* if there is none */
	LR_LEAN_HOME_REPAIR, /* complete it: its maker may have been killed halfway */
};
int lr_lean_home_open(int store, const char *store_path, enum lr_lean_home_make make,
		      struct lr_arena *a, struct lr_lean_home *ret,
		      struct lr_err *err) LR_MUST_CHECK;
/* The length of the home's name in a record's "m<inode>/..."; 0: it has another form. */
size_t lr_lean_home_in(const char *in_record);
/* Opens the home that a record names. */
int lr_lean_home_named(int store, const char *store_path, const char *in_record, struct lr_arena *a,
		       struct lr_lean_home *ret, struct lr_err *err) LR_MUST_CHECK;
/*
 * Locks it until the descriptor is closed: LOCK_SH to make something in it, LOCK_EX to remove
 * something. Slots that are ready are taken and given back without it. -ESTALE: the home was
 * removed, open it again.
 */
int lr_lean_home_lock(const struct lr_lean_home *h, int how, struct lr_err *err) LR_MUST_CHECK;
/*
 * Whoever makes slots ready uses them by a name that is no container's, so nothing but this tells
 * that it lives: a lock on the home's directory, shared, as long as the descriptor is open.
 * -ESTALE: as above.
 */
int lr_lean_home_warm(const struct lr_lean_home *h, struct lr_err *err) LR_MUST_CHECK;
/* Somebody has that lock; asked under LOCK_EX, when nobody makes another slot. */
bool lr_lean_home_warms(const struct lr_lean_home *h);
/* Makes the directory a private mount, as the kernel demands for pins. */
int lr_lean_home_fit(struct lr_lean_home *h, struct lr_err *err) LR_MUST_CHECK;
/* Asked with the lock, since a drain may have been killed after it had unmounted the home. What is
 * pinned without the mount would lie beneath the next one, where nobody finds and removes it. */
bool lr_lean_home_mounted(const struct lr_lean_home *h);
/* No process is left in the mount namespace that it is named after. */
bool lr_lean_home_is_orphan(const char *name);
/* Makes what is missing of a home whose maker was killed. -ESTALE: as for lr_lean_home_open. */
int lr_lean_home_whole(int store, struct lr_lean_home *h, struct lr_err *err) LR_MUST_CHECK;
/* Removes what killed drains have left, and the directory of all homes if it is empty. */
void lr_lean_homes_bury(int store);
/*
 * Unmounts all that is mounted on it. Returns why the kernel unmounts no more: that is the error to
 * report if the directory then is too busy to be removed.
 */
int lr_lean_unmount(const char *path) LR_MUST_CHECK;
/* Removes the home; under LOCK_EX, when nothing is left in it. */
int lr_lean_home_remove(int store, struct lr_lean_home *h, struct lr_err *err) LR_MUST_CHECK;

/* ---- pins (pin.c): namespaces kept by a mount over a socket of the home ------------------- */

/* Makes the file to pin on, if it is not there: a socket, as that cannot be opened; so what can be
 * opened is a namespace. */
int lr_lean_pin_file(const struct lr_lean_home *h, const char *name) LR_MUST_CHECK;
/* A descriptor of the pinned namespace; -ENOENT when there is none. */
int lr_lean_pin_open(const struct lr_lean_home *h, const char *name) LR_MUST_CHECK;
/* Pins a namespace of a living process; the file exists. */
int lr_lean_pin_make(const struct lr_lean_home *h, const char *name, pid_t pid, const char *kind,
		     struct lr_err *err) LR_MUST_CHECK;
/* Idempotent. */
int lr_lean_pin_remove(const struct lr_lean_home *h, const char *name) LR_MUST_CHECK;

/*
 * Runs `make` in a child of ours, which keeps its namespaces until they are pinned by `pin`.
 * Nothing is left when it fails.
 */
struct lr_lean_maker {
	int (*make)(void *arg, struct lr_err *err);             /* in the child */
	int (*pin)(void *arg, pid_t child, struct lr_err *err); /* in the parent */
	void *arg;
};
int lr_lean_make(const struct lr_lean_maker *m, struct lr_err *err) LR_MUST_CHECK;

/* ---- keys (key.c) --------------------------------------------------------------------------- */

struct lr_lean_key {
	const char *name; /* 16 hexadecimal digits */
	const char *text; /* everything that decides what a slot looks like */
	size_t len;
	/* learnt when the first slot was made: */
	bool known;
	struct lr_cgroup_layout layout; /* the hierarchies in which a slot has control groups */
};

/* netns: the shared one, or LR_NOFD. */
int lr_lean_key_make(const struct lr_lean_plan *p, int netns, struct lr_arena *a,
		     struct lr_lean_key *ret, struct lr_err *err) LR_MUST_CHECK;
/* 1: known; 0: not yet; -EEXIST: the name stands for another text. */
int lr_lean_key_load(const struct lr_lean_home *h, struct lr_lean_key *k, struct lr_arena *a,
		     struct lr_err *err) LR_MUST_CHECK;
int lr_lean_key_save(const struct lr_lean_home *h, const struct lr_lean_key *k, struct lr_arena *a,
		     struct lr_err *err) LR_MUST_CHECK;

/* The layout alone, whatever the text, for removal. n == 0: unknown. */
int lr_lean_key_layout(const struct lr_lean_home *h, const char *name, struct lr_arena *a,
		       struct lr_cgroup_layout *ret) LR_MUST_CHECK;
/* The first line of its text, for people. "" if unknown. */
const char *lr_lean_key_title(const struct lr_lean_home *h, const char *name, struct lr_arena *a);

/* ---- who has a slot (state.c) ---------------------------------------------------------------- A
 * slot is named KEY.N. slot/KEY.N is the file that its namespace is pinned on. A second link of
 * that file says whose it is: free/KEY.N, used/KEY.N@ID or dirty/KEY.N@ID. It is made before the
 * first and removed after it, so every slot has an owner. A file with one link is no slot, or no
 * longer one. */
#define LR_LEAN_NAME 300

void lr_lean_slot_path(char path[LR_LEAN_NAME], const char *dir, const char *key, unsigned n,
		       const char *id); /* id NULL: none */
/* Makes a new number, which `id` uses. */
int lr_lean_slot_number(const struct lr_lean_home *h, const char *key, const char *id, unsigned *n,
			struct lr_err *err) LR_MUST_CHECK;
/* Takes a free one, which `id` uses then. */
bool lr_lean_slot_grab(const struct lr_lean_home *h, const char *key, const char *id, unsigned *n);
/* Removes its control groups, its pin, and `state`, the link that says whose it is. Processes are
 * killed. */
int lr_lean_slot_remove(const struct lr_lean_home *h, const char *slot, const char *state,
			struct lr_arena *a, struct lr_err *err) LR_MUST_CHECK;
/* Makes a slot that `id` uses free; removes it if it may not be free, or was marked. Does nothing
 * if it is not used by `id`. */
int lr_lean_slot_release(const struct lr_lean_home *h, const char *slot, const char *id,
			 bool reusable, struct lr_arena *a, struct lr_err *err) LR_MUST_CHECK;
/* The same for the usual case, without opening the home; `in_record` names home and slot. False:
 * nothing was done, use lr_lean_slot_release. */
bool lr_lean_slot_return(int store, const char *in_record, const char *id);
int lr_lean_slot_mark(const struct lr_lean_home *h, const char *slot, const char *id,
		      struct lr_err *err) LR_MUST_CHECK;
/* Whether the container that a name KEY.N@ID tells of is gone. */
bool lr_lean_slot_is_lost(const struct lr_lean_home *h, int store, const char *name);
/* Under LOCK_EX: removes slots of containers that are gone; `all`: and those that are free.
 * Returns how many. */
int lr_lean_sweep(const struct lr_lean_home *h, int store, bool all, struct lr_arena *a,
		  struct lr_err *err) LR_MUST_CHECK;
/* The control group above all slots of this home, without a mount point in front. */
const char *lr_lean_cgroup_parent(const struct lr_lean_home *h, struct lr_arena *a);

/* ---- the container's tree (build.c) ---------------------------------------------------------- */

/* In a child made for it: enters a new mount namespace and makes the tree there, and nothing else.
 * netns: the shared one, whose /sys it gets; or LR_NOFD. */
int lr_lean_build(const struct lr_lean_plan *p, const struct lr_lean_env *env,
		  const struct lr_mount_cgroup_view *view, int netns, struct lr_arena *a,
		  struct lr_err *err) LR_MUST_CHECK;

/* ---- images (image.c) ------------------------------------------------------------------------ */

/* Where an image is mounted: by what the file is. NULL: no memory. */
struct statx;
const char *lr_lean_image_dir(const char *home, const struct statx *st, struct lr_arena *a);
bool lr_lean_image_mounted(const char *dir);
/* Mounts it there, unless it is. */
int lr_lean_image_mount(struct lr_lean_home *h, const char *path, const char *target,
			struct lr_err *err) LR_MUST_CHECK;
/* Under LOCK_EX, when there are no slots: unmounts all. */
int lr_lean_image_forget(const struct lr_lean_home *h, struct lr_err *err) LR_MUST_CHECK;

/* ---- network (net.c) ------------------------------------------------------------------------- */

#define LR_LEAN_NET_SHARED "shared"
#define LR_LEAN_NET_KEY    "net" /* slots that are network namespaces */

/* A descriptor of the shared one, which is made if need be. */
int lr_lean_net_shared(struct lr_lean_home *h, int store, struct lr_arena *a,
		       struct lr_err *err) LR_MUST_CHECK;
/* A descriptor of one of the pool, slot LR_LEAN_NET_KEY.n, which `id` uses then. */
int lr_lean_net_take(struct lr_lean_home *h, const char *id, bool fresh, unsigned *n,
		     struct lr_arena *a, struct lr_err *err) LR_MUST_CHECK;
/* Gives it back if it is proven clean, or was not used; else removes it. `name`: of the slot, or
 * "shared". Best effort: what goes wrong is left for the next sweep. */
void lr_lean_net_back(const struct lr_lean_home *h, const char *name, const char *id, bool used,
		      struct lr_arena *a);
/* Marks it: it may have been changed, so no other container gets it. */
int lr_lean_net_mark(const struct lr_lean_home *h, const char *name, const char *id,
		     struct lr_err *err) LR_MUST_CHECK;

#endif
