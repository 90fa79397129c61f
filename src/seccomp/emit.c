/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp: ranges of system call numbers to instructions.
 *
 * A balanced tree of comparisons decides a number after about log2(ranges) of them. Conditional
 * jumps reach 255 instructions; where the target is further, they go through an unconditional one.
 * Arguments are compared at the leaves. Only instructions that the kernel's bitmap of
 * always-allowed calls understands (5.11) stand before the first argument is loaded.
 */
#include "src/seccomp/internal.h"

#include <endian.h>
#include <linux/seccomp.h>
#include <string.h>

#define LD   (BPF_LD | BPF_W | BPF_ABS)
#define JA   (BPF_JMP | BPF_JA)
#define JEQ  (BPF_JMP | BPF_JEQ | BPF_K)
#define JGT  (BPF_JMP | BPF_JGT | BPF_K)
#define JGE  (BPF_JMP | BPF_JGE | BPF_K)
#define AND  (BPF_ALU | BPF_AND | BPF_K)
#define RET  (BPF_RET | BPF_K)

#define FAIL 255 /* patched when the end of the case is known */

void lr_seccomp_emit(struct lr_seccomp_code *c, uint16_t op, uint8_t jt, uint8_t jf, uint32_t k)
{
	if (c->full)
		return;
	if (c->n == c->size) {
		size_t size = c->size ? c->size * 2 : 256;
		struct sock_filter *v = lr_new_n(c->arena, size, struct sock_filter);

		if (!v || c->n >= BPF_MAXINSNS) {
			c->full = true;
			return;
		}
		if (c->n)
			memcpy(v, c->v, c->n * sizeof(*v));
		c->v = v;
		c->size = size;
	}
	c->v[c->n++] = (struct sock_filter){.code = op, .jt = jt, .jf = jf, .k = k};
}

static uint32_t offset_of(const struct lr_seccomp_cond *cond, bool high)
{
	uint32_t at = (uint32_t)offsetof(struct seccomp_data, args) + 8u * cond->arg;

	return at + (high == (__BYTE_ORDER == __LITTLE_ENDIAN) ? 4 : 0);
}

/* The low halves, once the high ones are equal (or do not count). */
static void emit_low(struct lr_seccomp_code *c, const struct lr_seccomp_cond *cond)
{
	uint32_t low = (uint32_t)cond->value;

	lr_seccomp_emit(c, LD, 0, 0, offset_of(cond, false));
	switch ((enum lr_seccomp_op)cond->op) {
	case LR_SECCOMP_EQ:
		lr_seccomp_emit(c, JEQ, 0, FAIL, low);
		break;
	case LR_SECCOMP_NE:
		lr_seccomp_emit(c, JEQ, FAIL, 0, low);
		break;
	case LR_SECCOMP_GT:
		lr_seccomp_emit(c, JGT, 0, FAIL, low);
		break;
	case LR_SECCOMP_GE:
		lr_seccomp_emit(c, JGE, 0, FAIL, low);
		break;
	case LR_SECCOMP_LT:
		lr_seccomp_emit(c, JGE, FAIL, 0, low);
		break;
	case LR_SECCOMP_LE:
		lr_seccomp_emit(c, JGT, FAIL, 0, low);
		break;
	case LR_SECCOMP_MASKED_EQ:
		lr_seccomp_emit(c, AND, 0, 0, low);
		lr_seccomp_emit(c, JEQ, 0, FAIL, (uint32_t)cond->value_two);
		break;
	}
}

/* The high halves: decided already (jump over the two or three instructions that compare the low
 * ones), or equal and the low ones decide. */
static void emit_high(struct lr_seccomp_code *c, const struct lr_seccomp_cond *cond)
{
	uint32_t high = (uint32_t)(cond->value >> 32);

	if (cond->op == LR_SECCOMP_MASKED_EQ) {
		if (high == 0 && cond->value_two >> 32 == 0)
			return; /* masked away */
		lr_seccomp_emit(c, LD, 0, 0, offset_of(cond, true));
		lr_seccomp_emit(c, AND, 0, 0, high);
		lr_seccomp_emit(c, JEQ, 0, FAIL, (uint32_t)(cond->value_two >> 32));
		return;
	}
	lr_seccomp_emit(c, LD, 0, 0, offset_of(cond, true));
	switch ((enum lr_seccomp_op)cond->op) {
	case LR_SECCOMP_NE:
		lr_seccomp_emit(c, JEQ, 0, 2, high);
		break;
	case LR_SECCOMP_GT:
	case LR_SECCOMP_GE:
		lr_seccomp_emit(c, JGT, 3, 0, high);
		lr_seccomp_emit(c, JEQ, 0, FAIL, high);
		break;
	case LR_SECCOMP_LT:
	case LR_SECCOMP_LE:
		lr_seccomp_emit(c, JGT, FAIL, 0, high);
		lr_seccomp_emit(c, JEQ, 0, 2, high);
		break;
	default:
		lr_seccomp_emit(c, JEQ, 0, FAIL, high);
		break;
	}
}

static void emit_case(struct lr_seccomp_code *c, const struct lr_seccomp_case *k)
{
	size_t start = c->n;

	for (size_t i = 0; i < k->n_conds; i++) {
		if (k->is_64)
			emit_high(c, &k->conds[i]);
		emit_low(c, &k->conds[i]);
	}
	lr_seccomp_emit(c, RET, 0, 0, k->action);
	if (c->full)
		return;
	/* At most 6 conditions of 6 instructions each: the end is always within reach. */
	for (size_t i = start; i < c->n; i++) {
		uint8_t over = (uint8_t)(c->n - i - 1);

		if (BPF_CLASS(c->v[i].code) != BPF_JMP)
			continue;
		c->v[i].jt = c->v[i].jt == FAIL ? over : c->v[i].jt;
		c->v[i].jf = c->v[i].jf == FAIL ? over : c->v[i].jf;
	}
}

/* How many cases from here on are "this argument equals a constant", alike but for the constant's
 * low half? Profiles list address families and personalities that way. */
static size_t run_of_equals(const struct lr_seccomp_case *k, size_t n)
{
	size_t i;

	for (i = 0; i < n && i < 200; i++)
		if (k[i].n_conds != 1 || k[i].conds->op != LR_SECCOMP_EQ ||
		    k[i].action != k->action || k[i].conds->arg != k->conds->arg ||
		    (k->is_64 && k[i].conds->value >> 32 != k->conds->value >> 32))
			break;
	return i;
}

/* Loads the argument once for all of them. */
static void emit_equals(struct lr_seccomp_code *c, const struct lr_seccomp_case *k, size_t n)
{
	if (k->is_64) {
		lr_seccomp_emit(c, LD, 0, 0, offset_of(k->conds, true));
		lr_seccomp_emit(c, JEQ, 0, (uint8_t)(n + 2), (uint32_t)(k->conds->value >> 32));
	}
	lr_seccomp_emit(c, LD, 0, 0, offset_of(k->conds, false));
	for (size_t i = 0; i < n; i++)
		lr_seccomp_emit(c, JEQ, (uint8_t)(n - 1 - i), i + 1 == n,
				(uint32_t)k[i].conds->value);
	lr_seccomp_emit(c, RET, 0, 0, k->action);
}

static void emit_leaf(struct lr_seccomp_code *c, const struct lr_seccomp_range *r)
{
	for (size_t i = 0; i < r->n_cases;) {
		size_t n = run_of_equals(&r->cases[i], r->n_cases - i);

		if (n > 1)
			emit_equals(c, &r->cases[i], n);
		else
			emit_case(c, &r->cases[i]);
		i += n > 1 ? n : 1;
	}
	lr_seccomp_emit(c, RET, 0, 0, r->action);
}

/*
 * The tree is built from its end, so that every jump knows its target: an instruction's place is
 * its distance from the end. Leaves that always return the same share one return instruction as
 * long as it is within reach, which halves the program: what loading costs the kernel is mostly
 * the length (it compiles to machine code in several passes).
 */
struct tree {
	struct lr_seccomp_code code; /* last instruction first */
	struct {
		uint32_t action;
		size_t at;
	} returns[16]; /* the nearest return of an action */
	size_t n_returns;
};

/* Where a jump may go: a place, or a return wherever there is one. */
struct target {
	bool is_return;
	uint32_t action;
	size_t at;
};

#define REACH  255
#define MARGIN 3 /* instructions that may come between a decision and its jump */

static size_t push(struct tree *t, uint16_t op, uint8_t jt, uint8_t jf, uint32_t k)
{
	lr_seccomp_emit(&t->code, op, jt, jf, k);
	return t->code.n - 1;
}

/* Distance of a jump that is pushed next. */
static size_t distance(const struct tree *t, size_t at)
{
	return t->code.n - at - 1;
}

static size_t place_of_return(struct tree *t, uint32_t action)
{
	size_t i;

	for (i = 0; i < t->n_returns; i++)
		if (t->returns[i].action == action)
			break;
	if (i < t->n_returns && distance(t, t->returns[i].at) + MARGIN <= REACH)
		return t->returns[i].at;
	if (i == LR_ARRAY_SIZE(t->returns))
		i--; /* so many actions: the last ones are not shared */
	t->returns[i].action = action;
	t->returns[i].at = push(t, RET, 0, 0, action);
	if (i == t->n_returns)
		t->n_returns++;
	return t->returns[i].at;
}

/* Makes sure that a target is a place within reach of a jump pushed soon. */
static size_t reachable(struct tree *t, struct target to)
{
	if (to.is_return)
		return place_of_return(t, to.action);
	if (distance(t, to.at) + MARGIN > REACH)
		return push(t, JA, 0, 0, (uint32_t)distance(t, to.at));
	return to.at;
}

static struct target push_tree(struct tree *t, const struct lr_seccomp_range *r, size_t n)
{
	if (t->code.full)
		return (struct target){0};
	if (n == 1 && r->n_cases == 0)
		return (struct target){.is_return = true, .action = r->action};
	if (n == 1) {
		struct lr_seccomp_code leaf = {.arena = t->code.arena};

		emit_leaf(&leaf, r);
		t->code.full |= leaf.full;
		for (size_t i = leaf.n; i-- > 0;)
			push(t, leaf.v[i].code, leaf.v[i].jt, leaf.v[i].jf, leaf.v[i].k);
		return (struct target){.at = t->code.n - 1};
	}
	size_t half = n / 2;
	struct target right = push_tree(t, r + half, n - half);
	struct target left = push_tree(t, r, half);
	if (t->code.full)
		return right;
	size_t yes = reachable(t, right), no = reachable(t, left);

	return (struct target){.at = push(t, JGE, (uint8_t)distance(t, yes),
					  (uint8_t)distance(t, no), r[half].first)};
}

void lr_seccomp_emit_ranges(struct lr_seccomp_code *c, const struct lr_seccomp_range *r, size_t n)
{
	struct tree t = {.code = {.arena = c->arena}};

	if (n == 1) {
		emit_leaf(c, r);
		return;
	}
	push_tree(&t, r, n); /* the root comes last, so it is first to run */
	push(&t, LD, 0, 0, offsetof(struct seccomp_data, nr));
	c->full |= t.code.full;
	for (size_t i = t.code.full ? 0 : t.code.n; i-- > 0;)
		lr_seccomp_emit(c, t.code.v[i].code, t.code.v[i].jt, t.code.v[i].jf, t.code.v[i].k);
}
