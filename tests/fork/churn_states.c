/* SPDX-License-Identifier: Apache-2.0 */
/* The states that churn is in while it changes its memory, mostly by threads of their own. Each
 * ends when churn_leave says so, and then looks whether everything is as it was. */
#include "tests/fork/churn.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <linux/futex.h>

#define THREADS 4
#define SHARED  (16 * PAGE)

static volatile bool leaving;
static pthread_t threads[THREADS];
static volatile pid_t tids[THREADS];
static unsigned begun;
static int blocked[2]; /* a pipe */
static volatile int got[65], value;

static pid_t own_tid(void)
{
	return (pid_t)syscall(SYS_gettid);
}

static void begin(void *(*run)(void *))
{
	volatile pid_t *tid = &tids[begun];

	churn_need(pthread_create(&threads[begun++], NULL, run, (void *)(uintptr_t)tid) == 0,
		   "pthread_create");
	while (!*tid)
		usleep(1000);
}

static void says_who(void *tid)
{
	*(volatile pid_t *)tid = own_tid();
}

static void join_all(void)
{
	for (unsigned i = 0; i < begun; i++)
		churn_need(pthread_join(threads[i], NULL) == 0, "pthread_join");
}

/* Until the kernel says that the thread waits in that system call, or in what goes on with it. */
static void until_in(pid_t tid, long call)
{
	char path[64], text[32];
	long in = -1;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	for (int i = 0; i < 5000; i++) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

		close(fd);
		churn_need(n > 0, path);
		text[n] = 0;
		in = text[0] == 'r' ? -1 : atol(text); /* "running" */
		if (in == call || in == SYS_restart_syscall)
			return;
		usleep(1000);
	}
	snprintf(path, sizeof(path), "it is in call %ld and not %ld", in, call);
	churn_need(false, path);
}

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)context;
	got[sig]++;
	if (sig == SIGRTMIN + 3)
		value = value * 100 + info->si_value.sival_int;
}

static void handle(int sig)
{
	struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};

	churn_need(sigaction(sig, &sa, NULL) == 0, "sigaction");
}

static void signal_thread(unsigned i, int sig)
{
	churn_need(syscall(SYS_tgkill, getpid(), tids[i], sig) == 0, "tgkill");
}

/* ---- computing: nothing but registers, and the kernel knows nothing of it --------------------- */

static void *computes(void *arg)
{
	static const uint64_t in[4] = {0x1111, 0x2222, 0x3333333333333333, 0x4444444444444444};
	uint64_t out[4] = {0}, kept = 0x5555555555555555;

	setpriority(PRIO_PROCESS, (id_t)own_tid(), 19); /* others compute, too */
	says_who(arg);
	__asm__ volatile("movdqu (%2), %%xmm5\n\t"
			 "movdqu 16(%2), %%xmm15\n\t"
			 "1: pause\n\t"
			 "cmpb $0, (%1)\n\t"
			 "je 1b\n\t"
			 "movdqu %%xmm5, (%3)\n\t"
			 "movdqu %%xmm15, 16(%3)"
			 : "+r"(kept)
			 : "r"(&leaving), "r"(in), "r"(out)
			 : "memory", "cc", "xmm5", "xmm15");
	churn_need(memcmp(in, out, sizeof(in)) == 0 && kept == 0x5555555555555555, "registers");
	return NULL;
}

static void enter_computing(void)
{
	begin(computes);
	usleep(20000);
}

/* ---- blocked: a thread in each of four system calls -------------------------------------------- */

static uint32_t word;
static int watch, event;

static void *in_read(void *arg)
{
	char c = 0;

	says_who(arg);
	churn_need(read(blocked[0], &c, 1) == 1 && c == 'x', "read of a pipe");
	return NULL;
}

static void *in_futex(void *arg)
{
	says_who(arg);
	churn_need(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0) == 0, "futex");
	return NULL;
}

/* Whom somebody has held, it tells so (signal(7)): in the parent, and in its children. Programs wait on. */
static void *in_epoll(void *arg)
{
	struct epoll_event e = {0};
	long n;

	says_who(arg);
	do
		n = syscall(SYS_epoll_wait, watch, &e, 1, -1);
	while (n < 0 && errno == EINTR);
	churn_need(n == 1 && e.data.u32 == 4711, "epoll_wait");
	return NULL;
}

/* A second seed ends the call with EINTR in its children, as a debugger would: programs wait on. */
static void *in_nanosleep(void *arg)
{
	struct timespec t = {.tv_sec = 3600}, rest;

	says_who(arg);
	while (!leaving) {
		churn_need(syscall(SYS_nanosleep, &t, &rest) < 0 && errno == EINTR, "nanosleep");
		churn_need(rest.tv_sec > 1800 && rest.tv_sec <= 3600, "what is left of nanosleep");
	}
	return NULL;
}

static void enter_blocked(void)
{
	struct epoll_event e = {.events = EPOLLIN, .data.u32 = 4711};

	churn_need(pipe(blocked) == 0, "pipe");
	watch = epoll_create1(EPOLL_CLOEXEC);
	event = eventfd(0, EFD_CLOEXEC);
	churn_need(epoll_ctl(watch, EPOLL_CTL_ADD, event, &e) == 0, "epoll_ctl");
	handle(SIGUSR1);
	begin(in_read);
	begin(in_futex);
	begin(in_epoll);
	begin(in_nanosleep);
	const long calls[] = {SYS_read, SYS_futex, SYS_epoll_wait, SYS_nanosleep};
	for (unsigned i = 0; i < THREADS; i++)
		until_in(tids[i], calls[i]);
}

static void leave_blocked(void)
{
	const long calls[] = {SYS_read, SYS_futex, SYS_epoll_wait, SYS_nanosleep};
	const uint64_t one = 1;

	for (unsigned i = 0; i < THREADS; i++)
		until_in(tids[i], calls[i]);
	leaving = true;
	churn_need(write(blocked[1], "x", 1) == 1, "write");
	churn_need(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 1, "wake");
	churn_need(write(event, &one, sizeof(one)) == sizeof(one), "eventfd");
	signal_thread(3, SIGUSR1);
}

/* ---- handler: in a handler, on a stack of its own, blocked there ------------------------------ */

static uint8_t other_stack[65536];
static volatile bool handled;

static void in_handler(int sig)
{
	uint8_t here[64];
	char c = 0;
	sigset_t mask;

	memset(here, 0x5a, sizeof(here));
	churn_need(read(blocked[0], &c, 1) == 1 && c == 'h', "read in a handler");
	churn_need(&here[0] >= other_stack && &here[0] < other_stack + sizeof(other_stack),
		   "its stack");
	for (size_t i = 0; i < sizeof(here); i++)
		churn_need(here[i] == 0x5a, "what was on its stack");
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	churn_need(sigismember(&mask, sig) && sigismember(&mask, SIGUSR2), "its mask");
	handled = true;
}

static void *is_interrupted(void *arg)
{
	stack_t other = {.ss_sp = other_stack, .ss_size = sizeof(other_stack)}, now;
	uint64_t kept = 0x6666666666666666;
	sigset_t mask;

	churn_need(sigaltstack(&other, NULL) == 0, "sigaltstack");
	says_who(arg);
	__asm__ volatile("" : "+r"(kept));
	churn_need(syscall(SYS_pause) < 0 && errno == EINTR && handled, "pause");
	churn_need(kept == 0x6666666666666666, "what was interrupted");
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	churn_need(!sigismember(&mask, SIGUSR1) && !sigismember(&mask, SIGUSR2), "the mask");
	churn_need(sigaltstack(NULL, &now) == 0 && now.ss_sp == other_stack && !now.ss_flags,
		   "the other stack");
	return NULL;
}

static void enter_handler(void)
{
	struct sigaction sa = {.sa_handler = in_handler, .sa_flags = SA_ONSTACK};

	sigaddset(&sa.sa_mask, SIGUSR2);
	churn_need(pipe(blocked) == 0 && sigaction(SIGUSR1, &sa, NULL) == 0, "sigaction");
	begin(is_interrupted);
	until_in(tids[0], SYS_pause);
	signal_thread(0, SIGUSR1);
	until_in(tids[0], SYS_read);
}

static void leave_handler(void)
{
	until_in(tids[0], SYS_read);
	churn_need(!handled && write(blocked[1], "h", 1) == 1, "a handler");
}

/* ---- pending: signals that are blocked, of the process and of a thread ------------------------ */

static void all_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGUSR1);
	sigaddset(set, SIGUSR2);
	sigaddset(set, SIGRTMIN + 3);
}

/* It has one of its own, and unblocks no other. */
static void *has_pending(void *arg)
{
	sigset_t set;

	says_who(arg);
	while (!leaving)
		usleep(2000);
	sigemptyset(&set);
	churn_need(sigpending(&set) == 0 && sigismember(&set, SIGUSR2), "a thread's signal");
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	churn_need(got[SIGUSR2] == 1, "a thread's signal, and how often");
	return NULL;
}

static void enter_pending(void)
{
	sigset_t set;

	all_signals(&set);
	churn_need(sigprocmask(SIG_BLOCK, &set, NULL) == 0, "sigprocmask");
	handle(SIGUSR1);
	handle(SIGUSR2);
	handle(SIGRTMIN + 3);
	begin(has_pending);
	signal_thread(0, SIGUSR2);
	kill(getpid(), SIGUSR1);
	sigqueue(getpid(), SIGRTMIN + 3, (union sigval){.sival_int = 47});
	sigqueue(getpid(), SIGRTMIN + 3, (union sigval){.sival_int = 11});
}

static void leave_pending(void)
{
	sigset_t set;

	sigpending(&set);
	churn_need(sigismember(&set, SIGUSR1) && sigismember(&set, SIGRTMIN + 3) &&
			   !sigismember(&set, SIGUSR2),
		   "pending signals");
	churn_need(!got[SIGUSR1] && !got[SIGUSR2] && !got[SIGRTMIN + 3], "blocked signals");
	leaving = true;
	all_signals(&set);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	churn_need(got[SIGUSR1] == 1 && got[SIGRTMIN + 3] == 2 && value == 4711,
		   "signals, and their order");
}

/* ---- family: a child of it writes to memory that both share ----------------------------------- */

static uint8_t *shared;
static int asks[2], answers[2];
static pid_t member;

static uint8_t *map_shared(int fd)
{
	uint8_t *p = mmap(NULL, SHARED, PROT_READ | PROT_WRITE,
			  MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);

	churn_need(p != MAP_FAILED, "shared memory");
	return p;
}

static void member_runs(void)
{
	unsigned step = 0;

	while (read(asks[0], &step, sizeof(step)) == sizeof(step)) {
		for (unsigned i = 0; i < 64; i++)
			shared[(step * 7919 + i * 1009) % SHARED] += (uint8_t)(step + i);
		if (write(answers[1], &step, sizeof(step)) != sizeof(step))
			_exit(8);
	}
	_exit(9); /* its parent has closed the pipe */
}

static void enter_family(void)
{
	shared = map_shared(-1);
	churn_need(pipe2(asks, O_CLOEXEC) == 0 && pipe2(answers, O_CLOEXEC) == 0, "pipe");
	member = fork();
	churn_need(member >= 0, "fork");
	if (member == 0) {
		close(asks[1]);
		close(answers[0]);
		member_runs();
	}
	close(asks[0]);
	close(answers[1]);
}

static void family_step(unsigned step)
{
	unsigned said = 0;

	churn_need(write(asks[1], &step, sizeof(step)) == sizeof(step), "ask the child");
	churn_need(read(answers[0], &said, sizeof(said)) == sizeof(said) && said == step,
		   "the child's answer");
	shared[step % SHARED]++;
}

static void leave_family(void)
{
	int status;

	close(asks[1]);
	churn_need(waitpid(member, &status, 0) == member && WIFEXITED(status) &&
			   WEXITSTATUS(status) == 9,
		   "the child's end");
}

/* ---- tmpfs: a file there that is mapped, and one that grows ------------------------------------ */

static int grows;

static void enter_tmpfs(void)
{
	int fd = open("/dev/shm/mapped", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	churn_need(fd >= 0 && ftruncate(fd, SHARED) == 0, "/dev/shm/mapped");
	shared = map_shared(fd);
	close(fd);
	grows = open("/dev/shm/grows", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	churn_need(grows >= 0, "/dev/shm/grows");
}

static void tmpfs_step(unsigned step)
{
	for (unsigned i = 0; i < 64; i++)
		shared[(step * 7919 + i * 1009) % SHARED] += (uint8_t)(step + i);
	churn_need(write(grows, &step, sizeof(step)) == sizeof(step), "/dev/shm/grows");
}

static uint64_t tmpfs_sum(uint64_t sum)
{
	static uint8_t text[65536];
	struct stat st;

	churn_need(fstat(grows, &st) == 0, "fstat");
	const off_t from = st.st_size > (off_t)sizeof(text) ? st.st_size - (off_t)sizeof(text) : 0;
	const ssize_t n = pread(grows, text, sizeof(text), from);
	churn_need(n >= 0, "pread");
	return churn_add(sum + (uint64_t)st.st_size, text, (size_t)n);
}

static void leave_tmpfs(void)
{
	struct stat st, named;

	churn_need(fstat(grows, &st) == 0 && stat("/dev/shm/grows", &named) == 0 &&
			   st.st_ino == named.st_ino && st.st_dev == named.st_dev,
		   "its file has a name");
}

/* ---- large: memory that takes a while to be copied, of which each step changes a word of each page - */

#define LARGE 4096U /* pages */
#define WORDS (PAGE / sizeof(uint64_t))

static uint64_t *large;
static unsigned large_last;

static uint64_t *large_word(unsigned page, unsigned step)
{
	return large + page * WORDS + step % WORDS;
}

static void enter_large(void)
{
	large = mmap(NULL, (size_t)LARGE * PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	churn_need(large != MAP_FAILED, "mmap");
	for (size_t i = 0; i < LARGE * WORDS; i++)
		large[i] = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

/* While there is a file /hold, it begins no step: in a loop in which the kernel looks at no memory that may be missing
 * in a child. Who waits for that in the kernel can't be stopped until it comes. */
static void large_step(unsigned step)
{
	while (access("/hold", F_OK) == 0)
		mkdir("/held", 0777);
	for (unsigned i = 0; i < LARGE; i++)
		*large_word(i, step) += step + i;
	large_last = step;
}

/* A page that is from another moment has been changed by the steps between, once too often or not at all. */
static uint64_t large_sum(uint64_t sum)
{
	for (unsigned i = 0; i < LARGE; i++)
		for (unsigned k = 0; k < 8; k++)
			sum = (sum ^ *large_word(i, large_last - k)) * UINT64_C(0x100000001b3);
	return sum;
}

/* ---- terminal: raw, a thread reads from it, and we are in the foreground ----------------------- */

static struct termios raw;

static void *reads_terminal(void *arg)
{
	char c;

	says_who(arg);
	while (!leaving)
		churn_need(read(0, &c, 1) < 0 && errno == EINTR, "read of the terminal");
	return NULL;
}

static void enter_terminal(void)
{
	churn_need(tcgetattr(0, &raw) == 0, "its terminal");
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
	raw.c_cc[VMIN] = 3;
	churn_need(tcsetattr(0, TCSANOW, &raw) == 0, "its terminal's modes");
	handle(SIGUSR1);
	begin(reads_terminal);
	until_in(tids[0], SYS_read);
}

static void leave_terminal(void)
{
	struct termios now;

	churn_need(tcgetattr(0, &now) == 0 && now.c_lflag == raw.c_lflag && now.c_cc[VMIN] == 3,
		   "its terminal's modes");
	churn_need(tcgetpgrp(0) == getpgrp(), "its terminal's foreground");
	until_in(tids[0], SYS_read);
	leaving = true;
	signal_thread(0, SIGUSR1);
}

/* ------------------------------------------------------------------------------------------------ */

static const struct state {
	const char *name;
	void (*enter)(void);
	void (*step)(unsigned step);
	uint64_t (*sum)(uint64_t sum);
	void (*leave)(void);
} states[] = {
	{"computing", enter_computing, NULL, NULL, NULL},
	{"blocked", enter_blocked, NULL, NULL, leave_blocked},
	{"handler", enter_handler, NULL, NULL, leave_handler},
	{"pending", enter_pending, NULL, NULL, leave_pending},
	{"family", enter_family, family_step, NULL, leave_family},
	{"tmpfs", enter_tmpfs, tmpfs_step, tmpfs_sum, leave_tmpfs},
	{"large", enter_large, large_step, large_sum, NULL},
	{"terminal", enter_terminal, NULL, NULL, leave_terminal},
};
static const struct state *state;

void churn_enter(const char *name)
{
	for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++)
		if (strcmp(states[i].name, name) == 0)
			state = &states[i];
	churn_need(state, "no such state");
	state->enter();
}

void churn_step(unsigned step)
{
	if (state && state->step)
		state->step(step);
}

uint64_t churn_state_sum(uint64_t sum)
{
	if (shared)
		sum = churn_add(sum, shared, SHARED);
	return state && state->sum ? state->sum(sum) : sum;
}

void churn_leave(void)
{
	if (state && state->leave)
		state->leave();
	leaving = true;
	join_all();
}
