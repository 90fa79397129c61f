/* SPDX-License-Identifier: Apache-2.0 */
/* capture: what only the network namespace of a socket knows: by sock_diag(7) the other end of a pair, how many may
 * wait at one that listens, and whether it asks for signatures; and what else is of the namespace. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <linux/xfrm.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/files.h"
#include "src/sys/syscalls.h"

/* A socket of the network namespace that the process is in, or a negative errno; we are back in ours at the
 * end. */
static int open_there(pid_t pid, int domain, int type, int protocol)
{
	char path[40];
	LR_CLEANUP_FD int own = lr_open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	if (own < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	LR_CLEANUP_FD int there = lr_open(path, O_RDONLY | O_CLOEXEC);
	if (there < 0)
		return -errno;
	int r = lr_setns(there, CLONE_NEWNET);
	if (r < 0)
		return r;
	int fd = socket(domain, type | SOCK_CLOEXEC, protocol);
	int code = errno;
	/* Nothing that follows may happen elsewhere than the caller thinks. */
	r = lr_setns(own, CLONE_NEWNET);
	if (r < 0) {
		dprintf(STDERR_FILENO, "capture: return to the caller's network namespace: %s\n",
			lr_strerror(-r));
		_exit(125);
	}
	return fd < 0 ? -code : fd;
}

static int open_diag(pid_t pid)
{
	return open_there(pid, AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG);
}

/* The first attribute of that type in an answer, behind the answer's own fields (their size); NULL: it has none that
 * long. */
static const void *attribute_behind(const struct nlmsghdr *h, size_t fields, unsigned type,
				    size_t size)
{
	const char *at = (const char *)NLMSG_DATA(h) + fields,
		   *end = (const char *)h + h->nlmsg_len;

	while (end - at >= (long)sizeof(struct nlattr)) {
		struct nlattr a;
		memcpy(&a, at, sizeof(a));
		if (a.nla_len < sizeof(a) || a.nla_len > end - at)
			return NULL;
		if (a.nla_type == type)
			return a.nla_len >= sizeof(a) + size ? at + sizeof(a) : NULL;
		at += (a.nla_len + 3U) & ~3U;
	}
	return NULL;
}

static const void *attribute(const struct nlmsghdr *h, unsigned type, size_t size)
{
	return attribute_behind(h, sizeof(struct unix_diag_msg), type, size);
}

/* Of the end of an answer: it may be an error. */
static int ended(const struct nlmsghdr *h)
{
	int code = 0;

	if (h->nlmsg_len >= NLMSG_LENGTH(sizeof(code)))
		memcpy(&code, NLMSG_DATA(h), sizeof(code));
	return code < 0 ? code : -ENOENT;
}

#define ANSWER 1024

/* For a question of one message whose answer is one, too. fd may be a negative errno, which is returned. */
static int ask_once(int fd, const struct nlmsghdr *ask, char *answer)
{
	const struct nlmsghdr *h = (void *)answer;

	if (fd < 0)
		return fd;
	if (send(fd, ask, ask->nlmsg_len, 0) != (ssize_t)ask->nlmsg_len)
		return -errno;
	ssize_t n = recv(fd, answer, ANSWER, 0);
	if (n < 0)
		return -errno;
	return NLMSG_OK(h, (size_t)n) ? 0 : -EPROTO;
}

/* ---- what is told of all sockets of a kind ---------------------------------------------------- */

/* The kernel gives no more at once than there is room for here. */
#define PART 32768

struct dumping {
	struct lr_arena *a;
	size_t fields; /* the size of what each message begins with */
	struct cap_socket (*read)(const struct nlmsghdr *h);
	struct cap_sockets *ret;
};

static int add(struct dumping *x, const struct nlmsghdr *h)
{
	struct cap_socket *v = lr_grow(x->a, x->ret->v, x->ret->n, sizeof(*v));

	if (!v)
		return -ENOMEM;
	x->ret->v = v;
	v[x->ret->n++] = x->read(h);
	return 0;
}

/* -ENOENT: that was the last one. */
static int add_part(struct dumping *x, const char *part, size_t n)
{
	const struct nlmsghdr *h = (const void *)part;
	int r = 0;

	for (; r >= 0 && NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
		if (h->nlmsg_type == NLMSG_DONE)
			return ended(h);
		if (h->nlmsg_type == NLMSG_ERROR) {
			r = ended(h);
			/* The kernel can't tell of this kind: not that there is none. */
			return r == -ENOENT ? -EOPNOTSUPP : r;
		}
		if (h->nlmsg_type == SOCK_DIAG_BY_FAMILY && h->nlmsg_len >= NLMSG_LENGTH(x->fields))
			r = add(x, h);
	}
	return r;
}

static int dump(struct dumping *x, pid_t pid, const struct nlmsghdr *ask)
{
	_Alignas(struct nlmsghdr) char part[PART];
	LR_CLEANUP_FD int fd = open_diag(pid);
	int r = fd < 0                                                        ? fd
		: send(fd, ask, ask->nlmsg_len, 0) != (ssize_t)ask->nlmsg_len ? -errno
									      : 0;

	while (r >= 0) {
		ssize_t n = recv(fd, part, sizeof(part), MSG_TRUNC);
		if (n <= 0 || n > (ssize_t)sizeof(part))
			return n < 0 ? -errno : -EMSGSIZE;
		r = add_part(x, part, (size_t)n);
	}
	return r == -ENOENT ? 0 : r;
}

static struct cap_socket read_unix(const struct nlmsghdr *h)
{
	const struct unix_diag_msg *m = NLMSG_DATA(h);
	const uint8_t *shut = attribute(h, UNIX_DIAG_SHUTDOWN, sizeof(*shut));
	const uint32_t *peer = attribute(h, UNIX_DIAG_PEER, sizeof(*peer));
	const struct unix_diag_rqlen *queue = attribute(h, UNIX_DIAG_RQLEN, sizeof(*queue));

	return (struct cap_socket){
		.inode = m->udiag_ino,
		.peer = peer ? *peer : 0,
		.shut = shut ? *shut & 3 : 0,
		.named = attribute(h, UNIX_DIAG_NAME, 0) != NULL,
		.unconnected = m->udiag_state == TCP_CLOSE,
		/* Of one that listens these two are how many wait, and how many may. */
		.backlog = queue ? queue->udiag_wqueue : UINT32_MAX,
	};
}

static int list_unix(struct lr_arena *a, pid_t pid, struct cap_sockets *ret)
{
	struct dumping x = {a, sizeof(struct unix_diag_msg), read_unix, ret};
	const struct {
		struct nlmsghdr h;
		struct unix_diag_req q;
	} ask = {.h = {.nlmsg_len = sizeof(ask),
		       .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		 .q = {.sdiag_family = AF_UNIX,
		       .udiag_states = UINT32_MAX,
		       .udiag_show = UDIAG_SHOW_PEER | UDIAG_SHOW_NAME | UDIAG_SHOW_RQLEN}};

	return dump(&x, pid, &ask.h);
}

static struct cap_socket read_listener(const struct nlmsghdr *h)
{
	const struct inet_diag_msg *m = NLMSG_DATA(h);

	return (struct cap_socket){
		.inode = m->idiag_inode,
		.is_signed = attribute_behind(h, sizeof(*m), INET_DIAG_MD5SIG, 0) != NULL,
	};
}

static int list_listeners(struct lr_arena *a, pid_t pid, uint8_t domain, struct cap_sockets *ret)
{
	struct dumping x = {a, sizeof(struct inet_diag_msg), read_listener, ret};
	const struct {
		struct nlmsghdr h;
		struct inet_diag_req_v2 q;
	} ask = {.h = {.nlmsg_len = sizeof(ask),
		       .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		 .q = {.sdiag_family = domain,
		       .sdiag_protocol = IPPROTO_TCP,
		       .idiag_ext = 1U << (INET_DIAG_INFO - 1), /* or it says nothing of keys */
		       .idiag_states = 1U << TCP_LISTEN}};

	return dump(&x, pid, &ask.h);
}

static int by_inode(const void *a, const void *b)
{
	const struct cap_socket *x = a, *y = b;

	return x->inode < y->inode ? -1 : x->inode > y->inode;
}

static int list(struct lr_arena *a, pid_t pid, enum cap_kind kind, struct cap_sockets *ret)
{
	*ret = (struct cap_sockets){.asked = ret->asked + 1};
	int r = kind == CAP_UNIX
			? list_unix(a, pid, ret)
			: list_listeners(a, pid, kind == CAP_TCP6 ? AF_INET6 : AF_INET, ret);
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_inode);
	return r;
}

static const struct cap_socket *find(const struct cap_sockets *all, uint64_t inode)
{
	const struct cap_socket x = {.inode = (uint32_t)inode};

	return all->n ? bsearch(&x, all->v, all->n, sizeof(x), by_inode) : NULL;
}

/* While they run, one that is not in the list may be younger than it. But it may also be of another namespace, as
 * others after it, and each list takes its time. */
#define MOST_LISTS 8U

int cap_socket_find(struct lr_arena *a, pid_t pid, enum cap_kind kind, struct cap_sockets *all,
		    uint64_t inode, struct cap_socket *ret)
{
	const struct cap_socket *told = find(all, inode);

	if (!told && all->asked < MOST_LISTS) {
		int r = list(a, pid, kind, all);
		if (r < 0)
			return r;
		told = find(all, inode);
	}
	if (!told)
		return -ENOENT;
	*ret = *told;
	return 0;
}

/* ---- TCP -------------------------------------------------------------------------------------- */

int cap_net_congestion(pid_t pid, char ret[LR_SEED_NAME])
{
	LR_CLEANUP_FD int fd = open_there(pid, AF_INET, SOCK_STREAM, IPPROTO_TCP);
	socklen_t n = LR_SEED_NAME; /* the kernel's TCP_CA_NAME_MAX */

	memset(ret, 0, LR_SEED_NAME);
	if (fd < 0)
		return fd;
	return getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, ret, &n) < 0 ? -errno : 0;
}

/* ---- IPsec ------------------------------------------------------------------------------------ */

int cap_net_has_policies(pid_t pid)
{
	_Alignas(struct nlmsghdr) char answer[ANSWER];
	const struct nlmsghdr *h = (void *)answer;
	const struct {
		struct nlmsghdr h;
		uint32_t flags;
	} ask = {.h = {.nlmsg_len = sizeof(ask),
		       .nlmsg_type = XFRM_MSG_GETSPDINFO,
		       .nlmsg_flags = NLM_F_REQUEST}};
	struct xfrmu_spdinfo counts;

	LR_CLEANUP_FD int fd = open_there(pid, AF_NETLINK, SOCK_RAW, NETLINK_XFRM);
	/* Where nobody can be told of policies, the kernel takes none. */
	if (fd < 0)
		return fd == -EPROTONOSUPPORT || fd == -EAFNOSUPPORT ? 0 : fd;
	int r = ask_once(fd, &ask.h, answer);
	if (r < 0)
		return r;
	if (h->nlmsg_type == NLMSG_ERROR)
		return ended(h);
	const void *at = attribute_behind(h, sizeof(ask.flags), XFRMA_SPD_INFO, sizeof(counts));
	if (!at)
		return -EPROTO;
	memcpy(&counts, at, sizeof(counts));
	return counts.inscnt || counts.outscnt || counts.fwdscnt;
}
