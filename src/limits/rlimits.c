/* SPDX-License-Identifier: Apache-2.0 */
/* limits: setrlimit, the OOM score, the execution domain. */
#define LR_ROOM "limits"
#include "src/limits/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/sys/procfs.h"

static const struct lr_name rlimit_names[] = {
	{"RLIMIT_AS", RLIMIT_AS},
	{"RLIMIT_CORE", RLIMIT_CORE},
	{"RLIMIT_CPU", RLIMIT_CPU},
	{"RLIMIT_DATA", RLIMIT_DATA},
	{"RLIMIT_FSIZE", RLIMIT_FSIZE},
	{"RLIMIT_LOCKS", RLIMIT_LOCKS},
	{"RLIMIT_MEMLOCK", RLIMIT_MEMLOCK},
	{"RLIMIT_MSGQUEUE", RLIMIT_MSGQUEUE},
	{"RLIMIT_NICE", RLIMIT_NICE},
	{"RLIMIT_NOFILE", RLIMIT_NOFILE},
	{"RLIMIT_NPROC", RLIMIT_NPROC},
	{"RLIMIT_RSS", RLIMIT_RSS},
	{"RLIMIT_RTPRIO", RLIMIT_RTPRIO},
	{"RLIMIT_RTTIME", RLIMIT_RTTIME},
	{"RLIMIT_SIGPENDING", RLIMIT_SIGPENDING},
	{"RLIMIT_STACK", RLIMIT_STACK},
};

int lr_limits_rlimits_plan(const struct oci_rlimits *rlimits, struct lr_arena *arena,
			   struct lr_limits_rlimits *ret, struct lr_err *err)
{
	struct lr_limits_rlimits p = {0};
	uint32_t seen = 0;

	if (rlimits->n) {
		p.v = lr_new_n(arena, rlimits->n, struct lr_limits_rlimit);
		if (!p.v)
			return lr_fail(err, ENOMEM, "process.rlimits");
	}
	for (size_t i = 0; i < rlimits->n; i++) {
		const struct oci_rlimit *r = &rlimits->v[i];
		const struct lr_name *name =
			lr_name_find(rlimit_names, LR_ARRAY_SIZE(rlimit_names), r->type);

		if (!name) {
			lr_refuse(err, EINVAL, "unknown resource limit \"%s\"", r->type);
			return lr_err_at(err, "process.rlimits[%zu].type", i);
		}
		/* config.md: "If rlimits contains duplicated entries with same type, the runtime
		 * MUST generate an error." */
		if (seen & 1u << name->value) {
			lr_refuse(err, EINVAL, "%s is given twice", r->type);
			return lr_err_at(err, "process.rlimits[%zu].type", i);
		}
		seen |= 1u << name->value;
		if (r->soft > r->hard) {
			lr_refuse(err, EINVAL, "%s: soft limit %ju is above the hard limit %ju",
				  r->type, (uintmax_t)r->soft, (uintmax_t)r->hard);
			return lr_err_at(err, "process.rlimits[%zu].soft", i);
		}
		p.v[p.n++] = (struct lr_limits_rlimit){(int)name->value, r->soft, r->hard};
	}
	*ret = p;
	return 0;
}

static int explain_rlimit(const struct lr_limits_rlimit *l, size_t i, int code, pid_t pid,
			  struct lr_err *err)
{
	const char *name =
		lr_name_of(rlimit_names, LR_ARRAY_SIZE(rlimit_names), (uint64_t)l->resource);
	uint64_t now[2] = {0, 0};

	lr_fail(err, code, "cannot set %s to %ju:%ju", name, (uintmax_t)l->soft,
		(uintmax_t)l->hard);
	lr_err_step(err, "prlimit");
	lr_err_at(err, "process.rlimits[%zu]", i);
	if (code != EPERM || syscall(SYS_prlimit64, pid, l->resource, NULL, now) < 0)
		return -code;
	if (l->resource == RLIMIT_NOFILE && now[1] >= l->hard)
		return lr_err_hint(err, "it may be above the sysctl fs.nr_open");
	return lr_err_hint(err,
			   "raising the hard limit above %ju, the runtime's own, needs "
			   "CAP_SYS_RESOURCE",
			   (uintmax_t)now[1]);
}

int lr_limits_rlimits_apply(const struct lr_limits_rlimits *plan, pid_t pid, struct lr_err *err)
{
	for (size_t i = 0; i < plan->n; i++) {
		/* struct rlimit64; RLIM64_INFINITY is 2^64 - 1, as in config.json. */
		uint64_t want[2] = {plan->v[i].soft, plan->v[i].hard};

		if (syscall(SYS_prlimit64, pid, plan->v[i].resource, want, NULL) < 0)
			return explain_rlimit(&plan->v[i], i, errno, pid, err);
	}
	return 0;
}

int lr_limits_oom_check(const int32_t *adj, struct lr_err *err)
{
	if (!adj || (*adj >= -1000 && *adj <= 1000))
		return 0;
	lr_refuse(err, EINVAL, "OOM score adjustment %d is not within -1000 and 1000", *adj);
	return lr_err_at(err, "process.oomScoreAdj");
}

int lr_limits_oom_apply(const int32_t *adj, int procfd, bool rootless, struct lr_err *err)
{
	static const char file[] = "self/oom_score_adj";
	char text[16], now[16];

	if (!adj)
		return 0;

	int len = snprintf(text, sizeof(text), "%d", *adj);
	int r = lr_procfs_write(procfd, file, text, (size_t)len);
	if (r == 0) {
		lr_debug("limits: oom_score_adj %s", text);
		return 0;
	}
	if (r == -EACCES || r == -EPERM) {
		LR_CLEANUP_FD int fd = lr_procfs_openat(procfd, file, O_RDONLY);
		ssize_t n = fd < 0 ? -1 : lr_read_full(fd, now, sizeof(now) - 1);

		now[n > 0 ? n - (now[n - 1] == '\n') : 0] = '\0';
		if (lr_streq(now, text))
			return 0;
		if (rootless) {
			lr_warn("process.oomScoreAdj: cannot change the score from %s to %s "
				"without "
				"CAP_SYS_RESOURCE: left as it is",
				now, text);
			return 0;
		}
	}
	lr_fail(err, -r, "cannot set oom_score_adj to %s", text);
	lr_err_step(err, "write");
	lr_err_at(err, "process.oomScoreAdj");
	return r == -EACCES || r == -EPERM
		       ? lr_err_hint(err, "lowering it needs CAP_SYS_RESOURCE in the initial user "
					  "namespace")
		       : r;
}

int lr_limits_personality_plan(const struct oci_personality *personality, bool *given,
			       unsigned long *ret, struct lr_err *err)
{
	*given = false;
	*ret = PER_LINUX;
	if (!personality)
		return 0;
	if (personality->flags.n) {
		/* config-linux.md: "Currently no flag values are supported." */
		lr_refuse(err, EINVAL, "execution domain flag \"%s\" is not supported",
			  personality->flags.v[0]);
		return lr_err_at(err, "linux.personality.flags");
	}
	if (personality->domain && lr_streq(personality->domain, "LINUX32")) {
		*ret = PER_LINUX32;
	} else if (!personality->domain || !lr_streq(personality->domain, "LINUX")) {
		lr_refuse(err, EINVAL, "unknown execution domain \"%s\"",
			  personality->domain ? personality->domain : "");
		lr_err_at(err, "linux.personality.domain");
		return lr_err_hint(err, "LINUX or LINUX32");
	}
	*given = true;
	return 0;
}

int lr_limits_personality_apply(unsigned long domain, struct lr_err *err)
{
	if (personality(domain) >= 0)
		return 0;
	lr_fail(err, errno, "cannot set the execution domain to %#lx", domain);
	return lr_err_at(err, "linux.personality.domain");
}
