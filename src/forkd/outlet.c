/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forkd: see outlet.h. One thread takes what rdma_cm tells of all connections. It acknowledges an
 * event before it asks for the lock, as whoever holds that may destroy a connection, which waits for
 * the acknowledgement.
 */
#define LR_ROOM "forkd"
#include "src/forkd/outlet.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/forkd/addresses.h"
#include "src/forkd/forkd.h"
#include "src/forkd/link.h"
#include "src/forkd/verbs.h"

#define TOKEN_MS 10000 /* to connect after ENTRY */
#define KEEP_MS  60000 /* a region that nobody reads */
#define BACKLOG  64

struct region {
	struct region *next;
	const struct held *held; /* it is in the table until outlets_end */
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_cq *cq; /* for queue pairs, that never say anything */
	struct ibv_mr *mr; /* NULL: nobody has entered */
	void *at;
	unsigned users;
	int64_t used;
	bool busy; /* it is being registered, without the lock */
};

struct outlet {
	struct outlet *next;
	struct held *held; /* its owner has a reference */
	uint8_t token[LR_WIRE_PROOF];
	int64_t until;         /* of the token */
	bool shown;            /* it has been used */
	struct rdma_cm_id *id; /* NULL: nobody has come */
	struct region *region;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static const struct verbs *verbs;
static struct rdma_event_channel *channel;
static struct outlet *outlets;
static struct region *regions;
static struct addresses addresses;
static struct rdma_cm_id *listeners[ADDRESSES];

/* ---- regions ------------------------------------------------------------------------------ */

static void unregister(struct region *r)
{
	if (!r->mr)
		return;
	verbs->ibv_dereg_mr(r->mr);
	munmap(r->at, r->held->pages);
	forkd_counts.rdma_pinned -= r->held->pages;
	r->mr = NULL;
}

/* No queue pair of it is left. */
static void region_free(struct region *r)
{
	struct region **at = &regions;

	while (*at && *at != r)
		at = &(*at)->next;
	if (*at)
		*at = r->next;
	unregister(r);
	if (r->cq)
		verbs->ibv_destroy_cq(r->cq);
	if (r->pd)
		verbs->ibv_dealloc_pd(r->pd);
	free(r);
}

/* The seed's at that adapter. */
static struct region *region_of(const struct held *h, struct ibv_context *context)
{
	struct region *r = regions;

	while (r && (r->held != h || r->verbs != context))
		r = r->next;
	if (r)
		return r;
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	*r = (struct region){.next = regions, .held = h, .verbs = context, .used = lr_now_ms()};
	regions = r;
	r->pd = verbs->ibv_alloc_pd(context);
	r->cq = r->pd ? verbs->ibv_create_cq(context, 16, NULL, NULL, 0) : NULL;
	if (r->cq)
		return r;
	region_free(r);
	return NULL;
}

static bool is_idle(const struct region *r, int64_t ms)
{
	return !r->users && !r->busy && lr_now_ms() - r->used >= ms;
}

static void drop_idle(int64_t ms)
{
	for (struct region *r = regions, *next; r; r = next) {
		next = r->next;
		if (is_idle(r, ms))
			region_free(r);
	}
}

static bool has_room(uint64_t bytes)
{
	if (forkd_counts.rdma_pinned + bytes > forkd_config.rdma_memory)
		drop_idle(0);
	return forkd_counts.rdma_pinned + bytes <= forkd_config.rdma_memory;
}

/* Shared, and by a descriptor that can only read: of a private mapping the kernel would pin copies,
 * and one of a sealed file that could be made writable it refuses before Linux 6.7. */
static void *map_pages(const struct held *h)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", h->fd);
	LR_CLEANUP_FD int fd = lr_open(path, O_RDONLY | O_CLOEXEC);
	void *at = fd < 0 ? MAP_FAILED : mmap(NULL, h->pages, PROT_READ, MAP_SHARED, fd, 0);
	return at == MAP_FAILED ? NULL : at;
}

/* What the kernel module has is in no file: for user space it is copied, once somebody reads so. */
static void *copy_pages(const struct held *h)
{
	uint8_t *at = mmap(NULL, h->pages, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ssize_t n = 1;

	if (at == MAP_FAILED)
		return NULL;
	madvise(at, h->pages, MADV_DONTFORK); /* the keeper would keep a copy */
	for (uint64_t done = 0; n > 0 && done<h->pages; done += n> 0 ? (uint64_t)n : 0)
		n = held_pread(h, at + done, h->pages - done, done);
	if (n > 0)
		return at;
	munmap(at, h->pages);
	return NULL;
}

/* Linux before 6.2 pins no file for reading alone, nor does it pin some file systems' at all. From
 * address 0: where it lies in our memory is nobody's business. NULL: errno says why. */
static struct ibv_mr *pin(struct ibv_pd *pd, const struct held *h, void **at)
{
	*at = h->exported ? copy_pages(h) : map_pages(h);
	if (!*at)
		return NULL;
	struct ibv_mr *mr = verbs->ibv_reg_mr_iova(pd, *at, h->pages, 0, IBV_ACCESS_REMOTE_READ);
	const int code = errno;
	if (!mr)
		munmap(*at, h->pages);
	errno = code;
	return mr;
}

static void tell_unpinned(const struct held *h, int code)
{
	static bool told;
	char id[LR_WIRE_HEX];

	if (told)
		return;
	told = true;
	lr_wire_id_text(h->id, id);
	forkd_log(
		"seed %s is read by TCP alone: its pages can't be pinned: %s; it takes Linux 6.2, "
		"and as much memory as may be locked (LimitMEMLOCK, ulimit -l)",
		id, lr_strerror(code));
}

/* Without the lock while it is pinned: that takes a tenth of a second for a gigabyte. */
static void be_registered(struct region *r, const struct held *h)
{
	void *at;

	while (r->busy)
		pthread_cond_wait(&changed, &lock);
	if (r->mr || h->ended || !has_room(h->pages))
		return;
	r->busy = true;
	forkd_counts.rdma_pinned += h->pages;
	pthread_mutex_unlock(&lock);
	struct ibv_mr *mr = pin(r->pd, h, &at);
	const int code = errno;
	pthread_mutex_lock(&lock);
	r->busy = false;
	r->mr = mr;
	r->at = at;
	if (!mr) {
		forkd_counts.rdma_pinned -= h->pages;
		tell_unpinned(h, code);
	}
	pthread_cond_broadcast(&changed);
}

/* ---- connections -------------------------------------------------------------------------- */

/* Takes away what somebody reads by. Lets the lock go meanwhile, as to part from a peer that does not
 * answer takes its time: what the caller has found in a list before it, it has to look for again. */
static void cut(struct outlet *o)
{
	struct rdma_cm_id *id = o->id;
	struct region *r = o->region;

	o->id = NULL;
	o->region = NULL;
	if (!id)
		return;
	pthread_mutex_unlock(&lock);
	verbs->rdma_disconnect(id);
	verbs->rdma_destroy_qp(id);
	verbs->rdma_destroy_id(id);
	pthread_mutex_lock(&lock);
	forkd_counts.rdma_peers--;
	r->users--; /* it is there for as long as that is not 0 */
	r->used = lr_now_ms();
	pthread_cond_broadcast(&changed);
}

static struct outlet *find_token(const uint8_t token[LR_WIRE_PROOF])
{
	for (struct outlet *o = outlets; o; o = o->next)
		if (!o->shown && o->until > lr_now_ms() &&
		    link_same(o->token, token, LR_WIRE_PROOF))
			return o;
	return NULL;
}

static int let_in(struct outlet *o, struct rdma_cm_id *id, struct rdma_conn_param *asked)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	struct rdma_conn_param param = {.rnr_retry_count = 7};
	struct ibv_device_attr device;

	if (o->held->ended || !verbs_are_right(id) ||
	    verbs->ibv_query_device(id->verbs, &device) != 0)
		return -EACCES;
	struct region *r = region_of(o->held, id->verbs);
	if (!r)
		return -ENOMEM;
	attr.send_cq = r->cq;
	attr.recv_cq = r->cq;
	if (verbs->rdma_create_qp(id, r->pd, &attr) < 0)
		return -errno;
	const int most = device.max_qp_rd_atom > 255 ? 255 : device.max_qp_rd_atom;
	param.responder_resources =
		(uint8_t)(asked->responder_resources < most ? asked->responder_resources : most);
	if (verbs->rdma_accept(id, &param) < 0) {
		verbs->rdma_destroy_qp(id);
		return -EIO;
	}
	o->id = id;
	o->region = r;
	r->users++;
	forkd_counts.rdma_peers++;
	return 0;
}

/* A token is good once, whatever comes of it. */
static void come(struct rdma_cm_id *id, struct rdma_conn_param *asked,
		 const uint8_t token[LR_WIRE_PROOF])
{
	pthread_mutex_lock(&lock);
	struct outlet *o = token ? find_token(token) : NULL;
	if (o)
		o->shown = true;
	int r = o ? let_in(o, id, asked) : -EACCES;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	if (r == 0)
		return;
	forkd_counts.rdma_refused++;
	verbs->rdma_reject(id, NULL, 0);
	verbs->rdma_destroy_id(id);
}

static void go(const struct rdma_cm_id *id)
{
	pthread_mutex_lock(&lock);
	struct outlet *o = outlets;
	while (o && o->id != id)
		o = o->next;
	if (o)
		cut(o);
	pthread_mutex_unlock(&lock);
}

/* Whatever fails, who listens goes on: without it nobody would be let in any more. */
static struct rdma_cm_event *next_event(void)
{
	struct rdma_cm_event *e = NULL;
	bool told = false;

	while (verbs->rdma_get_cm_event(channel, &e) != 0) {
		if (errno == EINTR)
			continue;
		if (!told)
			forkd_log("what RDMA tells can't be read: %s", lr_strerror(errno));
		told = true;
		lr_sleep_us(100000);
	}
	return e;
}

static void *watch(void *arg)
{
	for (struct rdma_cm_event *e; (e = next_event());) {
		uint8_t token[LR_WIRE_PROOF];
		struct rdma_conn_param asked = e->param.conn;
		struct rdma_cm_id *id = e->id;
		const enum rdma_cm_event_type type = e->event;
		const bool shown =
			type == RDMA_CM_EVENT_CONNECT_REQUEST &&
			lr_wire_get_token(asked.private_data, asked.private_data_len, token) == 0;
		verbs->rdma_ack_cm_event(e);
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
			come(id, &asked, shown ? token : NULL);
		else if (type != RDMA_CM_EVENT_ESTABLISHED)
			go(id);
	}
	return arg;
}

/* ---- listeners ---------------------------------------------------------------------------- */

static bool begin(void)
{
	struct lr_err err;

	if (channel)
		return true;
	verbs = verbs_get(&err);
	channel = verbs ? verbs->rdma_create_event_channel() : NULL;
	if (channel && forkd_thread(watch, NULL) < 0) {
		verbs->rdma_destroy_event_channel(channel);
		channel = NULL;
	}
	return channel;
}

/* Where the peer has reached us by TCP, at any port. NULL: no adapter is there. */
static struct rdma_cm_id *listen_at(struct sockaddr_storage *sa)
{
	struct rdma_cm_id *id;

	if (verbs->rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) < 0)
		return NULL;
	if (verbs->rdma_bind_addr(id, (struct sockaddr *)sa) < 0 || !verbs_are_right(id) ||
	    verbs->rdma_listen(id, BACKLOG) < 0) {
		verbs->rdma_destroy_id(id);
		return NULL;
	}
	return id;
}

/* The same, once for all peers. Who came by a listener that gives way stays. */
static struct rdma_cm_id *listener_at(struct sockaddr_storage *sa)
{
	size_t i;

	if (addresses_find(&addresses, sa, &i))
		return listeners[i];
	struct rdma_cm_id *id = listen_at(sa);
	if (!id)
		return NULL;
	if (listeners[i])
		verbs->rdma_destroy_id(listeners[i]);
	listeners[i] = id;
	addresses_put(&addresses, i, sa);
	return id;
}

/* 0: no adapter is there. */
static uint16_t port_for(int fd)
{
	struct sockaddr_storage sa = {0};
	socklen_t size = sizeof(sa);

	if (getsockname(fd, (struct sockaddr *)&sa, &size) < 0 || !begin())
		return 0;
	address_clean(&sa);
	address_set_port(&sa, 0);
	struct rdma_cm_id *id = listener_at(&sa);
	return id ? ntohs(verbs->rdma_get_src_port(id)) : 0;
}

/* ---- for a control connection ------------------------------------------------------------- */

/* What can't be held against a rate, or is not whole yet, is read by TCP. */
static bool may_be_read(struct held *h)
{
	return forkd_config.rdma != FORKD_RDMA_OFF && !forkd_config.rate && !h->ended &&
	       held_is_whole(h) && h->pages <= forkd_config.rdma_memory;
}

void outlet_open(struct held *h, int fd, struct outlet **ret, struct lr_wire_msg *answer)
{
	outlet_close(*ret);
	*ret = NULL;
	if (!may_be_read(h))
		return;
	struct outlet *o = calloc(1, sizeof(*o));
	if (!o)
		return;
	o->held = h;
	o->until = lr_now_ms() + TOKEN_MS;
	pthread_mutex_lock(&lock);
	answer->count = link_random(o->token, sizeof(o->token)) < 0 ? 0 : port_for(fd);
	if (answer->count) {
		memcpy(answer->proof, o->token, sizeof(o->token));
		o->next = outlets;
		outlets = o;
		*ret = o;
		o = NULL;
	}
	pthread_mutex_unlock(&lock);
	free(o);
}

void outlet_enter(struct outlet *o, struct lr_wire_msg *answer)
{
	if (!o)
		return;
	pthread_mutex_lock(&lock);
	/* It connects first, and then says so; the event may still be behind. */
	if (o->region) {
		struct region *r = o->region;
		r->users++; /* also when o is cut meanwhile */
		be_registered(r, o->held);
		if (r->mr && o->region == r && !o->held->ended) {
			answer->key = r->mr->rkey;
			answer->length = o->held->pages;
		}
		r->users--;
		r->used = lr_now_ms();
		pthread_cond_broadcast(&changed);
	}
	pthread_mutex_unlock(&lock);
}

void outlet_close(struct outlet *o)
{
	if (!o)
		return;
	pthread_mutex_lock(&lock);
	struct outlet **at = &outlets;
	while (*at != o)
		at = &(*at)->next;
	*at = o->next;
	cut(o);
	pthread_mutex_unlock(&lock);
	link_forget(o->token, sizeof(o->token));
	free(o);
}

/* ---- ends --------------------------------------------------------------------------------- */

static struct region *first_of(const struct held *h)
{
	struct region *r = regions;

	while (r && r->held != h)
		r = r->next;
	return r;
}

/* Nobody comes any more when a seed has ended (let_in). */
static struct outlet *reader_of(const struct held *h)
{
	struct outlet *o = outlets;

	while (o && (o->held != h || !o->id))
		o = o->next;
	return o;
}

void outlets_end(const struct held *h)
{
	struct outlet *o;
	struct region *r;

	pthread_mutex_lock(&lock);
	while ((o = reader_of(h)))
		cut(o);
	/* Who enters in this instant looks at the seed once more, and leaves. */
	while ((r = first_of(h))) {
		if (r->users)
			pthread_cond_wait(&changed, &lock);
		else
			region_free(r);
	}
	pthread_mutex_unlock(&lock);
}

void outlets_clean(void)
{
	pthread_mutex_lock(&lock);
	drop_idle(KEEP_MS);
	pthread_mutex_unlock(&lock);
}
