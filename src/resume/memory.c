/* SPDX-License-Identifier: Apache-2.0 */
/* resume: the calls that exchange our memory for the seed's. */
#define LR_ROOM "resume"
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/resume/resuming.h"

#ifdef __GLIBC__
#include <sys/rseq.h>
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MLOCK_ONFAULT
#define MLOCK_ONFAULT 1
#endif
/* Of <linux/prctl.h>: some headers are older. */
#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#endif
#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE 67
#endif

#define TOP UINT64_C(0x7ffffffff000)

/* struct prctl_mm_map of <linux/prctl.h>, which musl's <sys/prctl.h> has, too. */
struct mm_map {
	uint64_t start_code, end_code, start_data, end_data, start_brk, brk, start_stack;
	uint64_t arg_start, arg_end, env_start, env_end, auxv;
	uint32_t auxv_size, exe_fd;
};

/* The kernel writes to it whenever we are preempted: it must not be where the seed's memory is. */
static void drop_rseq(struct lr_resume_ops *ops)
{
#ifdef __GLIBC__
	if (__rseq_size) {
		uint64_t at =
			(uint64_t)(uintptr_t)__builtin_thread_pointer() + (uint64_t)__rseq_offset;
		/* Its size was 32 before it could be longer. */
		image_op(ops, SYS_rseq, BLOB_MAY_FAIL, at, __rseq_size > 32 ? __rseq_size : 32,
			 RSEQ_FLAG_UNREGISTER, RSEQ_SIG, 0, 0);
	}
#else
	(void)ops;
#endif
}

/* ---- the kernel's pages ---------------------------------------------------------------------- */

static void move(struct lr_resume_ops *ops, uint64_t from, uint64_t size, uint64_t to)
{
	image_op(ops, SYS_mremap, BLOB_IS_FIFTH, from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED,
		 to, 0);
}

static void park(struct one *x, struct lr_resume_ops *ops)
{
	uint64_t to = x->park;

	for (size_t i = 0; i < x->own.n; i++) {
		const struct own_range *o = &x->own.v[i];
		if (!o->special)
			continue;
		move(ops, o->start, o->end - o->start, to);
		to += o->end - o->start;
	}
}

/* In the order of addresses both have the same ones: host.c compared the kernels. */
static int unpark(struct one *x, struct lr_resume_ops *ops, struct lr_err *err)
{
	uint64_t from = x->park;
	uint32_t k = 0;

	for (size_t i = 0; i < x->own.n; i++) {
		const struct own_range *o = &x->own.v[i];
		const struct lr_seed_vma *v = NULL;
		if (!o->special)
			continue;
		for (; k < x->mm->vmas.count && !v; k++) {
			v = lr_seed_vma(x->seed, x->mm->vmas.first + k);
			if (v->kind != LR_SEED_VDSO && v->kind != LR_SEED_VVAR)
				v = NULL;
		}
		if (!v)
			break; /* The program had taken it away. */
		if (v->end - v->start != o->end - o->start || (v->kind == LR_SEED_VDSO) != o->vdso)
			return lr_refuse(err, ENOTSUP, "the vDSO of this kernel is another one");
		move(ops, from, o->end - o->start, v->start);
		from += o->end - o->start;
	}
	return 0;
}

/* ---- mappings -------------------------------------------------------------------------------- */

static bool is_special(const struct lr_seed_vma *v)
{
	return v->kind == LR_SEED_VDSO || v->kind == LR_SEED_VVAR;
}

/* By a descriptor that can write, a mapping that only reads could be made writable. */
static int object_fd(const struct one *x, const struct lr_seed_vma *v)
{
	const int readonly = x->r->readonly[v->object];
	const bool writes = v->kind == LR_SEED_SHARES && v->prot & PROT_WRITE;

	return readonly >= 0 && !writes ? readonly : x->r->objects[v->object];
}

static void map(const struct one *x, struct lr_resume_ops *ops, const struct lr_seed_vma *v,
		bool filled)
{
	const struct lr_seed_span *span = lazy_span(x, v);
	uint64_t offset = v->offset;
	unsigned flags = MAP_FIXED_NOREPLACE;
	bool shared = v->kind == LR_SEED_SHARED || v->kind == LR_SEED_SHARES;
	int fd = -1;

	flags |= shared ? MAP_SHARED : MAP_PRIVATE;
	if (span) {
		fd = x->r->source;
		offset = span->first * LR_SEED_PAGE;
	} else if (v->kind == LR_SEED_ANON)
		flags |= MAP_ANONYMOUS;
	else if (v->backing != LR_SEED_NONE)
		fd = x->r->backings[v->backing];
	else
		fd = object_fd(x, v);
	flags |= v->flags & LR_SEED_GROWSDOWN ? MAP_GROWSDOWN : 0U;
	flags |= v->flags & LR_SEED_NORESERVE ? MAP_NORESERVE : 0U;
	image_op(ops, SYS_mmap, BLOB_IS_FIRST, v->start, v->end - v->start,
		 v->prot | (filled ? PROT_WRITE : 0U), flags, (uint64_t)(int64_t)fd, offset);
}

static void advise(struct lr_resume_ops *ops, const struct lr_seed_vma *v)
{
	static const struct {
		uint32_t flag;
		int advice;
	} table[] = {
		{LR_SEED_DONTFORK, MADV_DONTFORK}, {LR_SEED_WIPEONFORK, MADV_WIPEONFORK},
		{LR_SEED_DONTDUMP, MADV_DONTDUMP}, {LR_SEED_MERGEABLE, MADV_MERGEABLE},
		{LR_SEED_HUGEPAGE, MADV_HUGEPAGE}, {LR_SEED_NOHUGEPAGE, MADV_NOHUGEPAGE},
	};

	for (size_t i = 0; i < LR_ARRAY_SIZE(table); i++)
		if (v->flags & table[i].flag)
			image_op(ops, SYS_madvise, 0, v->start, v->end - v->start,
				 (uint64_t)table[i].advice, 0, 0, 0);
}

/* From so many pages on the kernel makes them faster at once (Linux 5.14) than one by one as they are read:
 * a seventh less for a megabyte (docs/performance.md). */
#define AT_ONCE 4

static void fill(const struct one *x, struct lr_resume_ops *ops, const struct lr_seed_run *r)
{
	const uint64_t size = r->pages * LR_SEED_PAGE;

	if (r->pages >= AT_ONCE)
		image_op(ops, SYS_madvise, BLOB_MAY_FAIL, r->start, size, MADV_POPULATE_WRITE, 0, 0,
			 0);
	image_op(ops, BLOB_READ, 0, (uint64_t)x->r->pages, r->start, size, r->at, 0, 0);
}

/* Mapped, filled, then with the protection that it had. *run: the first one that no mapping before
 * this one has. */
static void make_vma(struct one *x, struct lr_resume_ops *ops, const struct lr_seed_vma *v,
		     uint32_t *run)
{
	const struct lr_seed_range *runs = &x->mm->runs;
	uint32_t first = *run, end = runs->first + runs->count;

	while (*run < end && lr_seed_run(x->seed, *run)->start < v->end)
		++*run;
	if (lazy_span(x, v)) { /* it has its contents */
		map(x, ops, v, false);
		advise(ops, v);
		return;
	}
	bool any = *run > first, filled = any && !lazy_is(x, v);
	map(x, ops, v, filled);
	advise(ops, v);
	if (any && !filled) {
		lazy_plan(x, ops, v);
		return;
	}
	for (uint32_t i = first; i < *run; i++)
		fill(x, ops, lr_seed_run(x->seed, i));
	if (filled && !(v->prot & PROT_WRITE))
		image_op(ops, SYS_mprotect, 0, v->start, v->end - v->start, v->prot, 0, 0, 0);
}

static void set_layout(const struct one *x, struct lr_resume_ops *ops)
{
	const struct lr_seed_mm *m = x->mm;
	struct mm_map map = {
		.start_code = m->start_code,
		.end_code = m->end_code,
		.start_data = m->start_data,
		.end_data = m->end_data,
		.start_brk = m->start_brk,
		.brk = m->brk,
		.start_stack = m->start_stack,
		.arg_start = m->arg_start,
		.arg_end = m->arg_end,
		.env_start = m->env_start,
		.env_end = m->env_end,
		.auxv_size = (uint32_t)m->auxv.length,
		.exe_fd = (uint32_t)x->r->exes[x->p->mm],
	};

	map.auxv = image_put(ops->image, lr_seed_data(x->seed, &m->auxv), m->auxv.length);
	uint64_t at = image_put(ops->image, &map, sizeof(map));
	image_op(ops, SYS_prctl, 0, PR_SET_MM, PR_SET_MM_MAP, at, sizeof(map), 0, 0);
	/* The kernel's answer has its flags beside the bit that says so. */
	if (m->thp_disable)
		image_op(ops, SYS_prctl, 0, PR_SET_THP_DISABLE, 1, m->thp_disable & ~1U, 0, 0, 0);
	if (m->flags & LR_SEED_MERGES)
		image_op(ops, SYS_prctl, 0, PR_SET_MEMORY_MERGE, 1, 0, 0, 0, 0);
	/* The kernel need not interrupt anybody for it, as there are no threads yet. */
	for (unsigned k = 0; k < LR_SEED_BARRIERS; k++)
		if (m->flags & LR_SEED_BARRIER(k))
			image_op(ops, SYS_membarrier, 0, LR_SEED_BARRIER_REGISTER(k), 0, 0, 0, 0,
				 0);
}

/* What comes when it is touched is locked then: to lock all of it would fetch all of it, from a daemon
 * that may not serve us yet. Else all of it is there already; that some of it can't be, as nobody may
 * touch it, is no failure. */
static void lock(struct one *x, struct lr_resume_ops *ops, const struct lr_seed_vma *v)
{
	const uint64_t size = v->end - v->start;

	image_op(ops, SYS_mlock2, 0, v->start, size, MLOCK_ONFAULT, 0, 0, 0);
	if (!(v->flags & LR_SEED_LOCKONFAULT) && !lazy_is(x, v) && !lazy_span(x, v))
		image_op(ops, SYS_mlock, BLOB_MAY_FAIL, v->start, size, 0, 0, 0, 0);
}

void plan_locks(struct one *x, struct lr_resume_ops *ops)
{
	const uint32_t flags = x->mm->flags;

	for (uint32_t i = 0; i < x->mm->vmas.count; i++) {
		const struct lr_seed_vma *v = lr_seed_vma(x->seed, x->mm->vmas.first + i);
		if (v->flags & LR_SEED_LOCKED && !is_special(v))
			lock(x, ops, v);
	}
	if (flags & LR_SEED_LOCKS)
		image_op(ops, SYS_mlockall, 0, MCL_FUTURE, 0, 0, 0, 0, 0);
	/* At the end, as it may refuse what we map. */
	if (flags & LR_SEED_MDWE)
		image_op(ops, SYS_prctl, 0, PR_SET_MDWE, flags & LR_SEED_MDWE_NO_INHERIT ? 3 : 1, 0,
			 0, 0, 0);
}

int plan_memory(struct one *x, struct lr_resume_ops *ops, struct lr_err *err)
{
	uint64_t end = x->park + x->park_size;
	uint32_t run = x->mm->runs.first;

	drop_rseq(ops);
	image_op(ops, SYS_set_robust_list, 0, 0, 24, 0, 0, 0, 0);
	image_op(ops, SYS_set_tid_address, 0, 0, 0, 0, 0, 0, 0);
	park(x, ops);
	image_op(ops, SYS_munmap, 0, 0, x->image.at, 0, 0, 0, 0);
	image_op(ops, SYS_munmap, 0, end, TOP - end, 0, 0, 0, 0);
	for (uint32_t i = 0; i < x->mm->vmas.count; i++) {
		const struct lr_seed_vma *v = lr_seed_vma(x->seed, x->mm->vmas.first + i);
		if (!is_special(v))
			make_vma(x, ops, v, &run);
	}
	int r = unpark(x, ops, err);
	if (r >= 0)
		set_layout(x, ops);
	return r;
}
