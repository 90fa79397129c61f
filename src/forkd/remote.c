/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: see remote.h. */
#define LR_ROOM "forkd"
#include "src/forkd/remote.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "src/base/clock.h"
#include "src/base/str.h"
#include "src/forkd/direct.h"
#include "src/forkd/forkd.h"
#include "src/forkd/link.h"

#define POOL       8     /* connections to one seed that are kept */
#define KEEP_MS    60000 /* a seed without children */
#define IDLE_MS    30000 /* a connection without a question; less than a server allows */
#define CONNECT_MS 5000
#define ANSWER_MS  10000
#define REMOTES    256
#define AGAIN_MS   10000 /* until RDMA is tried again */

struct one {
	struct remote r; /* first: what others see */
	struct lr_ticket ticket;
	unsigned users;
	int64_t used;
	struct {
		struct link *link;
		int64_t used;
	} pool[POOL];
	size_t pooled;
	uint8_t *cache; /* as long as the file of pages, where that is possible */
	uint8_t *have;  /* a bit a page */
	struct {
		const void *who;
		struct remote_touch *v; /* REMOTE_TOUCHES; or NULL */
		size_t n;
	} touched;
	struct {
		struct direct *d; /* one for all children; NULL: by TCP */
		unsigned users;
		bool bad;             /* the last user closes it */
		bool trying, told;    /* somebody connects; the log has why that failed */
		int64_t used, again;  /* of lr_now_ms: again: not before that */
		pthread_mutex_t join; /* one at a time connects and waits for it */
	} rdma;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct one *table[REMOTES];

/* ---- connections -------------------------------------------------------------------------- */

/* A kept one that its host has not closed meanwhile. */
static struct link *from_pool(struct one *o)
{
	struct link *l = NULL;

	while (!l) {
		pthread_mutex_lock(&lock);
		if (o->pooled)
			l = o->pool[--o->pooled].link;
		pthread_mutex_unlock(&lock);
		if (!l)
			return NULL;
		struct pollfd p = {.fd = link_fd(l), .events = POLLIN};
		if (poll(&p, 1, 0) != 0) { /* an end, or what nobody asked for */
			link_close(l);
			l = NULL;
		}
	}
	return l;
}

static void to_pool(struct one *o, struct link *l)
{
	pthread_mutex_lock(&lock);
	if (o->pooled < POOL) {
		o->pool[o->pooled].used = lr_now_ms();
		o->pool[o->pooled++].link = l;
		l = NULL;
	}
	pthread_mutex_unlock(&lock);
	link_close(l);
}

/* Another seed under this name, or another descriptor, is not what the children were made of. */
static int same_seed(const struct one *o, const struct lr_wire_msg *w, struct lr_err *err)
{
	if (w->length != o->r.length || w->pages != o->r.pages)
		return lr_refuse(err, ESTALE, "the host has another seed of this name");
	return 0;
}

static int connection(struct one *o, struct link **ret, struct lr_err *err)
{
	struct lr_wire_msg w;
	uint32_t code;

	*ret = from_pool(o);
	if (*ret)
		return 0;
	forkd_counts.connects++;
	int r = link_connect(&o->ticket, CONNECT_MS, ret, &w, &code, err);
	if (r == 0) {
		r = same_seed(o, &w, err);
		if (r < 0)
			link_close(*ret);
	}
	return r;
}

/* Nobody waits longer for one answer than a child does for its pages. */
static int64_t at_most(int64_t ms)
{
	const uint64_t patience = forkd_config.patience;

	return patience && patience < (uint64_t)ms ? (int64_t)patience : ms;
}

/* Sends a question and takes the answer, of exactly n bytes. */
static int ask(struct link *l, struct lr_wire_msg *m, uint8_t *to, size_t n, struct lr_err *err)
{
	uint8_t *body = malloc(LR_WIRE_CHUNK);
	struct lr_wire_msg got = {0};

	if (!body)
		return lr_fail(err, ENOMEM, "fetch from the seed's host");
	int r = link_ask(l, m, LR_WIRE_DATA, &got, body, LR_WIRE_CHUNK, at_most(ANSWER_MS), err);
	if (r == 0 && got.data.n != n)
		r = lr_refuse(err, EPROTO, "the seed's host sends another answer");
	if (r == 0) {
		memcpy(to, got.data.at, n);
		forkd_counts.bytes_fetched += n;
	}
	free(body);
	return r;
}

/* ---- descriptor --------------------------------------------------------------------------- */

static int fetch_descriptor(struct one *o, struct link *l, struct lr_err *err)
{
	o->r.descriptor = malloc(o->r.length);
	if (!o->r.descriptor)
		return lr_fail(err, ENOMEM, "fetch the descriptor");
	for (uint64_t at = 0; at < o->r.length;) {
		uint64_t n = o->r.length - at;
		struct lr_wire_msg m = {.type = LR_WIRE_DESCRIBE, .at = at};
		m.count = n > LR_WIRE_CHUNK ? LR_WIRE_CHUNK : (uint32_t)n;
		int r = ask(l, &m, o->r.descriptor + at, m.count, err);
		if (r < 0)
			return r;
		at += m.count;
	}
	int r = lr_seed_open(o->r.descriptor, o->r.length, o->r.pages, &o->r.seed, err);
	if (r == 0 && memcmp(o->r.seed.header->id, o->r.id, LR_WIRE_ID) != 0)
		r = lr_refuse(err, EPROTO, "the descriptor is another seed's");
	return r;
}

/* Memory that is not there until it is written. Without it nothing is kept. */
static void begin_cache(struct one *o)
{
	const uint64_t bits = o->r.pages / LR_WIRE_PAGE / 8 + 1;

	if (o->r.pages > forkd_config.cache)
		return;
	o->have = calloc(1, bits);
	o->cache = mmap(NULL, o->r.pages, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!o->have || o->cache == MAP_FAILED) {
		o->cache = NULL;
		return;
	}
	madvise(o->cache, o->r.pages, MADV_DONTFORK); /* the keeper would keep a copy */
}

static void drop(struct one *o)
{
	direct_close(o->rdma.d);
	pthread_mutex_destroy(&o->rdma.join);
	for (size_t i = 0; i < o->pooled; i++)
		link_close(o->pool[i].link);
	if (o->cache) {
		for (uint64_t i = 0; i < o->r.pages / LR_WIRE_PAGE; i++)
			if (o->have[i / 8] >> i % 8 & 1)
				forkd_counts.cached -= LR_WIRE_PAGE;
		munmap(o->cache, o->r.pages);
	}
	free(o->have);
	free(o->touched.v);
	free(o->r.descriptor);
	link_forget(&o->ticket, sizeof(o->ticket));
	free(o);
}

static int meet(const struct lr_ticket *t, struct one **ret, struct lr_err *err)
{
	struct lr_wire_msg w;
	struct link *l;
	uint32_t code;
	int r = link_connect(t, CONNECT_MS, &l, &w, &code, err);

	if (r < 0)
		return r;
	struct one *o = calloc(1, sizeof(*o));
	if (!o)
		r = lr_fail(err, ENOMEM, "fetch the seed");
	else if (w.length > forkd_config.descriptor)
		r = lr_refuse(err, EFBIG, "the descriptor has %llu bytes; %llu are the most",
			      (unsigned long long)w.length,
			      (unsigned long long)forkd_config.descriptor);
	if (r == 0) {
		o->ticket = *t;
		o->users = 1;
		pthread_mutex_init(&o->rdma.join, NULL);
		o->r.length = w.length;
		o->r.pages = w.pages;
		memcpy(o->r.id, t->id, LR_WIRE_ID);
		r = fetch_descriptor(o, l, err);
	}
	if (r < 0) {
		link_close(l);
		if (o)
			drop(o);
		return r;
	}
	to_pool(o, l);
	begin_cache(o);
	o->rdma.used = lr_now_ms();
	*ret = o;
	return 0;
}

/* ---- the table ---------------------------------------------------------------------------- */

/* An id is no secret, so others may have made a seed that has it, too. */
static bool is_of(const struct one *o, const struct lr_ticket *t)
{
	return memcmp(o->r.id, t->id, sizeof(t->id)) == 0 && o->ticket.way == t->way &&
	       o->ticket.port == t->port && lr_streq(o->ticket.host, t->host) &&
	       link_same(o->ticket.secret, t->secret, sizeof(t->secret));
}

static struct one *find(const struct lr_ticket *t)
{
	for (size_t i = 0; i < REMOTES; i++)
		if (table[i] && is_of(table[i], t)) {
			table[i]->users++;
			table[i]->used = lr_now_ms();
			return table[i];
		}
	return NULL;
}

void remote_get(struct remote *r)
{
	pthread_mutex_lock(&lock);
	((struct one *)r)->users++;
	pthread_mutex_unlock(&lock);
}

void remote_put(struct remote *r)
{
	if (!r)
		return;
	struct one *o = (struct one *)r;
	pthread_mutex_lock(&lock);
	o->users--;
	o->used = lr_now_ms();
	pthread_mutex_unlock(&lock);
}

/* Two who fetched the same at once: the first one's stays. */
static int keep(struct one *o, struct one **ret, struct lr_err *err)
{
	struct one *old;
	size_t i = 0;

	pthread_mutex_lock(&lock);
	old = find(&o->ticket);
	if (!old) {
		while (i < REMOTES && table[i])
			i++;
		if (i < REMOTES)
			table[i] = o;
	}
	pthread_mutex_unlock(&lock);
	if (!old && i < REMOTES) {
		*ret = o;
		return 0;
	}
	drop(o);
	*ret = old;
	return old ? 0 : lr_refuse(err, ENOSPC, "too many seeds of other hosts");
}

/* Whether its host would still give it: a lease may have ended, a seed been revoked. */
static int ask_host(struct one *o, struct lr_err *err)
{
	struct lr_wire_msg m = {.type = LR_WIRE_DESCRIBE};
	struct link *l;
	uint8_t nothing;
	int r = connection(o, &l, err);

	if (r < 0)
		return r;
	r = ask(l, &m, &nothing, 0, err);
	if (r < 0)
		link_close(l);
	else
		to_pool(o, l);
	return r;
}

int remote_use(struct remote *r, struct lr_err *err)
{
	return ask_host((struct one *)r, err);
}

int remote_ask(struct remote *r, enum lr_wire_type type, enum lr_wire_type want,
	       struct lr_wire_msg *got, struct sockaddr_storage *where, struct lr_err *err)
{
	uint8_t body[LR_WIRE_HEAD + LR_WIRE_TEXT + 4];
	struct lr_wire_msg m = {.type = type};
	struct one *o = (struct one *)r;
	socklen_t size = sizeof(*where);
	struct link *l;

	int e = connection(o, &l, err);
	if (e < 0)
		return e;
	e = link_ask(l, &m, want, got, body, sizeof(body), at_most(ANSWER_MS), err);
	if (e == 0 && getpeername(link_fd(l), (struct sockaddr *)where, &size) < 0)
		e = lr_fail(err, errno, "where the seed's host is");
	if (e < 0)
		link_close(l);
	else
		to_pool(o, l);
	return e;
}

int remote_fetch(const struct lr_ticket *t, struct remote **ret, struct lr_err *err)
{
	pthread_mutex_lock(&lock);
	struct one *o = find(t);
	pthread_mutex_unlock(&lock);
	int r = 0;
	if (o) {
		r = ask_host(o, err);
		if (r < 0)
			remote_put(&o->r);
	} else {
		r = meet(t, &o, err);
		if (r == 0)
			r = keep(o, &o, err);
	}
	if (r == 0)
		*ret = &o->r;
	return r;
}

void remote_clean(void)
{
	const int64_t now = lr_now_ms();
	struct one *old[REMOTES];
	struct link *idle[POOL];
	struct direct *unused[POOL];
	size_t n = 0, k = 0, u = 0;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < REMOTES; i++) {
		struct one *o = table[i];
		if (!o)
			continue;
		if (!o->users && now - o->used > KEEP_MS) {
			old[n++] = o;
			table[i] = NULL;
		} else if (o->pooled && k < POOL && now - o->pool[0].used > IDLE_MS) {
			idle[k++] = o->pool[0].link;
			memmove(o->pool, o->pool + 1, --o->pooled * sizeof(o->pool[0]));
		}
		if (o->rdma.d && !o->rdma.users && u < POOL && table[i] &&
		    now - o->rdma.used > IDLE_MS) {
			unused[u++] = o->rdma.d;
			o->rdma.d = NULL;
		}
	}
	pthread_mutex_unlock(&lock);
	for (size_t i = 0; i < n; i++)
		drop(old[i]);
	for (size_t i = 0; i < k; i++)
		link_close(idle[i]);
	for (size_t i = 0; i < u; i++)
		direct_close(unused[i]);
}

/* ---- by RDMA ------------------------------------------------------------------------------ */

static struct direct *take(struct one *o)
{
	pthread_mutex_lock(&lock);
	struct direct *d = o->rdma.bad ? NULL : o->rdma.d;
	if (d)
		o->rdma.users++;
	pthread_mutex_unlock(&lock);
	return d;
}

static void give_back(struct one *o, bool bad)
{
	struct direct *d = NULL;

	pthread_mutex_lock(&lock);
	o->rdma.used = lr_now_ms();
	o->rdma.bad = o->rdma.bad || bad;
	if (--o->rdma.users == 0 && o->rdma.bad) {
		d = o->rdma.d;
		o->rdma.d = NULL;
		o->rdma.bad = false;
	}
	pthread_mutex_unlock(&lock);
	direct_close(d);
}

static void tell(struct one *o, int r, const struct lr_err *err)
{
	char id[LR_WIRE_HEX], line[512];

	lr_wire_id_text(o->r.id, id);
	if (r == 0)
		forkd_log("seed %s is read by RDMA, in clear", id);
	else if (r != -ENOTSUP && r != -ESTALE && !o->rdma.told &&
		 forkd_config.rdma == FORKD_RDMA_AUTO)
		forkd_log("seed %s is read by TCP: %s", id, lr_err_format(err, line, sizeof(line)));
	o->rdma.told = r < 0;
}

static int join(struct one *o, struct lr_err *err)
{
	struct direct *d = NULL;
	struct link *l;
	const int able = direct_check(err);
	int r = able < 0 ? able : connection(o, &l, err);

	if (r == 0)
		r = direct_connect(l, o->r.pages, &d, err);
	pthread_mutex_lock(&lock);
	o->rdma.trying = false;
	o->rdma.used = lr_now_ms();
	o->rdma.again = able < 0 ? INT64_MAX : o->rdma.used + AGAIN_MS;
	o->rdma.d = d;
	if (able == 0)
		tell(o, r, err);
	pthread_mutex_unlock(&lock);
	return r;
}

static void *join_aside(void *arg)
{
	struct lr_err err = {0};
	struct one *o = arg;

	join(o, &err);
	remote_put(&o->r);
	return NULL;
}

/* Nobody waits for that: pages come by TCP meanwhile. */
static void join_later(struct one *o)
{
	pthread_mutex_lock(&lock);
	const bool now = forkd_config.rdma == FORKD_RDMA_AUTO && !o->rdma.d && !o->rdma.trying &&
			 lr_now_ms() >= o->rdma.again;
	if (now) {
		o->rdma.trying = true;
		o->users++;
	}
	pthread_mutex_unlock(&lock);
	if (now && forkd_thread(join_aside, o) < 0) {
		pthread_mutex_lock(&lock);
		o->rdma.trying = false;
		pthread_mutex_unlock(&lock);
		remote_put(&o->r);
	}
}

static bool has_direct(struct one *o)
{
	pthread_mutex_lock(&lock);
	const bool has = o->rdma.d;
	pthread_mutex_unlock(&lock);
	return has;
}

/* Where RDMA is required. What has ended, and somebody still uses, has to go first. */
static int take_or_join(struct one *o, struct direct **ret, struct lr_err *err)
{
	int r = 0;

	pthread_mutex_lock(&o->rdma.join);
	*ret = take(o);
	if (!*ret && !has_direct(o)) {
		r = join(o, err);
		if (r == 0)
			*ret = take(o);
	}
	pthread_mutex_unlock(&o->rdma.join);
	return r < 0 || *ret ? r : lr_refuse(err, EAGAIN, "the connection by RDMA has ended");
}

#define BY_TCP 1

static int by_rdma(struct one *o, const struct lr_wire_msg *m, uint8_t *to, struct lr_err *err)
{
	const bool must = forkd_config.rdma == FORKD_RDMA_REQUIRE;
	struct direct *d = NULL;
	int r = 0;

	if (forkd_config.rdma == FORKD_RDMA_OFF)
		return BY_TCP;
	/* A second time: the host may have closed what was idle. */
	for (int i = 0; i < 2; i++) {
		if (must)
			r = take_or_join(o, &d, err);
		else
			d = take(o);
		if (!d)
			break;
		r = direct_read(d, m->ranges, m->n, to, err);
		give_back(o, r < 0);
		if (r == 0 || !must)
			break;
	}
	if (must || (d && r == 0))
		return r;
	join_later(o);
	return BY_TCP;
}

/* ---- pages -------------------------------------------------------------------------------- */

static bool is_kept(const struct one *o, uint64_t first, uint32_t pages)
{
	bool all = o->cache;

	for (uint32_t i = 0; all && i < pages; i++)
		all = o->have[(first + i) / 8] >> (first + i) % 8 & 1;
	return all;
}

/* Contents first, then the bit; both by one at a time. */
static bool keep_pages(struct one *o, uint64_t first, uint32_t pages, const uint8_t *from)
{
	if (!o->cache || forkd_counts.cached + (uint64_t)pages * LR_WIRE_PAGE > forkd_config.cache)
		return false;
	for (uint32_t i = 0; i < pages; i++) {
		uint64_t k = first + i;
		if (o->have[k / 8] >> k % 8 & 1)
			continue;
		memcpy(o->cache + k * LR_WIRE_PAGE, from + (size_t)i * LR_WIRE_PAGE, LR_WIRE_PAGE);
		o->have[k / 8] |= (uint8_t)(1U << k % 8);
		forkd_counts.cached += LR_WIRE_PAGE;
	}
	return true;
}

static int by_tcp(struct one *o, struct lr_wire_msg *m, uint8_t *to, size_t size,
		  struct lr_err *err)
{
	struct link *l;
	int r = connection(o, &l, err);

	if (r < 0)
		return r;
	r = ask(l, m, to, size, err);
	if (r < 0)
		link_close(l);
	else
		to_pool(o, l);
	return r;
}

static void count(struct figures *f, enum lr_wire_figure how, size_t bytes)
{
	if (f)
		f->v[how] += bytes / LR_WIRE_PAGE;
}

/* m: a READ, for `size` bytes. What RDMA could not bring is asked by TCP at once, which also knows
 * why. */
static int from_host(struct one *o, struct lr_wire_msg *m, uint8_t *to, size_t size,
		     struct figures *f, struct lr_err *err)
{
	int r = by_rdma(o, m, to, err);
	const bool tcp = r == BY_TCP;

	if (tcp)
		r = by_tcp(o, m, to, size, err);
	if (r < 0)
		return r;
	count(f, tcp ? LR_WIRE_BY_TCP : LR_WIRE_BY_RDMA, size);
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < m->n; i++) {
		keep_pages(o, m->ranges[i].at / LR_WIRE_PAGE, m->ranges[i].pages, to);
		to += (size_t)m->ranges[i].pages * LR_WIRE_PAGE;
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

int remote_read(struct remote *r, uint64_t at, uint32_t pages, uint8_t *spare, const uint8_t **ret,
		struct figures *f, struct lr_err *err)
{
	struct one *o = (struct one *)r;
	struct lr_wire_msg m = {.type = LR_WIRE_READ, .n = 1};

	pthread_mutex_lock(&lock);
	bool kept = is_kept(o, at / LR_WIRE_PAGE, pages);
	pthread_mutex_unlock(&lock);
	*ret = kept ? o->cache + at : spare;
	if (kept) {
		count(f, LR_WIRE_CACHED, (size_t)pages * LR_WIRE_PAGE);
		return 0;
	}
	m.ranges[0] = (struct lr_wire_range){at, pages};
	return from_host(o, &m, spare, (size_t)pages * LR_WIRE_PAGE, f, err);
}

int remote_bring(struct remote *r, const struct lr_wire_range *v, size_t n, uint8_t *to,
		 struct figures *f, struct lr_err *err)
{
	struct one *o = (struct one *)r;
	struct lr_wire_msg m = {.type = LR_WIRE_READ, .n = n};
	bool kept = true;

	for (size_t i = 0; i < n; i++)
		if (v[i].at > r->pages || (uint64_t)v[i].pages * LR_WIRE_PAGE > r->pages - v[i].at)
			return lr_refuse(err, EINVAL, "the seed has no such pages");
	memcpy(m.ranges, v, n * sizeof(*v));
	pthread_mutex_lock(&lock);
	for (size_t i = 0; kept && i < n; i++)
		kept = is_kept(o, v[i].at / LR_WIRE_PAGE, v[i].pages);
	pthread_mutex_unlock(&lock);
	if (!kept)
		return from_host(o, &m, to, lr_wire_asked(&m), f, err);
	count(f, LR_WIRE_CACHED, lr_wire_asked(&m));
	for (size_t i = 0; i < n; i++) {
		memcpy(to, o->cache + v[i].at, (size_t)v[i].pages * LR_WIRE_PAGE);
		to += (size_t)v[i].pages * LR_WIRE_PAGE;
	}
	return 0;
}

/* ---- what was touched --------------------------------------------------------------------- */

void remote_touched(struct remote *r, const void *who, const struct remote_touch *t)
{
	struct one *o = (struct one *)r;

	pthread_mutex_lock(&lock);
	if (!o->touched.who) {
		o->touched.who = who;
		o->touched.v = calloc(REMOTE_TOUCHES, sizeof(*o->touched.v));
	}
	if (o->touched.who == who && o->touched.v && o->touched.n < REMOTE_TOUCHES)
		o->touched.v[o->touched.n++] = *t;
	pthread_mutex_unlock(&lock);
}

size_t remote_touches(struct remote *r)
{
	pthread_mutex_lock(&lock);
	size_t n = ((struct one *)r)->touched.n;
	pthread_mutex_unlock(&lock);
	return n;
}

void remote_touch(struct remote *r, size_t i, struct remote_touch *ret)
{
	pthread_mutex_lock(&lock);
	*ret = ((struct one *)r)->touched.v[i];
	pthread_mutex_unlock(&lock);
}
