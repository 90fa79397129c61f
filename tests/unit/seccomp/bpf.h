/* SPDX-License-Identifier: Apache-2.0 */
/* A classic BPF machine for seccomp programs, as small as it can be: the judge of the tests. */
#ifndef LR_TEST_BPF_H
#define LR_TEST_BPF_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BPF_TRAP 0xdeadbeef /* left the program, or met an unknown instruction */

/* What the program returns; *steps counts instructions. */
static inline uint32_t bpf_run(const struct sock_filter *v, size_t n, const struct seccomp_data *d,
			       unsigned *steps)
{
	uint32_t a = 0, x = 0, mem[16] = {0};

	for (size_t pc = 0; pc < n; pc++) {
		const struct sock_filter *f = &v[pc];
		uint32_t k = f->k;
		bool t;

		if (steps)
			++*steps;
		switch (f->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			if (k % 4 || k >= sizeof(*d))
				return BPF_TRAP;
			memcpy(&a, (const char *)d + k, 4);
			continue;
		case BPF_LD | BPF_MEM:
			a = mem[k & 15];
			continue;
		case BPF_ST:
			mem[k & 15] = a;
			continue;
		case BPF_MISC | BPF_TAX:
			x = a;
			continue;
		case BPF_MISC | BPF_TXA:
			a = x;
			continue;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= k;
			continue;
		case BPF_RET | BPF_K:
			return k;
		case BPF_JMP | BPF_JA:
			pc += k;
			continue;
		case BPF_JMP | BPF_JEQ | BPF_K:
			t = a == k;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			t = a > k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			t = a >= k;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			t = a & k;
			break;
		default:
			return BPF_TRAP;
		}
		pc += t ? f->jt : f->jf;
	}
	return BPF_TRAP;
}

#endif
