/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forkd-tool: for tests/forkd/run.
 *
 *	forkd-tool make DIR PAGES [ID]
 *		a seed of one process, with memory that child.c knows; with an id, of other contents
 *	forkd-tool child CONTROL TICKET HOW [AROUND]
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/seed/seed.h"
#include "src/wire/ticket.h"
#include "tests/forkd/tool.h"

void fill_page(uint64_t *page, uint64_t i)
{
	for (size_t k = 0; k < LR_SEED_PAGE / sizeof(*page); k++)
		page[k] = is_hole(i) ? 0 : (i + 1) * 0x9e3779b97f4a7c15 + k;
}

/* Runs between the holes; returns how many pages there are in the file. */
static uint64_t add_runs(struct lr_seed_writer *w, uint64_t pages)
{
	uint64_t at = 1;

	for (uint64_t i = 0; i < pages;) {
		uint64_t n = 0;
		while (i + n < pages && !is_hole(i + n))
			n++;
		if (n)
			lr_seed_add(w, LR_SEED_RUN,
				    &(struct lr_seed_run){MEMORY + i * LR_SEED_PAGE, n,
							  at * LR_SEED_PAGE});
		at += n;
		i += n + 1;
	}
	lr_seed_add(
		w, LR_SEED_RUN,
		&(struct lr_seed_run){MEMORY + pages * LR_SEED_PAGE, WRITTEN, at * LR_SEED_PAGE});
	return at + WRITTEN;
}

static void *describe(struct lr_arena *a, uint64_t pages, const char *with_id, size_t *size,
		      struct lr_err *err)
{
	struct lr_seed_writer *w = lr_seed_writer_new(a);
	const uint64_t auxv[4] = {6, 4096, 0, 0};
	uint8_t xsave[832] = {0}, id[16];
	void *ret = NULL;

	int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, id, sizeof(id)) != (ssize_t)sizeof(id))
		abort();
	close(fd);
	if (with_id && lr_wire_id_of(with_id, strlen(with_id), id) < 0)
		abort();
	struct lr_seed_mm mm = {.exe = lr_seed_add_text(w, "/bin/prog"),
				.auxv = lr_seed_add_bytes(w, auxv, sizeof(auxv)),
				.vmas = {0, 2}};
	lr_seed_add(w, LR_SEED_HOST,
		    &(struct lr_seed_host){.machine = LR_SEED_X86_64,
					   .page = LR_SEED_PAGE,
					   .xsave = sizeof(xsave),
					   .release = lr_seed_add_text(w, "6.18")});
	lr_seed_add(w, LR_SEED_PROCESS,
		    &(struct lr_seed_process){.pid = 7, .parent = LR_SEED_NONE, .threads = {0, 1}});
	lr_seed_add(w, LR_SEED_THREAD,
		    &(struct lr_seed_thread){.tid = 7,
					     .regs = {[LR_SEED_RIP] = MEMORY},
					     .xsave = lr_seed_add_bytes(w, xsave, sizeof(xsave)),
					     .name = "prog"});
	lr_seed_add(w, LR_SEED_VMA,
		    &(struct lr_seed_vma){.start = MEMORY,
					  .end = MEMORY + pages * LR_SEED_PAGE,
					  .kind = LR_SEED_ANON,
					  .prot = PROT_READ | PROT_WRITE,
					  .backing = LR_SEED_NONE,
					  .object = LR_SEED_NONE});
	lr_seed_add(w, LR_SEED_VMA,
		    &(struct lr_seed_vma){.start = MEMORY + pages * LR_SEED_PAGE,
					  .end = MEMORY + (pages + WRITTEN) * LR_SEED_PAGE,
					  .kind = LR_SEED_PRIVATE,
					  .prot = PROT_READ | PROT_WRITE,
					  .backing = 0,
					  .object = LR_SEED_NONE});
	lr_seed_add(w, LR_SEED_BACKING,
		    &(struct lr_seed_backing){.path = lr_seed_add_text(w, "/bin/prog")});
	uint64_t file = add_runs(w, pages);
	mm.runs.count = lr_seed_next(w, LR_SEED_RUN);
	lr_seed_add(w, LR_SEED_MM, &mm);
	lr_seed_add(w, LR_SEED_FS, &(struct lr_seed_fs){.cwd = lr_seed_add_text(w, "/")});
	lr_seed_add(w, LR_SEED_CRED, &(struct lr_seed_cred){0});
	return lr_seed_finish(w, file * LR_SEED_PAGE, id, &ret, size, err) < 0 ? NULL : ret;
}

static int write_file(const char *dir, const char *name, const void *bytes, size_t n)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	int fd = open(path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
	int r = fd >= 0 && lr_write_full(fd, bytes, n) == (ssize_t)n ? 0 : -1;
	close(fd);
	return r;
}

static int make(const char *dir, uint64_t pages, const char *id)
{
	static uint64_t page[LR_SEED_PAGE / 8];
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_err err = {0};
	char line[1024];
	size_t size;
	void *bytes = describe(a, pages, id, &size, &err);

	if (!bytes) {
		fprintf(stderr, "forkd-tool: %s\n", lr_err_format(&err, line, sizeof(line)));
		return 1;
	}
	char *all = calloc(pages + WRITTEN + 1, LR_SEED_PAGE);
	size_t at = LR_SEED_PAGE;
	if (!all)
		return 1;
	lr_seed_pages_header(bytes, (struct lr_seed_pages_header *)all);
	for (uint64_t i = 0; i < pages + WRITTEN; i++) {
		if (i < pages && is_hole(i))
			continue;
		fill_page(page, id ? i + 1 : i);
		memcpy(all + at, page, sizeof(page));
		at += sizeof(page);
	}
	int r = write_file(dir, "descriptor", bytes, size) < 0 ||
		write_file(dir, "pages", all, at) < 0;
	free(all);
	return r;
}

int main(int argc, char **argv)
{
	uint64_t pages;

	if ((argc == 4 || argc == 5) && lr_streq(argv[1], "make") &&
	    lr_parse_u64(argv[3], &pages) == 0)
		return make(argv[2], pages, argc == 5 ? argv[4] : NULL);
	if (argc >= 5 && lr_streq(argv[1], "child"))
		return child(argv[2], argv[3], argv[4], argc > 5 ? (uint32_t)atoi(argv[5]) : 16);
	fputs("usage: forkd-tool make DIR PAGES [ID] | child CONTROL TICKET HOW [AROUND]\n",
	      stderr);
	return 2;
}
