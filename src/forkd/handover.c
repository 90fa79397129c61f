/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: see handover.h. The rows, the socket, and what the keeper does with them. */
#define LR_ROOM "forkd"
#include "src/forkd/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/forkd/held.h"

#define MAGIC   "LEANKEEP"
#define TURN_MS 20000 /* who begins may wait for a keeper */
#define GIVE_MS 10000 /* the next daemon takes it in that time, or is gone */

/* Of daemon and keeper. */
static struct shared {
	atomic_ullong keep; /* ms */
	atomic_int listener;
	struct sockaddr_un at, before; /* before: until it is entered */
	dev_t dev;
	ino_t ino;
	struct handover_row rows[HELD_MAX];
} * shared;

/* ---- rows --------------------------------------------------------------------------------- */

int handover_begin(const char *control, uint64_t keep, struct lr_err *err)
{
	void *at = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);

	if (at == MAP_FAILED)
		return lr_fail(err, errno, "share memory with the keeper");
	shared = at;
	shared->keep = keep;
	shared->listener = LR_NOFD;
	shared->at.sun_family = shared->before.sun_family = AF_UNIX;
	const int room = sizeof(shared->at.sun_path);
	if (snprintf(shared->at.sun_path, (size_t)room, "%s.keeper", control) >= room ||
	    snprintf(shared->before.sun_path, (size_t)room, "%s.keeper~", control) >= room)
		return lr_fail(err, ENAMETOOLONG, "listen at %s.keeper~", control);
	return 0;
}

struct handover_row *handover_row(size_t i)
{
	return shared ? &shared->rows[i] : NULL;
}

void handover_forget(void)
{
	shared->keep = 0;
}

/* ---- the socket --------------------------------------------------------------------------- */

static int lock_file(const char *path, struct lr_err *err)
{
	struct stat st;
	LR_CLEANUP_FD int fd =
		open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

	if (fd < 0 || fstat(fd, &st) < 0)
		return lr_fail(err, errno, "open %s", path);
	if (!S_ISREG(st.st_mode) || (st.st_uid && st.st_uid != geteuid()))
		return lr_refuse(err, EEXIST, "something else is at %s", path);
	return lr_take_fd(&fd);
}

/* Who had the lock has removed the file: that one is nobody's any more. */
static bool is_there(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_nlink;
}

int handover_turn(const char *control, struct lr_err *err)
{
	const int64_t until = lr_now_ms() + TURN_MS;
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s.lock", control) >= (int)sizeof(path))
		return lr_fail(err, ENAMETOOLONG, "lock %s.lock", control);
	for (;;) {
		LR_CLEANUP_FD int fd = lock_file(path, err);
		if (fd < 0)
			return fd;
		int r = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
		if (r == 0 && is_there(fd))
			return lr_take_fd(&fd);
		if (r < 0 && r != -EWOULDBLOCK)
			return lr_fail(err, -r, "lock %s", path);
		if (lr_now_ms() >= until)
			return lr_refuse(err, EWOULDBLOCK, "another lean-forkd begins at %s",
					 control);
		lr_sleep_us(r < 0 ? 20000 : 0);
	}
}

void handover_turn_over(const char *control, int turn)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s.lock", control);
	unlink(path);
	lr_close(turn);
}

/* A name there is a socket's of a daemon before us, or in the way. */
static int clear_name(const char *path, bool remove, struct lr_err *err)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : lr_fail(err, errno, "look at %s", path);
	if (!S_ISSOCK(st.st_mode) || (st.st_uid && st.st_uid != geteuid()))
		return lr_refuse(err, EEXIST, "something else is at %s", path);
	return remove && unlink(path) < 0 ? lr_fail(err, errno, "remove %s", path) : 0;
}

int handover_listen(struct lr_err *err)
{
	const struct sockaddr_un *sa = &shared->before;
	struct stat st;

	int r = clear_name(shared->at.sun_path, false, err);
	if (r == 0)
		r = clear_name(sa->sun_path, true, err);
	if (r < 0)
		return r;
	LR_CLEANUP_FD int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t old = umask(0177);
	r = s < 0 || bind(s, (const struct sockaddr *)sa, sizeof(*sa)) < 0 || listen(s, 8) < 0 ||
			    lstat(sa->sun_path, &st) < 0
		    ? lr_fail(err, errno, "listen at %s", sa->sun_path)
		    : 0;
	umask(old);
	if (r < 0)
		return r;
	shared->dev = st.st_dev;
	shared->ino = st.st_ino;
	shared->listener = lr_take_fd(&s);
	return 0;
}

int handover_enter(struct lr_err *err)
{
	return rename(shared->before.sun_path, shared->at.sun_path) < 0
		       ? lr_fail(err, errno, "listen at %s", shared->at.sun_path)
		       : 0;
}

void handover_leave(void)
{
	if (shared && shared->listener >= 0)
		unlink(shared->before.sun_path);
}

int handover_fd(void)
{
	return shared->listener;
}

/* 1: yes, 0: another daemon's keeper has it by now, or somebody has removed it; or a negative errno. */
static int has_name(void)
{
	struct stat st;

	if (shared->listener < 0)
		return 0;
	if (lstat(shared->at.sun_path, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	return st.st_dev == shared->dev && st.st_ino == shared->ino;
}

/* ---- the keeper --------------------------------------------------------------------------- */

static bool is_live(const struct handover_row *row)
{
	return row->used && !row->ended && row->whole && row->files[0] >= 0 && row->files[1] >= 0;
}

static void end(struct handover_row *row, enum lr_wire_code why)
{
	if (!row->ended)
		row->ended = why;
	for (size_t k = 0; k < HANDOVER_FILES; k++)
		row->files[k] = lr_close(row->files[k]);
}

/* Without the daemon, nobody copies what was still missing of a seed, and what the kernel module had is
 * gone: both are damaged. Such a row counts as left until its lease ends, so that the next daemon can say
 * so: a child that needs the pages would wait for ever for a daemon that does not know the seed. */
static size_t end_some(void)
{
	const int64_t now = lr_now_ms();
	size_t left = 0;

	for (size_t i = 0; i < HELD_MAX; i++) {
		struct handover_row *row = &shared->rows[i];
		if (!row->used)
			continue;
		const bool over = row->until <= now;
		if (!row->ended && over)
			end(row, LR_WIRE_EXPIRED);
		else if (!row->ended && !is_live(row))
			end(row, LR_WIRE_DAMAGED);
		left += !over && (!row->ended || row->ended == LR_WIRE_DAMAGED);
	}
	return left;
}

bool handover_needs(int fd)
{
	if (fd == shared->listener)
		return true;
	for (size_t i = 0; i < HELD_MAX; i++) {
		const struct handover_row *row = &shared->rows[i];
		if (is_live(row) && (row->files[0] == fd || row->files[1] == fd))
			return true;
	}
	return false;
}

bool handover_waits(int64_t since)
{
	return lr_now_ms() - since < (int64_t)shared->keep && has_name() != 0 && end_some() > 0;
}

void handover_drop(void)
{
	if (has_name() > 0)
		unlink(shared->at.sun_path);
	shared->listener = lr_close(shared->listener);
	for (size_t i = 0; i < HELD_MAX; i++) {
		if (shared->rows[i].used)
			end(&shared->rows[i], LR_WIRE_ENDING);
		shared->rows[i].used = false;
	}
	memset((void *)shared->rows, 0, sizeof(shared->rows));
}

static bool send_one(int sock, void *bytes, size_t n, const struct handover_row *files)
{
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(HANDOVER_FILES * sizeof(int))];
	} control = {0};
	struct iovec iov = {bytes, n};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	if (files) {
		int fds[HANDOVER_FILES] = {files->files[0], files->files[1]};
		m.msg_control = &control;
		m.msg_controllen = sizeof(control.room);
		control.h = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(fds)),
					     .cmsg_level = SOL_SOCKET,
					     .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.h), fds, sizeof(fds));
	}
	return sendmsg(sock, &m, MSG_NOSIGNAL) == (ssize_t)n;
}

static bool send_row(int sock, const struct handover_row *row)
{
	struct handover_seed s = {
		.ended = row->ended, .lease = row->lease, .sent = row->sent, .until = row->until};

	memcpy(s.id, row->id, sizeof(s.id));
	memcpy(s.secret, row->secret, sizeof(s.secret));
	return send_one(sock, &s, sizeof(s), row->ended ? NULL : row);
}

/* Whether somebody has it all now. */
static bool give(int sock)
{
	struct handover_head head = {.version = HANDOVER_VERSION,
				     .size = sizeof(struct handover_seed)};
	char done[sizeof(HANDOVER_DONE)];

	memcpy(head.magic, MAGIC, sizeof(head.magic));
	for (size_t i = 0; i < HELD_MAX; i++)
		head.rows += shared->rows[i].used;
	bool r = send_one(sock, &head, sizeof(head), NULL);
	for (size_t i = 0; r && i < HELD_MAX; i++)
		r = !shared->rows[i].used || send_row(sock, &shared->rows[i]);
	return r && recv(sock, done, sizeof(done), 0) == (ssize_t)sizeof(done) - 1 &&
	       memcmp(done, HANDOVER_DONE, sizeof(done) - 1) == 0;
}

void handover_give(int ms)
{
	const struct timeval most = {.tv_sec = GIVE_MS / 1000};
	struct pollfd p = {.fd = shared->listener, .events = POLLIN};
	struct ucred who = {.uid = (uid_t)-1};
	socklen_t size = sizeof(who);

	if (poll(&p, 1, ms) != 1)
		return;
	LR_CLEANUP_FD int sock = accept4(shared->listener, NULL, NULL, SOCK_CLOEXEC);
	if (sock < 0 || getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0 ||
	    (who.uid && who.uid != geteuid()))
		return;
	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
	setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
	end_some();
	if (give(sock))
		handover_drop();
}

/* ---- what is said ------------------------------------------------------------------------- */

int handover_get_head(const void *bytes, size_t n, struct handover_head *ret)
{
	if (n < sizeof(*ret) || memcmp(bytes, MAGIC, sizeof(ret->magic)) != 0)
		return -EPROTO;
	memcpy(ret, bytes, sizeof(*ret));
	if (ret->version != HANDOVER_VERSION || ret->size != sizeof(struct handover_seed))
		return -ENOTSUP;
	return n != sizeof(*ret) || ret->rows > HELD_MAX || ret->zero ? -EPROTO : 0;
}

int handover_get_seed(const void *bytes, size_t n, size_t files, int64_t now,
		      struct handover_seed *ret)
{
	if (n != sizeof(*ret))
		return -EPROTO;
	memcpy(ret, bytes, n);
	if (ret->zero || ret->ended >= LR_WIRE_CODES || files != (ret->ended ? 0 : HANDOVER_FILES))
		return -EPROTO;
	if (ret->lease > INT64_MAX / 2 || ret->until > now + (int64_t)ret->lease)
		return -EPROTO;
	if (!ret->ended && ret->until <= now)
		ret->ended = LR_WIRE_EXPIRED;
	return 0;
}
