/* SPDX-License-Identifier: Apache-2.0 */
/*
 * devrule: what the generated program and the v1 exceptions grant is compared with the
 * definition ("the last match decides, access by access") over many rule lists; the program runs
 * in a small interpreter here, and in the kernel where that is allowed.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/str.h"
#include "src/cgroup/cgroup.h"
#include "src/cgroup/files.h"
#include "src/devrule/devrule.h"
#include "tests/unit/test.h"

static struct lr_err err;

/* ---- the definition ------------------------------------------------------------------------- */

static bool definition(const struct lr_devrules *d, char type, int64_t major, int64_t minor,
		       unsigned access)
{
	for (unsigned bit = 1; bit <= LR_DEV_W; bit <<= 1) {
		bool ok = d->allow_rest;

		if (!(access & bit))
			continue;
		for (size_t i = 0; i < d->n; i++) {
			const struct lr_devrule *r = &d->v[i];

			if ((r->type == 'a' || r->type == type) &&
			    (r->major < 0 || r->major == major) &&
			    (r->minor < 0 || r->minor == minor) && (r->access & bit))
				ok = r->allow;
		}
		if (!ok)
			return false;
	}
	return true;
}

/* What the kernel's v1 controller does: a default, and exceptions to it. */
static bool exceptions(const struct lr_devrules *flat, char type, int64_t major, int64_t minor,
		       unsigned access)
{
	for (size_t i = 0; i < flat->n; i++) {
		const struct lr_devrule *e = &flat->v[i];

		if (e->type != type || (e->major >= 0 && e->major != major) ||
		    (e->minor >= 0 && e->minor != minor))
			continue;
		if (flat->allow_rest && (e->access & access))
			return false;
		if (!flat->allow_rest && (access & ~e->access) == 0)
			return true;
	}
	return flat->allow_rest;
}

/* ---- the interpreter ------------------------------------------------------------------------ */

static int64_t run(const struct bpf_insn *v, size_t n, uint32_t access_type, uint32_t major,
		   uint32_t minor)
{
	struct bpf_cgroup_dev_ctx ctx = {access_type, major, minor};
	uint64_t r[11] = {0};
	size_t steps = 0;

	r[1] = (uintptr_t)&ctx;
	for (size_t pc = 0; pc < n && steps++ < 100000; pc++) {
		const struct bpf_insn *i = &v[pc];
		uint64_t src =
			(i->code & 0x08) == BPF_X ? r[i->src_reg] : (uint64_t)(int64_t)i->imm;
		uint64_t *dst = &r[i->dst_reg];
		bool jump;

		switch (i->code) {
		case BPF_LDX | BPF_MEM | BPF_W:
			*dst = *(uint32_t *)(uintptr_t)(r[i->src_reg] + (uint64_t)i->off);
			continue;
		case BPF_ALU64 | BPF_MOV | BPF_K:
			*dst = src;
			continue;
		case BPF_ALU | BPF_MOV | BPF_X:
			*dst = (uint32_t)src;
			continue;
		case BPF_ALU | BPF_AND | BPF_K:
			*dst = (uint32_t)*dst & (uint32_t)src;
			continue;
		case BPF_ALU | BPF_RSH | BPF_K:
			*dst = (uint32_t)*dst >> src;
			continue;
		case BPF_JMP32 | BPF_JNE | BPF_K:
			jump = (uint32_t)*dst != (uint32_t)src;
			break;
		case BPF_JMP32 | BPF_JEQ | BPF_K:
			jump = (uint32_t)*dst == (uint32_t)src;
			break;
		case BPF_JMP | BPF_EXIT:
			return (int64_t)r[0];
		default:
			return -1;
		}
		if (jump)
			pc += (size_t)i->off;
	}
	return -2;
}

static bool program(const struct bpf_insn *v, size_t n, char type, int64_t major, int64_t minor,
		    unsigned access)
{
	uint32_t t = type == 'b' ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR;
	int64_t r = run(v, n, access << 16 | t, (uint32_t)major, (uint32_t)minor);

	CHECK(r == 0 || r == 1);
	return r == 1;
}

/* ---- comparison ----------------------------------------------------------------------------- */

static uint32_t seed = 12345;

static uint32_t rnd(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 16) % n;
}

/* A small world, so that rules meet: majors and minors 0..2 and any. */
static struct oci_device_cgroup random_rule(int64_t numbers[2])
{
	static const char *const types[] = {"a", "b", "c", "c", NULL};
	static const char *const accesses[] = {"r", "w", "m", "rw", "rwm", "wm", NULL};
	struct oci_device_cgroup d = {
		.allow = rnd(2), .type = types[rnd(5)], .access = accesses[rnd(7)]};

	numbers[0] = (int64_t)rnd(4) - 1;
	numbers[1] = (int64_t)rnd(4) - 1;
	if (rnd(4))
		d.major = &numbers[0];
	if (rnd(4))
		d.minor = &numbers[1];
	return d;
}

TEST(program_and_exceptions_grant_what_the_rules_say)
{
	size_t flat_ok = 0, flat_refused = 0;

	for (int round = 0; round < 3000; round++) {
		LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
		struct oci_device_cgroup rules[8];
		int64_t numbers[8][2];
		struct oci_device_cgroups list = {rules, rnd(9)};
		struct lr_devrules devs, flat;
		struct bpf_insn *insns = NULL;
		size_t n = 0, wrong = 0;

		for (size_t i = 0; i < list.n; i++)
			rules[i] = random_rule(numbers[i]);
		REQUIRE(lr_devrules_of(&list, false, arena, &devs, &err) == 0);
		REQUIRE(lr_devrules_program(&devs, arena, &insns, &n, &err) == 0);
		int fr = lr_devrules_flatten(&devs, arena, &flat, &err);
		CHECK(fr == 0 || fr == -EINVAL);
		flat_ok += fr == 0;
		flat_refused += fr != 0;
		for (unsigned k = 0; k < 2 * 3 * 3 * 7; k++) {
			char type = k % 2 ? 'b' : 'c';
			int64_t major = k / 2 % 3, minor = k / 6 % 3;
			unsigned access = 1 + k / 18;
			bool want = definition(&devs, type, major, minor, access);

			wrong += program(insns, n, type, major, minor, access) != want;
			/* v1's exceptions are looked at one by one: an access of two bits
			 * needs one that has both. */
			if (fr == 0 && (access & (access - 1)) == 0)
				wrong += exceptions(&flat, type, major, minor, access) != want;
		}
		CHECK_INT(wrong, 0);
	}
	CHECK(flat_ok > 100 && flat_refused > 100);
}

static const struct {
	char type;
	int major, minor;
} spec_defaults[] = {{'c', 1, 3}, {'c', 1, 5}, {'c', 1, 7}, {'c', 1, 8},
		     {'c', 1, 9}, {'c', 5, 0}, {'c', 5, 2}, {'c', 136, 17}};

TEST(default_devices_stay_usable)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
	int64_t one = 1, three = 3;
	struct oci_device_cgroup rules[] = {
		{.allow = true},
		{.allow = false, .type = "c", .major = &one},
		{.allow = false, .access = "rwm"},
		{.allow = true, .type = "c", .major = &one, .minor = &three},
		{.allow = false, .type = "c", .major = &one, .minor = &three, .access = "w"}};

	for (size_t n = 0; n <= LR_ARRAY_SIZE(rules); n++) {
		struct oci_device_cgroups list = {rules, n};
		struct lr_devrules devs;

		REQUIRE(lr_devrules_of(&list, true, arena, &devs, &err) == 0);
		for (size_t i = 0; i < LR_ARRAY_SIZE(spec_defaults); i++)
			CHECK(definition(&devs, spec_defaults[i].type, spec_defaults[i].major,
					 spec_defaults[i].minor, LR_DEV_ALL));
		CHECK(definition(&devs, 'c', 5, 1, LR_DEV_ALL)); /* the console of a terminal */
		/* the rest: closed unless said otherwise */
		CHECK_INT(definition(&devs, 'b', 8, 0, LR_DEV_R), n == 1 || n == 2);
		/* a node may be made of anything: that opens nothing */
		CHECK(definition(&devs, 'c', 10, 200, LR_DEV_M));
		CHECK(definition(&devs, 'b', 8, 0, LR_DEV_M));
	}
	struct lr_devrules devs;
	REQUIRE(lr_devrules_of(NULL, false, arena, &devs, &err) == 0);
	CHECK(!definition(&devs, 'c', 5, 1, LR_DEV_R));
	/* Nothing is added to "everything": v1 needs one write, v2 no program. */
	struct oci_device_cgroups all = {rules, 1};
	REQUIRE(lr_devrules_of(&all, true, arena, &devs, &err) == 0);
	CHECK(devs.allow_rest);
	CHECK_INT(devs.n, 0);
}

TEST(a_rule_without_a_type_or_accesses_is_about_all_of_them)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
	int64_t eight = 8;
	struct oci_device_cgroup rules[] = {
		{.allow = false},
		{.allow = true, .type = "", .access = "", .major = &eight, .minor = &eight}};
	struct oci_device_cgroups list = {rules, 2};
	struct lr_devrules devs;

	REQUIRE(lr_devrules_of(&list, false, arena, &devs, &err) == 0);
	REQUIRE(devs.n > 0);
	CHECK_INT(devs.v[0].type, 'a');
	CHECK_INT(devs.v[0].access, LR_DEV_ALL);
}

TEST(more_rules_than_the_kernel_takes_are_refused)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
	struct lr_devrules devs = {.n = 100001};
	struct bpf_insn *insns = NULL;
	size_t n = 0;

	devs.v = calloc(devs.n, sizeof(*devs.v));
	REQUIRE(devs.v);
	CHECK_INT(lr_devrules_program(&devs, arena, &insns, &n, &err), -E2BIG);
	CHECK_STR(err.path, "linux.resources.devices");
	devs.n--;
	CHECK_INT(lr_devrules_program(&devs, arena, &insns, &n, &err), 0);
	free(devs.v);
}

TEST(a_terminal_of_any_number_stays_usable_when_one_is_denied)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
	int64_t pts = 136, seven = 7;
	struct oci_device_cgroup rules[] = {
		{.allow = false},
		{.allow = true, .type = "c", .major = &pts},
		{.allow = false, .type = "c", .major = &pts, .minor = &seven}};
	struct oci_device_cgroups list = {rules, 3};
	struct lr_devrules devs;

	REQUIRE(lr_devrules_of(&list, false, arena, &devs, &err) == 0);
	CHECK(definition(&devs, 'c', 136, 7, LR_DEV_ALL));
}

TEST(bad_rules_are_refused)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
	int64_t low = -2, high = 1LL << 33;
	struct oci_device_cgroup bad[] = {
		{.type = "x"}, {.type = "cc"}, {.access = "rx"}, {.major = &low}, {.minor = &high}};

	for (size_t i = 0; i < LR_ARRAY_SIZE(bad); i++) {
		struct oci_device_cgroups list = {&bad[i], 1};
		struct lr_devrules devs;

		CHECK_INT(lr_devrules_of(&list, false, arena, &devs, &err), -EINVAL);
		CHECK_STR(err.path, "linux.resources.devices[0]");
	}
}

TEST(v1_refuses_holes)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
	int64_t eight = 8, zero = 0;
	struct oci_device_cgroup rules[] = {
		{.allow = false},
		{.allow = true, .type = "b", .major = &eight},
		{.allow = false, .type = "b", .major = &eight, .minor = &zero, .access = "w"}};
	struct oci_device_cgroups list = {rules, 3};
	struct lr_devrules devs, flat;

	REQUIRE(lr_devrules_of(&list, false, arena, &devs, &err) == 0);
	CHECK_INT(lr_devrules_flatten(&devs, arena, &flat, &err), -EINVAL);
	CHECK_STR(err.path, "linux.resources.devices[2]");
	CHECK_HAS(err.msg, "b 8:-1");
}

TEST(a_very_long_list_still_loads)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
	size_t n = 3000, n_insns;
	struct oci_device_cgroup *rules = lr_new_n(arena, n, struct oci_device_cgroup);
	int64_t *major = lr_new_n(arena, n, int64_t);
	struct oci_device_cgroups list = {rules, n};
	struct lr_devrules devs;
	struct bpf_insn *insns;

	for (size_t i = 0; i < n; i++) {
		major[i] = (int64_t)i;
		rules[i] =
			(struct oci_device_cgroup){.allow = i % 2, .type = "b", .major = &major[i]};
	}
	REQUIRE(lr_devrules_of(&list, false, arena, &devs, &err) == 0);
	REQUIRE(lr_devrules_program(&devs, arena, &insns, &n_insns, &err) == 0);
	CHECK(program(insns, n_insns, 'b', 1, 0, LR_DEV_R));
	CHECK(!program(insns, n_insns, 'b', 2, 0, LR_DEV_R));
	CHECK(program(insns, n_insns, 'b', 2999, 0, LR_DEV_ALL));
}

/* ---- in the kernel -------------------------------------------------------------------------- */

static char v2_dir[256];

/* A cgroup of our own below a mounted v2 tree. */
static bool make_v2_dir(void)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
	struct lr_cgroup_layout *l;

	if (geteuid() != 0 || lr_cgroup_probe(arena, &l, &err) < 0)
		return false;
	for (size_t i = 0; i < l->n; i++) {
		if (l->hierarchies[i].name[0])
			continue;
		snprintf(v2_dir, sizeof(v2_dir), "%s/lr-test-dev-%d", l->hierarchies[i].mountpoint,
			 (int)getpid());
		return mkdir(v2_dir, 0755) == 0;
	}
	return false;
}

/* In a child inside v2_dir: 0 if the open works, else errno. */
static int open_inside(const char *path, int flags)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		int fd;

		if (lr_cgroup_put(v2_dir, "cgroup.procs", "0") < 0)
			_exit(255);
		fd = open(path, flags | O_CLOEXEC);
		_exit(fd < 0 ? errno : 0);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int mknod_inside(unsigned major, unsigned minor)
{
	char path[64];
	int status;
	pid_t pid;

	snprintf(path, sizeof(path), "/tmp/lr-test-node-%d", (int)getpid());
	pid = fork();
	if (pid == 0) {
		if (lr_cgroup_put(v2_dir, "cgroup.procs", "0") < 0)
			_exit(255);
		_exit(mknod(path, S_IFCHR | 0600, makedev(major, minor)) < 0 ? errno : 0);
	}
	waitpid(pid, &status, 0);
	CHECK_INT(access(path, F_OK) == 0, status == 0);
	unlink(path);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int apply(struct lr_arena *arena, struct oci_device_cgroup *rules, size_t n)
{
	struct oci_device_cgroups list = {rules, n};
	struct lr_devrules devs;
	struct bpf_insn *insns;
	size_t n_insns;
	int r = lr_devrules_of(&list, false, arena, &devs, &err);

	if (r == 0)
		r = lr_devrules_program(&devs, arena, &insns, &n_insns, &err);
	return r < 0 ? r : lr_devrules_attach(v2_dir, insns, n_insns, false, &err);
}

TEST(the_kernel_enforces_the_program)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
	int64_t one = 1, eleven = 11;
	struct oci_device_cgroup rules[] = {
		{.allow = false},
		{.allow = true, .type = "c", .major = &one, .minor = &eleven, .access = "r"}};
	struct bpf_insn all[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = 1},
				 {.code = BPF_JMP | BPF_EXIT}};
	int r;

	if (!make_v2_dir())
		SKIP("needs root and a mounted cgroup v2 tree");
	/* One that allows everything: what is wrong with it is the kernel's. */
	r = lr_devrules_attach(v2_dir, all, LR_ARRAY_SIZE(all), false, &err);
	if (r == -EPERM || r == -ENOSYS || r == -EINVAL) {
		rmdir(v2_dir);
		SKIP("the kernel takes no device program");
	}
	CHECK_INT(apply(arena, rules, 1), 0);
	CHECK_INT(open_inside("/dev/null", O_RDWR), 0);
	CHECK_INT(open_inside("/dev/kmsg", O_RDONLY | O_NONBLOCK), EPERM);
	CHECK_INT(mknod_inside(1, 3), 0);
	CHECK_INT(mknod_inside(1, 11), 0);
	/* replaced, not added: both would have to allow */
	CHECK_INT(apply(arena, rules, 2), 0);
	CHECK_INT(open_inside("/dev/kmsg", O_RDONLY | O_NONBLOCK), 0);
	CHECK_INT(open_inside("/dev/kmsg", O_RDWR | O_NONBLOCK), EPERM);
	CHECK_INT(mknod_inside(1, 11), 0);
	CHECK_INT(rmdir(v2_dir), 0);
}
