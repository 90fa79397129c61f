/* SPDX-License-Identifier: Apache-2.0 */
/* sys: programs of the system's, and what their callers may have left behind. */
#include "src/sys/tool.h"
#include "tests/unit/test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

static const char *const yes[] = {"true", NULL}, *const no[] = {"false", NULL};

TEST(the_status_is_that_of_the_program)
{
	char said[LR_TOOL_SAID];

	CHECK_INT(lr_tool_run(yes, -1, said), 0);
	CHECK_INT(lr_tool_run(no, -1, said), 1);
	CHECK_STR(said, "");
	CHECK_INT(lr_tool_run((const char *const[]){"no-such-tool", NULL}, -1, said), -ENOENT);
}

/* The kernel would reap it, and nobody would know how it ended. */
TEST(a_caller_that_ignores_its_children)
{
	char said[LR_TOOL_SAID];
	struct sigaction now, waits_for_none = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT};

	signal(SIGCHLD, SIG_IGN);
	CHECK_INT(lr_tool_run(no, -1, said), 1);
	CHECK(sigaction(SIGCHLD, &waits_for_none, &now) == 0 && now.sa_handler == SIG_IGN);
	CHECK_INT(lr_tool_run(no, -1, said), 1);
	CHECK(sigaction(SIGCHLD, NULL, &now) == 0 && now.sa_flags & SA_NOCLDWAIT);
	signal(SIGCHLD, SIG_DFL);
}

static void *run_twenty(void *failed)
{
	char said[LR_TOOL_SAID];

	for (int i = 0; i < 20; i++)
		*(int *)failed += lr_tool_run(no, -1, said) != 1;
	return NULL;
}

TEST(threads_of_a_caller_that_ignores_its_children)
{
	int failed[4] = {0};
	pthread_t threads[4];
	struct sigaction now;

	signal(SIGCHLD, SIG_IGN);
	for (int i = 0; i < 4; i++)
		REQUIRE(pthread_create(&threads[i], NULL, run_twenty, &failed[i]) == 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 4; i++)
		CHECK_INT(failed[i], 0);
	CHECK(sigaction(SIGCHLD, NULL, &now) == 0 && now.sa_handler == SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
}

TEST(no_signal_is_blocked_in_it)
{
	char said[LR_TOOL_SAID];
	sigset_t all, old;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	CHECK_INT(lr_tool_run((const char *const[]){"grep", "SigBlk", "/proc/self/status", NULL},
			      -1, said),
		  0);
	sigprocmask(SIG_SETMASK, &old, NULL);
	CHECK_STR(said, "SigBlk:\t0000000000000000");
}
