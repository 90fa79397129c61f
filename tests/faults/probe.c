/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe [WORD] [stay]: the program of a container under fault injection. It prints everything that a
 * runtime could have left out silently, the same text each time; `end` is its last line.
 * waits: says it when there is a file /tmp/go, which is how one that was checkpointed or restored
 * tells how it is. (Before, its output has to be empty: criu wants files to be as long as they were.)
 * lives: the same, and until then it is a small world that looks after itself (lives.c).
 */
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tests/faults/lives.h"

extern char **environ;

/* Lines of a file that begin with one of the words; all of them without words. */
static void lines(const char *path, const char *const *words)
{
	char line[4096];
	FILE *f = fopen(path, "re");

	if (!f) {
		printf("%s: cannot be opened\n", path);
		return;
	}
	while (fgets(line, sizeof(line), f)) {
		bool wanted = !words;

		for (size_t i = 0; words && words[i]; i++)
			wanted = wanted || strncmp(line, words[i], strlen(words[i])) == 0;
		if (wanted)
			printf("%s: %s", path, line);
	}
	fclose(f);
}

/* Without ids, device numbers and numbers of peer groups. */
static void mounts(void)
{
	char line[4096];
	FILE *f = fopen("/proc/self/mountinfo", "re");

	while (f && fgets(line, sizeof(line), f)) {
		int skipped = 0;

		sscanf(line, "%*s %*s %*s %n", &skipped);
		printf("mount: ");
		for (const char *c = line + skipped; *c; c++)
			if (!((c[0] >= '0' && c[0] <= '9') && strstr(line, "master:") &&
			      c > strstr(line, "master:") && c < strstr(line, " - ")))
				putchar(*c);
	}
	if (f)
		fclose(f);
}

static int visible(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static void directory(const char *path, bool targets)
{
	struct dirent **list;
	int n = scandir(*path ? path : "/", &list, visible, alphasort);

	for (int i = 0; i < n; i++) {
		char name[4096], target[4096] = "";
		struct stat st;

		snprintf(name, sizeof(name), "%s/%s", path, list[i]->d_name);
		if (lstat(name, &st) < 0)
			continue;
		if (targets && S_ISLNK(st.st_mode) &&
		    readlink(name, target, sizeof(target) - 1) < 0)
			continue;
		printf("%s: %o %d:%d %u:%u %s\n", name, (unsigned)st.st_mode, (int)st.st_uid,
		       (int)st.st_gid, major(st.st_rdev), minor(st.st_rdev), target);
		free(list[i]);
	}
	if (n >= 0)
		free(list);
}

static void myself(void)
{
	char cwd[4096] = "?";
	struct utsname u;

	uname(&u);
	if (!getcwd(cwd, sizeof(cwd)))
		strcpy(cwd, "?");
	printf("pid %d session %d uts %s %s cwd %s\n", (int)getpid(), (int)(getsid(0) == getpid()),
	       u.nodename, u.domainname, cwd);
	printf("nice %d policy %d\n", getpriority(PRIO_PROCESS, 0),
	       (int)syscall(SYS_sched_getscheduler, 0));
	printf("personality %x securebits %x slack %d subreaper", (unsigned)personality(0xffffffff),
	       (unsigned)prctl(PR_GET_SECUREBITS), prctl(PR_GET_TIMERSLACK));
	int subreaper = 0, death = 0;
	prctl(PR_GET_CHILD_SUBREAPER, &subreaper);
	prctl(PR_GET_PDEATHSIG, &death);
	printf(" %d death signal %d dumpable %d umask %o\n", subreaper, death,
	       prctl(PR_GET_DUMPABLE), (unsigned)umask(0));
	for (char **e = environ; *e; e++)
		printf("environment: %s\n", *e);
}

static void say(int argc, char **argv)
{
	static const char *const status[] = {"Uid",  "Gid",  "Groups", "Cap",   "NoNew", "Seccomp",
					     "SigB", "SigI", "SigC",   "NSpid", "THP",   NULL};

	for (int i = 0; i < argc; i++)
		printf("argument: %s\n", argv[i]);
	for (int fd = 0; fd < 256; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			printf("descriptor %d: %o\n", fd, (unsigned)fcntl(fd, F_GETFL));
	myself();
	lines("/proc/self/status", status);
	lines("/proc/self/limits", NULL);
	lines("/proc/self/oom_score_adj", NULL);
	lines("/proc/self/cgroup", NULL);
	lines("/proc/self/uid_map", NULL);
	lines("/proc/self/gid_map", NULL);
	lines("/proc/self/setgroups", NULL);
	lines("/proc/sys/net/ipv4/ip_forward", NULL);
	lines("/proc/sys/kernel/msgmax", NULL);
	mounts();
	directory("", false);
	directory("/dev", true);
	directory("/sys/class/net", false);
	/* What is masked, and what is read-only. */
	for (const char *const *p = (const char *const[]){"/proc/keys", "/proc/timer_list", NULL};
	     *p; p++) {
		int fd = open(*p, O_RDONLY | O_CLOEXEC);
		char byte;

		printf("%s: %d bytes\n", *p, fd < 0 ? -1 : (int)read(fd, &byte, 1));
	}
	printf("/proc/sys writable: %d\n", access("/proc/sys/kernel/hostname", W_OK));
	printf("end\n");
	if (fflush(stdout) != 0)
		exit(1);
}

int main(int argc, char **argv)
{
	/* A pipe or a file, whole before somebody looks. */
	static char buffer[1 << 18];

	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	while (argc > 1 && strcmp(argv[1], "waits") == 0 && access("/tmp/go", F_OK) < 0)
		usleep(2000);
	if (argc > 1 && strcmp(argv[1], "lives") == 0)
		lives(argv + 2);
	say(argc, argv);
	if (argc > 1 && strcmp(argv[argc - 1], "stay") == 0)
		for (;;)
			pause();
	return 0;
}
