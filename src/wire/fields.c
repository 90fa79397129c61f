/* SPDX-License-Identifier: Apache-2.0 */
/* wire: which fields each message has, and each kind of field as bytes. */
#include "src/wire/fields.h"

#include <errno.h>
#include <string.h>

/* In the order of the bytes. What takes the rest of a body comes last. */
static const uint8_t table[][WIRE_FIELDS + 1] = {
	[LR_WIRE_PROVE] = {F_PROOF},
	[LR_WIRE_WELCOME] = {F_COUNT, F_LENGTH, F_PAGES, F_LEASE, F_ID},
	[LR_WIRE_REFUSED] = {F_CODE, F_TEXT},
	[LR_WIRE_DESCRIBE] = {F_AT, F_COUNT},
	[LR_WIRE_READ] = {F_RANGES},
	[LR_WIRE_DATA] = {F_DATA},
	[LR_WIRE_PING] = {F_NOTHING},
	[LR_WIRE_PONG] = {F_LEASE},
	[LR_WIRE_RDMA] = {F_NOTHING},
	[LR_WIRE_ENTRY] = {F_COUNT, F_PROOF},
	[LR_WIRE_ENTERED] = {F_NOTHING},
	[LR_WIRE_REGION] = {F_KEY, F_AT, F_LENGTH},
	[LR_WIRE_MODULE] = {F_NOTHING},
	[LR_WIRE_ADD] = {F_LEASE, F_FLAGS, F_PATH},
	[LR_WIRE_EXTEND] = {F_ID, F_LEASE},
	[LR_WIRE_REMOVE] = {F_ID},
	[LR_WIRE_LIST] = {F_COUNT},
	[LR_WIRE_INSPECT] = {F_ID},
	[LR_WIRE_FETCH] = {F_TEXT},
	[LR_WIRE_SERVE] = {F_ID, F_COUNT, F_FLAGS},
	[LR_WIRE_READY] = {F_COUNT},
	[LR_WIRE_OK] = {F_NOTHING},
	[LR_WIRE_TICKET] = {F_TEXT},
	[LR_WIRE_SEEDS_ARE] = {F_COUNT, F_SEEDS},
	[LR_WIRE_DESCRIPTOR] = {F_LENGTH, F_ID},
	[LR_WIRE_BRING] = {F_ID, F_RANGES},
	[LR_WIRE_FILLED] = {F_AT, F_LENGTH},
	[LR_WIRE_WANTED] = {F_RANGES},
	[LR_WIRE_SOURCE] = {F_ID},
	[LR_WIRE_COUNTS] = {F_NOTHING},
	[LR_WIRE_CHILDREN] = {F_COUNT},
	[LR_WIRE_CHILDREN_ARE] = {F_COUNT, F_CHILDREN},
	[LR_WIRE_LIMIT] = {F_ID, F_LENGTH},
	[LR_WIRE_EXPORTS] = {F_NOTHING},
};

const uint8_t *wire_fields(uint32_t type)
{
	return type < sizeof(table) / sizeof(table[0]) && table[type][0] ? table[type] : NULL;
}

static const uint32_t most[] = {
	[F_CODE] = 4,
	[F_COUNT] = 4,
	[F_FLAGS] = 4,
	[F_KEY] = 4,
	[F_AT] = 8,
	[F_LENGTH] = 8,
	[F_PAGES] = 8,
	[F_LEASE] = 8,
	[F_ID] = LR_WIRE_ID,
	[F_PROOF] = LR_WIRE_PROOF,
	[F_TEXT] = LR_WIRE_TEXT,
	[F_PATH] = LR_WIRE_PATH,
	[F_DATA] = LR_WIRE_CHUNK,
	[F_RANGES] = LR_WIRE_RANGES * WIRE_RANGE_SIZE,
	[F_SEEDS] = LR_WIRE_SEEDS * WIRE_SEED_SIZE,
	[F_CHILDREN] = LR_WIRE_KIN * WIRE_CHILD_SIZE,
	[F_NOTHING] = 0,
};

uint32_t wire_most(enum wire_field f)
{
	return most[f];
}

bool wire_takes_rest(enum wire_field f)
{
	return f >= F_TEXT;
}

void *wire_place(struct lr_wire_msg *m, enum wire_field f)
{
	switch (f) {
	case F_CODE:
		return &m->code;
	case F_COUNT:
		return &m->count;
	case F_FLAGS:
		return &m->flags;
	case F_KEY:
		return &m->key;
	case F_AT:
		return &m->at;
	case F_LENGTH:
		return &m->length;
	case F_PAGES:
		return &m->pages;
	case F_LEASE:
		return &m->lease;
	case F_ID:
		return m->id;
	case F_PROOF:
		return m->proof;
	case F_TEXT:
		return &m->text;
	case F_PATH:
		return &m->path;
	case F_DATA:
		return &m->data;
	default:
		return NULL;
	}
}

/* ---- what a field may hold ---------------------------------------------------------------- */

static bool is_printable(const struct lr_wire_bytes *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->at[i] < 0x20 || b->at[i] > 0x7e)
			return false;
	return b->n <= LR_WIRE_TEXT;
}

static bool are_ranges(const struct lr_wire_msg *m)
{
	uint64_t sum = 0;

	if (!m->n || m->n > LR_WIRE_RANGES)
		return false;
	for (size_t i = 0; i < m->n; i++) {
		const struct lr_wire_range *r = &m->ranges[i];
		/* The first page is the file's header, and nobody's memory. */
		if (r->at % LR_WIRE_PAGE || r->at < LR_WIRE_PAGE || r->at > INT64_MAX / 2 ||
		    !r->pages || r->pages > LR_WIRE_CHUNK / LR_WIRE_PAGE)
			return false;
		sum += r->pages;
	}
	return sum <= LR_WIRE_CHUNK / LR_WIRE_PAGE;
}

static bool are_children(const struct lr_wire_msg *m)
{
	for (size_t i = 0; i < m->n && i < LR_WIRE_KIN; i++)
		if (m->children[i].state >= LR_WIRE_STATES)
			return false;
	return m->n <= LR_WIRE_KIN;
}

bool wire_field_is_right(const struct lr_wire_msg *m, enum wire_field f)
{
	switch (f) {
	case F_TEXT:
		return is_printable(&m->text);
	case F_PATH:
		return m->path.n <= LR_WIRE_PATH &&
		       (!m->path.n || !memchr(m->path.at, 0, m->path.n));
	case F_DATA:
		return m->data.n <= LR_WIRE_CHUNK;
	case F_RANGES:
		return are_ranges(m);
	case F_SEEDS:
		return m->n <= LR_WIRE_SEEDS;
	case F_CHILDREN:
		return are_children(m);
	case F_CODE:
		return m->code && m->code < LR_WIRE_CODES;
	default:
		return true;
	}
}

size_t lr_wire_asked(const struct lr_wire_msg *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n; i++)
		n += (size_t)m->ranges[i].pages * LR_WIRE_PAGE;
	return n;
}

const char *lr_wire_code_name(uint32_t code)
{
	static const char *const names[] = {
		[LR_WIRE_NO_SEED] = "no such seed",
		[LR_WIRE_REVOKED] = "revoked",
		[LR_WIRE_EXPIRED] = "expired",
		[LR_WIRE_WRONG_SECRET] = "wrong secret",
		[LR_WIRE_BUSY] = "busy",
		[LR_WIRE_NO_VERSION] = "no common version",
		[LR_WIRE_NO_WAY] = "not in this way (TLS or plain)",
		[LR_WIRE_MALFORMED] = "malformed message",
		[LR_WIRE_DAMAGED] = "the seed is damaged",
		[LR_WIRE_ENDING] = "the daemon ends",
		[LR_WIRE_FAILED] = "failed",
	};

	return code && code < LR_WIRE_CODES ? names[code] : "unknown refusal";
}

bool lr_wire_code_is_final(uint32_t code)
{
	return code == LR_WIRE_REVOKED || code == LR_WIRE_EXPIRED || code == LR_WIRE_DAMAGED;
}
