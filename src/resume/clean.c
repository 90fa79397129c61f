/* SPDX-License-Identifier: Apache-2.0 */
/* resume: what is left of the restorer is taken out of the processes, once they run. */
#define LR_ROOM "resume"
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/resume/resume.h"
#include "src/resume/resuming.h"
#include "src/sys/proc.h"
#include "src/trace/trace.h"

/* Where the restorer may be in a process: in each of the seed's it has its place, and who was borne since has that of
 * the one that bore it, which nobody knows any more if that has ended. */
struct places {
	const struct lr_resume_left *v;
	size_t n, likely;
};

/* What has to be known of a process's memory. */
struct seen {
	uint64_t vdso, vdso_end;
	const struct lr_resume_left *restorer; /* NULL: it is not there */
};

static bool is_at(const struct lr_resume_left *l, uint64_t from, uint64_t to)
{
	return l->size && from == l->start && to == l->start + l->size;
}

static const struct lr_resume_left *place_of(const struct places *p, uint64_t from, uint64_t to)
{
	if (is_at(&p->v[p->likely], from, to))
		return &p->v[p->likely];
	for (size_t i = 0; i < p->n; i++)
		if (is_at(&p->v[i], from, to))
			return &p->v[i];
	return NULL;
}

static int look(pid_t pid, const struct places *places, struct seen *ret, struct lr_err *err)
{
	char path[32], line[4400], perms[5];
	unsigned long long from, to;
	int name;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return lr_fail(err, errno, "open %s", path);
	*ret = (struct seen){0};
	while (fgets(line, sizeof(line), f)) {
		name = 0;
		if (sscanf(line, "%llx-%llx %4s %*s %*s %*s %n", &from, &to, perms, &name) != 3)
			continue;
		/* Paths begin otherwise. */
		if (name && lr_streq(line + name, "[vdso]\n")) {
			ret->vdso = from;
			ret->vdso_end = to;
		}
		if (!ret->restorer && lr_streq(perms, "rwxp"))
			ret->restorer = place_of(places, from, to);
	}
	bool failed = ferror(f);
	fclose(f);
	return failed ? lr_fail(err, EIO, "read %s", path) : 0;
}

/* 1 if the thread is still in the restorer. */
static int is_inside(pid_t tid, const struct lr_resume_left *r, struct lr_err *err)
{
	struct user_regs_struct regs;
	int rc = lr_trace_get_regs(tid, &regs, err);

	return rc < 0 ? rc : regs.rip - r->start < r->size;
}

/* Each thread has to have left. */
static int all_outside(pid_t pid, const struct lr_resume_left *r, struct lr_err *err)
{
	char path[32];
	int inside = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	LR_CLEANUP_DIR DIR *d = opendir(path);
	if (!d)
		return lr_fail(err, errno, "list the threads of process %d", pid);
	for (struct dirent *e; errno = 0, inside == 0 && (e = readdir(d));) {
		pid_t tid = (pid_t)atoi(e->d_name);
		if (tid <= 0 || tid == pid)
			continue;
		inside = lr_trace_hold(tid, err);
		if (inside >= 0) {
			inside = is_inside(tid, r, err);
			lr_trace_let_go(tid);
		}
		/* One that has ended is outside; the others are looked at all the same. */
		inside = inside == -ESRCH ? 0 : inside;
	}
	if (inside == 0 && errno)
		return lr_fail(err, errno, "list the threads of process %d", pid);
	return inside;
}

/* By calls that the process is made to make. */
static int unmap(pid_t pid, const struct seen *seen, bool dumpable, struct lr_err *err)
{
	struct lr_trace_call calls[] = {
		{.nr = SYS_munmap, .args = {seen->restorer->start, seen->restorer->size}},
		{.nr = SYS_prctl, .args = {PR_SET_DUMPABLE, 1}},
	};
	uint8_t buffer[LR_TRACE_BUFFER] = {0};
	const struct lr_trace_work work = {.calls = calls, .n = dumpable ? 2 : 1, .buffer = buffer};
	struct lr_trace_process p;

	int rc = lr_trace_open(pid, seen->vdso, seen->vdso_end, &p, err);
	if (rc < 0)
		return rc;
	rc = lr_trace_calls(&p, pid, &work, err);
	lr_trace_close(&p);
	for (size_t i = 0; rc >= 0 && i < work.n; i++)
		if (calls[i].ret < 0)
			rc = lr_fail(err, (int)-calls[i].ret, "take the restorer away");
	return rc;
}

static int clean_held(pid_t pid, const struct places *places, unsigned how, struct lr_err *err)
{
	struct seen seen;
	int rc = look(pid, places, &seen, err);

	/* It has executed another program meanwhile, with a memory of its own. */
	if (rc < 0 || !seen.restorer)
		return rc;
	rc = is_inside(pid, seen.restorer, err);
	if (rc == 0)
		rc = all_outside(pid, seen.restorer, err);
	/* It can't be another while it is held; and a call that it waits in ends by this. */
	if (rc == 0 && how & LR_RESUME_RESIZED)
		kill(pid, SIGWINCH);
	return rc == 0 ? unmap(pid, &seen, how & LR_RESUME_DUMPABLE, err) : rc;
}

/* One attempt. 1: some thread has not left it. */
static int clean_once(pid_t pid, const struct places *places, unsigned how, struct lr_err *err)
{
	int rc = lr_trace_hold(pid, err);

	if (rc < 0)
		return rc;
	rc = clean_held(pid, places, how, err);
	lr_trace_let_go(pid);
	return rc;
}

/* It stays in memory that can be executed, and keeps others from looking at the process: so this is
 * not given up at the first failure. */
#define TRIES 5

/* How often it is looked at, before it is told that it is resized at whatever it does. */
#define LOOKS 100

/* Told on its way to the call that it waits in, it would not look before that one ends. */
static bool waits(pid_t pid)
{
	struct lr_proc_stat st;

	return lr_proc_stat(pid, &st) < 0 || st.state == 'S';
}

static int clean(pid_t pid, const struct places *places, unsigned how, struct lr_err *err)
{
	const struct timespec pause = {.tv_nsec = 100000};
	struct lr_err why = {0};
	unsigned failed = 0, looks = how & LR_RESUME_RESIZED ? LOOKS : 0;
	int rc;

	for (unsigned i = 0; i < 1000; i++) {
		for (; looks && !waits(pid); looks--)
			nanosleep(&pause, NULL);
		rc = clean_once(pid, places, how, &why);
		if (rc == 0 || (rc == -ESRCH && lr_proc_dies(pid)))
			return 0;
		if (rc < 0 && ++failed == TRIES) {
			if (err)
				*err = why;
			return rc;
		}
		nanosleep(&pause, NULL);
	}
	return lr_refuse(err, EBUSY, "process %d does not leave the restorer", pid);
}

int lr_resume_clean(pid_t pid, const struct lr_resume_left *left, unsigned how, struct lr_err *err)
{
	return clean(pid, &(struct places){left, 1, 0}, how, err);
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Who is in the foreground may have been given a terminal of another size, at an instant when it had
 * not come back to the call that it waits in: then it would not look before that one ends. */
static unsigned how_to_clean(const struct lr_seed *s, uint32_t index)
{
	const struct lr_seed_process *p = lr_seed_process(s, index);
	const struct lr_seed_terminal *t =
		lr_seed_count(s, LR_SEED_TERMINAL) ? lr_seed_terminal(s, 0) : NULL;
	const uint32_t front = !t ? 0 : t->foreground ? t->foreground : t->session;

	return (p->dumpable == 1 ? LR_RESUME_DUMPABLE : 0) |
	       (front && p->pgid == front ? LR_RESUME_RESIZED : 0);
}

/* Of those of the seed, all have it. */
static bool has_restorer(pid_t pid, const struct places *places)
{
	struct seen seen;

	return look(pid, places, &seen, NULL) >= 0 && seen.restorer;
}

static int clean_one(const struct lr_seed *s, const struct resume_process *one,
		     struct places *places, bool *had, struct lr_err *err)
{
	unsigned how = how_to_clean(s, one->index);

	places->likely = one->index;
	if (one->seeds && !places->v[one->index].size)
		return 0; /* it has ended before */
	if (!one->seeds) {
		if (!has_restorer(one->pid, places))
			return 0;
		how &= LR_RESUME_DUMPABLE;
	}
	*had = true;
	return clean(one->pid, places, how, err);
}

/* Who is borne by one that has it, has it, too: until nobody new has. */
int lr_resume_clean_all(const struct lr_seed *seed, pid_t root, const struct lr_resume_left *left,
			struct lr_err *err)
{
	struct places places = {.v = left, .n = lr_seed_count(seed, LR_SEED_PROCESS)};
	CLEANUP_LIST struct resume_list l = {0};
	bool had = true;

	int r = resume_list_begin(&l, seed, root, err);
	for (size_t i = 0; r >= 0 && had;) {
		had = false;
		r = resume_list_more(&l, err);
		for (; r >= 0 && i < l.n; i++)
			r = clean_one(seed, &l.v[i], &places, &had, err);
	}
	return r;
}
