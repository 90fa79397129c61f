/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off: it would run the lines of this table together. */
/*
 * inject [-amr] [-t SECONDS] [-f CASE] REPORT PROGRAM [ARG...] [';' PROGRAM [ARG...]]...
 *
 * Runs the programs one after the other, for as long as they exit with 0. It follows every process
 * that they start, and makes one system call fail, or kills the process that makes it. CASE is
 *
 *	PROCESS:CALL#N=FAULT		1.1:openat#12=EIO
 *
 * PROCESS: 1 is the first program, 2 the second; 1.2 is the second process that 1 started.
 * N: calls are counted for each process and name, so that a case means the same call each time,
 * also where two processes work side by side.
 * FAULT: an errno, and then the call is not made; KILL: the process is killed before the call;
 * ORPHAN: the program is killed while this process of it is about to make the call.
 *
 * A process is followed until it executes a program that is neither the one we started nor a file
 * without a name (the runtime's own sealed programs): that is the container's program.
 *
 * REPORT gets a line for each of these:
 *	call PROCESS CALL N WHAT SITE	without -f, for every call that a case could be made of;
 *					WHAT: what prctl, fcntl or ioctl is asked to do,
 *					or the flags of an open;
 *					SITE: the same for calls of the same place in the program, and
 *					of the same callers, or 0 if that can't be told
 *	hit PROCESS CALL N INDEX	the fault was made; INDEX counts all calls of that process
 *	crash PROCESS SIGNAL		a process of ours got a signal like SIGSEGV
 *	stuck PROCESS CALL		after SECONDS: what this process was doing; all are killed
 *	end STATUS MILLISECONDS		of the last program that ran: its exit status or -signal,
 *					and its processor time
 *
 * -a: until all that the program started have ended, too.
 * -m: only calls between close(FAULTS_ON) and close(FAULTS_OFF) count: for a program that uses
 * liblean.
 * -r: a process that the program started is followed until it calls rt_sigreturn: there it becomes
 * what it was in a seed. Who wants to trace it waits until it is not traced by us.
 */
/* clang-format on */
#include <elf.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/faults/marks.h"

#define CALLS     1024
#define PROCESSES 256
#define CALLERS   5   /* that tell a site from another */
#define STACK     512 /* words of it that are looked at for them */

/* The kernel's, which musl's and glibc's headers name differently. */
#define REQUEST_SYSCALL_INFO 0x420e
#define EVENT_STOP           128
struct call_info {
	uint8_t op;
	uint8_t pad[3];
	uint32_t arch;
	uint64_t instruction, stack, nr, args[6];
	uint64_t room[4];
};
enum { CALL_ENTRY = 1 };

struct process {
	pid_t pid;
	char name[64];   /* "": its parent has not told about it yet */
	unsigned born;   /* how many it has started */
	unsigned index;  /* how many calls it has made */
	bool stopped;    /* waits for its name */
	bool held;       /* waits for the death of its program */
	bool counts;     /* its calls */
	pid_t waits_for; /* -r: it is about to trace this one */
	long fails;      /* the call it is in is to return this */
	bool spoilt;     /* its first argument was taken out: this is to be put back */
	uint64_t argument;
	uint64_t code, code_end; /* where its program is; 0: nobody has looked */
	unsigned seen[CALLS];
};

static struct process *processes[PROCESSES];
static struct {
	char process[64], call[64];
	unsigned n;
	long error;
	enum { NOTHING, ERROR, KILL, ORPHAN } kind;
	bool done;
} fault;
static bool marks, restores, all;
static FILE *report;
static pid_t program; /* the one that runs */
static dev_t program_dev;
static ino_t program_ino;
static volatile sig_atomic_t late;

static const struct {
	const char *name;
	int error;
} errors[] = {
	{"EIO", EIO},       {"ENOMEM", ENOMEM},         {"EPERM", EPERM},   {"EMFILE", EMFILE},
	{"ENOSPC", ENOSPC}, {"EINTR", EINTR},           {"EAGAIN", EAGAIN}, {"EACCES", EACCES},
	{"ENFILE", ENFILE}, {"EBUSY", EBUSY},           {"EPIPE", EPIPE},   {"ENOSYS", ENOSYS},
	{"EINVAL", EINVAL}, {"ESRCH", ESRCH},           {"ENOENT", ENOENT}, {"ENOLCK", ENOLCK},
	{"ESTALE", ESTALE}, {"EOPNOTSUPP", EOPNOTSUPP},
};

static void parse_case(const char *text)
{
	char how[16];

	if (sscanf(text, "%63[0-9.]:%63[a-z0-9_]#%u=%15[A-Z]", fault.process, fault.call, &fault.n,
		   how) != 4)
		errx(125, "no case: %s", text);
	fault.kind = strcmp(how, "KILL") == 0 ? KILL : strcmp(how, "ORPHAN") == 0 ? ORPHAN : ERROR;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (strcmp(how, errors[i].name) == 0)
			fault.error = -errors[i].error;
	if (fault.kind == ERROR && !fault.error)
		errx(125, "unknown error: %s", how);
}

/* ---- processes ------------------------------------------------------------------------------- */

static struct process **slot_of(pid_t pid)
{
	for (size_t i = 0; i < PROCESSES; i++)
		if (pid ? processes[i] && processes[i]->pid == pid : !processes[i])
			return &processes[i];
	return NULL;
}

static struct process *process_of(pid_t pid)
{
	struct process **slot = slot_of(pid);

	if (slot)
		return *slot;
	slot = slot_of(0);
	if (!slot || !(*slot = calloc(1, sizeof(**slot))))
		errx(125, "too many processes");
	(*slot)->pid = pid;
	return *slot;
}

static void resume(struct process *p, int sig)
{
	bool watch = p->counts || marks;

	if (fault.done && !p->fails && !p->spoilt && !restores)
		watch = false;
	if (ptrace(watch ? PTRACE_SYSCALL : PTRACE_CONT, p->pid, NULL, (long)sig) < 0 &&
	    errno != ESRCH)
		err(125, "resume %s", p->name);
}

static void forget(pid_t pid)
{
	struct process **slot = slot_of(pid);

	if (!slot)
		return;
	free(*slot);
	*slot = NULL;
	for (size_t i = 0; i < PROCESSES; i++)
		if (processes[i] && processes[i]->waits_for == pid) {
			processes[i]->waits_for = 0;
			resume(processes[i], 0);
		}
}

static void let_go(struct process *p)
{
	ptrace(PTRACE_DETACH, p->pid, NULL, 0L);
	forget(p->pid);
}

/* A process in the middle of clone: its child has the next number. */
static void born(struct process *p)
{
	unsigned long pid = 0;

	if (ptrace(PTRACE_GETEVENTMSG, p->pid, NULL, &pid) == 0 && pid) {
		struct process *child = process_of((pid_t)pid);

		if (snprintf(child->name, sizeof(child->name), "%.48s.%u", p->name, ++p->born) < 0)
			abort();
		child->counts = p->counts;
		if (child->stopped) {
			child->stopped = false;
			resume(child, 0);
		}
	}
	resume(p, 0);
}

/* Whether the program that p has just executed is one of ours. */
static bool is_ours(const struct process *p)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)p->pid);
	if (stat(path, &st) < 0)
		return false;
	/* A sealed program's parent goes on before we are told of it: the first to execute
	 * something may be a process of the last program's. */
	if (!program_ino && p->pid == program) {
		program_dev = st.st_dev;
		program_ino = st.st_ino;
	}
	return st.st_nlink == 0 || (st.st_dev == program_dev && st.st_ino == program_ino);
}

/* ---- system calls ---------------------------------------------------------------------------- */

static const char *call_name(uint64_t nr)
{
	static char *names[CALLS];

	if (nr >= CALLS)
		return "unknown";
	if (!names[nr])
		names[nr] = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int)nr);
	if (!names[nr] && asprintf(&names[nr], "call_%d", (int)nr) < 0)
		errx(125, "no memory");
	return names[nr];
}

/* At its entry: the call is not made, or is another one that does nothing. */
static void skip(struct process *p, const struct call_info *info)
{
#if defined(__x86_64__)
	/* brk tells by the old end that it could not. A C library compares that with the argument,
	 * which is in a register that no call changes: see unspoil. */
	int r;
	if (info->nr == SYS_brk) {
		p->spoilt = true;
		p->argument = info->args[0];
		r = (int)ptrace(PTRACE_POKEUSER, p->pid, offsetof(struct user_regs_struct, rdi),
				0L);
	} else {
		r = (int)ptrace(PTRACE_POKEUSER, p->pid,
				offsetof(struct user_regs_struct, orig_rax), -1L);
	}
#elif defined(__aarch64__)
	int none = -1;
	struct iovec part = {&none, sizeof(none)};
	(void)info;
	int r = (int)ptrace(PTRACE_SETREGSET, p->pid, 0x404 /* NT_ARM_SYSTEM_CALL */, &part);
#endif
	if (r < 0 && errno != ESRCH)
		err(125, "skip a call of %s", p->name);
}

static void unspoil(struct process *p)
{
#if defined(__x86_64__)
	if (p->spoilt &&
	    ptrace(PTRACE_POKEUSER, p->pid, offsetof(struct user_regs_struct, rdi),
		   (long)p->argument) < 0 &&
	    errno != ESRCH)
		err(125, "answer %s", p->name);
#endif
	p->spoilt = false;
}

static void answer(const struct process *p, long value)
{
#if defined(__x86_64__)
	int r = (int)ptrace(PTRACE_POKEUSER, p->pid, offsetof(struct user_regs_struct, rax), value);
#elif defined(__aarch64__)
	struct user_regs_struct all;
	struct iovec part = {&all, sizeof(all)};
	int r = (int)ptrace(PTRACE_GETREGSET, p->pid, NT_PRSTATUS, &part);
	all.regs[0] = (unsigned long)value;
	if (r == 0)
		r = (int)ptrace(PTRACE_SETREGSET, p->pid, NT_PRSTATUS, &part);
#endif
	if (r < 0 && errno != ESRCH)
		err(125, "answer %s", p->name);
}

/* Returns whether p goes on. */
static bool make_fault(struct process *p, const struct call_info *info)
{
	fault.done = true;
	fprintf(report, "hit %s %s %u %u\n", p->name, fault.call, fault.n, p->index);
	switch (fault.kind) {
	case KILL:
		/* Not as its tracer, who would be told of its end before its parent. */
		if (p->pid == program)
			kill(p->pid, SIGKILL);
		else if (ptrace(PTRACE_DETACH, p->pid, NULL, (long)SIGKILL) == 0)
			forget(p->pid);
		return false;
	case ORPHAN:
		/* In this order: it makes the call when nobody is there any more. */
		p->held = p->pid != program && program && kill(program, SIGKILL) == 0;
		return !p->held;
	default:
		/* A close that fails has closed all the same. */
		if (info->nr != SYS_close)
			skip(p, info);
		p->fails = info->nr == SYS_brk ? 0 : fault.error;
		return true;
	}
}

/* -r: whether p is not to go on, or not by us. */
static bool leaves(struct process *p, const struct call_info *info)
{
	if (info->nr == SYS_rt_sigreturn && strchr(p->name, '.')) {
		let_go(p);
		return true;
	}
	if (info->nr == SYS_ptrace && info->args[0] == PTRACE_SEIZE &&
	    slot_of((pid_t)info->args[1]))
		p->waits_for = (pid_t)info->args[1];
	return p->waits_for;
}

/* Where p has its program's code: libraries are not looked at, and what is in no file has no sites. */
static void find_code(struct process *p)
{
	char path[64], exe[512] = "", line[1024], file[512];
	unsigned long long from, to;
	ssize_t n;
	FILE *f;

	p->code = p->code_end = 1;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)p->pid);
	n = readlink(path, exe, sizeof(exe) - 1);
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)p->pid);
	f = n > 0 ? fopen(path, "re") : NULL;
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx-%llx r-xp %*s %*s %*s %511s", &from, &to, file) == 3 &&
		    strcmp(file, exe) == 0) {
			p->code = from;
			p->code_end = to;
			break;
		}
	if (f)
		fclose(f);
}

/* Of the addresses of the program's code that come first on the stack. A few are left over from calls
 * that have returned: then a site has two numbers. */
static uint64_t site_of(struct process *p, const struct call_info *info)
{
	uint64_t stack[STACK], site = 14695981039346656037U;
	struct iovec ours = {stack, sizeof(stack)};
	struct iovec theirs = {(void *)(uintptr_t)info->stack, sizeof(stack)};
	int found = 0;

	if (!p->code)
		find_code(p);
	if (info->instruction >= p->code && info->instruction < p->code_end)
		site ^= info->instruction - p->code;
	ssize_t got = process_vm_readv(p->pid, &ours, 1, &theirs, 1, 0);
	for (ssize_t i = 0; i < got / 8 && found < CALLERS; i++)
		if (stack[i] >= p->code && stack[i] < p->code_end) {
			site = (site ^ (stack[i] - p->code)) * 1099511628211U;
			found++;
		}
	return found ? site : 0;
}

/* What tells what a call asks for: errors.py decides by it which errors the call can have. */
static unsigned long long what_of(const struct process *p, const struct call_info *info)
{
	switch (info->nr) {
	case SYS_prctl:
		return info->args[0];
	case SYS_openat:
		return info->args[2];
	case SYS_openat2: /* struct open_how begins with them */
		return (unsigned long)ptrace(PTRACE_PEEKDATA, p->pid, info->args[2], 0);
	default:
		return info->args[1];
	}
}

static void at_call(struct process *p)
{
	struct call_info info = {0};

	if (ptrace(REQUEST_SYSCALL_INFO, p->pid, sizeof(info), &info) <= 0) {
		resume(p, 0);
		return;
	}
	if (info.op != CALL_ENTRY) {
		if (p->fails)
			answer(p, p->fails);
		p->fails = 0;
		unspoil(p);
		resume(p, 0);
		return;
	}
	uint64_t nr = info.nr;
	if (marks && nr == SYS_close &&
	    ((int)info.args[0] == FAULTS_ON || (int)info.args[0] == FAULTS_OFF))
		p->counts = (int)info.args[0] == FAULTS_ON;
	else if (p->counts && nr < CALLS) {
		const char *name = call_name(nr);
		unsigned n = ++p->seen[nr];

		p->index++;
		if (fault.kind == NOTHING)
			fprintf(report, "call %s %s %u %llu %llx\n", p->name, name, n,
				what_of(p, &info), (unsigned long long)site_of(p, &info));
		else if (!fault.done && n == fault.n && strcmp(name, fault.call) == 0 &&
			 strcmp(p->name, fault.process) == 0 && !make_fault(p, &info))
			return;
	}
	if (restores && !p->fails && leaves(p, &info))
		return;
	resume(p, 0);
}

/* ---- what happens ---------------------------------------------------------------------------- */

static void stopped(struct process *p, int status)
{
	int sig = WSTOPSIG(status), event = status >> 16;

	switch (event) {
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		born(p);
		return;
	case PTRACE_EVENT_EXEC:
		if (!is_ours(p)) {
			let_go(p);
			return;
		}
		if (!marks)
			p->counts = true;
		p->code = 0;
		resume(p, 0);
		return;
	case EVENT_STOP:
		if (!p->name[0])
			p->stopped = true;
		else if (sig == SIGTRAP)
			resume(p, 0);
		else
			ptrace(PTRACE_LISTEN, p->pid, NULL, 0L);
		return;
	default:
		break;
	}
	if (sig == (SIGTRAP | 0x80)) {
		at_call(p);
		return;
	}
	if (sig == SIGSEGV || sig == SIGBUS || sig == SIGABRT || sig == SIGILL || sig == SIGFPE ||
	    sig == SIGSYS)
		fprintf(report, "crash %s %s\n", p->name, strsignal(sig));
	resume(p, sig);
}

static void too_late(void)
{
	for (size_t i = 0; i < PROCESSES; i++) {
		char path[64], line[128] = "?";
		FILE *f;
		int nr;

		if (!processes[i])
			continue;
		snprintf(path, sizeof(path), "/proc/%d/syscall", (int)processes[i]->pid);
		f = fopen(path, "re");
		if (f && fgets(line, sizeof(line), f))
			line[strcspn(line, "\n")] = '\0';
		if (f)
			fclose(f);
		fprintf(report, "stuck %s %s\n", processes[i]->name,
			sscanf(line, "%d", &nr) == 1 && nr >= 0 ? call_name((uint64_t)nr) : line);
		kill(processes[i]->pid, SIGKILL);
	}
}

static pid_t start(char **argv)
{
	int gate[2];
	char byte = 0;

	if (pipe2(gate, O_CLOEXEC) < 0)
		err(125, "pipe");
	pid_t pid = fork();
	if (pid < 0)
		err(125, "fork");
	if (pid == 0) {
		if (read(gate[0], &byte, 1) == 1)
			execv(argv[0], argv);
		err(127, "%s", argv[0]);
	}
	if (ptrace(PTRACE_SEIZE, pid, NULL,
		   (long)(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
			  PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC)) < 0)
		err(125, "seize");
	if (write(gate[1], &byte, 1) != 1)
		err(125, "gate");
	close(gate[0]);
	close(gate[1]);
	program_ino = 0;
	return pid;
}

/* Until the program has ended: its status, or -signal. */
static int follow(struct rusage *usage)
{
	int status, of_program = 0;

	for (;;) {
		struct rusage of_it;
		pid_t pid = wait4(-1, &status, __WALL, &of_it);

		if (late)
			return -SIGALRM;
		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0 && errno == ECHILD && !program)
			return of_program;
		if (pid < 0)
			err(125, "wait");
		if (WIFSTOPPED(status)) {
			stopped(process_of(pid), status);
			continue;
		}
		forget(pid);
		if (pid == program) {
			*usage = of_it;
			program = 0;
			of_program = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
			if (!all)
				return of_program;
		}
	}
}

static void on_alarm(int sig)
{
	late = sig;
}

/* Cuts the first program off the list; the next one, or NULL. */
static char **cut(char **argv)
{
	for (; *argv; argv++)
		if (strcmp(*argv, ";") == 0) {
			*argv = NULL;
			return argv + 1;
		}
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned seconds = 60, number = 0;
	struct rusage usage = {0};
	int status = 0;

	for (int o; (o = getopt(argc, argv, "+amrt:f:")) != -1;)
		if (o == 'a')
			all = true;
		else if (o == 'm')
			marks = true;
		else if (o == 'r')
			restores = true;
		else if (o == 't')
			seconds = (unsigned)atoi(optarg);
		else if (o == 'f')
			parse_case(optarg);
		else
			return 125;
	if (argc - optind < 2)
		errx(125, "too few words");
	report = fopen(argv[optind], "we");
	if (!report)
		err(125, "%s", argv[optind]);
	sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_alarm}, NULL);
	for (char **next = argv + optind + 1, **now; status == 0 && (now = next);) {
		next = cut(now);
		alarm(seconds);
		program = start(now);
		struct process *p = process_of(program);
		snprintf(p->name, sizeof(p->name), "%u", ++number);
		status = follow(&usage);
		for (size_t i = 0; i < PROCESSES; i++)
			if (processes[i] && processes[i]->held)
				let_go(processes[i]);
	}
	if (late)
		too_late();
	fprintf(report, "end %d %ld\n", status,
		(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
			(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000);
	return fclose(report) == 0 ? 0 : 125;
}
