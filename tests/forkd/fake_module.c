/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel module (docs/module.md) for hosts that have none, as far as lean-forkd asks it, to be loaded before its
 * libraries (LD_PRELOAD). It reads nothing and has no memory for children: it is about what daemons say to each other.
 * In the directory $FAKE_MODULE:
 *	log      what was asked: "listen PORT", "connect PORT TOKEN", "token"
 *	pages    how many pages what is connected to has
 *	refused, deaf: nobody is let in; nobody answers, until its time is up
 *	full     there are too many tokens
 *	dead     what was connected to has ended
 * A file in memory whose name is "lean-seed-exported" is a seed of the module.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel/include/uapi/lean_seed.h"

#define EXPORTED "/memfd:lean-seed-exported"

static int at(const char *name, int flags)
{
	const char *dir = getenv("FAKE_MODULE");
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir ? dir : "/nowhere", name);
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0600);
}

static int is_there(const char *name)
{
	int fd = at(name, O_RDONLY);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void note(const char *line)
{
	int fd = at("log", O_WRONLY | O_CREAT | O_APPEND);

	if (fd >= 0 && write(fd, line, strlen(line)) < 0)
		abort();
	if (fd >= 0) /* a daemon may have no descriptor left */
		close(fd);
}

static unsigned port_of(uint64_t address)
{
	const struct sockaddr_in *in = (const void *)(uintptr_t)address;
	const struct sockaddr_in6 *in6 = (const void *)(uintptr_t)address;

	return ntohs(in->sin_family == AF_INET6 ? in6->sin6_port : in->sin_port);
}

static int listen_at(const struct lean_seed_listen *l)
{
	char line[32];

	snprintf(line, sizeof(line), "listen %u\n", port_of(l->address));
	note(line);
	return eventfd(0, EFD_CLOEXEC);
}

static int connect_to(const struct lean_seed_connect *c)
{
	char line[128];
	int n = snprintf(line, sizeof(line), "connect %u ", port_of(c->address));

	for (size_t i = 0; i < sizeof(c->token); i++)
		n += snprintf(line + n, sizeof(line) - (size_t)n, "%02x", c->token[i]);
	snprintf(line + n, sizeof(line) - (size_t)n, "\n");
	note(line);
	if (is_there("deaf")) {
		usleep(c->timeout * 1000);
		errno = ETIMEDOUT;
		return -1;
	}
	if (is_there("refused")) {
		errno = EACCES;
		return -1;
	}
	return memfd_create("source", MFD_CLOEXEC);
}

static int give_token(struct lean_seed_token *t)
{
	note("token\n");
	if (is_there("full")) {
		errno = EMFILE;
		return -1;
	}
	return getrandom(t->token, sizeof(t->token), 0) == sizeof(t->token) ? 0 : -1;
}

static int tell(struct lean_seed_status *s)
{
	char text[32] = "";
	int fd = at("pages", O_RDONLY);

	if (fd >= 0) {
		if (read(fd, text, sizeof(text) - 1) < 0)
			abort();
		close(fd);
	}
	*s = (struct lean_seed_status){.pages = strtoull(text, NULL, 10),
				       .dead = (uint32_t)is_there("dead")};
	return 0;
}

static int fake(unsigned long request, void *arg)
{
	switch (request) {
	case LEAN_SEED_INFO:
		*(struct lean_seed_info *)arg =
			(struct lean_seed_info){.features = LEAN_SEED_RDMA | LEAN_SEED_AS_FILE};
		return 0;
	case LEAN_SEED_LISTEN:
		return listen_at(arg);
	case LEAN_SEED_CONNECT:
		return connect_to(arg);
	case LEAN_SEED_TOKEN:
		return give_token(arg);
	case LEAN_SEED_STATUS:
		return tell(arg);
	case LEAN_SEED_FEED:
		return eventfd(0, EFD_CLOEXEC); /* nobody asks for anything */
	case LEAN_SEED_OPEN:
		return memfd_create("source", MFD_CLOEXEC);
	default:
		errno = ENOTTY;
		return -1;
	}
}

/* ---- in place of the C library's --------------------------------------------------------------- */

int ioctl(int fd, unsigned long request, ...)
{
	va_list v;

	va_start(v, request);
	void *arg = va_arg(v, void *);
	va_end(v);
	return _IOC_TYPE(request) == 0xEA ? fake(request, arg)
					  : (int)syscall(SYS_ioctl, fd, request, arg);
}

int openat64(int dir, const char *path, int flags, ...)
{
	va_list v;

	va_start(v, flags);
	const int mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(v, int) : 0;
	va_end(v);
	return strcmp(path, "/dev/lean-seed") == 0
		       ? memfd_create("device", MFD_CLOEXEC)
		       : (int)syscall(SYS_openat, dir, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	va_list v;

	va_start(v, flags);
	const int mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(v, int) : 0;
	va_end(v);
	return openat64(AT_FDCWD, path, flags, mode);
}

ssize_t readlink(const char *path, char *to, size_t size)
{
	static const char name[] = "anon_inode:[lean-seed]";
	ssize_t n = syscall(SYS_readlinkat, AT_FDCWD, path, to, size);

	if (n < (ssize_t)sizeof(EXPORTED) || memcmp(to, EXPORTED, sizeof(EXPORTED) - 1) != 0)
		return n;
	memcpy(to, name, sizeof(name) - 1);
	return sizeof(name) - 1;
}
