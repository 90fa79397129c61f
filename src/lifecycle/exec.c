/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle: exec. All it needs is in the record, or in the file of --process: config.json is not
 * read again. */
#define LR_ROOM "exec"
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "libocispec/ocispec.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/lifecycle/create.h"
#include "src/lifecycle/foreground.h"
#include "src/sys/proc.h"

struct exec {
	struct lr_existing c;
	const struct oci_config *config; /* what the record kept */
	struct oci_process process;
	struct oci_capabilities caps;
	struct lr_seccomp_prog seccomp;
	struct lr_init_exec plan;
	struct lr_init_child child;
	struct lr_init_shared shared;
	const char *delegate; /* sub-cgroup that init lives in */
	int console;
};

static int check_status(const struct exec *e, const struct lr_exec_opts *o, struct lr_err *err)
{
	/* Until its processes run, its first one has all rights, and is looked at by nobody. That ends
	 * with `start`, and not with what the status is told by: it may be frozen, or be told to go on
	 * and still be at it. */
	if (e->c.record.seed_report && e->c.status != LR_STOPPED)
		return lr_refuse(err, EAGAIN,
				 "cannot exec in a container that waits to continue its seed");
	switch (e->c.status) {
	case LR_STOPPED:
		return lr_refuse(err, ESRCH, "cannot exec in a stopped container");
	case LR_CREATING:
		return lr_refuse(err, EAGAIN,
				 "cannot exec in a container that is still being created");
	case LR_PAUSED:
		if (!o->ignore_paused) {
			lr_refuse(err, EAGAIN, "cannot exec in a paused container");
			return lr_err_hint(err,
					   "use --ignore-paused to have it start when it resumes");
		}
		return 0;
	default:
		return 0;
	}
}

int lr_append(struct oci_strv *list, const char *const *more, struct lr_arena *a,
	      struct lr_err *err)
{
	size_t n = 0;

	while (more && more[n])
		n++;
	if (!n)
		return 0;
	const char **v = lr_new_n(a, list->n + n + 1, const char *);
	if (!v)
		return lr_fail(err, ENOMEM, "make the plan");
	if (list->n)
		memcpy(v, list->v, list->n * sizeof(*v));
	memcpy(v + list->n, more, n * sizeof(*v));
	*list = (struct oci_strv){.v = v, .n = list->n + n};
	return 0;
}

static int set_user(struct exec *e, const struct lr_exec_opts *o, struct lr_arena *a,
		    struct lr_err *err)
{
	struct oci_user *u = &e->process.user;
	bool has_gid;

	if (o->user) {
		int r = lr_user_parse(o->user, &u->uid, &u->gid, &has_gid, err);
		if (r < 0)
			return r;
	}
	if (!o->n_additional_gids)
		return 0;
	size_t n = u->additional_gids.n;
	uint32_t *v = lr_new_n(a, n + o->n_additional_gids, uint32_t);
	if (!v)
		return lr_fail(err, ENOMEM, "make the plan");
	if (n)
		memcpy(v, u->additional_gids.v, n * sizeof(*v));
	memcpy(v + n, o->additional_gids, o->n_additional_gids * sizeof(*v));
	u->additional_gids.v = v;
	u->additional_gids.n = n + o->n_additional_gids;
	return 0;
}

/* The process object: that of the file, or the container's, changed by the options. */
static int make_process(struct exec *e, const struct lr_exec_opts *o, struct lr_arena *a,
			struct lr_err *err)
{
	const struct oci_process *p = NULL;
	char *text;
	size_t len;
	int r;

	if (o->process) {
		r = oci_read_input(o->process, a, &text, &len, err);
		if (r >= 0)
			r = oci_process_decode(text, len, a, &p, err);
		if (r >= 0)
			e->process = *p;
		return r;
	}
	if (!e->config->process) {
		lr_refuse(err, EINVAL,
			  "the container has no process whose user and environment to take");
		lr_err_hint(err, "give all of it by --process FILE");
		return lr_err_at(err, "process");
	}
	e->process = *e->config->process;
	e->process.terminal = o->tty;
	e->process.console_size = NULL;
	e->process.args = (struct oci_strv){0};
	if (o->cwd)
		e->process.cwd = o->cwd;
	if (o->apparmor)
		e->process.apparmor_profile = o->apparmor;
	if (o->process_label)
		e->process.selinux_label = o->process_label;
	if (o->no_new_privs)
		e->process.no_new_privileges = true;
	r = lr_append(&e->process.args, o->args, a, err);
	if (r >= 0)
		r = lr_append(&e->process.env, o->env, a, err);
	return r < 0 ? r : set_user(e, o, a, err);
}

static int grant_caps(struct lr_caps_plan *caps, const char *const *names, struct lr_err *err)
{
	for (; names && *names; names++) {
		int cap = lr_caps_parse(*names, err);
		if (cap < 0)
			return cap;
		lr_caps_grant(caps, cap);
	}
	return 0;
}

static int load_seccomp(struct exec *e, struct lr_arena *a, struct lr_err *err)
{
	if (!e->c.record.has_seccomp)
		return 0;
	LR_CLEANUP_FD int fd = lr_store_open_seccomp(&e->c.store, e->c.record.id, err);
	if (fd < 0)
		return fd;
	int r = lr_seccomp_restore(fd, a, &e->seccomp, err);
	if (r >= 0)
		e->plan.process.seccomp = &e->seccomp;
	return r;
}

/* Unless the caller names a cgroup, the process joins the sub-cgroup that init was put into, as the
 * one above may have to be without processes. A cgroup of a pool has no sub-cgroup. */
static void join_delegate(struct exec *e)
{
	const struct lr_record *rec = &e->c.record;

	if (e->plan.join.n || !e->c.cgroup.n || e->c.cgroup.mode != LR_CGROUP_V2 ||
	    rec->lean_cgroup)
		return;
	e->delegate = oci_map_get(&rec->annotations, LR_CGROUP_DELEGATE);
	e->plan.join.subpaths = &e->delegate;
	e->plan.join.n = e->delegate != NULL;
}

static int compile(const struct lr_runtime *rt, const struct lr_exec_opts *o, struct exec *e,
		   struct lr_arena *a, struct lr_err *err)
{
	const struct lr_record *rec = &e->c.record;

	int r = oci_config_decode(e->c.config_text, e->c.config_len, a, &e->config, err);
	if (r >= 0)
		r = make_process(e, o, a, err);
	if (r < 0)
		return r;
	const struct oci_linux *l = e->config->linux_;
	const struct lr_process_opts opts = {
		.annotations = &rec->annotations,
		.personality = l ? l->personality : NULL,
		.mempolicy = l ? l->memory_policy : NULL,
		.rootless = lr_is_rootless(rt),
		.preserve_fds = o->preserve_fds,
	};
	r = lr_compile_process(&e->process, &opts, a, &e->plan.process, err);
	if (r >= 0)
		r = grant_caps(&e->plan.process.caps, o->caps, err);
	if (r >= 0)
		r = load_seccomp(e, a, err);
	if (r < 0)
		return r;
	e->plan.pid = rec->pid;
	e->plan.start_time = rec->start_time;
	e->plan.namespaces = rec->namespaces;
	e->plan.cgroup = e->c.cgroup.n ? &e->c.cgroup : NULL;
	e->plan.join = (struct lr_cgroup_join){
		.subpaths = o->cgroups, .n = o->n_cgroups, .init_pid = rec->pid};
	join_delegate(e);
	e->plan.state = lr_hook_state(rec, lr_status_name(e->c.status), rec->pid);
	e->plan.arena = a;
	return 0;
}

/* With these capabilities, the process may change what the container has of the lean profile. */
static int mark_lent(const struct exec *e, struct lr_arena *a, struct lr_err *err)
{
	const struct lr_caps_plan *c = &e->plan.process.caps;
	uint64_t all = c->bounding | c->permitted | c->inheritable | c->ambient;
	bool net = all & (LR_CAPS_BIT(CAP_NET_ADMIN) | LR_CAPS_BIT(CAP_SYS_ADMIN));

	if (!e->c.record.lean_slot && !e->c.record.lean_net)
		return 0;
	return net ? lr_container_mark(&e->c.store, &e->c.record, true, a, err) : 0;
}

static int hand_out(const struct lr_exec_opts *o, const struct lr_init_child *c, struct lr_err *err)
{
	const struct lr_create_opts files = {.pid_file = o->pid_file,
					     .pidfd_socket = o->pidfd_socket};

	return lr_birth_hand_out(&files, NULL, c, err);
}

static int spawn(struct exec *e, const struct lr_exec_opts *o, struct lr_err *err)
{
	int r = lr_console_open(e->process.terminal, o->detach, o->console_socket,
				&e->plan.process.console, &e->console, err);
	if (r < 0)
		return r;
	if (e->console >= 0)
		lr_console_relayed(&e->plan.process.tty, e->plan.arena);
	LR_CLEANUP_FD int pidfd = lr_proc_pidfd(e->c.record.pid, e->c.record.start_time);
	if (pidfd == -ESRCH)
		return lr_refuse(err, ESRCH, "container not running");
	lr_debug("exec: joining process %d, namespaces %#x", e->c.record.pid, e->plan.namespaces);
	e->plan.pidfd = pidfd;
	e->plan.process.detached = o->detach;
	r = mark_lent(e, e->plan.arena, err);
	if (r >= 0)
		r = lr_init_exec(&e->plan, &e->child, err);
	e->plan.process.console = lr_close(e->plan.process.console);
	if (r >= 0)
		r = lr_init_exec_attend(&e->plan, &e->child, err);
	if (r >= 0)
		r = hand_out(o, &e->child, err);
	if (r >= 0)
		r = lr_init_start(&e->child, err);
	if (r >= 0)
		lr_debug("exec: process %d runs", e->child.pid);
	if (r < 0)
		lr_init_abort(&e->child);
	return r;
}

static const struct exec nothing = {
	.c = LR_EXISTING_NONE,
	.child = LR_INIT_CHILD_NONE,
	.console = LR_NOFD,
	.plan = {.pidfd = LR_NOFD, .process.console = LR_NOFD},
};

static int prepare(const struct lr_runtime *rt, const struct lr_exec_opts *o, struct exec *e,
		   struct lr_arena *a, struct lr_err *err)
{
	int r = lr_container_open(rt, o->id, false, a, &e->c, err);

	if (r >= 0)
		r = check_status(e, o, err);
	return r < 0 ? r : compile(rt, o, e, a, err);
}

int lr_exec_in_memory(const struct lr_runtime *rt, const struct lr_exec_opts *o,
		      const struct lr_given *given, struct lr_arena *a, struct lr_init_child *child,
		      struct lr_err *err)
{
	const struct lr_hide_caller who = {.library = true, .hidden = given->stub < 0};
	struct exec e = nothing;

	if (lr_hide(&who, LR_HIDE_ENTER, given->config, err) == LR_HIDE_REFUSE)
		return -EOPNOTSUPP;
	int r = prepare(rt, o, &e, a, err);
	if (r >= 0)
		r = lr_process_given(&e.process, given, a, &e.plan.process, err);
	e.shared = (struct lr_init_shared){.stack = given->stack, .stack_size = given->stack_size};
	e.plan.shared = &e.shared;
	if (r >= 0)
		r = spawn(&e, o, err);
	if (r >= 0) {
		*child = e.child;
		e.child = (struct lr_init_child)LR_INIT_CHILD_NONE;
	}
	lr_init_child_close(&e.child);
	lr_container_close(&e.c);
	return r;
}

static int exec(const struct lr_runtime *rt, const struct lr_exec_opts *o, struct exec *e,
		const struct lr_tty_signals *signals, struct lr_arena *a, int *status,
		struct lr_err *err)
{
	int r = prepare(rt, o, e, a, err);
	if (r >= 0)
		r = spawn(e, o, err);
	if (r < 0)
		return r;
	*status = 0;
	if (o->detach)
		return 0;
	return lr_foreground(e->child.pid, e->child.pidfd, true, &e->console, signals, status, err);
}

int lr_lifecycle_exec(const struct lr_runtime *rt, const struct lr_exec_opts *o, int *status,
		      struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct exec e = nothing;
	struct lr_tty_signals signals = {.fd = LR_NOFD};

	if (!o->detach) {
		if (!o->no_subreaper && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
			return lr_fail(err, errno, "become a subreaper");
		int r = lr_tty_signals_open(&signals, true, err);
		if (r < 0)
			return r;
	}
	int r = exec(rt, o, &e, o->detach ? NULL : &signals, a, status, err);
	lr_init_child_close(&e.child);
	lr_close(e.console);
	lr_close(e.plan.process.console);
	lr_container_close(&e.c);
	if (!o->detach)
		lr_tty_signals_close(&signals);
	return r;
}
