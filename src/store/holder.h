/* SPDX-License-Identifier: Apache-2.0 */
/* store: who has the lock of a container. */
#ifndef LR_STORE_HOLDER_H
#define LR_STORE_HOLDER_H

#include <sys/types.h>

#include "src/base/err.h"

/* -EBUSY, with an error that names who has the lock of that directory, and says what to do. */
int lr_store_held(int dir, const char *id, struct lr_err *err) LR_MUST_CHECK;

/* Pure: who has taken that file's lock, by a line of /proc/locks; 0: the line is of another file, of another
 * kind of lock, or of who waits. */
pid_t lr_store_owner(const char *line, dev_t dev, ino_t inode);

#endif
