/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: see keeper.h. The keeper's own code makes system calls only: it may be born of a process
 * with threads, whose locks nobody would ever open again. */
#define LR_ROOM "forkd"
#include "src/forkd/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/forkd/forkd.h"
#include "src/forkd/given.h"
#include "src/forkd/handover.h"
#include "src/sys/children.h"
#include "src/sys/syscalls.h"

struct slot {
	atomic_int pid; /* 0: nobody; written last, taken away first */
	atomic_int pidfd, cgroup;
};

static struct slot *slots; /* shared by daemon and keeper */
static int daemon_fd = LR_NOFD, keeper_fd = LR_NOFD;
static atomic_int keeper; /* 0: none */

/* ---- to end children ---------------------------------------------------------------------- */

/* The children of one thread, as the kernel lists them; how many. */
static int children_of(pid_t pid, pid_t *v, int most)
{
	LR_CLEANUP_CHILDREN struct lr_children c;
	pid_t child;
	int n = 0;

	lr_children_open(&c, pid, pid);
	while (n < most && (child = lr_children_next(&c)) > 0)
		v[n++] = child;
	return n;
}

/* Deeper ones first: whose parent ends belongs to somebody else then. */
static void end_descendants(pid_t pid, int depth)
{
	pid_t v[256];
	int n = depth ? children_of(pid, v, 256) : 0;

	for (int i = 0; i < n; i++) {
		int fd = lr_pidfd_open(v[i], 0);
		if (fd < 0)
			continue;
		lr_pidfd_send_signal(fd, SIGSTOP);
		end_descendants(v[i], depth - 1);
		lr_pidfd_send_signal(fd, SIGKILL);
		close(fd);
	}
}

static bool has_ended(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

void keeper_end(pid_t pid, int pidfd, int cgroup)
{
	if (cgroup >= 0) {
		int fd = openat(cgroup, "cgroup.kill", O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
		if (fd >= 0) {
			(void)!write(fd, "1", 1);
			close(fd);
		}
	}
	if (has_ended(pidfd)) /* the number may be another's */
		return;
	lr_pidfd_send_signal(pidfd, SIGSTOP);
	end_descendants(pid, 16);
	lr_pidfd_send_signal(pidfd, SIGKILL);
}

int keeper_is_over(int uffd)
{
	/* Never changes private anonymous memory, but looks for the memory first. */
	struct uffdio_continue c = {.range = {.start = 1 << 30, .len = 4096}};

	return ioctl(uffd, UFFDIO_CONTINUE, &c) < 0 && errno == ESRCH;
}

/* ---- the keeper --------------------------------------------------------------------------- */

static bool is_needed(int fd)
{
	bool r = handover_needs(fd);

	for (size_t i = 0; i < KEEPER_SLOTS; i++)
		r = r || (slots[i].pid && (slots[i].pidfd == fd || slots[i].cgroup == fd));
	return r;
}

/* Closes userfaultfds whose memory is gone, and what is neither one, nor needed to end who has one, nor
 * for the next daemon. How many are left. */
static int sweep(void)
{
	int left = 0;

	for (int fd = 3; fd < KEEPER_FDS; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			continue;
		/* without a look, nothing is closed */
		if (given_is_uffd(fd) != 0 && !keeper_is_over(fd))
			left++;
		else if (!is_needed(fd))
			close(fd);
	}
	return left;
}

static void end_all(void)
{
	for (size_t i = 0; i < KEEPER_SLOTS; i++) {
		pid_t pid = slots[i].pid;
		if (pid)
			keeper_end(pid, slots[i].pidfd, slots[i].cgroup);
	}
}

/* Descendants that had another parent in that instant are found in a later round, or wait for ever
 * for the pages that they miss. */
static void take_over(void)
{
	const int64_t since = lr_now_ms();

	end_all();
	int left = sweep(); /* the next daemon wants our addresses */
	bool waits = handover_waits(since);
	while (left > 0 || waits) {
		handover_give(left > 0 ? 20 : 200);
		if (left > 0) {
			end_all();
			left = sweep();
		}
		waits = handover_waits(since);
		if (!waits)
			handover_drop();
	}
	handover_drop();
	_exit(0);
}

static _Noreturn void keep(void)
{
	struct pollfd p = {.fd = daemon_fd, .events = POLLIN};
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct rlimit files;

	prctl(PR_SET_NAME, "lean-keeper");
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur =
			files.rlim_max; /* more than the daemon uses: to find whom to end */
		setrlimit(RLIMIT_NOFILE, &files);
	}
	for (int sig = 1; sig < 32; sig++) /* who stops a service asks all of its processes */
		if (sig != SIGCHLD)
			sigaction(sig, &ignore, NULL);
	while (poll(&p, 1, -1) != 1)
		;
	take_over();
	_exit(0);
}

/* ---- the daemon's side -------------------------------------------------------------------- */

int keeper_again(struct lr_err *err)
{
	int fd = LR_NOFD;
	struct clone_args args = {.flags = CLONE_FILES | CLONE_PIDFD,
				  .exit_signal = SIGCHLD,
				  .pidfd = (uint64_t)(uintptr_t)&fd};

	if (keeper > 0) {
		waitpid(keeper, NULL, WNOHANG);
		keeper = 0;
		keeper_fd = lr_close(keeper_fd);
	}
	pid_t pid = lr_clone3(&args, sizeof(args));
	if (pid < 0)
		return lr_fail(err, -pid, "start the keeper");
	if (pid == 0)
		keep();
	keeper = pid;
	keeper_fd = fd;
	forkd_counts.keepers++;
	return 0;
}

int keeper_begin(struct lr_err *err)
{
	void *at = mmap(NULL, KEEPER_SLOTS * sizeof(struct slot), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return lr_fail(err, errno, "share memory with the keeper");
	slots = at;
	daemon_fd = lr_pidfd_open(getpid(), 0);
	if (daemon_fd < 0)
		return lr_fail(err, -daemon_fd, "open a pidfd of the daemon");
	return keeper_again(err);
}

int keeper_pidfd(void)
{
	return keeper_fd;
}

bool keeper_lives(void)
{
	siginfo_t info = {0};
	const pid_t pid = keeper;

	return pid > 0 && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       !info.si_pid;
}

int keeper_add(pid_t pid, int pidfd, int cgroup)
{
	for (int i = 0; i < KEEPER_SLOTS; i++) {
		int none = 0;
		/* -1: taken, and not to be looked at yet */
		if (!atomic_compare_exchange_strong(&slots[i].pidfd, &none, -1))
			continue;
		slots[i].cgroup = cgroup;
		slots[i].pidfd = pidfd;
		slots[i].pid = pid;
		return i;
	}
	return -ENOSPC;
}

void keeper_drop(int slot)
{
	if (slot < 0)
		return;
	slots[slot].pid = 0;
	slots[slot].cgroup = LR_NOFD;
	slots[slot].pidfd = 0;
}
