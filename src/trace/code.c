/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace: see code.h. Position-independent, and without a stack: the program's may be a small one
 * amid its heap, as Go's are.
 *
 *	rbx	the memory that was taken, or an error
 *	r12	an eye on signals: not 0 if one waits that the program lets through
 *	r14	the next call
 *	r15	struct trace_slot
 */
#include "src/trace/code.h"

#include <stddef.h>
#include <sys/syscall.h>

_Static_assert(sizeof(struct trace_slot) == 216 && offsetof(struct trace_slot, rbx) == 104 &&
		       offsetof(struct trace_slot, interrupted) == 56,
	       "the code below knows it");
_Static_assert(sizeof(struct trace_call) == 64, "the code below knows it");
_Static_assert(SYS_mmap == 9 && SYS_munmap == 11 && SYS_rt_sigprocmask == 14 && SYS_clone == 56 &&
		       SYS_rt_sigpending == 127 && SYS_exit_group == 231,
	       "the code below knows them");

__asm__(".pushsection .rodata\n"
	".balign 16\n"
	".globl lr_trace_code, lr_trace_code_loop, lr_trace_code_after, lr_trace_code_unmap\n"
	".globl lr_trace_code_end\n"
	"lr_trace_code:\n"
	"	lea lr_trace_code_end(%rip), %r15\n"
	/* mmap(0, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0) */
	"	xor %edi, %edi\n"
	"	mov $16384, %esi\n"
	"	mov $3, %edx\n"
	"	mov $0x8022, %r10d\n"
	"	mov $-1, %r8\n"
	"	xor %r9d, %r9d\n"
	"	mov $9, %eax\n"
	"	syscall\n"
	"	mov %rax, %rbx\n"
	"	xor %r12d, %r12d\n"
	"	cmp $-4096, %rax\n"
	"	ja 5f\n"
	"	mov %rbx, %r14\n"
	/* The calls. */
	"lr_trace_code_loop:\n"
	"1:	mov (%r14), %rax\n"
	"	test %rax, %rax\n"
	"	jz 4f\n"
	"	dec %rax\n"
	"	mov 8(%r14), %rdi\n"
	"	mov 16(%r14), %rsi\n"
	"	mov 24(%r14), %rdx\n"
	"	mov 32(%r14), %r10\n"
	"	mov 40(%r14), %r8\n"
	"	mov 48(%r14), %r9\n"
	"	syscall\n"
	"	mov %rax, 56(%r14)\n"
	/* A twin that nobody holds any more. */
	"	cmpq $57, (%r14)\n"
	"	jne 3f\n"
	"	test %rax, %rax\n"
	"	jnz 3f\n"
	"2:	xor %edi, %edi\n"
	"	mov $231, %eax\n"
	"	syscall\n"
	"	jmp 2b\n"
	"3:	add $64, %r14\n"
	"	jmp 1b\n"
	/* rt_sigpending(memory + 16376, 8), but what the program has blocked */
	"lr_trace_code_after:\n"
	"4:	lea 16376(%rbx), %rdi\n"
	"	mov $8, %esi\n"
	"	mov $127, %eax\n"
	"	syscall\n"
	"	mov (%r15), %r12\n"
	"	not %r12\n"
	"	and 16376(%rbx), %r12\n"
	/* munmap(memory, 16384): whoever holds us goes on here, and takes over behind it */
	"lr_trace_code_unmap:\n"
	"	mov %rbx, %rdi\n"
	"	mov $16384, %esi\n"
	"	mov $11, %eax\n"
	"	syscall\n"
	/* rt_sigprocmask(SIG_SETMASK, mask, 0, 8) */
	"5:	mov $2, %edi\n"
	"	mov %r15, %rsi\n"
	"	xor %edx, %edx\n"
	"	mov $8, %r10d\n"
	"	mov $14, %eax\n"
	"	syscall\n"
	/* And back. */
	"	lea 8(%r15), %r14\n"
	"	test %r12, %r12\n"
	"	jz 6f\n"
	"	lea 56(%r15), %r14\n"
	"6:	mov (%r14), %rax\n"
	"	mov 104(%r15), %rbx\n"
	"	mov 112(%r15), %rcx\n"
	"	mov 120(%r15), %rdx\n"
	"	mov 128(%r15), %rsi\n"
	"	mov 136(%r15), %rdi\n"
	"	mov 144(%r15), %rbp\n"
	"	mov 152(%r15), %r8\n"
	"	mov 160(%r15), %r9\n"
	"	mov 168(%r15), %r10\n"
	"	mov 176(%r15), %r11\n"
	"	mov 184(%r15), %r12\n"
	"	mov 192(%r15), %r13\n"
	"	lea 8(%r14), %rsp\n"
	"	mov 200(%r15), %r14\n"
	"	mov 208(%r15), %r15\n"
	"	iretq\n"
	".balign 16\n"
	"lr_trace_code_end:\n"
	".popsection\n");
