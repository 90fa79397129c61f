/* SPDX-License-Identifier: Apache-2.0 */
/* libocispec: the encoder that the tables drive. */
#include <string.h>

#include "libocispec/table.h"

struct any_list {
	void *v;
	size_t n;
};

/* A copy of the member's bytes: the row says which of them it is. */
union member {
	bool b;
	int32_t i32;
	int64_t i64;
	uint16_t u16;
	uint32_t u32;
	uint64_t u64;
	const void *p;
	const char *s;
	struct any_list list;
};

static size_t scalar_size(enum oci_kind kind)
{
	switch (kind) {
	case OCI_KIND_BOOL:
		return sizeof(bool);
	case OCI_KIND_U16:
		return sizeof(uint16_t);
	case OCI_KIND_I32:
	case OCI_KIND_U32:
		return sizeof(uint32_t);
	case OCI_KIND_I64:
	case OCI_KIND_U64:
		return sizeof(uint64_t);
	case OCI_KIND_STR:
		return sizeof(char *);
	case OCI_KIND_OBJ:
		return 0;
	case OCI_KIND_STRV:
	case OCI_KIND_U32V:
	case OCI_KIND_MAP:
	case OCI_KIND_LIST:
	case OCI_KIND_DICT:
		break;
	}
	return sizeof(struct any_list);
}

/* The member itself; for an optional scalar what it points to. False: an absent optional. */
static bool load(const struct oci_field *f, const void *object, union member *m)
{
	const char *at = (const char *)object + f->offset;

	memset(m, 0, sizeof(*m));
	if (f->flags & OCI_PTR) {
		const void *p;

		memcpy(&p, at, sizeof(p));
		if (!p)
			return false;
		at = p;
	}
	memcpy(m, at, scalar_size(f->kind));
	if (f->kind == OCI_KIND_OBJ)
		m->p = at;
	return true;
}

static bool is_empty_object(const struct oci_type *type, const void *object);

static bool is_empty(const struct oci_field *f, const union member *m)
{
	switch ((enum oci_kind)f->kind) {
	case OCI_KIND_STR:
		return !m->s;
	case OCI_KIND_BOOL:
		return !m->b;
	case OCI_KIND_U16:
		return m->u16 == 0;
	case OCI_KIND_I32:
	case OCI_KIND_U32:
		return m->u32 == 0;
	case OCI_KIND_I64:
	case OCI_KIND_U64:
		return m->u64 == 0;
	case OCI_KIND_OBJ:
		return is_empty_object(f->type, m->p);
	case OCI_KIND_STRV:
	case OCI_KIND_U32V:
	case OCI_KIND_MAP:
	case OCI_KIND_LIST:
	case OCI_KIND_DICT:
		break;
	}
	return m->list.n == 0;
}

static bool is_written(const struct oci_field *f, const void *object, union member *m)
{
	if (!load(f, object, m))
		return false;
	return (f->flags & (OCI_ALWAYS | OCI_PTR)) || !is_empty(f, m) ||
	       (f->flags & OCI_GIVEN && m->list.v);
}

static bool is_empty_object(const struct oci_type *type, const void *object)
{
	union member m;

	for (unsigned i = 0; i < type->n; i++)
		if (is_written(&type->fields[i], object, &m))
			return false;
	return true;
}

static void encode_strings(const struct any_list *list, struct lr_json_writer *w)
{
	const char *const *v = list->v;

	lr_json_list_open(w);
	for (size_t i = 0; i < list->n; i++)
		lr_json_str(w, v[i]);
	lr_json_list_close(w);
}

static void encode_numbers(const struct any_list *list, struct lr_json_writer *w)
{
	const uint32_t *v = list->v;

	lr_json_list_open(w);
	for (size_t i = 0; i < list->n; i++)
		lr_json_uint(w, v[i]);
	lr_json_list_close(w);
}

static void encode_map(const struct any_list *list, struct lr_json_writer *w)
{
	const struct oci_pair *v = list->v;

	lr_json_obj_open(w);
	for (size_t i = 0; i < list->n; i++)
		lr_json_kstr(w, v[i].key, v[i].value);
	lr_json_obj_close(w);
}

static void encode_list(const struct oci_type *type, const struct any_list *list,
			struct lr_json_writer *w)
{
	lr_json_list_open(w);
	for (size_t i = 0; i < list->n; i++)
		oci_table_encode(type, (const char *)list->v + i * type->size, w);
	lr_json_list_close(w);
}

static void encode_dict(const struct oci_type *type, const struct any_list *list,
			struct lr_json_writer *w)
{
	lr_json_obj_open(w);
	for (size_t i = 0; i < list->n; i++) {
		const char *element = (const char *)list->v + i * type->size, *key;

		memcpy(&key, element + type->key, sizeof(key));
		lr_json_key(w, key);
		oci_table_encode(type, element, w);
	}
	lr_json_obj_close(w);
}

static void encode_member(const struct oci_field *f, const union member *m,
			  struct lr_json_writer *w)
{
	switch ((enum oci_kind)f->kind) {
	case OCI_KIND_STR:
		lr_json_str(w, m->s ? m->s : "");
		break;
	case OCI_KIND_BOOL:
		lr_json_bool(w, m->b);
		break;
	case OCI_KIND_I32:
		lr_json_int(w, m->i32);
		break;
	case OCI_KIND_I64:
		lr_json_int(w, m->i64);
		break;
	case OCI_KIND_U16:
		lr_json_uint(w, m->u16);
		break;
	case OCI_KIND_U32:
		lr_json_uint(w, m->u32);
		break;
	case OCI_KIND_U64:
		lr_json_uint(w, m->u64);
		break;
	case OCI_KIND_STRV:
		encode_strings(&m->list, w);
		break;
	case OCI_KIND_U32V:
		encode_numbers(&m->list, w);
		break;
	case OCI_KIND_MAP:
		encode_map(&m->list, w);
		break;
	case OCI_KIND_OBJ:
		oci_table_encode(f->type, m->p, w);
		break;
	case OCI_KIND_LIST:
		encode_list(f->type, &m->list, w);
		break;
	case OCI_KIND_DICT:
		encode_dict(f->type, &m->list, w);
		break;
	}
}

void oci_table_encode(const struct oci_type *type, const void *object, struct lr_json_writer *w)
{
	union member m;

	lr_json_obj_open(w);
	for (unsigned i = 0; i < type->n; i++) {
		if (!is_written(&type->fields[i], object, &m))
			continue;
		lr_json_key(w, type->fields[i].name);
		encode_member(&type->fields[i], &m, w);
	}
	lr_json_obj_close(w);
}

char *oci_table_encode_text(const struct oci_type *type, const void *object, bool indent,
			    struct lr_arena *arena, size_t *len)
{
	struct lr_json_writer *w = lr_json_writer_new(arena, indent);

	oci_table_encode(type, object, w);
	return lr_json_finish(w, len);
}
