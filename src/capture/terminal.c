/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture: the container's terminal: the pseudo-terminal that the runtime made, and bound on
 * /dev/console. Its master is a manager's, and that of a child will be another's, so what a seed has
 * of it is how it is set, whose it is, and who has it open. What was typed and is not read yet stays
 * the container's own, as what waits in its standard input would: the kernel does not show it to who
 * does not take it, and who typed it sits here. So does what ^S holds: programs wait in write(2), and
 * a child's begin that call again, at a terminal that nobody has stopped.
 */
#define LR_ROOM "capture"
#include "src/sys/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/capture/files.h"
#include "src/capture/state.h"
#include "src/sys/path.h"

/* Whether what is at /dev/console is a pseudo-terminal. 1, 0, or a negative errno. */
static int is_terminal(int fd, struct stat *st)
{
	if (fstat(fd, st) < 0)
		return -errno;
	if (!S_ISCHR(st->st_mode) || !lr_terminal_is_slave(st->st_rdev))
		return 0;
	const long magic = lr_fs_magic(fd);
	return magic < 0 ? (int)magic : magic == DEVPTS_SUPER_MAGIC;
}

/* As a path, which opens nothing: it is an image's until it is known. LR_NOFD: it is none any more. */
static int open_console(struct cap *c, int *ret, struct stat *st, struct lr_err *err)
{
	char path[32];

	*ret = LR_NOFD;
	snprintf(path, sizeof(path), "/proc/%d/root", c->opts->pid);
	LR_CLEANUP_FD int root = lr_open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return lr_fail(err, errno, "open %s", path);
	LR_CLEANUP_FD int fd = lr_open_in_nolinks(root, "/dev/console", O_PATH, 0);
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		return 0;
	int r = fd < 0 ? fd : is_terminal(fd, st);
	if (r < 0)
		return lr_fail(err, -r, "look at the container's /dev/console");
	if (r)
		*ret = lr_take_fd(&fd);
	return 0;
}

static int read_modes(struct cap_terminal *own, int fd, uint8_t *line)
{
	struct lr_seed_terminal *t = &own->seed;
	struct lr_termios2 m;
	struct winsize size;
	int exclusive = 0;

	if (ioctl(fd, LR_TCGETS2, &m) < 0 || ioctl(fd, TIOCGWINSZ, &size) < 0 ||
	    ioctl(fd, TIOCGEXCL, &exclusive) < 0 || ioctl(fd, TIOCINQ, &own->unread) < 0)
		return -errno;
	t->flags = exclusive ? LR_SEED_EXCLUSIVE : 0;
	t->iflag = m.iflag;
	t->oflag = m.oflag;
	t->cflag = m.cflag;
	t->lflag = m.lflag;
	t->ispeed = m.ispeed;
	t->ospeed = m.ospeed;
	t->rows = size.ws_row;
	t->columns = size.ws_col;
	t->width = size.ws_xpixel;
	t->height = size.ws_ypixel;
	memcpy(t->cc, m.cc, sizeof(m.cc));
	*line = m.line;
	return 0;
}

int cap_terminal_look(struct cap *c, struct lr_err *err)
{
	struct cap_terminal *t = &c->terminal;
	struct stat st;
	uint8_t line = 0;
	LR_CLEANUP_FD int console = LR_NOFD;

	int r = c->opts->terminal ? open_console(c, &console, &st, err) : 0;
	if (r < 0 || !c->opts->terminal)
		return r;
	if (console < 0) {
		cap_refuse(c, c->p, "/dev/console is not the container's terminal any more");
		return 0;
	}
	/* When nobody else has it open, who reads the master hears that it is closed once more. */
	LR_CLEANUP_FD int fd = cap_open_again(console, O_RDWR | O_NOCTTY | O_NONBLOCK);
	r = fd < 0 ? -errno : read_modes(t, fd, &line);
	if (r < 0) {
		cap_refuse(c, c->p, "the container's terminal is gone: %s", lr_strerror(-r));
		return 0;
	}
	if (line)
		cap_refuse(c, c->p, "line discipline %u of the container's terminal", line);
	t->seed.flags |= c->opts->relayed ? LR_SEED_RELAYED : 0;
	t->device = st.st_dev;
	t->inode = st.st_ino;
	t->number = st.st_rdev;
	t->is = true;
	return 0;
}

bool cap_terminal_is(const struct cap *c, const struct cap_process *p, int fd,
		     const struct stat *st)
{
	const struct cap_terminal *t = &c->terminal;
	unsigned told = 0;

	if (!t->is)
		return false;
	if (st->st_rdev != makedev(5, 0))
		return st->st_dev == t->device && st->st_ino == t->inode;
	/* By /dev/tty, which is what it meant to whoever opened it. */
	LR_CLEANUP_FD int own = cap_borrow(p->pid, fd);
	return own >= 0 && ioctl(own, LR_TIOCGDEV, &told) == 0 &&
	       lr_terminal_device(told) == t->number;
}

/* ---- whose it is ------------------------------------------------------------------------------ */

/* As we see them. */
struct ids {
	pid_t group, session, foreground;
	dev_t terminal; /* 0: none */
};

/* 1: it has them. 0: it has ended. Or a negative errno: who is left out might be whose the terminal is. */
static int read_ids(struct cap *c, const struct cap_process *p, struct ids *ret, struct lr_err *err)
{
	char path[32], *text;
	size_t size;
	int tty = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", p->pid);
	if (p->seed.flags & LR_SEED_ZOMBIE)
		return 0;
	int r = cap_read_all(c->a, path, &text, &size, err);
	if (r < 0)
		return r == -ENOENT || r == -ESRCH ? 0 : r;
	const char *at = strrchr(text, ')');
	if (!at || sscanf(at + 1, " %*c %*d %d %d %d %d", &ret->group, &ret->session, &tty,
			  &ret->foreground) != 4)
		return lr_refuse(err, EIO, "%s has another form", path);
	ret->terminal = tty ? lr_terminal_device((unsigned)tty) : 0;
	return 1;
}

/* Of a process that is in that group. */
static int inner_group(struct cap *c, pid_t group, uint32_t *ret, struct lr_err *err)
{
	struct ids x;

	/* If all of it has ended, nobody has been put there since. */
	*ret = 0;
	for (size_t i = 0; i < c->n; i++) {
		int r = read_ids(c, &c->p[i], &x, err);
		if (r < 0)
			return r;
		if (r && x.group == group) {
			*ret = c->p[i].seed.pgid;
			return 0;
		}
	}
	return 0;
}

static int note_owner(struct cap *c, const struct cap_process *p, const struct ids *x,
		      pid_t *session, struct lr_err *err)
{
	struct cap_terminal *t = &c->terminal;

	for (size_t i = 0; i < c->n; i++)
		if (c->p[i].pid == x->session)
			t->seed.session = c->p[i].seed.pid;
	if (!t->seed.session) {
		cap_refuse(c, p, "a controlling terminal by a session of the outside");
		return 0;
	}
	*session = x->session;
	return inner_group(c, x->foreground, &t->seed.foreground, err);
}

/* Of one process; *session: whose the terminal is, as far as that is known. */
static int find_owner(struct cap *c, const struct cap_process *p, pid_t *session,
		      struct lr_err *err)
{
	const struct cap_terminal *t = &c->terminal;
	struct ids x;
	int r = read_ids(c, p, &x, err);

	if (r <= 0 || !x.terminal)
		return r;
	if (t->is && !*session && x.terminal == t->number)
		r = note_owner(c, p, &x, session, err);
	/* Another devpts may have one of the same number, but no other session this one. */
	if (!t->is || x.terminal != t->number || (*session && x.session != *session))
		cap_refuse(c, p, "a controlling terminal that is not the container's");
	return r;
}

int cap_terminal_find(struct cap *c, struct lr_err *err)
{
	pid_t session = 0;
	struct ids x;
	int r = 0;

	for (size_t i = 0; c->opts->terminal && r >= 0 && i < c->n; i++)
		r = find_owner(c, &c->p[i], &session, err);
	for (size_t i = 0; session && r >= 0 && i < c->n; i++) {
		r = read_ids(c, &c->p[i], &x, err);
		if (r > 0 && x.session == session && !x.terminal)
			cap_refuse(c, &c->p[i], "it has left the terminal of its session");
	}
	return r < 0 ? r : 0;
}

void cap_terminal_put(const struct cap *c, struct lr_seed_writer *w)
{
	if (!c->terminal.is)
		return;
	lr_seed_add(w, LR_SEED_TERMINAL, &c->terminal.seed);
	if (c->terminal.unread > 0)
		lr_warn("%d bytes that were typed, and that nobody has read yet, stay the "
			"container's own: no child gets them",
			c->terminal.unread);
}
