/* SPDX-License-Identifier: Apache-2.0 */
/* sys: see socket.h. */
#include "src/sys/socket.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "src/base/fd.h"

int lr_socket_connect(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	LR_CLEANUP_FD int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	LR_CLEANUP_FD int at = LR_NOFD;

	if (sock < 0)
		return -errno;
	if (strlen(path) < sizeof(sa.sun_path)) {
		strcpy(sa.sun_path, path);
	} else {
		/* sun_path has 108 bytes; a descriptor's link in /proc has few. */
		at = lr_open(path, O_PATH | O_CLOEXEC);
		if (at < 0)
			return -errno;
		snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d", at);
	}
	while (connect(sock, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		if (errno != EINTR)
			return -errno;
	return lr_take_fd(&sock);
}

int lr_socket_send_fd(int sock, int fd, const char *text, size_t len)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr head;
	} control = {0};
	struct iovec iov = {(void *)(uintptr_t)text, len};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control.space)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	while (iov.iov_len) {
		ssize_t n = sendmsg(sock, &msg, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n < 0)
			continue;
		iov.iov_base = (char *)iov.iov_base + n;
		iov.iov_len -= (size_t)n;
		msg.msg_control = NULL;
		msg.msg_controllen = 0;
	}
	return 0;
}
