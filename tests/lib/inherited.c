/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inherited: what a process passes on to those that it starts.
 *   inherited set COMMAND...  changes all of it, and executes the command
 *   inherited show            "name value" lines
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void must(long r, const char *what)
{
	if (r >= 0)
		return;
	perror(what);
	exit(125);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	must(fd, path);
	must(write(fd, text, strlen(text)), path);
	close(fd);
}

static void set(char **argv)
{
	struct sched_param none = {0};
	struct rlimit stack = {.rlim_cur = 4 << 20, .rlim_max = 4 << 20};
	unsigned long node = 1, as_usual[4] = {0}; /* the kernel's sigaction */
	sigset_t block;
	cpu_set_t first;

	must(setpriority(PRIO_PROCESS, 0, 5), "nice");
	must(sched_setscheduler(0, SCHED_BATCH, &none), "policy");
	must(syscall(SYS_ioprio_set, 1, 0, 2 << 13 | 6), "ioprio");
	must(prctl(PR_SET_SECUREBITS, 4), "securebits");
	must(prctl(PR_SET_TIMERSLACK, 123456), "timerslack");
	must(personality(ADDR_NO_RANDOMIZE), "personality");
	must(prctl(PR_SET_CHILD_SUBREAPER, 1), "subreaper");
	must(prctl(PR_SET_PDEATHSIG, SIGUSR1), "pdeathsig");
	must(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), "thp_disable");
	/* Without NUMA in the kernel there is none. */
	(void)syscall(SYS_set_mempolicy, 1, &node, 64);
	write_file("/proc/self/oom_score_adj", "77");
	write_file("/proc/self/coredump_filter", "0x7");
	must(setrlimit(RLIMIT_STACK, &stack), "rlimit");
	sigemptyset(&block);
	sigaddset(&block, SIGTERM);
	sigaddset(&block, SIGUSR2);
	sigprocmask(SIG_BLOCK, &block, NULL);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	/* Who has started us may ignore the C library's own signals, and neither libc nor Go (runc)
	 * changes that: only the kernel's call does. */
	for (int own = 32; own < 34; own++)
		must(syscall(SYS_rt_sigaction, own, as_usual, NULL, 8), "rt_sigaction");
	umask(077);
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	must(sched_setaffinity(0, sizeof(first), &first), "affinity");
	execvp(argv[0], argv);
	must(-1, argv[0]);
}

static void show_file(const char *name, const char *path, const char *key)
{
	char line[300];
	FILE *f = fopen(path, "r");

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, key, strlen(key)) == 0)
			printf("%s %s", name, line + strlen(key));
	if (f)
		fclose(f);
}

static void show(void)
{
	int number = 0, mode = -1;
	unsigned long nodes[16] = {0};
	struct rlimit stack;
	cpu_set_t cpus;

	printf("nice %d\n", getpriority(PRIO_PROCESS, 0));
	printf("policy %d\n", sched_getscheduler(0));
	printf("ioprio %ld\n", syscall(SYS_ioprio_get, 1, 0));
	printf("securebits %d\n", prctl(PR_GET_SECUREBITS));
	printf("timerslack %d\n", prctl(PR_GET_TIMERSLACK));
	printf("personality %x\n", personality(0xffffffff));
	printf("thp_disable %d\n", prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
	syscall(SYS_get_mempolicy, &mode, nodes, 1024, 0, 0);
	printf("mempolicy %d\n", mode);
	show_file("oom_score_adj", "/proc/self/oom_score_adj", "");
	show_file("coredump_filter", "/proc/self/coredump_filter", "");
	getrlimit(RLIMIT_STACK, &stack);
	printf("rlimit %ld %ld\n", (long)stack.rlim_cur, (long)stack.rlim_max);

	prctl(PR_GET_CHILD_SUBREAPER, &number);
	printf("subreaper %d\n", number);
	prctl(PR_GET_PDEATHSIG, &number);
	printf("pdeathsig %d\n", number);
	printf("dumpable %d\n", prctl(PR_GET_DUMPABLE));
	show_file("blocked", "/proc/self/status", "SigBlk:\t");
	show_file("ignored", "/proc/self/status", "SigIgn:\t");
	printf("umask %o\n", umask(0));
	printf("leads session %d, group %d\n", getsid(0) == getpid(), getpgid(0) == getpid());
	sched_getaffinity(0, sizeof(cpus), &cpus);
	printf("affinity %d\n", CPU_COUNT(&cpus));
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "set") == 0)
		set(argv + 2);
	show();
	return 0;
}
