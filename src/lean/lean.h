/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lean: the profile that gives up parts of what config.json says for speed, and what is kept ready
 * for that. All of it is off unless it is asked for (docs/lean-profile.md).
 *
 * What is prepared, below ROOT/.lean/m<inode of the caller's mount namespace>/:
 *
 * 	lock          taken for what creates or removes shared things
 * 	fit           it is a mount of its own, as pins need
 * 	key/<key>     what was found out when the first container of a kind was made
 * 	slot/<key>.N  a pinned mount namespace: the container's tree without what is one container's
 * 	              own (its /proc, terminals, shared memory), read-only
 * 	slot/net.N    a pinned network namespace, for one container at a time
 * 	free/<key>.N  that slot waits for a container
 * 	used/<key>.N@ID  container ID has it
 * 	dirty/<key>.N@ID  the same, and nobody gets it after that
 * 	net/shared    a pinned network namespace with nothing but loopback, for all
 * 	net/print     what a network namespace looks like when it is new (prove.c)
 * 	img/<file>    an image that is the root of containers, mounted
 *
 * A `key` stands for all configs that lead to the same tree and the same limits. A slot belongs to
 * one container at a time, and has control groups of its own, with the limits already written. The
 * container copies its namespace (setns, then unshare) and never lives in it, so nothing has to be
 * cleaned there. The control groups are proven to be empty; those with statistics that the kernel
 * cannot set back are not used again but removed.
 *
 * No daemon. A slot is taken and given back by rename(2), which only one can do. The name tells who
 * has it, so what a killed runtime left is found: a used slot whose container has no directory in
 * ROOT.
 *
 * The room is below init, which enters what was prepared, and above the rooms that make it.
 */
#ifndef LR_LEAN_LEAN_H
#define LR_LEAN_LEAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "libocispec/config.h"
#include "src/base/arena.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/cgroup/cgroup.h"
#include "src/mount/mount.h"

/* ---- the profile (profile.c, pure) ---------------------------------------------------------- */

enum lr_lean_part {
	LR_LEAN_ROOTFS,   /* "config": as config.json has it; "ro": read-only, and all below it */
	LR_LEAN_CGROUP,   /* "config"; "pool" */
	LR_LEAN_NETWORK,  /* "config" = "new"; "shared"; "pool"; "host" */
	LR_LEAN_MOUNTS,   /* "config"; "template", copied */
	LR_LEAN_BOUNDING, /* "drop"; "keep", where no-new-privileges makes it meaningless */
	LR_LEAN_PARTS
};

enum lr_lean_way {
	LR_LEAN_CONFIG, /* nothing is relaxed */
	LR_LEAN_AUTO,   /* the profile's way, where the config lets it; else CONFIG */
	LR_LEAN_RO,
	LR_LEAN_POOL,
	LR_LEAN_NEW,
	LR_LEAN_SHARED,
	LR_LEAN_HOST,
	LR_LEAN_TEMPLATE,
	LR_LEAN_KEEP,
};

struct lr_lean_profile {
	bool on;
	enum lr_lean_way way[LR_LEAN_PARTS];
	const char *tmpfs; /* paths joined by ':' that are writable; NULL: none */
	const char *image; /* a file, instead of root.path; NULL: none */
};

/* Annotations that choose, for `features`; NULL-terminated, sorted. */
extern const char *const lr_lean_annotations[];

/*
 * `text` (--lean, LEAN_RUNTIME_PROFILE, or "lean" for a program called so): NULL or "" or "none":
 * off; "lean": all parts; else a list "rootfs,network=pool" of the parts that are on. The
 * annotations of config.json (may be NULL) come before it. -EINVAL names what is not known.
 */
int lr_lean_profile(const char *text, const struct oci_map *annotations,
		    struct lr_lean_profile *ret, struct lr_err *err) LR_MUST_CHECK;

/* ---- what becomes of a config (plan.c; but for a look at root.path, pure) -------------------- */

struct lr_lean_facts {
	const char *id;
	const char *bundle;
	const char *store_path;
	bool two_phase; /* create and start: somebody may configure the network between them */
	bool no_pivot;
	bool rootless;
	bool manager_is_fs; /* cgroups are made by us */
	bool cgroup_v2;     /* lr_cgroup_is_v2() */
};

/* What was at root.path: that path may be another directory, or file, tomorrow. */
struct lr_lean_seen {
	uint64_t dev, ino; /* 0: nothing was there */
	uint64_t size;     /* of a file; a directory's contents may change */
	int64_t mtime_s, mtime_ns;
	bool file, mount;
};

struct lr_lean_plan {
	struct lr_lean_profile profile;
	const struct oci_config *config; /* the config that the other rooms get */
	enum lr_lean_way network;        /* CONFIG, SHARED, POOL or HOST */
	bool pool;                       /* cgroup from a slot */
	bool template_;                  /* mount namespace from a slot */
	const char *why_not;             /* why there is no template; for debugging */
	bool keep_bounding;
	const char *image;  /* a file that holds the root; NULL: none */
	const char *rootfs; /* absolute; of an image: where it is mounted */
	struct lr_lean_seen seen;
	struct oci_mounts base; /* in the template */
	struct oci_mounts own;  /* the container's */
	const char *json;       /* part of its key; NULL: made when it is needed */
};

int lr_lean_plan(const struct lr_lean_profile *p, const struct oci_config *config,
		 const struct lr_lean_facts *facts, struct lr_arena *arena,
		 struct lr_lean_plan *ret, struct lr_err *err) LR_MUST_CHECK;

/*
 * Whether a plan of before is that of container `id`, too. It is not if something else is at
 * root.path now, as what is kept ready for the one must not come to the other; nor if the id has no
 * place in a slot's name.
 */
bool lr_lean_plan_holds(const struct lr_lean_plan *plan, const char *id);

/* For a plan that is used often: computes what can be known before a slot is taken. */
int lr_lean_settle(struct lr_lean_plan *plan, struct lr_arena *arena,
		   struct lr_err *err) LR_MUST_CHECK;

/* ---- what a container holds (slot.c) -------------------------------------------------------- */

/* What the container's first process enters instead of making its root. Filled by lr_lean_take. */
struct lr_lean_enter {
	int mntns; /* LR_NOFD: the usual way */
	int netns; /* LR_NOFD: the usual way */
};

struct lr_lean_env {
	int store; /* ROOT */
	const char *store_path;
	const char *id; /* the container's directory in ROOT exists already */
	const char *bundle;
	const struct lr_cgroup_opts *cgroup;
	bool fresh; /* make a new slot, even if one is free */
};

struct lr_lean_hold {
	struct lr_lean_enter enter;
	struct lr_cgroup_plan *cgroup; /* of the slot: made, limits written; NULL: make your own */
	const struct lr_mount_cgroup_view *view; /* of it */
	const char *slot;                        /* for the record; NULL: nothing is held */
	const char *net;                         /* for the record; NULL: none of the pool's */
	int warm; /* of a fresh one: its user, whom no directory names, lives */
};
#define LR_LEAN_HOLD_NONE                                                                          \
	{                                                                                          \
		.enter = {.mntns = LR_NOFD, .netns = LR_NOFD}, .warm = LR_NOFD                     \
	}

/* Takes what the plan asks for, and makes it if none is ready. */
int lr_lean_take(const struct lr_lean_plan *plan, const struct lr_lean_env *env,
		 struct lr_arena *arena, struct lr_lean_hold *ret,
		 struct lr_err *err) LR_MUST_CHECK;
/* Makes n slots ready for containers of that plan. env->id: a name that no container can have. */
int lr_lean_warm(const struct lr_lean_plan *plan, const struct lr_lean_env *env, unsigned n,
		 struct lr_arena *arena, struct lr_err *err) LR_MUST_CHECK;
void lr_lean_hold_close(struct lr_lean_hold *h); /* descriptors only */

/*
 * Gives back what the record names, when no process of the container is left. A slot that cannot be
 * proven clean, or was marked, is removed. Idempotent: what `id` no longer has is not touched.
 */
struct lr_lean_held {
	const char *id;
	const char *slot, *net;             /* as recorded; may be NULL */
	const struct lr_cgroup_ref *cgroup; /* the slot's; NULL: it has none */
};
int lr_lean_put(int store, const char *store_path, const struct lr_lean_held *g,
		struct lr_arena *arena, struct lr_err *err) LR_MUST_CHECK;

/*
 * Marks what the container has, so that no other gets it: the container is paused (an empty cgroup
 * can stay frozen), its limits are changed, or a process that can change them enters it. `net`:
 * marks its network namespace, too; a shared one is kept by the containers that are in it, and the
 * next ones get a new one.
 */
int lr_lean_mark(int store, const char *store_path, const struct lr_lean_held *g, bool net,
		 struct lr_arena *arena, struct lr_err *err) LR_MUST_CHECK;

/* ---- looking at it (pool.c) ------------------------------------------------------------------ */

struct lr_lean_pool_row {
	const char *key;
	const char *rootfs;        /* "" for network namespaces and cgroups alone */
	unsigned free, used, lost; /* lost: used by containers that are gone */
};

struct lr_lean_pool {
	const char *path; /* NULL: there is none */
	bool shared_net;
	struct lr_lean_pool_row *v;
	size_t n;
};

int lr_lean_pool_status(int store, const char *store_path, struct lr_arena *arena,
			struct lr_lean_pool *ret, struct lr_err *err) LR_MUST_CHECK;
/* Removes everything that no container uses. *left: slots that containers use. */
int lr_lean_pool_drain(int store, const char *store_path, unsigned *left, struct lr_arena *arena,
		       struct lr_err *err) LR_MUST_CHECK;

/* ---- in the container's first process (enter.c): system calls only -------------------------- */

/* Each does nothing if nothing of that kind was prepared. */
int lr_lean_enter_net(const struct lr_lean_enter *e, struct lr_err *err) LR_MUST_CHECK;
/* After it, "/" is the container's root. */
int lr_lean_enter_tree(const struct lr_lean_enter *e, struct lr_err *err) LR_MUST_CHECK;

#endif
