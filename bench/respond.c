/* SPDX-License-Identifier: Apache-2.0 */
/*
 * respond ADDRESS PORT TEXT COMMAND...: how long a server takes until it answers.
 *
 * Runs COMMAND, which starts the server and returns, then asks http://ADDRESS:PORT/ again and
 * again, 200 microseconds apart, until the answer has status 200 and TEXT in it. Writes "COMMAND_NS
 * RESPONSE_NS": the first is from before vfork until after wait4, the second from there until the
 * end of that answer. A connection that is refused, reset or closed without an answer, as a port
 * mapper does while nobody listens behind it, is no answer. After 20 seconds it gives up.
 */
#include <arpa/inet.h>
#include <err.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "spawn.h"

#define GIVE_UP_NS 20000000000LL

static int answered(const struct sockaddr_in *to, const char *text)
{
	static const char ask[] = "GET / HTTP/1.0\r\nHost: bench\r\n\r\n";
	const struct timeval patience = {1, 0};
	char answer[4096];
	size_t have = 0;
	ssize_t n;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		err(1, "socket");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	if (connect(fd, (const struct sockaddr *)to, sizeof *to) == 0 &&
	    send(fd, ask, sizeof ask - 1, MSG_NOSIGNAL) == (ssize_t)sizeof ask - 1)
		while (have < sizeof answer - 1 &&
		       (n = recv(fd, answer + have, sizeof answer - 1 - have, 0)) > 0)
			have += (size_t)n;
	close(fd);
	answer[have] = 0;
	return strncmp(answer, "HTTP/1.", 7) == 0 && strncmp(answer + 8, " 200", 4) == 0 &&
	       strstr(answer, text) != NULL;
}

int main(int argc, char **argv)
{
	const struct timespec gap = {0, 200000};
	struct sockaddr_in to = {.sin_family = AF_INET};
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	int64_t start, ended;
	struct rusage use;
	int status;

	if (argc < 5)
		errx(2, "usage: respond ADDRESS PORT TEXT COMMAND...");
	to.sin_port = htons((uint16_t)strtoul(argv[2], NULL, 10));
	if (inet_pton(AF_INET, argv[1], &to.sin_addr) != 1)
		errx(2, "%s: is no address", argv[1]);
	start = now();
	status = spawn(argv + 4, null_fd, 2, &use);
	ended = now();
	if (status)
		errx(1, "status %d of %s", status, argv[4]);
	while (!answered(&to, argv[3])) {
		if (now() - ended > GIVE_UP_NS)
			errx(1, "no answer of %s port %s", argv[1], argv[2]);
		nanosleep(&gap, NULL);
	}
	printf("%lld %lld\n", (long long)(ended - start), (long long)(now() - ended));
	return 0;
}
