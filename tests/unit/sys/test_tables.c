/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/sys/tables.h"
#include "tests/unit/test.h"

/* Stays until it is killed; flags: CLONE_FILES, or none. */
static pid_t child(unsigned long flags)
{
	const pid_t pid = (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);

	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

TEST(a_table_that_is_shared_is_known)
{
	struct lr_tables all = {0};
	struct lr_table v[40];
	pid_t pids[40];
	unsigned added = 0;

	if (syscall(SYS_kcmp, getpid(), getpid(), 2, 0, 0) < 0)
		SKIP("no kcmp(2)");
	/* Every fourth one has a table of its own. */
	for (unsigned i = 0; i < 40; i++)
		pids[i] = child(i % 4 ? CLONE_FILES : 0);
	CHECK(lr_tables_add(&all, &v[0], pids[1]));
	for (unsigned i = 2; i < 40; i++) {
		const bool is = lr_tables_add(&all, &v[i], pids[i]);
		added += is;
		CHECK(is == (i % 4 == 0));
	}
	CHECK_INT(added, 9);
	for (unsigned i = 0; i < 40; i++)
		end(pids[i]);
}

TEST(who_has_ended_has_nobodys_table)
{
	struct lr_tables all = {0};
	struct lr_table v[3];
	const pid_t first = child(CLONE_FILES), second = child(CLONE_FILES);

	CHECK(lr_tables_add(&all, &v[0], first));
	end(first);
	/* kcmp(2) can't tell; nobody knows how much of it was seen. */
	CHECK(lr_tables_add(&all, &v[1], second));
	end(second);
}
