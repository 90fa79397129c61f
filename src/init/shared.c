/* SPDX-License-Identifier: Apache-2.0 */
/* init: births in the caller's memory; see shared.h. */
#define LR_ROOM "clone"
#include "src/init/shared.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/init/sync.h"
#include "src/sys/proc.h"
#include "src/sys/syscalls.h"

/* ---- what is the memory's ------------------------------------------------------------------ */

static struct {
	pthread_mutex_t lock;
	unsigned births; /* between clone and execve, in this process */
	int dumpable;    /* before the first of them */
} window = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void window_open(void)
{
	pthread_mutex_lock(&window.lock);
	if (window.births++ == 0) {
		window.dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
		/* 2 (suid_dumpable) hides as well, and could not be set again. */
		if (window.dumpable == 1)
			(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	}
	pthread_mutex_unlock(&window.lock);
}

static void window_close(void)
{
	pthread_mutex_lock(&window.lock);
	/* Also 0: the child's setuid(2) may have made it 2. */
	if (--window.births == 0 && window.dumpable <= 1)
		(void)prctl(PR_SET_DUMPABLE, window.dumpable, 0, 0, 0);
	pthread_mutex_unlock(&window.lock);
}

/* ---- the clone ------------------------------------------------------------------------------- */

/*
 * clone3 whose child goes on in fn(arg), on the stack in *args or below ours. In assembler, because
 * the child has no frame to return to, and must leave ours as it is (also what a leaf function
 * keeps below the stack pointer); libc's clone(3) cannot say CLONE_INTO_CGROUP.
 */
static long clone3_call(struct clone_args *args, void (*fn)(void *), void *arg)
{
#if defined(__SANITIZE_ADDRESS__)
	/* AddressSanitizer takes a process to have one stack. So the usual clone is tested, too. */
	(void)args, (void)fn, (void)arg;
	return -ENOSYS;
#elif defined(__x86_64__)
	register void (*r8)(void *) __asm__("r8") = fn;
	register void *r9 __asm__("r9") = arg;
	long r;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "sub $128, %%rsp\n\t"
			 "and $-16, %%rsp\n\t"
			 "mov %%r9, %%rdi\n\t"
			 "call *%%r8\n\t"
			 "hlt\n"
			 "1:"
			 : "=a"(r)
			 : "0"((long)SYS_clone3), "D"(args), "S"(sizeof(*args)), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = SYS_clone3;
	register long x0 __asm__("x0") = (long)args, x1 __asm__("x1") = sizeof(*args);
	register void (*x2)(void *) __asm__("x2") = fn;
	register void *x3 __asm__("x3") = arg;

	__asm__ volatile("svc 0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x29, 0\n\t"
			 "mov x0, x3\n\t"
			 "blr x2\n\t"
			 "brk 1\n"
			 "1:"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3)
			 : "memory");
	return x0;
#else
	(void)args, (void)fn, (void)arg;
	return -ENOSYS;
#endif
}

/* Every signal, also those that libc keeps for itself: its handlers would run in the child. */
static void mask_signals(uint64_t set, uint64_t *old)
{
	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &set, old, sizeof(set));
}

pid_t lr_clone_shared(struct lr_clone *c, const struct lr_init_shared *shared, void (*fn)(void *),
		      void *arg, pid_t *pid)
{
	int pidfd = LR_NOFD;
	uint64_t old;
	struct clone_args args = {
		.flags = c->flags | CLONE_VM | CLONE_VFORK | CLONE_PIDFD | CLONE_PARENT_SETTID |
			 CLONE_CLEAR_SIGHAND,
		.pidfd = (uintptr_t)&pidfd,
		.parent_tid = (uintptr_t)pid,
		.exit_signal = SIGCHLD,
		.stack = (uintptr_t)shared->stack,
		.stack_size = shared->stack_size,
	};

	window_open();
	if (!shared->blocked)
		mask_signals(~0ULL, &old);
	/* Set before clone, so that both sides have it. */
	c->in_cgroup = c->cgroup >= 0;
	c->reset = LR_CLONE_MAY_BE_IGNORED;
	long r = -EAGAIN;
	if (c->in_cgroup) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (unsigned)c->cgroup;
		r = clone3_call(&args, fn, arg);
	}
	if (r < 0) {
		c->in_cgroup = false;
		args.flags &= ~(uint64_t)CLONE_INTO_CGROUP;
		args.cgroup = 0;
		r = clone3_call(&args, fn, arg);
	}
	if (!shared->blocked)
		mask_signals(old, NULL);
	if (r < 0)
		window_close();
	/* The kernel is older than 5.5, or a sandbox refuses clone3 as a whole. If only this clone
	 * is refused, the usual one will fail, too, and say why. */
	if (r < 0)
		return 0;
	c->pidfd = pidfd;
	return (pid_t)r;
}

void lr_shared_over(pid_t pid)
{
	struct lr_proc_stat st;

	while (pid > 0 && lr_proc_stat(pid, &st) >= 0 && !st.executed && st.state != 'Z')
		usleep(50);
	window_close();
}
