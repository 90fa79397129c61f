/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that can only be executed, beside a protection key of the program's own, by which it may do all; see programs.bats. */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096

static sigjmp_buf back;
static volatile int refused_by; /* si_code */

static void refused(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	refused_by = info->si_code;
	siglongjmp(back, 1);
}

static void note(const char *file, const char *text)
{
	FILE *f = fopen(file, "w");

	if (!f || fputs(text, f) < 0 || fclose(f) != 0)
		exit(1);
}

static void look(volatile unsigned char *code, int key)
{
	refused_by = 0;
	if (sigsetjmp(back, 1) == 0)
		(void)*code;
	if (refused_by != SEGV_PKUERR)
		note("/bad", "what can only be executed is read");
	/* Of memory that is not there it says whether the key is the program's: a seed cannot carry memory that has it. */
	errno = 0;
	if (pkey_mprotect(NULL, PAGE, PROT_READ, key) == 0 || errno != ENOMEM)
		note("/bad", "the key is not the program's");
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = refused, .sa_flags = SA_SIGINFO};
	unsigned char *code =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int key;
	char text[16];

	if (code == MAP_FAILED)
		return 1;
	code[0] = 0xc3; /* ret */
	if (mprotect(code, PAGE, PROT_EXEC) < 0)
		return 1;
	key = pkey_alloc(0, 0);
	if (key < 0)
		return 1;
	sigaction(SIGSEGV, &action, NULL);
	for (int n = 1;; n++) {
		((void (*)(void))code)();
		look(code, key);
		snprintf(text, sizeof(text), "%d\n", n);
		note("/n", text);
		usleep(10000);
	}
}
