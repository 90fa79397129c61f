/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: the children of a thread. */
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "src/sys/children.h"
#include "tests/unit/child.h"
#include "tests/unit/test.h"

static pid_t sleeper(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

/* More than the text that is read at once. */
#define MANY 400

TEST(all_are_listed_however_many)
{
	pid_t born[MANY], child;
	size_t n = 0;

	fflush(stdout);
	for (size_t i = 0; i < MANY; i++)
		REQUIRE((born[i] = sleeper()) > 0);
	LR_CLEANUP_CHILDREN struct lr_children c;
	lr_children_open(&c, getpid(), getpid());
	while ((child = lr_children_next(&c)) > 0 && n < MANY) {
		CHECK_INT(child, born[n]);
		n++;
	}
	CHECK_INT(child, 0);
	CHECK_INT(n, MANY);
	/* It stays so. */
	CHECK_INT(lr_children_next(&c), 0);
	for (size_t i = 0; i < MANY; i++)
		end(born[i]);
}

TEST(one_that_has_none)
{
	LR_CLEANUP_CHILDREN struct lr_children c;

	fflush(stdout);
	pid_t pid = sleeper();
	lr_children_open(&c, pid, pid);
	CHECK_INT(lr_children_next(&c), 0);
	end(pid);
}

TEST(one_that_is_gone)
{
	LR_CLEANUP_CHILDREN struct lr_children c, opened;

	fflush(stdout);
	pid_t pid = sleeper();
	lr_children_open(&opened, pid, pid);
	end(pid);
	CHECK_INT(lr_children_next(&opened), 0);
	lr_children_open(&c, pid, pid);
	CHECK_INT(lr_children_next(&c), -ENOENT);
	CHECK_INT(lr_children_next(&c), -ENOENT);
}
