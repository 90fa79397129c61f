/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe lives: a thread, a child with a pipe, memory of its own and shared memory, which all go on
 * for ever and look at each other; and files in a tmpfs. Whoever stops them, has them forked or continues a copy of them
 * must not be noticed: a number that comes twice or not at all, a call that returns what nobody
 * asked for, a child that is nobody's. Words that follow are for more of it:
 *	here	a thread waits for a seed
 *	changes	it has changed what is in its root
 *	listens	it listens, and in the end it calls itself, by TCP and by sockets of Unix
 *	talks	it has a connection to itself, which may end
 *	deleted	it has files open whose names are gone
 *	settings	it has seals, owners of pipes and locked memory; its child a root and a priority of its own
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
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

static _Noreturn void be_child(int to, pid_t parent, bool settings)
{
	if (settings)
		make_settings_of_child();
	for (uint32_t n = 1; !shared->stop; n++) {
		if (write(to, &n, sizeof(n)) != sizeof(n) || getppid() != parent)
			_exit(STATUS + 1);
		shared->sent = n;
		nap("child");
	}
	_exit(settings && wrong_of_child() ? STATUS + 2 : STATUS);
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

static bool attributes; /* this kernel has them there */

static void make_files(const char *top)
{
	const struct timespec times[2] = {{.tv_sec = 123, .tv_nsec = 4},
					  {.tv_sec = 567, .tv_nsec = 8}};
	int at = open(top, O_RDONLY | O_DIRECTORY);

	umask(0);
	if (mkdirat(at, "d", 0710) < 0 || symlinkat("nowhere", at, "l") < 0 ||
	    mkfifoat(at, "p", 0620) < 0)
		exit(1);
	int fd = openat(at, "d/f", O_RDWR | O_CREAT, 0640);
	attributes = fsetxattr(fd, "user.a", "b", 1, 0) == 0;
	if (pwrite(fd, memory, 5000, 100) != 5000 || ftruncate(fd, 1 << 20) < 0 ||
	    futimens(fd, times) < 0 || linkat(at, "d/f", at, "h", 0) < 0)
		exit(1);
	close(fd);
	close(at);
}

static void look_at_files(const char *top)
{
	struct stat d, f, h, l, p;
	char text[5000];
	int at = open(top, O_RDONLY | O_DIRECTORY), fd = openat(at, "h", O_RDONLY);
	const int same = AT_SYMLINK_NOFOLLOW;

	if (fstatat(at, "d", &d, same) < 0 || fstatat(at, "d/f", &f, same) < 0 ||
	    fstatat(at, "h", &h, same) < 0 || fstatat(at, "l", &l, same) < 0 ||
	    fstatat(at, "p", &p, same) < 0) {
		wrong("a file is gone in %s: %s", top, strerror(errno));
		return;
	}
	if (d.st_mode != (S_IFDIR | 0710) || f.st_mode != (S_IFREG | 0640) ||
	    p.st_mode != (S_IFIFO | 0620) || !S_ISLNK(l.st_mode) || f.st_ino != h.st_ino ||
	    f.st_size != 1 << 20 || f.st_blocks > 64)
		wrong("the files in %s are others", top);
	if (f.st_mtim.tv_sec != 567 || f.st_mtim.tv_nsec != 8)
		wrong("the times in %s are others", top);
	if (pread(fd, text, sizeof(text), 100) != sizeof(text) ||
	    memcmp(text, memory, sizeof(text)) != 0 || pread(fd, text, 1, 9000) != 1 || *text)
		wrong("the contents in %s are others", top);
	if (readlinkat(at, "l", text, sizeof(text)) != 7 || memcmp(text, "nowhere", 7) != 0)
		wrong("the link in %s is another", top);
	if (attributes && (fgetxattr(fd, "user.a", text, sizeof(text)) != 1 || *text != 'b'))
		wrong("the attribute in %s is another", top);
	close(fd);
	close(at);
}

/* Of what an image has, one of each way to change it. */
static void change_root(void)
{
	if (mkdir("/made", 0755) < 0)
		exit(1);
	make_files("/made");
	int fd = open("/etc/group", O_WRONLY | O_CREAT, 0600);
	if (unlink("/etc/passwd") < 0 || unlink("/copy/b/file") < 0 || rmdir("/copy/b") < 0 ||
	    mkdir("/copy/b", 0751) < 0 || mkdir("/copy/b/deep", 0755) < 0 ||
	    chmod("/copy/a", 0711) < 0 || write(fd, "mine", 4) != 4)
		exit(1);
	close(fd);
}

static void look_at_root(void)
{
	struct stat a, b, deep, group;

	if (access("/etc/passwd", F_OK) == 0 || access("/copy/b/file", F_OK) == 0)
		wrong("what was removed is there");
	if (stat("/copy/a", &a) < 0 || stat("/copy/b", &b) < 0 || stat("/copy/b/deep", &deep) < 0 ||
	    stat("/etc/group", &group) < 0)
		wrong("what was made in the root is not there");
	else if (a.st_mode != (S_IFDIR | 0711) || b.st_mode != (S_IFDIR | 0751) ||
		 deep.st_mode != (S_IFDIR | 0755) || group.st_mode != (S_IFREG | 0600) ||
		 group.st_size != 4)
		wrong("what was made in the root is another");
	look_at_files("/made");
}

/* ---- sockets ------------------------------------------------------------------------------- */

#define BACKLOG 5

/* By TCP; at a path; at an abstract name. */
enum { TCP, PATH, ABSTRACT, LISTENERS };

static int listeners[LISTENERS], talk[2];
static const struct sockaddr_in tcp = {
	.sin_family = AF_INET, .sin_port = 0x901f, .sin_addr.s_addr = 0x0100007f};
static const struct sockaddr_un path = {AF_UNIX, "/dev/shm/d/socket"},
				abstract = {AF_UNIX, "\0probe"};
static const struct {
	int type;
	const void *at;
	socklen_t size;
} places[LISTENERS] = {
	[TCP] = {SOCK_STREAM, &tcp, sizeof(tcp)},
	[PATH] = {SOCK_STREAM, &path, sizeof(path)},
	[ABSTRACT] = {SOCK_SEQPACKET, &abstract, offsetof(struct sockaddr_un, sun_path) + 6},
};
static const struct {
	int level, name, value, is;
} options[] = {
	{SOL_SOCKET, SO_REUSEADDR, 1, 1},     {SOL_SOCKET, SO_KEEPALIVE, 1, 1},
	{IPPROTO_TCP, TCP_KEEPIDLE, 71, 71},  {IPPROTO_TCP, TCP_NODELAY, 1, 1},
	{SOL_SOCKET, SO_RCVBUF, 9000, 18000},
};

static int domain_of(int i)
{
	return ((const struct sockaddr *)places[i].at)->sa_family;
}

static void begin_to_listen(void)
{
	for (int i = 0; i < LISTENERS; i++)
		listeners[i] = socket(domain_of(i), places[i].type | SOCK_CLOEXEC, 0);
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (setsockopt(listeners[TCP], options[i].level, options[i].name, &options[i].value,
			       sizeof(int)) < 0)
			exit(1);
	for (int i = 0; i < LISTENERS; i++)
		if (bind(listeners[i], places[i].at, places[i].size) < 0 ||
		    listen(listeners[i], BACKLOG) < 0)
			exit(1);
	if (chmod(path.sun_path, 0620) < 0)
		exit(1);
}

/* With itself: what it says at one end is heard at the other. */
static bool calls_itself(int i, int ends[2])
{
	struct pollfd p = {.fd = listeners[i], .events = POLLIN};
	char byte = 0;

	ends[0] = socket(domain_of(i), places[i].type | SOCK_CLOEXEC, 0);
	if (connect(ends[0], places[i].at, places[i].size) < 0 || poll(&p, 1, 5000) != 1)
		return false;
	ends[1] = accept4(listeners[i], NULL, NULL, SOCK_CLOEXEC);
	return send(ends[0], "!", 1, MSG_NOSIGNAL) == 1 && recv(ends[1], &byte, 1, 0) == 1 &&
	       byte == '!';
}

static void look_at_options(void)
{
	struct tcp_info info = {0};
	socklen_t n = sizeof(info);

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		int value = -1;
		socklen_t len = sizeof(value);
		if (getsockopt(listeners[TCP], options[i].level, options[i].name, &value, &len) <
			    0 ||
		    value != options[i].is)
			wrong("option %d of the socket is %d", options[i].name, value);
	}
	if (getsockopt(listeners[TCP], IPPROTO_TCP, TCP_INFO, &info, &n) < 0 ||
	    info.tcpi_sacked != BACKLOG)
		wrong("it does not listen as it did");
}

static void look_at_listeners(void)
{
	struct stat st;

	look_at_options();
	if (stat(path.sun_path, &st) < 0 || st.st_mode != (S_IFSOCK | 0620))
		wrong("the socket's file is another");
	for (int i = 0; i < LISTENERS; i++) {
		struct sockaddr_un at = {0};
		socklen_t size = sizeof(at);
		int ends[2];
		if (getsockname(listeners[i], (struct sockaddr *)&at, &size) < 0 ||
		    memcmp(&at, places[i].at, sizeof(struct sockaddr_in)) != 0)
			wrong("it listens elsewhere");
		if (!calls_itself(i, ends)) {
			wrong("it can't be called: %s", strerror(errno));
			return;
		}
		close(ends[0]);
		close(ends[1]);
		close(listeners[i]);
	}
}

static void begin_to_talk(void)
{
	if (!calls_itself(TCP, talk))
		exit(1);
}

/* As before, or both ends are at their end. */
static void look_at_talk(void)
{
	struct pollfd p = {.fd = talk[1], .events = POLLIN};
	char byte = 0;
	const bool there = send(talk[0], "?", 1, MSG_NOSIGNAL) == 1;

	if (poll(&p, 1, 5000) != 1 || recv(talk[1], &byte, 1, 0) != there ||
	    byte != (there ? '?' : 0) || (!there && recv(talk[0], &byte, 1, 0) != 0))
		wrong("the connection is another: %s", strerror(errno));
	close(talk[0]);
	close(talk[1]);
}

/* ---- files without a name -------------------------------------------------------------------- */

enum { WRITES, READS, GONE };

static int gone[GONE];

static void delete_files(void)
{
	static const char name[] = "/tmp/gone";

	gone[WRITES] = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
	gone[READS] = open(name, O_RDONLY | O_CLOEXEC);
	if (unlink(name) < 0 || write(gone[WRITES], memory, 5000) != 5000 ||
	    ftruncate(gone[WRITES], 1 << 20) < 0 || lseek(gone[READS], 100, SEEK_SET) != 100)
		exit(1);
}

static void look_at_deleted(void)
{
	char text[5000] = "";
	struct stat a, b;

	if (fstat(gone[WRITES], &a) < 0 || fstat(gone[READS], &b) < 0 || a.st_ino != b.st_ino ||
	    a.st_nlink || a.st_mode != (S_IFREG | 0640) || a.st_size != 1 << 20)
		wrong("the deleted file is another");
	if (lseek(gone[WRITES], 0, SEEK_CUR) != 5000 || read(gone[READS], text, 4900) != 4900 ||
	    memcmp(text, (char *)memory + 100, 4900) != 0)
		wrong("the contents of the deleted file are others");
	for (int i = 0; i < GONE; i++)
		close(gone[i]);
}

/* ---- the world ------------------------------------------------------------------------------ */

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

/* One of the words; argv ends with NULL. */
static bool is_asked(char **argv, const char *word)
{
	while (*argv && strcmp(*argv, word) != 0)
		argv++;
	return *argv;
}

void lives(char **words)
{
	const bool here = is_asked(words, "here"), changes = is_asked(words, "changes"),
		   listens = is_asked(words, "listens"), talks = is_asked(words, "talks"),
		   deleted = is_asked(words, "deleted"), settings = is_asked(words, "settings"),
		   pairs = is_asked(words, "pairs");
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
	make_files("/dev/shm");
	if (changes)
		change_root();
	if (listens)
		begin_to_listen();
	if (talks)
		begin_to_talk();
	if (deleted)
		delete_files();
	if (settings)
		make_settings();
	if (pairs)
		make_pairs();
	pid = fork();
	if (pid == 0)
		be_child(ends[1], self, settings);
	close(ends[1]);
	if (settings)
		settings_know_child(pid);
	if (pid < 0 || pthread_create(&thread, NULL, compute, NULL) != 0)
		exit(1);
	if (here && pthread_create(&waiting, NULL, wait_here, NULL) != 0)
		exit(1);
	listen_until_go(ends[0]);
	printf("children: %d\n", children());
	const char *why = settings ? wrong_settings() : NULL;
	if (!why && pairs)
		why = wrong_pairs();
	if (why)
		wrong("%s", why);
	shared->stop = 1;
	pthread_join(thread, NULL);
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != STATUS)
		wrong("the child's end: %x", (unsigned)status);
	if (waitpid(-1, NULL, __WALL | WNOHANG) != -1)
		printf("a child too many\n");
	fill(memory, WORDS, true);
	fill(shared->pattern, 256, true);
	look_at_files("/dev/shm");
	if (changes)
		look_at_root();
	if (talks)
		look_at_talk();
	if (listens)
		look_at_listeners();
	if (deleted)
		look_at_deleted();
	if (isatty(0) && (tcgetsid(0) != getsid(0) || tcgetpgrp(0) != getpgrp()))
		wrong("the terminal is not its own any more");
	close(ends[0]);
	free(memory);
	munmap(shared, sizeof(*shared));
	printf("lived: %s\n", wrongs ? "not well" : "well");
}
