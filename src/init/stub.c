/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init: the last program of ours that a container's process is: it executes the container's
 *program, and nothing else.
 *
 * Until execve(2) has succeeded, /proc/self/exe is the file that the process was started from, and
 * the kernel follows it for an entrypoint that is a link to it or a script that begins with
 * `#!/proc/self/exe` (CVE-2019-5736). The file of the command line, or of the program that our
 * library is in, must not be shown. This one is executed from a sealed memfd, and is all that can
 *be found there. No C library: 17 µs a start.
 *
 *	argv[0]   decimal: a descriptor that takes errno (int32) if the program cannot be executed;
 *	          close-on-exec is set here
 *	argv[1]   path of the program
 *	argv[2]   and so on: its arguments
 */
#include <fcntl.h>
#include <sys/syscall.h>

static long call(long nr, long a, long b, long c)
{
#if defined(__x86_64__)
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "0"(nr), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return r;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = nr, x0 __asm__("x0") = a, x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	return x0;
#endif
}

/* A filter of the container's may refuse even this; then the processor ends it. */
__attribute__((noreturn)) static void end(void)
{
	call(SYS_exit_group, 126, 0, 0);
	__builtin_trap();
}

/* As the kernel leaves it: argc, argv, NULL, envp, NULL. */
__attribute__((used, noreturn)) static void start(long *stack)
{
	char **argv = (char **)(stack + 1), **envp = argv + stack[0] + 1;
	long fd = 0;

	/* By a container: it shall not run in circles. */
	if (stack[0] < 3 || argv[0][0] < '0' || argv[0][0] > '9')
		end();
	for (const char *s = argv[0]; *s >= '0' && *s <= '9'; s++)
		fd = fd * 10 + (*s - '0');
	call(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
	int why = (int)-call(SYS_execve, (long)argv[1], (long)(argv + 2), (long)envp);
	call(SYS_write, fd, (long)&why, sizeof(why));
	end();
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start: xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call start\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start: mov x29, 0\n mov x0, sp\n bl start\n");
#endif
