/* SPDX-License-Identifier: Apache-2.0 */
/* capture: sockets that listen. Who waits to be accepted stays the parent's: nothing is taken out of
 * them. */
#define LR_ROOM "capture"
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
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
#ifndef IPV6_TRANSPARENT
#define IPV6_TRANSPARENT 75
#endif

/* 0 where there is no such option. */
static int option(int fd, int level, int name)
{
	int value = 0;
	socklen_t n = sizeof(value);

	return getsockopt(fd, level, name, &value, &n) < 0 ? 0 : value;
}

/* What is not carried, and would be missed. */
static const char *other_option(int fd)
{
	static const struct {
		int level, name;
		const char *what;
	} others[] = {
		{SOL_SOCKET, SO_BINDTODEVICE, "a socket that listens at one device"},
		{SOL_SOCKET, SO_BINDTOIFINDEX, "a socket that listens at one device"},
		{SOL_SOCKET, SO_MARK, "a socket that listens, with a mark"},
		{SOL_SOCKET, SO_PRIORITY, "a socket that listens, with a priority"},
		{SOL_SOCKET, SO_LINGER, "a socket that listens, with SO_LINGER"},
		{SOL_SOCKET, SO_RCVTIMEO, "a socket that listens, with a timeout"},
		{SOL_SOCKET, SO_SNDTIMEO, "a socket that listens, with a timeout"},
		{IPPROTO_IP, IP_TOS, "a socket that listens, with a type of service"},
		{IPPROTO_IP, IP_TRANSPARENT, "a transparent socket that listens"},
		{IPPROTO_IPV6, IPV6_TCLASS, "a socket that listens, with a traffic class"},
		{IPPROTO_IPV6, IPV6_TRANSPARENT, "a transparent socket that listens"},
	};
	/* All of them begin with what is not 0 if they are set, or have it next. */
	for (size_t i = 0; i < LR_ARRAY_SIZE(others); i++) {
		uint64_t value[2] = {0};
		socklen_t n = sizeof(value);
		if (getsockopt(fd, others[i].level, others[i].name, value, &n) == 0 &&
		    (value[0] || value[1]))
			return others[i].what;
	}
	socklen_t n = 0;
	/* One without its code of old is not shown. */
	if (getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, NULL, &n) < 0 ? errno == EACCES : n > 0)
		return "a socket that listens, with a filter";
	return NULL;
}

static void take_options(int fd, struct lr_seed_endpoint *e)
{
	const int locked = option(fd, SOL_SOCKET, SO_BUF_LOCK);

	for (unsigned i = 0; i < LR_SEED_OPTIONS; i++) {
		const struct lr_seed_option_of *o = &lr_seed_options[i];
		int value = option(fd, o->level, o->name);
		/* The kernel's own are not the program's; and it doubles what it is given. */
		if (i == LR_SEED_SNDBUF || i == LR_SEED_RCVBUF)
			value = locked & (i == LR_SEED_SNDBUF ? 1 : 2) ? value / 2 : 0;
		/* A sysctl says what it is at first. */
		if (lr_seed_option_fits(i, e->domain) && (value > 0 || i == LR_SEED_V6ONLY)) {
			e->set |= 1U << i;
			e->options[i] = value;
		}
	}
}

/* A socket stays in the network namespace that it was made in. */
static const char *other_namespace(const struct cap *c, int fd)
{
	char path[40];
	struct stat theirs, its;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", c->opts->pid);
	LR_CLEANUP_FD int ns = ioctl(fd, SIOCGSKNS);
	if (ns < 0 || fstat(ns, &its) < 0 || stat(path, &theirs) < 0)
		return "a socket whose network namespace can't be told";
	return its.st_dev == theirs.st_dev && its.st_ino == theirs.st_ino
		       ? NULL
		       : "a socket of another network namespace";
}

static const char *take_owner(const struct cap *c, int fd, struct lr_seed_endpoint *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return "a socket that can't be looked at";
	e->uid = st.st_uid;
	e->gid = st.st_gid;
	return cap_id_inside(c, &c->uids, &e->uid) && cap_id_inside(c, &c->gids, &e->gid)
		       ? NULL
		       : "a socket of somebody whom its user namespace does not know";
}

static const char *take_tcp(int fd, struct cap_endpoint *e)
{
	struct tcp_info info = {0};
	socklen_t n = sizeof(info), size = sizeof(e->address);

	if (e->seed.type != SOCK_STREAM || e->seed.protocol != IPPROTO_TCP)
		return "a socket that listens, and is not of TCP";
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) < 0 ||
	    getsockname(fd, (struct sockaddr *)e->address, &size) < 0)
		return "a socket that can't be looked at";
	/* Of one that listens these two are how many wait, and how many may. */
	e->seed.backlog = info.tcpi_sacked;
	e->size = size;
	return NULL;
}

const char *cap_endpoint_look(struct cap *c, struct cap_file *f, int fd)
{
	if (!option(fd, SOL_SOCKET, SO_ACCEPTCONN))
		return "a socket that is not of a pair of this host";
	struct cap_endpoint *e = lr_new(c->a, struct cap_endpoint);
	if (!e)
		return "a socket, and no memory is left";
	e->seed.state = LR_SEED_LISTENS;
	e->seed.domain = (uint32_t)option(fd, SOL_SOCKET, SO_DOMAIN);
	e->seed.type = (uint32_t)option(fd, SOL_SOCKET, SO_TYPE);
	e->seed.protocol = (uint32_t)option(fd, SOL_SOCKET, SO_PROTOCOL);
	e->dir = "";
	const char *why = take_tcp(fd, e);
	if (!why)
		why = other_namespace(c, fd);
	if (!why)
		why = other_option(fd);
	if (!why)
		why = take_owner(c, fd, &e->seed);
	if (why)
		return why;
	take_options(fd, &e->seed);
	f->seed.kind = LR_SEED_ENDPOINT_FILE;
	f->endpoint = e;
	return NULL;
}
