/* SPDX-License-Identifier: Apache-2.0 */
/* capture: what was taken, as the descriptor of a seed. The order is the format's. */
#define LR_ROOM "capture"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/state.h"
#include "src/sys/vectors.h"

struct writing {
	struct cap *c;
	struct lr_seed_writer *w;
	struct lr_err *err;
	uint64_t components; /* of XSAVE areas */
};

static int64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* XCR0, which the kernel leaves in the first word for programs. Tiles only if somebody may have them: a child of others needs
 * no machine that has some. */
static uint64_t components(const struct cap *c)
{
	const struct cap_thread *t = &c->p[0].threads[0];
	bool tiles = false;
	uint64_t all = 0;

	if (t->xsave_size >= LR_VECTORS_WORDS + sizeof(all))
		memcpy(&all, (const uint8_t *)t->xsave + LR_VECTORS_WORDS, sizeof(all));
	for (size_t i = 0; i < c->n; i++)
		tiles |= c->p[i].seed.flags & LR_SEED_TILES;
	return tiles ? all : all & ~LR_VECTORS_TILES;
}

/* Without the room for tiles, where it has none. */
static size_t xsave_size(uint64_t all, const struct cap_thread *t)
{
	const bool tiles = t->xsave_size >= LR_VECTORS_HEAD &&
			   lr_vectors_used(t->xsave) & LR_VECTORS_TILE_DATA;
	const size_t size = lr_vectors_size(tiles ? all : all & ~LR_VECTORS_TILE_DATA);

	return size < t->xsave_size ? size : t->xsave_size;
}

static int put_host(struct writing *x)
{
	const struct cap_process *p = x->c->p;
	struct lr_seed_host h = {.machine = LR_SEED_X86_64,
				 .page = LR_SEED_PAGE,
				 .vdso = (uint32_t)(p->maps.vdso_end - p->maps.vdso),
				 .vvar = (uint32_t)(p->maps.vvar_end - p->maps.vvar),
				 .realtime = clock_ns(CLOCK_REALTIME),
				 .monotonic = clock_ns(CLOCK_MONOTONIC),
				 .boottime = clock_ns(CLOCK_BOOTTIME)};
	struct utsname uts;

	h.xfeatures = x->components = components(x->c);
	for (size_t i = 0; i < x->c->n; i++)
		for (size_t k = 0; k < x->c->p[i].n_threads; k++) {
			const size_t size = xsave_size(x->components, &x->c->p[i].threads[k]);
			h.xsave = size > h.xsave ? (uint32_t)size : h.xsave;
		}
	/* Ours is the same: one kernel has one. */
	const uint8_t *vdso = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	if (vdso)
		h.vdso_sum = lr_hash(LR_HASH, vdso, LR_SEED_PAGE);
	uname(&uts);
	h.release = lr_seed_add_text(x->w, uts.release);
	lr_seed_add(x->w, LR_SEED_HOST, &h);
	return 0;
}

static struct lr_seed_range put_all(struct writing *x, enum lr_seed_type type, const void *v,
				    size_t n, size_t size)
{
	struct lr_seed_range r = {lr_seed_next(x->w, type), (uint32_t)n};

	for (size_t i = 0; i < n; i++)
		lr_seed_add(x->w, type, (const uint8_t *)v + i * size);
	return r;
}

/* ---- processes and threads ------------------------------------------------------------------- */

static uint32_t put_cred(struct writing *x, const struct cap_thread *t)
{
	struct lr_seed_cred cred = t->cred;

	cred.groups = lr_seed_add_bytes(x->w, t->groups, t->n_groups * sizeof(*t->groups));
	return lr_seed_add(x->w, LR_SEED_CRED, &cred);
}

static uint32_t parent_of(const struct cap *c, const struct cap_process *p)
{
	const struct cap_process *parent = p == c->p ? NULL : cap_process_of(c, p->parent);

	return parent ? (uint32_t)(parent - c->p) : LR_SEED_NONE;
}

/* 0: of somebody outside. */
static uint32_t inside(const struct cap *c, uint32_t id)
{
	return cap_member_of(c, CAP_INNER_PID, id) ? id : 0;
}

static void put_process(struct writing *x, struct cap_process *p, uint32_t *next_mm)
{
	bool zombie = p->seed.flags & LR_SEED_ZOMBIE;
	struct lr_seed_fs fs = {.umask = p->umask};
	struct lr_seed_process *s = &p->seed;

	s->parent = parent_of(x->c, p);
	/* In a pid namespace of its own a group may be without its leader. */
	if (!x->c->opts->namespace_too)
		s->pgid = inside(x->c, s->pgid);
	s->sid = inside(x->c, s->sid);
	s->mm = zombie ? LR_SEED_NONE : (*next_mm)++;
	s->fs = LR_SEED_NONE;
	if (zombie)
		p->n_threads = 0;
	if (!zombie) {
		fs.cwd = lr_seed_add_text(x->w, p->cwd);
		fs.root = lr_seed_add_text(x->w, p->root);
		s->fs = lr_seed_add(x->w, LR_SEED_FS, &fs);
	}
	s->threads.first = lr_seed_next(x->w, LR_SEED_THREAD);
	s->threads.count = (uint32_t)p->n_threads;
	for (size_t i = 0; i < p->n_threads; i++)
		lr_seed_add(x->w, LR_SEED_THREAD, &p->threads[i].seed);
	s->fds.first = lr_seed_next(x->w, LR_SEED_FD);
	s->fds.count = (uint32_t)p->n_fds;
	for (size_t i = 0; i < p->n_fds; i++)
		lr_seed_add(x->w, LR_SEED_FD,
			    &(struct lr_seed_fd){.number = p->fds[i].number,
						 .file = p->fds[i].file->index,
						 .cloexec = p->fds[i].cloexec});
	s->limits = put_all(x, LR_SEED_LIMIT, p->limits, zombie ? 0 : LR_ARRAY_SIZE(p->limits),
			    sizeof(p->limits[0]));
	s->actions = put_all(x, LR_SEED_ACTION, p->actions, p->n_actions, sizeof(*p->actions));
	s->signals = put_all(x, LR_SEED_SIGNAL, p->pending, p->n_pending, sizeof(*p->pending));
	for (size_t i = 0; i < p->n_timers; i++)
		for (size_t k = 0; k < p->n_threads; k++)
			if (p->timers[i].tid == (uint32_t)p->threads[k].tid)
				p->timers[i].tid = p->threads[k].seed.tid;
	s->timers = put_all(x, LR_SEED_TIMER, p->timers, p->n_timers, sizeof(*p->timers));
	lr_seed_add(x->w, LR_SEED_PROCESS, s);
}

static void put_threads(struct writing *x)
{
	uint32_t n = 0;

	for (size_t i = 0; i < x->c->n; i++)
		for (size_t k = 0; k < x->c->p[i].n_threads; k++) {
			struct cap_thread *t = &x->c->p[i].threads[k];
			uint32_t cred = put_cred(x, t);
			struct lr_seed_bytes xsave =
				lr_seed_add_bytes(x->w, t->xsave, xsave_size(x->components, t));
			struct lr_seed_range pending = put_all(x, LR_SEED_SIGNAL, t->pending,
							       t->n_pending, sizeof(*t->pending));
			struct lr_seed_thread *s = lr_seed_edit(x->w, LR_SEED_THREAD, n++);
			if (!s)
				return;
			s->cred = cred;
			s->xsave = xsave;
			s->signals = pending;
		}
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void put_objects(struct writing *x)
{
	for (size_t i = 0; i < x->c->n_objects; i++) {
		struct cap_object *o = &x->c->objects[i];
		o->seed.name = lr_seed_add_text(x->w, o->name);
		o->seed.runs = put_all(x, LR_SEED_RUN, o->runs, o->n_runs, sizeof(*o->runs));
		lr_seed_add(x->w, LR_SEED_OBJECT, &o->seed);
	}
}

/* The file as the twin sees it, since the process runs on. */
static int sum_file(const struct cap_process *p, const struct cap_vma *v, struct lr_seed_backing *b,
		    struct lr_err *err)
{
	struct stat st;

	LR_CLEANUP_FD int fd = cap_open_mapping(p->twin, v);
	if (fd < 0 || fstat(fd, &st) < 0)
		return cap_open_failed(lr_fail(err, errno, "open %s, which is mapped", v->name),
				       err);
	b->size = (uint64_t)st.st_size;
	int r = lr_seed_sum_file(fd, b->size, &b->sum);
	return r < 0 ? lr_fail(err, -r, "read %s, which is mapped", v->name) : 0;
}

struct cap_backing {
	const char *name;
	uint64_t inode;
	unsigned major, minor;
	uint32_t index;
};

static bool is_backing(const struct cap_backing *b, const struct cap_vma *v)
{
	return b->inode == v->inode && b->major == v->major && b->minor == v->minor &&
	       lr_streq(b->name, v->name);
}

static int put_backing(struct writing *x, const struct cap_process *p, const struct cap_vma *v,
		       uint32_t *ret)
{
	struct cap *c = x->c;

	const uint64_t device = makedev(v->major, v->minor);
	const uint64_t hash =
		lr_hash(lr_hash(LR_HASH, &device, sizeof(device)), v->name, strlen(v->name));
	size_t i;

	if (cap_index_find(&c->backing_of, v->inode, hash, &i) && is_backing(&c->backings[i], v)) {
		*ret = c->backings[i].index;
		return 0;
	}
	struct lr_seed_backing b = {0};
	/* What is in a tmpfs is carried, and may be another by now. */
	const char *path = cap_tmpfs_path(c, device, v->inode);
	int r = path ? 0 : sum_file(p, v, &b, x->err);
	if (r < 0)
		return r;
	struct cap_backing *grown = lr_grow(c->a, c->backings, c->n_backings, sizeof(*grown));
	if (!grown || cap_index_put(c->a, &c->backing_of, v->inode, hash, c->n_backings) < 0)
		return lr_fail(x->err, ENOMEM, "list mapped files");
	c->backings = grown;
	b.path = lr_seed_add_text(x->w, path ? path : v->name);
	*ret = lr_seed_add(x->w, LR_SEED_BACKING, &b);
	c->backings[c->n_backings++] =
		(struct cap_backing){v->name, v->inode, v->major, v->minor, *ret};
	return 0;
}

static int put_vma(struct writing *x, const struct cap_process *p, const struct cap_vma *v)
{
	struct lr_seed_vma s = {.start = v->start,
				.end = v->end,
				.prot = v->prot,
				.flags = v->flags & LR_SEED_VMA_FLAGS,
				.backing = LR_SEED_NONE,
				.object = LR_SEED_NONE};
	struct cap_object *o =
		v->inode ? cap_object_of(x->c, makedev(v->major, v->minor), v->inode) : NULL;

	if (lr_streq(v->name, "[vdso]")) {
		s.kind = LR_SEED_VDSO;
	} else if (lr_has_prefix(v->name, "[vvar")) {
		s.kind = LR_SEED_VVAR;
	} else if (o) {
		/* It may become writable as it is older than the seal; a child's would be younger. */
		if (v->shared && v->may_write && !(v->prot & PROT_WRITE) &&
		    o->seed.seals & LR_SEED_SEAL_FUTURE_WRITE)
			return lr_refuse(x->err, ENOTSUP,
					 "shared memory of process %d that is sealed "
					 "(F_SEAL_FUTURE_WRITE), and may become writable at %llx",
					 p->pid, (unsigned long long)v->start);
		s.kind = v->shared ? LR_SEED_SHARES : LR_SEED_COPY;
		s.object = (uint32_t)(o - x->c->objects);
		s.offset = v->offset;
	} else if (!v->inode) {
		s.kind = LR_SEED_ANON;
	} else {
		s.kind = v->shared ? LR_SEED_SHARED : LR_SEED_PRIVATE;
		s.offset = v->offset;
		int r = put_backing(x, p, v, &s.backing);
		if (r < 0)
			return r;
	}
	lr_seed_add(x->w, LR_SEED_VMA, &s);
	return 0;
}

static int put_mm(struct writing *x, struct cap_process *p)
{
	p->mm.auxv = lr_seed_add_bytes(x->w, p->auxv, p->auxv_size & ~(size_t)15);
	p->mm.exe = lr_seed_add_text(x->w, p->exe);
	p->mm.vmas.first = lr_seed_next(x->w, LR_SEED_VMA);
	for (size_t i = 0; i < p->maps.n; i++) {
		int r = put_vma(x, p, &p->maps.v[i]);
		if (r < 0)
			return r;
	}
	p->mm.vmas.count = lr_seed_next(x->w, LR_SEED_VMA) - p->mm.vmas.first;
	p->mm.runs = put_all(x, LR_SEED_RUN, p->runs, p->n_runs, sizeof(*p->runs));
	lr_seed_add(x->w, LR_SEED_MM, &p->mm);
	return 0;
}

/* ---- descriptors ----------------------------------------------------------------------------- */

/* The file that a watch of an epoll means, as the process has it now. */
static uint32_t watched(const struct cap *c, const struct cap_watch *w)
{
	const struct cap_process *p = cap_process_of(c, w->pid);
	const struct cap_file *f = p ? cap_file_of(p, w->number) : NULL;

	return f && f->inode == w->inode ? f->index : LR_SEED_NONE;
}

static void put_endpoint(struct writing *x, struct cap_file *f)
{
	struct cap_endpoint *e = f->endpoint;

	e->seed.address = lr_seed_add_bytes(x->w, e->address, e->size);
	e->seed.dir = lr_seed_add_text(x->w, e->dir);
	f->seed.args[0] = lr_seed_add(x->w, LR_SEED_ENDPOINT, &e->seed);
}

static void put_path(const struct writing *x, const struct cap_watch *w)
{
	lr_seed_add(x->w, LR_SEED_WATCH,
		    &(struct lr_seed_watch){.number = w->number,
					    .file = LR_SEED_NONE,
					    .path = lr_seed_add_text(x->w, w->path),
					    .mask = w->events,
					    .data = w->data});
}

static int put_file(struct writing *x, struct cap_file *f)
{
	struct cap_object *o = f->seed.kind == LR_SEED_MEMFD_FILE
				       ? cap_object_of(x->c, f->device, f->inode)
				       : NULL;

	f->seed.object = o ? (uint32_t)(o - x->c->objects) : LR_SEED_NONE;
	if (f->seed.kind == LR_SEED_REGULAR)
		f->seed.path = lr_seed_add_text(x->w, f->path);
	if (f->endpoint)
		put_endpoint(x, f);
	f->seed.watches.first = lr_seed_next(x->w, LR_SEED_WATCH);
	f->seed.watches.count = (uint32_t)f->n_watches;
	for (size_t i = 0; i < f->n_watches; i++) {
		const struct cap_watch *w = &f->watches[i];
		if (w->path) {
			put_path(x, w);
			continue;
		}
		uint32_t file = watched(x->c, w);
		if (file == LR_SEED_NONE) {
			lr_refuse(x->err, ENOTSUP,
				  "an epoll of process %d watches a file that is descriptor %u no "
				  "more",
				  f->pid, w->number);
			return lr_err_hint(x->err, "such a watch can't be made again");
		}
		lr_seed_add(x->w, LR_SEED_WATCH,
			    &(struct lr_seed_watch){.number = w->number,
						    .file = file,
						    .mask = w->events,
						    .data = w->data});
	}
	lr_seed_add(x->w, LR_SEED_FILE, &f->seed);
	return 0;
}

static void put_channels(struct writing *x)
{
	for (size_t i = 0; i < x->c->n_channels; i++) {
		struct cap_channel *ch = &x->c->channels[i];
		for (unsigned k = 0; k < 2; k++)
			ch->seed.data[k] = lr_seed_add_bytes(x->w, ch->data[k], ch->size[k]);
		lr_seed_add(x->w, LR_SEED_CHANNEL, &ch->seed);
	}
}

static int write_out(struct cap *c, const void *bytes, size_t size, struct lr_err *err)
{
	struct lr_seed_pages_header h;

	lr_seed_pages_header(bytes, &h);
	if (ftruncate(c->opts->pages, (off_t)c->pages_at) < 0)
		return lr_fail(err, errno, "write the seed's pages");
	int r = cap_put(c->opts->pages, &h, sizeof(h), 0, "pages", err);
	return r < 0 ? r : cap_put(c->opts->descriptor, bytes, size, 0, "descriptor", err);
}

int cap_write(struct cap *c, struct lr_err *err)
{
	struct writing x = {c, lr_seed_writer_new(c->a), err};
	uint8_t id[16];
	uint32_t next_mm = 0;
	size_t size;
	void *bytes;

	if (!x.w || getrandom(id, sizeof(id), 0) != (ssize_t)sizeof(id))
		return lr_fail(err, ENOMEM, "write the seed");
	int r = put_host(&x);
	for (size_t i = 0; i < c->n; i++)
		put_process(&x, &c->p[i], &next_mm);
	put_threads(&x);
	put_objects(&x);
	for (size_t i = 0; r >= 0 && i < c->n; i++)
		r = c->p[i].seed.flags & LR_SEED_ZOMBIE ? 0 : put_mm(&x, &c->p[i]);
	for (size_t i = 0; r >= 0 && i < c->n_files; i++)
		r = put_file(&x, c->files[i]);
	put_channels(&x);
	cap_tmpfs_put(c, x.w);
	cap_terminal_put(c, x.w);
	cap_changed_put(c, x.w);
	if (r >= 0)
		r = lr_seed_finish(x.w, c->pages_at, id, &bytes, &size, err);
	return r < 0 ? r : write_out(c, bytes, size, err);
}
