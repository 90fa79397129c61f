/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace: to become the tracer of a thread, in bounded time.
 *
 * PTRACE_SEIZE waits for whoever executes a program in that process until the program begins, which it may never do: it
 * needs no right to see to it that one of its threads does not come to its end. The kernel begins the wait again after
 * each signal's handler (ERESTARTNOINTR), so the handler of a timer's jumps out of it. All other signals are blocked
 * for that while, lest their handlers be left half done.
 */
#define LR_ROOM "trace"
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "src/trace/hold.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define PATIENCE_S 3

static struct way_out {
	struct itimerspec wait;
	timer_t timer;
	sigset_t all, but_timer;
	sigjmp_buf to;
} out;

/* Only the thread that waits gets the timer's; another one may have that signal by its own choice. */
static void leave(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	if (info->si_code == SI_TIMER && info->si_value.sival_ptr == &out)
		siglongjmp(out.to, 1);
}

/* With all signals blocked before and after. */
static int seize_or_leave(pid_t tid)
{
	/* The timer's may come when we have just become its tracer: only a tracer's call is heard. */
	if (sigsetjmp(out.to, 0))
		return ptrace(PTRACE_INTERRUPT, tid, 0, 0) == 0 ? 0 : -ETIMEDOUT;
	if (timer_settime(out.timer, 0, &out.wait, NULL) < 0)
		return -errno;
	sigprocmask(SIG_SETMASK, &out.but_timer, NULL);
	const int r = ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD) < 0 ? -errno : 0;
	sigprocmask(SIG_SETMASK, &out.all, NULL);
	return r;
}

/* Other processes of the same user, a container's among them, may use up what the user may have. */
static int make_timer(struct rlimit *raised)
{
	struct sigevent e = {.sigev_notify = SIGEV_THREAD_ID,
			     .sigev_signo = SIGRTMAX,
			     .sigev_value.sival_ptr = &out};

	e.sigev_notify_thread_id = gettid();
	if (timer_create(CLOCK_MONOTONIC, &e, &out.timer) == 0)
		return 0;
	if (errno != EAGAIN || getrlimit(RLIMIT_SIGPENDING, raised) < 0)
		return -errno;
	const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
	const struct rlimit most = {raised->rlim_max, raised->rlim_max};
	if (setrlimit(RLIMIT_SIGPENDING, &none) < 0)
		(void)setrlimit(RLIMIT_SIGPENDING, &most);
	const int r = timer_create(CLOCK_MONOTONIC, &e, &out.timer) < 0 ? -errno : 0;
	(void)setrlimit(RLIMIT_SIGPENDING, raised);
	return r;
}

static int no_timer(int r, struct lr_err *err)
{
	lr_fail(err, -r, "make a timer, to wait for a thread in bounded time");
	return lr_err_hint(err, "the user's processes may have no more pending signals: raise "
				"RLIMIT_SIGPENDING (ulimit -i) of whoever makes the seed");
}

int lr_trace_seize(pid_t tid, struct lr_err *err)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct sigaction leaves = {.sa_sigaction = leave, .sa_flags = SA_SIGINFO}, action;
	struct rlimit raised;
	sigset_t mask;

	sigfillset(&out.all);
	out.but_timer = leaves.sa_mask = out.all;
	sigdelset(&out.but_timer, SIGRTMAX);
	out.wait.it_value.tv_sec = PATIENCE_S;
	int r = make_timer(&raised);
	if (r < 0)
		return no_timer(r, err);
	sigprocmask(SIG_SETMASK, &out.all, &mask);
	sigaction(SIGRTMAX, &leaves, &action);
	r = seize_or_leave(tid);
	timer_delete(out.timer);
	/* Takes back one of the timer's that still waits. */
	sigaction(SIGRTMAX, &ignore, NULL);
	sigaction(SIGRTMAX, &action, NULL);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	if (r == -ETIMEDOUT) {
		lr_refuse(err, EBUSY,
			  "the process of thread %d executes a program that does not begin", tid);
		return lr_err_hint(
			err, "does one of its threads not end, as one that is traced, or is the "
			     "program where nobody answers?");
	}
	return r < 0 ? lr_fail(err, -r, "hold thread %d", tid) : 0;
}
