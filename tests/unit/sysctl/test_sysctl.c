/* SPDX-License-Identifier: Apache-2.0 */
/* sysctl: which keys are allowed with which namespaces, and that writes land in ours only. */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/sys/procfs.h"
#include "src/sysctl/sysctl.h"

static char path_of[128];

static int plan_one(const char *key, unsigned own, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct oci_pair pair = {key, "1"};
	struct oci_map map = {&pair, 1};
	struct lr_sysctl_plan p;

	memset(err, 0, sizeof(*err));
	int r = lr_sysctl_plan(&map, own, a, &p, err);
	if (r == 0)
		snprintf(path_of, sizeof(path_of), "%s", p.v[0].path);
	return r;
}

TEST(each_key_needs_its_namespace)
{
	static const struct {
		const char *key;
		unsigned ns;
	} ok[] = {
		{"kernel.msgmax", LR_SYSCTL_IPC},
		{"kernel.msgmnb", LR_SYSCTL_IPC},
		{"kernel.msgmni", LR_SYSCTL_IPC},
		{"kernel.sem", LR_SYSCTL_IPC},
		{"kernel.shmall", LR_SYSCTL_IPC},
		{"kernel.shmmax", LR_SYSCTL_IPC},
		{"kernel.shmmni", LR_SYSCTL_IPC},
		{"kernel.shm_rmid_forced", LR_SYSCTL_IPC},
		{"fs.mqueue.msg_max", LR_SYSCTL_IPC},
		{"fs/mqueue/queues_max", LR_SYSCTL_IPC},
		{"net.ipv4.ip_forward", LR_SYSCTL_NET},
		{"net/core/somaxconn", LR_SYSCTL_NET},
		{"kernel.domainname", LR_SYSCTL_UTS},
		{"user.max_user_namespaces", LR_SYSCTL_USER},
	};
	struct lr_err err;

	for (size_t i = 0; i < sizeof(ok) / sizeof(*ok); i++) {
		CHECK_INT(plan_one(ok[i].key, ok[i].ns, &err), 0);
		CHECK_INT(plan_one(ok[i].key, ~ok[i].ns, &err), -EINVAL);
		CHECK_HAS(err.msg, "would change the host");
		CHECK_HAS(err.path, ok[i].key);
		CHECK_HAS(err.hint, "namespace");
	}
}

TEST(the_rest_is_refused)
{
	static const char *const bad[] = {
		"kernel.hostname",
		"kernel.pid_max",
		"vm.overcommit_memory",
		"fs.file-max",
		"kernel.msgmaxx",
		"fs.mqueue",
		"net",
		"kernel",
		"",
		"net..x",
		"net/../kernel/pid_max",
		"net.ipv4.",
		"net/ipv4/../../kernel/pid_max",
		".net.ipv4",
		"/net/ipv4",
		"net/./x",
		"networkX.a",
		"net.ipv4.conf.//.rp_filter/x./",
	};
	struct lr_err err;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		CHECK_INT(plan_one(bad[i], ~0u, &err), -EINVAL);
		CHECK(err.msg[0] && err.path[0]);
	}
	CHECK_INT(plan_one("kernel.hostname", ~0u, &err), -EINVAL);
	CHECK_HAS(err.hint, "\"hostname\"");
}

TEST(dots_and_slashes)
{
	struct lr_err err;

	CHECK_INT(plan_one("net.ipv4.conf.eth0/100.rp_filter", ~0u, &err), 0);
	CHECK_STR(path_of, "sys/net/ipv4/conf/eth0.100/rp_filter");
	CHECK_INT(plan_one("net/ipv4/conf/eth0.100/rp_filter", ~0u, &err), 0);
	CHECK_STR(path_of, "sys/net/ipv4/conf/eth0.100/rp_filter");
	CHECK_INT(plan_one("net.core.somaxconn", ~0u, &err), 0);
	CHECK_STR(path_of, "sys/net/core/somaxconn");
}

static int sets_and_fails(void)
{
	struct lr_sysctl_entry v[] = {
		{"net.ipv4.ip_unprivileged_port_start", "sys/net/ipv4/ip_unprivileged_port_start",
		 "77", 2},
		{"kernel.shmmni", "sys/kernel/shmmni", "123", 3},
		{"net.no.such", "sys/net/no/such", "1", 1},
	};
	struct lr_sysctl_plan p = {v, 2};
	struct lr_err err = {0};
	char text[32];

	if (unshare(CLONE_NEWNET | CLONE_NEWIPC))
		return 77;
	LR_CLEANUP_FD int proc = lr_procfs_open(&err);
	if (proc < 0)
		return 10;
	if (lr_sysctl_apply(&p, proc, &err))
		return 11;
	if (lr_read_file_at(proc, "sys/kernel/shmmni", text, sizeof(text)) < 0 || atoi(text) != 123)
		return 12;
	if (lr_read_file_at(AT_FDCWD,
			    "/proc/sys/net/ipv4/"
			    "ip_unprivileged_port_start",
			    text, sizeof(text)) < 0 ||
	    atoi(text) != 77)
		return 13;
	p.n = 3;
	if (lr_sysctl_apply(&p, proc, &err) != -ENOENT || !strstr(err.hint, "this kernel has no"))
		return 14;
	v[1].value = "nonsense";
	v[1].len = 8;
	if (lr_sysctl_apply(&p, proc, &err) != -EINVAL || !strstr(err.msg, "kernel.shmmni"))
		return 15;
	return 0;
}

TEST(writes_reach_our_own_namespaces)
{
	char before[32], after[32];
	int status = -1;

	CHECK(lr_read_file_at(AT_FDCWD, "/proc/sys/kernel/shmmni", before, sizeof(before)) > 0);
	pid_t pid = fork();
	if (pid == 0)
		_exit(sets_and_fails());
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		SKIP("needs root");
	CHECK(WIFEXITED(status));
	CHECK_INT(WEXITSTATUS(status), 0);
	CHECK(lr_read_file_at(AT_FDCWD, "/proc/sys/kernel/shmmni", after, sizeof(after)) > 0);
	CHECK_STR(after, before);
}
