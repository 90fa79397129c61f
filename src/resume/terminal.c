/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resume: the seed's terminal is the new container's: set as the old one was, its session's and its
 * foreground's. All of that goes by a descriptor that the caller has of it, and by no path.
 */
#define LR_ROOM "resume"
#include "src/sys/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <termios.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/resume/resuming.h"

static const struct lr_seed_terminal *terminal_of(const struct lr_seed *s)
{
	return lr_seed_count(s, LR_SEED_TERMINAL) ? lr_seed_terminal(s, 0) : NULL;
}

int resume_keep_terminal(struct lr_resume *r, struct lr_err *err)
{
	r->terminal = LR_NOFD;
	if (!terminal_of(r->seed))
		return 0;
	if (r->opts.terminal < 0)
		return lr_refuse(err, ENOTSUP, "the seed has a terminal, and there is none for it");
	r->terminal = resume_keep(r, fcntl(r->opts.terminal, F_DUPFD_CLOEXEC, 3), err);
	return r->terminal;
}

/* Who relays the bytes decides how lines end, unless that is as it was. */
static uint32_t output_modes(const struct lr_resume *r, const struct lr_seed_terminal *t)
{
	const bool was_relayed = t->flags & LR_SEED_RELAYED;

	if (was_relayed == r->opts.relayed)
		return t->oflag;
	return was_relayed ? t->oflag | ONLCR : t->oflag & ~(uint32_t)ONLCR;
}

int resume_set_terminal(struct lr_resume *r, struct lr_err *err)
{
	const struct lr_seed_terminal *t = terminal_of(r->seed);

	if (!t)
		return 0;
	const struct winsize size = {(uint16_t)t->rows, (uint16_t)t->columns, (uint16_t)t->width,
				     (uint16_t)t->height};
	struct lr_termios2 m = {.iflag = t->iflag,
				.oflag = output_modes(r, t),
				.cflag = t->cflag,
				.lflag = t->lflag,
				.ispeed = t->ispeed,
				.ospeed = t->ospeed};
	memcpy(m.cc, t->cc, sizeof(m.cc));
	if (ioctl(r->terminal, TIOCGWINSZ, &r->size) < 0 ||
	    ioctl(r->terminal, LR_TCSETS2, &m) < 0 || ioctl(r->terminal, TIOCSWINSZ, &size) < 0)
		return lr_fail(err, errno, "set the terminal as the seed's was");
	/* All files of all processes are open by now. */
	if (t->flags & LR_SEED_EXCLUSIVE && ioctl(r->terminal, TIOCEXCL) < 0)
		return lr_fail(err, errno, "keep others from the terminal, as the seed did");
	r->resize =
		(r->size.ws_row || r->size.ws_col) && memcmp(&r->size, &size, sizeof(size)) != 0;
	return 0;
}

int resume_own_terminal(const struct lr_resume *r, const struct lr_seed_process *p,
			struct lr_err *err)
{
	const struct lr_seed_terminal *t = terminal_of(r->seed);

	if (!t || t->session != p->pid || ioctl(r->terminal, TIOCSCTTY, 0) == 0)
		return 0;
	return lr_fail(err, errno, "give the terminal to session %u", p->pid);
}

/* SIGTTOU is blocked, as all are, so who is in the background may do it. */
int resume_front_group(const struct lr_resume *r, uint32_t index, struct lr_err *err)
{
	const struct lr_seed_terminal *t = terminal_of(r->seed);
	const pid_t group = t ? (pid_t)t->foreground : 0;

	if (!t || !resume_is_first_of(r, index, t->foreground) ||
	    ioctl(r->terminal, TIOCSPGRP, &group) == 0)
		return 0;
	return lr_fail(err, errno, "put process group %u into the foreground", t->foreground);
}

/* Behind the last handler: whoever is in the foreground is told by SIGWINCH. */
void plan_terminal(struct one *x, struct lr_resume_ops *ops)
{
	const struct winsize *size = &x->r->size;

	if (x->r->resize && x->index == 0)
		image_op(ops, SYS_ioctl, BLOB_MAY_FAIL, (uint64_t)x->r->terminal, TIOCSWINSZ,
			 image_put(&x->image, size, sizeof(*size)), 0, 0, 0);
}
