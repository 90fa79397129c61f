/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init: the child's side of the birth of a container, as a table of named stages. A stage that
 * fails ends the process; its name and its error reach whoever called the runtime.
 */
#define LR_ROOM "init"
#include "src/init/child.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libocispec/ocispec.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/hook/hook.h"
#include "src/init/sync.h"
#include "src/init/vm.h"
#include "src/netdev/netdev.h"
#include "src/sys/path.h"
#include "src/sys/proc.h"
#include "src/sys/procfs.h"
#include "src/sys/selfexe.h"
#include "src/sys/syscalls.h"

static bool has_hooks(const struct lr_init_plan *p, bool in_child)
{
	if (!p->hooks)
		return false;
	return in_child ? p->hooks->create_container.n || p->hooks->start_container.n
			: p->hooks->prestart.n || p->hooks->create_runtime.n;
}

bool lr_child_waits_mapped(const struct lr_init_plan *p)
{
	return (p->ns.create & CLONE_NEWUSER && !p->ns.staged_user) || p->parent_work ||
	       has_hooks(p, true);
}

bool lr_child_sends_rooted(const struct lr_init_plan *p)
{
	return has_hooks(p, false);
}

/* Also: whoever goes on without his parent is in the record before he does. */
static int stage_signals(struct lr_child *c, struct lr_err *err)
{
	int r = 0;

	lr_selfexe_let_go();
	if (c->vm) {
		r = c->vm->vm->record(c->vm->vm->arg, c->vm->pid, false, &c->signals, err);
		c->signals |= LR_CLONE_ABOVE_STAT;
	}
	return r < 0 ? r : lr_process_reset_signals(c->signals, err);
}

static int join_cgroup(void *arg, struct lr_err *err)
{
	struct lr_child *c = arg;
	int r = 0;

	if (c->joined)
		return 0;
	if (!c->staged)
		r = lr_cgroup_join_self(c->plan->cgroup, c->in_cgroup, err);
	c->joined = r >= 0;
	/* A runtime that was pinned to a CPU does not pin its containers. */
	if (r >= 0)
		lr_limits_affinity_reset(0);
	return r;
}

static int stage_cgroup(struct lr_child *c, struct lr_err *err)
{
	return c->plan->cgroup_late ? 0 : join_cgroup(c, err);
}

static int stage_joined(struct lr_child *c, struct lr_err *err)
{
	return join_cgroup(c, err);
}

/* The private procfs has to come from this pid namespace, and be made while the host's /proc is
 * still visible: in a user namespace the kernel asks for that. */
static int stage_procfs(struct lr_child *c, struct lr_err *err)
{
	const struct lr_init_plan *p = c->plan;

	if (!p->sysctl.n && !lr_process_wants_procfs(&p->process))
		return 0;
	c->becoming.procfd = lr_procfs_open(err);
	return c->becoming.procfd < 0 ? c->becoming.procfd : 0;
}

static int stage_identity(struct lr_child *c, struct lr_err *err)
{
	int32_t pid = 0;
	int r = 0;

	if (lr_child_waits_mapped(c->plan))
		r = lr_sync_wait(c->becoming.sync, LR_STEP_MAPPED, &pid, err);
	c->host_pid = pid;
	if (r >= 0 && !c->staged && c->becoming.procfd >= 0)
		r = lr_process_early(&c->plan->process, &c->becoming, err);
	if (r >= 0 && c->plan->ns.create & CLONE_NEWUSER && !c->plan->ns.staged_user)
		r = lr_ns_become_root(err);
	/* Nobody in the container may look into this process (its descriptors lead to the host)
	 * before it is theirs. execve makes it visible again. A memory that is the caller's, too,
	 * is hidden already (vm.h). */
	if (r >= 0 && !c->vm && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		r = lr_fail(err, errno, "hide the process from others");
	return r;
}

static int stage_namespaces(struct lr_child *c, struct lr_err *err)
{
	/* A new cgroup namespace is rooted where its maker is. */
	int r = c->plan->ns.create & CLONE_NEWCGROUP ? join_cgroup(c, err) : 0;
	if (r >= 0)
		r = lr_ns_enter_rest(&c->plan->ns, c->ns, err);

	lr_ns_close(c->ns);
	if (r >= 0)
		r = lr_cgroup_enter_delegate(c->plan->cgroup, err);
	if (r >= 0 && setsid() < 0)
		r = lr_fail(err, errno, "create a session");
	if (r >= 0 && c->plan->ns.create & CLONE_NEWNET &&
	    !(c->plan->lean && c->plan->lean->netns >= 0))
		r = lr_netdev_lo_up(err);
	return r >= 0 && c->plan->lean ? lr_lean_enter_net(c->plan->lean, err) : r;
}

static int stage_names(struct lr_child *c, struct lr_err *err)
{
	const char *host = c->plan->hostname, *domain = c->plan->domainname;

	if (host && sethostname(host, strlen(host)) < 0)
		return lr_err_at((lr_fail(err, errno, "set the host name \"%s\"", host), err),
				 "hostname");
	if (domain && setdomainname(domain, strlen(domain)) < 0)
		return lr_err_at((lr_fail(err, errno, "set the domain name \"%s\"", domain), err),
				 "domainname");
	return 0;
}

static int stage_root(struct lr_child *c, struct lr_err *err)
{
	const struct lr_init_plan *p = c->plan;
	int r = lr_rootfs_open_null(p->rootfs, &c->plan->root, err);

	/* The host's files are out of sight then. */
	if (r >= 0 && p->lean)
		r = lr_lean_enter_tree(p->lean, err);
	return r < 0 ? r : lr_rootfs_attach(p->rootfs, &c->plan->root, err);
}

static struct lr_mount_env mount_env(struct lr_child *c)
{
	return (struct lr_mount_env){
		.rootfd = c->plan->root.rootfd,
		.procfd = c->becoming.procfd,
		.cgroup = c->plan->cgroup_view,
		.alone = c->plan->rootfs->new_mount_ns,
		.join_cgroup = join_cgroup,
		.arg = c,
	};
}

static int stage_mounts(struct lr_child *c, struct lr_err *err)
{
	struct lr_mount_env env = mount_env(c);

	int r = lr_mount_apply(c->plan->mounts, &env, err);
	int root = lr_mount_take_root(c->plan->mounts);
	if (root >= 0) {
		lr_close(c->plan->root.rootfd);
		c->plan->root.rootfd = root;
	}
	return r;
}

static int fill_dev(const struct lr_init_plan *p, const struct lr_mount_env *env,
		    struct lr_err *err)
{
	LR_CLEANUP_FD_LATE int opened = LR_NOFD;
	int dev = lr_mount_new_tmpfs(p->mounts, env, "/dev");
	bool fresh = dev >= 0 && !p->process.rootless;

	if (dev < 0)
		dev = opened = lr_rootfs_open_dev(p->root.rootfd, err);
	int r = dev < 0 ? dev : 0;
	if (r >= 0 && p->made_devices >= 0)
		r = lr_device_place(p->devices, p->made_devices, p->root.rootfd, dev, err);
	if (r >= 0)
		r = lr_device_apply(p->devices, p->root.rootfd, dev, fresh, err);
	return r < 0 ? r : lr_rootfs_dev_links(dev, err);
}

static int stage_devices(struct lr_child *c, struct lr_err *err)
{
	const struct lr_init_plan *p = c->plan;
	struct lr_mount_env env = mount_env(c);

	return p->dev_is_ours ? fill_dev(p, &env, err) : 0;
}

static int stage_sysctl(struct lr_child *c, struct lr_err *err)
{
	return lr_sysctl_apply(&c->plan->sysctl, c->becoming.procfd, err);
}

static int stage_terminal(struct lr_child *c, struct lr_err *err)
{
	struct lr_init_process *p = &c->plan->process;
	struct lr_tty_pty pty;

	if (p->console < 0)
		return 0;
	int r = lr_tty_open_pty(c->plan->root.rootfd, &p->tty, &pty, err);
	if (r < 0)
		return r;
	r = lr_tty_send_fd(p->console, pty.master, pty.name, err);
	lr_close(pty.master);
	p->console = lr_close(p->console);
	c->becoming.slave = pty.slave;
	return r;
}

/* The one place after clone that allocates: this is a fork, not a thread, so it may. In the
 * container nobody sees the environment of the runtime's caller: without one of their own, hooks
 * have the process's, and they run where this process is. */
static int run_hooks(struct lr_child *c, const struct oci_hook_list *hooks, const char *kind,
		     const char *status, const struct lr_hook_opts *opts, struct lr_err *err)
{
	struct oci_state st = c->plan->state;
	struct lr_hook_opts inside = *opts;
	size_t len;

	if (!hooks->n)
		return 0;
	inside.dir = NULL;
	inside.env = c->plan->process.env;
	st.status = status;
	st.pid = c->host_pid;
	char *text = oci_state_encode(&st, false, c->plan->arena, &len);
	if (!text)
		return lr_fail(err, ENOMEM, "encode the state for hooks");
	return lr_hook_run(hooks, kind, text, len, &inside, err);
}

static int stage_hooks(struct lr_child *c, struct lr_err *err)
{
	int r = 0;

	if (lr_child_sends_rooted(c->plan)) {
		r = lr_sync_send(c->becoming.sync, LR_STEP_ROOTED, 0, err);
		if (r >= 0)
			r = lr_sync_wait(c->becoming.sync, LR_STEP_HOOKED, NULL, err);
	}
	if (r < 0 || !c->plan->hooks || !c->plan->hooks->create_container.n)
		return r;
	umask(0022);
	if (fchdir(c->plan->root.rootfd) < 0)
		return lr_fail(err, errno, "enter the root file system for createContainer hooks");
	return run_hooks(c, &c->plan->hooks->create_container, "createContainer", "creating",
			 &c->plan->hook_opts, err);
}

static int stage_finish(struct lr_child *c, struct lr_err *err)
{
	struct lr_mount_env env = mount_env(c);
	int r = lr_mount_finish(c->plan->mounts, &env, err);

	lr_mount_release(c->plan->mounts);
	return r;
}

/* runc's habit, which images rely on: a working directory that is missing is made. */
static int make_cwd(struct lr_child *c, struct lr_err *err)
{
	const char *cwd = c->plan->process.cwd;

	if (lr_streq(cwd, "/"))
		return 0;
	LR_CLEANUP_FD int fd = lr_mkdir_in(c->plan->root.rootfd, cwd, 0755);
	/* What is wrong with it in other ways is told when it is entered. */
	if (fd < 0 && fd != -EACCES && fd != -ENOTDIR && fd != -EROFS) {
		lr_fail(err, -fd, "make the working directory %s", cwd);
		return lr_err_at(err, "process.cwd");
	}
	return 0;
}

static int stage_protect(struct lr_child *c, struct lr_err *err)
{
	int r = make_cwd(c, err);

	return r < 0 ? r : lr_rootfs_protect(c->plan->rootfs, &c->plan->root, err);
}

static int stage_pivot(struct lr_child *c, struct lr_err *err)
{
	int r = lr_rootfs_pivot(c->plan->rootfs, &c->plan->root, err);

	if (r >= 0)
		r = lr_rootfs_finish(c->plan->rootfs, err);
	lr_rootfs_state_close(&c->plan->root);
	return r;
}

static void end_by_signal(int sig)
{
	lr_proc_end(128 + sig);
}

/*
 * The first process of a pid namespace gets only signals that it has a handler for, and a container
 * that waits for start must not wait for ever. execve resets them. These are what ends runc's, too.
 */
static int end_on_signals(struct lr_err *err)
{
	static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
	const struct sigaction end = {.sa_handler = end_by_signal};

	for (size_t i = 0; i < LR_ARRAY_SIZE(signals); i++)
		if (sigaction(signals[i], &end, NULL) < 0)
			return lr_fail(err, errno, "handle signal %d", signals[i]);
	return 0;
}

static int stage_process(struct lr_child *c, struct lr_err *err)
{
	int r = 0;

	/* Nobody will say START; and the record's descriptor goes with the others in a moment. */
	if (c->vm) {
		r = c->vm->vm->record(c->vm->vm->arg, c->vm->pid, true, NULL, err);
		c->vm->started = r >= 0;
	}
	if (r >= 0)
		r = lr_process_become(&c->plan->process, &c->becoming, err);
	if (r >= 0 && c->becoming.go >= 0)
		r = end_on_signals(err);
	if (r >= 0)
		r = lr_process_load_notify(&c->plan->process, &c->becoming, err);
	return r;
}

/* create: until somebody writes into the fifo. run: until the parent has its books in order. */
static int stage_wait(struct lr_child *c, struct lr_err *err)
{
	if (c->vm)
		return 0;
	if (c->becoming.go < 0)
		return lr_sync_wait(c->becoming.sync, LR_STEP_START, NULL, err);

	/* Whoever waits without end must be in the record, or a runtime that is killed now would
	 * leave a process that nobody finds. */
	int r = lr_sync_wait(c->becoming.sync, LR_STEP_RECORDED, NULL, err);
	if (r >= 0)
		r = lr_sync_send(c->becoming.sync, LR_STEP_READY, 0, err);
	if (r < 0)
		return r;
	/* From here on nobody but `start` is there to be told. */
	lr_close(c->becoming.sync);
	c->becoming.sync = c->becoming.answer;
	char byte;
	ssize_t n = lr_read_full(c->becoming.go, &byte, 1);
	if (n != 1)
		return lr_fail(err, n < 0 ? (int)-n : EPIPE, "wait for start");
	c->becoming.go = lr_close(c->becoming.go);
	return 0;
}

static int confine_hook(void *arg, struct lr_err *err)
{
	return lr_process_confine(arg, err);
}

/* Their programs are the image's: each is confined as the container's process is going to be. Not
 * by confining this process first: then the filter would have to allow all that running a hook
 * takes. */
static int start_hooks(struct lr_child *c, struct lr_err *err)
{
	struct lr_init_process *p = &c->plan->process;
	struct lr_hook_opts opts = c->plan->hook_opts;

	opts.become = confine_hook;
	opts.arg = p;
	int r = run_hooks(c, &c->plan->hooks->start_container, "startContainer", "created", &opts,
			  err);
	return r == -EPERM && p->seccomp
		       ? lr_err_hint(err, "linux.seccomp must allow what starts a program")
		       : r;
}

static int stage_program(struct lr_child *c, struct lr_err *err)
{
	int r = c->plan->hooks ? start_hooks(c, err) : 0;

	return r < 0 ? r : lr_process_execute(&c->plan->process, &c->becoming, err);
}

static const struct {
	const char *name;
	int (*run)(struct lr_child *c, struct lr_err *err);
} stages[] = {
	{"signals", stage_signals},       /* as a new program expects them */
	{"cgroup", stage_cgroup},         /* by the host's mounts and with the host's rights */
	{"procfs", stage_procfs},         /* of the new pid namespace */
	{"identity", stage_identity},     /* root of the user namespace, hidden */
	{"namespaces", stage_namespaces}, /* the cgroup namespace, which is rooted where we are */
	{"names", stage_names},
	{"root", stage_root},
	{"mounts", stage_mounts}, /* the cgroup's, and what is charged to it, when joined */
	{"joined", stage_joined}, /* the cgroup, if no mount needed it */
	{"devices", stage_devices},
	{"sysctl", stage_sysctl},
	{"terminal", stage_terminal},
	{"hooks", stage_hooks},   /* the last to see the host's files */
	{"finish", stage_finish}, /* mounts that devices, the terminal and hooks had to write to */
	{"protect", stage_protect}, /* the last to look up paths of the container's */
	{"pivot", stage_pivot},
	{"process", stage_process}, /* limits, ids, capabilities */
	{"wait", stage_wait},       /* created */
	{"program", stage_program},
};

_Noreturn void lr_child_main(struct lr_child *c)
{
	struct lr_err err = {0};

	for (size_t i = 0; i < LR_ARRAY_SIZE(stages); i++) {
		lr_debug("init: stage %zu, %s", i + 1, stages[i].name);
		if (stages[i].run(c, &err) < 0) {
			(void)lr_err_step(&err, stages[i].name);
			break;
		}
	}
	if (c->vm)
		c->vm->err = err;
	else
		lr_sync_send_err(c->becoming.sync, &err);
	lr_proc_end(err.code == ENOENT ? 127 : 126);
}
