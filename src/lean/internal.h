/* SPDX-License-Identifier: Apache-2.0 */
/* lean: what its files share. Nobody else includes it. */
#ifndef LR_LEAN_INTERNAL_H
#define LR_LEAN_INTERNAL_H

#include "src/lean/lean.h"

#define LR_LEAN_DIR "/.lean"
/* Slots with a higher number are for a rush, and removed after it. */
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

/* Opens it; -ENOENT unless `make`. With `make` it is also made fit to hold pins. */
int lr_lean_home_open(int store, const char *store_path, bool make, struct lr_arena *a,
		      struct lr_lean_home *ret, struct lr_err *err) LR_MUST_CHECK;
/* The one that a record names by "m<inode>/...". */
int lr_lean_home_named(int store, const char *store_path, const char *in_record, struct lr_arena *a,
		       struct lr_lean_home *ret, struct lr_err *err) LR_MUST_CHECK;
/* Its lock: closed is unlocked. */
int lr_lean_home_lock(const struct lr_lean_home *h, struct lr_err *err) LR_MUST_CHECK;

/* Makes the directory a mount that propagates to nobody, which the kernel wants for pins. */
int lr_lean_home_fit(const struct lr_lean_home *h, struct lr_err *err) LR_MUST_CHECK;

/* ---- pins (pin.c): namespaces kept by a mount over an empty file of the home ---------------- */

/* A descriptor of the pinned namespace of that CLONE_NEW* kind; -ENOENT when there is none. */
int lr_lean_pin_open(const struct lr_lean_home *h, const char *name, int kind) LR_MUST_CHECK;
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
	struct lr_cgroup_layout layout; /* the hierarchies a slot has control groups in */
	const char *kinds;
};

int lr_lean_key_make(const struct lr_lean_plan *p, const struct lr_lean_env *env,
		     struct lr_arena *a, struct lr_lean_key *ret, struct lr_err *err) LR_MUST_CHECK;
/* 1: known; 0: not yet; -EEXIST: the name stands for another text. */
int lr_lean_key_load(const struct lr_lean_home *h, struct lr_lean_key *k, struct lr_arena *a,
		     struct lr_err *err) LR_MUST_CHECK;
int lr_lean_key_save(const struct lr_lean_home *h, const struct lr_lean_key *k, struct lr_arena *a,
		     struct lr_err *err) LR_MUST_CHECK;

/* ---- the container's tree (build.c) ---------------------------------------------------------- */

/* In a child made for it: becomes a mount namespace that holds the tree and nothing else. */
int lr_lean_build(const struct lr_lean_plan *p, const struct lr_lean_key *k,
		  const struct lr_lean_env *env, const struct lr_mount_cgroup_view *view,
		  struct lr_arena *a, struct lr_err *err) LR_MUST_CHECK;

/* ---- network (net.c) ------------------------------------------------------------------------- */

#define LR_LEAN_NET_SHARED "shared"
int lr_lean_net_mark(const struct lr_lean_home *h, const char *name,
		     struct lr_err *err) LR_MUST_CHECK;
int lr_lean_net_shared(struct lr_lean_home *h, struct lr_err *err) LR_MUST_CHECK;

#endif
