/* SPDX-License-Identifier: Apache-2.0 */
/* systemd: the holder of a scope: what it keeps, what it is deaf to, and when it ends. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/systemd/systemd.h"
#include "tests/unit/test.h"

static int descriptors_of(pid_t pid)
{
	char path[64];
	int n = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	LR_CLEANUP_DIR DIR *d = opendir(path);
	while (d && readdir(d))
		n++;
	return n - 2; /* "." and ".." */
}

TEST(it_keeps_nothing_of_its_caller_s_hears_no_terminal_and_ends_with_the_last_copy)
{
	struct lr_err err = {0};
	pid_t holder;
	int hold, n = -1;

	/* One below the holder's own, as 0, and one above it. */
	LR_CLEANUP_FD int above = fcntl(STDOUT_FILENO, F_DUPFD, 200);
	REQUIRE(above >= 200);
	REQUIRE(lr_systemd_hold(&holder, &hold, &err) == 0);
	for (int i = 0; i < 500 && n != 1; i++) {
		n = descriptors_of(holder);
		usleep(10000);
	}
	CHECK_INT(n, 1);
	CHECK_INT(kill(holder, SIGINT), 0);
	CHECK_INT(kill(holder, SIGTERM), 0);
	usleep(50000);
	CHECK_INT(waitpid(holder, NULL, WNOHANG), 0);
	const pid_t was = holder;
	int copy = dup(hold);
	close(hold);
	CHECK_INT(waitpid(holder, NULL, WNOHANG), 0);
	close(copy);
	lr_systemd_release(&holder);
	CHECK_INT(holder, 0);
	CHECK_INT(waitpid(was, NULL, WNOHANG), -1); /* reaped */
	lr_systemd_release(&holder);                /* may be called twice */
}
