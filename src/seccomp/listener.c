/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp: the listener's way to the agent (config-linux.md "The Container Process State"). */
#define LR_ROOM "seccomp"
#include "src/seccomp/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/base/fd.h"

/* Paths longer than sun_path are reached through a descriptor of their directory. */
static int make_address(const char *path, struct sockaddr_un *addr, int *dirfd)
{
	*addr = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) < sizeof(addr->sun_path)) {
		strcpy(addr->sun_path, path);
		return 0;
	}
	const char *slash = strrchr(path, '/');
	char dir[4096];

	if (!slash || (size_t)(slash - path) >= sizeof(dir))
		return -ENAMETOOLONG;
	memcpy(dir, path, (size_t)(slash - path));
	dir[slash - path] = '\0';
	*dirfd = lr_open(*dir ? dir : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*dirfd < 0)
		return -errno;
	int n = snprintf(addr->sun_path, sizeof(addr->sun_path), "/proc/self/fd/%d%s", *dirfd,
			 slash);
	return n < 0 || (size_t)n >= sizeof(addr->sun_path) ? -ENAMETOOLONG : 0;
}

static int connect_to(const char *path)
{
	struct sockaddr_un addr;
	LR_CLEANUP_FD int dirfd = LR_NOFD;
	int r = make_address(path, &addr, &dirfd);

	if (r < 0)
		return r;
	LR_CLEANUP_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -errno;
	return lr_take_fd(&fd);
}

/* The first message carries the descriptor; the rest of a long text follows without. */
static int send_all(int sock, int fd, const char *text, size_t len)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {(void *)(uintptr_t)text, len};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control.buf)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	while (iov.iov_len) {
		ssize_t n = sendmsg(sock, &msg, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		iov.iov_base = (char *)iov.iov_base + n;
		iov.iov_len -= (size_t)n;
		msg.msg_control = NULL;
		msg.msg_controllen = 0;
	}
	return 0;
}

int lr_seccomp_send_listener(const char *path, int listener_fd, const char *json, size_t len,
			     struct lr_err *err)
{
	LR_CLEANUP_FD int sock = connect_to(path);

	if (sock < 0) {
		lr_fail(err, -sock, "cannot connect to the seccomp agent at %s", path);
		lr_err_step(err, "connect");
		lr_err_at(err, "linux.seccomp.listenerPath");
		return lr_err_hint(err, "is the agent running, on a stream socket?");
	}
	int r = send_all(sock, listener_fd, json, len);
	if (r < 0) {
		lr_fail(err, -r, "cannot send the listener to the seccomp agent at %s", path);
		lr_err_step(err, "sendmsg");
		return lr_err_at(err, "linux.seccomp.listenerPath");
	}
	return 0;
}
