/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup: who is in a tree, and signals to all of them. */
#define LR_ROOM "cgroup"

#include "src/cgroup/internal.h"
#include "src/sys/proc.h"
#include "src/sys/syscalls.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define KILL_ROUNDS 20

/* ---- listing -------------------------------------------------------------------------------- */

struct visitor {
	lr_cgroup_visit *visit;
	void *arg;
};

static int visit_procs(int dirfd, void *arg)
{
	const struct visitor *v = arg;
	LR_CLEANUP_FD int fd = openat(dirfd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	char buf[4096];
	long pid = 0;
	ssize_t n;
	int r;

	if (fd < 0)
		return errno == ENOENT || errno == ENODEV ? 0 : -errno;
	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			if (buf[i] >= '0' && buf[i] <= '9') {
				pid = pid * 10 + (buf[i] - '0');
				continue;
			}
			/* 0: a process of a pid namespace that we cannot see into. */
			r = v->visit((pid_t)pid, v->arg);
			if (r)
				return r;
			pid = 0;
		}
	}
	/* In a threaded sub-cgroup the list is refused; its processes are in the domain's. ENODEV:
	 * removed meanwhile. */
	return n < 0 && errno != EOPNOTSUPP && errno != ENODEV ? -errno : 0;
}

int lr_cgroup_each_pid(const char *dir, lr_cgroup_visit *visit, void *arg)
{
	struct visitor v = {visit, arg};

	return lr_cgroup_each_dir(dir, visit_procs, &v);
}

static int stop_at_first(pid_t pid, void *arg)
{
	return 1;
}

int lr_cgroup_populated(const char *dir)
{
	char text[256];
	uint64_t n;

	if (lr_cgroup_read(dir, "cgroup.events", text, sizeof(text)) > 0 &&
	    lr_cgroup_flat_get(text, "populated", &n))
		return n != 0;
	return lr_cgroup_each_pid(dir, stop_at_first, NULL);
}

struct list {
	struct lr_arena *arena;
	pid_t *v;
	size_t n;
};

static int collect(pid_t pid, void *arg)
{
	struct list *l = arg;
	pid_t *v;

	if (pid <= 0)
		return 0;
	v = lr_grow(l->arena, l->v, l->n, sizeof(*v));
	if (!v)
		return -ENOMEM;
	l->v = v;
	v[l->n++] = pid;
	return 0;
}

static int by_number(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

int lr_cgroup_pids(const struct lr_cgroup_ref *ref, struct lr_arena *arena, pid_t **ret, size_t *n,
		   struct lr_err *err)
{
	struct list l = {.arena = arena};
	const char *dir = lr_cgroup_main_dir(ref);
	size_t k = 0;
	int r = lr_cgroup_ref_check(ref, err);

	if (r < 0)
		return r;
	if (!dir) {
		lr_refuse(err, EOPNOTSUPP, "the container has no cgroup to list processes from");
		return lr_err_hint(err,
				   "it was started without cgroups (rootless without delegation, "
				   "or --cgroup-manager=disabled)");
	}
	r = lr_cgroup_each_pid(dir, collect, &l);
	if (r < 0)
		return lr_fail(err, -r, "cannot list the processes of %s", dir);
	if (l.n)
		qsort(l.v, l.n, sizeof(*l.v), by_number);
	for (size_t i = 0; i < l.n; i++)
		if (k == 0 || l.v[k - 1] != l.v[i])
			l.v[k++] = l.v[i];
	*ret = l.v;
	*n = k;
	return 0;
}

/* ---- signals ------------------------------------------------------------------------------ */

struct hit {
	const struct lr_cgroup_ref *ref;
	int sig;
	size_t seen, sent;
	int r;
};

/* Still in the tree? A pid from the list may have been recycled by now; one held by a pidfd
 * cannot. */
static bool is_member(const struct lr_cgroup_ref *ref, pid_t pid)
{
	char file[32], text[2 * PATH_MAX];
	size_t len = strlen(ref->relative);

	snprintf(file, sizeof(file), "/proc/%d/cgroup", (int)pid);
	if (lr_read_file_at(AT_FDCWD, file, text, sizeof(text)) < 0)
		return true; /* no /proc to ask; if it is gone, the pidfd says so */
	for (char *p = text; (p = strstr(p, ref->relative)); p++)
		if (p[len] == '/' || p[len] == '\n')
			return true;
	return false;
}

static int hit_one(pid_t pid, void *arg)
{
	struct hit *h = arg;
	int fd, r;

	if (pid <= 0 || pid == getpid())
		return 0;
	h->seen++;
	fd = lr_pidfd_open(pid, 0);
	if (fd < 0 && !lr_proc_no_pidfd(fd))
		r = fd == -EINVAL ? -ESRCH : fd; /* EINVAL: not a thread group leader any more */
	else
		r = is_member(h->ref, pid) ? lr_proc_signal_own(pid, fd, h->sig) : -ESRCH;
	lr_close(fd);
	if (r == 0)
		h->sent++;
	else if (r != -ESRCH && h->r == 0)
		h->r = r;
	return 0;
}

static int hit_all(struct hit *h, const char *dir)
{
	int r;

	h->seen = h->sent = 0;
	h->r = 0;
	r = lr_cgroup_each_pid(dir, hit_one, h);
	return r < 0 ? r : h->r;
}

/* cgroup.kill (5.14) ends a whole tree at once, whatever it forks. */
static bool kill_v2(const struct lr_cgroup_ref *ref)
{
	int i = lr_cgroup_find_v2(ref);

	return i >= 0 && lr_cgroup_put(ref->v[i].path, "cgroup.kill", "1") == 0;
}

/* No freezer holds them still: until a round finds nobody new to kill. Those already hit
 * are dying. */
static int kill_rounds(struct hit *h, const char *dir)
{
	int r = hit_all(h, dir);

	for (int i = 1; i < KILL_ROUNDS && r == 0 && h->seen; i++) {
		lr_sleep_us(i < 10 ? 200U * (unsigned)i : 5000);
		r = hit_all(h, dir);
	}
	return r;
}

int lr_cgroup_signal_all(const struct lr_cgroup_ref *ref, int sig, struct lr_err *err)
{
	struct hit h = {.ref = ref, .sig = sig};
	const char *dir = lr_cgroup_main_dir(ref);
	int r = lr_cgroup_ref_check(ref, err), was;
	bool frozen = false;

	if (r < 0)
		return r;
	if (!dir)
		return lr_refuse(err, EOPNOTSUPP,
				 "the container has no cgroup whose processes could "
				 "be signalled");
	was = lr_cgroup_is_frozen(ref);
	if (sig == SIGKILL && kill_v2(ref)) {
		/* Hybrid: who has left the v2 tree is still in v1's. */
		r = ref->mode == LR_CGROUP_V2 ? 0 : hit_all(&h, dir);
		lr_cgroup_let_die(ref);
		if (was == 1 && lr_cgroup_freeze(ref, false, err) < 0)
			return -EIO;
		return r < 0 ? lr_fail(err, -r, "cannot kill the processes of %s", dir) : 0;
	}
	/* Held still, nobody is forked past the list. Not being able to is no reason to fail. */
	if (was == 0)
		frozen = lr_cgroup_freeze(ref, true, NULL) == 0;
	if (frozen || was == 1 || sig != SIGKILL)
		r = hit_all(&h, dir);
	else
		r = kill_rounds(&h, dir);
	if (sig == SIGKILL)
		lr_cgroup_let_die(ref);
	if (frozen || (was == 1 && sig == SIGKILL)) {
		int thaw = lr_cgroup_freeze(ref, false, err);
		if (thaw < 0)
			return thaw;
	}
	if (r < 0)
		return lr_fail(err, -r, "cannot signal the processes of %s", dir);
	lr_debug("cgroup: signal %d to %zu processes in %s", sig, h.sent, dir);
	return 0;
}
