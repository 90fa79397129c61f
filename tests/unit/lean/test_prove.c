/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: looking into a network namespace leaves the one who asks where it is. */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/lean/prove.h"
#include "src/sys/syscalls.h"
#include "tests/unit/test.h"

static ino_t own_netns(void)
{
	struct stat st;

	return stat("/proc/thread-self/ns/net", &st) < 0 ? 0 : st.st_ino;
}

/* A new namespace, and what is to be seen in it. */
static int make_netns(char *print, size_t size)
{
	int own = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	if (own < 0 || unshare(CLONE_NEWNET) < 0)
		return -1;
	int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	if (lr_lean_net_print(print, size) < 0 || setns(own, CLONE_NEWNET) < 0)
		return -1;
	close(own);
	return fd;
}

TEST(a_namespace_is_new_until_something_was_sent)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	char print[LR_LEAN_PRINT_MAX];
	ino_t before = own_netns();

	if (geteuid() != 0)
		SKIP("needs root");
	int fd = make_netns(print, sizeof(print));
	REQUIRE(fd >= 0);
	CHECK(lr_lean_net_is_new(fd, print, a));
	CHECK(!lr_lean_net_is_new(fd, "another", a));
	CHECK(own_netns() == before);
	close(fd);
	CHECK(waitpid(-1, NULL, WNOHANG | __WALL) < 0);
}

/* Root of a user namespace enters what is its own, and could not come back to what is the
 * host's. */
static int look_from_a_user_namespace(void)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	int p[2];
	char byte;

	if (pipe(p) < 0 || unshare(CLONE_NEWUSER) < 0)
		return 77;
	pid_t pid = fork();
	if (pid == 0) {
		(void)!write(p[1], "", unshare(CLONE_NEWNET) == 0);
		close(p[1]);
		pause();
		_exit(0);
	}
	close(p[1]);
	bool made = read(p[0], &byte, 1) == 1;
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ino_t before = own_netns();
	bool new = fd >= 0 && lr_lean_net_is_new(fd, "none is like this", a);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return !made || fd < 0 ? 77 : new ? 2 : own_netns() != before ? 3 : 0;
}

TEST(who_could_not_return_does_not_go)
{
	int status;

	if (geteuid() != 0)
		SKIP("needs root");
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0)
		_exit(look_from_a_user_namespace());
	CHECK_INT(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		SKIP("no user namespaces here");
	CHECK_INT(status, 0);
}
