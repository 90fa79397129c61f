/* SPDX-License-Identifier: Apache-2.0 */
/* resume: the processes of a seed that live by now, and those that they have borne. */
#define LR_ROOM "resume"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/resume/resuming.h"
#include "src/sys/children.h"
#include "src/sys/inner.h"
#include "src/sys/proc.h"

#define TRIES 5
#define MOST  4096 /* beside those of the seed */

/* So long those are listed that programs bear meanwhile. */
#define LIST_MS 1000

/*
 * Which of the seed's it is; LR_SEED_NONE: none, but somebody's whom one of them bore. Before the first one is found it can
 * only be that. A pid namespace that a program has made is deeper than the seed's, and numbers are the same there.
 */
static uint32_t index_of(struct resume_list *l, pid_t pid)
{
	const uint32_t n = l->depth ? lr_seed_count(l->seed, LR_SEED_PROCESS) : 1;
	uint32_t inner = 0;
	unsigned depth = 0;

	for (unsigned i = 0; !inner && i < TRIES && (!i || !lr_proc_dies(pid)); i++)
		inner = lr_inner_pid(pid, &depth);
	if (!inner || (l->depth && depth != l->depth))
		return LR_SEED_NONE;
	for (uint32_t i = 0; i < n; i++)
		if (lr_seed_process(l->seed, i)->pid == inner) {
			l->depth = depth;
			return i;
		}
	return LR_SEED_NONE;
}

static bool is_listed(const struct resume_list *l, pid_t pid)
{
	for (size_t i = l->n; i-- > 0;)
		if (l->v[i].pid == pid)
			return true;
	return false;
}

static int add(struct resume_list *l, size_t parent, pid_t pid)
{
	const uint32_t index = index_of(l, pid);
	const bool of_seed = index != LR_SEED_NONE;

	if (l->n == (size_t)lr_seed_count(l->seed, LR_SEED_PROCESS) + MOST)
		return -E2BIG;
	if (l->n == l->room) {
		struct resume_process *v = realloc(l->v, 2 * l->room * sizeof(*v));
		if (!v)
			return -ENOMEM;
		l->v = v;
		l->room *= 2;
	}
	l->v[l->n++] = (struct resume_process){
		.pid = pid, .index = of_seed ? index : l->v[parent].index, .of_seed = of_seed};
	return 0;
}

/* *seen: grows by a sum of all that are listed. A negative errno. */
static int add_of_thread(struct resume_list *l, size_t parent, pid_t tid, uint64_t *seen)
{
	LR_CLEANUP_CHILDREN struct lr_children c;
	pid_t child = 0;
	int r = 0;

	lr_children_open(&c, l->v[parent].pid, tid);
	while (r >= 0 && (child = lr_children_next(&c)) > 0) {
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
	for (struct dirent *e; errno = 0, r >= 0 && (e = readdir(d));) {
		pid_t tid = (pid_t)atoi(e->d_name);
		if (tid > 0 && tid != pid)
			r = add_of_thread(l, parent, tid, seen);
	}
	return r < 0 || errno == ENOENT ? r : -errno;
}

static bool has_time(const struct resume_list *l)
{
	return lr_now_ms() < l->until;
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

	while (r != -E2BIG && failed < TRIES && (r < 0 || seen != before)) {
		if (r >= 0 && !has_time(l))
			break;
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
	*l = (struct resume_list){.seed = s,
				  .room = (size_t)lr_seed_count(s, LR_SEED_PROCESS) + 1,
				  .until = lr_now_ms() + LIST_MS};
	l->v = calloc(l->room, sizeof(*l->v));
	if (!l->v)
		return lr_fail(err, ENOMEM, "list the processes");
	l->v[l->n++] = (struct resume_process){.pid = root, .of_seed = index_of(l, root) == 0};
	return 0;
}

/* Without recursion: programs that run by now could bear one that is deeper than our stack. Whose parent ends meanwhile is
 * found when all are looked at once more. */
int resume_list_more(struct resume_list *l, struct lr_err *err)
{
	size_t before = 0;
	int r = 0;

	while (r >= 0 && l->n != before && (!before || has_time(l))) {
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
