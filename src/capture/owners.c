/* SPDX-License-Identifier: Apache-2.0 */
/* capture: who gets a signal when something happens to a descriptor: F_SETOWN, F_SETSIG, O_ASYNC. */
#define LR_ROOM "capture"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/files.h"
#include "src/capture/state.h"

/* Of fcntl(2), which libc has for _GNU_SOURCE alone, or not at all. */
#ifndef F_GETOWN_EX
#define F_GETOWN_EX 16
#endif
#ifndef F_GETSIG
#define F_GETSIG 11
#endif

/* struct f_owner_ex of the kernel; type + 1 is an lr_seed_owner. */
struct owner {
	int type;
	pid_t pid;
};

/* Regular files send no signals, nor do most descriptors that have no file. */
static bool may_signal(const struct cap_file *f, mode_t mode)
{
	return !(f->seed.flags & O_PATH) && (S_ISFIFO(mode) || S_ISSOCK(mode) || S_ISCHR(mode) ||
					     S_ISDIR(mode) || f->seed.kind == LR_SEED_INOTIFY);
}

void cap_owner_look(struct cap *c, const struct cap_process *p, int fd, mode_t mode,
		    struct cap_file *f)
{
	struct owner o = {0};

	if (!may_signal(f, mode))
		return;
	LR_CLEANUP_FD int ours = cap_borrow(p->pid, fd);
	const int sig = ours < 0 ? -1 : fcntl(ours, F_GETSIG);
	if (sig < 0 || fcntl(ours, F_GETOWN_EX, &o) < 0) {
		/* Closed or gone meanwhile: that is found out when all are held. */
		const int code = ours < 0 ? -ours : errno;
		if (p->threads[0].held || (code != EBADF && code != ESRCH))
			cap_refuse(c, p, "descriptor %d: who owns it is not told: %s", fd,
				   lr_strerror(code));
		return;
	}
	f->seed.signal = (uint32_t)sig;
	/* 0: nobody, or somebody who has ended. */
	if (!o.pid)
		return;
	if (S_ISDIR(mode)) {
		cap_refuse(c, p,
			   "descriptor %d: a directory with an owner, as F_NOTIFY makes it (%s)",
			   fd, f->path);
		return;
	}
	f->seed.owner_kind = (uint32_t)o.type + 1;
	f->owner = o.pid;
}

/* As its namespace knows it. */
static uint32_t inside(const struct cap *c, const struct cap_file *f)
{
	const struct cap_process *p = NULL;
	const struct cap_thread *t = NULL;

	if (f->seed.owner_kind == LR_SEED_OF_THREAD)
		t = cap_thread_of(c, f->owner);
	else if (f->seed.owner_kind == LR_SEED_OF_PROCESS)
		p = cap_process_of(c, f->owner);
	else
		p = cap_member_of(c, CAP_GROUP, (uint32_t)f->owner);
	if (t)
		return t->seed.tid;
	if (!p)
		return 0;
	return f->seed.owner_kind == LR_SEED_OF_PROCESS ? p->seed.pid : p->seed.pgid;
}

/* When all processes have been looked at, and before they run on: who does may change its group. */
void cap_owners_find(struct cap *c)
{
	for (size_t i = 0; i < c->n; i++)
		for (size_t k = 0; k < c->p[i].n_fds; k++) {
			struct cap_file *f = c->p[i].fds[k].file;
			if (!f->seed.owner_kind || f->seed.owner)
				continue;
			f->seed.owner = inside(c, f);
			if (f->seed.owner)
				continue;
			cap_refuse(c, &c->p[i],
				   "descriptor %u: its owner (F_SETOWN) is outside (%s)",
				   c->p[i].fds[k].number, f->path);
			f->seed.owner_kind = LR_SEED_NOBODY;
		}
}
