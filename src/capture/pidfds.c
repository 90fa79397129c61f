/* SPDX-License-Identifier: Apache-2.0 */
/* capture: pidfds of the seed's own processes. A child's process opens its own when it has made its children, so
 * whom it knows has to be there by then. */
#define LR_ROOM "capture"
#include "src/capture/state.h"

/* Looked for further up in the table alone: processes that run meanwhile may look as if each were below the other. */
static const struct cap_process *parent_of(const struct cap *c, const struct cap_process *p)
{
	const struct cap_process *parent = cap_process_of(c, p->parent);

	return parent && parent < p ? parent : NULL;
}

/* Of those above the holder, so many are looked at: a hostile container may have one long chain of processes. */
#define ABOVE 64

/* A process is made after those above it, and after their children that are before it in the table. */
static bool is_there_for(const struct cap *c, const struct cap_process *holder,
			 const struct cap_process *target)
{
	const struct cap_process *above = parent_of(c, target);

	if (above == holder)
		return true;
	const struct cap_process *h = holder;
	for (unsigned i = 0; h && i < ABOVE; h = parent_of(c, h), i++)
		if (h == target || (above && above == parent_of(c, h) && target < h))
			return true;
	return false;
}

static void find(struct cap *c, const struct cap_process *holder, const struct cap_fd *fd)
{
	const struct cap_process *target = cap_process_of(c, fd->file->target);

	if (!target) {
		/* It may be about to be waited for, or just born. */
		cap_refuse(c, holder, "descriptor %u: a pidfd of a process that is none of these",
			   fd->number);
		c->n_passing++;
		return;
	}
	fd->file->seed.args[0] = target->seed.pid;
	if (!is_there_for(c, holder, target))
		cap_refuse(c, holder,
			   "descriptor %u: a pidfd of process %u, which a child makes later",
			   fd->number, target->seed.pid);
}

void cap_pidfds_find(struct cap *c)
{
	for (size_t i = 0; i < c->n; i++)
		for (size_t k = 0; k < c->p[i].n_fds; k++)
			if (c->p[i].fds[k].file->seed.kind == LR_SEED_PIDFD)
				find(c, &c->p[i], &c->p[i].fds[k]);
}
