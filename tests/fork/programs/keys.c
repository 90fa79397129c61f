/* SPDX-License-Identifier: Apache-2.0 */
/* A protection key of its own, by which the program may do all. In a child memory that can only be executed must not get
 * that key: it could be read. See programs.bats. */
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

/* Who began the child has written to /n meanwhile. */
static int is_child(int n)
{
	FILE *f = fopen("/n", "r");
	int found;
	int told = f && fscanf(f, "%d", &found) == 1 && found < n - 1;

	if (f)
		fclose(f);
	return told;
}

static void make_and_read(int key)
{
	volatile unsigned char *code =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (code == MAP_FAILED)
		exit(1);
	code[0] = 0xc3; /* ret */
	if (mprotect((void *)code, PAGE, PROT_EXEC) < 0)
		exit(1);
	((void (*)(void))code)();
	pkey_set(key, 0); /* the kernel has closed whatever key it has given that memory */
	refused_by = 0;
	if (sigsetjmp(back, 1) == 0)
		(void)code[0];
	if (refused_by != SEGV_PKUERR)
		note("/bad", "what can only be executed is read");
	munmap((void *)code, PAGE);
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = refused, .sa_flags = SA_SIGINFO};
	int key = pkey_alloc(0, 0), child = 0;
	char text[16];

	if (key < 0)
		return 1;
	sigaction(SIGSEGV, &action, NULL);
	for (int n = 1;; n++) {
		/* Of memory that is not there it says whether the key is the program's. */
		errno = 0;
		if (pkey_mprotect(NULL, PAGE, PROT_READ, key) == 0 || errno != ENOMEM)
			note("/bad", "the key is not the program's");
		child |= is_child(n);
		if (child)
			make_and_read(key);
		snprintf(text, sizeof(text), "%d\n", n);
		note("/n", text);
		usleep(10000);
	}
}
