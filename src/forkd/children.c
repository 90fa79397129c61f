/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: see children.h. Events first, then faults, then what nobody has touched yet. */
#define LR_ROOM "forkd"
#include <errno.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/forkd/child.h"
#include "src/forkd/forkd.h"
#include "src/forkd/given.h"
#include "src/forkd/keeper.h"
#include "src/forkd/local.h"
#include "src/forkd/main.h"
#include "src/sys/syscalls.h"

#define TICK_MS 500 /* how often we look who has ended */

/* ---- processes ---------------------------------------------------------------------------- */

static void child_drop(struct session *s, size_t i)
{
	struct child *c = &s->v[i];

	close(c->uffd);
	pieces_free(&c->pieces);
	free(c->faults);
	if (--c->family->users == 0) {
		keeper_drop(c->family->slot);
		close(c->family->pidfd);
		free(c->family);
	}
	forkd_counts.children--;
	s->v[i] = s->v[--s->n];
}

/* Takes uffd. */
static struct child *child_add(struct session *s, int uffd, const struct lr_seed_mm *mm,
			       struct family *family)
{
	if (s->n == CHILDREN_MAX)
		return NULL;
	struct child *c = &s->v[s->n++];
	*c = (struct child){.uffd = uffd, .mm = mm, .family = family};
	family->users++;
	forkd_counts.children++;
	return c;
}

/* To find whom to end takes descriptors, of which there may be none left by then. */
static void kill_all(const struct session *s)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct rlimit usual, all;

	pthread_mutex_lock(&lock);
	const bool known = getrlimit(RLIMIT_NOFILE, &usual) == 0;
	if (known) {
		all = usual;
		all.rlim_cur = all.rlim_max;
		setrlimit(RLIMIT_NOFILE, &all);
	}
	for (size_t i = 0; i < s->n; i++) {
		struct family *f = s->v[i].family;
		keeper_end(f->pid, f->pidfd, s->cgroup);
	}
	if (known)
		setrlimit(RLIMIT_NOFILE, &usual);
	pthread_mutex_unlock(&lock);
}

void children_end(struct session *s, const char *why)
{
	if (!s->ending) {
		forkd_log("%zu processes end: %s", s->n, why);
		forkd_counts.children_ended += s->n;
	}
	s->ending = true;
	kill_all(s);
}

/* pid: as we see it; who sent it. */
static int take_process(struct session *s, uint32_t index, int uffd, pid_t pid, int pidfd)
{
	const struct lr_seed *seed = &s->remote->seed;

	if (index >= lr_seed_count(seed, LR_SEED_PROCESS) ||
	    lr_seed_process(seed, index)->mm == LR_SEED_NONE)
		return -EINVAL;
	if (!given_tells_all(uffd))
		return -EBADF;
	/* Else another container would end with it. */
	if (s->cgroup >= 0 && !given_is_member(s->cgroup, pid))
		return -EXDEV;
	struct family *f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	*f = (struct family){.pid = pid, .pidfd = pidfd};
	f->slot = keeper_add(pid, pidfd, s->cgroup);
	struct pieces all = {0};
	const struct lr_seed_mm *mm = lr_seed_mm(seed, lr_seed_process(seed, index)->mm);
	struct child *c = NULL;
	if (f->slot >= 0 && child_pieces(seed, mm, &all) == 0)
		c = child_add(s, uffd, mm, f);
	if (!c) {
		pieces_free(&all);
		keeper_drop(f->slot);
		free(f);
		return -ENOSPC;
	}
	c->pieces = all;
	s->taken++;
	if (index == 0) /* the container's init */
		s->figures->pid = (unsigned)pid;
	return 0;
}

/* ---- the socket --------------------------------------------------------------------------- */

static void take_uffd(struct session *s, const struct lr_forkctl_in *in)
{
	uint32_t index;
	int pidfd =
		in->pidfd >= 0 ? fcntl(in->pidfd, F_DUPFD_CLOEXEC, 0) : lr_pidfd_open(in->pid, 0);
	int uffd = fcntl(in->fds[0], F_DUPFD_CLOEXEC, 0);

	memcpy(&index, in->bytes, sizeof(index));
	int r = pidfd < 0 || uffd < 0 ? -EBADF : take_process(s, index, uffd, in->pid, pidfd);
	if (r < 0) {
		forkd_log("a process can't be kept: %s", lr_strerror(-r));
		lr_close(pidfd);
		lr_close(uffd);
		s->failed = true;
	}
}

/* Where one has just died, there soon is another one. */
static bool keeper_comes(void)
{
	for (int i = 0; i < 100 && !keeper_lives(); i++)
		lr_sleep_us(10000);
	return keeper_lives();
}

static void be_ready(struct session *s, const struct lr_wire_msg *m)
{
	struct lr_wire_msg ok = {.type = LR_WIRE_OK, .tag = m->tag};

	if (s->failed || s->ending || m->count != s->taken)
		local_fail(s->sock, m->tag, "not all processes are kept");
	else if (!keeper_comes())
		local_fail(s->sock, m->tag, "there is no keeper, who ends them if the daemon dies");
	else {
		/* All of it is registered now: what is not is nobody's to fill. */
		s->started = true;
		local_send(s->sock, &ok, LR_NOFD);
	}
}

static void tell_counts(const struct session *s, uint64_t tag)
{
	struct lr_wire_msg m = {.type = LR_WIRE_CHILDREN_ARE, .tag = tag, .count = 1, .n = 1};

	figures_tell(s->figures, &m.children[0]);
	local_send(s->sock, &m, LR_NOFD);
}

static void hear(struct session *s)
{
	struct lr_forkctl_in in;
	struct lr_wire_msg m;
	ssize_t n = lr_forkctl_receive(s->sock, &in);

	if (n <= 0) {
		s->sock = lr_close(s->sock);
		return;
	}
	const bool question = lr_wire_decode_all(in.bytes, (size_t)n, &m) == 0;
	if (n == 4 && in.n == 1 && in.pid > 0)
		take_uffd(s, &in);
	else if (question && m.type == LR_WIRE_READY)
		be_ready(s, &m);
	else if (question && m.type == LR_WIRE_COUNTS)
		tell_counts(s, m.tag);
	else
		local_fail(s->sock, 0, "not while processes are served");
	lr_forkctl_close(&in);
}

/* ---- events ------------------------------------------------------------------------------- */

/* What the program does to its memory must not cost us ours without end. */
static bool is_cut_too_small(const struct session *s)
{
	size_t all = 0;

	for (size_t i = 0; i < s->n; i++)
		all += s->v[i].pieces.n;
	return all > PIECES_ALL;
}

/* Of a fork that nobody can be told of, until it is over. Without room it stays open: that leaks a
 * descriptor, but makes no zeros. */
static void keep_orphan(struct session *s, int uffd)
{
	size_t i = 0;

	while (i < s->n_orphans && !keeper_is_over(s->orphans[i]))
		i++;
	if (i < s->n_orphans)
		close(s->orphans[i]);
	else if (i < ORPHANS)
		s->n_orphans++;
	else
		forkd_log("too many forks of a container that ends: a descriptor stays open");
	if (i < ORPHANS)
		s->orphans[i] = uffd;
}

static int take_fork(struct session *s, size_t i, int uffd)
{
	struct child *c = child_add(s, uffd, s->v[i].mm, s->v[i].family);

	if (!c) { /* s holds it no longer than its processes live */
		children_end(s, "too many forks before the memory has come");
		keep_orphan(s, uffd);
		return -ENOSPC;
	}
	return pieces_copy(&c->pieces, &s->v[i].pieces);
}

static int handle(struct session *s, size_t i, const struct uffd_msg *m)
{
	struct child *c = &s->v[i];

	forkd_counts.events++;
	if (m->event == UFFD_EVENT_FORK)
		return take_fork(s, i, (int)m->arg.fork.ufd);
	if (is_cut_too_small(s))
		return -E2BIG;
	switch (m->event) {
	case UFFD_EVENT_REMAP:
		c->cursor = 0;
		return pieces_move(&c->pieces, m->arg.remap.from, m->arg.remap.to,
				   m->arg.remap.len);
	case UFFD_EVENT_REMOVE:
	case UFFD_EVENT_UNMAP:
		return pieces_cut(&c->pieces, m->arg.remove.start, m->arg.remove.end);
	default:
		return 0;
	}
}

/* As many as there are threads: the kernel tells of events behind all faults, and no fault can be
 * answered before them. */
static int note_fault(struct session *s, struct child *c, uint64_t at)
{
	if (c->faults_n == c->faults_room) {
		size_t room = c->faults_room ? 2 * c->faults_room : 16;
		struct fault *v = realloc(c->faults, room * sizeof(*v));
		if (!v)
			return -ENOMEM;
		c->faults = v;
		c->faults_room = room;
	}
	c->faults[c->faults_n++] = (struct fault){
		.at = at & ~(uint64_t)(LR_SEED_PAGE - 1),
		.heard = s->flags & LR_WIRE_TIMED ? lr_now_ns() : 0,
	};
	forkd_counts.faults++;
	return 0;
}

/* All that waits to be read: events change what faults mean, so they are first. */
static int listen_to(struct session *s, size_t i)
{
	struct uffd_msg m;
	int r = 0;

	while (r == 0) {
		ssize_t n = read(s->v[i].uffd, &m, sizeof(m));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n != (ssize_t)sizeof(m)) /* no descriptor is free for a fork's */
			r = n < 0 ? -errno : -EIO;
		else if (m.event == UFFD_EVENT_PAGEFAULT)
			r = note_fault(s, &s->v[i], m.arg.pagefault.address);
		else
			r = handle(s, i, &m);
	}
	children_end(s, "their memory can't be followed any more");
	return r;
}

static void is_answered(struct session *s, const struct fault *f)
{
	if (s->ending)
		return;
	s->figures->v[LR_WIRE_FAULTS]++;
	if (f->heard)
		figures_time(s->figures, (uint64_t)(lr_now_ns() - f->heard));
}

/* Those that have to wait for an event stay. */
static void answer_faults(struct session *s, size_t i)
{
	struct child *c = &s->v[i];
	size_t left = 0;

	for (size_t k = 0; k < c->faults_n; k++) {
		int r = s->ending ? 0 : child_fill(s, c, c->faults[k].at);
		if (r == -EAGAIN)
			c->faults[left++] = c->faults[k];
		else if (r < 0)
			break;
		else
			is_answered(s, &c->faults[k]);
	}
	c->faults_n = s->ending ? 0 : left;
}

/* ---- the thread --------------------------------------------------------------------------- */

static void look_after(struct session *s)
{
	if (s->ending) /* also whom a process had forked in that instant */
		kill_all(s);
	for (size_t i = s->n; i-- > 0;)
		if (keeper_is_over(s->v[i].uffd))
			child_drop(s, i);
	while (s->n_orphans && keeper_is_over(s->orphans[s->n_orphans - 1]))
		close(s->orphans[--s->n_orphans]);
}

/* What a child before has touched comes first: of processes that are there. Whether one piece came, or
 * has to wait. */
static bool prefetch_touched(struct session *s)
{
	while (s->touch < s->touches) {
		struct remote_touch t;
		size_t i = 0;
		remote_touch(s->remote, s->touch, &t);
		while (i < s->n && s->v[i].mm != t.mm)
			i++;
		if (i < s->n) {
			struct child *c = &s->v[i];
			if (!c->waiting)
				c->waiting = child_prefetch_touch(s, c, &t) == -EAGAIN;
			s->touch += !c->waiting;
			return !c->waiting;
		}
		s->touch++;
	}
	return false;
}

/* One piece for one of them. Whether there may be more to do. */
static bool prefetch(struct session *s)
{
	if (!(s->flags & LR_WIRE_PREFETCH) || s->ending || !s->started ||
	    s->figures->v[LR_WIRE_PREFETCHED] >= s->most)
		return false;
	if (prefetch_touched(s))
		return true;
	for (size_t i = 0; i < s->n; i++) {
		struct child *c = &s->v[i];
		if (c->waiting)
			continue;
		int r = child_prefetch(s, c);
		if (r == CHILD_COMPLETE) {
			forkd_counts.children_done++;
			child_drop(s, i);
		} else if (r == -EAGAIN) {
			c->waiting = true;
			continue;
		}
		return true;
	}
	return false;
}

static size_t set_polls(const struct session *s, struct pollfd *p)
{
	p[0] = (struct pollfd){.fd = s->sock, .events = POLLIN};
	p[1] = (struct pollfd){.fd = ending_fd(), .events = POLLIN};
	/* What is still to be read of those that end does not matter. */
	for (size_t i = 0; i < s->n && !s->ending; i++)
		p[i + 2] = (struct pollfd){.fd = s->v[i].uffd, .events = POLLIN};
	return s->ending ? 0 : s->n;
}

static void one_round(struct session *s, struct pollfd *p, int ms)
{
	const size_t n = set_polls(s, p);

	if (poll(p, n + 2, ms) < 0 && errno != EINTR)
		children_end(s, "poll fails");
	if (p[0].revents)
		hear(s);
	if (p[1].revents && !s->ending && s->n)
		children_end(s, "lean-forkd ends");
	for (size_t i = 0; i < n; i++) {
		s->v[i].waiting = false;
		if (!(p[i + 2].revents & POLLIN) && !s->v[i].faults_n)
			continue;
		if (listen_to(s, i) == 0)
			answer_faults(s, i);
	}
}

void children_serve(int sock, struct remote *r, int cgroup, const struct lr_wire_msg *m,
		    uint64_t most, const struct figures *brought)
{
	struct figures *f = figures_begin(r->id, brought);
	struct session *s = calloc(1, sizeof(*s));
	struct pollfd *p = calloc(CHILDREN_MAX + 2, sizeof(*p));
	uint8_t *spare = malloc(LR_WIRE_CHUNK);
	int64_t looked = 0;
	bool more = false;

	if (f && s && p && spare) {
		*s = (struct session){.sock = sock,
				      .remote = r,
				      .cgroup = cgroup,
				      .figures = f,
				      .around = m->count,
				      .flags = m->flags,
				      .most = most,
				      .touches = remote_touches(r),
				      .spare = spare};
		while (s->sock >= 0 || s->n || s->n_orphans) {
			one_round(s, p, more ? 0 : s->again ? 5 : TICK_MS);
			s->again = false;
			for (size_t i = 0; i < s->n; i++)
				s->again = s->again || s->v[i].faults_n || s->v[i].waiting;
			if (lr_now_ms() - looked >= TICK_MS) {
				look_after(s);
				looked = lr_now_ms();
			}
			more = prefetch(s);
		}
	} else {
		lr_close(sock);
	}
	figures_end(f, s && s->ending ? LR_WIRE_KILLED : LR_WIRE_OVER);
	free(spare);
	free(p);
	free(s);
	lr_close(cgroup);
	remote_put(r);
}
