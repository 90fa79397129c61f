/* SPDX-License-Identifier: Apache-2.0 */
/* seed: entries to bytes; see seed.h. */
#define LR_ROOM "seed"
#include <string.h>

#include "src/base/str.h"
#include "src/seed/fields.h"
#include "src/seed/seed.h"

struct column {
	uint8_t *at;
	size_t used, room;
	uint32_t count;
};

struct lr_seed_writer {
	struct lr_arena *a;
	bool failed;
	struct column column[LR_SEED_TYPES];
};

struct lr_seed_writer *lr_seed_writer_new(struct lr_arena *a)
{
	struct lr_seed_writer *w = lr_new(a, struct lr_seed_writer);

	if (!w)
		return NULL;
	w->a = a;
	lr_seed_add_text(w, "");
	return w;
}

/* Where n more bytes can be written; NULL without memory. */
static uint8_t *make_room(struct lr_seed_writer *w, struct column *c, size_t n)
{
	if (c->room - c->used < n) {
		size_t room = c->room ? c->room * 2 : 1024;
		while (room - c->used < n)
			room *= 2;
		uint8_t *at = lr_alloc(w->a, room);
		if (!at) {
			w->failed = true;
			return NULL;
		}
		if (c->used)
			memcpy(at, c->at, c->used);
		c->at = at;
		c->room = room;
	}
	return c->at + c->used;
}

uint32_t lr_seed_add(struct lr_seed_writer *w, enum lr_seed_type type, const void *entry)
{
	struct column *c = &w->column[type];
	uint8_t *at = make_room(w, c, lr_seed_shapes[type].size);

	if (!at)
		return 0;
	memcpy(at, entry, lr_seed_shapes[type].size);
	c->used += lr_seed_shapes[type].size;
	return c->count++;
}

uint32_t lr_seed_next(const struct lr_seed_writer *w, enum lr_seed_type type)
{
	return w->column[type].count;
}

void *lr_seed_edit(struct lr_seed_writer *w, enum lr_seed_type type, uint32_t i)
{
	struct column *c = &w->column[type];

	return i < c->count ? c->at + (size_t)i * lr_seed_shapes[type].size : NULL;
}

uint32_t lr_seed_add_text(struct lr_seed_writer *w, const char *s)
{
	struct column *c = &w->column[LR_SEED_STRING];
	size_t n = strlen(s) + 1, where = c->used;

	if (n == 1 && where)
		return 0;
	uint8_t *at = where + n <= UINT32_MAX ? make_room(w, c, n) : NULL;
	if (!at) {
		w->failed = true;
		return 0;
	}
	memcpy(at, s, n);
	c->used += n;
	c->count = (uint32_t)c->used;
	return (uint32_t)where;
}

struct lr_seed_bytes lr_seed_add_bytes(struct lr_seed_writer *w, const void *bytes, size_t n)
{
	struct column *c = &w->column[LR_SEED_BYTES];
	struct lr_seed_bytes ret = {c->used, n};
	size_t padded = (n + 7) & ~(size_t)7;

	if (!n)
		return ret;
	uint8_t *at = padded <= UINT32_MAX - c->used ? make_room(w, c, padded) : NULL;

	if (!at) {
		w->failed = true;
		return (struct lr_seed_bytes){0};
	}
	memcpy(at, bytes, n);
	c->used += padded;
	c->count = (uint32_t)c->used;
	return ret;
}

static size_t section_size(const struct column *c)
{
	return sizeof(struct lr_seed_section) + ((c->used + 7) & ~(size_t)7);
}

int lr_seed_finish(struct lr_seed_writer *w, uint64_t pages, const uint8_t id[16], void **ret,
		   size_t *size, struct lr_err *err)
{
	struct lr_seed_header h = {.version = LR_SEED_VERSION, .size = sizeof(h), .pages = pages};
	size_t n = sizeof(h);
	struct lr_seed check;

	for (unsigned type = 1; type < LR_SEED_TYPES; type++) {
		if (!w->column[type].count)
			continue;
		h.sections++;
		n += section_size(&w->column[type]);
	}
	if (n > LR_SEED_MOST)
		return lr_refuse(err, EFBIG, "the seed's descriptor would have %zu bytes", n);
	uint8_t *out = w->failed ? NULL : lr_alloc(w->a, n);
	if (!out)
		return lr_fail(err, ENOMEM, "write the descriptor of the seed");
	memcpy(h.magic, LR_SEED_MAGIC, sizeof(h.magic));
	memcpy(h.id, id, sizeof(h.id));
	h.length = n;
	memcpy(out, &h, sizeof(h));
	size_t at = sizeof(h);
	for (unsigned type = 1; type < LR_SEED_TYPES; type++) {
		const struct column *c = &w->column[type];
		struct lr_seed_section head = {.type = type,
					       .flags = LR_SEED_REQUIRED,
					       .stride = lr_seed_shapes[type].size,
					       .count = c->count};
		if (!c->count)
			continue;
		memcpy(out + at, &head, sizeof(head));
		memcpy(out + at + sizeof(head), c->at, c->used);
		at += section_size(c);
	}
	lr_seed_seal(out, n);
	int r = lr_seed_open(out, n, pages, &check, err);
	if (r < 0)
		return r;
	*ret = out;
	*size = n;
	return 0;
}
