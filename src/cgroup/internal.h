/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup: what the files of this room share. Nobody else includes it. */
#ifndef LR_CGROUP_INTERNAL_H
#define LR_CGROUP_INTERNAL_H

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/cgroup/files.h"
#include "src/devrule/devrule.h"

#define LR_CGROUP_ROOT "/sys/fs/cgroup"
/* How long the kernel may take to freeze, thaw or empty a cgroup. */
#define LR_CGROUP_WAIT_MS 5000

const char *lr_cgroup_ctrl_v1(enum lr_cgroup_ctrl c);
const char *lr_cgroup_ctrl_v2(enum lr_cgroup_ctrl c); /* NULL: v2 has no such controller */
bool lr_cgroup_ctrl_known(const char *v1_name, size_t len);
/* Bits (1 << ctrl) of the v2 controllers named in a space-separated list. */
unsigned lr_cgroup_ctrl_set(const char *v2_names);
/* True if a hierarchy name ("cpu,cpuacct") holds that word ("cpu"). */
bool lr_cgroup_name_has(const char *hierarchy, const char *word);

/*
 * Files that are closed together, when a creation is through: by one call for all whose numbers lie
 * side by side, as a file of another thread's may have a number in between. They lead to the host's
 * files, so they can't be left to the end (lr_close_late).
 */
struct lr_cgroup_batch {
	int v[24]; /* when it is full, they are closed: RLIMIT_NOFILE may be low */
	size_t n;
};

/* Takes fd over. Without a batch (NULL), it is closed at once. */
void lr_cgroup_batch_add(struct lr_cgroup_batch *b, int fd);
void lr_cgroup_batch_close(struct lr_cgroup_batch *b);

/* lr_cgroup_read and lr_cgroup_put, whose file goes to the batch. */
ssize_t lr_cgroup_read_batched(struct lr_cgroup_batch *b, const char *dir, const char *file,
			       char *buf, size_t size) LR_MUST_CHECK;
int lr_cgroup_put_batched(struct lr_cgroup_batch *b, const char *dir, const char *file,
			  const char *value) LR_MUST_CHECK;

/* ---- writes (gen.c, write.c) ---------------------------------------------------------------- */

enum {
	LR_W_OPTIONAL = 1 << 0, /* a missing file is fine: the kernel does that anyway */
	LR_W_TOLERATE = 1 << 1, /* whatever goes wrong is a warning: the specification allows it */
	LR_W_DEFER = 1 << 2,    /* -EINVAL: once more after its neighbours with this flag, for pairs
				   whose right order depends on the present values */
	LR_W_DEVICE = 1 << 3,   /* a device rule: EPERM is fine when rootless */
	LR_W_EPERM_OK = 1 << 5,
	LR_W_CHECK_USAGE = 1 << 4, /* memory.checkBeforeUpdate: refuse below memory.current */
};

struct lr_cgroup_write {
	const char *file; /* absolute; consecutive writes to the same pointer share one open */
	const char *value;
	const char *alt_file, *alt_value; /* instead, when `file` is missing; may be NULL */
	const char *where;                /* place in config.json */
	unsigned flags;
	enum lr_cgroup_ctrl ctrl;
};

/* Carries on after all that may fail; the first failure sticks in `r`. */
struct lr_cgroup_gen {
	struct lr_arena *arena;
	const struct lr_cgroup_ref *ref;
	struct lr_err *err;
	bool update; /* the cgroup exists: present values may be read */
	int r;
	struct lr_cgroup_write *v;
	size_t n;
	unsigned need;                /* bits of the controllers that have writes */
	const char *where[LR_CTRL_N]; /* who asked first */
};

void lr_cgroup_emit(struct lr_cgroup_gen *g, enum lr_cgroup_ctrl c, unsigned flags,
		    const char *where, const char *file, const char *fmt, ...) LR_PRINTF(6, 7);
/* Gives the write emitted last another file for kernels that lack the first. */
void lr_cgroup_emit_alt(struct lr_cgroup_gen *g, const char *file, const char *fmt, ...)
	LR_PRINTF(3, 4);
/* Sticks -code and a message; lr_err_at(where). */
void lr_cgroup_gen_refuse(struct lr_cgroup_gen *g, const char *where, const char *hint,
			  const char *fmt, ...) LR_PRINTF(4, 5);
/* Path in the arena for lists: "linux.resources.x[3]". NULL-safe on lack of memory. */
const char *lr_cgroup_where(struct lr_cgroup_gen *g, const char *list, size_t i);

void lr_cgroup_gen_v1(struct lr_cgroup_gen *g, const struct oci_resources *r);
void lr_cgroup_gen_v2(struct lr_cgroup_gen *g, const struct oci_resources *r);
/* What is written alike in both: pids, hugepages, rdma. */
void lr_cgroup_gen_common(struct lr_cgroup_gen *g, const struct oci_resources *r, bool v2);
/* Properties that mean nothing: warned about, then ignored. */
void lr_cgroup_gen_ignored(const char *where, const char *why);
bool lr_cgroup_check_swappiness(struct lr_cgroup_gen *g, const struct oci_memory *m);
bool lr_cgroup_check_blkio_weight(struct lr_cgroup_gen *g, const char *where, uint16_t w);

/* cgroup v1's scales to v2's, linearly: [2, 262144] and [10, 1000] to [1, 10000]. */
uint64_t lr_cgroup_weight_of_shares(uint64_t shares);
uint64_t lr_cgroup_io_weight(uint64_t blkio_weight);
/* v1's memory+swap to v2's swap alone. -1: "max"; *set false: leave alone. -EINVAL. */
int lr_cgroup_swap_of(int64_t limit, int64_t memsw, int64_t *ret, bool *set);

/* What the claim has open for writing (claim.c): it is not opened once more. */
struct lr_cgroup_held {
	int fd;
	const char *dir, *file;
};

/* batch, held: NULL for none. */
int lr_cgroup_write_all(const struct lr_cgroup_write *v, size_t n, bool rootless,
			struct lr_cgroup_batch *batch, const struct lr_cgroup_held *held,
			struct lr_err *err) LR_MUST_CHECK;

/* v1 takes the rules as a default and exceptions (lr_devrules_flatten): devices_v1.c. */
void lr_cgroup_gen_devices_v1(struct lr_cgroup_gen *g, const struct lr_devrules *flat);

/* ---- plan and drivers ----------------------------------------------------------------------- */

/* Beside each place of the ref. */
struct lr_cgroup_target {
	const char *mountpoint;
	bool wanted; /* limits were asked for here */
	bool v2;
	bool cpuset, has_cpus,
		has_mems; /* v1: values to be inherited, unless the writes set them */
	size_t made; /* offset in path of the slash before the first component made here; 0: none */
};

struct lr_cgroup_driver;

struct lr_systemd_unit;

struct lr_cgroup_plan {
	const struct lr_cgroup_driver *driver;
	struct lr_cgroup_ref ref;
	struct lr_systemd_unit *unit; /* NULL: none */
	pid_t holder;                 /* keeps a scope alive until the container is in it */
	int hold; /* closed by whoever has joined: a pipe (lr_systemd_hold) or a lock (claim.c);
		     LR_NOFD: none */
	const char *hold_file; /* which file of the first place it is, for writing; NULL: of none */
	struct lr_cgroup_batch batch;     /* of create */
	struct lr_cgroup_target *targets; /* ref.n of them */
	const struct lr_cgroup_write *writes;
	size_t n_writes;
	const struct bpf_insn *insns; /* device program for the v2 tree; n_insns == 0: none */
	size_t n_insns;
	unsigned need; /* controllers with limits */
	const char *where[LR_CTRL_N];
	bool rootless;
	bool no_birth;        /* pids.limit 0: a process can join, none can be born there */
	const char *delegate; /* directory below the v2 one for the processes; NULL: none */
	uid_t delegate_uid;
	gid_t delegate_gid;
	int delegate_fd; /* its cgroup.procs, once made */
};

/* Who makes and changes cgroups. Everything else works on directories, whoever made them. */
struct lr_cgroup_driver {
	const char *name;
	int (*create)(struct lr_cgroup_plan *plan, struct lr_err *err);
	int (*update)(const struct lr_cgroup_ref *ref, const struct oci_resources *r,
		      struct lr_arena *arena, struct lr_err *err);
	int (*destroy)(const struct lr_cgroup_ref *ref, bool kill, struct lr_err *err);
};

int lr_cgroup_plan_delegate(struct lr_cgroup_plan *p, const struct lr_cgroup_opts *o,
			    struct lr_arena *arena, struct lr_err *err);
int lr_cgroup_make_delegate(struct lr_cgroup_plan *p, struct lr_err *err);

const struct lr_cgroup_driver *lr_cgroup_driver_of(enum lr_cgroup_manager m);
int lr_cgroup_fs_create(struct lr_cgroup_plan *plan, struct lr_err *err);
/* Its two parts: the directories, none of them after a failure; and what is written to them. */
int lr_cgroup_make_places(struct lr_cgroup_plan *plan, struct lr_err *err) LR_MUST_CHECK;
int lr_cgroup_fill_places(struct lr_cgroup_plan *plan, struct lr_err *err) LR_MUST_CHECK;
/* The place that is claimed comes first: before anything else is made, it is known whose it is. */
void lr_cgroup_claim_order(struct lr_cgroup_plan *plan);
/* Keeps others out until plan->hold is closed (claim.c); `fresh`: made just now. 0, also where this
 * user cannot; -EBUSY, untold: somebody else has it; -ESTALE, untold: it is gone; or -errno. */
int lr_cgroup_claim(struct lr_cgroup_plan *plan, const struct lr_cgroup_place *p, bool fresh,
		    struct lr_err *err) LR_MUST_CHECK;
int lr_cgroup_fs_update(const struct lr_cgroup_ref *ref, const struct oci_resources *r,
			struct lr_arena *arena, struct lr_err *err);
/* Its two halves; *g has arena, ref, err and update set. */
int lr_cgroup_gen_update(struct lr_cgroup_gen *g, const struct oci_resources *r);
int lr_cgroup_write_update(const struct lr_cgroup_gen *g);
int lr_cgroup_fs_destroy(const struct lr_cgroup_ref *ref, bool kill, struct lr_err *err);

/* Finds the name and the place of the unit; asks systemd where it is itself. */
int lr_cgroup_systemd_locate(struct lr_cgroup_plan *plan, const char *cgroups_path,
			     const struct lr_cgroup_opts *o, struct lr_arena *arena,
			     struct lr_err *err);
/* Its properties, once the writes are planned. */
int lr_cgroup_systemd_describe(struct lr_cgroup_plan *plan, const struct lr_cgroup_opts *o,
			       struct lr_arena *arena, struct lr_err *err);
int lr_cgroup_systemd_create(struct lr_cgroup_plan *plan, struct lr_err *err);
int lr_cgroup_systemd_update(const struct lr_cgroup_ref *ref, const struct oci_resources *r,
			     struct lr_arena *arena, struct lr_err *err);
int lr_cgroup_systemd_destroy(const struct lr_cgroup_ref *ref, bool kill, struct lr_err *err);
/* Has systemd move a process (0: the caller) into a directory of the unit: an ordinary user may not
 * do so himself, unless he is in a cgroup of his own systemd already. */
int lr_cgroup_systemd_attach(const struct lr_cgroup_ref *ref, const char *dir, pid_t pid,
			     struct lr_err *err);

/* Makes the controllers of `need` (and those that statistics want) usable in `dir`: enable.c. */
int lr_cgroup_enable(const char *mountpoint, const char *dir, unsigned need,
		     const char *const *where, struct lr_err *err) LR_MUST_CHECK;
/* Fills cpuset.cpus and cpuset.mems from the parent, empty ancestors first: cpuset.c. */
int lr_cgroup_cpuset_fill(const struct lr_cgroup_target *t, const char *dir, bool fresh,
			  struct lr_cgroup_batch *batch, struct lr_err *err) LR_MUST_CHECK;

/* ---- directories (walk.c) ------------------------------------------------------------------- */

/* Calls visit for each directory of the tree, with a descriptor of it, until it returns non-zero. A tree that does
 * not exist is empty. */
typedef int lr_cgroup_visit_dir(int dirfd, void *arg);
int lr_cgroup_each_dir(const char *dir, lr_cgroup_visit_dir *visit, void *arg) LR_MUST_CHECK;

/* ---- processes (procs.c) -------------------------------------------------------------------- */

/* Calls visit for every pid in the tree (duplicates possible) until it returns non-zero. A tree
 * that does not exist is empty. */
typedef int lr_cgroup_visit(pid_t pid, void *arg);
int lr_cgroup_each_pid(const char *dir, lr_cgroup_visit *visit, void *arg) LR_MUST_CHECK;

#endif
