/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: the seeds' side: a peer connects, proves that it has a ticket, and reads. A peer is hostile
 * until it has proved itself, and may still be then. */
#define LR_ROOM "forkd"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/forkd/forkd.h"
#include "src/forkd/held.h"
#include "src/forkd/limits.h"
#include "src/forkd/link.h"
#include "src/forkd/linked.h"
#include "src/forkd/outlet.h"
#include "src/seed/seed.h"

#define ANSWER_MS 30000 /* a peer takes an answer in that time, or is gone */
#define BODY_MS   5000
#define PACE_MS   500
#define FILL_MS   5000 /* for pages that come later: less than who asks waits for an answer */

struct peer {
	struct link *link;
	struct held *held;
	struct outlet *outlet; /* by which it reads by RDMA; or NULL */
	uint8_t address[16];
	uint8_t *pages; /* LR_WIRE_CHUNK, from the first READ on */
	bool reads;     /* held_read */
	bool left;      /* its place is another's */
	struct peer *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct limits limits;

/* ---- who has not proved itself ------------------------------------------------------------- */

static struct peer *strangers; /* who came first is first */

static void be_stranger(struct peer *p)
{
	struct peer **at = &strangers;

	while (*at)
		at = &(*at)->next;
	*at = p;
}

/* Whether it still was one. */
static bool forget_stranger(struct peer *p)
{
	for (struct peer **at = &strangers; *at; at = &(*at)->next)
		if (*at == p) {
			*at = p->next;
			return true;
		}
	return false;
}

/* Makes a place for somebody who may have a ticket. */
static bool end_one(void)
{
	uint8_t v[256][16];
	struct peer *p = strangers;
	size_t n = 0;

	for (; p && n < LR_ARRAY_SIZE(v); p = p->next)
		memcpy(v[n++], p->address, 16);
	if (!n)
		return false;
	p = strangers;
	for (n = limits_victim(v, n); n; n--)
		p = p->next;
	forget_stranger(p);
	p->left = true;
	limits_leave(&limits, p->address, lr_now_ms());
	shutdown(link_fd(p->link), SHUT_RDWR);
	return true;
}

/* ---- greeting ----------------------------------------------------------------------------- */

static int greet(struct peer *p, const struct lr_wire_hello *h, uint8_t challenge[LR_WIRE_PROOF])
{
	struct lr_wire_greeting g = {.version = LR_WIRE_VERSION};
	uint8_t bytes[LR_WIRE_GREETING];

	p->held = held_get(h->id);
	if (h->oldest > LR_WIRE_VERSION || h->newest < LR_WIRE_VERSION)
		g.code = LR_WIRE_NO_VERSION;
	else if (h->way == LR_WIRE_PLAIN && !forkd_config.plain)
		g.code = LR_WIRE_NO_WAY;
	else if (!p->held)
		g.code = LR_WIRE_NO_SEED;
	else if (h->way == LR_WIRE_PLAIN && link_random(g.challenge, sizeof(g.challenge)) < 0)
		g.code = LR_WIRE_BUSY;
	if (g.code)
		g.version = 0;
	memcpy(challenge, g.challenge, sizeof(g.challenge));
	lr_wire_put_greeting(&g, bytes);
	int r = link_write(p->link, bytes, sizeof(bytes), forkd_config.handshake_ms);
	if (g.code)
		forkd_counts.refused++;
	return r < 0 ? r : g.code ? -ECONNREFUSED : 0;
}

static int see_proof(struct peer *p, const uint8_t challenge[LR_WIRE_PROOF], int64_t ms)
{
	uint8_t body[LR_WIRE_PROOF], want[LR_WIRE_PROOF];
	struct lr_wire_msg m;
	int r = link_receive(p->link, &m, body, sizeof(body), ms, ms);

	if (r == 0 && m.type != LR_WIRE_PROVE)
		r = -EPROTO;
	if (r == 0)
		r = link_proof(p->held->secret, challenge, p->held->id, want);
	if (r == 0 && !link_same(want, m.proof, sizeof(want))) {
		link_refuse(p->link, m.tag, LR_WIRE_WRONG_SECRET, BODY_MS);
		r = -EACCES;
	}
	return r;
}

static int meet(struct peer *p)
{
	const int64_t ms = forkd_config.handshake_ms;
	uint8_t bytes[LR_WIRE_HELLO], challenge[LR_WIRE_PROOF];
	struct lr_wire_hello h;

	link_hurry(p->link, ms);
	int r = link_read(p->link, bytes, sizeof(bytes), ms);
	if (r == 0)
		r = lr_wire_get_hello(bytes, &h);
	if (r == 0)
		r = greet(p, &h, challenge);
	if (r < 0)
		return r;
	r = h.way == LR_WIRE_TLS ? link_accept_tls(p->link, p->held->id, p->held->secret, ms)
				 : see_proof(p, challenge, ms);
	if (r < 0)
		forkd_counts.handshakes_failed++;
	link_hurry(p->link, 0);
	pthread_mutex_lock(&lock);
	bool there = forget_stranger(p);
	pthread_mutex_unlock(&lock);
	return r == 0 && !there ? -ECONNRESET : r;
}

static int welcome(struct peer *p)
{
	struct lr_wire_msg m = {.type = LR_WIRE_WELCOME,
				.count = LR_WIRE_CHUNK / LR_WIRE_PAGE,
				.length = p->held->length,
				.pages = p->held->pages};

	enum lr_wire_code ended = held_read(p->held);
	if (ended) {
		link_refuse(p->link, 0, ended, BODY_MS);
		return -ECONNREFUSED;
	}
	p->reads = true;
	m.lease = held_left(p->held);
	memcpy(m.id, p->held->id, sizeof(m.id));
	return link_send(p->link, &m, BODY_MS);
}

/* ---- questions ---------------------------------------------------------------------------- */

/* Waits until the peer may have so much. */
static void pace(struct peer *p, size_t bytes)
{
	pthread_mutex_lock(&lock);
	int64_t ms = limits_wait(&limits, p->address, bytes, lr_now_ms());
	pthread_mutex_unlock(&lock);
	/* In parts, as with a low rate it may be long, and the seed end meanwhile. */
	for (int64_t part; ms > 0 && !p->held->ended; ms -= part) {
		part = ms < PACE_MS ? ms : PACE_MS;
		nanosleep(&(struct timespec){0, part * 1000000}, NULL);
	}
}

static int refuse(struct peer *p, uint64_t tag, enum lr_wire_code code)
{
	if (code == LR_WIRE_MALFORMED)
		forkd_counts.malformed++;
	link_refuse(p->link, tag, code, BODY_MS);
	return -ECONNREFUSED;
}

static int send_bytes(struct peer *p, uint64_t tag, const void *bytes, size_t n)
{
	pace(p, n);
	if (p->held->ended) /* that may have been a while */
		return refuse(p, tag, p->held->ended);
	int r = link_send_data(p->link, tag, bytes, n, ANSWER_MS);
	if (r == 0) {
		forkd_counts.bytes_sent += n;
		p->held->sent += n;
	}
	return r;
}

static int describe(struct peer *p, const struct lr_wire_msg *m)
{
	if (m->count > LR_WIRE_CHUNK || m->at > p->held->length ||
	    m->count > p->held->length - m->at)
		return refuse(p, m->tag, LR_WIRE_MALFORMED);
	return send_bytes(p, m->tag, p->held->descriptor + m->at, m->count);
}

/* A file that became shorter, or a disk that fails: never zeros. */
static bool read_range(const struct held *h, const struct lr_wire_range *r, uint8_t *to)
{
	size_t n = (size_t)r->pages * LR_WIRE_PAGE, done = 0;

	while (done < n) {
		ssize_t got = held_pread(h, to + done, n - done, r->at + done);
		if (got <= 0 && got != -EINTR)
			return false;
		done += got > 0 ? (size_t)got : 0;
	}
	return true;
}

static void tell_damaged(const struct held *h)
{
	char id[LR_WIRE_HEX];

	lr_wire_id_text(h->id, id);
	forkd_log("seed %s is damaged: its pages can't be read: its children end", id);
}

static int read_pages(struct peer *p, const struct lr_wire_msg *m)
{
	size_t at = 0;

	if (!p->pages)
		p->pages = malloc(LR_WIRE_CHUNK);
	if (!p->pages)
		return refuse(p, m->tag, LR_WIRE_BUSY);
	for (size_t i = 0; i < m->n; i++) {
		const struct lr_wire_range *r = &m->ranges[i];
		const size_t n = (size_t)r->pages * LR_WIRE_PAGE;
		if (r->at > p->held->pages || n > p->held->pages - r->at)
			return refuse(p, m->tag, LR_WIRE_MALFORMED);
		if (!held_wait(p->held, r, FILL_MS))
			return refuse(p, m->tag, p->held->ended ? p->held->ended : LR_WIRE_BUSY);
		if (!read_range(p->held, r, p->pages + at)) {
			if (p->held->ended)
				return refuse(p, m->tag, p->held->ended);
			tell_damaged(p->held);
			return refuse(p, m->tag, LR_WIRE_DAMAGED);
		}
		at += n;
	}
	forkd_counts.reads++;
	return send_bytes(p, m->tag, p->pages, at);
}

static int answer(struct peer *p, const struct lr_wire_msg *m)
{
	struct lr_wire_msg pong = {.type = LR_WIRE_PONG, .tag = m->tag};
	struct lr_wire_msg entry = {.type = LR_WIRE_ENTRY, .tag = m->tag};
	struct lr_wire_msg region = {.type = LR_WIRE_REGION, .tag = m->tag};

	if (p->held->ended)
		return refuse(p, m->tag, p->held->ended);
	held_use(p->held);
	switch (m->type) {
	case LR_WIRE_DESCRIBE:
		return describe(p, m);
	case LR_WIRE_READ:
		return read_pages(p, m);
	case LR_WIRE_PING:
		pong.lease = held_left(p->held);
		return link_send(p->link, &pong, BODY_MS);
	case LR_WIRE_RDMA:
		outlet_open(p->held, link_fd(p->link), &p->outlet, &entry);
		return link_send(p->link, &entry, BODY_MS);
	case LR_WIRE_MODULE:
		linked_offer(p->held, link_fd(p->link), &entry);
		return link_send(p->link, &entry, BODY_MS);
	case LR_WIRE_ENTERED:
		outlet_enter(p->outlet, &region);
		return link_send(p->link, &region, BODY_MS);
	default:
		return refuse(p, m->tag, LR_WIRE_MALFORMED);
	}
}

/* ---- a connection ------------------------------------------------------------------------- */

static void converse(struct peer *p)
{
	uint8_t body[LR_WIRE_MESSAGE];
	struct lr_wire_msg m;

	if (meet(p) < 0 || welcome(p) < 0)
		return;
	for (;;) {
		int r = link_receive(p->link, &m, body, sizeof(body), forkd_config.idle_ms,
				     BODY_MS);
		if (r == -EPROTO)
			r = refuse(p, 0, LR_WIRE_MALFORMED);
		if (r < 0 || answer(p, &m) < 0)
			return;
	}
}

static void address_of(const struct sockaddr_storage *sa, uint8_t ret[16])
{
	memset(ret, 0, 16);
	if (sa->ss_family == AF_INET6) {
		memcpy(ret, &((const struct sockaddr_in6 *)sa)->sin6_addr, 16);
	} else if (sa->ss_family == AF_INET) {
		ret[10] = ret[11] = 0xff;
		memcpy(ret + 12, &((const struct sockaddr_in *)sa)->sin_addr, 4);
	}
}

static bool enter(const uint8_t address[16])
{
	pthread_mutex_lock(&lock);
	limits.most = forkd_config.connections;
	limits.per_peer = forkd_config.per_peer;
	limits.rate = forkd_config.rate;
	int r = limits_enter(&limits, address, lr_now_ms());
	if (r == -ENOSPC && end_one()) {
		limits_take(&limits, address, lr_now_ms());
		r = 0;
	}
	pthread_mutex_unlock(&lock);
	return r == 0;
}

static void leave(const uint8_t address[16])
{
	pthread_mutex_lock(&lock);
	limits_leave(&limits, address, lr_now_ms());
	pthread_mutex_unlock(&lock);
}

static void *run(void *arg)
{
	struct peer *p = arg;

	converse(p);
	outlet_close(p->outlet);
	if (p->reads)
		held_unread(p->held);
	held_put(p->held);
	pthread_mutex_lock(&lock);
	forget_stranger(p);
	if (!p->left)
		limits_leave(&limits, p->address, lr_now_ms());
	pthread_mutex_unlock(&lock);
	link_close(p->link); /* nobody ends what is another's by now */
	free(p->pages);
	free(p);
	return NULL;
}

/* Without a thread, a wait or a look at what it said. */
static void turn_away(int fd)
{
	const struct lr_wire_greeting g = {.code = LR_WIRE_BUSY};
	uint8_t bytes[LR_WIRE_GREETING];

	lr_wire_put_greeting(&g, bytes);
	send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL | MSG_DONTWAIT);
	forkd_counts.refused++;
	close(fd);
}

void serve_accept(int listener)
{
	struct sockaddr_storage sa = {0};
	socklen_t size = sizeof(sa);
	uint8_t address[16];
	int fd = forkd_accept(listener, (struct sockaddr *)&sa, &size, SOCK_NONBLOCK);

	if (fd < 0)
		return;
	forkd_counts.connections++;
	address_of(&sa, address);
	if (!enter(address)) {
		turn_away(fd);
		return;
	}
	struct peer *p = calloc(1, sizeof(*p));
	if (p) {
		memcpy(p->address, address, sizeof(address));
		p->link = link_new(fd);
	} else {
		close(fd);
	}
	if (p && p->link) {
		pthread_mutex_lock(&lock);
		be_stranger(p);
		pthread_mutex_unlock(&lock);
		if (forkd_thread(run, p) == 0)
			return;
		pthread_mutex_lock(&lock);
		forget_stranger(p);
		pthread_mutex_unlock(&lock);
	}
	if (p)
		link_close(p->link);
	free(p);
	leave(address);
}
