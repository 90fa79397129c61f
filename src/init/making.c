/* SPDX-License-Identifier: Apache-2.0 */
/* init: the stages that make a container around its first process; their order is child.c's. */
#define LR_ROOM "init"
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libocispec/ocispec.h"
#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/hook/hook.h"
#include "src/init/child.h"
#include "src/netdev/netdev.h"
#include "src/sys/path.h"

int lr_child_join_cgroup(void *child, struct lr_err *err)
{
	struct lr_child *c = child;

	if (c->joined)
		return 0;
	int r = lr_cgroup_join_self(c->plan->cgroup, c->in_cgroup, err);
	if (r < 0)
		return r;
	c->joined = true;
	/* A container runs on all CPUs, even if the runtime was pinned to some. */
	lr_limits_affinity_reset(0);
	return 0;
}

int lr_stage_namespaces(struct lr_child *c, struct lr_err *err)
{
	/* A new cgroup namespace is rooted where its maker is. */
	int r = c->plan->ns.create & CLONE_NEWCGROUP ? lr_child_join_cgroup(c, err) : 0;
	if (r >= 0)
		r = lr_ns_enter_rest(&c->plan->ns, c->ns, err);

	lr_ns_close(c->ns);
	if (r >= 0)
		r = lr_cgroup_enter_delegate(c->plan->cgroup, err);
	if (r >= 0 && setsid() < 0)
		r = lr_fail(err, errno, "create a session");
	if (r >= 0 && c->plan->ns.create & CLONE_NEWNET &&
	    !(c->plan->lean && c->plan->lean->netns >= 0)) {
		LR_CLEANUP_FD_LATE int fd = LR_NOFD;
		r = lr_netdev_lo_up(&fd, err);
	}
	return r >= 0 && c->plan->lean ? lr_lean_enter_net(c->plan->lean, err) : r;
}

int lr_stage_names(struct lr_child *c, struct lr_err *err)
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

int lr_stage_root(struct lr_child *c, struct lr_err *err)
{
	struct lr_init_plan *p = c->plan;
	int r = lr_tree_open(&p->tree, err);

	/* What was prepared is entered, and the host's files are out of sight. */
	if (r >= 0 && p->lean)
		r = lr_lean_enter_tree(p->lean, err);
	return r < 0 ? r : lr_tree_attach(&p->tree, err);
}

static struct lr_tree_env tree_env(struct lr_child *c)
{
	return (struct lr_tree_env){
		.procfd = c->becoming.procfd,
		.join_cgroup = lr_child_join_cgroup,
		.arg = c,
	};
}

int lr_stage_mounts(struct lr_child *c, struct lr_err *err)
{
	struct lr_tree_env env = tree_env(c);

	if (c->process->seed)
		lr_mount_note_tmpfs(c->plan->tree.mounts);
	return lr_tree_mount(&c->plan->tree, &env, err);
}

int lr_stage_devices(struct lr_child *c, struct lr_err *err)
{
	struct lr_tree_env env = tree_env(c);

	return lr_tree_devices(&c->plan->tree, &env, err);
}

int lr_stage_sysctl(struct lr_child *c, struct lr_err *err)
{
	return lr_sysctl_apply(&c->plan->sysctl, c->becoming.procfd, err);
}

/* The one place after the clone that allocates: the child has a memory of its own here, so it may.
 * Nobody in the container may see the environment of the runtime's caller: hooks that have no
 * environment of their own get the process's. They run where this process is. */
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

int lr_stage_hooks(struct lr_child *c, struct lr_err *err)
{
	int r = 0;

	if (lr_child_sends_rooted(c->plan)) {
		r = c->medium->tell(c, LR_STEP_ROOTED, err);
		if (r >= 0)
			r = c->medium->wait(c, LR_STEP_HOOKED, NULL, err);
	}
	if (r < 0 || !c->plan->hooks || !c->plan->hooks->create_container.n)
		return r;
	umask(0022);
	if (fchdir(c->plan->tree.state.rootfd) < 0)
		return lr_fail(err, errno, "enter the root file system for createContainer hooks");
	return run_hooks(c, &c->plan->hooks->create_container, "createContainer", "creating",
			 &c->plan->hook_opts, err);
}

int lr_stage_finish(struct lr_child *c, struct lr_err *err)
{
	struct lr_tree_env env = tree_env(c);

	return lr_tree_finish(&c->plan->tree, &env, err);
}

/* runc's habit, which images rely on: a working directory that is missing is made. */
static int make_cwd(struct lr_child *c, struct lr_err *err)
{
	const char *cwd = c->plan->process.cwd;

	if (lr_streq(cwd, "/"))
		return 0;
	LR_CLEANUP_FD int fd = lr_mkdir_in(c->plan->tree.state.rootfd, cwd, 0755);
	/* Other errors are told when the directory is entered. */
	if (fd < 0 && fd != -EACCES && fd != -ENOTDIR && fd != -EROFS) {
		lr_fail(err, -fd, "make the working directory %s", cwd);
		return lr_err_at(err, "process.cwd");
	}
	return 0;
}

int lr_stage_protect(struct lr_child *c, struct lr_err *err)
{
	int r = make_cwd(c, err);

	return r < 0 ? r : lr_tree_protect(&c->plan->tree, err);
}

int lr_stage_pivot(struct lr_child *c, struct lr_err *err)
{
	int r = lr_tree_pivot(&c->plan->tree, err);

	c->becoming.in_root = r >= 0;
	return r;
}

static int confine_hook(void *arg, struct lr_err *err)
{
	return lr_process_confine(arg, err);
}

/* Their programs are the image's, so each is confined as the container's process is going to be.
 * This process is not confined before them: the filter would have to allow all that running a hook
 * takes. */
int lr_child_start_hooks(struct lr_child *c, struct lr_err *err)
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
