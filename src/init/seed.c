/* SPDX-License-Identifier: Apache-2.0 */
/* init: the ending that continues a seed; see seed.h. */
#define LR_ROOM "init"
#include "src/init/seed.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/init/child.h"
#include "src/sys/proc.h"
#include "src/sys/procfs.h"
#ifdef __x86_64__
#include "src/resume/resume.h"

/* ---- the last calls of each thread ----------------------------------------------------------- */

struct confining {
	const struct lr_init_process *process;
	const struct lr_seed *seed;
	struct lr_resume_ops *ops;
	int failed; /* the first error */
};

static void add(struct confining *x, long nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	int r = lr_resume_add(x->ops, nr, a0, a1, a2, 0, 0, 0);

	x->failed = x->failed ? x->failed : r;
}

/* Only what the thread has given up itself: the rest is gone already (take_own). */
static void drop_bounding(struct confining *x, const struct lr_seed_cred *c)
{
	const uint64_t gone = x->process->caps.bounding & ~c->bounding;

	for (unsigned i = 0; i < 64; i++)
		if (gone & LR_CAPS_BIT(i))
			add(x, SYS_prctl, PR_CAPBSET_DROP, i, 0);
}

static void set_limits(struct confining *x)
{
	const struct lr_limits_rlimits *l = &x->process->rlimits;

	for (size_t i = 0; i < l->n; i++) {
		const uint64_t v[2] = {l->v[i].soft, l->v[i].hard};
		int r = lr_resume_add(x->ops, SYS_prlimit64, 0, (uint64_t)l->v[i].resource,
				      lr_resume_data(x->ops, v, sizeof(v)), 0, 0, 0);
		x->failed = x->failed ? x->failed : r;
	}
}

static void set_ids(struct confining *x, const struct lr_seed_cred *c)
{
	const void *groups = lr_seed_data(x->seed, &c->groups);

	/* At setresuid, every id but 0 loses all capabilities, unless this is set. */
	add(x, SYS_prctl, PR_SET_KEEPCAPS, 1, 0);
	add(x, SYS_setgroups, c->groups.length / sizeof(uint32_t),
	    lr_resume_data(x->ops, groups, c->groups.length), 0);
	add(x, SYS_setresgid, c->gids[0], c->gids[1], c->gids[2]);
	add(x, SYS_setresuid, c->uids[0], c->uids[1], c->uids[2]);
	add(x, SYS_prctl, PR_SET_KEEPCAPS, (c->securebits & SECBIT_KEEP_CAPS) != 0, 0);
}

static void set_caps(struct confining *x, const struct lr_seed_cred *c, uint64_t more)
{
	const struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	const uint64_t e = c->effective | more, p = c->permitted | more, i = c->inheritable;
	const struct __user_cap_data_struct data[2] = {
		{(uint32_t)e, (uint32_t)p, (uint32_t)i},
		{(uint32_t)(e >> 32), (uint32_t)(p >> 32), (uint32_t)(i >> 32)},
	};

	add(x, SYS_capset, lr_resume_data(x->ops, &head, sizeof(head)),
	    lr_resume_data(x->ops, data, sizeof(data)), 0);
}

static void set_ambient(struct confining *x, const struct lr_seed_cred *c)
{
	add(x, SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0);
	for (unsigned i = 0; i < 64; i++)
		if (c->ambient & LR_CAPS_BIT(i))
			add(x, SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i);
}

/* Each thread loads its own: TSYNC would do it for those that are not there yet. */
static void load_filter(struct confining *x)
{
	const struct lr_seccomp_prog *f = x->process->seccomp;
	const unsigned without = SECCOMP_FILTER_FLAG_TSYNC | (unsigned)LR_SECCOMP_WAIT_KILLABLE;
	const struct {
		uint64_t n, at;
	} prog = {f->n, lr_resume_data(x->ops, f->v, f->n * sizeof(*f->v))};

	add(x, SYS_seccomp, SECCOMP_SET_MODE_FILTER, f->flags & ~without,
	    lr_resume_data(x->ops, &prog, sizeof(prog)));
}

struct rights {
	const struct lr_seed_cred *cred;
	bool nnp;
	uint64_t admin; /* that the filter needs, and the thread does not have */
};

static struct rights rights_of(const struct confining *x, const struct lr_seed_thread *t)
{
	const struct lr_init_process *p = x->process;
	const struct lr_seed_cred *c = lr_seed_cred(x->seed, t->cred);
	struct rights r = {.cred = c, .nnp = c->no_new_privs || p->no_new_privileges};

	/* Or no-new-privileges (seccomp(2)). */
	if (p->seccomp && !r.nnp)
		r.admin = LR_CAPS_BIT(CAP_SYS_ADMIN) & ~c->effective;
	return r;
}

static struct confining confining(void *child, struct lr_resume_ops *ops)
{
	const struct lr_init_process *p = ((struct lr_child *)child)->process;

	return (struct confining){.process = p, .seed = &p->seed->seed, .ops = ops};
}

static int outcome(const struct confining *x, const struct lr_seed_thread *t, struct lr_err *err)
{
	return x->failed < 0 ? lr_fail(err, -x->failed, "confine thread %u of the seed", t->tid)
			     : 0;
}

/* In the order in which any process of a container gives up its rights (become.c). */
static int confine(void *arg, const struct lr_seed_thread *t, struct lr_resume_ops *ops,
		   struct lr_err *err)
{
	struct confining x = confining(arg, ops);
	const struct rights r = rights_of(&x, t);

	drop_bounding(&x, r.cred);
	set_limits(&x);
	set_ids(&x, r.cred);
	set_caps(&x, r.cred, r.admin);
	set_ambient(&x, r.cred);
	if (r.nnp)
		add(&x, SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0);
	return outcome(&x, t, err);
}

/* It has to allow nothing of ours but capset and rt_sigreturn. */
static int filter(void *arg, const struct lr_seed_thread *t, struct lr_resume_ops *ops,
		  struct lr_err *err)
{
	struct confining x = confining(arg, ops);
	const struct rights r = rights_of(&x, t);

	if (x.process->seccomp)
		load_filter(&x);
	if (r.admin)
		set_caps(&x, r.cred, 0);
	return outcome(&x, t, err);
}

/* What that takes, for the thread with the most groups. */
static size_t room(const struct lr_init_process *p, const struct lr_seed *s)
{
	uint64_t groups = 0;

	for (uint32_t i = 0; i < lr_seed_count(s, LR_SEED_CRED); i++)
		if (lr_seed_cred(s, i)->groups.length > groups)
			groups = lr_seed_cred(s, i)->groups.length;
	return LR_RESUME_ROOM(160 + 2 * p->rlimits.n,
			      1024 + groups + 32 * p->rlimits.n +
				      (p->seccomp ? p->seccomp->n * sizeof(*p->seccomp->v) : 0));
}

/* ---- with what rights it is done -------------------------------------------------------------- */

static int set_effective(uint64_t wanted, struct lr_err *err)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data) < 0)
		return lr_fail(err, errno, "read capabilities");
	for (int i = 0; i < 2; i++)
		data[i].effective = data[i].permitted & (uint32_t)(wanted >> (32 * i));
	return syscall(SYS_capset, &head, data) < 0 ? lr_fail(err, errno, "set capabilities") : 0;
}

/* The kernel makes a process visible, or not, when its ids change. */
static int set_effective_ids(uint32_t uid, uint32_t gid, struct lr_err *err)
{
	const uint32_t keep = UINT32_MAX;

	if (syscall(SYS_setresgid, keep, gid, keep) < 0 ||
	    syscall(SYS_setresuid, keep, uid, keep) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return lr_fail(err, errno, "become user %u for its files", uid);
	return 0;
}

/*
 * What the process of config.json could open, and no more: /proc/kallsyms shows addresses to
 * whoever has it from one with CAP_SYSLOG, and no mode of a file would count for root. Who can
 * become a file's owner may open it.
 */
static int lower(void *arg, struct lr_err *err)
{
	const uint64_t as_owner = LR_CAPS_BIT(CAP_DAC_OVERRIDE) | LR_CAPS_BIT(CAP_DAC_READ_SEARCH) |
				  LR_CAPS_BIT(CAP_FOWNER);
	const struct lr_init_process *p = ((struct lr_child *)arg)->process;
	uint64_t may = lr_init_seed_reach(p);
	bool any_user = may & LR_CAPS_BIT(CAP_SETUID), any_group = may & LR_CAPS_BIT(CAP_SETGID);

	/* Peers of a Unix socket see those of who made it listen (SO_PEERGROUPS): not the caller's. Where
	 * a user namespace denies them, nobody in it has any. */
	if (syscall(SYS_setgroups, p->user.n_gids, p->user.gids) < 0 &&
	    !(any_group && errno == EPERM))
		return lr_fail(err, errno, "set the groups for its files");
	int r = set_effective_ids(any_user ? 0 : p->user.uid, any_group ? 0 : p->user.gid, err);
	return r < 0 ? r : set_effective(may | (any_user ? as_owner : 0), err);
}

static int raise_again(void *arg, struct lr_err *err)
{
	(void)arg;
	int r = set_effective_ids(0, 0, err);

	return r < 0 ? r : set_effective(UINT64_MAX, err);
}

/* What the restorer's own calls take. With more, a seed could ask for what its process could never
 * have: priorities, pages at address 0. */
#define RESTORING                                                                                  \
	(LR_CAPS_BIT(CAP_DAC_READ_SEARCH) | LR_CAPS_BIT(CAP_SETGID) | LR_CAPS_BIT(CAP_SETUID) |    \
	 LR_CAPS_BIT(CAP_SETPCAP) | LR_CAPS_BIT(CAP_SYS_PTRACE) | LR_CAPS_BIT(CAP_SYS_ADMIN) |     \
	 LR_CAPS_BIT(CAP_SYS_RESOURCE) | LR_CAPS_BIT(CAP_CHECKPOINT_RESTORE))

/* ---- the child ------------------------------------------------------------------------------- */

/* What a process has of config.json, and no seed brings along. */
static int take_own(struct lr_child *c, struct lr_err *err)
{
	struct lr_init_process *p = c->process;
	int r = lr_process_keyring(p, c->becoming.procfd, err);

	if (r >= 0)
		r = lr_limits_sched_apply(&p->sched, err);
	if (r >= 0)
		r = lr_limits_mempolicy_apply(&p->mempolicy, err);
	if (r >= 0 && !p->keep_bounding)
		r = lr_caps_apply_bounding(&p->caps, err);
	return r < 0 ? r : lr_user_own_stdio(&p->user, err);
}

/*
 * CVE-2024-21626: like any process that waits for `start`, it holds nothing of the host but what it
 * needs then. `start` takes its own from here (pidfd_getfd). Nor has it the lock of the container's
 * directory any more: `delete` gets that, and ends it, if a file that it opens next does not answer
 * and the runtime was killed.
 */
static int close_rest(struct lr_child *c, struct lr_err *err)
{
	const struct lr_init_seed *s = c->process->seed;
	const struct lr_becoming *b = &c->becoming;
	int keep[] = {b->sync, b->procfd,     b->go,        b->answer,   s->pages,
		      s->lazy, s->descriptor, s->report[0], s->report[1]};

	lr_debug("seed: closing the host's descriptors");
	lr_log_set_sink(NULL, NULL);
	return lr_process_close_from(3, keep, LR_ARRAY_SIZE(keep), err);
}

static bool has_tmpfs(void *arg, const char *path, uint64_t *device)
{
	return lr_mount_has_tmpfs(((const struct lr_child *)arg)->plan->tree.mounts, path, device);
}

/* With what rights there are, in the container: no path leads out of it. */
int lr_stage_files(struct lr_child *c, struct lr_err *err)
{
	struct lr_init_seed *seed = c->process->seed;

	if (!seed)
		return 0;
	const bool terminal = c->becoming.slave >= 0;
	/* So that who waits for `start` holds nobody else's. It gets a session later. */
	int r = terminal ? lr_tty_own_stdio(lr_take_fd(&c->becoming.slave), err) : 0;
	if (r >= 0)
		r = take_own(c, err);
	if (r >= 0)
		r = close_rest(c, err);
	/* What the container has at /proc may be anything. */
	if (r >= 0 && c->becoming.procfd < 0)
		r = lr_refuse(err, ENOSYS, "there is no procfs to open a seed's files by");
	if (r < 0)
		return r;
	const struct lr_resume_opts o = {
		.seed = &seed->seed,
		.pages = seed->pages,
		.report = seed->report[1],
		.lazy = seed->lazy,
		.stdio = {0, 1, 2},
		.terminal = terminal ? 0 : LR_NOFD,
		.relayed = c->process->tty.relayed,
		.confine = confine,
		.filter = filter,
		.lower = lower,
		.raise = raise_again,
		.cwd = c->process->cwd,
		.has_tmpfs = has_tmpfs,
		.own_root = true, /* lr_init_seed_check has seen to it */
		.arg = c,
		.confine_room = room(c->process, &seed->seed),
		/* Of its pid namespace, and made when the host's was in sight: a user namespace asks
		 * for that. */
		.proc = c->becoming.procfd,
	};
	return lr_resume_open(&o, c->plan->arena, &c->resume, err);
}

/* Priorities are set before the seed's limits are, too: by the caller's it might have one that nobody takes
 * away again. */
static int limit_priorities(const struct lr_init_process *p, struct lr_err *err)
{
	const struct lr_limits_rlimits *l = &p->rlimits;

	for (size_t i = 0; i < l->n; i++) {
		const struct rlimit64 v = {l->v[i].soft, l->v[i].hard};
		if ((l->v[i].resource == RLIMIT_NICE || l->v[i].resource == RLIMIT_RTPRIO) &&
		    setrlimit64(l->v[i].resource, &v) < 0)
			return lr_fail(err, errno, "limit the priorities of the seed");
	}
	return 0;
}

int lr_stage_seed(struct lr_child *c, struct lr_err *err)
{
	if (!c->process->seed)
		return 0;
	/* The log's descriptor is closed with all others. */
	lr_debug("seed: what follows is its processes' own");
	lr_log_set_sink(NULL, NULL);
	int r = limit_priorities(c->process, err);
	if (r >= 0)
		r = set_effective(RESTORING | lr_init_seed_reach(c->process), err);
	return r < 0 ? r : lr_resume_become(c->resume, err);
}

/* ---- the parent ------------------------------------------------------------------------------ */

/* The child's own words, if it had any, before what its silence means. */
static int why_not(struct lr_init_child *c, int r, const struct lr_err *silence, struct lr_err *err)
{
	int said = lr_sync_wait_exec(c->sync, c->pid, 0, NULL, err);

	if (said < 0)
		return said;
	if (err)
		*err = *silence;
	return r;
}

struct readiness {
	const struct lr_init_seed *seed;
	struct lr_err why; /* it is not ready */
};

static int be_ready(void *arg)
{
	struct readiness *x = arg;

	return x->seed->ready(x->seed->arg, &x->why);
}

/* Until all of it is in place; then it runs. */
static int let_run(struct lr_init_child *c, struct lr_resume_left *left, struct lr_err *err)
{
	struct readiness x = {.seed = c->seed};
	int r = lr_resume_wait(&c->seed->seed, c->pid, c->report, c->seed->ready ? be_ready : NULL,
			       &x, left, err);

	if (r < 0 && x.why.code && err)
		*err = x.why;
	return r;
}

/* The very last steps are behind the last word: there is nobody to tell why one of them failed. */
static int check_begun(const struct lr_init_child *c, struct lr_err *err)
{
	struct lr_proc_stat st;
	siginfo_t info = {0};

	if (lr_proc_stat(c->pid, &st) < 0 || !st.dies ||
	    waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOWAIT) < 0 ||
	    info.si_code != CLD_EXITED || info.si_status != LR_RESUME_FAILED)
		return 0;
	lr_refuse(err, EPIPE, "the first process of the seed ended in its last step");
	return c->filtered
		       ? lr_err_hint(err, "does the kernel take linux.seccomp, and does that allow "
					  "capset and rt_sigreturn?")
		       : -EPIPE;
}

int lr_init_continue(struct lr_init_child *c, struct lr_err *err)
{
	const struct lr_seed *s = &c->seed->seed;
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_resume_left *left =
		lr_new_n(a, lr_seed_count(s, LR_SEED_PROCESS), struct lr_resume_left);
	struct lr_err why = {0};
	char line[1200];

	if (!left)
		return lr_fail(err, ENOMEM, "continue the seed");
	struct lr_init_seed_stats *stats = c->seed->stats;
	if (stats)
		stats->made = lr_now_ns();
	int r = let_run(c, left, &why);
	if (stats)
		stats->runs = lr_now_ns();
	if (r == -ECHILD)
		return why_not(c, r, &why, err);
	if (r < 0 && err)
		*err = why;
	if (r < 0)
		return r;
	c->runs = true;
	c->sync = lr_close(c->sync);
	lr_resume_let_leave(c->report);
	/* They run, and what is left does no harm. A debugger may be in our way. */
	if (lr_resume_clean_all(s, c->pid, left, &why) < 0)
		lr_warn("the restorer is left in memory: %s",
			lr_err_format(&why, line, sizeof(line)));
	r = check_begun(c, err);
	if (r >= 0 && stats)
		stats->tell(stats);
	return r;
}
#else
int lr_stage_files(struct lr_child *c, struct lr_err *err)
{
	return c->process->seed ? lr_refuse(err, ENOTSUP, "seeds are of x86-64") : 0;
}

int lr_stage_seed(struct lr_child *c, struct lr_err *err)
{
	return lr_stage_files(c, err);
}

int lr_init_continue(struct lr_init_child *c, struct lr_err *err)
{
	(void)c;
	return lr_refuse(err, ENOTSUP, "seeds are of x86-64");
}
#endif

int lr_seed_start(struct lr_init_child *c, struct lr_err *err)
{
	int r = lr_sync_tell(c->sync, LR_STEP_START, 0, err);

	return r < 0 ? r : lr_init_continue(c, err);
}

int lr_seed_attend(const struct lr_init_plan *p, struct lr_err *err)
{
	const struct lr_init_seed *s = p->process.seed;

	if (!s || !s->attend)
		return 0;
	LR_CLEANUP_FD int cgroup = lr_cgroup_ref_clone_fd(lr_cgroup_plan_ref(p->cgroup));
	return s->attend(s->arg, cgroup, err);
}

int lr_seed_pair(struct lr_init_seed *s, struct lr_err *err)
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s->report) < 0
		       ? lr_fail(err, errno, "make the restorer's socket")
		       : 0;
}
