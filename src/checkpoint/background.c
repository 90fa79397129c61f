/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint: a seed whose ticket is told before its memory is copied. A process of its own does all
 * of it, as only who holds the frozen copies can let them go; the command ends with the ticket.
 *
 * If the command is killed before, the process takes the seed back, or, as long as nobody knows of
 * one, ends with it. If the process is killed, lean-forkd calls the seed damaged.
 */
#define LR_ROOM "checkpoint"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/checkpoint/internal.h"

/* One datagram to the command: a ticket, or why there is none. It answers with one byte. */
struct word {
	char ticket[LR_TICKET_TEXT];
	struct lr_err err;
};

static ssize_t say(int sock, const void *bytes, size_t size)
{
	ssize_t n;

	do
		n = send(sock, bytes, size, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static ssize_t hear(int sock, void *bytes, size_t size)
{
	ssize_t n;

	do
		n = recv(sock, bytes, size, 0);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* ---- the process that stays ------------------------------------------------------------------ */

/* Ours are all closed on execve. Those that are not the caller has left open for the command: a lock
 * that flock(1) takes for it would be kept as long, and who reads from a pipe would wait. */
static int close_callers(struct lr_err *err)
{
	LR_CLEANUP_DIR DIR *d = opendir("/proc/self/fd");

	if (!d)
		return lr_fail(err, errno, "list the caller's descriptors");
	for (struct dirent *e; errno = 0, (e = readdir(d));) {
		const int fd = atoi(e->d_name), flags = fd > 2 ? fcntl(fd, F_GETFD) : -1;
		if (flags >= 0 && !(flags & FD_CLOEXEC))
			close(fd);
	}
	return errno ? lr_fail(err, errno, "list the caller's descriptors") : 0;
}

/* Whoever reads what the command prints would wait for its end, and who unmounts where it was begun
 * would be refused. */
static int leave(struct lr_err *err)
{
	LR_CLEANUP_FD int null = lr_open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
		return lr_fail(err, errno, "leave the terminal");
	lr_log_set_sink(NULL, NULL);
	int r = close_callers(err);
	if (r >= 0 && chdir("/") < 0)
		r = lr_fail(err, errno, "leave the caller's directory");
	setsid(); /* it leads no group of processes, so this succeeds */
	return r;
}

static int hand_over(void *arg, const char *ticket, struct lr_err *err)
{
	const int sock = *(const int *)arg;
	struct word w = {0};
	char answer;

	/* From here on it ends in order; and nothing can fail when the ticket is told. */
	prctl(PR_SET_PDEATHSIG, 0);
	int r = leave(err);
	if (r < 0)
		return r;
	snprintf(w.ticket, sizeof(w.ticket), "%s", ticket);
	ssize_t n = say(sock, &w, sizeof(w));
	if (n >= 0)
		n = hear(sock, &answer, 1);
	if (n < 0 && n != -EPIPE && n != -ECONNRESET)
		return lr_fail(err, (int)-n, "tell the ticket to the command that asked for it");
	return n == 1 ? 0 : lr_refuse(err, EPIPE, "the command that asked for the seed has ended");
}

static void end_badly(int sock, const struct lr_err *why)
{
	const struct word w = {.err = *why};

	(void)!say(sock, &w, sizeof(w));
	_exit(1);
}

static void stay(const struct lr_checkpoint_job *job, pid_t command, int sock,
		 int (*work)(void *, const struct lr_checkpoint_opts *, struct lr_err *), void *arg)
{
	struct lr_checkpoint_opts o = *job->opts;
	struct lr_err err = {0};

	o.tell = hand_over;
	o.tell_arg = &sock;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) {
		lr_fail(&err, errno, "end with the command");
		end_badly(sock, &err);
	}
	if (getppid() != command)
		_exit(1);
	/* The command has it, too, and lets it go at its end. */
	lr_close(job->lock);
	if (work(arg, &o, &err) < 0)
		end_badly(sock, &err);
	_exit(0);
}

/* ---- the command ----------------------------------------------------------------------------- */

/* With errno of a call that failed; 0: the other end is closed. */
static int fail_apart(int error, struct lr_err *err)
{
	if (error && error != EPIPE && error != ECONNRESET)
		return lr_fail(err, error, "talk to the process that makes the seed");
	lr_refuse(err, ECANCELED, "the process that makes the seed was killed");
	return lr_err_hint(err, "see dmesg: for want of memory?");
}

static int take_word(int sock, const struct lr_checkpoint_opts *o, struct lr_err *err)
{
	struct word w;
	ssize_t n = hear(sock, &w, sizeof(w));

	if (n != (ssize_t)sizeof(w))
		return fail_apart(n < 0 ? (int)-n : 0, err);
	if (w.err.code) {
		if (err)
			*err = w.err;
		return -w.err.code;
	}
	memcpy(o->ticket, w.ticket, sizeof(w.ticket));
	int r = o->tell ? o->tell(o->tell_arg, o->ticket, err) : 0;
	if (r < 0)
		return r;
	n = say(sock, "", 1);
	return n < 0 ? fail_apart((int)-n, err) : 0;
}

int lr_checkpoint_apart(const struct lr_checkpoint_job *job,
			int (*work)(void *arg, const struct lr_checkpoint_opts *o,
				    struct lr_err *err),
			void *arg, struct lr_err *err)
{
	const pid_t self = getpid();
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return lr_fail(err, errno, "make a socket");
	pid_t pid = fork();
	if (pid == 0) {
		lr_close(sv[0]);
		stay(job, self, sv[1], work, arg);
	}
	lr_close(sv[1]);
	int r = pid < 0 ? lr_fail(err, errno, "make a process for the seed")
			: take_word(sv[0], job->opts, err);
	lr_close(sv[0]);
	/* The container is what it was when it has ended. */
	if (r < 0 && pid > 0)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	return r;
}
