/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init: the birth of a process in a container. The only room that clones.
 *
 * Two kinds are born here: the container's first process (lr_init_spawn) and those of `exec`
 * (lr_init_exec). Both end in the same steps (become.c): limits, labels, working directory, ids,
 * capabilities, filter, program.
 *
 * The caller compiles plans (src/lifecycle does, from config.json or from the record) and drives
 * the parent's side; the child's side is in child.c. Everything that the child needs was computed
 * before the clone: it makes system calls and allocates nothing, but for the state that hooks get.
 */
#ifndef LR_INIT_INIT_H
#define LR_INIT_INIT_H

#include <stdbool.h>
#include <sys/types.h>

#include "libocispec/config.h"
#include "libocispec/state.h"
#include "src/base/arena.h"
#include "src/base/err.h"
#include "src/cgroup/cgroup.h"
#include "src/hook/hook.h"
#include "src/init/process.h"
#include "src/lean/lean.h"
#include "src/ns/ns.h"
#include "src/sysctl/sysctl.h"
#include "src/tree/tree.h"

/* Births in the caller's memory; see shared.h. */
struct lr_init_shared {
	void *stack; /* of the child until its execve: lowest address; NULL: below the caller's */
	size_t stack_size;
	/* In the child: writes its pid, and later that its program starts, into the record.
	 * *ignored: the signals that it ignores, as lr_proc_stat says. */
	int (*record)(void *arg, pid_t pid, bool starts, uint64_t *ignored, struct lr_err *err);
	void *arg;
	/* The caller has blocked all signals that others may send, and has no handler for the rest: none
	 * can run in the child. */
	bool blocked;
};

struct lr_init_plan {
	struct lr_init_process process;
	struct lr_ns_plan ns;
	struct lr_tree tree;
	struct lr_cgroup_plan *cgroup;
	struct lr_sysctl_plan sysctl;
	const char *hostname, *domainname;
	const struct oci_hooks *hooks; /* NULL: none */
	struct lr_hook_opts hook_opts;
	struct oci_state state; /* for hooks and agents; status and pid are filled in here */
	struct lr_arena *arena; /* for the state text */
	/* For a birth in the caller's memory, which lr_init_alone has to allow; NULL: it has a
	 * memory of its own from the start. */
	struct lr_init_shared *shared;
	/* What was prepared for it. Nothing: NULL, or descriptors that are LR_NOFD. */
	struct lr_lean_enter *lean;
	/* create: init waits for a byte from `go`, and tells by `answer` what goes wrong after
	 * that. LR_NOFD: run, by the sync socket. */
	int go, answer;
	/* What else the parent does to the child before it goes on (network devices, cache
	 * allocation); NULL: nothing, and then nobody waits. */
	int (*parent_work)(void *arg, pid_t child, struct lr_err *err);
	void *work_arg;
	/* The child joins its cgroup when something needs that, and not first thing. What it makes
	 * until then is charged to the runtime, so a container starts within a smaller memory
	 * limit. */
	bool cgroup_late;
};

/* The parent's view of a newborn. */
struct lr_init_child {
	pid_t pid;
	int pidfd; /* LR_NOFD where the kernel has none */
	int sync;
	int go;              /* tells a stub to execute the program, or LR_NOFD */
	const char *program; /* that a stub executes; NULL: without a stub */
	bool alone;          /* born in the caller's memory: it is in the record already */
	bool runs;           /* and its program was executed */
	bool check;          /* lr_init_start asks whether it died instead */
	bool filtered;       /* a seccomp filter may be why */
	const struct lr_init_seed *seed; /* that it continues; NULL: none */
	int report;                      /* where the seed's restorer tells */
};
#define LR_INIT_CHILD_NONE                                                                         \
	{                                                                                          \
		.pidfd = LR_NOFD, .sync = LR_NOFD, .go = LR_NOFD, .report = LR_NOFD                \
	}

/* Whether the child may be in our memory. It has to do everything up to its program, or up to a
 * page that waits, without us; and it must not write files' contents, which would be charged to our
 * cgroup. */
bool lr_init_alone(const struct lr_init_plan *p);

/*
 * Clones the container's first process; it starts on its own until it needs the parent. On failure
 * no process is left.
 */
int lr_init_spawn(struct lr_init_plan *p, struct lr_init_child *ret,
		  struct lr_err *err) LR_MUST_CHECK;

/*
 * What the parent has to do between clone and READY: id maps, network devices, hooks, the seccomp
 * agent. Returns when the child is READY (create) or may be started (run). The child is still there
 * on failure: lr_init_abort.
 */
int lr_init_attend(struct lr_init_plan *p, struct lr_init_child *c,
		   struct lr_err *err) LR_MUST_CHECK;

/* Lets the program start; returns when it has, or why it did not. Does nothing for a child that
 * runs. Not after create: `start` does it. */
int lr_init_start(struct lr_init_child *c, struct lr_err *err) LR_MUST_CHECK;

/*
 * After the end of file of the descriptor that tells: 0 if the process has executed its program, or
 * -EPIPE with the words if it died before. If its parent has waited for it meanwhile, 0: nobody can
 * know. start_time: of the process, in clock ticks since boot. program: that a stub was to execute,
 * or NULL. filtered: a seccomp filter may be why.
 */
int lr_init_check_executed(pid_t pid, uint64_t start_time, const char *program, bool filtered,
			   struct lr_err *err) LR_MUST_CHECK;

/* Kills and reaps. */
void lr_init_abort(struct lr_init_child *c);
void lr_init_child_close(struct lr_init_child *c);

#define LR_INIT_NAMESPACES 8

/* exec: where to go. */
struct lr_init_exec {
	struct lr_init_process process;
	/* lr_init_visit: what to do in there instead of becoming a process */
	int (*visit)(void *arg, struct lr_err *err);
	void *visit_arg;
	pid_t pid;           /* the container's init, for messages and where there are no pidfds */
	uint64_t start_time; /* tells it from a later process of that number */
	int pidfd;           /* of that process; the caller closes it. LR_NOFD: by /proc */
	unsigned namespaces; /* CLONE_NEW* of the container to enter */
	int ns[LR_INIT_NAMESPACES];         /* of lr_init_exec: namespaces opened by /proc */
	const struct lr_cgroup_ref *cgroup; /* NULL: none */
	struct lr_init_shared *shared;      /* as for lr_init_plan; nothing is recorded */
	struct lr_cgroup_join join;
	struct oci_state state; /* for a seccomp agent */
	struct lr_arena *arena;
};

/* Clones a process into the container. It waits for lr_init_start. */
int lr_init_exec(struct lr_init_exec *p, struct lr_init_child *ret,
		 struct lr_err *err) LR_MUST_CHECK;
/*
 * Sends a visitor into the container's namespaces, which does p->visit there as their root, with
 * every capability, and in no cgroup of the container's. Returns when that is done, with its error.
 */
int lr_init_visit(struct lr_init_exec *p, struct lr_err *err) LR_MUST_CHECK;
/* The parent's part, between lr_init_exec and lr_init_start. */
int lr_init_exec_attend(struct lr_init_exec *p, struct lr_init_child *c,
			struct lr_err *err) LR_MUST_CHECK;

#endif
