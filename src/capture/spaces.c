/* SPDX-License-Identifier: Apache-2.0 */
/* capture: what lives in the container's namespaces and not in a process, and is not carried. */
#define LR_ROOM "capture"
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/msg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/state.h"
#include "src/sys/detached.h"
#include "src/sys/syscalls.h"

static const char *const system_v[][2] = {
	{"msg", "message queues"}, {"sem", "sets of semaphores"}, {"shm", "shared memory"}};

_Static_assert(LR_ARRAY_SIZE(system_v) == LR_ARRAY_SIZE(((struct cap_before *)0)->system_v),
	       "a file of each");

void cap_names_close(struct cap_before *b)
{
	b->uts = lr_close(b->uts);
	b->own_uts = lr_close(b->own_uts);
}

void cap_spaces_close(struct cap_before *b)
{
	for (size_t i = 0; i < LR_ARRAY_SIZE(b->system_v); i++)
		b->system_v[i] = lr_close(b->system_v[i]);
	b->posix = lr_close(b->posix);
	b->ipc = lr_close(b->ipc);
	cap_names_close(b);
}

/* That there is no file does not tell: a /proc of processes alone (subset=pid) has none. */
static bool lacks_system_v(void)
{
	struct msginfo info;

	return syscall(SYS_msgctl, 0, IPC_INFO, &info) < 0 && errno == ENOSYS;
}

static int cannot_open(const char *path, int code, struct lr_err *err)
{
	if (code != ENOENT)
		return lr_fail(err, code, "open %s", path);
	/* ENOENT is tried again, as what is passing. */
	lr_refuse(err, ENOTSUP, "there is no %s", path);
	return lr_err_hint(err, "is /proc mounted with subset=pid (systemd: ProcSubset=)?");
}

/* What a file of /proc/sysvipc has is that of the namespace which opened it. */
static int open_system_v(struct cap_before *b, struct lr_err *err)
{
	char path[32];

	for (size_t i = 0; i < LR_ARRAY_SIZE(system_v); i++) {
		snprintf(path, sizeof(path), "/proc/sysvipc/%s", system_v[i][0]);
		b->system_v[i] = lr_open(path, O_RDONLY | O_CLOEXEC);
		if (b->system_v[i] < 0) {
			const int code = errno;
			if (code != ENOENT || !lacks_system_v())
				return cannot_open(path, code, err);
		}
	}
	return 0;
}

/* A mount of our own shows those of the namespace that makes it. */
static int open_posix(struct cap_before *b, struct lr_err *err)
{
	const int fd = lr_detached_open("mqueue", NULL, 0);

	/* A kernel without them. */
	if (fd == -ENODEV)
		return 0;
	if (fd >= 0)
		b->posix = fd;
	return fd < 0 ? lr_fail(err, -fd, "look for POSIX message queues") : 0;
}

static int open_queues(struct cap *c, struct lr_err *err)
{
	cap_spaces_close(c->before);
	c->before->ipc = lr_open("/proc/thread-self/ns/ipc", O_RDONLY | O_CLOEXEC);
	if (c->before->ipc < 0)
		return lr_fail(err, errno, "look for message queues");
	int r = open_system_v(c->before, err);
	return r < 0 ? r : open_posix(c->before, err);
}

/* The first process, with all others, may be in another one since. While the old one is open, no other has its
 * number. */
static bool are_of_another(const struct cap *c)
{
	struct stat was, is;
	char path[32];

	if (c->stayed)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/ns/ipc", c->opts->pid);
	return fstat(c->before->ipc, &was) < 0 || stat(path, &is) < 0 || was.st_ino != is.st_ino;
}

/* A headline, and a line each. */
static int refuse_system_v(struct cap *c, int fd, const char *what, struct lr_err *err)
{
	unsigned long lines = 0;
	char text[4096];
	ssize_t n;

	for (off_t at = 0; (n = pread(fd, text, sizeof(text), at)) > 0; at += n)
		for (ssize_t i = 0; i < n; i++)
			lines += text[i] == '\n';
	if (n < 0)
		return lr_fail(err, errno, "look for %s of System V", what);
	if (lines > 1)
		cap_refuse(c, c->p, "%s of System V: %lu", what, lines - 1);
	return 0;
}

static int refuse_posix(struct cap *c, int at, struct lr_err *err)
{
	LR_CLEANUP_FD int fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct lr_dir d;

	if (fd < 0)
		return lr_fail(err, errno, "look for POSIX message queues");
	lr_dir_begin(&d, fd);
	for (const struct lr_dirent *e; (e = lr_dir_next(&d));)
		if (e->name[0] != '.')
			cap_refuse(c, c->p, "a POSIX message queue (/%s)", e->name);
	return errno ? lr_fail(err, errno, "look for POSIX message queues") : 0;
}

/* By what was opened in their namespace, without going there again. */
static int look_at_queues(struct cap *c, struct lr_err *err)
{
	const struct cap_before *b = c->before;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < LR_ARRAY_SIZE(system_v); i++)
		if (b->system_v[i] >= 0)
			r = refuse_system_v(c, b->system_v[i], system_v[i][1], err);
	return r < 0 || b->posix < 0 ? r : refuse_posix(c, b->posix, err);
}

static int look_at_names(struct cap *c, struct lr_err *err)
{
	const struct lr_capture *o = c->opts;
	struct utsname uts;

	if (uname(&uts) < 0)
		return lr_fail(err, errno, "read the host name");
	if (o->hostname && !lr_streq(o->hostname, uts.nodename))
		cap_refuse(c, c->p, "a host name that it changed (%s)", uts.nodename);
	if (o->domainname && !lr_streq(o->domainname, uts.domainname))
		cap_refuse(c, c->p, "a domain name that it changed (%s)", uts.domainname);
	return 0;
}

static int open_space(const char *whose, const char *name)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%s/ns/%s", whose, name);
	return lr_open(path, O_RDONLY | O_CLOEXEC);
}

/* *there: the first process's; *back: ours. */
static int open_spaces(const struct cap *c, const char *name, int *there, int *back,
		       struct lr_err *err)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", c->opts->pid);
	*back = open_space("thread-self", name);
	*there = *back < 0 ? LR_NOFD : open_space(pid, name);
	return *there < 0 ? lr_fail(err, errno, "look at the %s namespace of process %s", name, pid)
			  : 0;
}

/* Our own namespace is that of the container for as long as `look` takes. */
static int visit(struct cap *c, const char *name, int there, int back,
		 int (*look)(struct cap *c, struct lr_err *err), struct lr_err *err)
{
	int r = lr_setns(there, 0);

	if (r < 0)
		return lr_fail(err, -r, "go to the %s namespace of process %d", name, c->opts->pid);
	r = look(c, err);
	/* What follows a failure looks at no namespace of these types. */
	int home = lr_setns(back, 0);
	return home < 0 ? lr_fail(err, -home, "return to our own %s namespace", name) : r;
}

static int visit_queues(struct cap *c, struct lr_err *err)
{
	LR_CLEANUP_FD int there = LR_NOFD, back = LR_NOFD;
	int r = open_spaces(c, "ipc", &there, &back, err);

	return r < 0 ? r : visit(c, "ipc", there, back, open_queues, err);
}

static int visit_names(struct cap *c, struct lr_err *err)
{
	struct cap_before *b = c->before;
	int r = 0;

	if (!c->stayed || b->uts < 0) {
		cap_names_close(b);
		r = open_spaces(c, "uts", &b->uts, &b->own_uts, err);
	}
	return r < 0 ? r : visit(c, "uts", b->uts, b->own_uts, look_at_names, err);
}

int cap_spaces_refuse(struct cap *c, struct lr_err *err)
{
	const struct lr_capture *o = c->opts;
	const bool anew = o->own_ipc && (!c->holds || are_of_another(c));
	int r = anew ? visit_queues(c, err) : 0;

	if (r >= 0 && o->own_ipc)
		r = look_at_queues(c, err);
	if (r >= 0 && (o->hostname || o->domainname))
		r = visit_names(c, err);
	return r;
}
