/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attacker in a container: looks for a secret in the memory and the environment of every
 * process that it sees, as fast as it can, until SIGTERM. spy NEEDLE [COMM]: only in processes of
 * that name. Ends with 3 if it was found, or else with 0; and says how many processes it has seen.
 *
 * What is open stays open: /proc/PID/mem and maps show the memory that the process had then, also
 * when it has another by now.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a sanitizer reserves for its own, terabytes without contents, would take hours. */
#define SHADOW (1UL << 36)

static volatile sig_atomic_t end;

static void stop(int sig)
{
	(void)sig;
	end = 1;
}

static int open_of(const char *pid, const char *file)
{
	char path[300];

	snprintf(path, sizeof(path), "/proc/%s/%s", pid, file);
	return open(path, O_RDONLY);
}

static int in_range(int mem, const char *needle, unsigned long from, unsigned long to)
{
	static char buf[1 << 16];
	size_t len = strlen(needle);

	for (unsigned long at = from; at < to && !end; at += sizeof(buf) - len) {
		size_t want = to - at < sizeof(buf) ? to - at : sizeof(buf);
		ssize_t n = pread(mem, buf, want, (off_t)at);
		if (n > 0 && memmem(buf, (size_t)n, needle, len))
			return 1;
	}
	return 0;
}

static int in_memory(int maps, int mem, const char *needle)
{
	FILE *f = fdopen(dup(maps), "r");
	unsigned long from, to;
	char line[600], mode[8];
	int found = 0;

	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%lx-%lx %7s", &from, &to, mode) == 3 && mode[1] == 'w' &&
			to - from < SHADOW && in_range(mem, needle, from, to);
	if (f)
		fclose(f);
	return found;
}

static int in_environment(int fd, const char *needle)
{
	char buf[8192];
	ssize_t n = read(fd, buf, sizeof(buf));

	return n > 0 && memmem(buf, (size_t)n, needle, strlen(needle));
}

static int is_called(const char *pid, const char *comm)
{
	char name[32] = "";
	int fd = open_of(pid, "comm");
	ssize_t n = fd < 0 ? -1 : read(fd, name, sizeof(name) - 1);

	close(fd);
	return n > 0 && strncmp(name, comm, strlen(comm)) == 0;
}

static int look_at(const char *pid, const char *needle)
{
	int mem = open_of(pid, "mem"), maps = open_of(pid, "maps"), env = open_of(pid, "environ");
	int found = (mem >= 0 && maps >= 0 && in_memory(maps, mem, needle)) ||
		    (env >= 0 && in_environment(env, needle));

	close(mem);
	close(maps);
	close(env);
	return found;
}

int main(int argc, char **argv)
{
	unsigned long seen = 0;
	char last[32] = "";
	int found = 0;

	signal(SIGTERM, stop);
	puts("ready");
	fflush(stdout);
	DIR *d = opendir("/proc");
	while (d && argc > 1 && !end && !found) {
		rewinddir(d);
		for (struct dirent *e; !end && !found && (e = readdir(d));) {
			if (e->d_name[0] < '1' || e->d_name[0] > '9' ||
			    atoi(e->d_name) == getpid() ||
			    (argc > 2 && !is_called(e->d_name, argv[2])))
				continue;
			found = look_at(e->d_name, argv[1]);
			seen += strcmp(e->d_name, last) != 0;
			snprintf(last, sizeof(last), "%.31s", e->d_name);
		}
	}
	printf("%lu processes, %s\n", seen, found ? "FOUND" : "nothing");
	return found ? 3 : 0;
}
