/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: see figures.h. */
#define LR_ROOM "forkd"
#include "src/forkd/figures.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct figures *all; /* the latest first */

struct figures *figures_begin(const uint8_t id[LR_WIRE_ID], const struct figures *brought)
{
	struct figures *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	memcpy(f->id, id, sizeof(f->id));
	for (size_t i = 0; i < LR_WIRE_FIGURES; i++)
		f->v[i] = brought->v[i];
	pthread_mutex_lock(&lock);
	f->next = all;
	all = f;
	pthread_mutex_unlock(&lock);
	return f;
}

/* Of those that are over, the last ones stay. */
static void forget(void)
{
	size_t over = 0;

	for (struct figures **p = &all; *p;) {
		struct figures *f = *p;
		if (f->state == LR_WIRE_COMING || ++over <= FIGURES_OVER) {
			p = &f->next;
			continue;
		}
		*p = f->next;
		free(f);
	}
}

void figures_end(struct figures *f, enum lr_wire_state state)
{
	if (!f)
		return;
	pthread_mutex_lock(&lock);
	f->state = state;
	forget();
	pthread_mutex_unlock(&lock);
}

static size_t bin_of(uint64_t ns)
{
	const unsigned power = ns < 4 ? 0 : 63U - (unsigned)__builtin_clzll(ns);

	return ns < 4 ? (size_t)ns : (size_t)power * 4 + (ns >> (power - 2) & 3);
}

/* The middle of it. */
static uint64_t time_of(size_t bin)
{
	const size_t power = bin / 4;

	return bin < 8 ? bin : ((4 + bin % 4) << (power - 2)) + ((UINT64_C(1) << (power - 2)) >> 1);
}

void figures_time(struct figures *f, uint64_t ns)
{
	if (!f->v[LR_WIRE_TIMES] || ns < f->v[LR_WIRE_SHORTEST])
		f->v[LR_WIRE_SHORTEST] = ns;
	if (ns > f->v[LR_WIRE_LONGEST])
		f->v[LR_WIRE_LONGEST] = ns;
	f->bins[bin_of(ns)]++;
	f->v[LR_WIRE_TIMES]++;
}

static uint64_t median(const struct figures *f, const struct lr_wire_child *c)
{
	uint64_t n = 0;
	size_t i = 0;

	while (i < FIGURES_BINS && (n += f->bins[i]) * 2 < c->v[LR_WIRE_TIMES])
		i++;
	const uint64_t ns = time_of(i < FIGURES_BINS ? i : FIGURES_BINS - 1);
	return ns < c->v[LR_WIRE_SHORTEST]  ? c->v[LR_WIRE_SHORTEST]
	       : ns > c->v[LR_WIRE_LONGEST] ? c->v[LR_WIRE_LONGEST]
					    : ns;
}

void figures_tell(const struct figures *f, struct lr_wire_child *ret)
{
	memcpy(ret->id, f->id, sizeof(ret->id));
	ret->pid = f->pid;
	ret->state = f->state;
	for (size_t i = 0; i < LR_WIRE_FIGURES; i++)
		ret->v[i] = f->v[i];
	ret->v[LR_WIRE_MEDIAN] = ret->v[LR_WIRE_TIMES] ? median(f, ret) : 0;
}

uint32_t figures_list(uint32_t skip, struct lr_wire_msg *m)
{
	uint32_t n = 0;

	m->n = 0;
	pthread_mutex_lock(&lock);
	for (const struct figures *f = all; f; f = f->next)
		if (n++ >= skip && m->n < LR_WIRE_KIN)
			figures_tell(f, &m->children[m->n++]);
	pthread_mutex_unlock(&lock);
	return n;
}
