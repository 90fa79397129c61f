/* SPDX-License-Identifier: Apache-2.0 */
/* capture: what only a process itself can ask, by calls made in its held threads. */
#define LR_ROOM "capture"
#include <asm/prctl.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/state.h"
#include "src/sys/inner.h"
#include "src/sys/proc.h"
#include "src/sys/syscalls.h"
#include "src/sys/vectors.h"

#ifndef PR_GET_TID_ADDRESS
#define PR_GET_TID_ADDRESS 40
#endif
#ifndef __WALL
#define __WALL 0x40000000
#endif
/* Of <linux/prctl.h>: some headers are older. */
#ifndef PR_SPEC_L1D_FLUSH
#define PR_SPEC_L1D_FLUSH 2
#endif
#ifndef PR_GET_IO_FLUSHER
#define PR_GET_IO_FLUSHER 58
#endif
#ifndef PR_GET_MDWE
#define PR_GET_MDWE 66
#endif
#ifndef PR_GET_MEMORY_MERGE
#define PR_GET_MEMORY_MERGE 68
#endif
#define MEMBARRIER_GET (1 << 9) /* MEMBARRIER_CMD_GET_REGISTRATIONS of <linux/membarrier.h> */
#ifndef ARCH_GET_XCOMP_PERM
#define ARCH_GET_XCOMP_PERM 0x1022 /* <asm/prctl.h> of Linux 5.16 */
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* The calls of one thread, and the buffer that they write to. */
struct asking {
	struct lr_trace_call call[LR_TRACE_CALLS];
	size_t n, used;
	_Alignas(8) uint8_t buffer[LR_TRACE_BUFFER];
};

static struct lr_trace_call *ask(struct asking *q, long nr, uint64_t a0, uint64_t a1, uint64_t a2,
				 uint64_t a3)
{
	struct lr_trace_call *call = &q->call[q->n++];

	*call = (struct lr_trace_call){.nr = nr, .args = {a0, a1, a2, a3}};
	return call;
}

/* Room for an answer, which is argument `arg` of the call. Returns where it will be. */
static size_t answer(struct asking *q, struct lr_trace_call *call, unsigned arg, size_t size)
{
	size_t at = q->used;

	call->args[arg] = at;
	call->relative |= (uint8_t)(1U << arg);
	q->used += (size + 7) & ~(size_t)7;
	return at;
}

/* All that a thread is asked by; and membarrier(2), if the thread itself may call it. */
static const int asked_by[] = {SYS_arch_prctl,  SYS_brk,           SYS_getitimer, SYS_madvise,
			       SYS_mincore,     SYS_pkey_mprotect, SYS_prctl,     SYS_rt_sigaction,
			       SYS_sigaltstack, SYS_timer_gettime};

static bool allows(const struct cap *c, const struct lr_capture_filter *f, const int *by, size_t n)
{
	return c->opts->allows && c->opts->allows(f, by, n) &&
	       c->opts->allows(f, lr_trace_own, LR_TRACE_OWN);
}

/* Threads have the same, as a rule. */
static struct cap_may lets(struct cap *c, const struct lr_capture_filter *f)
{
	struct lr_capture_filter *last = c->filter;

	if (last && last->n == f->n && memcmp(last->code, f->code, f->n * sizeof(*f->code)) == 0)
		return c->filter_lets;
	c->filter_lets.ask = allows(c, f, asked_by, LR_ARRAY_SIZE(asked_by));
	c->filter_lets.barrier = allows(c, f, &(const int){SYS_membarrier}, 1);
	c->filter = lr_new(c->a, struct lr_capture_filter);
	if (c->filter)
		*c->filter = *f;
	return c->filter_lets;
}

/* What the thread's filters let through: for that they need not be suspended. Who may not read them does not know, and
 * can't suspend them: then nothing is asked that they may end it for. */
static struct cap_may may(struct cap *c, const struct cap_thread *t)
{
	struct cap_may all = {true, true, true};
	struct lr_capture_filter f;
	unsigned i = 0;
	int found;

	if (!t->seccomp)
		return all;
	for (; (found = lr_trace_filter(t->tid, i, f.code, LR_ARRAY_SIZE(f.code))) > 0; i++) {
		f.n = (size_t)found;
		const struct cap_may one = lets(c, &f);
		all.ask = all.ask && one.ask;
		all.barrier = all.barrier && one.barrier;
	}
	if (found == -ENOENT && i > 0)
		return all;
	return (struct cap_may){0};
}

/* The first `unwatched` of them only tell something, and the thread's filters let them through. */
static int call(struct cap *c, struct cap_process *p, struct cap_thread *t, struct asking *q,
		size_t unwatched, struct lr_err *err)
{
	const bool forks = q->call[q->n - 1].nr == SYS_clone;
	const struct lr_trace_work work = {
		.calls = q->call,
		.n = q->n,
		.unwatched = unwatched,
		.buffer = q->buffer,
		.twin = forks ? &p->twin : NULL,
	};

	int r = lr_trace_calls(&p->trace, t->tid, &work, err);
	if (r < 0 && work.twin) {
		/* It may be there all the same, or come yet, as the process makes its calls alone. */
		p->twin = p->twin ? p->twin : cap_tree_twin(c, p, false);
		p->twin_lost = !p->twin;
	}
	return r;
}

static int know_twin(struct cap_process *p, const struct lr_trace_call *fork, struct lr_err *err)
{
	if (fork->ret < 0) {
		lr_fail(err, (int)-fork->ret, "fork in process %d", p->pid);
		return lr_err_hint(err,
				   "is it, or its cgroup, at its limit of processes or memory?");
	}
	p->twin_inside = (pid_t)fork->ret;
	return 0;
}

/* ---- each thread ----------------------------------------------------------------------------- */

struct of_thread {
	struct lr_trace_call *alt, *tid, *death, *securebits, *mce, *flusher, *clock, *cpuid;
	struct lr_trace_call *speculation[LR_SEED_SPECULATIONS];
	size_t alt_at, tid_at, death_at, clock_at;
};

static struct of_thread ask_thread(struct asking *q)
{
	struct of_thread t;

	t.alt = ask(q, SYS_sigaltstack, 0, 0, 0, 0);
	t.alt_at = answer(q, t.alt, 1, sizeof(stack_t));
	t.tid = ask(q, SYS_prctl, PR_GET_TID_ADDRESS, 0, 0, 0);
	t.tid_at = answer(q, t.tid, 1, 8);
	t.death = ask(q, SYS_prctl, PR_GET_PDEATHSIG, 0, 0, 0);
	t.death_at = answer(q, t.death, 1, 8);
	t.securebits = ask(q, SYS_prctl, PR_GET_SECUREBITS, 0, 0, 0);
	t.mce = ask(q, SYS_prctl, PR_MCE_KILL_GET, 0, 0, 0);
	t.flusher = ask(q, SYS_prctl, PR_GET_IO_FLUSHER, 0, 0, 0);
	t.clock = ask(q, SYS_prctl, PR_GET_TSC, 0, 0, 0);
	t.clock_at = answer(q, t.clock, 1, 8);
	t.cpuid = ask(q, SYS_arch_prctl, ARCH_GET_CPUID, 0, 0, 0);
	for (unsigned i = 0; i < LR_SEED_SPECULATIONS; i++)
		t.speculation[i] = ask(q, SYS_prctl, PR_GET_SPECULATION_CTRL, i, 0, 0);
	return t;
}

/* 0 where the program has what the machine begins with: a child has what its own machine begins with. Of the flush
 * of the L1 cache that is "off", of the others "on". */
static uint32_t switched(unsigned which, int64_t says)
{
	const uint64_t off = PR_SPEC_DISABLE | PR_SPEC_FORCE_DISABLE | PR_SPEC_DISABLE_NOEXEC;
	const uint64_t other = which == PR_SPEC_L1D_FLUSH ? PR_SPEC_ENABLE : off;

	if (says < 0 || !(says & PR_SPEC_PRCTL))
		return 0;
	return (uint64_t)says & other ? (uint32_t)says & 0xff : 0;
}

static int read_thread(struct cap *c, const struct cap_process *p, const struct asking *q,
		       const struct of_thread *a, struct cap_thread *t, struct lr_err *err)
{
	stack_t alt;

	if (a->alt->ret < 0 || a->tid->ret < 0)
		return lr_fail(err, (int)-(a->alt->ret < 0 ? a->alt->ret : a->tid->ret),
			       "ask thread %d for its alternate stack and tid address", t->tid);
	memcpy(&alt, q->buffer + a->alt_at, sizeof(alt));
	t->seed.altstack = (uintptr_t)alt.ss_sp;
	t->seed.altstack_size = alt.ss_size;
	/* That it is in use is said by its stack pointer. */
	t->seed.altstack_flags = (uint32_t)alt.ss_flags & ~1U;
	memcpy(&t->seed.clear_tid, q->buffer + a->tid_at, 8);
	memcpy(&t->seed.pdeathsig, q->buffer + a->death_at, 4);
	t->cred.securebits = (uint32_t)a->securebits->ret;
	t->seed.mce_kill = a->mce->ret == PR_MCE_KILL_EARLY  ? 2
			   : a->mce->ret == PR_MCE_KILL_LATE ? 1
							     : 0;
	for (unsigned i = 0; i < LR_SEED_SPECULATIONS; i++)
		t->seed.speculation |= switched(i, a->speculation[i]->ret) << (8 * i);
	if (a->flusher->ret == 1)
		cap_refuse(c, p, "thread %u serves a block device (PR_SET_IO_FLUSHER)",
			   t->seed.tid);
	uint32_t clock = PR_TSC_ENABLE;
	if (a->clock->ret == 0)
		memcpy(&clock, q->buffer + a->clock_at, sizeof(clock));
	if (clock != PR_TSC_ENABLE)
		cap_refuse(c, p, "thread %u may not read the processor's clock (PR_SET_TSC)",
			   t->seed.tid);
	if (a->cpuid->ret == 0)
		cap_refuse(c, p, "thread %u may not ask what the processor is (ARCH_SET_CPUID)",
			   t->seed.tid);
	return 0;
}

/* ---- each process ---------------------------------------------------------------------------- */

struct of_process {
	struct lr_trace_call *brk, *dumpable, *subreaper, *timer[16];
	struct lr_trace_call *thp, *merge, *mdwe, *tiles, *map; /* map: NULL: nothing is locked */
	struct lr_trace_call *registered;                       /* NULL: `barrier` has what tells */
	struct lr_trace_call *barrier[LR_SEED_BARRIERS];
	struct lr_trace_call *key[16]; /* NULL: there are none here */
	size_t subreaper_at, tiles_at, itimer_at[3], timer_at[16], action_at[65], core_at;
};

/* struct sigaction as the kernel has it. */
struct kernel_action {
	uint64_t handler, flags, restorer, mask;
};

/* Where a page is free. */
static uint64_t hole(const struct cap_maps *m)
{
	uint64_t at = UINT64_C(1) << 28;

	for (size_t i = 0; i < m->n; i++)
		if (at < m->v[i].end && m->v[i].start < at + 2 * (uint64_t)LR_SEED_PAGE)
			at = m->v[i].end + LR_SEED_PAGE;
	return at;
}

/* No call tells of MCL_FUTURE; so a page is mapped. With it, that page is in memory at once; without, only when
 * it is touched. */
static void ask_locks(struct asking *q, const struct cap_process *p, struct of_process *a)
{
	const uint64_t at = hole(&p->maps);

	a->map = ask(q, SYS_mmap, at, LR_SEED_PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE);
	a->map->args[4] = UINT64_MAX;
	a->core_at = answer(q, ask(q, SYS_mincore, at, LR_SEED_PAGE, 0, 0), 2, 8);
	ask(q, SYS_munmap, at, LR_SEED_PAGE, 0, 0);
}

/* Before Linux 6.3 nobody is told what is registered; but a barrier that is asked for is made, or refused as it is not
 * registered. Only of the global one, anybody may ask for it. */
static void ask_barriers(struct asking *q, struct of_process *a)
{
	if (syscall(SYS_membarrier, MEMBARRIER_GET, 0, 0) >= 0) {
		a->registered = ask(q, SYS_membarrier, MEMBARRIER_GET, 0, 0, 0);
		return;
	}
	for (unsigned k = 1; k < LR_SEED_BARRIERS; k++)
		a->barrier[k] = ask(q, SYS_membarrier, LR_SEED_BARRIER_ASK(k), 0, 0, 0);
}

static uint32_t read_barriers(const struct of_process *a)
{
	const int64_t all = a->registered && a->registered->ret > 0 ? a->registered->ret : 0;
	uint32_t flags = 0;

	for (unsigned k = 0; k < LR_SEED_BARRIERS; k++)
		if (all & LR_SEED_BARRIER_REGISTER(k) || (a->barrier[k] && a->barrier[k]->ret == 0))
			flags |= LR_SEED_BARRIER(k);
	return flags;
}

/* Which are the program's: of others the kernel says that they are none, before it says that no memory is there. */
static void ask_keys(struct asking *q, struct of_process *a)
{
	const uint64_t nowhere = LR_SEED_TOP - LR_SEED_PAGE;

	for (uint64_t k = 1; k < LR_ARRAY_SIZE(a->key); k++)
		a->key[k] = ask(q, SYS_pkey_mprotect, nowhere, LR_SEED_PAGE, PROT_NONE, k);
}

static uint32_t read_keys(const struct of_process *a)
{
	uint32_t keys = 0;

	for (unsigned k = 1; k < LR_ARRAY_SIZE(a->key); k++)
		keys |= a->key[k] && a->key[k]->ret == -ENOMEM ? 1U << k : 0;
	return keys;
}

static void read_memory(const struct asking *q, const struct of_process *a, struct cap_process *p)
{
	const int64_t mdwe = a->mdwe->ret < 0 ? 0 : a->mdwe->ret;

	p->mm.thp_disable = a->thp->ret > 0 ? (uint32_t)a->thp->ret : 0;
	p->mm.flags = (a->merge->ret == 1 ? LR_SEED_MERGES : 0) | (mdwe & 1 ? LR_SEED_MDWE : 0) |
		      (mdwe & 2 ? LR_SEED_MDWE_NO_INHERIT : 0) | read_barriers(a);
	/* EAGAIN: it would have been locked, and RLIMIT_MEMLOCK has no room for another page. */
	if (a->map && (a->map->ret == -EAGAIN || q->buffer[a->core_at] & 1))
		p->mm.flags |= LR_SEED_LOCKS;
	p->mm.keys = read_keys(a);
}

static void ask_process(struct asking *q, const struct cap_process *p, bool barriers,
			struct of_process *a)
{
	a->brk = ask(q, SYS_brk, 0, 0, 0, 0);
	a->dumpable = ask(q, SYS_prctl, PR_GET_DUMPABLE, 0, 0, 0);
	a->subreaper = ask(q, SYS_prctl, PR_GET_CHILD_SUBREAPER, 0, 0, 0);
	a->subreaper_at = answer(q, a->subreaper, 1, 8);
	a->thp = ask(q, SYS_prctl, PR_GET_THP_DISABLE, 0, 0, 0);
	a->merge = ask(q, SYS_prctl, PR_GET_MEMORY_MERGE, 0, 0, 0);
	a->mdwe = ask(q, SYS_prctl, PR_GET_MDWE, 0, 0, 0);
	a->tiles = ask(q, SYS_arch_prctl, ARCH_GET_XCOMP_PERM, 0, 0, 0);
	a->tiles_at = answer(q, a->tiles, 1, 8);
	if (barriers)
		ask_barriers(q, a);
	if (p->locks)
		ask_locks(q, p, a);
	if (lr_vectors_has_keys())
		ask_keys(q, a);
	for (unsigned i = 0; i < 3; i++)
		a->itimer_at[i] =
			answer(q, ask(q, SYS_getitimer, i, 0, 0, 0), 1, sizeof(struct itimerval));
	for (size_t i = 0; i < p->n_timers; i++) {
		a->timer[i] = ask(q, SYS_timer_gettime, (uint64_t)p->timers[i].id, 0, 0, 0);
		a->timer_at[i] = answer(q, a->timer[i], 1, sizeof(struct itimerspec));
	}
	for (unsigned sig = 1; sig <= 64; sig++) {
		if (!(p->caught & UINT64_C(1) << (sig - 1)))
			continue;
		a->action_at[sig] = answer(q, ask(q, SYS_rt_sigaction, sig, 0, 0, 8), 2,
					   sizeof(struct kernel_action));
	}
}

/* Before Linux 5.16 there are none. */
static void read_tiles(const struct asking *q, const struct of_process *a, struct cap_process *p)
{
	uint64_t may = 0;

	if (a->tiles->ret == 0)
		memcpy(&may, q->buffer + a->tiles_at, sizeof(may));
	if (may & LR_VECTORS_TILE_DATA)
		p->seed.flags |= LR_SEED_TILES;
}

static void read_timers(const struct asking *q, const struct of_process *a, struct cap_process *p)
{
	for (unsigned i = 0; i < 3; i++) {
		struct itimerval v;
		memcpy(&v, q->buffer + a->itimer_at[i], sizeof(v));
		p->seed.itimers[2 * i] =
			v.it_interval.tv_sec * INT64_C(1000000) + v.it_interval.tv_usec;
		p->seed.itimers[2 * i + 1] =
			v.it_value.tv_sec * INT64_C(1000000) + v.it_value.tv_usec;
	}
	for (size_t i = 0; i < p->n_timers; i++) {
		struct itimerspec v;
		memcpy(&v, q->buffer + a->timer_at[i], sizeof(v));
		p->timers[i].interval =
			v.it_interval.tv_sec * INT64_C(1000000000) + v.it_interval.tv_nsec;
		p->timers[i].left = v.it_value.tv_sec * INT64_C(1000000000) + v.it_value.tv_nsec;
	}
}

static int read_actions(struct cap *c, const struct asking *q, const struct of_process *a,
			struct cap_process *p, struct lr_err *err)
{
	for (unsigned sig = 1; sig <= 64; sig++) {
		struct kernel_action k = {0};
		if (!(p->caught & UINT64_C(1) << (sig - 1)))
			continue;
		memcpy(&k, q->buffer + a->action_at[sig], sizeof(k));
		if (!k.handler && !k.flags && !k.mask)
			continue;
		struct lr_seed_action *v = lr_grow(c->a, p->actions, p->n_actions, sizeof(*v));
		if (!v)
			return lr_fail(err, ENOMEM, "read the signal actions of process %d",
				       p->pid);
		p->actions = v;
		v[p->n_actions++] =
			(struct lr_seed_action){sig, 0, k.handler, k.flags, k.restorer, k.mask};
	}
	return 0;
}

/* Whoever goes on where the process was needs all of its memory: V8 withholds what JavaScript has from
 * forks, which Node.js makes only to execute another program. */
static int advise_withheld(struct cap *c, struct cap_process *p, int advice, struct lr_err *err)
{
	struct asking q = {0};
	int r = 0;

	for (size_t i = 0; r >= 0 && i < p->maps.n; i++) {
		const struct cap_vma *v = &p->maps.v[i];
		if (v->flags & LR_SEED_DONTFORK)
			ask(&q, SYS_madvise, v->start, v->end - v->start, (uint64_t)advice, 0);
		if (q.n && (q.n == LR_TRACE_CALLS || i + 1 == p->maps.n)) {
			r = call(c, p, &p->threads[0], &q, p->lets.ask ? q.n : 0, err);
			q.n = 0;
		}
	}
	return r;
}

/* The leader's, and at their end the fork. */
static int ask_leader(struct cap *c, struct cap_process *p, struct lr_err *err)
{
	struct of_process a = {0};
	struct asking q = {0};

	if (p->n_timers > LR_ARRAY_SIZE(a.timer))
		return lr_refuse(err, ENOTSUP, "process %d has %zu timers; %zu are the most",
				 p->pid, p->n_timers, LR_ARRAY_SIZE(a.timer));
	struct of_thread t = ask_thread(&q);
	ask_process(&q, p, p->lets.barrier, &a);
	const size_t asked = p->lets.ask ? q.n : 0;
	const struct lr_trace_call *fork = ask(&q, SYS_clone, 0, 0, 0, 0);
	int r = call(c, p, &p->threads[0], &q, asked, err);
	if (r >= 0)
		r = know_twin(p, fork, err);
	if (r >= 0)
		r = read_thread(c, p, &q, &t, &p->threads[0], err);
	if (r < 0)
		return r;
	p->mm.brk = (uint64_t)a.brk->ret;
	p->seed.dumpable = (uint32_t)a.dumpable->ret;
	memcpy(&p->seed.subreaper, q.buffer + a.subreaper_at, 4);
	read_tiles(&q, &a, p);
	read_timers(&q, &a, p);
	read_memory(&q, &a, p);
	return read_actions(c, &q, &a, p, err);
}

static int take_leader(struct cap *c, struct cap_process *p, struct lr_err *err)
{
	p->lets = may(c, &p->threads[0]);
	int r = advise_withheld(c, p, MADV_DOFORK, err);
	if (r >= 0)
		r = ask_leader(c, p, err);
	const int back = advise_withheld(c, p, MADV_DONTFORK, r < 0 ? NULL : err);
	return r < 0 ? r : back;
}

/* To the kernel that is short of memory, also while it makes the next one: a seed can be made again. */
static int expose(pid_t twin, struct lr_err *err)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", twin);
	LR_CLEANUP_FD int fd = lr_open(path, O_WRONLY | O_CLOEXEC);
	/* Who may not do that leaves it as its process is. */
	if ((fd >= 0 && write(fd, "1000", 4) == 4) || errno == EACCES || errno == EPERM)
		return 0;
	return lr_fail(err, errno, "have the copy of a process killed before others (%s)", path);
}

int cap_inside_take(struct cap *c, struct cap_process *p, struct lr_err *err)
{
	int r = 0;

	/* When its twin is taken away, its number may be another's. */
	p->pidfd = lr_pidfd_open(p->pid, 0);
	if (p->pidfd < 0)
		return lr_fail(err, -p->pidfd, "know process %d again", p->pid);
	/* The other threads first: what one takes for its calls is given back before the fork. */
	for (size_t i = 1; r >= 0 && i < p->n_threads; i++) {
		struct asking q = {0};
		struct of_thread t = ask_thread(&q);
		const size_t asked = may(c, &p->threads[i]).ask ? q.n : 0;
		r = call(c, p, &p->threads[i], &q, asked, err);
		if (r >= 0)
			r = read_thread(c, p, &q, &t, &p->threads[i], err);
	}
	if (r >= 0)
		r = take_leader(c, p, err);
	return r < 0 ? r : expose(p->twin, err);
}

void cap_inside_end(struct cap_process *p)
{
	if (p->twin)
		lr_trace_end_twin(p->twin);
	p->twin = 0;
}

/* Since its twin was made it has run, and may have executed another program: what was known of its
 * memory is that of the old one then, which a child may still have. A filter is suspended, so it is not
 * sent to where its new memory has something else. */
static int call_anew(pid_t pid, const struct lr_trace_work *work)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct cap_maps now;
	struct lr_trace_process trace;
	int r = cap_maps_read(a, pid, "maps", &now, NULL);

	if (r >= 0)
		r = lr_trace_open(pid, now.vdso, now.vdso_end, &trace, NULL);
	if (r < 0)
		return r;
	r = lr_trace_calls(&trace, pid, work, NULL);
	lr_trace_close(&trace);
	return r;
}

/* 1: it is; 0: somebody else has waited for it, and its number may be another's; -EAGAIN: it has not
 * ended yet; or another negative errno. */
static int is_there(const struct cap_dead *d, struct lr_proc_stat *st)
{
	int r = lr_proc_stat(d->pid, st);

	if (r < 0)
		return r == -ESRCH ? 0 : r;
	if (st->start_time != d->start_time)
		return 0;
	return st->state == 'Z' ? 1 : -EAGAIN;
}

/* One that was found later was never ours to wait for, and memory takes its time. */
static void await_end(const struct cap_dead *d)
{
	struct lr_proc_stat st;

	for (unsigned i = 0; i < 1000 && is_there(d, &st) == -EAGAIN; i++)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static int wait_inside(const struct cap_process *p, const struct cap_dead *d)
{
	struct asking q = {0};
	struct lr_proc_stat st;
	int r = lr_trace_hold(p->pid, NULL);

	if (r < 0)
		return r;
	ask(&q, SYS_wait4, (uint64_t)d->inside, 0, WNOHANG | (uint64_t)(uint32_t)__WALL, 0);
	const struct lr_trace_work work = {.calls = q.call, .n = q.n, .buffer = q.buffer};
	const int there = d->start_time ? is_there(d, &st) : 1;
	if (there < 0)
		r = there;
	else if (there && !cap_has_ended(p->pidfd))
		r = call_anew(p->pid, &work);
	lr_trace_let_go(p->pid);
	return r;
}

/* Whose child it is, now that its parent has ended: that one knows of it as little. */
static const struct cap_process *heir(const struct cap *c, const struct cap_dead *d)
{
	struct lr_proc_stat st;

	if (is_there(d, &st) <= 0)
		return NULL;
	for (size_t i = 0; i < c->n; i++)
		if (c->p[i].pid == st.ppid && c->p[i].twin_inside > 0)
			return &c->p[i];
	return NULL;
}

void cap_inside_end_running(struct cap *c, struct cap_process *p)
{
	struct lr_proc_stat st = {0};

	for (unsigned i = 0; p->twin_lost && !p->twin && i < 300; i++) {
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		p->twin = cap_tree_twin(c, p, true);
	}
	if (!p->twin)
		return;
	/* Without its number, as the process knows it, others might be taken from the process. */
	if (p->twin_inside <= 0)
		p->twin_inside = (pid_t)lr_inner_pid(p->twin, NULL);
	(void)!lr_proc_stat(p->twin, &st);
	p->dead = (struct cap_dead){p->twin, p->twin_inside, st.start_time};
	cap_inside_end(p);
	await_end(&p->dead);
}

/* It is a child of the process, which does not know of it. */
void cap_inside_reap(struct cap *c, struct cap_process *p)
{
	const struct cap_process *by = p;

	for (unsigned i = 0; i < 3 && p->dead.inside > 0 && wait_inside(by, &p->dead) < 0; i++) {
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		const struct cap_process *other = heir(c, &p->dead);
		by = other ? other : by;
	}
}

bool cap_has_ended(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	int n;

	do
		n = poll(&p, 1, 0);
	while (n < 0 && (errno == EINTR || errno == ENOMEM));
	return n != 0;
}
