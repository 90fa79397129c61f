/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp: what a program means. Three judges: a straightforward evaluator of the policy,
 * libseccomp (through its own generated program), and for the real profiles both. Programs run in a
 * small interpreter over many (architecture, number, arguments).
 */
#include "tests/unit/test.h"

#include <errno.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/seccomp/seccomp.h"
#include "src/sys/syscalls.h"
#include "tests/unit/seccomp/bpf.h"
#include "tests/unit/seccomp/profile.h"

#define X32          0x40000000u
#define NOT_COMPARED "getpid"
#define ENOSYS_RET   (SECCOMP_RET_ERRNO | ENOSYS)

/* libseccomp 2.5.4 forgets two allocations of a rule that it refuses. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libseccomp";
}

/* ---- the evaluator ------------------------------------------------------------------------ */

static uint32_t action_of(const char *name, const uint32_t *errno_ret)
{
	uint32_t data = errno_ret ? *errno_ret : EPERM;

	if (!strcmp(name, "SCMP_ACT_ALLOW"))
		return SECCOMP_RET_ALLOW;
	if (!strcmp(name, "SCMP_ACT_ERRNO"))
		return SECCOMP_RET_ERRNO | data;
	if (!strcmp(name, "SCMP_ACT_TRACE"))
		return SECCOMP_RET_TRACE | data;
	if (!strcmp(name, "SCMP_ACT_LOG"))
		return SECCOMP_RET_LOG;
	if (!strcmp(name, "SCMP_ACT_TRAP"))
		return SECCOMP_RET_TRAP;
	if (!strcmp(name, "SCMP_ACT_NOTIFY"))
		return SECCOMP_RET_USER_NOTIF;
	return !strcmp(name, "SCMP_ACT_KILL_PROCESS") ? SECCOMP_RET_KILL_PROCESS
						      : SECCOMP_RET_KILL_THREAD;
}

static bool holds(const struct oci_seccomp_arg *a, const struct seccomp_data *d, bool is_64)
{
	uint64_t mask = is_64 ? UINT64_MAX : UINT32_MAX;
	uint64_t x = d->args[a->index] & mask, v = a->value & mask, two = a->value_two & mask;
	const char *op = a->op + strlen("SCMP_CMP_");

	return !strcmp(op, "EQ")   ? x == v
	       : !strcmp(op, "NE") ? x != v
	       : !strcmp(op, "LT") ? x < v
	       : !strcmp(op, "LE") ? x <= v
	       : !strcmp(op, "GE") ? x >= v
	       : !strcmp(op, "GT") ? x > v
				   : (x & v) == two;
}

/* muxed: conditions on argument 0 cannot be checked and count as true. */
static bool rule_holds(const struct oci_seccomp_rule *r, const struct seccomp_data *d, bool is_64,
		       bool muxed)
{
	bool same = false;
	unsigned used = 0;

	for (size_t i = 0; i < r->args.n; i++) {
		same |= used >> r->args.v[i].index & 1;
		used |= 1u << r->args.v[i].index;
	}
	for (size_t i = 0; i < r->args.n; i++)
		if (((muxed && r->args.v[i].index == 0) || holds(&r->args.v[i], d, is_64)) == same)
			return same;
	return !same;
}

static bool listed(const struct oci_seccomp *s, const char *arch)
{
	for (size_t i = 0; i < s->architectures.n; i++)
		if (!strcmp(s->architectures.v[i], arch))
			return true;
	return false;
}

/* Direct numbers of calls that libseccomp resolves to pseudo numbers on x86, found the other way
 * round, from number to name. */
static int direct_x86(const char *name)
{
	static char *names[500];
	static bool filled;

	for (int i = 0; !filled && i < 500; i++)
		names[i] = seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86, i);
	filled = true;
	for (int i = 0; i < 500; i++)
		if (names[i] && !strcmp(names[i], name))
			return i;
	return -1;
}

static int number(uint32_t arch, const char *name)
{
	int nr = seccomp_syscall_resolve_name_arch(arch, name);

	if (nr < 0)
		return arch == SCMP_ARCH_X86 && nr != __NR_SCMP_ERROR ? direct_x86(name) : -1;
	return arch == SCMP_ARCH_X32 ? nr | (int)X32 : nr;
}

static int mux_call(const char *name)
{
	/* By <linux/net.h> and <linux/ipc.h>: socketcall is 102 on x86, ipc 117. */
	static const char *const socket_names[] = {
		"",           "socket",      "bind",        "connect",    "listen",
		"accept",     "getsockname", "getpeername", "socketpair", "send",
		"recv",       "sendto",      "recvfrom",    "shutdown",   "setsockopt",
		"getsockopt", "sendmsg",     "recvmsg",     "accept4",    "recvmmsg",
		"sendmmsg"};
	for (int i = 1; i <= 20; i++)
		if (!strcmp(name, socket_names[i]))
			return 10200 + i;
	static const struct {
		const char *name;
		int call;
	} ipc[] = {{"semop", 1},   {"semget", 2},  {"semctl", 3},  {"semtimedop", 4},
		   {"msgsnd", 11}, {"msgrcv", 12}, {"msgget", 13}, {"msgctl", 14},
		   {"shmat", 21},  {"shmdt", 22},  {"shmget", 23}, {"shmctl", 24}};
	for (size_t i = 0; i < sizeof(ipc) / sizeof(*ipc); i++)
		if (!strcmp(name, ipc[i].name))
			return 11700 + ipc[i].call;
	return -1;
}

/* The meaning of the policy for one call, but for ENOSYS of newer ones. */
static uint32_t evaluate(const struct oci_seccomp *s, const struct seccomp_data *d)
{
	uint32_t def = action_of(s->default_action, s->default_errno_ret), best = def;
	uint32_t arch = d->arch;
	bool found = false, is_64 = arch == SCMP_ARCH_X86_64;

	if (arch == SCMP_ARCH_X86_64 && (uint32_t)d->nr >= X32) {
		if (d->nr == -1)
			return def;
		if (!listed(s, "SCMP_ARCH_X32"))
			return SECCOMP_RET_KILL_THREAD;
		arch = SCMP_ARCH_X32;
		is_64 = false;
	} else if (arch != SCMP_ARCH_X86_64 &&
		   !(arch == SCMP_ARCH_X86 && listed(s, "SCMP_ARCH_X86"))) {
		return SECCOMP_RET_KILL_THREAD;
	}
	for (size_t i = 0; i < s->syscalls.n; i++) {
		const struct oci_seccomp_rule *r = &s->syscalls.v[i];
		uint32_t act = action_of(r->action, r->errno_ret);

		if (act == def)
			continue;
		for (size_t k = 0; k < r->names.n; k++) {
			bool direct = number(arch, r->names.v[k]) == d->nr;
			int mux = arch == SCMP_ARCH_X86 ? mux_call(r->names.v[k]) : -1;
			bool muxed = mux > 0 && d->nr == mux / 100 &&
				     (uint32_t)d->args[0] == (uint32_t)(mux % 100);

			if (direct && r->args.n == 0)
				return act;
			if ((!muxed && !direct) || (r->args.n && !rule_holds(r, d, is_64, muxed)))
				continue;
			if (!found || (int)(act & SECCOMP_RET_ACTION_FULL) <
					      (int)(best & SECCOMP_RET_ACTION_FULL))
				best = act;
			found = true;
		}
	}
	/* An unconditional rule further down would have decided: look again for one. */
	return best;
}

static uint32_t evaluate_all(const struct oci_seccomp *s, const struct seccomp_data *d)
{
	uint32_t def = action_of(s->default_action, s->default_errno_ret);
	uint32_t arch =
		d->arch == SCMP_ARCH_X86_64 && (uint32_t)d->nr >= X32 ? SCMP_ARCH_X32 : d->arch;

	for (size_t i = 0; i < s->syscalls.n; i++) {
		const struct oci_seccomp_rule *r = &s->syscalls.v[i];
		uint32_t act = action_of(r->action, r->errno_ret);

		for (size_t k = 0; act != def && r->args.n == 0 && k < r->names.n; k++)
			if (d->nr >= 0 && number(arch, r->names.v[k]) == d->nr &&
			    evaluate(s, d) != SECCOMP_RET_KILL_THREAD)
				return act;
	}
	return evaluate(s, d);
}

/* Largest number of the profile for an ABI, -1 if none. */
static int last_of(const struct oci_seccomp *s, uint32_t arch)
{
	int last = -1;

	for (size_t i = 0; i < s->syscalls.n; i++)
		for (size_t k = 0; k < s->syscalls.v[i].names.n; k++) {
			int nr = number(arch, s->syscalls.v[i].names.v[k]);
			int mux = arch == SCMP_ARCH_X86
					  ? mux_call(s->syscalls.v[i].names.v[k]) / 100
					  : -1;

			last = nr > last ? nr : last;
			last = mux > last ? mux : last;
		}
	return last;
}

/* ---- libseccomp --------------------------------------------------------------------------- */

static enum scmp_compare cmp_of(const char *op)
{
	op += strlen("SCMP_CMP_");
	return !strcmp(op, "EQ")   ? SCMP_CMP_EQ
	       : !strcmp(op, "NE") ? SCMP_CMP_NE
	       : !strcmp(op, "LT") ? SCMP_CMP_LT
	       : !strcmp(op, "LE") ? SCMP_CMP_LE
	       : !strcmp(op, "GE") ? SCMP_CMP_GE
	       : !strcmp(op, "GT") ? SCMP_CMP_GT
				   : SCMP_CMP_MASKED_EQ;
}

static int their_rule(scmp_filter_ctx ctx, const struct oci_seccomp_rule *r, uint32_t act, int nr)
{
	struct scmp_arg_cmp v[12];
	bool same = false;
	unsigned used = 0;
	int rc = 0;

	for (size_t i = 0; i < r->args.n; i++) {
		const struct oci_seccomp_arg *a = &r->args.v[i];

		v[i] = (struct scmp_arg_cmp){a->index, cmp_of(a->op), a->value, a->value_two};
		same |= used >> a->index & 1;
		used |= 1u << a->index;
	}
	if (!same)
		return seccomp_rule_add_array(ctx, act, nr, (unsigned)r->args.n, v);
	for (size_t i = 0; rc == 0 && i < r->args.n; i++)
		rc = seccomp_rule_add_array(ctx, act, nr, 1, &v[i]);
	return rc;
}

/*
 * The program that libseccomp makes of the policy, mapped; for one architecture only unless `only`
 * is 0.
 */
static struct sock_filter *theirs(const struct oci_seccomp *s, int optimize, uint32_t only,
				  size_t *n)
{
	uint32_t def = action_of(s->default_action, s->default_errno_ret);
	int fd = lr_memfd_create("theirs", MFD_CLOEXEC), rc = 0;

	seccomp_api_set(6);
	scmp_filter_ctx ctx = seccomp_init(def);
	for (size_t i = 0; i < s->architectures.n; i++) {
		const char *name = s->architectures.v[i];
		uint32_t arch = !strcmp(name, "SCMP_ARCH_X86")   ? SCMP_ARCH_X86
				: !strcmp(name, "SCMP_ARCH_X32") ? SCMP_ARCH_X32
								 : SCMP_ARCH_X86_64;
		if (arch != SCMP_ARCH_X86_64 && (!only || arch == only))
			rc |= seccomp_arch_add(ctx, arch);
	}
	if (only && only != SCMP_ARCH_X86_64)
		rc |= seccomp_arch_remove(ctx, SCMP_ARCH_X86_64);
	seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, (uint32_t)optimize);
	/* 2.5.4 forgets to load the number if the first call of its list has none on an
	 * architecture: put one in front that is everywhere. It is left out of the comparison. */
	int first = seccomp_syscall_resolve_name(NOT_COMPARED);
	rc |= seccomp_syscall_priority(ctx, first, 255);
	rc |= seccomp_rule_add(ctx, def == SCMP_ACT_TRAP ? SCMP_ACT_ALLOW : SCMP_ACT_TRAP, first,
			       0);
	for (size_t i = 0; i < s->syscalls.n; i++) {
		const struct oci_seccomp_rule *r = &s->syscalls.v[i];
		uint32_t act = action_of(r->action, r->errno_ret);

		for (size_t k = 0; act != def && k < r->names.n; k++) {
			int nr = seccomp_syscall_resolve_name(r->names.v[k]);
			if (nr != __NR_SCMP_ERROR)
				rc |= their_rule(ctx, r, act, nr);
		}
	}
	rc |= seccomp_export_bpf(ctx, fd);
	seccomp_release(ctx);
	off_t size = lseek(fd, 0, SEEK_END);
	*n = (size_t)size / sizeof(struct sock_filter);
	void *p = rc || size <= 0 ? MAP_FAILED
				  : mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

/* ---- comparing ---------------------------------------------------------------------------- */

static uint64_t seed = 42;
static uint32_t rnd(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

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
	unsigned checked, wrong, wrong_theirs;
};

/* libseccomp's programs: one for all architectures, or one each. */
struct their_programs {
	struct sock_filter *v[3];
	size_t n[3];
};

static void check_call(const struct oci_seccomp *s, const struct lr_seccomp_prog *p,
		       const struct sock_filter *t, size_t tn, struct seccomp_data *d,
		       bool newer_hidden, int last, struct outcome *o)
{
	uint32_t got = bpf_run(p->v, p->n, d, NULL), want = evaluate_all(s, d);
	bool newer = newer_hidden && last > 0 && d->nr > last && d->nr != -1 &&
		     want == action_of(s->default_action, s->default_errno_ret);

	o->checked++;
	if (got != (newer ? ENOSYS_RET : want)) {
		if (o->wrong++ < 5)
			printf("# arch %#x nr %#x args %#llx %#llx %#llx: got %#x, want %#x\n",
			       d->arch, d->nr, d->args[0], d->args[1], d->args[2], got,
			       newer ? ENOSYS_RET : want);
	}
	if (t && !newer && got != bpf_run(t, tn, d, NULL)) {
		if (o->wrong_theirs++ < 5)
			printf("# arch %#x nr %#x args %#llx %#llx %#llx: got %#x, libseccomp "
			       "%#x\n",
			       d->arch, d->nr, d->args[0], d->args[1], d->args[2], got,
			       bpf_run(t, tn, d, NULL));
	}
}

static void compare(const struct oci_seccomp *s, const struct lr_seccomp_prog *p,
		    const struct their_programs *t, int tries, struct outcome *o)
{
	static const uint32_t archs[] = {SCMP_ARCH_X86_64, SCMP_ARCH_X86, SCMP_ARCH_X32,
					 SCMP_ARCH_AARCH64};
	uint32_t def = action_of(s->default_action, s->default_errno_ret);
	bool hidden = def != ENOSYS_RET && def != SECCOMP_RET_ALLOW && def != SECCOMP_RET_LOG &&
		      (def & SECCOMP_RET_ACTION_FULL) != SECCOMP_RET_TRACE;

	for (size_t a = 0; a < sizeof(archs) / sizeof(*archs); a++) {
		bool x32 = archs[a] == SCMP_ARCH_X32;
		int last = last_of(s, archs[a]);
		bool in = x32 ? listed(s, "SCMP_ARCH_X32")
			      : archs[a] == SCMP_ARCH_X86_64 ||
					  (archs[a] == SCMP_ARCH_X86 && listed(s, "SCMP_ARCH_X86"));

		for (int nr = 0; nr < 600; nr++) {
			struct seccomp_data d = {.arch = x32 ? SCMP_ARCH_X86_64 : archs[a]};

			/* Numbers that only our own table knows are checked elsewhere. */
			if ((nr > 450 && nr < 480) || nr == 335)
				continue;
			d.nr = x32 ? nr | (int)X32 : nr;
			if (d.nr == number(archs[a], NOT_COMPARED))
				continue;
			for (int i = 0; i < tries; i++) {
				for (int k = 0; k < 6; k++)
					d.args[k] = some_value(s);
				check_call(s, p, a < 3 ? t->v[a] : NULL, a < 3 ? t->n[a] : 0, &d,
					   hidden && in, last, o);
			}
		}
	}
}

static bool native_is_x86_64(void)
{
	return seccomp_arch_native() == SCMP_ARCH_X86_64;
}

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
	unsigned steps = 0;
	struct their_programs t = {0};

	REQUIRE(s);
	double t0 = micros();
	CHECK_INT(lr_seccomp_plan(s, NULL, arena, &plan, &err), 0);
	double t1 = micros();
	REQUIRE(lr_seccomp_compile(&plan, arena, &p, &err) == 0);
	double t2 = micros();
	t.v[0] = t.v[1] = t.v[2] = theirs(s, 2, 0, &t.n[0]);
	t.n[1] = t.n[2] = t.n[0];
	double t3 = micros();
	REQUIRE(t.v[0]);

	struct seccomp_data d = {.arch = SCMP_ARCH_X86_64, .nr = 0};
	bpf_run(p.v, p.n, &d, &steps);
	printf("# %s: plan %.0f µs, compile %.0f µs, %u instructions, read(2) after %u; "
	       "libseccomp %.0f µs, %zu\n",
	       name, t1 - t0, t2 - t1, p.n, steps, t3 - t2, t.n[0]);
	CHECK(lr_seccomp_valid(p.v, p.n));
	CHECK(p.n < max_insns);
	compare(s, &p, &t, 6, &o);
	munmap(t.v[0], t.n[0] * sizeof(*t.v[0]));
	CHECK(o.checked > 12000);
	CHECK_INT(o.wrong, 0);
	CHECK_INT(o.wrong_theirs, 0);
}

TEST(docker_like_profile)
{
	if (!native_is_x86_64())
		SKIP("the profile is for x86_64");
	real_profile("docker-like", 900);
}

TEST(podman_like_profile)
{
	if (!native_is_x86_64())
		SKIP("the profile is for x86_64");
	real_profile("podman-like", 900);
}

/* ---- random policies ----------------------------------------------------------------------- */

static const char *const some_names[] = {
	"read",       "open",    "socket",       "bind",         "accept",     "send",
	"semop",      "shmget",  "clone",        "ioctl",        "prctl",      "mmap",
	"mmap2",      "_llseek", "personality",  "openat",       "socketcall", "ipc",
	"umount",     "umount2", "stat64",       "getuid32",     "arch_prctl", "io_uring_setup",
	"recvmsg",    "kill",    "no_such_call", "futex_time64", "semtimedop", "time",
	"exit_group",
};
static const char *const some_actions[] = {
	"SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO", "SCMP_ACT_KILL", "SCMP_ACT_KILL_PROCESS",
	"SCMP_ACT_TRAP",  "SCMP_ACT_LOG",   "SCMP_ACT_TRACE"};
static const char *const some_ops[] = {"SCMP_CMP_NE",       "SCMP_CMP_LT", "SCMP_CMP_LE",
				       "SCMP_CMP_EQ",       "SCMP_CMP_GE", "SCMP_CMP_GT",
				       "SCMP_CMP_MASKED_EQ"};
static const uint64_t some_values[] = {
	0, 1, 5, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x123456789abcdef0, UINT64_MAX};
#define PICK(v) (v)[rnd(sizeof(v) / sizeof(*(v)))]

static void random_rule(struct oci_seccomp_rule *r, struct lr_arena *arena, bool free_action)
{
	static uint32_t errnos[] = {1, 22, 38};
	size_t n = 1 + rnd(3);

	*r = (struct oci_seccomp_rule){.names = {lr_new_n(arena, n + 1, const char *), n}};
	do
		r->names.v[0] = PICK(some_names);
	while (!free_action &&
	       (!strcmp(r->names.v[0], "ipc") || !strcmp(r->names.v[0], "socketcall")));
	for (size_t i = 1; i < n; i++)
		r->names.v[i] = r->names.v[0];
	/* Where rules of one call overlap, libseccomp's answer depends on its own sorting: let all
	 * conditional ones of a call have one action. */
	r->action = some_actions[(unsigned char)r->names.v[0][1] % 7];
	if (!strcmp(r->action, "SCMP_ACT_ERRNO"))
		r->errno_ret = &errnos[(unsigned char)r->names.v[0][0] % 3];
	if (rnd(3) == 0) {
		if (free_action) {
			r->action = PICK(some_actions);
			r->errno_ret = NULL;
		}
		return;
	}
	r->args.n = 1 + rnd(3);
	r->args.v = lr_new_n(arena, r->args.n, struct oci_seccomp_arg);
	for (size_t i = 0; i < r->args.n; i++) {
		struct oci_seccomp_arg *a = &r->args.v[i];

		*a = (struct oci_seccomp_arg){rnd(3), PICK(some_values), 0, PICK(some_ops)};
		if (!free_action) {
			/* libseccomp 2.5.4 merges different comparisons of one argument wrongly. */
			a->op = some_ops[(unsigned char)r->names.v[0][2] % 7];
			if (strcmp(a->op, "SCMP_CMP_EQ") != 0 && strcmp(a->op, "SCMP_CMP_NE") != 0)
				a->value = some_values[(unsigned char)r->names.v[0][3] % 9];
		}
		if (!strcmp(a->op, "SCMP_CMP_MASKED_EQ"))
			a->value_two = PICK(some_values) & a->value;
	}
}

static void random_policy(bool with_theirs, struct outcome *o, unsigned *compiled)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
	static const char *archs[] = {"SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"};
	struct oci_seccomp s = {.default_action = PICK(some_actions),
				.architectures = {archs, 1 + rnd(3)}};
	struct lr_seccomp_plan plan;
	struct lr_seccomp_prog p;
	struct lr_err err = {0};
	struct their_programs t = {0};
	static const uint32_t tokens[] = {SCMP_ARCH_X86_64, SCMP_ARCH_X86, SCMP_ARCH_X32};

	s.syscalls.n = 1 + rnd(12);
	s.syscalls.v = lr_new_n(arena, s.syscalls.n, struct oci_seccomp_rule);
	for (size_t i = 0; i < s.syscalls.n; i++)
		random_rule(&s.syscalls.v[i], arena, !with_theirs);
	REQUIRE(lr_seccomp_plan(&s, NULL, arena, &plan, &err) == 0);
	REQUIRE(lr_seccomp_compile(&plan, arena, &p, &err) == 0);
	CHECK(lr_seccomp_valid(p.v, p.n));
	for (size_t i = 0; with_theirs && i < s.architectures.n; i++) {
		t.v[i] = theirs(&s, 1, tokens[i], &t.n[i]);
		*compiled += t.v[i] != NULL;
	}
	unsigned before = o->wrong_theirs + o->wrong;
	compare(&s, &p, &t, 2, o);
	for (size_t i = 0; o->wrong_theirs + o->wrong > before && i < s.syscalls.n; i++) {
		const struct oci_seccomp_rule *r = &s.syscalls.v[i];

		printf("#   rule %zu: %s %s", i, r->names.v[0], r->action);
		for (size_t k = 0; k < r->args.n; k++)
			printf(" [%u %s %#jx %#jx]", r->args.v[k].index, r->args.v[k].op,
			       (uintmax_t)r->args.v[k].value, (uintmax_t)r->args.v[k].value_two);
		printf(" (default %s)\n", s.default_action);
	}
	for (size_t i = 0; i < 3; i++)
		if (t.v[i])
			munmap(t.v[i], t.n[i] * sizeof(*t.v[i]));
}

TEST(random_policies_mean_what_they_say)
{
	struct outcome o = {0};
	unsigned compiled = 0;

	if (!native_is_x86_64())
		SKIP("the samples are for x86_64");
	for (int i = 0; i < 100; i++)
		random_policy(false, &o, &compiled);
	CHECK(o.checked > 300000);
	CHECK_INT(o.wrong, 0);
}

TEST(random_policies_agree_with_libseccomp)
{
	struct outcome o = {0};
	unsigned compiled = 0;

	if (!native_is_x86_64())
		SKIP("the samples are for x86_64");
	for (int i = 0; i < 120; i++)
		random_policy(true, &o, &compiled);
	printf("# %u programs that libseccomp made\n", compiled);
	CHECK(compiled > 100);
	CHECK_INT(o.wrong, 0);
	CHECK_INT(o.wrong_theirs, 0);
}
