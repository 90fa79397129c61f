/* SPDX-License-Identifier: Apache-2.0 */
/* capture: memory, descriptors and working directories: what processes share, and what threads of one do not. */
#define LR_ROOM "capture"
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/str.h"
#include "src/capture/state.h"
#include "src/sys/proc.h"

/* Of kcmp(2), which <linux/kcmp.h> has, if there is one. */
#define KCMP_VM 1

static const struct {
	int type; /* of kcmp(2) */
	const char *shared;
} kinds[] = {{KCMP_VM, "memory"}, {2, "descriptors"}, {3, "a working directory"}};

_Static_assert(LR_ARRAY_SIZE(kinds) == LR_ARRAY_SIZE(((struct cap *)0)->shared), "a tree for each");
_Static_assert(LR_ARRAY_SIZE(kinds) == LR_ARRAY_SIZE(((struct cap_process *)0)->order), "the same");

/* ---- what processes share ---------------------------------------------------------------------- */

/* Who is asked for, of what, and what could not be told. */
struct asked {
	unsigned kind;
	pid_t with;
	int code;
};

static const struct cap_process *process_of(const struct lr_tree_node *n, unsigned kind)
{
	return (const void *)((const char *)n - offsetof(struct cap_process, order) -
			      kind * sizeof(*n));
}

/* kcmp(2) has an order: 1 is below, 2 above. */
static int by_shared(void *arg, const struct lr_tree_node *a, const struct lr_tree_node *b)
{
	struct asked *x = arg;
	const pid_t with = process_of(b, x->kind)->pid;
	const long r =
		syscall(SYS_kcmp, with, process_of(a, x->kind)->pid, kinds[x->kind].type, 0, 0);

	if (r < 0 && errno != ESRCH) {
		x->code = errno;
		x->with = with;
	}
	return r == 0 ? 0 : r == 1 ? 1 : -1;
}

/* What can't be told is not there, for all one knows; so it is refused, too. */
static void refuse_shared(struct cap *c, struct cap_process *p, unsigned kind)
{
	struct asked x = {.kind = kind};
	const struct cap_process *parent = cap_process_of(c, p->parent), *with = NULL;
	struct lr_tree_node *n = &p->order[kind];

	/* As after vfork(2), until it executes a program. */
	if (parent && parent != p && !(parent->seed.flags & LR_SEED_ZOMBIE) &&
	    by_shared(&x, n, &parent->order[kind]) == 0)
		with = parent;
	const struct lr_tree_node *was = lr_tree_put(&c->shared[kind], n, by_shared, &x);
	if (was != n && !with)
		with = process_of(was, kind);
	if (with) {
		cap_refuse(c, p, "%s that it shares with process %d", kinds[kind].shared,
			   with->pid);
		c->n_passing += kinds[kind].type == KCMP_VM && with == parent;
	} else if (x.code) {
		cap_refuse(c, p, "%s that it may share with process %d: kcmp(2) says %s",
			   kinds[kind].shared, x.with, lr_strerror(x.code));
	}
}

/* ---- what threads have of their own ------------------------------------------------------------ */

/* Of one that is on its way out there is nothing left to compare; and a number may be another's by now. */
static bool has_ended(const struct cap_process *p, const struct cap_thread *t)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", p->pid, t->tid);
	return access(path, F_OK) < 0 || lr_proc_dies(t->tid) || lr_proc_dies(p->pid);
}

static void refuse_own(struct cap *c, const struct cap_process *p, const struct cap_thread *t,
		       unsigned kind)
{
	const long r = syscall(SYS_kcmp, p->pid, t->tid, kinds[kind].type, 0, 0);
	const int code = errno;

	if (r == 0 || (r < 0 && code == ESRCH) || has_ended(p, t))
		return;
	if (r > 0)
		cap_refuse(c, p, "thread %u has %s of its own", t->seed.tid, kinds[kind].shared);
	else
		cap_refuse(c, p, "thread %u may have %s of its own: kcmp(2) says %s", t->seed.tid,
			   kinds[kind].shared, lr_strerror(code));
}

void cap_shares_refuse(struct cap *c, struct cap_process *p)
{
	if (p->seed.flags & LR_SEED_ZOMBIE)
		return;
	for (unsigned kind = 0; kind < LR_ARRAY_SIZE(kinds); kind++)
		refuse_shared(c, p, kind);
	for (size_t i = 0; i < p->n_threads; i++)
		for (unsigned kind = 1; p->threads[i].tid != p->pid && kind < LR_ARRAY_SIZE(kinds);
		     kind++)
			refuse_own(c, p, &p->threads[i], kind);
}
