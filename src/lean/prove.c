/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lean: is a network namespace as it was when it was new? Its traces in /proc/net are compared with
 * those it had then: devices and what went through them, the counters of all protocols (they would
 * tell of the container before), addresses, routes, flow labels, sockets of all kinds, abstract
 * ones too, and TIME_WAIT.
 *
 * What is not looked at (rules of netfilter, sysctls) needs CAP_NET_ADMIN or a writable /proc/sys,
 * with which no container gets a namespace of the pool (plan.c), and which marks one that exec
 * brings them into.
 */
#define LR_ROOM "lean"
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/str.h"
#include "src/lean/prove.h"
#include "src/sys/syscalls.h"

#define NET "/proc/thread-self/net/"

static const char *const files[] = {"dev",  "if_inet6", "fib_trie", "route",
				    "snmp", "snmp6",    "netstat",  "ip6_flowlabel",
				    "unix", "packet",   "raw"};

/* "sockets: used 0" and "TCP: ... tw 0 ...": the rest counts for the whole host. */
static int add_sockets(char *buf, size_t size)
{
	char text[1024];
	ssize_t n = lr_read_file_at(AT_FDCWD, NET "sockstat", text, sizeof(text));
	const char *used = n < 0 ? NULL : strstr(text, "used "),
		   *tw = n < 0 ? NULL : strstr(text, " tw ");

	if (n < 0)
		return (int)n;
	if (!used || !tw)
		return -EPROTO;
	int len = snprintf(buf, size, "used %.*s tw %.*s\n", (int)strcspn(used + 5, " \n"),
			   used + 5, (int)strcspn(tw + 4, " \n"), tw + 4);
	return (size_t)len >= size ? -EFBIG : len;
}

int lr_lean_net_print(char *buf, size_t size)
{
	size_t at = 0;

	for (size_t i = 0; i < LR_ARRAY_SIZE(files); i++) {
		char path[64];
		snprintf(path, sizeof(path), NET "%s", files[i]);
		ssize_t n = lr_read_file_at(AT_FDCWD, path, buf + at, size - at);
		if (n < 0 && n != -ENOENT) /* no IPv6, no packet sockets */
			return (int)n;
		at += n > 0 ? (size_t)n : 0;
	}
	int r = add_sockets(buf + at, size - at);
	return r < 0 ? r : (int)(at + (size_t)r);
}

bool lr_lean_net_is_new(int netns, const char *print)
{
	char now[LR_LEAN_PRINT_MAX];
	LR_CLEANUP_FD int own = lr_open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	if (own < 0 || lr_setns(netns, CLONE_NEWNET) < 0)
		return false;
	int n = lr_lean_net_print(now, sizeof(now));
	/* A thread that stays in there would do all sorts of things in the wrong place. */
	if (lr_setns(own, CLONE_NEWNET) < 0)
		_exit(125);
	return n > 0 && lr_streq(now, print);
}
