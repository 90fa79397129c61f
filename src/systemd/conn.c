/* SPDX-License-Identifier: Apache-2.0 */
/* dbus: the connection: finding a socket, saying who we are, calls and their answers. */
#define LR_ROOM "systemd"
#include "src/systemd/dbus.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"

/* For a whole conversation. A busy systemd (daemon-reload with thousands of units) may take many
 * seconds to answer; callers' own time limits are minutes. */
#define PATIENCE_MS 60000

#define BUS_NAME    "org.freedesktop.DBus"
#define BUS_PATH    "/org/freedesktop/DBus"

static int broken(const struct lr_dbus *c, int code, struct lr_err *err)
{
	lr_fail(err, code, "talking to systemd by %s", c->address ? c->address : "its socket");
	if (code == ETIMEDOUT)
		lr_err_hint(err, "systemd does not answer: is it busy or stopped? see systemctl "
				 "list-jobs");
	return -code;
}

static int wait_for(const struct lr_dbus *c, short events)
{
	struct pollfd p = {.fd = c->fd, .events = events};

	for (;;) {
		int64_t left = c->deadline - lr_now_ms();
		int n = left > 0 ? poll(&p, 1, (int)left) : 0;

		if (n > 0)
			return 0;
		if (n == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

static int send_all(const struct lr_dbus *c, const void *bytes, size_t n)
{
	const char *p = bytes;

	while (n) {
		ssize_t done = send(c->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (done >= 0) {
			p += done;
			n -= (size_t)done;
		} else if (errno == EAGAIN) {
			int r = wait_for(c, POLLOUT);
			if (r < 0)
				return r;
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

static int recv_all(const struct lr_dbus *c, void *buf, size_t n)
{
	char *p = buf;

	while (n) {
		ssize_t got = recv(c->fd, p, n, MSG_DONTWAIT);

		if (got > 0) {
			p += got;
			n -= (size_t)got;
		} else if (got == 0) {
			return -ECONNRESET;
		} else if (errno == EAGAIN) {
			int r = wait_for(c, POLLIN);
			if (r < 0)
				return r;
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

/* ---- who we are ---------------------------------------------------------------------------- */

/* A line of the authentication, byte by byte: after "OK" nothing may be taken that is not it. */
static int recv_line(const struct lr_dbus *c, char *line, size_t size)
{
	size_t n = 0;

	for (;;) {
		int r = n + 1 < size ? recv_all(c, line + n, 1) : -EBADMSG;

		if (r < 0)
			return r;
		if (line[n++] == '\n')
			break;
	}
	if (n < 2 || line[n - 2] != '\r')
		return -EBADMSG;
	line[n - 2] = '\0';
	return 0;
}

/*
 * The kernel tells the other side who we are; we name no user, because what we think our number is
 * depends on the user namespace we are in.
 *
 * BEGIN goes with the answer to the challenge, not after OK: systemd's own socket forgets a message
 * that it happens to read together with BEGIN, until there is more to read.
 */
static int authenticate(const struct lr_dbus *c)
{
	static const char hello[] = "\0AUTH EXTERNAL\r\n", data[] = "DATA\r\nBEGIN\r\n";
	char line[256];
	bool asked;
	int r = send_all(c, hello, sizeof(hello) - 1);

	if (r == 0)
		r = recv_line(c, line, sizeof(line));
	asked = r == 0 && lr_streq(line, "DATA");
	if (asked) {
		r = send_all(c, data, sizeof(data) - 1);
		if (r == 0)
			r = recv_line(c, line, sizeof(line));
	}
	if (r < 0)
		return r;
	if (!lr_has_prefix(line, "OK "))
		return -EACCES;
	return asked ? 0 : send_all(c, "BEGIN\r\n", 7);
}

int lr_dbus_greet(struct lr_dbus *c, int fd, bool direct, struct lr_err *err)
{
	static const struct lr_dbus_method hello = {BUS_NAME, BUS_PATH, BUS_NAME, "Hello", ""};
	struct lr_dbus_msg reply;
	int r;

	c->fd = fd;
	c->direct = direct;
	c->serial = 0;
	c->deadline = lr_now_ms() + PATIENCE_MS;
	r = authenticate(c);
	if (r < 0)
		broken(c, -r, err);
	else if (!direct)
		r = lr_dbus_call(c, &hello, NULL, &reply, err);
	if (r < 0)
		lr_dbus_close(c);
	return r;
}

void lr_dbus_close(struct lr_dbus *c)
{
	c->fd = lr_close(c->fd);
}

/* ---- where systemd listens ------------------------------------------------------------------ */

static int connect_to(const struct sockaddr_un *to, socklen_t len)
{
	/* connect(2) waits while the other side's queue is full. */
	const struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	do
		r = connect(fd, (const struct sockaddr *)to, len);
	while (r < 0 && errno == EINTR);
	if (r == 0)
		return fd;
	r = errno == EAGAIN ? -ETIMEDOUT : -errno;
	lr_close(fd);
	return r;
}

/* A connection to the first of a list of addresses that has somebody listening. */
static int connect_any(const char *list)
{
	struct sockaddr_un to;
	socklen_t len;
	int result = -EINVAL, r;

	while ((r = lr_dbus_address(&list, &to, &len))) {
		if (r > 0)
			r = connect_to(&to, len);
		if (r >= 0)
			return r;
		result = r;
	}
	return result;
}

struct candidate {
	const char *address;
	char text[512]; /* what address points to, if it was put together here */
	bool direct;
};

static size_t candidates(bool user, struct candidate v[3])
{
	const char *run = getenv("XDG_RUNTIME_DIR");
	const char *bus = getenv(user ? "DBUS_SESSION_BUS_ADDRESS" : "DBUS_SYSTEM_BUS_ADDRESS");
	size_t n = 0;

	if (bus && *bus)
		v[n++] = (struct candidate){.address = bus};
	if (!user) {
		v[n++] = (struct candidate){.address = "unix:path=/run/dbus/system_bus_socket"};
		v[n++] = (struct candidate){.address = "unix:path=/run/systemd/private",
					    .direct = true};
	} else if (run && run[0] == '/' && strlen(run) < 400 && !strpbrk(run, "%,;")) {
		for (int direct = 0; direct < 2; direct++, n++) {
			v[n] = (struct candidate){.direct = direct};
			snprintf(v[n].text, sizeof(v[n].text), "unix:path=%s/%s", run,
				 direct ? "systemd/private" : "bus");
			v[n].address = v[n].text;
		}
	}
	return n;
}

static int nobody(bool user, int code, const char *address, struct lr_err *err)
{
	if (!address)
		lr_refuse(err, ENOENT,
			  "there is no way to the systemd of this user: neither "
			  "XDG_RUNTIME_DIR nor DBUS_SESSION_BUS_ADDRESS is set");
	else
		lr_fail(err, code, "cannot reach %s systemd by %s",
			user ? "this user's" : "the host's", address);
	if (user)
		lr_err_hint(err, "log in as that user, or `loginctl enable-linger USER` and set "
				 "XDG_RUNTIME_DIR=/run/user/UID; or use the cgroupfs manager");
	else
		lr_err_hint(err, "is the D-Bus daemon running? see systemctl status dbus; or use "
				 "the cgroupfs manager");
	return -err->code;
}

int lr_dbus_open(bool user, struct lr_dbus *c, struct lr_err *err)
{
	struct candidate v[3];
	size_t n = candidates(user, v);
	struct lr_err local = {0};
	int r = -ENOENT;

	err = err ? err : &local;
	c->fd = LR_NOFD;
	for (size_t i = 0; i < n; i++) {
		int fd = connect_any(v[i].address);

		lr_debug("dbus: %s: %s", v[i].address, fd < 0 ? lr_strerror(-fd) : "connected");
		if (fd >= 0) {
			c->address = v[i].direct ? "its private socket" : "the bus";
			return lr_dbus_greet(c, fd, v[i].direct, err);
		}
		if (i == 0)
			r = fd;
	}
	return nobody(user, -r, n ? v[0].address : NULL, err);
}

/* ---- calls ---------------------------------------------------------------------------------- */

int lr_dbus_next(struct lr_dbus *c, struct lr_dbus_msg *ret, struct lr_err *err)
{
	size_t len = 0;
	int r = recv_all(c, c->in, LR_DBUS_HEAD);

	if (r == 0)
		r = lr_dbus_length(c->in, &len);
	if (r == 0)
		r = recv_all(c, c->in + LR_DBUS_HEAD, len - LR_DBUS_HEAD);
	if (r == 0)
		r = lr_dbus_parse(c->in, len, ret);
	return r < 0 ? broken(c, -r, err) : 0;
}

/* The reason that an error carries as its first string. */
static int refused(struct lr_dbus *c, const struct lr_dbus_method *m, struct lr_dbus_msg *reply,
		   struct lr_err *err)
{
	const char *why = reply->signature[0] == 's' ? lr_dbus_get_string(&reply->body) : "";

	snprintf(c->error, sizeof(c->error), "%s", reply->error);
	return lr_refuse(err, EREMOTEIO, "systemd refuses %s: %.300s", m->member,
			 *why ? why : reply->error);
}

int lr_dbus_call(struct lr_dbus *c, const struct lr_dbus_method *m, const struct lr_dbus_out *body,
		 struct lr_dbus_msg *reply, struct lr_err *err)
{
	/* What is written is gone before the answer is read: one buffer does. */
	struct lr_dbus_out out = {.buf = c->in, .cap = sizeof(c->in)};
	uint32_t serial = ++c->serial;
	int r;

	c->error[0] = '\0';
	lr_dbus_encode(&out, serial, m, body);
	if (out.full)
		return broken(c, EMSGSIZE, err);
	r = send_all(c, out.buf, out.len);
	if (r < 0)
		return broken(c, -r, err);
	do
		r = lr_dbus_next(c, reply, err);
	while (r == 0 && ((reply->type != LR_DBUS_RETURN && reply->type != LR_DBUS_ERROR) ||
			  reply->reply_serial != serial));
	if (r < 0)
		return r;
	return reply->type == LR_DBUS_ERROR ? refused(c, m, reply, err) : 0;
}

int lr_dbus_match(struct lr_dbus *c, const char *rule, struct lr_err *err)
{
	static const struct lr_dbus_method match = {BUS_NAME, BUS_PATH, BUS_NAME, "AddMatch", "s"};
	uint8_t buf[512];
	struct lr_dbus_out body = {.buf = buf, .cap = sizeof(buf)};
	struct lr_dbus_msg reply;

	if (c->direct)
		return 0;
	lr_dbus_put_string(&body, rule);
	return lr_dbus_call(c, &match, &body, &reply, err);
}
