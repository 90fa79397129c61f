/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seeds [NAME...]: what a seed's descriptor is good for besides sources, and seeds of several processes. Needs the
 * module and root.
 */
#define _GNU_SOURCE
#include "lib.h"

#define N ((size_t)1024)

/* All of a seed by read(2), at any place and of any length; nothing is cached for that. */
static void read_as_a_file(void)
{
	int seed = make_seed(N);
	char *m = anonymous(N + 1);
	CHECK(pread(seed, m, (N + 1) * PAGE, 0) == (ssize_t)(N * PAGE));
	for (size_t i = 0; i < N; i++)
		CHECK(is_seed(m, i, i));
	memset(m, 1, N * PAGE);
	CHECK(pread(seed, m + 8, 3 * PAGE, 5 * PAGE + 8) == (ssize_t)(3 * PAGE));
	CHECK(word(m, 0, 0) == 0x0101010101010101ULL && word(m, 0, PAGE - 8) == mark(5));
	CHECK(is_seed(m, 1, 6) && is_seed(m, 2, 7) && word(m, 3, 0) == mark(8));
	CHECK(word(m, 3, 8) == 0x0101010101010101ULL);
	CHECK(pread(seed, m, PAGE, N * PAGE) == 0 && pread(seed, m, PAGE, (off_t)1 << 60) == 0);
	CHECK(pread(seed, m, PAGE, N * PAGE - 8) == 8 && word(m, 0, 0) == mark(N - 1));
	CHECK(read(seed, m, PAGE) == (ssize_t)PAGE && read(seed, m, PAGE) == (ssize_t)PAGE);
	CHECK(is_seed(m, 0, 1));
	CHECK(pwrite(seed, m, PAGE, 0) == -1);
	/* What can't be written to ends it, and what was there before came. */
	CHECK(munmap(m + 2 * PAGE, PAGE) == 0);
	CHECK(pread(seed, m, 3 * PAGE, 0) == (ssize_t)(2 * PAGE) && is_seed(m, 1, 1));
	CHECK(pread(seed, m + 2 * PAGE, PAGE, 0) == -1 && errno == EFAULT);
	CHECK(info().cached == 0 && info().referenced == N);
}

/* Two processes and what lies between their pages in the seed: it takes no reference, and no room. */
static void of_several_processes(void)
{
	char *one = anonymous(8), *two = anonymous(8);
	CHECK(madvise(one, 8 * PAGE, MADV_NOHUGEPAGE) == 0 &&
	      madvise(two, 8 * PAGE, MADV_NOHUGEPAGE) == 0);
	fill(one, 8);
	pid_t a = twin();
	memset(one, 0xaa, 8 * PAGE);
	fill(two, 8);
	pid_t b = twin();
	memset(two, 0xaa, 8 * PAGE);
	const struct lean_seed_range ranges[] = {
		{LEAN_SEED_HOLE, 2 * PAGE},         {(uintptr_t)one, 3 * PAGE},
		{LEAN_SEED_HOLE, (1 << 20) * PAGE}, {(uintptr_t)two + 4 * PAGE, 4 * PAGE},
		{(uintptr_t)one + 6 * PAGE, PAGE},
	};
	const int32_t pids[] = {0, a, -1, b, a};
	struct lean_seed_export arg = {
		.count = 5, .ranges = (uintptr_t)ranges, .pids = (uintptr_t)pids};
	int dev = device();
	/* A page of the seed that is told to be a hole is not counted against the user. */
	CHECK((1 << 20) > info().user_limit);
	int seed = ioctl(dev, LEAN_SEED_EXPORT, &arg);
	CHECK(seed >= 0 && arg.pages == 2 + 3 + (1 << 20) + 4 + 1 && arg.holes == 2 + (1 << 20));
	CHECK(info().referenced == 8);
	end(a);
	end(b);
	char *m = mmap(NULL, arg.pages * PAGE, PROT_READ, MAP_PRIVATE, open_seed(seed, 1), 0);
	char *bytes = anonymous(8);
	CHECK(m != MAP_FAILED);
	const size_t far = 5 + (1 << 20);
	CHECK(is_zero(m, 0) && is_zero(m, 1) && is_zero(m, 5) && is_zero(m, far - 1));
	CHECK(is_seed(m, 2, 0) && is_seed(m, 4, 2) && is_seed(m, far, 4) && is_seed(m, far + 3, 7));
	CHECK(is_seed(m, far + 4, 6));
	CHECK(pread(seed, bytes, 3 * PAGE, PAGE) == (ssize_t)(3 * PAGE) && is_zero(bytes, 0));
	CHECK(is_seed(bytes, 1, 0) && is_seed(bytes, 2, 1));
	/* Of nobody; of a process that is gone; a process, and processes; too many pages, by their sum. */
	struct lean_seed_export bad = {
		.count = 5, .ranges = (uintptr_t)ranges, .pids = (uintptr_t)pids};
	CHECK(ioctl(dev, LEAN_SEED_EXPORT, &bad) == -1 && errno == ESRCH);
	bad.pid = getpid();
	CHECK(ioctl(dev, LEAN_SEED_EXPORT, &bad) == -1 && errno == EINVAL);
	const struct lean_seed_range much[] = {
		{LEAN_SEED_HOLE, 1ULL << 63}, {LEAN_SEED_HOLE, 1ULL << 63}, {LEAN_SEED_HOLE, PAGE}};
	bad = (struct lean_seed_export){.pid = getpid(), .count = 3, .ranges = (uintptr_t)much};
	CHECK(ioctl(dev, LEAN_SEED_EXPORT, &bad) == -1 && errno == EFBIG);
	const struct lean_seed_range odd = {LEAN_SEED_HOLE, 100};
	bad = (struct lean_seed_export){.pid = getpid(), .count = 1, .ranges = (uintptr_t)&odd};
	CHECK(ioctl(dev, LEAN_SEED_EXPORT, &bad) == -1 && errno == EINVAL);
	CHECK(info().referenced == 8);
}

/* Pages that this machine has given to anybody since it runs; nothing else runs on it. */
static unsigned long pages_given(void)
{
	unsigned long sum = 0, value;
	char line[100];
	FILE *f = fopen("/proc/vmstat", "r");
	CHECK(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "pgalloc_%*s %lu", &value) == 1)
			sum += value;
	fclose(f);
	CHECK(sum != 0);
	return sum;
}

/* Counted twice: by the module, which refers to each page, and by the kernel, which gives it only what they are noted in. */
static void copies_nothing(void)
{
	const size_t pages = 8 * N;
	nothing_is_left();
	char *memory = anonymous(pages);
	CHECK(madvise(memory, pages * PAGE, MADV_NOHUGEPAGE) == 0);
	unsigned long before = pages_given();
	fill(memory, pages);
	CHECK(pages_given() - before >= pages); /* it does count */
	pid_t pid = twin();
	before = pages_given();
	int seed = export_range(pid, memory, pages, NULL);
	unsigned long given = pages_given() - before;
	CHECK(seed >= 0);
	end(pid);
	printf("# a seed of %zu pages took %lu\n", pages, given);
	CHECK(given < pages / 8);
	CHECK(info().referenced == pages && info().cached == 0);
	close(seed);
}

static const struct test tests[] = {
	{"a seed is read as a file", read_as_a_file},
	{"a seed of several processes, with holes", of_several_processes},
	{"making a seed copies no page", copies_nothing},
	{"nothing is left of them", nothing_is_left},
};

int main(int argc, char **argv)
{
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
