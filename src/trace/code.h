/* SPDX-License-Identifier: Apache-2.0 */
/* trace: the code that a held thread runs, and what it finds behind it. See trace.h. */
#ifndef LR_TRACE_CODE_H
#define LR_TRACE_CODE_H

#include <stdint.h>

/* How to go on: rax, and what IRETQ takes. */
struct trace_frame {
	uint64_t rax, rip, cs, flags, rsp, ss;
};

/* Follows the code. The thread only reads it. */
struct trace_slot {
	uint64_t mask;
	struct trace_frame restart, interrupted;
	uint64_t rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15;
};

/* The memory that the code takes: calls, then the caller's buffer. */
struct trace_call {
	uint64_t nr; /* one more than the number; 0: that's all */
	uint64_t args[6];
	int64_t ret;
};
#define TRACE_MEMORY 16384
#define TRACE_BUFFER 8192 /* where the buffer begins */

extern const char lr_trace_code[], lr_trace_code_end[];
/* Places in it: before the next call; behind the last one; where the memory is given back. */
extern const char lr_trace_code_loop[], lr_trace_code_after[], lr_trace_code_unmap[];

#endif
