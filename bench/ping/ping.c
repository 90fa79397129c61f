/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ping: empty requests to the lean-forkd that holds a seed, for lean-bench rpc.
 *
 *     ping TICKET CLIENTS SECONDS
 *
 * Each client is a thread with a connection of its own, which has proved itself before the time
 * begins, and which asks as soon as it has its answer. Prints the requests, the seconds (the last
 * client's), and the median and 99th percentile of the time of one (ns).
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/forkd/forkd.h"
#include "src/forkd/link.h"
#include "src/wire/ticket.h"

#define PATIENCE_MS 10000
#define MOST        (1U << 21) /* of one client; further ones are counted, and not in the median */

struct client {
	pthread_t thread;
	struct link *link;
	uint64_t requests, over; /* over: when it was */
	uint32_t *took;
	bool failed;
};

static pthread_barrier_t ready;
static uint64_t seconds;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static bool ping(struct client *c)
{
	const struct lr_wire_msg question = {.type = LR_WIRE_PING, .tag = c->requests};
	uint8_t body[LR_WIRE_MESSAGE];
	struct lr_wire_msg m;

	return link_send(c->link, &question, PATIENCE_MS) == 0 &&
	       link_receive(c->link, &m, body, sizeof(body), PATIENCE_MS, PATIENCE_MS) == 0 &&
	       m.type == LR_WIRE_PONG && m.tag == c->requests;
}

static void *ask(void *arg)
{
	struct client *c = arg;

	pthread_barrier_wait(&ready);
	const uint64_t until = now() + seconds * 1000000000;
	for (uint64_t begin = now(); begin < until && !c->failed; begin = c->over) {
		c->failed = !ping(c);
		c->over = now();
		if (c->requests < MOST)
			c->took[c->requests] = (uint32_t)(c->over - begin);
		c->requests++;
	}
	return NULL;
}

static int by_time(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static int tell(const struct client *v, unsigned n, uint64_t begin)
{
	uint64_t requests = 0, over = begin;
	size_t known = 0;

	uint32_t *all = malloc((size_t)n * MOST * sizeof(*all));
	if (!all)
		return 1;
	for (unsigned i = 0; i < n; i++) {
		size_t of = v[i].requests < MOST ? v[i].requests : MOST;
		if (v[i].failed)
			return 1;
		memcpy(all + known, v[i].took, of * sizeof(*all));
		known += of;
		requests += v[i].requests;
		over = v[i].over > over ? v[i].over : over;
	}
	qsort(all, known, sizeof(*all), by_time);
	printf("%" PRIu64 " %.6f %u %u\n", requests, (double)(over - begin) / 1e9, all[known / 2],
	       all[known - known / 100 - 1]);
	return 0;
}

static int open_client(const struct lr_ticket *t, struct client *c)
{
	struct lr_wire_msg welcome;
	struct lr_err err = {0};
	char line[1024];
	uint32_t code;

	c->took = malloc(MOST * sizeof(*c->took));
	if (c->took && link_connect(t, PATIENCE_MS, &c->link, &welcome, &code, &err) == 0)
		return 0;
	fprintf(stderr, "ping: %s\n",
		c->took ? lr_err_format(&err, line, sizeof(line)) : "out of memory");
	return -1;
}

int main(int argc, char **argv)
{
	const unsigned n = argc == 4 ? (unsigned)atoi(argv[2]) : 0;
	struct lr_ticket t;

	seconds = argc == 4 ? (uint64_t)atoi(argv[3]) : 0;
	if (!n || n > 64 || !seconds || lr_ticket_decode(argv[1], strlen(argv[1]), &t) < 0) {
		fprintf(stderr, "usage: ping TICKET CLIENTS SECONDS\n");
		return 2;
	}
	struct client *v = calloc(n, sizeof(*v));
	pthread_barrier_init(&ready, NULL, n + 1);
	for (unsigned i = 0; i < n; i++)
		if (!v || open_client(&t, &v[i]) < 0 ||
		    pthread_create(&v[i].thread, NULL, ask, &v[i]) != 0)
			return 1;
	pthread_barrier_wait(&ready);
	const uint64_t begin = now();
	for (unsigned i = 0; i < n; i++)
		pthread_join(v[i].thread, NULL);
	return tell(v, n, begin);
}
