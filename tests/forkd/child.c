/* SPDX-License-Identifier: Apache-2.0 */
/* forkd-tool: a child whose memory comes when it is touched. */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/base/str.h"
#include "src/forkctl/forkctl.h"
#include "src/seed/seed.h"
#include "src/sys/socket.h"
#include "tests/forkd/tool.h"

static uint64_t pages;
static char *memory;
static bool limited;

/* ---- begin -------------------------------------------------------------------------------- */

static int open_uffd(void)
{
	struct uffdio_api api = {.api = UFFD_API,
				 .features = UFFD_FEATURE_EVENT_FORK | UFFD_FEATURE_EVENT_REMAP |
					     UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_UNMAP};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	return fd < 0 || ioctl(fd, UFFDIO_API, &api) < 0 ? -1 : fd;
}

static int enrol(int fd)
{
	struct uffdio_register r = {.range = {MEMORY, pages * LR_SEED_PAGE},
				    .mode = UFFDIO_REGISTER_MODE_MISSING};

	return ioctl(fd, UFFDIO_REGISTER, &r);
}

/* As src/resume does it: four bytes, and the descriptor. */
static int hand_over(int sock, int fd)
{
	const uint32_t index = 0;

	return lr_socket_send_fd(sock, fd, (const char *)&index, sizeof(index)) < 0 ? -1
										    : close(fd);
}

static int measure(int fd)
{
	struct lr_seed s;
	struct stat st;

	fstat(fd, &st);
	void *at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED || lr_seed_open(at, (size_t)st.st_size, UINT64_MAX, &s, NULL) < 0)
		return -1;
	pages = (lr_seed_vma(&s, 0)->end - MEMORY) / LR_SEED_PAGE;
	return 0;
}

/* As of a process that takes its time from the one to the other. */
static int hand_over_early(int sock, int fd)
{
	int own = dup(fd);
	int r = hand_over(sock, fd);

	nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
	r = r < 0 ? r : enrol(own);
	close(own);
	return r;
}

/* Pages that are far from each other. */
static uint64_t some(void (*look)(uint64_t))
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < pages; i += 97)
		if (!is_hole(i)) {
			look(i);
			n++;
		}
	return n;
}

static void only_count(uint64_t i)
{
	(void)i;
}

static int begin(int sock, const char *arg, uint32_t around, uint32_t flags, bool late,
		 struct lr_err *err)
{
	char ticket[LR_TICKET_TEXT];
	uint8_t id[LR_WIRE_ID];
	int fd = -1;
	int r = lr_forkctl_ticket(arg, ticket, err);

	if (r == 0)
		r = lr_forkctl_fetch(sock, ticket, &fd, id, err);
	if (r == 0 && measure(fd) < 0)
		return lr_err_set(err, EIO, "tool", false, "no descriptor");
	if (r == 0 && limited)
		r = lr_forkctl_limit(sock, id, some(only_count) * LR_SEED_PAGE, err);
	if (r == 0)
		r = lr_forkctl_serve(sock, id, -1, around, flags, err);
	if (r < 0)
		return r;
	memory = mmap((void *)(uintptr_t)MEMORY, pages * LR_SEED_PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1, 0);
	madvise(memory, pages * LR_SEED_PAGE, MADV_NOHUGEPAGE);
	int uffd = memory == MAP_FAILED ? -1 : open_uffd();
	r = uffd < 0 ? -1 : late ? hand_over_early(sock, uffd) : enrol(uffd);
	if (r < 0 || (!late && hand_over(sock, uffd) < 0))
		return lr_err_set(err, errno, "tool", true, "userfaultfd");
	if (lr_forkctl_ready(sock, 2, NULL) == 0)
		return lr_err_set(err, EILSEQ, "tool", false, "one process was taken for two");
	return lr_forkctl_ready(sock, 1, err);
}

/* ---- to look ------------------------------------------------------------------------------ */

static void right_at(const char *at, uint64_t i, bool zero)
{
	static uint64_t want[LR_SEED_PAGE / 8];

	fill_page(want, i);
	if (zero)
		memset(want, 0, sizeof(want));
	if (memcmp(at, want, sizeof(want)) == 0)
		return;
	printf("WRONG page %llu\n", (unsigned long long)i);
	fflush(stdout);
	_exit(3);
}

static void right(uint64_t i)
{
	right_at(memory + i * LR_SEED_PAGE, i, false);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void look_at_all(uint64_t step)
{
	double began = now(), s;

	for (uint64_t i = 0, at = 0; i < pages; i++, at = (at + step) % pages)
		right(at);
	s = now() - began;
	printf("%llu pages in %.3f s, %.1f MB/s, %.2f us a page\n", (unsigned long long)pages, s,
	       (double)pages * LR_SEED_PAGE / s / 1e6, s * 1e6 / (double)pages);
}

static void in_a_fork(void (*look)(void))
{
	int status;

	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		look();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	if (status)
		_exit(3);
}

static void look_in_fork(void)
{
	for (uint64_t i = 16; i < 64; i++)
		right(i);
	right_at(memory, 0, true); /* discarded before */
}

static void after_move(void)
{
	const char *to = memory + (pages + 64) * LR_SEED_PAGE;

	for (uint64_t i = 0; i < 32; i++)
		right_at(to + i * LR_SEED_PAGE, 64 + i, false);
}

/* Pages 0-7 discarded, 8-15 unmapped and mapped again, 16-63 as they were, 64-95 moved away. */
static void events(void)
{
	char *to = memory + (pages + 64) * LR_SEED_PAGE;
	const size_t eight = 8 * (size_t)LR_SEED_PAGE;

	right(3);
	memory[9 * LR_SEED_PAGE] = 1;
	madvise(memory, eight, MADV_DONTNEED);
	munmap(memory + eight, eight);
	if (mmap(memory + eight, eight, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		_exit(4);
	in_a_fork(look_in_fork);
	if (mremap(memory + 64 * LR_SEED_PAGE, 4 * eight, 4 * eight, MREMAP_MAYMOVE | MREMAP_FIXED,
		   to) == MAP_FAILED)
		_exit(4);
	for (uint64_t i = 0; i < 16; i++)
		right_at(memory + i * LR_SEED_PAGE, i, true);
	in_a_fork(after_move);
	after_move();
	for (uint64_t i = 16; i < pages; i++)
		if (i < 64 || i >= 96)
			right(i);
	puts("events: all as it has to be");
}

static void look_at_some(int sock)
{
	struct lr_wire_child c = {0};

	for (int i = 0; limited && i < 1000 && c.v[LR_WIRE_PREFETCHED] < some(only_count); i++) {
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
		lr_forkctl_counts(sock, &c, NULL);
	}
	const uint64_t n = some(right);
	lr_forkctl_counts(sock, &c, NULL);
	printf("some: %llu pages, %llu faults, %llu before\n", (unsigned long long)n,
	       (unsigned long long)c.v[LR_WIRE_FAULTS],
	       (unsigned long long)c.v[LR_WIRE_PREFETCHED]);
}

static void every_other(uint64_t first)
{
	for (uint64_t i = first; i < pages; i += 2) {
		right(i);
		nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
	}
}

static void slow(void)
{
	puts("begun");
	fflush(stdout);
	if (fork() == 0) {
		every_other(1);
		pause();
	}
	every_other(0);
	puts("complete");
}

/* A daemon that has nothing more to bring lets go of us: no child is left in its count. */
static void wait_for_all(int sock)
{
	struct pollfd p = {.fd = sock};

	for (uint64_t i = 0; i < pages; i++) {
		unsigned char there = 0;
		while (!is_hole(i) && !(there & 1)) {
			mincore(memory + i * LR_SEED_PAGE, 1, &there);
			if (!(there & 1))
				poll(&p, 0, 1);
		}
	}
}

/* The last pages, before they have come, to where everything has come already. */
static void move_back(int sock)
{
	const uint64_t first = pages - 64;
	char *to = memory - 128 * LR_SEED_PAGE;

	pages = 1000; /* the prefetch has begun when these are there */
	wait_for_all(sock);
	if (mremap(memory + first * LR_SEED_PAGE, 64 * LR_SEED_PAGE, 64 * LR_SEED_PAGE,
		   MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED)
		_exit(4);
	pages = first;
	wait_for_all(sock);
	struct pollfd p = {.fd = sock};
	poll(&p, 0, 300); /* in which a daemon could take it for complete */
	for (uint64_t i = 0; i < 64; i++)
		right_at(to + i * LR_SEED_PAGE, first + i, false);
	puts("moved: all as it has to be");
}

int child(const char *control, const char *ticket, const char *how, uint32_t around)
{
	struct lr_err err = {0};
	char line[1024];
	int sock = lr_forkctl_connect(control, &err);
	double began = now();
	limited = lr_streq(how, "warm");
	bool only_bring = lr_streq(how, "bring");
	int r = sock < 0     ? sock
		: only_bring ? bring(sock, ticket, &err)
			     : begin(sock, ticket, around,
				     lr_streq(how, "prefetch") || lr_streq(how, "moved") ||
						     lr_streq(how, "parted") ||
						     lr_streq(how, "late") || limited
					     ? LR_WIRE_PREFETCH
					     : 0,
				     lr_streq(how, "late"), &err);

	if (r < 0) {
		fprintf(stderr, "forkd-tool: %s\n", lr_err_format(&err, line, sizeof(line)));
		return 1;
	}
	if (only_bring)
		return 0;
	printf("ready in %.1f ms\n", (now() - began) * 1e3);
	began = now();
	if (lr_streq(how, "prefetch")) {
		wait_for_all(sock);
		printf("all came in %.3f s, %.1f MB/s\n", now() - began,
		       (double)pages * LR_SEED_PAGE / (now() - began) / 1e6);
	}
	if (lr_streq(how, "moved"))
		move_back(sock);
	else if (lr_streq(how, "events"))
		events();
	else if (lr_streq(how, "some") || limited)
		look_at_some(sock);
	else if (lr_streq(how, "slow"))
		slow();
	else if (lr_streq(how, "grow"))
		grow(memory, pages);
	else if (lr_streq(how, "changed"))
		changed(memory);
	else if (lr_streq(how, "split") || lr_streq(how, "parted"))
		split(memory, pages);
	else if (lr_streq(how, "crowd"))
		crowd(memory, pages);
	else if (lr_streq(how, "forks"))
		forks();
	else
		look_at_all(lr_streq(how, "random") ? 7919 : 1);
	return 0;
}
