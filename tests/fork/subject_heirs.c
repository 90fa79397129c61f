/* SPDX-License-Identifier: Apache-2.0 */
/* Families that change as they go on: children that are borne, or left to another one, just then. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "tests/fork/subject.h"

static int told[2], tells[2];

/* Until it goes on in the child, or was let go in the parent: the kernel makes this call again for nobody. */
static void until_it_goes_on(void)
{
	const int fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event none;

	epoll_wait(fd, &none, 1, -1);
	close(fd);
}

/* By the time that it is told, nothing of the restorer is in its memory, and its owner may look at it. */
_Noreturn static void heir(void)
{
	char line[512], c = 0, word = '!';

	if (read(told[0], &c, 1) != 1)
		_exit(1);
	FILE *f = fopen("/proc/self/maps", "re");
	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, " rwxp "))
			word = 'r';
	if (!f || prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 1)
		word = 'd';
	_exit(write(tells[1], &word, 1) != 1);
}

static void *waits(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* Its leader ends: the child is left to the other thread. */
static void leader_ends(void)
{
	pthread_t t;

	if (fork() == 0)
		heir();
	EXPECT(pthread_create(&t, NULL, waits, NULL) == 0);
	until_it_goes_on();
	syscall(SYS_exit, 0);
}

static void bears_at_once(void)
{
	until_it_goes_on();
	if (fork() == 0)
		heir();
	waits(NULL);
}

/* In pid namespaces of their own all have the number 1, as the first of a seed may. */
static void bears_firsts(void)
{
	if (fork() == 0)
		heir();
	until_it_goes_on();
	for (int i = 0; i < 6; i++)
		if (syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0) == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			waits(NULL);
		}
	waits(NULL);
}

static void *heir_of_a_thread(void *arg)
{
	(void)arg;
	heir();
}

/* It goes on without its leader. */
static void ends_but_for_a_thread(void)
{
	pthread_t t;

	EXPECT(pthread_create(&t, NULL, heir_of_a_thread, NULL) == 0);
	until_it_goes_on();
	syscall(SYS_exit, 0);
}

/* Nobody can hold it meanwhile. */
static void waits_for_its_child(void)
{
	until_it_goes_on();
	if (vfork() == 0)
		heir();
	waits(NULL);
}

static void leaves_its_child(void)
{
	if (fork() == 0)
		heir();
	until_it_goes_on();
	usleep(5000);
	_exit(0);
}

void subject_heirs(void)
{
	static void (*const families[])(void) = {leader_ends,           bears_at_once,
						 bears_firsts,          waits_for_its_child,
						 ends_but_for_a_thread, leaves_its_child};
	const size_t n = sizeof(families) / sizeof(families[0]);
	pid_t family[sizeof(families) / sizeof(families[0])];
	char word = 0;

	EXPECT(pipe(told) == 0 && pipe(tells) == 0 && signal(SIGCHLD, SIG_IGN) != SIG_ERR);
	for (size_t i = 0; i < n; i++) {
		family[i] = fork();
		EXPECT(family[i] >= 0);
		if (family[i] == 0) {
			families[i]();
			_exit(1);
		}
	}
	usleep(200000);
	subject_ready();
	for (size_t i = 0; i < n; i++)
		EXPECT(write(told[1], "!", 1) == 1);
	for (size_t i = 0; i < n; i++) {
		EXPECT(read(tells[0], &word, 1) == 1);
		EXPECT(word != 'r');
		EXPECT(word != 'd');
	}
	for (size_t i = 0; i < n; i++)
		kill(family[i], SIGKILL);
}
