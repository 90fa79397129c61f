/* SPDX-License-Identifier: Apache-2.0 */
/* capture: sockets that listen: who waits to be accepted stays the parent's, nothing is taken out of
 * them; and connections that a child finds closed. */
#define LR_ROOM "capture"
#include <errno.h>
#include <linux/capability.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/files.h"
#include "src/capture/state.h"
#include "src/seed/socket.h"

#ifndef SIOCGSKNS
#define SIOCGSKNS 0x894C
#endif
#ifndef SO_BUF_LOCK
#define SO_BUF_LOCK 72
#endif
#ifndef SO_BINDTOIFINDEX
#define SO_BINDTOIFINDEX 62
#endif
#ifndef SO_GET_FILTER
#define SO_GET_FILTER 26
#endif
#ifndef TCP_AO_INFO
#define TCP_AO_INFO 40
#endif
#ifndef IPV6_MINHOPCOUNT
#define IPV6_MINHOPCOUNT 73
#endif
#ifndef IPV6_TRANSPARENT
#define IPV6_TRANSPARENT 75
#endif

const char *cap_socket_failed(struct cap *c, int code)
{
	const char *why = lr_strf(c->a, "a socket that can't be looked at: %s", lr_strerror(code));

	return why ? why : "a socket that can't be looked at, as no memory is left";
}

int cap_socket_told(struct cap *c, enum cap_kind kind, uint64_t inode, struct cap_socket *ret)
{
	return cap_socket_find(c->a, c->opts->pid, kind, &c->sockets[kind], inode, ret);
}

bool cap_socket_lacks(int code)
{
	return code == ENOPROTOOPT || code == EOPNOTSUPP;
}

bool cap_socket_has_filter(int fd)
{
	socklen_t n = 0;

	/* One without its code of old is not shown. */
	return getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, NULL, &n) < 0 ? errno == EACCES : n > 0;
}

const char *cap_socket_other(struct cap *c, int fd, const struct cap_other *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		/* What is longer than an int is 0 all over as long as nobody sets it. */
		int value[4] = {v[i].usual};
		socklen_t size = sizeof(value);
		if (getsockopt(fd, v[i].level, v[i].name, value, &size) < 0) {
			if (!cap_socket_lacks(errno))
				return cap_socket_failed(c, errno);
		} else if (value[0] != v[i].usual || value[1] || value[2] || value[3]) {
			return v[i].what;
		}
	}
	return NULL;
}

/* Of one that listens. */
static const char *other_option(struct cap *c, int fd)
{
	static const struct cap_other others[] = {
		{SOL_SOCKET, SO_BINDTODEVICE, 0, "a socket that listens at one device"},
		{SOL_SOCKET, SO_BINDTOIFINDEX, 0, "a socket that listens at one device"},
		{SOL_SOCKET, SO_MARK, 0, "a socket that listens, with a mark"},
		{SOL_SOCKET, SO_PRIORITY, 0, "a socket that listens, with a priority"},
		{SOL_SOCKET, SO_LINGER, 0, "a socket that listens, with SO_LINGER"},
		{SOL_SOCKET, SO_RCVTIMEO, 0, "a socket that listens, with a timeout"},
		{SOL_SOCKET, SO_SNDTIMEO, 0, "a socket that listens, with a timeout"},
		{IPPROTO_IP, IP_TOS, 0, "a socket that listens, with a type of service"},
		{IPPROTO_IP, IP_MINTTL, 0,
		 "a socket that listens to who is near alone (IP_MINTTL)"},
		{IPPROTO_IP, IP_TRANSPARENT, 0, "a transparent socket that listens"},
		{IPPROTO_IPV6, IPV6_MINHOPCOUNT, 0,
		 "a socket that listens to who is near alone (IPV6_MINHOPCOUNT)"},
		{IPPROTO_IPV6, IPV6_TCLASS, 0, "a socket that listens, with a traffic class"},
		{IPPROTO_IPV6, IPV6_TRANSPARENT, 0, "a transparent socket that listens"},
	};
	const char *why = cap_socket_other(c, fd, others, LR_ARRAY_SIZE(others));

	return !why && cap_socket_has_filter(fd) ? "a socket that listens, with a filter" : why;
}

/* 0 or -1 with errno. */
static int read_option(int fd, const struct lr_seed_option_of *o, int *ret)
{
	struct timeval time = {0};
	socklen_t n = o->is_time ? sizeof(time) : sizeof(*ret);

	*ret = 0;
	if (getsockopt(fd, o->level, o->name, o->is_time ? (void *)&time : ret, &n) < 0)
		return -1;
	/* What is less than a millisecond is not 0, which is for ever. More than INT32_MAX, 24 days, is as good as that. */
	if (o->is_time)
		*ret = time.tv_sec < INT32_MAX / 1000
			       ? (int)(time.tv_sec * 1000 + (time.tv_usec + 999) / 1000)
			       : INT32_MAX;
	return 0;
}

/* What its child would not have if it could not be read here. */
const char *cap_socket_options(struct cap *c, int fd, uint32_t domain, uint32_t *set,
			       int32_t *options)
{
	int locked = 0;
	socklen_t n = sizeof(locked);

	if (getsockopt(fd, SOL_SOCKET, SO_BUF_LOCK, &locked, &n) < 0 && !cap_socket_lacks(errno))
		return cap_socket_failed(c, errno);
	for (unsigned i = 0; i < LR_SEED_OPTIONS; i++) {
		int value;
		if (!lr_seed_option_fits(i, domain))
			continue;
		if (read_option(fd, &lr_seed_options[i], &value) < 0 && !cap_socket_lacks(errno))
			return cap_socket_failed(c, errno);
		/* The kernel's own are not the program's; and it doubles what it is given. */
		if (i == LR_SEED_SNDBUF || i == LR_SEED_RCVBUF)
			value = locked & (i == LR_SEED_SNDBUF ? 1 : 2) ? value / 2 : 0;
		/* A sysctl says what it is at first. */
		if (value > 0 || i == LR_SEED_V6ONLY) {
			*set |= 1U << i;
			options[i] = value;
		}
	}
	return NULL;
}

/* A socket stays in the network namespace that it was made in. */
static const char *other_namespace(struct cap *c, int fd)
{
	char path[40];
	struct stat theirs, its;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", c->opts->pid);
	LR_CLEANUP_FD int ns = ioctl(fd, SIOCGSKNS);
	if (ns < 0 || fstat(ns, &its) < 0 || stat(path, &theirs) < 0)
		return cap_socket_failed(c, errno);
	return its.st_dev == theirs.st_dev && its.st_ino == theirs.st_ino
		       ? NULL
		       : "a socket of another network namespace";
}

static const char *take_owner(struct cap *c, int fd, struct lr_seed_endpoint *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return cap_socket_failed(c, errno);
	e->uid = st.st_uid;
	e->gid = st.st_gid;
	return cap_id_inside(c, &c->uids, &e->uid) && cap_id_inside(c, &c->gids, &e->gid)
		       ? NULL
		       : "a socket of somebody whom its user namespace does not know";
}

static bool is_tcp(const struct lr_seed_endpoint *e)
{
	return (e->domain == AF_INET || e->domain == AF_INET6) && e->type == SOCK_STREAM &&
	       (e->protocol == IPPROTO_TCP || e->protocol == LR_SEED_MPTCP);
}

static bool tcp_info(int fd, struct tcp_info *ret)
{
	socklen_t n = sizeof(*ret);

	*ret = (struct tcp_info){0};
	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, ret, &n) == 0;
}

/* What a new socket has is its namespace's, and may be another in a child; so what counts is what differs from it. */
static const char *take_congestion(struct cap *c, int fd, struct lr_seed_endpoint *e)
{
	char name[sizeof(e->congestion)] = "";
	socklen_t n = sizeof(name);

	if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &n) < 0)
		return cap_socket_lacks(errno) ? NULL : cap_socket_failed(c, errno);
	int r = c->congestion[0] ? 0 : cap_net_congestion(c->opts->pid, c->congestion);
	if (r < 0)
		return cap_socket_failed(c, -r);
	name[sizeof(name) - 1] = 0;
	if (!lr_streq(name, c->congestion))
		memcpy(e->congestion, name, sizeof(name));
	return NULL;
}

/* The kernel does not tell whose a policy is. Only who may administer the network can give a socket one. */
static const char *may_have_policy(struct cap *c)
{
	const uint64_t bounding = c->p->n_threads ? c->p->threads[0].cred.bounding : UINT64_MAX;

	if (!(bounding & UINT64_C(1) << CAP_NET_ADMIN))
		return NULL;
	int r = cap_net_has_policies(c->opts->pid);
	if (r < 0)
		return cap_socket_failed(c, -r);
	return r ? "a socket that listens, and perhaps has a policy of IPsec (IP_XFRM_POLICY), as "
		   "one of its network namespace has"
		 : NULL;
}

static const char *take_listening(struct cap *c, int fd, struct cap_endpoint *e)
{
	struct tcp_info info;
	int only;
	socklen_t size = sizeof(e->address), n = sizeof(only);

	if (!is_tcp(&e->seed))
		return "a socket that listens, and is not of TCP";
	if (!tcp_info(fd, &info) || getsockname(fd, (struct sockaddr *)e->address, &size) < 0)
		return cap_socket_failed(c, errno);
	/* MPTCP did not say before Linux 6.15; not to know could open a port to more than before. */
	if (e->seed.domain == AF_INET6 && getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &n) < 0)
		return "a socket that listens, and does not say whether for IPv6 alone";
	/* Of one that listens these two are how many wait, and how many may. */
	e->seed.backlog = info.tcpi_sacked;
	e->size = size;
	const char *why = may_have_policy(c);
	if (!why)
		why = take_congestion(c, fd, &e->seed);
	return why ? why : take_owner(c, fd, &e->seed);
}

/* NULL: it takes what is not signed. The kernel does not give out the keys, and without them a child would listen to
 * everybody. */
static const char *why_signed(struct cap *c, const struct cap_file *f, int fd,
			      const struct cap_endpoint *e)
{
	uint64_t info[8] = {0};
	socklen_t n = sizeof(info);

	/* Of MPTCP there are none. */
	if (e->seed.protocol != IPPROTO_TCP)
		return NULL;
	if (getsockopt(fd, IPPROTO_TCP, TCP_AO_INFO, info, &n) == 0)
		return "a socket that listens to what is signed alone (TCP_AO_ADD_KEY)";
	if (errno != ENOENT && !cap_socket_lacks(errno))
		return cap_socket_failed(c, errno);
	struct cap_socket told;
	int r = cap_socket_told(c, e->seed.domain == AF_INET6 ? CAP_TCP6 : CAP_TCP4, f->inode,
				&told);
	if (r < 0)
		return cap_socket_failed(c, -r);
	return told.is_signed ? "a socket that listens to what is signed alone (TCP_MD5SIG)" : NULL;
}

/* There is one, or will be, or was: where there never was any, nobody has hung up. */
static bool is_connection(int fd, const struct tcp_info *info)
{
	struct pollfd p = {.fd = fd, .events = POLLRDHUP};

	return info->tcpi_state != TCP_CLOSE || (poll(&p, 1, 0) == 1 && p.revents & POLLRDHUP);
}

/* What whoever reads a refusal calls such a socket. */
static const char *other_kind(struct cap *c, const struct lr_seed_endpoint *e)
{
	static const struct {
		uint32_t domain, type, protocol; /* 0: any */
		const char *what;
	} kinds[] = {
		{AF_INET, SOCK_DGRAM, IPPROTO_ICMP, "a socket of ICMP"},
		{AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6, "a socket of ICMP"},
		{AF_INET, SOCK_DGRAM, 0, "a UDP socket"},
		{AF_INET6, SOCK_DGRAM, 0, "a UDP socket"},
		{AF_INET, SOCK_RAW, 0, "a raw socket"},
		{AF_INET6, SOCK_RAW, 0, "a raw socket"},
		{AF_NETLINK, 0, 0, "a netlink socket"},
		{AF_PACKET, 0, 0, "a packet socket"},
		{AF_VSOCK, 0, 0, "a vsock socket"},
	};
	for (size_t i = 0; i < LR_ARRAY_SIZE(kinds); i++)
		if (kinds[i].domain == e->domain && (!kinds[i].type || kinds[i].type == e->type) &&
		    (!kinds[i].protocol || kinds[i].protocol == e->protocol))
			return kinds[i].what;
	const char *text = lr_strf(c->a, "a socket of family %u and type %u", e->domain, e->type);
	return text ? text : "a socket, and no memory is left";
}

static const char *take_connection(struct cap *c, int fd, struct cap_endpoint *e)
{
	struct tcp_info info = {0};

	if (!is_tcp(&e->seed))
		return other_kind(c, &e->seed);
	if (!tcp_info(fd, &info))
		return cap_socket_failed(c, errno);
	if (!is_connection(fd, &info))
		return "a TCP socket that neither listens nor is connected";
	if (!c->opts->close_tcp)
		return "a TCP connection, and --tcp-close is not given";
	e->seed.state = LR_SEED_CLOSED;
	e->seed.protocol = IPPROTO_TCP;
	return take_owner(c, fd, &e->seed);
}

static const char *look_at(struct cap *c, const struct cap_file *f, int fd, struct cap_endpoint *e)
{
	if (e->seed.state != LR_SEED_LISTENS)
		return take_connection(c, fd, e);
	const char *why = other_namespace(c, fd);
	if (!why)
		why = other_option(c, fd);
	if (why)
		return why;
	if (e->seed.domain == AF_UNIX)
		return cap_named_look(c, f, fd, e);
	why = take_listening(c, fd, e);
	return why ? why : why_signed(c, f, fd, e);
}

/* What each socket can tell. */
static const char *take_kind(struct cap *c, int fd, struct lr_seed_endpoint *e)
{
	uint32_t listens = 0;
	const struct {
		int name;
		uint32_t *to;
	} v[] = {
		{SO_ACCEPTCONN, &listens},
		{SO_DOMAIN, &e->domain},
		{SO_TYPE, &e->type},
		{SO_PROTOCOL, &e->protocol},
	};
	for (size_t i = 0; i < LR_ARRAY_SIZE(v); i++) {
		socklen_t n = sizeof(*v[i].to);
		if (getsockopt(fd, SOL_SOCKET, v[i].name, v[i].to, &n) < 0)
			return cap_socket_failed(c, errno);
	}
	e->state = listens ? LR_SEED_LISTENS : 0;
	return NULL;
}

const char *cap_endpoint_look(struct cap *c, struct cap_file *f, int fd)
{
	struct cap_endpoint *e = lr_new(c->a, struct cap_endpoint);

	if (!e)
		return "a socket, and no memory is left";
	e->dir = "";
	const char *why = take_kind(c, fd, &e->seed);
	if (!why)
		why = look_at(c, f, fd, e);
	if (!why)
		why = cap_socket_options(c, fd, e->seed.domain, &e->seed.set, e->seed.options);
	if (why)
		return why;
	f->seed.kind = LR_SEED_ENDPOINT_FILE;
	f->endpoint = e;
	return NULL;
}
