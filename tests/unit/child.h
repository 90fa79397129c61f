/* SPDX-License-Identifier: Apache-2.0 */
/* For tests that can't undo what they do to their own process. */
#ifndef LR_TEST_CHILD_H
#define LR_TEST_CHILD_H

#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/test.h"

/* What fails there fails the test. */
static void in_child(void (*body)(void))
{
	int st = -1;

	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		body();
		fflush(stdout);
		_exit(lr_failures ? 1 : 0);
	}
	CHECK(pid > 0 && waitpid(pid, &st, 0) == pid);
	CHECK_INT(st, 0);
}

#endif
