/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp: config.json to a policy. Names become values, everything is checked; no numbers yet. */
#define LR_ROOM "seccomp"
#include "src/seccomp/internal.h"

#include <errno.h>
#include <linux/seccomp.h>

#include "libocispec/ocispec.h"

#define ERRNO_MAX 4095 /* what the kernel passes on, MAX_ERRNO */
#define PATH_LEN  4095
/* It goes through a socket, and into the record with the filter. */
#define METADATA_LEN (1u << 20)

static const struct lr_name actions[] = {
	{"SCMP_ACT_ALLOW", SECCOMP_RET_ALLOW},
	{"SCMP_ACT_ERRNO", SECCOMP_RET_ERRNO},
	{"SCMP_ACT_KILL", SECCOMP_RET_KILL_THREAD},
	{"SCMP_ACT_KILL_PROCESS", SECCOMP_RET_KILL_PROCESS},
	{"SCMP_ACT_KILL_THREAD", SECCOMP_RET_KILL_THREAD},
	{"SCMP_ACT_LOG", SECCOMP_RET_LOG},
	{"SCMP_ACT_NOTIFY", SECCOMP_RET_USER_NOTIF},
	{"SCMP_ACT_TRACE", SECCOMP_RET_TRACE},
	{"SCMP_ACT_TRAP", SECCOMP_RET_TRAP},
};

static const struct lr_name operators[] = {
	{"SCMP_CMP_EQ", LR_SECCOMP_EQ}, {"SCMP_CMP_GE", LR_SECCOMP_GE},
	{"SCMP_CMP_GT", LR_SECCOMP_GT}, {"SCMP_CMP_LE", LR_SECCOMP_LE},
	{"SCMP_CMP_LT", LR_SECCOMP_LT}, {"SCMP_CMP_MASKED_EQ", LR_SECCOMP_MASKED_EQ},
	{"SCMP_CMP_NE", LR_SECCOMP_NE},
};

static const struct lr_name flags[] = {
	{"SECCOMP_FILTER_FLAG_LOG", SECCOMP_FILTER_FLAG_LOG},
	{"SECCOMP_FILTER_FLAG_SPEC_ALLOW", SECCOMP_FILTER_FLAG_SPEC_ALLOW},
	{"SECCOMP_FILTER_FLAG_TSYNC", SECCOMP_FILTER_FLAG_TSYNC},
	{"SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV", LR_SECCOMP_WAIT_KILLABLE},
};

const char *const lr_seccomp_actions[] = {
	"SCMP_ACT_ALLOW",       "SCMP_ACT_ERRNO",
	"SCMP_ACT_KILL",        "SCMP_ACT_KILL_PROCESS",
	"SCMP_ACT_KILL_THREAD", "SCMP_ACT_LOG",
	"SCMP_ACT_NOTIFY",      "SCMP_ACT_TRACE",
	"SCMP_ACT_TRAP",        NULL,
};

const char *const lr_seccomp_operators[] = {
	"SCMP_CMP_EQ", "SCMP_CMP_GE",        "SCMP_CMP_GT", "SCMP_CMP_LE",
	"SCMP_CMP_LT", "SCMP_CMP_MASKED_EQ", "SCMP_CMP_NE", NULL,
};

/* Paths are added by the callers, who know them. */
static int plan_action(const char *name, const uint32_t *errno_ret, uint32_t *ret,
		       struct lr_err *err)
{
	const struct lr_name *a = name ? lr_name_find(actions, LR_ARRAY_SIZE(actions), name) : NULL;

	if (!a) {
		lr_refuse(err, EINVAL, "unknown seccomp action \"%s\"", name ? name : "");
		return lr_err_hint(err, "'lean-runtime features' lists them");
	}
	*ret = (uint32_t)a->value;
	if (a->value != SECCOMP_RET_ERRNO && a->value != SECCOMP_RET_TRACE) {
		/* config-linux.md: "When the action doesn't support an errno, the runtime MUST
		 * print and error and fail." */
		return errno_ret ? lr_refuse(err, EINVAL, "%s takes no errno", name) : 0;
	}
	uint32_t max = a->value == SECCOMP_RET_ERRNO ? ERRNO_MAX : SECCOMP_RET_DATA;
	if (errno_ret && *errno_ret > max)
		return lr_refuse(err, ERANGE, "errno %u is above %u", *errno_ret, max);
	*ret |= errno_ret ? *errno_ret : EPERM;
	return 0;
}

static int plan_archs(const struct oci_strv *names, struct lr_arena *arena,
		      struct lr_seccomp_plan *p, struct lr_err *err)
{
	uint32_t *v = lr_new_n(arena, names->n + 1, uint32_t);
	size_t n = 0;

	if (!v)
		return lr_fail(err, ENOMEM, "linux.seccomp.architectures");
	v[n++] = lr_seccomp_arch_native();
	for (size_t i = 0; i < names->n; i++) {
		uint32_t token = lr_seccomp_arch_token(names->v[i]);
		bool twice = false;

		if (token && !lr_seccomp_arch_same_endian(token)) {
			lr_refuse(err, EINVAL, "%s has the other byte order than this machine",
				  names->v[i]);
			return lr_err_at(err, "linux.seccomp.architectures[%zu]", i);
		}
		if (!token) {
			lr_refuse(err, EINVAL, "unknown architecture \"%s\"", names->v[i]);
			return lr_err_at(err, "linux.seccomp.architectures[%zu]", i);
		}
		for (size_t k = 0; k < n; k++)
			twice |= v[k] == token;
		if (!twice)
			v[n++] = token;
	}
	p->archs = v;
	p->n_archs = n;
	return 0;
}

static int plan_flags(const struct oci_strv *names, unsigned *ret, struct lr_err *err)
{
	for (size_t i = 0; i < names->n; i++) {
		const struct lr_name *f = lr_name_find(flags, LR_ARRAY_SIZE(flags), names->v[i]);
		if (!f) {
			lr_refuse(err, EINVAL, "unknown seccomp flag \"%s\"", names->v[i]);
			return lr_err_at(err, "linux.seccomp.flags[%zu]", i);
		}
		*ret |= (unsigned)f->value;
	}
	return 0;
}

static int plan_conds(const struct oci_seccomp_rule *in, size_t index, struct lr_arena *arena,
		      struct lr_seccomp_rule *out, struct lr_err *err)
{
	unsigned used = 0;
	struct lr_seccomp_cond *v = NULL;

	if (in->args.n) {
		v = lr_new_n(arena, in->args.n, struct lr_seccomp_cond);
		if (!v)
			return lr_fail(err, ENOMEM, "linux.seccomp.syscalls[%zu].args", index);
	}
	for (size_t i = 0; i < in->args.n; i++) {
		const struct oci_seccomp_arg *a = &in->args.v[i];
		const struct lr_name *op =
			a->op ? lr_name_find(operators, LR_ARRAY_SIZE(operators), a->op) : NULL;

		if (!op) {
			lr_refuse(err, EINVAL, "unknown operator \"%s\"", a->op ? a->op : "");
			return lr_err_at(err, "linux.seccomp.syscalls[%zu].args[%zu].op", index, i);
		}
		if (a->index > 5) {
			lr_refuse(err, EINVAL, "system calls have arguments 0 to 5, not %u",
				  a->index);
			return lr_err_at(err, "linux.seccomp.syscalls[%zu].args[%zu].index", index,
					 i);
		}
		out->separate |= (used >> a->index) & 1;
		used |= 1u << a->index;
		/* What a mask hides of the value is not compared, as libseccomp has it. */
		bool masked = op->value == LR_SECCOMP_MASKED_EQ;
		v[i] = (struct lr_seccomp_cond){.arg = (uint8_t)a->index,
						.op = (uint8_t)op->value,
						.value = a->value,
						.value_two = masked ? a->value_two & a->value
								    : a->value_two};
	}
	out->conds = v;
	out->n_conds = in->args.n;
	return 0;
}

static int plan_rule(const struct oci_seccomp_rule *in, size_t index, struct lr_arena *arena,
		     struct lr_seccomp_plan *p, struct lr_seccomp_rule *out, struct lr_err *err)
{
	int r = plan_action(in->action, in->errno_ret, &out->action, err);

	if (r < 0)
		return lr_err_at(
			err, "linux.seccomp.syscalls[%zu].%s", index,
			lr_name_find(actions, LR_ARRAY_SIZE(actions), in->action ? in->action : "")
				? "errnoRet"
				: "action");
	out->names = in->names.v;
	out->n_names = in->names.n;
	out->counts = out->action != p->default_action;
	if (in->names.n == 0) {
		lr_refuse(err, EINVAL, "a rule needs at least one system call");
		return lr_err_at(err, "linux.seccomp.syscalls[%zu].names", index);
	}
	for (size_t i = 0; i < in->names.n; i++) {
		if (in->names.v[i][0] == '\0') {
			lr_refuse(err, EINVAL, "an empty name is no system call");
			return lr_err_at(err, "linux.seccomp.syscalls[%zu].names[%zu]", index, i);
		}
		/* The process in the container tells its parent about the listener by write(2). */
		if (out->action == SECCOMP_RET_USER_NOTIF && lr_streq(in->names.v[i], "write")) {
			lr_refuse(err, EINVAL,
				  "SCMP_ACT_NOTIFY cannot be used for write: the "
				  "listener could never be handed over");
			return lr_err_at(err, "linux.seccomp.syscalls[%zu].names[%zu]", index, i);
		}
	}
	p->notify |= out->action == SECCOMP_RET_USER_NOTIF;
	return plan_conds(in, index, arena, out, err);
}

static int plan_listener(const struct oci_seccomp *s, const struct oci_map *annotations,
			 struct lr_seccomp_plan *p, struct lr_err *err)
{
	const char *receiver = oci_map_get(annotations, LR_SECCOMP_RECEIVER);

	p->listener_path = s->listener_path && *s->listener_path ? s->listener_path : receiver;
	p->listener_metadata = s->listener_metadata;
	if (p->listener_metadata && *p->listener_metadata && !p->listener_path) {
		lr_refuse(err, EINVAL, "metadata without a listener");
		lr_err_at(err, "linux.seccomp.listenerMetadata");
		return lr_err_hint(err, "set linux.seccomp.listenerPath");
	}
	if (!p->notify) {
		/* "If the SCMP_ACT_NOTIFY action is not used this value is ignored." */
		p->listener_path = p->listener_metadata = NULL;
		return 0;
	}
	if (!p->listener_path) {
		lr_refuse(err, EINVAL, "SCMP_ACT_NOTIFY needs somebody to notify");
		lr_err_at(err, "linux.seccomp.listenerPath");
		return lr_err_hint(err, "set linux.seccomp.listenerPath to the agent's socket");
	}
	if (strlen(p->listener_path) > PATH_LEN) {
		lr_refuse(err, ENAMETOOLONG, "the path has %zu bytes; %d are the most",
			  strlen(p->listener_path), PATH_LEN);
		return lr_err_at(err, "linux.seccomp.listenerPath");
	}
	if (p->listener_metadata && strlen(p->listener_metadata) > METADATA_LEN) {
		lr_refuse(err, E2BIG, "the text has %zu bytes; %u are the most",
			  strlen(p->listener_metadata), METADATA_LEN);
		return lr_err_at(err, "linux.seccomp.listenerMetadata");
	}
	if (p->listener_path[0] != '/') {
		lr_refuse(err, EINVAL, "\"%s\" is not an absolute path", p->listener_path);
		return lr_err_at(err, "linux.seccomp.listenerPath");
	}
	return 0;
}

int lr_seccomp_plan(const struct oci_seccomp *seccomp, const struct oci_map *annotations,
		    struct lr_arena *arena, struct lr_seccomp_plan *ret, struct lr_err *err)
{
	struct lr_seccomp_plan p = {.bpf_data = oci_map_get(annotations, LR_SECCOMP_BPF_DATA)};
	const char *fail = oci_map_get(annotations, LR_SECCOMP_FAIL_UNKNOWN);

	p.given = seccomp || p.bpf_data;
	if (!seccomp) {
		*ret = p;
		return 0;
	}
	p.fail_unknown = fail && !lr_streq(fail, "0") && !lr_streq(fail, "false");
	int r = plan_action(seccomp->default_action, seccomp->default_errno_ret, &p.default_action,
			    err);
	if (r < 0)
		return lr_err_at(err, "linux.seccomp.default%s",
				 seccomp->default_action &&
						 lr_name_find(actions, LR_ARRAY_SIZE(actions),
							      seccomp->default_action)
					 ? "ErrnoRet"
					 : "Action");
	if (p.default_action == SECCOMP_RET_USER_NOTIF) {
		lr_refuse(err, EINVAL,
			  "SCMP_ACT_NOTIFY cannot be the default: the listener could "
			  "never be handed over");
		return lr_err_at(err, "linux.seccomp.defaultAction");
	}
	r = plan_archs(&seccomp->architectures, arena, &p, err);
	if (r == 0)
		r = plan_flags(&seccomp->flags, &p.flags, err);

	struct lr_seccomp_rule *rules = NULL;
	if (r == 0 && seccomp->syscalls.n) {
		rules = lr_new_n(arena, seccomp->syscalls.n, struct lr_seccomp_rule);
		if (!rules)
			r = lr_fail(err, ENOMEM, "linux.seccomp.syscalls");
	}
	for (size_t i = 0; r == 0 && i < seccomp->syscalls.n; i++)
		r = plan_rule(&seccomp->syscalls.v[i], i, arena, &p, &rules[i], err);
	if (r == 0)
		r = plan_listener(seccomp, annotations, &p, err);
	if (r < 0)
		return r;
	p.rules = rules;
	p.n_rules = seccomp->syscalls.n;
	*ret = p;
	return 0;
}
