/* SPDX-License-Identifier: Apache-2.0 */
/* limits: plans refuse what the kernel would, and processes get what was asked for. */
#include "tests/unit/fork.h"
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/limits/limits.h"
#include "src/sys/procfs.h"

TEST(rlimits_plan)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct oci_rlimit v[] = {
		{"RLIMIT_NOFILE", 10, 20}, {"RLIMIT_CORE", 0, UINT64_MAX}, {"RLIMIT_NOFILE", 1, 1}};
	struct oci_rlimits l = {v, 2};
	struct lr_limits_rlimits p = {0};
	struct lr_err err = {0};

	CHECK_INT(lr_limits_rlimits_plan(&l, a, &p, &err), 0);
	CHECK_INT(p.n, 2);
	CHECK_INT(p.v[0].resource, RLIMIT_NOFILE);
	CHECK(p.v[1].hard == RLIM_INFINITY);
	l.n = 3;
	CHECK_INT(lr_limits_rlimits_plan(&l, a, &p, &err), -EINVAL);
	CHECK_STR(err.path, "process.rlimits[2].type");
	v[0].type = "NOFILE";
	CHECK_INT(lr_limits_rlimits_plan(&l, a, &p, &err), -EINVAL);
	CHECK_STR(err.path, "process.rlimits[0].type");
	v[0] = (struct oci_rlimit){"RLIMIT_CPU", 2, 1};
	CHECK_INT(lr_limits_rlimits_plan(&l, a, &p, &err), -EINVAL);
	CHECK_STR(err.path, "process.rlimits[0].soft");
}

static int sets_rlimits(void)
{
	struct lr_limits_rlimit v[] = {{RLIMIT_NOFILE, 100, 200}, {RLIMIT_CORE, 0, 0}};
	struct lr_limits_rlimits p = {v, 2};
	struct lr_err err = {0};
	struct rlimit now;

	if (lr_limits_rlimits_apply(&p, 0, &err) || getrlimit(RLIMIT_NOFILE, &now))
		return 10;
	if (now.rlim_cur != 100 || now.rlim_max != 200)
		return 11;
	/* Raising a hard limit again, without the capability. */
	if (setresuid(1, 1, 1))
		return 12;
	v[0].hard = 300;
	if (lr_limits_rlimits_apply(&p, 0, &err) != -EPERM)
		return 13;
	return !strstr(err.hint, "CAP_SYS_RESOURCE") || !strstr(err.hint, "200") ||
	       strcmp(err.path, "process.rlimits[0]") || !strstr(err.msg, "RLIMIT_NOFILE");
}

static int warnings;
static void sink(enum lr_level level, const char *line, void *arg)
{
	warnings += level == LR_WARN;
}

static int sets_oom(void)
{
	struct lr_err err = {0};
	int32_t adj = 500;
	char text[16];
	LR_CLEANUP_FD int proc = lr_procfs_open(&err);

	lr_log_set_sink(sink, NULL);
	if (proc < 0 || lr_limits_oom_apply(NULL, LR_NOFD, false, &err))
		return 10;
	if (lr_limits_oom_apply(&adj, proc, false, &err))
		return 11;
	if (lr_read_file_at(AT_FDCWD, "/proc/self/oom_score_adj", text, sizeof(text)) < 0 ||
	    atoi(text) != 500)
		return 12;
	/* Below the lowest score that a privileged writer set, it needs the capability. */
	if (setresuid(1, 1, 1) || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0))
		return 13;
	adj = -999;
	if (lr_limits_oom_apply(&adj, proc, false, &err) != -EACCES)
		return 14;
	if (!strstr(err.hint, "CAP_SYS_RESOURCE") || strcmp(err.path, "process.oomScoreAdj"))
		return 15;
	if (lr_limits_oom_apply(&adj, proc, true, &err) || warnings != 1)
		return 16;
	adj = 500;
	return lr_limits_oom_apply(&adj, proc, false, &err) ? 17 : 0;
}

TEST(oom_range)
{
	struct lr_err err = {0};
	int32_t adj = 1001;

	CHECK_INT(lr_limits_oom_check(NULL, &err), 0);
	CHECK_INT(lr_limits_oom_check(&adj, &err), -EINVAL);
	adj = -1001;
	CHECK_INT(lr_limits_oom_check(&adj, &err), -EINVAL);
	adj = -1000;
	CHECK_INT(lr_limits_oom_check(&adj, &err), 0);
}

TEST(scheduler_plan)
{
	struct lr_limits_sched p;
	struct lr_err err = {0};
	const char *flags[] = {"SCHED_FLAG_RESET_ON_FORK", "SCHED_FLAG_UTIL_CLAMP_MAX"};
	struct oci_scheduler s = {.policy = "SCHED_BATCH", .nice = 5, .flags = {flags, 2}};
	struct oci_io_priority io = {"IOPRIO_CLASS_BE", 3};

	CHECK_INT(lr_limits_sched_plan(NULL, NULL, &p, &err), 0);
	CHECK(!p.has_scheduler && !p.has_io_priority);
	CHECK_INT(lr_limits_sched_plan(&s, &io, &p, &err), 0);
	CHECK_INT(p.attr.policy, SCHED_BATCH);
	CHECK_INT(p.attr.flags, 0x41);
	CHECK_INT(p.attr.size, 56);
	CHECK_INT(p.io_priority, 2 << 13 | 3);

#define REFUSED(where)                                                                             \
	do {                                                                                       \
		memset(&err, 0, sizeof(err));                                                      \
		CHECK_INT(lr_limits_sched_plan(&s, &io, &p, &err), -EINVAL);                       \
		CHECK_STR(err.path, "process." where);                                             \
	} while (0)
	flags[1] = "SCHED_FLAG_NONE";
	REFUSED("scheduler.flags[1]");
	s = (struct oci_scheduler){.policy = "SCHED_NONE"};
	REFUSED("scheduler.policy");
	s = (struct oci_scheduler){0};
	REFUSED("scheduler.policy");
	s = (struct oci_scheduler){.policy = "SCHED_OTHER", .nice = 20};
	REFUSED("scheduler.nice");
	s = (struct oci_scheduler){.policy = "SCHED_OTHER", .priority = 1};
	REFUSED("scheduler.priority");
	s = (struct oci_scheduler){.policy = "SCHED_FIFO"};
	REFUSED("scheduler.priority");
	s = (struct oci_scheduler){.policy = "SCHED_RR", .priority = 1, .runtime = 1};
	REFUSED("scheduler");
	s = (struct oci_scheduler){.policy = "SCHED_DEADLINE",
				   .runtime = 1000000,
				   .deadline = 2000000,
				   .period = 2000000};
	CHECK_INT(lr_limits_sched_plan(&s, &io, &p, &err), 0);
	io.priority = 8;
	REFUSED("ioPriority.priority");
	io = (struct oci_io_priority){"BE", 1};
	REFUSED("ioPriority.class");
}

static int sets_scheduler(void)
{
	struct oci_scheduler s = {.policy = "SCHED_BATCH", .nice = 7};
	struct oci_io_priority io = {"IOPRIO_CLASS_IDLE", 0};
	struct lr_limits_sched p;
	struct lr_err err = {0};

	if (lr_limits_sched_plan(&s, &io, &p, &err) || lr_limits_sched_apply(&p, &err))
		return 10;
	if (syscall(SYS_sched_getscheduler, 0) != SCHED_BATCH || getpriority(PRIO_PROCESS, 0) != 7)
		return 11;
	if (syscall(SYS_ioprio_get, 1, 0) >> 13 != 3)
		return 12;
	s = (struct oci_scheduler){.policy = "SCHED_ISO"};
	if (lr_limits_sched_plan(&s, NULL, &p, &err) || lr_limits_sched_apply(&p, &err) != -EINVAL)
		return 13;
	if (!strstr(err.hint, "SCHED_ISO"))
		return 14;
	s = (struct oci_scheduler){.policy = "SCHED_FIFO", .priority = 10};
	if (setresuid(1, 1, 1) || lr_limits_sched_plan(&s, NULL, &p, &err))
		return 15;
	if (lr_limits_sched_apply(&p, &err) != -EPERM || !strstr(err.hint, "CAP_SYS_NICE"))
		return 16;
	return 0;
}

static int sets_affinity(void)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_limits_affinity p;
	struct lr_err err = {0};
	cpu_set_t all, now;
	char list[32];

	lr_limits_affinity_reset(0);
	if (sched_getaffinity(0, sizeof(all), &all))
		return 9;
	int first = 0;
	while (!CPU_ISSET(first, &all))
		first++;
	snprintf(list, sizeof(list), "%d,9000", first);
	struct oci_exec_cpu_affinity aff = {.initial = list, .final = "8000-9000"};
	if (lr_limits_affinity_plan(&aff, a, &p, &err) ||
	    lr_limits_affinity_apply(&p, false, 0, &err))
		return 10;
	if (sched_getaffinity(0, sizeof(now), &now) || CPU_COUNT(&now) != 1 ||
	    !CPU_ISSET(first, &now))
		return 11;
	if (lr_limits_affinity_apply(&p, true, 0, &err) != -EINVAL || !strstr(err.hint, "online") ||
	    strcmp(err.path, "process.execCPUAffinity.final"))
		return 12;
	lr_limits_affinity_reset(0);
	if (sched_getaffinity(0, sizeof(now), &now) || !CPU_EQUAL(&now, &all))
		return 13;
	aff.final = "x";
	if (lr_limits_affinity_plan(&aff, a, &p, &err) != -EINVAL)
		return 14;
	if (lr_limits_affinity_plan(NULL, a, &p, &err) ||
	    lr_limits_affinity_apply(&p, true, 0, &err))
		return 15;
	return 0;
}

TEST(personality_plan)
{
	struct oci_personality per = {.domain = "LINUX32"};
	const char *flag = "ADDR_NO_RANDOMIZE";
	unsigned long domain;
	bool given;
	struct lr_err err = {0};

	CHECK_INT(lr_limits_personality_plan(NULL, &given, &domain, &err), 0);
	CHECK(!given);
	CHECK_INT(lr_limits_personality_plan(&per, &given, &domain, &err), 0);
	CHECK(given && domain == PER_LINUX32);
	per.domain = "LINUX";
	CHECK_INT(lr_limits_personality_plan(&per, &given, &domain, &err), 0);
	CHECK(given && domain == PER_LINUX);
	per.domain = "SOLARIS";
	CHECK_INT(lr_limits_personality_plan(&per, &given, &domain, &err), -EINVAL);
	per = (struct oci_personality){.domain = "LINUX", .flags = {&flag, 1}};
	CHECK_INT(lr_limits_personality_plan(&per, &given, &domain, &err), -EINVAL);
	CHECK_STR(err.path, "linux.personality.flags");
}

static int sets_personality(void)
{
	struct lr_err err = {0};

	return lr_limits_personality_apply(PER_LINUX32, &err) || personality(-1ul) != PER_LINUX32;
}

TEST(memory_policy_plan)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const char *flags[] = {"MPOL_F_STATIC_NODES", "MPOL_F_RELATIVE_NODES"};
	struct oci_memory_policy m = {.mode = "MPOL_BIND", .nodes = "0-1", .flags = {flags, 1}};
	struct lr_limits_mempolicy p;
	struct lr_err err = {0};

	CHECK_INT(lr_limits_mempolicy_plan(NULL, a, &p, &err), 0);
	CHECK(!p.given);
	CHECK_INT(lr_limits_mempolicy_plan(&m, a, &p, &err), 0);
	CHECK_INT(p.mode, 2 | 1 << 15);
	CHECK(lr_limits_mask_has(&p.nodes, 0) && lr_limits_mask_has(&p.nodes, 1));
	m.flags.n = 2;
	CHECK_INT(lr_limits_mempolicy_plan(&m, a, &p, &err), -EINVAL);
	CHECK_STR(err.path, "linux.memoryPolicy.flags");
	m = (struct oci_memory_policy){.mode = "MPOL_PREFERRED", .nodes = ""};
	CHECK_INT(lr_limits_mempolicy_plan(&m, a, &p, &err), 0);
	CHECK(p.given && !p.nodes.word);
	m.mode = "MPOL_DEFAULT";
	m.nodes = "0";
	CHECK_INT(lr_limits_mempolicy_plan(&m, a, &p, &err), -EINVAL);
	m.mode = "MPOL_WEIGHTED_INTERLEAVE";
	CHECK_INT(lr_limits_mempolicy_plan(&m, a, &p, &err), 0);
	CHECK_INT(p.mode, 6);
	m.mode = "BIND";
	CHECK_INT(lr_limits_mempolicy_plan(&m, a, &p, &err), -EINVAL);
	m.mode = "MPOL_BIND";
	m.nodes = "1-0";
	CHECK_INT(lr_limits_mempolicy_plan(&m, a, &p, &err), -EINVAL);
	CHECK_STR(err.path, "linux.memoryPolicy.nodes");
	for (size_t i = 0; lr_limits_mempolicy_modes[i]; i++) {
		m = (struct oci_memory_policy){.mode = lr_limits_mempolicy_modes[i]};
		CHECK_INT(lr_limits_mempolicy_plan(&m, a, &p, &err), 0);
	}
}

static int sets_memory_policy(void)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct oci_memory_policy m = {.mode = "MPOL_BIND", .nodes = "0"};
	struct lr_limits_mempolicy p;
	struct lr_err err = {0};
	unsigned long nodes[16] = {0};
	int mode = -1;

	if (lr_limits_mempolicy_plan(&m, a, &p, &err) || lr_limits_mempolicy_apply(&p, &err))
		return err.code == ENOSYS ? 0 : 10;
	if (syscall(SYS_get_mempolicy, &mode, nodes, 1024ul, NULL, 0) || mode != 2 || nodes[0] != 1)
		return 11;
	m.nodes = "900";
	if (lr_limits_mempolicy_plan(&m, a, &p, &err) || lr_limits_mempolicy_apply(&p, &err) == 0)
		return 12;
	return !strstr(err.hint, "online");
}

TEST(a_process_gets_what_was_asked_for)
{
	if (geteuid() != 0)
		SKIP("needs root");
	CHECK_INT(in_child(sets_rlimits), 0);
	CHECK_INT(in_child(sets_oom), 0);
	CHECK_INT(in_child(sets_scheduler), 0);
	CHECK_INT(in_child(sets_affinity), 0);
	CHECK_INT(in_child(sets_personality), 0);
	CHECK_INT(in_child(sets_memory_policy), 0);
}
