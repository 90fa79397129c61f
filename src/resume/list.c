/* SPDX-License-Identifier: Apache-2.0 */
/* resume: the processes of a seed that live by now, and those that they have borne. */
#define LR_ROOM "resume"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/resume/resuming.h"
#include "src/sys/children.h"
#include "src/sys/proc.h"

#define TRIES  5
#define LOOKS  100
#define PASSES 10
#define MOST   4096 /* beside those of the seed */

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

static bool is_listed(const struct resume_list *l, pid_t pid)
{
	for (size_t i = l->n; i-- > 0;)
		if (l->v[i].pid == pid)
			return true;
	return false;
}

/* Also what has been another's: in a pid namespace of its own a process may have any number. */
static bool is_taken(const struct resume_list *l, uint32_t index)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].seeds && l->v[i].index == index)
			return true;
	return false;
}

static int add(struct resume_list *l, size_t parent, pid_t pid)
{
	uint32_t index = index_of(l->seed, pid);
	const bool seeds = index != LR_SEED_NONE && !is_taken(l, index);

	if (l->n == l->room) {
		struct resume_process *v = realloc(l->v, 2 * l->room * sizeof(*v));
		if (!v)
			return -ENOMEM;
		l->v = v;
		l->room *= 2;
	}
	l->v[l->n++] = (struct resume_process){
		.pid = pid, .index = seeds ? index : l->v[parent].index, .seeds = seeds};
	return 0;
}

/* *seen: grows by a sum of all that are listed. A negative errno. */
static int add_of_thread(struct resume_list *l, size_t parent, pid_t tid, uint64_t *seen)
{
	const size_t most = (size_t)lr_seed_count(l->seed, LR_SEED_PROCESS) + MOST;
	LR_CLEANUP_CHILDREN struct lr_children c;
	pid_t child = 0;
	int r = 0;

	lr_children_open(&c, l->v[parent].pid, tid);
	while (r >= 0 && l->n < most && (child = lr_children_next(&c)) > 0) {
		*seen += (uint64_t)child * (uint64_t)child;
		if (!is_listed(l, child))
			r = add(l, parent, child);
	}
	if (r >= 0 && child < 0 && child != -ENOENT && child != -ESRCH)
		r = child;
	return r;
}

/* The first thread bears those of the seed; programs that run by now bear others by any, and leave them to any. */
static int add_of_all(struct resume_list *l, size_t parent, uint64_t *seen)
{
	const pid_t pid = l->v[parent].pid;
	char path[32];
	struct stat st;
	int r = add_of_thread(l, parent, pid, seen);

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	/* A link for each, beside the usual two. */
	if (r < 0 || stat(path, &st) < 0 || st.st_nlink <= 3)
		return r;
	LR_CLEANUP_DIR DIR *d = opendir(path);
	if (!d)
		return errno == ENOENT ? 0 : -errno;
	for (struct dirent *e; r >= 0 && (e = readdir(d));) {
		pid_t tid = (pid_t)atoi(e->d_name);
		if (tid > 0 && tid != pid)
			r = add_of_thread(l, parent, tid, seen);
	}
	return r;
}

/*
 * Who is listed behind one that is waited for meanwhile may be left out. So it is done until it was twice the same;
 * a program that bears and ends others all the time is not waited for.
 */
static int add_children(struct resume_list *l, size_t parent, struct lr_err *err)
{
	uint64_t before = 0, seen = 0;
	unsigned failed = 0;
	int r = -EAGAIN;

	for (unsigned i = 0; i < LOOKS && failed < TRIES && (r < 0 || seen != before); i++) {
		before = seen;
		seen = 0;
		r = add_of_all(l, parent, &seen);
		failed += r < 0;
	}
	return r < 0 ? lr_fail(err, -r, "list the children of process %d", l->v[parent].pid) : 0;
}

int resume_list_begin(struct resume_list *l, const struct lr_seed *s, pid_t root,
		      struct lr_err *err)
{
	*l = (struct resume_list){.seed = s, .room = (size_t)lr_seed_count(s, LR_SEED_PROCESS) + 1};
	l->v = calloc(l->room, sizeof(*l->v));
	if (!l->v)
		return lr_fail(err, ENOMEM, "list the processes");
	l->v[l->n++] = (struct resume_process){.pid = root, .seeds = index_of(s, root) == 0};
	return 0;
}

/* Without recursion: programs that run by now could bear one that is deeper than our stack. Whose parent ends meanwhile is
 * found when all are looked at once more. */
int resume_list_more(struct resume_list *l, struct lr_err *err)
{
	size_t before = 0;
	int r = 0;

	for (unsigned i = 0; r >= 0 && i < PASSES && l->n != before; i++) {
		before = l->n;
		for (size_t k = 0; r >= 0 && k < l->n; k++)
			r = add_children(l, k, err);
	}
	return r;
}

void resume_list_end(struct resume_list *l)
{
	free(l->v);
}
