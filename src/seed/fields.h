/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seed: the members of each section's entries, once, as a table: the check of references and the
 * dump read it, so a new member can't be forgotten in either.
 */
#ifndef LR_SEED_FIELDS_H
#define LR_SEED_FIELDS_H

#include "src/seed/format.h"

enum seed_field_kind {
	SEED_U32,
	SEED_I32,
	SEED_X32, /* hexadecimal in a dump */
	SEED_I64,
	SEED_X64,
	SEED_TEXT,  /* of a string */
	SEED_NAME,  /* char[LR_SEED_NAME] with a NUL */
	SEED_BYTES, /* struct lr_seed_bytes */
	SEED_INDEX, /* of an entry of `of` */
	SEED_MAYBE, /* the same, or LR_SEED_NONE */
	SEED_RANGE, /* entries of `of`; they belong to nobody else, and come in order */
	SEED_OCTETS /* raw bytes, `n` of them */
};

struct seed_field {
	const char *name;
	uint16_t at, n; /* n: an array of that many */
	uint8_t kind;
	uint8_t of; /* enum lr_seed_type */
};

struct seed_shape {
	const char *name;
	uint32_t size; /* of an entry */
	const struct seed_field *fields;
	uint32_t n;
};

extern const struct seed_shape lr_seed_shapes[LR_SEED_TYPES];

#endif
