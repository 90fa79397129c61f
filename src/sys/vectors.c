/* SPDX-License-Identifier: Apache-2.0 */
/* sys: state components of the processor; see vectors.h. */
#include "src/sys/vectors.h"

#include <cpuid.h>
#include <string.h>

#define XSAVE_LEAF   0xd
#define OSPKE        (1U << 4) /* of leaf 7: the kernel has switched protection keys on */
#define SIZE_OF_PKRU 8         /* the last four bytes are unused */

uint64_t lr_vectors_used(const void *area)
{
	uint64_t used;

	memcpy(&used, (const uint8_t *)area + LR_VECTORS_HEADER, sizeof(used));
	return used;
}

/* Where a component ends. In a virtual machine each cpuid leaves it, and this is asked for each thread: so it is kept.
 * Whoever comes at the same time finds the same. */
static uint32_t end_of(unsigned component)
{
	static uint32_t known[64];
	uint32_t end = __atomic_load_n(&known[component], __ATOMIC_RELAXED);

	if (!end) {
		uint32_t size, at, flags, unused;
		__cpuid_count(XSAVE_LEAF, component, size, at, flags, unused);
		end = at + size;
		__atomic_store_n(&known[component], end, __ATOMIC_RELAXED);
	}
	return end;
}

/* Kept for the same reason. */
bool lr_vectors_has_keys(void)
{
	static char known; /* 0: not yet */
	char has = __atomic_load_n(&known, __ATOMIC_RELAXED);
	unsigned a, b, c = 0, d;

	if (!has) {
		has = __get_cpuid_count(7, 0, &a, &b, &c, &d) && c & OSPKE ? 'y' : 'n';
		__atomic_store_n(&known, has, __ATOMIC_RELAXED);
	}
	return has == 'y';
}

bool lr_vectors_pkru(const void *area, size_t size, uint32_t *ret)
{
	if (!lr_vectors_has_keys())
		return false;
	const uint32_t end = end_of(LR_VECTORS_KEYS_NUMBER);
	if (end < LR_VECTORS_HEAD + SIZE_OF_PKRU || end > size)
		return false;
	memcpy(ret, (const uint8_t *)area + end - SIZE_OF_PKRU, sizeof(*ret));
	return true;
}

void lr_vectors_set_pkru(void *area, uint32_t pkru)
{
	const uint64_t used = lr_vectors_used(area) | LR_VECTORS_KEYS;

	memcpy((uint8_t *)area + end_of(LR_VECTORS_KEYS_NUMBER) - SIZE_OF_PKRU, &pkru,
	       sizeof(pkru));
	memcpy((uint8_t *)area + LR_VECTORS_HEADER, &used, sizeof(used));
}

size_t lr_vectors_size(uint64_t components)
{
	size_t all = LR_VECTORS_HEAD;

	/* x87 and SSE, the first two, are before the header. */
	for (unsigned i = 2; i < 63; i++)
		if (components & UINT64_C(1) << i && end_of(i) > all)
			all = end_of(i);
	return all;
}
