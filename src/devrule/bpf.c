/* SPDX-License-Identifier: Apache-2.0 */
/*
 * devrule: the rules as an eBPF program for BPF_PROG_TYPE_CGROUP_DEVICE, by hand: nothing else
 * here needs libbpf. The kernel runs it on every open and mknod of a device with
 *
 *   struct bpf_cgroup_dev_ctx { u32 access_type (accesses << 16 | type); u32 major; u32 minor; }
 *
 * and it returns 1 to allow. Rules are tested from the last to the first, each deciding the
 * accesses that no later one has: a deny that meets an undecided access ends it, an allow strikes
 * its accesses off, and when none is left, all are allowed.
 */
#define LR_ROOM "cgroup" /* what it has to say is about that */

#include "src/devrule/devrule.h"

#include <errno.h>
#include <stddef.h>

#define PER_RULE  8      /* instructions at most */
#define MAX_RULES 100000 /* the verifier's limit is a million instructions */

/* Registers: the context comes in r1; r0 is the result. */
enum { R0, R1, R2_TYPE, R3_LEFT, R4_MAJOR, R5_MINOR, R6_TMP };

struct prog {
	struct bpf_insn *v;
	size_t n;
};

static void put(struct prog *p, uint8_t code, uint8_t dst, uint8_t src, int16_t off, int32_t imm)
{
	p->v[p->n++] = (struct bpf_insn){
		.code = code, .dst_reg = dst, .src_reg = src, .off = off, .imm = imm};
}

static void mov_imm(struct prog *p, uint8_t dst, int32_t imm)
{
	put(p, BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, imm);
}

static void ret(struct prog *p, bool allow)
{
	mov_imm(p, R0, allow);
	put(p, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

static void load(struct prog *p, uint8_t dst, size_t off)
{
	put(p, BPF_LDX | BPF_MEM | BPF_W, dst, R1, (int16_t)off, 0);
}

static void prologue(struct prog *p)
{
	load(p, R2_TYPE, offsetof(struct bpf_cgroup_dev_ctx, access_type));
	put(p, BPF_ALU | BPF_MOV | BPF_X, R3_LEFT, R2_TYPE, 0, 0);
	put(p, BPF_ALU | BPF_AND | BPF_K, R2_TYPE, 0, 0, 0xffff);
	put(p, BPF_ALU | BPF_RSH | BPF_K, R3_LEFT, 0, 0, 16);
	load(p, R4_MAJOR, offsetof(struct bpf_cgroup_dev_ctx, major));
	load(p, R5_MINOR, offsetof(struct bpf_cgroup_dev_ctx, minor));
}

/* Jump to the next rule unless the (32 bit) register has that value; patched by the caller. */
static void unless_equal(struct prog *p, uint8_t reg, uint32_t value)
{
	put(p, BPF_JMP32 | BPF_JNE | BPF_K, reg, 0, 0, (int32_t)value);
}

static void rule(struct prog *p, const struct lr_devrule *d)
{
	size_t start = p->n;

	if (d->type != 'a')
		unless_equal(p, R2_TYPE, d->type == 'b' ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR);
	if (d->major >= 0)
		unless_equal(p, R4_MAJOR, (uint32_t)d->major);
	if (d->minor >= 0)
		unless_equal(p, R5_MINOR, (uint32_t)d->minor);
	if (d->allow) {
		put(p, BPF_ALU | BPF_AND | BPF_K, R3_LEFT, 0, 0, (int32_t)~d->access);
		unless_equal(p, R3_LEFT, 0);
	} else {
		put(p, BPF_ALU | BPF_MOV | BPF_X, R6_TMP, R3_LEFT, 0, 0);
		put(p, BPF_ALU | BPF_AND | BPF_K, R6_TMP, 0, 0, (int32_t)d->access);
		put(p, BPF_JMP32 | BPF_JEQ | BPF_K, R6_TMP, 0, 0, 0);
	}
	ret(p, d->allow);
	for (size_t i = start; i < p->n; i++)
		if (BPF_CLASS(p->v[i].code) == BPF_JMP32)
			p->v[i].off = (int16_t)(p->n - i - 1);
}

int lr_devrules_program(const struct lr_devrules *devs, struct lr_arena *arena,
			struct bpf_insn **out, size_t *n, struct lr_err *err)
{
	struct prog p = {0};

	if (devs->n > MAX_RULES) {
		lr_refuse(err, E2BIG, "more than %d device rules", MAX_RULES);
		return lr_err_at(err, "linux.resources.devices");
	}
	p.v = lr_new_n(arena, devs->n * PER_RULE + 8, struct bpf_insn);
	if (!p.v)
		return lr_fail(err, ENOMEM, "cannot plan the device rules");
	prologue(&p);
	for (size_t i = devs->n; i-- > 0;)
		rule(&p, &devs->v[i]);
	ret(&p, devs->allow_rest);
	*out = p.v;
	*n = p.n;
	return 0;
}
