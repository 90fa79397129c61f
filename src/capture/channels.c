/* SPDX-License-Identifier: Apache-2.0 */
/* capture: pipes and pairs of sockets: which ends are here, and what waits to be read. Nothing is
 * taken out of them. */
#define LR_ROOM "capture"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/files.h"
#include "src/capture/state.h"
#include "src/seed/socket.h"

#ifndef SO_LOCK_FILTER
#define SO_LOCK_FILTER 44
#endif
#ifndef SO_PEEK_OFF
#define SO_PEEK_OFF 42
#endif

/* A pipe's: 0 is read from, 1 is written to. */
static unsigned end_of_pipe(const struct cap_file *f)
{
	return (f->seed.flags & O_ACCMODE) == O_WRONLY;
}

/* That file has both of its ends: it was opened again (/proc/self/fd). */
static bool is_both(const struct cap_file *f)
{
	return f->seed.kind == LR_SEED_PIPE && (f->seed.flags & O_ACCMODE) == O_RDWR;
}

static struct cap_channel *find(struct cap *c, const struct cap_file *f, unsigned *end)
{
	size_t i;

	if (!cap_index_find(&c->channel_of, f->device, f->inode, &i))
		return NULL;
	struct cap_channel *ch = &c->channels[i];
	*end = f->seed.kind == LR_SEED_PIPE ? end_of_pipe(f) : ch->inode[0] != f->inode;
	return ch;
}

static struct cap_channel *add(struct cap *c, const struct cap_file *f)
{
	struct cap_channel *v = lr_grow(c->a, c->channels, c->n_channels, sizeof(*v));
	const uint64_t other = f->seed.kind == LR_SEED_SOCKET ? f->peer : f->inode;

	if (!v || cap_index_put(c->a, &c->channel_of, f->device, f->inode, c->n_channels) < 0 ||
	    (other && cap_index_put(c->a, &c->channel_of, f->device, other, c->n_channels) < 0))
		return NULL;
	c->channels = v;
	v += c->n_channels++;
	*v = (struct cap_channel){.inode = {f->inode, other}, .fd = {LR_NOFD, LR_NOFD}};
	return v;
}

/* Who has left meanwhile is told by the root's name. */
static const struct cap_process *who_has(const struct cap *c, pid_t pid)
{
	const struct cap_process *p = cap_process_of(c, pid);

	return p ? p : c->p;
}

/* Returns 0, or -1 with errno; so does the next one. */
static int take_file_owner(int fd, struct lr_seed_channel *to)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -1;
	to->uid = st.st_uid;
	to->gid = st.st_gid;
	to->mode = st.st_mode & 0777;
	return 0;
}

/* Of whom both ends of a pair tell. One that never was connected tells of nobody, and has an owner. */
static int take_pair_maker(int fd, struct lr_seed_channel *to)
{
	struct ucred maker = {.uid = UINT32_MAX};
	socklen_t n = sizeof(maker);

	if (take_file_owner(fd, to) < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &maker, &n) < 0)
		return -1;
	to->mode = 0;
	if (maker.uid == UINT32_MAX)
		return 0;
	to->uid = maker.uid;
	to->gid = maker.gid;
	return 0;
}

static const char *take_owner(struct cap *c, int fd, unsigned kind, struct lr_seed_channel *to)
{
	if ((kind == LR_SEED_PIPE ? take_file_owner(fd, to) : take_pair_maker(fd, to)) < 0)
		return cap_socket_failed(c, errno);
	return cap_id_inside(c, &c->uids, &to->uid) && cap_id_inside(c, &c->gids, &to->gid)
		       ? NULL
		       : "of somebody whom its user namespace does not know";
}

/* Of an end of a pair. */
static const char *other_option(struct cap *c, int fd)
{
	static const struct cap_other others[] = {
		{SOL_SOCKET, SO_PASSRIGHTS, 1,
		 "one of a pair of sockets, that takes no descriptors (SO_PASSRIGHTS)"},
		{SOL_SOCKET, SO_LOCK_FILTER, 0, "one of a pair of sockets, with SO_LOCK_FILTER"},
		/* Whoever looks into it would move that, too. */
		{SOL_SOCKET, SO_PEEK_OFF, -1, "one of a pair of sockets, with SO_PEEK_OFF"},
	};

	struct pollfd p = {.fd = fd};

	if (poll(&p, 1, 0) < 0)
		return cap_socket_failed(c, errno);
	/* Its other end was closed with something unread in it. Whoever reads, or asks (SO_ERROR), is told of that
	 * once: it must not be us. */
	if (p.revents & POLLERR)
		return "one of a pair of sockets, with an error that nobody was told of yet,";
	return cap_socket_has_filter(fd) ? "one of a pair of sockets, with a filter"
					 : cap_socket_other(c, fd, others, LR_ARRAY_SIZE(others));
}

/* Whose it is, and what was set of that end. */
static void look_at_end(struct cap *c, const struct cap_file *f, int fd, unsigned end,
			struct lr_seed_channel *to)
{
	const char *why = take_owner(c, fd, f->seed.kind, to);

	if (!why && f->seed.kind == LR_SEED_SOCKET)
		why = other_option(c, fd);
	if (!why && f->seed.kind == LR_SEED_SOCKET)
		why = cap_socket_options(c, fd, LR_SEED_OF_PAIR, &to->set[end], to->options[end]);
	if (why)
		cap_refuse(c, who_has(c, f->pid), "descriptor %d: %s (%s)", f->fd, why, f->path);
}

/* One for datagrams may be connected to somebody else by now, or to nobody (connect(2)), and its other end still be to
 * it. What is told of both is of one instant only when nobody runs. */
static void check_is_mutual(struct cap *c, const struct cap_file *f, const struct cap_channel *ch,
			    unsigned end)
{
	if (c->holds && f->seed.kind == LR_SEED_SOCKET && f->peer != ch->inode[!end])
		cap_refuse(c, who_has(c, f->pid),
			   "descriptor %d: one of a pair of sockets, that is connected elsewhere "
			   "now (%s)",
			   f->fd, f->path);
}

static int find_end(struct cap *c, struct cap_file *f, struct lr_err *err)
{
	unsigned end = f->seed.kind == LR_SEED_PIPE ? end_of_pipe(f) : 0;
	struct cap_channel *ch = find(c, f, &end);

	if (!ch)
		ch = add(c, f);
	if (!ch)
		return lr_fail(err, ENOMEM, "list the pipes");
	f->seed.channel = (uint32_t)(ch - c->channels);
	if (f->seed.kind == LR_SEED_SOCKET)
		f->seed.args[0] = end;
	/* It can neither be read nor be written to. */
	if (f->seed.flags & O_PATH)
		return 0;
	ch->seed.ends |= LR_SEED_END(end) | (is_both(f) ? LR_SEED_END(!end) : 0) |
			 (f->shut & 1 ? LR_SEED_NO_READ(end) : 0) |
			 (f->shut & 2 ? LR_SEED_NO_WRITE(end) : 0);
	check_is_mutual(c, f, ch, end);
	if (f->seed.kind == LR_SEED_PIPE && (end || is_both(f)) && f->seed.flags & O_DIRECT)
		ch->of_packets = true;
	if (ch->fd[end] >= 0)
		return 0;
	ch->fd[end] = cap_borrow(f->pid, f->fd);
	if (ch->fd[end] < 0)
		return lr_fail(err, -ch->fd[end], "get descriptor %d of process %d", f->fd, f->pid);
	look_at_end(c, f, ch->fd[end], end, &ch->seed);
	return 0;
}

/* Somebody outside has the other end; or a negative errno. */
static int leads_outside(const struct cap_channel *ch, unsigned kind)
{
	const unsigned both = LR_SEED_END(0) | LR_SEED_END(1), open = ch->seed.ends & both;
	struct pollfd p = {.fd = ch->fd[open == LR_SEED_END(0) ? 0 : 1], .events = 0};

	if (open == both)
		return ch->attached;
	if (poll(&p, 1, 0) < 0)
		return -errno;
	/* Hung up: nobody has. */
	return kind == LR_SEED_PIPE ? !(p.revents & (POLLHUP | POLLERR)) : !(p.revents & POLLHUP);
}

/* Whoever opened such a pipe again may have both of its ends, and somebody outside has them, too. */
static void note_attached(struct cap *c)
{
	size_t at;

	for (size_t i = 0; i < c->n_files; i++)
		if (c->files[i]->seed.kind == LR_SEED_STDIO &&
		    cap_index_find(&c->channel_of, c->files[i]->device, c->files[i]->inode, &at))
			c->channels[at].attached = true;
}

static const char *why_not_whole(const struct cap_file *f)
{
	return f->seed.kind == LR_SEED_SOCKET && f->seed.args[1] == SOCK_DGRAM && !f->peer
		       ? "a socket for datagrams that is connected to nobody"
		       : "its other end is outside";
}

int cap_channels_find(struct cap *c, struct lr_err *err)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < c->n_files; i++) {
		unsigned kind = c->files[i]->seed.kind;
		if (kind == LR_SEED_PIPE || kind == LR_SEED_SOCKET)
			r = find_end(c, c->files[i], err);
	}
	note_attached(c);
	for (size_t i = 0; r >= 0 && i < c->n_files; i++) {
		const struct cap_file *f = c->files[i];
		if (f->seed.channel == LR_SEED_NONE)
			continue;
		const int outside = leads_outside(&c->channels[f->seed.channel], f->seed.kind);
		if (outside < 0)
			r = lr_fail(err, -outside, "look whose the other end of %s is", f->path);
		if (outside > 0)
			cap_refuse(c, who_has(c, f->pid), "descriptor %d: %s (%s)", f->fd,
				   why_not_whole(f), f->path);
	}
	return r;
}

/* ---- contents -------------------------------------------------------------------------------- */

/* What is read at once ends with a packet (O_DIRECT). That the last one is one is told by its writer alone. */
static int read_copy(struct cap *c, struct cap_channel *ch, int from, int waiting,
		     struct lr_err *err)
{
	ssize_t n = read(from, ch->data[0], (size_t)waiting);

	if (n < 0)
		return lr_fail(err, errno, "look into a pipe of %d bytes", waiting);
	if (n != waiting || ch->of_packets)
		cap_refuse(c, c->p, "packets that wait in a pipe (pipe:[%llu])",
			   (unsigned long long)ch->inode[0]);
	ch->size[0] = (size_t)waiting;
	return 0;
}

static int take_pipe(struct cap *c, struct cap_channel *ch, struct lr_err *err)
{
	int pair[2], waiting = 0, any = ch->fd[0] >= 0 ? ch->fd[0] : ch->fd[1];

	const int capacity = fcntl(any, F_GETPIPE_SZ);
	if (capacity < 0)
		return lr_fail(err, errno, "ask how much a pipe holds");
	ch->seed.capacity = (uint32_t)capacity;
	if (ch->fd[0] < 0)
		return 0;
	if (ioctl(ch->fd[0], FIONREAD, &waiting) < 0)
		return lr_fail(err, errno, "look into a pipe");
	if (waiting <= 0)
		return 0;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return lr_fail(err, errno, "make a pipe");
	LR_CLEANUP_FD int from = pair[0], to = pair[1];
	ch->data[0] = lr_alloc(c->a, (size_t)waiting);
	if (!ch->data[0])
		return lr_fail(err, ENOMEM, "read a pipe");
	fcntl(to, F_SETPIPE_SZ, capacity);
	ssize_t n = tee(ch->fd[0], to, (size_t)waiting, SPLICE_F_NONBLOCK);
	if (n != waiting)
		return lr_fail(err, n < 0 ? errno : EIO, "look into a pipe of %d bytes", waiting);
	return read_copy(c, ch, from, waiting, err);
}

/* Of one that is no stream. There are messages without a byte, which FIONREAD does not count. */
static int has_messages(const struct cap_channel *ch, unsigned k, uint64_t type)
{
	struct msghdr m = {0};
	ssize_t n = recvmsg(ch->fd[k], &m, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	/* Of one for sequenced packets that reads no more, 0 is its end; whoever reads it can't tell that from an
	 * empty message. */
	return n > 0 || m.msg_flags & MSG_TRUNC ||
	       (n == 0 && !(type == SOCK_SEQPACKET && ch->seed.ends & LR_SEED_NO_READ(k)));
}

/* Who reads there is told of who sent it. */
#define SENDERS (1U << LR_SEED_PASSCRED | 1U << LR_SEED_PASSPIDFD | 1U << LR_SEED_PASSSEC)

/* What end k has yet to read: one message with its length before it. */
static int take_socket(struct cap *c, struct cap_channel *ch, unsigned k, uint64_t type,
		       struct lr_err *err)
{
	int waiting = 0;
	uint32_t length;

	if (ch->fd[k] < 0)
		return 0;
	if (type != SOCK_STREAM) {
		const int any = has_messages(ch, k, type);
		if (any < 0)
			return lr_fail(err, -any, "look into a pair of sockets");
		if (any)
			cap_refuse(c, c->p,
				   "messages that wait in a pair of sockets (socket:[%llu])",
				   (unsigned long long)ch->inode[k]);
		return 0;
	}
	if (ioctl(ch->fd[k], FIONREAD, &waiting) < 0)
		return lr_fail(err, errno, "look into a pair of sockets");
	if (waiting <= 0)
		return 0;
	uint8_t *data = lr_alloc(c->a, sizeof(length) + (size_t)waiting);
	if (!data)
		return lr_fail(err, ENOMEM, "read a socket");
	struct iovec iov = {data + sizeof(length), (size_t)waiting};
	/* Room for who sent it, which is told first where it is asked for; and none for descriptors, or they would be
	 * ours, too. */
	uint8_t sender[CMSG_LEN(sizeof(struct ucred))];
	const bool told = ch->seed.set[k] & 1U << LR_SEED_PASSCRED;
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = sender,
			   .msg_controllen = told ? sizeof(sender) : 0};
	ssize_t n = recvmsg(ch->fd[k], &m, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return lr_fail(err, errno, "look into a pair of sockets");
	if (n != waiting || m.msg_flags & MSG_CTRUNC) {
		/* A pidfd or a label without room looks as descriptors do, and what others have sent comes apart. */
		cap_refuse(c, c->p, "%s in a pair of sockets (socket:[%llu])",
			   ch->seed.set[k] & SENDERS ? "what waits with its senders"
						     : "descriptors that wait",
			   (unsigned long long)ch->inode[k]);
		return 0;
	}
	length = (uint32_t)n;
	memcpy(data, &length, sizeof(length));
	ch->data[k] = data;
	ch->size[k] = sizeof(length) + (size_t)n;
	return 0;
}

int cap_channels_take(struct cap *c, struct lr_err *err)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < c->n_files; i++) {
		const struct cap_file *f = c->files[i];
		struct cap_channel *ch =
			f->seed.channel == LR_SEED_NONE ? NULL : &c->channels[f->seed.channel];
		if (!ch)
			continue;
		if (f->seed.kind == LR_SEED_SOCKET)
			r = take_socket(c, ch, (unsigned)f->seed.args[0], f->seed.args[1], err);
		else if (!ch->data[0])
			r = take_pipe(c, ch, err);
	}
	for (size_t i = 0; i < c->n_channels; i++)
		for (unsigned k = 0; k < 2; k++)
			c->channels[i].fd[k] = lr_close(c->channels[i].fd[k]);
	return r;
}
