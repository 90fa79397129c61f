/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init: the child's side of every birth, as a table of named stages. A stage that fails ends the
 * process; its name and its error reach whoever called the runtime.
 */
#define LR_ROOM "init"
#include "src/init/child.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/init/clone.h"
#include "src/init/ends.h"
#include "src/sys/proc.h"
#include "src/sys/procfs.h"
#include "src/sys/selfexe.h"

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

bool lr_child_made_between(const struct lr_init_plan *p)
{
	return p->ns.create & CLONE_NEWUSER && p->ns.staged_user;
}

/* ---- with the caller's rights ---------------------------------------------------------------- */

/* A newborn that goes on without its parent also writes itself into the record first. */
static int stage_signals(struct lr_child *c, struct lr_err *err)
{
	int r = 0;

	lr_selfexe_let_go();
	if (c->shared && c->shared->record) {
		r = c->shared->record(c->shared->arg, c->pid, false, &c->signals, err);
		c->signals |= LR_CLONE_ABOVE_STAT;
	}
	return r < 0 ? r : lr_process_reset_signals(c->signals, err);
}

static int join_as_member(struct lr_child *c, struct lr_err *err)
{
	struct lr_init_exec *p = c->exec;
	const struct lr_limits_affinity *affinity = &c->process->affinity;

	int r = lr_limits_affinity_apply(affinity, false, 0, err);
	if (r >= 0 && p->cgroup) {
		p->join.already_in_v2 = c->in_cgroup;
		r = lr_cgroup_join_ref_self(p->cgroup, &p->join, err);
	}
	if (r < 0)
		return r;
	if (!affinity->initial.word)
		lr_limits_affinity_reset(0);
	return lr_limits_affinity_apply(affinity, true, 0, err);
}

static int stage_cgroup(struct lr_child *c, struct lr_err *err)
{
	if (c->exec)
		return join_as_member(c, err);
	return c->plan->cgroup_late ? 0 : lr_child_join_cgroup(c, err);
}

static int stage_joined(struct lr_child *c, struct lr_err *err)
{
	return lr_child_join_cgroup(c, err);
}

/* A private procfs shows the pid namespace of who makes it, so a new one's is made from inside; and
 * it is made while the host's /proc is visible, which the kernel asks for in a user namespace. */
static int stage_procfs(struct lr_child *c, struct lr_err *err)
{
	bool wanted = c->part == LR_PART_BETWEEN && c->plan
			      ? c->process->oom_score_adj != NULL
			      : lr_process_wants_procfs(c->process) || c->process->seed ||
					(c->plan && c->plan->sysctl.n);

	if (!wanted)
		return 0;
	c->becoming.procfd = lr_procfs_open(err);
	return c->becoming.procfd < 0 ? c->becoming.procfd : 0;
}

static int stage_mapped(struct lr_child *c, struct lr_err *err)
{
	bool waits = c->part == LR_PART_BETWEEN ? lr_child_made_between(c->plan)
						: lr_child_waits_mapped(c->plan);
	int32_t pid = 0;

	int r = waits ? c->medium->wait(c, LR_STEP_MAPPED, &pid, err) : 0;
	c->host_pid = pid;
	return r;
}

/* Once a user namespace is joined, rights in it do not suffice to raise limits: they are raised
 * before. */
static int stage_granted(struct lr_child *c, struct lr_err *err)
{
	bool joins = c->exec ? c->exec->namespaces & CLONE_NEWUSER : c->ns->join[LR_NS_USER] >= 0;

	(void)err;
	if (joins)
		lr_limits_grant(&c->process->rlimits, NULL, 0);
	return 0;
}

static int stage_early(struct lr_child *c, struct lr_err *err)
{
	return c->becoming.procfd < 0 ? 0 : lr_process_early(c->process, &c->becoming, err);
}

/* ---- to where the container is --------------------------------------------------------------- */

static int stage_user(struct lr_child *c, struct lr_err *err)
{
	bool new_user = c->part == LR_PART_BETWEEN
				? lr_child_made_between(c->plan)
				: c->plan->ns.create & CLONE_NEWUSER && !c->plan->ns.staged_user;

	return new_user ? lr_ns_become_root(err) : 0;
}

static int set_visible(bool visible, struct lr_err *err)
{
	return prctl(PR_SET_DUMPABLE, visible, 0, 0, 0) < 0
		       ? lr_fail(err, errno, "hide the process from others")
		       : 0;
}

/* An ordinary user's process in between has to write the time offsets. If it were hidden, its files
 * in /proc would belong to the host's root. Until it is, nobody else is in the namespaces that it
 * enters. */
static bool writes_offsets(const struct lr_child *c)
{
	return c->part == LR_PART_BETWEEN && c->plan && lr_child_made_between(c->plan) &&
	       c->plan->ns.time_offsets;
}

/*
 * Nobody in the container may look into this process while its descriptors lead to the host
 * (CVE-2016-9962). Its children are hidden with it; execve makes it visible again. A shared memory
 * is hidden already (shared.h).
 */
static int stage_hidden(struct lr_child *c, struct lr_err *err)
{
	return c->shared ? 0 : set_visible(writes_offsets(c), err);
}

/* Does what takes the host's rights, where we have them, and then gives them up. */
static int stage_between(struct lr_child *c, struct lr_err *err)
{
	bool joins = c->ns->join[LR_NS_USER] >= 0;

	int r = lr_ns_step_in(&c->plan->ns, c->ns, err);
	if (r >= 0 && writes_offsets(c))
		r = set_visible(false, err);
	if (r >= 0 && joins)
		r = lr_ns_join_user(c->ns, err);
	return r >= 0 && joins ? lr_ns_become_root(err) : r;
}

static int stage_sister(struct lr_child *c, struct lr_err *err)
{
	struct lr_clone clone = {.flags = c->sister | CLONE_PARENT, .cgroup = LR_NOFD};

	/* Init opens a procfs of its own pid namespace later. */
	if (c->plan)
		c->becoming.procfd = lr_close(c->becoming.procfd);
	pid_t pid = lr_clone(&clone, err);
	if (pid == 0) {
		c->part = LR_PART_SISTER;
		c->signals = clone.reset;
		lr_child_main(c);
	}
	int r = pid < 0 ? pid : lr_sync_send(c->becoming.sync, LR_STEP_CLONED, pid, err);
	if (r >= 0)
		lr_proc_end(0);
	return r;
}

/* ---- in it ----------------------------------------------------------------------------------- */

static int stage_terminal(struct lr_child *c, struct lr_err *err)
{
	LR_CLEANUP_FD int opened = LR_NOFD;
	struct lr_init_process *p = c->process;
	struct lr_tty_pty pty;

	if (p->console < 0)
		return 0;
	int root = c->plan ? c->plan->tree.state.rootfd
			   : (opened = lr_open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
	if (root < 0)
		return lr_fail(err, errno, "open the container's root");
	int r = lr_tty_open_pty(root, &p->tty, &pty, err);
	if (r < 0)
		return r;
	r = lr_tty_send_fd(p->console, pty.master, pty.name, err);
	lr_close(pty.master);
	p->console = lr_close(p->console);
	c->becoming.slave = pty.slave;
	return r;
}

static void end_by_signal(int sig)
{
	lr_proc_end(128 + sig);
}

/*
 * The first process of a pid namespace gets only signals that it has a handler for, and a container
 * that waits for start must not wait for ever. execve resets them.
 */
static int end_on_signals(struct lr_err *err)
{
	static const int signals[] = LR_INIT_ENDS_BY;
	const struct sigaction end = {.sa_handler = end_by_signal};

	for (size_t i = 0; i < LR_ARRAY_SIZE(signals); i++)
		if (sigaction(signals[i], &end, NULL) < 0)
			return lr_fail(err, errno, "handle signal %d", signals[i]);
	return 0;
}

/* That waits for `start`. */
static int wait_as_seed(struct lr_err *err)
{
	sigset_t none;

	sigemptyset(&none);
	int r = end_on_signals(err);
	if (r >= 0 && sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		r = lr_fail(err, errno, "unblock signals");
	return r;
}

static int stage_process(struct lr_child *c, struct lr_err *err)
{
	int r = 0;

	/* To put memory and threads in place takes rights. */
	if (c->process->seed)
		return c->becoming.go < 0 ? 0 : wait_as_seed(err);
	/* No parent will say START, and the record's descriptor is closed with the others in a
	 * moment. */
	if (c->shared && c->shared->record && c->becoming.go < 0)
		r = c->shared->record(c->shared->arg, c->pid, true, NULL, err);
	c->started = r >= 0;
	if (r >= 0)
		r = lr_process_become(c->process, &c->becoming, err);
	if (r >= 0 && c->becoming.go >= 0 && !c->process->stub_argv)
		r = end_on_signals(err);
	if (r >= 0)
		r = lr_process_load_notify(c->process, &c->becoming, err);
	return r;
}

/* With create: until somebody writes into the fifo. Otherwise: until the parent has recorded it. */
static int stage_wait(struct lr_child *c, struct lr_err *err)
{
	if (c->becoming.go < 0)
		return c->medium->wait(c, LR_STEP_START, NULL, err);

	/* A process that waits without end must be in the record, or a runtime that is killed now
	 * would leave a process that nobody finds. */
	int r = c->medium->wait(c, LR_STEP_RECORDED, NULL, err);
	/* The page waits instead, and takes less memory. That it was executed says READY. */
	if (r < 0 || c->process->stub_argv)
		return r;
	r = c->medium->tell(c, LR_STEP_READY, err);
	if (r < 0)
		return r;
	/* From here on, only `start` listens. */
	lr_close(c->becoming.sync);
	c->becoming.sync = c->becoming.answer;
	char byte;
	ssize_t n = lr_read_full(c->becoming.go, &byte, 1);
	if (n != 1)
		return lr_fail(err, n < 0 ? (int)-n : EPIPE, "wait for start");
	c->becoming.go = lr_close(c->becoming.go);
	return 0;
}

static int stage_program(struct lr_child *c, struct lr_err *err)
{
	int r = c->plan && c->plan->hooks ? lr_child_start_hooks(c, err) : 0;

	return r < 0 ? r : lr_process_execute(c->process, &c->becoming, err);
}

/* ---- the table ------------------------------------------------------------------------------- */

#define I LR_WHO_INIT
#define M LR_WHO_MEMBER
#define V LR_WHO_VISITOR

static const struct {
	const char *name;
	unsigned char who[3]; /* by enum lr_part: whole, between, sister */
	lr_stage *run;
} stages[] = {
	/* the host's mounts are visible, and the rights are the caller's */
	{"signals", {I | M | V, M | V, I}, stage_signals}, /* as a new program expects them */
	{"cgroup", {I | M, I | M, 0}, stage_cgroup},
	{"procfs", {I | M, I | M, I}, stage_procfs},
	{"mapped", {I, I, I}, stage_mapped},
	{"granted", {M, I | M, 0}, stage_granted},
	{"early", {I | M, I | M, 0}, stage_early},
	/* root of a new user namespace; hidden; then everything of the container's is joined */
	{"user", {I, I, 0}, stage_user},
	{"hidden", {I | M | V, I | M | V, I}, stage_hidden},
	{"between", {0, I, 0}, stage_between},
	{"enter", {M | V, M | V, M | V}, lr_stage_enter},
	{"sister", {0, I | M | V, 0}, stage_sister},
	{"visit", {V, 0, V}, lr_stage_visit},
	{"namespaces", {I, 0, I}, lr_stage_namespaces}, /* cgroup: rooted where we are */
	{"names", {I, 0, I}, lr_stage_names},
	/* the container is made; the host's files can still be seen */
	{"root", {I, 0, I}, lr_stage_root},
	{"mounts", {I, 0, I}, lr_stage_mounts}, /* some when the cgroup is joined */
	{"joined", {I, 0, I}, stage_joined},    /* the cgroup, if no mount needed it */
	{"devices", {I, 0, I}, lr_stage_devices},
	{"sysctl", {I, 0, I}, lr_stage_sysctl},
	{"terminal", {I | M, 0, I | M}, stage_terminal},
	{"hooks", {I, 0, I}, lr_stage_hooks},     /* the last to see the host's files */
	{"finish", {I, 0, I}, lr_stage_finish},   /* mounts that the stages above had to write to */
	{"protect", {I, 0, I}, lr_stage_protect}, /* the last to look up paths of the container's */
	{"pivot", {I, 0, I}, lr_stage_pivot},
	/* in the container, with less and less rights */
	{"files", {I, 0, 0}, lr_stage_files},          /* that a seed had open */
	{"process", {I | M, 0, I | M}, stage_process}, /* limits, ids, capabilities */
	{"wait", {I | M, 0, I | M}, stage_wait},       /* created */
	{"seed", {I, 0, 0}, lr_stage_seed}, /* keeps its rights up to its own last steps */
	{"program", {I | M, 0, I | M}, stage_program},
};

_Noreturn void lr_child_main(struct lr_child *c)
{
	struct lr_err err = {0};

	for (size_t i = 0; i < LR_ARRAY_SIZE(stages); i++) {
		if (!(stages[i].who[c->part] & c->who))
			continue;
		lr_debug("init: stage %zu, %s", i + 1, stages[i].name);
		if (stages[i].run(c, &err) < 0) {
			(void)lr_err_step(&err, stages[i].name);
			break;
		}
	}
	c->medium->report(c, &err);
	lr_proc_end(err.code == ENOENT ? 127 : 126);
}
