/* SPDX-License-Identifier: Apache-2.0 */
/* resume: whether this machine can go on with what another one began. */
#define LR_ROOM "resume"
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#include "src/base/str.h"
#include "src/resume/resuming.h"
#include "src/sys/vectors.h"

static uint64_t xcr0(void)
{
	uint32_t low, high;

	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (uint64_t)high << 32 | low;
}

/* Vendors lay registers out in different ways. Which way it was is not told, but the size is. */
static bool is_laid_out_as_here(const struct lr_seed_host *h)
{
	return h->xsave == lr_vectors_size(h->xfeatures) ||
	       h->xsave == lr_vectors_size(h->xfeatures & ~LR_VECTORS_TILE_DATA);
}

int resume_check_host(const struct lr_seed *s, struct lr_err *err)
{
	const struct lr_seed_host *h = lr_seed_host(s, 0);
	const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);

	if (h->machine != LR_SEED_X86_64)
		return lr_refuse(err, ENOTSUP, "the seed is of another kind of machine (%u)",
				 h->machine);
	if (h->xfeatures & ~xcr0())
		return lr_refuse(err, ENOTSUP,
				 "the seed uses features of the processor that are not here: XCR0 "
				 "%llx, here %llx",
				 (unsigned long long)h->xfeatures, (unsigned long long)xcr0());
	if (!is_laid_out_as_here(h)) {
		lr_refuse(err, ENOTSUP,
			  "the processor of the seed lays its registers out in another way (%u "
			  "bytes)",
			  h->xsave);
		return lr_err_hint(err, "resume it on a processor of the same vendor");
	}
	if (!h->vdso)
		return 0;
	if (!vdso || lr_hash(LR_HASH, vdso, LR_SEED_PAGE) != h->vdso_sum) {
		lr_refuse(err, ENOTSUP, "the seed is of a kernel with another vDSO (%s)",
			  lr_seed_text(s, h->release));
		return lr_err_hint(err, "resume it on a host with the same kernel");
	}
	return 0;
}
