/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, what is theirs alone, signals and timers. */
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#ifdef __GLIBC__
#include <sys/rseq.h>
#endif
#include <sys/syscall.h>
#include <sys/time.h>

#include "tests/fork/subject.h"

#define THREADS 8

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile bool done;
static uint64_t counted[THREADS], sum;
static __thread uint64_t own;

static void pause_ms(long ms)
{
	const struct timespec t = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&t, NULL);
}

static void *count(void *arg)
{
	uint64_t i = (uint64_t)(uintptr_t)arg;
	char name[16], have[16] = "";

	/* /proc shows a newline and a backslash in its own way. */
	snprintf(name, sizeof(name), " c\n\\n\\%d", (int)i);
	prctl(PR_SET_NAME, name);
	pid_t tid = (pid_t)syscall(SYS_gettid);
	while (!done) {
		own++;
		pthread_mutex_lock(&lock);
		counted[i]++;
		sum++;
		pthread_mutex_unlock(&lock);
		pause_ms(1);
	}
	EXPECT(own == counted[i]);
	EXPECT(tid == (pid_t)syscall(SYS_gettid));
	prctl(PR_GET_NAME, have);
	EXPECT(strcmp(have, name) == 0);
	return arg;
}

static pthread_mutex_t robust;

/* Ends with the mutex in its hands. */
static void *take_along(void *arg)
{
	pthread_mutex_lock(&robust);
	while (!done)
		pause_ms(5);
	return arg;
}

static pthread_t start_robust(void)
{
	pthread_mutexattr_t a;
	pthread_t t;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&robust, &a);
	EXPECT(pthread_create(&t, NULL, take_along, NULL) == 0);
	return t;
}

/* One that is registered can't be registered at another address. */
static void check_rseq(void)
{
#ifdef __GLIBC__
	static _Alignas(32) char another[32];

	if (__rseq_size)
		EXPECT(syscall(SYS_rseq, another, sizeof(another), 0, RSEQ_SIG) < 0);
#endif
}

void subject_threads(void)
{
	pthread_t t[THREADS + 1], holder = start_robust();
	uint64_t before[THREADS];
	void *ret;

	for (uintptr_t i = 0; i < THREADS; i++)
		EXPECT(pthread_create(&t[i], NULL, count, (void *)i) == 0);
	subject_ready();
	memcpy(before, counted, sizeof(before));
	pause_ms(300);
	for (int i = 0; i < THREADS; i++)
		EXPECT(counted[i] > before[i]);
	done = true;
	uint64_t all = 0;
	for (uintptr_t i = 0; i < THREADS; i++) {
		EXPECT(pthread_join(t[i], &ret) == 0 && ret == (void *)i);
		all += counted[i];
	}
	EXPECT(all == sum);
	EXPECT(pthread_join(holder, NULL) == 0 && pthread_mutex_trylock(&robust) == EOWNERDEAD);
	check_rseq();
	/* And new ones can be made. */
	counted[0] = 0;
	EXPECT(pthread_create(&t[THREADS], NULL, count, NULL) == 0);
	EXPECT(pthread_join(t[THREADS], &ret) == 0);
}

/* ---- signals --------------------------------------------------------------------------------- */

static volatile int got[65], value;
static char *alt_begin, *alt_end;
static volatile bool was_on_alt;

static void handler(int sig, siginfo_t *info, void *context)
{
	char here;

	(void)context;
	got[sig]++;
	if (sig == SIGRTMIN + 3)
		value = info->si_value.sival_int;
	was_on_alt = &here >= alt_begin && &here < alt_end;
}

void subject_signals(void)
{
	struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK}, old;
	stack_t alt = {.ss_size = 65536};
	sigset_t block, pending;

	alt.ss_sp = alt_begin = malloc(alt.ss_size);
	alt_end = alt_begin + alt.ss_size;
	EXPECT(sigaltstack(&alt, NULL) == 0);
	sigemptyset(&block);
	const int sigs[] = {SIGUSR1, SIGUSR2, SIGRTMIN + 3};
	for (int i = 0; i < 3; i++) {
		sigaddset(&block, sigs[i]);
		EXPECT(sigaction(sigs[i], &sa, NULL) == 0);
	}
	signal(SIGHUP, SIG_IGN);
	EXPECT(sigprocmask(SIG_BLOCK, &block, NULL) == 0);
	kill(getpid(), SIGUSR1);
	syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR2);
	EXPECT(sigqueue(getpid(), SIGRTMIN + 3, (union sigval){.sival_int = 4711}) == 0);
	EXPECT(sigqueue(getpid(), SIGRTMIN + 3, (union sigval){.sival_int = 4712}) == 0);
	subject_ready();
	EXPECT(!got[SIGUSR1] && !got[SIGUSR2]);
	EXPECT(sigprocmask(SIG_BLOCK, NULL, &pending) == 0);
	for (int sig = 1; sig < 32; sig++)
		EXPECT(sigismember(&pending, sig) == sigismember(&block, sig));
	EXPECT(sigpending(&pending) == 0);
	for (int i = 0; i < 3; i++)
		EXPECT(sigismember(&pending, sigs[i]) == 1);
	EXPECT(sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler == SIG_IGN);
	EXPECT(sigprocmask(SIG_UNBLOCK, &block, NULL) == 0);
	EXPECT(got[SIGUSR1] == 1 && got[SIGUSR2] == 1 && got[SIGRTMIN + 3] == 2);
	EXPECT(value == 4712 && was_on_alt);
	stack_t now;
	EXPECT(sigaltstack(NULL, &now) == 0 && now.ss_sp == alt_begin &&
	       now.ss_size == alt.ss_size);
}

/* ---- calls that are interrupted -------------------------------------------------------------- */

static int blocked[2];
static uint32_t word;

static void *in_nanosleep(void *arg)
{
	const struct timespec t = {.tv_sec = 6};

	(void)arg;
	EXPECT(nanosleep(&t, NULL) == 0);
	return NULL;
}

static void *in_poll(void *arg)
{
	struct pollfd p = {.fd = blocked[0], .events = POLLIN};

	(void)arg;
	EXPECT(poll(&p, 1, 3600000) == 1);
	return NULL;
}

static void *in_read(void *arg)
{
	char c = 0;

	(void)arg;
	EXPECT(read(blocked[0], &c, 1) == 1 && c == 'x');
	return NULL;
}

static void *in_futex(void *arg)
{
	const struct timespec t = {.tv_sec = 3600};

	(void)arg;
	EXPECT(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0) == 0);
	return NULL;
}

static pid_t suspended;

/* With another mask than the thread's own, for as long as the call takes. */
static void *in_sigsuspend(void *arg)
{
	sigset_t mask, without;

	(void)arg;
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR2);
	EXPECT(pthread_sigmask(SIG_BLOCK, &mask, NULL) == 0);
	sigemptyset(&without);
	suspended = (pid_t)syscall(SYS_gettid);
	EXPECT(sigsuspend(&without) == -1 && errno == EINTR && got[SIGUSR2] == 1);
	EXPECT(pthread_sigmask(SIG_SETMASK, NULL, &mask) == 0 && sigismember(&mask, SIGUSR2));
	return NULL;
}

static void *in_condition(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	while (!done)
		pthread_cond_wait((pthread_cond_t *)arg, &lock);
	pthread_mutex_unlock(&lock);
	return NULL;
}

void subject_restart(void)
{
	static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
	void *(*const in[])(void *) = {in_nanosleep, in_poll,      in_read,
				       in_futex,     in_condition, in_sigsuspend};
	struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	pthread_t t[6];

	EXPECT(pipe(blocked) == 0 && sigaction(SIGUSR2, &sa, NULL) == 0);
	for (int i = 0; i < 6; i++)
		EXPECT(pthread_create(&t[i], NULL, in[i], &condition) == 0);
	pause_ms(300);
	subject_ready();
	pause_ms(200);
	EXPECT(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 1);
	EXPECT(syscall(SYS_tgkill, getpid(), suspended, SIGUSR2) == 0);
	pthread_mutex_lock(&lock);
	done = true;
	pthread_cond_broadcast(&condition);
	pthread_mutex_unlock(&lock);
	EXPECT(write(blocked[1], "xxx", 3) == 3);
	for (int i = 0; i < 6; i++)
		EXPECT(pthread_join(t[i], NULL) == 0);
}

/* ---- timers ---------------------------------------------------------------------------------- */

#ifndef sigev_notify_thread_id /* musl has it */
#define sigev_notify_thread_id _sigev_un._tid
#endif

static volatile pid_t timed;
static volatile int timed_here;
static volatile bool looked;

/* The signal of its timer waits for this thread, and for nobody else. */
static void *in_thread_timer(void *arg)
{
	const struct timespec soon = {0, 20000000};
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 4);
	timed = (pid_t)syscall(SYS_gettid);
	while (!looked)
		pause_ms(1);
	while (!done)
		if (sigtimedwait(&set, &info, &soon) > 0 && info.si_value.sival_int == 98)
			timed_here++;
	return arg;
}

void subject_timers(void)
{
	struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct itimerval it = {.it_interval = {0, 50000}, .it_value = {0, 50000}};
	struct sigevent e = {.sigev_notify = SIGEV_SIGNAL,
			     .sigev_signo = SIGRTMIN + 3,
			     .sigev_value = {.sival_int = 99}};
	struct itimerspec long_ = {{100, 0}, {100, 0}}, short_ = {{0, 50000000}, {0, 50000000}};
	struct itimerspec left;
	struct sigevent mine = {.sigev_notify = SIGEV_THREAD_ID,
				.sigev_signo = SIGRTMIN + 4,
				.sigev_value = {.sival_int = 98}};
	timer_t first, second, third;
	pthread_t other;
	sigset_t block;

	sigemptyset(&block);
	sigaddset(&block, SIGALRM);
	sigaddset(&block, SIGRTMIN + 3);
	sigaddset(&block, SIGRTMIN + 4);
	sigprocmask(SIG_BLOCK, &block, NULL);
	sigdelset(&block, SIGRTMIN + 4);
	EXPECT(sigaction(SIGALRM, &sa, NULL) == 0 && sigaction(SIGRTMIN + 3, &sa, NULL) == 0);
	EXPECT(timer_create(CLOCK_MONOTONIC, &e, &first) == 0);
	EXPECT(timer_delete(first) == 0);
	EXPECT(timer_create(CLOCK_MONOTONIC, &e, &first) == 0);
	EXPECT(timer_create(CLOCK_REALTIME, &e, &second) == 0);
	EXPECT(pthread_create(&other, NULL, in_thread_timer, NULL) == 0);
	while (!timed)
		pause_ms(1);
	mine.sigev_notify_thread_id = timed;
	EXPECT(timer_create(CLOCK_MONOTONIC, &mine, &third) == 0);
	EXPECT(timer_settime(third, 0, &short_, NULL) == 0);
	EXPECT(timer_settime(first, 0, &long_, NULL) == 0);
	EXPECT(timer_settime(second, 0, &short_, NULL) == 0);
	EXPECT(setitimer(ITIMER_REAL, &it, NULL) == 0);
	subject_ready();
	sigset_t waits;
	pause_ms(150);
	EXPECT(sigpending(&waits) == 0 && !sigismember(&waits, SIGRTMIN + 4));
	looked = true;
	EXPECT(timer_gettime(first, &left) == 0 && left.it_interval.tv_sec == 100);
	EXPECT(left.it_value.tv_sec > 10 && left.it_value.tv_sec <= 100);
	sigprocmask(SIG_UNBLOCK, &block, NULL);
	for (int i = 0; i < 200 && (got[SIGALRM] < 3 || got[SIGRTMIN + 3] < 3); i++)
		pause_ms(20);
	EXPECT(got[SIGALRM] >= 3);
	EXPECT(got[SIGRTMIN + 3] >= 3);
	EXPECT(value == 99);
	done = true;
	EXPECT(pthread_join(other, NULL) == 0 && timed_here > 0);
}

/* ---- critical sections ----------------------------------------------------------------------- */

#define SIGNATURE 0x53053053 /* before the abort handler, and of the registration */

static volatile uint64_t rounds;
static volatile bool spins;

static void **section_of_thread(void)
{
	static __thread _Alignas(32) char area[32];
	char *at = area;

#ifdef __GLIBC__
	if (__rseq_size)
		at = (char *)__builtin_thread_pointer() + __rseq_offset;
#endif
	if (at == area)
		EXPECT(syscall(SYS_rseq, area, sizeof(area), 0, SIGNATURE) == 0);
	return (void **)(at + 8);
}

/* Nothing but the kernel gets it out of its section, to the abort handler. */
static void *spin(void *arg)
{
	void **section = section_of_thread();

	for (spins = true; !done; rounds++)
		__asm__ volatile(".pushsection .data.sections, \"aw\"\n\t"
				 ".balign 32\n\t"
				 "3: .long 0, 0\n\t"
				 ".quad 1f, 2f - 1f, 4f\n\t"
				 ".popsection\n\t"
				 "lea 3b(%%rip), %%rax\n\t"
				 "mov %%rax, %0\n\t"
				 "1: jmp 1b\n\t"
				 "2: .byte 0x0f, 0xb9, 0x3d\n\t"
				 ".long %c1\n\t"
				 "4:"
				 : "=m"(*section)
				 : "i"(SIGNATURE)
				 : "rax", "memory");
	spins = false;
	return arg;
}

static void nothing(int sig)
{
	(void)sig;
}

/* A signal ends a section. */
static void until(pthread_t t, bool (*is)(uint64_t), uint64_t n)
{
	for (int i = 0; i < 5000 && !is(n); i++) {
		pthread_kill(t, SIGUSR1);
		pause_ms(1);
	}
	EXPECT(is(n));
}

static bool has_gone_round(uint64_t n)
{
	return rounds > n;
}

static bool has_left(uint64_t n)
{
	(void)n;
	return !spins;
}

void subject_sections(void)
{
	pthread_t t;

	signal(SIGUSR1, nothing);
	EXPECT(pthread_create(&t, NULL, spin, NULL) == 0);
	until(t, has_gone_round, 3);
	subject_ready();
	until(t, has_gone_round, rounds + 3);
	done = true;
	until(t, has_left, 0);
	pthread_join(t, NULL);
}
