/* SPDX-License-Identifier: Apache-2.0 */
/* seed: from bytes to tables; every reference is followed once. See seed.h. */
#define LR_ROOM "seed"
#include <string.h>

#include "src/base/str.h"
#include "src/seed/check.h"
#include "src/seed/fields.h"
#include "src/seed/seed.h"

#define SUM_AT offsetof(struct lr_seed_header, sum)

static uint64_t sum_of(const uint8_t *bytes, size_t size)
{
	uint64_t sum = lr_hash(LR_HASH, bytes, SUM_AT);

	return lr_hash(sum, bytes + sizeof(struct lr_seed_header),
		       size - sizeof(struct lr_seed_header));
}

void lr_seed_seal(void *bytes, size_t size)
{
	if (size < sizeof(struct lr_seed_header))
		return;
	uint64_t sum = sum_of(bytes, size);
	memcpy((uint8_t *)bytes + SUM_AT, &sum, sizeof(sum));
}

static int check_header(const struct lr_seed_header *h, size_t size, uint64_t pages,
			struct lr_err *err)
{
	if (size < sizeof(*h) || memcmp(h->magic, LR_SEED_MAGIC, sizeof(h->magic)) != 0)
		return lr_refuse(err, EPROTO, "this is not the descriptor of a seed");
	if (h->version != LR_SEED_VERSION || h->size != sizeof(*h)) {
		lr_refuse(err, ENOTSUP, "a seed of version %u; this program knows %d", h->version,
			  LR_SEED_VERSION);
		return lr_err_hint(err, "use the version of lean-runtime that made the seed");
	}
	if (h->length != size)
		return lr_refuse(err, EPROTO, "the descriptor has %zu bytes, and should have %llu",
				 size, (unsigned long long)h->length);
	if (h->sum != sum_of((const uint8_t *)h, size))
		return lr_refuse(err, EPROTO, "the descriptor is damaged: its sum is wrong");
	if (h->pages < LR_SEED_PAGE || h->pages % LR_SEED_PAGE || h->zero)
		return lr_refuse(err, EPROTO, "the descriptor's header is garbled");
	if (pages != UINT64_MAX && pages != h->pages)
		return lr_refuse(err, EPROTO,
				 "the file of pages has %llu bytes, and should have %llu",
				 (unsigned long long)pages, (unsigned long long)h->pages);
	return 0;
}

static int read_section(const struct lr_seed_section *h, uint64_t room, struct lr_seed *ret,
			struct lr_err *err)
{
	bool known = h->type && h->type < LR_SEED_TYPES;

	if (!h->stride || h->zero || h->count > UINT32_MAX || h->count > room / h->stride)
		return lr_refuse(err, EPROTO, "section %u is longer than the descriptor", h->type);
	if (!known && h->flags & LR_SEED_REQUIRED) {
		lr_refuse(err, ENOTSUP, "the seed has a section of an unknown type, %u", h->type);
		return lr_err_hint(err, "use the version of lean-runtime that made the seed");
	}
	if (!known)
		return 0;
	const struct seed_shape *shape = &lr_seed_shapes[h->type];
	bool bytes = shape->size == 1;
	if (bytes ? h->stride != 1 : h->stride < shape->size || h->stride % 8)
		return lr_refuse(err, EPROTO, "section \"%s\" has entries of %u bytes", shape->name,
				 h->stride);
	if (ret->table[h->type].at)
		return lr_refuse(err, EPROTO, "section \"%s\" is there twice", shape->name);
	ret->table[h->type] = (struct lr_seed_table){(const uint8_t *)(h + 1), h->count, h->stride};
	return 0;
}

static int read_sections(struct lr_seed *s, size_t size, struct lr_err *err)
{
	const uint8_t *bytes = (const uint8_t *)s->header;
	size_t at = sizeof(*s->header);

	for (uint32_t i = 0; i < s->header->sections; i++) {
		const struct lr_seed_section *h = (const void *)(bytes + at);
		if (size - at < sizeof(*h))
			return lr_refuse(err, EPROTO, "the descriptor ends within section %u", i);
		at += sizeof(*h);
		int r = read_section(h, size - at, s, err);
		if (r < 0)
			return r;
		/* size is a multiple of eight, so there is room for the padding. */
		at += (h->count * h->stride + 7) & ~UINT64_C(7);
	}
	if (at != size)
		return lr_refuse(err, EPROTO, "something follows the descriptor's last section");
	return 0;
}

/* ---- references ------------------------------------------------------------------------------ */

struct walk {
	const struct lr_seed *s;
	uint64_t cursor[LR_SEED_TYPES]; /* of ranges: what comes next */
	bool owned[LR_SEED_TYPES];
	uint64_t bytes; /* that entries have so far */
};

/* Entries that had the same bytes would be looked at for ever: each could have all of them. */
static bool bytes_lead(struct walk *w, const struct lr_seed_bytes *b)
{
	uint64_t have = w->s->table[LR_SEED_BYTES].count;

	if (b->at % 8 || b->at > have || b->length > have - b->at || b->length > have - w->bytes)
		return false;
	w->bytes += b->length;
	return true;
}

static bool range_follows(struct walk *w, uint8_t of, const struct lr_seed_range *r)
{
	w->owned[of] = true;
	if (r->first != w->cursor[of] || r->count > w->s->table[of].count - w->cursor[of])
		return false;
	w->cursor[of] += r->count;
	return true;
}

static bool field_leads(struct walk *w, const struct seed_field *f, const uint8_t *at)
{
	const struct lr_seed *s = w->s;
	uint32_t u32;

	memcpy(&u32, at, sizeof(u32));
	switch ((enum seed_field_kind)f->kind) {
	case SEED_TEXT:
		return u32 < s->table[LR_SEED_STRING].count;
	case SEED_NAME:
		return memchr(at, 0, LR_SEED_NAME) != NULL;
	case SEED_BYTES:
		return bytes_lead(w, (const void *)at);
	case SEED_MAYBE:
		return u32 == LR_SEED_NONE || u32 < s->table[f->of].count;
	case SEED_INDEX:
		return u32 < s->table[f->of].count;
	case SEED_RANGE:
		return range_follows(w, f->of, (const void *)at);
	default:
		return true;
	}
}

static int check_references(const struct lr_seed *s, struct lr_err *err)
{
	struct walk w = {.s = s};

	for (unsigned type = 1; type < LR_SEED_TYPES; type++) {
		const struct seed_shape *shape = &lr_seed_shapes[type];
		for (uint64_t i = 0; shape->n && i < s->table[type].count; i++) {
			const uint8_t *entry = lr_seed_entry(s, type, i);
			for (uint32_t k = 0; k < shape->n; k++)
				if (!field_leads(&w, &shape->fields[k],
						 entry + shape->fields[k].at))
					return lr_refuse(err, EPROTO,
							 "%s[%llu].%s of the seed leads nowhere",
							 shape->name, (unsigned long long)i,
							 shape->fields[k].name);
		}
	}
	for (unsigned type = 1; type < LR_SEED_TYPES; type++)
		if (w.owned[type] && w.cursor[type] != s->table[type].count)
			return lr_refuse(err, EPROTO, "the seed has %s that belong to nobody",
					 lr_seed_shapes[type].name);
	return 0;
}

int lr_seed_open(const void *bytes, size_t size, uint64_t pages, struct lr_seed *ret,
		 struct lr_err *err)
{
	struct lr_seed s = {.header = bytes};

	if ((uintptr_t)bytes % 8 || size % 8)
		return lr_refuse(err, EPROTO, "the descriptor's %zu bytes are no multiple of eight",
				 size);
	int r = check_header(bytes, size, pages, err);
	if (r >= 0)
		r = read_sections(&s, size, err);
	const struct lr_seed_table *strings = &s.table[LR_SEED_STRING];
	if (r >= 0 && (!strings->count || strings->at[strings->count - 1]))
		r = lr_refuse(err, EPROTO, "the strings of the seed have no end");
	if (r >= 0)
		r = check_references(&s, err);
	if (r >= 0)
		r = lr_seed_check(&s, err);
	if (r >= 0)
		*ret = s;
	return r;
}

void lr_seed_pages_header(const struct lr_seed_header *h, struct lr_seed_pages_header *ret)
{
	*ret = (struct lr_seed_pages_header){
		.version = LR_SEED_VERSION, .page = LR_SEED_PAGE, .length = h->pages};
	memcpy(ret->magic, LR_SEED_PAGES_MAGIC, sizeof(ret->magic));
	memcpy(ret->id, h->id, sizeof(ret->id));
}

int lr_seed_check_pages(const struct lr_seed *s, const void *page, size_t size, struct lr_err *err)
{
	struct lr_seed_pages_header want;

	lr_seed_pages_header(s->header, &want);
	if (size < sizeof(want) || memcmp(page, &want, sizeof(want)) != 0)
		return lr_refuse(err, EPROTO, "the file of pages belongs to another seed");
	return 0;
}
