/* SPDX-License-Identifier: Apache-2.0 */
/* forkctl: datagrams with descriptors. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/forkctl/forkctl.h"

#ifndef SCM_PIDFD
#define SCM_PIDFD 4
#endif

/* A program that was made before this one may send more than we want: all is closed then. */
#define ROOM                                                                                       \
	(CMSG_SPACE(8 * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int)))

static void take_fds(struct lr_forkctl_in *in, const struct cmsghdr *c)
{
	const size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

	for (size_t i = 0; i < n; i++) {
		int fd;
		memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
		if (in->n < LR_ARRAY_SIZE(in->fds))
			in->fds[in->n++] = fd;
		else
			lr_close(fd);
	}
}

static void take_control(struct lr_forkctl_in *in, struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		struct ucred who;
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_RIGHTS) {
			take_fds(in, c);
		} else if (c->cmsg_type == SCM_CREDENTIALS) {
			memcpy(&who, CMSG_DATA(c), sizeof(who));
			in->pid = who.pid;
			in->uid = who.uid;
		} else if (c->cmsg_type == SCM_PIDFD) {
			memcpy(&in->pidfd, CMSG_DATA(c), sizeof(in->pidfd));
		}
	}
}

ssize_t lr_forkctl_receive(int sock, struct lr_forkctl_in *in)
{
	struct iovec iov = {in->bytes, sizeof(in->bytes)};
	union {
		struct cmsghdr h;
		char room[ROOM];
	} control;
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control.room)};
	ssize_t n;

	in->n = 0;
	in->pid = 0;
	in->uid = (uid_t)-1;
	in->pidfd = LR_NOFD;
	do {
		n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	take_control(in, &m);
	if (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		lr_forkctl_close(in);
		return -EMSGSIZE;
	}
	return n;
}

void lr_forkctl_close(struct lr_forkctl_in *in)
{
	while (in->n)
		lr_close(in->fds[--in->n]);
	in->pidfd = lr_close(in->pidfd);
}

int lr_forkctl_send(int sock, const struct lr_wire_msg *m, const int *fds, size_t n)
{
	uint8_t bytes[LR_WIRE_MESSAGE];
	ssize_t size = lr_wire_encode(m, bytes, sizeof(bytes));
	struct iovec iov = {bytes, size > 0 ? (size_t)size : 0};
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(3 * sizeof(int))];
	} control = {0};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (size < 0)
		return (int)size;
	if (n > 3)
		return -EINVAL;
	if (n) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		control.h = (struct cmsghdr){.cmsg_len = CMSG_LEN(n * sizeof(int)),
					     .cmsg_level = SOL_SOCKET,
					     .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.h), fds, n * sizeof(int));
	}
	while (sendmsg(sock, &msg, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}
