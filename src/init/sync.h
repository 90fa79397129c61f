/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init: the rendezvous between the runtime (parent) and the process that becomes the container
 * (child).
 *
 * One SOCK_SEQPACKET pair, one datagram a step. Every step has a number and a name; each side says
 * which one it sends or waits for, and anything else is a protocol error, never a misunderstanding.
 * Instead of a step the child may send its struct lr_err: the parent's wait then returns it as its
 * own. A side that dies is seen as an end of file. Descriptors are never taken: the child works in
 * namespaces of others, and the parent trusts it as little as it can.
 *
 * Steps are only taken when the plan needs them (lr_child_waits_mapped and its like): a plain `run`
 * uses one.
 */
#ifndef LR_INIT_SYNC_H
#define LR_INIT_SYNC_H

#include <stdint.h>
#include <sys/types.h>

#include "src/base/err.h"

enum lr_step {
	LR_STEP_NONE,
	LR_STEP_CLONED, /* process in between -> parent: its sister's pid */
	LR_STEP_MAPPED, /* parent -> child: ids are mapped; the child's pid as the host sees it */
	LR_STEP_ROOTED, /* child -> parent: namespaces and mounts are there, root is not entered */
	LR_STEP_HOOKED, /* parent -> child: prestart and createRuntime hooks have run */
	LR_STEP_FILTER, /* child -> parent: seccomp's notification descriptor */
	LR_STEP_AGENT,  /* parent -> child: the agent has it */
	LR_STEP_RECORDED, /* parent -> child: its pid is in the record (create) */
	LR_STEP_READY,    /* child -> parent: everything is done but `start` */
	LR_STEP_START,    /* parent -> child: execute the program (run; `start` uses the fifo) */
	LR_STEPS
};

const char *lr_step_name(enum lr_step step);

/* sv[0]: the parent's end, sv[1]: the child's. Both close-on-exec. */
int lr_sync_pair(int sv[2], struct lr_err *err) LR_MUST_CHECK;

/* -EPIPE when the other side is gone. */
int lr_sync_send(int sock, enum lr_step step, int32_t value, struct lr_err *err) LR_MUST_CHECK;

/* Parent: the same; but if the child is gone, its own error comes before that. */
int lr_sync_tell(int sock, enum lr_step step, int32_t value, struct lr_err *err) LR_MUST_CHECK;

/* The same by write(2): under a filter that may refuse everything else. */
int lr_sync_write(int sock, enum lr_step step, int32_t value, struct lr_err *err) LR_MUST_CHECK;

/*
 * Waits for `step`; *value (may be NULL) receives what came along. Fails with the other side's
 * error if it sent one, -EPIPE if it died, -EPROTO if it says another step.
 */
int lr_sync_wait(int sock, enum lr_step step, int32_t *value, struct lr_err *err) LR_MUST_CHECK;

/* What to say of a child that has died before `step` without a word. Returns -EPIPE. */
int lr_sync_died(enum lr_step step, struct lr_err *err);
#define LR_SYNC_KILLED_HINT "see dmesg; a memory limit below 1 MB or so is too small to start in"
#define LR_SYNC_DIED_HINT   "was it killed? " LR_SYNC_KILLED_HINT

/* Child: the last thing it says before it gives up. Best effort. */
void lr_sync_send_err(int sock, const struct lr_err *why);

/* Child: names the program, as the page can only tell a number. Best effort. */
void lr_sync_send_program(int sock, const char *path);

/*
 * Parent: waits until the child has executed its program, seen as the end of file of a socket (or
 * the answer fifo) that is closed by execve. 0, or the error it sent. A child that died before
 * cannot be told apart here: see lr_init_check_executed. Where others keep the descriptor open,
 * /proc tells of `pid`, which started at `start_time` (0: a child of ours). program
 * (LR_SYNC_PROGRAM_SIZE, may be NULL): what a stub executes, or "".
 */
#define LR_SYNC_PROGRAM_SIZE sizeof(((struct lr_err *)0)->msg)
int lr_sync_wait_exec(int sock, pid_t pid, uint64_t start_time, char *program,
		      struct lr_err *err) LR_MUST_CHECK;

#endif
