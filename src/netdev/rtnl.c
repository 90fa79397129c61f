/* SPDX-License-Identifier: Apache-2.0 */
/* netdev: rtnetlink; see rtnl.h. */
#include "src/netdev/rtnl.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/fd.h"

#ifndef IFA_PROTO
#define IFA_PROTO 11 /* Linux 5.18 */
#endif
#ifndef RTEXT_FILTER_SKIP_STATS
#define RTEXT_FILTER_SKIP_STATS (1 << 3)
#endif

/* What the kernel recommends for dumps (netlink(7)); with it no message is cut. */
#define RECV_SIZE 32768

struct request {
	struct nlmsghdr h;
	union {
		struct ifinfomsg link;
		struct ifaddrmsg addr;
	} u;
	char attrs[256];
};

typedef int on_message(const struct nlmsghdr *m, void *arg);

static void start(struct request *q, uint16_t type, uint16_t flags, size_t body)
{
	memset(q, 0, sizeof(*q));
	q->h.nlmsg_len = NLMSG_LENGTH(body);
	q->h.nlmsg_type = type;
	q->h.nlmsg_flags = NLM_F_REQUEST | flags;
}

/* All requests here fit by far: names, two descriptors, three addresses. */
static void put(struct request *q, uint16_t type, const void *data, size_t len)
{
	struct rtattr *a = (struct rtattr *)((char *)q + NLMSG_ALIGN(q->h.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (unsigned short)RTA_LENGTH(len);
	memcpy(RTA_DATA(a), data, len);
	q->h.nlmsg_len = NLMSG_ALIGN(q->h.nlmsg_len) + RTA_ALIGN(a->rta_len);
}

static void put_u32(struct request *q, uint16_t type, uint32_t v)
{
	put(q, type, &v, sizeof(v));
}

static void put_str(struct request *q, uint16_t type, const char *s)
{
	put(q, type, s, strlen(s) + 1);
}

/* The text the kernel gave with an error (NETLINK_EXT_ACK). */
static void note_why(struct lr_rtnl *h, const struct nlmsghdr *m)
{
	const struct nlmsgerr *e = NLMSG_DATA(m);
	size_t skip = sizeof(*e);

	if (!(m->nlmsg_flags & NLM_F_ACK_TLVS))
		return;
	if (!(m->nlmsg_flags & NLM_F_CAPPED)) /* the request is repeated in front */
		skip += e->msg.nlmsg_len - sizeof(struct nlmsghdr);
	size_t len = m->nlmsg_len - NLMSG_HDRLEN;
	if (NLMSG_ALIGN(skip) >= len)
		return;
	int left = (int)(len - NLMSG_ALIGN(skip));
	struct rtattr *a = (struct rtattr *)((char *)NLMSG_DATA(m) + NLMSG_ALIGN(skip));
	for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == NLMSGERR_ATTR_MSG)
			snprintf(h->why, sizeof(h->why), "%.*s", (int)RTA_PAYLOAD(a),
				 (const char *)RTA_DATA(a));
	}
}

static int receive(struct lr_rtnl *h, on_message *on, void *arg)
{
	_Alignas(struct nlmsghdr) char buf[RECV_SIZE];
	int result = 0;

	for (;;) {
		ssize_t n = recv(h->fd, buf, sizeof(buf), 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EPIPE;
		unsigned left = (unsigned)n;
		for (struct nlmsghdr *m = (void *)buf; NLMSG_OK(m, left); m = NLMSG_NEXT(m, left)) {
			if (m->nlmsg_seq != h->seq)
				continue;
			if (m->nlmsg_type == NLMSG_DONE)
				return result;
			if (m->nlmsg_type == NLMSG_ERROR) {
				const struct nlmsgerr *e = NLMSG_DATA(m);
				if (e->error)
					note_why(h, m);
				return e->error ? e->error : result;
			}
			if (on && result == 0)
				result = on(m, arg);
		}
	}
}

static int talk(struct lr_rtnl *h, struct request *q, on_message *on, void *arg)
{
	const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};

	h->why[0] = '\0';
	q->h.nlmsg_seq = ++h->seq;
	/* Both bits: one of them alone is NLM_F_REPLACE of another request. */
	if ((q->h.nlmsg_flags & NLM_F_DUMP) != NLM_F_DUMP)
		q->h.nlmsg_flags |= NLM_F_ACK;
	while (sendto(h->fd, q, q->h.nlmsg_len, 0, (const void *)&kernel, sizeof(kernel)) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return receive(h, on, arg);
}

int lr_rtnl_open(struct lr_rtnl *h)
{
	int one = 1;

	*h = (struct lr_rtnl){.fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)};
	if (h->fd < 0)
		return -errno;
	/* Both for comfort: an older kernel knows neither. */
	(void)setsockopt(h->fd, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one));
	(void)setsockopt(h->fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &one, sizeof(one));
	return 0;
}

static int on_link(const struct nlmsghdr *m, void *arg)
{
	const struct ifinfomsg *i = NLMSG_DATA(m);
	struct lr_rtnl_link *ret = arg;

	if (m->nlmsg_type == RTM_NEWLINK) {
		ret->index = i->ifi_index;
		ret->flags = i->ifi_flags;
	}
	return 0;
}

int lr_rtnl_link_by_name(struct lr_rtnl *h, const char *name, struct lr_rtnl_link *ret)
{
	struct request q;

	start(&q, RTM_GETLINK, 0, sizeof(q.u.link));
	put_str(&q, IFLA_IFNAME, name);
	put_u32(&q, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
	*ret = (struct lr_rtnl_link){0};
	int r = talk(h, &q, on_link, ret);
	return r == 0 && ret->index == 0 ? -ENODEV : r;
}

int lr_rtnl_link_move(struct lr_rtnl *h, int index, int netns_fd, const char *name)
{
	struct request q;

	start(&q, RTM_NEWLINK, 0, sizeof(q.u.link));
	q.u.link.ifi_index = index;
	put_u32(&q, IFLA_NET_NS_FD, (uint32_t)netns_fd);
	put_str(&q, IFLA_IFNAME, name);
	return talk(h, &q, NULL, NULL);
}

int lr_rtnl_link_up(struct lr_rtnl *h, int index)
{
	struct request q;

	start(&q, RTM_NEWLINK, 0, sizeof(q.u.link));
	q.u.link.ifi_index = index;
	q.u.link.ifi_flags = IFF_UP;
	q.u.link.ifi_change = IFF_UP;
	return talk(h, &q, NULL, NULL);
}

struct addr_dump {
	int index;
	struct lr_arena *arena;
	struct lr_rtnl_addrs *ret;
};

static bool get_ip(const struct rtattr *a, unsigned char ip[16])
{
	size_t n = RTA_PAYLOAD(a);

	if (n != 4 && n != 16)
		return false;
	memcpy(ip, RTA_DATA(a), n);
	return true;
}

static void get_attr(const struct rtattr *a, struct lr_rtnl_addr *out)
{
	switch (a->rta_type) {
	case IFA_LOCAL:
		out->has_local = get_ip(a, out->local);
		break;
	case IFA_ADDRESS:
		out->has_peer = get_ip(a, out->peer);
		break;
	case IFA_BROADCAST:
		out->has_broadcast = get_ip(a, out->broadcast);
		break;
	case IFA_LABEL:
		snprintf(out->label, sizeof(out->label), "%.*s", (int)RTA_PAYLOAD(a),
			 (const char *)RTA_DATA(a));
		break;
	case IFA_FLAGS:
		if (RTA_PAYLOAD(a) == sizeof(out->flags))
			memcpy(&out->flags, RTA_DATA(a), sizeof(out->flags));
		break;
	case IFA_RT_PRIORITY:
		if (RTA_PAYLOAD(a) == sizeof(out->priority))
			memcpy(&out->priority, RTA_DATA(a), sizeof(out->priority));
		break;
	case IFA_PROTO:
		if (RTA_PAYLOAD(a) == sizeof(out->proto))
			memcpy(&out->proto, RTA_DATA(a), sizeof(out->proto));
		break;
	default:
		break;
	}
}

static int on_addr(const struct nlmsghdr *m, void *arg)
{
	struct addr_dump *d = arg;
	struct ifaddrmsg *head = NLMSG_DATA(m);
	int left = (int)IFA_PAYLOAD(m);

	if (m->nlmsg_type != RTM_NEWADDR || (int)head->ifa_index != d->index ||
	    head->ifa_scope != RT_SCOPE_UNIVERSE)
		return 0;
	struct lr_rtnl_addr a = {.head = *head, .flags = head->ifa_flags};
	for (struct rtattr *t = IFA_RTA(head); RTA_OK(t, left); t = RTA_NEXT(t, left))
		get_attr(t, &a);
	if (!(a.flags & IFA_F_PERMANENT))
		return 0;
	struct lr_rtnl_addr *v = lr_grow(d->arena, d->ret->v, d->ret->n, sizeof(*v));
	if (!v)
		return -ENOMEM;
	v[d->ret->n++] = a;
	d->ret->v = v;
	return 0;
}

int lr_rtnl_addrs(struct lr_rtnl *h, int index, struct lr_arena *arena, struct lr_rtnl_addrs *ret)
{
	struct addr_dump d = {.index = index, .arena = arena, .ret = ret};
	struct request q;

	*ret = (struct lr_rtnl_addrs){0};
	start(&q, RTM_GETADDR, NLM_F_DUMP, sizeof(q.u.addr));
	q.u.addr.ifa_index = (unsigned)index;
	return talk(h, &q, on_addr, &d);
}

int lr_rtnl_addr_add(struct lr_rtnl *h, int index, const struct lr_rtnl_addr *a)
{
	/* State of the kernel's, not a wish: it is found out anew. */
	uint32_t flags =
		a->flags & ~(uint32_t)(IFA_F_PERMANENT | IFA_F_SECONDARY | IFA_F_TENTATIVE |
				       IFA_F_DADFAILED | IFA_F_DEPRECATED);
	size_t len = a->head.ifa_family == AF_INET6 ? 16 : 4;
	struct request q;

	start(&q, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, sizeof(q.u.addr));
	q.u.addr = a->head;
	q.u.addr.ifa_index = (unsigned)index;
	q.u.addr.ifa_flags = (unsigned char)flags;
	if (a->has_local)
		put(&q, IFA_LOCAL, a->local, len);
	if (a->has_peer)
		put(&q, IFA_ADDRESS, a->peer, len);
	if (a->has_broadcast)
		put(&q, IFA_BROADCAST, a->broadcast, len);
	if (a->label[0])
		put_str(&q, IFA_LABEL, a->label);
	put_u32(&q, IFA_FLAGS, flags);
	if (a->priority)
		put_u32(&q, IFA_RT_PRIORITY, a->priority);
	if (a->proto)
		put(&q, IFA_PROTO, &a->proto, sizeof(a->proto));
	return talk(h, &q, NULL, NULL);
}
