/* SPDX-License-Identifier: Apache-2.0 */
/* criu: a message as a row of fields, which its answers and its images have in common. */
#ifndef LR_CRIU_FIELDS_H
#define LR_CRIU_FIELDS_H

#include <stdint.h>

enum lr_criu_wire {
	LR_CRIU_WIRE_VARINT = 0,
	LR_CRIU_WIRE_FIXED64 = 1,
	LR_CRIU_WIRE_BYTES = 2,
	LR_CRIU_WIRE_FIXED32 = 5,
};

struct lr_criu_in {
	const uint8_t *at, *end;
};

/* Its number, how it is written, and its value or its bytes. */
struct lr_criu_field {
	uint64_t number, value;
	enum lr_criu_wire wire;
	struct lr_criu_in bytes;
};

/* Pure: the next one. 1; 0: there is none any more; -EBADMSG. */
int lr_criu_next(struct lr_criu_in *in, struct lr_criu_field *ret);

#endif
