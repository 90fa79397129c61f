/* SPDX-License-Identifier: Apache-2.0 */
/* resume: the calls that allocate protection keys. */
#define LR_ROOM "resume"
#include <sys/mman.h>
#include <sys/syscall.h>

#include "src/resume/resuming.h"

#ifndef PKEY_DISABLE_ACCESS
#define PKEY_DISABLE_ACCESS 1
#endif

static bool has_execute_only(const struct one *x)
{
	for (uint32_t i = 0; i < x->mm->vmas.count; i++) {
		const struct lr_seed_vma *v = lr_seed_vma(x->seed, x->mm->vmas.first + i);
		if (v->prot == PROT_EXEC && v->kind != LR_SEED_VDSO && v->kind != LR_SEED_VVAR)
			return true;
	}
	return false;
}

/* The kernel gives the lowest that is free, and has given the first to execute-only memory, as in the parent. So those
 * between are allocated, too, and freed again. Rights by them come with the registers (leave). */
void plan_keys(struct one *x, struct lr_resume_ops *ops)
{
	const uint32_t keys = x->mm->keys, first = has_execute_only(x) ? 2 : 1;

	for (uint32_t k = first; keys >> k; k++)
		image_op(ops, SYS_pkey_alloc, BLOB_IS_FIFTH, 0, PKEY_DISABLE_ACCESS, 0, 0, k, 0);
	for (uint32_t k = first; keys >> k; k++)
		if (!(keys & 1U << k))
			image_op(ops, SYS_pkey_free, 0, k, 0, 0, 0, 0, 0);
}
