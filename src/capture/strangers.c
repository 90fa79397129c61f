/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture: who is in the pid namespace, and not below its first process: who was sent in from
 * outside, as by exec, has its parent there. In a namespace that is made anew nobody could be that:
 * they are refused, or left out, and then stand still like the rest, as they may write to its memory.
 */
#define LR_ROOM "capture"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/state.h"
#include "src/sys/proc.h"
#include "src/sys/syscalls.h"
#include "src/sys/tables.h"

/* 1, 0, or a negative errno: a guess would call one of the container's a stranger, or overlook one. */
static int is_in(struct cap *c, pid_t pid, const char *ns, struct lr_err *err)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	errno = ENOMEM;
	const char *its = cap_read_link(c->a, path);
	if (its)
		return lr_streq(its, ns);
	return errno == ENOENT || errno == ESRCH || errno == EACCES || errno == EPERM
		       ? 0
		       : lr_fail(err, errno, "look for other processes of the pid namespace");
}

/* The container's, as the kernel names it. */
static int own_namespace(struct cap *c, const char **ret, struct lr_err *err)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", c->opts->pid);
	errno = ENOMEM;
	*ret = cap_read_link(c->a, path);
	return *ret ? 0 : lr_fail(err, errno, "look for other processes of the pid namespace");
}

uint64_t cap_ticks(void)
{
	const uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * hz + (uint64_t)t.tv_nsec / (1000000000 / hz);
}

static bool is_held(const struct cap *c, pid_t pid)
{
	for (size_t i = 0; i < c->n_strangers; i++)
		if (c->strangers[i].pid == pid)
			return true;
	return false;
}

/* Nobody has waited for it yet, and none of its threads outlives the first one. */
static bool has_ended(pid_t pid)
{
	char path[48];
	bool ended = true;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	LR_CLEANUP_DIR DIR *d = opendir(path);
	if (!d)
		return errno == ENOENT;
	for (struct dirent *e; errno = 0, ended && (e = readdir(d));) {
		pid_t tid = (pid_t)atoi(e->d_name);
		ended = tid <= 0 || lr_proc_dies(tid);
	}
	return ended && !errno;
}

static int refuse(struct cap *c, pid_t pid, const char *ns, struct lr_err *err)
{
	struct cap_thread t = {.tid = pid};
	const struct cap_process p = {.pid = pid, .threads = &t, .n_threads = 1};
	struct lr_proc_stat st;

	/* It has ended, or was born in there while we looked. */
	int r = lr_proc_stat(pid, &st) < 0 ? 1 : is_in(c, st.ppid, ns, err);
	if (r != 0)
		return r < 0 ? r : 0;
	/* Or its parent has ended just then. */
	const pid_t parent = st.ppid;
	if (lr_proc_stat(pid, &st) < 0 || st.ppid != parent)
		return 0;
	if (c->let_go && (st.start_time > c->held_until || is_held(c, pid)))
		return 0;
	if (st.dies && has_ended(pid))
		return 0;
	snprintf(t.seed.name, sizeof(t.seed.name), "%s", st.name);
	cap_refuse(c, &p,
		   "a parent outside of the container, as those of exec have "
		   "(end it, or leave it out by --without-exec)");
	return 0;
}

/* ---- left out ---------------------------------------------------------------------------------- */

static bool holds(const struct cap *c, pid_t tid)
{
	for (size_t i = 0; i < c->n_strangers; i++)
		if (c->strangers[i].tid == tid)
			return true;
	return false;
}

/* Who is gone is none. Of any other one that can't be looked at, nobody would know that it runs. */
static int unless_gone(int r, struct lr_err *err)
{
	return r >= 0 || r == -ENOENT || r == -ESRCH
		       ? 0
		       : lr_fail(err, -r, "look for other processes of the pid namespace");
}

/* 1: it is held now. 0: it is gone, or another's. */
static int hold_thread(struct cap *c, pid_t pid, pid_t tid, struct lr_err *err)
{
	struct cap_stranger *v = lr_grow(c->a, c->strangers, c->n_strangers, sizeof(*v));
	char path[48];

	if (!v)
		return lr_fail(err, ENOMEM, "list other processes of the pid namespace");
	c->strangers = v;
	int r = lr_trace_hold(tid, err);
	if (r < 0)
		return r == -ESRCH ? 0 : r;
	snprintf(path, sizeof(path), "/proc/%d/task/%d", pid, tid);
	if (access(path, F_OK) < 0) {
		r = unless_gone(-errno, err);
		lr_trace_let_go(tid);
		return r;
	}
	v[c->n_strangers++] = (struct cap_stranger){pid, tid};
	return 1;
}

typedef int take_thread(struct cap *c, pid_t pid, pid_t tid, struct lr_err *err);

/* Returns how many threads are new. */
static int take_threads(struct cap *c, pid_t pid, take_thread *take, struct lr_err *err)
{
	char path[48];
	int found = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	LR_CLEANUP_DIR DIR *d = opendir(path);
	if (!d)
		return unless_gone(-errno, err);
	for (struct dirent *e; errno = 0, (e = readdir(d));) {
		pid_t tid = (pid_t)atoi(e->d_name);
		int r = tid <= 0 || holds(c, tid) ? 0 : take(c, pid, tid, err);
		if (r < 0)
			return r;
		found += r;
	}
	int r = unless_gone(-errno, err);
	return r < 0 ? r : found;
}

static int hold_stranger(struct cap *c, pid_t pid, struct lr_err *err)
{
	return take_threads(c, pid, hold_thread, err);
}

/* Whether its line leads outside, and not to the container's first process. */
static int is_stranger(struct cap *c, pid_t pid, const char *ns, struct lr_err *err)
{
	struct lr_proc_stat st;

	while (pid != c->opts->pid) {
		int r = is_in(c, pid, ns, err);
		if (r <= 0)
			return r < 0 ? r : 1;
		r = lr_proc_stat(pid, &st);
		if (r < 0)
			return unless_gone(r, err);
		pid = st.ppid;
	}
	return 0;
}

typedef int take_stranger(struct cap *c, pid_t pid, struct lr_err *err);

/* Returns how many `take` says are new. */
static int take_all(struct cap *c, const char *ns, take_stranger *take, struct lr_err *err)
{
	LR_CLEANUP_DIR DIR *d = opendir("/proc");
	int found = 0;

	if (!d)
		return lr_fail(err, errno, "look for other processes of the pid namespace");
	for (struct dirent *e; errno = 0, (e = readdir(d));) {
		pid_t pid = (pid_t)atoi(e->d_name);
		int r = pid <= 0 ? 0 : is_in(c, pid, ns, err);
		if (r > 0)
			r = is_stranger(c, pid, ns, err);
		if (r > 0)
			r = take(c, pid, err);
		if (r < 0)
			return r;
		found += r;
	}
	return errno ? lr_fail(err, errno, "look for other processes of the pid namespace") : found;
}

static int note_thread(struct cap *c, pid_t pid, pid_t tid, struct lr_err *err)
{
	struct cap_stranger *v = lr_grow(c->a, c->strangers, c->n_strangers, sizeof(*v));

	(void)pid;
	if (!v)
		return lr_fail(err, ENOMEM, "list other processes of the pid namespace");
	c->strangers = v;
	v[c->n_strangers++] = (struct cap_stranger){tid, 0};
	return 1;
}

static int note_stranger(struct cap *c, pid_t pid, struct lr_err *err)
{
	return take_threads(c, pid, note_thread, err);
}

int cap_strangers_look(struct cap *c, struct lr_err *err)
{
	const char *ns;

	if (!c->opts->namespace_too)
		return 0;
	int r = own_namespace(c, &ns, err);
	return r < 0 ? r : take_all(c, ns, note_stranger, err);
}

int cap_strangers_hold(struct cap *c, struct lr_err *err)
{
	const char *ns;

	if (!c->opts->without_exec)
		return 0;
	int r = own_namespace(c, &ns, err);
	for (unsigned round = 0; r >= 0 && round < 1000; round++) {
		r = take_all(c, ns, hold_stranger, err);
		if (r == 0)
			return 0;
	}
	if (r < 0)
		return r;
	return lr_refuse(err, EAGAIN, "there are ever new processes of exec");
}

void cap_strangers_let_go(struct cap *c)
{
	for (size_t i = 0; i < c->n_strangers; i++)
		if (c->strangers[i].tid)
			lr_trace_let_go(c->strangers[i].tid);
	/* Who it was is asked for later. */
	for (size_t i = 0; i < c->n_strangers; i++)
		c->strangers[i].tid = 0;
}

/* ---- who is there ------------------------------------------------------------------------------ */

int cap_strangers_refuse(struct cap *c, struct lr_err *err)
{
	const char *ns;

	/* Those that nobody has held are found when the rest is let go. */
	if (c->opts->without_exec && !c->let_go)
		return 0;
	int r = own_namespace(c, &ns, err);
	if (r < 0)
		return r;
	LR_CLEANUP_DIR DIR *d = opendir("/proc");
	if (!d)
		return lr_fail(err, errno, "look for other processes of the pid namespace");
	for (struct dirent *e; errno = 0, (e = readdir(d));) {
		pid_t pid = (pid_t)atoi(e->d_name);
		if (pid <= 0 || cap_process_of(c, pid))
			continue;
		r = is_in(c, pid, ns, err);
		if (r > 0)
			r = refuse(c, pid, ns, err);
		if (r < 0)
			return r;
	}
	return errno ? lr_fail(err, errno, "look for other processes of the pid namespace") : 0;
}

/* ---- whom to wait for -------------------------------------------------------------------------- */

/* There may be a million descriptors: beyond so many, each is looked at twice. */
#define MOST_NOTED 4096

/* For the look at its files, if nobody can change them until then. */
static void note_fd(struct cap *c, struct cap_process *p, const struct cap_noted *fd)
{
	if (!p->n_threads || !p->threads[0].held || c->n_noted == MOST_NOTED)
		return;
	struct cap_noted *v = lr_grow(c->a, p->noted, p->n_noted, sizeof(*v));
	const char *link = v ? lr_strdup(c->a, fd->link) : NULL;
	if (v)
		p->noted = v;
	if (!link)
		return;
	v[p->n_noted] = *fd;
	v[p->n_noted++].link = link;
	c->n_noted++;
}

/* A look at whom to wait for. */
struct waiting {
	struct cap *c;
	struct lr_tables known; /* that have been looked at */
	bool tell;
	bool hides; /* who asks to be asked may have the descriptor where no process has it */
};

/* Of a process, or of one of its threads, which may have a table of its own. */
struct table {
	struct cap_process *p;
	pid_t tid;
};

/* Sent to such a socket, and not received yet (Linux 5.8 tells). */
static bool has_waiting(struct cap *c, const struct table *t, const char *fd)
{
	static const char begin[] = "scm_fds:";
	char path[32 + 256], *text;
	size_t size;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", t->tid, fd);
	if (cap_read_all(c->a, path, &text, &size, NULL) < 0)
		return false;
	const char *at = strstr(text, begin);
	return at && atoi(at + sizeof(begin) - 1) > 0;
}

/* Whoever asks, or serves, does it by a descriptor; but that need not be in anybody's table. */
static const char *hidden(const struct waiting *w, const struct table *t, const char *fd,
			  const char *target)
{
	if (w->hides && lr_streq(target, "anon_inode:[io_uring]"))
		return "of a kind that is not carried";
	return w->hides && lr_has_prefix(target, "socket:[") && has_waiting(w->c, t, fd)
		       ? "descriptors that wait in a socket"
		       : NULL;
}

/* Who opens a directory may have to wait for a process that has such a descriptor: it asks to be asked
 * first (permission events of fanotify(7)), or serves a file system (FUSE). One that is held answers
 * nobody; nor does one that means harm. */
static const char *waited_for(struct waiting *w, const struct table *t, const char *fd,
			      char target[4096])
{
	char path[32 + 256];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/fd/%s", t->tid, fd);
	ssize_t n = readlink(path, target, 4095);
	target[n > 0 ? n : 0] = 0;
	if (lr_streq(target, "anon_inode:[fanotify]"))
		return "of a kind that is not carried";
	/* A path may be longer than what can be read of it. */
	if (n >= 0 && *target != '/')
		return hidden(w, t, fd, target);
	if (cap_stat(path, &st) < 0)
		return NULL;
	if (n > 0 && t->tid == t->p->pid)
		note_fd(w->c, t->p, &(struct cap_noted){atoi(fd), target, st});
	if (n < 0)
		snprintf(target, 4096, "a path that can't be read");
	return S_ISCHR(st.st_mode) && st.st_rdev == makedev(10, 229) ? "a device" : NULL;
}

/* Processes, and their threads, may share it. Whoever is known, and ends meanwhile, shares none any more. */
static bool is_known(struct waiting *w, pid_t tid)
{
	struct lr_table *t = lr_new(w->c->a, struct lr_table);

	return t && !lr_tables_add(&w->known, t, tid);
}

static bool is_waited_for(struct waiting *w, struct cap_process *p, pid_t tid)
{
	const struct table t = {p, tid};
	char path[32], target[4096];
	struct lr_dir d;
	bool would = false;

	if (is_known(w, tid))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/fd", tid);
	LR_CLEANUP_FD int fd = lr_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno != ENOENT && errno != ESRCH) {
		if (w->tell)
			cap_refuse(w->c, p, "descriptors that can't be looked at: %s",
				   lr_strerror(errno));
		return true;
	}
	lr_dir_begin(&d, fd);
	for (const struct lr_dirent *e; fd >= 0 && (e = lr_dir_next(&d));) {
		const char *why = e->name[0] == '.' ? NULL : waited_for(w, &t, e->name, target);
		if (why && w->tell)
			cap_refuse(w->c, p, "descriptor %s: %s (%s)", e->name, why, target);
		would = would || why;
	}
	return would;
}

bool cap_would_wait(struct cap *c, bool tell)
{
	struct waiting w = {
		.c = c, .tell = tell, .hides = c->before->may_leave || cap_mounts_may_wait(c)};
	bool would = false;

	for (size_t i = 0; i < c->n; i++)
		for (size_t k = 0; k < c->p[i].n_threads; k++)
			would = is_waited_for(&w, &c->p[i], c->p[i].threads[k].tid) || would;
	for (size_t i = 0; i < c->n_strangers; i++) {
		const struct cap_stranger *s = &c->strangers[i];
		struct cap_process p = {.pid = s->pid};
		would = is_waited_for(&w, &p, s->tid ? s->tid : s->pid) || would;
	}
	return would;
}
