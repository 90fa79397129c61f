/* SPDX-License-Identifier: Apache-2.0 */
/* criu: image files: two magic numbers, then messages, each behind its length. */
#ifndef LR_CRIU_IMAGE_H
#define LR_CRIU_IMAGE_H

#include "src/base/arena.h"
#include "src/base/err.h"
#include "src/criu/fields.h"

/* Pure: goes behind the magics of that kind of image. -EBADMSG: it is another one. */
int lr_criu_image_begin(struct lr_criu_in *in, uint32_t kind) LR_MUST_CHECK;
/* Pure: the next message. 1; 0: there is none any more; -EBADMSG. */
int lr_criu_image_next(struct lr_criu_in *in, struct lr_criu_in *ret) LR_MUST_CHECK;
/* Pure: a number of a message; 0: it has none. -EBADMSG. */
int lr_criu_image_number(struct lr_criu_in in, uint64_t field, uint32_t *ret) LR_MUST_CHECK;

/* Reads the file below `dir` into the arena. -ENOENT; -EFBIG: more than 64 MiB. */
int lr_criu_image_read(int dir, const char *name, struct lr_arena *a, struct lr_criu_in *ret,
		       struct lr_err *err) LR_MUST_CHECK;
/* -EBADMSG. */
int lr_criu_image_wrong(const char *name, struct lr_err *err);

#endif
