/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture: from which nodes memory comes (set_mempolicy(2), mbind(2)), which a child would not have.
 * On a machine with one node a policy changes nothing. To tell it, the kernel looks at all pages; so it is
 * asked while the processes run.
 */
#define LR_ROOM "capture"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/state.h"
#include "src/sys/syscalls.h"

/* Of a line of numa_maps, "7f32a000 bind:0-1 anon=1 ...". */
static bool policy_of(const char *line, char *ret, size_t size)
{
	const char *at = line + strcspn(line, " \n");
	const size_t n = *at == ' ' ? strcspn(at + 1, " \n") : 0;

	if (!n || n >= size)
		return false;
	memcpy(ret, at + 1, n);
	ret[n] = 0;
	return true;
}

static int refuse_ranges(struct cap *c, const struct cap_process *p, const char *usual,
			 struct lr_err *err)
{
	char path[40], policy[128], *text;
	size_t size;

	snprintf(path, sizeof(path), "/proc/%d/numa_maps", p->pid);
	int r = cap_read_all(c->a, path, &text, &size, err);
	if (r < 0)
		return r;
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!policy_of(line, policy, sizeof(policy)) || lr_streq(policy, usual))
			continue;
		cap_refuse(c, p, "a memory policy (%s) at %.*s", policy, (int)strcspn(line, " "),
			   line);
		return 0;
	}
	return 0;
}

/* What the thread has: the first mapping, as a rule the program's text, has no policy of its own. */
static bool policy_of_thread(pid_t pid, pid_t tid, char *ret, size_t size)
{
	char path[64], line[256] = "";

	snprintf(path, sizeof(path), "/proc/%d/task/%d/numa_maps", pid, tid);
	LR_CLEANUP_FD int fd = lr_open(path, O_RDONLY | O_CLOEXEC);
	/* The kernel goes on to the next mapping only if there is room for it. */
	return fd >= 0 && read(fd, line, sizeof(line) - 1) > 0 && policy_of(line, ret, size);
}

static bool has_several_nodes(struct cap *c)
{
	char *text;
	size_t size;

	/* "0" is one; "0-1" and "0,2" are two. */
	return cap_read_all(c->a, "/sys/devices/system/node/has_memory", &text, &size, NULL) >= 0 &&
	       strpbrk(text, "-,");
}

int cap_policy_refuse(struct cap *c, struct lr_err *err)
{
	char usual[128] = "default", policy[128];
	int r = 0;

	if (!has_several_nodes(c))
		return 0;
	/* A child gets it from config.json, as the first process did. */
	if (c->opts->own_policy)
		(void)!policy_of_thread(c->p->pid, c->p->pid, usual, sizeof(usual));
	for (size_t i = 0; r >= 0 && i < c->n; i++) {
		const struct cap_process *p = &c->p[i];
		if (p->seed.flags & LR_SEED_ZOMBIE)
			continue;
		for (size_t k = 1; k < p->n_threads; k++)
			if (policy_of_thread(p->pid, p->threads[k].tid, policy, sizeof(policy)) &&
			    !lr_streq(policy, usual))
				cap_refuse(c, p, "thread %u has a memory policy (%s)",
					   p->threads[k].seed.tid, policy);
		r = refuse_ranges(c, p, usual, err);
		if (i && (r == -ENOENT || r == -ESRCH))
			r = 0; /* it has ended */
	}
	return r;
}
