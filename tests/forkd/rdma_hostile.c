/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rdma-hostile TICKET OTHER COMMAND: what a peer may try that has the tickets of two seeds of one host
 * and reads by RDMA. COMMAND revokes the first. Tickets as "file:PATH". TAP.
 */
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/forkctl/forkctl.h"
#include "src/forkd/link.h"
#include "src/forkd/verbs.h"

#define MS 15000

struct way { /* a connection by RDMA */
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
};

static const struct verbs *v;
static uint8_t memory[2 * LR_WIRE_PAGE] __attribute__((aligned(4096)));
static int count, bad;

static void check(const char *what, bool right)
{
	bad += !right;
	printf("%sok %d - hostile reader: %s\n", right ? "" : "not ", ++count, what);
	fflush(stdout);
}

static void need(bool right, const char *what)
{
	if (right)
		return;
	printf("Bail out! %s\n", what);
	exit(1);
}

/* The next event of the connection; -1: none. */
static int event_of(const struct way *w)
{
	struct pollfd p = {.fd = w->channel->fd, .events = POLLIN};
	struct rdma_cm_event *e;

	if (poll(&p, 1, MS) != 1 || v->rdma_get_cm_event(w->channel, &e) < 0)
		return -1;
	const int type = (int)e->event;
	v->rdma_ack_cm_event(e);
	return type;
}

/* Whether it is let in. n: how much of what it shows. */
static bool enter(struct link *control, uint32_t port, const uint8_t token[LR_WIRE_PROOF],
		  uint8_t n, struct way *w)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	uint8_t shown[LR_WIRE_TOKEN_SHOWN];
	struct rdma_conn_param param = {.private_data = shown,
					.private_data_len = n,
					.initiator_depth = 1,
					.retry_count = 7,
					.rnr_retry_count = 7};
	struct sockaddr_in to;
	socklen_t size = sizeof(to);

	*w = (struct way){0};
	lr_wire_put_token(token, shown);
	need(getpeername(link_fd(control), (struct sockaddr *)&to, &size) == 0, "no peer");
	to.sin_port = htons((uint16_t)port);
	w->channel = v->rdma_create_event_channel();
	need(w->channel && v->rdma_create_id(w->channel, &w->id, NULL, RDMA_PS_TCP) == 0, "no id");
	need(v->rdma_resolve_addr(w->id, NULL, (struct sockaddr *)&to, 2000) == 0 &&
		     event_of(w) == RDMA_CM_EVENT_ADDR_RESOLVED &&
		     v->rdma_resolve_route(w->id, 2000) == 0 &&
		     event_of(w) == RDMA_CM_EVENT_ROUTE_RESOLVED,
	     "no way");
	w->pd = v->ibv_alloc_pd(w->id->verbs);
	w->cq = v->ibv_create_cq(w->id->verbs, 8, NULL, NULL, 0);
	w->mr = v->ibv_reg_mr(w->pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	attr.send_cq = w->cq;
	attr.recv_cq = w->cq;
	need(w->pd && w->cq && w->mr && v->rdma_create_qp(w->id, w->pd, &attr) == 0, "no queues");
	return v->rdma_connect(w->id, &param) == 0 && event_of(w) == RDMA_CM_EVENT_ESTABLISHED;
}

static void leave(struct way *w)
{
	v->rdma_disconnect(w->id);
	v->rdma_destroy_qp(w->id);
	v->ibv_dereg_mr(w->mr);
	v->ibv_destroy_cq(w->cq);
	v->ibv_dealloc_pd(w->pd);
	v->rdma_destroy_id(w->id);
	v->rdma_destroy_event_channel(w->channel);
}

/* Whether what the adapter is asked for is done. */
static bool does(struct way *w, enum ibv_wr_opcode what, uint32_t key, uint64_t at)
{
	struct ibv_sge sge = {(uint64_t)(uintptr_t)memory, LR_WIRE_PAGE, w->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = what}, *wrong;
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = at;
	wr.wr.rdma.rkey = key;
	if (ibv_post_send(w->id->qp, &wr, &wrong) != 0)
		return false;
	for (int i = 0; i < MS; i++) {
		int n = ibv_poll_cq(w->cq, 1, &wc);
		if (n)
			return n == 1 && wc.status == IBV_WC_SUCCESS;
		usleep(1000);
	}
	return false;
}

static struct link *let_in(const char *file)
{
	char text[LR_TICKET_TEXT];
	struct lr_err err = {0};
	struct lr_wire_msg m;
	struct lr_ticket t;
	struct link *l;
	uint32_t code;

	need(lr_forkctl_ticket(file, text, &err) == 0 &&
		     lr_ticket_decode(text, strlen(text), &t) == 0,
	     "no ticket");
	need(link_connect(&t, MS, &l, &m, &code, &err) == 0, "not let in");
	return l;
}

static struct lr_wire_msg ask(struct link *l, enum lr_wire_type type, enum lr_wire_type want)
{
	struct lr_wire_msg m = {.type = type}, got = {0};
	static uint8_t body[LR_WIRE_CHUNK];
	struct lr_err err = {0};

	m.n = 1;
	m.ranges[0] = (struct lr_wire_range){LR_WIRE_PAGE, 1};
	if (link_ask(l, &m, want, &got, body, sizeof(body), MS, &err) < 0)
		memset(&got, 0, sizeof(got));
	return got;
}

/* A connection that can read, as it should be. */
static struct lr_wire_msg be_reader(struct link *l, struct way *w)
{
	struct lr_wire_msg entry = ask(l, LR_WIRE_RDMA, LR_WIRE_ENTRY);

	need(entry.count != 0, "the host offers no RDMA");
	need(enter(l, entry.count, entry.proof, LR_WIRE_TOKEN_SHOWN, w), "not let in by RDMA");
	return ask(l, LR_WIRE_ENTERED, LR_WIRE_REGION);
}

static void tokens(const char *ticket)
{
	struct link *l = let_in(ticket);
	struct lr_wire_msg first, entry;
	uint8_t token[LR_WIRE_PROOF] = {0};
	struct way w;

	first = ask(l, LR_WIRE_RDMA, LR_WIRE_ENTRY);
	need(first.count != 0, "the host offers no RDMA");
	check("no key without a connection", ask(l, LR_WIRE_ENTERED, LR_WIRE_REGION).length == 0);
	check("a token of zeros", !enter(l, first.count, token, LR_WIRE_TOKEN_SHOWN, &w));
	leave(&w);
	check("half a token", !enter(l, first.count, first.proof, LR_WIRE_TOKEN_SHOWN / 2, &w));
	leave(&w);
	entry = ask(l, LR_WIRE_RDMA, LR_WIRE_ENTRY);
	check("a token when there is a newer one",
	      !enter(l, first.count, first.proof, LR_WIRE_TOKEN_SHOWN, &w));
	leave(&w);
	check("a token lets in", enter(l, entry.count, entry.proof, LR_WIRE_TOKEN_SHOWN, &w));
	struct way again;
	check("and lets nobody in a second time",
	      !enter(l, entry.count, entry.proof, LR_WIRE_TOKEN_SHOWN, &again));
	leave(&again);
	leave(&w);
	link_close(l);
}

static void keys(const char *ticket, const char *other)
{
	struct link *l = let_in(ticket), *o = let_in(other);
	struct way w, x;
	struct lr_wire_msg mine = be_reader(l, &w), theirs = be_reader(o, &x), page;

	check("a key reads",
	      mine.length && does(&w, IBV_WR_RDMA_READ, mine.key, mine.at + LR_WIRE_PAGE));
	page = ask(l, LR_WIRE_READ, LR_WIRE_DATA);
	check("what READ has",
	      page.data.n == LR_WIRE_PAGE && memcmp(page.data.at, memory, LR_WIRE_PAGE) == 0);
	check("another seed's key reads in the other seed's connection",
	      does(&x, IBV_WR_RDMA_READ, theirs.key, theirs.at));
	check("and not in ours", !does(&w, IBV_WR_RDMA_READ, theirs.key, theirs.at));
	leave(&w);
	mine = be_reader(l, &w);
	check("nothing behind the end",
	      mine.length && !does(&w, IBV_WR_RDMA_READ, mine.key,
				   mine.at + mine.length - LR_WIRE_PAGE / 2));
	leave(&w);
	mine = be_reader(l, &w);
	check("nothing is written",
	      mine.length && !does(&w, IBV_WR_RDMA_WRITE, mine.key, mine.at + LR_WIRE_PAGE));
	leave(&w);
	leave(&x);
	link_close(l);
	link_close(o);
}

static void ends(const char *ticket, const char *command)
{
	struct link *l = let_in(ticket);
	struct way w;
	struct lr_wire_msg mine = be_reader(l, &w);

	need(does(&w, IBV_WR_RDMA_READ, mine.key, mine.at), "a key does not read");
	link_close(l);
	sleep(1);
	check("without the control connection nothing is read",
	      !does(&w, IBV_WR_RDMA_READ, mine.key, mine.at));
	leave(&w);
	l = let_in(ticket);
	mine = be_reader(l, &w);
	need(does(&w, IBV_WR_RDMA_READ, mine.key, mine.at), "a key does not read");
	need(system(command) == 0, "it can't be revoked"); /* NOLINT: of the test's own */
	check("nor of a seed that was revoked", !does(&w, IBV_WR_RDMA_READ, mine.key, mine.at));
	leave(&w);
	link_close(l);
}

int main(int argc, char **argv)
{
	struct lr_err err = {0};

	if (argc != 4)
		return 2;
	v = verbs_get(&err);
	need(v, "no RDMA");
	tokens(argv[1]);
	keys(argv[1], argv[2]);
	ends(argv[1], argv[3]);
	printf("# %d tries\n", count);
	return bad != 0;
}
