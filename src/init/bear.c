/* SPDX-License-Identifier: Apache-2.0 */
/* init: the parent's side of the clone, whoever is born; see lr_bear in child.h. */
#define LR_ROOM "init"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/init/child.h"
#include "src/init/clone.h"
#include "src/init/shared.h"
#include "src/sys/selfexe.h"
#include "src/sys/syscalls.h"

static void reap(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

void lr_init_child_close(struct lr_init_child *c)
{
	c->pidfd = lr_close(c->pidfd);
	c->sync = lr_close(c->sync);
	c->go = lr_close(c->go);
	c->report = lr_close(c->report);
}

void lr_init_abort(struct lr_init_child *c)
{
	if (c->pid > 0) {
		(void)kill(c->pid, SIGKILL); /* our own child, not reaped: the pid is its own */
		reap(c->pid);
		c->pid = 0;
	}
	lr_init_child_close(c);
}

static void born(void *arg)
{
	struct lr_bearing *b = arg;

	b->child->in_cgroup = b->child->in_cgroup || b->clone->in_cgroup;
	b->child->signals = b->clone->reset;
	lr_child_main(b->child);
}

static int outcome(const struct lr_child *c, struct lr_init_child *ret, struct lr_err *err)
{
	if (c->err.code != 0 && err)
		*err = c->err;
	if (c->err.code != 0)
		return -c->err.code;
	if (!c->started)
		return lr_sync_died(LR_STEP_START, err);
	/* The stub waits for somebody. */
	if (c->becoming.go >= 0)
		return lr_init_check_stub(ret, err);
	return lr_init_executed(ret, err);
}

/* The page does not have our memory: it tells errors by a pipe, and is told to go on by another.
 * `start` has fifos for both. */
static int open_pipes(const struct lr_child *c, int report[2], int go[2], struct lr_err *err)
{
	if (!c->process->stub_argv || c->becoming.answer >= 0)
		return 0;
	if (pipe2(report, O_CLOEXEC) < 0)
		return lr_fail(err, errno, "make a pipe");
	if (!c->process->held || pipe2(go, O_CLOEXEC) >= 0)
		return 0;
	int r = lr_fail(err, errno, "make a pipe");
	lr_close(report[0]);
	lr_close(report[1]);
	return r;
}

/* 0, LR_SHARED_NOT_HERE, or -errno. */
static int bear_in_memory(struct lr_bearing *b, struct lr_init_child *ret, struct lr_err *err)
{
	struct lr_child *c = b->child;
	int report[2] = {LR_NOFD, LR_NOFD}, go[2] = {LR_NOFD, LR_NOFD};

	if (!c->shared)
		return LR_SHARED_NOT_HERE;
	/* We wait until its program runs; the mount of our own file must be let go by then
	 * (sys/selfexe.h). */
	lr_selfexe_let_go();
	int r = open_pipes(c, report, go, err);
	if (r < 0)
		return r;
	c->medium = &lr_medium_memory;
	c->becoming.sync = report[1];
	if (go[0] >= 0)
		c->becoming.go = go[0];
	c->becoming.shared = true;
	pid_t pid = lr_clone_shared(b->clone, c->shared, born, b, &c->pid);
	lr_close(report[1]);
	lr_close(go[0]);
	if (pid == 0) {
		if (go[0] >= 0)
			c->becoming.go = LR_NOFD;
		lr_close(report[0]);
		lr_close(go[1]);
		return LR_SHARED_NOT_HERE;
	}
	*ret = (struct lr_init_child){.pid = pid,
				      .pidfd = b->clone->pidfd,
				      .sync = report[0],
				      .go = go[1],
				      .report = LR_NOFD,
				      .alone = true};
	lr_init_child_knows(ret, c->process);
	if (ret->program)
		ret->program = c->becoming.program;
	r = outcome(c, ret, err);
	if (r < 0)
		lr_init_abort(ret);
	lr_shared_over(c->process->stub_argv ? 0 : ret->pid);
	return r;
}

/* Leaves the process in between, which has ended, for the one that it bore. */
static int take_sister(struct lr_bearing *b, struct lr_init_child *c, struct lr_err *err)
{
	pid_t between = c->pid;
	int32_t pid = 0;

	int r = b->map ? b->map(b->child->plan, between, err) : 0;
	if (r >= 0 && b->map)
		r = lr_sync_tell(c->sync, LR_STEP_MAPPED, between, err);
	if (r >= 0)
		r = lr_sync_wait(c->sync, LR_STEP_CLONED, &pid, err);
	if (r >= 0)
		r = lr_clone_check(pid, err);
	if (r < 0)
		(void)kill(between, SIGKILL);
	reap(between);
	lr_close(c->pidfd);
	c->pid = r < 0 ? 0 : pid;
	c->pidfd = r < 0 ? LR_NOFD : lr_pidfd_open(pid, 0);
	return r;
}

static int bear_apart(struct lr_bearing *b, struct lr_init_child *ret, struct lr_err *err)
{
	struct lr_child *c = b->child;
	int sv[2];

	int r = lr_sync_pair(sv, err);
	if (r < 0)
		return r;
	c->shared = NULL;
	c->medium = &lr_medium_socket;
	c->becoming.sync = sv[1];
	c->becoming.shared = false;
	c->part = b->between ? LR_PART_BETWEEN : LR_PART_WHOLE;
	pid_t pid = lr_clone(b->clone, err);
	if (pid == 0) {
		lr_close(sv[0]);
		born(b);
	}
	/* Only the child may have the child's end, or we would not see that it dies. */
	lr_close(sv[1]);
	*ret = (struct lr_init_child){.pid = pid < 0 ? 0 : pid,
				      .pidfd = pid < 0 ? LR_NOFD : b->clone->pidfd,
				      .sync = sv[0],
				      .go = LR_NOFD,
				      .report = LR_NOFD};
	lr_init_child_knows(ret, c->process);
	r = pid < 0 ? pid : b->between ? take_sister(b, ret, err) : 0;
	if (r < 0)
		lr_init_child_close(ret);
	return r;
}

int lr_bear(struct lr_bearing *b, struct lr_init_child *ret, struct lr_err *err)
{
	int r = b->between ? LR_SHARED_NOT_HERE : bear_in_memory(b, ret, err);

	return r == LR_SHARED_NOT_HERE ? bear_apart(b, ret, err) : r;
}
