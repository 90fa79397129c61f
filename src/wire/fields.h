/* SPDX-License-Identifier: Apache-2.0 */
/* wire: what the room's files share: messages as lists of fields. */
#ifndef LR_WIRE_FIELDS_H
#define LR_WIRE_FIELDS_H

#include "src/wire/wire.h"

/* From F_TEXT on they take the rest of a body. */
enum wire_field {
	F_END,
	F_NOTHING,
	F_CODE,
	F_COUNT,
	F_FLAGS,
	F_KEY,
	F_AT,
	F_LENGTH,
	F_PAGES,
	F_LEASE,
	F_ID,
	F_PROOF,
	F_TEXT,
	F_PATH,
	F_DATA,
	F_RANGES,
	F_SEEDS,
	F_CHILDREN
};
#define WIRE_FIELDS     5 /* of one message at most */

#define WIRE_RANGE_SIZE 12
#define WIRE_SEED_SIZE  64
#define WIRE_CHILD_SIZE (LR_WIRE_ID + 8 + 8 * LR_WIRE_FIGURES)

/* Ends with F_END; NULL: no such message. */
const uint8_t *wire_fields(uint32_t type);
uint32_t wire_most(enum wire_field f); /* bytes */
bool wire_takes_rest(enum wire_field f);
void *wire_place(struct lr_wire_msg *m, enum wire_field f);
bool wire_field_is_right(const struct lr_wire_msg *m, enum wire_field f);

/* Little-endian, at any address. */
static inline void wire_put(uint8_t *out, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = (uint8_t)(v >> (8 * i));
}
static inline uint64_t wire_get(const uint8_t *in, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v |= (uint64_t)in[i] << (8 * i);
	return v;
}

#endif
