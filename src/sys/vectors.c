/* SPDX-License-Identifier: Apache-2.0 */
/* sys: state components of the processor; see vectors.h. */
#include "src/sys/vectors.h"

#include <cpuid.h>
#include <string.h>

#define XSAVE_LEAF   0xd
#define XSAVE_HEADER 512 /* where XSTATE_BV is */

uint64_t lr_vectors_used(const void *area)
{
	uint64_t used;

	memcpy(&used, (const uint8_t *)area + XSAVE_HEADER, sizeof(used));
	return used;
}

size_t lr_vectors_size(uint64_t components)
{
	size_t all = LR_VECTORS_HEAD;

	/* x87 and SSE, the first two, are before the header. */
	for (unsigned i = 2; i < 63; i++) {
		uint32_t size, at, flags, unused;
		if (!(components & UINT64_C(1) << i))
			continue;
		__cpuid_count(XSAVE_LEAF, i, size, at, flags, unused);
		if (at + size > all)
			all = at + size;
	}
	return all;
}
