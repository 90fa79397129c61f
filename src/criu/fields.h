/* SPDX-License-Identifier: Apache-2.0 */
/* criu: a message as a row of fields, which its answers and its images have in common. */
#ifndef LR_CRIU_FIELDS_H
#define LR_CRIU_FIELDS_H

#include <stdint.h>

enum lr_criu_wire {
	LR_CRIU_VARINT = 0,
	LR_CRIU_FIXED64 = 1,
	LR_CRIU_BYTES = 2,
	LR_CRIU_FIXED32 = 5,
};

struct lr_criu_in {
	const uint8_t *at, *end;
};

/* One field: its number, and its value or its bytes. */
struct lr_criu_part {
	uint64_t number, value;
	struct lr_criu_in bytes;
};

/* Pure: the next one. 1; 0: there is none any more; -EBADMSG. */
int lr_criu_next(struct lr_criu_in *in, struct lr_criu_part *ret);

#endif
