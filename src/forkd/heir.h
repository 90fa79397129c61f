/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: the next daemon's side of handover.h: to take the seeds of the one before. */
#ifndef LR_FORKD_HEIR_H
#define LR_FORKD_HEIR_H

#include <stddef.h>

#include "src/base/err.h"

/* Asks the keeper of a daemon that has ended. When it has answered, that daemon's addresses are
 * free. *ret: to be closed; LR_NOFD: there is nothing to take. An error: there may be, and whoever
 * tries again may have it. */
int heir_ask(const char *control, int *ret, size_t *rows, struct lr_err *err);
/* Takes so many rows; how many seeds were in them. What is no seed is left out, and logged. An error
 * as above. */
int heir_take(int sock, size_t rows, struct lr_err *err);
/* All of it is kept by now, also by a keeper: the other one lets go. */
void heir_done(int sock);

#endif
