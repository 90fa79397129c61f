/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: pages into a process. */
#define LR_ROOM "forkd"
#include <errno.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "src/base/clock.h"
#include "src/forkd/child.h"
#include "src/forkd/forkd.h"

#define PREFETCH_PAGES 64

static void wake(const struct child *c, uint64_t at)
{
	struct uffdio_range range = {at, LR_SEED_PAGE};

	ioctl(c->uffd, UFFDIO_WAKE, &range);
}

/* What an ioctl says about a page that is there, or whose memory is gone. */
static int meaning(int code)
{
	switch (code) {
	case EEXIST: /* somebody was faster, or the program wrote there */
	case ENOENT: /* unmapped, or memory that was never to be filled */
	case EINVAL:
	case ESRCH: /* the process has ended */
	case ENOSPC:
		return 0;
	default:
		return -code;
	}
}

/* How much of it was copied, in bytes; -EAGAIN: an event comes first. */
static int64_t copy_some(const struct child *c, uint64_t at, uint64_t len, const uint8_t *from)
{
	struct uffdio_copy x = {.dst = at, .src = (uint64_t)(uintptr_t)from, .len = len};

	if (ioctl(c->uffd, UFFDIO_COPY, &x) == 0)
		return (int64_t)len;
	return x.copy > 0 ? x.copy : -errno;
}

/*
 * The kernel copies nothing at all into what is not one mapping from end to end; and the program may
 * have parted what was one, as by mprotect, of which it tells nobody. So what it has no room for is
 * tried in parts: a page that was left out here would never come.
 */
static int copy(const struct child *c, const struct child_window *w, const uint8_t *from)
{
	uint64_t len = w->end - w->start;

	for (uint64_t at = w->start; at < w->end;) {
		if (len > w->end - at)
			len = w->end - at;
		int64_t n = copy_some(c, at, len, from + (at - w->start));
		if (n > 0) {
			forkd_counts.pages_filled += (uint64_t)n / LR_SEED_PAGE;
			at += (uint64_t)n;
			len = w->end - at;
			continue;
		}
		if (n == -ENOENT && len > LR_SEED_PAGE) {
			len = len / LR_SEED_PAGE / 2 * LR_SEED_PAGE;
			continue;
		}
		int r = meaning((int)-n);
		if (r < 0)
			return r;
		wake(c, at);
		at += LR_SEED_PAGE;
		len = w->end - at;
	}
	return 0;
}

static int zero(const struct session *s, const struct child *c, uint64_t at)
{
	struct uffdio_zeropage x = {.range = {at, LR_SEED_PAGE}};

	if (ioctl(c->uffd, UFFDIO_ZEROPAGE, &x) == 0) {
		s->figures->v[LR_WIRE_ZEROS]++;
		return 0;
	}
	int r = meaning(errno);
	if (r == 0)
		wake(c, at);
	return r;
}

/* Tries again until the host answers, its time is up, or it says that there is nothing to wait
 * for. */
static int fetch(struct session *s, const struct child_window *w, const uint8_t **ret)
{
	const int64_t until = lr_now_ms() + (int64_t)forkd_config.patience;
	const uint32_t pages = (uint32_t)((w->end - w->start) / LR_SEED_PAGE);
	struct lr_err err;

	for (long ms = 20;; ms = ms < 1000 ? 2 * ms : ms) {
		lr_err_clear(&err);
		int r = remote_read(s->remote, w->from, pages, s->spare, ret, s->figures, &err);
		if (r == 0)
			return 0;
		if (r == -ESTALE || lr_now_ms() + ms >= until) {
			char why[512];
			children_end(s, lr_err_format(&err, why, sizeof(why)));
			return -EIO;
		}
		nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
	}
}

static int done(struct session *s, int r)
{
	if (r < 0 && r != -EAGAIN)
		children_end(s, lr_strerror(-r));
	return r;
}

int child_fill(struct session *s, struct child *c, uint64_t at)
{
	struct child_window w;
	const uint8_t *from;

	if (!child_window(&s->remote->seed, c->mm, &c->pieces, at, s->around, &w))
		return done(s, zero(s, c, at));
	int r = fetch(s, &w, &from);
	if (r == 0)
		r = done(s, copy(c, &w, from));
	if (r == 0) {
		s->figures->v[LR_WIRE_ASKED]++;
		s->figures->v[LR_WIRE_AHEAD] += (w.end - w.start) / LR_SEED_PAGE - 1;
		const struct remote_touch t = {w.start, c->mm,
					       (uint32_t)((w.end - w.start) / LR_SEED_PAGE)};
		remote_touched(s->remote, s->figures, &t);
	}
	return r;
}

/* So many pages may still come before they are touched. */
static uint32_t at_most(const struct session *s, uint32_t pages)
{
	const uint64_t left = s->most - s->figures->v[LR_WIRE_PREFETCHED];

	return left < pages ? (uint32_t)left : pages;
}

static int bring(struct session *s, const struct child *c, const struct child_window *w)
{
	const uint64_t pages = (w->end - w->start) / LR_SEED_PAGE;
	const uint8_t *from;
	int r = fetch(s, w, &from);

	if (r == 0)
		r = done(s, copy(c, w, from));
	if (r == 0) {
		s->figures->v[LR_WIRE_PREFETCHED] += pages;
		forkd_counts.pages_prefetched += pages;
	}
	return r;
}

int child_prefetch(struct session *s, struct child *c)
{
	struct child_window w;

	if (!child_next(&s->remote->seed, c->mm, &c->pieces, c->cursor, at_most(s, PREFETCH_PAGES),
			&w))
		return CHILD_COMPLETE;
	int r = bring(s, c, &w);
	if (r == 0)
		c->cursor = w.end;
	return r;
}

int child_prefetch_touch(struct session *s, struct child *c, const struct remote_touch *t)
{
	struct child_window w;

	if (!child_next(&s->remote->seed, c->mm, &c->pieces, t->at, at_most(s, t->pages), &w) ||
	    w.start != t->at)
		return 0;
	return bring(s, c, &w);
}
