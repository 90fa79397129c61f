/* SPDX-License-Identifier: Apache-2.0 */
/* sys: identity of processes: pid plus start time, so that a recycled pid is never taken
 * for ours. */
#ifndef LR_SYS_PROC_H
#define LR_SYS_PROC_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/err.h"

/* Inodes of the namespaces that the kernel begins with, the same in all of them (its nsfs.h has them since 6.18). */
#define LR_PROC_FIRST_CGROUP_NS 0xEFFFFFFBU
#define LR_PROC_FIRST_PID_NS    0xEFFFFFFCU
#define LR_PROC_FIRST_USER_NS   0xEFFFFFFDU

struct lr_proc_stat {
	char state; /* 'R', 'S', 'Z', 'X', ... */
	pid_t ppid;
	bool executed;       /* a program, since it was born */
	uint64_t start_time; /* clock ticks since boot (field 22 of proc_pid_stat(5)) */
	uint32_t ignored;    /* signal n: bit n - 1; up to 31 (field 33) */
	uint32_t caught;     /* the same (field 34) */
	bool dies;           /* on its way out, or not waited for yet (flags, field 9) */
	int exit_signal;     /* that its parent gets at its end (field 38) */
	char name[16];       /* of what it executed last, if it has not changed it (field 2) */
};

/* 0, -ESRCH when there is no such process, or another -errno. */
int lr_proc_stat(pid_t pid, struct lr_proc_stat *ret) LR_MUST_CHECK;
int lr_proc_stat_self(struct lr_proc_stat *ret) LR_MUST_CHECK;
/* Whether it is on its way out, or gone. */
bool lr_proc_dies(pid_t pid);

/* A pidfd for exactly that process: -ESRCH if it is gone, a zombie, or the pid was recycled. */
int lr_proc_pidfd(pid_t pid, uint64_t start_time) LR_MUST_CHECK;

/*
 * A signal for exactly that process: -ESRCH as above. Without pidfds (before Linux 5.3, or under a
 * filter) it goes by number, right after a look at the start time.
 */
int lr_proc_signal(pid_t pid, uint64_t start_time, int sig) LR_MUST_CHECK;
/* The same for a process whose pidfd the caller has (or LR_NOFD), and whose pid cannot be
 * another's: a child that has not been waited for. */
int lr_proc_signal_own(pid_t pid, int pidfd, int sig) LR_MUST_CHECK;

/* True for what pidfd calls answer where there are none. */
static inline bool lr_proc_no_pidfd(int r)
{
	return r == -ENOSYS || r == -EPERM;
}

/*
 * _exit(2) for a process that may be under a container's filter. Where that refuses exit_group,
 * libc's _exit tries for ever.
 */
_Noreturn void lr_proc_end(int status);

/*
 * Around what has children and waits for them: where SIGCHLD is ignored, as some callers leave it,
 * the kernel reaps a child, and its status is lost. It is set back when the last thread has waited.
 */
bool lr_proc_waiting(void); /* true */
void lr_proc_waited(const bool *waiting);
#define LR_CLEANUP_WAITING __attribute__((cleanup(lr_proc_waited)))

/* 1 if that very process lives (a zombie does not), 0 if not, or -errno. */
int lr_proc_alive(pid_t pid, uint64_t start_time) LR_MUST_CHECK;

/* Whether mounts have changed since that /proc/PID/mountinfo was opened; also true of no descriptor. Closes it: while it is
 * open, it keeps the mounts of a container. */
bool lr_proc_mounts_changed(int *mountinfo);

#endif
