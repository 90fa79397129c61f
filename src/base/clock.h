/* SPDX-License-Identifier: Apache-2.0 */
/* base: the time that waiting is measured in. */
#ifndef LR_BASE_CLOCK_H
#define LR_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Milliseconds of CLOCK_MONOTONIC. */
static inline int64_t lr_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The same in nanoseconds. */
static inline int64_t lr_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Less, if a signal comes. Below one second. */
static inline void lr_sleep_us(unsigned us)
{
	nanosleep(&(struct timespec){.tv_nsec = (long)us * 1000}, NULL);
}

#endif
