/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crowd N: a program that has a great many descriptors: /dev/null, opened each time, and the first one as three more
 * numbers; says "ready" (a file) and waits. To look for each among all others would keep whoever makes a seed of it,
 * and it is held meanwhile.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static int need(int r, const char *what)
{
	if (r >= 0)
		return r;
	perror(what);
	exit(1);
}

static void files(int n)
{
	int first = need(open("/dev/null", O_RDWR), "/dev/null");

	for (int i = 1; i < n; i++)
		need(open("/dev/null", O_RDONLY), "/dev/null");
	for (int i = 0; i < 3; i++)
		need(dup(first), "dup");
}

int main(int argc, char **argv)
{
	const struct rlimit most = {1 << 20, 1 << 20};

	setrlimit(RLIMIT_NOFILE, &most);
	files(argc == 2 ? atoi(argv[1]) : 0);
	close(need(open("ready", O_WRONLY | O_CREAT | O_CLOEXEC, 0600), "ready"));
	for (;;)
		pause();
}
