/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the kernel module have in common. They run as root, in a machine of their own. */
#pragma once
#include "../../kernel/include/uapi/lean_seed.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE ((size_t)4096)

/* A failed check ends the process of the test, with a line that says where. */
#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			printf("# %s:%d: %s (errno %d, %s)\n", __FILE__, __LINE__, #cond, errno,   \
			       strerror(errno));                                                   \
			fflush(stdout);                                                            \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* Each page of a seed says which one it is, in its first word and in its last. */
static inline uint64_t mark(size_t page)
{
	return 0x5eed000000000000ULL + page;
}

static inline uint64_t word(const char *memory, size_t page, size_t at)
{
	return *(const volatile uint64_t *)(memory + page * PAGE + at);
}

static inline bool is_seed(const char *memory, size_t page, size_t number)
{
	return word(memory, page, 0) == mark(number) &&
	       word(memory, page, PAGE - 8) == mark(number);
}

static inline bool is_zero(const char *memory, size_t page)
{
	for (size_t i = 0; i < PAGE; i += 8)
		if (word(memory, page, i) != 0)
			return false;
	return true;
}

static inline void fill(char *memory, size_t pages)
{
	for (size_t i = 0; i < pages; i++) {
		*(uint64_t *)(memory + i * PAGE) = mark(i);
		*(uint64_t *)(memory + i * PAGE + PAGE - 8) = mark(i);
	}
}

static inline int device(void)
{
	int fd = open("/dev/lean-seed", O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	return fd;
}

static inline char *anonymous(size_t pages)
{
	char *memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	CHECK(memory != MAP_FAILED);
	return memory;
}

/* A fork that does not run: it is killed when it is not needed any more. */
static inline pid_t twin(void)
{
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

static inline void end(pid_t pid)
{
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
}

static inline int export_range(pid_t pid, char *memory, size_t pages,
			       struct lean_seed_export *result)
{
	struct lean_seed_range range = {.start = (uintptr_t)memory, .length = pages * PAGE};
	struct lean_seed_export arg = {.pid = pid, .count = 1, .ranges = (uintptr_t)&range};
	int dev = device();
	int fd = ioctl(dev, LEAN_SEED_EXPORT, &arg);
	int error = errno;
	close(dev);
	errno = error;
	if (result)
		*result = arg;
	return fd;
}

/* A seed of this many marked pages, of a process that is gone, while the parent's memory changed. */
static inline int make_seed(size_t pages)
{
	char *memory = anonymous(pages);
	fill(memory, pages);
	pid_t pid = twin();
	int seed = export_range(pid, memory, pages, NULL);
	CHECK(seed >= 0);
	memset(memory, 0xaa, pages * PAGE);
	end(pid);
	munmap(memory, pages * PAGE);
	return seed;
}

static inline int open_seed(int seed, unsigned readahead)
{
	struct lean_seed_open arg = {.seed = seed, .readahead = readahead};
	int dev = device();
	int fd = ioctl(dev, LEAN_SEED_OPEN, &arg);
	CHECK(fd >= 0);
	close(dev);
	return fd;
}

static inline char *map(int source, size_t pages)
{
	char *memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, source, 0);
	CHECK(memory != MAP_FAILED);
	return memory;
}

static inline struct lean_seed_status status(int source)
{
	struct lean_seed_status s;
	CHECK(ioctl(source, LEAN_SEED_STATUS, &s) == 0);
	return s;
}

static inline struct lean_seed_info info(void)
{
	struct lean_seed_info i;
	int dev = device();
	CHECK(ioctl(dev, LEAN_SEED_INFO, &i) == 0);
	close(dev);
	return i;
}

/* What is freed by a worker, or by the other end of a connection, may take a while. */
static inline void nothing_is_left(void)
{
	struct lean_seed_info i;
	for (int tries = 0; tries < 300; tries++) {
		i = info();
		if (!i.seeds && !i.sources && !i.mappings && !i.referenced && !i.cached &&
		    !i.batches && !i.connections && !i.feeds)
			return;
		usleep(tries < 100 ? 10000 : 100000);
	}
	printf("# left: %llu seeds, %llu sources, %llu mappings, %llu pages referenced, %llu "
	       "cached, "
	       "%llu batches, %llu connections, %llu feeds\n",
	       (unsigned long long)i.seeds, (unsigned long long)i.sources,
	       (unsigned long long)i.mappings, (unsigned long long)i.referenced,
	       (unsigned long long)i.cached, (unsigned long long)i.batches,
	       (unsigned long long)i.connections, (unsigned long long)i.feeds);
	CHECK(!"nothing is left");
}

static sigjmp_buf lib_bus;

static inline void lib_on_bus(int sig)
{
	siglongjmp(lib_bus, sig);
}

/* Does reading a page end with SIGBUS? */
static inline bool is_bus(const char *memory, size_t page)
{
	struct sigaction act = {.sa_handler = lib_on_bus}, old;
	bool bus = true;
	sigaction(SIGBUS, &act, &old);
	if (sigsetjmp(lib_bus, 1) == 0) {
		(void)word(memory, page, 0);
		bus = false;
	}
	sigaction(SIGBUS, &old, NULL);
	return bus;
}

/* Ends with the status of CHECK's process. */
static inline bool child_passes(pid_t pid)
{
	int code;
	CHECK(waitpid(pid, &code, 0) == pid);
	return code == 0;
}

struct test {
	const char *name;
	void (*run)(void);
};

/* Each in a process of its own, as TAP; the names in argv only, if there are any. */
static inline int run_tests(const struct test *tests, size_t count, int argc, char **argv)
{
	int failed = 0, ran = 0;
	for (size_t i = 0; i < count; i++) {
		bool wanted = argc < 2;
		for (int a = 1; a < argc; a++)
			wanted = wanted || strstr(tests[i].name, argv[a]);
		if (!wanted)
			continue;
		fflush(stdout);
		pid_t pid = fork();
		if (pid == 0) {
			setpgid(0, 0);
			alarm(300);
			tests[i].run();
			fflush(stdout);
			_exit(0);
		}
		int code = 0;
		waitpid(pid, &code, 0);
		kill(-pid, SIGKILL);
		if (code != 0) {
			failed++;
			printf("# ended with status %d, signal %d\n", WEXITSTATUS(code),
			       WTERMSIG(code));
		}
		printf("%s %d - %s\n", code == 0 ? "ok" : "not ok", ++ran, tests[i].name);
		fflush(stdout);
	}
	printf("1..%d\n", ran);
	return failed != 0;
}
