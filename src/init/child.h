/* SPDX-License-Identifier: Apache-2.0 */
/* init: the child's side of the birth of a container; internal to src/init. */
#ifndef LR_INIT_CHILD_H
#define LR_INIT_CHILD_H

#include <stdint.h>

#include "src/init/init.h"

/* What the child was given at clone. */
struct lr_child {
	struct lr_init_plan *plan;
	struct lr_ns_fds *ns;
	struct lr_becoming becoming; /* becoming.sync is the child's end */
	uint64_t signals;            /* to be reset */
	bool in_cgroup;              /* born in the v2 cgroup, or moved by the process in between */
	bool joined;                 /* in all its cgroups */
	bool staged;                 /* the process in between has joined its cgroups for it */
	pid_t host_pid;              /* for hooks; 0 until told */
	struct lr_vm_birth *vm;      /* NULL: a process of its own */
};

void lr_child_init(struct lr_child *c, struct lr_init_plan *p, struct lr_ns_fds *ns, int sync);
/* What lr_init_start needs to know. */
void lr_init_child_knows(struct lr_init_child *c, const struct lr_init_process *p);
/* Parent: waits until the program was executed, and no longer by the stub. */
int lr_init_executed(const struct lr_init_process *p, const struct lr_becoming *b,
		     struct lr_init_child *c, struct lr_err *err) LR_MUST_CHECK;

/*
 * Parent: waits for what a child has to say, or for the end of file that says it has executed its
 * program; then also without that end, if others keep the descriptor open. > 0: there is something
 * to read; 0: nothing will be; -errno. start_time: as for lr_init_check_executed; 0: a child of
 * ours.
 */
int lr_init_wait_report(int fd, pid_t pid, uint64_t start_time) LR_MUST_CHECK;

/* True if the child waits for LR_STEP_MAPPED / sends LR_STEP_ROOTED. Both sides ask this. */
bool lr_child_waits_mapped(const struct lr_init_plan *p);
bool lr_child_sends_rooted(const struct lr_init_plan *p);

/* Parent, for init and exec: takes a filter's notification descriptor and gives it to the agent. */
int lr_init_pass_listener(const struct lr_seccomp_prog *prog, const struct oci_state *state,
			  const struct lr_init_child *c, struct lr_arena *a,
			  struct lr_err *err) LR_MUST_CHECK;

/* From clone to execve. Never returns. */
_Noreturn void lr_child_main(struct lr_child *c);

#endif
