/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resume: sessions and process groups. A group lives on in its members when its leader has ended: as
 * in a shell's pipeline whose first program is through. To begin such a one takes a process with its
 * id, for an instant.
 */
#define LR_ROOM "resume"
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/resume/resuming.h"
#include "src/sys/syscalls.h"

static bool has_process(const struct lr_seed *s, uint32_t pid)
{
	for (uint32_t i = 0; i < lr_seed_count(s, LR_SEED_PROCESS); i++)
		if (lr_seed_process(s, i)->pid == pid)
			return true;
	return false;
}

/* The first of the table that is in that group. */
static uint32_t first_of(const struct lr_seed *s, uint32_t group, bool living)
{
	for (uint32_t i = 0; i < lr_seed_count(s, LR_SEED_PROCESS); i++) {
		const struct lr_seed_process *p = lr_seed_process(s, i);
		if (p->pgid == group && !(living && p->flags & LR_SEED_ZOMBIE))
			return i;
	}
	return LR_SEED_NONE;
}

/* Until it is waited for, who has ended is in its group, and others may join that. */
static int begin_group(uint32_t group, struct lr_err *err)
{
	const pid_t want = (pid_t)group;
	struct clone_args c = {.set_tid = (uint64_t)(uintptr_t)&want, .set_tid_size = 1};
	siginfo_t info;

	pid_t pid = lr_clone3(&c, sizeof(c));
	if (pid < 0)
		return lr_fail(err, -pid, "begin process group %u", group);
	if (pid == 0)
		_exit(setpgid(0, 0) < 0);
	while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | __WALL) < 0 && errno == EINTR)
		;
	int r = setpgid(0, pid) < 0 ? lr_fail(err, errno, "join process group %u", group) : 0;
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	return r;
}

#define WAIT_MS 5000

/* Whoever begins it may not have come to that. */
static int join_group(const struct lr_seed_process *p, bool waits, struct lr_err *err)
{
	for (unsigned i = 0; setpgid(0, (pid_t)p->pgid) < 0; i++) {
		if (!waits || errno != EPERM || i == WAIT_MS)
			return lr_fail(err, errno, "put process %u into process group %u", p->pid,
				       p->pgid);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	return 0;
}

static int enter_group(const struct lr_resume *r, uint32_t index, bool waits, struct lr_err *err)
{
	const struct lr_seed_process *p = lr_seed_process(r->seed, index);

	if (!p->pgid || getpgid(0) == (pid_t)p->pgid)
		return 0;
	if (first_of(r->seed, p->pgid, false) == index && !has_process(r->seed, p->pgid))
		return begin_group(p->pgid, err);
	return join_group(p, waits, err);
}

/* A session of the outside is the caller's, and stays. */
int resume_enter_groups(const struct lr_resume *r, uint32_t index, struct lr_err *err)
{
	const struct lr_seed_process *p = lr_seed_process(r->seed, index);

	if (p->sid == p->pid && getsid(0) != (pid_t)p->pid && setsid() < 0)
		return lr_fail(err, errno, "begin the session of process %u", p->pid);
	if (p->sid && getsid(0) != (pid_t)p->sid)
		return lr_refuse(err, ENOTSUP,
				 "process %u is in session %u, and its parent is in another one",
				 p->pid, p->sid);
	return enter_group(r, index, true, err);
}

void resume_enter_groups_dead(const struct lr_resume *r, uint32_t index)
{
	const struct lr_seed_process *p = lr_seed_process(r->seed, index);

	if (p->sid == p->pid && getsid(0) != (pid_t)p->pid)
		(void)setsid();
	(void)enter_group(r, index, false, NULL);
}

bool resume_is_first_of(const struct lr_resume *r, uint32_t index, uint32_t group)
{
	return group && first_of(r->seed, group, true) == index;
}
