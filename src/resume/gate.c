/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resume: the gate, at which processes wait until all of them are made. Two things have to be done
 * after that: a file's owner can only be set when that process is there (owners.c), and some seals
 * only when all mappings are made that they forbid. A seed without either has no gate.
 */
#define LR_ROOM "resume"
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/resume/resuming.h"

static bool has_late_seals(const struct lr_resume *r)
{
	for (uint32_t i = 0; i < lr_seed_count(r->seed, LR_SEED_OBJECT); i++)
		if (resume_seals_late(r, i))
			return true;
	return false;
}

int resume_prepare_gate(struct lr_resume *r, struct lr_err *err)
{
	return resume_has_owners(r) || has_late_seals(r) ? resume_find_setters(r, err) : 0;
}

int resume_open_gate(struct lr_resume *r, struct lr_err *err)
{
	int ends[2];

	if (!r->setters)
		return 0;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return lr_fail(err, errno, "make a pipe for the processes");
	r->gate[0] = resume_keep(r, ends[0], err);
	if (r->gate[0] < 0) {
		lr_close(ends[1]);
		return r->gate[0];
	}
	r->gate[1] = resume_keep(r, ends[1], err);
	return r->gate[1] < 0 ? r->gate[1] : 0;
}

static void set_seals(struct one *x, struct lr_resume_ops *ops)
{
	for (uint32_t i = 0; i < lr_seed_count(x->seed, LR_SEED_OBJECT); i++)
		if (resume_seals_late(x->r, i))
			image_op(ops, SYS_fcntl, 0, (uint64_t)x->r->objects[i], F_ADD_SEALS,
				 lr_seed_object(x->seed, i)->seals, 0, 0, 0);
}

/* Each process closes its copy of the writing end when it has its memory and its threads, or ends: so
 * whoever waits never waits for one that is dead. */
void plan_gate(struct one *x, struct lr_resume_ops *ops)
{
	if (!x->r->setters)
		return;
	image_op(ops, SYS_close, 0, (uint64_t)x->r->gate[1], 0, 0, 0, 0, 0);
	if (x->index && !plan_has_owners(x))
		return;
	image_op(ops, SYS_read, 0, (uint64_t)x->r->gate[0], image_room(&x->image, 8, 8, NULL), 1, 0,
		 0, 0);
	plan_owners(x, ops);
	if (!x->index)
		set_seals(x, ops);
}
