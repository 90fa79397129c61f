/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resume: the memory that the restorer works from, made elsewhere and then put at its address:
 * code, lists of calls, and what they point to. That something did not fit is remembered, and
 * image_check reports it, so nothing else has to be checked.
 */
#ifndef LR_RESUME_IMAGE_H
#define LR_RESUME_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/arena.h"
#include "src/resume/blob.h"
#include "src/resume/resume.h"

struct image {
	struct lr_arena *a;
	uint64_t at;       /* its address */
	size_t size, used; /* size: without the room for the vDSO behind it */
	uint8_t *bytes;
	bool failed;
};

struct lr_resume_ops {
	struct image *image;
	struct blob_op *v;
	size_t n;
};

/* size bytes, zeroed, at a multiple of align. Returns the address; *ret may be NULL. */
uint64_t image_room(struct image *m, size_t size, size_t align, void **ret);
uint64_t image_put(struct image *m, const void *bytes, size_t size);
void image_op(struct lr_resume_ops *ops, int nr, unsigned flags, uint64_t a0, uint64_t a1,
	      uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5);
/* The list's place; it is written there. */
uint64_t image_list(struct lr_resume_ops *ops, uint64_t head, uint64_t which);
int image_check(const struct image *m, struct lr_err *err);

#endif
