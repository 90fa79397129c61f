/* SPDX-License-Identifier: Apache-2.0 */
/* lean: namespaces that outlive their processes, and the children that make them. */
#define LR_ROOM "lean"
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/lean/internal.h"

int lr_lean_pin_file(const struct lr_lean_home *h, const char *name)
{
	return mknodat(h->fd, name, S_IFSOCK | 0600, 0) < 0 && errno != EEXIST ? -errno : 0;
}

int lr_lean_pin_open(const struct lr_lean_home *h, const char *name)
{
	/* O_NONBLOCK: a fifo that was put in its place must not block us. */
	int fd = openat(h->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	/* ENXIO: this is the file itself; the mount over it is gone, or in another mount
	 * namespace. */
	if (fd < 0 && errno == ENXIO)
		return -ENOENT;
	return fd < 0 ? -errno : fd;
}

static int pin_path(const struct lr_lean_home *h, const char *name, char path[PATH_MAX])
{
	return snprintf(path, PATH_MAX, "%s/%s", h->path, name) >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int lr_lean_pin_make(const struct lr_lean_home *h, const char *name, pid_t pid, const char *kind,
		     struct lr_err *err)
{
	char path[PATH_MAX], ns[64];

	int r = pin_path(h, name, path);
	snprintf(ns, sizeof(ns), "/proc/%d/ns/%s", pid, kind);
	if (r >= 0 && mount(ns, path, NULL, MS_BIND, NULL) < 0)
		r = -errno;
	return r < 0 ? lr_fail(err, -r, "keep a namespace in %s/%s", h->path, name) : 0;
}

int lr_lean_pin_remove(const struct lr_lean_home *h, const char *name)
{
	char path[PATH_MAX];

	int r = pin_path(h, name, path);
	if (r < 0)
		return r;
	int busy = lr_lean_unmount(path);
	if (unlinkat(h->fd, name, 0) < 0 && errno != ENOENT)
		return errno == EBUSY ? -busy : -errno;
	return 0;
}

static _Noreturn void child(const struct lr_lean_maker *m, int sock)
{
	struct lr_err why = {0};
	char byte;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (m->make(m->arg, &why) < 0 && !why.code)
		why.code = EIO;
	if (lr_write_full(sock, &why, sizeof(why)) != sizeof(why))
		_exit(1); /* the parent reads the end of the file */
	/* Waits until it is pinned, or the parent is gone (see above): a signal ends it. An end of
	 * file may never come, as a child that another thread has made meanwhile may hold the
	 * parent's end, too. */
	while (read(sock, &byte, 1) < 0)
		;
	_exit(0);
}

/* *pinning: what failed was the pinning. */
static int make_once(const struct lr_lean_maker *m, int cpu, bool *pinning, struct lr_err *err)
{
	int sv[2], status;
	struct lr_err why = {0};

	*pinning = false;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
		return lr_fail(err, errno, "make a socket");
	pid_t pid = fork();
	if (pid == 0) {
		cpu_set_t one;
		CPU_ZERO(&one);
		if (cpu >= 0)
			CPU_SET(cpu, &one);
		if (cpu >= 0 && sched_setaffinity(0, sizeof(one), &one) < 0)
			_exit(1);
		lr_close(sv[0]);
		child(m, sv[1]);
	}
	lr_close(sv[1]);
	if (pid < 0) {
		lr_close(sv[0]);
		return lr_fail(err, errno, "fork");
	}
	int r = 0;
	ssize_t n = lr_read_full(sv[0], &why, sizeof(why));
	if (n < 0) {
		r = lr_fail(err, (int)-n, "read what the process that prepares namespaces says");
	} else if (n != sizeof(why)) {
		r = lr_refuse(err, EPIPE, "the process that prepares namespaces died");
	} else if (why.code) {
		r = -why.code;
		if (err)
			*err = why;
	} else {
		r = m->pin(m->arg, pid, err);
		*pinning = r < 0;
	}
	/* Pinned or not, the child is no longer needed. A signal ends it, as a message could
	 * fail. */
	(void)kill(pid, SIGKILL);
	lr_close(sv[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return r;
}

/*
 * A mount namespace may be pinned only in one that is older, which the kernel tells by their ids.
 * Linux 6.18 hands these out to the CPUs in batches, so in a namespace that is not the host's first
 * one the child's may be lower: -EINVAL. On the CPU where ours was made it is not.
 */
int lr_lean_make(const struct lr_lean_maker *m, struct lr_err *err)
{
	cpu_set_t all;
	bool pinning;
	int r = make_once(m, -1, &pinning, err);

	if (r != -EINVAL || !pinning || sched_getaffinity(0, sizeof(all), &all) < 0)
		return r;
	for (int cpu = 0; cpu < CPU_SETSIZE && r == -EINVAL && pinning; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		lr_err_clear(err);
		r = make_once(m, cpu, &pinning, err);
	}
	return r;
}
