/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init: whether a child has executed its program.
 *
 * A descriptor that execve closes tells; but death closes it, too. Of a process that dies, the
 * kernel shows until it is waited for, and from before it closes anything, that it is dying,
 * whether it has executed anything since its birth, and the name of what it executed last. So a
 * child that a filter, a lack of memory or somebody has killed is never taken for one whose program
 * runs.
 */
#define LR_ROOM "init"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/init/child.h"
#include "src/init/ends.h"
#include "src/init/program.h"
#include "src/init/sync.h"
#include "src/sys/proc.h"

/* The kernel names a process that executes descriptor N by N, or since Linux 6.14 by its file. */
static bool is_stub(const struct lr_proc_stat *st, const char *program)
{
	const char *slash = strrchr(program, '/');

	return strncmp(st->name, slash ? slash + 1 : program, sizeof(st->name) - 1) != 0 &&
	       (st->name[strspn(st->name, "0123456789")] == '\0' ||
		lr_streq(st->name, "memfd:" LR_STUB_NAME));
}

/* The signal that ended a child of ours, which is dying; 0: none, or not our child. */
static int ended_by(pid_t pid)
{
	siginfo_t info = {0};
	int r;

	do
		r = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | __WALL);
	while (r < 0 && errno == EINTR);
	return r == 0 && (info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED) ? info.si_status
										    : 0;
}

static int died(pid_t pid, bool filtered, struct lr_err *err)
{
	int sig = ended_by(pid);
	const char *name = sig ? lr_signal_name(sig) : NULL;

	if (sig)
		lr_refuse(
			err, EPIPE,
			"process %d was killed by signal %d (SIG%s) before it executed its program",
			pid, sig, name ? name : "?");
	else
		lr_refuse(err, EPIPE, "process %d died before it executed its program", pid);
	if (filtered && sig != SIGKILL)
		return lr_err_hint(err,
				   "%slinux.seccomp must allow execve and what loads a program",
				   sig ? "" : "was it killed, as for want of memory? see dmesg; ");
	return lr_err_hint(err, "%s", sig ? LR_SYNC_KILLED_HINT : LR_SYNC_DIED_HINT);
}

int lr_init_check_executed(pid_t pid, uint64_t start_time, const char *program, bool filtered,
			   struct lr_err *err)
{
	struct lr_proc_stat st;

	/* It is gone, or its pid is another's by now: then its parent has waited for it, and knows
	 * how it ended. */
	if (lr_proc_stat(pid, &st) < 0 || !st.dies || (start_time && start_time != st.start_time))
		return 0;
	return !st.executed || (program && is_stub(&st, program)) ? died(pid, filtered, err) : 0;
}

int lr_init_check_stub(const struct lr_init_child *c, struct lr_err *err)
{
	const uint32_t last = UINT32_C(1) << (LR_INIT_ENDS_LAST - 1);
	struct lr_proc_stat st;
	int r;

	/* A process that enters the container has to find the page hidden, and a signal has to end
	 * it. */
	while ((r = lr_proc_stat(c->pid, &st)) == 0 && !st.dies && !(st.caught & last))
		usleep(20);
	/* If we cannot look at it, that does not mean that it dies; and if it lives, we must not
	 * wait for its end. */
	if (r < 0 && r != -ESRCH)
		return lr_fail(err, -r, "look at the new process");
	return r < 0 || st.dies ? died(c->pid, c->filtered, err) : 0;
}

void lr_init_child_knows(struct lr_init_child *c, const struct lr_init_process *p)
{
	c->program = p->stub_argv ? p->argv[0] : NULL;
	c->filtered = p->seccomp;
	c->check = p->detached || p->seccomp;
}

static int start_apart(struct lr_init_child *c, struct lr_err *err)
{
	int r = lr_sync_tell(c->sync, LR_STEP_START, 0, err);

	if (r >= 0)
		r = lr_sync_wait_exec(c->sync, c->pid, 0, NULL, err);
	if (r >= 0 && c->check)
		r = lr_init_check_executed(c->pid, 0, c->program, c->filtered, err);
	c->sync = lr_close(c->sync);
	return r;
}

int lr_init_start(struct lr_init_child *c, struct lr_err *err)
{
	if (c->runs)
		return 0;
	if (c->seed)
		return lr_seed_start(c, err);
	if (!c->alone)
		return start_apart(c, err);
	/* The page waits. If it has died meanwhile, nobody reads this, which is found out below.
	 * Any other error comes to no more than that the page hears nothing. */
	int told = (int)lr_write_full(c->go, "", 1);
	c->go = lr_close(c->go);
	int r = lr_init_executed(c, err);
	return r < 0 && told < 0 && told != -EPIPE ? lr_fail(err, -told, "tell init to start") : r;
}

/* How long to wait for the end of file before looking what is executed. */
#define LOOK_MS 20

/* Whether that process will say nothing more: it has executed its program, or is gone. On a busy
 * machine it may not even have executed the page yet. */
static bool is_over(pid_t pid, uint64_t start_time)
{
	struct lr_proc_stat st;
	char path[40], exe[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	ssize_t len = readlink(path, exe, sizeof(exe) - 1);
	exe[len < 0 ? 0 : len] = '\0';
	if (lr_has_prefix(exe, "/memfd:" LR_STUB_NAME))
		return false;
	return lr_proc_stat(pid, &st) < 0 || st.executed || st.state == 'Z' ||
	       (start_time && start_time != st.start_time);
}

/*
 * The end of file comes when the child's descriptor is closed; but others may have a copy, and keep
 * it for ever: a process that another thread of the caller's has forked just now, or one of the
 * container's that may trace (pidfd_getfd). Then /proc tells.
 */
int lr_init_wait_report(int fd, pid_t pid, uint64_t start_time)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	for (;;) {
		int n = poll(&p, 1, LOOK_MS);
		if (n > 0 || (n < 0 && errno != EINTR))
			return n < 0 ? -errno : p.revents & POLLIN;
		if (n == 0 && is_over(pid, start_time))
			/* It may have reported an error and ended since the time was up. */
			return poll(&p, 1, 0) > 0 && (p.revents & POLLIN);
	}
}

int lr_init_executed(struct lr_init_child *c, struct lr_err *err)
{
	int32_t why = 0;
	ssize_t n = c->sync < 0 ? 0 : lr_init_wait_report(c->sync, c->pid, 0);

	/* One read: the page writes all of it at once. Somebody else who has found the pipe in
	 * /proc and writes less must not make us wait for the rest. */
	if (n > 0 && (n = read(c->sync, &why, sizeof(why))) < 0)
		n = -errno;
	c->sync = lr_close(c->sync);
	if (n < 0)
		return lr_fail(err, (int)-n, "wait for the program to be executed");
	if (n == sizeof(why))
		return lr_program_explain(c->program, why, err);
	if (c->check) {
		n = lr_init_check_executed(c->pid, 0, c->program, c->filtered, err);
		if (n < 0)
			return (int)n;
	}
	c->runs = true;
	return 0;
}
