/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture: calls that were interrupted before, as by an earlier seed.
 *
 * A thread that sleeps, polls or waits for a futex until some time has passed, and is stopped and let
 * go, is in restart_syscall(2) then: registers no longer tell which call it was, and a child that did
 * restart_syscall(2) again would get an EINTR that no signal explains. Before it is held, the kernel
 * tells where it waits.
 */
#define LR_ROOM "capture"
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "src/capture/state.h"

#define CLOCKS 16 /* numbers of clocks are below; of memory, above */

/* 0: not known. futex(2) and nanosleep(2) may have the same arguments, so it is not guessed by those. */
static uint32_t call_of(const char *wchan, const uint64_t args[6])
{
	if (strstr(wchan, "futex"))
		return SYS_futex;
	if (strstr(wchan, "poll"))
		return SYS_poll;
	/* Of the processor time of another thread, whose clock has a number below 0: of 32 bits, it may
	 * look like memory. */
	if (strstr(wchan, "cpu_n") || (int64_t)args[0] < 0)
		return SYS_clock_nanosleep;
	/* The function that sleeps is none that is shown, so it may be its caller's. */
	if (strstr(wchan, "nanosleep") || strstr(wchan, "nsleep") || strstr(wchan, "syscall"))
		return args[0] < CLOCKS ? SYS_clock_nanosleep : SYS_nanosleep;
	return 0;
}

void cap_restart_of(const char *text, const char *wchan, struct cap_restart *ret)
{
	unsigned long long v[8];
	long nr;

	ret->nr = 0;
	if (sscanf(text, "%ld %llx %llx %llx %llx %llx %llx %llx %llx", &nr, &v[0], &v[1], &v[2],
		   &v[3], &v[4], &v[5], &v[6], &v[7]) != 9 ||
	    nr != SYS_restart_syscall)
		return;
	for (size_t i = 0; i < 6; i++)
		ret->args[i] = v[i];
	ret->sp = v[6];
	ret->pc = v[7];
	ret->nr = call_of(wchan, ret->args);
}

bool cap_restart_is(const struct cap_restart *x, const struct user_regs_struct *r)
{
	const uint64_t args[6] = {r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9};

	return x->nr && r->orig_rax == SYS_restart_syscall && x->sp == r->rsp && x->pc == r->rip &&
	       memcmp(x->args, args, sizeof(args)) == 0;
}

/* Best effort: without it, the call is EINTR for the child. */
void cap_restart_look(struct cap *c, pid_t pid, struct cap_thread *t)
{
	char path[64], *text, *wchan;
	size_t size;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, t->tid);
	if (cap_read_all(c->a, path, &text, &size, NULL) < 0)
		return;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/wchan", pid, t->tid);
	if (cap_read_all(c->a, path, &wchan, &size, NULL) == 0)
		cap_restart_of(text, wchan, &t->again);
}
