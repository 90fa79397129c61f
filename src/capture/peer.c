/* SPDX-License-Identifier: Apache-2.0 */
/* capture: the other end of a pair of sockets; only sock_diag(7) knows. */
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/capture/files.h"
#include "src/sys/syscalls.h"

/* A socket of the network namespace that the process is in; we are back in ours at the end. */
static int open_there(pid_t pid)
{
	char path[40];
	LR_CLEANUP_FD int own = lr_open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	LR_CLEANUP_FD int there = lr_open(path, O_RDONLY | O_CLOEXEC);
	if (own < 0 || there < 0 || lr_setns(there, CLONE_NEWNET) < 0)
		return LR_NOFD;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	/* Nothing that follows may happen elsewhere than the caller thinks. */
	if (lr_setns(own, CLONE_NEWNET) < 0)
		_exit(125);
	return fd < 0 ? LR_NOFD : fd;
}

static uint64_t read_peer(const struct nlmsghdr *h)
{
	const struct unix_diag_msg *m = NLMSG_DATA(h);
	const char *at = (const char *)(m + 1), *end = (const char *)h + h->nlmsg_len;

	while (end - at >= (long)sizeof(struct nlattr)) {
		struct nlattr a;
		memcpy(&a, at, sizeof(a));
		if (a.nla_len < sizeof(a) || a.nla_len > end - at)
			return 0;
		uint32_t peer;
		if (a.nla_type == UNIX_DIAG_NAME)
			return 0;
		if (a.nla_type == UNIX_DIAG_PEER && a.nla_len >= sizeof(a) + sizeof(peer)) {
			memcpy(&peer, at + sizeof(a), sizeof(peer));
			return peer;
		}
		at += (a.nla_len + 3U) & ~3U;
	}
	return 0;
}

uint64_t cap_unix_peer(pid_t pid, uint64_t inode)
{
	LR_CLEANUP_FD int fd = open_there(pid);
	struct {
		struct nlmsghdr h;
		struct unix_diag_req q;
	} ask = {.h = {.nlmsg_len = sizeof(ask),
		       .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		       .nlmsg_flags = NLM_F_REQUEST},
		 .q = {.sdiag_family = AF_UNIX,
		       .udiag_states = UINT32_MAX,
		       .udiag_ino = (uint32_t)inode,
		       .udiag_show = UDIAG_SHOW_PEER | UDIAG_SHOW_NAME,
		       .udiag_cookie = {UINT32_MAX, UINT32_MAX}}};
	_Alignas(struct nlmsghdr) char answer[1024];
	struct nlmsghdr *h = (void *)answer;

	if (fd < 0 || send(fd, &ask, sizeof(ask), 0) != (ssize_t)sizeof(ask))
		return 0;
	ssize_t n = recv(fd, answer, sizeof(answer), 0);
	if (n < 0 || !NLMSG_OK(h, (size_t)n) || h->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    h->nlmsg_len < NLMSG_LENGTH(sizeof(struct unix_diag_msg)))
		return 0;
	return read_peer(h);
}
