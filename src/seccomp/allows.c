/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp: what a program says of a system call whatever its arguments; see seccomp.h. */
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>

#include "src/seccomp/internal.h"
#include "src/seccomp/seccomp.h"

/*
 * Jumps lead forward only, so one pass over the program will do: each instruction knows what the
 * accumulator holds whichever way it was reached, or that it may be one thing or another. Of the
 * data only the number and the architecture are known. What is not understood allows nothing.
 */
struct state {
	bool reached;
	bool known; /* the accumulator */
	uint32_t a;
};

static void reach(struct state *s, bool known, uint32_t a)
{
	s->known = known && (!s->reached || (s->known && s->a == a));
	s->a = a;
	s->reached = true;
}

static bool holds(uint16_t code, uint32_t a, uint32_t k)
{
	switch (BPF_OP(code)) {
	case BPF_JEQ:
		return a == k;
	case BPF_JGT:
		return a > k;
	case BPF_JGE:
		return a >= k;
	default:
		return a & k; /* BPF_JSET */
	}
}

static bool allowed(uint32_t result)
{
	uint32_t action = result & SECCOMP_RET_ACTION_FULL;

	return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
}

/* What the instruction at `i` leads to. False: to something else than being allowed. */
static bool follow(const struct sock_filter *f, size_t i, struct state *s, uint32_t nr)
{
	const struct state *now = &s[i];
	uint32_t k = f[i].k;

	switch (f[i].code) {
	case BPF_LD | BPF_W | BPF_ABS:
		if (k == offsetof(struct seccomp_data, nr))
			reach(&s[i + 1], true, nr);
		else if (k == offsetof(struct seccomp_data, arch))
			reach(&s[i + 1], true, lr_seccomp_arch_native());
		else
			reach(&s[i + 1], false, 0);
		return true;
	case BPF_ALU | BPF_AND | BPF_K:
		reach(&s[i + 1], now->known, now->a & k);
		return true;
	case BPF_JMP | BPF_JA:
		reach(&s[i + 1 + k], now->known, now->a);
		return true;
	case BPF_JMP | BPF_JEQ | BPF_K:
	case BPF_JMP | BPF_JGT | BPF_K:
	case BPF_JMP | BPF_JGE | BPF_K:
	case BPF_JMP | BPF_JSET | BPF_K:
		if (!now->known || holds(f[i].code, now->a, k))
			reach(&s[i + 1 + f[i].jt], now->known, now->a);
		if (!now->known || !holds(f[i].code, now->a, k))
			reach(&s[i + 1 + f[i].jf], now->known, now->a);
		return true;
	case BPF_RET | BPF_K:
		return allowed(k);
	default:
		return false;
	}
}

static bool allows(const struct lr_seccomp_prog *p, struct state *s, uint32_t nr)
{
	memset(s, 0, p->n * sizeof(*s));
	s[0].reached = true;
	for (size_t i = 0; i < p->n; i++)
		if (s[i].reached && !follow(p->v, i, s, nr))
			return false;
	return true;
}

bool lr_seccomp_allows(const struct lr_seccomp_prog *p, const int *calls, size_t n,
		       struct lr_arena *arena)
{
	struct state *s = lr_seccomp_valid(p->v, p->n) ? lr_new_n(arena, p->n, struct state) : NULL;

	for (size_t i = 0; s && i < n; i++)
		if (!allows(p, s, (uint32_t)calls[i]))
			return false;
	return s;
}
