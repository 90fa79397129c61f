/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle: passing readiness on; see notify.h. */
#define LR_ROOM "notify"
#include "src/lifecycle/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"

#define SOCKET_NAME LR_NOTIFY_DIR "/notify.sock"
#define READY       "READY=1"

int lr_notify_prepare(const struct lr_entry *e, struct lr_err *err)
{
	if (mkdirat(e->dir, LR_NOTIFY_DIR, 0755) < 0)
		return lr_fail(err, errno, "make the notify directory");
	return 0;
}

int lr_notify_listen(const struct lr_entry *e, struct lr_err *err)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	LR_CLEANUP_FD int sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (sock < 0)
		return lr_fail(err, errno, "make the notify socket");
	/* By the descriptor: the root directory's path may be longer than sun_path. */
	snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d/" SOCKET_NAME, e->dir);
	unlinkat(e->dir, SOCKET_NAME, 0);
	if (bind(sock, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		return lr_fail(err, errno, "bind the notify socket");
	/* The service may run as any user of the container. */
	if (fchmodat(e->dir, SOCKET_NAME, 0777, 0) < 0)
		return lr_fail(err, errno, "open up the notify socket");
	return lr_take_fd(&sock);
}

static int pass_on(const char *text)
{
	const char *to = getenv("NOTIFY_SOCKET");
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	if (!to || strlen(to) >= sizeof(sa.sun_path))
		return -EINVAL;
	size_t len = strlen(to);
	memcpy(sa.sun_path, to, len);
	if (sa.sun_path[0] == '@')
		sa.sun_path[0] = '\0';
	LR_CLEANUP_FD int sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return -errno;
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	if (sendto(sock, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&sa, size) < 0)
		return -errno;
	return 0;
}

static bool says_ready(char *text)
{
	for (char *line = text, *next; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (lr_streq(line, READY))
			return true;
	}
	return false;
}

void lr_notify_wait(int sock, pid_t main_pid, int pidfd)
{
	struct pollfd p[] = {{.fd = sock, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};
	char text[4096];
	bool ready = false;

	while (!ready) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			break;
		if (p[0].revents & POLLIN) {
			ssize_t n = recv(sock, text, sizeof(text) - 1, MSG_DONTWAIT);
			text[n > 0 ? n : 0] = '\0';
			ready = n > 0 && says_ready(text);
		} else if (p[1].revents) {
			break;
		}
	}
	lr_close(sock);
	if (!ready)
		return;
	snprintf(text, sizeof(text), main_pid ? READY "\nMAINPID=%d\n" : READY "\n", main_pid);
	int r = pass_on(text);
	if (r < 0)
		lr_warn("cannot pass readiness on to NOTIFY_SOCKET: %s", lr_strerror(-r));
}

pid_t lr_notify_spawn(int sock, int pidfd, struct lr_err *err)
{
	pid_t pid = fork();

	if (pid < 0)
		return lr_fail(err, errno, "fork");
	if (pid == 0) {
		lr_notify_wait(sock, 0, pidfd);
		_exit(0);
	}
	lr_close(sock);
	return pid;
}
