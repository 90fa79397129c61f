/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tty: pseudo-terminals, from the container's devpts to the caller's keyboard.
 *
 * Three parties use this room:
 *
 *   in the container  lr_tty_open_pty, lr_tty_send_fd, lr_tty_attach. They make system calls only
 *                     (no heap), so they may run in a process freshly cloned.
 *   the runtime       lr_tty_connect (the console socket of `--console-socket`), lr_tty_recv_fd.
 *   in the foreground lr_tty_session_run: stays with `run` or `exec` until the process is gone,
 *                     forwards signals, relays the terminal if there is one, reaps.
 *
 * Every function returns >= 0 or -errno with *err filled. Descriptors are close-on-exec.
 */
#ifndef LR_TTY_TTY_H
#define LR_TTY_TTY_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "libocispec/config.h"
#include "src/base/err.h"
#include "src/base/fd.h"

/* ---- in the container -------------------------------------------------------------------- */

struct lr_tty_console {
	const struct oci_console_size *size; /* process.consoleSize; NULL: as the kernel has it */
	uid_t uid;    /* the process' uid in the caller's user namespace: owner of the slave */
	bool mount;   /* bind the slave on /dev/console (init does, exec does not) */
	bool relayed; /* its bytes come to a session of ours: see lr_tty_session_run */
};

struct lr_tty_pty {
	int master;
	int slave;
	char name[32]; /* "/dev/pts/0", as the container sees it */
};

/*
 * Makes a pseudo-terminal of the container's own devpts. rootfd stands for the container's root;
 * the caller is in its mount namespace, and devpts is mounted on /dev/pts there. No symbolic link
 * is followed, and what is found has to be what it should be: devpts, char 5:2, char 136:n
 * (CVE-2025-52565). On failure nothing stays open.
 */
int lr_tty_open_pty(int rootfd, const struct lr_tty_console *console, struct lr_tty_pty *ret,
		    struct lr_err *err) LR_MUST_CHECK;

/*
 * Makes the slave the controlling terminal of the calling session leader (call setsid(2) first)
 * and its standard input, output and error. Closes `slave`, whatever comes.
 */
int lr_tty_attach(int slave, struct lr_err *err) LR_MUST_CHECK;
/* The latter alone. */
int lr_tty_own_stdio(int slave, struct lr_err *err) LR_MUST_CHECK;

/* ---- handing the master over ------------------------------------------------------------- */

/* Connects to a Unix stream socket; paths longer than sun_path are fine. A descriptor, or
 * -errno. */
int lr_tty_connect(const char *path, struct lr_err *err) LR_MUST_CHECK;

/* One message: `name` as data (1 to 4095 bytes) and fd as SCM_RIGHTS. What console sockets
 * expect. */
int lr_tty_send_fd(int sock, int fd, const char *name, struct lr_err *err) LR_MUST_CHECK;

/*
 * The other end: the descriptor, or -errno (-EPIPE: closed without a message, -EBADMSG: not exactly
 * one descriptor). The data goes to `name` (cut to size - 1 and NUL-terminated; may be NULL).
 */
int lr_tty_recv_fd(int sock, char *name, size_t size, struct lr_err *err) LR_MUST_CHECK;

/* ---- in the foreground ------------------------------------------------------------------- */

/*
 * The caller's signals as a descriptor. Open it before the container is made, so that nothing is
 * lost between, close it after clean-up, so that Ctrl-C does not interrupt that. The container's
 * process inherits the blocked mask: it sets `old` before execve(2).
 *
 * forward: every signal but SIGKILL, SIGSTOP, the synchronous faults and the kernel's
 * SIGTTIN/SIGTTOU (job control of the runtime itself); otherwise SIGCHLD and SIGWINCH only.
 * SIGCHLD's disposition becomes the default. (What the caller had set to be ignored, as nohup does,
 * comes as well and is dropped by the session.)
 */
struct lr_tty_signals {
	int fd;
	sigset_t old;
};

int lr_tty_signals_open(struct lr_tty_signals *ret, bool forward, struct lr_err *err) LR_MUST_CHECK;
/* Drops what is pending, restores the mask. Safe to call twice. */
void lr_tty_signals_close(struct lr_tty_signals *s);

/*
 * The size of the caller's terminal, if there is one. A terminal in the foreground is made with it:
 * the program may ask before the session has begun.
 */
bool lr_tty_caller_size(struct oci_console_size *ret);

struct lr_tty_session {
	pid_t pid;   /* the container's process, a child of the caller */
	int pidfd;   /* of pid; LR_NOFD: signals go by pid, its end is seen by SIGCHLD */
	int master;  /* LR_NOFD: no terminal. Owned by the session, closed by it */
	int in, out; /* the caller's side of the terminal; LR_NOFD: none */
	bool forward_signals;
	bool reap_others; /* the caller is a subreaper: wait for whatever it inherits, too */
	const struct lr_tty_signals *signals; /* NULL: the session opens and closes its own */

	/* Results, for tests and --debug. */
	size_t wakeups;      /* turns of the loop */
	size_t buffered_max; /* most bytes ever held in memory, both directions */
};

#define LR_TTY_SESSION_INIT                                                                        \
	{                                                                                          \
		.pidfd = LR_NOFD, .master = LR_NOFD, .in = 0, .out = 1, .forward_signals = true    \
	}

/*
 * Runs until the process is gone and what it wrote has reached `out`. *wait_status is as waitpid(2)
 * gives it.
 *
 * With a terminal: `in` is put into raw mode if it is a terminal, and restored on every way out;
 * its size follows SIGWINCH. Lines end as runc's do, in the container's terminal with a newline and
 * no more (lr_tty_console.relayed): the caller's terminal adds the return, which stays on in its
 * raw mode, and a pipe or a file has what the program wrote. The end of an `in` that is no terminal
 * is typed as the end-of-file character. When `out` breaks, the terminal is hung up. Memory is
 * bounded: who reads slowly slows down who writes. No flag of `in` and `out` is changed, they may
 * be shared.
 *
 * After the process is gone, a SIGINT, SIGTERM, SIGHUP or SIGQUIT gives up waiting for `out`.
 */
int lr_tty_session_run(struct lr_tty_session *s, int *wait_status,
		       struct lr_err *err) LR_MUST_CHECK;

/* Forces the fallbacks (tests). */
extern bool lr_tty_no_gptpeer;   /* as before Linux 4.13 */
extern bool lr_tty_no_open_tree; /* as before Linux 5.2, or under a filter */
extern bool lr_tty_no_nowait;    /* as before Linux 6.4: no per-call non-blocking on pipes */

#endif
