/* SPDX-License-Identifier: Apache-2.0 */
/*
 * liblean: lean_seed_here: a program in a container says where its children go on. What it shares
 * with who makes the seed is src/seed/here.h. This file is a library by itself, too (liblean-seed),
 * which images have: it needs libc alone.
 */
#include <lean/seed.h>

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "src/seed/here.h"

#define EXPORT __attribute__((visibility("default")))

#ifndef MFD_CLOEXEC
#define MFD_CLOEXEC 1U
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

/* Of this process: a fork has its parent's here until its own first call. */
static _Atomic(struct lr_here *) own;
/* The generation that the program knows of. */
static _Atomic uint32_t known;

static uint32_t word(const uint32_t *at)
{
	return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}

/* ---- the page -------------------------------------------------------------------------------- */

/* The host's first pid namespace: whoever is in there is in no container that could become a seed.
 * Without /proc nobody can tell. */
static bool is_outside(void)
{
	static const char first[] = "pid:[4026531836]"; /* PROC_PID_INIT_INO */
	char link[sizeof(first)];
	ssize_t n = readlink("/proc/self/ns/pid", link, sizeof(link));

	return n == (ssize_t)sizeof(first) - 1 && memcmp(link, first, sizeof(first) - 1) == 0;
}

static int make_memory(void)
{
	/* vm.memfd_noexec may ask for the first; kernels before 6.3 don't know it. */
	long fd = syscall(SYS_memfd_create, LR_HERE_NAME, MFD_CLOEXEC | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = syscall(SYS_memfd_create, LR_HERE_NAME, MFD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

/* No descriptor is kept: a program that closes all that it does not know would lose it. */
static int make_page(uint32_t generation, struct lr_here **ret)
{
	int fd = make_memory();

	if (fd < 0)
		return fd;
	int r = ftruncate(fd, LR_HERE_SIZE) < 0 ? -errno : 0;
	void *page = r < 0 ? MAP_FAILED
			   : mmap(NULL, LR_HERE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (r >= 0 && page == MAP_FAILED)
		r = -errno;
	close(fd);
	if (r < 0)
		return r;
	struct lr_here *h = page;
	h->version = LR_HERE_VERSION;
	h->pid = (uint32_t)getpid();
	h->generation = generation;
	memcpy(h->magic, LR_HERE_MAGIC, sizeof(h->magic));
	*ret = h;
	return 0;
}

static int have_page(struct lr_here **ret)
{
	struct lr_here *h = own, *made = NULL;

#ifndef __x86_64__
	return -EOPNOTSUPP;
#endif
	/* A fork makes one of its own, and leaves its parent's mapped: another thread may read it. */
	if (!h || h->pid != (uint32_t)getpid()) {
		int r = is_outside() ? -EOPNOTSUPP : make_page(h ? word(&h->generation) : 0, &made);
		if (r < 0)
			return r;
		if (!atomic_compare_exchange_strong(&own, &h, made)) {
			munmap(made, LR_HERE_SIZE);
			made = h; /* another thread's */
		}
		h = made;
	}
	*ret = h;
	return 0;
}

/* ---- the call -------------------------------------------------------------------------------- */

#define LONG_S (INT32_C(1) << 30)

/* There is always an end, however far: a wait with one is never gone on with after a handler has
 * run, so that EINTR does not depend on how that was installed. */
static struct timespec until(int timeout_ms)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	if (timeout_ms < 0) {
		t.tv_sec += LONG_S;
		return t;
	}
	t.tv_sec += timeout_ms / 1000;
	t.tv_nsec += timeout_ms % 1000 * 1000000L;
	if (t.tv_nsec >= 1000000000L) {
		t.tv_nsec -= 1000000000L;
		t.tv_sec++;
	}
	return t;
}

/* Each time it wakes up, for whatever reason, it may be a child's: so that is asked first. A child
 * makes the call again, and the word is another one there. */
static int wait_for_seed(struct lr_here *h, uint32_t call, uint32_t generation, int timeout_ms)
{
	const struct timespec end = until(timeout_ms);
	int r = 0;

	for (;;) {
		uint32_t released = word(&h->released), now = word(&h->generation);
		if (now != generation) {
			known = now;
			return 1;
		}
		if (lr_here_has_seed(released, call))
			return 0;
		if (r < 0)
			return r;
		if (syscall(SYS_futex, &h->released, FUTEX_WAIT_BITSET, released, &end, NULL,
			    FUTEX_BITSET_MATCH_ANY) < 0 &&
		    errno != EAGAIN)
			r = -errno;
	}
}

EXPORT int lean_seed_here(int timeout_ms)
{
	struct lr_here *h;
	uint32_t generation = known;

	int r = have_page(&h);
	if (r < 0)
		return r;
	/* Since the last call; for one of several threads that ask. */
	uint32_t now = word(&h->generation);
	if (now != generation && atomic_compare_exchange_strong(&known, &generation, now))
		return 1;
	if (!timeout_ms)
		return -ETIMEDOUT;
	uint32_t call = __atomic_add_fetch(&h->entered, 1, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&h->waiting, 1, __ATOMIC_SEQ_CST);
	r = wait_for_seed(h, call, now, timeout_ms);
	__atomic_sub_fetch(&h->waiting, 1, __ATOMIC_SEQ_CST);
	return r;
}

EXPORT unsigned lean_seed_generation(void)
{
	struct lr_here *h;

	return have_page(&h) < 0 ? known : word(&h->generation);
}
