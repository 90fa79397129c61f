/* SPDX-License-Identifier: Apache-2.0 */
/* What judges a compiled policy: names to values, and libseccomp's program of a rule. */
#ifndef LR_TEST_POLICY_H
#define LR_TEST_POLICY_H

#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libocispec/config.h"
#include "src/base/str.h"
#include "src/sys/syscalls.h"

#define X32        0x40000000u
#define ENOSYS_RET (SECCOMP_RET_ERRNO | ENOSYS)

/* libseccomp 2.5.4 forgets two allocations of a rule that it refuses. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libseccomp";
}

static inline uint32_t action_of(const char *name, const uint32_t *errno_ret)
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

/* The actions that allow a call hide no newer one, nor does a tracer, who knows better. */
static inline bool hides_newer(uint32_t action)
{
	uint32_t kind = action & SECCOMP_RET_ACTION_FULL;

	return action != ENOSYS_RET && kind != SECCOMP_RET_ALLOW && kind != SECCOMP_RET_LOG &&
	       kind != SECCOMP_RET_TRACE;
}

/* ---- architectures and numbers ------------------------------------------------------------ */

static const struct abi {
	const char *name;
	uint32_t token;
	uint32_t first; /* number */
	bool is_64;
	bool muxed; /* has socketcall(2) and ipc(2) */
} abis[] = {
	{"SCMP_ARCH_X86_64", SCMP_ARCH_X86_64, 0, true, false},
	{"SCMP_ARCH_X86", SCMP_ARCH_X86, 0, false, true},
	{"SCMP_ARCH_X32", SCMP_ARCH_X32, X32, false, false},
	{"SCMP_ARCH_AARCH64", SCMP_ARCH_AARCH64, 0, true, false},
	{"SCMP_ARCH_ARM", SCMP_ARCH_ARM, 0, false, false},
	{"SCMP_ARCH_PPC64LE", SCMP_ARCH_PPC64LE, 0, true, true},
	{"SCMP_ARCH_RISCV64", SCMP_ARCH_RISCV64, 0, true, false},
	{"SCMP_ARCH_MIPSEL", SCMP_ARCH_MIPSEL, 4000, false, true},
	{"SCMP_ARCH_MIPSEL64", SCMP_ARCH_MIPSEL64, 5000, true, false},
	{"SCMP_ARCH_MIPSEL64N32", SCMP_ARCH_MIPSEL64N32, 6000, false, false},
};
#define N_ABIS LR_ARRAY_SIZE(abis)

/* What the kernel puts into seccomp_data.arch. */
static inline uint32_t audit_of(const struct abi *abi)
{
	return abi->token == SCMP_ARCH_X32 ? SCMP_ARCH_X86_64 : abi->token;
}

static inline bool lists(const struct oci_seccomp *s, const struct abi *abi)
{
	if (abi->token == seccomp_arch_native())
		return true;
	for (size_t i = 0; i < s->architectures.n; i++)
		if (!strcmp(s->architectures.v[i], abi->name))
			return true;
	return false;
}

/* Where libseccomp resolves a name to a pseudo number, the direct one is found the other way round,
 * from number to name. */
static inline int direct_number(const struct abi *abi, const char *name)
{
	enum { MANY = 500 };
	static char *names[N_ABIS][MANY];
	char **v = names[abi - abis];

	if (!v[0])
		for (int i = 0; i < MANY; i++)
			v[i] = seccomp_syscall_resolve_num_arch(abi->token, (int)abi->first + i);
	for (int i = 0; i < MANY; i++)
		if (v[i] && !strcmp(v[i], name))
			return (int)abi->first + i;
	return -1;
}

static inline int64_t number(const struct abi *abi, const char *name)
{
	int nr = seccomp_syscall_resolve_name_arch(abi->token, name);

	if (nr < 0)
		return abi->muxed && nr != __NR_SCMP_ERROR ? direct_number(abi, name) : -1;
	return abi->token == SCMP_ARCH_X32 ? nr | (int64_t)X32 : nr;
}

/* The number of socketcall or ipc, if the call is reached through that; -1 if not. */
static inline int64_t mux_number(const struct abi *abi, const char *name)
{
	/* libseccomp's pseudo numbers: -100 minus the first argument of socketcall, as in
	 * <linux/net.h>; -200 minus that of ipc, as in <linux/ipc.h>. */
	int nr = seccomp_syscall_resolve_name_arch(abi->token, name);

	if (!abi->muxed || nr > -100 || nr < -299)
		return -1;
	return abi->first + (nr > -200 ? 102 : 117);
}

/* Largest number of the profile, -1 if none: what lies above it is newer. Arm's private calls lie
 * far above all others. */
static inline int64_t last_of(const struct oci_seccomp *s, const struct abi *abi)
{
	int64_t last = -1;

	for (size_t i = 0; i < s->syscalls.n; i++)
		for (size_t k = 0; k < s->syscalls.v[i].names.n; k++) {
			const char *name = s->syscalls.v[i].names.v[k];
			int64_t nr = number(abi, name), mux = mux_number(abi, name);

			if (nr > last && !(abi->token == SCMP_ARCH_ARM && nr >= 0x0f0000))
				last = nr;
			last = mux > last ? mux : last;
		}
	return last;
}

/* ---- libseccomp ---------------------------------------------------------------------------- */

struct program {
	struct sock_filter *v; /* mapped; NULL if libseccomp refused */
	size_t n;
};

static inline enum scmp_compare cmp_of(const char *op)
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

/* Two conditions on one argument: each is a rule of its own. */
static inline bool is_separate(const struct oci_seccomp_rule *r)
{
	unsigned used = 0;
	bool same = false;

	for (size_t i = 0; i < r->args.n; i++) {
		same |= used >> r->args.v[i].index & 1;
		used |= 1u << r->args.v[i].index;
	}
	return same;
}

/* In how many parts libseccomp gets a rule. */
static inline size_t n_parts(const struct oci_seccomp_rule *r)
{
	return is_separate(r) ? r->args.n : 1;
}

static inline int their_rule(scmp_filter_ctx ctx, const struct oci_seccomp_rule *r, size_t part,
			     uint32_t act)
{
	struct scmp_arg_cmp v[12];
	bool all = !is_separate(r);
	int rc = 0;

	for (size_t i = 0; i < r->args.n; i++) {
		const struct oci_seccomp_arg *a = &r->args.v[i];

		v[i] = (struct scmp_arg_cmp){a->index, cmp_of(a->op), a->value, a->value_two};
	}
	for (size_t k = 0; k < r->names.n; k++) {
		int nr = seccomp_syscall_resolve_name(r->names.v[k]);

		if (nr != __NR_SCMP_ERROR)
			rc |= seccomp_rule_add_array(ctx, act, nr, all ? (unsigned)r->args.n : 1,
						     all ? v : &v[part]);
	}
	return rc;
}

/*
 * 2.5.4 forgets to load the number if the first call of its list has none on an architecture: one
 * that is everywhere stands in front, and is left out of comparisons.
 */
#define NOT_COMPARED "getpid"

static inline scmp_filter_ctx their_filter(const struct oci_seccomp *s, uint32_t otherwise)
{
	seccomp_api_set(6);
	scmp_filter_ctx ctx = seccomp_init(otherwise);
	int first = seccomp_syscall_resolve_name(NOT_COMPARED);

	for (size_t i = 0; i < N_ABIS; i++)
		if (lists(s, &abis[i]) && seccomp_arch_exist(ctx, abis[i].token) < 0)
			(void)seccomp_arch_add(ctx, abis[i].token);
	(void)seccomp_syscall_priority(ctx, first, 255);
	(void)seccomp_rule_add(ctx, otherwise == SCMP_ACT_TRAP ? SCMP_ACT_ALLOW : SCMP_ACT_TRAP,
			       first, 0);
	return ctx;
}

static inline struct program their_program(scmp_filter_ctx ctx)
{
	int fd = lr_memfd_create("theirs", MFD_CLOEXEC);
	int rc = seccomp_export_bpf(ctx, fd);
	off_t size = lseek(fd, 0, SEEK_END);
	void *p = rc || size <= 0 ? MAP_FAILED
				  : mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);

	seccomp_release(ctx);
	close(fd);
	if (p == MAP_FAILED)
		return (struct program){0};
	return (struct program){p, (size_t)size / sizeof(struct sock_filter)};
}

static inline void drop(struct program *p)
{
	if (p->v)
		munmap(p->v, p->n * sizeof(*p->v));
	*p = (struct program){0};
}

#endif
