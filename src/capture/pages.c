/* SPDX-License-Identifier: Apache-2.0 */
/* capture: the contents of private memory, from the twin's to the file of pages. */
#define LR_ROOM "capture"
#include <errno.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/state.h"

/* Of an entry of /proc/PID/pagemap. */
#define PM_PRESENT (UINT64_C(1) << 63)
#define PM_SWAPPED (UINT64_C(1) << 62)
#define PM_FILE    (UINT64_C(1) << 61)
#define PM_GUARD   (UINT64_C(1) << 58) /* Linux 6.14 */

#ifndef PAGEMAP_SCAN /* Linux 6.7 */
struct page_region {
	uint64_t start, end, categories;
};

struct pm_scan_arg {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};

#define PAGEMAP_SCAN    _IOWR('f', 16, struct pm_scan_arg)
#define PAGE_IS_PRESENT (UINT64_C(1) << 3)
#define PAGE_IS_SWAPPED (UINT64_C(1) << 4)
#endif

static bool is_zero(const uint8_t *page)
{
	return page[0] == 0 && memcmp(page, page + 1, LR_SEED_PAGE - 1) == 0;
}

static int add_run(struct cap *c, uint64_t start, uint64_t pages, struct lr_seed_run **runs,
		   size_t *n)
{
	struct lr_seed_run *last = *n > c->first_run ? &(*runs)[*n - 1] : NULL;

	if (last && last->start + last->pages * LR_SEED_PAGE == start &&
	    last->at + last->pages * LR_SEED_PAGE == c->pages_at) {
		last->pages += pages;
		return 0;
	}
	struct lr_seed_run *v = lr_grow(c->a, *runs, *n, sizeof(*v));
	if (!v)
		return -ENOMEM;
	*runs = v;
	v[(*n)++] = (struct lr_seed_run){start, pages, c->pages_at};
	return 0;
}

int cap_put(int fd, const void *bytes, size_t n, uint64_t at, const char *what, struct lr_err *err)
{
	for (size_t done = 0; done < n;) {
		ssize_t r = pwrite(fd, (const uint8_t *)bytes + done, n - done, (off_t)(at + done));
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return lr_fail(err, r < 0 ? errno : ENOSPC, "write the seed's %s", what);
		done += (size_t)r;
	}
	return 0;
}

/* n pages that belong at `start`; zero ones are left out where memory would be zero without. */
int cap_pages_put(struct cap *c, const uint8_t *bytes, uint64_t start, size_t n, bool keep_zero,
		  struct lr_seed_run **runs, size_t *n_runs, struct lr_err *err)
{
	for (size_t i = 0, k; i < n; i = k) {
		for (k = i; k < n && (keep_zero || !is_zero(bytes + k * LR_SEED_PAGE)); k++)
			;
		if (k == i) {
			c->zero_pages++;
			k++;
			continue;
		}
		size_t size = (k - i) * LR_SEED_PAGE;
		if (add_run(c, start + i * LR_SEED_PAGE, k - i, runs, n_runs) < 0)
			return lr_fail(err, ENOMEM, "list the pages");
		int r = cap_put(c->opts->pages, bytes + i * LR_SEED_PAGE, size, c->pages_at,
				"pages", err);
		if (r < 0)
			return r;
		c->pages_at += size;
	}
	return 0;
}

#define LOOK_BYTES (16U << 20)

struct source {
	int mem, pagemap;
	pid_t twin;
	uint8_t *buffer;
};

/* A twin that was killed for want of memory has its own until we look: at this one each time, at the others every
 * LOOK_BYTES. */
static int look_at_twins(struct cap *c, const struct source *s, size_t size, struct lr_err *err)
{
	c->not_looked += size;
	if (c->not_looked < LOOK_BYTES)
		return lr_trace_check_held(s->twin, err);
	c->not_looked = 0;
	return cap_check_twins(c, err);
}

/* By /proc/PID/mem: process_vm_readv(2) pins what it reads, and the kernel gives the twin a copy of
 * its own of each page before that. */
static int read_pages(struct cap *c, const struct source *s, uint64_t start, size_t n,
		      struct lr_err *err)
{
	size_t size = n * LR_SEED_PAGE;

	int r = look_at_twins(c, s, size, err);
	if (r < 0)
		return r;
	ssize_t got = pread(s->mem, s->buffer, size, (off_t)start);
	return got == (ssize_t)size ? 0
				    : lr_fail(err, got < 0 ? errno : EIO, "read memory at %llx",
					      (unsigned long long)start);
}

/* n pages of the process's own. `file`: without them the file's would be there. */
static int take_pages(struct cap *c, const struct source *s, struct cap_process *p, bool file,
		      uint64_t start, size_t n, struct lr_err *err)
{
	if (c->opts->filled || c->opts->take) {
		if (add_run(c, start, n, &p->runs, &p->n_runs) < 0)
			return lr_fail(err, ENOMEM, "list the pages");
		c->pages_at += n * LR_SEED_PAGE;
		return 0;
	}
	int r = read_pages(c, s, start, n, err);
	return r < 0 ? r : cap_pages_put(c, s->buffer, start, n, file, &p->runs, &p->n_runs, err);
}

/* Where at `at` or later, below `end`, something may be. */
static uint64_t next_used(int pagemap, uint64_t at, uint64_t end)
{
	struct page_region found = {0};
	struct pm_scan_arg scan = {
		.size = sizeof(scan),
		.start = at,
		.end = end,
		.vec = (uintptr_t)&found,
		.vec_len = 1,
		.max_pages = 1,
		.category_anyof_mask = PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
		.return_mask = PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
	};

	int n = ioctl(pagemap, PAGEMAP_SCAN, &scan);
	return n < 0 ? at : n == 0 ? scan.walk_end : found.start;
}

/* The pages among `map` that are the process's own. */
static int copy_batch(struct cap *c, const struct source *s, struct cap_process *p,
		      const struct cap_vma *v, uint64_t start, const uint64_t *map, size_t n,
		      struct lr_err *err)
{
	bool file = v->inode != 0;
	int r = 0;

	for (size_t i = 0, k; r >= 0 && i < n; i = k) {
		/* A guard page counts as swapped out, too, and nobody can read it. */
		for (k = i; k < n && map[k] & (PM_PRESENT | PM_SWAPPED) &&
			    !(map[k] & (PM_FILE | PM_GUARD));
		     k++)
			;
		if (k > i) {
			r = take_pages(c, s, p, file, start + i * LR_SEED_PAGE, k - i, err);
			continue;
		}
		if (map[k] & PM_GUARD)
			return lr_refuse(err, ENOTSUP, "guard pages (MADV_GUARD_INSTALL) at %llx",
					 (unsigned long long)(start + k * LR_SEED_PAGE));
		k++;
	}
	return r;
}

static bool is_unused(const uint64_t *map, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (map[i] & (PM_PRESENT | PM_SWAPPED))
			return false;
	return true;
}

static int copy_vma(struct cap *c, const struct source *s, struct cap_process *p,
		    const struct cap_vma *v, struct lr_err *err)
{
	uint64_t map[CAP_BATCH];

	/* No run lies in two mappings. */
	c->first_run = p->n_runs;
	for (uint64_t at = v->start; at < v->end;) {
		size_t n = (v->end - at) / LR_SEED_PAGE;
		n = n < CAP_BATCH ? n : CAP_BATCH;
		ssize_t got = pread(s->pagemap, map, n * 8, (off_t)(at / LR_SEED_PAGE * 8));
		if (got != (ssize_t)(n * 8))
			return lr_fail(err, got < 0 ? errno : EIO,
				       "look at the pages of process %d", p->pid);
		int r = copy_batch(c, s, p, v, at, map, n, err);
		if (r < 0)
			return r;
		at += n * LR_SEED_PAGE;
		/* Programs reserve terabytes. */
		if (at < v->end && is_unused(map, n))
			at = next_used(s->pagemap, at, v->end);
	}
	return 0;
}

/* The flags of mappings: of a process that may take its time. */
static int match(struct cap *c, struct cap_process *p, struct lr_err *err)
{
	struct cap_maps twin;

	int r = cap_maps_read(c->a, p->twin, "smaps", &twin, err);
	if (r < 0)
		return r;
	for (size_t i = 0, k = 0; i < p->maps.n; i++) {
		struct cap_vma *v = &p->maps.v[i];
		while (k < twin.n && twin.v[k].end <= v->start)
			k++;
		if (k == twin.n || twin.v[k].start > v->start) {
			r = cap_note_withheld(c->before, p, err);
			if (r < 0)
				return r;
			lr_refuse(err, EBUSY,
				  "process %d began to withhold memory from its forks at %llx",
				  p->pid, (unsigned long long)v->start);
			return lr_err_hint(err, "try again");
		}
		/* It still ran when its own flags were read. */
		const char *why = cap_maps_flagged(&twin.v[k]);
		if (why)
			return lr_refuse(err, ENOTSUP, "process %d has %s at %llx", p->pid, why,
					 (unsigned long long)twin.v[k].start);
		/* A fork has none of its parent's locks. */
		v->flags = twin.v[k].flags |
			   (v->flags & (LR_SEED_LOCKED | LR_SEED_LOCKONFAULT | LR_SEED_DONTFORK));
		v->may_write = twin.v[k].may_write;
	}
	return 0;
}

int cap_pages_copy(struct cap *c, struct cap_process *p, struct lr_err *err)
{
	LR_CLEANUP_FREE uint8_t *buffer = malloc((size_t)CAP_BATCH * LR_SEED_PAGE);
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/mem", p->twin);
	p->mem = lr_open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%d/pagemap", p->twin);
	LR_CLEANUP_FD int pagemap = lr_open(path, O_RDONLY | O_CLOEXEC);
	if (p->mem < 0 || pagemap < 0 || !buffer)
		return lr_fail(err, errno, "open the memory of the twin of process %d", p->pid);
	const struct source s = {p->mem, pagemap, p->twin, buffer};
	int r = match(c, p, err);
	for (size_t i = 0; r >= 0 && i < p->maps.n; i++) {
		const struct cap_vma *v = &p->maps.v[i];
		if (!v->shared && !lr_has_prefix(v->name, "[v"))
			r = copy_vma(c, &s, p, v, err);
	}
	return r;
}

/* ---- later ------------------------------------------------------------------------------------ */

#define TELL_PAGES 1024U

struct filling {
	struct cap *c;
	uint8_t *buffer;
	struct lr_capture_pages told; /* in place, and not told yet */
	struct lr_capture_wanted wanted;
};

/* To ask another process takes time, so it is not done for each batch. Nobody may go on with what was read of a twin
 * that had been killed. */
static int tell(struct filling *f, bool last, struct lr_err *err)
{
	const struct lr_capture *o = f->c->opts;
	int r = cap_check_twins(f->c, err);

	if (r >= 0 && o->filled && (f->told.pages || last))
		r = o->filled(o->written_arg, &f->told, last, &f->wanted, err);
	f->told.at += f->told.pages * LR_SEED_PAGE;
	f->told.pages = 0;
	return r;
}

/* Where there are zeros, the file has a hole. */
static int put_sparse(struct filling *f, size_t n, uint64_t at, struct lr_err *err)
{
	for (size_t i = 0, k; i < n; i = k) {
		for (k = i; k < n && !is_zero(f->buffer + k * LR_SEED_PAGE); k++)
			;
		if (k == i) {
			f->c->zero_pages++;
			k++;
			continue;
		}
		int r = cap_put(f->c->opts->pages, f->buffer + i * LR_SEED_PAGE,
				(k - i) * LR_SEED_PAGE, at + i * LR_SEED_PAGE, "pages", err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* What of the file's pages [at, end) this run has. */
static int fill_run(struct filling *f, const struct cap_process *p, const struct lr_seed_run *run,
		    uint64_t at, uint64_t end, struct lr_err *err)
{
	const uint64_t run_end = run->at + run->pages * LR_SEED_PAGE;
	const struct source s = {p->mem, LR_NOFD, p->twin, f->buffer};
	int r = 0;

	at = at < run->at ? run->at : at;
	end = end < run_end ? end : run_end;
	for (size_t n; r >= 0 && at < end; at += n * LR_SEED_PAGE) {
		n = (size_t)((end - at) / LR_SEED_PAGE);
		n = n < CAP_BATCH ? n : CAP_BATCH;
		r = read_pages(f->c, &s, run->start + (at - run->at), n, err);
		if (r >= 0)
			r = put_sparse(f, n, at, err);
		if (r < 0)
			return r;
		if (f->told.at + f->told.pages * LR_SEED_PAGE != at || f->told.pages >= TELL_PAGES)
			r = tell(f, false, err);
		if (!f->told.pages)
			f->told.at = at;
		f->told.pages += n;
	}
	return r;
}

/* Until nobody waits. */
static int fill_wanted(struct filling *f, struct lr_err *err)
{
	int r = 0;

	while (r >= 0 && f->wanted.n) {
		const struct lr_capture_wanted w = f->wanted;
		f->wanted.n = 0;
		for (size_t k = 0; k < w.n; k++) {
			const uint64_t end = w.v[k].at + w.v[k].pages * LR_SEED_PAGE;
			for (size_t i = 0; r >= 0 && i < f->c->n; i++)
				for (size_t j = 0; r >= 0 && j < f->c->p[i].n_runs; j++)
					r = fill_run(f, &f->c->p[i], &f->c->p[i].runs[j], w.v[k].at,
						     end, err);
		}
		if (r >= 0)
			r = tell(f, false, err);
	}
	return r;
}

/* What lies on a file, or all else. Runs and mappings are in the order of their addresses. */
static int fill(struct filling *f, const struct cap_process *p, bool file, struct lr_err *err)
{
	const struct cap_vma *v = p->maps.v;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < p->n_runs; i++) {
		const struct lr_seed_run *run = &p->runs[i];
		while (v->end <= run->start)
			v++;
		if ((v->inode != 0) != file)
			continue;
		/* In parts, so that nobody waits for a long one. */
		for (uint64_t k = 0; r >= 0 && k < run->pages; k += TELL_PAGES) {
			const uint64_t at = run->at + k * LR_SEED_PAGE;
			r = fill_run(f, p, run, at, at + TELL_PAGES * LR_SEED_PAGE, err);
			if (r >= 0)
				r = fill_wanted(f, err);
		}
	}
	return r;
}

int cap_pages_fill(struct cap *c, struct lr_err *err)
{
	LR_CLEANUP_FREE uint8_t *buffer = malloc((size_t)CAP_BATCH * LR_SEED_PAGE);
	/* Objects and files of tmpfs are there since all was held. */
	struct filling f = {
		.c = c, .buffer = buffer, .told = {LR_SEED_PAGE, c->private_at / LR_SEED_PAGE - 1}};
	int r = buffer ? 0 : lr_fail(err, ENOMEM, "copy the memory of process %d", c->opts->pid);

	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; r >= 0 && i < c->n; i++)
			r = fill(&f, &c->p[i], pass == 0, err);
		if (r >= 0)
			r = tell(&f, false, err);
	}
	if (r >= 0)
		return tell(&f, true, err);
	int dead = cap_check_twins(c, err);
	return dead < 0 ? dead : r;
}
