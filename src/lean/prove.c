/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lean: whether a network namespace is as it was when it was new. What /proc/net shows is compared
 * with what it showed then: devices and what went through them, the counters of all protocols
 * (which would tell of the last container), addresses, routes, flow labels, sockets of all kinds,
 * also abstract ones, and TIME_WAIT.
 *
 * What is not looked at (rules of netfilter, sysctls) needs CAP_NET_ADMIN or a writable /proc/sys,
 * and a container with these gets no namespace of the pool (plan.c). If exec brings them into one,
 * it is marked.
 */
#define LR_ROOM "lean"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
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

/* What the child reads and writes, and its stack. */
struct look {
	int netns;
	int len; /* of `now`, or -errno */
	char now[LR_LEAN_PRINT_MAX];
	_Alignas(16) char stack[32768];
};

static int look(void *arg)
{
	struct look *l = arg;
	int r = lr_setns(l->netns, CLONE_NEWNET);

	l->len = r < 0 ? r : lr_lean_net_print(l->now, sizeof(l->now));
	return 0;
}

/*
 * Looks from a child in our memory, as after vfork(2). A thread of the caller's could enter as
 * well, but not always return: its own namespace may belong to a user namespace in which it has no
 * rights. The caller gets no SIGCHLD for the child, and no handler runs in it.
 */
static void look_from_inside(struct look *l)
{
	uint64_t all = ~0ULL, old;

	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, sizeof(old));
	pid_t pid = clone(look, l->stack + sizeof(l->stack), CLONE_VM | CLONE_VFORK, l);
	while (pid > 0 && waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
		;
	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, sizeof(old));
}

bool lr_lean_net_is_new(int netns, const char *print, struct lr_arena *a)
{
	struct look *l = lr_new(a, struct look);

	if (!l)
		return false;
	l->netns = netns;
	look_from_inside(l);
	return l->len > 0 && lr_streq(l->now, print);
}
