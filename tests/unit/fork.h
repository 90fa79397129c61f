/* SPDX-License-Identifier: Apache-2.0 */
/* For what changes the process it runs in. */
#ifndef LR_TEST_FORK_H
#define LR_TEST_FORK_H

#include <sys/wait.h>
#include <unistd.h>

/* The status that f returns in a child; -1: it was killed. */
static int in_child(int (*f)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(f());
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
