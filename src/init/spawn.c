/* SPDX-License-Identifier: Apache-2.0 */
/* init: the parent's side of the birth of a container; see init.h. */
#define LR_ROOM "init"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libocispec/ocispec.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/hook/hook.h"
#include "src/init/child.h"
#include "src/init/clone.h"
#include "src/init/program.h"
#include "src/init/sync.h"
#include "src/init/vm.h"
#include "src/sys/proc.h"
#include "src/sys/procfs.h"
#include "src/sys/selfexe.h"
#include "src/sys/syscalls.h"

static int reap(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			break;
	return status;
}

void lr_init_child_close(struct lr_init_child *c)
{
	c->pidfd = lr_close(c->pidfd);
	c->sync = lr_close(c->sync);
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

void lr_child_init(struct lr_child *c, struct lr_init_plan *p, struct lr_ns_fds *ns, int sync)
{
	bool hooks = p->hooks && p->hooks->start_container.n;

	*c = (struct lr_child){
		.plan = p,
		.ns = ns,
		.becoming = {.sync = sync,
			     .procfd = LR_NOFD,
			     .slave = LR_NOFD,
			     .go = p->go,
			     .answer = p->answer,
			     .hooks = {hooks ? p->hook_opts.stdout_fd : LR_NOFD,
				       hooks ? p->hook_opts.stderr_fd : LR_NOFD}},
	};
}

bool lr_init_alone(const struct lr_init_plan *p)
{
	return !p->ns.staged && !(p->ns.create & (CLONE_NEWUSER | CLONE_NEWTIME)) && p->go < 0 &&
	       !lr_mount_writes_contents(p->mounts) && !lr_child_waits_mapped(p) &&
	       !lr_child_sends_rooted(p) && p->process.console < 0 &&
	       !(p->hooks && p->hooks->start_container.n) &&
	       !(p->process.seccomp && p->process.seccomp->notify);
}

/* Namespaces that clone makes; cgroup comes later (where the child is then), time came before. */
static unsigned clone_flags(const struct lr_init_plan *p)
{
	unsigned later = CLONE_NEWCGROUP | CLONE_NEWTIME;

	/* What was prepared is entered by the child. */
	if (p->lean && p->lean->mntns >= 0)
		later |= CLONE_NEWNS;
	if (p->lean && p->lean->netns >= 0)
		later |= CLONE_NEWNET;
	return p->ns.create & ~later;
}

/* The runtime is back in its own namespaces, and the child waits for its id maps: time to move it,
 * if it could not be born in its cgroup. */
static int after_birth(struct lr_init_plan *p, struct lr_ns_fds *ns, pid_t pid, bool move,
		       struct lr_err *err)
{
	int r = lr_ns_step_out(&p->ns, ns, err);

	if (r >= 0 && pid > 0 && move)
		r = lr_cgroup_join_pid(lr_cgroup_plan_ref(p->cgroup), pid, err);
	return r;
}

static int spawn_direct(struct lr_init_plan *p, struct lr_ns_fds *ns, int sv[2],
			struct lr_init_child *ret, struct lr_err *err)
{
	bool move = lr_ns_cgroup_first(&p->ns);
	LR_CLEANUP_FD int cgroup = move ? LR_NOFD : lr_cgroup_clone_fd(p->cgroup);
	struct lr_clone clone = {.flags = clone_flags(p), .cgroup = cgroup};
	struct lr_err out = {0};

	int r = lr_ns_step_in(&p->ns, ns, err);
	pid_t pid = r < 0 ? r : lr_clone(&clone, err);
	if (pid == 0) {
		struct lr_child c;
		lr_child_init(&c, p, ns, sv[1]);
		c.in_cgroup = clone.in_cgroup || move;
		c.signals = clone.reset;
		lr_close(sv[0]);
		lr_child_main(&c);
	}
	/* Also after a failure: hooks and clean-up belong into the runtime's own namespaces. */
	if (after_birth(p, ns, pid, move, &out) < 0 && pid > 0) {
		(void)kill(pid, SIGKILL);
		reap(pid);
		lr_close(clone.pidfd);
		if (err)
			*err = out;
		return -out.code;
	}
	if (pid < 0)
		return pid;
	ret->pid = pid;
	ret->pidfd = clone.pidfd;
	return 0;
}

/* What a process in a new user namespace cannot do for itself: it waits for MAPPED. */
static int prepare_user_ns(const struct lr_init_plan *p, pid_t pid, struct lr_err *err)
{
	int r = lr_ns_write_maps(&p->ns, pid, err);

	if (r >= 0)
		lr_limits_grant(&p->process.rlimits, p->process.oom_score_adj, pid);
	return r;
}

/* The user namespace is new, and the process in between is born in it. */
static bool made_between(const struct lr_init_plan *p)
{
	return p->ns.create & CLONE_NEWUSER && p->ns.staged_user;
}

/* The process in between: enters what nobody returns from, and bears the child as its sister. */
static _Noreturn void middle_main(struct lr_init_plan *p, struct lr_ns_fds *ns, int sync,
				  bool in_cgroup)
{
	bool new_user = made_between(p);
	struct lr_child c;
	struct lr_clone clone = {.flags =
					 clone_flags(p) & ~(new_user ? (unsigned)CLONE_NEWUSER : 0),
				 .cgroup = LR_NOFD};
	struct lr_err err = {0};

	lr_child_init(&c, p, ns, sync);

	lr_selfexe_let_go();
	int r = lr_cgroup_join_self(p->cgroup, in_cgroup, &err);
	if (r >= 0 && new_user)
		r = lr_sync_wait(sync, LR_STEP_MAPPED, NULL, &err);
	if (r >= 0 && p->process.oom_score_adj) { /* the child inherits it */
		c.becoming.procfd = lr_procfs_open(&err);
		r = c.becoming.procfd < 0 ? c.becoming.procfd
					  : lr_process_early(&p->process, &c.becoming, &err);
		c.becoming.procfd = lr_close(c.becoming.procfd);
	}
	if (r >= 0 && ns->join[LR_NS_USER] >= 0)
		lr_limits_grant(&p->process.rlimits, NULL, 0);
	if (r >= 0 && new_user)
		r = lr_ns_become_root(&err);
	/* Others may be in the namespaces that are joined, and must not look into this process
	 * and its child, whose descriptors lead to the host (CVE-2016-9962). An ordinary user can
	 * join nothing here, but has to write the time offsets: hidden, its files in /proc would
	 * belong to the host's root. */
	bool offsets = new_user && p->ns.time_offsets;
	if (r >= 0 && prctl(PR_SET_DUMPABLE, offsets, 0, 0, 0) < 0)
		r = lr_fail(&err, errno, "hide the process from others");
	/* With the host's rights where we have them, before they are given up. */
	if (r >= 0)
		r = lr_ns_step_in(&p->ns, ns, &err);
	if (r >= 0 && offsets && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		r = lr_fail(&err, errno, "hide the process from others");
	if (r >= 0 && ns->join[LR_NS_USER] >= 0)
		r = lr_ns_join_user(ns, &err);
	if (r >= 0 && ns->join[LR_NS_USER] >= 0)
		r = lr_ns_become_root(&err);
	if (r >= 0) {
		clone.flags |= CLONE_PARENT;
		r = lr_clone(&clone, &err);
	}
	if (r == 0) {
		c.staged = true;
		c.signals = clone.reset;
		lr_child_main(&c);
	}
	if (r > 0)
		r = lr_sync_send(sync, LR_STEP_CLONED, r, &err);
	if (r < 0)
		lr_sync_send_err(sync, &err);
	lr_proc_end(r < 0);
}

static int spawn_staged(struct lr_init_plan *p, struct lr_ns_fds *ns, int sv[2],
			struct lr_init_child *ret, struct lr_err *err)
{
	LR_CLEANUP_FD int cgroup = lr_cgroup_clone_fd(p->cgroup);
	struct lr_clone clone = {.flags = made_between(p) ? CLONE_NEWUSER : 0, .cgroup = cgroup};
	int32_t child = 0;

	pid_t middle = lr_clone(&clone, err);
	if (middle == 0) {
		lr_close(sv[0]);
		middle_main(p, ns, sv[1], clone.in_cgroup);
	}
	if (middle < 0)
		return middle;
	lr_close(clone.pidfd);
	int r = 0;
	if (made_between(p)) {
		r = prepare_user_ns(p, middle, err);
		if (r >= 0)
			r = lr_sync_tell(sv[0], LR_STEP_MAPPED, middle, err);
	}
	if (r >= 0)
		r = lr_sync_wait(sv[0], LR_STEP_CLONED, &child, err);
	if (r >= 0)
		r = lr_clone_check(child, err);
	if (r < 0)
		(void)kill(middle, SIGKILL);
	reap(middle);
	if (r < 0)
		return r;
	ret->pid = child;
	ret->pidfd = lr_pidfd_open(child, 0);
	return 0;
}

/* 0, LR_VM_NOT_HERE, or -errno. */
static int spawn_in_memory(struct lr_init_plan *p, struct lr_ns_fds *ns, struct lr_init_child *ret,
			   struct lr_err *err)
{
	LR_CLEANUP_FD int cgroup = lr_cgroup_clone_fd(p->cgroup);
	struct lr_clone clone = {.flags = clone_flags(p), .cgroup = cgroup};
	struct lr_err out = {0};

	if (!p->vm || !lr_init_alone(p))
		return LR_VM_NOT_HERE;
	/* We wait until its program runs: nothing may be held by then. */
	lr_selfexe_let_go();
	int r = lr_ns_step_in(&p->ns, ns, err);
	if (r >= 0)
		r = lr_vm_spawn(p, ns, &clone, ret, err);
	if (lr_ns_step_out(&p->ns, ns, &out) < 0 && r >= 0) {
		if (err)
			*err = out;
		r = -out.code;
	}
	if (r < 0)
		lr_init_abort(ret);
	return r;
}

int lr_init_spawn(struct lr_init_plan *p, struct lr_init_child *ret, struct lr_err *err)
{
	struct lr_init_child c = LR_INIT_CHILD_NONE;
	struct lr_ns_fds ns;
	int sv[2];

	/* Without a pid namespace of its own, others may see the child at once. */
	if (!(p->ns.create & CLONE_NEWPID))
		lr_selfexe_let_go();
	int r = lr_ns_open(&p->ns, &ns, err);
	if (r < 0)
		return r;
	r = spawn_in_memory(p, &ns, &c, err);
	if (r == LR_VM_NOT_HERE && (r = lr_sync_pair(sv, err)) >= 0) {
		r = p->ns.staged ? spawn_staged(p, &ns, sv, &c, err)
				 : spawn_direct(p, &ns, sv, &c, err);
		/* The child's end has to be the child's alone, or nobody would see it die. */
		lr_close(sv[1]);
		c.sync = sv[0];
	}
	lr_ns_close(&ns);
	if (r < 0) {
		lr_init_child_close(&c);
		return r;
	}
	lr_debug("init: process %d", c.pid);
	lr_init_child_knows(&c, &p->process);
	*ret = c;
	return 0;
}

static int runtime_hooks(struct lr_init_plan *p, pid_t pid, struct lr_err *err)
{
	struct oci_state st = p->state;
	size_t len;

	st.status = "creating";
	st.pid = pid;
	char *text = oci_state_encode(&st, false, p->arena, &len);
	if (!text)
		return lr_fail(err, ENOMEM, "encode the state for hooks");
	int r = lr_hook_run(&p->hooks->prestart, "prestart", text, len, &p->hook_opts, err);
	if (r >= 0)
		r = lr_hook_run(&p->hooks->create_runtime, "createRuntime", text, len,
				&p->hook_opts, err);
	return r;
}

int lr_init_pass_listener(const struct lr_seccomp_prog *prog, const struct oci_state *state,
			  const struct lr_init_child *c, struct lr_arena *a, struct lr_err *err)
{
	static const char *const names[] = {"seccompFd", NULL};
	int32_t number;
	size_t len;

	if (!prog || !prog->notify)
		return 0;
	int r = lr_sync_wait(c->sync, LR_STEP_FILTER, &number, err);
	if (r < 0)
		return r;
	LR_CLEANUP_FD int listener = lr_pidfd_getfd(c->pidfd, number);
	if (listener < 0) {
		lr_fail(err, -listener, "take the seccomp notification descriptor");
		return lr_err_hint(err, "linux.seccomp.listenerPath needs pidfd_getfd (Linux 5.6)");
	}
	const struct oci_container_process_state st = {
		.oci_version = OCI_VERSION,
		.fds = {.v = (const char **)names, .n = 1},
		.pid = c->pid,
		.metadata = prog->listener_metadata,
		.state = *state,
	};
	char *text = oci_container_process_state_encode(&st, a, &len);
	if (!text)
		return lr_fail(err, ENOMEM, "encode the state for the seccomp agent");
	r = lr_seccomp_send_listener(prog->listener_path, listener, text, len, err);
	if (r >= 0)
		r = lr_sync_send(c->sync, LR_STEP_AGENT, 0, err);
	return r;
}

int lr_init_attend(struct lr_init_plan *p, struct lr_init_child *c, struct lr_err *err)
{
	int r = 0;

	lr_cgroup_settle(p->cgroup);
	if (c->runs)
		return 0;
	if (p->ns.create & CLONE_NEWUSER && !p->ns.staged_user)
		r = prepare_user_ns(p, c->pid, err);
	if (r >= 0 && p->parent_work)
		r = p->parent_work(p->work_arg, c->pid, err);
	if (r >= 0 && lr_child_waits_mapped(p))
		r = lr_sync_tell(c->sync, LR_STEP_MAPPED, c->pid, err);
	lr_selfexe_let_go();
	if (r >= 0 && lr_child_sends_rooted(p)) {
		r = lr_sync_wait(c->sync, LR_STEP_ROOTED, NULL, err);
		if (r >= 0)
			r = runtime_hooks(p, c->pid, err);
		if (r >= 0)
			r = lr_sync_tell(c->sync, LR_STEP_HOOKED, 0, err);
	}
	if (r >= 0) {
		struct oci_state st = p->state;
		st.status = "creating";
		st.pid = c->pid;
		r = lr_init_pass_listener(p->process.seccomp, &st, c, p->arena, err);
	}
	if (r >= 0 && p->go >= 0)
		r = lr_sync_tell(c->sync, LR_STEP_RECORDED, 0, err);
	if (r >= 0 && p->go >= 0)
		r = lr_sync_wait(c->sync, LR_STEP_READY, NULL, err);
	return r;
}
