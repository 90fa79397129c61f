/* SPDX-License-Identifier: Apache-2.0 */
/* limits: scheduler, I/O priority, CPU affinity. */
#define LR_ROOM "limits"
#include "src/limits/limits.h"

#include <errno.h>
#include <linux/ioprio.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/str.h"

#define RESET_WORDS (LR_LIMITS_LIST_MAX / (8 * sizeof(unsigned long)))

/* Values of <linux/sched.h>, which libc's <sched.h> only has in part. */
static const struct lr_name policies[] = {
	{"SCHED_BATCH", 3}, {"SCHED_DEADLINE", 6}, {"SCHED_FIFO", 1}, {"SCHED_IDLE", 5},
	{"SCHED_ISO", 4},   {"SCHED_OTHER", 0},    {"SCHED_RR", 2},
};
enum { FIFO = 1, RR = 2, ISO = 4, DEADLINE = 6 };

static const struct lr_name sched_flags[] = {
	{"SCHED_FLAG_DL_OVERRUN", 0x04},     {"SCHED_FLAG_KEEP_PARAMS", 0x10},
	{"SCHED_FLAG_KEEP_POLICY", 0x08},    {"SCHED_FLAG_RECLAIM", 0x02},
	{"SCHED_FLAG_RESET_ON_FORK", 0x01},  {"SCHED_FLAG_UTIL_CLAMP_MAX", 0x40},
	{"SCHED_FLAG_UTIL_CLAMP_MIN", 0x20},
};

static const struct lr_name io_classes[] = {
	{"IOPRIO_CLASS_BE", 2},
	{"IOPRIO_CLASS_IDLE", 3},
	{"IOPRIO_CLASS_RT", 1},
};

static int plan_scheduler(const struct oci_scheduler *s, struct lr_sched_attr *ret,
			  struct lr_err *err)
{
	const struct lr_name *policy =
		s->policy ? lr_name_find(policies, LR_ARRAY_SIZE(policies), s->policy) : NULL;
	struct lr_sched_attr a = {.size = sizeof(a), .nice = s->nice};

	if (!policy) {
		lr_refuse(err, EINVAL, "unknown scheduling policy \"%s\"",
			  s->policy ? s->policy : "");
		return lr_err_at(err, "process.scheduler.policy");
	}
	a.policy = (uint32_t)policy->value;
	if (s->nice < -20 || s->nice > 19) {
		lr_refuse(err, EINVAL, "nice value %d is not within -20 and 19", s->nice);
		return lr_err_at(err, "process.scheduler.nice");
	}
	bool realtime = a.policy == FIFO || a.policy == RR;
	if (s->priority && !realtime) {
		lr_refuse(err, EINVAL, "a priority is for SCHED_FIFO and SCHED_RR only");
		return lr_err_at(err, "process.scheduler.priority");
	}
	if (realtime && (s->priority < 1 || s->priority > 99)) {
		lr_refuse(err, EINVAL, "%s needs a priority within 1 and 99, not %d", s->policy,
			  s->priority);
		return lr_err_at(err, "process.scheduler.priority");
	}
	a.priority = (uint32_t)s->priority;
	if ((s->runtime || s->deadline || s->period) && a.policy != DEADLINE) {
		lr_refuse(err, EINVAL, "runtime, deadline and period are for SCHED_DEADLINE only");
		return lr_err_at(err, "process.scheduler");
	}
	a.runtime = s->runtime;
	a.deadline = s->deadline;
	a.period = s->period;
	for (size_t i = 0; i < s->flags.n; i++) {
		const struct lr_name *f =
			lr_name_find(sched_flags, LR_ARRAY_SIZE(sched_flags), s->flags.v[i]);
		if (!f) {
			lr_refuse(err, EINVAL, "unknown scheduler flag \"%s\"", s->flags.v[i]);
			return lr_err_at(err, "process.scheduler.flags[%zu]", i);
		}
		a.flags |= f->value;
	}
	*ret = a;
	return 0;
}

static int plan_io_priority(const struct oci_io_priority *io, int *ret, struct lr_err *err)
{
	const struct lr_name *class =
		io->class ? lr_name_find(io_classes, LR_ARRAY_SIZE(io_classes), io->class) : NULL;

	if (!class) {
		lr_refuse(err, EINVAL, "unknown I/O priority class \"%s\"",
			  io->class ? io->class : "");
		return lr_err_at(err, "process.ioPriority.class");
	}
	if (io->priority < 0 || io->priority > 7) {
		lr_refuse(err, EINVAL, "I/O priority %d is not within 0 and 7", io->priority);
		return lr_err_at(err, "process.ioPriority.priority");
	}
	*ret = (int)IOPRIO_PRIO_VALUE((int)class->value, io->priority);
	return 0;
}

int lr_limits_sched_plan(const struct oci_scheduler *scheduler, const struct oci_io_priority *io,
			 struct lr_limits_sched *ret, struct lr_err *err)
{
	struct lr_limits_sched p = {.has_scheduler = scheduler, .has_io_priority = io};
	int r = 0;

	if (scheduler)
		r = plan_scheduler(scheduler, &p.attr, err);
	if (r == 0 && io)
		r = plan_io_priority(io, &p.io_priority, err);
	if (r == 0)
		*ret = p;
	return r;
}

static int apply_scheduler(const struct lr_sched_attr *attr, struct lr_err *err)
{
	if (syscall(SYS_sched_setattr, 0, attr, 0) == 0)
		return 0;

	int code = errno;
	const char *name = lr_name_of(policies, LR_ARRAY_SIZE(policies), attr->policy);

	lr_fail(err, code, "cannot set scheduling policy %s", name);
	lr_err_step(err, "sched_setattr");
	lr_err_at(err, "process.scheduler");
	if (attr->policy == ISO)
		return lr_err_hint(err, "no Linux kernel implements SCHED_ISO");
	if (code == EPERM && attr->policy == DEADLINE)
		return lr_err_hint(err, "SCHED_DEADLINE needs CAP_SYS_NICE, and an affinity of all "
					"CPUs of the cpuset");
	if (code == EPERM)
		return lr_err_hint(err, "it needs CAP_SYS_NICE; with cgroup v1, realtime policies "
					"also need cpu.realtimeRuntime of the cgroup");
	if (code == EBUSY)
		return lr_err_hint(err, "the deadline reservations of the host leave no room");
	return lr_err_hint(err,
			   "does this kernel know the flags %#jx? deadlines need runtime <= "
			   "deadline <= period",
			   (uintmax_t)attr->flags);
}

int lr_limits_sched_apply(const struct lr_limits_sched *plan, struct lr_err *err)
{
	if (plan->has_scheduler) {
		int r = apply_scheduler(&plan->attr, err);
		if (r < 0)
			return r;
	}
	if (plan->has_io_priority &&
	    syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, plan->io_priority) < 0) {
		int code = errno;

		lr_fail(err, code, "cannot set the I/O priority");
		lr_err_step(err, "ioprio_set");
		lr_err_at(err, "process.ioPriority");
		return code == EPERM ? lr_err_hint(err, "IOPRIO_CLASS_RT needs CAP_SYS_NICE or "
							"CAP_SYS_ADMIN")
				     : -code;
	}
	return 0;
}

int lr_limits_affinity_plan(const struct oci_exec_cpu_affinity *affinity, struct lr_arena *arena,
			    struct lr_limits_affinity *ret, struct lr_err *err)
{
	struct lr_limits_affinity p = {0};
	int r = 0;

	if (affinity && affinity->initial) {
		r = lr_limits_parse_list(affinity->initial, "CPU", arena, &p.initial, err);
		if (r < 0)
			return lr_err_at(err, "process.execCPUAffinity.initial");
	}
	if (affinity && affinity->final) {
		r = lr_limits_parse_list(affinity->final, "CPU", arena, &p.final, err);
		if (r < 0)
			return lr_err_at(err, "process.execCPUAffinity.final");
	}
	*ret = p;
	return r;
}

int lr_limits_affinity_apply(const struct lr_limits_affinity *plan, bool final, pid_t pid,
			     struct lr_err *err)
{
	const struct lr_limits_mask *m = final ? &plan->final : &plan->initial;

	if (!m->word || syscall(SYS_sched_setaffinity, pid, m->bits / 8, m->word) >= 0)
		return 0;

	int code = errno;

	lr_fail(err, code, "cannot set the CPU affinity");
	lr_err_step(err, "sched_setaffinity");
	lr_err_at(err, "process.execCPUAffinity.%s", final ? "final" : "initial");
	return code == EINVAL
		       ? lr_err_hint(err, "none of these CPUs is online and in the cpuset of "
					  "the cgroup")
		       : -code;
}

void lr_limits_affinity_reset(pid_t pid)
{
	unsigned long all[RESET_WORDS];

	/* The kernel cuts the mask to what it has: longer than necessary is right, glibc's 1024
	 * CPUs would take the others away. */
	memset(all, 0xff, sizeof(all));
	if (syscall(SYS_sched_setaffinity, pid, sizeof(all), all) < 0)
		lr_debug("limits: CPU affinity of %d not reset: errno %d", pid, errno);
}
