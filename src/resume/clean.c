/* SPDX-License-Identifier: Apache-2.0 */
/* resume: what is left of the restorer is taken out of a process that runs. */
#define LR_ROOM "resume"
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/resume/resume.h"
#include "src/resume/resuming.h"
#include "src/sys/proc.h"
#include "src/sys/vectors.h"
#include "src/trace/trace.h"

/* What has to be known of a process's memory. */
struct seen {
	uint64_t vdso, vdso_end;
	const struct lr_resume_left *restorer; /* NULL: it is not there */
};

bool resume_left_at(const struct lr_resume_left *l, uint64_t from, uint64_t to)
{
	return l->size && from == l->start && to == l->start + l->size;
}

/* Memory of its own may be where another process has the restorer. */
static bool has_blob(pid_t tid, uint64_t at)
{
	char path[32], head[RESUME_BLOB_HEAD];

	snprintf(path, sizeof(path), "/proc/%d/mem", tid);
	LR_CLEANUP_FD int fd = lr_open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && pread(fd, head, sizeof(head), (off_t)at) == (ssize_t)sizeof(head) &&
	       resume_is_blob(head);
}

static void look_at(pid_t tid, const struct resume_places *p, uint64_t from, uint64_t to,
		    struct seen *seen)
{
	if (resume_left_at(&p->v[p->likely], from, to))
		seen->restorer = &p->v[p->likely];
	for (size_t i = 0; i < p->n && !seen->restorer; i++)
		if (resume_left_at(&p->v[i], from, to) && has_blob(tid, from))
			seen->restorer = &p->v[i];
}

static int look(pid_t tid, const struct resume_places *places, struct seen *ret, struct lr_err *err)
{
	char path[32], line[4400], perms[5];
	unsigned long long from, to;
	int name;

	snprintf(path, sizeof(path), "/proc/%d/maps", tid);
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
		if (lr_streq(perms, "rwxp"))
			look_at(tid, places, from, to, ret);
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

/* 1 if it has closed ordinary memory to itself, by protection key 0: calls could not be made in it. */
static int is_closed(pid_t tid, struct lr_err *err)
{
	uint8_t area[LR_SEED_XSAVE];
	struct iovec iov = {area, sizeof(area)};
	uint32_t pkru = 0;

	if (!lr_vectors_has_keys())
		return 0;
	if (ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &iov) < 0)
		return lr_fail(err, errno, "read the registers of thread %d", tid);
	return lr_vectors_pkru(area, iov.iov_len, &pkru) && pkru & 3;
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

static int clean_held(pid_t pid, const struct resume_places *places, unsigned how,
		      struct lr_err *err)
{
	struct seen seen;
	int rc = look(pid, places, &seen, err);

	/* It has executed another program meanwhile, with a memory of its own. */
	if (rc < 0 || !seen.restorer)
		return rc;
	rc = is_inside(pid, seen.restorer, err);
	if (rc == 0)
		rc = is_closed(pid, err);
	if (rc == 0)
		rc = all_outside(pid, seen.restorer, err);
	/* It can't be another while it is held; and a call that it waits in ends by this. */
	if (rc == 0 && how & LR_RESUME_RESIZED)
		kill(pid, SIGWINCH);
	return rc == 0 ? unmap(pid, &seen, how & LR_RESUME_DUMPABLE, err) : rc;
}

/* One attempt. 1: some thread has not left it, or no call can be made. */
static int clean_once(pid_t pid, const struct resume_places *places, unsigned how,
		      struct lr_err *err)
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

bool resume_is_deaf(pid_t pid)
{
	struct lr_proc_stat st;

	return lr_proc_stat(pid, &st) == 0 && st.state == 'D';
}

/* The process, or, if its leader has ended, a thread that lives; 0: none does. */
static pid_t living(pid_t pid)
{
	char path[32];
	pid_t tid = 0;

	if (!lr_proc_dies(pid))
		return pid;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	LR_CLEANUP_DIR DIR *d = opendir(path);
	for (struct dirent *e; d && !tid && (e = readdir(d));) {
		pid_t other = (pid_t)atoi(e->d_name);
		if (other > 0 && other != pid && !lr_proc_dies(other))
			tid = other;
	}
	return tid;
}

int resume_clean(pid_t pid, const struct resume_places *places, unsigned how, int64_t until,
		 struct lr_err *err)
{
	const struct timespec pause = {.tv_nsec = 100000};
	struct lr_err why = {0};
	unsigned failed = 0, looks = how & LR_RESUME_RESIZED ? LOOKS : 0;
	pid_t tid = pid;
	int rc;

	for (unsigned i = 0; i < 1000; i++) {
		if (lr_now_ms() > until && (i || resume_is_deaf(tid)))
			break;
		for (; looks && !waits(tid); looks--)
			nanosleep(&pause, NULL);
		rc = clean_once(tid, places, how, &why);
		if (rc == 0)
			return 0;
		if (rc == -ESRCH && lr_proc_dies(tid)) {
			tid = living(pid);
			if (!tid)
				return 0;
			continue;
		}
		if (rc < 0 && ++failed == TRIES) {
			if (err)
				*err = why;
			return rc;
		}
		nanosleep(&pause, NULL);
	}
	return lr_refuse(err, EBUSY,
			 "process %d does not leave the restorer, or cannot be made to call", pid);
}

int resume_find_left(pid_t pid, const struct resume_places *places,
		     const struct lr_resume_left **ret, struct lr_err *err)
{
	struct seen seen = {0};
	const pid_t tid = living(pid);
	int r = tid ? look(tid, places, &seen, err) : 0;

	*ret = seen.restorer;
	return r < 0 && lr_proc_dies(tid) ? 0 : r;
}

int lr_resume_clean(pid_t pid, const struct lr_resume_left *left, unsigned how, struct lr_err *err)
{
	return resume_clean(pid, &(struct resume_places){left, 1, 0}, how,
			    lr_now_ms() + RESUME_CLEAN_MS, err);
}
