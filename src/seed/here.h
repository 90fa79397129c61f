/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seed: what a program that calls lean_seed_here(3) shares with whoever makes seeds of it.
 *
 * It is a page of shared memory (memfd_create(2)) of a known name. The program maps it, and keeps no
 * descriptor. Whoever makes a seed finds it among the mappings. Each side writes members of its own:
 *
 *	program		waiting, entered
 *	seed's maker	released, when a seed is whole; in the seed's copy of the page also generation
 *
 * So a child sees another page than its parent, wherever it was when the seed was made: there is no
 * moment that is too early or too late. Either side sees a page that the other may have spoilt.
 */
#ifndef LR_SEED_HERE_H
#define LR_SEED_HERE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define LR_HERE_NAME    "lean-seed-here"
#define LR_HERE_SIZE    4096U
#define LR_HERE_MAGIC   "LEANHERE"
#define LR_HERE_VERSION 1U

struct lr_here {
	char magic[8]; /* without the NUL */
	uint32_t version;
	uint32_t pid;        /* whose page it is, as that process sees itself: not a fork's */
	uint32_t waiting;    /* threads that are in the call */
	uint32_t entered;    /* calls so far; each has its number, from 1 */
	uint32_t released;   /* calls up to this one have their seed; a futex */
	uint32_t generation; /* how many seeds lie between the program's start and this process */
};

static inline bool lr_here_is_valid(const struct lr_here *h)
{
	return memcmp(h->magic, LR_HERE_MAGIC, sizeof(h->magic)) == 0 &&
	       h->version == LR_HERE_VERSION;
}

/* Whether the call of that number has its seed. Numbers go round. */
static inline bool lr_here_has_seed(uint32_t released, uint32_t call)
{
	return (int32_t)(released - call) >= 0;
}

/* The seed's copy of the page: whoever has that is a child, and has nothing to wait for. */
static inline void lr_here_become_child(struct lr_here *h)
{
	h->generation++;
	h->released = h->entered;
}

#endif
