/* SPDX-License-Identifier: Apache-2.0 */
/* resume: what is left of the restorer is taken out of all processes, and of those that they have borne meanwhile. */
#define LR_ROOM "resume"
#include "src/base/clock.h"
#include "src/resume/resuming.h"

struct cleaning {
	const struct lr_seed *seed;
	struct resume_list list;
	struct resume_places places;
	int64_t until;
	bool had;   /* somebody had it, and may have borne others with it */
	int failed; /* the first failure, which `err` tells of */
	struct lr_err *err;
};

/* Who is in the foreground may have been given a terminal of another size, at an instant when it had
 * not come back to the call that it waits in: then it would not look before that one ends. */
static unsigned how_to_clean(const struct lr_seed *s, uint32_t index)
{
	const struct lr_seed_process *p = lr_seed_process(s, index);
	const struct lr_seed_terminal *t =
		lr_seed_count(s, LR_SEED_TERMINAL) ? lr_seed_terminal(s, 0) : NULL;
	const uint32_t front = !t ? 0 : t->foreground ? t->foreground : t->session;

	return (p->dumpable == 1 ? LR_RESUME_DUMPABLE : 0) |
	       (front && p->pgid == front ? LR_RESUME_RESIZED : 0);
}

/* Who was borne by one that others may look at may be looked at, too. Who bore it may have been any that had the restorer
 * there. */
static unsigned how_to_clean_heir(const struct cleaning *c, const struct lr_resume_left *at)
{
	for (uint32_t i = 0; i < c->places.n; i++)
		if (resume_left_at(&c->places.v[i], at->start, at->start + at->size) &&
		    lr_seed_process(c->seed, i)->dumpable != 1)
			return 0;
	return LR_RESUME_DUMPABLE;
}

static int clean_one(struct cleaning *c, const struct resume_process *one, struct lr_err *err)
{
	const struct lr_resume_left *at = &c->places.v[one->index];
	int r = 0;

	if (one->of_seed && !at->size)
		return 0; /* it has ended before */
	c->places.likely = one->index;
	/* A child of vfork(2) that was cleaned has the memory of its parent. */
	if (!one->of_seed || one->later)
		r = resume_find_left(one->pid, &c->places, &at, err);
	if (r < 0 || !at)
		return r;
	c->had = true;
	return resume_clean(one->pid, &c->places,
			    one->of_seed ? how_to_clean(c->seed, one->index)
					 : how_to_clean_heir(c, at),
			    c->until, err);
}

/* One that can't be cleaned keeps it; that says nothing of the others. */
static void try_one(struct cleaning *c, const struct resume_process *one)
{
	const int r = clean_one(c, one, c->failed ? NULL : c->err);

	if (r < 0 && !c->failed)
		c->failed = r;
}

/* Those behind the first `from`. Nobody waits for who is deaf as long as there are others. */
static void clean_new(struct cleaning *c, size_t from)
{
	for (size_t i = from; i < c->list.n; i++) {
		struct resume_process *one = &c->list.v[i];
		one->later = c->list.n > 1 && resume_is_deaf(one->pid);
		if (!one->later)
			try_one(c, one);
	}
}

static void clean_deaf(struct cleaning *c)
{
	for (size_t i = 0; i < c->list.n; i++) {
		if (c->list.v[i].later)
			try_one(c, &c->list.v[i]);
		c->list.v[i].later = false;
	}
}

/* Who is borne by one that has it, has it, too: until nobody new has. */
static int clean_all(struct cleaning *c)
{
	size_t done = 0;
	int r = 0;

	do {
		c->had = false;
		r = resume_list_more(&c->list, c->failed ? NULL : c->err);
		clean_new(c, done);
		done = c->list.n;
		if (!c->had)
			clean_deaf(c);
	} while (r >= 0 && c->had);
	return c->failed ? c->failed : r;
}

int lr_resume_clean_all(const struct lr_seed *seed, pid_t root, const struct lr_resume_left *left,
			struct lr_err *err)
{
	struct cleaning c = {.seed = seed,
			     .places = {.v = left, .n = lr_seed_count(seed, LR_SEED_PROCESS)},
			     .until = lr_now_ms() + RESUME_CLEAN_MS,
			     .err = err};

	int r = resume_list_begin(&c.list, seed, root, err);
	if (r >= 0)
		r = clean_all(&c);
	resume_list_end(&c.list);
	return r;
}
