/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storm: counts signals that somebody outside sends it, thousands in a second, each with a number:
 * none may be lost, come twice, or lose its number, however often it is captured meanwhile. Says
 * "ready" (a file), goes on until there is "stop", and writes "ok" or what is wrong to "result".
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t got, wrong;

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	if (info->si_value.sival_int != got)
		wrong++;
	got++;
}

static void put(const char *name, const char *text)
{
	char fresh[32];

	snprintf(fresh, sizeof(fresh), "%s.new", name);
	FILE *f = fopen(fresh, "we");
	if (!f || fputs(text, f) < 0 || fclose(f) < 0 || rename(fresh, name) < 0)
		_exit(1);
}

static void pause_us(long us)
{
	const struct timespec t = {0, us * 1000};

	nanosleep(&t, NULL);
}

static void send_all(pid_t to)
{
	char text[32];
	int n = 0;

	while (access("stop", F_OK) < 0) {
		if (sigqueue(to, SIGRTMIN + 5, (union sigval){.sival_int = n}) == 0)
			n++;
		else if (errno != EAGAIN)
			_exit(1);
		pause_us(200);
	}
	snprintf(text, sizeof(text), "%d", n);
	put("sent", text);
	_exit(0);
}

/* Nobody's child that is captured. */
static void start_sender(void)
{
	const pid_t self = getpid();
	pid_t pid = fork();

	if (pid == 0) {
		if (fork() == 0)
			send_all(self);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

int main(void)
{
	struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	char text[64] = "";

	sigaction(SIGRTMIN + 5, &sa, NULL);
	start_sender();
	put("ready", "");
	while (access("sent", F_OK) < 0)
		pause_us(5000);
	FILE *f = fopen("sent", "re");
	if (!f || !fgets(text, sizeof(text), f))
		return 1;
	const int sent = atoi(text);
	for (int i = 0; i < 200 && got < sent; i++)
		pause_us(5000);
	snprintf(text, sizeof(text), "%d sent, %d came, %d with a wrong number", sent, (int)got,
		 (int)wrong);
	put("result", got == sent && !wrong && sent > 100 ? "ok" : text);
	return 0;
}
