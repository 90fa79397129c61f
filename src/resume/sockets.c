/* SPDX-License-Identifier: Apache-2.0 */
/* resume: sockets that listen do so again, in the network namespace that the container has now. They are
 * made with the rights by which files are opened (resume.h, `lower`): the kernel says which ports those
 * are good for. Connections are closed. */
#define LR_ROOM "resume"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/resume/resuming.h"
#include "src/seed/socket.h"

static const struct lr_seed_endpoint *endpoint_of(const struct lr_resume *r,
						  const struct lr_seed_file *f)
{
	return lr_seed_endpoint(r->seed, f->args[0]);
}

/* 0 or -1 with errno. */
static int set_option(int fd, const struct lr_seed_option_of *o, int value)
{
	const struct timeval time = {value / 1000, value % 1000 * 1000L};

	return setsockopt(fd, o->level, o->name, o->is_time ? (const void *)&time : &value,
			  o->is_time ? sizeof(time) : sizeof(value));
}

int resume_set_options(int fd, uint32_t set, const int32_t *options, const char *text,
		       struct lr_err *err)
{
	for (unsigned i = 0; i < LR_SEED_OPTIONS; i++) {
		const struct lr_seed_option_of *o = &lr_seed_options[i];
		if (set & 1U << i && set_option(fd, o, options[i]) < 0)
			return lr_fail(err, errno, "set an option (%d of level %d) of %s", o->name,
				       o->level, text);
	}
	return 0;
}

/* Before it listens there is no queue for it. */
#define WHEN_IT_LISTENS (1U << LR_SEED_FASTOPEN)

/* Accepted sockets inherit it, so one that listens has to have it, too. */
static int set_congestion(int fd, const struct lr_seed_endpoint *e, const char *text,
			  struct lr_err *err)
{
	const char *name = e->congestion;

	if (!*name ||
	    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) == 0)
		return 0;
	const int code = errno;
	int rc = lr_fail(err, code, "set the congestion control \"%s\" of %s (TCP_CONGESTION)",
			 name, text);
	if (code == ENOENT)
		return lr_err_hint(
			err, "this host's kernel does not have it, or not yet: modprobe tcp_%s",
			name);
	if (code == EPERM)
		return lr_err_hint(
			err, "it takes CAP_NET_ADMIN (process.capabilities), or this host has "
			     "to allow it (net.ipv4.tcp_allowed_congestion_control)");
	return rc;
}

/* What the code of the failure means here. */
static const char *advice(int code)
{
	switch (code) {
	case EADDRINUSE:
		return "somebody has it in this network namespace, as its parent has in its own: "
		       "give "
		       "the child one of its own (linux.namespaces)";
	case EADDRNOTAVAIL:
		return "its network namespace does not have this address: give it one before the "
		       "child "
		       "is made, or let the program listen at all addresses";
	case EACCES:
		return "the port takes CAP_NET_BIND_SERVICE (process.capabilities), or a lower "
		       "net.ipv4.ip_unprivileged_port_start (linux.sysctl)";
	default:
		return NULL;
	}
}

static int cannot_listen(int code, const char *text, struct lr_err *err)
{
	int rc = lr_fail(err, code, "listen at %s, as the seed did", text);
	const char *hint = advice(code);

	return hint ? lr_err_hint(err, "%s", hint) : rc;
}

static int listen_again(struct lr_resume *r, const struct lr_seed_endpoint *e, int fd,
			const char *text, struct lr_err *err)
{
	int rc = resume_set_options(fd, e->set & ~WHEN_IT_LISTENS, e->options, text, err);

	if (rc >= 0)
		rc = set_congestion(fd, e, text, err);
	if (rc < 0)
		return rc;
	if (lr_seed_has_path(r->seed, e))
		return resume_bind_file(r, e, fd, err);
	if (bind(fd, lr_seed_data(r->seed, &e->address), (socklen_t)e->address.length) < 0)
		return cannot_listen(errno, text, err);
	/* Whom its peers see is who makes it listen, and that is not decided yet. */
	if (e->domain == AF_UNIX)
		return 0;
	if (listen(fd, (int)e->backlog) < 0)
		return cannot_listen(errno, text, err);
	return resume_set_options(fd, e->set & WHEN_IT_LISTENS, e->options, text, err);
}

/* It reads as one whose other end is gone, and can't be written to. */
static int close_again(const struct lr_seed_endpoint *e, int fd, const char *text,
		       struct lr_err *err)
{
	int rc = resume_set_options(fd, e->set & ~WHEN_IT_LISTENS, e->options, text, err);

	/* The kernel does it, and says that there never was a connection. */
	return rc < 0 || shutdown(fd, SHUT_RDWR) == 0 || errno == ENOTCONN
		       ? rc
		       : lr_fail(err, errno, "close %s", text);
}

/* As Go does it: where the kernel has no MPTCP, or net.mptcp.enabled is 0, it is TCP, which whoever
 * connects speaks, too. */
static int make_socket(const struct lr_seed_endpoint *e)
{
	int fd = socket((int)e->domain, (int)e->type | SOCK_CLOEXEC, (int)e->protocol);

	if (fd >= 0 || e->protocol != LR_SEED_MPTCP)
		return fd;
	return errno == EPROTONOSUPPORT || errno == ENOPROTOOPT || errno == EINVAL
		       ? socket((int)e->domain, (int)e->type | SOCK_CLOEXEC, IPPROTO_TCP)
		       : fd;
}

int resume_open_endpoint(struct lr_resume *r, const struct lr_seed_file *f, struct lr_err *err)
{
	const struct lr_seed_endpoint *e = endpoint_of(r, f);
	const bool closed = e->state == LR_SEED_CLOSED;
	char text[LR_SEED_ADDRESS_TEXT] = "a connection that the seed had";

	if (!closed)
		lr_seed_address_text(lr_seed_data(r->seed, &e->address), e->address.length, text);
	int fd = make_socket(e);
	if (fd < 0)
		return lr_fail(err, errno, "make the socket of %s", text);
	int rc = closed ? close_again(e, fd, text, err) : listen_again(r, e, fd, text, err);
	if (rc >= 0)
		return fd;
	lr_close(fd);
	return rc;
}

/* Whose it is decides who else may listen there (SO_REUSEPORT). */
static int own(const struct lr_seed_endpoint *e, int fd, struct lr_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0 ||
	    ((st.st_uid != e->uid || st.st_gid != e->gid) && fchown(fd, e->uid, e->gid) < 0))
		return lr_fail(err, errno, "give a socket to user %u", e->uid);
	return e->domain == AF_UNIX ? resume_listen_as(e, fd, err) : 0;
}

int resume_own_endpoints(const struct lr_resume *r, struct lr_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc >= 0 && i < lr_seed_count(r->seed, LR_SEED_FILE); i++) {
		const struct lr_seed_file *f = lr_seed_file(r->seed, i);
		if (f->kind == LR_SEED_ENDPOINT_FILE)
			rc = own(endpoint_of(r, f), r->files[i], err);
	}
	return rc;
}
