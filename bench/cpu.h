/* SPDX-License-Identifier: Apache-2.0 */
/* The processor's time. */
#ifndef LEAN_BENCH_CPU_H
#define LEAN_BENCH_CPU_H

#include <stdint.h>
#include <sys/resource.h>

/* That this process has used, and all that it has waited for. */
static inline int64_t cpu_us(void)
{
	static const int who[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
	int64_t sum = 0;

	for (int i = 0; i < 2; i++) {
		struct rusage u;
		getrusage(who[i], &u);
		sum += (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * INT64_C(1000000) +
		       u.ru_utime.tv_usec + u.ru_stime.tv_usec;
	}
	return sum;
}

#endif
