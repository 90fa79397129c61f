/* SPDX-License-Identifier: Apache-2.0 */
/* Memory. */
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/fork/subject.h"

#define PAGE 4096

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/* brk(2) itself: musl's sbrk(3) only tells. */
static char *program_break(char *to)
{
	return (char *)syscall(SYS_brk, to);
}

static char *map(size_t pages, int flags, int fd)
{
	char *p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, flags, fd, 0);

	EXPECT(p != MAP_FAILED);
	return p;
}

static bool all(const char *p, size_t n, char c)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != c)
			return false;
	return true;
}

static int make_file(const char *name, size_t pages)
{
	char page[PAGE];
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);

	for (size_t i = 0; i < pages; i++) {
		memset(page, (int)('a' + i), PAGE);
		EXPECT(write(fd, page, PAGE) == PAGE);
	}
	return fd;
}

static int __attribute__((noinline)) deep(int n)
{
	volatile char room[8192];

	memset((char *)room, n, sizeof(room));
	return n ? deep(n - 1) + room[17] - room[18] + 1 : 0;
}

/* Whether we are a child of what was captured: then what is wiped on fork is wiped. */
static bool resumed(void)
{
	return access("resumed", F_OK) == 0;
}

static void look_at_file(const char *file, const char *shared)
{
	EXPECT(all(file, PAGE, 'a'));
	EXPECT(all(file + PAGE, PAGE, 'Z'));
	EXPECT(all(file + 2 * PAGE, PAGE, 0));
	EXPECT(all(file + 3 * PAGE, PAGE, 'd'));
	EXPECT(all(shared, PAGE, 'S'));
}

/* A call is told where a program would die. */
static bool may_write(const char *p)
{
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(zero, (void *)(uintptr_t)p, 1);

	close(zero);
	return n == 1;
}

/* What a process says of its memory holds for its children, too. */
static void wipe_again(char *wiped)
{
	int status;

	memset(wiped, 'w', 2 * PAGE);
	pid_t pid = fork();
	if (pid == 0)
		_exit(all(wiped, 2 * PAGE, 0) ? 23 : 24);
	EXPECT(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 23);
	EXPECT(all(wiped, 2 * PAGE, 'w'));
}

/* Of memory that nobody has touched yet. */
static void move_and_fork(char *moved, char *forked)
{
	int status;
	char *to = mremap(moved, 8 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);

	EXPECT(to != MAP_FAILED && to != moved);
	EXPECT(all(to + 4 * PAGE, 4 * PAGE, 'M') && all(to + 8 * PAGE, 56 * PAGE, 0));
	pid_t pid = fork();
	if (pid == 0)
		_exit(all(forked, 8 * PAGE, 'F') && all(to, 8 * PAGE, 'M') ? 21 : 22);
	memset(forked, 'f', PAGE);
	EXPECT(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 21);
	EXPECT(all(forked, PAGE, 'f') && all(forked + PAGE, 7 * PAGE, 'F'));
	EXPECT(all(to, 4 * PAGE, 'M'));
}

void subject_memory(void)
{
	int fd = make_file("file", 4), fd2 = make_file("shared", 2);
	char *file = map(4, MAP_PRIVATE, fd), *shared = map(2, MAP_SHARED, fd2);
	char *anon = map(64, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	char *wiped = map(2, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	char *moved = map(8, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	char *forked = map(8, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	char *heap = program_break(NULL);

	memset(file + PAGE, 'Z', PAGE);
	memset(file + 2 * PAGE, 0, PAGE); /* zeros, where the file has none */
	memset(shared, 'S', PAGE);
	memset(anon, 'A', 64 * PAGE);
	memset(moved, 'M', 8 * PAGE);
	memset(forked, 'F', 8 * PAGE);
	EXPECT(mprotect(anon + 8 * PAGE, PAGE, PROT_READ) == 0);
	EXPECT(mprotect(anon + 9 * PAGE, PAGE, PROT_NONE) == 0);
	EXPECT(madvise(wiped, 2 * PAGE, MADV_WIPEONFORK) == 0);
	memset(wiped, 'W', 2 * PAGE);
	subject_ready();
	look_at_file(file, shared);
	EXPECT(all(anon, 8 * PAGE, 'A') && all(anon + 8 * PAGE, PAGE, 'A'));
	EXPECT(!may_write(anon + 8 * PAGE) && !may_write(anon + 9 * PAGE));
	EXPECT(may_write(anon + 10 * PAGE) && (anon[10 * PAGE] = 'A'));
	EXPECT(mprotect(anon + 9 * PAGE, PAGE, PROT_READ) == 0 && all(anon + 9 * PAGE, PAGE, 'A'));
	EXPECT(all(wiped, 2 * PAGE, resumed() ? 0 : 'W'));
	wipe_again(wiped);
	/* What is thrown away is zero, whoever had filled it. */
	EXPECT(madvise(anon + 16 * PAGE, 16 * PAGE, MADV_DONTNEED) == 0);
	EXPECT(all(anon + 16 * PAGE, 16 * PAGE, 0) && all(anon + 32 * PAGE, 32 * PAGE, 'A'));
	EXPECT(madvise(file + PAGE, PAGE, MADV_DONTNEED) == 0 && all(file + PAGE, PAGE, 'b'));
	EXPECT(munmap(anon, PAGE) == 0);
	move_and_fork(moved, forked);
	/* It grows where it grew before. */
	EXPECT(program_break(NULL) >= heap);
	heap = program_break(NULL);
	EXPECT(program_break(heap + 256 * PAGE) == heap + 256 * PAGE);
	memset(heap, 'H', 256 * PAGE);
	EXPECT(deep(400) == 400);
	for (int i = 0; i < 1000; i++) {
		char *c = calloc(1, (size_t)i * 37 + 1);
		EXPECT(c && all(c, (size_t)i * 37 + 1, 0));
		memset(c, 'c', (size_t)i * 37 + 1);
		if (i % 3)
			free(c);
	}
	char *end = strchr(getenv("PATH") ? getenv("PATH") : "", 0);
	EXPECT(end);
}

void subject_shared(void)
{
	int fd = (int)memfd_create("numbers", MFD_ALLOW_SEALING), pair[2];
	int odd = (int)memfd_create("odd", 0);
	uint64_t *anon = (void *)map(2, MAP_SHARED | MAP_ANONYMOUS, -1);
	char byte;

	EXPECT(ftruncate(fd, 2 * PAGE) == 0 && pipe(pair) == 0);
	EXPECT(write(odd, "seven b", 7) == 7);
	uint64_t *here = (void *)map(2, MAP_SHARED, fd);
	here[3] = 1234;
	anon[5] = 77;
	pid_t child = fork();
	if (child == 0) {
		uint64_t *there = (void *)map(2, MAP_SHARED, fd);
		there[600] = 5678;
		EXPECT(read(pair[0], &byte, 1) == 1);
		EXPECT(there[3] == 42 && anon[5] == 43);
		there[4] = 44;
		anon[6] = 45;
		_exit(9);
	}
	while (((volatile uint64_t *)here)[600] != 5678)
		;
	subject_ready();
	int status;
	EXPECT(here[3] == 1234 && here[600] == 5678 && anon[5] == 77);
	here[3] = 42;
	anon[5] = 43;
	EXPECT(write(pair[1], "x", 1) == 1);
	EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status));
	EXPECT(WEXITSTATUS(status) == 9 && here[4] == 44 && anon[6] == 45);
	uint64_t v = 0;
	EXPECT(pread(fd, &v, 8, 24) == 8 && v == 42);
	/* It ends where it ended, amid a page. */
	char text[16] = "";
	EXPECT(lseek(odd, 0, SEEK_END) == 7 && pread(odd, text, sizeof(text), 0) == 7);
	EXPECT(strcmp(text, "seven b") == 0);
}
