/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fork/sums.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <unistd.h>

#include "src/base/str.h"

#define PAGE 4096

static int open_mem(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Not the kernel's own pages; the end of the vDSO's is ours. */
static int is_special(const char *line)
{
	return strstr(line, "[v") != NULL;
}

/* What the kernel writes to whenever a thread comes back to its program: the numbers of processors
 * in struct rseq. Where they are; those of the page are left out of its sum. */
#define RSEQ_BYTES 32
static uint64_t rseqs[1024];
static size_t n_rseqs;

static void find_rseqs(FILE *f, pid_t pid)
{
	struct __ptrace_rseq_configuration conf;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	DIR *d = opendir(path);
	n_rseqs = 0;
	for (struct dirent *e; d && (e = readdir(d)) && n_rseqs < 1024;) {
		if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, atoi(e->d_name), sizeof(conf), &conf) <
			    0 ||
		    !conf.rseq_abi_pointer)
			continue;
		rseqs[n_rseqs++] = conf.rseq_abi_pointer;
		fprintf(f, "rseq %llx\n", (unsigned long long)conf.rseq_abi_pointer);
	}
	if (d)
		closedir(d);
}

static void leave_rseqs_out(unsigned char *page, uint64_t at)
{
	for (size_t i = 0; i < n_rseqs; i++)
		if (rseqs[i] >= at && rseqs[i] - at <= PAGE - RSEQ_BYTES)
			memset(page + (rseqs[i] - at), 0, RSEQ_BYTES);
}

#define UNREADABLE UINT64_MAX /* as a page behind the end of its file */

/* By mem, which reads what the process itself may not. It can't wait for a page that has yet to
 * come; process_vm_readv(2) does. */
static uint64_t sum_page(pid_t pid, int mem, uint64_t at)
{
	unsigned char page[PAGE];
	struct iovec to = {page, PAGE}, from = {(void *)(uintptr_t)at, PAGE};

	if (pread(mem, page, PAGE, (off_t)at) != PAGE &&
	    process_vm_readv(pid, &to, 1, &from, 1, 0) != PAGE)
		return UNREADABLE;
	leave_rseqs_out(page, at);
	return lr_hash(LR_HASH, page, PAGE);
}

static void write_range(FILE *f, pid_t pid, int mem, uint64_t start, uint64_t end)
{
	for (uint64_t at = start; at < end; at += PAGE)
		fprintf(f, "%llx %llx\n", (unsigned long long)at,
			(unsigned long long)sum_page(pid, mem, at));
}

int sums_write(FILE *f, pid_t pid)
{
	char path[32], line[4096];
	unsigned long long start = 0, end = 0, from, to;
	int mem = open_mem(pid);

	snprintf(path, sizeof(path), "/proc/%d/smaps", pid);
	FILE *maps = fopen(path, "re");
	if (mem < 0 || !maps)
		return -1;
	find_rseqs(f, pid);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%llx-%llx", &from, &to) == 2) {
			start = is_special(line) ? to : from;
			end = to;
		}
		/* The last line of each. A child has nothing of what is for its parent alone. */
		if (strncmp(line, "VmFlags:", 8) == 0 && !lr_has_word(line, "wf") &&
		    !lr_has_word(line, "dc"))
			write_range(f, pid, mem, start, end);
	}
	fclose(maps);
	close(mem);
	return fflush(f);
}

long sums_compare(FILE *f, pid_t pid, bool lazy, long *all)
{
	char line[256];
	int mem = open_mem(pid);
	long differ = 0;

	*all = 0;
	n_rseqs = 0;
	if (mem < 0)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		unsigned long long at, sum;
		if (n_rseqs < 1024 && sscanf(line, "rseq %llx", &at) == 1)
			rseqs[n_rseqs++] = at;
		if (sscanf(line, "%llx %llx", &at, &sum) != 2)
			continue;
		uint64_t have = sum_page(pid, mem, at);
		/* What nobody may read does not come before somebody may. */
		if (lazy && have == UNREADABLE)
			continue;
		++*all;
		if (have != sum && differ++ < 8)
			fprintf(stderr, "page %llx differs\n", at);
	}
	close(mem);
	return differ;
}
