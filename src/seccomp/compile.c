/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp: a policy to ranges of numbers per architecture, and those to a program. */
#define LR_ROOM "seccomp"
#include "src/seccomp/internal.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/log.h"

#define LD_ARCH    (BPF_LD | BPF_W | BPF_ABS)
#define NO_NR      0xffffffffu /* syscall(-1): a tracer's way to skip one; never a real number */
#define ENOSYS_RET (SECCOMP_RET_ERRNO | ENOSYS)

/* Of one architecture. A real policy comes to some 500. */
#define ENTRIES_MAX (1u << 18)

/* One rule for one number. */
struct entry {
	uint32_t nr;
	uint32_t order; /* position in the policy: the first of equals */
	uint32_t action;
	uint32_t rule;                       /* index, for errors */
	const struct lr_seccomp_cond *conds; /* all must hold */
	size_t n_conds;
};

struct entries {
	struct entry *v;
	size_t n;
};

struct ranges {
	struct lr_seccomp_range *v;
	size_t n;
};

static int by_number(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->nr != y->nr)
		return x->nr < y->nr ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static int add_entry(struct entries *e, struct entry x, struct lr_arena *arena)
{
	struct entry *v = e->n < ENTRIES_MAX ? lr_grow(arena, e->v, e->n, sizeof(*v)) : NULL;

	if (!v)
		return e->n < ENTRIES_MAX ? -ENOMEM : -E2BIG;
	x.order = (uint32_t)e->n;
	v[e->n++] = x;
	e->v = v;
	return 0;
}

/* conds[0..n) for a direct call; if they are separate, each makes an entry. */
static int add_direct(struct entries *e, const struct lr_seccomp_rule *rule, struct entry x,
		      struct lr_arena *arena)
{
	size_t step = rule->separate ? 1 : rule->n_conds;
	size_t at = 0;
	int r;

	do {
		x.conds = rule->conds + at;
		x.n_conds = step;
		r = add_entry(e, x, arena);
		at += step;
	} while (r == 0 && at < rule->n_conds);
	return r;
}

/*
 * The same through socketcall or ipc: the first argument says which call. As libseccomp has it, a
 * condition on the first argument of the call itself is dropped (its value is in memory, where no
 * filter can look), and the others look at what is in their place.
 */
static int add_muxed(struct entries *e, const struct lr_seccomp_rule *rule, struct entry x,
		     uint32_t call, struct lr_arena *arena)
{
	size_t step = rule->separate ? 1 : rule->n_conds;
	size_t at = 0;

	do {
		struct lr_seccomp_cond *c = lr_new_n(arena, step + 1, struct lr_seccomp_cond);
		size_t n = 0;

		if (!c)
			return -ENOMEM;
		c[n++] = (struct lr_seccomp_cond){.arg = 0, .op = LR_SECCOMP_EQ, .value = call};
		for (size_t i = at; i < at + step; i++)
			if (rule->conds[i].arg != 0)
				c[n++] = rule->conds[i];
		x.conds = c;
		x.n_conds = n;
		int r = add_entry(e, x, arena);
		if (r < 0)
			return r;
		at += step;
	} while (at < rule->n_conds);
	return 0;
}

/* All that the policy says about one architecture, by number. *last: the largest number that is
 * named at all, -1 if none. */
static int collect(const struct lr_seccomp_plan *p, uint32_t arch, struct lr_arena *arena,
		   struct entries *e, int64_t *last, struct lr_err *err)
{
	*last = -1;
	for (size_t i = 0; i < p->n_rules; i++) {
		const struct lr_seccomp_rule *rule = &p->rules[i];

		for (size_t k = 0; k < rule->n_names; k++) {
			int64_t nr = lr_seccomp_number(arch, rule->names[k]);
			uint32_t mux = 0, call = 0;
			bool muxed = lr_seccomp_multiplexed(arch, rule->names[k], &mux, &call);
			int r = 0;

			if (nr > *last && !lr_seccomp_arch_private(arch, nr))
				*last = nr;
			if (muxed && mux > *last)
				*last = mux;
			if (!rule->counts)
				continue;
			struct entry x = {.action = rule->action, .rule = (uint32_t)i};
			if (nr >= 0) {
				x.nr = (uint32_t)nr;
				r = add_direct(e, rule, x, arena);
			}
			if (r == 0 && muxed) {
				x.nr = mux;
				r = add_muxed(e, rule, x, call, arena);
			}
			if (r == -E2BIG) {
				lr_refuse(err, E2BIG,
					  "more than %u pairs of a system call and a condition "
					  "for one architecture",
					  ENTRIES_MAX);
				return lr_err_at(err, "linux.seccomp.syscalls[%zu]", i);
			}
			if (r < 0)
				return r;
		}
	}
	if (e->n)
		qsort(e->v, e->n, sizeof(*e->v), by_number);
	return 0;
}

/* The kernel's order among the results of several filters: smaller is more restrictive. */
static int severity(uint32_t action)
{
	return (int)(action & SECCOMP_RET_ACTION_FULL);
}

/* Alike: the same action under the same conditions. */
static int by_meaning(const struct entry *a, const struct entry *b)
{
	if (a->action != b->action)
		return a->action < b->action ? -1 : 1;
	if (a->n_conds != b->n_conds)
		return a->n_conds < b->n_conds ? -1 : 1;
	for (size_t i = 0; i < a->n_conds; i++) {
		const struct lr_seccomp_cond *x = &a->conds[i], *y = &b->conds[i];

		if (x->arg != y->arg)
			return x->arg < y->arg ? -1 : 1;
		if (x->op != y->op)
			return x->op < y->op ? -1 : 1;
		if (x->value != y->value)
			return x->value < y->value ? -1 : 1;
		if (x->value_two != y->value_two)
			return x->value_two < y->value_two ? -1 : 1;
	}
	return 0;
}

static int by_meaning_and_order(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int c = by_meaning(x, y);

	return c ? c : by_number(x, y);
}

static int by_severity(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int s = severity(x->action), t = severity(y->action);

	return s != t ? (s < t ? -1 : 1) : by_number(x, y);
}

/* Puts entries of one number into the order in which they are asked, the first of those that are
 * alike only; returns how many there are. By sorting: a generated policy may have 100,000. */
static size_t arrange(struct entry *e, size_t n)
{
	size_t kept = 1;

	if (n < 2)
		return n;
	qsort(e, n, sizeof(*e), by_meaning_and_order);
	for (size_t i = 1; i < n; i++)
		if (by_meaning(&e[i], &e[kept - 1]) != 0)
			e[kept++] = e[i];
	qsort(e, kept, sizeof(*e), by_severity);
	return kept;
}

/* Do all conditions always hold? A mask that hides everything leaves nothing to compare. */
static bool unconditional(const struct entry *e, bool is_64)
{
	uint64_t counts = is_64 ? UINT64_MAX : UINT32_MAX;

	for (size_t i = 0; i < e->n_conds; i++)
		if (e->conds[i].op != LR_SECCOMP_MASKED_EQ || (e->conds[i].value & counts))
			return false;
	return true;
}

/* What e[0..n), all of the number of this range, come to. */
static int decide(struct entry *e, size_t n, bool is_64, struct lr_arena *arena,
		  struct lr_seccomp_range *ret, struct lr_err *err)
{
	for (size_t i = 0; i < n; i++)
		if (unconditional(&e[i], is_64)) {
			ret->action = e[i].action;
			return 0;
		}
	n = arrange(e, n);
	if (n > BPF_MAXINSNS) {
		lr_refuse(err, E2BIG,
			  "%zu different conditions for one system call; the kernel takes filters "
			  "of at most %d instructions",
			  n, BPF_MAXINSNS);
		return lr_err_at(err, "linux.seccomp.syscalls[%u]", e->rule);
	}
	struct lr_seccomp_case *v = lr_new_n(arena, n, struct lr_seccomp_case);
	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		v[i] = (struct lr_seccomp_case){.action = e[i].action,
						.conds = e[i].conds,
						.n_conds = e[i].n_conds,
						.is_64 = is_64};
	ret->cases = v;
	ret->n_cases = n;
	return 0;
}

/* Appends a range; joins it to the one before if both always do the same. */
static int add_range(struct ranges *r, struct lr_seccomp_range x, struct lr_arena *arena)
{
	struct lr_seccomp_range *prev = r->n ? &r->v[r->n - 1] : NULL;

	if (prev && prev->first == x.first) { /* an empty gap */
		r->n--;
		prev = r->n ? prev - 1 : NULL;
	}
	if (prev && !prev->n_cases && !x.n_cases && prev->action == x.action)
		return 0;

	struct lr_seccomp_range *v = lr_grow(arena, r->v, r->n, sizeof(*v));
	if (!v)
		return -ENOMEM;
	v[r->n++] = x;
	r->v = v;
	return 0;
}

static int add_constant(struct ranges *r, uint32_t first, uint32_t action, struct lr_arena *arena)
{
	return add_range(r, (struct lr_seccomp_range){.first = first, .action = action}, arena);
}

/* Is a call that is newer than the whole profile told "no such call" instead of the default? */
static bool hides_newer(const struct lr_seccomp_plan *p)
{
	switch (p->default_action & SECCOMP_RET_ACTION_FULL) {
	case SECCOMP_RET_ALLOW:
	case SECCOMP_RET_LOG:
	case SECCOMP_RET_TRACE: /* a tracer knows better */
		return false;
	default:
		return p->default_action != ENOSYS_RET;
	}
}

/* The ranges of one architecture, from number `first` on. -E2BIG: *err is filled. */
static int add_arch(const struct lr_seccomp_plan *p, uint32_t arch, uint32_t first,
		    struct ranges *out, struct lr_arena *arena, struct lr_err *err)
{
	struct entries e = {0};
	int64_t last;
	int r = collect(p, arch, arena, &e, &last, err);
	bool hide = hides_newer(p) && last > (int64_t)first;

	if (r == 0)
		r = add_constant(out, first, p->default_action, arena);
	/* On s390 a call that the kernel doesn't know arrives as number 0. */
	if (r == 0 && hide && lr_seccomp_arch_is_s390(arch)) {
		r = add_constant(out, 0, ENOSYS_RET, arena);
		if (r == 0)
			r = add_constant(out, 1, p->default_action, arena);
	}
	uint32_t gap = p->default_action;
	for (size_t i = 0, n; r == 0 && i < e.n; i += n) {
		struct lr_seccomp_range x = {.first = e.v[i].nr, .action = p->default_action};

		if (hide && gap != ENOSYS_RET && x.first > last) {
			gap = ENOSYS_RET;
			r = add_constant(out, (uint32_t)last + 1, gap, arena);
		}
		for (n = 1; i + n < e.n && e.v[i + n].nr == x.first; n++)
			;
		if (r == 0)
			r = decide(&e.v[i], n, lr_seccomp_arch_is_64(arch), arena, &x, err);
		if (r == 0)
			r = add_range(out, x, arena);
		if (r == 0)
			r = add_constant(out, x.first + 1, gap, arena);
	}
	if (r == 0 && hide && gap != ENOSYS_RET)
		r = add_constant(out, (uint32_t)last + 1, ENOSYS_RET, arena);
	return r;
}

static bool lists(const struct lr_seccomp_plan *p, uint32_t arch)
{
	for (size_t i = 0; i < p->n_archs; i++)
		if (p->archs[i] == arch)
			return true;
	return false;
}

/* All numbers that arrive with one value of seccomp_data.arch. */
static int add_audit_arch(const struct lr_seccomp_plan *p, uint32_t audit, struct ranges *out,
			  struct lr_arena *arena, struct lr_err *err)
{
	uint32_t x32 = lr_seccomp_arch_token("SCMP_ARCH_X32");
	int r;

	if (audit != lr_seccomp_arch_audit(x32))
		return add_arch(p, audit, 0, out, arena, err);
	r = lists(p, audit) ? add_arch(p, audit, 0, out, arena, err)
			    : add_constant(out, 0, SECCOMP_RET_KILL_THREAD, arena);
	if (r == 0)
		r = lists(p, x32)
			    ? add_arch(p, x32, LR_SECCOMP_X32_BIT, out, arena, err)
			    : add_constant(out, LR_SECCOMP_X32_BIT, SECCOMP_RET_KILL_THREAD, arena);
	if (r == 0)
		r = add_constant(out, NO_NR, p->default_action, arena);
	return r;
}

static int report_unknown(const struct lr_seccomp_plan *p, struct lr_err *err)
{
	if (!p->fail_unknown && lr_log_level < LR_DEBUG)
		return 0;
	for (size_t i = 0; i < p->n_rules; i++)
		for (size_t k = 0; k < p->rules[i].n_names; k++) {
			const char *name = p->rules[i].names[k];

			if (lr_seccomp_is_syscall(name))
				continue;
			if (!p->fail_unknown) {
				lr_debug("seccomp: unknown system call \"%s\" skipped", name);
				continue;
			}
			lr_refuse(err, EINVAL, "unknown system call \"%s\"", name);
			lr_err_at(err, "linux.seccomp.syscalls[%zu].names[%zu]", i, k);
			return lr_err_hint(err, "annotation %s makes this an error",
					   LR_SECCOMP_FAIL_UNKNOWN);
		}
	return 0;
}

/* "if the architecture is `audit`: section", with a long jump around it where needed. */
static void append_section(struct lr_seccomp_code *c, uint32_t audit,
			   const struct lr_seccomp_code *section)
{
	if (section->n <= 255) {
		lr_seccomp_emit(c, BPF_JMP | BPF_JEQ | BPF_K, 0, (uint8_t)section->n, audit);
	} else {
		lr_seccomp_emit(c, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, audit);
		lr_seccomp_emit(c, BPF_JMP | BPF_JA, 0, 0, (uint32_t)section->n);
	}
	for (size_t i = 0; i < section->n; i++)
		lr_seccomp_emit(c, section->v[i].code, section->v[i].jt, section->v[i].jf,
				section->v[i].k);
}

static bool seen_before(const struct lr_seccomp_plan *p, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (lr_seccomp_arch_audit(p->archs[k]) == lr_seccomp_arch_audit(p->archs[i]))
			return true;
	return false;
}

int lr_seccomp_compile(const struct lr_seccomp_plan *plan, struct lr_arena *arena,
		       struct lr_seccomp_prog *ret, struct lr_err *err)
{
	struct lr_seccomp_code c = {.arena = arena};
	int r;

	if (plan->bpf_data)
		return lr_seccomp_from_bpf_data(plan->bpf_data, arena, ret, err);
	r = report_unknown(plan, err);
	if (r < 0)
		return r;
	lr_seccomp_emit(&c, LD_ARCH, 0, 0, offsetof(struct seccomp_data, arch));
	for (size_t i = 0; i < plan->n_archs; i++) {
		uint32_t audit = lr_seccomp_arch_audit(plan->archs[i]);
		struct lr_seccomp_code section = {.arena = arena};
		struct ranges ranges = {0};

		if (seen_before(plan, i))
			continue;
		r = add_audit_arch(plan, audit, &ranges, arena, err);
		if (r < 0)
			return r == -E2BIG ? r : lr_fail(err, -r, "system call filter");
		lr_seccomp_emit_ranges(&section, ranges.v, ranges.n);
		c.full |= section.full;
		append_section(&c, audit, &section);
	}
	lr_seccomp_emit(&c, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_THREAD);
	if (c.full || c.n > BPF_MAXINSNS) {
		lr_refuse(err, E2BIG,
			  "the filter would have more than %d instructions, which is all that the "
			  "kernel takes",
			  BPF_MAXINSNS);
		lr_err_at(err, "linux.seccomp");
		return lr_err_hint(err, "fewer architectures or argument conditions");
	}
	*ret = (struct lr_seccomp_prog){.v = c.v,
					.n = (unsigned short)c.n,
					.flags = plan->flags,
					.notify = plan->notify,
					.listener_path = plan->listener_path,
					.listener_metadata = plan->listener_metadata};
	lr_debug("seccomp: compiled %zu instructions", c.n);
	return 0;
}
