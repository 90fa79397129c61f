/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp: what a plan accepts, refuses and says about it. */
#include "tests/unit/test.h"

#include <errno.h>
#include <linux/seccomp.h>

#include "src/seccomp/seccomp.h"

static struct lr_arena *arena;
static struct lr_err err;
static struct lr_seccomp_plan plan;
static const char *names[] = {"read", "write"};
static struct oci_seccomp_arg args[3];
static struct oci_seccomp_rule rule;

/* A sound policy of one rule. */
static struct oci_seccomp sound(void)
{
	rule = (struct oci_seccomp_rule){.names = {names, 1}, .action = "SCMP_ACT_ALLOW"};
	return (struct oci_seccomp){.default_action = "SCMP_ACT_ERRNO", .syscalls = {&rule, 1}};
}

static int make(const struct oci_seccomp *s, const char *key, const char *value)
{
	struct oci_pair pair = {key, value};
	struct oci_map map = {&pair, 1};

	memset(&err, 0, sizeof(err));
	memset(&plan, 0, sizeof(plan));
	return lr_seccomp_plan(s, key ? &map : NULL, arena, &plan, &err);
}

#define REFUSED(s, where)                                                                          \
	do {                                                                                       \
		CHECK(make(&(s), NULL, NULL) < 0);                                                 \
		CHECK_STR(err.path, where);                                                        \
		CHECK(err.msg[0] != '\0');                                                         \
	} while (0)

TEST(absent)
{
	arena = lr_arena_new();
	CHECK_INT(make(NULL, NULL, NULL), 0);
	CHECK(!plan.given);
}

TEST(defaults)
{
	struct oci_seccomp s = sound();

	CHECK_INT(make(&s, NULL, NULL), 0);
	CHECK(plan.given && !plan.notify && !plan.fail_unknown);
	CHECK_INT(plan.default_action, SECCOMP_RET_ERRNO | EPERM);
	CHECK_INT(plan.n_archs, 1);
	CHECK_INT(plan.rules[0].action, SECCOMP_RET_ALLOW);
	CHECK(plan.rules[0].counts);
	rule.action = "SCMP_ACT_ERRNO";
	CHECK_INT(make(&s, NULL, NULL), 0);
	CHECK(!plan.rules[0].counts);
	uint32_t e = 2;
	rule.errno_ret = &e;
	CHECK_INT(make(&s, NULL, NULL), 0);
	CHECK(plan.rules[0].counts);
}

TEST(actions)
{
	static const struct {
		const char *name;
		uint32_t value;
	} all[] = {
		{"SCMP_ACT_KILL", SECCOMP_RET_KILL_THREAD},
		{"SCMP_ACT_KILL_PROCESS", SECCOMP_RET_KILL_PROCESS},
		{"SCMP_ACT_KILL_THREAD", SECCOMP_RET_KILL_THREAD},
		{"SCMP_ACT_TRAP", SECCOMP_RET_TRAP},
		{"SCMP_ACT_ERRNO", SECCOMP_RET_ERRNO | EPERM},
		{"SCMP_ACT_TRACE", SECCOMP_RET_TRACE | EPERM},
		{"SCMP_ACT_ALLOW", SECCOMP_RET_ALLOW},
		{"SCMP_ACT_LOG", SECCOMP_RET_LOG},
		{"SCMP_ACT_NOTIFY", SECCOMP_RET_USER_NOTIF},
	};
	struct oci_seccomp s = sound();
	uint32_t e = 7;

	s.listener_path = "/run/agent.sock";
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		rule.action = all[i].name;
		rule.errno_ret = NULL;
		CHECK_INT(make(&s, NULL, NULL), 0);
		CHECK_INT(plan.rules[0].action, all[i].value);
		rule.errno_ret = &e;
		if (all[i].value & 0xffff) {
			CHECK_INT(make(&s, NULL, NULL), 0);
			CHECK_INT(plan.rules[0].action & 0xffff, 7);
		} else {
			REFUSED(s, "linux.seccomp.syscalls[0].errnoRet");
		}
	}
	size_t n = 0;
	while (lr_seccomp_actions[n])
		n++;
	CHECK_INT(n, 9);
	rule.action = "SCMP_ACT_NONE";
	REFUSED(s, "linux.seccomp.syscalls[0].action");
	rule.action = NULL;
	REFUSED(s, "linux.seccomp.syscalls[0].action");
	rule = (struct oci_seccomp_rule){
		.names = {names, 1}, .action = "SCMP_ACT_ERRNO", .errno_ret = &e};
	e = 4096;
	REFUSED(s, "linux.seccomp.syscalls[0].errnoRet");
	e = 65536;
	rule.action = "SCMP_ACT_TRACE";
	REFUSED(s, "linux.seccomp.syscalls[0].errnoRet");
	s.default_action = "ALLOW";
	REFUSED(s, "linux.seccomp.defaultAction");
	s.default_action = "SCMP_ACT_ALLOW";
	s.default_errno_ret = &e;
	REFUSED(s, "linux.seccomp.defaultErrnoRet");
}

TEST(architectures_and_flags)
{
	struct oci_seccomp s = sound();
	const char *native[40], *flags[5];
	size_t n = 0;

	/* Every listed name is known; those of the other byte order are refused with a reason. */
	for (size_t i = 0; lr_seccomp_archs[i]; i++) {
		s.architectures = (struct oci_strv){(const char **)&lr_seccomp_archs[i], 1};
		if (make(&s, NULL, NULL) == 0)
			native[n++] = lr_seccomp_archs[i];
		else
			CHECK_HAS(err.msg, "byte order");
	}
	CHECK(n >= 2);
	s.architectures = (struct oci_strv){native, n};
	CHECK_INT(make(&s, NULL, NULL), 0);
	CHECK_INT(plan.n_archs, n); /* the native one is among them, not twice */
	native[1] = "SCMP_ARCH_VAX";
	REFUSED(s, "linux.seccomp.architectures[1]");
	s.architectures.n = 0;

	for (n = 0; lr_seccomp_flags[n]; n++)
		flags[n] = lr_seccomp_flags[n];
	s.flags = (struct oci_strv){flags, n};
	CHECK_INT(make(&s, NULL, NULL), 0);
	CHECK_INT(plan.flags, SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_LOG |
				      SECCOMP_FILTER_FLAG_SPEC_ALLOW | LR_SECCOMP_WAIT_KILLABLE);
	flags[2] = "SECCOMP_FILTER_FLAG_NEW_LISTENER"; /* ours to decide */
	REFUSED(s, "linux.seccomp.flags[2]");
}

TEST(conditions)
{
	struct oci_seccomp s = sound();

	rule.args.v = args;
	rule.args.n = 2;
	args[0] = (struct oci_seccomp_arg){0, 1, 2, "SCMP_CMP_MASKED_EQ"};
	args[1] = (struct oci_seccomp_arg){5, 1, 0, "SCMP_CMP_GE"};
	CHECK_INT(make(&s, NULL, NULL), 0);
	CHECK(!plan.rules[0].separate && plan.rules[0].n_conds == 2);
	/* (argument & 1) == 2 would never hold: what the mask hides is not compared */
	CHECK_INT(plan.rules[0].conds[0].value_two, 0);
	args[1].index = 0;
	CHECK_INT(make(&s, NULL, NULL), 0);
	CHECK(plan.rules[0].separate);
	args[1].index = 6;
	REFUSED(s, "linux.seccomp.syscalls[0].args[1].index");
	args[1].index = 64;
	REFUSED(s, "linux.seccomp.syscalls[0].args[1].index");
	args[1] = (struct oci_seccomp_arg){1, 1, 0, "EQ"};
	REFUSED(s, "linux.seccomp.syscalls[0].args[1].op");
	for (size_t i = 0; lr_seccomp_operators[i]; i++) {
		args[1].op = lr_seccomp_operators[i];
		CHECK_INT(make(&s, NULL, NULL), 0);
	}
	rule.args.n = 0;
	rule.names.n = 0;
	REFUSED(s, "linux.seccomp.syscalls[0].names");
}

TEST(listeners)
{
	struct oci_seccomp s = sound();

	rule.action = "SCMP_ACT_NOTIFY";
	REFUSED(s, "linux.seccomp.listenerPath");
	s.listener_path = "agent.sock";
	REFUSED(s, "linux.seccomp.listenerPath");
	s.listener_path = "/run/agent.sock";
	s.listener_metadata = "m";
	CHECK_INT(make(&s, NULL, NULL), 0);
	CHECK(plan.notify);
	CHECK_STR(plan.listener_path, "/run/agent.sock");
	CHECK_STR(plan.listener_metadata, "m");
	rule.names.n = 2; /* read, write */
	REFUSED(s, "linux.seccomp.syscalls[0].names[1]");
	rule.names.n = 1;
	s.listener_path = NULL;
	REFUSED(s, "linux.seccomp.listenerMetadata");
	CHECK_INT(make(&s, LR_SECCOMP_RECEIVER, "/run/other.sock"), 0);
	CHECK_STR(plan.listener_path, "/run/other.sock");
	rule.action = "SCMP_ACT_ALLOW"; /* then nobody needs it */
	s.listener_path = "/run/agent.sock";
	CHECK_INT(make(&s, NULL, NULL), 0);
	CHECK(!plan.notify && !plan.listener_path);
	s.default_action = "SCMP_ACT_NOTIFY";
	REFUSED(s, "linux.seccomp.defaultAction");
}

TEST(unknown_system_calls)
{
	struct oci_seccomp s = sound();
	const char *two[] = {"read", "no_such_call"};
	struct lr_seccomp_prog p;

	rule.names = (struct oci_strv){two, 2};
	CHECK_INT(make(&s, LR_SECCOMP_FAIL_UNKNOWN, "0"), 0);
	CHECK_INT(lr_seccomp_compile(&plan, arena, &p, &err), 0);
	CHECK_INT(make(&s, LR_SECCOMP_FAIL_UNKNOWN, "1"), 0);
	CHECK_INT(lr_seccomp_compile(&plan, arena, &p, &err), -EINVAL);
	CHECK_STR(err.path, "linux.seccomp.syscalls[0].names[1]");
	two[1] = "mseal"; /* newer than libseccomp */
	CHECK_INT(make(&s, LR_SECCOMP_FAIL_UNKNOWN, "1"), 0);
	CHECK_INT(lr_seccomp_compile(&plan, arena, &p, &err), 0);
	rule.names.v[0] = "";
	REFUSED(s, "linux.seccomp.syscalls[0].names[0]");
}

TEST(too_much_is_refused)
{
	struct oci_seccomp s = sound();
	struct lr_seccomp_prog p;
	size_t n = 4000;
	struct oci_seccomp_arg *many = calloc(n, sizeof(*many));

	for (size_t i = 0; i < n; i++)
		many[i] = (struct oci_seccomp_arg){0, i, 0, "SCMP_CMP_GT"};
	rule.args.v = many;
	rule.args.n = n;
	CHECK_INT(make(&s, NULL, NULL), 0);
	CHECK_INT(lr_seccomp_compile(&plan, arena, &p, &err), -E2BIG);
	CHECK_HAS(err.msg, "more than 4096 instructions");

	/* Repeated as often as you like, but not many different ones. */
	for (size_t i = 0; i < n; i++)
		many[i].value = i % 3;
	CHECK_INT(make(&s, NULL, NULL), 0);
	CHECK_INT(lr_seccomp_compile(&plan, arena, &p, &err), 0);
	CHECK(p.n < 50);
	many = realloc(many, 60000 * sizeof(*many));
	for (size_t i = 0; i < 60000; i++)
		many[i] = (struct oci_seccomp_arg){0, i, 0, "SCMP_CMP_EQ"};
	rule.args.v = many;
	rule.args.n = 60000;
	CHECK_INT(make(&s, NULL, NULL), 0);
	CHECK_INT(lr_seccomp_compile(&plan, arena, &p, &err), -E2BIG);
	CHECK_HAS(err.msg, "60000 different conditions");
	CHECK_STR(err.path, "linux.seccomp.syscalls[0]");

	/* Names times conditions: nobody has memory for the product. */
	const char *same[5] = {"kill", "kill", "kill", "kill", "kill"};
	rule.names = (struct oci_strv){same, 5};
	CHECK_INT(make(&s, NULL, NULL), 0);
	CHECK_INT(lr_seccomp_compile(&plan, arena, &p, &err), -E2BIG);
	CHECK_HAS(err.msg, "more than 262144 pairs");
	CHECK_STR(err.path, "linux.seccomp.syscalls[0]");
	free(many);
}

TEST(what_goes_to_the_agent_is_bounded)
{
	struct oci_seccomp s = sound();
	char *text = malloc((1 << 20) + 2);

	memset(text, '/', (1 << 20) + 1);
	text[(1 << 20) + 1] = '\0';
	rule.action = "SCMP_ACT_NOTIFY";
	s.listener_path = "/run/agent.sock";
	s.listener_metadata = text + 1;
	CHECK_INT(make(&s, NULL, NULL), 0);
	s.listener_metadata = text;
	REFUSED(s, "linux.seccomp.listenerMetadata");
	CHECK_HAS(err.msg, "1048577 bytes; 1048576 are the most");
	s.listener_metadata = NULL;
	s.listener_path = text;
	REFUSED(s, "linux.seccomp.listenerPath");
	CHECK_HAS(err.msg, "4095 are the most");
	free(text);
}

TEST(ready_made_program)
{
	/* ret ALLOW, base64 of { 06 00 00 00 00 00 ff 7f } */
	struct lr_seccomp_prog p;

	CHECK_INT(make(NULL, LR_SECCOMP_BPF_DATA, "BgAAAAAA/38="), 0);
	CHECK(plan.given);
	CHECK_INT(lr_seccomp_get(&plan, -1, arena, &p, &err), 0);
	CHECK(p.n == 1 && p.v[0].k == SECCOMP_RET_ALLOW);
	static const char *const bad[] = {"",     "BgAAAAAA/38",  "BgAAAAAA/3==", "BgAAAAAA",
					  "====", "BgAAAAAA/3!=", "BQAAAAAA/38=", "Bg=AAAAA/38="};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		CHECK_INT(make(NULL, LR_SECCOMP_BPF_DATA, bad[i]), 0);
		CHECK_INT(lr_seccomp_compile(&plan, arena, &p, &err), -EINVAL);
		CHECK_HAS(err.path, LR_SECCOMP_BPF_DATA);
	}
	lr_arena_free(arena);
}
