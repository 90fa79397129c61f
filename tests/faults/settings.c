/* SPDX-License-Identifier: Apache-2.0 */
/* probe lives settings: what a program has set of its files, its memory, its root and its priority. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/faults/lives.h"

#ifndef F_SETOWN_EX
#define F_SETOWN_EX 15
#define F_GETOWN_EX 16
#endif
#ifndef F_SETSIG
#define F_SETSIG 10
#define F_GETSIG 11
#endif
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define PAGE  4096

struct owner { /* the kernel's f_owner_ex */
	int type;
	pid_t pid;
};

static const char text[] = "sealed";
static int sealed, own[2], of_child[2];
static pid_t child_of;
static long locked;

static long kilobytes_locked(void)
{
	char line[128];
	long n = -1;
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "VmLck:", 6) == 0)
			n = strtol(line + 6, NULL, 10);
	if (f)
		fclose(f);
	return n;
}

static int signal_of_own(void)
{
	return SIGRTMIN + 1;
}

static void be_owned(int fd, pid_t pid, int sig)
{
	const struct owner o = {1 /* F_OWNER_PID */, pid};

	if (fcntl(fd, F_SETOWN_EX, &o) < 0 || fcntl(fd, F_SETSIG, sig) < 0 ||
	    fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK) < 0)
		exit(1);
}

void make_settings(void)
{
	sigset_t set;

	sealed = (int)syscall(SYS_memfd_create, "sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (write(sealed, text, sizeof(text)) != sizeof(text) ||
	    fcntl(sealed, F_ADD_SEALS, SEALS) < 0 || pipe2(own, O_CLOEXEC) < 0 ||
	    pipe2(of_child, O_CLOEXEC) < 0)
		exit(1);
	sigemptyset(&set);
	sigaddset(&set, signal_of_own());
	sigprocmask(SIG_BLOCK, &set, NULL);
	be_owned(own[0], getpid(), signal_of_own());
	char *memory =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED || mlock(memory, 2 * PAGE) < 0)
		exit(1);
	locked = kilobytes_locked();
}

void make_settings_of_child(void)
{
	const struct sched_param none = {0};

	if (chroot("/dev/shm/d") < 0 || chdir("/") < 0 || setpriority(PRIO_PROCESS, 0, 5) < 0 ||
	    syscall(SYS_sched_setscheduler, 0, SCHED_BATCH, &none) < 0)
		_exit(1);
}

const char *wrong_of_child(void)
{
	if (access("/f", F_OK) < 0 || access("/proc", F_OK) == 0)
		return "its root is another";
	errno = 0;
	return getpriority(PRIO_PROCESS, 0) != 5 ||
			       syscall(SYS_sched_getscheduler, 0) != SCHED_BATCH
		       ? "its priority is another"
		       : NULL;
}

void settings_know_child(pid_t pid)
{
	child_of = pid;
	be_owned(of_child[0], pid, SIGURG); /* which it ignores */
}

static const char *wrong_owner(void)
{
	const struct timespec soon = {.tv_sec = 5};
	struct owner o = {0};
	siginfo_t info = {0};
	sigset_t set;

	if (fcntl(of_child[0], F_GETOWN_EX, &o) < 0 || o.type != 1 || o.pid != child_of ||
	    fcntl(of_child[0], F_GETSIG) != SIGURG)
		return "the owner of a pipe is another";
	sigemptyset(&set);
	sigaddset(&set, signal_of_own());
	if (write(own[1], "!", 1) != 1 || sigtimedwait(&set, &info, &soon) != signal_of_own() ||
	    info.si_fd != own[0])
		return "its own pipe sends no signal, or another";
	return NULL;
}

const char *wrong_settings(void)
{
	char got[sizeof(text)] = "";

	if (fcntl(sealed, F_GET_SEALS) != SEALS ||
	    pread(sealed, got, sizeof(got), 0) != sizeof(got) || strcmp(got, text) != 0 ||
	    pwrite(sealed, "x", 1, 0) >= 0)
		return "the sealed memory is another";
	if (kilobytes_locked() != locked)
		return "its memory is not locked as it was";
	const char *why = wrong_owner();
	close(sealed);
	for (int i = 0; i < 2; i++) {
		close(own[i]);
		close(of_child[i]);
	}
	return why;
}
