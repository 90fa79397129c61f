/* SPDX-License-Identifier: Apache-2.0 */
/* criu: its process, and the talk with it. */
#define LR_ROOM "criu"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/criu/criu.h"
#include "src/sys/proc.h"
#include "src/sys/socket.h"
#include "src/sys/syscalls.h"

#define USUAL_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define ANSWER_MAX 65536

static int no_criu(const char *program, int why, struct lr_err *err)
{
	lr_fail(err, why, "execute %s", program);
	return lr_err_hint(err,
			   "checkpoint and restore need the program criu, %d.%d or later: "
			   "install it, or name it by --criu",
			   LR_CRIU_OLDEST / 10000, LR_CRIU_OLDEST / 100 % 100);
}

/* Podman calls with an environment that has no PATH. */
static int find(const char *program, char *buf, size_t size)
{
	const char *path = getenv("PATH");

	if (strchr(program, '/'))
		return (size_t)snprintf(buf, size, "%s", program) < size && access(buf, X_OK) == 0
			       ? 0
			       : -errno;
	if (!path || !*path)
		path = USUAL_PATH;
	for (; *path; path += strcspn(path, ":"), path += *path == ':') {
		int n = (int)strcspn(path, ":");
		if (n && (size_t)snprintf(buf, size, "%.*s/%s", n, path, program) < size &&
		    access(buf, X_OK) == 0)
			return 0;
	}
	return -ENOENT;
}

/* A copy that is out of the way of the numbers that criu's have. */
static int keep_high(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, 64);

	/* The limit of open files is below that. */
	return high >= 0 ? high : errno == EINVAL ? -EMFILE : -errno;
}

/* Descriptors that are to be at known numbers, out of the way of those numbers first. */
static int place(int sock, int output, const struct lr_criu_how *how)
{
	size_t n = how->n_fds + 3;
	int want[16], high[16];

	if (n > LR_ARRAY_SIZE(want))
		return -E2BIG;
	want[0] = output;
	want[1] = output;
	want[2] = sock;
	for (size_t i = 0; i < how->n_fds; i++)
		want[3 + i] = how->fds[i];
	for (size_t i = 0; i < n; i++)
		if ((high[i] = keep_high(want[i])) < 0)
			return high[i];
	for (size_t i = 0; i < n; i++)
		if (dup2(high[i], (int)i + 1) < 0)
			return -errno;
	(void)lr_close_range((unsigned)n + 1, ~0U, CLOSE_RANGE_CLOEXEC);
	return 0;
}

/*
 * criu looks for descriptors that a request names in the process that has made the socket, whose
 * mount namespace has to be criu's own: so it is made here, and our end of it is sent to the
 * caller.
 */
static int make_socket(int tell, struct lr_err *err)
{
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return lr_fail(err, errno, "make a socket for criu");
	int r = lr_socket_send_fd(tell, sv[0], "", 1);
	close(sv[0]);
	return r < 0 ? lr_fail(err, -r, "hand over criu's socket") : sv[1];
}

static _Noreturn void child(const struct lr_criu_how *how, const char *path, int output, int tell)
{
	char *argv[] = {(char *)"criu", (char *)"swrk", (char *)"3", NULL};
	struct lr_err err = {0};
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		(void)lr_signal_default(sig);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	int high = keep_high(tell);
	int r = high < 0 ? lr_fail(&err, -high, "keep a descriptor") : 0;
	if (r >= 0 && !how->restores && setpgid(0, 0) < 0)
		r = lr_fail(&err, errno, "make a process group for criu");
	if (r >= 0 && how->before)
		r = how->before(how->arg, &err);
	int sock = r >= 0 ? make_socket(high, &err) : r;
	if (sock >= 0) {
		r = place(sock, output, how);
		if (r >= 0)
			execv(path, argv);
		no_criu(path, r < 0 ? -r : errno, &err);
	}
	(void)send(high < 0 ? tell : high, &err, sizeof(err), MSG_NOSIGNAL);
	_exit(127);
}

/* The socket comes first; then an error, or the end, when it was executed. */
static int hear(int told, int *sock, struct lr_err *err)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct lr_err why = {0};
	ssize_t n;

	do {
		struct iovec iov = {&why, sizeof(why)};
		struct msghdr msg = {
			.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control.bytes,
			.msg_controllen = sizeof(control.bytes),
		};
		n = recvmsg(told, &msg, MSG_CMSG_CLOEXEC);
		struct cmsghdr *c = n == 1 ? CMSG_FIRSTHDR(&msg) : NULL;
		if (c && c->cmsg_type == SCM_RIGHTS)
			memcpy(sock, CMSG_DATA(c), sizeof(*sock));
		else if (n == 1 && (msg.msg_flags & MSG_CTRUNC))
			return lr_fail(err, EMFILE, "take criu's socket");
	} while (n == 1 || (n < 0 && errno == EINTR));
	if (n < 0)
		return lr_fail(err, errno, "start criu");
	if (n == 0 && *sock >= 0)
		return 0;
	if (n != (ssize_t)sizeof(why) || !why.code)
		return lr_refuse(err, EPIPE, "criu's process died before it was executed");
	if (err)
		*err = why;
	return -why.code;
}

int lr_criu_open(const struct lr_criu_how *how, struct lr_criu_session *ret, struct lr_err *err)
{
	const char *program = how->program ? how->program : "criu";
	struct lr_criu_session s = LR_CRIU_SESSION_NONE;
	char path[4096];
	int tell[2];

	int r = find(program, path, sizeof(path));
	if (r < 0)
		return no_criu(program, -r, err);
	s.output = lr_memfd_create("criu-output", MFD_CLOEXEC);
	if (s.output < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, tell) < 0) {
		r = lr_fail(err, s.output < 0 ? -s.output : errno, "prepare to start criu");
		lr_criu_close(&s);
		return r;
	}
	s.pid = fork();
	if (s.pid == 0)
		child(how, path, s.output, tell[1]);
	int why = errno;
	close(tell[1]);
	if (s.pid < 0) {
		r = lr_fail(err, why, "fork for criu");
		s.pid = 0;
	} else {
		s.group = !how->restores;
		s.pidfd = lr_pidfd_open(s.pid, 0);
		s.saved = how->saves ? lr_pidfd_open(how->saves, 0) : LR_NOFD;
		lr_debug("criu: %s swrk is process %d", path, s.pid);
		r = hear(tell[0], &s.sock, err);
	}
	/* Our end of criu's socket may still be in there, and criu waits for as long as it is. */
	close(tell[0]);
	if (r < 0)
		lr_criu_close(&s);
	else
		*ret = s;
	return r;
}

/*
 * Until it says something, or ends. idle: nothing is left for it to do but to end what it has saved. Processes
 * that it has started hold the socket, too, and do not all end when it is killed: so its own end counts.
 * False: its time is up.
 */
static bool wait_for(const struct lr_criu_session *s, bool idle)
{
	struct pollfd v[] = {
		{.fd = s->sock, .events = POLLIN},
		{.fd = s->pidfd, .events = POLLIN},
		{.fd = idle ? s->saved : LR_NOFD, .events = POLLIN},
	};
	int64_t end = idle && s->saved < 0 ? lr_now_ms() + LR_CRIU_END_MS : 0;

	for (;;) {
		const int64_t left = end ? end - lr_now_ms() : -1;
		int n = end && left <= 0 ? 0 : poll(v, LR_ARRAY_SIZE(v), (int)left);
		/* The kernel may be short of memory; criu is in the middle of something. */
		if (n < 0 && errno != EINTR)
			lr_sleep_us(10000);
		if (n < 0)
			continue;
		if (v[0].revents || v[1].revents || (end && n == 0))
			return n > 0;
		end = lr_now_ms() + LR_CRIU_END_MS;
		v[2].fd = LR_NOFD;
	}
}

void lr_criu_close(struct lr_criu_session *s)
{
	siginfo_t info;

	s->sock = lr_close(s->sock);
	if (s->pid > 0 && s->pidfd >= 0 && !wait_for(s, true)) {
		lr_debug("criu: process %d does not end: it is killed", s->pid);
		(void)kill(s->pid, SIGKILL);
	}
	/* Its number is its group's for as long as it is not waited for. */
	while (s->pid > 0 && s->group &&
	       waitid(P_PID, (id_t)s->pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
		;
	if (s->pid > 0 && s->group)
		(void)kill(-s->pid, SIGKILL);
	while (s->pid > 0 && waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
		;
	s->pid = 0;
	s->pidfd = lr_close(s->pidfd);
	s->saved = lr_close(s->saved);
	s->output = lr_close(s->output);
}

static int send_request(int sock, const struct lr_criu_request *rq, struct lr_arena *a,
			struct lr_err *err)
{
	uint8_t *bytes;
	size_t n;

	int r = lr_criu_encode(rq, a, &bytes, &n, err);
	if (r < 0)
		return r;
	ssize_t sent;
	do
		sent = send(sock, bytes, n, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return lr_fail(err, errno, "send a request of %zu bytes to criu", n);
	return 0;
}

/* The last descriptor that came with the message; what was in *fd before is closed. */
static void take_descriptor(struct msghdr *msg, int *fd)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int got;
			memcpy(&got, CMSG_DATA(c) + i * sizeof(int), sizeof(got));
			lr_close(*fd);
			*fd = got;
		}
	}
}

/* Until there is a message, or its end. */
static int await(const struct lr_criu_session *s, bool idle, struct lr_err *err)
{
	struct pollfd said = {.fd = s->sock, .events = POLLIN};

	if (s->pidfd < 0)
		return 0;
	if (!wait_for(s, idle)) {
		(void)kill(s->pid, SIGKILL);
		return lr_refuse(err, ETIMEDOUT,
				 "criu has not answered, %d s after the end of what it saved",
				 LR_CRIU_END_MS / 1000);
	}
	/* What it has sent came before its end. */
	if (poll(&said, 1, 0) == 0)
		return lr_refuse(err, EPIPE, "criu ended without an answer");
	return 0;
}

/* *fd: of a terminal's master, with the notification that is about it; LR_NOFD: none. */
static int receive(int sock, uint8_t *buf, struct lr_criu_response *ret, int *fd,
		   struct lr_err *err)
{
	union {
		char bytes[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {buf, ANSWER_MAX};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	ssize_t n;

	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno != ECONNRESET)
		return lr_fail(err, errno, "hear from criu");
	if (n <= 0)
		return lr_refuse(err, EPIPE, "criu ended without an answer");
	take_descriptor(&msg, fd);
	if (msg.msg_flags & MSG_TRUNC)
		return lr_refuse(err, EMSGSIZE, "criu answers at too great a length");
	return lr_criu_decode(buf, (size_t)n, ret, err);
}

int lr_criu_ask(const struct lr_criu_session *s, const struct lr_criu_request *rq,
		lr_criu_notified *notified, void *arg, struct lr_criu_response *ret,
		struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	uint8_t *buf = lr_alloc(a, ANSWER_MAX);
	bool idle = false;
	int failed = 0;

	if (!buf)
		return lr_fail(err, ENOMEM, "talk to criu");
	int r = send_request(s->sock, rq, a, err);
	while (r >= 0) {
		LR_CLEANUP_FD int fd = LR_NOFD;
		r = await(s, idle, failed ? NULL : err);
		if (r >= 0)
			r = receive(s->sock, buf, ret, &fd, failed ? NULL : err);
		if (r < 0 || ret->type != LR_CRIU_NOTIFY)
			break;
		lr_debug("criu: %s", ret->script);
		if (!failed && notified)
			failed = notified(arg, ret, &fd, err);
		const struct lr_criu_request answer = {
			.type = LR_CRIU_NOTIFY,
			.notify_success = failed >= 0,
		};
		failed = failed < 0 ? failed : 0;
		idle = idle || (!failed && lr_streq(ret->script, "post-dump"));
		r = send_request(s->sock, &answer, a, failed ? NULL : err);
	}
	if (failed)
		return failed;
	if (r < 0)
		return r;
	return ret->success ? 0 : lr_refuse(err, EREMOTEIO, "criu failed");
}

/* Each question needs a criu of its own: it ends with its answer. */
static int ask_one(const char *program, const struct lr_criu_request *rq,
		   struct lr_criu_response *rsp, struct lr_err *err)
{
	const struct lr_criu_how how = {.program = program};
	struct lr_criu_session s = LR_CRIU_SESSION_NONE;
	char why[256];

	int r = lr_criu_open(&how, &s, err);
	if (r < 0)
		return r;
	r = lr_criu_ask(&s, rq, NULL, NULL, rsp, err);
	if (r == -EREMOTEIO || r == -EPIPE) {
		lr_criu_why(LR_NOFD, NULL, s.output, why, sizeof(why));
		lr_refuse(err, -r, "%s does not tell what it can%s%s", program ? program : "criu",
			  *why ? ": " : "", why);
	}
	lr_criu_close(&s);
	return r;
}

int lr_criu_check(const char *program, bool lazy_pages, bool mem_track, struct lr_err *err)
{
	struct lr_criu_response rsp = {0};

	int r = ask_one(program, &(struct lr_criu_request){.type = LR_CRIU_VERSION}, &rsp, err);
	if (r < 0)
		return r;
	lr_debug("criu: version %d", rsp.version);
	if (rsp.version < LR_CRIU_OLDEST) {
		lr_refuse(err, EOPNOTSUPP, "criu %d.%d.%d is too old", rsp.version / 10000,
			  rsp.version / 100 % 100, rsp.version % 100);
		return lr_err_hint(err, "%d.%d is the oldest that will do", LR_CRIU_OLDEST / 10000,
				   LR_CRIU_OLDEST / 100 % 100);
	}
	if (!lazy_pages && !mem_track)
		return 0;
	const struct lr_criu_request rq = {
		.type = LR_CRIU_FEATURES,
		.lazy_pages = lazy_pages,
		.mem_track = mem_track,
	};
	r = ask_one(program, &rq, &rsp, err);
	if (r < 0)
		return r;
	if (lazy_pages && !rsp.lazy_pages)
		return lr_refuse(
			err, EOPNOTSUPP,
			"--lazy-pages: criu says that the kernel cannot fetch memory lazily "
			"(userfaultfd)");
	if (!mem_track || rsp.mem_track)
		return 0;
	/* criu would take every page for one that was not written since. */
	lr_refuse(
		err, EOPNOTSUPP,
		"--pre-dump and --parent-path: criu says that the kernel cannot tell which memory "
		"was written since");
	return lr_err_hint(err, "that takes CONFIG_MEM_SOFT_DIRTY; without these options all "
				"memory is dumped at once");
}
