/* SPDX-License-Identifier: Apache-2.0 */
/* limits: the NUMA memory policy (config-linux.md "linux.memoryPolicy", runtime-spec 1.3). */
#define LR_ROOM "limits"
#include "src/limits/limits.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/str.h"

/* Kernel ABI, <linux/mempolicy.h>; older headers lack the newer ones. */
enum { M_DEFAULT, M_PREFERRED, M_BIND, M_INTERLEAVE, M_LOCAL, M_PREFERRED_MANY, M_WEIGHTED };
#define F_STATIC_NODES   (1u << 15)
#define F_RELATIVE_NODES (1u << 14)
#define F_NUMA_BALANCING (1u << 13) /* 5.12 */

static const struct lr_name modes[] = {
	{"MPOL_BIND", M_BIND},
	{"MPOL_DEFAULT", M_DEFAULT},
	{"MPOL_INTERLEAVE", M_INTERLEAVE},
	{"MPOL_LOCAL", M_LOCAL},
	{"MPOL_PREFERRED", M_PREFERRED},
	{"MPOL_PREFERRED_MANY", M_PREFERRED_MANY}, /* 5.15 */
	{"MPOL_WEIGHTED_INTERLEAVE", M_WEIGHTED},  /* 6.9 */
};

static const struct lr_name flags[] = {
	{"MPOL_F_NUMA_BALANCING", F_NUMA_BALANCING},
	{"MPOL_F_RELATIVE_NODES", F_RELATIVE_NODES},
	{"MPOL_F_STATIC_NODES", F_STATIC_NODES},
};

const char *const lr_limits_mempolicy_modes[] = {
	"MPOL_DEFAULT",   "MPOL_BIND",           "MPOL_INTERLEAVE", "MPOL_WEIGHTED_INTERLEAVE",
	"MPOL_PREFERRED", "MPOL_PREFERRED_MANY", "MPOL_LOCAL",      NULL,
};

const char *const lr_limits_mempolicy_flags[] = {
	"MPOL_F_NUMA_BALANCING",
	"MPOL_F_RELATIVE_NODES",
	"MPOL_F_STATIC_NODES",
	NULL,
};

int lr_limits_mempolicy_plan(const struct oci_memory_policy *policy, struct lr_arena *arena,
			     struct lr_limits_mempolicy *ret, struct lr_err *err)
{
	struct lr_limits_mempolicy p = {.given = policy};

	if (!policy) {
		*ret = p;
		return 0;
	}
	const struct lr_name *mode =
		policy->mode ? lr_name_find(modes, LR_ARRAY_SIZE(modes), policy->mode) : NULL;
	if (!mode) {
		lr_refuse(err, EINVAL, "unknown memory policy \"%s\"",
			  policy->mode ? policy->mode : "");
		return lr_err_at(err, "linux.memoryPolicy.mode");
	}
	p.mode = (int)mode->value;
	for (size_t i = 0; i < policy->flags.n; i++) {
		const struct lr_name *f =
			lr_name_find(flags, LR_ARRAY_SIZE(flags), policy->flags.v[i]);
		if (!f) {
			lr_refuse(err, EINVAL, "unknown memory policy flag \"%s\"",
				  policy->flags.v[i]);
			return lr_err_at(err, "linux.memoryPolicy.flags[%zu]", i);
		}
		p.mode |= (int)f->value;
	}
	/* An empty list is a list: MPOL_PREFERRED without nodes means the local one. */
	if (policy->nodes && policy->nodes[strspn(policy->nodes, " \t\n")]) {
		int r = lr_limits_parse_list(policy->nodes, "memory node", arena, &p.nodes, err);
		if (r < 0)
			return lr_err_at(err, "linux.memoryPolicy.nodes");
	}
	if (p.nodes.word && (mode->value == M_DEFAULT || mode->value == M_LOCAL)) {
		lr_refuse(err, EINVAL, "%s takes no nodes", policy->mode);
		return lr_err_at(err, "linux.memoryPolicy.nodes");
	}
	if ((p.mode & F_STATIC_NODES) && (p.mode & F_RELATIVE_NODES)) {
		lr_refuse(err, EINVAL,
			  "MPOL_F_STATIC_NODES and MPOL_F_RELATIVE_NODES exclude each "
			  "other");
		return lr_err_at(err, "linux.memoryPolicy.flags");
	}
	*ret = p;
	return 0;
}

int lr_limits_mempolicy_apply(const struct lr_limits_mempolicy *plan, struct lr_err *err)
{
	/* The kernel reads one bit less than it is told (set_mempolicy(2), BUGS of the ABI). */
	unsigned long bits = plan->nodes.word ? plan->nodes.bits + 1 : 0;

	if (!plan->given || syscall(SYS_set_mempolicy, plan->mode, plan->nodes.word, bits) == 0)
		return 0;

	int code = errno;

	lr_fail(err, code, "cannot set the memory policy");
	lr_err_step(err, "set_mempolicy");
	lr_err_at(err, "linux.memoryPolicy");
	if (code == ENOSYS)
		return lr_err_hint(err, "the kernel is built without CONFIG_NUMA");
	return lr_err_hint(err,
			   "the nodes must be online, have memory, and be in cpuset.mems of the "
			   "cgroup; MPOL_PREFERRED_MANY needs Linux 5.15, "
			   "MPOL_WEIGHTED_INTERLEAVE 6.9");
}
