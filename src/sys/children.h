/* SPDX-License-Identifier: Apache-2.0 */
/* sys: the children of a thread, as proc(5) lists them: all, however many they are. */
#ifndef LR_SYS_CHILDREN_H
#define LR_SYS_CHILDREN_H

#include <sys/types.h>

#include "src/base/fd.h"

struct lr_children {
	int fd, error;
	unsigned at, n;
	char text[509]; /* a prime: a number is cut by its end, at some time, in any test of many */
};

/* What fails here is told by the first lr_children_next(). */
void lr_children_open(struct lr_children *c, pid_t pid, pid_t tid);
/*
 * The next child; 0: there is none, or the thread has ended meanwhile; -ENOENT or -ESRCH: it had ended before; or another
 * -errno. A child that is born or waited for between two calls may be left out, and one that is waited for may have
 * others left out.
 */
pid_t lr_children_next(struct lr_children *c) LR_MUST_CHECK;
void lr_children_close(struct lr_children *c);
#define LR_CLEANUP_CHILDREN __attribute__((cleanup(lr_children_close)))

#endif
