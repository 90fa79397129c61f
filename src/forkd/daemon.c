/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: the main thread: listens, looks after leases and the keeper, ends. */
#define LR_ROOM "forkd"
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/forkd/direct.h"
#include "src/forkd/forkd.h"
#include "src/forkd/handover.h"
#include "src/forkd/heir.h"
#include "src/forkd/held.h"
#include "src/forkd/keeper.h"
#include "src/forkd/main.h"
#include "src/forkd/outlet.h"
#include "src/forkd/remote.h"

enum { CONTROL, METRICS, NET, HANDOVER, SIGNALS, KEEPER, SOURCES };

static int ending = LR_NOFD;

int ending_fd(void)
{
	return ending;
}

void forkd_log(const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fprintf(stderr, "lean-forkd: %s\n", line);
}

int forkd_thread(void *(*run)(void *), void *arg)
{
	pthread_attr_t a;
	pthread_t t;

	pthread_attr_init(&a);
	pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&a, 256 << 10);
	int r = pthread_create(&t, &a, run, arg);
	pthread_attr_destroy(&a);
	return -r;
}

/* Where there is no room for a connection it waits for a moment: who is not accepted asks again at
 * once. */
static void not_accepted(int code)
{
	static int64_t told;

	if (code == EINTR || code == ECONNABORTED || code == EAGAIN)
		return;
	if (!told || lr_now_ms() - told > 10000) {
		told = lr_now_ms();
		forkd_log("a connection has to wait: %s", lr_strerror(code));
	}
	lr_sleep_us(20000);
}

int forkd_accept(int listener, struct sockaddr *sa, socklen_t *size, int flags)
{
	int fd = accept4(listener, sa, size, flags | SOCK_CLOEXEC);

	if (fd < 0)
		not_accepted(errno);
	return fd;
}

/* ---- begin -------------------------------------------------------------------------------- */

static int listen_at(const char *place, struct lr_err *err)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				       .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	char host[LR_TICKET_HOST], service[8];
	struct addrinfo *a = NULL;
	const int one = 1;
	uint16_t port;

	if (listen_place(place, host, &port) < 0)
		return lr_refuse(err, EINVAL, "--listen wants HOST:PORT, not %s", place);
	snprintf(service, sizeof(service), "%u", port);
	int e = getaddrinfo(host, service, &hints, &a);
	if (e)
		return lr_refuse(err, EINVAL, "%s: %s", place, gai_strerror(e));
	LR_CLEANUP_FD int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int r = fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
				bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, 128) < 0
			? -errno
			: 0;
	freeaddrinfo(a);
	return r < 0 ? lr_fail(err, -r, "listen at %s", place) : lr_take_fd(&fd);
}

static int watch_signals(struct lr_err *err)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	int fd = signalfd(-1, &set, SFD_CLOEXEC);
	return fd < 0 ? lr_fail(err, errno, "make a signalfd") : fd;
}

static int listen_all(int fds[SOURCES], struct lr_err *err)
{
	fds[CONTROL] = control_listen(forkd_config.control, err);
	if (fds[CONTROL] < 0)
		return fds[CONTROL];
	fds[METRICS] = forkd_config.metrics ? unix_listen(forkd_config.metrics, SOCK_STREAM, err)
					    : LR_NOFD;
	if (forkd_config.metrics && fds[METRICS] < 0)
		return fds[METRICS];
	fds[NET] = forkd_config.listen ? listen_at(forkd_config.listen, err) : LR_NOFD;
	return forkd_config.listen && fds[NET] < 0 ? fds[NET] : 0;
}

static void leave_places(const int fds[SOURCES])
{
	if (fds[CONTROL] >= 0)
		unlink(forkd_config.control);
	if (fds[METRICS] >= 0)
		unlink(forkd_config.metrics);
}

/* Who held seeds before us lets go of them when they are ours, also if we are killed then: our
 * keeper has them, and the name by which the next daemon finds it. */
static int begin_keeper(int fds[SOURCES], struct lr_err *err)
{
	LR_CLEANUP_FD int before = LR_NOFD;
	size_t rows;
	int taken = 0;

	int r = heir_ask(forkd_config.control, &before, &rows, err);
	if (r == 0)
		r = listen_all(fds, err);
	if (r == 0)
		r = handover_listen(err);
	if (r == 0 && before >= 0 && forkd_config.listen)
		r = taken = heir_take(before, rows, err);
	if (r >= 0)
		r = keeper_begin(err);
	if (r == 0)
		r = handover_enter(err);
	if (r < 0) {
		handover_leave();
		leave_places(fds);
		return r;
	}
	fds[HANDOVER] = handover_fd();
	if (before >= 0)
		heir_done(before);
	if (taken)
		forkd_log("%d seeds of the daemon before are held, or known to have ended", taken);
	return 0;
}

static int open_all(int fds[SOURCES], struct lr_err *err)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		if (files.rlim_max > KEEPER_FDS)
			files.rlim_max = KEEPER_FDS;
		files.rlim_cur = files.rlim_max - files.rlim_max / 4;
		setrlimit(RLIMIT_NOFILE, &files); /* the rest: children_end */
	}
	prctl(PR_SET_DUMPABLE, 0); /* secrets, and others' memory */
	ending = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ending < 0)
		return lr_fail(err, errno, "make an eventfd");
	fds[SIGNALS] = watch_signals(err);
	if (fds[SIGNALS] < 0)
		return fds[SIGNALS];
	int r = handover_begin(forkd_config.control, forkd_config.keep, err);
	const int turn = r < 0 ? r : handover_turn(forkd_config.control, err);
	if (turn < 0)
		return turn;
	r = begin_keeper(fds, err);
	handover_turn_over(forkd_config.control, turn);
	return r;
}

/* Whoever started us may wait for that. */
static void tell_service_manager(const char *what)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	if (!path || strlen(path) >= sizeof(sa.sun_path))
		return;
	memcpy(sa.sun_path, path, strlen(path));
	if (sa.sun_path[0] == '@')
		sa.sun_path[0] = 0;
	LR_CLEANUP_FD int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s >= 0)
		sendto(s, what, strlen(what), MSG_NOSIGNAL, (struct sockaddr *)&sa,
		       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path)));
}

/* ---- run ---------------------------------------------------------------------------------- */

/* Until there is one. Without, nobody new is served (be_ready). */
static void look_after_keeper(bool had)
{
	struct lr_err err = {0};
	char line[512];

	if (had)
		forkd_log("the keeper ended; another one is started");
	if (keeper_again(&err) < 0) {
		if (had)
			forkd_log("it is tried again: %s", lr_err_format(&err, line, sizeof(line)));
		lr_sleep_us(100000);
	} else if (!had) {
		forkd_log("there is a keeper again");
	}
}

/* Who interrupts us at a terminal wants all of it to end. */
static void hear_signal(int fd)
{
	struct signalfd_siginfo s;

	if (read(fd, &s, sizeof(s)) == (ssize_t)sizeof(s) && s.ssi_signo == SIGINT)
		handover_forget();
}

static void wait_for_children(void)
{
	const uint64_t one = 1;

	(void)!write(ending, &one, sizeof(one));
	for (int i = 0; forkd_counts.children && i < 500; i++)
		lr_sleep_us(10000);
}

int daemon_run(struct lr_err *err)
{
	int fds[SOURCES] = {LR_NOFD, LR_NOFD, LR_NOFD, LR_NOFD, LR_NOFD, LR_NOFD};
	struct pollfd p[SOURCES];

	int r = forkd_config.rdma == FORKD_RDMA_REQUIRE ? direct_check(err) : 0;
	if (r < 0)
		return lr_err_hint(err, "--rdma=require wants it");
	r = open_all(fds, err);
	if (r < 0)
		return r;
	tell_service_manager("READY=1");
	for (;;) {
		fds[KEEPER] = keeper_pidfd();
		for (int i = 0; i < SOURCES; i++)
			p[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
		if (poll(p, SOURCES, 1000) < 0 && errno != EINTR)
			return lr_fail(err, errno, "wait for connections");
		if (p[KEEPER].revents || fds[KEEPER] < 0)
			look_after_keeper(fds[KEEPER] >= 0);
		if (p[CONTROL].revents)
			control_accept(fds[CONTROL]);
		if (p[NET].revents)
			serve_accept(fds[NET]);
		if (p[METRICS].revents)
			metrics_accept(fds[METRICS]);
		if (p[HANDOVER].revents) /* as long as we live, there is nothing to take */
			lr_close(forkd_accept(fds[HANDOVER], NULL, NULL, 0));
		if (p[SIGNALS].revents)
			break;
		held_expire();
		remote_clean();
		outlets_clean();
	}
	hear_signal(fds[SIGNALS]);
	tell_service_manager("STOPPING=1");
	wait_for_children();
	leave_places(fds);
	return 0;
}
