/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subject: the program of a container that becomes a seed. It counts in /n; what it is asked for by a file it does once,
 * and tells in a file of that name with .done: "ok", or what was wrong.
 *	/all    all its memory is what it was, and that of its child
 *	/hard   discards, forks, moves and parts memory that nobody has touched
 *	/last   the page that nothing else touches
 *	/bus    that page, and it is SIGBUS, and EFAULT in a system call
 * subject PAGES: it has so many of them.
 * subject --metric SOCKET NAME: prints a figure of lean-forkd.
 * subject --referenced: prints how many pages of frozen processes the module keeps.
 */
#define _GNU_SOURCE
#include "lib.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#define OTHER ((size_t)64)

static size_t n_pages = 3000;
static char *memory, *other;
static uint64_t *heap;
static char failure[200];

#define WANT(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond))                                                                       \
			snprintf(failure, sizeof(failure), "line %d: %s (errno %d)", __LINE__,     \
				 #cond, errno);                                                    \
	} while (0)

/* A page that was never written. */
static bool is_hole(size_t page)
{
	return page % 11 == 4;
}

static bool is_right(size_t page)
{
	return is_hole(page) ? is_zero(memory, page) : is_seed(memory, page, page);
}

static void prepare(void)
{
	/* What is touched of the next process brings what is around it, and nothing of this one. */
	char *behind = anonymous(2 * OTHER);
	madvise(behind, 2 * OTHER * PAGE, MADV_NOHUGEPAGE);
	behind[2 * OTHER * PAGE - 1] = 1;
	memory = anonymous(n_pages);
	/* Else holes would be pages of a huge one. */
	madvise(memory, n_pages * PAGE, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < n_pages; i++)
		if (!is_hole(i))
			*(uint64_t *)(memory + i * PAGE) =
				*(uint64_t *)(memory + i * PAGE + PAGE - 8) = mark(i);
	other = anonymous(OTHER);
	madvise(other, OTHER * PAGE, MADV_NOHUGEPAGE);
	fill(other, OTHER);
	/* A page of its own, so that no readahead brings it. */
	heap = malloc(100000);
	for (size_t i = 0; i < 12500; i++)
		heap[i] = i * 7;
}

/* ---- a second process, whose memory is another ------------------------------------------------- */

#define MINE ((size_t)100)

static int ask_kid[2], kid_says[2];

static void run_kid(char *mine)
{
	char c;
	while (read(ask_kid[0], &c, 1) == 1) {
		c = is_seed(memory, 7, 9999) && is_seed(memory, 8, 8);
		for (size_t i = 0; i < MINE; i++)
			c = c && is_seed(mine, i, i);
		if (write(kid_says[1], &c, 1) != 1)
			break;
	}
	_exit(0);
}

static void begin_kid(void)
{
	if (pipe(ask_kid) < 0 || pipe(kid_says) < 0)
		_exit(4);
	if (fork() != 0)
		return;
	char *mine = anonymous(MINE);
	madvise(mine, MINE * PAGE, MADV_NOHUGEPAGE);
	fill(mine, MINE);
	*(uint64_t *)(memory + 7 * PAGE) = *(uint64_t *)(memory + 8 * PAGE - 8) = mark(9999);
	run_kid(mine);
}

static bool kid_is_right(void)
{
	char c = 0;
	return write(ask_kid[1], "?", 1) == 1 && read(kid_says[0], &c, 1) == 1 && c;
}

static void all(void)
{
	for (size_t i = 0; i < n_pages - OTHER; i++)
		WANT(is_right(i));
	for (size_t i = 0; i < 12500; i++)
		WANT(heap[i] == i * 7);
	WANT(kid_is_right());
}

static void in_a_fork(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		for (size_t i = 0; i < 32; i++)
			WANT(i >= 4 && i < 8 ? is_zero(other, i) : is_seed(other, i, i));
		memset(other, 1, 32 * PAGE);
		_exit(failure[0] != 0);
	}
	WANT(child_passes(pid));
}

static void *in_a_thread(void *arg)
{
	(void)arg;
	WANT(is_seed(other, 40, 40));
	return NULL;
}

static void hard(void)
{
	pthread_t t;
	WANT(madvise(other + 4 * PAGE, 4 * PAGE, MADV_DONTNEED) == 0);
	in_a_fork();
	WANT(is_zero(other, 4) && is_zero(other, 7) && is_seed(other, 3, 3) &&
	     is_seed(other, 8, 8));
	WANT(mprotect(other + 32 * PAGE, PAGE, PROT_READ) == 0 && is_seed(other, 32, 32));
	WANT(mprotect(other + 32 * PAGE, PAGE, PROT_READ | PROT_WRITE) == 0);
	WANT(pthread_create(&t, NULL, in_a_thread, NULL) == 0 && pthread_join(t, NULL) == 0);
	char *moved = mremap(other + 48 * PAGE, 8 * PAGE, 16 * PAGE, MREMAP_MAYMOVE);
	WANT(moved != MAP_FAILED && is_seed(moved, 0, 48) && is_seed(moved, 7, 55));
	WANT(moved == MAP_FAILED || (is_zero(moved, 8) && is_zero(moved, 15)));
	memset(other, 2, 32 * PAGE);
	WANT(other[31 * PAGE] == 2 && is_seed(other, 33, 33));
	WANT(munmap(other + 60 * PAGE, 4 * PAGE) == 0);
	void *p = malloc(3000000); /* the heap goes on */
	WANT(p && memset(p, 3, 3000000));
	free(p);
}

static void last(void)
{
	WANT(is_right(n_pages - 1));
}

static void bus(void)
{
	int fds[2];
	WANT(is_bus(memory, n_pages - 1));
	WANT(pipe(fds) == 0 && write(fds[1], memory + (n_pages - 1) * PAGE, 8) < 0 &&
	     errno == EFAULT);
}

static void tell(const char *path, const char *text)
{
	char temporary[80];
	snprintf(temporary, sizeof(temporary), "%s.new", path);
	int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0 || write(fd, text, strlen(text)) < 0 || close(fd) < 0 ||
	    rename(temporary, path) < 0)
		_exit(3);
}

/* It may become a seed while the file is open: so that is one which each child has, too. */
static void count(unsigned long i)
{
	char text[32];
	const int n = snprintf(text, sizeof(text), "%020lu\n", i);
	int fd = open("/n", O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0 || pwrite(fd, text, (size_t)n, 0) != n || close(fd) < 0)
		_exit(3);
}

static void asked(const char *path, void (*run)(void))
{
	char done[64];
	if (unlink(path) < 0)
		return;
	failure[0] = 0;
	run();
	snprintf(done, sizeof(done), "%s.done", path);
	tell(done, failure[0] ? failure : "ok");
}

static int metric(const char *path, const char *name)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	static char text[16384];
	size_t n = 0;
	ssize_t got;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	if (connect(fd, (void *)&sa, sizeof(sa)) < 0)
		return 1;
	while (n < sizeof(text) - 1 && (got = read(fd, text + n, sizeof(text) - 1 - n)) > 0)
		n += (size_t)got;
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (strncmp(line, "lean_forkd_", 11) == 0 &&
		    strncmp(line + 11, name, strlen(name)) == 0 && line[11 + strlen(name)] == ' ')
			return puts(line + 12 + strlen(name)) < 0;
	return 1;
}

static int referenced(void)
{
	struct lean_seed_info info;
	int fd = open("/dev/lean-seed", O_RDWR | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, LEAN_SEED_INFO, &info) < 0)
		return 1;
	return printf("%llu\n", (unsigned long long)info.referenced) < 0;
}

int main(int argc, char **argv)
{
	if (argc == 4)
		return metric(argv[2], argv[3]);
	if (argc == 2 && strcmp(argv[1], "--referenced") == 0)
		return referenced();
	if (argc == 2)
		n_pages = strtoul(argv[1], NULL, 10);
	prepare();
	begin_kid();
	for (unsigned long i = 1;; i++) {
		count(i);
		asked("/all", all);
		asked("/hard", hard);
		asked("/last", last);
		asked("/bus", bus);
		usleep(20000);
	}
}
