/* SPDX-License-Identifier: Apache-2.0 */
/* resume: whether this machine can go on with what another one began. */
#define LR_ROOM "resume"
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#include "src/base/str.h"
#include "src/resume/resuming.h"

static uint64_t xcr0(void)
{
	uint32_t low, high;

	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (uint64_t)high << 32 | low;
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
	if (!h->vdso)
		return 0;
	if (!vdso || lr_hash(LR_HASH, vdso, LR_SEED_PAGE) != h->vdso_sum) {
		lr_refuse(err, ENOTSUP, "the seed is of a kernel with another vDSO (%s)",
			  lr_seed_text(s, h->release));
		return lr_err_hint(err, "resume it on a host with the same kernel");
	}
	return 0;
}
