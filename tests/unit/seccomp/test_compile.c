/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp: what a program means, with libseccomp as the judge. It is asked twice, and both programs
 * run in a small interpreter over many (architecture, number, arguments):
 *
 *  - rule by rule: it says which rules hold for a call; seccomp.h says which of these decides.
 *  - as a whole, for what its version 2.5.4 gets right: where different conditional rules of one
 *    call meet in its tree it loses some of them, or never ends.
 *
 * Where we differ from it by decision, expect() says so.
 *
 * LR_SECCOMP_SEED=N repeats a run, LR_SECCOMP_POLICIES=N makes it longer.
 */
#include "tests/unit/test.h"

#include <sys/random.h>
#include <time.h>

#include "src/seccomp/seccomp.h"
#include "tests/unit/seccomp/bpf.h"
#include "tests/unit/seccomp/policy.h"
#include "tests/unit/seccomp/profile.h"

/* ---- the judge ------------------------------------------------------------------------------ */

struct numbers {
	int64_t direct[N_ABIS], muxed[N_ABIS]; /* -1: none */
};

/* libseccomp's programs: of the whole policy but for the wild rules; and of each part of each rule,
 * which allow what that does not catch. */
#define PARTS 6
struct judge {
	const struct oci_seccomp *s;
	const bool *wild; /* by rule: not for libseccomp as a whole */
	uint32_t otherwise;
	struct program whole;
	struct numbers **names; /* by rule and name */
	int64_t last[N_ABIS], not_compared[N_ABIS];
	struct program (*rules)[PARTS];
};

#define CAUGHT SECCOMP_RET_TRAP

static uint32_t action_of_rule(const struct oci_seccomp_rule *r)
{
	return action_of(r->action, r->errno_ret);
}

/* Looks the names up once: it takes long. */
static void look_up(struct judge *j, struct lr_arena *arena)
{
	for (size_t i = 0; i < j->s->syscalls.n; i++) {
		const struct oci_strv *names = &j->s->syscalls.v[i].names;

		j->names[i] = lr_new_n(arena, names->n, struct numbers);
		for (size_t k = 0; k < names->n; k++)
			for (size_t a = 0; a < N_ABIS; a++) {
				j->names[i][k].direct[a] = number(&abis[a], names->v[k]);
				j->names[i][k].muxed[a] = mux_number(&abis[a], names->v[k]);
			}
	}
	for (size_t a = 0; a < N_ABIS; a++) {
		j->last[a] = last_of(j->s, &abis[a]);
		j->not_compared[a] = number(&abis[a], NOT_COMPARED);
	}
}

static bool judge_open(struct judge *j, const struct oci_seccomp *s, const bool *wild, int optimize,
		       struct lr_arena *arena)
{
	*j = (struct judge){.s = s,
			    .wild = wild,
			    .otherwise = action_of(s->default_action, s->default_errno_ret),
			    .names = lr_new_n(arena, s->syscalls.n, struct numbers *),
			    .rules = lr_alloc_n(arena, s->syscalls.n, sizeof(*j->rules))};

	look_up(j, arena);
	scmp_filter_ctx whole = their_filter(s, j->otherwise);
	bool good = seccomp_attr_set(whole, SCMP_FLTATR_CTL_OPTIMIZE, (uint32_t)optimize) == 0;

	for (size_t i = 0; i < s->syscalls.n; i++) {
		const struct oci_seccomp_rule *r = &s->syscalls.v[i];

		for (size_t k = 0; k < n_parts(r); k++) {
			scmp_filter_ctx one = their_filter(s, SCMP_ACT_ALLOW);

			if (!wild[i] && action_of_rule(r) != j->otherwise)
				good &= their_rule(whole, r, k, action_of_rule(r)) == 0;
			good &= their_rule(one, r, k, CAUGHT) == 0;
			j->rules[i][k] = their_program(one);
			good &= j->rules[i][k].v != NULL;
		}
	}
	j->whole = their_program(whole);
	return good && j->whole.v;
}

static void judge_close(struct judge *j)
{
	drop(&j->whole);
	for (size_t i = 0; i < j->s->syscalls.n; i++)
		for (size_t k = 0; k < PARTS; k++)
			drop(&j->rules[i][k]);
}

static bool catches(const struct judge *j, size_t rule, const struct seccomp_data *d)
{
	for (size_t k = 0; k < n_parts(&j->s->syscalls.v[rule]); k++)
		if (bpf_run(j->rules[rule][k].v, j->rules[rule][k].n, d, NULL) == CAUGHT)
			return true;
	return false;
}

static bool names_number(const struct judge *j, size_t rule, const struct abi *abi, uint32_t nr,
			 bool directly)
{
	for (size_t k = 0; k < j->s->syscalls.v[rule].names.n; k++) {
		const struct numbers *n = &j->names[rule][k];

		if (n->direct[abi - abis] == (int64_t)nr ||
		    (!directly && n->muxed[abi - abis] == (int64_t)nr))
			return true;
	}
	return false;
}

/* A mask of nothing is no condition; and one of those that are rules of their own is enough. */
static bool is_unconditional(const struct oci_seccomp_rule *r, bool is_64)
{
	size_t always = 0;

	for (size_t i = 0; i < r->args.n; i++)
		always += !strcmp(r->args.v[i].op, "SCMP_CMP_MASKED_EQ") &&
			  (is_64 ? r->args.v[i].value : (uint32_t)r->args.v[i].value) == 0;
	return always == r->args.n || (always && is_separate(r));
}

struct verdict {
	uint32_t action;
	bool wild;  /* libseccomp as a whole is not asked */
	bool newer; /* decided: ENOSYS instead of the default action, so that libraries fall back */
};

/* What is to come out, by what libseccomp says about each rule. abi: NULL for one that the policy
 * does not list. */
static struct verdict expect(const struct judge *j, const struct abi *abi,
			     const struct seccomp_data *d)
{
	const struct oci_seccomp *s = j->s;
	struct verdict v = {.action = j->otherwise};
	uint32_t nr = (uint32_t)d->nr;
	bool caught = false, decided = false, named = false;

	if (!abi)
		return (struct verdict){.action = SECCOMP_RET_KILL_THREAD};
	for (size_t i = 0; i < s->syscalls.n; i++) {
		const struct oci_seccomp_rule *r = &s->syscalls.v[i];
		uint32_t action = action_of_rule(r);

		if (!names_number(j, i, abi, nr, false))
			continue;
		named |= action != j->otherwise;
		v.wild |= j->wild[i];
		if (action == j->otherwise || decided || !catches(j, i, d))
			continue;
		decided = is_unconditional(r, abi->is_64) && names_number(j, i, abi, nr, true);
		if (decided || !caught ||
		    (int)(action & SECCOMP_RET_ACTION_FULL) <
			    (int)(v.action & SECCOMP_RET_ACTION_FULL))
			v.action = action;
		caught = true;
	}
	int64_t last = j->last[abi - abis];
	v.newer = !named && hides_newer(j->otherwise) &&
		  last > (abi->token == SCMP_ARCH_X32 ? X32 : 0) && (int64_t)nr > last &&
		  !(audit_of(abi) == SCMP_ARCH_X86_64 && d->nr == -1);
	if (v.newer)
		v.action = ENOSYS_RET;
	return v;
}

/* ---- comparing ------------------------------------------------------------------------------ */

static uint64_t seed;
static uint32_t rnd(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}
#define PICK(v) (v)[rnd(sizeof(v) / sizeof(*(v)))]

/* Argument values near the ones that the policy compares with, and some far away. */
static uint64_t some_value(const struct oci_seccomp *s)
{
	uint64_t v = rnd(4);

	if (rnd(4) && s->syscalls.n) {
		const struct oci_seccomp_rule *r = &s->syscalls.v[rnd((uint32_t)s->syscalls.n)];
		if (r->args.n) {
			const struct oci_seccomp_arg *a = &r->args.v[rnd((uint32_t)r->args.n)];
			v = (rnd(3) ? a->value : a->value_two) + rnd(3) - 1;
		}
	}
	if (rnd(6) == 0)
		v ^= UINT64_C(1) << rnd(64);
	if (rnd(12) == 0)
		v |= UINT64_C(0xffffffff00000000);
	return v;
}

struct outcome {
	unsigned checked, newer, whole, wrong, wrong_whole;
};

static void show_policy(const struct oci_seccomp *s)
{
	printf("#   default %s, architectures", s->default_action);
	for (size_t i = 0; i < s->architectures.n; i++)
		printf(" %s", s->architectures.v[i]);
	putchar('\n');
	for (size_t i = 0; i < s->syscalls.n && s->syscalls.n < 40; i++) {
		const struct oci_seccomp_rule *r = &s->syscalls.v[i];

		printf("#   rule %zu: %s", i, r->action);
		for (size_t k = 0; k < r->names.n; k++)
			printf(" %s", r->names.v[k]);
		for (size_t k = 0; k < r->args.n; k++)
			printf(" [%u %s %#jx %#jx]", r->args.v[k].index, r->args.v[k].op,
			       (uintmax_t)r->args.v[k].value, (uintmax_t)r->args.v[k].value_two);
		putchar('\n');
	}
}

static void differs(const char *judge, uint32_t got, uint32_t want, const struct seccomp_data *d)
{
	printf("# arch %#x nr %#x args %#llx %#llx %#llx %#llx %#llx %#llx: got %#x, %s %#x\n",
	       d->arch, d->nr, d->args[0], d->args[1], d->args[2], d->args[3], d->args[4],
	       d->args[5], got, judge, want);
}

static void check_call(const struct judge *j, const struct lr_seccomp_prog *p,
		       const struct abi *abi, const struct seccomp_data *d, struct outcome *o)
{
	uint32_t got = bpf_run(p->v, p->n, d, NULL);
	struct verdict v = expect(j, abi, d);

	o->checked++;
	o->newer += v.newer;
	if (got != v.action && o->wrong++ < 5)
		differs("rule by rule", got, v.action, d);
	if (v.newer || v.wild)
		return;
	o->whole++;
	uint32_t theirs = bpf_run(j->whole.v, j->whole.n, d, NULL);
	if (got != theirs && o->wrong_whole++ < 5)
		differs("libseccomp", got, theirs, d);
}

/* Which of the tables a number belongs to, NULL if the policy does not list that one. */
static const struct abi *abi_of(const struct oci_seccomp *s, uint32_t audit, uint32_t nr)
{
	for (size_t i = 0; i < N_ABIS; i++) {
		bool here = audit_of(&abis[i]) == audit &&
			    (audit != SCMP_ARCH_X86_64 ||
			     (abis[i].token == SCMP_ARCH_X32) == (nr >= X32));
		if (here)
			return lists(s, &abis[i]) ? &abis[i] : NULL;
	}
	return NULL;
}

/* Numbers that our table knows and libseccomp 2.5.4 doesn't: those of the calls since 6.5, and of
 * uretprobe. Profiles may name them. */
static bool is_news(uint32_t nr)
{
	uint32_t plain = nr & ~X32;

	for (uint32_t base = 6000; base >= 4000; base -= 1000) /* of the MIPS ABIs */
		plain -= plain > base ? base : 0;
	return (plain > 450 && plain < 480) || plain == 335;
}

static void compare_number(const struct judge *j, const struct lr_seccomp_prog *p,
			   const struct abi *table, uint32_t nr, int tries, struct outcome *o)
{
	struct seccomp_data d = {.arch = audit_of(table), .nr = (int)nr};
	const struct abi *abi = abi_of(j->s, d.arch, nr);

	/* syscall(-1) is a tracer's way to skip one: no call of x32. */
	if (d.arch == SCMP_ARCH_X86_64 && d.nr == -1 && abi_of(j->s, d.arch, 0))
		abi = abi_of(j->s, d.arch, 0);
	if ((int64_t)nr == j->not_compared[table - abis] || is_news(nr))
		return;
	for (int i = 0; i < tries; i++) {
		for (int k = 0; k < 6; k++)
			d.args[k] = some_value(j->s);
		/* socketcall and ipc */
		if (table->muxed && (nr - table->first == 102 || nr - table->first == 117) &&
		    rnd(4))
			d.args[0] = (d.args[0] & ~UINT64_C(0xffffffff)) | rnd(26);
		check_call(j, p, abi, &d, o);
	}
}

/* The numbers that the policy names and their neighbours, boundaries, and some others. */
static void compare(const struct judge *j, const struct lr_seccomp_prog *p, int tries, int others,
		    struct outcome *o)
{
	for (size_t a = 0; a < N_ABIS; a++) {
		const struct abi *table = &abis[a];
		const uint32_t some[] = {0,
					 (uint32_t)j->last[a] + 1,
					 table->first + 102,
					 table->first + 117,
					 X32 - 1,
					 X32,
					 X32 + 600,
					 0x7fffffff,
					 0x80000000,
					 0xffffffff};

		for (size_t i = 0; i < LR_ARRAY_SIZE(some); i++)
			compare_number(j, p, table, some[i], 2, o);
		for (int i = 0; i < others; i++)
			compare_number(j, p, table, table->first + rnd(700), 1, o);
		for (size_t i = 0; i < j->s->syscalls.n; i++)
			for (size_t k = 0; k < j->s->syscalls.v[i].names.n; k++) {
				int64_t nr = j->names[i][k].direct[a];

				if (nr < 0)
					continue;
				compare_number(j, p, table, (uint32_t)nr, tries, o);
				compare_number(j, p, table, (uint32_t)nr + 1, 1, o);
			}
	}
}

/* ---- real profiles -------------------------------------------------------------------------- */

static double micros(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void real_profile(const char *name, size_t max_insns)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
	const struct oci_seccomp *s = read_profile(name, arena);
	struct lr_seccomp_plan plan;
	struct lr_seccomp_prog p;
	struct outcome o = {0};
	struct lr_err err = {0};
	struct judge j;
	unsigned steps = 0;

	if (seccomp_arch_native() != SCMP_ARCH_X86_64)
		SKIP("the profile is for x86_64");
	REQUIRE(s);
	double t0 = micros();
	CHECK_INT(lr_seccomp_plan(s, NULL, arena, &plan, &err), 0);
	double t1 = micros();
	REQUIRE(lr_seccomp_compile(&plan, arena, &p, &err) == 0);
	double t2 = micros();

	bpf_run(p.v, p.n, &(struct seccomp_data){.arch = SCMP_ARCH_X86_64}, &steps);
	printf("# %s: plan %.0f µs, compile %.0f µs, %u instructions, read(2) after %u\n", name,
	       t1 - t0, t2 - t1, p.n, steps);
	CHECK(lr_seccomp_valid(p.v, p.n));
	CHECK(p.n < max_insns);
	REQUIRE(judge_open(&j, s, lr_new_n(arena, s->syscalls.n, bool), 2, arena));
	seed = 42;
	compare(&j, &p, 6, 600, &o);
	judge_close(&j);
	CHECK(o.whole > 12000);
	CHECK(o.newer > 0 || plan.default_action == ENOSYS_RET);
	CHECK_INT(o.wrong, 0);
	CHECK_INT(o.wrong_whole, 0);
}

TEST(docker_like_profile)
{
	real_profile("docker-like", 900);
}

TEST(podman_like_profile)
{
	real_profile("podman-like", 900);
}

/* ---- random policies ------------------------------------------------------------------------- */

/* Those that some architectures lack, or have under two numbers or through another call. Others
 * come from libseccomp's table. */
static const char *const some_names[] = {
	"read",       "open",       "socket",       "bind",           "accept",       "send",
	"semop",      "shmget",     "clone",        "ioctl",          "prctl",        "mmap",
	"mmap2",      "_llseek",    "umount",       "umount2",        "stat64",       "getuid32",
	"recvmsg",    "arch_prctl", "semtimedop",   "time",           "futex_time64", "exit_group",
	"cacheflush", "set_tls",    "no_such_call", "no_call_at_all",
};
static const char *const some_actions[] = {
	"SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO", "SCMP_ACT_KILL",  "SCMP_ACT_KILL_PROCESS",
	"SCMP_ACT_TRAP",  "SCMP_ACT_LOG",   "SCMP_ACT_TRACE", "SCMP_ACT_NOTIFY"};
static const char *const some_ops[] = {"SCMP_CMP_NE",       "SCMP_CMP_LT", "SCMP_CMP_LE",
				       "SCMP_CMP_EQ",       "SCMP_CMP_GE", "SCMP_CMP_GT",
				       "SCMP_CMP_MASKED_EQ"};
static const uint64_t some_values[] = {
	0,          1,           5,           0x7fffffff,         0x80000000,
	0xffffffff, 0x100000000, 0x100000001, 0x123456789abcdef0, 0xffffffff00000000,
	UINT64_MAX};

static const char *random_name(void)
{
	enum { MANY = 512 };
	static const char *names[MANY];

	for (int i = 0; !names[MANY - 1] && i < MANY; i++) {
		names[i] = seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86, i);
		/* write cannot be notified of; what has no number there is none; these two are what
		 * others go through, and would meet them in libseccomp's tree */
		if (!names[i] || !strcmp(names[i], "write") || !strcmp(names[i], NOT_COMPARED) ||
		    !strcmp(names[i], "socketcall") || !strcmp(names[i], "ipc"))
			names[i] = "read";
	}
	return rnd(3) ? PICK(some_names) : PICK(names);
}

static const uint32_t *random_errno(const char *action, struct lr_arena *arena)
{
	uint32_t *e = lr_new(arena, uint32_t);

	if (rnd(2) || (strcmp(action, "SCMP_ACT_ERRNO") && strcmp(action, "SCMP_ACT_TRACE")))
		return NULL;
	/* The kernel passes 4095 on, too; libseccomp takes less. */
	*e = rnd(3) ? rnd(40) : rnd(4095);
	return e;
}

static void random_args(struct oci_seccomp_rule *r, bool may_repeat, struct lr_arena *arena)
{
	unsigned used = 0;

	r->args.n = 1 + rnd(4);
	r->args.v = lr_new_n(arena, r->args.n, struct oci_seccomp_arg);
	for (size_t i = 0; i < r->args.n; i++) {
		uint32_t index = rnd(6);

		while (!may_repeat && used >> index & 1)
			index = (index + 1) % 6;
		used |= 1u << index;
		r->args.v[i] = (struct oci_seccomp_arg){index, PICK(some_values), PICK(some_values),
							PICK(some_ops)};
	}
}

/* How libseccomp is fond of several rules for one call: the same comparison of one argument. */
static void like_the_first(struct oci_seccomp_rule *r, const struct oci_seccomp_rule *first,
			   struct lr_arena *arena)
{
	const char *op = first->args.v->op;

	*r = *first;
	r->args.n = 1;
	r->args.v = lr_new(arena, struct oci_seccomp_arg);
	*r->args.v = *first->args.v;
	if (!strcmp(op, "SCMP_CMP_EQ") || !strcmp(op, "SCMP_CMP_NE"))
		r->args.v->value = PICK(some_values);
}

/*
 * Rules for one to three calls that no other group names: one without conditions, one with, several
 * that are alike, or any (wild).
 */
static size_t random_group(struct oci_seccomp_rule *v, bool *wild, const char **names, size_t n,
			   struct lr_arena *arena)
{
	enum { PLAIN, ONE, ALIKE, WILD } kind = rnd(4);
	size_t count = kind < ALIKE ? 1 : 2 + rnd(4);

	for (size_t i = 0; i < count; i++) {
		struct oci_seccomp_rule *r = &v[i];

		*r = (struct oci_seccomp_rule){.names = {names, n}, .action = PICK(some_actions)};
		r->errno_ret = random_errno(r->action, arena);
		if (kind == ONE || (kind == ALIKE && i == 0) || (kind == WILD && rnd(8)))
			random_args(r, kind == WILD, arena);
		if (kind == ALIKE && i == 0)
			r->args.n = 1;
		if (kind == ALIKE && i > 0)
			like_the_first(r, &v[0], arena);
		wild[i] = kind == WILD;
	}
	return count;
}

#define GROUPS 6
#define RULES  (GROUPS * 6)

static void random_policy(struct outcome *o)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
	const char *archs[N_ABIS], **names = lr_new_n(arena, GROUPS * 3, const char *);
	struct oci_seccomp s = {.default_action = PICK(some_actions),
				.listener_path = "/run/agent.sock",
				.architectures = {archs, 0},
				.syscalls = {lr_new_n(arena, RULES, struct oci_seccomp_rule), 0}};
	bool wild[RULES];
	struct lr_seccomp_plan plan;
	struct lr_seccomp_prog p;
	struct lr_err err = {0};
	struct judge j;
	size_t used = 0;

	while (!strcmp(s.default_action, "SCMP_ACT_NOTIFY"))
		s.default_action = PICK(some_actions);
	s.default_errno_ret = random_errno(s.default_action, arena);
	for (size_t i = 0; i < N_ABIS; i++)
		if (rnd(3) == 0)
			archs[s.architectures.n++] = abis[i].name;
	for (uint32_t g = 1 + rnd(GROUPS); g; g--) {
		size_t n = 1 + rnd(3), from = used;

		while (used < from + n) {
			bool twice = false;

			names[used] = random_name();
			for (size_t i = 0; i < used; i++)
				twice |= !strcmp(names[i], names[used]);
			used += !twice;
		}
		s.syscalls.n += random_group(&s.syscalls.v[s.syscalls.n], &wild[s.syscalls.n],
					     &names[from], n, arena);
	}
	REQUIRE(lr_seccomp_plan(&s, NULL, arena, &plan, &err) == 0);
	REQUIRE(lr_seccomp_compile(&plan, arena, &p, &err) == 0);
	CHECK(lr_seccomp_valid(p.v, p.n));
	unsigned before = o->wrong + o->wrong_whole;
	bool good = judge_open(&j, &s, wild, 1 + (int)rnd(2), arena);
	CHECK(good);
	if (good)
		compare(&j, &p, 4, 20, o);
	judge_close(&j);
	if (!good || (o->wrong + o->wrong_whole > before && before < 10))
		show_policy(&s);
}

static uint64_t number_from(const char *variable, uint64_t otherwise)
{
	const char *text = getenv(variable);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

TEST(random_policies_agree_with_libseccomp)
{
	struct outcome o = {0};
	uint64_t policies = number_from("LR_SECCOMP_POLICIES", 400), first;
	uint32_t any = 1;

	if (seccomp_arch_native() != SCMP_ARCH_X86_64 && seccomp_arch_native() != SCMP_ARCH_AARCH64)
		SKIP("the samples are for x86_64 and aarch64");
	CHECK(getrandom(&any, sizeof(any), 0) == sizeof(any));
	first = number_from("LR_SECCOMP_SEED", any);
	printf("# LR_SECCOMP_SEED=%ju\n", (uintmax_t)first);
	for (uint64_t i = 0; i < policies && o.wrong + o.wrong_whole < 20; i++) {
		seed = (first + i) * 0x9e3779b97f4a7c15u;
		unsigned before = o.wrong + o.wrong_whole;
		random_policy(&o);
		if (o.wrong + o.wrong_whole > before)
			printf("# LR_SECCOMP_SEED=%ju LR_SECCOMP_POLICIES=1 repeats it\n",
			       (uintmax_t)(first + i));
	}
	printf("# %u calls compared, %u of them with the whole program, %u newer\n", o.checked,
	       o.whole, o.newer);
	CHECK(o.checked > policies * 300);
	CHECK(o.whole > policies * 100);
	CHECK_INT(o.wrong, 0);
	CHECK_INT(o.wrong_whole, 0);
}
