/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace: system calls by a held thread; see trace.h.
 *
 * The order of the steps is what makes a kill harmless. The slot is written first; registers, then
 * the mask: from the registers on the code puts both right. At the end the mask is given back from
 * here before the registers are, in a stop from which the kernel itself goes on with the call that
 * was interrupted; until then the code would do both.
 */
#define LR_ROOM "trace"
#include <elf.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/trace/code.h"
#include "src/trace/hold.h"
#include "src/trace/trace.h"

/* Behind the calls: what the wait after the unwatched ones takes. */
struct wait_args {
	uint64_t set;
	int64_t seconds, nanoseconds;
};
#define WAIT_ARGS (TRACE_BUFFER - sizeof(struct wait_args))
#define WAIT_S    1

#define VDSO_HEAD 1024U /* its headers lie in there */

_Static_assert(sizeof(struct trace_call) * (LR_TRACE_CALLS + 2) <= WAIT_ARGS, "they fit");
_Static_assert(TRACE_BUFFER + LR_TRACE_BUFFER <= TRACE_MEMORY, "it fits");

static int write_to(const struct lr_trace_process *p, uint64_t at, const void *bytes, size_t n,
		    struct lr_err *err)
{
	ssize_t done = pwrite(p->memfd, bytes, n, (off_t)at);

	return done == (ssize_t)n
		       ? 0
		       : lr_fail(err, done < 0 ? errno : EIO, "write into process %d", p->pid);
}

static int read_from(const struct lr_trace_process *p, uint64_t at, void *bytes, size_t n,
		     struct lr_err *err)
{
	ssize_t done = pread(p->memfd, bytes, n, (off_t)at);

	if (done == (ssize_t)n)
		return 0;
	/* Nothing: that memory is gone. Its process has ended, or has another one, as who executes a program. */
	const int code = done == 0 ? ESRCH : EIO;
	return lr_fail(err, done < 0 ? errno : code, "read from process %d", p->pid);
}

/* The end of what the loader of the vDSO maps, and of its table of sections, for debuggers. */
static int vdso_used(const struct lr_trace_process *p, uint64_t vdso, uint64_t size, uint64_t *ret,
		     struct lr_err *err)
{
	_Alignas(Elf64_Phdr) uint8_t head[VDSO_HEAD];
	Elf64_Ehdr h;
	Elf64_Phdr ph;

	if (size < sizeof(head))
		return lr_refuse(err, ENOTSUP, "the vDSO of process %d is not the kernel's",
				 p->pid);
	int r = read_from(p, vdso, head, sizeof(head), err);
	if (r < 0)
		return r;
	memcpy(&h, head, sizeof(h));
	/* The program may have written to it: nothing of it leads out of it. */
	if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_phoff > sizeof(head) ||
	    h.e_phnum > (sizeof(head) - h.e_phoff) / sizeof(ph))
		return lr_refuse(err, ENOTSUP, "the vDSO of process %d is no ELF file", p->pid);
	uint64_t tables = (uint64_t)h.e_shnum * h.e_shentsize;
	uint64_t end = h.e_shoff > size || tables > size ? UINT64_MAX : h.e_shoff + tables;
	for (unsigned i = 0; i < h.e_phnum; i++) {
		memcpy(&ph, head + h.e_phoff + i * sizeof(ph), sizeof(ph));
		if (ph.p_offset > size || ph.p_filesz > size)
			end = UINT64_MAX;
		else if (ph.p_offset + ph.p_filesz > end)
			end = ph.p_offset + ph.p_filesz;
	}
	if (end > size)
		return lr_refuse(err, ENOTSUP, "the vDSO of process %d is not the kernel's",
				 p->pid);
	*ret = (end + 15) & ~UINT64_C(15);
	return 0;
}

int lr_trace_open(pid_t pid, uint64_t vdso, uint64_t vdso_end, struct lr_trace_process *ret,
		  struct lr_err *err)
{
	const size_t code = (uintptr_t)lr_trace_code_end - (uintptr_t)lr_trace_code;
	struct lr_trace_process p = {.pid = pid};
	uint64_t used = 0;
	char path[32];

	if (!vdso)
		return lr_refuse(err, ENOTSUP, "process %d has no vDSO to work from", pid);
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	p.memfd = lr_open(path, O_RDWR | O_CLOEXEC);
	if (p.memfd < 0)
		return lr_fail(err, errno, "open the memory of process %d", pid);
	int r = vdso_used(&p, vdso, vdso_end - vdso, &used, err);
	if (r >= 0 && used + code + sizeof(struct trace_slot) > vdso_end - vdso)
		r = lr_refuse(err, ENOTSUP, "the vDSO of this kernel has no room at its end");
	p.code = vdso + used;
	p.slot = p.code + code;
	if (r < 0)
		lr_close(p.memfd);
	else
		*ret = p;
	return r;
}

int lr_trace_open_twin(const struct lr_trace_process *of, pid_t twin, struct lr_trace_process *ret,
		       struct lr_err *err)
{
	struct lr_trace_process p = {.pid = twin, .code = of->code, .slot = of->slot, .ours = true};
	struct user_regs_struct regs;
	char path[32];

	int r = lr_trace_get_regs(twin, &regs, err);
	/* Out of the code that it was born in (lr_trace_check_free). */
	regs.rip = 0;
	regs.orig_rax = UINT64_MAX;
	if (r >= 0)
		r = lr_trace_set_regs(twin, &regs, err);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "/proc/%d/mem", twin);
	p.memfd = lr_open(path, O_RDWR | O_CLOEXEC);
	if (p.memfd < 0)
		return lr_fail(err, errno, "open the memory of process %d", twin);
	*ret = p;
	return 0;
}

int lr_trace_check_free(const struct lr_trace_process *p, pid_t tid, struct lr_err *err)
{
	struct user_regs_struct regs;

	int r = lr_trace_get_regs(tid, &regs, err);
	if (r >= 0 && regs.rip >= p->code && regs.rip < p->slot + sizeof(struct trace_slot))
		r = lr_refuse(err, EAGAIN,
			      "thread %d has not come back yet from what another one had it do",
			      tid);
	return r;
}

void lr_trace_close(struct lr_trace_process *p)
{
	p->memfd = lr_close(p->memfd);
}

static struct trace_frame frame_of(struct user_regs_struct regs, enum lr_trace_resume how)
{
	lr_trace_settle(&regs, how);
	return (struct trace_frame){regs.rax, regs.rip, regs.cs, regs.eflags, regs.rsp, regs.ss};
}

static int write_slot(const struct lr_trace_process *p, const struct user_regs_struct *r,
		      uint64_t mask, struct lr_err *err)
{
	const struct trace_slot s = {
		.mask = mask,
		.restart = frame_of(*r, LR_TRACE_RESTART),
		.interrupted = frame_of(*r, LR_TRACE_INTERRUPTED),
		.rbx = r->rbx,
		.rcx = r->rcx,
		.rdx = r->rdx,
		.rsi = r->rsi,
		.rdi = r->rdi,
		.rbp = r->rbp,
		.r8 = r->r8,
		.r9 = r->r9,
		.r10 = r->r10,
		.r11 = r->r11,
		.r12 = r->r12,
		.r13 = r->r13,
		.r14 = r->r14,
		.r15 = r->r15,
	};

	return write_to(p, p->slot, &s, sizeof(s), err);
}

const int lr_trace_own[LR_TRACE_OWN] = {SYS_mmap, SYS_munmap, SYS_rt_sigpending, SYS_rt_sigprocmask,
					SYS_rt_sigtimedwait};

/* Of one call: its own stops, a twin's, and what else may come. */
#define MOST_STOPS 1000

/* For all that are not watched: an attacker may have changed them. */
#define UNWATCHED_MS 3000

/* ---- from stop to stop ----------------------------------------------------------------------- */

struct run {
	const struct lr_trace_process *p;
	const struct lr_trace_work *work;
	pid_t tid, twin;
	bool entered;
	int stopped_by; /* a SIGSTOP that came meanwhile: nothing blocks it */
	struct user_regs_struct was;
	uint64_t mask;
};

static int hold_twin(struct run *r, struct lr_err *err)
{
	unsigned long pid = 0;
	int status;

	if (ptrace(PTRACE_GETEVENTMSG, r->tid, 0, &pid) < 0)
		return lr_fail(err, errno, "ask for the twin of process %d", r->p->pid);
	int rc = lr_trace_wait_long((pid_t)pid, &status, err);
	if (rc < 0)
		return rc;
	/* It is ours alone: it shall not outlive us, not even to its own end. */
	ptrace(PTRACE_SETOPTIONS, (pid_t)pid, 0, PTRACE_O_EXITKILL);
	r->twin = (pid_t)pid;
	return 0;
}

/* Of a thread that is deaf to all but SIGSTOP and SIGKILL: the code is not ours any more. */
static int astray(const struct run *r, const char *how, struct lr_err *err)
{
	lr_refuse(err, EIO, "thread %d went astray: %s", r->tid, how);
	return lr_err_hint(err, "does its program change its own code?");
}

/* To the next stop at the begin or end of a call. */
static int step(struct run *r, struct lr_err *err)
{
	int status;

	for (unsigned i = 0; i < MOST_STOPS; i++) {
		if (ptrace(PTRACE_SYSCALL, r->tid, 0, 0) < 0)
			return lr_fail(err, errno, "continue thread %d", r->tid);
		int rc = lr_trace_wait_long(r->tid, &status, err);
		if (rc < 0)
			return rc;
		if (WSTOPSIG(status) == (SIGTRAP | 0x80))
			return 0;
		if (status >> 16 == PTRACE_EVENT_CLONE) {
			rc = hold_twin(r, err);
			if (rc < 0)
				return rc;
		} else if (status >> 16 == PTRACE_EVENT_EXIT) {
			return lr_fail(err, ESRCH, "thread %d ends", r->tid);
		} else if (status >> 16 == 0) {
			r->stopped_by = WSTOPSIG(status);
			if (r->stopped_by != SIGSTOP)
				return astray(r, "it got a signal", err);
		}
	}
	return astray(r, "it is stopped again and again", err);
}

static int step_info(struct run *r, struct __ptrace_syscall_info *ret, struct lr_err *err)
{
	int rc = step(r, err);

	if (rc < 0)
		return rc;
	return ptrace(PTRACE_GET_SYSCALL_INFO, r->tid, sizeof(*ret), ret) <= 0
		       ? lr_fail(err, errno, "ask what thread %d does", r->tid)
		       : 0;
}

/*
 * To the beginning of that call, with its first n arguments. No filter of the program's is in the way
 * of what the thread does now, and others may write to its memory: threads that are not held, or
 * whoever can open /proc/PID/mem. So each call has to be the one that we want before the kernel
 * makes it. Of any other one the filter is asked: it is suspended as long as we hold the thread.
 */
static int enter(struct run *r, long nr, const uint64_t args[6], unsigned n, struct lr_err *err)
{
	struct __ptrace_syscall_info info;

	int rc = step_info(r, &info, err);
	/* The thread may have been held on its way out of one. */
	if (rc >= 0 && !r->entered && info.op == PTRACE_SYSCALL_INFO_EXIT)
		rc = step_info(r, &info, err);
	if (rc < 0)
		return rc;
	r->entered = true;
	if (info.op != PTRACE_SYSCALL_INFO_ENTRY || info.arch != AUDIT_ARCH_X86_64 ||
	    info.entry.nr != (uint64_t)nr)
		return astray(r, "it makes another call", err);
	for (unsigned i = 0; i < n; i++)
		if (info.entry.args[i] != args[i])
			return astray(r, "it makes a call with other arguments", err);
	return 0;
}

/* To the end of that call. */
static int leave(struct run *r, int64_t *ret, struct lr_err *err)
{
	struct __ptrace_syscall_info info;

	int rc = step_info(r, &info, err);
	if (rc >= 0 && info.op != PTRACE_SYSCALL_INFO_EXIT)
		rc = astray(r, "a call has no end", err);
	if (rc >= 0)
		*ret = info.exit.rval;
	return rc;
}

static long own_options(const struct run *r)
{
	return r->p->ours ? PTRACE_O_EXITKILL | PTRACE_O_TRACEEXIT : 0;
}

/* A filter of the program's own may know none of our calls. Needs CAP_SYS_ADMIN; without one it
 * changes nothing. */
static int set_options(const struct run *r, bool suspend_filter, struct lr_err *err)
{
	const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | own_options(r);

	if (suspend_filter &&
	    ptrace(PTRACE_SETOPTIONS, r->tid, 0, options | PTRACE_O_SUSPEND_SECCOMP) == 0)
		return 0;
	return ptrace(PTRACE_SETOPTIONS, r->tid, 0, options) < 0
		       ? lr_fail(err, errno, "set options of thread %d", r->tid)
		       : 0;
}

/*
 * A twin was born with it. We don't write it again: close to the limit of memory that could take a page, for which the
 * kernel would kill the twin, and then its parent, as the twin's memory can't go while we write to it.
 */
static int give_code(const struct run *r, struct lr_err *err)
{
	const size_t code = (uintptr_t)lr_trace_code_end - (uintptr_t)lr_trace_code;

	if (r->p->ours)
		return 0;
	int rc = write_to(r->p, r->p->code, lr_trace_code, code, err);
	return rc < 0 ? rc : write_slot(r->p, &r->was, r->mask, err);
}

static int start(struct run *r, struct lr_err *err)
{
	struct user_regs_struct regs = r->was;
	const uint64_t all = UINT64_MAX;

	if (ptrace(PTRACE_GETSIGMASK, r->tid, sizeof(r->mask), &r->mask) < 0)
		return lr_fail(err, errno, "read the signal mask of thread %d", r->tid);
	int rc = give_code(r, err);
	if (rc >= 0)
		rc = set_options(r, !r->work->unwatched, err);
	if (rc < 0)
		return rc;
	regs.rip = r->p->code;
	regs.orig_rax = UINT64_MAX;
	regs.rax = 0;
	rc = lr_trace_set_regs(r->tid, &regs, err);
	if (rc >= 0 && ptrace(PTRACE_SETSIGMASK, r->tid, sizeof(all), &all) < 0)
		rc = lr_fail(err, errno, "block the signals of thread %d", r->tid);
	return rc;
}

/* To a stop where the kernel looks for signals next, before another instruction of the thread's. */
static int interrupt(struct run *r, struct lr_err *err)
{
	int status;

	for (;;) {
		int rc = lr_trace_wait_long(r->tid, &status, err);
		if (rc < 0)
			return rc;
		if (status >> 16 == PTRACE_EVENT_STOP)
			return 0;
		if (status >> 16 == PTRACE_EVENT_EXIT)
			return lr_fail(err, ESRCH, "thread %d ends", r->tid);
		if (status >> 16 || WSTOPSIG(status) != SIGSTOP)
			return astray(r, "it makes another call", err);
		r->stopped_by = WSTOPSIG(status);
		if (ptrace(PTRACE_CONT, r->tid, 0, 0) < 0)
			return lr_fail(err, errno, "continue thread %d", r->tid);
	}
}

/* In that stop the kernel itself puts an interrupted call right, once the registers are back. */
static int finish(struct run *r, struct lr_err *err)
{
	if (ptrace(PTRACE_INTERRUPT, r->tid, 0, 0) < 0 || ptrace(PTRACE_CONT, r->tid, 0, 0) < 0)
		return lr_fail(err, errno, "continue thread %d", r->tid);
	int rc = interrupt(r, err);
	if (rc < 0)
		return rc;
	if (ptrace(PTRACE_SETSIGMASK, r->tid, sizeof(r->mask), &r->mask) < 0)
		return lr_fail(err, errno, "restore the signal mask of thread %d", r->tid);
	rc = lr_trace_set_regs(r->tid, &r->was, err);
	ptrace(PTRACE_SETOPTIONS, r->tid, 0, PTRACE_O_TRACESYSGOOD | own_options(r));
	if (r->stopped_by)
		syscall(SYS_tgkill, r->p->pid, r->tid, r->stopped_by);
	return rc;
}

/* ---- the calls ------------------------------------------------------------------------------- */

#define NOT_YET INT64_MIN

/* Behind those that are not watched the thread waits, so that there is a place to stop it; without us
 * it goes on by itself. The wait is one that the kernel notes nothing of: it would be forgotten what
 * the thread was in before. */
static struct trace_call wait_for_us(uint64_t memory)
{
	const uint64_t at = memory + WAIT_ARGS;

	return (struct trace_call){
		.nr = SYS_rt_sigtimedwait + 1,
		.args = {at + offsetof(struct wait_args, set), 0,
			 at + offsetof(struct wait_args, seconds), sizeof(uint64_t)},
	};
}

/* Where the calls behind the wait are, or all if nothing waits. */
static uint64_t watched_at(const struct run *r, uint64_t memory)
{
	const size_t before = r->work->unwatched ? r->work->unwatched + 1 : 0;

	return memory + before * sizeof(struct trace_call);
}

/* Calls from..to of the work, and `last` if there is one, to that place. */
static int give_list(const struct run *r, uint64_t memory, uint64_t at, size_t from, size_t to,
		     struct trace_call last, struct lr_err *err)
{
	struct trace_call list[LR_TRACE_CALLS + 2] = {0};
	size_t n = 0;

	for (size_t i = from; i < to; i++) {
		struct lr_trace_call *call = &r->work->calls[i];
		for (int k = 0; k < 6; k++)
			if (call->relative & 1 << k)
				call->args[k] += memory + TRACE_BUFFER;
		list[n].nr = (uint64_t)call->nr + 1;
		list[n].ret = NOT_YET;
		memcpy(list[n++].args, call->args, sizeof(list->args));
	}
	if (last.nr)
		list[n++] = last;
	return write_to(r->p, at, list, sizeof(list[0]) * (n + 1), err);
}

static int give_watched(const struct run *r, uint64_t memory, struct lr_err *err)
{
	return give_list(r, memory, watched_at(r, memory), r->work->unwatched, r->work->n,
			 (struct trace_call){0}, err);
}

/* Those that are watched, as a fork, come when the thread has stopped in the wait: of a failure before
 * that it goes on by itself, and shall not make them. */
static int give_calls(const struct run *r, uint64_t memory, struct lr_err *err)
{
	const struct wait_args wait = {.seconds = WAIT_S};
	const struct lr_trace_work *w = r->work;

	int rc = write_to(r->p, memory + TRACE_BUFFER, w->buffer, LR_TRACE_BUFFER, err);
	if (rc < 0)
		return rc;
	if (!w->unwatched)
		return give_watched(r, memory, err);
	rc = write_to(r->p, memory + WAIT_ARGS, &wait, sizeof(wait), err);
	return rc < 0 ? rc
		      : give_list(r, memory, memory, 0, w->unwatched, wait_for_us(memory), err);
}

/* Has the held thread go on at a place of the code. */
static int go_on_at(const struct run *r, const char *place, uint64_t memory, uint64_t call,
		    struct lr_err *err)
{
	struct user_regs_struct regs = r->was;

	regs.rip = r->p->code + ((uintptr_t)place - (uintptr_t)lr_trace_code);
	regs.rax = 0;
	regs.orig_rax = UINT64_MAX;
	regs.rbx = memory;
	regs.r12 = 0;
	regs.r14 = call;
	regs.r15 = r->p->slot;
	return lr_trace_set_regs(r->tid, &regs, err);
}

/* The thread waits for us for WAIT_S, and then goes on without us. Nothing is lost but time: the caller may try again. */
static int went_on(const struct run *r, struct lr_err *err)
{
	lr_refuse(err, EAGAIN, "thread %d has waited for us for %d s, and goes on", r->tid, WAIT_S);
	return lr_err_hint(err, "the machine is busy: we got no processor in time");
}

/* Reads the memory that the thread has mapped for its calls. If that is gone, the thread has unmapped it and gone on. */
static int read_taken(const struct run *r, uint64_t at, void *bytes, size_t n, struct lr_err *err)
{
	int rc = read_from(r->p, at, bytes, n, err);

	return rc == -EIO || rc == -EFAULT ? went_on(r, err) : rc;
}

/* Until the last of them has an answer. */
static int await_unwatched(struct run *r, uint64_t memory, struct lr_err *err)
{
	const size_t last = r->work->unwatched - 1;
	const uint64_t at = memory + last * sizeof(struct trace_call);
	const int64_t until = lr_now_ms() + UNWATCHED_MS;
	int64_t ret = NOT_YET;
	int status;

	for (;;) {
		/* Asked for before the answer is read: we may get no processor between the two. */
		const bool late = lr_now_ms() > until;
		int rc = read_taken(r, at + offsetof(struct trace_call, ret), &ret, sizeof(ret),
				    err);
		if (rc < 0 || ret != NOT_YET)
			return rc;
		rc = lr_trace_glance(r->tid, &status, err);
		if (rc < 0)
			return rc;
		if (rc && (status >> 16 || WSTOPSIG(status) != SIGSTOP))
			return astray(r, "it makes another call", err);
		if (rc) {
			r->stopped_by = SIGSTOP;
			ptrace(PTRACE_CONT, r->tid, 0, 0);
		}
		if (late)
			return astray(r, "it does not come to an end", err);
		sched_yield();
	}
}

static int read_unwatched(const struct run *r, uint64_t memory, struct lr_err *err)
{
	struct trace_call list[LR_TRACE_CALLS];
	const size_t n = r->work->unwatched;

	int rc = read_taken(r, memory, list, n * sizeof(list[0]), err);
	for (size_t i = 0; rc >= 0 && i < n; i++)
		r->work->calls[i].ret = list[i].ret;
	return rc;
}

/*
 * Of the thread's filters no one has anything against these calls (trace.h), so they are as little
 * suspended as any of the program's own: who changes them gains nothing, and nobody has to look.
 */
static int run_unwatched(struct run *r, uint64_t memory, struct lr_err *err)
{
	const uint64_t loop = (uintptr_t)lr_trace_code_loop - (uintptr_t)lr_trace_code,
		       end = (uintptr_t)lr_trace_code_after - (uintptr_t)lr_trace_code;
	struct user_regs_struct regs;

	if (ptrace(PTRACE_CONT, r->tid, 0, 0) < 0)
		return lr_fail(err, errno, "continue thread %d", r->tid);
	int rc = await_unwatched(r, memory, err);
	if (rc >= 0 && ptrace(PTRACE_INTERRUPT, r->tid, 0, 0) < 0)
		rc = lr_fail(err, errno, "stop thread %d", r->tid);
	if (rc >= 0)
		rc = interrupt(r, err);
	if (rc >= 0)
		rc = lr_trace_get_regs(r->tid, &regs, err);
	if (rc >= 0 && (regs.rip < r->p->code + loop || regs.rip >= r->p->code + end))
		rc = went_on(r, err);
	if (rc >= 0)
		rc = read_unwatched(r, memory, err);
	if (rc >= 0)
		rc = set_options(r, true, err);
	if (rc >= 0)
		rc = give_watched(r, memory, err);
	return rc < 0 ? rc : go_on_at(r, lr_trace_code_loop, memory, watched_at(r, memory), err);
}

/* All of it at once (MAP_POPULATE): none is to come when we write to it, for the reason that give_code has. */
static int take_memory(struct run *r, uint64_t *ret, struct lr_err *err)
{
	const uint64_t args[6] = {0,
				  TRACE_MEMORY,
				  PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
				  UINT64_MAX,
				  0};
	int64_t at = 0;

	int rc = enter(r, SYS_mmap, args, 6, err);
	if (rc >= 0)
		rc = leave(r, &at, err);
	if (rc < 0)
		return rc;
	if (at < 0 && at > -4096) {
		/* The code goes on by itself: to its last call, which restores the mask. */
		lr_fail(err, (int)-at, "take memory in process %d", r->p->pid);
		return lr_err_hint(err, "is it at its limit of address space (RLIMIT_AS)?");
	}
	*ret = (uint64_t)at;
	return 0;
}

static int give_back(struct run *r, uint64_t memory, struct lr_err *err)
{
	const uint64_t unmap[6] = {memory, TRACE_MEMORY};
	int64_t ret;

	int rc = read_from(r->p, memory + TRACE_BUFFER, r->work->buffer, LR_TRACE_BUFFER, err);
	if (rc >= 0)
		rc = go_on_at(r, lr_trace_code_unmap, memory, memory, err);
	if (rc >= 0)
		rc = enter(r, SYS_munmap, unmap, 2, err);
	return rc < 0 ? rc : leave(r, &ret, err);
}

static int run_calls(struct run *r, struct lr_err *err)
{
	const struct lr_trace_work *w = r->work;
	uint64_t memory = 0;

	int rc = take_memory(r, &memory, err);
	if (rc >= 0)
		rc = give_calls(r, memory, err);
	if (rc >= 0 && w->unwatched)
		rc = run_unwatched(r, memory, err);
	for (size_t i = w->unwatched; rc >= 0 && i < w->n; i++) {
		rc = enter(r, w->calls[i].nr, w->calls[i].args, 6, err);
		if (rc >= 0)
			rc = leave(r, &w->calls[i].ret, err);
	}
	return rc < 0 ? rc : give_back(r, memory, err);
}

int lr_trace_calls(const struct lr_trace_process *p, pid_t tid, const struct lr_trace_work *work,
		   struct lr_err *err)
{
	struct run r = {.p = p, .tid = tid, .work = work};

	if (work->n > LR_TRACE_CALLS)
		return lr_refuse(err, E2BIG, "%zu calls at once", work->n);
	int rc = lr_trace_check_free(p, tid, err);
	if (rc >= 0)
		rc = lr_trace_get_regs(tid, &r.was, err);
	if (rc >= 0)
		rc = start(&r, err);
	if (rc < 0)
		return rc;
	rc = run_calls(&r, err);
	/* What failed in there goes back by itself, as if we had been killed. */
	if (rc >= 0)
		rc = finish(&r, err);
	if (work->twin)
		*work->twin = r.twin;
	return rc;
}
