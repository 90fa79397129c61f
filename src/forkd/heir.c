/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: see heir.h. What comes is checked as what anybody brings: the files, their seals, and
 * whether they are the seed that they are said to be. */
#define LR_ROOM "forkd"
#include "src/forkd/heir.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/forkctl/forkctl.h"
#include "src/forkd/forkd.h"
#include "src/forkd/handover.h"
#include "src/forkd/held.h"

#define ANSWER_S 15 /* the keeper ends children first, which does not take long */
#define TRIES    20

/* A connection to who listens there, if that is root or our user; LR_NOFD: nobody does. */
static int reach(const char *path, int *ret, struct lr_err *err)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	LR_CLEANUP_FD int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	*ret = LR_NOFD;
	if (sock < 0)
		return lr_fail(err, errno, "make a socket");
	lr_forkctl_be_patient(sock, ANSWER_S);
	memcpy(sa.sun_path, path, strlen(path) + 1);
	if (connect(sock, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		return errno == ENOENT || errno == ECONNREFUSED
			       ? 0
			       : lr_fail(err, errno, "ask at %s for what was held", path);
	int r = lr_forkctl_believe(sock, path, err);
	if (r == 0)
		*ret = lr_take_fd(&sock);
	return r;
}

static ssize_t receive(int sock, struct lr_forkctl_in *in, struct lr_err *err)
{
	ssize_t n = lr_forkctl_receive(sock, in);

	if (n == -ECONNRESET) /* its end, when it had not accepted us */
		return 0;
	return n < 0 ? lr_fail(err, (int)-n, "take over what was held") : n;
}

/* 1: it hung up. */
static int ask(const char *path, int *ret, size_t *rows, struct lr_err *err)
{
	struct handover_head head;
	struct lr_forkctl_in in;
	int sock;

	int r = reach(path, &sock, err);
	if (r < 0 || sock < 0)
		return r;
	ssize_t n = receive(sock, &in, err);
	if (n > 0) {
		r = in.n ? -EPROTO : handover_get_head(in.bytes, (size_t)n, &head);
		lr_forkctl_close(&in);
	}
	if (n <= 0 || r < 0) {
		lr_close(sock);
		if (r == -ENOTSUP)
			forkd_log("what a lean-forkd of another version held is not taken");
		else if (r < 0)
			forkd_log("who listens at %s is no keeper", path);
		return n < 0 ? (int)n : n == 0;
	}
	*rows = head.rows;
	*ret = sock;
	return 0;
}

static bool answers(const char *control)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	LR_CLEANUP_FD int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(sa.sun_path, control, strlen(control) + 1);
	return sock >= 0 &&
	       (connect(sock, (struct sockaddr *)&sa, sizeof(sa)) == 0 || errno == EAGAIN);
}

int heir_ask(const char *control, int *ret, size_t *rows, struct lr_err *err)
{
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];

	*ret = LR_NOFD;
	*rows = 0;
	if (snprintf(path, sizeof(path), "%s.keeper", control) >= (int)sizeof(path))
		return lr_fail(err, ENAMETOOLONG, "ask at %s.keeper", control);
	for (unsigned i = 0; i < TRIES; i++) {
		int r = ask(path, ret, rows, err);
		/* It hung up for one of three reasons. It holds nothing: it ends, and the next try finds
		 * nobody. Its daemon lives: who binds the socket refuses. It lacks memory: it is asked again,
		 * as it would let its seeds go if we took its name. */
		if (r <= 0 || answers(control))
			return r < 0 ? r : 0;
		lr_sleep_us(100000);
	}
	return lr_refuse(err, EAGAIN, "who listens at %s does not say what is held; start it again",
			 path);
}

static int take(const struct lr_forkctl_in *in, size_t n, struct lr_err *err)
{
	struct handover_seed s;

	if (handover_get_seed(in->bytes, n, in->n, lr_now_ms(), &s) < 0)
		return lr_refuse(err, EPROTO, "this is no seed");
	return held_inherit(&s, in->fds, err);
}

/* Nothing is wrong with the seed: the keeper has it until somebody with more room comes. */
static bool is_our_lack(int r)
{
	return r == -EMFILE || r == -ENFILE || r == -ENOMEM;
}

int heir_take(int sock, size_t rows, struct lr_err *err)
{
	int taken = 0;

	for (size_t i = 0; i < rows; i++) {
		struct lr_err why = {0};
		struct lr_forkctl_in in;
		char line[512];
		ssize_t n = receive(sock, &in, err);
		if (n < 0)
			return (int)n;
		/* If it was killed, nobody has the rest, and the next start goes on without. If not, it
		 * did not want to wait for us, still has all, and would let go when its name is ours. */
		if (n == 0)
			return lr_refuse(err, EPIPE,
					 "a keeper handed over %zu of %zu seeds; start it again", i,
					 rows);
		int r = take(&in, (size_t)n, &why);
		lr_forkctl_close(&in);
		if (is_our_lack(r)) {
			*err = why;
			return r;
		}
		taken += r == 0;
		if (r < 0)
			forkd_log("a seed that was held is not any more: %s",
				  lr_err_format(&why, line, sizeof(line)));
	}
	return taken;
}

void heir_done(int sock)
{
	(void)!send(sock, HANDOVER_DONE, sizeof(HANDOVER_DONE) - 1, MSG_NOSIGNAL);
}
