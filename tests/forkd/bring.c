/* SPDX-License-Identifier: Apache-2.0 */
/* forkd-tool: pages that are asked for, before there is a process to touch them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LR_ROOM "tool"
#include "src/base/fd.h"
#include "src/forkctl/forkctl.h"
#include "src/seed/seed.h"
#include "tests/forkd/tool.h"

static int open_seed(int fd, struct lr_seed *s)
{
	struct stat st;

	fstat(fd, &st);
	void *at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	return at == MAP_FAILED ? -errno
				: lr_seed_open(at, (size_t)st.st_size, UINT64_MAX, s, NULL);
}

static bool is_right(int file, const struct lr_seed_run *run)
{
	uint64_t want[LR_SEED_PAGE / 8], got[LR_SEED_PAGE / 8];

	for (uint64_t i = 0; i < run->pages; i++) {
		fill_page(want, (run->start - MEMORY) / LR_SEED_PAGE + i);
		if (pread(file, got, sizeof(got), (off_t)(run->at + i * LR_SEED_PAGE)) !=
			    (ssize_t)sizeof(got) ||
		    memcmp(want, got, sizeof(got)) != 0)
			return false;
	}
	return true;
}

/* Every other run, seven at once: what was not asked for is not there. */
static int bring_runs(int sock, const uint8_t *id, const struct lr_seed *s, int file,
		      struct lr_err *err)
{
	struct lr_wire_range v[7];
	size_t n = 0;

	for (uint32_t i = 0; i < lr_seed_count(s, LR_SEED_RUN); i += 2) {
		const struct lr_seed_run *run = lr_seed_run(s, i);
		v[n++] = (struct lr_wire_range){run->at, (uint32_t)run->pages};
		if (n < 7 && i + 2 < lr_seed_count(s, LR_SEED_RUN))
			continue;
		int r = lr_forkctl_bring(sock, id, v, n, file, err);
		if (r < 0)
			return r;
		n = 0;
	}
	for (uint32_t i = 0; i < lr_seed_count(s, LR_SEED_RUN); i++)
		if (is_right(file, lr_seed_run(s, i)) != (i % 2 == 0))
			return lr_refuse(err, EILSEQ, "run %u is not as it should be", i);
	return 0;
}

static int refused(int sock, const uint8_t *id, const struct lr_seed *s, int file,
		   struct lr_err *err)
{
	const struct lr_wire_range behind = {s->header->pages, 1};
	const struct lr_wire_range over = {s->header->pages - LR_SEED_PAGE, 2};
	const struct lr_wire_range one = {LR_SEED_PAGE, 1};
	const uint8_t nobody[LR_WIRE_ID] = {0};
	LR_CLEANUP_FD int sealed = memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	fcntl(sealed, F_ADD_SEALS, F_SEAL_WRITE);
	if (lr_forkctl_bring(sock, id, &behind, 1, file, NULL) == 0 ||
	    lr_forkctl_bring(sock, id, &over, 1, file, NULL) == 0 ||
	    lr_forkctl_bring(sock, nobody, &one, 1, file, NULL) == 0 ||
	    lr_forkctl_bring(sock, id, &one, 1, sealed, NULL) == 0)
		return lr_refuse(err, EILSEQ, "what there is not was brought");
	return 0;
}

int bring(int sock, const char *arg, struct lr_err *err)
{
	LR_CLEANUP_FD int file = memfd_create("pages", MFD_CLOEXEC);
	char ticket[LR_TICKET_TEXT];
	uint8_t id[LR_WIRE_ID];
	struct lr_seed s;
	int fd = -1;
	int r = lr_forkctl_ticket(arg, ticket, err);

	if (r == 0)
		r = lr_forkctl_fetch(sock, ticket, &fd, id, err);
	if (r == 0 && open_seed(fd, &s) < 0)
		r = lr_refuse(err, EIO, "no descriptor");
	if (r == 0 && ftruncate(file, (off_t)s.header->pages) < 0)
		r = lr_fail(err, errno, "ftruncate");
	if (r == 0)
		r = bring_runs(sock, id, &s, file, err);
	return r < 0 ? r : refused(sock, id, &s, file, err);
}
