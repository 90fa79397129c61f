/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: connections; see link.h. What TLS needs of OpenSSL is in tls.c. */
#define LR_ROOM "forkd"
#include "src/forkd/link.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/forkd/tls.h"

struct link {
	int fd;
	struct tls *tls;  /* NULL: in clear */
	int64_t deadline; /* of all that is under way; 0: none */
};

struct link *link_new(int fd)
{
	struct link *l = calloc(1, sizeof(*l));
	const int one = 1;

	if (!l) {
		close(fd);
		return NULL;
	}
	l->fd = fd;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	return l;
}

void link_close(struct link *l)
{
	if (!l)
		return;
	tls_free(l->tls);
	close(l->fd);
	free(l);
}

int link_fd(const struct link *l)
{
	return l->fd;
}

void link_hurry(struct link *l, int64_t ms)
{
	l->deadline = ms ? lr_now_ms() + ms : 0;
}

static int64_t until_of(const struct link *l, int64_t ms)
{
	const int64_t until = lr_now_ms() + ms;

	return l->deadline && l->deadline < until ? l->deadline : until;
}

/* ---- bytes -------------------------------------------------------------------------------- */

static int wait_for(int fd, short events, int64_t until)
{
	for (;;) {
		int64_t left = until - lr_now_ms();
		struct pollfd p = {.fd = fd, .events = events};
		if (left <= 0)
			return -ETIMEDOUT;
		int r = poll(&p, 1, (int)(left > 60000 ? 60000 : left));
		if (r > 0)
			return 0;
		if (r < 0 && errno != EINTR)
			return -errno;
	}
}

/* As much as there is: > 0, -EPIPE at the end, -EAGAIN with *events to wait for. */
static ssize_t some(struct link *l, void *at, size_t n, bool out, short *events)
{
	if (l->tls)
		return out ? tls_write(l->tls, at, n, events) : tls_read(l->tls, at, n, events);
	*events = out ? POLLOUT : POLLIN;
	ssize_t r = out ? send(l->fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT)
			: recv(l->fd, at, n, MSG_DONTWAIT);
	if (r > 0)
		return r;
	if (r == 0)
		return -EPIPE;
	return errno == EINTR ? -EAGAIN : -errno;
}

static int whole(struct link *l, void *at, size_t n, bool out, int64_t ms)
{
	const int64_t until = until_of(l, ms);
	size_t done = 0;

	while (done < n) {
		short events = 0;
		ssize_t r = some(l, (char *)at + done, n - done, out, &events);
		if (r == -EAGAIN)
			r = wait_for(l->fd, events, until);
		if (r < 0)
			return (int)r;
		done += (size_t)r;
		/* Who sends a byte now and then does not keep us for longer. */
		if (done < n && lr_now_ms() > until)
			return -ETIMEDOUT;
	}
	return 0;
}

int link_read(struct link *l, void *to, size_t n, int64_t ms)
{
	return whole(l, to, n, false, ms);
}

int link_write(struct link *l, const void *from, size_t n, int64_t ms)
{
	return whole(l, (void *)(uintptr_t)from, n, true, ms);
}

/* ---- messages ----------------------------------------------------------------------------- */

int link_send(struct link *l, const struct lr_wire_msg *m, int64_t ms)
{
	uint8_t bytes[LR_WIRE_MESSAGE];
	ssize_t n = lr_wire_encode(m, bytes, sizeof(bytes));

	return n < 0 ? (int)n : link_write(l, bytes, (size_t)n, ms);
}

int link_send_data(struct link *l, uint64_t tag, const void *data, size_t n, int64_t ms)
{
	uint8_t head[LR_WIRE_HEAD];
	const struct lr_wire_head h = {LR_WIRE_DATA, (uint32_t)n, tag};

	lr_wire_put_head(&h, head);
	int r = link_write(l, head, sizeof(head), ms);
	return r < 0 ? r : link_write(l, data, n, ms);
}

int link_refuse(struct link *l, uint64_t tag, enum lr_wire_code code, int64_t ms)
{
	const struct lr_wire_msg m = {.type = LR_WIRE_REFUSED, .tag = tag, .code = code};

	return link_send(l, &m, ms);
}

int link_receive(struct link *l, struct lr_wire_msg *m, uint8_t *body, size_t room,
		 int64_t first_ms, int64_t ms)
{
	uint8_t head[LR_WIRE_HEAD];
	struct lr_wire_head h;
	int r = link_read(l, head, 1, first_ms);

	if (r == 0)
		r = link_read(l, head + 1, sizeof(head) - 1, ms);
	if (r == 0)
		r = lr_wire_get_head(head, &h);
	if (r == 0 && h.length > room)
		r = -EPROTO;
	if (r == 0)
		r = link_read(l, body, h.length, ms);
	return r < 0 ? r : lr_wire_decode(&h, body, m);
}

int link_ask(struct link *l, struct lr_wire_msg *m, enum lr_wire_type want, struct lr_wire_msg *got,
	     uint8_t *body, size_t room, int64_t ms, struct lr_err *err)
{
	static _Atomic uint64_t tags;

	m->tag = ++tags;
	int r = link_send(l, m, ms);
	if (r == 0)
		r = link_receive(l, got, body, room, ms, ms);
	if (r < 0)
		return lr_fail(err, -r, "fetch from the seed's host");
	if (got->type == LR_WIRE_REFUSED)
		return lr_refuse(err, lr_wire_code_is_final(got->code) ? ESTALE : ECONNREFUSED,
				 "the seed's host says: %s", lr_wire_code_name(got->code));
	if (got->type != want || got->tag != m->tag)
		return lr_refuse(err, EPROTO, "the seed's host sends another answer");
	return 0;
}

/* ---- a client's --------------------------------------------------------------------------- */

static int connect_one(const struct addrinfo *a, int64_t until)
{
	LR_CLEANUP_FD int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int error = 0;
	socklen_t size = sizeof(error);

	if (fd < 0)
		return -errno;
	if (connect(fd, a->ai_addr, a->ai_addrlen) < 0) {
		if (errno != EINPROGRESS)
			return -errno;
		int r = wait_for(fd, POLLOUT, until);
		if (r < 0)
			return r;
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
		if (error)
			return -error;
	}
	return lr_take_fd(&fd);
}

static int connect_any(const struct lr_ticket *t, int64_t until, struct lr_err *err)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	struct addrinfo *all = NULL;
	char port[8];
	int r = -EHOSTUNREACH;

	snprintf(port, sizeof(port), "%u", t->port);
	int e = getaddrinfo(t->host, port, &hints, &all);
	if (e)
		return lr_refuse(err, EHOSTUNREACH, "%s: %s", t->host, gai_strerror(e));
	for (const struct addrinfo *a = all; a && r < 0; a = a->ai_next)
		r = connect_one(a, until);
	freeaddrinfo(all);
	return r < 0 ? lr_fail(err, -r, "connect to %s, port %u", t->host, t->port) : r;
}

static int refused(uint32_t code, bool proven, uint32_t *ret, struct lr_err *err)
{
	*ret = code;
	bool final = proven && lr_wire_code_is_final(code);
	return lr_refuse(err, final ? ESTALE : ECONNREFUSED, "the seed's host says: %s",
			 lr_wire_code_name(code));
}

static int be_greeted(struct link *l, const struct lr_ticket *t, int64_t ms,
		      struct lr_wire_greeting *g, uint32_t *code, struct lr_err *err)
{
	uint8_t hello[LR_WIRE_HELLO], greeting[LR_WIRE_GREETING];
	struct lr_wire_hello h = {LR_WIRE_VERSION, LR_WIRE_VERSION, t->way, {0}};

	memcpy(h.id, t->id, sizeof(h.id));
	lr_wire_put_hello(&h, hello);
	int r = link_write(l, hello, sizeof(hello), ms);
	if (r == 0)
		r = link_read(l, greeting, sizeof(greeting), ms);
	if (r == 0)
		r = lr_wire_get_greeting(greeting, g);
	if (r == 0 && !g->code && g->version != LR_WIRE_VERSION)
		r = -EPROTO;
	if (r < 0)
		return lr_fail(err, -r, "the seed's host does not greet");
	return g->code ? refused(g->code, false, code, err) : 0;
}

static int prove(struct link *l, const struct lr_ticket *t, const struct lr_wire_greeting *g,
		 int64_t ms, struct lr_err *err)
{
	int r;

	if (t->way == LR_WIRE_TLS) {
		r = tls_connect(l->fd, t->id, t->secret, until_of(l, ms), &l->tls);
		if (r == -EACCES)
			return lr_refuse(err, EACCES, "TLS: the host does not prove the secret");
		return r < 0 ? lr_fail(err, -r, "prove the secret by TLS") : 0;
	}
	struct lr_wire_msg m = {.type = LR_WIRE_PROVE};
	r = link_proof(t->secret, g->challenge, t->id, m.proof);
	if (r == 0)
		r = link_send(l, &m, ms);
	return r < 0 ? lr_fail(err, -r, "prove the secret") : 0;
}

static int be_welcomed(struct link *l, const struct lr_ticket *t, int64_t ms, struct lr_wire_msg *m,
		       uint32_t *code, struct lr_err *err)
{
	uint8_t body[LR_WIRE_MESSAGE];
	int r = link_receive(l, m, body, sizeof(body), ms, ms);

	if (r < 0)
		return lr_fail(err, -r, "the seed's host does not let us in");
	if (m->type == LR_WIRE_REFUSED)
		return refused(m->code, true, code, err);
	if (m->type != LR_WIRE_WELCOME || memcmp(m->id, t->id, sizeof(m->id)) != 0 || !m->count ||
	    m->count > LR_WIRE_CHUNK / LR_WIRE_PAGE || m->pages < LR_WIRE_PAGE ||
	    m->pages % LR_WIRE_PAGE || m->pages > INT64_MAX / 2)
		return lr_refuse(err, EPROTO, "the seed's host lets us in to something else");
	return 0;
}

int link_connect(const struct lr_ticket *t, int64_t ms, struct link **ret,
		 struct lr_wire_msg *welcome, uint32_t *code, struct lr_err *err)
{
	struct lr_wire_greeting g;

	*code = 0;
	int fd = connect_any(t, lr_now_ms() + ms, err);
	if (fd < 0)
		return fd;
	struct link *l = link_new(fd);
	if (!l)
		return lr_fail(err, ENOMEM, "connect to %s, port %u", t->host, t->port);
	int r = be_greeted(l, t, ms, &g, code, err);
	if (r == 0)
		r = prove(l, t, &g, ms, err);
	if (r == 0)
		r = be_welcomed(l, t, ms, welcome, code, err);
	if (r < 0) {
		link_close(l);
		return r;
	}
	*ret = l;
	return 0;
}

/* ---- a server's --------------------------------------------------------------------------- */

int link_accept_tls(struct link *l, const uint8_t id[LR_WIRE_ID],
		    const uint8_t secret[LR_WIRE_SECRET], int64_t ms)
{
	return tls_accept(l->fd, id, secret, until_of(l, ms), &l->tls);
}
