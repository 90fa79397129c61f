/* SPDX-License-Identifier: Apache-2.0 */
/* capture: the order of things; see capture.h. */
#define LR_ROOM "capture"
#include "src/capture/capture.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/base/fd.h"
#include "src/capture/state.h"
#include "src/capture/watches.h"
#include "src/sys/proc.h"
#include "src/sys/syscalls.h"

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

#define END_MS    3000 /* memory takes its time */
#define KILLED_MS 100

static int refused(const struct cap *c, struct lr_err *err)
{
	if (!c->n_refusals)
		return 0;
	lr_refuse(err, ENOTSUP, "%zu of its resources can't be carried", c->n_refusals);
	lr_err_hint(err, "the engine criu carries more");
	return c->n_passing == c->n_refusals ? -EAGAIN : -ENOTSUP;
}

static int note(struct cap_before *b, struct cap_index *whom, const struct cap_process *p,
		struct lr_err *err)
{
	int r = cap_index_put(b->a, whom, p->start_time, (uint64_t)p->pid, 0);

	return r < 0 ? lr_fail(err, -r, "list the processes") : 0;
}

bool cap_was_seen(const struct cap_before *b, const struct cap_process *p)
{
	return p->start_time && cap_index_find(&b->seen, p->start_time, (uint64_t)p->pid, NULL);
}

int cap_note_withheld(struct cap_before *b, const struct cap_process *p, struct lr_err *err)
{
	return note(b, &b->withhold, p, err);
}

static bool has_withheld(const struct cap_maps *m)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->v[i].flags & LR_SEED_DONTFORK)
			return true;
	return false;
}

static int look_inside(struct cap *c, struct cap_process *p, const char *maps, struct lr_err *err)
{
	/* Other flags are looked up in the twin, which has none of the locks; and what is withheld from
	 * forks it has only if it is known (inside.c). */
	struct cap_before *b = c->before;
	const bool flags = p->locks || !cap_was_seen(b, p) ||
			   cap_index_find(&b->withhold, p->start_time, (uint64_t)p->pid, NULL);
	int r = cap_maps_read(c->a, p->pid, flags ? "smaps" : maps, &p->maps, err);

	if (r >= 0 && has_withheld(&p->maps))
		r = cap_note_withheld(b, p, err);
	/* Of who is new when all are held nothing is known yet. */
	if (r >= 0 && !c->holds)
		r = note(b, &b->seen, p, err);
	if (r < 0)
		return r;
	cap_maps_refuse(c, p);
	return cap_files_look(c, p, err);
}

/* Who is not held yet may end at any time, and is no concern then. */
static bool has_gone(const struct cap_process *p, int r)
{
	return (r == -ENOENT || r == -ESRCH) && !(p->n_threads && p->threads[0].held);
}

static void tell_refusal(void *capture, const char *what)
{
	struct cap *c = capture;

	cap_refuse(c, c->p, "%s", what);
}

/* lr_capture.look */
static int let_caller_look(struct cap *c, struct lr_err *err)
{
	const struct lr_capture_refuse refuse = {tell_refusal, c};

	return c->opts->look ? c->opts->look(c->opts->look_arg, c->holds, &refuse, err) : 0;
}

/* pid: the first process, or its twin */
static void let_caller_look_at_spaces(struct cap *c, pid_t pid)
{
	const struct lr_capture_refuse refuse = {tell_refusal, c};

	if (c->opts->look_at_spaces)
		c->opts->look_at_spaces(c->opts->look_arg, pid, &refuse);
}

/* What can be seen from outside of the processes that are known. */
static int look(struct cap *c, const char *maps, struct lr_err *err)
{
	int r = cap_ids_look(c, err);

	for (size_t i = 0; r >= 0 && i < c->n; i++) {
		struct cap_process *p = &c->p[i];
		r = cap_proc_look(c, p, err);
		if (r >= 0 && !i && cap_would_wait(c, true))
			return 0;
		if (r >= 0 && !(p->seed.flags & LR_SEED_ZOMBIE))
			r = cap_places_look(c, p, err);
		/* What is refused there is told by the root's name; and files are looked for there. */
		if (r >= 0 && !i)
			r = cap_tmpfs_look(c, err);
		if (r >= 0 && !i)
			r = cap_terminal_look(c, err);
		if (r >= 0 && !i)
			r = let_caller_look(c, err);
		if (r >= 0 && !i && !c->holds)
			let_caller_look_at_spaces(c, p->pid);
		if (r >= 0 && !(p->seed.flags & LR_SEED_ZOMBIE))
			r = look_inside(c, p, maps, err);
		if (i && has_gone(p, r)) {
			p->seed.flags = LR_SEED_ZOMBIE;
			r = 0;
		}
	}
	if (r >= 0)
		r = cap_members_note(c, err);
	if (r >= 0)
		r = cap_terminal_find(c, err);
	if (r >= 0)
		cap_pidfds_find(c);
	if (r >= 0)
		cap_owners_find(c);
	return r < 0 ? r : cap_channels_find(c, err);
}

static void close_all(struct cap *c)
{
	for (size_t i = 0; i < c->n_channels; i++)
		for (int k = 0; k < 2; k++)
			c->channels[i].fd[k] = lr_close(c->channels[i].fd[k]);
	for (size_t i = 0; i < c->n_objects; i++) {
		c->objects[i].fd = lr_close(c->objects[i].fd);
		cap_here_close(&c->objects[i]);
	}
	cap_tmpfs_close(c);
	cap_reached_close(c);
}

static bool is_zombie(const struct cap_process *p)
{
	return p->seed.flags & LR_SEED_ZOMBIE;
}

static int take_process(struct cap *c, struct cap_process *p, struct lr_err *err)
{
	int r = cap_proc_take(c, p, err);

	if (r < 0 || is_zombie(p))
		return r;
	r = lr_trace_open(p->pid, p->maps.vdso, p->maps.vdso_end, &p->trace, err);
	for (size_t i = 0; r >= 0 && i < p->n_threads; i++)
		r = lr_trace_check_free(&p->trace, p->threads[i].tid, err);
	if (r >= 0)
		r = cap_threads_take(c, p, err);
	/* Who has its calls dispatched could not make ours. */
	return r < 0 ? r : refused(c, err);
}

/* If there is too little memory for the twins, the kernel ends somebody before there is a twin to end. */
static int afford(const struct cap *c, struct lr_err *err)
{
	struct lr_capture_cost cost;

	if (!c->opts->afford)
		return 0;
	cap_cost(c, &cost);
	return c->opts->afford(c->opts->look_arg, &cost, err);
}

/* Everything that is lost once they run on. Nobody runs, so all of it is of one moment. */
static int take(struct cap *c, struct lr_err *err)
{
	int r = cap_objects_find(c, err);

	if (r >= 0)
		r = cap_here_take(c, err);
	for (size_t i = 0; r >= 0 && i < c->n; i++)
		r = take_process(c, &c->p[i], err);
	if (r >= 0)
		r = afford(c, err);
	for (size_t i = 0; r >= 0 && i < c->n; i++)
		if (!is_zombie(&c->p[i]))
			r = cap_inside_take(c, &c->p[i], err);
	if (r >= 0)
		r = cap_channels_take(c, err);
	if (r >= 0)
		r = refused(c, err);
	if (r >= 0)
		r = cap_objects_copy(c, err);
	if (r >= 0)
		r = cap_tmpfs_copy(c, err);
	if (r >= 0 && c->opts->held)
		r = c->opts->held(c->opts->arg, c->opts->pid, err);
	return r;
}

/* One that has executed a program by another thread is not held any more, and lives on; who was killed needs a moment. */
static bool was_killed(const struct cap_process *p)
{
	if (is_zombie(p) || lr_trace_check_held(p->pid, NULL) != -ESRCH)
		return false;
	for (unsigned i = 0; i < KILLED_MS && !lr_proc_dies(p->pid); i++)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	return lr_proc_dies(p->pid);
}

/* Who is killed while it is held is not there the next time, and nobody would say so. */
static int check_killed(const struct cap *c, struct lr_err *err)
{
	for (size_t i = 0; i < c->n; i++) {
		if (!was_killed(&c->p[i]))
			continue;
		lr_refuse(err, ECANCELED, "process %d was killed while it was held", c->p[i].pid);
		return lr_err_hint(err,
				   "by the kernel, as the container's memory is at its limit?");
	}
	return 0;
}

/* Whatever has failed: that it was killed comes first. */
static int take_all(struct cap *c, struct lr_err *err)
{
	const int r = take(c, err), killed = check_killed(c, err);

	return killed < 0 ? killed : r;
}

static void stop_twins_at_end(const struct cap *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->p[i].twin)
			lr_trace_stop_at_end(c->p[i].twin);
}

/* Of memory that is gone the kernel shows nothing, and says of little that it can't. So what was read
 * is believed when its owner is still there behind it; and a failure may be no more than its death. */
int cap_check_twins(const struct cap *c, struct lr_err *err)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct cap_process *p = &c->p[i];
		int r = is_zombie(p) ? 0 : lr_trace_check_held(p->twin, err);
		if (r >= 0)
			continue;
		if (r != -ESRCH)
			return r;
		lr_refuse(err, ECANCELED, "the frozen copy of process %d was killed", p->pid);
		return lr_err_hint(err, "by the kernel, as the container's memory is at its limit? "
					"what the program writes meanwhile takes more of it");
	}
	return 0;
}

static int copy(struct cap *c, struct lr_err *err)
{
	int r = 0;

	c->private_at = c->pages_at;
	for (size_t i = 0; r >= 0 && i < c->n; i++) {
		if (is_zombie(&c->p[i]))
			continue;
		r = cap_proc_take_twin(c, &c->p[i], err);
		if (r >= 0)
			r = cap_pages_copy(c, &c->p[i], err);
	}
	if (r >= 0)
		r = cap_write(c, err);
	int dead = cap_check_twins(c, err);
	return dead < 0 ? dead : r;
}

/* What a process can be asked only by its twin, as long as all twins are there. */
static int ask_twins(struct cap *c, struct lr_err *err)
{
	let_caller_look_at_spaces(c, c->p->twin);
	int r = cap_domains_refuse(c, err);
	/* One that timed out still runs: it would be called killed. */
	int dead = r < 0 && r != -ETIMEDOUT ? cap_check_twins(c, err) : 0;

	if (dead < 0)
		return dead;
	return r < 0 ? r : refused(c, err);
}

/* Private memory to whoever takes it as it is. What nobody takes is copied: now, or once the seed is
 * told of. */
static int give(struct cap *c, struct lr_err *err)
{
	pid_t *twins = lr_new_n(c->a, c->n, pid_t);
	size_t n = 0;

	if (!twins)
		return lr_fail(err, ENOMEM, "list the frozen copies");
	for (size_t i = 0; i < c->n; i++)
		if (!is_zombie(&c->p[i]))
			twins[n++] = c->p[i].twin;
	int r = c->opts->take(c->opts->written_arg, twins, n, err);
	if (r < 0)
		return r;
	c->taken = r > 0;
	/* Whose numbers they are: nobody was waited for, so they are still the twins'. */
	if (c->taken)
		return cap_check_twins(c, err);
	return c->opts->filled ? 0 : cap_pages_fill(c, err);
}

/* The last thread of the root of a pid namespace is gone only when all in there have been waited for,
 * its other threads and the twins too: nobody knows in which order. */
static int end(struct cap *c, struct lr_err *err)
{
	/* Nobody else waits for them while we hold them. */
	cap_strangers_let_go(c);
	if (kill(c->opts->pid, SIGKILL) < 0 && errno != ESRCH && lr_trace_end(c->opts->pid) < 0)
		return lr_fail(err, errno, "end process %d", c->opts->pid);
	for (size_t i = 0; i < c->n; i++)
		cap_inside_end(&c->p[i]);
	for (unsigned i = 0; i < END_MS && !cap_tree_bury(c); i++)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	return 0;
}

/* Who was sent in while all was held is in no twin, and may have changed what was read. To look for
 * that takes as long as the host has processes, so nobody waits for it. */
static int look_round(struct cap *c, struct lr_err *err)
{
	if (!c->opts->namespace_too)
		return 0;
	c->let_go = true;
	int r = cap_strangers_refuse(c, err);
	return r < 0 ? r : refused(c, err);
}

/* *copied: the twins are there, and it isn't tried again, whatever fails then. */
static int capture(struct cap *c, struct lr_capture_stats *stats, bool *copied, struct lr_err *err)
{
	int r = cap_strangers_hold(c, err);

	c->holds = true;
	if (r >= 0)
		r = cap_tree_look(c, err);
	if (r >= 0)
		r = cap_watches_find(c, err);
	if (r < 0) {
		cap_strangers_let_go(c);
		return r;
	}
	uint64_t begin = now();
	r = cap_tree_hold(c, err);
	if (r >= 0 && cap_has_ended(c->pidfd))
		r = lr_refuse(err, ECHILD, "process %d has ended", c->opts->pid);
	if (r >= 0)
		r = look(c, "maps", err);
	if (r >= 0)
		r = cap_spaces_refuse(c, err);
	if (r >= 0)
		r = refused(c, err);
	if (r >= 0)
		r = take_all(c, err);
	stop_twins_at_end(c);
	if (r < 0 || !c->opts->end)
		cap_tree_let_go(c);
	stats->pause_ns = now() - begin;
	c->held_until = cap_ticks();
	/* While they are open, they keep the container's mounts and namespaces. */
	c->before->mountinfo = lr_close(c->before->mountinfo);
	cap_names_close(c->before);
	*copied = r >= 0;
	if (r >= 0)
		r = look_round(c, err);
	if (r >= 0)
		r = ask_twins(c, err);
	if (r >= 0)
		r = copy(c, err);
	/* It began to withhold memory since it was looked at (match): that is known the next time. */
	if (r == -EBUSY)
		*copied = false;
	if (r >= 0 && c->opts->take)
		r = give(c, err);
	if (r >= 0 && c->opts->written)
		r = c->opts->written(c->opts->written_arg, err);
	if (r >= 0 && c->opts->end)
		r = end(c, err);
	else if (r >= 0)
		cap_here_tell(c);
	if (r >= 0 && c->opts->filled && !c->taken)
		r = cap_pages_fill(c, err);
	cap_tree_let_go(c);
	/* To wait for the twins takes descriptors, and it may be those that were short. */
	for (size_t i = 0; i < c->n; i++) {
		lr_trace_close(&c->p[i].trace);
		c->p[i].mem = lr_close(c->p[i].mem);
	}
	close_all(c);
	for (size_t i = 0; i < c->n; i++)
		cap_inside_end_running(c, &c->p[i]);
	for (size_t i = 0; i < c->n; i++)
		cap_inside_reap(c, &c->p[i]);
	for (size_t i = 0; i < c->n; i++)
		c->p[i].pidfd = lr_close(c->p[i].pidfd);
	stats->pages = c->pages_at / LR_SEED_PAGE - 1;
	stats->zero_pages = c->zero_pages;
	return r;
}

static void give_refusals(const struct cap *c, char **ret)
{
	if (!ret)
		return;
	free(*ret);
	*ret = c->refusals ? strdup(c->refusals) : NULL;
}

/* Something was on its way: a newborn, one who ended, a parent in vfork(2), or a thread that a
 * killed one of us had at work. */
static bool is_passing(int r)
{
	return r == -EAGAIN || r == -ENOENT || r == -ESRCH || r == -EBUSY;
}

#define ATTEMPTS    40
#define ATTEMPTS_NS UINT64_C(5000000000)

/* Whether to try for the i-th time. The first one that does not stop is waited for (trace.h), and all
 * others stand still as long: that does not happen forty times. */
static bool try_again(unsigned i, int r, uint64_t began)
{
	if (!i)
		return true;
	if (!is_passing(r) || i == ATTEMPTS || now() - began > ATTEMPTS_NS)
		return false;
	nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	return true;
}

/* While they run. What is known takes memory by what the container has: none of it is kept. */
static int look_once(const struct cap *begin, char **refusals, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct cap seen = *begin;

	seen.a = a;
	int r = cap_tree_look(&seen, err);
	if (r >= 0)
		r = cap_strangers_look(&seen, err);
	if (r >= 0)
		r = cap_watches_find(&seen, err);
	if (r >= 0)
		r = look(&seen, "smaps", err);
	if (r >= 0 && begin->opts->namespace_too)
		r = cap_strangers_refuse(&seen, err);
	if (r >= 0)
		r = cap_spaces_refuse(&seen, err);
	if (r >= 0)
		r = cap_policy_refuse(&seen, err);
	close_all(&seen);
	if (r >= 0)
		r = refused(&seen, err);
	give_refusals(&seen, refusals);
	return r;
}

static int capture_once(const struct cap *begin, struct lr_capture_stats *stats, bool *copied,
			char **refusals, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct cap c = *begin;

	c.a = a;
	int r = capture(&c, stats, copied, err);
	give_refusals(&c, refusals);
	return r;
}

/* What was refused since it may pass, and has not. */
static int settle(int r, const struct lr_err *err)
{
	return r == -EAGAIN && err && err->code == ENOTSUP ? -ENOTSUP : r;
}

static int look_and_capture(const struct cap *begin, struct lr_capture_stats *stats,
			    char **refusals, struct lr_err *err)
{
	uint64_t began = now();
	bool copied = false;
	int r = 0;

	for (unsigned i = 0; try_again(i, r, began); i++)
		r = look_once(begin, refusals, err);
	if (r < 0 || begin->opts->refusals_only)
		return settle(r, err);
	began = now();
	for (unsigned i = 0; !copied && try_again(i, r, began); i++)
		r = capture_once(begin, stats, &copied, refusals, err);
	return settle(r, err);
}

int lr_capture(const struct lr_capture *opts, struct lr_capture_stats *stats, char **refusals,
	       struct lr_err *err)
{
	struct lr_capture_stats ignored;
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct cap_paths paths = {.a = a};
	struct cap_before before = {
		.a = a,
		.ipc = LR_NOFD,
		.system_v = {LR_NOFD, LR_NOFD, LR_NOFD},
		.posix = LR_NOFD,
		.uts = LR_NOFD,
		.own_uts = LR_NOFD,
		.mountinfo = LR_NOFD,
	};
	struct cap begin = {
		.opts = opts, .pages_at = LR_SEED_PAGE, .before = &before, .paths = &paths};

	LR_CLEANUP_FD int pidfd = lr_pidfd_open(opts->pid, 0);
	if (pidfd < 0)
		return lr_fail(err, -pidfd, "look at process %d", opts->pid);
	begin.pidfd = pidfd;
	int r = cap_objects_begin(&begin, err);
	if (r >= 0)
		r = look_and_capture(&begin, stats ? stats : &ignored, refusals, err);
	cap_spaces_close(&before);
	cap_mounts_close(&before);
	return r;
}
