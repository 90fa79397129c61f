/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seedling: what lean-bench prepare, resume and touch make a seed of: a program with MB megabytes of
 * memory that differ from page to page.
 *
 *     seedling MB        waits for a line on standard input, and does what it says
 *     seedling MB spin   looks at the clock, until SIGTERM
 *
 * It says `ready` when its memory is written. Whoever continues it has another standard input, so
 * its child goes on where the parent waits. Lines, and what they print (ns):
 *     now               the time, first thing (CLOCK_REALTIME: criu gives a child a monotonic
 *                       clock that goes on where its parent's was)
 *     read              how long it took to read a word of each page, in order
 *     write N           how long it took to write a word of N pages, in random order
 *     check             `same`, if each page is what it was
 *
 * spin prints, at its end, how long a fork took when it was ready, and the longest time between two
 * looks at the clock since then: what was between is the pause that somebody has made.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE  4096
#define WORDS (PAGE / sizeof(uint64_t))
#define MARK  7

static volatile sig_atomic_t over;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static void end(int sig)
{
	(void)sig;
	over = 1;
}

static uint64_t of_page(uint64_t i)
{
	return (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t read_all(volatile const uint64_t *at, uint64_t pages)
{
	const uint64_t begin = now();

	for (uint64_t i = 0; i < pages; i++)
		(void)at[i * WORDS];
	return now() - begin;
}

static uint64_t write_some(volatile uint64_t *at, uint64_t pages, uint64_t n)
{
	uint64_t seed = 88172645463325252;
	const uint64_t begin = now();

	for (uint64_t i = 0; i < n; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		at[seed % pages * WORDS + 1] = i;
	}
	return now() - begin;
}

static const char *check(const uint64_t *at, uint64_t pages)
{
	for (uint64_t i = 0; i < pages; i++)
		if (at[i * WORDS] != of_page(i))
			return "different";
	return "same";
}

/* Without stdio's buffer, which would be the parent's, too. */
static void say(const char *format, uint64_t value)
{
	char line[64];
	int n = snprintf(line, sizeof(line), format, value);

	if (write(1, line, (size_t)n) != n)
		_exit(1);
}

static void do_line(const char *line, uint64_t *at, uint64_t pages, uint64_t arrived)
{
	uint64_t n;

	if (strcmp(line, "now") == 0)
		say("%" PRIu64 "\n", arrived);
	else if (strcmp(line, "read") == 0)
		say("%" PRIu64 "\n", read_all(at, pages));
	else if (sscanf(line, "write %" SCNu64, &n) == 1)
		say("%" PRIu64 "\n", write_some(at, pages, n));
	else if (strcmp(line, "check") == 0)
		say(check(at, pages)[0] == 's' ? "same\n" : "different\n", 0);
	else
		_exit(2);
}

/* One read(2) has them all. */
static int obey(uint64_t *at, uint64_t pages)
{
	char lines[256], *save = NULL;
	ssize_t n = read(0, lines, sizeof(lines) - 1);
	const uint64_t arrived = clock_ns(CLOCK_REALTIME);

	if (n < 0)
		return 1;
	lines[n] = '\0';
	for (char *l = strtok_r(lines, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
		do_line(l, at, pages, arrived);
	return MARK;
}

static uint64_t fork_once(void)
{
	const uint64_t begin = now();
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	const uint64_t took = now() - begin;
	waitpid(pid, NULL, 0);
	return took;
}

static int spin(void)
{
	const uint64_t forked = fork_once();
	uint64_t longest = 0;

	signal(SIGTERM, end);
	say("ready\n", 0);
	for (uint64_t last = now(); !over;) {
		const uint64_t t = now();
		if (t - last > longest)
			longest = t - last;
		last = t;
	}
	say("%" PRIu64 " ", forked);
	say("%" PRIu64 "\n", longest);
	return MARK;
}

int main(int argc, char **argv)
{
	const uint64_t pages = argc > 1 ? strtoull(argv[1], NULL, 10) * (1048576 / PAGE) : 0;

	if (!pages)
		return 2;
	uint64_t *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	if (at == MAP_FAILED)
		return 3;
	madvise(at, pages * PAGE, MADV_NOHUGEPAGE);
	for (uint64_t i = 0; i < pages; i++)
		at[i * WORDS] = of_page(i);
	if (argc > 2)
		return spin();
	say("ready\n", 0);
	return obey(at, pages);
}
