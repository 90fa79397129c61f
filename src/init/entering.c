/* SPDX-License-Identifier: Apache-2.0 */
/* init: how a container that is there is entered. */
#define LR_ROOM "exec"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/init/child.h"
#include "src/ns/ns.h"
#include "src/sys/proc.h"
#include "src/sys/syscalls.h"

static int explain(const struct lr_init_exec *p, int code, struct lr_err *err)
{
	lr_fail(err, code, "enter the namespaces of process %d", p->pid);
	if (code == ESRCH)
		lr_err_hint(err, "the container has just stopped");
	else if (code == EPERM)
		lr_err_hint(err, "CAP_SYS_ADMIN is needed in the user namespaces that own them");
	return -code;
}

/*
 * Without pidfds (Linux 5.8 for setns), namespaces are entered one by one, by /proc. The caller's
 * own rights may do for all of them: then the user namespace comes last. An ordinary user has
 * rights only inside it: then it comes first.
 */
static const struct {
	unsigned flag;
	const char *name;
} by_proc[LR_INIT_NAMESPACES] = {{CLONE_NEWPID, "pid"},   {CLONE_NEWTIME, "time"},
				 {CLONE_NEWIPC, "ipc"},   {CLONE_NEWUTS, "uts"},
				 {CLONE_NEWNET, "net"},   {CLONE_NEWCGROUP, "cgroup"},
				 {CLONE_NEWUSER, "user"}, {CLONE_NEWNS, "mnt"}};

void lr_enter_close(struct lr_init_exec *p)
{
	for (size_t i = 0; i < LR_INIT_NAMESPACES; i++)
		p->ns[i] = lr_close(p->ns[i]);
}

/* All are opened before the first is entered: after that /proc may be another one, and a time
 * namespace shows other start times. */
int lr_enter_open(struct lr_init_exec *p, struct lr_err *err)
{
	int r = 0;

	for (size_t i = 0; i < LR_INIT_NAMESPACES && r >= 0; i++) {
		char path[64];
		if (!(p->namespaces & by_proc[i].flag))
			continue;
		snprintf(path, sizeof(path), "/proc/%d/ns/%s", p->pid, by_proc[i].name);
		p->ns[i] = lr_open(path, O_RDONLY | O_CLOEXEC);
		if (p->ns[i] < 0)
			r = errno == ENOENT ? -ESRCH : -errno;
	}
	/* What was opened belongs to the container if its process is still there now. */
	if (r >= 0)
		r = lr_proc_alive(p->pid, p->start_time);
	return r > 0 ? 0 : explain(p, r == 0 ? ESRCH : -r, err);
}

static int enter_by_proc(struct lr_init_exec *p, unsigned flags)
{
	bool again = flags & CLONE_NEWUSER;
	int r = 0;

	for (int pass = 0; pass < (again ? 2 : 1) && r >= 0; pass++) {
		for (size_t i = 0; i < LR_INIT_NAMESPACES && r >= 0; i++) {
			if (!(flags & by_proc[i].flag))
				continue;
			r = lr_setns(p->ns[i], (int)by_proc[i].flag);
			if (r >= 0)
				flags &= ~by_proc[i].flag;
			else if (r == -EPERM && again && pass == 0 &&
				 by_proc[i].flag != CLONE_NEWUSER)
				r = 0;
		}
	}
	return r;
}

int lr_enter(struct lr_init_exec *p, unsigned flags, struct lr_err *err)
{
	int r = -EINVAL;

	if (!flags)
		return 0;
	if (p->pidfd >= 0)
		r = lr_setns(p->pidfd, (int)flags);
	if (r == -EINVAL && p->pidfd >= 0) { /* Linux 5.3 to 5.7 */
		p->pidfd = LR_NOFD;          /* it is the caller's */
		r = lr_enter_open(p, err);
		if (r < 0)
			return r;
	}
	if (p->pidfd < 0)
		r = enter_by_proc(p, flags);
	return r < 0 ? explain(p, -r, err) : 0;
}

int lr_stage_enter(struct lr_child *c, struct lr_err *err)
{
	struct lr_init_exec *p = c->exec;
	unsigned user = p->namespaces & CLONE_NEWUSER,
		 rest = p->namespaces & ~(unsigned)LR_FOR_CHILDREN;
	int r;

	switch (c->part) {
	case LR_PART_BETWEEN:
		r = lr_enter(p, user | (p->namespaces & LR_FOR_CHILDREN), err);
		return r < 0 ? r : lr_ns_become_root(err);
	case LR_PART_SISTER:
		r = lr_enter(p, rest & ~user, err);
		break;
	default:
		r = lr_enter(p, rest, err);
		if (r >= 0 && user)
			r = lr_ns_become_root(err);
	}
	return r >= 0 && setsid() < 0 ? lr_fail(err, errno, "create a session") : r;
}

int lr_stage_visit(struct lr_child *c, struct lr_err *err)
{
	int r = c->exec->visit(c->exec->visit_arg, err);

	if (r >= 0)
		lr_proc_end(0);
	return r;
}
