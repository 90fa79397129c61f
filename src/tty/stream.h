/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tty: bounded buffers, and descriptors that are shared with others. Internal to src/tty.
 *
 * O_NONBLOCK belongs to the open file description, so setting it on standard input or output
 * changes the shell that started us, and every other writer of a log. The end of a stream says
 * here how to use it without waiting and without that flag.
 */
#ifndef LR_TTY_STREAM_H
#define LR_TTY_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define LR_TTY_RING (64u << 10)

struct lr_tty_ring {
	size_t head, len;    /* first byte in use; bytes in use */
	unsigned char *data; /* LR_TTY_RING of them; NULL: there is nothing to be relayed */
};

struct lr_tty_end {
	int fd;  /* the caller's descriptor */
	int own; /* the same terminal opened once more, non-blocking; or LR_NOFD */
	int how; /* enum in stream.c */
	bool tty;
	bool ask_first; /* writing without poll's word may wait */
};

/* Looks at what fd is. fd may be LR_NOFD. */
void lr_tty_end_open(struct lr_tty_end *e, int fd);
/* A descriptor of ours alone: made non-blocking, used plainly. */
void lr_tty_end_own(struct lr_tty_end *e, int fd);
void lr_tty_end_close(struct lr_tty_end *e);

/*
 * One system call each, to be used after poll(2) said that the descriptor is ready. Bytes moved
 * (reading 0: end of file), -EAGAIN, or another -errno. Reading needs room, writing needs bytes.
 */
ssize_t lr_tty_fill(struct lr_tty_ring *r, struct lr_tty_end *from);
ssize_t lr_tty_drain(struct lr_tty_ring *r, struct lr_tty_end *to);

/* Appends if there is room for all of it. */
bool lr_tty_put(struct lr_tty_ring *r, const void *bytes, size_t n);

#endif
