/* SPDX-License-Identifier: Apache-2.0 */
/* resume: the caller's side, until all processes are in place. */
#define LR_ROOM "resume"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/resume/blob.h"
#include "src/resume/resume.h"
#include "src/resume/resuming.h"
#include "src/sys/proc.h"

_Static_assert(BLOB_FAILED == LR_RESUME_FAILED, "what the restorer ends with");

/* What a process had by rights and limits that this container's config.json may not give it. */
static const struct {
	long nr;
	const char *hint;
} rights[] = {
	{SYS_mlock2, "it had locked memory: RLIMIT_MEMLOCK, or CAP_IPC_LOCK, has to allow it"},
	{SYS_mlockall, "it had locked memory: RLIMIT_MEMLOCK, or CAP_IPC_LOCK, has to allow it"},
	{SYS_sched_setattr, "it had a priority that takes CAP_SYS_NICE, RLIMIT_NICE or "
			    "RLIMIT_RTPRIO"},
	{SYS_chroot, "it had a root of its own, which takes CAP_SYS_CHROOT"},
};

static int explain(const struct lr_seed *s, const struct blob_report *b, const char *text,
		   struct lr_err *err)
{
	unsigned pid = b->index < lr_seed_count(s, LR_SEED_PROCESS)
			       ? lr_seed_process(s, b->index)->pid
			       : 0;
	int code = b->error ? (int)b->error : EPROTO;

	if (b->nr == BLOB_NO_CALL)
		return lr_refuse(err, code, "process %u: %s", pid, text);
	int r = lr_fail(err, code,
			"process %u: step %llu of thread %u, system call %d (0x%llx, 0x%llx)", pid,
			(unsigned long long)b->op, b->which, b->nr, (unsigned long long)b->a[0],
			(unsigned long long)b->a[1]);
	for (size_t i = 0; i < LR_ARRAY_SIZE(rights); i++)
		if (rights[i].nr == b->nr)
			return lr_err_hint(err, "%s", rights[i].hint);
	return r;
}

/* ---- who has ended --------------------------------------------------------------------------- */

/* A process is made by its parent before that one is in place. The others never learn of its end: they
 * wait for us, and hold the socket that we listen to. */
static int check_living(const struct lr_seed *s, pid_t root, const struct lr_resume_left *left,
			struct lr_err *err)
{
	const uint32_t n = lr_seed_count(s, LR_SEED_PROCESS);
	LR_CLEANUP_FREE bool *lives = calloc(n, sizeof(*lives));
	CLEANUP_LIST struct resume_list l = {0};

	if (!lives || resume_list_begin(&l, s, root, NULL) < 0 || resume_list_more(&l, NULL) < 0)
		return 0; /* the next time */
	for (size_t i = 0; i < l.n; i++)
		if (l.v[i].of_seed && !lr_proc_dies(l.v[i].pid))
			lives[l.v[i].index] = true;
	for (uint32_t i = 1; i < n; i++) {
		const struct lr_seed_process *p = lr_seed_process(s, i);
		if (lives[i] || left[i].size || p->flags & LR_SEED_ZOMBIE || !left[p->parent].size)
			continue;
		lr_refuse(err, ESRCH, "process %u ended before it was in place", p->pid);
		return lr_err_hint(err, "was it killed, as for want of memory? see dmesg");
	}
	return 0;
}

/* ---- all of them ----------------------------------------------------------------------------- */

#define LOOK_MS 200

/* 1: there is something to hear. */
static int listen_to(int report, struct lr_err *err)
{
	struct pollfd p = {.fd = report, .events = POLLIN};
	int r = poll(&p, 1, LOOK_MS);

	return r < 0 && errno != EINTR ? lr_fail(err, errno, "wait for the processes") : r > 0;
}

static int gather(const struct lr_seed *s, pid_t root, int report, uint32_t n,
		  struct lr_resume_left *left, struct lr_err *err)
{
	char bytes[sizeof(struct blob_report) + 512];
	struct blob_report b;

	for (uint32_t i = 0; i < n; i++) {
		unsigned missed = 0;
		int r;
		/* Twice: a look may fail, and who ended may have said why. */
		while ((r = listen_to(report, err)) == 0)
			if (check_living(s, root, left, err) < 0 && ++missed == 2)
				return -ESRCH;
		if (r < 0)
			return r;
		ssize_t got = recv(report, bytes, sizeof(bytes) - 1, 0);
		if (got < 0 && errno == EINTR) {
			i--;
			continue;
		}
		if (got < (ssize_t)sizeof(b))
			return lr_fail(err, got < 0 ? errno : ECHILD,
				       "a process ended before it was in place");
		bytes[got] = 0;
		memcpy(&b, bytes, sizeof(b));
		if (b.error || b.nr)
			return explain(s, &b, bytes + sizeof(b), err);
		if (b.index < lr_seed_count(s, LR_SEED_PROCESS))
			left[b.index] = (struct lr_resume_left){b.a[0], b.a[1]};
	}
	return 0;
}

int lr_resume_wait(const struct lr_seed *seed, pid_t root, int report, int (*ready)(void *arg),
		   void *arg, struct lr_resume_left *left, struct lr_err *err)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < lr_seed_count(seed, LR_SEED_PROCESS); i++)
		n += !(lr_seed_process(seed, i)->flags & LR_SEED_ZOMBIE);
	int r = gather(seed, root, report, n, left, err);
	if (r >= 0 && ready)
		r = ready(arg) < 0 ? lr_refuse(err, ECANCELED, "it was not to go on") : 0;
	/* One word for all: if we are killed here, either each of them goes, or none. It wakes one; the
	 * others wake as nothing will come after it. */
	if (r >= 0 && send(report, "g", 1, MSG_NOSIGNAL) != 1)
		r = lr_fail(err, errno, "let the processes go");
	if (r >= 0 && shutdown(report, SHUT_WR) < 0)
		r = lr_fail(err, errno, "let the processes go");
	return r;
}

void lr_resume_let_leave(int report)
{
	struct pollfd p = {.fd = report}; /* POLLHUP comes unasked */

	(void)poll(&p, 1, LOOK_MS);
}
