/* SPDX-License-Identifier: Apache-2.0 */
/* init: the steps from a clone in the right namespaces to the program; see process.h. */
#define LR_ROOM "process"
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/init/ends.h"
#include "src/init/process.h"
#include "src/init/program.h"
#include "src/init/sync.h"
#include "src/sys/syscalls.h"

bool lr_process_wants_procfs(const struct lr_init_process *p)
{
	return p->lsm.apparmor || p->lsm.selinux || p->oom_score_adj;
}

int lr_process_reset_signals(uint64_t which, struct lr_err *err)
{
	for (int sig = 1; sig <= 64; sig++) {
		if (!(which & UINT64_C(1) << (sig - 1)) || sig == SIGKILL || sig == SIGSTOP)
			continue;
		int r = lr_signal_default(sig);
		if (r < 0)
			return lr_fail(err, -r, "reset signal %d", sig);
	}
	umask(0);
	return 0;
}

int lr_process_keyring(const struct lr_init_process *p, int procfd, struct lr_err *err)
{
	if (!p->keyring)
		return 0;
	int r = lr_lsm_label_keys(&p->lsm, procfd, true, err);
	if (r < 0)
		return r;
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, p->keyring) < 0) {
		/* Kernels without keyrings, and sandboxes that deny them, have nothing to
		 * isolate. */
		if (errno != ENOSYS && errno != EPERM) {
			lr_fail(err, errno, "create the session keyring");
			return lr_err_hint(err,
					   "use --no-new-keyring, or raise kernel.keys.maxkeys");
		}
		lr_debug("process: no session keyring: errno %d", errno);
	}
	return lr_lsm_label_keys(&p->lsm, procfd, false, err);
}

int lr_process_early(struct lr_init_process *p, struct lr_becoming *b, struct lr_err *err)
{
	return lr_limits_oom_apply(p->oom_score_adj, b->procfd, p->rootless, err);
}

static int apply_limits(struct lr_init_process *p, struct lr_err *err)
{
	int r = lr_limits_sched_apply(&p->sched, err);

	if (r >= 0)
		r = lr_limits_mempolicy_apply(&p->mempolicy, err);
	if (r >= 0 && p->has_personality)
		r = lr_limits_personality_apply(p->personality, err);
	/* Last: RLIMIT_NOFILE and RLIMIT_AS may not leave room for anything else. */
	if (r >= 0)
		r = lr_limits_rlimits_apply(&p->rlimits, 0, err);
	return r;
}

/*
 * CVE-2024-21626: while a descriptor of the host is open, a crafted cwd leads out of the container.
 * Such a directory has no path below our root, and getcwd says so.
 */
static int enter_cwd(const char *cwd, struct lr_err *err)
{
	char real[PATH_MAX];

	if (chdir(cwd) < 0) {
		lr_fail(err, errno, "chdir to cwd (\"%s\")", cwd);
		lr_err_hint(err,
			    "it must be a directory that user and mounts let the process enter");
		return lr_err_at(err, "process.cwd");
	}
	if (lr_streq(cwd, "/"))
		return 0;
	long len = syscall(SYS_getcwd, real, sizeof(real));
	if (len < 0 && errno != ENOENT) {
		lr_fail(err, errno, "find out where the working directory \"%s\" is", cwd);
		return lr_err_at(err, "process.cwd");
	}
	if (len < 0 || real[0] != '/') {
		lr_refuse(err, EPERM, "the working directory \"%s\" is outside of the container",
			  cwd);
		return lr_err_at(err, "process.cwd");
	}
	return 0;
}

static int become_user(struct lr_init_process *p, struct lr_becoming *b, struct lr_err *err)
{
	/* As root first: a user may own a directory it cannot reach. Then, if root could not
	 * (NFS with root_squash), as the user. */
	int cwd = b->in_root && lr_streq(p->cwd, "/") ? 0 : enter_cwd(p->cwd, err);
	if (cwd < 0 && cwd != -EACCES)
		return cwd;
	int r = p->keep_bounding ? 0 : lr_caps_apply_bounding(&p->caps, err);
	/* At setuid, every id but 0 loses all capabilities, unless this is set. */
	if (r >= 0 && p->user.uid != 0)
		r = lr_caps_keep(err);
	if (r >= 0)
		r = lr_user_own_stdio(&p->user, err);
	if (r >= 0)
		r = lr_user_apply(&p->user, err);
	if (r >= 0 && cwd < 0)
		r = enter_cwd(p->cwd, err);
	return r;
}

/* The filter needs CAP_SYS_ADMIN or no-new-privileges (seccomp(2)). */
static bool keeps_admin(const struct lr_init_process *p)
{
	return p->seccomp && !p->no_new_privileges &&
	       !(p->caps.effective & LR_CAPS_BIT(CAP_SYS_ADMIN));
}

static int apply_caps(struct lr_init_process *p, struct lr_err *err)
{
	struct lr_caps_plan now = p->caps;

	if (keeps_admin(p)) {
		now.permitted |= LR_CAPS_BIT(CAP_SYS_ADMIN);
		now.effective |= LR_CAPS_BIT(CAP_SYS_ADMIN);
	}
	return lr_caps_apply_final(&now, err);
}

static int find_home(struct lr_init_process *p, struct lr_becoming *b, struct lr_err *err)
{
	if (!p->add_home)
		return 0;
	memcpy(b->home, "HOME=", strlen("HOME="));
	int r = lr_user_home(AT_FDCWD, p->user.uid, b->home + strlen("HOME="), PATH_MAX);
	if (r < 0)
		return lr_fail(err, -r, "look up the home directory of user %u", p->user.uid);
	p->env[p->n_env] = b->home;
	p->env[p->n_env + 1] = NULL;
	return 0;
}

#define NR_OPEN (1U << 20)

static int close_from_to(unsigned first, unsigned last, struct lr_err *err)
{
	if (first > last)
		return 0;
	int r = lr_close_range(first, last, 0);
	if (r != -ENOSYS && r != -EPERM)
		return r < 0 ? lr_fail(err, -r, "close descriptors") : 0;
	/* Before Linux 5.9. Not to RLIMIT_NOFILE: it was lowered a moment ago, and descriptors
	 * above it stay open. This is how far the kernel goes unless fs.nr_open was raised. */
	for (unsigned fd = first; fd <= last && fd < NR_OPEN; fd++)
		close((int)fd);
	return 0;
}

static int ascending(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

int lr_process_close_from(unsigned first, int *keep, size_t n, struct lr_err *err)
{
	int r = 0;

	qsort(keep, n, sizeof(keep[0]), ascending);
	for (size_t i = 0; r >= 0 && i < n; i++) {
		if (keep[i] < (int)first)
			continue;
		r = close_from_to(first, (unsigned)keep[i] - 1, err);
		first = (unsigned)keep[i] + 1;
	}
	return r < 0 ? r : close_from_to(first, ~0U, err);
}

/* The caller may have left gaps in what it passes on. What is close-on-exec in there is ours. */
static void close_own_among(unsigned end, const int *keep, size_t n)
{
	for (int fd = 3; fd < (int)end; fd++) {
		bool needed = false;
		for (size_t i = 0; i < n; i++)
			needed = needed || keep[i] == fd;
		int flags = needed ? 0 : fcntl(fd, F_GETFD);
		if (flags > 0 && flags & FD_CLOEXEC)
			close(fd);
	}
}

/*
 * CVE-2024-21626: a process in the container that waits for `start` holds nothing of the host but
 * what it waits for, and the program gets 0, 1, 2 and what the caller asked to be preserved. The
 * log is closed, too: its descriptor's number may be given to another file soon.
 */
static int close_rest(const struct lr_init_process *p, struct lr_becoming *b, struct lr_err *err)
{
	/* The log's descriptor is one of those. */
	lr_debug("process: closing the host's descriptors; what follows is wait, then program %s",
		 b->program);
	int keep[] = {b->sync,     b->go,       b->answer,
		      b->hooks[0], b->hooks[1], p->stub_argv ? p->stub : LR_NOFD};
	unsigned first = 3 + (unsigned)p->preserve_fds;

	if (!b->shared)
		lr_log_set_sink(NULL, NULL);
	b->procfd = LR_NOFD;
	close_own_among(first, keep, LR_ARRAY_SIZE(keep));
	/* It is the page that waits for `start`, if anybody does, and its execve closes what is marked.
	 * Linux 5.11. */
	if (b->shared && p->stub_argv && lr_close_range(first, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
		return 0;
	return lr_process_close_from(first, keep, LR_ARRAY_SIZE(keep), err);
}

/* The caller's descriptors may have the numbers 0 to 2, so all are moved away before the first is
 * set. */
static int take_stdio(const int stdio[3], struct lr_err *err)
{
	int from[3];

	if (stdio[0] == 0 && stdio[1] == 1 && stdio[2] == 2)
		return 0;
	for (int i = 0; i < 3; i++) {
		from[i] = stdio[i] > 2 ? stdio[i] : fcntl(stdio[i], F_DUPFD_CLOEXEC, 3);
		if (from[i] < 0)
			return lr_fail(err, errno, "pass on descriptor %d", stdio[i]);
	}
	for (int i = 0; i < 3; i++)
		if (dup2(from[i], i) < 0)
			return lr_fail(err, errno, "pass on descriptor %d", stdio[i]);
	return 0;
}

/* The caller may have signals blocked; a program that inherited that could not be ended by TERM. A
 * page that waits unblocks the signals itself, when it has handlers for those that end it. */
static int unblock_signals(bool waits, struct lr_err *err)
{
	static const int later[] = LR_INIT_ENDS_BY;
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; waits && i < LR_ARRAY_SIZE(later); i++)
		sigaddset(&set, later[i]);
	return sigprocmask(SIG_SETMASK, &set, NULL) < 0 ? lr_fail(err, errno, "unblock signals")
							: 0;
}

int lr_process_become(struct lr_init_process *p, struct lr_becoming *b, struct lr_err *err)
{
	int r = lr_process_keyring(p, b->procfd, err);

	if (r >= 0 && b->slave >= 0)
		r = lr_tty_attach(lr_take_fd(&b->slave), err);
	if (r >= 0 && p->stdio)
		r = take_stdio(p->stdio, err);
	if (r >= 0)
		r = lr_lsm_apply(&p->lsm, b->procfd, err);
	if (r >= 0)
		r = find_home(p, b, err);
	/* RLIMIT_NOFILE may be lowered: all files are open by now, and descriptors that are closed
	 * late (lr_close_late) have low numbers. */
	if (r >= 0)
		r = apply_limits(p, err);
	if (r >= 0)
		r = become_user(p, b, err);
	if (r >= 0)
		r = apply_caps(p, err);
	if (r >= 0 && p->no_new_privileges && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = lr_fail(err, errno, "set no-new-privileges");
	if (r >= 0 && p->argv[0])
		r = lr_program_find(p->argv[0], (const char *const *)p->env, b->program,
				    sizeof(b->program), err);
	if (r >= 0)
		r = close_rest(p, b, err);
	return r < 0 ? r : unblock_signals(p->stub_argv && b->go >= 0, err);
}

static int load_filter(const struct lr_init_process *p, int *listener, struct lr_err *err)
{
	int r = lr_seccomp_load(p->seccomp, listener, err);

	if (r >= 0 && keeps_admin(p))
		r = lr_caps_apply_final(&p->caps, err);
	return r;
}

int lr_process_load_notify(struct lr_init_process *p, struct lr_becoming *b, struct lr_err *err)
{
	LR_CLEANUP_FD int listener = LR_NOFD;

	if (!p->seccomp || !p->seccomp->notify)
		return 0;
	int r = load_filter(p, &listener, err);
	if (r >= 0)
		r = lr_sync_write(b->sync, LR_STEP_FILTER, listener, err);
	if (r >= 0)
		r = lr_sync_wait(b->sync, LR_STEP_AGENT, NULL, err);
	return r;
}

int lr_process_confine(const struct lr_init_process *p, struct lr_err *err)
{
	return p->seccomp && !p->seccomp->notify ? load_filter(p, NULL, err) : 0;
}

static int execute_stub(struct lr_init_process *p, struct lr_becoming *b, struct lr_err *err)
{
	int report = b->answer >= 0 ? b->answer : b->sync;

	/* lr_process_become has closed every other descriptor. */
	snprintf(b->stub_text, sizeof(b->stub_text), b->go < 0 ? "%d" : "%d:%d", report, b->go);
	p->stub_argv[0] = b->stub_text;
	p->stub_argv[1] = b->program;
	if (fcntl(report, F_SETFD, 0) < 0 || (b->go >= 0 && fcntl(b->go, F_SETFD, 0) < 0))
		return lr_fail(err, errno, "keep the descriptors of the sealed program");
	int r = lr_execveat(p->stub, "", (char *const *)p->stub_argv, (char *const *)p->env,
			    AT_EMPTY_PATH);
	if (r != -EACCES)
		return lr_program_explain(b->program, -r, err);
	lr_fail(err, EACCES, "execute the sealed program that executes %s", b->program);
	return lr_err_hint(err, "does a security module forbid programs in memory? The command "
				"line does without, if LEAN_RUNTIME_SELF=mount is set");
}

int lr_process_execute(struct lr_init_process *p, struct lr_becoming *b, struct lr_err *err)
{
	/* A parent that shares our memory knows the name. */
	if (p->stub_argv && (b->answer >= 0 || !b->shared))
		lr_sync_send_program(b->answer >= 0 ? b->answer : b->sync, b->program);
	int r = lr_process_confine(p, err);
	if (r < 0)
		return r;
	r = p->stub_argv ? execute_stub(p, b, err)
			 : lr_program_exec(b->program, p->argv, (const char *const *)p->env, err);
	bool explained = err && err->hint[0];
	return p->seccomp && !explained
		       ? lr_err_hint(err,
				     "linux.seccomp must allow execve and what loads a program")
		       : r;
}
