/* SPDX-License-Identifier: Apache-2.0 */
/* init: the parent's side of the birth of a container; see init.h. */
#define LR_ROOM "init"
#include <errno.h>
#include <unistd.h>

#include "libocispec/ocispec.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/hook/hook.h"
#include "src/init/child.h"
#include "src/init/clone.h"
#include "src/sys/selfexe.h"
#include "src/sys/syscalls.h"

bool lr_init_alone(const struct lr_init_plan *p)
{
	return !p->ns.staged && !(p->ns.create & (CLONE_NEWUSER | CLONE_NEWTIME)) &&
	       (p->go < 0 || p->process.stub_argv) && !lr_mount_writes_contents(p->tree.mounts) &&
	       !lr_child_waits_mapped(p) && !lr_child_sends_rooted(p) && p->process.console < 0 &&
	       !(p->hooks && p->hooks->start_container.n) &&
	       !(p->process.seccomp && p->process.seccomp->notify) && !p->process.seed;
}

/* Namespaces that clone makes; a cgroup namespace is made later, by the child in its cgroup; a time
 * namespace was made before. */
static unsigned clone_flags(const struct lr_init_plan *p)
{
	unsigned later = CLONE_NEWCGROUP | CLONE_NEWTIME;

	/* What was prepared is entered by the child. */
	if ((p->lean && p->lean->mntns >= 0) || p->tree.state.bare >= 0)
		later |= CLONE_NEWNS;
	if (p->lean && p->lean->netns >= 0)
		later |= CLONE_NEWNET;
	return p->ns.create & ~later;
}

/* What a process in a new user namespace cannot do for itself: it waits for MAPPED. */
static int prepare_user_ns(const struct lr_init_plan *p, pid_t pid, struct lr_err *err)
{
	int r = lr_ns_write_maps(&p->ns, pid, err);

	if (r >= 0)
		lr_limits_grant(&p->process.rlimits, p->process.oom_score_adj, pid);
	return r;
}

/* The child may be in our memory, so it changes copies of the plan. */
struct newborn {
	struct lr_child child;
	struct lr_init_plan plan;
	struct lr_lean_enter lean;
	struct lr_ns_fds ns;
};

static struct newborn *conceive(const struct lr_init_plan *p, const struct lr_ns_fds *ns)
{
	struct newborn *n = lr_new(p->arena, struct newborn);
	bool hooks = p->hooks && p->hooks->start_container.n;

	if (!n)
		return NULL;
	n->plan = *p;
	n->ns = *ns;
	if (lr_tree_copy(&p->tree, p->arena, &n->plan.tree, NULL) < 0)
		return NULL;
	if (p->lean) {
		n->lean = *p->lean;
		n->plan.lean = &n->lean;
	}
	n->child = (struct lr_child){
		.who = LR_WHO_INIT,
		.plan = &n->plan,
		.process = &n->plan.process,
		.ns = &n->ns,
		.shared = p->shared && lr_init_alone(p) ? p->shared : NULL,
		.becoming = LR_BECOMING_NONE,
		.sister =
			clone_flags(p) & ~(lr_child_made_between(p) ? (unsigned)CLONE_NEWUSER : 0),
	};
	n->child.becoming.go = p->go;
	n->child.becoming.answer = p->answer;
	if (hooks) {
		n->child.becoming.hooks[0] = p->hook_opts.stdout_fd;
		n->child.becoming.hooks[1] = p->hook_opts.stderr_fd;
	}
	return n;
}

/* The birth by a process in between, which enters what is to be joined. */
static int spawn_between(struct lr_init_plan *p, struct newborn *n, struct lr_init_child *ret,
			 struct lr_err *err)
{
	LR_CLEANUP_FD int cgroup = lr_cgroup_clone_fd(p->cgroup);
	bool maps = lr_child_made_between(p);
	struct lr_clone clone = {.flags = maps ? CLONE_NEWUSER : 0, .cgroup = cgroup};
	struct lr_bearing b = {.child = &n->child,
			       .clone = &clone,
			       .between = true,
			       .map = maps ? prepare_user_ns : NULL};

	return lr_bear(&b, ret, err);
}

static int spawn_direct(struct lr_init_plan *p, struct newborn *n, struct lr_ns_fds *ns,
			struct lr_init_child *ret, struct lr_err *err)
{
	bool move = lr_ns_cgroup_first(&p->ns);
	LR_CLEANUP_FD int cgroup = move ? LR_NOFD : lr_cgroup_clone_fd(p->cgroup);
	struct lr_clone clone = {.flags = clone_flags(p), .cgroup = cgroup};
	struct lr_bearing b = {.child = &n->child, .clone = &clone};
	struct lr_err out = {0};

	n->child.in_cgroup = move;
	int r = lr_ns_step_in(&p->ns, ns, err);
	if (r >= 0)
		r = lr_bear(&b, ret, err);
	/* Also after a failure: hooks and clean-up belong into the runtime's own namespaces. */
	int back = lr_ns_step_out(&p->ns, ns, &out);
	/* If the child could not be born in its cgroup, it is moved now, while it waits for its id
	 * maps. */
	if (back >= 0 && r >= 0 && move)
		back = lr_cgroup_join_pid(lr_cgroup_plan_ref(p->cgroup), ret->pid, &out);
	if (back >= 0 || r < 0)
		return r;
	lr_init_abort(ret);
	if (err)
		*err = out;
	return back;
}

/* Only the child may have the child's end, or we would not see that it dies. */
static void take_report(struct lr_init_seed *s, struct lr_init_child *c)
{
	if (!s)
		return;
	s->report[1] = lr_close(s->report[1]);
	c->seed = s;
	c->report = s->report[0];
}

int lr_init_spawn(struct lr_init_plan *p, struct lr_init_child *ret, struct lr_err *err)
{
	struct lr_init_child c = LR_INIT_CHILD_NONE;
	struct lr_ns_fds ns;

	/* Without a pid namespace of its own, others see the child at once: before that, the mount
	 * of our own file is let go (sys/selfexe.h). */
	if (!(p->ns.create & CLONE_NEWPID))
		lr_selfexe_let_go();
	int r = p->process.seed ? lr_seed_pair(p->process.seed, err) : 0;
	if (r >= 0)
		r = lr_ns_open(&p->ns, &ns, err);
	if (r < 0)
		return r;
	struct newborn *n = conceive(p, &ns);
	if (!n)
		r = lr_fail(err, ENOMEM, "make the plan");
	else
		r = p->ns.staged ? spawn_between(p, n, &c, err) : spawn_direct(p, n, &ns, &c, err);
	lr_ns_close(&ns);
	take_report(p->process.seed, &c);
	if (r < 0)
		return r;
	lr_debug("init: process %d", c.pid);
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
	if (c->alone)
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
	/* After create, `start` does that. */
	if (r >= 0 && p->go < 0)
		r = lr_seed_attend(p, err);
	if (r >= 0 && p->go >= 0)
		r = lr_sync_tell(c->sync, LR_STEP_RECORDED, 0, err);
	if (r < 0 || p->go < 0)
		return r;
	if (!p->process.stub_argv)
		return lr_sync_wait(c->sync, LR_STEP_READY, NULL, err);
	r = lr_sync_wait_exec(c->sync, c->pid, 0, NULL, err);
	return r < 0 ? r : lr_init_check_stub(c, err);
}
