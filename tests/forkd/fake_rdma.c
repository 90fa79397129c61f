/* SPDX-License-Identifier: Apache-2.0 */
/*
 * librdmacm and libibverbs for hosts without an adapter, as far as lean-forkd uses them: a connection
 * is a Unix socket in the directory $FAKE_RDMA, and a thread of the process that is read from takes
 * the adapter's part. As an adapter does, it lets somebody read what is registered in the domain of
 * its queue pair, for reading, within its bounds, and ends the connection otherwise. (It would also
 * let somebody write, where that is what was registered, but nothing is written.) While
 * $FAKE_RDMA/stall is there, it answers nobody; with $FAKE_RDMA/full, nothing can be registered for
 * others; with $FAKE_RDMA/nowhere no host is reached by an adapter. $FAKE_RDMA/interrupt.PID is taken
 * away when that process waits for an event: a signal has come.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#undef ibv_get_device_list
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define PRIVATE 56
#define DONE    256

struct channel {
	struct rdma_event_channel c;
	int in;
};
struct id {
	struct rdma_cm_id id;
	struct sockaddr_storage address;
	uint16_t port;
	int sock;
	pthread_t thread;
	bool runs;
	atomic_bool ends;
};
struct queue { /* of completions */
	struct ibv_cq cq;
	pthread_mutex_t lock;
	struct ibv_wc v[DONE];
	unsigned n;
	bool armed;
};
struct pair {
	struct ibv_qp qp;
	struct id *id;
};
struct region {
	struct ibv_mr mr;
	uint64_t iova;
	int access;
	struct region *next;
};
struct question {
	uint64_t at, to;
	uint32_t key, length;
	uint64_t id;
	uint32_t write, zero;
};
struct answer {
	uint64_t id, to;
	uint32_t length, bad;
};

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
static int notify_cq(struct ibv_cq *cq, int solicited);
static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);

static struct ibv_device device = {
	.node_type = IBV_NODE_CA, .transport_type = IBV_TRANSPORT_IB, .name = "fake"};
static struct ibv_context context = {
	.device = &device,
	.ops = {.poll_cq = poll_cq, .req_notify_cq = notify_cq, .post_send = post_send}};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of regions; held while one is read */
static struct region *regions;
static uint32_t keys = 0x1000;

static bool there(const char *name)
{
	char path[200];

	snprintf(path, sizeof(path), "%s/%s", getenv("FAKE_RDMA"), name);
	return access(path, F_OK) == 0;
}

static bool is_interrupted(void)
{
	char path[200];

	snprintf(path, sizeof(path), "%s/interrupt.%d", getenv("FAKE_RDMA"), getpid());
	return unlink(path) == 0;
}

static int whole(int fd, void *at, size_t n, bool out)
{
	for (size_t done = 0; done < n;) {
		ssize_t r = out ? send(fd, (char *)at + done, n - done, MSG_NOSIGNAL)
				: recv(fd, (char *)at + done, n - done, 0);
		if (r <= 0)
			return -1;
		done += (size_t)r;
	}
	return 0;
}

/* ---- events ------------------------------------------------------------------------------- */

static void tell_status(struct rdma_event_channel *c, struct rdma_cm_id *id,
			enum rdma_cm_event_type type, int status, const void *private)
{
	struct rdma_cm_event *e = calloc(1, sizeof(*e) + PRIVATE);

	if (!e)
		return;
	e->id = id;
	e->event = type;
	e->status = status;
	if (private) {
		e->param.conn.private_data = memcpy(e + 1, private, PRIVATE);
		e->param.conn.private_data_len = PRIVATE;
		e->param.conn.responder_resources = 16;
	}
	(void)!write(((struct channel *)c)->in, &e, sizeof(e));
}

static void tell(struct rdma_event_channel *c, struct rdma_cm_id *id, enum rdma_cm_event_type type,
		 const void *private)
{
	tell_status(c, id, type, 0, private);
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct channel *c = calloc(1, sizeof(*c));
	int p[2];

	if (!c || pipe2(p, 02000000) < 0) {
		free(c);
		return NULL;
	}
	c->c.fd = p[0];
	c->in = p[1];
	return &c->c;
}

void rdma_destroy_event_channel(struct rdma_event_channel *c)
{
	close(c->fd);
	close(((struct channel *)c)->in);
	free(c);
}

int rdma_get_cm_event(struct rdma_event_channel *c, struct rdma_cm_event **e)
{
	if (is_interrupted()) {
		errno = EINTR;
		return -1;
	}
	return read(c->fd, e, sizeof(*e)) == (ssize_t)sizeof(*e) ? 0 : -1;
}

int rdma_ack_cm_event(struct rdma_cm_event *e)
{
	free(e);
	return 0;
}

/* ---- both ends ---------------------------------------------------------------------------- */

static struct region *find(const struct question *q, const struct ibv_pd *pd)
{
	const int wanted = q->write ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_READ;
	struct region *r = regions;

	while (r && r->mr.rkey != q->key)
		r = r->next;
	return r && r->mr.pd == pd && (r->access & wanted) && q->at >= r->iova &&
			       q->length <= r->mr.length &&
			       q->at - r->iova <= r->mr.length - q->length
		       ? r
		       : NULL;
}

/* The adapter of who is read from. */
static void *serve(void *arg)
{
	struct id *i = arg;
	struct question q;

	while (whole(i->sock, &q, sizeof(q), false) == 0) {
		while (there("stall") && !i->ends)
			usleep(20000);
		pthread_mutex_lock(&lock);
		struct region *r = find(&q, i->id.qp->pd);
		struct answer a = {q.id, q.to, r && !q.write ? q.length : 0, !r};
		int e = whole(i->sock, &a, sizeof(a), true);
		if (r && !q.write && e == 0)
			e = whole(i->sock, (char *)r->mr.addr + (q.at - r->iova), q.length, true);
		pthread_mutex_unlock(&lock);
		if (!r || e < 0)
			break;
	}
	shutdown(i->sock, SHUT_RDWR);
	tell(i->id.channel, &i->id, RDMA_CM_EVENT_DISCONNECTED, NULL);
	return NULL;
}

static void complete(struct queue *q, uint64_t id, bool bad)
{
	const uint64_t one = 1;

	pthread_mutex_lock(&q->lock);
	if (q->n < DONE)
		q->v[q->n++] = (struct ibv_wc){
			.wr_id = id, .status = bad ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS};
	if (q->armed)
		(void)!write(q->cq.channel->fd, &one, sizeof(one));
	q->armed = false;
	pthread_mutex_unlock(&q->lock);
}

/* The adapter of who reads. */
static void *receive(void *arg)
{
	struct id *i = arg;
	struct answer a;
	char word;
	bool in = whole(i->sock, &word, 1, false) == 0 && word == 'A';

	tell(i->id.channel, &i->id, in ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_REJECTED, NULL);
	if (!in)
		return NULL;
	while (whole(i->sock, &a, sizeof(a), false) == 0) {
		if (whole(i->sock, (void *)(uintptr_t)a.to, a.length, false) < 0)
			break;
		complete((struct queue *)i->id.qp->send_cq, a.id, a.bad);
	}
	tell(i->id.channel, &i->id, RDMA_CM_EVENT_DISCONNECTED, NULL);
	return NULL;
}

static struct sockaddr_un place(const struct sockaddr_storage *sa, uint16_t port)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	char text[64];

	inet_ntop(AF_INET, &((const struct sockaddr_in *)sa)->sin_addr, text, sizeof(text));
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/%s.%u", getenv("FAKE_RDMA"), text, port);
	return un;
}

static void *listens(void *arg)
{
	struct id *l = arg;
	char private[PRIVATE];

	for (;;) {
		int s = accept4(l->sock, NULL, NULL, SOCK_CLOEXEC);
		if (s < 0)
			return NULL;
		struct id *i = calloc(1, sizeof(*i));
		if (!i || whole(s, private, PRIVATE, false) < 0) {
			free(i);
			close(s);
			continue;
		}
		i->sock = s;
		i->id.channel = l->id.channel;
		i->id.verbs = &context;
		tell(l->id.channel, &i->id, RDMA_CM_EVENT_CONNECT_REQUEST, private);
	}
}

static int begin(struct id *i, void *(*run)(void *))
{
	const int code = pthread_create(&i->thread, NULL, run, i);

	i->runs = code == 0;
	errno = code;
	return i->runs ? 0 : -1;
}

int rdma_create_id(struct rdma_event_channel *c, struct rdma_cm_id **id, void *arg,
		   enum rdma_port_space ps)
{
	struct id *i = calloc(1, sizeof(*i));

	if (!i)
		return -1;
	i->sock = -1;
	i->id.channel = c;
	i->id.context = arg;
	i->id.ps = ps;
	*id = &i->id;
	return 0;
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	return shutdown(((struct id *)id)->sock, SHUT_RDWR);
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	struct id *i = (struct id *)id;

	i->ends = true;
	shutdown(i->sock, SHUT_RDWR);
	if (i->runs)
		pthread_join(i->thread, NULL);
	i->runs = false;
	free(id->qp);
	id->qp = NULL;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	struct id *i = (struct id *)id;

	if (id->qp)
		rdma_destroy_qp(id);
	if (i->runs) { /* it listens */
		shutdown(i->sock, SHUT_RDWR);
		pthread_join(i->thread, NULL);
	}
	if (i->sock >= 0)
		close(i->sock);
	free(i); /* an event of it that is under way has its address, and nothing else */
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *sa)
{
	static uint16_t next;
	struct id *i = (struct id *)id;

	if (sa->sa_family != AF_INET) {
		errno = ENODEV;
		return -1;
	}
	memcpy(&i->address, sa, sizeof(struct sockaddr_in));
	i->port = (uint16_t)(1024 + getpid() % 60000 + next++);
	id->verbs = &context;
	return 0;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	struct id *i = (struct id *)id;
	struct sockaddr_un un = place(&i->address, i->port);

	unlink(un.sun_path);
	i->sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (i->sock < 0 || bind(i->sock, (struct sockaddr *)&un, sizeof(un)) < 0 ||
	    listen(i->sock, backlog) < 0)
		return -1;
	return begin(i, listens);
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return htons(((struct id *)id)->port);
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to, int ms)
{
	struct id *i = (struct id *)id;

	(void)from;
	(void)ms;
	memcpy(&i->address, to, sizeof(struct sockaddr_in));
	i->port = ntohs(((struct sockaddr_in *)to)->sin_port);
	id->verbs = &context;
	if (there("nowhere"))
		tell_status(id->channel, id, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV, NULL);
	else
		tell(id->channel, id, RDMA_CM_EVENT_ADDR_RESOLVED, NULL);
	return 0;
}

int rdma_resolve_route(struct rdma_cm_id *id, int ms)
{
	(void)ms;
	tell(id->channel, id, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL);
	return 0;
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct pair *p = calloc(1, sizeof(*p));

	if (!p)
		return -1;
	p->id = (struct id *)id;
	p->qp = (struct ibv_qp){
		.context = &context, .pd = pd, .send_cq = attr->send_cq, .recv_cq = attr->recv_cq};
	id->qp = &p->qp;
	return 0;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct id *i = (struct id *)id;
	struct sockaddr_un un = place(&i->address, i->port);
	char private[PRIVATE] = {0};

	memcpy(private, param->private_data, param->private_data_len);
	i->sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (i->sock < 0 || connect(i->sock, (struct sockaddr *)&un, sizeof(un)) < 0 ||
	    whole(i->sock, private, PRIVATE, true) < 0)
		return -1;
	return begin(i, receive);
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct id *i = (struct id *)id;
	char word = 'A';

	(void)param;
	if (begin(i, serve) < 0)
		return -1;
	whole(i->sock, &word, 1, true);
	tell(id->channel, id, RDMA_CM_EVENT_ESTABLISHED, NULL);
	return 0;
}

int rdma_reject(struct rdma_cm_id *id, const void *private, uint8_t n)
{
	char word = 'R';

	(void)private;
	(void)n;
	return whole(((struct id *)id)->sock, &word, 1, true);
}

/* ---- verbs -------------------------------------------------------------------------------- */

int ibv_fork_init(void)
{
	return 0;
}

struct ibv_device **ibv_get_device_list(int *n)
{
	struct ibv_device **v = calloc(2, sizeof(*v));

	*n = getenv("FAKE_RDMA") ? 1 : 0;
	if (v)
		v[0] = *n ? &device : NULL;
	return v;
}

void ibv_free_device_list(struct ibv_device **v)
{
	free(v);
}

int ibv_query_device(struct ibv_context *c, struct ibv_device_attr *attr)
{
	(void)c;
	*attr = (struct ibv_device_attr){.max_qp_rd_atom = 16, .max_qp_init_rd_atom = 16};
	return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *c)
{
	struct ibv_pd *pd = calloc(1, sizeof(*pd));

	if (pd)
		pd->context = c;
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	free(pd);
	return 0;
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *at, size_t length, uint64_t iova,
			       int access)
{
	struct region *r = calloc(1, sizeof(*r));

	if (!r || ((access & IBV_ACCESS_REMOTE_READ) && there("full"))) {
		free(r);
		errno = ENOMEM;
		return NULL;
	}
	pthread_mutex_lock(&lock);
	*r = (struct region){.iova = iova, .access = access, .next = regions};
	r->mr = (struct ibv_mr){
		.context = pd->context, .pd = pd, .addr = at, .length = length, .rkey = ++keys};
	regions = r;
	pthread_mutex_unlock(&lock);
	return &r->mr;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *at, size_t length, int access)
{
	return ibv_reg_mr_iova(pd, at, length, (uintptr_t)at, access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	pthread_mutex_lock(&lock);
	struct region **at = &regions;
	while (&(*at)->mr != mr)
		at = &(*at)->next;
	*at = (*at)->next;
	pthread_mutex_unlock(&lock);
	free(mr);
	return 0;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *c)
{
	struct ibv_comp_channel *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->context = c;
	r->fd = eventfd(0, EFD_CLOEXEC);
	if (r->fd >= 0)
		return r;
	free(r);
	return NULL;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *c)
{
	close(c->fd);
	free(c);
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *c, int n, void *arg, struct ibv_comp_channel *told,
			     int vector)
{
	struct queue *q = calloc(1, sizeof(*q));

	(void)n;
	(void)vector;
	if (!q)
		return NULL;
	pthread_mutex_init(&q->lock, NULL);
	q->cq = (struct ibv_cq){.context = c, .channel = told, .cq_context = arg};
	return &q->cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	free(cq);
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *c, struct ibv_cq **cq, void **arg)
{
	uint64_t n;

	*cq = NULL;
	*arg = NULL;
	return read(c->fd, &n, sizeof(n)) == (ssize_t)sizeof(n) ? 0 : -1;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned n)
{
	(void)cq;
	(void)n;
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct queue *q = (struct queue *)cq;
	int k = 0;

	pthread_mutex_lock(&q->lock);
	for (; k < n && (unsigned)k < q->n; k++)
		wc[k] = q->v[k];
	q->n -= (unsigned)k;
	memmove(q->v, q->v + k, q->n * sizeof(*q->v));
	pthread_mutex_unlock(&q->lock);
	return k;
}

static int notify_cq(struct ibv_cq *cq, int solicited)
{
	struct queue *q = (struct queue *)cq;

	(void)solicited;
	pthread_mutex_lock(&q->lock);
	q->armed = true;
	pthread_mutex_unlock(&q->lock);
	return 0;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	for (; wr; wr = wr->next) {
		struct question q = {.at = wr->wr.rdma.remote_addr,
				     .to = wr->sg_list->addr,
				     .key = wr->wr.rdma.rkey,
				     .length = wr->sg_list->length,
				     .id = wr->wr_id,
				     .write = wr->opcode == IBV_WR_RDMA_WRITE};
		if ((wr->opcode != IBV_WR_RDMA_READ && !q.write) ||
		    whole(((struct pair *)qp)->id->sock, &q, sizeof(q), true) < 0) {
			*bad = wr;
			return EIO;
		}
	}
	return 0;
}
