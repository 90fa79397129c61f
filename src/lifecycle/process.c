/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle: the process object, of config.json or of exec, to a plan. */
#define LR_ROOM "config"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/lifecycle/compile.h"
#include "src/sys/proc.h"

#define NR_OPEN (1 << 20) /* the highest descriptor, unless fs.nr_open was raised */

bool lr_is_rootless(const struct lr_runtime *rt)
{
	struct stat st;

	if (rt->rootless >= 0)
		return rt->rootless;
	return rt->euid != 0 ||
	       (stat("/proc/self/ns/user", &st) == 0 && st.st_ino != LR_PROC_FIRST_USER_NS);
}

int lr_listen_fds(struct lr_err *err)
{
	const char *fds = getenv("LISTEN_FDS"), *pid = getenv("LISTEN_PID");
	uint32_t n, to;

	if (!fds || !*fds)
		return 0;
	/* They are for another process, which passed its environment on to us. */
	if (pid && lr_parse_u32(pid, &to) >= 0 && to != (uint32_t)getpid())
		return 0;
	if (lr_parse_u32(fds, &n) < 0 || n > INT_MAX / 2)
		return lr_refuse(err, EINVAL, "LISTEN_FDS=%.32s in the environment is not a number",
				 fds);
	return (int)n;
}

/*
 * The caller may say n, and have less open. How many of 3 .. 3 + n - 1 there are, up to the last
 * that is open and the caller's; all of ours are close-on-exec.
 */
static int passed_fds(int64_t n)
{
	int passed = 0;

	for (int i = 0; i < n && i < NR_OPEN; i++) {
		int flags = fcntl(3 + i, F_GETFD);
		if (flags >= 0 && !(flags & FD_CLOEXEC))
			passed = i + 1;
	}
	return passed;
}

static size_t name_len(const char *variable)
{
	return strcspn(variable, "=") + 1;
}

static int by_name(const void *a, const void *b)
{
	const char *const *x = *(const char *const *const *)a;
	const char *const *y = *(const char *const *const *)b;
	int order = strncmp(*x, *y, name_len(*x));

	return order ? order : x < y ? -1 : 1;
}

/* If a name is given twice, the last one counts, as after setenv(3). order: room for n. */
static size_t keep_the_last(const char **env, size_t n, const char ***order)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		order[i] = &env[i];
	qsort(order, n, sizeof(*order), by_name);
	for (size_t i = 1; i < n; i++)
		if (strncmp(*order[i - 1], *order[i], name_len(*order[i])) == 0)
			*order[i - 1] = NULL;
	for (size_t i = 0; i < n; i++)
		if (env[i])
			env[kept++] = env[i];
	return kept;
}

/* An empty HOME counts as none, as with runc. */
static size_t drop_empty_home(const char **env, size_t n, bool *has_home)
{
	for (size_t i = 0; i < n; i++) {
		if (!lr_has_prefix(env[i], "HOME="))
			continue;
		*has_home = env[i][strlen("HOME=")];
		if (!*has_home)
			memmove(&env[i], &env[i + 1], (--n - i) * sizeof(*env));
		break;
	}
	return n;
}

static int compile_env(const struct oci_process *p, const struct lr_process_opts *o,
		       struct lr_arena *a, struct lr_init_process *ret, struct lr_err *err)
{
	const size_t room = p->env.n + 4; /* LISTEN_FDS, LISTEN_PID, HOME, NULL */
	const char ***order = lr_new_n(a, room, const char **);
	bool has_home = false;
	size_t n = 0;

	ret->env = lr_new_n(a, room, const char *);
	if (!order || !ret->env)
		return lr_fail(err, ENOMEM, "make the plan");
	for (size_t i = 0; i < p->env.n; i++) {
		const char *eq = strchr(p->env.v[i], '=');
		if (!eq || eq == p->env.v[i]) {
			lr_refuse(err, EINVAL, "environment variable \"%.64s\" is not NAME=value",
				  p->env.v[i]);
			lr_err_hint(err, "remove it, or give it a value: NAME= is an empty one");
			return lr_err_at(err, "process.env[%zu]", i);
		}
		ret->env[n++] = p->env.v[i];
	}
	/* sd_listen_fds(3): the program is process 1 of its namespace. */
	if (o->listen_fds) {
		ret->env[n] = lr_strf(a, "LISTEN_FDS=%d", o->listen_fds);
		ret->env[n + 1] = "LISTEN_PID=1";
		n += 2;
	}
	n = keep_the_last(ret->env, n, order);
	ret->n_env = drop_empty_home(ret->env, n, &has_home);
	ret->env[ret->n_env] = NULL;
	ret->add_home = !has_home;
	return 0;
}

static const char *no_args[] = {NULL};
const struct oci_process lr_no_process = {.args = {.v = no_args}, .cwd = "/"};

static int check(const struct oci_process *p, struct lr_err *err)
{
	if (!p->args.n && p->args.v != no_args)
		return lr_err_at((lr_refuse(err, EINVAL, "there is no program to run"), err),
				 "process.args");
	if (!p->cwd || p->cwd[0] != '/')
		return lr_err_at(
			(lr_refuse(err, EINVAL, "the working directory must be an absolute path"),
			 err),
			"process.cwd");
	return 0;
}

int lr_compile_process(const struct oci_process *p, const struct lr_process_opts *o,
		       struct lr_arena *a, struct lr_init_process *ret, struct lr_err *err)
{
	struct lr_init_process pr = {
		.argv = p->args.v,
		.cwd = p->cwd,
		.oom_score_adj = p->oom_score_adj,
		.no_new_privileges = p->no_new_privileges,
		.rootless = o->rootless,
		.keyring = o->keyring,
		.preserve_fds = passed_fds((int64_t)o->preserve_fds + o->listen_fds),
		.console = LR_NOFD,
		.tty = {.size = p->console_size, .uid = p->user.uid},
	};

	int r = check(p, err);
	if (r >= 0)
		r = compile_env(p, o, a, &pr, err);
	if (r >= 0)
		r = lr_user_plan(&p->user, o->annotations, a, &pr.user, err);
	if (r >= 0)
		r = lr_lsm_plan(p->apparmor_profile, p->selinux_label, &pr.lsm, err);
	if (r >= 0)
		r = lr_lsm_check(&pr.lsm, err);
	if (r >= 0)
		r = lr_limits_rlimits_plan(&p->rlimits, a, &pr.rlimits, err);
	if (r >= 0)
		r = lr_limits_oom_check(p->oom_score_adj, err);
	if (r >= 0)
		r = lr_limits_sched_plan(p->scheduler, p->io_priority, &pr.sched, err);
	if (r >= 0)
		r = lr_limits_mempolicy_plan(o->mempolicy, a, &pr.mempolicy, err);
	if (r >= 0)
		r = lr_limits_affinity_plan(p->exec_cpu_affinity, a, &pr.affinity, err);
	if (r >= 0)
		r = lr_limits_personality_plan(o->personality, &pr.has_personality, &pr.personality,
					       err);
	if (r < 0)
		return r;
	r = lr_caps_plan(p->capabilities, &pr.caps, err);
	if (r < 0)
		return r;
	/* The umask of a library's caller says nothing about the container, which gets runc's
	 * default. */
	if (!pr.user.has_umask) {
		pr.user.has_umask = true;
		pr.user.umask = 0022;
	}
	*ret = pr;
	return 0;
}

int lr_process_given(const struct oci_process *p, const struct lr_given *g, struct lr_arena *a,
		     struct lr_init_process *ret, struct lr_err *err)
{
	ret->stdio = g->stdio;
	return g->stub < 0 ? 0 : lr_process_stub(p, g->stub, a, ret, err);
}

int lr_process_stub(const struct oci_process *p, int stub, struct lr_arena *a,
		    struct lr_init_process *ret, struct lr_err *err)
{
	const char **argv = lr_new_n(a, p->args.n + 3, const char *);
	if (!argv)
		return lr_fail(err, ENOMEM, "make the plan");
	memcpy(argv + 2, p->args.v, p->args.n * sizeof(*argv));
	ret->stub_argv = argv;
	ret->stub = stub;
	return 0;
}
