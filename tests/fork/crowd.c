/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crowd KIND N: a program that has a great many of something; says "ready" (a file) and waits. To look for each
 * among all others would keep whoever makes a seed of it, and all that is held meanwhile.
 *
 *	files		/dev/null, opened each time, and the first one as three more numbers
 *	owners		pipes, whose owners are its threads, and an epoll that watches them
 *	memory		memfds that are mapped
 *	processes	children
 *	threads		threads
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef F_SETOWN_EX
#define F_SETOWN_EX 15
#endif

struct owner { /* the kernel's f_owner_ex */
	int type;
	pid_t pid;
};

static int need(int r, const char *what)
{
	if (r >= 0)
		return r;
	perror(what);
	exit(1);
}

static void files(int n)
{
	int first = need(open("/dev/null", O_RDWR), "/dev/null");

	for (int i = 1; i < n; i++)
		need(open("/dev/null", O_RDONLY), "/dev/null");
	for (int i = 0; i < 3; i++)
		need(dup(first), "dup");
}

static _Atomic pid_t newest;

static void *thread(void *arg)
{
	newest = (pid_t)syscall(SYS_gettid);
	for (;;)
		pause();
	return arg;
}

static pid_t begin_thread(void)
{
	pthread_attr_t small;
	pthread_t t;

	newest = 0;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 32768);
	need(-pthread_create(&t, &small, thread, NULL), "a thread");
	while (!newest)
		usleep(100);
	return newest;
}

static void threads(int n)
{
	for (int i = 0; i < n; i++)
		begin_thread();
}

static void owners(int n)
{
	int poll = need(epoll_create1(0), "epoll"), ends[2];
	struct owner o = {0, 0};

	for (int i = 0; i < n; i++) {
		struct epoll_event e = {.events = EPOLLIN, .data.u64 = (uint64_t)i};
		if (i % 10 == 0)
			o.pid = begin_thread();
		need(pipe(ends), "pipe");
		need(fcntl(ends[0], F_SETOWN_EX, &o), "F_SETOWN_EX");
		need(epoll_ctl(poll, EPOLL_CTL_ADD, ends[0], &e), "watch");
	}
}

static void memory(int n)
{
	for (int i = 0; i < n; i++) {
		int fd = need((int)syscall(SYS_memfd_create, "crowd", 0), "memfd");
		need(ftruncate(fd, 4096), "ftruncate");
		if (mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
			need(-1, "mmap");
	}
}

static void processes(int n)
{
	for (int i = 0; i < n; i++)
		if (need(fork(), "fork") == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*make)(int n);
	} kinds[] = {{"files", files},
		     {"owners", owners},
		     {"memory", memory},
		     {"processes", processes},
		     {"threads", threads}};
	const struct rlimit most = {1 << 20, 1 << 20};

	setrlimit(RLIMIT_NOFILE, &most);
	for (size_t i = 0; argc == 3 && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(argv[1], kinds[i].name) == 0)
			kinds[i].make(atoi(argv[2]));
	close(open("ready", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	for (;;)
		pause();
}
