/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lifecycle: how a birth keeps the caller's file and memory out of the container's sight. One
 * decision, and a pure one, for run, create, exec and the library.
 *
 * Until it executes the container's program, the newborn is a child of the caller: /proc/PID/exe is
 * the caller's file (CVE-2019-5736), and /proc/PID/mem the caller's memory, shared or a copy.
 * Nobody sees it in a pid namespace that is made for it. Elsewhere it is not dumpable, which keeps
 * out all but those who have CAP_SYS_PTRACE in the caller's user namespace. If such a process looks
 * into the command line's memory, nothing is lost but its environment; a program that uses the
 * library may have secrets there.
 */
#ifndef LR_LIFECYCLE_HIDE_H
#define LR_LIFECYCLE_HIDE_H

#include <stdbool.h>

#include "libocispec/config.h"
#include "src/base/err.h"

enum lr_hide {
	LR_HIDE_NEEDLESS, /* the caller runs from a mount or a copy already */
	LR_HIDE_STUB,     /* the sealed page is executed between the two programs (init/stub.c) */
	LR_HIDE_MOUNT,    /* the caller executes itself again (sys/selfexe.h): from a mount, or from
			     a copy where there are none */
	LR_HIDE_COPY,     /* ... from a copy in any case */
	LR_HIDE_REFUSE,
};

struct lr_hide_caller {
	bool hidden;        /* runs from a mount or a copy */
	bool library;       /* somebody else's program, which cannot be executed again */
	enum lr_hide wants; /* LR_HIDE_MOUNT or LR_HIDE_COPY; LR_HIDE_NEEDLESS: no wish */
};

enum lr_hide_birth {
	LR_HIDE_RUN,
	LR_HIDE_CREATE,
	LR_HIDE_ENTER, /* exec, and a visitor */
};

/* c: the container's config; NULL: it is not known yet, so ask again before the page is used. With
 * LR_HIDE_REFUSE, *err says what does not suit, and what to do. */
enum lr_hide lr_hide(const struct lr_hide_caller *who, enum lr_hide_birth birth,
		     const struct oci_config *c, struct lr_err *err);

#endif
