/* SPDX-License-Identifier: Apache-2.0 */
/* capture: what ptrace(2) and its like tell of held threads. Nothing here changes them. */
#define LR_ROOM "capture"
#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/state.h"
#include "src/sys/syscalls.h"
#include "src/sys/vectors.h"

#ifndef NT_X86_XSTATE
#define NT_X86_XSTATE 0x202
#endif
#define GET_DISPATCH      0x4211 /* PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG, Linux 6.4 */
#define SCHED_IS_DEADLINE 6
#define UTIL_MOST         1024

/* ---- registers ------------------------------------------------------------------------------- */

/* The kernel's struct rseq_cs, and where struct rseq points to it. */
struct critical {
	uint32_t version, flags;
	uint64_t start, length, abort;
};
#define RSEQ_CS 8

/*
 * A thread within a critical section of rseq(2) goes on at its abort handler, as after any
 * interruption: the kernel looks at that when it next returns to the program, but from where our
 * calls are made it sees no section.
 */
static void leave_critical(const struct cap_process *p, struct cap_thread *t,
			   struct user_regs_struct *regs)
{
	struct critical cs;
	uint64_t at = 0;

	if (!t->seed.rseq ||
	    pread(p->trace.memfd, &at, sizeof(at), (off_t)(t->seed.rseq + RSEQ_CS)) != sizeof(at) ||
	    !at || pread(p->trace.memfd, &cs, sizeof(cs), (off_t)at) != sizeof(cs))
		return;
	if (regs->rip - cs.start < cs.length)
		regs->rip = cs.abort;
}

static int take_rseq(struct cap_thread *t, struct lr_err *err)
{
	struct __ptrace_rseq_configuration conf = {0};

	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, t->tid, sizeof(conf), &conf) < 0)
		return errno == EIO || errno == EINVAL
			       ? 0
			       : lr_fail(err, errno, "read rseq of thread %d", t->tid);
	t->seed.rseq = conf.rseq_abi_pointer;
	t->seed.rseq_size = conf.rseq_abi_pointer ? conf.rseq_abi_size : 0;
	t->seed.rseq_signature = conf.signature;
	return 0;
}

/*
 * What was interrupted, the child does again from its arguments. So it is for a call that would go
 * on by restart_syscall(2), too, as nanosleep(2): what the kernel keeps for that can't be carried,
 * and a call that takes longer is better than an EINTR that no signal explains.
 */
static void settle_for_child(const struct cap_thread *t, struct user_regs_struct *regs)
{
	uint64_t nr = cap_restart_is(&t->again, regs) ? t->again.nr : regs->orig_rax;

	lr_trace_settle(regs, LR_TRACE_RESTART);
	if (regs->rax == SYS_restart_syscall && nr != SYS_restart_syscall && (int64_t)nr >= 0)
		regs->rax = nr;
	regs->orig_rax = UINT64_MAX;
}

static int take_regs(const struct cap_process *p, struct cap_thread *t, struct lr_err *err)
{
	struct user_regs_struct regs;

	_Static_assert(sizeof(regs) == sizeof(t->seed.regs), "as ptrace has them");
	int r = lr_trace_get_regs(t->tid, &regs, err);
	if (r < 0)
		return r;
	uint64_t rip = regs.rip;
	leave_critical(p, t, &regs);
	if (regs.rip != rip) {
		r = lr_trace_set_regs(t->tid, &regs, err);
		if (r < 0)
			return r;
	}
	settle_for_child(t, &regs);
	memcpy(t->seed.regs, &regs, sizeof(regs));
	return 0;
}

static int take_xsave(struct cap *c, struct cap_thread *t, struct lr_err *err)
{
	uint8_t area[LR_SEED_XSAVE];
	struct iovec iov = {area, sizeof(area)};

	if (ptrace(PTRACE_GETREGSET, t->tid, NT_X86_XSTATE, &iov) < 0)
		return lr_fail(err, errno, "read the vector registers of thread %d", t->tid);
	t->xsave = lr_alloc(c->a, iov.iov_len);
	if (!t->xsave)
		return lr_fail(err, ENOMEM, "read the vector registers of thread %d", t->tid);
	memcpy(t->xsave, area, iov.iov_len);
	t->xsave_size = iov.iov_len;
	return 0;
}

/* ---- signals --------------------------------------------------------------------------------- */

static int take_pending(struct cap *c, pid_t tid, uint32_t flags, struct lr_seed_signal **ret,
			size_t *n, struct lr_err *err)
{
	struct lr_seed_signal found[8];

	for (;;) {
		struct __ptrace_peeksiginfo_args args = {*n, flags, LR_ARRAY_SIZE(found)};
		long got = ptrace(PTRACE_PEEKSIGINFO, tid, &args, found);
		if (got < 0)
			return lr_fail(err, errno, "read the pending signals of thread %d", tid);
		for (long i = 0; i < got; i++) {
			int32_t sig;
			memcpy(&sig, found[i].info, sizeof(sig));
			if (sig == SIGKILL || sig == SIGSTOP)
				return lr_refuse(err, EAGAIN, "thread %d is about to stop", tid);
			struct lr_seed_signal *v = lr_grow(c->a, *ret, *n, sizeof(*v));
			if (!v)
				return lr_fail(err, ENOMEM, "read pending signals");
			*ret = v;
			v[(*n)++] = found[i];
		}
		if (!got)
			return 0;
	}
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void settle_keys(struct cap *c, const struct cap_process *p, struct cap_thread *t)
{
	uint32_t pkru;

	if (!lr_vectors_pkru(t->xsave, t->xsave_size, &pkru))
		return;
	/* It was just executed, and gets them when it runs: the kernel tells 0, which is all rights. */
	if (!lr_vectors_used(t->xsave))
		pkru = LR_VECTORS_NEW_PKRU;
	/* Older kernels, as 5.15, tell them, and do not say so in the header. */
	lr_vectors_set_pkru(t->xsave, pkru);
	if (pkru & 3) /* our calls need it */
		cap_refuse(c, p,
			   "thread %u has closed ordinary memory to itself (protection key 0; "
			   "PKRU is 0x%x)",
			   t->seed.tid, pkru);
}

/* struct ptrace_sud_config of <linux/ptrace.h>. */
struct dispatch {
	uint64_t mode, selector, offset, length;
};

/* What ptrace(2) tells, and cannot be carried. */
static void refuse_traced(struct cap *c, const struct cap_process *p, const struct cap_thread *t)
{
	struct dispatch d = {0};

	/* An older kernel does not tell. */
	if (ptrace(GET_DISPATCH, t->tid, sizeof(d), &d) == 0 && d.mode)
		cap_refuse(c, p,
			   "thread %u has its system calls dispatched "
			   "(PR_SET_SYSCALL_USER_DISPATCH)",
			   t->seed.tid);
	errno = 0;
	const long control = ptrace(PTRACE_PEEKUSER, t->tid,
				    offsetof(struct user, u_debugreg) + 7 * sizeof(long), NULL);
	/* DR7: two bits for each of the four switch it on. */
	if (!errno && control & 0xff)
		cap_refuse(c, p, "thread %u has breakpoints in its debug registers", t->seed.tid);
}

static void refuse_scheduling(struct cap *c, const struct cap_process *p,
			      const struct cap_thread *t, const struct lr_sched_attr *a)
{
	/* A thread of real time begins with the most for both, others with 0 and the most. */
	const bool clamped =
		(a->util_min && a->util_min != UTIL_MOST) ||
		(a->util_max && a->util_max != UTIL_MOST) ||
		(a->util_min == UTIL_MOST && a->policy != SCHED_FIFO && a->policy != SCHED_RR);

	if (a->policy == SCHED_IS_DEADLINE)
		cap_refuse(c, p, "thread %u is scheduled by deadlines", t->seed.tid);
	if (clamped)
		cap_refuse(c, p, "thread %u has a utilization clamp (sched_setattr(2))",
			   t->seed.tid);
}

static int take_scheduling(struct cap *c, const struct cap_process *p, struct cap_thread *t,
			   struct lr_err *err)
{
	struct lr_sched_attr a = {0};
	char path[40], *text;
	size_t size;

	if (syscall(SYS_sched_getattr, t->tid, &a, sizeof(a), 0) < 0)
		return lr_fail(err, errno, "read the scheduling of thread %d", t->tid);
	refuse_scheduling(c, p, t, &a);
	t->seed.policy = a.policy;
	t->seed.priority = a.priority;
	t->seed.nice = a.nice;
	t->seed.sched_flags = (uint32_t)a.flags;
	snprintf(path, sizeof(path), "/proc/%d/timerslack_ns", t->tid);
	if (cap_read_all(c->a, path, &text, &size, NULL) == 0)
		t->seed.timer_slack = strtoull(text, NULL, 10);
	return 0;
}

static int take_thread(struct cap *c, struct cap_process *p, struct cap_thread *t,
		       struct lr_err *err)
{
	size_t len = 0;
	void *head = NULL;

	int r = take_rseq(t, err);
	if (r >= 0)
		r = take_regs(p, t, err);
	if (r >= 0)
		r = take_xsave(c, t, err);
	if (r < 0)
		return r;
	if (ptrace(PTRACE_GETSIGMASK, t->tid, sizeof(t->seed.mask), &t->seed.mask) < 0)
		return lr_fail(err, errno, "read the signal mask of thread %d", t->tid);
	r = take_pending(c, t->tid, 0, &t->pending, &t->n_pending, err);
	if (r < 0)
		return r;
	if (syscall(SYS_get_robust_list, t->tid, &head, &len) < 0)
		return lr_fail(err, errno, "read the robust list of thread %d", t->tid);
	t->seed.robust_list = (uintptr_t)head;
	t->seed.robust_size = len;
	refuse_traced(c, p, t);
	settle_keys(c, p, t);
	return take_scheduling(c, p, t, err);
}

int cap_threads_take(struct cap *c, struct cap_process *p, struct lr_err *err)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < p->n_threads; i++)
		r = take_thread(c, p, &p->threads[i], err);
	return r < 0 ? r
		     : take_pending(c, p->pid, PTRACE_PEEKSIGINFO_SHARED, &p->pending,
				    &p->n_pending, err);
}
