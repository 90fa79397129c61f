/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint: the mount namespaces of what was restored. Each is looked at from its root, which the processes in there
 * may not have. Nothing of it runs yet.
 */
#define LR_ROOM "restore"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/checkpoint/internal.h"
#include "src/sys/children.h"
#include "src/sys/proc.h"
#include "src/sys/syscalls.h"
#include "src/sys/visit.h"

/* ---- which there are ------------------------------------------------------------------------ */

struct pids {
	pid_t *v;
	size_t n;
};

static int add_pid(struct pids *s, pid_t pid, struct lr_arena *a)
{
	pid_t *v = lr_grow(a, s->v, s->n, sizeof(*v));

	if (!v)
		return -ENOMEM;
	s->v = v;
	v[s->n++] = pid;
	return 0;
}

static int add_children(pid_t pid, pid_t tid, struct pids *all, struct lr_arena *a)
{
	LR_CLEANUP_CHILDREN struct lr_children c;
	pid_t child;
	int r = 0;

	lr_children_open(&c, pid, tid);
	while (r >= 0 && (child = lr_children_next(&c)) != 0)
		r = child < 0 ? child : add_pid(all, child, a);
	return r;
}

static int add_below(pid_t pid, struct pids *all, struct lr_arena *a)
{
	char path[32];
	int r = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	LR_CLEANUP_DIR DIR *d = opendir(path);
	if (!d)
		return -errno;
	for (struct dirent *e; errno = 0, r >= 0 && (e = readdir(d));)
		if (e->d_name[0] != '.')
			r = add_children(pid, (pid_t)atoi(e->d_name), all, a);
	return r < 0 ? r : -errno;
}

static int list_processes(pid_t first, struct pids *all, struct lr_arena *a, struct lr_err *err)
{
	int r = add_pid(all, first, a);

	for (size_t i = 0; i < all->n && r >= 0; i++)
		r = add_below(all->v[i], all, a);
	return r < 0 ? lr_fail(err, -r, "list the restored processes") : 0;
}

/* ---- one of them ---------------------------------------------------------------------------- */

struct visit {
	int ns, proc, ret; /* of the namespace; of our /proc; what its mountinfo becomes */
	const struct lr_restore_plan *p;
	const struct lr_checkpoint_mount *mounts; /* of which those that lack it become read-only */
	size_t n;
};

static int protect(const void *arg)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
	const struct visit *x = arg;
	int r = 0;

	for (size_t i = 0; i < x->n && r >= 0; i++)
		if (lr_restore_lacks_readonly(x->p, &x->mounts[i]))
			r = lr_mount_setattr(AT_FDCWD, x->mounts[i].point, 0, &attr);
	return r;
}

static int look(const void *arg)
{
	const struct visit *x = arg;
	int fd = openat(x->proc, "self/mountinfo", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || dup3(fd, x->ret, O_CLOEXEC) < 0)
		return -errno;
	lr_close(fd);
	return 0;
}

static int read_mounts(struct visit *x, struct lr_arena *a, struct lr_err *err)
{
	struct lr_checkpoint_mount *mounts;

	/* A number for the child. */
	LR_CLEANUP_FD int fd = lr_open("/dev/null", O_RDONLY | O_CLOEXEC);
	x->ret = fd;
	int r = fd < 0 ? -errno : lr_visit(x->ns, look, x);
	if (r < 0)
		return lr_fail(err, -r, "look at a mount namespace of what was restored");
	r = lr_checkpoint_mounts_at(fd, a, &mounts, &x->n, err);
	x->mounts = mounts;
	return r;
}

static bool needs_protection(const struct visit *x)
{
	for (size_t i = 0; i < x->n; i++)
		if (lr_restore_lacks_readonly(x->p, &x->mounts[i]))
			return true;
	return false;
}

static int cannot_protect(int code, struct lr_err *err)
{
	lr_fail(err, code, "make the root read-only");
	if (code == EBUSY)
		lr_err_hint(err, "a process has a file open there, to write to it");
	return lr_err_at(err, "root.readonly");
}

static int verify(struct visit *x, bool first, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();

	int r = read_mounts(x, a, err);
	if (r >= 0 && needs_protection(x)) {
		r = lr_visit(x->ns, protect, x);
		r = r < 0 ? cannot_protect(-r, err) : read_mounts(x, a, err);
	}
	if (r >= 0)
		r = lr_restore_verify(x->p, x->mounts, x->n, err);
	return r < 0 || !first ? r : lr_restore_verify_points(x->p, x->mounts, x->n, a, err);
}

/* ---- all of them ---------------------------------------------------------------------------- */

struct seen {
	ino_t *v;
	size_t n;
};

/* 1: it is new; 0; or a negative errno. */
static int is_new(struct seen *s, ino_t ns, struct lr_arena *a)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i] == ns)
			return 0;
	ino_t *v = lr_grow(a, s->v, s->n, sizeof(*v));
	if (!v)
		return -ENOMEM;
	s->v = v;
	v[s->n++] = ns;
	return 1;
}

static int verify_process(const struct lr_restore_plan *p, int proc, pid_t pid, struct seen *seen,
			  struct lr_arena *a, struct lr_err *err)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	LR_CLEANUP_FD int ns = lr_open(path, O_RDONLY | O_CLOEXEC);
	int r = ns < 0 || fstat(ns, &st) < 0 ? -errno : is_new(seen, st.st_ino, a);
	/* One that has ended, and is to be waited for, has none. */
	if (r == -ENOENT && lr_proc_dies(pid))
		return 0;
	if (r < 0)
		return lr_fail(err, -r, "look at %s", path);
	const bool first = seen->n == 1;
	return r ? verify(&(struct visit){.ns = ns, .proc = proc, .p = p}, first, err) : 0;
}

int lr_restore_verify_all(const struct lr_restore_plan *p, pid_t pid, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	LR_CLEANUP_FD int proc = lr_open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct pids all = {0};
	struct seen seen = {0};

	int r = proc < 0 ? lr_fail(err, errno, "open /proc") : list_processes(pid, &all, a, err);
	for (size_t i = 0; i < all.n && r >= 0; i++)
		r = verify_process(p, proc, all.v[i], &seen, a, err);
	return r;
}
