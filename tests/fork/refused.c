/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refused: a process, and children of it, with what no seed carries; says "ready" (a file) and waits.
 *
 *	refused          what is seen from outside, one of each; where the machine has none of a
 *	                 kind, a file "no-KIND"
 *	refused kinds    descriptors of more kinds (refused_kinds.c); refused waits: two more
 *	refused held     what is seen when all is held: messages and descriptors in pairs of sockets
 *	refused guard    guard pages
 */
#include "tests/fork/refused.h"

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

void say(const char *name)
{
	close(open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

void need(int r, const char *what)
{
	if (r >= 0)
		return;
	perror(what);
	exit(1);
}

/* Nobody stays when we are killed. */
void be_a_child(const char *name)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, name);
}

void wait_for_ever(void)
{
	for (;;)
		pause();
}

/* Its other end is with somebody who is not below us, and ends when we do. */
static void pipe_outside(void)
{
	int out[2], life[2];
	char c;

	need(pipe(out), "pipe");
	need(pipe2(life, O_CLOEXEC), "pipe");
	pid_t pid = fork();
	if (pid == 0) {
		if (fork())
			_exit(0);
		close(life[1]);
		close(out[0]);
		(void)!read(life[0], &c, 1);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	close(out[1]);
}

static void files(void)
{
	need(flock(open("locked", O_RDWR | O_CREAT, 0600), LOCK_EX), "flock");
	need(open("/dev/ptmx", O_RDWR | O_NOCTTY), "/dev/ptmx");
	need(open("/dev/kmsg", O_RDONLY), "/dev/kmsg");
	need(inotify_add_watch(inotify_init(), ".", IN_CREATE), "inotify");
	say("unread");
}

static void memory(void)
{
	int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);

	need(id, "shmget");
	if (shmat(id, NULL, 0) == (void *)-1)
		need(-1, "shmat");
	shmctl(id, IPC_RMID, NULL);
	int fd = open("gone", O_RDWR | O_CREAT, 0600);
	need(ftruncate(fd, 4096), "ftruncate");
	if (mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		need(-1, "mmap");
	close(fd);
	unlink("gone");
	aio_context_t ring = 0;
	if (syscall(SYS_io_setup, 1, &ring) < 0)
		say("no-aio");
	int secret = (int)syscall(SYS_memfd_secret, 0);
	if (secret < 0 || ftruncate(secret, 4096) < 0 ||
	    mmap(NULL, 4096, PROT_READ, MAP_SHARED, secret, 0) == MAP_FAILED)
		say("no-secret");
}

static int with_name(void *name)
{
	be_a_child(name);
	wait_for_ever();
	return 0;
}

static void shares(int flags, const char *name)
{
	static char stacks[2][16384] __attribute__((aligned(16)));
	char *top = stacks[flags & CLONE_VM ? 0 : 1] + sizeof(stacks[0]);

	need(clone(with_name, top, flags | SIGCHLD, (void *)(uintptr_t)name), "clone");
}

static void *thread(void *arg)
{
	be_a_child("r-thread");
	wait_for_ever();
	return arg;
}

static void children(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	const struct sock_fprog prog = {1, &allow};
	int never[2];
	pthread_t t;
	char c;

	need(pipe(never), "pipe");
	shares(CLONE_VM, "r-memory");
	shares(CLONE_FILES, "r-files");
	if (fork() == 0) {
		be_a_child("r-strict");
		need(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT), "strict");
		(void)!read(never[0], &c, 1);
	}
	if (fork() == 0) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		need(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog), "filter");
		with_name((void *)(uintptr_t) "r-filter");
	}
	if (fork() == 0) {
		need(unshare(CLONE_NEWUTS), "unshare");
		with_name((void *)(uintptr_t) "r-uts");
	}
	if (fork() == 0) {
		be_a_child("r-leader");
		pthread_create(&t, NULL, thread, NULL);
		syscall(SYS_exit, 0);
	}
	pid_t traced = fork();
	if (traced == 0)
		with_name((void *)(uintptr_t) "r-traced");
	need((int)ptrace(PTRACE_SEIZE, traced, 0, 0), "seize");
}

static void held(void)
{
	int datagrams[2], empty[2], stream[2], fd = 0;
	char byte = 'x';
	struct iovec iov = {&byte, 1};
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control.room)};

	need(socketpair(AF_UNIX, SOCK_DGRAM, 0, datagrams), "socketpair");
	need((int)send(datagrams[0], "x", 1, 0), "send");
	need(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, empty), "socketpair");
	need((int)send(empty[0], "", 0, 0), "send");
	need(socketpair(AF_UNIX, SOCK_STREAM, 0, stream), "socketpair");
	control.h = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)),
				     .cmsg_level = SOL_SOCKET,
				     .cmsg_type = SCM_RIGHTS};
	memcpy(CMSG_DATA(&control.h), &fd, sizeof(fd));
	need((int)sendmsg(stream[0], &m, 0), "sendmsg");
}

static void guard(void)
{
	char *p = mmap(NULL, 8 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(p, 'x', 4096);
	if (madvise(p + 4096, 4096, MADV_GUARD_INSTALL) < 0)
		say("no-guard"); /* before Linux 6.13 */
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	if (strcmp(how, "held") == 0) {
		held();
	} else if (strcmp(how, "guard") == 0) {
		guard();
	} else if (strcmp(how, "kinds") == 0) {
		kinds();
		usleep(200000);
	} else if (strcmp(how, "waits") == 0) {
		kinds_that_wait();
	} else {
		pipe_outside();
		files();
		memory();
		children();
		usleep(200000); /* they have their names then */
	}
	say("ready");
	wait_for_ever();
}
