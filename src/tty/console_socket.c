/* SPDX-License-Identifier: Apache-2.0 */
/* tty: descriptors over Unix sockets, as callers of `--console-socket` expect them. */
#define LR_ROOM "tty"

#include <sys/socket.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/sys/socket.h"
#include "src/tty/tty.h"

#define NAME_MAX_BYTES 4095

union fd_control {
	struct cmsghdr head;
	char space[CMSG_SPACE(sizeof(int) * 4)];
};

int lr_tty_connect(const char *path, struct lr_err *err)
{
	int sock = lr_socket_connect(path);

	if (sock >= 0)
		return sock;
	lr_fail(err, -sock, "cannot connect to socket %s", path);
	if (sock == -ENOENT)
		lr_err_hint(err, "whoever takes the descriptor has to listen first");
	if (sock == -ECONNREFUSED)
		lr_err_hint(err, "nobody listens there, or it is not a stream socket");
	return sock;
}

int lr_tty_send_fd(int sock, int fd, const char *name, struct lr_err *err)
{
	size_t len = strlen(name);

	if (len == 0 || len > NAME_MAX_BYTES)
		return lr_refuse(err, EINVAL,
				 "the name sent with a descriptor has %zu bytes, not 1 to %d", len,
				 NAME_MAX_BYTES);
	int r = lr_socket_send_fd(sock, fd, name, len);
	return r < 0 ? lr_fail(err, -r, "cannot send a descriptor over the socket") : 0;
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
