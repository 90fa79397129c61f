/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe lives: a thread, a child with a pipe, memory of its own and shared memory, which all go on
 * for ever and look at each other; and files in a tmpfs. Whoever stops them, has them forked or continues a copy of them
 * must not be noticed: a number that comes twice or not at all, a call that returns what nobody
 * asked for, a child that is nobody's.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <lean/seed.h>

#include "tests/faults/lives.h"

#define WORDS   (64 << 10) /* of the memory that is looked at in the end */
#define STARTED 8          /* rounds, and then it says that it lives */
#define STATUS  7          /* of the child's end */

struct shared {
	atomic_int stop;
	_Atomic uint32_t sent; /* by the child */
	uint64_t pattern[256];
};

static struct shared *shared;
static uint64_t *memory;
static atomic_uint wrongs;

static void wrong(const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (wrongs++ < 10)
		printf("WRONG: %s\n", text);
}

static void nap(const char *who)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	int r = clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);

	if (r)
		wrong("%s: a sleep ends with %d", who, r);
}

static uint64_t next(uint64_t v)
{
	return v * 6364136223846793005U + 1442695040888963407U;
}

/* What it has in registers, and what it has in memory. */
static void *compute(void *unused)
{
	volatile uint64_t kept = 1;
	volatile double sum = 0;

	(void)unused;
	for (double d = 0; !shared->stop; d += 1024) {
		uint64_t v = kept, w = kept;
		double part = 0;
		for (int i = 0; i < 1024; i++) {
			v = next(v);
			part += 1.0;
		}
		for (int i = 0; i < 1024; i++)
			w = next(w);
		kept = w;
		sum += part;
		if (v != w || sum != d + 1024)
			wrong("the thread counts otherwise");
		nap("thread");
	}
	return NULL;
}

static _Noreturn void be_child(int to, pid_t parent)
{
	for (uint32_t n = 1; !shared->stop; n++) {
		if (write(to, &n, sizeof(n)) != sizeof(n) || getppid() != parent)
			_exit(STATUS + 1);
		shared->sent = n;
		nap("child");
	}
	_exit(STATUS);
}

/* What they had in the beginning, they have in the end. */
static void fill(uint64_t *v, size_t n, bool look)
{
	uint64_t x = 42;

	for (size_t i = 0; i < n; i++, x = next(x))
		if (!look)
			v[i] = x;
		else if (v[i] != x) {
			wrong("memory is another: %zx", i);
			return;
		}
}

#define SHM "/dev/shm/"

static bool attributes; /* this kernel has them there */

static void make_files(void)
{
	const struct timespec times[2] = {{.tv_sec = 123, .tv_nsec = 4},
					  {.tv_sec = 567, .tv_nsec = 8}};

	umask(0);
	if (mkdir(SHM "d", 0710) < 0 || symlink("nowhere", SHM "l") < 0 ||
	    mkfifo(SHM "p", 0620) < 0)
		exit(1);
	int fd = open(SHM "d/f", O_RDWR | O_CREAT, 0640);
	attributes = fsetxattr(fd, "user.a", "b", 1, 0) == 0;
	if (pwrite(fd, memory, 5000, 100) != 5000 || ftruncate(fd, 1 << 20) < 0 ||
	    futimens(fd, times) < 0 || link(SHM "d/f", SHM "h") < 0)
		exit(1);
	close(fd);
}

static void look_at_files(void)
{
	struct stat d, f, h, l, p;
	char text[5000];
	int fd = open(SHM "h", O_RDONLY);

	if (lstat(SHM "d", &d) < 0 || lstat(SHM "d/f", &f) < 0 || lstat(SHM "h", &h) < 0 ||
	    lstat(SHM "l", &l) < 0 || lstat(SHM "p", &p) < 0) {
		wrong("a file is gone: %s", strerror(errno));
		return;
	}
	if (d.st_mode != (S_IFDIR | 0710) || f.st_mode != (S_IFREG | 0640) ||
	    p.st_mode != (S_IFIFO | 0620) || !S_ISLNK(l.st_mode) || f.st_ino != h.st_ino ||
	    f.st_size != 1 << 20 || f.st_blocks > 64 || f.st_mtim.tv_sec != 567 ||
	    f.st_mtim.tv_nsec != 8)
		wrong("the files are others");
	if (pread(fd, text, sizeof(text), 100) != sizeof(text) ||
	    memcmp(text, memory, sizeof(text)) != 0 || pread(fd, text, 1, 9000) != 1 || *text)
		wrong("the contents are others");
	if (readlink(SHM "l", text, sizeof(text)) != 7 || memcmp(text, "nowhere", 7) != 0)
		wrong("the link is another");
	if (attributes && (fgetxattr(fd, "user.a", text, sizeof(text)) != 1 || *text != 'b'))
		wrong("the attribute is another");
	close(fd);
}

static int children(void)
{
	char text[256] = "";
	int n = 0, fd = open("/proc/self/task/1/children", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	close(fd);
	for (ssize_t i = 0; i < got; i++)
		n += text[i] == ' ';
	return n;
}

/* The child's numbers, one after the other. */
static void listen_until_go(int from)
{
	uint32_t got, last = 0;

	while (access("/tmp/go", F_OK) < 0) {
		ssize_t n = read(from, &got, sizeof(got));
		if (n != sizeof(got) || got != last + 1 || got > shared->sent + 1)
			wrong("%zd bytes of the child, number %u behind %u", n, got, last);
		last = got;
		if (waitpid(-1, NULL, WNOHANG) != 0)
			wrong("a child that is nobody's: %s", strerror(errno));
		if (last == STARTED) {
			printf("lives\n");
			fflush(stdout);
		}
	}
}

/* Until it is told of a seed, however long that takes. */
static void *wait_here(void *unused)
{
	(void)unused;
	printf("here: %d\n", lean_seed_here(-1));
	fflush(stdout);
	return NULL;
}

void lives(bool here)
{
	int ends[2], status = 0;
	pthread_t thread, waiting;
	pid_t pid, self = getpid();

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	memory = malloc(WORDS * sizeof(*memory));
	if (shared == MAP_FAILED || !memory || pipe(ends) < 0)
		exit(1);
	fill(memory, WORDS, false);
	fill(shared->pattern, 256, false);
	make_files();
	pid = fork();
	if (pid == 0)
		be_child(ends[1], self);
	close(ends[1]);
	if (pid < 0 || pthread_create(&thread, NULL, compute, NULL) != 0)
		exit(1);
	if (here && pthread_create(&waiting, NULL, wait_here, NULL) != 0)
		exit(1);
	listen_until_go(ends[0]);
	printf("children: %d\n", children());
	shared->stop = 1;
	pthread_join(thread, NULL);
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != STATUS)
		wrong("the child's end: %x", (unsigned)status);
	if (waitpid(-1, NULL, __WALL | WNOHANG) != -1)
		printf("a child too many\n");
	fill(memory, WORDS, true);
	fill(shared->pattern, 256, true);
	look_at_files();
	if (isatty(0) && (tcgetsid(0) != getsid(0) || tcgetpgrp(0) != getpgrp()))
		wrong("the terminal is not its own any more");
	close(ends[0]);
	free(memory);
	munmap(shared, sizeof(*shared));
	printf("lived: %s\n", wrongs ? "not well" : "well");
}
