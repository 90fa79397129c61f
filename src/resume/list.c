/* SPDX-License-Identifier: Apache-2.0 */
/* resume: the processes of a seed that live by now. */
#define LR_ROOM "resume"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/str.h"
#include "src/resume/resuming.h"
#include "src/sys/children.h"
#include "src/sys/proc.h"

#define TRIES 5
#define LOOKS 1000

/* As it is in its own pid namespace; 0: not known. */
static uint32_t inner_pid(pid_t pid)
{
	char path[32], text[4096];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (lr_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return 0;
	const char *line = strstr(text, "NSpid:");
	const char *last = line ? line + strcspn(line, "\n") : NULL;
	while (last && last > line && last[-1] != '\t')
		last--;
	return last ? (uint32_t)strtoul(last, NULL, 10) : 0;
}

/* Which of the seed's it is; LR_SEED_NONE: none, but somebody's whom one of them bore. */
static uint32_t index_of(const struct lr_seed *s, pid_t pid)
{
	uint32_t inner = 0;

	for (unsigned i = 0; !inner && i < TRIES && (!i || !lr_proc_dies(pid)); i++)
		inner = inner_pid(pid);
	for (uint32_t i = 0; inner && i < lr_seed_count(s, LR_SEED_PROCESS); i++)
		if (lr_seed_process(s, i)->pid == inner)
			return i;
	return LR_SEED_NONE;
}

/* All of the seed, and the one above them. */
static size_t room(const struct lr_seed *s)
{
	return (size_t)lr_seed_count(s, LR_SEED_PROCESS) + 1;
}

static bool is_listed(const struct resume_process *v, size_t n, pid_t pid)
{
	while (n-- > 0)
		if (v[n].pid == pid)
			return true;
	return false;
}

/* Adds to v; *n grows. *seen: a sum of all that are listed. A negative errno. */
static int add_listed(const struct lr_seed *s, pid_t pid, struct resume_process *v, size_t *n,
		      uint64_t *seen)
{
	LR_CLEANUP_CHILDREN struct lr_children c;
	pid_t child = 0;

	*seen = 0;
	lr_children_open(&c, pid, pid);
	while (*n < room(s) && (child = lr_children_next(&c)) > 0) {
		uint32_t index = is_listed(v, *n, child) ? LR_SEED_NONE : index_of(s, child);
		if (index != LR_SEED_NONE)
			v[(*n)++] = (struct resume_process){child, index};
		*seen += (uint64_t)child * (uint64_t)child;
	}
	return child < 0 && child != -ENOENT && child != -ESRCH ? child : 0;
}

/*
 * Who is listed behind one that is waited for meanwhile may be left out. So it is done until it was twice the same;
 * a program that bears and ends others all the time is not waited for.
 */
static int add_children(const struct lr_seed *s, pid_t pid, struct resume_process *v, size_t *n,
			struct lr_err *err)
{
	uint64_t before = 0, seen = 0;
	unsigned failed = 0;
	int r = -EAGAIN;

	for (unsigned i = 0; i < LOOKS && failed < TRIES && (r < 0 || seen != before); i++) {
		before = seen;
		r = add_listed(s, pid, v, n, &seen);
		failed += r < 0;
	}
	return r < 0 ? lr_fail(err, -r, "list the children of process %d", pid) : 0;
}

/* Without recursion: programs that run by now could bear one that is deeper than our stack. */
int resume_list(const struct lr_seed *s, pid_t root, struct resume_process **ret, size_t *n,
		struct lr_err *err)
{
	LR_CLEANUP_FREE struct resume_process *v = calloc(room(s), sizeof(*v));
	int r = 0;

	if (!v)
		return lr_fail(err, ENOMEM, "list the processes");
	v[0] = (struct resume_process){root, 0};
	*n = 1;
	for (size_t i = 0; r >= 0 && i < *n; i++)
		r = add_children(s, v[i].pid, v, n, err);
	if (r < 0)
		return r;
	*ret = v;
	v = NULL;
	return 0;
}
