/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host BUNDLE ROOT ID PROFILE: a program that uses liblean until the library returns an error, and
 * then compares itself with what it was: neither an error nor a container's birth may change it.
 * Exit status: 0, all worked; 1, the library returned an error, which is printed; 2, the library
 * left or changed something.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lean/lean.h>

#include "tests/faults/marks.h"

/* What a call of the library must not change. */
struct self {
	char text[8192];
};

static void look(struct self *s)
{
	char cwd[512] = "?", line[256];
	size_t n = 0;
	sigset_t mask;

	memset(s, 0, sizeof(*s));
	sigprocmask(SIG_BLOCK, NULL, &mask);
	if (!getcwd(cwd, sizeof(cwd)))
		strcpy(cwd, "?");
	mode_t mode = umask(0);
	umask(mode);
	n += (size_t)snprintf(s->text, sizeof(s->text),
			      "cwd %s umask %o dumpable %d nice %d session %d\n", cwd,
			      (unsigned)mode, prctl(PR_GET_DUMPABLE), getpriority(PRIO_PROCESS, 0),
			      (int)getsid(0));
	for (int fd = 0; fd < 64; fd++)
		if (fcntl(fd, F_GETFD) >= 0) {
			char name[64], to[256] = "";

			snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
			if (readlink(name, to, sizeof(to) - 1) < 0)
				strcpy(to, "?");
			n += (size_t)snprintf(s->text + n, sizeof(s->text) - n,
					      "descriptor %d %s\n", fd, to);
		}
	FILE *f = fopen("/proc/self/status", "re");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "Sig", 3) == 0 || strncmp(line, "Cap", 3) == 0 ||
		    strncmp(line, "Uid", 3) == 0 || strncmp(line, "Seccomp", 7) == 0 ||
		    strncmp(line, "Shd", 3) == 0)
			if (strncmp(line, "SigQ", 4) != 0)
				n += (size_t)snprintf(s->text + n, sizeof(s->text) - n, "%s", line);
	if (f)
		fclose(f);
	for (const char *const *ns = (const char *const[]){"mnt", "net", "pid_for_children", "ipc",
							   "uts", "user", "cgroup", NULL};
	     *ns; ns++) {
		char name[64], to[128] = "";

		snprintf(name, sizeof(name), "/proc/self/ns/%s", *ns);
		if (readlink(name, to, sizeof(to) - 1) < 0)
			strcpy(to, "?");
		n += (size_t)snprintf(s->text + n, sizeof(s->text) - n, "%s\n", to);
	}
}

/* What the container says, as far as it comes; nothing of this is the library's. */
static void pass_on(int from[2])
{
	static char text[1 << 18];
	size_t n = 0;
	ssize_t r = 1;

	close(FAULTS_OFF);
	close(from[1]);
	while (r > 0 && n < sizeof(text) && (n < 5 || memcmp(text + n - 5, "\nend\n", 5) != 0)) {
		r = read(from[0], text + n, sizeof(text) - n);
		n += r > 0 ? (size_t)r : 0;
	}
	close(from[0]);
	fwrite(text, n, 1, stdout);
	fflush(stdout);
	close(FAULTS_ON);
}

static int use(char **argv, int out[2], struct lean_error *e)
{
	struct lean_start_options s = {
		.size = sizeof(s), .id = argv[3], .fds = {LEAN_FD_NULL, out[1], LEAN_FD_NULL}};
	struct lean_options o = {
		.size = sizeof(o), .bundle = argv[1], .root = argv[2], .profile = argv[4]};
	struct lean_exec_options x = {.size = sizeof(x),
				      .args = (const char *const[]){"/bin/probe", "exec", NULL},
				      .fds = {LEAN_FD_NULL, LEAN_FD_NULL, LEAN_FD_NULL}};
	struct lean_container *c = NULL;
	struct lean_template *t = NULL;
	struct lean_process *p = NULL;
	int status = -1, r, d;

	r = lean_open(&o, &t, e);
	if (r == 0)
		r = lean_start(t, &s, &c, e);
	pass_on(out);
	if (r == 0)
		r = lean_exec(c, &x, &p, e);
	/* Who is told that something could not be done tries again before it gives up. */
	if (r == 0 && (r = lean_process_wait(p, -1, &status, e)) < 0)
		(void)lean_process_wait(p, -1, &status, NULL);
	lean_process_free(p);
	if (r == 0)
		r = lean_pause(c, e);
	if (r == 0)
		r = lean_resume(c, e);
	if (c) {
		d = lean_delete(c, LEAN_FORCE, r == 0 ? e : NULL);
		if (d < 0 && lean_delete(c, LEAN_FORCE, NULL) < 0)
			lean_forget(c);
		r = r == 0 ? d : r;
	}
	lean_close(t);
	return r;
}

int main(int argc, char **argv)
{
	static struct self before, after;
	struct lean_error e = {0};
	int left, out[2];

	if (argc != 5)
		return 2;
	look(&before);
	if (pipe2(out, O_CLOEXEC) < 0)
		return 2;
	close(FAULTS_ON);
	int r = use(argv, out, &e);
	close(FAULTS_OFF);
	look(&after);
	if (r < 0)
		fprintf(stderr, "%s\n", e.message);
	if (strcmp(before.text, after.text) != 0) {
		fprintf(stderr, "changed:\n%sis now:\n%s", before.text, after.text);
		return 2;
	}
	/* A child that nobody waits for: ours are over, or the library told that they are not. */
	pid_t pid = waitpid(-1, &left, WNOHANG);
	if (pid >= 0) {
		fprintf(stderr, "left: process %d, status %x (%d: %s)\n", (int)pid,
			pid ? (unsigned)left : 0, r, e.message);
		return 2;
	}
	if (r < 0 && (e.code != -r || !e.message[0])) {
		fprintf(stderr, "returned %d, error says %d\n", r, e.code);
		return 2;
	}
	return r < 0;
}
