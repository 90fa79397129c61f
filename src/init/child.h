/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init: the child's side of every birth; internal to src/init.
 *
 * One table of stages (child.c) has all that a newborn does, whoever it is: a row says for whom it
 * is. The medium knows how the newborn talks with its parent; a stage does not.
 */
#ifndef LR_INIT_CHILD_H
#define LR_INIT_CHILD_H

#include <stdint.h>

#include "src/init/init.h"
#include "src/init/seed.h"
#include "src/init/sync.h"

enum lr_who {
	LR_WHO_INIT = 1,    /* the container's first process */
	LR_WHO_MEMBER = 2,  /* of exec */
	LR_WHO_VISITOR = 4, /* does something in there, and ends */
};

/*
 * Some user namespaces are entered by a process in between, which bears the real newborn as its
 * sister (CLONE_PARENT). The sister does not repeat what it has done.
 */
enum lr_part { LR_PART_WHOLE, LR_PART_BETWEEN, LR_PART_SISTER };

struct lr_child;
struct lr_resume;

struct lr_medium {
	/* Waits until the parent has done `step`; *value (may be NULL): what it has to say. */
	int (*wait)(struct lr_child *c, enum lr_step step, int32_t *value, struct lr_err *err);
	int (*tell)(struct lr_child *c, enum lr_step step, struct lr_err *err);
	/* The last thing that a child says. */
	void (*report)(struct lr_child *c, const struct lr_err *why);
};
extern const struct lr_medium lr_medium_socket; /* to a process of its own */
extern const struct lr_medium lr_medium_memory; /* shared; see shared.h */

struct lr_child {
	enum lr_who who;
	enum lr_part part;
	struct lr_init_plan *plan;       /* of init, or NULL */
	struct lr_init_exec *exec;       /* of a member or a visitor, or NULL */
	struct lr_init_process *process; /* of either */
	struct lr_ns_fds *ns;            /* of init */
	const struct lr_medium *medium;
	struct lr_becoming becoming; /* becoming.sync: the child's end */
	unsigned sister;             /* CLONE_NEW* of the sister */
	uint64_t signals;            /* to be reset */
	bool in_cgroup;              /* born in the v2 cgroup, or moved there by the parent */
	bool joined;                 /* in all its cgroups */
	pid_t host_pid;              /* for hooks; 0 until told */
	struct lr_resume *resume;    /* of a seed: with its files open */
	/* In the caller's memory; see shared.h. */
	struct lr_init_shared *shared; /* NULL: a process of its own */
	pid_t pid;                     /* as the parent sees it; there before the child runs */
	bool started;                  /* if it is killed from now on, the program is */
	struct lr_err err;
};

/* ---- child ------------------------------------------------------------------------------- */

/* From clone to execve. Never returns. */
_Noreturn void lr_child_main(struct lr_child *c);

typedef int lr_stage(struct lr_child *c, struct lr_err *err);

/* making.c: the container around init */
lr_stage lr_stage_namespaces, lr_stage_names, lr_stage_root, lr_stage_mounts, lr_stage_devices,
	lr_stage_sysctl, lr_stage_hooks, lr_stage_finish, lr_stage_protect, lr_stage_pivot;
int lr_child_join_cgroup(void *child, struct lr_err *err) LR_MUST_CHECK;
int lr_child_start_hooks(struct lr_child *c, struct lr_err *err) LR_MUST_CHECK;

/* seed.c: the files that a seed had open; to become it */
lr_stage lr_stage_files, lr_stage_seed;

/* entering.c: a container that is there */
lr_stage lr_stage_enter, lr_stage_visit;

/* ---- both -------------------------------------------------------------------------------- */

/* True if the child waits for LR_STEP_MAPPED / sends LR_STEP_ROOTED. */
bool lr_child_waits_mapped(const struct lr_init_plan *p);
bool lr_child_sends_rooted(const struct lr_init_plan *p);
/* The user namespace is new, and the process in between is born in it. */
bool lr_child_made_between(const struct lr_init_plan *p);

/* Namespaces that are entered for children only: the parent enters them, and is not affected. */
#define LR_FOR_CHILDREN (CLONE_NEWPID | CLONE_NEWTIME)
/* entering.c. -EPERM where a process in between is needed: see there. */
int lr_enter(struct lr_init_exec *p, unsigned flags, struct lr_err *err) LR_MUST_CHECK;
/* Opens what is to be entered where there is no pidfd. Always followed by lr_enter_close. */
int lr_enter_open(struct lr_init_exec *p, struct lr_err *err) LR_MUST_CHECK;
void lr_enter_close(struct lr_init_exec *p);

/* ---- parent ------------------------------------------------------------------------------ */

struct lr_clone;

/* What is to be born, and how. */
struct lr_bearing {
	struct lr_child *child;
	struct lr_clone *clone;
	bool between;
	/* What a process in between cannot do for itself: it waits for MAPPED. NULL: nothing */
	int (*map)(const struct lr_init_plan *p, pid_t pid, struct lr_err *err);
};

/* The one place that clones: in our memory, if child->shared says so and it is possible here,
 * otherwise with a memory of its own. On failure no process is left. */
int lr_bear(struct lr_bearing *b, struct lr_init_child *ret, struct lr_err *err) LR_MUST_CHECK;

/* seed.c: the socket between restorer and parent; lr_init_start of a child that continues one. */
int lr_seed_pair(struct lr_init_seed *s, struct lr_err *err) LR_MUST_CHECK;
int lr_seed_attend(const struct lr_init_plan *p, struct lr_err *err) LR_MUST_CHECK;
int lr_seed_start(struct lr_init_child *c, struct lr_err *err) LR_MUST_CHECK;

/* What lr_init_start needs to know. */
void lr_init_child_knows(struct lr_init_child *c, const struct lr_init_process *p);
/* For a child in our memory that is about to execute: waits until the container's program runs, not
 * only the page; or until the page waits for its word and is hidden. */
int lr_init_executed(struct lr_init_child *c, struct lr_err *err) LR_MUST_CHECK;
int lr_init_check_stub(const struct lr_init_child *c, struct lr_err *err) LR_MUST_CHECK;

/*
 * Waits for what a child has to say, or for the end of file that says it has executed its program;
 * or, if others keep the descriptor open, until /proc says so. > 0: there is something to read; 0:
 * nothing will be; -errno. start_time: as for lr_init_check_executed; 0: a child of ours.
 */
int lr_init_wait_report(int fd, pid_t pid, uint64_t start_time) LR_MUST_CHECK;

/* For init and exec: takes a filter's notification descriptor and gives it to the agent. */
int lr_init_pass_listener(const struct lr_seccomp_prog *prog, const struct oci_state *state,
			  const struct lr_init_child *c, struct lr_arena *a,
			  struct lr_err *err) LR_MUST_CHECK;

#endif
