/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: the local socket: root's, or whose the daemon is. */
#define LR_ROOM "forkd"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/forkd/children.h"
#include "src/forkd/exported.h"
#include "src/forkd/feed.h"
#include "src/forkd/forkd.h"
#include "src/forkd/given.h"
#include "src/forkd/held.h"
#include "src/forkd/local.h"
#include "src/forkd/main.h"
#include "src/sys/syscalls.h"

#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD 76
#endif
#define CONNECTIONS 256

static atomic_int connections;

struct talk {
	int sock;
	struct remote *fetched; /* what BRING and SERVE are about; or NULL */
	struct held *filling;   /* what FILLED is about; or NULL */
	uint64_t most;          /* pages that SERVE brings before anybody touches them */
	struct figures brought; /* of what was fetched */
};

/* ---- questions ---------------------------------------------------------------------------- */

static void say(int sock, uint64_t tag, int r, const struct lr_err *err)
{
	struct lr_wire_msg ok = {.type = LR_WIRE_OK, .tag = tag};
	char line[1024];

	if (r == 0) {
		local_send(sock, &ok, LR_NOFD);
		return;
	}
	const char *text = lr_err_format(err, line, sizeof(line));
	/* Who asks says itself that it is of forkd. */
	local_refuse(sock, tag, r == -ENOENT ? LR_WIRE_NO_SEED : LR_WIRE_FAILED,
		     text + (lr_has_prefix(text, LR_ROOM ": ") ? strlen(LR_ROOM ": ") : 0));
}

static int ticket_of(const struct held *h, char text[LR_TICKET_TEXT], struct lr_err *err)
{
	struct lr_ticket t = {.way = forkd_config.plain ? LR_WIRE_PLAIN : LR_WIRE_TLS};

	memcpy(t.id, h->id, sizeof(t.id));
	memcpy(t.secret, h->secret, sizeof(t.secret));
	int r = listen_place(forkd_config.listen, t.host, &t.port);
	if (r == 0)
		r = lr_ticket_encode(&t, text);
	return r < 0 ? lr_refuse(err, EINVAL, "no address for tickets") : 0;
}

static int add_files(const struct lr_wire_msg *m, const struct lr_forkctl_in *in, uint64_t lease,
		     struct held **ret, struct lr_err *err)
{
	const bool filling = m->flags & LR_WIRE_FILLING;

	if (!given_is_sealed(in->fds[0]) ||
	    !(filling ? given_keeps_size(in->fds[1]) : given_is_sealed(in->fds[1])))
		return lr_refuse(err, EPERM,
				 "whoever made these files can still change them: they "
				 "have to be in memory, and sealed");
	if (m->flags & LR_WIRE_EXPORTED)
		return held_add_exported(in->fds[0], in->fds[1], in->fds[2], lease, ret, err);
	return filling ? held_add_filling(in->fds[0], in->fds[1], lease, ret, err)
		       : held_add(in->fds[0], in->fds[1], lease, ret, err);
}

static int add(const struct lr_wire_msg *m, const struct lr_forkctl_in *in, struct held **ret,
	       struct lr_err *err)
{
	const uint64_t lease = m->lease ? m->lease : forkd_config.lease;
	const size_t files = m->flags & LR_WIRE_EXPORTED ? 3 : 2;
	char path[LR_WIRE_PATH + 1];

	if (lease > INT64_MAX / 2 || m->flags > LR_WIRE_EXPORTED)
		return lr_refuse(err, EINVAL, "the lease is too long, or the flags are unknown");
	if (m->path.n ? in->n != 0 || m->flags : in->n != files)
		return lr_refuse(err, EINVAL, "a seed is a directory, or %zu files", files);
	if (!forkd_config.listen)
		return lr_refuse(err, EINVAL,
				 "no address for tickets: it was started without --listen");
	if (!m->path.n)
		return add_files(m, in, lease, ret, err);
	memcpy(path, m->path.at, m->path.n);
	path[m->path.n] = 0;
	return held_add_directory(path, lease, ret, err);
}

/* One that is filled is this connection's until the last page is there. */
static void be_filled(struct talk *talk, struct held *h)
{
	if (talk->filling) {
		held_abandon(talk->filling);
		held_put(talk->filling);
	}
	talk->filling = h;
}

static void do_add(struct talk *talk, const struct lr_wire_msg *m, const struct lr_forkctl_in *in)
{
	struct lr_wire_msg answer = {.type = LR_WIRE_TICKET, .tag = m->tag};
	char text[LR_TICKET_TEXT];
	struct held *h = NULL;
	struct lr_err err = {0};

	int r = add(m, in, &h, &err);
	if (r == 0) {
		r = ticket_of(h, text, &err);
		if (r < 0)
			held_revoke(h->id);
		if (m->flags & LR_WIRE_FILLING)
			be_filled(talk, h);
		else
			held_put(h);
	}
	if (r < 0) {
		say(talk->sock, m->tag, r, &err);
		return;
	}
	answer.text = lr_wire_text(text, strlen(text));
	local_send(talk->sock, &answer, LR_NOFD);
}

static void do_filled(const struct talk *talk, const struct lr_wire_msg *m)
{
	struct lr_wire_msg wanted = {.type = LR_WIRE_WANTED, .tag = m->tag};
	struct lr_err err = {0};
	int r = talk->filling ? held_fill(talk->filling, m->at, m->length, &wanted) : -ENOENT;

	if (r == 0 && wanted.n) {
		local_send(talk->sock, &wanted, LR_NOFD);
		return;
	}
	if (r < 0)
		lr_refuse(&err, -r, "%s",
			  r == -ENOENT   ? "this connection fills no seed"
			  : r == -ESTALE ? "the seed has ended, or is whole"
					 : "the seed has no such pages");
	say(talk->sock, m->tag, r, &err);
}

static void do_list(int sock, const struct lr_wire_msg *m)
{
	const bool one = m->type == LR_WIRE_INSPECT;
	struct lr_wire_msg answer = {.type = LR_WIRE_SEEDS_ARE, .tag = m->tag};

	answer.count = held_list(one ? m->id : NULL, one ? 0 : m->count, &answer);
	if (one && !answer.count)
		local_refuse(sock, m->tag, LR_WIRE_NO_SEED, "no such seed");
	else
		local_send(sock, &answer, LR_NOFD);
}

static void do_change(int sock, const struct lr_wire_msg *m)
{
	struct lr_err err = {0};
	int r;

	if (m->type == LR_WIRE_REMOVE)
		r = held_revoke(m->id);
	else if (m->lease > INT64_MAX / 2)
		r = -EINVAL;
	else
		r = held_extend(m->id, m->lease);
	if (r < 0)
		lr_refuse(&err, -r, r == -ENOENT ? "no such seed" : "such a lease cannot be");
	say(sock, m->tag, r, &err);
}

static void do_fetch(struct talk *talk, const struct lr_wire_msg *m)
{
	const int sock = talk->sock;
	struct lr_wire_msg answer = {.type = LR_WIRE_DESCRIPTOR, .tag = m->tag};
	struct lr_err err = {0};
	struct lr_ticket t;
	struct remote *r = NULL;
	int fd = LR_NOFD;

	int e = lr_ticket_decode((const char *)m->text.at, m->text.n, &t);
	if (e < 0)
		lr_refuse(&err, EINVAL, "this is no ticket");
	else if (t.way == LR_WIRE_PLAIN && !forkd_config.plain)
		e = lr_refuse(&err, EPERM, "this daemon uses no tickets without TLS (--plain)");
	else
		e = remote_fetch(&t, &r, &err);
	if (e == 0)
		e = fd = given_make(r->descriptor, r->length, &err);
	if (e >= 0) {
		answer.length = r->length;
		memcpy(answer.id, r->id, sizeof(answer.id));
		local_send(sock, &answer, fd);
		remote_put(talk->fetched);
		talk->fetched = r;
		talk->most = UINT64_MAX;
		talk->brought = (struct figures){0};
		memcpy(talk->brought.id, r->id, sizeof(r->id));
	} else {
		say(sock, m->tag, e, &err);
		remote_put(r);
	}
	lr_close(fd);
}

/* Who does not show the ticket here gets nothing of the seed; and two seeds may have one id. */
static struct remote *fetched(const struct talk *talk, const struct lr_wire_msg *m,
			      struct lr_err *err)
{
	struct remote *r = talk->fetched;

	if (r && memcmp(r->id, m->id, sizeof(r->id)) == 0)
		return r;
	lr_refuse(err, ENOENT, "no such seed was fetched by this connection");
	return NULL;
}

static int put_pages(int file, const struct lr_wire_msg *m, const uint8_t *from, struct lr_err *err)
{
	for (size_t i = 0; i < m->n; i++) {
		const size_t size = (size_t)m->ranges[i].pages * LR_WIRE_PAGE;
		for (size_t done = 0; done < size;) {
			ssize_t n = pwrite(file, from + done, size - done,
					   (off_t)(m->ranges[i].at + done));
			if (n < 0 && errno == EINTR)
				continue;
			if (n <= 0)
				return lr_fail(err, n < 0 ? errno : EIO, "write the pages");
			done += (size_t)n;
		}
		from += size;
	}
	return 0;
}

static void do_bring(struct talk *talk, const struct lr_wire_msg *m, const struct lr_forkctl_in *in)
{
	struct lr_err err = {0};
	struct remote *r = fetched(talk, m, &err);
	uint8_t *pages = malloc(LR_WIRE_CHUNK);
	int e = r ? 0 : -ENOENT;

	if (r && in->n != 1)
		e = lr_refuse(&err, EINVAL, "there is no file to write the pages to");
	else if (r && !pages)
		e = lr_fail(&err, ENOMEM, "bring the pages");
	if (e == 0)
		e = remote_bring(r, m->ranges, m->n, pages, &talk->brought, &err);
	if (e == 0)
		e = put_pages(in->fds[0], m, pages, &err);
	say(talk->sock, m->tag, e, &err);
	free(pages);
}

static void do_source(const struct talk *talk, const struct lr_wire_msg *m)
{
	struct lr_wire_msg ok = {.type = LR_WIRE_OK, .tag = m->tag};
	struct lr_err err = {0};
	struct remote *r = fetched(talk, m, &err);
	LR_CLEANUP_FD int fd = LR_NOFD;
	int e = r ? feed_source(r, &fd, &err) : -ENOENT;

	if (e < 0)
		say(talk->sock, m->tag, e, &err);
	else
		local_send(talk->sock, &ok, fd);
}

static void do_exports(int sock, const struct lr_wire_msg *m)
{
	struct lr_err err = {0};
	int r = exported_may(&err);

	say(sock, m->tag, r, &err);
}

static void do_count(const struct talk *talk, const struct lr_wire_msg *m)
{
	struct lr_wire_msg answer = {
		.type = LR_WIRE_CHILDREN_ARE, .tag = m->tag, .count = 1, .n = 1};

	if (m->type == LR_WIRE_COUNTS)
		figures_tell(&talk->brought, &answer.children[0]);
	else
		answer.count = figures_list(m->count, &answer);
	local_send(talk->sock, &answer, LR_NOFD);
}

static void do_limit(struct talk *talk, const struct lr_wire_msg *m)
{
	struct lr_err err = {0};
	const int r = fetched(talk, m, &err) ? 0 : -ENOENT;

	if (r == 0)
		talk->most = m->length / LR_WIRE_PAGE;
	say(talk->sock, m->tag, r, &err);
}

/* True: the socket is the children's from here on. */
static bool do_serve(struct talk *talk, const struct lr_wire_msg *m, struct lr_forkctl_in *in)
{
	struct lr_err err = {0};
	struct remote *r = fetched(talk, m, &err);
	int e = r ? 0 : -ENOENT, cgroup = LR_NOFD;

	if (r && (!m->count || m->count > LR_WIRE_CHUNK / LR_WIRE_PAGE))
		e = lr_refuse(&err, EINVAL, "%u pages around a fault; %u are the most", m->count,
			      LR_WIRE_CHUNK / LR_WIRE_PAGE);
	else if (r && (in->n > 1 || (m->flags & ~(LR_WIRE_PREFETCH | LR_WIRE_TIMED))))
		e = lr_refuse(&err, EINVAL, "an unknown flag, or more than one cgroup");
	else if (r && in->n && !given_is_cgroup(in->fds[0]))
		e = lr_refuse(&err, EINVAL, "this is no cgroup of version 2");
	if (e == 0 && in->n)
		cgroup = lr_take_fd(&in->fds[--in->n]);
	say(talk->sock, m->tag, e, &err);
	if (e < 0)
		return false;
	talk->fetched = NULL;
	connections--; /* however many children there are, there has to be room to revoke */
	children_serve(talk->sock, r, cgroup, m, talk->most, &talk->brought);
	return true;
}

/* ---- a connection ------------------------------------------------------------------------- */

static bool answer(struct talk *talk, ssize_t n, struct lr_forkctl_in *in)
{
	const int sock = talk->sock;
	struct lr_wire_msg m;

	if (lr_wire_decode_all(in->bytes, (size_t)n, &m) < 0) {
		local_refuse(sock, 0, LR_WIRE_MALFORMED, "malformed message");
		return false;
	}
	switch (m.type) {
	case LR_WIRE_ADD:
		do_add(talk, &m, in);
		break;
	case LR_WIRE_FILLED:
		do_filled(talk, &m);
		break;
	case LR_WIRE_LIST:
	case LR_WIRE_INSPECT:
		do_list(sock, &m);
		break;
	case LR_WIRE_EXTEND:
	case LR_WIRE_REMOVE:
		do_change(sock, &m);
		break;
	case LR_WIRE_FETCH:
		do_fetch(talk, &m);
		break;
	case LR_WIRE_BRING:
		do_bring(talk, &m, in);
		break;
	case LR_WIRE_SOURCE:
		do_source(talk, &m);
		break;
	case LR_WIRE_LIMIT:
		do_limit(talk, &m);
		break;
	case LR_WIRE_EXPORTS:
		do_exports(sock, &m);
		break;
	case LR_WIRE_COUNTS:
	case LR_WIRE_CHILDREN:
		do_count(talk, &m);
		break;
	case LR_WIRE_SERVE:
		return do_serve(talk, &m, in);
	default:
		local_refuse(sock, m.tag, LR_WIRE_MALFORMED, "not a question");
	}
	return false;
}

static void *run(void *arg)
{
	struct talk talk = {.sock = (int)(intptr_t)arg};
	bool gone = false;

	while (!gone) {
		struct lr_forkctl_in in;
		ssize_t n = lr_forkctl_receive(talk.sock, &in);
		if (n < 0)
			forkd_log("a question can't be read: %s", lr_strerror((int)-n));
		if (n <= 0)
			break;
		gone = answer(&talk, n, &in);
		lr_forkctl_close(&in);
	}
	remote_put(talk.fetched);
	be_filled(&talk, NULL);
	if (!gone) {
		close(talk.sock);
		connections--;
	}
	return NULL;
}

void control_accept(int listener)
{
	int sock = forkd_accept(listener, NULL, NULL, 0);
	struct ucred who = {.uid = (uid_t)-1};
	socklen_t size = sizeof(who);

	if (sock < 0)
		return;
	getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &who, &size);
	const char *why = who.uid && who.uid != geteuid() ? "only root and its own user may ask it"
			  : connections >= CONNECTIONS    ? "it has too many connections"
							  : NULL;
	if (why) {
		local_refuse(sock, 0, LR_WIRE_FAILED, why);
		close(sock);
		return;
	}
	connections++;
	int r = forkd_thread(run, (void *)(intptr_t)sock);
	if (r < 0) {
		forkd_log("no thread for a connection: %s", lr_strerror(-r));
		connections--;
		close(sock);
	}
}

/* ---- sockets of this host ----------------------------------------------------------------- */

/* What a killed daemon left may go; a living one's not. */
static int clear_place(const struct sockaddr_un *sa, int type, struct lr_err *err)
{
	LR_CLEANUP_FD int s = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	if (s >= 0 && connect(s, (const struct sockaddr *)sa, sizeof(*sa)) == 0)
		return lr_refuse(err, EADDRINUSE, "a lean-forkd answers at %s", sa->sun_path);
	/* That nobody listens is said by one error only. */
	if (s >= 0 && errno == ECONNREFUSED && unlink(sa->sun_path) == 0)
		return 0;
	return s >= 0 && errno == ENOENT ? 0 : lr_fail(err, errno, "clear %s", sa->sun_path);
}

int unix_listen(const char *path, int type, struct lr_err *err)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(sa.sun_path))
		return lr_fail(err, ENAMETOOLONG, "listen at %s", path);
	memcpy(sa.sun_path, path, strlen(path));
	int r = clear_place(&sa, type, err);
	if (r < 0)
		return r;
	LR_CLEANUP_FD int s = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	mode_t old = umask(0177);
	r = s < 0 || bind(s, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(s, 64) < 0
		    ? lr_fail(err, errno, "listen at %s", path)
		    : 0;
	umask(old);
	return r < 0 ? r : lr_take_fd(&s);
}

int control_listen(const char *path, struct lr_err *err)
{
	const int one = 1;
	int s = unix_listen(path, SOCK_SEQPACKET, err);

	if (s < 0)
		return s;
	/* What is accepted has these, too, before its first message comes. Without the first, nobody
	 * would know whose memory is to be filled. */
	if (setsockopt(s, SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)) < 0) {
		int r = lr_fail(err, errno, "ask at %s who sends", path);
		close(s);
		return r;
	}
	setsockopt(s, SOL_SOCKET, SO_PASSPIDFD, &one, sizeof(one)); /* Linux 6.5 */
	return s;
}
