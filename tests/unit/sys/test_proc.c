/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: identity of processes. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/sys/proc.h"
#include "src/sys/syscalls.h"
#include "tests/unit/child.h"
#include "tests/unit/test.h"

static pid_t sleeper(void)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

/* What tells a child that executed something from one that died before. */
TEST(whether_it_has_executed_anything)
{
	struct lr_proc_stat st;
	int p[2];

	REQUIRE(pipe2(p, O_CLOEXEC) == 0);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		char c;
		if (read(p[0], &c, 1) < 0)
			_exit(1);
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	CHECK_INT(lr_proc_stat(pid, &st), 0);
	CHECK(!st.executed);
	CHECK(!st.dies);
	REQUIRE(write(p[1], "", 1) == 1);
	siginfo_t info;
	REQUIRE(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
	CHECK_INT(lr_proc_stat(pid, &st), 0);
	CHECK(st.executed);
	CHECK(st.dies);
	CHECK_STR(st.name, "true");
	waitpid(pid, NULL, 0);
	pid = sleeper();
	kill(pid, SIGKILL);
	REQUIRE(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
	CHECK_INT(lr_proc_stat(pid, &st), 0);
	CHECK(!st.executed);
	CHECK(st.dies);
	waitpid(pid, NULL, 0);
	close(p[0]);
	close(p[1]);
}

TEST(ourselves)
{
	struct lr_proc_stat st = {0};

	CHECK_INT(lr_proc_stat(getpid(), &st), 0);
	CHECK_INT(st.state, 'R');
	CHECK(st.start_time > 0);
	CHECK_INT(lr_proc_alive(getpid(), st.start_time), 1);
	CHECK_INT(lr_proc_alive(getpid(), st.start_time + 1), 0);
}

TEST(names_made_to_confuse)
{
	static const char *const names[] = {") Z 1 1", "((((",     "))))",
					    "a b c",   ") R 77 (", "\n) X 1"};
	struct lr_proc_stat before, st;

	CHECK_INT(lr_proc_stat(getpid(), &before), 0);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		prctl(PR_SET_NAME, names[i]);
		CHECK_INT(lr_proc_stat(getpid(), &st), 0);
		CHECK_INT(st.state, 'R');
		CHECK_INT(st.start_time, before.start_time);
	}
	prctl(PR_SET_NAME, "test");
}

TEST(start_times_tell_processes_apart)
{
	struct lr_proc_stat a, b;
	pid_t first = sleeper();

	usleep(30000); /* more than a clock tick */
	pid_t second = sleeper();
	CHECK_INT(lr_proc_stat(first, &a), 0);
	CHECK_INT(lr_proc_stat(second, &b), 0);
	CHECK(b.start_time > a.start_time);
	CHECK_INT(lr_proc_pidfd(first, b.start_time), -ESRCH); /* as a recycled pid would look */
	end(first), end(second);
}

TEST(a_pidfd_is_of_that_process)
{
	struct lr_proc_stat st;
	pid_t pid = sleeper();

	REQUIRE(lr_proc_stat(pid, &st) == 0);
	int fd = lr_proc_pidfd(pid, st.start_time);
	REQUIRE(fd >= 0);
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	CHECK_INT(lr_pidfd_send_signal(fd, SIGKILL), 0);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	CHECK_INT(poll(&p, 1, 5000), 1);
	/* A zombie does not count as alive, nor is it signalled. */
	CHECK_INT(lr_proc_stat(pid, &st), 0);
	CHECK_INT(st.state, 'Z');
	CHECK_INT(lr_proc_alive(pid, st.start_time), 0);
	CHECK_INT(lr_proc_pidfd(pid, st.start_time), -ESRCH);
	CHECK(waitpid(pid, NULL, 0) == pid);
	CHECK_INT(lr_proc_stat(pid, &st), -ESRCH);
	CHECK_INT(lr_proc_alive(pid, st.start_time), 0);
	CHECK_INT(lr_proc_pidfd(pid, st.start_time), -ESRCH);
	close(fd);
}

TEST(pids_that_cannot_be)
{
	struct lr_proc_stat st;

	CHECK_INT(lr_proc_stat(0x7fffffff, &st), -ESRCH);
	CHECK_INT(lr_proc_alive(0x7fffffff, 1), 0);
	CHECK_INT(lr_proc_pidfd(0x7fffffff, 1), -ESRCH);
	CHECK(lr_proc_pidfd(0, 1) < 0);
	CHECK(lr_proc_pidfd(-1, 1) < 0);
}

TEST(mounts_that_have_changed)
{
	int none = LR_NOFD;

	CHECK(lr_proc_mounts_changed(&none));
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		SKIP("no mount namespace of its own");
	int info = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	CHECK(!lr_proc_mounts_changed(&info));
	CHECK_INT(info, LR_NOFD);
	info = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	CHECK_INT(mount("none", "/tmp", "tmpfs", 0, NULL), 0);
	CHECK(lr_proc_mounts_changed(&info));
	CHECK_INT(info, LR_NOFD);
	CHECK_INT(umount2("/tmp", MNT_DETACH), 0);
}
