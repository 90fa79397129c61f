/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint: until a program is where its children shall go on (lean_seed_here(3)). */
#define LR_ROOM "checkpoint"
#include <errno.h>
#include <poll.h>

#include "src/base/clock.h"
#include "src/checkpoint/checkpoint.h"
#ifdef __x86_64__
#include "src/capture/capture.h"
#endif

/* A look costs as much as reading the list of its mappings: the longer it has taken, the longer it
 * may take. */
#define FIRST_MS 2
#define LAST_MS  50

#ifdef __x86_64__
/* Waits until the next look. -ECHILD: there is nobody to look at any more. */
static int pass(int pidfd, int ms, uint64_t end, struct lr_err *err)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	uint64_t now = (uint64_t)lr_now_ms();

	if (end && now >= end) {
		lr_refuse(err, ETIMEDOUT, "no process of it waits in lean_seed_here");
		return lr_err_hint(err,
				   "the program has to call that, by liblean-seed or the Python "
				   "module lean; man lean_seed_here");
	}
	if (end && end - now < (uint64_t)ms)
		ms = (int)(end - now);
	int n = poll(&p, 1, ms);
	if (n < 0 && errno != EINTR)
		return lr_fail(err, errno, "wait for the container");
	return n > 0 ? lr_refuse(err, ECHILD, "the container has ended before it was ready") : 0;
}

int lr_checkpoint_await(pid_t pid, int pidfd, uint64_t end, struct lr_err *err)
{
	for (int ms = FIRST_MS;; ms = ms < LAST_MS ? ms * 2 : LAST_MS) {
		int r = lr_capture_is_awaited(pid, err);
		if (r != 0)
			return r < 0 ? r : 0;
		r = pass(pidfd, ms, end, err);
		if (r < 0)
			return r;
	}
}
#else
int lr_checkpoint_await(pid_t pid, int pidfd, uint64_t end, struct lr_err *err)
{
	(void)pid;
	(void)pidfd;
	(void)end;
	return lr_refuse(err, ENOTSUP, "seeds are of x86-64");
}
#endif
