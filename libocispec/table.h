/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libocispec: JSON objects described by tables, one row a property. The same table decodes and
 * encodes, so that there is one description of every structure. src/store describes its record
 * in the same way:
 *
 *	struct record { const char *id; int64_t pid; struct oci_strv names; const bool *frozen;
 *			struct { struct step *v; size_t n; } steps; };
 *
 *	static const struct oci_field step_fields[] = {
 *		OCI_STR(struct step, "name", name, OCI_REQUIRED),
 *		OCI_U64(struct step, "took", took, 0),
 *	};
 *	static const struct oci_type step_type = OCI_TYPE("step", struct step, step_fields);
 *
 *	static const struct oci_field record_fields[] = {
 *		OCI_STR(struct record, "id", id, OCI_REQUIRED),
 *		OCI_I64(struct record, "pid", pid, OCI_ALWAYS),
 *		OCI_STRV(struct record, "names", names, 0),
 *		OCI_OPT_BOOL(struct record, "frozen", frozen, 0),
 *		OCI_LIST(struct record, "steps", steps, &step_type, 0),
 *	};
 *	static const struct oci_type record_type = OCI_TYPE("record", struct record, record_fields);
 *
 *	struct record r;
 *	rc = oci_table_decode(&record_type, &(struct lr_json_source){.text = text, .len = len,
 *			      .what = "state.json"}, arena, &r, err);
 *
 * The macros check at compile time that the member has the type the row promises. At most 64
 * rows a table. Rows stand in the order in which they are to be written.
 *
 * Decoding: a property that is absent or null leaves its member zero (NULL, 0, n == 0); a null in
 * a list or as the value of a map is an error. Unknown properties are ignored. Numbers must be
 * whole and fit the member. Names are case-sensitive.
 *
 * Encoding leaves out what is empty, like Go's omitempty: NULL pointers, false, 0, n == 0, inline
 * objects of which nothing would be written. A string that is present but empty is written.
 */
#ifndef OCI_TABLE_H
#define OCI_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "libocispec/config.h"
#include "src/base/arena.h"
#include "src/base/err.h"
#include "src/base/json.h"

enum oci_kind {
	OCI_KIND_STR, /* const char * */
	OCI_KIND_BOOL,
	OCI_KIND_I32,
	OCI_KIND_I64,
	OCI_KIND_U16,
	OCI_KIND_U32,
	OCI_KIND_U64,
	OCI_KIND_STRV, /* struct oci_strv: list of strings, NULL-terminated when present */
	OCI_KIND_U32V, /* struct { uint32_t *v; size_t n; } */
	OCI_KIND_MAP,  /* struct oci_map: object whose values are strings */
	OCI_KIND_OBJ,  /* object of .type */
	OCI_KIND_LIST, /* struct { struct x *v; size_t n; }: list of objects of .type */
	OCI_KIND_DICT, /* the same from an object: each key goes to the member at .type->key */
};

/* Row flags. */
#define OCI_PTR      0x01 /* the member points to the value; NULL: absent (scalars, OBJ) */
#define OCI_REQUIRED 0x02 /* absence is an error of the decoder */
#define OCI_ALWAYS   0x04 /* written even when empty: "", 0, false, [], {} */
#define OCI_GIVEN    0x08 /* STRV: [] means something else than absence, and is written */

struct oci_type;

struct oci_field {
	const char *name; /* as in JSON */
	uint8_t len;      /* of name */
	uint8_t kind;     /* enum oci_kind */
	uint8_t flags;
	uint16_t offset;             /* of the member */
	const struct oci_type *type; /* OBJ, LIST, DICT */
};

struct oci_type {
	const char *name; /* for messages and tests */
	uint32_t size;    /* of the structure */
	uint16_t key;     /* DICT: offset of the `const char *` that receives the key */
	uint16_t n;
	const struct oci_field *fields;
};

#define OCI_TYPE(label, T, table)                                                                  \
	{                                                                                          \
		.name = (label), .size = sizeof(T), .n = sizeof(table) / sizeof((table)[0]),       \
		.fields = (table)                                                                  \
	}
/* For elements of a DICT; `member` is the const char * that holds the key. */
#define OCI_TYPE_KEYED(label, T, member, table)                                                    \
	{                                                                                          \
		.name = (label), .size = sizeof(T), .key = OCI_OFFSET_(T, member, const char *),   \
		.n = sizeof(table) / sizeof((table)[0]), .fields = (table)                         \
	}

/* offsetof, after a check of the member's type. */
#define OCI_IS_(T, member, type) __builtin_types_compatible_p(__typeof__(((T *)0)->member), type)
#define OCI_CHECK_(cond)                                                                           \
	(0 * sizeof(struct {                                                                       \
		 _Static_assert(cond, "the member does not have the type of its row");             \
		 int x_;                                                                           \
	 }))
#define OCI_OFFSET_(T, member, type) (offsetof(T, member) + OCI_CHECK_(OCI_IS_(T, member, type)))
#define OCI_OFFSET_PTR_(T, member, type)                                                           \
	(offsetof(T, member) +                                                                     \
	 OCI_CHECK_(OCI_IS_(T, member, const type *) || OCI_IS_(T, member, type *)))
/* Lists have unnamed types of their own: check the shape. */
#define OCI_OFFSET_LIST_(T, member)                                                                \
	(offsetof(T, member) +                                                                     \
	 OCI_CHECK_(offsetof(__typeof__(((T *)0)->member), v) == 0 &&                              \
		    offsetof(__typeof__(((T *)0)->member), n) == sizeof(void *) &&                 \
		    sizeof(((T *)0)->member) == 2 * sizeof(void *)))

#define OCI_ROW_(json, offset_, kind_, type_, flags_)                                              \
	{                                                                                          \
		.name = (json), .len = sizeof(json) - 1, .kind = (kind_), .flags = (flags_),       \
		.offset = (offset_), .type = (type_)                                               \
	}
#define OCI_SCALAR_(T, json, m, ctype, kind, flags)                                                \
	OCI_ROW_(json, OCI_OFFSET_(T, m, ctype), kind, NULL, flags)
#define OCI_OPT_(T, json, m, ctype, kind, flags)                                                   \
	OCI_ROW_(json, OCI_OFFSET_PTR_(T, m, ctype), kind, NULL, (flags) | OCI_PTR)

#define OCI_STR(T, json, m, flags)                                                                 \
	OCI_ROW_(json, OCI_OFFSET_PTR_(T, m, char), OCI_KIND_STR, NULL, flags)
#define OCI_BOOL(T, json, m, flags) OCI_SCALAR_(T, json, m, bool, OCI_KIND_BOOL, flags)
#define OCI_I32(T, json, m, flags)  OCI_SCALAR_(T, json, m, int32_t, OCI_KIND_I32, flags)
#define OCI_I64(T, json, m, flags)  OCI_SCALAR_(T, json, m, int64_t, OCI_KIND_I64, flags)
#define OCI_U16(T, json, m, flags)  OCI_SCALAR_(T, json, m, uint16_t, OCI_KIND_U16, flags)
#define OCI_U32(T, json, m, flags)  OCI_SCALAR_(T, json, m, uint32_t, OCI_KIND_U32, flags)
#define OCI_U64(T, json, m, flags)  OCI_SCALAR_(T, json, m, uint64_t, OCI_KIND_U64, flags)
/* The member is a pointer: NULL when absent, so that absence differs from zero. */
#define OCI_OPT_BOOL(T, json, m, flags) OCI_OPT_(T, json, m, bool, OCI_KIND_BOOL, flags)
#define OCI_OPT_I32(T, json, m, flags)  OCI_OPT_(T, json, m, int32_t, OCI_KIND_I32, flags)
#define OCI_OPT_I64(T, json, m, flags)  OCI_OPT_(T, json, m, int64_t, OCI_KIND_I64, flags)
#define OCI_OPT_U16(T, json, m, flags)  OCI_OPT_(T, json, m, uint16_t, OCI_KIND_U16, flags)
#define OCI_OPT_U32(T, json, m, flags)  OCI_OPT_(T, json, m, uint32_t, OCI_KIND_U32, flags)
#define OCI_OPT_U64(T, json, m, flags)  OCI_OPT_(T, json, m, uint64_t, OCI_KIND_U64, flags)

#define OCI_STRV(T, json, m, flags)     OCI_SCALAR_(T, json, m, struct oci_strv, OCI_KIND_STRV, flags)
#define OCI_MAP(T, json, m, flags)      OCI_SCALAR_(T, json, m, struct oci_map, OCI_KIND_MAP, flags)
#define OCI_U32V(T, json, m, flags)                                                                \
	OCI_ROW_(json, OCI_OFFSET_LIST_(T, m), OCI_KIND_U32V, NULL, flags)

/* Inline structure / pointer to one / list of them / list of them made from an object's members. */
#define OCI_OBJ(T, json, m, type, flags) OCI_ROW_(json, offsetof(T, m), OCI_KIND_OBJ, type, flags)
#define OCI_OPT_OBJ(T, json, m, type, flags)                                                       \
	OCI_ROW_(json, offsetof(T, m), OCI_KIND_OBJ, type, (flags) | OCI_PTR)
#define OCI_LIST(T, json, m, type, flags)                                                          \
	OCI_ROW_(json, OCI_OFFSET_LIST_(T, m), OCI_KIND_LIST, type, flags)
#define OCI_DICT(T, json, m, type, flags)                                                          \
	OCI_ROW_(json, OCI_OFFSET_LIST_(T, m), OCI_KIND_DICT, type, flags)
/* An object whose members lie in the surrounding structure: its rows' offsets count from there. */
#define OCI_FLAT(json, type, flags) OCI_ROW_(json, 0, OCI_KIND_OBJ, type, flags)

/*
 * Decodes one object. *ret (type->size bytes, need not be initialised) is written on success
 * only; what it points to is in the arena. 0, -EINVAL, -EFBIG or -ENOMEM; *err holds the JSON path
 * and `src->what` as the room.
 */
int oci_table_decode(const struct oci_type *type, const struct lr_json_source *src,
		     struct lr_arena *arena, void *ret, struct lr_err *err) LR_MUST_CHECK;

/* Writes the object as the next value of the writer, which keeps any failure. */
void oci_table_encode(const struct oci_type *type, const void *object, struct lr_json_writer *w);

/* The whole text at once; NULL when out of memory. */
char *oci_table_encode_text(const struct oci_type *type, const void *object, bool indent,
			    struct lr_arena *arena, size_t *len);

#endif
