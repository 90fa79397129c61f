/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint: seeds that go to this host's lean-forkd, and come from another host by it.
 *
 * On their way out they are two files in memory, with what the kernel module keeps of them
 * (export.c). On their way in, the file of pages has only what must be there before a process is; the
 * rest comes when it is touched: from the daemon by userfaultfd, or by the kernel module, where both
 * have it (struct lr_init_seed.lazy is its source then, in place of the socket).
 */
#define LR_ROOM "checkpoint"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/capture/capture.h"
#include "src/checkpoint/internal.h"
#include "src/forkctl/forkctl.h"
#include "src/seed/span.h"
#include "src/sys/syscalls.h"

#ifdef __x86_64__
#include "src/resume/resume.h"

#ifndef MFD_ALLOW_SEALING
#define MFD_ALLOW_SEALING 2U
#endif

#define AROUND  16    /* pages that come with one that is touched */
#define SEAL_MS 30000 /* who reads a page that long is stuck */

static int connect_daemon(const struct lr_checkpoint_opts *o, struct lr_err *err)
{
	return lr_forkctl_connect(o->forkd ? o->forkd : LR_FORKCTL_SOCKET, err);
}

static int make_memory(const char *name, struct lr_err *err)
{
	int fd = lr_memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	return fd < 0 ? lr_fail(err, -fd, "make a file in memory") : fd;
}

/* ---- away ------------------------------------------------------------------------------------ */

int lr_gift_begin(const struct lr_checkpoint_opts *o, struct lr_gift *g, struct lr_err *err)
{
	*g = (struct lr_gift){.opts = o,
			      .sock = LR_NOFD,
			      .descriptor = LR_NOFD,
			      .pages = LR_NOFD,
			      .device = LR_NOFD,
			      .exported = LR_NOFD};
	/* A daemon that is not there is found before the container is touched. */
	int r = g->sock = connect_daemon(o, err);
	if (r >= 0)
		r = g->descriptor = make_memory("descriptor", err);
	if (r >= 0)
		r = g->pages = make_memory("pages", err);
	return r < 0 ? r : 0;
}

/* Whoever reads a page at this instant keeps a file from being sealed, and a reader on a busy machine
 * for longer than the kernel waits. */
static int seal(int fd, int seals, struct lr_err *err)
{
	const int64_t until = lr_now_ms() + SEAL_MS;

	while (fcntl(fd, F_ADD_SEALS, seals) < 0) {
		if (errno != EBUSY || lr_now_ms() > until)
			return lr_fail(err, errno, "seal the seed");
		lr_sleep_us(10000);
	}
	return 0;
}

int lr_gift_give(void *gift, struct lr_err *err)
{
	struct lr_gift *g = gift;
	const struct lr_checkpoint_opts *o = g->opts;
	const int size = F_SEAL_SHRINK | F_SEAL_GROW, all = size | F_SEAL_SEAL | F_SEAL_WRITE;
	const bool later = o->background && g->exported < 0;

	int r = seal(g->descriptor, all, err);
	if (r >= 0)
		r = seal(g->pages, later ? size : all, err);
	if (r < 0)
		return r;
	g->asked = true;
	if (g->exported >= 0)
		r = lr_forkctl_add_exported(g->sock, g->descriptor, g->pages, g->exported, o->lease,
					    o->ticket, err);
	else if (later)
		r = lr_forkctl_add_filling(g->sock, g->descriptor, g->pages, o->lease, o->ticket,
					   err);
	else
		r = lr_forkctl_add(g->sock, NULL, g->descriptor, g->pages, o->lease, o->ticket,
				   err);
	/* Before a container ends that is nowhere else: whoever has no ticket has nothing. */
	if (r >= 0 && o->tell)
		r = o->tell(o->tell_arg, o->ticket, err);
	g->told = r >= 0;
	return r;
}

int lr_gift_fill(void *gift, const struct lr_capture_pages *now, bool last,
		 struct lr_capture_wanted *wanted, struct lr_err *err)
{
	const struct lr_gift *g = gift;
	struct lr_wire_range v[LR_WIRE_RANGES];
	size_t n;

	int r = last ? seal(g->pages, F_SEAL_SEAL | F_SEAL_WRITE, err) : 0;
	if (r < 0)
		return r;
	r = lr_forkctl_filled(g->sock, now->at, now->pages * LR_WIRE_PAGE, v, &n, err);
	for (size_t i = 0; r >= 0 && i < n && wanted->n < LR_CAPTURE_WANTED; i++)
		wanted->v[wanted->n++] = (struct lr_capture_pages){v[i].at, v[i].pages};
	return r;
}

/* Nobody can have the ticket of a checkpoint that failed; nor have we, if its answer was lost. */
static void take_back(const struct lr_gift *g)
{
	struct lr_seed_header h;
	char line[1200];
	struct lr_err why = {0};

	if (pread(g->descriptor, &h, sizeof(h), 0) != (ssize_t)sizeof(h))
		return;
	int r = lr_forkctl_remove(g->sock, h.id, &why);
	if (r < 0 && g->opts->ticket[0])
		lr_warn("the seed is left with lean-forkd: %s",
			lr_err_format(&why, line, sizeof(line)));
	g->opts->ticket[0] = 0;
}

void lr_gift_end(struct lr_gift *g, bool failed)
{
	/* One that is told of, and has not all its pages, the daemon calls damaged. */
	if (failed && g->asked && !g->told)
		take_back(g);
	g->sock = lr_close(g->sock);
	g->descriptor = lr_close(g->descriptor);
	g->pages = lr_close(g->pages);
	g->device = lr_close(g->device);
	g->exported = lr_close(g->exported);
}

/* ---- here ------------------------------------------------------------------------------------ */

/* What the birth needs of it (struct lr_init_seed). */
struct coming {
	struct lr_init_seed *seed;
	uint8_t id[LR_WIRE_ID];
	uint32_t flags, mib; /* mib: of what comes untouched; 0: all */
	int source; /* of the kernel module, until it takes the socket's place; or LR_NOFD */
	/* of the question that is being put together */
	struct lr_wire_range ranges[LR_WIRE_RANGES];
	size_t n;
	uint64_t asked; /* pages */
};

static int ask(struct coming *x, struct lr_err *err)
{
	size_t n = x->n;

	x->n = 0;
	x->asked = 0;
	return n ? lr_forkctl_bring(x->seed->lazy, x->id, x->ranges, n, x->seed->pages, err) : 0;
}

static int bring(void *arg, const struct lr_seed_run *run, struct lr_err *err)
{
	const uint64_t most = LR_WIRE_CHUNK / LR_WIRE_PAGE;
	struct coming *x = arg;
	int r = 0;

	for (uint64_t done = 0; r >= 0 && done < run->pages;) {
		if (x->n == LR_WIRE_RANGES || x->asked == most)
			r = ask(x, err);
		uint64_t n = run->pages - done;
		if (n > most - x->asked)
			n = most - x->asked;
		x->ranges[x->n++] =
			(struct lr_wire_range){run->at + done * LR_WIRE_PAGE, (uint32_t)n};
		x->asked += n;
		done += n;
	}
	return r;
}

static int bring_all(struct coming *x, struct lr_err *err)
{
	const struct lr_seed *s = &x->seed->seed;
	int r = 0;

	for (uint32_t i = 0; r >= 0 && i < lr_seed_count(s, LR_SEED_RUN); i++)
		r = bring(x, lr_seed_run(s, i), err);
	return r;
}

/* As long as the seed's, with its header, and else only what can't come later, or all. */
static int make_pages(struct coming *x, bool all, struct lr_err *err)
{
	const struct lr_seed_header *h = x->seed->seed.header;
	struct lr_seed_pages_header head;

	int r = x->seed->pages = make_memory("pages", err);
	if (r < 0)
		return r;
	lr_seed_pages_header(h, &head);
	if (ftruncate(x->seed->pages, (off_t)h->pages) < 0 ||
	    pwrite(x->seed->pages, &head, sizeof(head), 0) != (ssize_t)sizeof(head))
		return lr_fail(err, errno, "make the file of pages");
	r = all ? bring_all(x, err)
		: lr_resume_in_place(&x->seed->seed, x->source >= 0, bring, x, err);
	return r < 0 ? r : ask(x, err);
}

/* ---- by the kernel module -------------------------------------------------------------------- */

/* Whether it can be mapped at all: by now another way is open, and no process is there. */
static int try_source(int fd, const struct lr_seed *s, struct lr_arena *a, struct lr_err *err)
{
	struct lr_seed_spans p;

	int r = lr_seed_spans(s, a, &p);
	if (r < 0)
		return lr_fail(err, -r, "number the seed's pages");
	const size_t size = (size_t)(p.pages * LR_SEED_PAGE);
	void *at = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED)
		return lr_fail(err, errno, "map a source of the kernel module");
	munmap(at, size);
	return 0;
}

/* What is wanted has to be able to outlive the seed where all of it is brought (prefetch): by the
 * module it is not the child's own. If the module fails, userfaultfd is there. But an answer that did
not come may come yet, and would be taken for the next one's. */
static int choose_source(struct coming *x, const struct lr_checkpoint_opts *o, struct lr_arena *a,
			 struct lr_err *err)
{
	struct lr_err why = {0};
	char line[1200];

	if (o->eager || o->prefetch)
		return 0;
	int r = lr_forkctl_source(x->seed->lazy, x->id, &x->source, &why);
	if (r < 0 && r != -ECONNREFUSED) {
		*err = why;
		return r;
	}
	if (r >= 0)
		r = try_source(x->source, &x->seed->seed, a, &why);
	if (r >= 0) {
		lr_debug("restore: memory comes by the kernel module");
		return 0;
	}
	x->source = lr_close(x->source);
	lr_debug("restore: memory comes by userfaultfd: %s",
		 lr_err_format(&why, line, sizeof(line)));
	return 0;
}

/* A guess would be memory that nobody brings. */
static int is_socket(int fd, struct lr_err *err)
{
	struct stat st;

	return fstat(fd, &st) < 0 ? lr_fail(err, errno, "look at what memory comes from")
				  : S_ISSOCK(st.st_mode);
}

/* They have mapped it. We may stay as long as the container runs. */
static int ready_by_module(void *arg, struct lr_err *err)
{
	struct coming *x = arg;

	(void)err;
	x->seed->lazy = lr_close(x->seed->lazy);
	x->seed->pages = lr_close(x->seed->pages);
	return 0;
}

/* ---- by userfaultfd -------------------------------------------------------------------------- */

static int attend(void *arg, int cgroup, struct lr_err *err)
{
	const struct coming *x = arg;
	int r = x->mib ? lr_forkctl_limit(x->seed->lazy, x->id, (uint64_t)x->mib << 20, err) : 0;

	return r < 0 ? r : lr_forkctl_serve(x->seed->lazy, x->id, cgroup, AROUND, x->flags, err);
}

/* All processes are there, and none of the program's own instructions has run. */
static int ready(void *arg, struct lr_err *err)
{
	struct coming *x = arg;
	const struct lr_seed *s = &x->seed->seed;
	uint32_t n = 0;

	for (uint32_t i = 0; i < lr_seed_count(s, LR_SEED_PROCESS); i++)
		n += !(lr_seed_process(s, i)->flags & LR_SEED_ZOMBIE);
	int r = lr_forkctl_ready(x->seed->lazy, n, err);
	/* We may stay as long as the container runs. */
	x->seed->lazy = lr_close(x->seed->lazy);
	x->seed->pages = lr_close(x->seed->pages);
	return r;
}

static int read_seed(struct coming *x, int descriptor, struct lr_arena *a, struct lr_err *err)
{
	struct lr_init_seed *seed = x->seed;
	void *bytes = NULL;
	uint64_t size = 0;

	int r = lr_checkpoint_read_descriptor(descriptor, a, &bytes, &size, err);
	if (r >= 0)
		r = lr_seed_open(bytes, size, UINT64_MAX, &seed->seed, err);
	if (r >= 0 && memcmp(seed->seed.header->id, x->id, sizeof(x->id)) != 0)
		r = lr_refuse(err, EPROTO, "lean-forkd gives another seed");
	return r;
}

static uint32_t flags_of(bool prefetch, bool timed)
{
	return (prefetch ? LR_WIRE_PREFETCH : 0) | (timed ? LR_WIRE_TIMED : 0);
}

/* What came before there is a process. The daemon has counted it for this connection. */
static int count(const struct coming *x, const struct lr_checkpoint_opts *o, struct lr_err *err)
{
	struct lr_init_seed_stats *stats = o->stats;
	struct lr_wire_child c;

	int r = lr_forkctl_counts(x->seed->lazy, &c, err);
	if (r < 0)
		return lr_err_hint(err, "is lean-forkd an older one? --stats asks what it counts");
	stats->brought = lr_now_ns();
	stats->memory = o->eager ? "files" : x->source >= 0 ? "module" : "userfaultfd";
	stats->pages = lr_checkpoint_pages(&x->seed->seed);
	stats->cached = c.v[LR_WIRE_CACHED];
	stats->tcp = c.v[LR_WIRE_BY_TCP];
	stats->rdma = c.v[LR_WIRE_BY_RDMA];
	return 0;
}

static int comes(struct coming *x, struct lr_err *err)
{
	const int by_socket = is_socket(x->seed->lazy, err);

	if (by_socket < 0)
		return by_socket;
	x->seed->attend = by_socket ? attend : NULL;
	x->seed->ready = by_socket ? ready : ready_by_module;
	x->seed->arg = x;
	return 0;
}

int lr_checkpoint_fetch(const struct lr_checkpoint_opts *o, struct lr_arena *a,
			struct lr_init_seed *ret, struct lr_err *err)
{
	struct coming *x = lr_new(a, struct coming);
	char ticket[LR_TICKET_TEXT];

	if (!x)
		return lr_fail(err, ENOMEM, "fetch the seed");
	*x = (struct coming){.seed = ret,
			     .flags = flags_of(o->prefetch, o->stats),
			     .mib = o->prefetch_mib,
			     .source = LR_NOFD};
	int r = lr_forkctl_ticket(o->ticket_from, ticket, err);
	if (r >= 0)
		r = ret->lazy = connect_daemon(o, err);
	if (r >= 0)
		r = lr_forkctl_fetch(ret->lazy, ticket, &ret->descriptor, x->id, err);
	if (r >= 0)
		r = read_seed(x, ret->descriptor, a, err);
	if (r >= 0 && o->stats)
		o->stats->described = lr_now_ns();
	if (r >= 0)
		r = choose_source(x, o, a, err);
	if (r >= 0)
		r = make_pages(x, o->eager, err);
	if (r >= 0 && o->stats)
		r = count(x, o, err);
	if (r < 0) {
		lr_close(x->source);
		return r;
	}
	if (x->source >= 0) { /* it lives without the connection, which had brought the rest */
		lr_close(ret->lazy);
		ret->lazy = lr_take_fd(&x->source);
	}
	/* It needs nobody any more: its pages are in a file, as those of a seed on a disk. */
	if (!o->eager)
		return comes(x, err);
	ret->lazy = lr_close(ret->lazy);
	return 0;
}

int lr_checkpoint_reopen(int descriptor, int lazy, const struct lr_checkpoint_opts *how,
			 struct lr_arena *a, struct lr_init_seed *ret, struct lr_err *err)
{
	struct coming *x = lr_new(a, struct coming);
	void *bytes = NULL;
	uint64_t size = 0;

	*ret = LR_INIT_SEED_NONE;
	if (!x)
		return lr_fail(err, ENOMEM, "open the seed again");
	int r = lr_checkpoint_read_descriptor(descriptor, a, &bytes, &size, err);
	if (r >= 0)
		r = lr_seed_open(bytes, size, UINT64_MAX, &ret->seed, err);
	if (r < 0)
		return r;
	ret->descriptor = descriptor;
	ret->lazy = lazy;
	*x = (struct coming){.seed = ret,
			     .flags = flags_of(how->prefetch, false),
			     .mib = how->prefetch_mib,
			     .source = LR_NOFD};
	memcpy(x->id, ret->seed.header->id, sizeof(x->id));
	return lazy >= 0 ? comes(x, err) : 0;
}
#else
int lr_checkpoint_reopen(int descriptor, int lazy, const struct lr_checkpoint_opts *how,
			 struct lr_arena *a, struct lr_init_seed *ret, struct lr_err *err)
{
	(void)descriptor;
	(void)lazy;
	(void)how;
	(void)a;
	(void)ret;
	return lr_refuse(err, ENOTSUP, "seeds are of x86-64");
}

int lr_checkpoint_fetch(const struct lr_checkpoint_opts *o, struct lr_arena *a,
			struct lr_init_seed *ret, struct lr_err *err)
{
	(void)o;
	(void)a;
	(void)ret;
	return lr_refuse(err, ENOTSUP, "seeds are of x86-64");
}
#endif
