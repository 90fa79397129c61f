/* SPDX-License-Identifier: Apache-2.0 */
/* forkd-tool: children that ask much of a daemon. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/seed/seed.h"
#include "tests/forkd/tool.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* ---- many faults, and an event among them ------------------------------------------------- */

#define THREADS 200
#define APART   40 /* pages; more than come with one */

static char *memory;
static pthread_barrier_t all;

static void *touch(void *arg)
{
	const uint64_t i = (uint64_t)(uintptr_t)arg * APART + 1;
	uint64_t want[LR_SEED_PAGE / 8];

	fill_page(want, i);
	pthread_barrier_wait(&all);
	if (memcmp(memory + i * LR_SEED_PAGE, want, sizeof(want)) != 0) {
		printf("WRONG: page %llu\n", (unsigned long long)i);
		fflush(stdout);
		_exit(3);
	}
	return NULL;
}

/* Returns when the daemon has read that. */
static void *discard(void *arg)
{
	pthread_barrier_wait(&all);
	usleep(200000); /* the others wait by then */
	madvise(memory, LR_SEED_PAGE, MADV_DONTNEED);
	return arg;
}

static void begin(pthread_t *t, void *(*run)(void *), uint64_t arg)
{
	pthread_attr_t a;

	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 128 << 10);
	if (pthread_create(t, &a, run, (void *)(uintptr_t)arg))
		_exit(5);
	pthread_attr_destroy(&a);
}

void crowd(char *at, uint64_t pages)
{
	pthread_t t[THREADS + 1];

	memory = at;
	if (pages < (uint64_t)THREADS * APART)
		_exit(5);
	pthread_barrier_init(&all, NULL, THREADS + 2);
	for (uint64_t i = 0; i < THREADS; i++)
		begin(&t[i], touch, i);
	begin(&t[THREADS], discard, 0);
	puts("begun");
	fflush(stdout);
	getchar();
	pthread_barrier_wait(&all);
	for (size_t i = 0; i <= THREADS; i++)
		pthread_join(t[i], NULL);
	puts("complete");
}

/* ---- more processes than descriptors ------------------------------------------------------ */

void forks(void)
{
	puts("begun");
	fflush(stdout);
	for (int i = 0; i < THREADS; i++)
		if (fork() == 0) {
			pause();
			_exit(0);
		}
	puts("complete");
}

/* ---- memory where there was other --------------------------------------------------------- */

void grow(char *at, uint64_t pages)
{
	static const char zeros[LR_SEED_PAGE];
	char *last = at + (pages - 1) * LR_SEED_PAGE;

	if (mremap(last, LR_SEED_PAGE, (1 + WRITTEN) * (size_t)LR_SEED_PAGE, 0) != last)
		_exit(5);
	for (size_t i = 1; i <= WRITTEN; i++)
		if (memcmp(last + i * LR_SEED_PAGE, zeros, sizeof(zeros)) != 0) {
			printf("WRONG: page %zu behind the end\n", i);
			fflush(stdout);
			_exit(3);
		}
	puts("grown");
}

/* ---- what is done to memory that has not come ---------------------------------------------- */

static void see(const char *what, const char *at, uint64_t first, uint64_t n, bool zeros)
{
	uint64_t want[LR_SEED_PAGE / 8];

	for (uint64_t i = 0; i < n; i++) {
		fill_page(want, first + i);
		if (zeros)
			memset(want, 0, sizeof(want));
		if (memcmp(at + i * LR_SEED_PAGE, want, sizeof(want)) == 0)
			continue;
		printf("WRONG: %s, page %llu\n", what, (unsigned long long)(first + i));
		fflush(stdout);
		_exit(3);
	}
}

static void must(const char *what, bool done)
{
	if (done)
		return;
	perror(what);
	_exit(5);
}

/* The last pages, so that they have not come by themselves. */
void split(char *at, uint64_t pages)
{
	const uint64_t first = pages - 3000;

	for (uint64_t i = first; i < pages; i += 2)
		must("mprotect", mprotect(at + i * LR_SEED_PAGE, LR_SEED_PAGE, PROT_READ) == 0);
	see("split", at + first * LR_SEED_PAGE, first, 3000, false);
	puts("split: all as it has to be");
}

void changed(char *at)
{
	const size_t eight = 8 * (size_t)LR_SEED_PAGE;
	char *page[1000];

	for (size_t i = 0; i < 1000; i++)
		page[i] = at + i * LR_SEED_PAGE;
	char *to = mremap(page[400], eight, eight, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
	must("mremap", to != MAP_FAILED);
	see("left where it was", page[400], 400, 8, true);
	see("moved away", to, 400, 8, false);
	must("mmap", mmap(page[500], eight, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page[500]);
	see("mapped over", page[500], 500, 8, true);
	(void)madvise(page[520], 512 * LR_SEED_PAGE, MADV_COLLAPSE);
	see("collapsed", page[720], 720, 100, false);
	must("madvise", madvise(page[850], eight, MADV_DONTFORK) == 0);
	see("not forked", page[846], 846, 16, false);
	if (mlock(page[901], eight) < 0)
		perror("mlock");
	see("locked", page[898], 898, 16, false);
	puts("changed: all as it has to be");
}
