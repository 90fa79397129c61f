/* SPDX-License-Identifier: Apache-2.0 */
/* seed: sockets that are of no pair; see check.h and socket.h. */
#define LR_ROOM "seed"
#include "src/seed/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "src/base/str.h"
#include "src/seed/check.h"

#define BAD SEED_BAD

static bool is_inet(uint32_t domain)
{
	return domain == AF_INET || domain == AF_INET6;
}

static bool is_inet6(uint32_t domain)
{
	return domain == AF_INET6;
}

static bool is_unix(uint32_t domain)
{
	return domain == AF_UNIX;
}

static bool is_pair(uint32_t domain)
{
	return domain == LR_SEED_OF_PAIR;
}

static bool is_any_unix(uint32_t domain)
{
	return is_unix(domain) || is_pair(domain);
}

const struct lr_seed_option_of lr_seed_options[LR_SEED_OPTIONS] = {
	[LR_SEED_REUSEADDR] = {SOL_SOCKET, SO_REUSEADDR, is_inet, false},
	[LR_SEED_REUSEPORT] = {SOL_SOCKET, SO_REUSEPORT, is_inet, false},
	[LR_SEED_V6ONLY] = {IPPROTO_IPV6, IPV6_V6ONLY, is_inet6, false},
	[LR_SEED_KEEPALIVE] = {SOL_SOCKET, SO_KEEPALIVE, is_inet, false},
	[LR_SEED_KEEPIDLE] = {IPPROTO_TCP, TCP_KEEPIDLE, is_inet, false},
	[LR_SEED_KEEPINTVL] = {IPPROTO_TCP, TCP_KEEPINTVL, is_inet, false},
	[LR_SEED_KEEPCNT] = {IPPROTO_TCP, TCP_KEEPCNT, is_inet, false},
	[LR_SEED_NODELAY] = {IPPROTO_TCP, TCP_NODELAY, is_inet, false},
	[LR_SEED_DEFER_ACCEPT] = {IPPROTO_TCP, TCP_DEFER_ACCEPT, is_inet, false},
	[LR_SEED_FASTOPEN] = {IPPROTO_TCP, TCP_FASTOPEN, is_inet, false},
	[LR_SEED_USER_TIMEOUT] = {IPPROTO_TCP, TCP_USER_TIMEOUT, is_inet, false},
	[LR_SEED_SNDBUF] = {SOL_SOCKET, SO_SNDBUF, NULL, false},
	[LR_SEED_RCVBUF] = {SOL_SOCKET, SO_RCVBUF, NULL, false},
	[LR_SEED_PASSCRED] = {SOL_SOCKET, SO_PASSCRED, is_any_unix, false},
	[LR_SEED_FREEBIND] = {IPPROTO_IP, IP_FREEBIND, is_inet, false},
	[LR_SEED_PASSPIDFD] = {SOL_SOCKET, SO_PASSPIDFD, is_pair, false},
	[LR_SEED_PASSSEC] = {SOL_SOCKET, SO_PASSSEC, is_pair, false},
	[LR_SEED_RCVTIMEO] = {SOL_SOCKET, SO_RCVTIMEO, is_pair, true},
	[LR_SEED_SNDTIMEO] = {SOL_SOCKET, SO_SNDTIMEO, is_pair, true},
};

bool lr_seed_option_fits(enum lr_seed_option o, uint32_t domain)
{
	return !lr_seed_options[o].fits || lr_seed_options[o].fits(domain);
}

bool lr_seed_options_fit(uint32_t domain, uint32_t set, const int32_t *options)
{
	if (set >> LR_SEED_OPTIONS)
		return false;
	for (unsigned i = 0; i < LR_SEED_OPTIONS; i++)
		if (set & 1U << i && (!lr_seed_option_fits(i, domain) || options[i] < 0))
			return false;
	return true;
}

void lr_seed_address_text(const void *address, uint64_t length, char ret[LR_SEED_ADDRESS_TEXT])
{
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_un un;
	} a = {0};
	char text[INET6_ADDRSTRLEN] = "";

	memcpy(&a, address, length < sizeof(a) ? (size_t)length : sizeof(a));
	if (a.any.sa_family == AF_INET) {
		inet_ntop(AF_INET, &a.in.sin_addr, text, sizeof(text));
		snprintf(ret, LR_SEED_ADDRESS_TEXT, "%s:%u", text, ntohs(a.in.sin_port));
	} else if (a.any.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &a.in6.sin6_addr, text, sizeof(text));
		snprintf(ret, LR_SEED_ADDRESS_TEXT, "[%s]:%u", text, ntohs(a.in6.sin6_port));
	} else {
		const char *name = a.un.sun_path;
		const int skip = !*name, n = (int)sizeof(a.un.sun_path) - skip;
		snprintf(ret, LR_SEED_ADDRESS_TEXT, "%s%.*s", skip ? "@" : "", n, name + skip);
	}
}

static bool kind_is_known(const struct lr_seed_endpoint *e)
{
	const bool stream = is_inet(e->domain) && e->type == SOCK_STREAM;

	if (e->state == LR_SEED_CLOSED)
		return stream && e->protocol == IPPROTO_TCP;
	if (e->state != LR_SEED_LISTENS)
		return false;
	if (is_unix(e->domain))
		return (e->type == SOCK_STREAM || e->type == SOCK_SEQPACKET) && !e->protocol;
	return stream && (e->protocol == IPPROTO_TCP || e->protocol == LR_SEED_MPTCP);
}

/* ---- files of sockets ------------------------------------------------------------------------ */

/* As the kernel writes paths: from the root, no component that is empty, "." or "..". */
static bool is_clean(const char *dir)
{
	if (dir[0] != '/' || strlen(dir) > LR_SEED_PATH)
		return false;
	for (const char *at = dir; *at && dir[1];) {
		const size_t n = strcspn(at + 1, "/");
		if (!n || (at[1] == '.' && (n == 1 || (n == 2 && at[2] == '.'))))
			return false;
		at += n + 1;
	}
	return true;
}

/* Takes the last component from `path`, of *n bytes; its length. */
static size_t last_component(const char *path, size_t *n)
{
	size_t length = 0;

	while (*n && path[*n - 1] != '/') {
		length++;
		--*n;
	}
	*n -= *n > 0;
	return length;
}

int lr_seed_socket_base(const char *dir, const char *path)
{
	size_t end = strlen(dir), n = strlen(path);
	const size_t name = last_component(path, &n);

	if (!name || lr_streq(path + strlen(path) - name, ".") ||
	    lr_streq(path + strlen(path) - name, ".."))
		return -1;
	if (path[0] == '/')
		return 0;
	end = end == 1 ? 0 : end;
	while (n) {
		const size_t length = last_component(path, &n);
		const char *at = path + n + (n > 0);
		if (!length || (length == 1 && *at == '.'))
			continue;
		if (end < length + 1 || dir[end - length - 1] != '/' ||
		    memcmp(dir + end - length, at, length) != 0)
			return -1;
		end -= length + 1;
	}
	return (int)end;
}

static bool path_fits(const struct lr_seed *s, const struct lr_seed_endpoint *e)
{
	const char *at = (const char *)lr_seed_data(s, &e->address) + sizeof(sa_family_t);
	const size_t n = (size_t)e->address.length - sizeof(sa_family_t);
	const char *dir = lr_seed_text(s, e->dir);
	char path[sizeof(struct sockaddr_un)];

	/* The other names are of nothing but this network namespace. */
	if (!*at)
		return !*dir && !e->mode;
	if (memchr(at, 0, n))
		return false;
	memcpy(path, at, n);
	path[n] = 0;
	return is_clean(dir) && e->mode <= 0777 && lr_seed_socket_base(dir, path) >= 0;
}

/* ---- addresses ------------------------------------------------------------------------------- */

static bool unix_address_fits(const struct lr_seed *s, const struct lr_seed_endpoint *e)
{
	uint16_t family;

	/* The kernel would choose a name where there is none. */
	if (e->address.length <= sizeof(family) || e->address.length > sizeof(struct sockaddr_un))
		return false;
	memcpy(&family, lr_seed_data(s, &e->address), sizeof(family));
	return family == AF_UNIX && path_fits(s, e);
}

/* Each domain's address has one length; where the kernel would choose a port, it was none. */
static bool inet_address_fits(const struct lr_seed *s, const struct lr_seed_endpoint *e)
{
	const uint8_t *at = lr_seed_data(s, &e->address);
	const uint64_t length =
		e->domain == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	uint16_t family, port;

	if (e->address.length != length || *lr_seed_text(s, e->dir))
		return false;
	memcpy(&family, at, sizeof(family));
	memcpy(&port, at + sizeof(family), sizeof(port));
	return family == e->domain && port;
}

static bool address_fits(const struct lr_seed *s, const struct lr_seed_endpoint *e)
{
	if (e->state == LR_SEED_CLOSED)
		return !e->address.length && !*lr_seed_text(s, e->dir) && !e->backlog;
	return is_unix(e->domain) ? unix_address_fits(s, e) : inet_address_fits(s, e);
}

/* What may be asked of a kernel, and told to who reads errors. */
static bool congestion_fits(const struct lr_seed_endpoint *e)
{
	const char *name = e->congestion;

	if (*name && (!is_inet(e->domain) || e->state != LR_SEED_LISTENS))
		return false;
	for (; *name; name++)
		if (*name <= ' ' || *name > '~')
			return false;
	return true;
}

static int check_endpoint(const struct lr_seed *s, uint32_t i, struct lr_err *err)
{
	const struct lr_seed_endpoint *e = lr_seed_endpoint(s, i);

	if (!kind_is_known(e))
		return BAD("endpoints", i, "is of an unknown kind");
	if (!address_fits(s, e))
		return BAD("endpoints", i, "has an address that is none");
	if (e->backlog > INT32_MAX || !lr_seed_options_fit(e->domain, e->set, e->options) ||
	    !congestion_fits(e))
		return BAD("endpoints", i, "is garbled");
	return 0;
}

int seed_check_endpoints(const struct lr_seed *s, struct lr_err *err)
{
	uint32_t next = 0, n = lr_seed_count(s, LR_SEED_ENDPOINT);
	int r = 0;

	for (uint32_t i = 0; r >= 0 && i < n; i++)
		r = check_endpoint(s, i, err);
	/* One each: a socket that two files shared would be one file. */
	for (uint32_t i = 0; r >= 0 && i < lr_seed_count(s, LR_SEED_FILE); i++) {
		const struct lr_seed_file *f = lr_seed_file(s, i);
		if (f->kind == LR_SEED_ENDPOINT_FILE && (f->args[0] != next++ || next > n))
			return BAD("files", i, "is not of the next endpoint");
	}
	if (r >= 0 && next != n)
		return lr_refuse(err, EPROTO, "the seed has endpoints that belong to nobody");
	return r;
}
