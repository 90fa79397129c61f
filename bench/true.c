/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cheapest program there is: no C library, one page, one system call.
 *
 *   true [N]    exits with the number N (0 without): that a container really ran is seen by it
 *   true pause  waits for a signal that kills it (a container to exec into)
 */
#include <sys/syscall.h>

static long sys1(long nr, long a)
{
	long r;

#if defined(__x86_64__)
	__asm__ volatile("syscall" : "=a"(r) : "0"(nr), "D"(a) : "rcx", "r11", "memory");
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = nr, x0 __asm__("x0") = a;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8) : "memory");
	r = x0;
#else
#error "add this machine's system call instruction"
#endif
	return r;
}

/* As the kernel leaves it: argc, then argv. */
__attribute__((used, noreturn)) static void start(const long *stack)
{
	long code = 0;

	if (stack[0] > 1) {
		const char *s = (const char *)stack[2];
		if (*s == 'p')
			for (;;) {
#ifdef SYS_pause
				sys1(SYS_pause, 0);
#else
				sys1(SYS_ppoll, 0);
#endif
			}
		for (; *s >= '0' && *s <= '9'; s++)
			code = code * 10 + (*s - '0');
	}
	for (;;)
		sys1(SYS_exit_group, code);
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start: xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call start\n");
#else
__asm__(".globl _start\n_start: mov x29, 0\n mov x0, sp\n bl start\n");
#endif
