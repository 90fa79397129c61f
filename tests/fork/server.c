/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fork/server.h"

#include <errno.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/resume/resume.h"
#include "src/sys/socket.h"

#define PROCESSES 256

/* Addresses whose contents are those of the seed at `source`, and on. */
struct piece {
	uint64_t start, end, source;
};

struct client {
	int fd;
	const struct lr_seed_mm *mm;
	struct piece *v;
	size_t n;
};

struct server {
	const struct lr_seed *s;
	int pages, sock, keeper;
	struct client c[PROCESSES];
	size_t n;
};

static void add_piece(struct client *c, uint64_t start, uint64_t end, uint64_t source)
{
	if (start >= end)
		return;
	c->v = realloc(c->v, (c->n + 1) * sizeof(*c->v));
	c->v[c->n++] = (struct piece){start, end, source};
}

/* Takes a range away; *taken, if given, gets the pieces, moved by `by`. */
static void cut(struct client *c, uint64_t start, uint64_t end, struct client *taken, uint64_t by)
{
	size_t n = c->n;

	for (size_t i = 0; i < n; i++) {
		struct piece p = c->v[i];
		uint64_t from = p.start > start ? p.start : start, to = p.end < end ? p.end : end;
		if (from >= to)
			continue;
		c->v[i].end = from;
		add_piece(c, to, p.end, p.source + (to - p.start));
		if (taken)
			add_piece(taken, from + by, to + by, p.source + (from - p.start));
	}
}

static struct client *add_client(struct server *s, int fd, const struct lr_seed_mm *mm)
{
	(void)!lr_socket_send_fd(s->keeper, fd, "", 1);
	s->c[s->n] = (struct client){.fd = fd, .mm = mm};
	return &s->c[s->n++];
}

/* ---- faults ---------------------------------------------------------------------------------- */

/* Where in the file of pages; 0: nowhere, and so zeros. */
static uint64_t find_page(const struct server *s, const struct client *c, uint64_t at)
{
	for (size_t i = 0; i < c->n; i++) {
		if (at < c->v[i].start || at >= c->v[i].end)
			continue;
		uint64_t source = c->v[i].source + (at - c->v[i].start);
		uint32_t low = c->mm->runs.first, high = low + c->mm->runs.count;
		while (low < high) {
			uint32_t mid = low + (high - low) / 2;
			const struct lr_seed_run *r = lr_seed_run(s->s, mid);
			if (source < r->start)
				high = mid;
			else if (source >= r->start + r->pages * LR_SEED_PAGE)
				low = mid + 1;
			else
				return r->at + (source - r->start);
		}
	}
	return 0;
}

/* False if something changed meanwhile, and has to be known first. */
static bool fill(const struct server *s, const struct client *c, uint64_t at)
{
	static _Alignas(4096) char page[LR_SEED_PAGE];
	uint64_t from = find_page(s, c, at);
	int r;

	if (from) {
		if (pread(s->pages, page, sizeof(page), (off_t)from) != (ssize_t)sizeof(page))
			abort();
		struct uffdio_copy copy = {
			.dst = at, .src = (uint64_t)(uintptr_t)page, .len = sizeof(page)};
		r = ioctl(c->fd, UFFDIO_COPY, &copy);
	} else {
		struct uffdio_zeropage zero = {.range = {at, LR_SEED_PAGE}};
		r = ioctl(c->fd, UFFDIO_ZEROPAGE, &zero);
	}
	if (r < 0 && errno == EEXIST) {
		struct uffdio_range range = {at, LR_SEED_PAGE};
		ioctl(c->fd, UFFDIO_WAKE, &range);
	}
	return !(r < 0 && errno == EAGAIN);
}

static void handle(struct server *s, size_t i, const struct uffd_msg *m)
{
	struct client *c = &s->c[i], moved = {0};

	switch (m->event) {
	case UFFD_EVENT_FORK: {
		struct client *child = add_client(s, (int)m->arg.fork.ufd, c->mm);
		for (size_t k = 0; k < c->n; k++)
			add_piece(child, c->v[k].start, c->v[k].end, c->v[k].source);
		break;
	}
	case UFFD_EVENT_REMAP:
		cut(c, m->arg.remap.from, m->arg.remap.from + m->arg.remap.len, &moved,
		    m->arg.remap.to - m->arg.remap.from);
		cut(c, m->arg.remap.to, m->arg.remap.to + m->arg.remap.len, NULL, 0);
		for (size_t k = 0; k < moved.n; k++)
			add_piece(c, moved.v[k].start, moved.v[k].end, moved.v[k].source);
		free(moved.v);
		break;
	case UFFD_EVENT_REMOVE:
	case UFFD_EVENT_UNMAP:
		cut(c, m->arg.remove.start, m->arg.remove.end, NULL, 0);
		break;
	default:
		break;
	}
}

/* One client: all events that wait, then the faults among them. */
static bool serve(struct server *s, size_t i)
{
	uint64_t faults[64];
	size_t n = 0;
	struct uffd_msg m;

	for (;;) {
		ssize_t got = n < 64 ? read(s->c[i].fd, &m, sizeof(m)) : -1;
		if (got == (ssize_t)sizeof(m)) {
			if (m.event == UFFD_EVENT_PAGEFAULT)
				faults[n++] =
					m.arg.pagefault.address & ~(uint64_t)(LR_SEED_PAGE - 1);
			else
				handle(s, i, &m);
			continue;
		}
		if (got == 0 || (n < 64 && errno != EAGAIN && errno != EINTR))
			return false;
		size_t left = 0;
		for (size_t k = 0; k < n; k++)
			if (!fill(s, &s->c[i], faults[k]))
				faults[left++] = faults[k];
		n = left;
		if (!n)
			return true;
	}
}

/* ---- all ------------------------------------------------------------------------------------- */

static bool take_client(struct server *s)
{
	struct lr_resume_lazy what;
	struct iovec iov = {&what, sizeof(what)};
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control.room)};
	int fd;

	if (recvmsg(s->sock, &m, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(what) || !m.msg_controllen)
		return false;
	memcpy(&fd, CMSG_DATA(&control.h), sizeof(fd));
	const struct lr_seed_process *p = lr_seed_process(s->s, what.index);
	struct client *c = add_client(s, fd, lr_seed_mm(s->s, p->mm));
	add_piece(c, 0, LR_SEED_TOP, 0);
	return true;
}

int serve_pages(const struct lr_seed *seed, int pages, int sock, int keeper)
{
	static struct server s;
	struct pollfd p[PROCESSES + 1];

	s = (struct server){.s = seed, .pages = pages, .sock = sock, .keeper = keeper};
	for (;;) {
		size_t n = s.n;
		p[0] = (struct pollfd){.fd = s.sock, .events = POLLIN};
		for (size_t i = 0; i < n; i++)
			p[i + 1] = (struct pollfd){.fd = s.c[i].fd, .events = POLLIN};
		if (poll(p, n + 1, -1) < 0 && errno != EINTR)
			return -errno;
		if (p[0].revents && !take_client(&s))
			s.sock = -1;
		for (size_t i = 0; i < n; i++)
			if (p[i + 1].revents && !(p[i + 1].revents & POLLIN && serve(&s, i)))
				s.c[i].fd = -1;
	}
}
