/* SPDX-License-Identifier: Apache-2.0 */
/* The time, and a command from before vfork until after wait4: what the timed loops are made of. */
#ifndef LEAN_BENCH_SPAWN_H
#define LEAN_BENCH_SPAWN_H

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static inline int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Status as exited: 0..255; killed: 256 + signal; -1: it could not be started or waited for. child: its pid meanwhile,
 * for who may kill it; NULL: nobody. */
static inline int spawn_to(char **argv, int null_fd, int out_fd, int err_fd, struct rusage *use,
			   volatile sig_atomic_t *child)
{
	extern char **environ;
	int status = 0;
	pid_t pid = vfork();

	if (pid == 0) {
		dup2(null_fd, 0);
		dup2(out_fd, 1);
		dup2(err_fd, 2);
		execve(argv[0], argv, environ);
		_exit(127);
	}
	if (pid < 0)
		return -1;
	if (child)
		*child = pid;
	while (wait4(pid, &status, 0, use) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

static inline int spawn(char **argv, int null_fd, int err_fd, struct rusage *use)
{
	return spawn_to(argv, null_fd, null_fd, err_fd, use, NULL);
}

#endif
