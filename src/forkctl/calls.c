/* SPDX-License-Identifier: Apache-2.0 */
/* forkctl: questions to the daemon. */
#define LR_ROOM "forkd"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/forkctl/forkctl.h"

/* To fetch a long descriptor from afar takes its time; but a daemon that hangs must not hold a
 * container for ever. */
#define ANSWER_S 120

void lr_forkctl_be_patient(int sock, unsigned seconds)
{
	const struct timeval most = {.tv_sec = (time_t)seconds};

	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
	setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
}

int lr_forkctl_believe(int sock, const char *path, struct lr_err *err)
{
	struct ucred who = {.uid = (uid_t)-1};
	socklen_t size = sizeof(who);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0)
		return lr_fail(err, errno, "ask who listens at %s", path);
	if (who.uid && who.uid != geteuid())
		return lr_refuse(err, EPERM, "who listens at %s is neither root nor us", path);
	return 0;
}

int lr_forkctl_connect(const char *path, struct lr_err *err)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	LR_CLEANUP_FD int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (sock < 0)
		return lr_fail(err, errno, "make a socket");
	if (strlen(path) >= sizeof(sa.sun_path))
		return lr_fail(err, ENAMETOOLONG, "connect to lean-forkd at %s", path);
	memcpy(sa.sun_path, path, strlen(path));
	lr_forkctl_be_patient(sock, ANSWER_S);
	if (connect(sock, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
		lr_fail(err, errno, "connect to lean-forkd at %s", path);
		return lr_err_hint(err, "start it: systemctl start lean-forkd, or lean-forkd serve "
					"--listen HOST:PORT; --forkd names another socket");
	}
	/* It gets tickets, and containers' memory. */
	int r = lr_forkctl_believe(sock, path, err);
	return r < 0 ? r : lr_take_fd(&sock);
}

/* ---- tickets ------------------------------------------------------------------------------ */

/* A secret that others may read is none. */
static ssize_t read_secret(const char *path, char *buf, size_t size, struct lr_err *err)
{
	struct stat st;
	LR_CLEANUP_FD int fd = lr_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || fstat(fd, &st) < 0)
		return lr_fail(err, errno, "read the ticket in %s", path);
	if (st.st_uid && st.st_uid != geteuid())
		return lr_refuse(err, EPERM, "somebody else's is the ticket in %s", path);
	if (S_ISREG(st.st_mode) && (st.st_mode & (S_IRWXG | S_IRWXO)))
		return lr_refuse(err, EPERM, "others may read the ticket in %s", path);
	ssize_t n = lr_read_full(fd, buf, size - 1);
	return n < 0 ? lr_fail(err, (int)-n, "read the ticket in %s", path) : n;
}

int lr_forkctl_ticket(const char *arg, char ret[LR_TICKET_TEXT], struct lr_err *err)
{
	const char *rest;
	enum lr_ticket_place place = lr_ticket_place(arg, &rest);
	char text[LR_TICKET_TEXT + 2];
	struct lr_ticket t;
	ssize_t n;

	if (place == LR_TICKET_ENV) {
		const char *value = getenv(rest);
		if (!value)
			return lr_refuse(err, ENOENT, "no ticket in the variable %s", rest);
		rest = value;
	}
	if (place == LR_TICKET_FILE) {
		n = read_secret(rest, text, sizeof(text), err);
		if (n < 0)
			return (int)n;
	} else {
		n = (ssize_t)strnlen(rest, sizeof(text) - 1);
		memcpy(text, rest, (size_t)n);
	}
	while (n && text[n - 1] == '\n')
		n--;
	/* The text may be a secret, so it is not repeated. */
	if (lr_ticket_decode(text, (size_t)n, &t) < 0)
		return lr_refuse(err, EINVAL, "this is no ticket");
	memcpy(ret, text, (size_t)n);
	ret[n] = 0;
	return 0;
}

/* ---- calls -------------------------------------------------------------------------------- */

/* Sends, and takes an answer of one of these types; what came with it is in `in`. */
static int call_either(int sock, const struct lr_wire_msg *m, const int *fds, size_t n,
		       enum lr_wire_type want, enum lr_wire_type or, struct lr_forkctl_in *in,
		       struct lr_wire_msg *ret, struct lr_err *err)
{
	int r = lr_forkctl_send(sock, m, fds, n);

	if (r < 0)
		return lr_fail(err, -r, "ask lean-forkd");
	ssize_t got = lr_forkctl_receive(sock, in);
	if (got == -EAGAIN)
		return lr_refuse(err, ETIMEDOUT, "lean-forkd does not answer");
	if (got <= 0)
		return lr_fail(err, got < 0 ? (int)-got : EPIPE, "take the answer of lean-forkd");
	if (lr_wire_decode_all(in->bytes, (size_t)got, ret) < 0)
		r = lr_refuse(err, EPROTO, "lean-forkd answers something else");
	else if (ret->type == LR_WIRE_REFUSED)
		r = lr_refuse(err, ret->code == LR_WIRE_NO_SEED ? ENOENT : ECONNREFUSED, "%.*s",
			      (int)ret->text.n, (const char *)ret->text.at);
	else if (ret->type != want && ret->type != or)
		r = lr_refuse(err, EPROTO, "lean-forkd answers something else");
	if (r < 0)
		lr_forkctl_close(in);
	return r;
}

static int call(int sock, const struct lr_wire_msg *m, const int *fds, size_t n,
		enum lr_wire_type want, struct lr_forkctl_in *in, struct lr_wire_msg *ret,
		struct lr_err *err)
{
	return call_either(sock, m, fds, n, want, want, in, ret, err);
}

/* Where the answer is all there is to know. */
static int call_ok(int sock, const struct lr_wire_msg *m, const int *fds, size_t n,
		   struct lr_err *err)
{
	struct lr_forkctl_in in;
	struct lr_wire_msg got;
	int r = call(sock, m, fds, n, LR_WIRE_OK, &in, &got, err);

	if (r == 0)
		lr_forkctl_close(&in);
	return r;
}

static int add(int sock, const struct lr_wire_msg *m, const int *fds, size_t n,
	       char ticket[LR_TICKET_TEXT], struct lr_err *err)
{
	struct lr_forkctl_in in;
	struct lr_wire_msg got;
	int r = call(sock, m, fds, n, LR_WIRE_TICKET, &in, &got, err);

	if (r < 0)
		return r;
	if (got.text.n < LR_TICKET_TEXT) {
		memcpy(ticket, got.text.at, got.text.n);
		ticket[got.text.n] = 0;
	} else {
		r = lr_refuse(err, EPROTO, "lean-forkd gives no ticket");
	}
	lr_forkctl_close(&in);
	return r;
}

int lr_forkctl_add(int sock, const char *directory, int descriptor, int pages, uint64_t lease,
		   char ticket[LR_TICKET_TEXT], struct lr_err *err)
{
	struct lr_wire_msg m = {.type = LR_WIRE_ADD, .lease = lease};
	const int fds[2] = {descriptor, pages};

	if (directory)
		m.path = lr_wire_text(directory, strlen(directory));
	return add(sock, &m, fds, directory ? 0 : 2, ticket, err);
}

int lr_forkctl_add_filling(int sock, int descriptor, int pages, uint64_t lease,
			   char ticket[LR_TICKET_TEXT], struct lr_err *err)
{
	const struct lr_wire_msg m = {
		.type = LR_WIRE_ADD, .lease = lease, .flags = LR_WIRE_FILLING};
	const int fds[2] = {descriptor, pages};

	return add(sock, &m, fds, 2, ticket, err);
}

int lr_forkctl_exports(int sock, struct lr_err *err)
{
	const struct lr_wire_msg m = {.type = LR_WIRE_EXPORTS};

	return call_ok(sock, &m, NULL, 0, err);
}

int lr_forkctl_add_exported(int sock, int descriptor, int pages, int exported, uint64_t lease,
			    char ticket[LR_TICKET_TEXT], struct lr_err *err)
{
	const struct lr_wire_msg m = {
		.type = LR_WIRE_ADD, .lease = lease, .flags = LR_WIRE_EXPORTED};
	const int fds[3] = {descriptor, pages, exported};

	return add(sock, &m, fds, 3, ticket, err);
}

int lr_forkctl_filled(int sock, uint64_t at, uint64_t length, struct lr_wire_range *wanted,
		      size_t *n, struct lr_err *err)
{
	const struct lr_wire_msg m = {.type = LR_WIRE_FILLED, .at = at, .length = length};
	struct lr_forkctl_in in;
	struct lr_wire_msg got;
	int r = call_either(sock, &m, NULL, 0, LR_WIRE_OK, LR_WIRE_WANTED, &in, &got, err);

	if (r < 0)
		return r;
	*n = got.type == LR_WIRE_WANTED ? got.n : 0;
	memcpy(wanted, got.ranges, *n * sizeof(*wanted));
	lr_forkctl_close(&in);
	return 0;
}

int lr_forkctl_fetch(int sock, const char *ticket, int *ret, uint8_t id[LR_WIRE_ID],
		     struct lr_err *err)
{
	const struct lr_wire_msg m = {.type = LR_WIRE_FETCH,
				      .text = lr_wire_text(ticket, strlen(ticket))};
	struct lr_wire_msg got;
	struct lr_forkctl_in in;
	int r = call(sock, &m, NULL, 0, LR_WIRE_DESCRIPTOR, &in, &got, err);

	if (r < 0)
		return r;
	if (in.n == 1) {
		memcpy(id, got.id, LR_WIRE_ID);
		*ret = lr_take_fd(&in.fds[0]);
	} else {
		r = lr_refuse(err, EPROTO, "lean-forkd gives no descriptor");
	}
	lr_forkctl_close(&in);
	return r;
}

int lr_forkctl_bring(int sock, const uint8_t id[LR_WIRE_ID], const struct lr_wire_range *v,
		     size_t n, int file, struct lr_err *err)
{
	struct lr_wire_msg m = {.type = LR_WIRE_BRING, .n = n};

	if (n > LR_WIRE_RANGES)
		return lr_refuse(err, EINVAL, "%zu ranges at once; %d are the most", n,
				 LR_WIRE_RANGES);
	memcpy(m.id, id, sizeof(m.id));
	memcpy(m.ranges, v, n * sizeof(*v));
	return call_ok(sock, &m, &file, 1, err);
}

int lr_forkctl_source(int sock, const uint8_t id[LR_WIRE_ID], int *ret, struct lr_err *err)
{
	struct lr_wire_msg m = {.type = LR_WIRE_SOURCE}, got;
	struct lr_forkctl_in in;

	memcpy(m.id, id, sizeof(m.id));
	int r = call(sock, &m, NULL, 0, LR_WIRE_OK, &in, &got, err);
	if (r < 0)
		return r;
	if (in.n == 1)
		*ret = lr_take_fd(&in.fds[0]);
	else
		r = lr_refuse(err, ECONNREFUSED, "lean-forkd gives no source");
	lr_forkctl_close(&in);
	return r;
}

int lr_forkctl_serve(int sock, const uint8_t id[LR_WIRE_ID], int cgroup, uint32_t around,
		     uint32_t flags, struct lr_err *err)
{
	struct lr_wire_msg m = {.type = LR_WIRE_SERVE, .count = around, .flags = flags};

	memcpy(m.id, id, sizeof(m.id));
	return call_ok(sock, &m, &cgroup, cgroup >= 0, err);
}

int lr_forkctl_limit(int sock, const uint8_t id[LR_WIRE_ID], uint64_t bytes, struct lr_err *err)
{
	struct lr_wire_msg m = {.type = LR_WIRE_LIMIT, .length = bytes};

	memcpy(m.id, id, sizeof(m.id));
	int r = call_ok(sock, &m, NULL, 0, err);
	return r < 0 ? lr_err_hint(err, "an older lean-forkd brings all of it, or what is touched")
		     : r;
}

int lr_forkctl_ready(int sock, uint32_t processes, struct lr_err *err)
{
	const struct lr_wire_msg m = {.type = LR_WIRE_READY, .count = processes};

	return call_ok(sock, &m, NULL, 0, err);
}

int lr_forkctl_extend(int sock, const uint8_t id[LR_WIRE_ID], uint64_t lease, struct lr_err *err)
{
	struct lr_wire_msg m = {.type = LR_WIRE_EXTEND, .lease = lease};

	memcpy(m.id, id, sizeof(m.id));
	return call_ok(sock, &m, NULL, 0, err);
}

int lr_forkctl_remove(int sock, const uint8_t id[LR_WIRE_ID], struct lr_err *err)
{
	struct lr_wire_msg m = {.type = LR_WIRE_REMOVE};

	memcpy(m.id, id, sizeof(m.id));
	return call_ok(sock, &m, NULL, 0, err);
}

int lr_forkctl_list(int sock, const uint8_t *id, uint32_t skip, struct lr_wire_msg *m,
		    struct lr_err *err)
{
	struct lr_wire_msg q = {.type = id ? LR_WIRE_INSPECT : LR_WIRE_LIST, .count = skip};
	struct lr_forkctl_in in;

	if (id)
		memcpy(q.id, id, sizeof(q.id));
	int r = call(sock, &q, NULL, 0, LR_WIRE_SEEDS_ARE, &in, m, err);
	if (r == 0)
		lr_forkctl_close(&in);
	return r;
}

int lr_forkctl_children(int sock, uint32_t skip, struct lr_wire_msg *m, struct lr_err *err)
{
	const struct lr_wire_msg q = {.type = LR_WIRE_CHILDREN, .count = skip};
	struct lr_forkctl_in in;
	int r = call(sock, &q, NULL, 0, LR_WIRE_CHILDREN_ARE, &in, m, err);

	if (r == 0)
		lr_forkctl_close(&in);
	return r;
}

int lr_forkctl_counts(int sock, struct lr_wire_child *ret, struct lr_err *err)
{
	const struct lr_wire_msg q = {.type = LR_WIRE_COUNTS};
	struct lr_forkctl_in in;
	struct lr_wire_msg got;
	int r = call(sock, &q, NULL, 0, LR_WIRE_CHILDREN_ARE, &in, &got, err);

	if (r < 0)
		return r;
	if (got.n == 1)
		*ret = got.children[0];
	else
		r = lr_refuse(err, EPROTO, "lean-forkd answers something else");
	lr_forkctl_close(&in);
	return r;
}
