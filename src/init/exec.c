/* SPDX-License-Identifier: Apache-2.0 */
/* init: one more process in a running container. */
#define LR_ROOM "exec"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/init/child.h"
#include "src/init/clone.h"
#include "src/init/sync.h"
#include "src/init/vm.h"
#include "src/ns/ns.h"
#include "src/sys/proc.h"
#include "src/sys/procfs.h"
#include "src/sys/selfexe.h"
#include "src/sys/syscalls.h"

/* Held for children only: the parent enters them, and is not affected itself. */
#define FOR_CHILDREN (CLONE_NEWPID | CLONE_NEWTIME)

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
 * Without pidfds (Linux 5.8 for setns), namespaces are entered one by one, by /proc. The user
 * namespace comes last among those that the caller's own rights are good for, and first for an
 * ordinary user, who has rights inside only.
 */
static const struct {
	unsigned flag;
	const char *name;
} by_proc[LR_INIT_NAMESPACES] = {{CLONE_NEWPID, "pid"},   {CLONE_NEWTIME, "time"},
				 {CLONE_NEWIPC, "ipc"},   {CLONE_NEWUTS, "uts"},
				 {CLONE_NEWNET, "net"},   {CLONE_NEWCGROUP, "cgroup"},
				 {CLONE_NEWUSER, "user"}, {CLONE_NEWNS, "mnt"}};

static void close_by_proc(struct lr_init_exec *p)
{
	for (size_t i = 0; i < LR_INIT_NAMESPACES; i++)
		p->ns[i] = lr_close(p->ns[i]);
}

/* All are opened before the first is entered: after that /proc may be another one, and a time
 * namespace shows other start times. */
static int open_by_proc(struct lr_init_exec *p, struct lr_err *err)
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

static int enter(struct lr_init_exec *p, unsigned flags, struct lr_err *err)
{
	int r = -EINVAL;

	if (!flags)
		return 0;
	if (p->pidfd >= 0)
		r = lr_setns(p->pidfd, (int)flags);
	if (r == -EINVAL && p->pidfd >= 0) { /* Linux 5.3 to 5.7 */
		p->pidfd = LR_NOFD;          /* it is the caller's */
		r = open_by_proc(p, err);
		if (r < 0)
			return r;
	}
	if (p->pidfd < 0)
		r = enter_by_proc(p, flags);
	return r < 0 ? explain(p, -r, err) : 0;
}

static int open_terminal(struct lr_init_exec *p, struct lr_becoming *b, struct lr_err *err)
{
	struct lr_tty_pty pty;

	if (p->process.console < 0)
		return 0;
	LR_CLEANUP_FD int root = lr_open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return lr_fail(err, errno, "open the container's root");
	int r = lr_tty_open_pty(root, &p->process.tty, &pty, err);
	if (r < 0)
		return r;
	r = lr_tty_send_fd(p->process.console, pty.master, pty.name, err);
	lr_close(pty.master);
	p->process.console = lr_close(p->process.console);
	b->slave = pty.slave;
	return r;
}

/* Before anything of the container is entered: nobody in there may look into this process, whose
 * descriptors lead to the host. Children inherit it; execve makes it visible again. */
static int hide(struct lr_err *err)
{
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0
		       ? lr_fail(err, errno, "hide the process from others")
		       : 0;
}

/* What needs the caller's own rights: done before anything of the container is entered. */
static int prepare_member(struct lr_init_exec *p, const struct lr_clone *born,
			  struct lr_becoming *b, struct lr_err *err)
{
	int r = lr_process_reset_signals(born->reset, err);

	if (p->visit)
		return r < 0 ? r : hide(err);
	if (r >= 0)
		r = lr_limits_affinity_apply(&p->process.affinity, false, 0, err);
	if (r >= 0 && p->cgroup) {
		p->join.already_in_v2 = born->in_cgroup;
		r = lr_cgroup_join_ref_self(p->cgroup, &p->join, err);
	}
	if (r >= 0) {
		if (!p->process.affinity.initial.word)
			lr_limits_affinity_reset(0);
		r = lr_limits_affinity_apply(&p->process.affinity, true, 0, err);
	}
	if (r >= 0 && p->namespaces & CLONE_NEWUSER)
		lr_limits_grant(&p->process.rlimits, NULL, 0);
	if (r >= 0 && lr_process_wants_procfs(&p->process)) {
		b->procfd = lr_procfs_open(err);
		r = b->procfd < 0 ? b->procfd : lr_process_early(&p->process, b, err);
	}
	/* In the caller's memory: before the clone (vm.h). */
	return r < 0 || b->vm ? r : hide(err);
}

static int become_member(struct lr_init_exec *p, bool staged, struct lr_becoming *b,
			 struct lr_err *err)
{
	unsigned flags = p->namespaces & ~(unsigned)FOR_CHILDREN;

	int r = enter(p, staged ? flags & ~(unsigned)CLONE_NEWUSER : flags, err);
	if (r >= 0 && p->namespaces & CLONE_NEWUSER && !staged)
		r = lr_ns_become_root(err);
	if (r >= 0 && setsid() < 0)
		r = lr_fail(err, errno, "create a session");
	if (r >= 0 && p->visit)
		return p->visit(p->visit_arg, err);
	if (r >= 0)
		r = open_terminal(p, b, err);
	if (r >= 0)
		r = lr_process_become(&p->process, b, err);
	if (r >= 0)
		r = lr_process_load_notify(&p->process, b, err);
	return r;
}

static _Noreturn void finish_member(struct lr_init_exec *p, int r, struct lr_becoming *b,
				    struct lr_err *err)
{
	if (r >= 0 && p->visit)
		lr_proc_end(0);
	if (r >= 0)
		r = lr_sync_wait(b->sync, LR_STEP_START, NULL, err);
	if (r >= 0)
		(void)lr_process_execute(&p->process, b, err);
	lr_sync_send_err(b->sync, err);
	lr_proc_end(255);
}

static struct lr_becoming becoming(int sync)
{
	return (struct lr_becoming){.sync = sync,
				    .procfd = LR_NOFD,
				    .slave = LR_NOFD,
				    .go = LR_NOFD,
				    .answer = LR_NOFD,
				    .hooks = {LR_NOFD, LR_NOFD}};
}

static _Noreturn void member_main(struct lr_init_exec *p, const struct lr_clone *born, int sync)
{
	struct lr_becoming b = becoming(sync);
	struct lr_err err = {0};

	int r = prepare_member(p, born, &b, &err);
	if (r >= 0)
		r = become_member(p, false, &b, &err);
	finish_member(p, r, &b, &err);
}

/* The process in between, for who may enter the user namespace but nothing of it from outside: an
 * ordinary user. It enters, and bears the member as its sister. */
static _Noreturn void middle_main(struct lr_init_exec *p, const struct lr_clone *born, int sync)
{
	struct lr_clone clone = {.flags = CLONE_PARENT, .cgroup = LR_NOFD};
	struct lr_becoming b = becoming(sync);
	struct lr_err err = {0};

	int r = prepare_member(p, born, &b, &err);
	if (r >= 0)
		r = enter(p, p->namespaces & (CLONE_NEWUSER | FOR_CHILDREN), &err);
	if (r >= 0)
		r = lr_ns_become_root(&err);
	if (r >= 0)
		r = lr_clone(&clone, &err);
	if (r == 0) {
		r = become_member(p, true, &b, &err);
		finish_member(p, r, &b, &err);
	}
	if (r > 0)
		r = lr_sync_send(sync, LR_STEP_CLONED, r, &err);
	if (r < 0)
		lr_sync_send_err(sync, &err);
	lr_proc_end(r < 0);
}

/* From the process in between to the member. */
static int take_member(struct lr_init_child *c, struct lr_err *err)
{
	pid_t middle = c->pid;
	int32_t pid = 0;

	int r = lr_sync_wait(c->sync, LR_STEP_CLONED, &pid, err);
	if (r >= 0)
		r = lr_clone_check(pid, err);
	if (r < 0)
		(void)kill(middle, SIGKILL);
	while (waitpid(middle, NULL, 0) < 0 && errno == EINTR)
		;
	lr_close(c->pidfd);
	c->pid = r < 0 ? 0 : pid;
	c->pidfd = r < 0 ? LR_NOFD : lr_pidfd_open(pid, 0);
	return r;
}

/* ---- in the caller's memory ------------------------------------------------------------------ */

struct vm_member {
	struct lr_init_exec plan; /* the child's copy */
	struct lr_clone clone;
	struct lr_becoming b;
	struct lr_err err;
	pid_t pid;
};

static void member_born(void *arg)
{
	struct vm_member *m = arg;

	int r = prepare_member(&m->plan, &m->clone, &m->b, &m->err);
	if (r >= 0)
		r = become_member(&m->plan, false, &m->b, &m->err);
	if (r >= 0)
		(void)lr_process_execute(&m->plan.process, &m->b, &m->err);
	lr_proc_end(255);
}

/* 0, LR_VM_NOT_HERE, or -errno. */
static int exec_in_memory(struct lr_init_exec *p, int cgroup, struct lr_init_child *ret,
			  struct lr_err *err)
{
	int report[2] = {LR_NOFD, LR_NOFD};

	if (!p->vm || (p->process.seccomp && p->process.seccomp->notify))
		return LR_VM_NOT_HERE;
	struct vm_member *m = lr_new(p->arena, struct vm_member);
	if (!m)
		return lr_fail(err, ENOMEM, "plan");
	if (p->process.stub_argv && pipe2(report, O_CLOEXEC) < 0)
		return lr_fail(err, errno, "make a pipe");
	m->plan = *p;
	m->clone = (struct lr_clone){.cgroup = cgroup, .pidfd = LR_NOFD};
	m->b = becoming(report[1]);
	m->b.vm = true;
	pid_t pid = lr_clone_vm(&m->clone, p->vm, member_born, m, &m->pid);
	lr_close(report[1]);
	ret->sync = report[0];
	if (pid == 0) {
		lr_init_child_close(ret);
		return LR_VM_NOT_HERE;
	}
	ret->pid = pid;
	ret->pidfd = m->clone.pidfd;
	int r = m->err.code ? -m->err.code : lr_init_executed(&p->process, &m->b, ret, err);
	if (m->err.code && err)
		*err = m->err;
	if (r < 0)
		lr_init_abort(ret);
	lr_vm_over(p->process.stub_argv ? 0 : ret->pid);
	return r;
}

static int exec_member(struct lr_init_exec *p, struct lr_init_child *ret, struct lr_err *err)
{
	bool sub = p->join.n > 0;
	LR_CLEANUP_FD int cgroup = p->cgroup && !sub ? lr_cgroup_ref_clone_fd(p->cgroup) : LR_NOFD;
	struct lr_clone clone = {.cgroup = cgroup, .pidfd = LR_NOFD};
	struct lr_init_child c = LR_INIT_CHILD_NONE;
	int sv[2];

	for (size_t i = 0; i < LR_INIT_NAMESPACES; i++)
		p->ns[i] = LR_NOFD;
	/* Whoever is in there sees the new process at once. */
	lr_selfexe_let_go();
	int r = p->pidfd < 0 ? open_by_proc(p, err) : 0;
	if (r >= 0)
		r = enter(p, p->namespaces & FOR_CHILDREN, err);
	bool staged = r == -EPERM && p->namespaces & CLONE_NEWUSER;
	if (r >= 0) {
		r = exec_in_memory(p, cgroup, &c, err);
		if (r == 0)
			*ret = c;
		if (r != LR_VM_NOT_HERE) {
			close_by_proc(p);
			return r;
		}
	}
	if (r >= 0 || staged)
		r = lr_sync_pair(sv, err);
	if (r < 0) {
		close_by_proc(p);
		return r;
	}
	c.pid = lr_clone(&clone, err);
	if (c.pid == 0) {
		lr_close(sv[0]);
		if (staged)
			middle_main(p, &clone, sv[1]);
		member_main(p, &clone, sv[1]);
	}
	lr_close(sv[1]);
	close_by_proc(p);
	c.sync = sv[0];
	c.pidfd = clone.pidfd;
	r = c.pid < 0 ? c.pid : staged ? take_member(&c, err) : 0;
	if (r < 0) {
		lr_init_child_close(&c);
		return r;
	}
	lr_err_clear(err);
	if (!p->visit)
		lr_init_child_knows(&c, &p->process);
	*ret = c;
	return 0;
}

#define BACK_TRIES 1000 /* a millisecond each */

/* A thread of a program that goes on bears its next children where it did before. That it may was
 * tried before it left, so only memory can be short. */
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
	if (!p->vm)
		return exec_member(p, ret, err);
	LR_CLEANUP_FD int own = open("/proc/thread-self/ns/pid_for_children", O_RDONLY | O_CLOEXEC);
	int r = own < 0 ? -errno : lr_setns(own, CLONE_NEWPID);
	if (r < 0)
		return lr_fail(err, -r, "keep the caller's pid namespace");
	return step_back(own, exec_member(p, ret, err), err);
}

int lr_init_visit(struct lr_init_exec *p, struct lr_err *err)
{
	struct lr_init_child c;
	int status = 0;

	int r = lr_init_exec(p, &c, err);
	if (r < 0)
		return r;
	r = lr_sync_wait_exec(c.sync, c.pid, 0, err);
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
