/* SPDX-License-Identifier: Apache-2.0 */
/*
 * churn [STATE]: changes its memory step by step, in each way that the kernel has, and writes after each step its
 * number and a sum of all memory to /out. What a step does follows from its number and the memory alone: so
 * whoever was moved and whoever was not say the same of the same step. /n has the number of the last one.
 * Meanwhile it is in a state (churn_states.c). When there is a file /go it makes ten more steps of each way, looks
 * whether the state is what it was, writes "ok" to /result, or what is wrong, and ends.
 */
#include "tests/fork/churn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES 1024U /* of the memory that is there all the time */
#define MOVED 64U   /* of that which is somewhere else after each move */
#define KEPT  64U

static uint8_t *memory, *moved, *kept[KEPT];
static unsigned step;
static uint64_t state;

static void say_result(const char *text)
{
	const int fd = open("/result.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text))
		rename("/result.new", "/result");
}

void churn_need(bool good, const char *what)
{
	char text[128];

	if (good)
		return;
	snprintf(text, sizeof(text), "%s (errno %d)\n", what, errno);
	say_result(text);
	_exit(1);
}

/* xorshift, begun anew with each step. */
static unsigned random_below(unsigned n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state % n);
}

static uint8_t *map(unsigned pages)
{
	uint8_t *p = mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	churn_need(p != MAP_FAILED, "mmap");
	return p;
}

uint64_t churn_add(uint64_t sum, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i + sizeof(uint64_t) <= n; i += sizeof(uint64_t)) {
		uint64_t word;
		memcpy(&word, p + i, sizeof(word));
		sum = (sum ^ word) * UINT64_C(0x100000001b3);
	}
	return sum;
}

static size_t kept_size(unsigned i)
{
	return 64 + (size_t)i * 1001;
}

static uint64_t sum_of_all(void)
{
	uint64_t sum = churn_add(step, memory, (size_t)PAGES * PAGE);

	sum = churn_add(sum, moved, (size_t)MOVED * PAGE);
	for (unsigned i = 0; i < KEPT; i++)
		sum = kept[i] ? churn_add(sum, kept[i], kept_size(i)) : sum + 1;
	return churn_state_sum(sum);
}

static uint8_t *somewhere(unsigned pages)
{
	return memory + (size_t)random_below(PAGES - pages) * PAGE;
}

static void writes(void)
{
	for (unsigned i = 0; i < 64; i++)
		memset(somewhere(1) + random_below(4000), (int)random_below(256), 64);
}

/* The child sees all of it, and what it writes is its own. */
static void forks(void)
{
	int status = 0;
	pid_t pid = fork();

	churn_need(pid >= 0, "fork");
	if (pid == 0) {
		const uint64_t before = sum_of_all();
		memset(memory, 1, (size_t)PAGES * PAGE);
		_exit((int)(before & 0x7f));
	}
	churn_need(waitpid(pid, &status, 0) == pid, "waitpid");
	memory[step % PAGE] = (uint8_t)WEXITSTATUS(status);
}

static void moves(void)
{
	uint8_t *larger =
		mremap(moved, (size_t)MOVED * PAGE, (size_t)2 * MOVED * PAGE, MREMAP_MAYMOVE);

	churn_need(larger != MAP_FAILED, "mremap");
	memset(larger + (size_t)MOVED * PAGE, (int)step, PAGE);
	uint8_t *to = map(MOVED);
	moved = mremap(larger, (size_t)2 * MOVED * PAGE, (size_t)MOVED * PAGE,
		       MREMAP_MAYMOVE | MREMAP_FIXED, to);
	churn_need(moved == to, "mremap");
	moved[random_below(MOVED * PAGE)]++;
}

static void gives_up(void)
{
	churn_need(madvise(somewhere(8), (size_t)8 * PAGE, MADV_DONTNEED) == 0, "MADV_DONTNEED");
}

/* Until it is written, each page is what it was, or zeros. */
static void frees(void)
{
	static uint8_t before[PAGE], zeros[PAGE];
	uint8_t *p = somewhere(1);

	memcpy(before, p, PAGE);
	churn_need(madvise(p, PAGE, MADV_FREE) == 0, "MADV_FREE");
	churn_need(memcmp(p, before, PAGE) == 0 || memcmp(p, zeros, PAGE) == 0,
		   "a page of another");
	memset(p, (int)step, PAGE);
}

static void unmaps(void)
{
	uint8_t *p = somewhere(4);

	churn_need(munmap(p, (size_t)4 * PAGE) == 0, "munmap");
	churn_need(mmap(p, (size_t)4 * PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p,
		   "mmap");
	p[random_below(4 * PAGE)] = 1;
}

/* brk(2) itself: musl's sbrk(3) only tells. A heap that others grow meanwhile stays. */
static void breaks(void)
{
	uint8_t *end = (uint8_t *)syscall(SYS_brk, 0);
	const size_t size = (size_t)16 * PAGE;

	churn_need((uint8_t *)syscall(SYS_brk, end + size) == end + size, "brk");
	memory[1] = 0;
	for (size_t i = 0; i < size; i++)
		memory[1] |= end[i];
	memset(end, (int)step, size);
	churn_need((uint8_t *)syscall(SYS_brk, end) == end, "brk");
}

static unsigned __attribute__((noinline)) deep(unsigned n)
{
	volatile uint8_t room[PAGE];

	memset((uint8_t *)room, (int)n, sizeof(room));
	return n ? deep(n - 1) + room[n % PAGE] : 0;
}

static void grows_its_stack(void)
{
	memory[2] = (uint8_t)deep(100 + step % 400);
}

/* What comes back has been used before, and has to be zeros. */
static void allocates(void)
{
	for (unsigned i = 0; i < 32; i++) {
		const unsigned k = random_below(KEPT);
		free(kept[k]);
		kept[k] = random_below(4) ? calloc(1, kept_size(k)) : NULL;
		for (size_t at = 0; kept[k] && at < kept_size(k); at++)
			churn_need(!kept[k][at], "calloc");
		if (kept[k])
			memset(kept[k], (int)step, kept_size(k) / 2);
	}
}

/* One line a step. */
static void steps(int out, int number)
{
	static void (*const ways[])(void) = {writes, forks,  moves,           gives_up, frees,
					     unmaps, breaks, grows_its_stack, allocates};
	const size_t n = sizeof(ways) / sizeof(*ways);
	unsigned last = 0;
	char line[48];

	for (step = 1; step != last; step++) {
		state = step * UINT64_C(0x9e3779b97f4a7c15);
		ways[step % n]();
		churn_step(step);
		int size = snprintf(line, sizeof(line), "%u %016llx\n", step,
				    (unsigned long long)sum_of_all());
		churn_need(write(out, line, (size_t)size) == size, "/out");
		size = snprintf(line, sizeof(line), "%u\n", step);
		churn_need(pwrite(number, line, (size_t)size, 0) == size, "/n");
		if (!last && access("/go", F_OK) == 0)
			last = step + 10 * (unsigned)n;
		usleep(3000);
	}
}

int main(int argc, char **argv)
{
	const int out = open("/out", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	const int number = open("/n", O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

	memory = map(PAGES);
	moved = map(MOVED);
	memset(memory, 7, (size_t)PAGES * PAGE);
	memset(moved, 9, (size_t)MOVED * PAGE);
	if (argc > 1)
		churn_enter(argv[1]);
	steps(out, number);
	churn_leave();
	say_result("ok\n");
	return 0;
}
