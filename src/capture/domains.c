/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture: domains of Landlock. Nothing tells of them, and no child would be in its parent's.
 *
 * But each domain is within the last one, and the kernel lets nobody go deeper than so far: who comes to that end sooner
 * than we do is in one that we are not in. That is tried in the twin, which ends soon, when the process runs on. What
 * another thread than the leader has done to itself alone is not seen.
 */
#define LR_ROOM "capture"
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/str.h"
#include "src/capture/state.h"
#include "src/sys/proc.h"

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_restrict_self  446
#endif

/* Linux 5.13; since 5.19, 16. */
#define DEEPEST 64
#define FAILED  (DEEPEST + 1) /* plus the errno */

/* struct landlock_ruleset_attr of Linux 5.13, with LANDLOCK_ACCESS_FS_EXECUTE: what it is does not matter. */
static const uint64_t rules = 1;

static _Noreturn void count_and_end(void)
{
	int n = 0;

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	const long fd = syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0);
	if (fd < 0)
		_exit(errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM ? 0
									       : FAILED + errno);
	while (n < DEEPEST && syscall(SYS_landlock_restrict_self, fd, 0) == 0)
		n++;
	_exit(n == DEEPEST || errno == E2BIG ? n : FAILED + errno);
}

/* How far a process of ours can go. 0: the kernel has no Landlock, or we may not use it. */
static int depth_of_ours(struct lr_err *err)
{
	LR_CLEANUP_WAITING const bool waiting = lr_proc_waiting();
	int status = 0;
	const pid_t pid = fork();

	if (pid < 0)
		return lr_fail(err, errno, "fork to try out Landlock");
	if (pid == 0)
		count_and_end();
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return lr_fail(err, errno, "wait for who tried out Landlock");
	if (!WIFEXITED(status))
		return lr_refuse(err, EIO, "a process that tried out Landlock was killed");
	const int n = WEXITSTATUS(status);
	return n < FAILED ? n : lr_fail(err, n - FAILED, "try out Landlock");
}

/* Each call is watched: the process runs by now, and may write to the memory of its twin, but it can't change what the
 * kernel says of a call. */
static int call(const struct cap_process *p, const struct lr_trace_process *twin,
		struct lr_trace_call *calls, size_t n, struct lr_err *err)
{
	uint8_t buffer[LR_TRACE_BUFFER] = {0};
	const struct lr_trace_work work = {.calls = calls, .n = n, .buffer = buffer};

	memcpy(buffer, &rules, sizeof(rules));
	return lr_trace_calls(twin, p->twin, &work, err);
}

/* After something else. *ret: the descriptor, or what the kernel says instead. */
static int make_rules(const struct cap_process *p, const struct lr_trace_process *twin,
		      struct lr_trace_call before, int64_t *ret, struct lr_err *err)
{
	struct lr_trace_call calls[] = {
		before,
		{.nr = SYS_landlock_create_ruleset, .args = {0, sizeof(rules)}, .relative = 1},
	};

	int r = call(p, twin, calls, LR_ARRAY_SIZE(calls), err);
	*ret = calls[1].ret;
	return r;
}

/* Its process has all the descriptors that it may have. The twin needs none of them; but its limits are read later. */
static int make_rules_in_place(const struct cap_process *p, const struct lr_trace_process *twin,
			       int64_t *ret, struct lr_err *err)
{
	const struct lr_trace_call close_first = {.nr = SYS_close, .args = {0}};
	struct rlimit was;

	if (prlimit(p->twin, RLIMIT_NOFILE, NULL, &was) < 0)
		return lr_fail(err, errno, "read the limits of process %d", p->pid);
	const struct rlimit one = {1, was.rlim_max ? was.rlim_max : 1};
	if (!was.rlim_cur && prlimit(p->twin, RLIMIT_NOFILE, &one, NULL) < 0)
		return 0; /* which is told of */
	int r = make_rules(p, twin, close_first, ret, err);
	if (!was.rlim_cur && prlimit(p->twin, RLIMIT_NOFILE, &was, NULL) < 0)
		return lr_fail(err, errno, "set the limits of process %d back", p->pid);
	return r;
}

/* What the kernel says to the last of that many steps: below 0, it is not made. */
static int go_down(const struct cap_process *p, const struct lr_trace_process *twin, int steps,
		   int64_t *ret, struct lr_err *err)
{
	const struct lr_trace_call nnp = {.nr = SYS_prctl, .args = {PR_SET_NO_NEW_PRIVS, 1}};
	struct lr_trace_call calls[DEEPEST];

	int r = make_rules(p, twin, nnp, ret, err);
	if (r >= 0 && *ret == -EMFILE)
		r = make_rules_in_place(p, twin, ret, err);
	const int64_t fd = *ret;
	if (r < 0 || fd < 0)
		return r;
	for (int i = 0; i < steps; i++)
		calls[i] = (struct lr_trace_call){.nr = SYS_landlock_restrict_self,
						  .args = {(uint64_t)fd}};
	r = call(p, twin, calls, (size_t)steps, err);
	*ret = calls[steps - 1].ret;
	return r;
}

static int refuse_domain(struct cap *c, const struct cap_process *p, int steps, struct lr_err *err)
{
	struct lr_trace_process twin;
	int64_t said = 0;

	int r = lr_trace_open_twin(&p->trace, p->twin, &twin, err);
	if (r < 0)
		return r;
	r = go_down(p, &twin, steps, &said, err);
	lr_trace_close(&twin);
	if (r >= 0 && said == -E2BIG)
		cap_refuse(c, p, "a domain of Landlock (landlock_restrict_self(2))");
	else if (r >= 0 && said < 0)
		cap_refuse(c, p, "whether it is in a domain of Landlock can't be told: %s",
			   lr_strerror((int)-said));
	return r;
}

int cap_domains_refuse(struct cap *c, struct lr_err *err)
{
	const int steps = depth_of_ours(err);
	int r = steps;

	for (size_t i = 0; r >= 0 && steps > 0 && i < c->n; i++)
		if (c->p[i].lets.known)
			r = refuse_domain(c, &c->p[i], steps, err);
	return r;
}
