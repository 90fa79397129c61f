/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: see direct.h. */
#define LR_ROOM "forkd"
#include "src/forkd/direct.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "src/base/clock.h"
#include "src/base/str.h"
#include "src/forkd/forkd.h"
#include "src/forkd/verbs.h"

#define STEP_MS  2000  /* for each step of a connection */
#define ENTER_MS 20000 /* while the other host pins the pages */
#define READ_MS  3000  /* then it is asked by TCP */
#define PING_MS  1000  /* at most; a shorter lease asks for more */
#define DEPTH    16    /* reads under way */

struct direct {
	const struct verbs *verbs;
	struct link *control;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *told;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *buffer; /* LR_WIRE_CHUNK */
	uint64_t base, pages;
	uint32_t key;
	int64_t pinged, every; /* ms */
	pthread_mutex_t lock;
	bool dead;
};

int direct_check(struct lr_err *err)
{
	return verbs_get(err) ? 0 : -ENOTSUP;
}

/* ---- to connect --------------------------------------------------------------------------- */

#define ADAPTER "find an adapter for the address by which the seed's host is reached"
#define ROUTE   "find a route to the seed's host"
#define CONNECT "connect to the seed's host"

/* what: the step, for the error. */
static int wait_event(struct direct *d, enum rdma_cm_event_type want, const char *what,
		      struct lr_err *err)
{
	struct pollfd p = {.fd = d->channel->fd, .events = POLLIN};
	const int64_t until = lr_now_ms() + STEP_MS;
	struct rdma_cm_event *e;

	for (;;) {
		int64_t left = until - lr_now_ms();
		if (left <= 0)
			return lr_fail(err, ETIMEDOUT, "no RDMA: %s", what);
		if (poll(&p, 1, (int)left) == 1 && d->verbs->rdma_get_cm_event(d->channel, &e) == 0)
			break;
	}
	const enum rdma_cm_event_type got = e->event;
	const int status = e->status; /* of a refusal it is a number of InfiniBand's */
	d->verbs->rdma_ack_cm_event(e);
	if (got == want)
		return 0;
	return lr_fail(err, status < 0 ? -status : ECONNREFUSED, "no RDMA: %s", what);
}

static int find_way(struct direct *d, struct sockaddr *to, struct lr_err *err)
{
	const struct verbs *v = d->verbs;

	d->channel = v->rdma_create_event_channel();
	if (!d->channel)
		return lr_fail(err, errno, "no RDMA: make an event channel");
	fcntl(d->channel->fd, F_SETFL, fcntl(d->channel->fd, F_GETFL) | O_NONBLOCK);
	if (v->rdma_create_id(d->channel, &d->id, NULL, RDMA_PS_TCP) < 0)
		return lr_fail(err, errno, "no RDMA: begin a connection");
	if (v->rdma_resolve_addr(d->id, NULL, to, STEP_MS) < 0)
		return lr_fail(err, errno, "no RDMA: " ADAPTER);
	int r = wait_event(d, RDMA_CM_EVENT_ADDR_RESOLVED, ADAPTER, err);
	if (r == 0 && !verbs_are_right(d->id))
		r = lr_refuse(err, ENOTSUP, "no RDMA: the adapter is neither InfiniBand nor RoCE");
	if (r == 0 && v->rdma_resolve_route(d->id, STEP_MS) < 0)
		r = lr_fail(err, errno, "no RDMA: " ROUTE);
	return r < 0 ? r : wait_event(d, RDMA_CM_EVENT_ROUTE_RESOLVED, ROUTE, err);
}

/* The keeper, which is a fork, gets no copy: what the adapter writes has to come to us. */
static int make_buffer(struct direct *d, struct lr_err *err)
{
	d->buffer = mmap(NULL, LR_WIRE_CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	if (d->buffer == MAP_FAILED) {
		d->buffer = NULL;
		return lr_fail(err, ENOMEM, "no RDMA: memory to read into");
	}
	madvise(d->buffer, LR_WIRE_CHUNK, MADV_DONTFORK);
	d->mr = d->verbs->ibv_reg_mr(d->pd, d->buffer, LR_WIRE_CHUNK, IBV_ACCESS_LOCAL_WRITE);
	return d->mr ? 0 : lr_fail(err, errno, "no RDMA: pin memory to read into");
}

static int make_queues(struct direct *d, struct lr_err *err)
{
	const struct verbs *v = d->verbs;
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
					.sq_sig_all = 1,
					.cap = {.max_send_wr = LR_WIRE_RANGES,
						.max_recv_wr = 1,
						.max_send_sge = 1,
						.max_recv_sge = 1}};

	d->pd = v->ibv_alloc_pd(d->id->verbs);
	d->told = d->pd ? v->ibv_create_comp_channel(d->id->verbs) : NULL;
	d->cq = d->told ? v->ibv_create_cq(d->id->verbs, LR_WIRE_RANGES + 1, NULL, d->told, 0)
			: NULL;
	if (!d->cq)
		return lr_fail(err, errno, "no RDMA: make queues");
	fcntl(d->told->fd, F_SETFL, fcntl(d->told->fd, F_GETFL) | O_NONBLOCK);
	int r = make_buffer(d, err);
	attr.send_cq = d->cq;
	attr.recv_cq = d->cq;
	if (r == 0 && v->rdma_create_qp(d->id, d->pd, &attr) < 0)
		r = lr_fail(err, errno, "no RDMA: make a queue pair");
	return r;
}

static int shake_hands(struct direct *d, const uint8_t token[LR_WIRE_PROOF], struct lr_err *err)
{
	uint8_t shown[LR_WIRE_TOKEN_SHOWN];
	struct ibv_device_attr device;
	struct rdma_conn_param param = {.private_data = shown,
					.private_data_len = sizeof(shown),
					.initiator_depth = DEPTH,
					.retry_count = 7,
					.rnr_retry_count = 7};

	if (d->verbs->ibv_query_device(d->id->verbs, &device) == 0 &&
	    device.max_qp_init_rd_atom < DEPTH)
		param.initiator_depth = (uint8_t)device.max_qp_init_rd_atom;
	lr_wire_put_token(token, shown);
	if (d->verbs->rdma_connect(d->id, &param) < 0)
		return lr_fail(err, errno, "no RDMA: " CONNECT);
	return wait_event(d, RDMA_CM_EVENT_ESTABLISHED, CONNECT, err);
}

/* ---- the control connection --------------------------------------------------------------- */

static int question(struct direct *d, enum lr_wire_type type, enum lr_wire_type want, int64_t ms,
		    struct lr_wire_msg *got, struct lr_err *err)
{
	struct lr_wire_msg m = {.type = type};
	uint8_t body[LR_WIRE_HEAD + LR_WIRE_TEXT + 4];

	return link_ask(d->control, &m, want, got, body, sizeof(body), ms, err);
}

static int not_offered(struct lr_err *err)
{
	return lr_refuse(err, ENOTSUP, "no RDMA: the seed's host does not offer it, or not now");
}

/* Where it is: at the address that we have reached by TCP. */
static int ask_where(struct direct *d, struct sockaddr_storage *to, uint8_t token[LR_WIRE_PROOF],
		     struct lr_err *err)
{
	socklen_t size = sizeof(*to);
	struct lr_wire_msg got;
	int r = question(d, LR_WIRE_RDMA, LR_WIRE_ENTRY, STEP_MS, &got, err);

	if (r < 0)
		return r;
	if (!got.count || got.count > UINT16_MAX)
		return not_offered(err);
	if (getpeername(link_fd(d->control), (struct sockaddr *)to, &size) < 0)
		return lr_fail(err, errno, "no RDMA: where the host is");
	if (to->ss_family == AF_INET6)
		((struct sockaddr_in6 *)to)->sin6_port = htons((uint16_t)got.count);
	else
		((struct sockaddr_in *)to)->sin_port = htons((uint16_t)got.count);
	memcpy(token, got.proof, LR_WIRE_PROOF);
	return 0;
}

static int ask_region(struct direct *d, struct lr_err *err)
{
	struct lr_wire_msg got;
	int r = question(d, LR_WIRE_ENTERED, LR_WIRE_REGION, ENTER_MS, &got, err);

	if (r < 0)
		return r;
	if (!got.length)
		return not_offered(err);
	if (got.length != d->pages || got.at > UINT64_MAX - got.length)
		return lr_refuse(err, EPROTO, "no RDMA: the host has another file of pages");
	d->base = got.at;
	d->key = got.key;
	return 0;
}

static int ping(struct direct *d, struct lr_err *err)
{
	struct lr_wire_msg got;
	int r = question(d, LR_WIRE_PING, LR_WIRE_PONG, READ_MS, &got, err);

	if (r < 0)
		return r;
	d->pinged = lr_now_ms();
	d->every = got.lease / 3 < PING_MS ? (int64_t)(got.lease / 3) : PING_MS;
	return 0;
}

int direct_connect(struct link *control, uint64_t pages, struct direct **ret, struct lr_err *err)
{
	struct direct *d = calloc(1, sizeof(*d));
	struct sockaddr_storage to = {0};
	uint8_t token[LR_WIRE_PROOF];

	if (!d) {
		link_close(control);
		return lr_fail(err, ENOMEM, "no RDMA: " CONNECT);
	}
	d->control = control;
	d->pages = pages;
	pthread_mutex_init(&d->lock, NULL);
	d->verbs = verbs_get(err);
	int r = d->verbs ? ask_where(d, &to, token, err) : -ENOTSUP;
	if (r == 0)
		r = find_way(d, (struct sockaddr *)&to, err);
	if (r == 0)
		r = make_queues(d, err);
	if (r == 0)
		r = shake_hands(d, token, err);
	if (r == 0)
		r = ask_region(d, err);
	if (r == 0)
		r = ping(d, err);
	link_forget(token, sizeof(token));
	if (r < 0) {
		direct_close(d);
		return r;
	}
	forkd_counts.rdma_connects++;
	*ret = d;
	return 0;
}

/* The queue pair first: after that no adapter writes into the buffer any more. */
void direct_close(struct direct *d)
{
	if (!d)
		return;
	const struct verbs *v = d->verbs;
	if (d->id && d->id->qp) {
		v->rdma_disconnect(d->id);
		v->rdma_destroy_qp(d->id);
	}
	if (d->mr)
		v->ibv_dereg_mr(d->mr);
	if (d->buffer)
		munmap(d->buffer, LR_WIRE_CHUNK);
	if (d->cq)
		v->ibv_destroy_cq(d->cq);
	if (d->told)
		v->ibv_destroy_comp_channel(d->told);
	if (d->pd)
		v->ibv_dealloc_pd(d->pd);
	if (d->id)
		v->rdma_destroy_id(d->id);
	if (d->channel)
		v->rdma_destroy_event_channel(d->channel);
	link_close(d->control);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

/* ---- to read ------------------------------------------------------------------------------ */

static int post(struct direct *d, const struct lr_wire_range *v, size_t n)
{
	struct ibv_send_wr wr[LR_WIRE_RANGES], *bad;
	struct ibv_sge to[LR_WIRE_RANGES];
	uint64_t at = 0;

	for (size_t i = 0; i < n; i++) {
		to[i] = (struct ibv_sge){.addr = (uint64_t)(uintptr_t)d->buffer + at,
					 .length = v[i].pages * LR_WIRE_PAGE,
					 .lkey = d->mr->lkey};
		wr[i] = (struct ibv_send_wr){.wr_id = i,
					     .next = i + 1 < n ? &wr[i + 1] : NULL,
					     .sg_list = &to[i],
					     .num_sge = 1,
					     .opcode = IBV_WR_RDMA_READ};
		wr[i].wr.rdma.remote_addr = d->base + v[i].at;
		wr[i].wr.rdma.rkey = d->key;
		at += to[i].length;
	}
	return ibv_post_send(d->id->qp, wr, &bad);
}

/* How many of them are done; -EIO: one of them failed. */
static int collect(struct direct *d)
{
	struct ibv_wc done[DEPTH];
	int n = ibv_poll_cq(d->cq, DEPTH, done);

	for (int i = 0; i < n; i++)
		if (done[i].status != IBV_WC_SUCCESS)
			return -EIO;
	return n < 0 ? -EIO : n;
}

/* An event of rdma_cm is the end. */
static int wait_told(struct direct *d, int64_t ms)
{
	struct pollfd p[] = {{.fd = d->told->fd, .events = POLLIN},
			     {.fd = d->channel->fd, .events = POLLIN}};
	struct ibv_cq *cq;
	void *context;

	if (poll(p, 2, (int)ms) < 0 && errno != EINTR)
		return -errno;
	if (p[0].revents && d->verbs->ibv_get_cq_event(d->told, &cq, &context) == 0)
		d->verbs->ibv_ack_cq_events(cq, 1);
	return p[1].revents ? -EPIPE : 0;
}

static int wait_all(struct direct *d, size_t n)
{
	const int64_t until = lr_now_ms() + READ_MS;

	for (size_t have = 0; have < n;) {
		int r = collect(d);
		/* What came between the two would be told to nobody. */
		if (r == 0 && ibv_req_notify_cq(d->cq, 0) != 0)
			r = -EIO;
		if (r == 0)
			r = collect(d);
		if (r > 0) {
			have += (size_t)r;
			continue;
		}
		const int64_t left = until - lr_now_ms();
		if (r == 0)
			r = left > 0 ? wait_told(d, left) : -ETIMEDOUT;
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_all(struct direct *d, const struct lr_wire_range *v, size_t n, uint8_t *to,
		    struct lr_err *err)
{
	struct pollfd p = {.fd = d->channel->fd, .events = POLLIN};
	size_t size = 0;
	int r = 0;

	if (poll(&p, 1, 0) != 0)
		return lr_refuse(err, EPIPE, "the connection by RDMA has ended");
	if (lr_now_ms() - d->pinged >= d->every)
		r = ping(d, err);
	if (r < 0)
		return r;
	r = post(d, v, n) == 0 ? wait_all(d, n) : -EIO;
	if (r < 0)
		return lr_fail(err, -r, "read by RDMA");
	for (size_t i = 0; i < n; i++)
		size += (size_t)v[i].pages * LR_WIRE_PAGE;
	memcpy(to, d->buffer, size);
	forkd_counts.rdma_bytes += size;
	forkd_counts.rdma_reads++;
	return 0;
}

int direct_read(struct direct *d, const struct lr_wire_range *v, size_t n, uint8_t *to,
		struct lr_err *err)
{
	pthread_mutex_lock(&d->lock);
	int r = d->dead ? lr_refuse(err, EPIPE, "the connection by RDMA has ended")
			: read_all(d, v, n, to, err);
	if (r < 0 && !d->dead) {
		d->dead = true;
		forkd_counts.rdma_failures++;
	}
	pthread_mutex_unlock(&d->lock);
	return r;
}
