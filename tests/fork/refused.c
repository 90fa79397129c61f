/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refused: a process, and children of it, with what no seed carries; says "ready" (a file) and waits.
 *
 *	refused          what is seen from outside, one of each; where the machine has none of a
 *	                 kind, a file "no-KIND"
 *	refused kinds    descriptors of more kinds (refused_kinds.c); refused waits: three more
 *	refused held     what is seen when all is held: messages and descriptors in pairs of sockets
 *	refused guard    guard pages
 *	refused traced   what ptrace(2) tells of threads that are held
 *	refused policy   a thread and memory from a node of their choice
 */
#include "tests/fork/refused.h"

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif
#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
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
	signal(SIGIO, SIG_IGN);
	say("leased");
	need(fcntl(open("leased", O_RDONLY), F_SETLEASE, F_RDLCK), "a lease");
	need(fcntl(open(".", O_RDONLY | O_DIRECTORY), F_NOTIFY, DN_CREATE | DN_MULTISHOT),
	     "F_NOTIFY");
	int owned[2];
	need(pipe(owned), "pipe");
	need(fcntl(owned[0], F_SETOWN, getppid()), "F_SETOWN");
}

/* Execute-only memory that has key 0, which the kernel gives where none is left, and can be read. */
static void with_key_0(void)
{
	void *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	need((int)syscall(SYS_pkey_mprotect, p, 4096, PROT_EXEC, 0), "key 0");
}

/* A key; and execute-only memory, for which the kernel takes another one than in a new process, then. */
static void keys(void)
{
	const int key = (int)syscall(SYS_pkey_alloc, 0, 1 /* PKEY_DISABLE_ACCESS */);
	void *vdso = (void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
	int r = -1;

	if (key < 0) {
		say("no-pkey");
		return;
	}
	need((int)syscall(SYS_pkey_mprotect,
			  mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096,
			  PROT_READ, key),
	     "pkey_mprotect");
	/* As a whole, however large. */
	for (size_t n = 1; r < 0 && n < 16; n++)
		r = (int)syscall(SYS_pkey_mprotect, vdso, n * 4096, PROT_READ | PROT_EXEC, key);
	need(r, "vdso");
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	need(mprotect(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0), 4096, PROT_EXEC),
	     "execute-only memory");
	close(fd);
	with_key_0();
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
	keys();
}

static int with_name(void *name)
{
	be_a_child(name);
	wait_for_ever();
	return 0;
}

static void shares(int flags, const char *name)
{
	static char stacks[3][16384] __attribute__((aligned(16)));
	static int n;
	char *top = stacks[n++] + sizeof(stacks[0]);

	need(clone(with_name, top, flags | SIGCHLD, (void *)(uintptr_t)name), "clone");
}

static void *thread(void *arg)
{
	be_a_child("r-thread");
	wait_for_ever();
	return arg;
}

/* What other threads have, and it does not. */
static void *apart(void *arg)
{
	need(unshare((int)(intptr_t)arg), "unshare");
	wait_for_ever();
	return arg;
}

static void with_threads_apart(void)
{
	pthread_t t;

	be_a_child("r-apart");
	pthread_create(&t, NULL, apart, (void *)(intptr_t)CLONE_FILES);
	pthread_create(&t, NULL, apart, (void *)(intptr_t)CLONE_FS);
	pthread_create(&t, NULL, apart, (void *)(intptr_t)CLONE_NEWUTS);
	pthread_create(&t, NULL, apart, (void *)(intptr_t)CLONE_NEWPID);
	wait_for_ever();
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
	shares(CLONE_FS, "r-places");
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
	if (fork() == 0)
		with_threads_apart();
	if (fork() == 0) {
		need(unshare(CLONE_NEWPID), "unshare");
		with_name((void *)(uintptr_t) "r-pid");
	}
	pid_t traced = fork();
	if (traced == 0)
		with_name((void *)(uintptr_t) "r-traced");
	need((int)ptrace(PTRACE_SEIZE, traced, 0, 0), "seize");
}

/* Of who may mount, a descriptor that waits is taken for one that others wait for, and nothing is held. */
static void give_up_mounting(void)
{
	struct __user_cap_header_struct who = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2];

	need((int)syscall(SYS_capget, &who, caps), "capget");
	need(prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0), "prctl");
	caps[0].effective &= ~(1u << CAP_SYS_ADMIN);
	caps[0].permitted &= ~(1u << CAP_SYS_ADMIN);
	caps[0].inheritable &= ~(1u << CAP_SYS_ADMIN);
	need((int)syscall(SYS_capset, &who, caps), "capset");
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

	give_up_mounting();
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

/* A tracer that has gone leaves them. */
static void with_breakpoint(void)
{
	const size_t at = offsetof(struct user, u_debugreg);
	static int watched;
	pid_t pid = fork();

	if (pid == 0)
		with_name((void *)(uintptr_t) "r-breakpoint");
	need((int)ptrace(PTRACE_ATTACH, pid, 0, 0), "attach");
	waitpid(pid, NULL, 0);
	need((int)ptrace(PTRACE_POKEUSER, pid, at, &watched), "debug registers");
	need((int)ptrace(PTRACE_POKEUSER, pid, at + 7 * sizeof(long), 0xd0001), "debug registers");
	need((int)ptrace(PTRACE_DETACH, pid, 0, 0), "detach");
}

/* One that has closed the key of ordinary memory: it can't look at any memory any more. */
static void with_rights(void)
{
	const int key = (int)syscall(SYS_pkey_alloc, 0, 1 /* PKEY_DISABLE_ACCESS */);

	if (key < 0) {
		say("no-pkey");
		return;
	}
	if (fork() == 0) {
		be_a_child("r-denied");
		__asm__ volatile("wrpkru\n1:\tpause\n\tjmp 1b" : : "a"(0x55555555), "c"(0), "d"(0));
	}
}

static void traced(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		uint32_t nice, priority;
		uint64_t runtime, deadline, period;
	} deadline = {.size = 48,
		      .policy = 6,
		      .flags = 1,
		      .runtime = 1000000,
		      .deadline = 1000000000,
		      .period = 1000000000};
	static char selector;

	if (fork() == 0) {
		if (prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, 0, 0, &selector) < 0)
			say("no-dispatch");
		with_name((void *)(uintptr_t) "r-dispatch");
	}
	with_breakpoint();
	with_rights();
	if (fork() == 0) {
		if (syscall(SYS_sched_setattr, 0, &deadline, 0) < 0)
			say("no-deadline");
		with_name((void *)(uintptr_t) "r-deadline");
	}
	usleep(200000);
}

static void *with_policy(void *arg)
{
	const unsigned long first = 1;

	need((int)syscall(SYS_set_mempolicy, 3, &first, 64), "set_mempolicy");
	say("has-policy");
	wait_for_ever();
	return arg;
}

static void policy(void)
{
	const unsigned long first = 1;
	pthread_t t;
	char *p = mmap(NULL, 8 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	need((int)syscall(SYS_mbind, p, 8 * 4096, 2, &first, 64, 0), "mbind");
	pthread_create(&t, NULL, with_policy, NULL);
	usleep(200000);
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
	} else if (strcmp(how, "traced") == 0) {
		traced();
	} else if (strcmp(how, "policy") == 0) {
		policy();
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
