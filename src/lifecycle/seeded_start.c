/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle: a container that waits for `start` to continue its seed; see seeded.h. */
#define LR_ROOM "seed"
#include "src/lifecycle/seeded.h"

#include <errno.h>
#include <signal.h>

#include "src/base/fd.h"
#include "src/checkpoint/checkpoint.h"
#include "src/sys/proc.h"
#include "src/sys/syscalls.h"

static int take(int pidfd, int32_t fd, struct lr_err *err)
{
	int r = lr_pidfd_getfd(pidfd, fd);

	return r < 0 ? lr_fail(err, -r, "take the seed's descriptor %d from the process that waits",
			       fd)
		     : r;
}

int lr_seeded_take(const struct lr_existing *c, struct lr_arena *a, struct lr_seeded_start *ret,
		   struct lr_err *err)
{
	const struct lr_record *rec = &c->record;
	const struct lr_checkpoint_opts how = {.prefetch = rec->seed_prefetch,
					       .prefetch_mib = rec->seed_prefetch_mib};
	int descriptor = LR_NOFD, lazy = LR_NOFD;

	*ret = LR_SEEDED_START_NONE;
	int r = ret->pidfd = lr_proc_pidfd(rec->pid, rec->start_time);
	if (r < 0)
		return lr_fail(err, -r, "find the process that waits");
	r = ret->report = take(ret->pidfd, rec->seed_report, err);
	if (r >= 0)
		r = descriptor = take(ret->pidfd, rec->seed_descriptor, err);
	if (r >= 0 && rec->seed_lazy)
		r = lazy = take(ret->pidfd, rec->seed_lazy, err);
	if (r >= 0)
		r = lr_checkpoint_reopen(descriptor, lazy, &how, a, &ret->seed, err);
	if (r < 0) {
		lr_close(descriptor);
		lr_close(lazy);
		return r;
	}
	LR_CLEANUP_FD int cgroup = lr_cgroup_ref_clone_fd(&c->cgroup);
	return ret->seed.attend ? ret->seed.attend(ret->seed.arg, cgroup, err) : 0;
}

int lr_seeded_go(const struct lr_existing *c, struct lr_seeded_start *s, int answer,
		 struct lr_err *err)
{
	struct lr_init_child child = LR_INIT_CHILD_NONE;

	child.pid = c->record.pid;
	child.sync = answer;
	child.seed = &s->seed;
	child.report = s->report;
	int r = lr_init_continue(&child, err);
	lr_close(child.sync);
	/* Some of its processes may be there, and wait. */
	if (r < 0)
		(void)lr_pidfd_send_signal(s->pidfd, SIGKILL);
	return r;
}

void lr_seeded_start_close(struct lr_seeded_start *s)
{
	lr_init_seed_close(&s->seed);
	s->report = lr_close(s->report);
	s->pidfd = lr_close(s->pidfd);
}
