/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture: who is in the pid namespace, and not below its first process: who was sent in from
 * outside, as by exec, has its parent there. In a namespace that is made anew nobody could be that.
 * And which files are of the container's mounts.
 */
#define LR_ROOM "capture"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/state.h"
#include "src/sys/proc.h"

static bool is_known(const struct cap *c, pid_t pid)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->p[i].pid == pid)
			return true;
	return false;
}

static bool is_in(struct cap *c, pid_t pid, const char *ns)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	const char *its = cap_read_link(c->a, path);
	return its && lr_streq(its, ns);
}

uint64_t cap_ticks(void)
{
	const uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * hz + (uint64_t)t.tv_nsec / (1000000000 / hz);
}

static void refuse(struct cap *c, pid_t pid, const char *ns)
{
	struct cap_thread t = {.tid = pid};
	const struct cap_process p = {.pid = pid, .threads = &t, .n_threads = 1};
	struct lr_proc_stat st;

	/* It has ended, or was born in there while we looked. */
	if (lr_proc_stat(pid, &st) < 0 || is_in(c, st.ppid, ns))
		return;
	/* Or its parent has ended just then. */
	const pid_t parent = st.ppid;
	if (lr_proc_stat(pid, &st) < 0 || st.ppid != parent)
		return;
	if (c->let_go && st.start_time > c->held_until)
		return;
	snprintf(t.seed.name, sizeof(t.seed.name), "%s", st.name);
	cap_refuse(c, &p, "a parent outside of the container, as those of exec have");
}

int cap_strangers_refuse(struct cap *c, struct lr_err *err)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", c->opts->pid);
	const char *ns = cap_read_link(c->a, path);
	LR_CLEANUP_DIR DIR *d = opendir("/proc");
	if (!ns || !d)
		return lr_fail(err, errno, "look for other processes of the pid namespace");
	for (struct dirent *e; errno = 0, (e = readdir(d));) {
		pid_t pid = (pid_t)atoi(e->d_name);
		if (pid <= 0 || is_known(c, pid))
			continue;
		if (is_in(c, pid, ns))
			refuse(c, pid, ns);
	}
	return errno ? lr_fail(err, errno, "look for other processes of the pid namespace") : 0;
}

/* A line of mountinfo begins with the mount's number. */
bool cap_mount_is_inside(struct cap *c, unsigned id)
{
	char path[40];
	size_t size;

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", c->opts->pid);
	if (!c->mounts && cap_read_all(c->a, path, &c->mounts, &size, NULL) < 0)
		return false;
	for (const char *line = c->mounts; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strtoul(line, NULL, 10) == id && *line)
			return true;
	}
	return false;
}
