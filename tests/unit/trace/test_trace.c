/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/trace/trace.h"
#include "tests/unit/test.h"

static struct user_regs_struct regs(long nr, long result)
{
	return (struct user_regs_struct){
		.orig_rax = (unsigned long)nr, .rax = (unsigned long)result, .rip = 0x1002};
}

TEST(interrupted_calls)
{
	static const struct {
		long nr, result;
		enum lr_trace_resume how;
		long rax;
		uint64_t rip;
	} cases[] = {
		/* read: again; a signal is no reason to do otherwise where the kernel would not */
		{0, -513, LR_TRACE_RESTART, 0, 0x1000},
		{0, -513, LR_TRACE_INTERRUPTED, 0, 0x1000},
		{7, -512, LR_TRACE_RESTART, 7, 0x1000},
		{34, -514, LR_TRACE_RESTART, 34, 0x1000},
		{34, -514, LR_TRACE_INTERRUPTED, -EINTR, 0x1002},
		/* nanosleep: what is left of it */
		{35, -516, LR_TRACE_RESTART, SYS_restart_syscall, 0x1000},
		{35, -516, LR_TRACE_INTERRUPTED, -EINTR, 0x1002},
		/* one that has ended, and no call at all */
		{0, 5, LR_TRACE_RESTART, 5, 0x1002},
		{0, -EIO, LR_TRACE_INTERRUPTED, -EIO, 0x1002},
		{-1, -514, LR_TRACE_RESTART, -514, 0x1002},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct user_regs_struct r = regs(cases[i].nr, cases[i].result);
		lr_trace_settle(&r, cases[i].how);
		CHECK_INT(r.rax, cases[i].rax);
		CHECK_INT(r.rip, cases[i].rip);
		CHECK_INT(r.orig_rax, -1);
	}
}

/* A child that sleeps, and says by its status whether it was let sleep. */
static pid_t sleeper(long ms)
{
	pid_t pid = fork();

	if (pid == 0) {
		const struct timespec t = {ms / 1000, ms % 1000 * 1000000};
		_exit(nanosleep(&t, NULL) == 0 ? 42 : 43);
	}
	const struct timespec pause = {.tv_nsec = 50000000};
	nanosleep(&pause, NULL);
	return pid;
}

static int status_of(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Where the vDSO is: the same in a child. */
static int open_child(pid_t pid, struct lr_trace_process *p, struct lr_err *err)
{
	uint64_t vdso = getauxval(AT_SYSINFO_EHDR);

	return lr_trace_open(pid, vdso, vdso + 8192, p, err);
}

/* Which signals it blocks. */
static uint64_t blocked(pid_t pid)
{
	char path[32], line[256];
	uint64_t mask = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "SigBlk:", 7) == 0)
			mask = strtoull(line + 7, NULL, 16);
	if (f)
		fclose(f);
	return mask;
}

TEST(calls_are_made_and_leave_no_trace)
{
	struct lr_trace_process p;
	struct lr_err err = {0};
	uint8_t buffer[LR_TRACE_BUFFER];
	struct user_regs_struct before, after;
	struct lr_trace_work work = {.n = 3, .buffer = buffer};
	pid_t pid = sleeper(400);

	int r = lr_trace_hold(pid, &err);
	if (r == -EBUSY || r == -EPERM) {
		kill(pid, SIGKILL);
		status_of(pid);
		SKIP("may not trace");
	}
	REQUIRE(r == 0);
	REQUIRE(open_child(pid, &p, &err) == 0);
	CHECK_INT(lr_trace_get_regs(pid, &before, &err), 0);
	const uint64_t mask = blocked(pid);
	for (work.unwatched = 0; work.unwatched <= work.n; work.unwatched++) {
		struct lr_trace_call calls[] = {{.nr = SYS_getppid},
						{.nr = SYS_uname, .relative = 1},
						{.nr = SYS_close, .args = {1000}}};
		memset(buffer, 0, sizeof(buffer));
		work.calls = calls;
		CHECK_INT(lr_trace_calls(&p, pid, &work, &err), 0);
		CHECK_INT(lr_trace_get_regs(pid, &after, &err), 0);
		CHECK(memcmp(&before, &after, sizeof(before)) == 0);
		CHECK_INT(blocked(pid), mask);
		CHECK_INT(calls[0].ret, getpid());
		CHECK_INT(calls[1].ret, 0);
		CHECK_STR((char *)buffer, "Linux");
		CHECK_INT(calls[2].ret, -EBADF);
	}
	lr_trace_close(&p);
	lr_trace_let_go(pid);
	CHECK_INT(status_of(pid), 42);
}

/* A held sleeper and its twin; 0: we may not trace. */
static pid_t sleeper_with_twin(struct lr_trace_process *p, pid_t *twin)
{
	struct lr_trace_call fork = {.nr = SYS_clone};
	uint8_t buffer[LR_TRACE_BUFFER] = {0};
	const struct lr_trace_work work = {.calls = &fork, .n = 1, .buffer = buffer, .twin = twin};
	struct lr_err err = {0};
	pid_t pid = sleeper(400);

	*twin = 0;
	if (lr_trace_hold(pid, &err) < 0) {
		kill(pid, SIGKILL);
		status_of(pid);
		return 0;
	}
	CHECK_INT(open_child(pid, p, &err), 0);
	CHECK_INT(lr_trace_calls(p, pid, &work, &err), 0);
	CHECK(fork.ret > 0 && *twin > 0);
	return pid;
}

TEST(a_twin_ends_when_nobody_holds_it)
{
	struct lr_trace_process p;
	pid_t twin;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	const pid_t pid = sleeper_with_twin(&p, &twin);
	if (!pid)
		SKIP("may not trace");
	lr_trace_close(&p);
	lr_trace_let_go(pid);
	lr_trace_let_go(twin);
	CHECK_INT(status_of(pid), 42);
	/* Its parent has ended, and left it to us. */
	int status = -1;
	CHECK_INT(waitpid(twin, &status, __WALL), twin);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* What waitid(2) tells of it: CLD_TRAPPED, CLD_KILLED and so on; 0 if there is nothing (WNOHANG). */
static int told(pid_t pid, int options)
{
	siginfo_t info = {0};

	options |= WSTOPPED | WEXITED | WNOWAIT | __WALL;
	CHECK_INT(waitid(P_PID, (id_t)pid, &info, options), 0);
	return info.si_code;
}

/* The same, whose twin was killed, and stands before its end. */
static pid_t sleeper_with_dead_twin(struct lr_trace_process *p, pid_t *twin)
{
	pid_t pid = sleeper_with_twin(p, twin);

	if (!pid)
		return 0;
	lr_trace_stop_at_end(*twin);
	CHECK_INT(lr_trace_check_held(*twin, NULL), 0);
	CHECK_INT(kill(*twin, SIGKILL), 0);
	CHECK_INT(told(*twin, 0), CLD_TRAPPED);
	return pid;
}

/* And what is left of both is ended. */
static void end_both(struct lr_trace_process *p, pid_t pid, pid_t twin)
{
	lr_trace_end_twin(twin);
	CHECK(lr_trace_is_gone(twin));
	lr_trace_close(p);
	lr_trace_let_go(pid);
	CHECK_INT(status_of(pid), 42);
}

TEST(a_twin_that_is_killed_stands_until_its_memory_is_freed)
{
	struct lr_trace_process p;
	struct lr_err err = {0};
	pid_t twin;

	const pid_t pid = sleeper_with_dead_twin(&p, &twin);
	if (!pid)
		SKIP("may not trace");
	CHECK_INT(lr_trace_check_held(twin, &err), -ESRCH);
	end_both(&p, pid, twin);
}

TEST(who_waits_for_a_thread_frees_twins_that_were_killed)
{
	struct lr_trace_call wait = {.nr = SYS_poll, .args = {0, 0, 50}};
	uint8_t buffer[LR_TRACE_BUFFER] = {0};
	const struct lr_trace_work work = {.calls = &wait, .n = 1, .buffer = buffer};
	struct lr_trace_process p;
	struct lr_err err = {0};
	pid_t twin;

	const pid_t pid = sleeper_with_dead_twin(&p, &twin);
	if (!pid)
		SKIP("may not trace");
	CHECK_INT(lr_trace_calls(&p, pid, &work, &err), 0);
	CHECK_INT(wait.ret, 0);
	CHECK_INT(told(twin, 0), CLD_KILLED);
	end_both(&p, pid, twin);
}

TEST(what_is_stopped_is_left_alone)
{
	struct lr_err err = {0};
	pid_t pid = sleeper(10000);

	siginfo_t info;
	kill(pid, SIGSTOP);
	CHECK_INT(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOWAIT), 0);
	int r = lr_trace_hold(pid, &err);
	if (r == 0)
		lr_trace_let_go(pid);
	CHECK_INT(r, -EBUSY);
	CHECK_HAS(err.msg, "stopped by a signal");
	kill(pid, SIGKILL);
	status_of(pid);
}

/* Code behind the end of the vDSO would be nobody's, and in its middle the program's. */
TEST(a_vdso_that_is_cut_off_is_not_written_to)
{
	uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
	struct lr_trace_process p;
	struct lr_err err = {0};

	CHECK_INT(lr_trace_open(getpid(), vdso, vdso + 2048, &p, &err), -ENOTSUP);
	CHECK_HAS(err.msg, "is not the kernel's");
	CHECK_INT(lr_trace_open(getpid(), vdso, vdso + 512, &p, &err), -ENOTSUP);
	CHECK_INT(lr_trace_open(getpid(), 0, 8192, &p, &err), -ENOTSUP);
	CHECK_HAS(err.msg, "has no vDSO");
}

/* One filter of two instructions. */
static pid_t filtered(void)
{
	struct sock_filter f[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
				  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	const struct sock_fprog prog = {2, f};
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
		for (;;)
			pause();
	}
	usleep(50000);
	return pid;
}

TEST(filters_are_read_as_far_as_there_is_room)
{
	struct sock_filter f[2] = {{.code = 0xffff}, {.code = 0xffff}};
	struct lr_err err = {0};
	pid_t pid = filtered();
	int r = lr_trace_hold(pid, &err);

	if (r == 0)
		r = lr_trace_filter(pid, 0, f, 1);
	if (r == -EBUSY || r == -EPERM || r == -EACCES) {
		kill(pid, SIGKILL);
		status_of(pid);
		SKIP("may not trace, or read filters");
	}
	CHECK_INT(r, -E2BIG);
	CHECK_INT(f[0].code, 0xffff);
	CHECK_INT(lr_trace_filter(pid, 0, f, 2), 2);
	CHECK_INT(f[1].code, BPF_RET | BPF_K);
	CHECK_INT(lr_trace_filter(pid, 1, f, 2), -ENOENT);
	lr_trace_let_go(pid);
	kill(pid, SIGKILL);
	status_of(pid);
}

/* What a killed one of us had it do is not over: its registers are in the slot, which is not ours yet. */
TEST(who_is_in_that_code_is_waited_for)
{
	uint8_t buffer[LR_TRACE_BUFFER] = {0};
	struct lr_trace_call none = {.nr = SYS_getppid};
	const struct lr_trace_work work = {.calls = &none, .n = 1, .buffer = buffer};
	struct user_regs_struct was, inside;
	struct lr_trace_process p;
	struct lr_err err = {0};
	pid_t pid = sleeper(400);

	if (lr_trace_hold(pid, &err) < 0) {
		kill(pid, SIGKILL);
		status_of(pid);
		SKIP("may not trace");
	}
	REQUIRE(open_child(pid, &p, &err) == 0);
	REQUIRE(lr_trace_get_regs(pid, &was, &err) == 0);
	CHECK_INT(lr_trace_check_free(&p, pid, &err), 0);
	inside = was;
	inside.rip = p.code + 8;
	CHECK_INT(lr_trace_set_regs(pid, &inside, &err), 0);
	CHECK_INT(lr_trace_check_free(&p, pid, &err), -EAGAIN);
	CHECK_INT(lr_trace_calls(&p, pid, &work, &err), -EAGAIN);
	CHECK_INT(lr_trace_set_regs(pid, &was, &err), 0);
	CHECK_INT(lr_trace_calls(&p, pid, &work, &err), 0);
	lr_trace_close(&p);
	lr_trace_let_go(pid);
	CHECK_INT(status_of(pid), 42);
}

/* Whether the thread is in that call, or behind it. */
static bool is_in(pid_t tid, long nr)
{
	char path[40], line[32] = "";

	snprintf(path, sizeof(path), "/proc/%d/syscall", tid);
	FILE *f = fopen(path, "re");
	if (f && !fgets(line, sizeof(line), f))
		line[0] = 0;
	if (f)
		fclose(f);
	return strtol(line, NULL, 10) == nr;
}

static void *tells_its_number(void *arg)
{
	const pid_t tid = gettid();

	if (write(*(int *)arg, &tid, sizeof(tid)) != sizeof(tid))
		_exit(1);
	for (;;)
		pause();
}

/* A process whose program does not begin, as a thread of the one before does not come to its end: we are its tracer.
 * Below 0: we may not be that. */
static pid_t endless_exec(pid_t *thread)
{
	int ends[2];
	pthread_t t;

	if (pipe(ends) < 0)
		return -1;
	const pid_t pid = fork();
	if (pid == 0) {
		if (pthread_create(&t, NULL, tells_its_number, &ends[1]) == 0 &&
		    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0) <= 0 && usleep(200000) == 0)
			execl("/bin/sh", "sh", "-c", "sleep 1; exit 42", NULL);
		_exit(1);
	}
	const bool told = read(ends[0], thread, sizeof(*thread)) == sizeof(*thread);
	close(ends[0]);
	close(ends[1]);
	if (!told || ptrace(PTRACE_SEIZE, *thread, 0, 0) < 0) {
		kill(pid, SIGKILL);
		status_of(pid);
		return -1;
	}
	while (!is_in(pid, SYS_execve))
		usleep(1000);
	return pid;
}

TEST(who_executes_a_program_that_does_not_begin_is_not_waited_for)
{
	struct lr_err err = {0};
	sigset_t before, after;
	pid_t thread;
	const pid_t pid = endless_exec(&thread);

	if (pid < 0)
		SKIP("may not trace");
	sigprocmask(SIG_SETMASK, NULL, &before);
	CHECK_INT(lr_trace_hold(pid, &err), -EBUSY);
	CHECK_HAS(err.msg, "executes a program that does not begin");
	sigprocmask(SIG_SETMASK, NULL, &after);
	CHECK(memcmp(&before, &after, 8) == 0);
	/* Nobody holds it: as soon as that thread is gone, it begins. */
	CHECK_INT(waitpid(thread, NULL, __WALL), thread);
	while (is_in(pid, SYS_execve))
		usleep(1000);
	CHECK_INT(lr_trace_hold(pid, &err), 0);
	lr_trace_let_go(pid);
	CHECK_INT(status_of(pid), 42);
}

/* In a fork, as whoever has a timer keeps it. 0: it is held, and the limit is as it was. */
static int hold_without_signals(void)
{
	struct rlimit was, now;
	const pid_t pid = sleeper(400);

	if (getrlimit(RLIMIT_SIGPENDING, &was) < 0)
		return 1;
	was.rlim_cur = 0;
	if (setrlimit(RLIMIT_SIGPENDING, &was) < 0)
		return 2;
	if (lr_trace_hold(pid, NULL) < 0)
		return 3;
	lr_trace_let_go(pid);
	if (getrlimit(RLIMIT_SIGPENDING, &now) < 0 || now.rlim_cur || now.rlim_max != was.rlim_max)
		return 4;
	return status_of(pid) == 42 ? 0 : 5;
}

TEST(a_thread_is_held_where_its_user_has_as_many_pending_signals_as_he_may)
{
	const pid_t pid = fork();

	if (pid == 0)
		_exit(hold_without_signals());
	CHECK_INT(status_of(pid), 0);
}

static pid_t slow_for;

/* In place of libc's, which is called while a thread makes its calls: as if there were no processor for us. */
int sched_yield(void)
{
	if (slow_for && is_in(slow_for, SYS_poll)) {
		slow_for = 0;
		usleep(2500000);
	}
	return 0;
}

TEST(who_gets_no_processor_for_a_while_is_told_so)
{
	uint8_t buffer[LR_TRACE_BUFFER] = {0};
	struct lr_trace_call call = {.nr = SYS_poll, .args = {0, 0, 300}};
	const struct lr_trace_work work = {
		.calls = &call, .n = 1, .unwatched = 1, .buffer = buffer};
	struct lr_trace_process p;
	struct lr_err err = {0};
	pid_t pid = sleeper(6000);

	if (lr_trace_hold(pid, &err) < 0) {
		kill(pid, SIGKILL);
		status_of(pid);
		SKIP("may not trace");
	}
	REQUIRE(open_child(pid, &p, &err) == 0);
	slow_for = pid;
	CHECK_INT(lr_trace_calls(&p, pid, &work, &err), -EAGAIN);
	CHECK_INT(slow_for, 0);
	CHECK_HAS(err.msg, "has waited for us");
	CHECK_HAS(err.hint, "busy");
	lr_trace_close(&p);
	lr_trace_let_go(pid);
	CHECK_INT(status_of(pid), 42);
}

/* No signal mask keeps it away, so it comes while the calls are made. */
TEST(a_stop_that_comes_meanwhile_is_kept)
{
	uint8_t buffer[LR_TRACE_BUFFER] = {0};
	struct lr_trace_process p;
	struct lr_err err = {0};
	struct lr_trace_work work = {.n = 1, .buffer = buffer};

	for (work.unwatched = 0; work.unwatched <= work.n; work.unwatched++) {
		struct lr_trace_call call = {.nr = SYS_getppid};
		int status = 0;
		pid_t pid = sleeper(400);
		if (lr_trace_hold(pid, &err) < 0) {
			kill(pid, SIGKILL);
			status_of(pid);
			SKIP("may not trace");
		}
		REQUIRE(open_child(pid, &p, &err) == 0);
		kill(pid, SIGSTOP);
		work.calls = &call;
		CHECK_INT(lr_trace_calls(&p, pid, &work, &err), 0);
		CHECK_INT(call.ret, getpid());
		lr_trace_close(&p);
		lr_trace_let_go(pid);
		/* Without the stop it would come to its end here. */
		CHECK_INT(waitpid(pid, &status, WUNTRACED), pid);
		CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
		kill(pid, SIGCONT);
		CHECK_INT(status_of(pid), 42);
	}
}

/* In the kernel's segment for 32-bit code, for ever. */
static void run_32_bit(void)
{
	static const uint8_t loop[] = {0xeb, 0xfe};
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	if (at == MAP_FAILED)
		_exit(1);
	memcpy(at, loop, sizeof(loop));
	__asm__ volatile("pushq $0x23\n\tpushq %0\n\tlretq" : : "r"(at) : "memory");
}

TEST(code_of_32_bit_is_refused)
{
	struct user_regs_struct r;
	struct lr_err err = {0};
	pid_t pid = fork();

	if (pid == 0)
		run_32_bit();
	usleep(50000);
	int held = lr_trace_hold(pid, &err);
	if (held == 0) {
		CHECK_INT(lr_trace_get_regs(pid, &r, &err), -ENOTSUP);
		CHECK_HAS(err.msg, "32-bit code");
		lr_trace_let_go(pid);
	}
	kill(pid, SIGKILL);
	status_of(pid);
	if (held < 0)
		SKIP("may not trace, or no such code runs here");
}
