/* SPDX-License-Identifier: Apache-2.0 */
/* seed: the descriptor as JSON, for people and for tests. */
#include <stdio.h>
#include <string.h>

#include "src/base/json.h"
#include "src/seed/fields.h"
#include "src/seed/seed.h"

static uint64_t read_u64(const uint8_t *at)
{
	uint64_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

static uint32_t read_u32(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

static void put_hex(struct lr_json_writer *w, uint64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)v);
	lr_json_str(w, text);
}

static void put_octets(struct lr_json_writer *w, const uint8_t *at, size_t n)
{
	char text[2 * 128 + 1] = "";

	for (size_t i = 0; i < n && i < 128; i++)
		snprintf(text + 2 * i, 3, "%02x", at[i]);
	lr_json_str(w, text);
}

static void put_pair(struct lr_json_writer *w, const char *one, uint64_t a, const char *two,
		     uint64_t b)
{
	lr_json_obj_open(w);
	lr_json_kuint(w, one, a);
	lr_json_kuint(w, two, b);
	lr_json_obj_close(w);
}

static void put_value(struct lr_json_writer *w, const struct lr_seed *s, const struct seed_field *f,
		      const uint8_t *at)
{
	switch ((enum seed_field_kind)f->kind) {
	case SEED_U32:
	case SEED_INDEX:
		lr_json_uint(w, read_u32(at));
		break;
	case SEED_I32:
		lr_json_int(w, (int32_t)read_u32(at));
		break;
	case SEED_X32:
		put_hex(w, read_u32(at));
		break;
	case SEED_I64:
		lr_json_int(w, (int64_t)read_u64(at));
		break;
	case SEED_X64:
		put_hex(w, read_u64(at));
		break;
	case SEED_TEXT:
		lr_json_str(w, lr_seed_text(s, read_u32(at)));
		break;
	case SEED_NAME:
		lr_json_str(w, (const char *)at);
		break;
	case SEED_BYTES:
		put_pair(w, "at", read_u64(at), "length", read_u64(at + 8));
		break;
	case SEED_RANGE:
		put_pair(w, "first", read_u32(at), "count", read_u32(at + 4));
		break;
	case SEED_MAYBE:
		read_u32(at) == LR_SEED_NONE ? lr_json_null(w) : lr_json_uint(w, read_u32(at));
		break;
	case SEED_OCTETS:
		put_octets(w, at, f->n);
		break;
	}
}

static void put_field(struct lr_json_writer *w, const struct lr_seed *s, const struct seed_field *f,
		      const uint8_t *entry)
{
	size_t size = f->kind == SEED_I64 || f->kind == SEED_X64 ? 8 : 4;

	lr_json_key(w, f->name);
	if (f->n == 1 || f->kind == SEED_OCTETS) {
		put_value(w, s, f, entry + f->at);
		return;
	}
	lr_json_list_open(w);
	for (size_t i = 0; i < f->n; i++)
		put_value(w, s, f, entry + f->at + i * size);
	lr_json_list_close(w);
}

static void put_table(struct lr_json_writer *w, const struct lr_seed *s, unsigned type)
{
	const struct seed_shape *shape = &lr_seed_shapes[type];

	lr_json_key(w, shape->name);
	lr_json_list_open(w);
	for (uint64_t i = 0; i < s->table[type].count; i++) {
		lr_json_obj_open(w);
		for (uint32_t k = 0; k < shape->n; k++)
			put_field(w, s, &shape->fields[k], lr_seed_entry(s, type, i));
		lr_json_obj_close(w);
	}
	lr_json_list_close(w);
}

char *lr_seed_dump(const struct lr_seed *s, struct lr_arena *a)
{
	struct lr_json_writer *w = lr_json_writer_new(a, true);
	size_t len;

	lr_json_obj_open(w);
	lr_json_kuint(w, "version", s->header->version);
	lr_json_kuint(w, "length", s->header->length);
	lr_json_kuint(w, "pages", s->header->pages);
	lr_json_key(w, "id");
	put_octets(w, s->header->id, sizeof(s->header->id));
	for (unsigned type = 1; type < LR_SEED_TYPES; type++)
		if (lr_seed_shapes[type].n)
			put_table(w, s, type);
	lr_json_obj_close(w);
	return lr_json_finish(w, &len);
}
