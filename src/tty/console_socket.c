/* SPDX-License-Identifier: Apache-2.0 */
/* tty: descriptors over Unix sockets, as callers of `--console-socket` expect them. */
#define LR_ROOM "tty"

#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/sys/syscalls.h"
#include "src/tty/tty.h"

#define NAME_MAX_BYTES 4095

union fd_control {
	struct cmsghdr head;
	char space[CMSG_SPACE(sizeof(int) * 4)];
};

int lr_tty_connect(const char *path, struct lr_err *err)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	LR_CLEANUP_FD int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	LR_CLEANUP_FD int at = LR_NOFD;

	if (sock < 0)
		return lr_fail(err, errno, "cannot make a socket");
	if (strlen(path) < sizeof sa.sun_path) {
		memcpy(sa.sun_path, path, strlen(path) + 1);
	} else {
		/* sun_path has 108 bytes; a descriptor's link in /proc has few. */
		at = lr_open(path, O_PATH | O_CLOEXEC);
		if (at < 0)
			return lr_fail(err, errno, "cannot open socket %s", path);
		snprintf(sa.sun_path, sizeof sa.sun_path, "/proc/self/fd/%d", at);
	}
	while (connect(sock, (struct sockaddr *)&sa, sizeof sa) < 0) {
		if (errno == EINTR)
			continue;
		int code = errno;
		lr_fail(err, code, "cannot connect to socket %s", path);
		if (code == ENOENT)
			lr_err_hint(err, "whoever takes the descriptor has to listen first");
		if (code == ECONNREFUSED)
			lr_err_hint(err, "nobody listens there, or it is not a stream socket");
		return -code;
	}
	return lr_take_fd(&sock);
}

int lr_tty_send_fd(int sock, int fd, const char *name, struct lr_err *err)
{
	union fd_control control = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)name, .iov_len = strlen(name)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = CMSG_SPACE(sizeof fd)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	ssize_t n;

	if (iov.iov_len == 0 || iov.iov_len > NAME_MAX_BYTES)
		return lr_refuse(err, EINVAL,
				 "the name sent with a descriptor has %zu bytes, not 1 to %d",
				 iov.iov_len, NAME_MAX_BYTES);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
	do
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return lr_fail(err, errno, "cannot send a descriptor over the socket");
	if ((size_t)n != iov.iov_len)
		return lr_refuse(err, EIO, "the socket took %zd of %zu bytes", n, iov.iov_len);
	return 0;
}

/* Takes what came as descriptors; closes all of it unless it is exactly one. */
static int take_fds(struct msghdr *msg)
{
	int found = LR_NOFD;
	size_t n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++, n++) {
			lr_close(found);
			memcpy(&found, CMSG_DATA(c) + i * sizeof(int), sizeof found);
		}
	}
	if (n != 1 || (msg->msg_flags & MSG_CTRUNC))
		found = lr_close(found);
	return found;
}

int lr_tty_recv_fd(int sock, char *name, size_t size, struct lr_err *err)
{
	char data[NAME_MAX_BYTES + 1];
	union fd_control control;
	struct iovec iov = {.iov_base = data, .iov_len = sizeof data};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof control};
	ssize_t n;
	int fd;

	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return lr_fail(err, errno, "cannot receive a descriptor over the socket");
	fd = take_fds(&msg);
	if (n == 0) {
		lr_close(fd);
		return lr_refuse(err, EPIPE, "the socket was closed before a descriptor came");
	}
	if (fd < 0)
		return lr_refuse(err, EBADMSG, "the message does not carry exactly one descriptor");
	if (name && size > 0) {
		size_t len = (size_t)n < size - 1 ? (size_t)n : size - 1;
		memcpy(name, data, len);
		name[len] = '\0';
	}
	return fd;
}
