/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint: a container that is paused runs while criu saves it. On v1 nobody can stop a frozen process by ptrace(2).
 * On v2 criu can, but holds a child of vfork(2) before that executes its program, and the parent, who waits for that, can
 * not be stopped then. What is not frozen is stopped parents first.
 *
 * A process of ours pauses it again if the runtime is killed meanwhile. It has the container's lock until then.
 */
#define LR_ROOM "checkpoint"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/checkpoint/internal.h"
#include "src/sys/proc.h"
#include "src/sys/syscalls.h"

/* So long criu may take to let go of what it held, once nobody listens to it. */
#define CRIU_ENDS_MS 15000

/* Out of reach of what ends a group of processes; nobody waits for its output. */
static void stand_apart(const struct lr_criu_session *criu)
{
	int null = lr_open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		(void)dup2(null, fd);
	/* criu ends when it is the last that has it open. */
	close(criu->sock);
}

/* If the container has ended, its cgroup may be another one's by now. */
static int pause_again(const struct lr_checkpoint_job *job, const struct lr_thaw *t)
{
	struct pollfd dies = {.fd = t->init, .events = POLLIN};

	if (t->init >= 0 ? poll(&dies, 1, 0) > 0 : lr_proc_dies(job->pid))
		return 0;
	return lr_cgroup_freeze_again(job->cgroup, NULL);
}

/* Says that it is there. The runtime says nothing: the socket ends with it, and it ends us if all went well. */
static _Noreturn void guard(const struct lr_checkpoint_job *job, const struct lr_criu_session *criu,
			    const struct lr_thaw *t, int runtime)
{
	struct pollfd ends = {.fd = lr_pidfd_open(criu->pid, 0), .events = POLLIN};
	char word = 0;

	stand_apart(criu);
	while (send(runtime, &word, 1, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			_exit(errno);
	while (read(runtime, &word, 1) < 0 && errno == EINTR)
		;
	(void)poll(&ends, 1, CRIU_ENDS_MS);
	(void)!pause_again(job, t);
	_exit(0);
}

/* Its exit status is what had failed. */
static int why_ended(struct lr_thaw *t)
{
	int status = 0;

	while (waitpid(t->guard, &status, 0) < 0 && errno == EINTR)
		;
	t->guard = 0;
	t->lives = lr_close(t->lives);
	return WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : ECHILD;
}

static int start_guard(const struct lr_checkpoint_job *job, const struct lr_criu_session *criu,
		       struct lr_thaw *t, struct lr_err *err)
{
	int pair[2];
	ssize_t n;
	char word;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return lr_fail(err, errno, "watch over a paused container");
	t->guard = fork();
	if (t->guard == 0) {
		close(pair[1]);
		guard(job, criu, t, pair[0]);
	}
	const int why = errno;
	close(pair[0]);
	t->lives = pair[1];
	if (t->guard < 0) {
		t->guard = 0;
		t->lives = lr_close(t->lives);
		return lr_fail(err, why, "fork to watch over a paused container");
	}
	do
		n = read(t->lives, &word, 1);
	while (n < 0 && errno == EINTR);
	return n == 1 ? 0
		      : lr_fail(err, n < 0 ? errno : why_ended(t), "watch over a paused container");
}

int lr_thaw_begin(const struct lr_checkpoint_job *job, const struct lr_criu_session *criu,
		  struct lr_thaw *t, struct lr_err *err)
{
	*t = (struct lr_thaw){.lives = LR_NOFD, .init = LR_NOFD};
	if (!job->paused)
		return 0;
	t->init = lr_pidfd_open(job->pid, 0);
	if (t->init == -ESRCH)
		return lr_refuse(err, ESRCH, "the container has ended");
	int r = start_guard(job, criu, t, err);
	return r < 0 ? r : lr_cgroup_freeze(job->cgroup, false, err);
}

/* The guard goes last: it is there for whoever is killed before that. */
static void end_guard(struct lr_thaw *t)
{
	(void)kill(t->guard, SIGKILL);
	t->lives = lr_close(t->lives);
	while (waitpid(t->guard, NULL, 0) < 0 && errno == EINTR)
		;
}

int lr_thaw_end(const struct lr_checkpoint_job *job, struct lr_thaw *t, int r, struct lr_err *err)
{
	int frozen = 0;

	if (t->guard && (r < 0 || lr_checkpoint_lives_on(&lr_checkpoint_criu, job->opts)))
		frozen = pause_again(job, t);
	t->init = lr_close(t->init);
	if (!t->guard)
		return r;
	if (frozen >= 0) {
		end_guard(t);
		return r;
	}
	/* It tries once more, with the container's lock, and we need not wait for that. */
	t->lives = lr_close(t->lives);
	if (r < 0) {
		lr_warn("the container was paused, and some of it may run now: it does not stop "
			"again");
		return r;
	}
	lr_fail(err, -frozen, "the container is saved, and cannot be paused again");
	return lr_err_hint(err, "some of it may run now");
}
