/* SPDX-License-Identifier: Apache-2.0 */
/* hook: reading what a hook prints, and its end; see hook.h. */
#define LR_ROOM "hook"
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/hook/internal.h"
#include "src/sys/syscalls.h"

#define NO_PIDFD_POLL_MS 10
/* What a pipe can hold when its writer is gone; a process the hook left behind may go on writing,
 * so reading to the end has no end. */
#define DRAIN_MAX  (1 << 20)
#define KILL_MS    10000 /* SIGKILL does not reach a process stuck in the kernel at once */
#define KEEP_BYTES (sizeof(((struct lr_hook_output *)0)->buf) - 1)

/* Appends, and forgets the oldest. */
static void keep(struct lr_hook_output *o, const char *text, size_t n)
{
	if (n >= KEEP_BYTES) {
		memcpy(o->buf, text + n - KEEP_BYTES, KEEP_BYTES);
		o->n = KEEP_BYTES;
		return;
	}
	if (o->n + n > KEEP_BYTES) {
		size_t drop = o->n + n - KEEP_BYTES;
		memmove(o->buf, o->buf + drop, o->n - drop);
		o->n -= drop;
	}
	memcpy(o->buf + o->n, text, n);
	o->n += n;
}

/* Reads what is there now. Bytes; 0 at the end of it. */
static ssize_t take(struct lr_hook_output *o)
{
	char buf[8192];
	ssize_t n = read(o->fd, buf, sizeof(buf));

	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 1 : 0;
	keep(o, buf, (size_t)n);
	if (o->tee_fd >= 0 && n > 0 && lr_write_full(o->tee_fd, buf, (size_t)n) < 0)
		o->tee_fd = LR_NOFD; /* nobody listens: that is not the hook's failure */
	if (n == 0)
		o->fd = LR_NOFD; /* the caller owns and closes it */
	return n;
}

static void drain(struct lr_hook_output *o)
{
	for (ssize_t total = 0; o->fd >= 0 && total < DRAIN_MAX;) {
		struct pollfd p = {.fd = o->fd, .events = POLLIN};
		if (poll(&p, 1, 0) <= 0)
			return;
		total += take(o);
	}
}

/* 1: it is reaped; 0: it runs; or -errno. */
static int reap(struct lr_hook_job *job, int flags)
{
	for (;;) {
		pid_t r = waitpid(job->pid, &job->status, flags);
		if (r == job->pid)
			return 1;
		if (r == 0)
			return 0;
		if (errno != EINTR)
			return -errno;
	}
}

/* The first to come: it ended (1), the deadline passed (0), or -errno. Reads its output
 * meanwhile. */
static int watch(struct lr_hook_job *job, struct lr_hook_output *o, int64_t deadline)
{
	for (;;) {
		struct pollfd p[2] = {
			{.fd = job->pidfd, .events = POLLIN},
			{.fd = o->fd, .events = POLLIN},
		};
		int64_t left = deadline < 0 ? -1 : deadline - lr_now_ms();
		if (deadline >= 0 && left <= 0)
			return 0;
		if (job->pidfd < 0 && (left < 0 || left > NO_PIDFD_POLL_MS))
			left = NO_PIDFD_POLL_MS;
		int n = poll(p, 2, left > INT_MAX ? INT_MAX : (int)left);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0 && p[1].revents)
			take(o);
		if (job->pidfd < 0 || (n > 0 && p[0].revents)) {
			int r = reap(job, __WALL | (job->pidfd < 0 ? WNOHANG : 0));
			if (r != 0)
				return r;
		}
	}
}

/* Ends all of it. The pid is still ours: it has not been reaped. */
static int end(struct lr_hook_job *job, struct lr_hook_output *o)
{
	kill(-job->pid, SIGKILL);
	kill(job->pid, SIGKILL);
	return watch(job, o, lr_now_ms() + KILL_MS);
}

int lr_hook_wait(struct lr_hook_job *job, struct lr_hook_output *o)
{
	int64_t deadline = -1;

	if (job->error) { /* it never ran: only to be reaped */
		int r = reap(job, __WALL);
		return r < 0 ? r : 0;
	}
	if (job->hook->timeout)
		deadline = lr_now_ms() + (int64_t)*job->hook->timeout * 1000;
	int r = watch(job, o, deadline);
	if (r < 0) {
		(void)end(job, o);
		return r;
	}
	if (r == 0) {
		job->timed_out = true;
		r = end(job, o);
		return r < 0 ? r : 0;
	}
	drain(o);
	return 0;
}
