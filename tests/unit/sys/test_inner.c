/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: numbers in pid namespaces. */
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/sys/inner.h"
#include "tests/unit/test.h"

/* A child that has done that, or NULL, and waits. */
static pid_t child(int flags, void (*does)(void))
{
	int ready[2];
	char byte;

	CHECK_INT(pipe(ready), 0);
	fflush(stdout);
	pid_t pid = (pid_t)syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
	CHECK(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (does)
			does();
		(void)!write(ready[1], "", 1);
		for (;;)
			pause();
	}
	close(ready[1]);
	CHECK_INT(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

TEST(in_the_same_namespace_it_is_the_same)
{
	unsigned depth;
	pid_t pid = child(0, NULL);

	CHECK_INT(lr_inner_pid(pid, &depth), pid);
	CHECK_INT(depth, 1);
	end(pid);
	CHECK_INT(lr_inner_pid(pid, &depth), 0);
	CHECK_INT(depth, 0);
}

TEST(the_first_of_a_namespace_is_1)
{
	unsigned depth;

	if (geteuid() != 0)
		SKIP("needs root");
	pid_t pid = child(CLONE_NEWPID, NULL);
	CHECK_INT(lr_inner_pid(pid, &depth), 1);
	CHECK_INT(depth, 2);
	end(pid);
}

static void lies(void)
{
	prctl(PR_SET_NAME, "NSpid:\t7\t8");
}

static void lies_by_lines(void)
{
	prctl(PR_SET_NAME, "x\nNSpid:\t7\t8\n");
}

TEST(a_name_is_not_taken_for_it)
{
	unsigned depth;
	pid_t one = child(0, lies), other = child(0, lies_by_lines);

	CHECK_INT(lr_inner_pid(one, &depth), one);
	CHECK_INT(depth, 1);
	CHECK_INT(lr_inner_pid(other, &depth), other);
	CHECK_INT(depth, 1);
	end(one);
	end(other);
}

static void has_many_groups(void)
{
	static gid_t groups[5000];

	for (size_t i = 0; i < 5000; i++)
		groups[i] = (gid_t)(100000 + i);
	if (setgroups(5000, groups) < 0)
		_exit(1);
}

TEST(behind_many_groups_it_is_found)
{
	if (geteuid() != 0)
		SKIP("needs root");
	pid_t pid = child(0, has_many_groups);
	CHECK_INT(lr_inner_pid(pid, NULL), pid);
	end(pid);
}

TEST(what_stands_behind_the_name)
{
	unsigned depth;

	CHECK_INT(lr_inner_of("\t12\t3\t1\nSeccomp:\t9\n", &depth), 1);
	CHECK_INT(depth, 3);
	CHECK_INT(lr_inner_of("\n", &depth), 0);
	CHECK_INT(depth, 0);
	CHECK_INT(lr_inner_of(NULL, &depth), 0);
	CHECK_INT(depth, 0);
}
