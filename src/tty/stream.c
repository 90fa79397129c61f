/* SPDX-License-Identifier: Apache-2.0 */
/* tty: bounded buffers and shared descriptors; see stream.h. */
#define LR_ROOM "tty"

#include "src/tty/stream.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/sys/syscalls.h"
#include "src/tty/tty.h"

enum how {
	PLAIN,  /* ours, non-blocking; or a file, which does not block in the sense of poll */
	SOCKET, /* MSG_DONTWAIT */
	NOWAIT, /* RWF_NOWAIT: pipes since Linux 6.4 */
	SMALL,  /* what poll promises room for and no more */
};

/* A pipe that polls writable has room for PIPE_BUF (pipe(7)); a terminal for 256 (WAKEUP_CHARS). */
#define SMALL_PIPE PIPE_BUF
#define SMALL_TTY  256

bool lr_tty_no_nowait;

/*
 * A terminal opened again has flags of its own. Fails for a terminal of another user, and is not
 * tried for a pseudo-terminal's master, where opening makes a new one.
 */
static int open_again(int fd)
{
	char path[32];
	struct stat a, b;

	if (ioctl(fd, TIOCGPTN, &(unsigned){0}) == 0)
		return LR_NOFD;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	int again =
		lr_open(path, (fcntl(fd, F_GETFL) & O_ACCMODE) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (again >= 0 && (fstat(fd, &a) < 0 || fstat(again, &b) < 0 || a.st_rdev != b.st_rdev))
		again = lr_close(again);
	return again < 0 ? LR_NOFD : again;
}

static void set_how(struct lr_tty_end *e, enum how how)
{
	e->how = how;
	e->ask_first = how == SMALL;
}

void lr_tty_end_open(struct lr_tty_end *e, int fd)
{
	struct stat st;

	*e = (struct lr_tty_end){.fd = fd, .own = LR_NOFD, .how = PLAIN};
	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	if (S_ISSOCK(st.st_mode)) {
		set_how(e, SOCKET);
	} else if (S_ISFIFO(st.st_mode)) {
		set_how(e, lr_tty_no_nowait ? SMALL : NOWAIT);
	} else if (S_ISCHR(st.st_mode) && isatty(fd)) {
		e->tty = true;
		if (!lr_tty_no_nowait)
			e->own = open_again(fd);
		set_how(e, e->own >= 0 ? PLAIN : SMALL);
	}
}

void lr_tty_end_own(struct lr_tty_end *e, int fd)
{
	*e = (struct lr_tty_end){.fd = fd, .own = LR_NOFD, .how = PLAIN};
	if (fd >= 0)
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

void lr_tty_end_close(struct lr_tty_end *e)
{
	e->own = lr_close(e->own);
	e->fd = LR_NOFD;
}

/* What lr_read_nowait and lr_write_nowait say where the flag, or the call, is not known. */
static bool unsupported(void)
{
	return errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL || errno == EPERM;
}

static ssize_t do_read(struct lr_tty_end *e, void *buf, size_t n)
{
	if (e->how == SOCKET)
		return recv(e->fd, buf, n, MSG_DONTWAIT);
	if (e->how == NOWAIT) {
		ssize_t r = lr_read_nowait(e->fd, buf, n);
		if (r >= 0 || !unsupported())
			return r;
		set_how(e, SMALL);
	}
	/* Reading never waits for more than there is, so SMALL is no matter here. */
	return read(e->own >= 0 ? e->own : e->fd, buf, n);
}

static ssize_t do_write(struct lr_tty_end *e, const void *buf, size_t n)
{
	size_t small = e->tty ? SMALL_TTY : SMALL_PIPE;

	if (e->how == SOCKET)
		return send(e->fd, buf, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (e->how == NOWAIT) {
		ssize_t r = lr_write_nowait(e->fd, buf, n);
		if (r >= 0 || !unsupported())
			return r;
		set_how(e, SMALL);
		errno = EAGAIN; /* from now on only after poll's promise */
		return -1;
	}
	if (e->how == SMALL && n > small)
		n = small;
	return write(e->own >= 0 ? e->own : e->fd, buf, n);
}

ssize_t lr_tty_fill(struct lr_tty_ring *r, struct lr_tty_end *from)
{
	size_t tail = (r->head + r->len) % LR_TTY_RING;
	size_t room = tail < r->head ? r->head - tail : LR_TTY_RING - tail;
	ssize_t n;

	do
		n = do_read(from, r->data + tail, room);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		r->len += (size_t)n;
	return n < 0 ? -errno : n;
}

ssize_t lr_tty_drain(struct lr_tty_ring *r, struct lr_tty_end *to)
{
	size_t n = LR_TTY_RING - r->head < r->len ? LR_TTY_RING - r->head : r->len;
	ssize_t done;

	do
		done = do_write(to, r->data + r->head, n);
	while (done < 0 && errno == EINTR);
	if (done < 0)
		return -errno;
	r->len -= (size_t)done;
	r->head = r->len ? (r->head + (size_t)done) % LR_TTY_RING : 0;
	return done;
}

bool lr_tty_put(struct lr_tty_ring *r, const void *bytes, size_t n)
{
	if (n > LR_TTY_RING - r->len)
		return false;
	for (size_t i = 0; i < n; i++, r->len++)
		r->data[(r->head + r->len) % LR_TTY_RING] = ((const unsigned char *)bytes)[i];
	return true;
}
