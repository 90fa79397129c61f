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

/* Made once, as a great many threads are held in a row, with their container standing still. */
static struct way_out {
	pid_t of; /* whose timer it is: none of a fork's */
	timer_t timer;
	sigset_t but_timer; /* all other signals */
	volatile sig_atomic_t waits;
	sigjmp_buf to;
} out;

static void leave(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	if (out.waits && info->si_code == SI_TIMER && info->si_value.sival_ptr == &out)
		siglongjmp(out.to, 1);
}

/* Other processes of the same user, a container's among them, may use up what the user may have. */
static int make_raised(struct sigevent *e)
{
	const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
	struct rlimit was;

	if (errno != EAGAIN || getrlimit(RLIMIT_SIGPENDING, &was) < 0)
		return -errno;
	const struct rlimit most = {was.rlim_max, was.rlim_max};
	if (setrlimit(RLIMIT_SIGPENDING, &none) < 0)
		(void)setrlimit(RLIMIT_SIGPENDING, &most);
	const int r = timer_create(CLOCK_MONOTONIC, e, &out.timer) < 0 ? -errno : 0;
	(void)setrlimit(RLIMIT_SIGPENDING, &was);
	return r;
}

static int make(pid_t own)
{
	struct sigevent e = {.sigev_notify = SIGEV_THREAD_ID,
			     .sigev_signo = SIGRTMAX,
			     .sigev_value.sival_ptr = &out};
	struct sigaction leaves = {.sa_sigaction = leave, .sa_flags = SA_SIGINFO | SA_RESTART};

	e.sigev_notify_thread_id = own;
	sigfillset(&leaves.sa_mask);
	out.but_timer = leaves.sa_mask;
	sigdelset(&out.but_timer, SIGRTMAX);
	if (sigaction(SIGRTMAX, &leaves, NULL) < 0)
		return -errno;
	const int r = timer_create(CLOCK_MONOTONIC, &e, &out.timer) < 0 ? make_raised(&e) : 0;
	if (r >= 0)
		out.of = own;
	return r;
}

static int make_timer(struct lr_err *err)
{
	const pid_t own = gettid();
	const int r = out.of == own ? 0 : make(own);

	if (r >= 0)
		return 0;
	lr_fail(err, -r, "make a timer, to wait for a thread in bounded time");
	return lr_err_hint(err, "if its user's processes may have no more pending signals: raise "
				"RLIMIT_SIGPENDING (ulimit -i) of whoever makes the seed");
}

/* The timer's signal may come whenever it waits: then we may have become the tracer just before, and only a tracer's
 * call is heard. */
static int seize_or_leave(pid_t tid)
{
	const struct itimerspec patience = {.it_value.tv_sec = PATIENCE_S}, none = {0};

	if (sigsetjmp(out.to, 0)) {
		out.waits = false;
		return ptrace(PTRACE_INTERRUPT, tid, 0, 0) == 0 ? 0 : -ETIMEDOUT;
	}
	out.waits = true;
	if (timer_settime(out.timer, 0, &patience, NULL) < 0) {
		out.waits = false;
		return -errno;
	}
	const int r = ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD) < 0 ? -errno : 0;
	(void)timer_settime(out.timer, 0, &none, NULL);
	out.waits = false;
	return r;
}

int lr_trace_seize(pid_t tid, struct lr_err *err)
{
	sigset_t mask;

	int r = make_timer(err);
	if (r < 0)
		return r;
	sigprocmask(SIG_SETMASK, &out.but_timer, &mask);
	r = seize_or_leave(tid);
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
