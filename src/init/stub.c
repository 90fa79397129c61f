/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init: the page: a program that a newborn executes before its own, and that executes that one.
 *
 * Until execve(2) has succeeded, /proc/self/exe is the file that the process was started from. The
 * kernel follows it for an entrypoint that is a link to it, or a script that begins with
 * `#!/proc/self/exe` (CVE-2019-5736). So neither our command line nor a program that uses our
 * library may be that file. The page is executed from a sealed memfd: all that a container can find
 * there is the page. It uses no C library, and costs a start 17 µs.
 *
 *	argv[0]   decimal: a descriptor that takes errno (int32) if the program cannot be executed;
 *	          and after a colon another one, if the program is to wait until a byte can be read
 *	          from it. Close-on-exec is set here.
 *	argv[1]   path of the program
 *	argv[2]   and so on: its arguments
 */
#include <asm/signal.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <sys/syscall.h>

#include "src/init/ends.h"

static long call(long nr, long a, long b, long c, long d)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return r;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = nr, x0 __asm__("x0") = a, x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c, x3 __asm__("x3") = d;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
	return x0;
#endif
}

/* A filter of the container's may refuse even this; then the processor ends it. */
__attribute__((noreturn)) static void end(int status)
{
	call(SYS_exit_group, status, 0, 0, 0);
	__builtin_trap();
}

static void end_by_signal(int sig)
{
	end(128 + sig);
}

static long number(const char **s)
{
	long n = 0;

	for (; **s >= '0' && **s <= '9'; ++*s)
		n = n * 10 + (**s - '0');
	return n;
}

/*
 * The first process of a pid namespace gets only signals that it has a handler for, and a container
 * that waits for start must not wait for ever. They are blocked until now, so that none is lost;
 * execve takes the handlers away. errno of what went wrong, or 0.
 */
static int wait_for_start(long go)
{
	static const unsigned char signals[] = LR_INIT_ENDS_BY;
	/* x86 takes no handler without a restorer. It is never returned to. */
	const struct sigaction ends = {.sa_handler = end_by_signal,
				       .sa_flags = SA_RESTORER,
				       .sa_restorer = (void (*)(void))end_by_signal};
	const unsigned long none = 0;
	char byte;

	/* Our descriptors are the host's. Until here the memory was the runtime's, and hidden;
	 * execve shows the program. */
	call(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0);
	for (unsigned i = 0; i < sizeof(signals); i++)
		call(SYS_rt_sigaction, signals[i], (long)&ends, 0, sizeof(none));
	call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&none, 0, sizeof(none));
	long n = call(SYS_read, go, (long)&byte, 1, 0);
	return n == 1 ? 0 : n < 0 ? (int)-n : EPIPE;
}

/* As the kernel leaves it: argc, argv, NULL, envp, NULL. */
__attribute__((used, noreturn)) static void start(long *stack)
{
	char **argv = (char **)(stack + 1), **envp = argv + stack[0] + 1;
	int why = 0;

	/* A container may execute the page, but not in circles. */
	if (stack[0] < 3 || argv[0][0] < '0' || argv[0][0] > '9')
		end(126);
	const char *s = argv[0];
	long fd = number(&s);
	long kept = call(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC, 0);
	if (*s++ == ':') {
		long go = number(&s), r = call(SYS_fcntl, go, F_SETFD, FD_CLOEXEC, 0);
		kept = r < 0 ? r : kept;
		why = kept < 0 ? 0 : wait_for_start(go);
	}
	/* A filter may refuse it: the program must not get what is ours. */
	if (kept < 0)
		why = (int)-kept;
	if (!why)
		why = (int)-call(SYS_execve, (long)argv[1], (long)(argv + 2), (long)envp, 0);
	call(SYS_write, fd, (long)&why, sizeof(why), 0);
	end(126);
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start: xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call start\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start: mov x29, 0\n mov x0, sp\n bl start\n");
#endif
