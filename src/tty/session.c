/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tty: the foreground of `run` and `exec`.
 *
 * One poll(2) loop over five descriptors: signals, the process, the terminal's master, and the
 * caller's two. A descriptor is in the set only while its event could be used: input only with
 * room to put it, output only with bytes to write. So a reader that stops costs no processor time
 * and no memory. (Not epoll: it refuses regular files and cannot leave out a hang-up.)
 */
#define LR_ROOM "tty"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/sys/proc.h"
#include "src/tty/stream.h"
#include "src/tty/tty.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

enum { SIGNALS, PROCESS, MASTER, IN, OUT, N_FDS };

struct relay {
	struct lr_tty_session *s;
	int sigfd;
	struct lr_tty_end master, in, out;
	int peer; /* the slave, held open: see hold_peer */
	struct lr_tty_ring typed, shown;

	bool exited;
	int status;
	bool give_up;

	bool in_ended;      /* nothing more comes from `in` */
	bool eof_due;       /* and its end has still to be typed */
	unsigned char last; /* byte typed last; 0: none */

	bool raw;
	struct termios cooked;
};

/* ---- the caller's terminal --------------------------------------------------------------- */

static void enter_raw(struct relay *r)
{
	struct termios t;

	if (!r->in.tty || tcgetattr(r->in.fd, &t) < 0)
		return;
	if (!r->raw)
		r->cooked = t;
	cfmakeraw(&t);
	t.c_oflag |= OPOST; /* see lr_tty_session_run */
	if (tcsetattr(r->in.fd, TCSANOW, &t) == 0)
		r->raw = true;
	else
		lr_debug("tty: the terminal stays in its mode: errno %d", errno);
}

static void leave_raw(struct relay *r)
{
	sigset_t ttou, old;

	if (!r->raw)
		return;
	/* In the background by now, perhaps: restoring must not stop us. */
	sigemptyset(&ttou);
	sigaddset(&ttou, SIGTTOU);
	sigprocmask(SIG_BLOCK, &ttou, &old);
	if (tcsetattr(r->in.fd, TCSANOW, &r->cooked) < 0)
		lr_debug("tty: cannot restore the terminal: errno %d", errno);
	sigprocmask(SIG_SETMASK, &old, NULL);
	r->raw = false;
}

/* The first that is a terminal counts; false if it has no size, or none is one. */
static bool get_size(int in, int out, struct winsize *ws)
{
	const int from[] = {in, out, STDERR_FILENO};

	for (size_t i = 0; i < 3; i++)
		if (from[i] >= 0 && ioctl(from[i], TIOCGWINSZ, ws) == 0)
			return ws->ws_row || ws->ws_col;
	return false;
}

bool lr_tty_caller_size(struct oci_console_size *ret)
{
	struct winsize ws;

	if (!get_size(STDIN_FILENO, STDOUT_FILENO, &ws))
		return false;
	*ret = (struct oci_console_size){.height = ws.ws_row, .width = ws.ws_col};
	return true;
}

static void copy_size(const struct relay *r)
{
	struct winsize ws;

	if (r->master.fd >= 0 && get_size(r->in.fd, r->out.fd, &ws))
		ioctl(r->master.fd, TIOCSWINSZ, &ws);
}

/* ---- the container's terminal ------------------------------------------------------------ */

/*
 * A master without any slave open reads EIO and polls as hung up for ever, though a process may
 * open /dev/console again in a moment (getty, vhangup). Holding one keeps the line up while the
 * process lives.
 */
static bool hold_peer(struct relay *r)
{
	r->peer = lr_close(r->peer);
	if (!lr_tty_no_gptpeer)
		r->peer = ioctl(r->master.fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	return r->peer >= 0;
}

/* Closing the master is the hang-up: readers see the end, writers EIO, the session SIGHUP. */
static void close_master(struct relay *r)
{
	r->peer = lr_close(r->peer);
	lr_tty_end_close(&r->master);
	r->s->master = lr_close(r->s->master);
	r->typed.len = 0;
}

static void read_master(struct relay *r)
{
	ssize_t n = lr_tty_fill(&r->shown, &r->master);

	if (n > 0) {
		if (r->out.fd < 0)
			r->shown.len = 0;
	} else if (n == -EAGAIN) {
		if (r->exited) /* others may hold the slave; what the process wrote has been read */
			close_master(r);
	} else if (r->exited || !hold_peer(r)) {
		close_master(r);
	}
}

static void write_master(struct relay *r)
{
	size_t head = r->typed.head;
	ssize_t n = lr_tty_drain(&r->typed, &r->master);

	if (n > 0)
		r->last = r->typed.data[(head + (size_t)n - 1) % LR_TTY_RING];
	else if (n < 0 && n != -EAGAIN)
		r->typed.len = 0; /* nobody will read it */
}

/*
 * The end of a pipe or file as a person would type it. In a line that has begun, the first ^D only
 * hands that line over (termios(3)); a terminal in raw mode has no such character.
 */
static void type_eof(struct relay *r)
{
	struct termios t;

	r->eof_due = false;
	if (tcgetattr(r->master.fd, &t) < 0 || !(t.c_lflag & ICANON) ||
	    t.c_cc[VEOF] == _POSIX_VDISABLE)
		return;
	unsigned char eof[2] = {t.c_cc[VEOF], t.c_cc[VEOF]};
	lr_tty_put(&r->typed, eof, r->last && r->last != '\n' ? 2 : 1);
}

static void read_in(struct relay *r)
{
	ssize_t n = lr_tty_fill(&r->typed, &r->in);

	if (n > 0 || n == -EAGAIN)
		return;
	r->in_ended = true;
	r->eof_due = n == 0 && !r->in.tty;
}

static void write_out(struct relay *r)
{
	ssize_t n = lr_tty_drain(&r->shown, &r->out);

	if (n >= 0 || n == -EAGAIN)
		return;
	if (n != -EPIPE)
		lr_warn("tty: cannot write the container's output: %s", lr_strerror((int)-n));
	r->shown.len = 0;
	close_master(r);
}

/* ---- signals and the end ----------------------------------------------------------------- */

static int reap(struct relay *r, struct lr_err *err)
{
	int status;
	pid_t pid;

	for (;;) {
		pid = waitpid(r->s->reap_others ? -1 : r->s->pid, &status, WNOHANG | __WALL);
		if (pid < 0 && errno == EINTR)
			continue;
		if (pid <= 0)
			break;
		if (pid == r->s->pid) {
			r->exited = true;
			r->status = status;
			r->peer = lr_close(r->peer);
			if (!r->s->reap_others)
				break;
		}
	}
	if (pid < 0 && !r->exited)
		return lr_fail(err, errno, "cannot wait for process %d", r->s->pid);
	return 0;
}

static void forward(const struct relay *r, int sig)
{
	int n = lr_proc_signal_own(r->s->pid, r->s->pidfd, sig);

	lr_debug("tty: signal %d to process %d: %d", sig, r->s->pid, n);
	if (n < 0 && n != -ESRCH)
		lr_warn("tty: cannot send signal %d to process %d: %s", sig, r->s->pid,
			lr_strerror(-n));
}

static bool wants_to_end(int sig)
{
	return sig == SIGINT || sig == SIGTERM || sig == SIGHUP || sig == SIGQUIT;
}

/*
 * By whoever started us (nohup, a shell's `&` without job control): it is meant so. Asked when one
 * comes, which is seldom: blocked, it comes although it is ignored (signal(7)).
 */
static bool is_ignored(int sig)
{
	struct sigaction sa;

	return wants_to_end(sig) && sigaction(sig, NULL, &sa) == 0 && sa.sa_handler == SIG_IGN;
}

static int take_signal(struct relay *r, const struct signalfd_siginfo *info, struct lr_err *err)
{
	int sig = (int)info->ssi_signo;

	switch (sig) {
	case SIGCHLD:
		return r->exited && !r->s->reap_others ? 0 : reap(r, err);
	case SIGWINCH:
		copy_size(r);
		return 0;
	case SIGURG: /* a Go caller's goroutine preemption */
		return 0;
	case SIGPIPE:
		if (info->ssi_pid == (uint32_t)getpid()) /* our own writing */
			return 0;
		break;
	case SIGCONT: /* the shell has put its own mode on the terminal meanwhile */
		if (!r->exited) {
			enter_raw(r);
			copy_size(r);
		}
		break;
	}
	if (is_ignored(sig))
		return 0;
	if (r->exited)
		r->give_up |= wants_to_end(sig);
	else if (r->s->forward_signals)
		forward(r, sig);
	return 0;
}

static int take_signals(struct relay *r, struct lr_err *err)
{
	struct signalfd_siginfo info[16];
	ssize_t n = read(r->sigfd, info, sizeof info);
	int ret = 0;

	for (size_t i = 0; n > 0 && i < (size_t)n / sizeof info[0] && ret == 0; i++)
		ret = take_signal(r, &info[i], err);
	return ret;
}

/* ---- the loop ---------------------------------------------------------------------------- */

static bool done(const struct relay *r)
{
	return r->exited && (r->give_up || (r->master.fd < 0 && r->shown.len == 0));
}

static void arm(const struct relay *r, struct pollfd fds[N_FDS])
{
	bool room = r->shown.len < LR_TTY_RING;

	for (int i = 0; i < N_FDS; i++)
		fds[i] = (struct pollfd){.fd = -1};
	fds[SIGNALS] = (struct pollfd){.fd = r->sigfd, .events = POLLIN};
	if (!r->exited)
		fds[PROCESS] = (struct pollfd){.fd = r->s->pidfd, .events = POLLIN};
	if (r->master.fd >= 0 && (room || r->typed.len)) {
		fds[MASTER].fd = r->master.fd;
		fds[MASTER].events = (room ? POLLIN : 0) | (r->typed.len ? POLLOUT : 0);
	}
	if (r->master.fd >= 0 && !r->exited && !r->in_ended && r->typed.len < LR_TTY_RING)
		fds[IN] = (struct pollfd){.fd = r->in.fd, .events = POLLIN};
	if (r->shown.len)
		fds[OUT] = (struct pollfd){.fd = r->out.fd, .events = POLLOUT};
}

static void move_bytes(struct relay *r, const struct pollfd fds[N_FDS])
{
	if (fds[IN].revents)
		read_in(r);
	if (r->master.fd >= 0 && r->typed.len && (fds[MASTER].revents & ~POLLIN || fds[IN].revents))
		write_master(r);
	if (r->master.fd >= 0 && r->typed.len == 0 && r->eof_due)
		type_eof(r);
	/* Once the process is gone no event announces the end: the read itself tells. */
	if (r->master.fd >= 0 && r->shown.len < LR_TTY_RING &&
	    (r->exited || fds[MASTER].revents & ~POLLOUT))
		read_master(r);
	if (r->shown.len && (fds[OUT].revents || !r->out.ask_first))
		write_out(r);
	if (r->typed.len + r->shown.len > r->s->buffered_max)
		r->s->buffered_max = r->typed.len + r->shown.len;
}

static int loop(struct relay *r, struct lr_err *err)
{
	struct pollfd fds[N_FDS];
	/* It may be gone already, with its SIGCHLD; a pidfd tells at the first poll. */
	int ret = r->s->pidfd >= 0 ? 0 : reap(r, err);

	while (ret == 0 && !done(r)) {
		arm(r, fds);
		/* Gone, with room to read: look at the master at once. */
		bool look = r->exited && r->master.fd >= 0 && r->shown.len < LR_TTY_RING;
		if (poll(fds, N_FDS, look ? 0 : -1) < 0 && errno != EINTR)
			return lr_fail(err, errno, "cannot wait for events");
		r->s->wakeups++;
		/* The end before the signals, if there is nothing to show any more: then nobody is
		 * left for them. */
		if (fds[PROCESS].revents && r->master.fd < 0)
			ret = reap(r, err);
		if (ret == 0 && fds[SIGNALS].revents && !done(r))
			ret = take_signals(r, err);
		if (ret == 0 && fds[PROCESS].revents && !r->exited)
			ret = reap(r, err);
		if (ret == 0)
			move_bytes(r, fds);
	}
	return ret;
}

int lr_tty_session_run(struct lr_tty_session *s, int *wait_status, struct lr_err *err)
{
	struct lr_tty_signals own = {.fd = LR_NOFD};
	bool terminal = s->master >= 0;
	LR_CLEANUP_FREE unsigned char *bytes = terminal ? malloc(2 * (size_t)LR_TTY_RING) : NULL;
	struct relay relay = {.s = s,
			      .peer = LR_NOFD,
			      .typed.data = bytes,
			      .shown.data = bytes ? bytes + LR_TTY_RING : NULL},
		     *r = &relay;
	int ret = 0;

	s->wakeups = s->buffered_max = 0;
	if (terminal && !bytes)
		ret = lr_fail(err, ENOMEM, "cannot allocate the terminal's buffers");
	if (ret == 0 && !s->signals)
		ret = lr_tty_signals_open(&own, s->forward_signals, err);
	if (ret < 0) {
		s->master = lr_close(s->master);
		return ret;
	}
	r->sigfd = s->signals ? s->signals->fd : own.fd;
	lr_tty_end_own(&r->master, s->master);
	lr_tty_end_open(&r->in, terminal ? s->in : LR_NOFD);
	lr_tty_end_open(&r->out, terminal ? s->out : LR_NOFD);
	if (terminal) {
		hold_peer(r);
		copy_size(r);
		enter_raw(r);
	}
	ret = loop(r, err);
	leave_raw(r);
	close_master(r);
	lr_tty_end_close(&r->in);
	lr_tty_end_close(&r->out);
	lr_tty_signals_close(&own);
	if (ret == 0)
		*wait_status = r->status;
	return ret;
}
