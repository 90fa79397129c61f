/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: see feed.h. Some threads for each seed, as what one waits for must not keep the others. */
#define LR_ROOM "forkd"
#include "src/forkd/feed.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "src/base/arena.h"
#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/forkd/forkd.h"
#include "src/forkd/linked.h"
#include "src/forkd/main.h"

#define THREADS 4
#define TICK_MS 500
#define KEEP_MS 60000  /* a source without a mapping */
#define LINK_MS 600000 /* until a host is tried again whose module does not answer */
#define ROOM    ((size_t)LEAN_SEED_WANT_MAX * LR_WIRE_PAGE)

struct feed {
	struct remote *remote;
	struct lr_arena *arena;
	struct lr_seed_spans spans;
	bool linked;   /* the module reads by RDMA, and asks us for nothing */
	uint64_t seen; /* pages that it had read so when we looked */
	int fd;        /* the module's questions; LR_NOFD: of who is linked */
	/* under the lock */
	int source; /* ours, for the next child; LR_NOFD: nobody has mapped it for a while */
	int64_t used;
	unsigned threads;
	bool over; /* and not in the table any more */
	struct feed *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct feed *feeds;

/* ---- the end ------------------------------------------------------------------------------ */

/* Once the last thread has left, its descriptor is closed: what has not come by then never comes. */
static void finish(struct feed *f)
{
	struct feed **at = &feeds;

	while (*at && *at != f)
		at = &(*at)->next;
	if (*at)
		*at = f->next;
	f->over = true;
	f->source = lr_close(f->source);
}

static void drop(struct feed *f)
{
	lr_close(f->source);
	lr_close(f->fd);
	lr_arena_free(f->arena);
	remote_put(f->remote);
	free(f);
}

static void leave(struct feed *f)
{
	pthread_mutex_lock(&lock);
	const bool last = --f->threads == 0;
	if (last && !f->over)
		finish(f);
	pthread_mutex_unlock(&lock);
	if (!last)
		return;
	forkd_counts.sources--;
	drop(f);
}

static bool is_over(struct feed *f)
{
	pthread_mutex_lock(&lock);
	bool over = f->over;
	pthread_mutex_unlock(&lock);
	return over;
}

static void end(struct feed *f)
{
	pthread_mutex_lock(&lock);
	finish(f);
	pthread_mutex_unlock(&lock);
}

/* A process that waits for `start` has a source, and no mapping yet: the kernel tells when nobody has
 * one any more. */
static void end_if_unused(struct feed *f)
{
	struct pollfd p = {.fd = f->fd, .events = POLLIN};

	pthread_mutex_lock(&lock);
	/* Sources are given under this lock, and only while it is in the table. */
	if (f->source < 0 && poll(&p, 1, 0) == 1 && p.revents & POLLHUP)
		finish(f);
	pthread_mutex_unlock(&lock);
}

static void rest(struct feed *f)
{
	struct lean_seed_status s;

	pthread_mutex_lock(&lock);
	if (f->source >= 0 && lr_now_ms() - f->used > KEEP_MS) {
		if (ioctl(f->source, LEAN_SEED_STATUS, &s) == 0 && s.mappings)
			f->used = lr_now_ms();
		else {
			f->source = lr_close(f->source);
			if (f->linked)
				finish(f);
		}
	}
	pthread_mutex_unlock(&lock);
}

/* ---- pages -------------------------------------------------------------------------------- */

/* Tries again until the host answers, its time is up, or it says that there is nothing to wait
 * for. */
static int bring(struct feed *f, const struct lr_wire_range *v, size_t n, uint8_t *to,
		 struct lr_err *err)
{
	const int64_t until = lr_now_ms() + (int64_t)forkd_config.patience;

	for (long ms = 20;; ms = ms < 1000 ? 2 * ms : ms) {
		lr_err_clear(err);
		int r = n ? remote_bring(f->remote, v, n, to, NULL, err) : 0;
		if (r == 0 || r == -ESTALE || lr_now_ms() + ms >= until)
			return r;
		nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
	}
}

static void failed(struct feed *f, int r, const struct lr_err *err)
{
	char id[LR_WIRE_HEX], why[512];

	forkd_counts.source_failures++;
	lr_wire_id_text(f->remote->id, id);
	forkd_log("seed %s: who needs its pages gets SIGBUS: %s", id,
		  err->code ? lr_err_format(err, why, sizeof(why)) : lr_strerror(-r));
	/* Only these pages now, or all that has not come, for ever. */
	if (r == -ESTALE)
		end(f);
}

/* spare: room for what came and for what is answered. */
static void answer(struct feed *f, uint8_t *spare)
{
	const struct lr_seed *s = &f->remote->seed;
	struct lr_wire_range v[LEAN_SEED_WANT_MAX];
	struct lean_seed_want w;
	struct lr_err err = {0};
	size_t n;

	if (read(f->fd, &w, sizeof(w)) != (ssize_t)sizeof(w))
		return; /* another thread was faster */
	int r = feed_plan(s, &f->spans, &w, v, &n);
	if (r == 0)
		r = bring(f, v, n, spare + ROOM, &err);
	struct lean_seed_fill fill = {
		.id = w.id, .count = w.count, .pages = (uint64_t)(uintptr_t)spare};
	if (r == 0)
		feed_spread(s, &f->spans, &w, spare + ROOM, spare);
	else
		fill.error = (uint32_t)-r;
	if (ioctl(f->fd, LEAN_SEED_FILL, &fill) < 0 && errno != ENOENT)
		forkd_log("the kernel module takes no pages: %s", lr_strerror(errno));
	if (r < 0) {
		failed(f, r, &err);
		return;
	}
	forkd_counts.source_reads++;
	forkd_counts.source_pages += w.count;
}

static void *feed_run(void *arg)
{
	struct feed *f = arg;
	uint8_t *spare = malloc(2 * ROOM);

	while (spare && !is_over(f)) {
		struct pollfd p[2] = {{.fd = f->fd, .events = POLLIN},
				      {.fd = ending_fd(), .events = POLLIN}};
		if (poll(p, 2, TICK_MS) < 0 && errno != EINTR)
			break;
		if (p[1].revents)
			end(f);
		else if (p[0].revents & POLLIN)
			answer(f, spare);
		else if (p[0].revents)
			end_if_unused(f);
		rest(f);
	}
	free(spare);
	leave(f);
	return NULL;
}

/* ---- what the module reads itself --------------------------------------------------------- */

static bool look(struct feed *f, struct lean_seed_status *s)
{
	pthread_mutex_lock(&lock);
	const bool there = f->source >= 0 && ioctl(f->source, LEAN_SEED_STATUS, s) == 0;
	pthread_mutex_unlock(&lock);
	return there;
}

/* The seed's host hears of no read, so it is told that there are some: its lease would end. */
static void note_reads(struct feed *f, const struct lean_seed_status *s)
{
	struct lr_err err = {0};

	if (s->fetched == f->seen)
		return;
	forkd_counts.linked_pages += s->fetched - f->seen;
	f->seen = s->fetched;
	remote_use(f->remote, &err);
}

/* Children have the source without us, to their end. We keep it for the next one. */
static void *linked_run(void *arg)
{
	struct feed *f = arg;
	struct lr_err err = {0};

	while (!is_over(f)) {
		struct pollfd p = {.fd = ending_fd(), .events = POLLIN};
		struct lean_seed_status s;
		if (poll(&p, 1, TICK_MS) < 0 && errno != EINTR)
			break;
		if (p.revents || !look(f, &s)) {
			end(f);
			break;
		}
		note_reads(f, &s);
		if (s.dead)
			failed(f, lr_refuse(&err, ESTALE, "the connection by RDMA has ended"),
			       &err);
		rest(f);
	}
	leave(f);
	return NULL;
}

/* ---- the beginning ------------------------------------------------------------------------ */

static int begin_spans(struct feed *f, struct lr_err *err)
{
	f->arena = lr_arena_new();
	int r = lr_seed_spans(&f->remote->seed, f->arena, &f->spans);
	if (r < 0)
		return lr_fail(err, -r, "number the seed's pages");
	return f->spans.pages ? 0 : lr_refuse(err, ENODATA, "the seed has no memory to wait for");
}

static int begin_feed(struct feed *f, int device, struct lr_err *err)
{
	struct lean_seed_feed arg = {.pages = f->spans.pages};

	f->fd = ioctl(device, LEAN_SEED_FEED, &arg);
	if (f->fd < 0 && errno == ENOTTY)
		return lr_refuse(err, ENOTSUP, "the kernel module is an older one");
	if (f->fd < 0 || fcntl(f->fd, F_SETFL, O_RDWR | O_NONBLOCK) < 0)
		return lr_fail(err, errno, "feed the kernel module");
	return 0;
}

static int begin_threads(struct feed *f, struct lr_err *err)
{
	const unsigned n = f->linked ? 1 : THREADS; /* two would count what was read twice */
	int r = 0;

	for (unsigned i = 0; i < n && r == 0; i++) {
		f->threads++;
		r = forkd_thread(f->linked ? linked_run : feed_run, f);
		if (r < 0)
			f->threads--;
	}
	/* One will do. */
	return f->threads ? 0 : lr_fail(err, -r, "begin a thread");
}

/* With the lock. Takes no reference of the caller's. *linked: a source that was linked, which is taken
 * then; or LR_NOFD. */
static int begin(struct remote *r, int device, int *linked, struct feed **ret, struct lr_err *err)
{
	char id[LR_WIRE_HEX];
	struct feed *f = calloc(1, sizeof(*f));

	if (!f)
		return lr_fail(err, ENOMEM, "feed the kernel module");
	*f = (struct feed){
		.remote = r, .fd = LR_NOFD, .source = lr_take_fd(linked), .used = lr_now_ms()};
	f->linked = f->source >= 0;
	remote_get(r);
	int e = begin_spans(f, err);
	if (e == 0)
		e = f->linked ? 0 : begin_feed(f, device, err);
	if (e == 0)
		e = begin_threads(f, err);
	if (e < 0) {
		drop(f);
		return e;
	}
	forkd_counts.sources++;
	forkd_counts.links += f->linked;
	f->next = feeds;
	feeds = f;
	lr_wire_id_text(r->id, id);
	forkd_log("seed %s: memory comes by the kernel module, %llu pages%s", id,
		  (unsigned long long)f->spans.pages,
		  f->linked ? ", which reads them by RDMA, in clear" : "");
	*ret = f;
	return 0;
}

/* With the lock. */
static int give(struct feed *f, int device, int *ret, struct lr_err *err)
{
	struct lean_seed_open arg = {.seed = f->fd};

	if (f->source < 0 && !f->linked)
		f->source = ioctl(device, LEAN_SEED_OPEN, &arg);
	if (f->source < 0 && !f->linked)
		return lr_fail(err, errno, "open a source of the kernel module");
	f->used = lr_now_ms();
	*ret = fcntl(f->source, F_DUPFD_CLOEXEC, 0);
	return *ret < 0 ? lr_fail(err, errno, "open a source of the kernel module") : 0;
}

static struct feed *find(const struct remote *r)
{
	struct feed *f = feeds;

	while (f && f->remote != r)
		f = f->next;
	return f;
}

static bool is_known(const struct remote *r)
{
	pthread_mutex_lock(&lock);
	const bool known = find(r);
	pthread_mutex_unlock(&lock);
	return known;
}

/* Without the lock, as it takes a while; where two try at once, the first one's stays. */
static int try_link(struct remote *r, int device)
{
	struct lr_err err = {0};
	char id[LR_WIRE_HEX], why[512];
	int fd = LR_NOFD;

	if (lr_now_ms() < r->unlinked)
		return LR_NOFD;
	if (linked_source(r, device, &fd, &err) < 0 && err.code != ENOTSUP) {
		r->unlinked = lr_now_ms() + LINK_MS;
		lr_wire_id_text(r->id, id);
		forkd_log("seed %s: the kernel module reads nothing by RDMA: %s", id,
			  lr_err_format(&err, why, sizeof(why)));
	}
	return fd;
}

int feed_source(struct remote *r, int *ret, struct lr_err *err)
{
	if (forkd_config.no_module)
		return lr_refuse(err, ENOTSUP, "lean-forkd was started with --module=off");
	LR_CLEANUP_FD int device = open(FEED_DEVICE, O_RDWR | O_CLOEXEC);
	if (device < 0 && errno == ENOENT) /* -ENOENT would be: no such seed */
		return lr_refuse(err, ENODEV, "the kernel module is not loaded");
	if (device < 0)
		return lr_fail(err, errno, "open " FEED_DEVICE);
	LR_CLEANUP_FD int linked = is_known(r) ? LR_NOFD : try_link(r, device);
	pthread_mutex_lock(&lock);
	struct feed *f = find(r);
	int e = f ? 0 : begin(r, device, &linked, &f, err);
	if (e == 0)
		e = give(f, device, ret, err);
	pthread_mutex_unlock(&lock);
	return e;
}
