/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp: what the files of this room share. */
#ifndef LR_SECCOMP_INTERNAL_H
#define LR_SECCOMP_INTERNAL_H

#include "src/base/str.h"
#include "src/seccomp/seccomp.h"

#define LR_SECCOMP_X32_BIT 0x40000000u

/* ---- arch.c ------------------------------------------------------------------------------ */

/* Token (SCMP_ARCH_*) of a name, 0 if unknown to this build. */
uint32_t lr_seccomp_arch_token(const char *name);
uint32_t lr_seccomp_arch_native(void);
/* What the kernel puts into seccomp_data.arch: x32 shares that of x86_64. */
uint32_t lr_seccomp_arch_audit(uint32_t token);
bool lr_seccomp_arch_is_64(uint32_t token);
bool lr_seccomp_arch_is_s390(uint32_t token);
bool lr_seccomp_arch_same_endian(uint32_t token);
/* Arm's private calls (cacheflush, set_tls) lie far above all others and say nothing about age. */
bool lr_seccomp_arch_private(uint32_t token, int64_t nr);
/* Tells one table of numbers from another. */
uint64_t lr_seccomp_numbers_digest(void);

/* Number of a system call, or -1 if the architecture hasn't got it. */
int64_t lr_seccomp_number(uint32_t token, const char *name);
/* Is it a system call of any architecture? */
bool lr_seccomp_is_syscall(const char *name);
/* If the call is also reached through socketcall or ipc there: that one's number and the value of
 * its first argument. */
bool lr_seccomp_multiplexed(uint32_t token, const char *name, uint32_t *nr, uint32_t *call);

/* ---- emit.c: instructions ---------------------------------------------------------------- */

struct lr_seccomp_code {
	struct sock_filter *v;
	size_t n, size;
	bool full; /* out of memory or more than BPF_MAXINSNS */
	struct lr_arena *arena;
};

/* One way that a number can be decided. */
struct lr_seccomp_case {
	uint32_t action;
	const struct lr_seccomp_cond *conds;
	size_t n_conds;
	bool is_64;
};

/* Numbers from `first` to the next range's first - 1. */
struct lr_seccomp_range {
	uint32_t first;
	uint32_t action;                     /* if none of the cases holds */
	const struct lr_seccomp_case *cases; /* in order */
	size_t n_cases;
};

void lr_seccomp_emit(struct lr_seccomp_code *c, uint16_t op, uint8_t jt, uint8_t jf, uint32_t k);
/* A tree over the ranges (the first begins at 0); expects nothing in the accumulator. */
void lr_seccomp_emit_ranges(struct lr_seccomp_code *c, const struct lr_seccomp_range *r, size_t n);

/* ---- program.c: the file format ----------------------------------------------------------- */

/* Makes the bytes of a file; policy may be NULL. NULL when out of memory. */
void *lr_seccomp_pack(const struct lr_seccomp_prog *prog, const void *policy, size_t policy_len,
		      struct lr_arena *arena, size_t *len);
/* The other way. The program points into `bytes` (aligned, from the arena). The file must hold
 * exactly this policy. -EBADMSG. */
int lr_seccomp_unpack(void *bytes, size_t len, const void *policy, size_t policy_len,
		      struct lr_seccomp_prog *ret);
#define LR_SECCOMP_FILE_MAX (4u << 20)

/* ---- bpfdata.c ----------------------------------------------------------------------------- */

int lr_seccomp_from_bpf_data(const char *base64, struct lr_arena *arena,
			     struct lr_seccomp_prog *ret, struct lr_err *err) LR_MUST_CHECK;

#endif
