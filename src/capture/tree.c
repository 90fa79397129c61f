/* SPDX-License-Identifier: Apache-2.0 */
/* capture: the tree of processes: who is in it, and to stop and start all of it. */
#define LR_ROOM "capture"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/state.h"
#include "src/sys/children.h"
#include "src/sys/proc.h"
#include "src/sys/syscalls.h"

#define MOST_TOLD 200

void cap_refuse(struct cap *c, const struct cap_process *p, const char *fmt, ...)
{
	va_list ap;

	/* Each line is more to copy, and a program may have a million of them. */
	if (c->n_refusals++ > MOST_TOLD)
		return;
	va_start(ap, fmt);
	char *why = c->n_refusals > MOST_TOLD ? (char *)"and more" : lr_strfv(c->a, fmt, ap);
	va_end(ap);
	const char *name = p->n_threads ? p->threads[0].seed.name : "?";
	char *line =
		lr_strf(c->a, "process %d (%s): %s", p->pid, name, why ? why : "out of memory");
	/* A process's name, and a file's, may have lines. */
	for (char *at = line ? strchr(line, '\n') : NULL; at; at = strchr(at, '\n'))
		*at = '?';
	char *all = line ? lr_concat(c->a, c->refusals ? c->refusals : "", line, "\n", NULL) : NULL;
	c->refusals = all ? all : c->refusals;
}

/* ---- whose a number is ------------------------------------------------------------------------- */

const struct cap_process *cap_process_of(const struct cap *c, pid_t pid)
{
	size_t i;

	return cap_index_find(&c->known, 0, (uint64_t)pid, &i) ? &c->p[i] : NULL;
}

static int note_known(struct cap *c, struct lr_err *err)
{
	int r = 0;

	c->known = (struct cap_index){0};
	for (size_t i = 0; r >= 0 && i < c->n; i++)
		r = cap_index_put(c->a, &c->known, 0, (uint64_t)c->p[i].pid, i);
	return r < 0 ? lr_fail(err, -r, "list the processes") : 0;
}

#define THREAD_AT (CAP_INNER_PID + 1) /* one more kind: which of its process's threads that is */

int cap_members_note(struct cap *c, struct lr_err *err)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < c->n; i++) {
		const struct cap_process *p = &c->p[i];
		r = cap_index_put(c->a, &c->members, CAP_GROUP, (uint64_t)p->group, i);
		if (r >= 0)
			r = cap_index_put(c->a, &c->members, CAP_INNER_PID, p->seed.pid, i);
		for (size_t k = 0; r >= 0 && k < p->n_threads; k++) {
			const uint64_t tid = (uint64_t)p->threads[k].tid;
			r = cap_index_put(c->a, &c->members, CAP_THREAD, tid, i);
			if (r >= 0)
				r = cap_index_put(c->a, &c->members, THREAD_AT, tid, k);
		}
	}
	return r < 0 ? lr_fail(err, -r, "list the processes") : 0;
}

const struct cap_process *cap_member_of(const struct cap *c, enum cap_member kind, uint32_t number)
{
	size_t i;

	return cap_index_find(&c->members, kind, number, &i) ? &c->p[i] : NULL;
}

const struct cap_thread *cap_thread_of(const struct cap *c, pid_t tid)
{
	const struct cap_process *p = cap_member_of(c, CAP_THREAD, (uint32_t)tid);
	size_t k;

	return p && cap_index_find(&c->members, THREAD_AT, (uint64_t)tid, &k) ? &p->threads[k]
									      : NULL;
}

/* ---- who is there ------------------------------------------------------------------------------ */

/* A twin whose maker was killed is left as a child that has ended, without a signal. Nobody has seen
 * it, and its like in what comes of the seed would be a child that nobody there has made. */
static bool is_dead_twin(const struct lr_proc_stat *st)
{
	return st->state == 'Z' && !st->exit_signal;
}

/* 0: it doesn't count. */
static int add_process(struct cap *c, pid_t pid, pid_t parent, struct lr_err *err)
{
	struct lr_proc_stat st;
	bool known = lr_proc_stat(pid, &st) == 0;

	if (parent && known && is_dead_twin(&st))
		return 0;
	struct cap_process *v = lr_grow(c->a, c->p, c->n, sizeof(*v));
	if (!v || cap_index_put(c->a, &c->known, 0, (uint64_t)pid, c->n) < 0)
		return lr_fail(err, ENOMEM, "list the processes");
	c->p = v;
	memset(&v[c->n], 0, sizeof(*v));
	v[c->n].pid = pid;
	v[c->n].parent = parent;
	v[c->n].trace.memfd = v[c->n].pidfd = v[c->n].mem = LR_NOFD;
	if (known && st.state == 'Z')
		v[c->n].seed.flags = LR_SEED_ZOMBIE;
	c->n++;
	return 1;
}

/* Threads that are not known yet. Returns how many, or a negative errno. */
static int list_threads(struct cap *c, size_t i, struct lr_err *err)
{
	struct cap_index known = {0};
	struct lr_dir d;
	char path[40];
	int found = 0;

	for (size_t k = 0; k < c->p[i].n_threads; k++)
		if (cap_index_put(c->a, &known, 0, (uint64_t)c->p[i].threads[k].tid, k) < 0)
			return lr_fail(err, ENOMEM, "list the threads of process %d", c->p[i].pid);
	snprintf(path, sizeof(path), "/proc/%d/task", c->p[i].pid);
	LR_CLEANUP_FD int fd = lr_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return lr_fail(err, errno, "list the threads of process %d", c->p[i].pid);
	lr_dir_begin(&d, fd);
	for (const struct lr_dirent *e; (e = lr_dir_next(&d));) {
		struct cap_process *p = &c->p[i];
		pid_t tid = (pid_t)atoi(e->name);
		if (tid <= 0 || cap_index_find(&known, 0, (uint64_t)tid, NULL))
			continue;
		struct cap_thread *t = lr_grow(c->a, p->threads, p->n_threads, sizeof(*t));
		if (!t || cap_index_put(c->a, &known, 0, (uint64_t)tid, p->n_threads) < 0)
			return lr_fail(err, ENOMEM, "list the threads of process %d", p->pid);
		p->threads = t;
		memset(&t[p->n_threads], 0, sizeof(*t));
		t[p->n_threads].tid = tid;
		if (c->holds)
			cap_restart_look(c, p->pid, &t[p->n_threads]);
		p->n_threads++;
		found++;
	}
	if (errno)
		return lr_fail(err, errno, "list the threads of process %d", c->p[i].pid);
	return found;
}

/* Children of all threads that are not known yet. */
static int list_children(struct cap *c, size_t i, struct lr_err *err)
{
	int found = 0;

	for (size_t k = 0; k < c->p[i].n_threads; k++) {
		LR_CLEANUP_CHILDREN struct lr_children of;
		pid_t pid;
		lr_children_open(&of, c->p[i].pid, c->p[i].threads[k].tid);
		while ((pid = lr_children_next(&of)) > 0) {
			if (cap_index_find(&c->known, 0, (uint64_t)pid, NULL))
				continue;
			int r = add_process(c, pid, c->p[i].pid, err);
			if (r < 0)
				return r;
			found += r;
		}
		if (pid < 0 && pid != -ENOENT && pid != -ESRCH)
			return lr_fail(err, -pid, "list the children of thread %d",
				       c->p[i].threads[k].tid);
	}
	return found;
}

pid_t cap_tree_twin(struct cap *c, const struct cap_process *p, bool dead)
{
	LR_CLEANUP_CHILDREN struct lr_children of;
	struct lr_proc_stat st;
	pid_t pid;

	lr_children_open(&of, p->pid, p->pid);
	while ((pid = lr_children_next(&of)) > 0)
		if (!cap_process_of(c, pid) && lr_proc_stat(pid, &st) == 0 && !st.exit_signal &&
		    is_dead_twin(&st) == dead)
			return pid;
	return 0;
}

/* It has ended, and somebody has waited for it. Its children are found as another's, or have found one
 * already (adopt). */
static void forget(struct cap *c, size_t i)
{
	memmove(&c->p[i], &c->p[i + 1], (c->n - i - 1) * sizeof(*c->p));
	c->n--;
}

int cap_tree_look(struct cap *c, struct lr_err *err)
{
	int r = note_known(c, err), found = 0;
	bool forgot = false;

	if (r >= 0 && !c->n)
		r = found = add_process(c, c->opts->pid, 0, err);
	for (size_t i = 0; r >= 0 && i < c->n; i++) {
		r = list_threads(c, i, err);
		if (i && (r == -ENOENT || r == -ESRCH)) {
			forget(c, i--);
			forgot = true;
			r = 0;
		} else if (r >= 0) {
			found += r;
			r = list_children(c, i, err);
			found += r >= 0 ? r : 0;
		}
	}
	/* A number of one that is gone may be a new process's, which was taken for it: so there is another look. */
	if (r >= 0 && forgot) {
		r = note_known(c, err);
		found++;
	}
	return r < 0 ? r : found;
}

/* Its number may have become another's since the list was read, and that one be of the host's. Who
 * is held keeps it. */
static bool is_of(const struct cap_process *p, pid_t tid)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", p->pid, tid);
	return access(path, F_OK) == 0;
}

static int hold_thread(const struct cap_process *p, pid_t tid, struct lr_err *err)
{
	int r = lr_trace_hold(tid, err);

	if (r < 0 || is_of(p, tid))
		return r;
	lr_trace_let_go(tid);
	return lr_fail(err, ESRCH, "hold thread %d", tid);
}

static int hold_threads(struct cap_process *p, struct lr_err *err)
{
	if (p->seed.flags & LR_SEED_ZOMBIE)
		return 0;
	for (size_t k = 0; k < p->n_threads; k++) {
		struct cap_thread *t = &p->threads[k];
		if (t->held)
			continue;
		int r = hold_thread(p, t->tid, err);
		if (r == -ESRCH && k) {
			/* A thread that ended meanwhile. */
			*t = p->threads[--p->n_threads];
			k--;
			continue;
		}
		if (r < 0)
			return r;
		t->held = true;
	}
	return 0;
}

static int hold_processes(struct cap *c, struct lr_err *err)
{
	for (size_t i = 0; i < c->n; i++) {
		struct lr_proc_stat st;
		int r = hold_threads(&c->p[i], err);
		if (r == -ESRCH && i && !c->p[i].threads[0].held) {
			/* It ends: nobody has waited for it yet, or the next look forgets it. */
			if (lr_proc_stat(c->p[i].pid, &st) == 0 && st.state == 'Z')
				c->p[i].seed.flags = LR_SEED_ZOMBIE;
			r = 0;
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static bool all_held(const struct cap *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (!(c->p[i].seed.flags & LR_SEED_ZOMBIE) &&
		    (!c->p[i].n_threads || !c->p[i].threads[0].held))
			return false;
	return true;
}

/* Whose parent has ended since it was found has another one, further up. */
static int adopt(struct cap *c, struct lr_err *err)
{
	for (size_t i = 1; i < c->n; i++) {
		struct lr_proc_stat st;
		const bool told = lr_proc_stat(c->p[i].pid, &st) >= 0;
		const struct cap_process *parent = told ? cap_process_of(c, st.ppid) : NULL;
		if (!parent || parent >= &c->p[i])
			return lr_refuse(err, EAGAIN, "process %d has lost its parent",
					 c->p[i].pid);
		/* It was alive when it was found: the next attempt leaves it out. */
		if (is_dead_twin(&st))
			return lr_refuse(err, EAGAIN, "process %d is a twin that has just ended",
					 c->p[i].pid);
		c->p[i].parent = st.ppid;
	}
	return 0;
}

#define ROUNDS_MS 1000

/* Until nobody is left who could make a new one: who is held makes none, so there are ever fewer. */
int cap_tree_hold(struct cap *c, struct lr_err *err)
{
	const int64_t until = lr_now_ms() + ROUNDS_MS;

	do {
		int r = hold_processes(c, err);
		int found = r < 0 ? r : cap_tree_look(c, err);
		if (found < 0)
			return found;
		if (!found && all_held(c))
			return adopt(c, err);
	} while (lr_now_ms() < until);
	return lr_refuse(err, EAGAIN, "there are ever new processes or threads");
}

void cap_tree_let_go(struct cap *c)
{
	cap_strangers_let_go(c);
	for (size_t i = 0; i < c->n; i++) {
		struct cap_process *p = &c->p[i];
		for (size_t k = 0; k < p->n_threads; k++) {
			if (p->threads[k].held)
				lr_trace_let_go(p->threads[k].tid);
			p->threads[k].held = false;
		}
	}
}

bool cap_tree_bury(struct cap *c)
{
	bool all = true;

	for (size_t i = 0; i < c->n; i++) {
		struct cap_process *p = &c->p[i];
		bool others = false;
		/* The first one can be waited for when all others have been. */
		for (size_t k = p->n_threads; k-- > 0;) {
			struct cap_thread *t = &p->threads[k];
			t->held = t->held && ((!k && others) || !lr_trace_is_gone(t->tid));
			others = others || t->held;
		}
		all = all && !others;
	}
	return all;
}
