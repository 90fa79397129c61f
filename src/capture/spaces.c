/* SPDX-License-Identifier: Apache-2.0 */
/* capture: what lives in the container's namespaces and not in a process, and is not carried. */
#define LR_ROOM "capture"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/state.h"
#include "src/sys/syscalls.h"

/* What /proc/sysvipc has of the namespace that opens it: a headline, and a line each. */
static int refuse_system_v(struct cap *c, struct lr_err *err)
{
	static const char *const kinds[][2] = {
		{"msg", "message queues"}, {"sem", "sets of semaphores"}, {"shm", "shared memory"}};
	char path[32], *text;
	size_t size;

	for (size_t i = 0; i < LR_ARRAY_SIZE(kinds); i++) {
		unsigned long lines = 0;
		snprintf(path, sizeof(path), "/proc/sysvipc/%s", kinds[i][0]);
		/* A kernel without them has no such file. */
		int r = cap_read_all(c->a, path, &text, &size, err);
		if (r == -ENOENT)
			continue;
		if (r < 0)
			return r;
		for (const char *at = text; (at = strchr(at, '\n')); at++)
			lines++;
		if (lines > 1)
			cap_refuse(c, c->p, "%s of System V: %lu", kinds[i][1], lines - 1);
	}
	return 0;
}

/* A mount of our own shows those of the namespace that makes it. */
static int refuse_posix(struct cap *c, struct lr_err *err)
{
	LR_CLEANUP_FD int fs = lr_fsopen("mqueue", FSOPEN_CLOEXEC);
	int r = fs < 0 ? fs : lr_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
	LR_CLEANUP_FD int at = r < 0 ? r : lr_fsmount(fs, FSMOUNT_CLOEXEC, 0);

	/* A kernel without them. */
	if (fs == -ENODEV)
		return 0;
	LR_CLEANUP_DIR DIR *d = at < 0 ? NULL : lr_opendir_at(at, ".");
	if (!d)
		return lr_fail(err, at < 0 ? -at : errno, "look for POSIX message queues");
	for (struct dirent *e; errno = 0, (e = readdir(d));)
		if (e->d_name[0] != '.')
			cap_refuse(c, c->p, "a POSIX message queue (/%s)", e->d_name);
	return errno ? lr_fail(err, errno, "look for POSIX message queues") : 0;
}

static int look_at_ipc(struct cap *c, struct lr_err *err)
{
	int r = refuse_system_v(c, err);

	return r < 0 ? r : refuse_posix(c, err);
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

/* Our own namespace is that of the container for as long as `look` takes. */
static int visit(struct cap *c, const char *name, int type,
		 int (*look)(struct cap *c, struct lr_err *err), struct lr_err *err)
{
	char own_path[40], path[40];

	snprintf(own_path, sizeof(own_path), "/proc/thread-self/ns/%s", name);
	snprintf(path, sizeof(path), "/proc/%d/ns/%s", c->opts->pid, name);
	LR_CLEANUP_FD int back = lr_open(own_path, O_RDONLY | O_CLOEXEC);
	LR_CLEANUP_FD int there = lr_open(path, O_RDONLY | O_CLOEXEC);
	int r = back < 0 || there < 0 ? -errno : lr_setns(there, type);
	if (r < 0)
		return lr_fail(err, -r, "look into %s", path);
	r = look(c, err);
	/* What follows a failure looks at no namespace of these types. */
	int home = lr_setns(back, type);
	return home < 0 ? lr_fail(err, -home, "return to our own %s namespace", name) : r;
}

int cap_spaces_refuse(struct cap *c, struct lr_err *err)
{
	const struct lr_capture *o = c->opts;
	int r = o->own_ipc ? visit(c, "ipc", CLONE_NEWIPC, look_at_ipc, err) : 0;

	if (r >= 0 && (o->hostname || o->domainname))
		r = visit(c, "uts", CLONE_NEWUTS, look_at_names, err);
	return r;
}
