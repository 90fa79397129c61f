/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost [MIB]: what making a seed costs beside a fork, for ever larger memory, up to so many MiB (1024). A bare fork of
 * the same process is measured in the same run: it copies the page tables, which an export reads. Prints a table;
 * nothing is judged, as a machine may be emulated. Needs the module and root.
 */
#define _GNU_SOURCE
#include "lib.h"

#include <time.h>

#define ROUNDS 3

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* What else the machine does only adds to it. */
static void keep_least(double *least, double value)
{
	if (*least == 0 || value < *least)
		*least = value;
}

/* Kilobytes, of /proc/self/status. */
static long of_status(const char *name)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[200];
	long kb = -1;
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, name, strlen(name)) == 0)
			kb = strtol(line + strlen(name) + 1, NULL, 10);
	CHECK(f && kb >= 0);
	fclose(f);
	return kb;
}

/* Milliseconds: of a fork, and of the export of what it made. */
static void measure(char *memory, size_t pages, double *of_fork, double *of_export)
{
	*of_fork = *of_export = 0;
	for (int i = 0; i < ROUNDS; i++) {
		double start = now();
		pid_t pid = twin();
		keep_least(of_fork, now() - start);
		struct lean_seed_export result;
		start = now();
		int seed = export_range(pid, memory, pages, &result);
		keep_least(of_export, now() - start);
		CHECK(seed >= 0 && result.holes == 0 && info().referenced == pages);
		close(seed);
		end(pid);
	}
}

static void line(size_t mib, int advice, const char *what)
{
	size_t pages = mib * 256;
	double of_fork, of_export;
	char *memory = anonymous(pages + 511);
	char *aligned = (char *)(((uintptr_t)memory + (2 << 20) - 1) & ~(uintptr_t)((2 << 20) - 1));
	CHECK(madvise(aligned, pages * PAGE, advice) == 0);
	fill(aligned, pages);
	measure(aligned, pages, &of_fork, &of_export);
	printf("# %5zu MiB %-12s %7zu pages, %5ld KiB of page tables: fork %8.2f ms, export %8.2f "
	       "ms, %.2f of a fork\n",
	       mib, what, pages, of_status("VmPTE:"), of_fork, of_export, of_export / of_fork);
	munmap(memory, (pages + 511) * PAGE);
	nothing_is_left();
}

int main(int argc, char **argv)
{
	size_t most = argc > 1 ? strtoul(argv[1], NULL, 10) : 1024;
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t mib = 64; mib <= most; mib *= 2) {
		line(mib, MADV_NOHUGEPAGE, "small pages");
		line(mib, MADV_HUGEPAGE, "huge pages");
	}
	printf("ok 1 - seeds of up to %zu MiB are made\n1..1\n", most);
	return 0;
}
