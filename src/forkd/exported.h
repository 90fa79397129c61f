/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forkd: pages of a held seed that the kernel module has (docs/module.md): its own seed, by its
 * descriptor. In the file of pages there are zeros in their place, so nobody may read that file
 * without asking here first.
 */
#ifndef LR_FORKD_EXPORTED_H
#define LR_FORKD_EXPORTED_H

#include <stdint.h>
#include <sys/types.h>

#include "src/base/err.h"
#include "src/seed/seed.h"
#include "src/wire/wire.h"

struct exported;

/* Whether seeds may come so: 0, or why not. */
int exported_may(struct lr_err *err);
/* Takes a copy of the descriptor, and keeps nothing of s. -EINVAL: it has not just as many pages as
 * this seed wants of it. */
int exported_new(int fd, const struct lr_seed *s, struct exported **ret, struct lr_err *err);
/*
 * Bytes of the file of pages from `at` on, at most *n: how many were read. 0: they are in the file,
 * *n of them. -errno: they are not to be had.
 */
ssize_t exported_read(struct exported *e, uint64_t at, void *to, size_t *n);
/* By which another host's module may connect and read, once, within that time. */
int exported_token(struct exported *e, uint32_t seconds, uint8_t ret[LR_WIRE_PROOF]);
/* The module lets go of the pages: nobody reads them when this returns. NULL-safe, as the next. */
void exported_end(struct exported *e);
void exported_free(struct exported *e);

#endif
