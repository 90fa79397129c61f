/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resume: who gets the signals of a file (F_SETOWN, O_ASYNC). A process of the seed's says so, with its
 * own rights: whenever the kernel signals, it asks for the rights of who has said so, and by ours a seed could have
 * anybody signalled. The owner has to be there, so this waits at the gate.
 */
#define LR_ROOM "resume"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/resume/resuming.h"

#ifndef F_SETOWN_EX
#define F_SETOWN_EX 15
#endif

/* struct f_owner_ex of the kernel. */
struct owner {
	int32_t type, id;
};

static bool is_set(const struct lr_seed_file *f)
{
	return f->kind != LR_SEED_STDIO && !(f->flags & O_PATH) &&
	       (f->owner_kind || f->flags & O_ASYNC);
}

/* A thread, and the index of the process that it is of. */
struct member {
	uint32_t tid, process;
};

struct finding {
	struct lr_resume *r;
	struct member *members; /* by id */
	bool *by_owner;         /* of files: whoever gets the signals has it */
};

static int by_id(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static bool is_owner(const struct finding *x, uint32_t index, const struct lr_seed_file *f)
{
	const struct lr_seed_process *p = lr_seed_process(x->r->seed, index);
	const struct member wanted = {.tid = f->owner};

	if (f->owner_kind != LR_SEED_OF_THREAD)
		return f->owner_kind == LR_SEED_OF_PROCESS ? p->pid == f->owner
							   : p->pgid == f->owner;
	const struct member *m =
		bsearch(&wanted, x->members, lr_seed_count(x->r->seed, LR_SEED_THREAD),
			sizeof(wanted), by_id);
	return m && m->process == index;
}

/* Who gets the signals, if it has the file: it may always signal itself. Else the first that has it. */
static void find_setters(const struct finding *x, uint32_t index)
{
	const struct lr_seed *s = x->r->seed;
	const struct lr_seed_process *p = lr_seed_process(s, index);

	for (uint32_t i = 0; i < p->fds.count; i++) {
		const uint32_t file = lr_seed_fd(s, p->fds.first + i)->file;
		const struct lr_seed_file *f = lr_seed_file(s, file);
		if (!is_set(f) || x->by_owner[file])
			continue;
		x->by_owner[file] = is_owner(x, index, f);
		if (x->by_owner[file] || x->r->setters[file] == LR_SEED_NONE)
			x->r->setters[file] = index;
	}
}

/* A forged seed may have hundreds of thousands of them, and as many descriptors. */
static void sort_members(const struct finding *x)
{
	const struct lr_seed *s = x->r->seed;
	size_t n = 0;

	for (uint32_t i = 0; i < lr_seed_count(s, LR_SEED_PROCESS); i++) {
		const struct lr_seed_range *t = &lr_seed_process(s, i)->threads;
		for (uint32_t k = 0; k < t->count; k++)
			x->members[n++] = (struct member){lr_seed_thread(s, t->first + k)->tid, i};
	}
	qsort(x->members, n, sizeof(*x->members), by_id);
}

bool resume_has_owners(const struct lr_resume *r)
{
	for (uint32_t i = 0; i < lr_seed_count(r->seed, LR_SEED_FILE); i++)
		if (is_set(lr_seed_file(r->seed, i)))
			return true;
	return false;
}

int resume_find_setters(struct lr_resume *r, struct lr_err *err)
{
	const uint32_t n = lr_seed_count(r->seed, LR_SEED_FILE);

	const struct finding x = {
		.r = r,
		.members =
			lr_new_n(r->a, lr_seed_count(r->seed, LR_SEED_THREAD) + 1, struct member),
		.by_owner = lr_new_n(r->a, n + 1, bool)};
	r->setters = lr_new_n(r->a, n + 1, uint32_t);
	if (!x.members || !x.by_owner || !r->setters)
		return lr_fail(err, ENOMEM, "find the owners of files");
	for (uint32_t i = 0; i < n; i++)
		r->setters[i] = LR_SEED_NONE;
	sort_members(&x);
	for (uint32_t i = 0; i < lr_seed_count(r->seed, LR_SEED_PROCESS); i++)
		find_setters(&x, i);
	return 0;
}

/* ---- the calls ------------------------------------------------------------------------------- */

/* By the number that the process has it under: a signal may tell that. The rest of its flags stay. */
static void set_owner(struct one *x, struct lr_resume_ops *ops, const struct lr_seed_fd *fd)
{
	const struct lr_seed_file *f = lr_seed_file(x->seed, fd->file);
	const struct owner o = {(int32_t)f->owner_kind - 1, (int32_t)f->owner};

	if (f->owner_kind)
		image_op(ops, SYS_fcntl, 0, fd->number, F_SETOWN_EX,
			 image_put(&x->image, &o, sizeof(o)), 0, 0, 0);
	if (f->flags & O_ASYNC)
		image_op(ops, SYS_fcntl, 0, fd->number, F_SETFL,
			 f->flags & (RESUME_STATUS_FLAGS | O_ASYNC), 0, 0, 0);
}

void plan_owners(struct one *x, struct lr_resume_ops *ops)
{
	uint32_t *setters = x->r->setters;

	for (uint32_t i = 0; i < x->p->fds.count; i++) {
		const struct lr_seed_fd *fd = lr_seed_fd(x->seed, x->p->fds.first + i);
		if (setters[fd->file] != x->index)
			continue;
		set_owner(x, ops, fd);
		setters[fd->file] = LR_SEED_NONE; /* under one number */
	}
}

bool plan_has_owners(const struct one *x)
{
	for (uint32_t i = 0; i < x->p->fds.count; i++)
		if (x->r->setters[lr_seed_fd(x->seed, x->p->fds.first + i)->file] == x->index)
			return true;
	return false;
}
