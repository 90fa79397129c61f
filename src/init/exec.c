/* SPDX-License-Identifier: Apache-2.0 */
/* init: one more process in a running container: the parent's side. */
#define LR_ROOM "exec"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/init/child.h"
#include "src/init/clone.h"
#include "src/sys/selfexe.h"
#include "src/sys/syscalls.h"

/* The child may be in our memory, so it changes a copy of the plan. */
struct newborn {
	struct lr_child child;
	struct lr_init_exec plan;
};

static struct newborn *conceive(const struct lr_init_exec *p)
{
	bool notifies = p->process.seccomp && p->process.seccomp->notify;
	struct newborn *n = lr_new(p->arena, struct newborn);

	if (!n)
		return NULL;
	n->plan = *p;
	n->child = (struct lr_child){
		.who = p->visit ? LR_WHO_VISITOR : LR_WHO_MEMBER,
		.exec = &n->plan,
		.process = &n->plan.process,
		.shared = notifies ? NULL : p->shared,
		.becoming = LR_BECOMING_NONE,
	};
	return n;
}

static int bear(struct lr_init_exec *p, bool between, struct lr_init_child *ret, struct lr_err *err)
{
	/* It is not born in the cgroup if it goes further down; or if it begins on CPUs of its own, which may be none of
	 * the cgroup's. */
	const bool later = p->join.n > 0 || p->process.affinity.initial.word;
	LR_CLEANUP_FD int cgroup =
		p->cgroup && !later ? lr_cgroup_ref_clone_fd(p->cgroup) : LR_NOFD;
	struct lr_clone clone = {.cgroup = cgroup, .pidfd = LR_NOFD};
	struct newborn *n = conceive(p);
	struct lr_bearing b = {.clone = &clone, .between = between};

	if (!n)
		return lr_fail(err, ENOMEM, "make the plan");
	b.child = &n->child;
	return lr_bear(&b, ret, err);
}

static int exec_member(struct lr_init_exec *p, struct lr_init_child *ret, struct lr_err *err)
{
	struct lr_init_child c = LR_INIT_CHILD_NONE;

	for (size_t i = 0; i < LR_INIT_NAMESPACES; i++)
		p->ns[i] = LR_NOFD;
	/* The container's processes see the new one at once: before that, the mount of our own file
	 * is let go (sys/selfexe.h). */
	lr_selfexe_let_go();
	int r = p->pidfd < 0 ? lr_enter_open(p, err) : 0;
	if (r >= 0)
		r = lr_enter(p, p->namespaces & LR_FOR_CHILDREN, err);
	/* An ordinary user may enter the user namespace, and the others only from inside of it. */
	bool between = r == -EPERM && p->namespaces & CLONE_NEWUSER;
	if (between)
		lr_err_clear(err);
	if (r >= 0 || between)
		r = bear(p, between, &c, err);
	lr_enter_close(p);
	if (r < 0)
		return r;
	*ret = c;
	return 0;
}

#define BACK_TRIES 1000 /* a millisecond each */

/* A thread of a program that goes on must bear its next children where it did before. That it may
 * return was tried before it left, so only a lack of memory can prevent it. */
static int step_back(int own, int r, struct lr_err *err)
{
	int back = lr_setns(own, CLONE_NEWPID);

	for (int i = 0; back == -ENOMEM && i < BACK_TRIES; i++) {
		usleep(1000);
		back = lr_setns(own, CLONE_NEWPID);
	}
	return back >= 0 ? r : lr_fail(err, -back, "return to the caller's pid namespace");
}

int lr_init_exec(struct lr_init_exec *p, struct lr_init_child *ret, struct lr_err *err)
{
	if (!p->shared)
		return exec_member(p, ret, err);
	LR_CLEANUP_FD int own = open("/proc/thread-self/ns/pid_for_children", O_RDONLY | O_CLOEXEC);
	int r = own < 0 ? -errno : lr_setns(own, CLONE_NEWPID);
	if (r < 0)
		return lr_fail(err, -r, "open the caller's pid namespace, to return to it");
	return step_back(own, exec_member(p, ret, err), err);
}

int lr_init_visit(struct lr_init_exec *p, struct lr_err *err)
{
	struct lr_init_child c;
	int status = 0;

	int r = lr_init_exec(p, &c, err);
	if (r < 0)
		return r;
	r = lr_sync_wait_exec(c.sync, c.pid, 0, NULL, err);
	while (waitpid(c.pid, &status, 0) < 0 && errno == EINTR)
		;
	lr_init_child_close(&c);
	if (r >= 0 && status != 0)
		r = lr_refuse(err, EPIPE, "the process that was sent into the container died");
	return r;
}

int lr_init_exec_attend(struct lr_init_exec *p, struct lr_init_child *c, struct lr_err *err)
{
	return lr_init_pass_listener(p->process.seccomp, &p->state, c, p->arena, err);
}
