/* SPDX-License-Identifier: Apache-2.0 */
/* trace: to stop threads and to let them go; see trace.h. */
#define LR_ROOM "trace"
#include "src/trace/hold.h"

#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/sys/proc.h"
#include "src/sys/syscalls.h"
#include "src/trace/trace.h"

/* The kernel's, for calls that are made again: they never leave it but to a tracer. */
#define ERESTARTSYS           512
#define ERESTARTNOINTR        513
#define ERESTARTNOHAND        514
#define ERESTART_RESTARTBLOCK 516
#define SYSCALL_INSTRUCTION   2 /* bytes */

#define PATIENCE_MS           3000
#define LONG_MS               30000
#define AT_ONCE               500 /* looks without a pause */

/* ---- twins that end ------------------------------------------------------------------------------ */

static struct {
	pid_t *v;
	size_t n, room;
} to_stop;

/* 1: it stands at the stop before its end; 0: at another one; or a negative errno. Tried twice: after one failed call
 * lr_trace_end_twin would wait for ever. */
static int ends(pid_t tid)
{
	siginfo_t info;

	for (unsigned i = 0; i < 2; i++)
		if (ptrace(PTRACE_GETSIGINFO, tid, 0, &info) == 0)
			return info.si_code >> 8 == PTRACE_EVENT_EXIT;
	return -errno;
}

/* Before Linux 5.15 its memory is not freed first. */
static void free_and_let_end(pid_t twin)
{
	LR_CLEANUP_FD int pidfd = lr_pidfd_open(twin, 0);

	if (pidfd >= 0)
		(void)lr_process_mrelease(pidfd);
	for (unsigned i = 0; i < 2; i++)
		if (ptrace(PTRACE_CONT, twin, 0, 0) == 0)
			return;
}

/* The thread that we wait for may itself wait for their memory. */
static void free_who_ends(void)
{
	for (size_t i = 0; i < to_stop.n; i++)
		if (ends(to_stop.v[i]) > 0)
			free_and_let_end(to_stop.v[i]);
}

void lr_trace_stop_at_end(pid_t twin)
{
	(void)ptrace(PTRACE_SETOPTIONS, twin, 0, PTRACE_O_EXITKILL | PTRACE_O_TRACEEXIT);
	if (to_stop.n == to_stop.room) {
		const size_t room = to_stop.room ? 2 * to_stop.room : 16;
		pid_t *v = realloc(to_stop.v, room * sizeof(*v));
		if (!v)
			return; /* its memory is freed when we end it */
		to_stop.v = v;
		to_stop.room = room;
	}
	to_stop.v[to_stop.n++] = twin;
}

static void await_end(pid_t twin)
{
	int status;
	pid_t r;

	do {
		/* We may have been told of that stop before. */
		if (ends(twin) > 0)
			free_and_let_end(twin);
		r = waitpid(twin, &status, __WALL);
	} while ((r < 0 && errno == EINTR) || (r > 0 && WIFSTOPPED(status)));
}

void lr_trace_end_twin(pid_t twin)
{
	/* A signal would wake one that stands before its end (before Linux 6.0). Whoever holds it needs no right to
	 * signal it; else it ends when we do. */
	if (ends(twin) > 0 || kill(twin, SIGKILL) == 0 || errno == ESRCH || lr_trace_end(twin) == 0)
		await_end(twin);
	for (size_t i = 0; i < to_stop.n; i++)
		if (to_stop.v[i] == twin)
			to_stop.v[i] = to_stop.v[--to_stop.n];
}

/* ---- to wait for a thread --------------------------------------------------------------------- */

/* Its own parent is told of its end when we have been. Where we are that parent, how it ended is for
 * whoever waits for our children. */
static void bury(pid_t tid)
{
	struct lr_proc_stat st = {0};
	int status, r = -EAGAIN;

	for (unsigned i = 0; i < 3 && r < 0 && r != -ESRCH; i++)
		r = lr_proc_stat(tid, &st);
	if (r == 0 && (st.ppid != getpid() || st.exit_signal <= 0))
		(void)waitpid(tid, &status, __WALL | WNOHANG);
}

int lr_trace_glance(pid_t tid, int *status, struct lr_err *err)
{
	siginfo_t info = {0};
	int r;

	do
		r = waitid(P_PID, (id_t)tid, &info, WSTOPPED | __WALL | WNOHANG);
	while (r < 0 && errno == EINTR);
	if (r < 0 && errno == ECHILD) {
		bury(tid);
		return lr_fail(err, ESRCH, "thread %d ended", tid);
	}
	if (r < 0)
		return lr_fail(err, errno, "wait for thread %d", tid);
	*status = (int)((unsigned)info.si_status << 8) | 0x7f; /* as of waitpid */
	return info.si_pid == tid;
}

/* Most stops are a moment away; then less and less often. -ETIMEDOUT without a word. */
static int wait_within(pid_t tid, int *status, int64_t ms, struct lr_err *err)
{
	struct timespec pause = {.tv_nsec = 5000};
	int64_t until = lr_now_ms() + ms;

	for (unsigned i = 0;; i++) {
		int r = lr_trace_glance(tid, status, err);
		if (r)
			return r < 0 ? r : 0;
		if (i < AT_ONCE) {
			sched_yield();
			continue;
		}
		if (lr_now_ms() > until)
			return -ETIMEDOUT;
		free_who_ends();
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < 1000000)
			pause.tv_nsec *= 2;
	}
}

/* What is ours does not take long; but a fork copies the tables of as much memory as there is. */
int lr_trace_wait_long(pid_t tid, int *status, struct lr_err *err)
{
	int r = wait_within(tid, status, PATIENCE_MS, err);

	/* The first process of a pid namespace that is killed waits for the others, and these for us. */
	if (r == -ETIMEDOUT && lr_proc_dies(tid))
		return lr_fail(err, ESRCH, "thread %d ends", tid);
	if (r == -ETIMEDOUT)
		r = wait_within(tid, status, LONG_MS - PATIENCE_MS, err);
	return r == -ETIMEDOUT ? lr_refuse(err, ETIMEDOUT, "thread %d does not come to an end", tid)
			       : r;
}

/* For one that may be where nothing stops it. */
static int wait_patiently(pid_t tid, int *status, struct lr_err *err)
{
	int r = wait_within(tid, status, PATIENCE_MS, err);

	if (r != -ETIMEDOUT)
		return r;
	lr_refuse(err, EBUSY, "thread %d does not stop", tid);
	return lr_err_hint(err, "does it wait for a child of vfork(2), or for a "
				"disk or network that does not answer?");
}

static int stop(pid_t tid, struct lr_err *err)
{
	int status, sig = 0;

	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0)
		return lr_fail(err, errno, "stop thread %d", tid);
	for (;;) {
		int r = wait_patiently(tid, &status, err);
		if (r < 0)
			return r;
		if (status >> 16 == PTRACE_EVENT_STOP)
			break;
		/* On its way to a signal: that comes first. */
		sig = WSTOPSIG(status);
		if (ptrace(PTRACE_CONT, tid, 0, sig) < 0)
			return lr_fail(err, errno, "continue thread %d", tid);
	}
	if (WSTOPSIG(status) != SIGTRAP) {
		lr_refuse(err, EBUSY, "thread %d is stopped by a signal", tid);
		return lr_err_hint(err, "continue it first: kill -CONT %d", tid);
	}
	return 0;
}

int lr_trace_hold(pid_t tid, struct lr_err *err)
{
	int r = lr_trace_seize(tid, err);
	/* Of one that ends just then the kernel says that it may not be traced. */
	if (r == -ESRCH || (r == -EPERM && lr_proc_dies(tid)))
		return lr_fail(err, ESRCH, "hold thread %d", tid);
	if (r == -EPERM)
		r = lr_fail(err, EBUSY, "hold thread %d", tid);
	if (r < 0)
		return lr_err_hint(err, "is it traced by a debugger, or are CAP_SYS_PTRACE and "
					"rights in its user namespace missing?");
	r = stop(tid, err);
	if (r < 0)
		lr_trace_let_go(tid);
	return r;
}

void lr_trace_let_go(pid_t tid)
{
	int status;

	for (unsigned i = 0; i < 2; i++)
		if (ptrace(PTRACE_DETACH, tid, 0, 0) == 0)
			return;
	/* It runs, and has to be stopped for that. */
	if (errno == ESRCH && ptrace(PTRACE_INTERRUPT, tid, 0, 0) == 0 &&
	    wait_patiently(tid, &status, NULL) == 0)
		ptrace(PTRACE_DETACH, tid, 0, 0);
}

int lr_trace_end(pid_t tid)
{
	return ptrace(PTRACE_KILL, tid, 0, 0) < 0 ? -errno : 0;
}

bool lr_trace_is_gone(pid_t tid)
{
	int status;

	return lr_trace_glance(tid, &status, NULL) < 0;
}

int lr_trace_check_held(pid_t tid, struct lr_err *err)
{
	const int r = ends(tid);

	return r ? lr_fail(err, r < 0 ? -r : ESRCH, "look at thread %d", tid) : 0;
}

int lr_trace_filter(pid_t tid, unsigned n, struct sock_filter *ret, size_t most)
{
	/* The kernel writes all of it, however much that is. */
	long size = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, (uintptr_t)n, NULL);

	if (size > (long)most)
		return -E2BIG;
	if (size >= 0)
		size = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, (uintptr_t)n, ret);
	return size < 0 ? -errno : (int)size;
}

int lr_trace_get_regs(pid_t tid, struct user_regs_struct *ret, struct lr_err *err)
{
	struct user_regs_struct regs;
	struct iovec iov = {&regs, sizeof(regs)};

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &iov) < 0)
		return lr_fail(err, errno, "read the registers of thread %d", tid);
	if (iov.iov_len != sizeof(regs) || regs.cs != 0x33)
		return lr_refuse(err, ENOTSUP, "thread %d runs 32-bit code", tid);
	*ret = regs;
	return 0;
}

int lr_trace_set_regs(pid_t tid, const struct user_regs_struct *regs, struct lr_err *err)
{
	struct user_regs_struct copy = *regs;
	struct iovec iov = {&copy, sizeof(copy)};

	if (ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &iov) < 0)
		return lr_fail(err, errno, "set the registers of thread %d", tid);
	return 0;
}

void lr_trace_settle(struct user_regs_struct *regs, enum lr_trace_resume how)
{
	if ((int64_t)regs->orig_rax < 0)
		return;
	switch (-(int64_t)regs->rax) {
	case ERESTARTNOINTR:
		break;
	case ERESTARTSYS:
	case ERESTARTNOHAND:
	case ERESTART_RESTARTBLOCK:
		if (how == LR_TRACE_RESTART)
			break;
		regs->rax = (uint64_t)-EINTR;
		regs->orig_rax = UINT64_MAX;
		return;
	default:
		regs->orig_rax = UINT64_MAX;
		return;
	}
	regs->rax = regs->rax == (uint64_t)-ERESTART_RESTARTBLOCK ? SYS_restart_syscall
								  : regs->orig_rax;
	regs->rip -= SYSCALL_INSTRUCTION;
	regs->orig_rax = UINT64_MAX;
}
