/* SPDX-License-Identifier: Apache-2.0 */
/* sys: programs of the system's: what they print, how they end, what they inherit, and
 * what their callers may have left behind. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/sys/tool.h"
#include "tests/unit/test.h"

static char said[LR_TOOL_SAID];

static int sh(const char *script, int keep)
{
	const char *const argv[] = {"sh", "-c", script, NULL};

	return lr_tool_run(argv, keep, said);
}

TEST(its_status_and_the_first_line_of_what_it_prints)
{
	CHECK_INT(sh("exit 0", LR_NOFD), 0);
	CHECK_STR(said, "");
	CHECK_INT(sh("echo one >&2; echo two; exit 7", LR_NOFD), 7);
	CHECK_STR(said, "one");
	CHECK_INT(sh("kill -KILL $$", LR_NOFD), 128 + 9);
}

TEST(it_may_print_more_than_anybody_reads)
{
	CHECK_INT(sh("i=0; while [ $i -lt 20000 ]; do printf 0123456789; i=$((i+1)); done; exit 3",
		     LR_NOFD),
		  3);
	CHECK_INT(strlen(said), LR_TOOL_SAID - 1);
	CHECK(strncmp(said, "0123456789012", 13) == 0);
}

TEST(a_program_that_is_not_there)
{
	const char *const argv[] = {"lr-no-such-program", NULL};

	strcpy(said, "left over");
	CHECK_INT(lr_tool_run(argv, LR_NOFD, said), -ENOENT);
	CHECK_STR(said, "");
}

TEST(neither_the_environment_nor_path_reaches_it)
{
	const char *const argv[] = {"env", NULL};

	setenv("LR_TEST_TOOL", "seen", 1);
	CHECK_INT(lr_tool_run(argv, LR_NOFD, said), 0);
	CHECK_STR(said, "");
	/* A program of that name that PATH finds is not the system's. */
	setenv("PATH", "/no/such/place", 1);
	CHECK_INT(lr_tool_run(argv, LR_NOFD, said), 0);
}

TEST(it_keeps_one_descriptor_open_and_no_other)
{
	FILE *file = tmpfile();
	char script[96];

	REQUIRE(file);
	int keep = fcntl(fileno(file), F_DUPFD_CLOEXEC, 20);
	int other = fcntl(fileno(file), F_DUPFD_CLOEXEC, 20);
	snprintf(script, sizeof(script), "[ -e /proc/self/fd/%d ] && [ ! -e /proc/self/fd/%d ]",
		 keep, other);
	CHECK_INT(sh(script, keep), 0);
	CHECK_INT(sh(script, LR_NOFD), 1);
	/* Ours is closed by execve as before. */
	CHECK_INT(fcntl(keep, F_GETFD), FD_CLOEXEC);
	close(keep);
	close(other);
	fclose(file);
}

static const char *const no[] = {"false", NULL};

/* The kernel would reap it, and nobody would know how it ended. */
TEST(a_caller_that_ignores_its_children)
{
	char line[LR_TOOL_SAID];
	struct sigaction now, waits_for_none = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT};

	signal(SIGCHLD, SIG_IGN);
	CHECK_INT(lr_tool_run(no, -1, line), 1);
	CHECK(sigaction(SIGCHLD, &waits_for_none, &now) == 0 && now.sa_handler == SIG_IGN);
	CHECK_INT(lr_tool_run(no, -1, line), 1);
	CHECK(sigaction(SIGCHLD, NULL, &now) == 0 && now.sa_flags & SA_NOCLDWAIT);
	signal(SIGCHLD, SIG_DFL);
}

static void *run_twenty(void *failed)
{
	char line[LR_TOOL_SAID];

	for (int i = 0; i < 20; i++)
		*(int *)failed += lr_tool_run(no, -1, line) != 1;
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
	char line[LR_TOOL_SAID];
	sigset_t all, old;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	CHECK_INT(lr_tool_run((const char *const[]){"grep", "SigBlk", "/proc/self/status", NULL},
			      -1, line),
		  0);
	sigprocmask(SIG_SETMASK, &old, NULL);
	CHECK_STR(line, "SigBlk:\t0000000000000000");
}
