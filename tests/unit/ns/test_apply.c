/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: namespaces are joined and made, and whoever only stepped in comes back. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/ns/ns.h"
#include "src/sys/syscalls.h"
#include "tests/unit/child.h"
#include "tests/unit/test.h"

static struct lr_err err;
static struct lr_ns_plan plan;
static struct lr_ns_fds fds;

/* Whose namespaces are joined: it has those of `flags` for itself, and sleeps. */
static pid_t others_with(uint64_t flags)
{
	struct clone_args args = {.flags = flags, .exit_signal = SIGCHLD};
	pid_t pid = lr_clone3(&args, sizeof(args));

	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

static const char *space(pid_t pid, const char *name)
{
	static char text[4][64];
	static unsigned at;
	char path[64], *ret = text[at++ % 4];

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, name);
	else
		snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	ssize_t n = readlink(path, ret, sizeof(text[0]) - 1);
	ret[n > 0 ? n : 0] = 0;
	return ret;
}

static bool is_same(const char *name, pid_t a, const char *other, pid_t b)
{
	return strcmp(space(a, name), space(b, other)) == 0;
}

static void join_of(pid_t pid, enum lr_ns_kind kind, const char *name)
{
	static char path[LR_NS_KINDS][64];

	snprintf(path[kind], sizeof(path[kind]), "/proc/%d/ns/%s", pid, name);
	plan.join[kind] = path[kind];
	plan.index[kind] = kind;
}

static unsigned descriptors(void)
{
	LR_CLEANUP_DIR DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (d && readdir(d))
		n++;
	return n;
}

static bool may_not(void)
{
	plan = (struct lr_ns_plan){0};
	err = (struct lr_err){0};
	return geteuid() != 0;
}

TEST(what_is_no_such_namespace_is_not_joined)
{
	const unsigned before = descriptors();

	may_not();
	join_of(getpid(), LR_NS_UTS, "uts");
	plan.join[LR_NS_NET] = "/nowhere/net";
	plan.index[LR_NS_NET] = 7;
	CHECK_INT(lr_ns_open(&plan, &fds, &err), -ENOENT);
	CHECK_HAS(err.msg, "open the network namespace /nowhere/net");
	CHECK_STR(err.path, "linux.namespaces[7].path");
	join_of(getpid(), LR_NS_NET, "ipc");
	CHECK_INT(lr_ns_open(&plan, &fds, &err), -EINVAL);
	CHECK_HAS(err.msg, "is not a network namespace");
	CHECK_INT(descriptors(), before);
}

static void step_body(void)
{
	pid_t pid = others_with(CLONE_NEWPID);
	const unsigned before = descriptors();

	CHECK(pid > 0);
	join_of(pid, LR_NS_PID, "pid");
	CHECK_INT(lr_ns_open(&plan, &fds, &err), 0);
	CHECK_INT(lr_ns_step_in(&plan, &fds, &err), 0);
	CHECK(is_same("pid_for_children", 0, "pid", pid));
	CHECK(!is_same("pid", 0, "pid", pid)); /* whoever steps in stays where it is */
	CHECK_INT(lr_ns_step_out(&plan, &fds, &err), 0);
	CHECK(is_same("pid_for_children", 0, "pid", 0));
	lr_ns_close(&fds);
	CHECK_INT(descriptors(), before);
	end(pid);
}

TEST(children_are_born_where_their_parent_stepped_in)
{
	if (may_not())
		SKIP("needs root");
	in_child(step_body);
}

static void time_body(void)
{
	struct timespec here, there;
	int pipefd[2];

	clock_gettime(CLOCK_MONOTONIC, &here);
	plan.create = CLONE_NEWTIME;
	plan.time_offsets = "monotonic 100000 0\n";
	CHECK_INT(lr_ns_open(&plan, &fds, &err), 0);
	CHECK_INT(lr_ns_step_in(&plan, &fds, &err), 0);
	CHECK(!is_same("time_for_children", 0, "time", 0));
	CHECK(pipe(pipefd) == 0);
	pid_t pid = fork();
	if (pid == 0) {
		clock_gettime(CLOCK_MONOTONIC, &there);
		_exit(write(pipefd[1], &there, sizeof(there)) != sizeof(there));
	}
	CHECK(read(pipefd[0], &there, sizeof(there)) == sizeof(there));
	CHECK(there.tv_sec - here.tv_sec >= 100000);
	waitpid(pid, NULL, 0);
	CHECK_INT(lr_ns_step_out(&plan, &fds, &err), 0);
	CHECK(is_same("time_for_children", 0, "time", 0));
	lr_ns_close(&fds);
}

TEST(a_time_namespace_has_its_offsets)
{
	if (may_not())
		SKIP("needs root");
	if (access("/proc/self/ns/time", F_OK) < 0)
		SKIP("no time namespaces");
	in_child(time_body);
}

static void rest_body(void)
{
	pid_t pid = others_with(CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWNS);

	CHECK(pid > 0);
	join_of(pid, LR_NS_UTS, "uts");
	join_of(pid, LR_NS_IPC, "ipc");
	join_of(pid, LR_NS_NET, "net");
	join_of(pid, LR_NS_MOUNT, "mnt");
	plan.create = CLONE_NEWCGROUP;
	CHECK_INT(lr_ns_open(&plan, &fds, &err), 0);
	CHECK_INT(lr_ns_step_in(&plan, &fds, &err), 0);
	CHECK(!is_same("uts", 0, "uts", pid)); /* that is left to the child */
	CHECK_INT(lr_ns_enter_rest(&plan, &fds, &err), 0);
	CHECK(is_same("uts", 0, "uts", pid) && is_same("ipc", 0, "ipc", pid) &&
	      is_same("net", 0, "net", pid) && is_same("mnt", 0, "mnt", pid));
	CHECK(!is_same("cgroup", 0, "cgroup", pid));
	lr_ns_close(&fds);
	end(pid);
}

TEST(the_child_joins_the_others)
{
	if (may_not())
		SKIP("needs root");
	in_child(rest_body);
}

static void gone_body(void)
{
	pid_t pid = others_with(CLONE_NEWUTS);

	join_of(pid, LR_NS_UTS, "uts");
	CHECK_INT(lr_ns_open(&plan, &fds, &err), 0);
	end(pid);
	/* What is open lasts. */
	CHECK_INT(lr_ns_enter_rest(&plan, &fds, &err), 0);
	lr_ns_close(&fds);
	CHECK_INT(lr_ns_open(&plan, &fds, &err), -ENOENT);
}

TEST(a_namespace_that_is_open_outlives_its_process)
{
	if (may_not())
		SKIP("needs root");
	in_child(gone_body);
}

static void maps_body(void)
{
	char path[40], text[64];
	pid_t pid = others_with(CLONE_NEWUSER);

	CHECK(pid > 0);
	plan.create = CLONE_NEWUSER;
	plan.uid_map = "0 1000 1\n";
	plan.gid_map = "5 2000 3\n";
	CHECK_INT(lr_ns_write_maps(&plan, pid, &err), 0);
	snprintf(path, sizeof(path), "/proc/%d/gid_map", pid);
	CHECK(lr_read_file_at(AT_FDCWD, path, text, sizeof(text)) > 0);
	CHECK_HAS(text, "2000");
	/* The kernel takes each of them once. */
	CHECK_INT(lr_ns_write_maps(&plan, pid, &err), -EPERM);
	CHECK_HAS(err.msg, "write the id mapping \"0 1000 1\" to uid_map");
	CHECK_STR(err.path, "linux.uidMappings");
	join_of(pid, LR_NS_USER, "user");
	CHECK_INT(lr_ns_open(&plan, &fds, &err), 0);
	CHECK_INT(lr_ns_join_user(&fds, &err), 0);
	CHECK(is_same("user", 0, "user", pid));
	CHECK(lr_ns_become_root(&err) < 0);
	CHECK_STR(err.hint, "linux.gidMappings must map container id 0");
	lr_ns_close(&fds);
	end(pid);
}

TEST(ids_are_mapped_and_whoever_joins_becomes_root_if_there_is_one)
{
	if (may_not())
		SKIP("needs root");
	in_child(maps_body);
}
