/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace: to hold threads of a process that goes on afterwards, and to have them make system calls.
 *
 * Whoever holds a thread may be killed at any moment, and then the thread runs on from where the
 * kernel has it. So a thread is never left in a state that it can't get out of by itself.
 * PTRACE_O_EXITKILL is never used on it. The code that makes the calls lies in the unused end of
 * the vDSO's last page, where nothing of the program is; it ends by giving back the memory it took,
 * the signal mask and every register, without anybody's help. A process that it forks ends. A call
 * that was interrupted is restarted by that code as the kernel would have done.
 *
 * What is left of us after a kill at any point is a changed end of the vDSO's page.
 */
#ifndef LR_TRACE_TRACE_H
#define LR_TRACE_TRACE_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "src/base/err.h"

/* Stops a thread. -ESRCH: it is gone. -EBUSY: it is stopped by a signal, or traced, or can't be
 * stopped (it waits for the child of its vfork(2)). */
int lr_trace_hold(pid_t tid, struct lr_err *err);
/* Lets it go on as if nothing had been; also what is not held any more. */
void lr_trace_let_go(pid_t tid);
/* Kills one that is held, also where a policy of the host's forbids signals to it. */
int lr_trace_end(pid_t tid);
/*
 * From now on a twin that is killed, by whomever, stops before its end until we have freed its memory: while we wait
 * for a thread, or in lr_trace_end_twin. Without that the kernel, short of memory, would no longer see that the twin
 * has it, and kill others. To be called when its process is let go: before that we ourselves may wait for its memory,
 * where we write to a process.
 */
void lr_trace_stop_at_end(pid_t twin);
/* Kills it, and waits for its end. */
void lr_trace_end_twin(pid_t twin);
/* Of one that is held, and was killed since: it is waited for, if it has come to its end. */
bool lr_trace_is_gone(pid_t tid);

/* Whether it still stands where it was stopped: -ESRCH as soon as it is killed. */
int lr_trace_check_held(pid_t tid, struct lr_err *err);

int lr_trace_get_regs(pid_t tid, struct user_regs_struct *ret, struct lr_err *err);
int lr_trace_set_regs(pid_t tid, const struct user_regs_struct *regs, struct lr_err *err);

/* What a thread that was stopped within a system call goes on with: the call again, or, because a
 * signal came, EINTR. */
enum lr_trace_resume { LR_TRACE_RESTART, LR_TRACE_INTERRUPTED };
void lr_trace_settle(struct user_regs_struct *regs, enum lr_trace_resume how);

/* A call that a held thread makes. Bit i of `relative`: args[i] counts from the start of a buffer
 * that the thread has during the calls. */
struct lr_trace_call {
	long nr;
	uint64_t args[6];
	uint8_t relative;
	int64_t ret;
};
#define LR_TRACE_CALLS  124
#define LR_TRACE_BUFFER 8192U

struct lr_trace_process {
	pid_t pid;
	int memfd;           /* /proc/PID/mem */
	uint64_t code, slot; /* in its memory */
	bool ours;           /* a twin: it ends with us */
};

/* vdso, vdso_end: where the process has it. -ENOTSUP: it has none, or there is no room in it. */
int lr_trace_open(pid_t pid, uint64_t vdso, uint64_t vdso_end, struct lr_trace_process *ret,
		  struct lr_err *err);
/* Of a twin (lr_trace_calls): it makes calls as a thread of its process, and never goes on. */
int lr_trace_open_twin(const struct lr_trace_process *of, pid_t twin, struct lr_trace_process *ret,
		       struct lr_err *err);
void lr_trace_close(struct lr_trace_process *p);

/*
 * -EAGAIN: the held thread is in the code that somebody had it run who was killed. Code and slot
 * are the process's, so all its threads have to be out of there before the first call; a moment
 * later they are.
 */
int lr_trace_check_free(const struct lr_trace_process *p, pid_t tid, struct lr_err *err);

struct lr_trace_work {
	struct lr_trace_call *calls;
	size_t n;
	/*
	 * So many of the first are made without a stop at each, under the thread's filters of
	 * seccomp(2): its filters let these calls through, and those of lr_trace_own. The others are
	 * watched: the filters are suspended, and each call is compared before the kernel makes it.
	 */
	size_t unwatched;
	void *buffer; /* LR_TRACE_BUFFER bytes, given and taken back */
	pid_t *twin;  /* may be NULL */
};
/* What the code calls by itself. */
#define LR_TRACE_OWN 5
extern const int lr_trace_own[LR_TRACE_OWN];

/*
 * The held thread makes the calls, one after the other, whatever they return. Afterwards it is
 * held as before, in the same call if it was in one. A clone(2) with signal 0, which has to be
 * watched, is a fork: *twin is the child, which is held, and ends if it isn't any more.
 */
int lr_trace_calls(const struct lr_trace_process *p, pid_t tid, const struct lr_trace_work *work,
		   struct lr_err *err);

/* Filter n of a held thread, the oldest first. Returns its instructions; -ENOENT: it has no such
 * one; -E2BIG: it has more than `most`. */
int lr_trace_filter(pid_t tid, unsigned n, struct sock_filter *ret, size_t most);

#endif
