/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp: what a program lets through whatever the arguments; the interpreter is the judge. */
#include "tests/unit/test.h"

#include <stddef.h>

#include "src/seccomp/seccomp.h"
#include "tests/unit/seccomp/bpf.h"
#include "tests/unit/seccomp/profile.h"

#define LOAD(field)     BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IF(op, k, t, f) BPF_JUMP(BPF_JMP | (op) | BPF_K, k, t, f)
#define RET(what)       BPF_STMT(BPF_RET | BPF_K, what)
#define ALLOW           RET(SECCOMP_RET_ALLOW)
#define KILL            RET(SECCOMP_RET_KILL_PROCESS)

static bool allows(struct sock_filter *v, size_t n, int call)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const struct lr_seccomp_prog p = {.v = v, .n = (unsigned short)n};

	return lr_seccomp_allows(&p, &call, 1, a);
}
#define ALLOWS(call, ...)                                                                          \
	({                                                                                         \
		struct sock_filter v[] = {__VA_ARGS__};                                            \
		allows(v, sizeof(v) / sizeof(v[0]), call);                                         \
	})

TEST(the_number_decides)
{
	CHECK_INT(ALLOWS(5, LOAD(nr), IF(BPF_JEQ, 5, 0, 1), ALLOW, KILL), true);
	CHECK_INT(ALLOWS(6, LOAD(nr), IF(BPF_JEQ, 5, 0, 1), ALLOW, KILL), false);
	CHECK_INT(ALLOWS(5, LOAD(nr), IF(BPF_JGT, 5, 0, 1), ALLOW, KILL), false);
	CHECK_INT(ALLOWS(6, LOAD(nr), IF(BPF_JGT, 5, 0, 1), ALLOW, KILL), true);
	CHECK_INT(ALLOWS(5, LOAD(nr), IF(BPF_JGE, 5, 0, 1), ALLOW, KILL), true);
	CHECK_INT(ALLOWS(4, LOAD(nr), IF(BPF_JGE, 5, 0, 1), ALLOW, KILL), false);
	CHECK_INT(ALLOWS(5, LOAD(nr), IF(BPF_JSET, 4, 0, 1), ALLOW, KILL), true);
	CHECK_INT(ALLOWS(3, LOAD(nr), IF(BPF_JSET, 4, 0, 1), ALLOW, KILL), false);
	CHECK_INT(ALLOWS(5, LOAD(nr), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 4), IF(BPF_JEQ, 4, 0, 1),
			 ALLOW, KILL),
		  true);
}

TEST(an_argument_may_be_anything)
{
	CHECK_INT(ALLOWS(5, LOAD(args[0]), IF(BPF_JEQ, 1, 0, 1), ALLOW, KILL), false);
	CHECK_INT(ALLOWS(5, LOAD(args[0]), IF(BPF_JEQ, 1, 1, 0), ALLOW, KILL), false);
	CHECK_INT(ALLOWS(5, LOAD(args[0]), IF(BPF_JEQ, 1, 0, 1), ALLOW, ALLOW), true);
	CHECK_INT(ALLOWS(5, LOAD(instruction_pointer), IF(BPF_JGT, 1, 0, 1), ALLOW, KILL), false);
	/* What is known again after that. */
	CHECK_INT(ALLOWS(5, LOAD(args[0]), IF(BPF_JEQ, 1, 0, 0), LOAD(nr), IF(BPF_JEQ, 5, 0, 1),
			 ALLOW, KILL),
		  true);
	/* One thing this way, another that way. */
	CHECK_INT(ALLOWS(5, LOAD(args[0]), IF(BPF_JEQ, 1, 0, 2), LOAD(nr),
			 BPF_STMT(BPF_JMP | BPF_JA, 1), LOAD(arch), IF(BPF_JEQ, 5, 0, 1), ALLOW,
			 KILL),
		  false);
}

TEST(what_is_not_understood_allows_nothing)
{
	CHECK_INT(ALLOWS(5, BPF_STMT(BPF_LD | BPF_IMM, 1), ALLOW), false);
	CHECK_INT(ALLOWS(5, BPF_STMT(BPF_RET | BPF_A, 0)), false);
	CHECK_INT(ALLOWS(5, LOAD(nr)), false);                      /* no end */
	CHECK_INT(ALLOWS(5, IF(BPF_JEQ, 0, 200, 0), ALLOW), false); /* out of the program */
	/* But for where it does not come to. */
	CHECK_INT(ALLOWS(5, ALLOW, BPF_STMT(BPF_LD | BPF_IMM, 1), ALLOW), true);
}

TEST(what_lets_through)
{
	CHECK_INT(ALLOWS(5, RET(SECCOMP_RET_LOG)), true);
	CHECK_INT(ALLOWS(5, RET(SECCOMP_RET_ERRNO | 1)), false);
	CHECK_INT(ALLOWS(5, RET(SECCOMP_RET_TRACE)), false);
	CHECK_INT(ALLOWS(5, RET(SECCOMP_RET_USER_NOTIF)), false);
	CHECK_INT(ALLOWS(5, RET(SECCOMP_RET_TRAP)), false);
	CHECK_INT(ALLOWS(5, KILL), false);
}

/* Docker's own profile, call by call: what is said to be allowed is, with any arguments; and most
 * of what is has no conditions. */
TEST(as_the_interpreter_says)
{
	static const uint64_t values[] = {0, 1, 2, 0x10000000, 0x7e020000, 0xffffffff, ~0ULL};
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const struct oci_seccomp *profile = read_profile("docker-like", a);
	struct lr_seccomp_plan plan;
	struct lr_seccomp_prog p;
	struct lr_err err = {0};
	unsigned sure = 0, ever = 0;

	REQUIRE(profile && lr_seccomp_plan(profile, NULL, a, &plan, &err) >= 0);
	REQUIRE(lr_seccomp_compile(&plan, a, &p, &err) >= 0);
	for (int nr = 0; nr < 460; nr++) {
		struct seccomp_data d = {.nr = nr, .arch = plan.archs[0]};
		bool allowed = lr_seccomp_allows(&p, &nr, 1, a), any = false;
		for (size_t i = 0; i < 6 * sizeof(values) / sizeof(values[0]); i++) {
			memset(d.args, 0, sizeof(d.args));
			d.args[i % 6] = values[i / 6];
			bool now = bpf_run(p.v, p.n, &d, NULL) == SECCOMP_RET_ALLOW;
			any = any || now;
			if (allowed)
				CHECK_INT(now, true);
		}
		sure += allowed;
		ever += any;
	}
	CHECK_INT(sure > 250 && sure < ever, true);
}
