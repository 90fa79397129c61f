/* SPDX-License-Identifier: Apache-2.0 */
/* capture: memory, descriptors and working directories: what processes share, and what threads of one do not. */
#define LR_ROOM "capture"
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/state.h"
#include "src/sys/proc.h"

/* Types of kcmp(2), as in <linux/kcmp.h>, which not every system has. */
enum { VM = 1, FILES, FS };

static const struct {
	int type;
	const char *shared;
} kinds[] = {{VM, "memory"}, {FILES, "descriptors"}, {FS, "a working directory"}};

#define OF_THREADS 1 /* the first kind that a thread may have for itself: memory it may not */

_Static_assert(LR_ARRAY_SIZE(kinds) == CAP_SHARED, "a tree for each");

/* ---- what processes share ---------------------------------------------------------------------- */

/* Of a search: by what it compares, and where kcmp(2) could not tell. */
struct asked {
	unsigned kind;
	pid_t with;
	int code; /* 0: it could */
};

static const struct cap_process *process_of(const struct lr_treap_node *n, unsigned kind)
{
	return (const void *)((const char *)n - offsetof(struct cap_process, order) -
			      kind * sizeof(*n));
}

static int by_shared(void *arg, const struct lr_treap_node *a, const struct lr_treap_node *b)
{
	struct asked *x = arg;
	const pid_t pid = process_of(a, x->kind)->pid, with = process_of(b, x->kind)->pid;
	const long r = syscall(SYS_kcmp, pid, with, kinds[x->kind].type, 0, 0);

	if (r < 0 && errno != ESRCH) {
		x->code = errno;
		x->with = with;
	}
	return cap_order_of(r);
}

/* What can't be told is not there, for all one knows; so it is refused, too. */
static void refuse_shared(struct cap *c, struct cap_process *p, unsigned kind)
{
	struct asked x = {.kind = kind};
	const struct cap_process *parent = cap_process_of(c, p->parent), *with = NULL;
	struct lr_treap_node *n = &p->order[kind];

	/* The parent is asked first, as it is to be named: after vfork(2) it waits for this process
	 * (n_passing). */
	if (parent && parent != p && !(parent->seed.flags & LR_SEED_ZOMBIE) &&
	    by_shared(&x, n, &parent->order[kind]) == 0)
		with = parent;
	const struct lr_treap_node *was = lr_treap_put(&c->shared[kind], n, by_shared, &x);
	if (was != n && !with)
		with = process_of(was, kind);
	if (with) {
		cap_refuse(c, p, "%s that it shares with process %d", kinds[kind].shared,
			   with->pid);
		c->n_passing += kinds[kind].type == VM && with == parent;
		p->shares_table = p->shares_table || (kinds[kind].type == FILES && was != n);
	} else if (x.code) {
		cap_refuse(c, p, "%s that it may share with process %d: kcmp(2) says %s",
			   kinds[kind].shared, x.with, lr_strerror(x.code));
	}
}

/* ---- what threads have of their own ------------------------------------------------------------ */

/* A thread that is ending has neither any more. And once it has ended, its number may be another's. */
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

/* Below 0: it can't be told. */
static long personality_of(pid_t tid)
{
	char path[40], text[16];

	snprintf(path, sizeof(path), "/proc/%d/personality", tid);
	return lr_read_file_at(AT_FDCWD, path, text, sizeof(text)) > 0 ? strtol(text, NULL, 16)
								       : -1;
}

/* A child's threads get their leader's. While they run, as that is a file for each of them. */
static void refuse_personalities(struct cap *c, const struct cap_process *p)
{
	const long all = p->n_threads > 1 ? personality_of(p->pid) : -1;

	for (size_t i = 0; all >= 0 && i < p->n_threads; i++) {
		const struct cap_thread *t = &p->threads[i];
		const long its = t->tid == p->pid ? all : personality_of(t->tid);
		if (its >= 0 && its != all && !has_ended(p, t))
			cap_refuse(c, p, "thread %u has a personality(2) of its own", t->seed.tid);
	}
}

void cap_shares_refuse(struct cap *c, struct cap_process *p)
{
	if (p->seed.flags & LR_SEED_ZOMBIE)
		return;
	if (!c->holds)
		refuse_personalities(c, p);
	for (unsigned kind = 0; kind < CAP_SHARED; kind++)
		refuse_shared(c, p, kind);
	for (size_t i = 0; i < p->n_threads; i++) {
		const struct cap_thread *t = &p->threads[i];
		for (unsigned kind = OF_THREADS; t->tid != p->pid && kind < CAP_SHARED; kind++)
			refuse_own(c, p, t, kind);
	}
}
