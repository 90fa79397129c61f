/* SPDX-License-Identifier: Apache-2.0 */
/* resume: the calls that allocate protection keys. */
#define LR_ROOM "resume"
#include <sys/mman.h>
#include <sys/syscall.h>

#include "src/resume/resuming.h"
#include "src/sys/vectors.h"

#ifndef PKEY_DISABLE_ACCESS
#define PKEY_DISABLE_ACCESS 1
#endif

static bool has_execute_only(const struct one *x)
{
	for (uint32_t i = 0; i < x->mm->vmas.count; i++)
		if (lr_seed_vma(x->seed, x->mm->vmas.first + i)->prot == PROT_EXEC)
			return true;
	return false;
}

/* Bit k: a thread has rights by key k. */
static uint32_t wanted(const struct one *x)
{
	uint32_t keys = 0, pkru;

	for (uint32_t i = 0; i < x->p->threads.count; i++) {
		const struct lr_seed_thread *t = lr_seed_thread(x->seed, x->p->threads.first + i);
		if (lr_vectors_pkru(lr_seed_data(x->seed, &t->xsave), t->xsave.length, &pkru))
			keys |= lr_vectors_keys(pkru);
	}
	return keys;
}

/* The kernel gives the lowest that is free: so those between are allocated, too, and freed again. The rights that
 * come with them go with the registers (leave). */
void plan_keys(struct one *x, struct lr_resume_ops *ops)
{
	const uint32_t keys = wanted(x), first = has_execute_only(x) ? 2 : 1;

	for (uint32_t k = first; keys >> k; k++)
		image_op(ops, SYS_pkey_alloc, BLOB_IS_FIFTH, 0, PKEY_DISABLE_ACCESS, 0, 0, k, 0);
	for (uint32_t k = first; keys >> k; k++)
		if (!(keys & 1U << k))
			image_op(ops, SYS_pkey_free, 0, k, 0, 0, 0, 0, 0);
}
