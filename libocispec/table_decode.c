/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libocispec: the decoder that the tables drive. It is a stack of frames, one for each open
 * object or list that goes into a structure; what nobody wants is counted through by `skip`.
 */
#define LR_ROOM "ocispec"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "libocispec/table.h"

/* Every list member has this layout; the macros of table.h check it. */
struct any_list {
	void *v;
	size_t n;
};

enum frame_kind { FRAME_OBJECT, FRAME_STRV, FRAME_U32V, FRAME_MAP, FRAME_LIST, FRAME_DICT };

struct frame {
	enum frame_kind kind;
	const struct oci_type *type;   /* OBJECT: its own; LIST, DICT: of the elements */
	void *target;                  /* OBJECT: the structure; others: the list member */
	const struct oci_field *field; /* OBJECT: of the next value; NULL: skip it */
	uint64_t seen;                 /* OBJECT: bit i: row i occurred */
	uint64_t filled;               /* OBJECT: bit i: row i had a value other than null */
	unsigned next;                 /* OBJECT: the row to try first */
	const char *key;               /* MAP, DICT: of the next value */
};

struct decoder {
	struct lr_arena *arena;
	const char *what;
	const struct oci_type *root_type;
	void *root;
	bool started;
	unsigned skip; /* open objects and lists that nobody wants */
	unsigned depth;
	struct frame frames[LR_JSON_DEPTH];
};

static int out_of_memory(const struct decoder *d, struct lr_err *err)
{
	return lr_err_set(err, ENOMEM, d->what, false, "out of memory");
}

static int wrong_type(const struct decoder *d, const char *expected, const struct lr_json_value *v,
		      struct lr_err *err)
{
	return lr_err_set(err, EINVAL, d->what, false, "expected %s, got %s", expected,
			  lr_json_type_name(v->type));
}

static int push(struct decoder *d, enum frame_kind kind, const struct oci_type *type, void *target)
{
	/* The reader has checked the depth: one frame at most for each open object or list. */
	d->frames[d->depth++] = (struct frame){.kind = kind, .type = type, .target = target};
	return 0;
}

/* ---- scalars --------------------------------------------------------------------------- */

static int bad_number(const struct decoder *d, int rc, const struct lr_json_value *v,
		      const char *range, struct lr_err *err)
{
	int len = v->len > 40 ? 40 : (int)v->len;
	const char *cut = v->len > 40 ? "..." : "";

	if (rc == -ERANGE)
		return lr_err_set(err, EINVAL, d->what, false, "%.*s%s is out of range (%s)", len,
				  v->text, cut, range);
	return lr_err_set(err, EINVAL, d->what, false, "expected a whole number, got %.*s%s", len,
			  v->text, cut);
}

union number {
	bool b;
	int32_t i32;
	int64_t i64;
	uint16_t u16;
	uint32_t u32;
	uint64_t u64;
};

/* Parses into *n; *size is that of the member. */
static int parse_number(const struct decoder *d, enum oci_kind kind, const struct lr_json_value *v,
			union number *n, size_t *size, struct lr_err *err)
{
	const char *range;
	int64_t i = 0;
	uint64_t u = 0;
	int rc;

	if (v->type != LR_JSON_NUMBER)
		return wrong_type(d, "a number", v, err);
	switch (kind) {
	case OCI_KIND_I32:
		rc = lr_json_int_of(v->text, v->len, INT32_MIN, INT32_MAX, &i);
		range = "-2147483648 to 2147483647";
		n->i32 = (int32_t)i;
		*size = sizeof(n->i32);
		break;
	case OCI_KIND_I64:
		rc = lr_json_int_of(v->text, v->len, INT64_MIN, INT64_MAX, &i);
		range = "-9223372036854775808 to 9223372036854775807";
		n->i64 = i;
		*size = sizeof(n->i64);
		break;
	case OCI_KIND_U16:
		rc = lr_json_uint_of(v->text, v->len, UINT16_MAX, &u);
		range = "0 to 65535";
		n->u16 = (uint16_t)u;
		*size = sizeof(n->u16);
		break;
	case OCI_KIND_U32:
		rc = lr_json_uint_of(v->text, v->len, UINT32_MAX, &u);
		range = "0 to 4294967295";
		n->u32 = (uint32_t)u;
		*size = sizeof(n->u32);
		break;
	default:
		rc = lr_json_uint_of(v->text, v->len, UINT64_MAX, &u);
		range = "0 to 18446744073709551615";
		n->u64 = u;
		*size = sizeof(n->u64);
		break;
	}
	return rc < 0 ? bad_number(d, rc, v, range, err) : 0;
}

static int decode_string(const struct decoder *d, const struct lr_json_value *v, const char **ret,
			 struct lr_err *err)
{
	if (v->type != LR_JSON_STRING)
		return wrong_type(d, "a string", v, err);
	*ret = lr_strndup(d->arena, v->text, v->len);
	return *ret ? 0 : out_of_memory(d, err);
}

/* Booleans and numbers, plain or by pointer. */
static int decode_scalar(const struct decoder *d, const struct oci_field *f, char *member,
			 const struct lr_json_value *v, struct lr_err *err)
{
	union number n = {0};
	size_t size = sizeof(n.b);
	int rc = 0;

	if (f->kind == OCI_KIND_BOOL) {
		if (v->type != LR_JSON_BOOL)
			return wrong_type(d, "a boolean", v, err);
		n.b = v->boolean;
	} else {
		rc = parse_number(d, f->kind, v, &n, &size, err);
	}
	if (rc < 0)
		return rc;
	if (f->flags & OCI_PTR) {
		void *box = lr_alloc(d->arena, size);

		if (!box)
			return out_of_memory(d, err);
		memcpy(box, &n, size);
		memcpy(member, &box, sizeof(box));
	} else {
		memcpy(member, &n, size);
	}
	return 0;
}

/* ---- values by where they stand -------------------------------------------------------- */

static int start_list(struct decoder *d, const struct oci_field *f, char *member,
		      const struct lr_json_value *v, struct lr_err *err)
{
	enum frame_kind kind = f->kind == OCI_KIND_STRV   ? FRAME_STRV
			       : f->kind == OCI_KIND_U32V ? FRAME_U32V
							  : FRAME_LIST;

	if (v->type != LR_JSON_LIST)
		return wrong_type(d, "a list", v, err);
	return push(d, kind, f->type, member);
}

static int start_object(struct decoder *d, const struct oci_field *f, char *member,
			const struct lr_json_value *v, struct lr_err *err)
{
	if (v->type != LR_JSON_OBJECT)
		return wrong_type(d, "an object", v, err);
	if (f->kind == OCI_KIND_MAP)
		return push(d, FRAME_MAP, NULL, member);
	if (f->kind == OCI_KIND_DICT)
		return push(d, FRAME_DICT, f->type, member);
	if (f->flags & OCI_PTR) {
		void *object = lr_alloc(d->arena, f->type->size);

		if (!object)
			return out_of_memory(d, err);
		memcpy(member, &object, sizeof(object));
		return push(d, FRAME_OBJECT, f->type, object);
	}
	return push(d, FRAME_OBJECT, f->type, member);
}

static int member_value(struct decoder *d, struct frame *frame, const struct lr_json_value *v,
			struct lr_err *err)
{
	const struct oci_field *f = frame->field;
	char *member;
	const char *s;
	int rc;

	if (!f) {
		d->skip = v->type == LR_JSON_OBJECT || v->type == LR_JSON_LIST;
		return 0;
	}
	frame->field = NULL;
	if (v->type == LR_JSON_NULL)
		return 0;
	frame->filled |= UINT64_C(1) << (f - frame->type->fields);
	member = (char *)frame->target + f->offset;
	switch ((enum oci_kind)f->kind) {
	case OCI_KIND_STR:
		rc = decode_string(d, v, &s, err);
		if (rc == 0)
			memcpy(member, &s, sizeof(s));
		return rc;
	case OCI_KIND_STRV:
	case OCI_KIND_U32V:
	case OCI_KIND_LIST:
		return start_list(d, f, member, v, err);
	case OCI_KIND_MAP:
	case OCI_KIND_OBJ:
	case OCI_KIND_DICT:
		return start_object(d, f, member, v, err);
	default:
		return decode_scalar(d, f, member, v, err);
	}
}

/* Room for one more element of `size` bytes, zeroed; NULL when out of memory. */
static void *append(const struct decoder *d, void *target, size_t size)
{
	struct any_list list;
	char *element;

	memcpy(&list, target, sizeof(list));
	list.v = lr_grow(d->arena, list.v, list.n, size);
	if (!list.v)
		return NULL;
	element = (char *)list.v + list.n * size;
	memset(element, 0, size);
	list.n++;
	memcpy(target, &list, sizeof(list));
	return element;
}

static int element_value(struct decoder *d, struct frame *frame, const struct lr_json_value *v,
			 struct lr_err *err)
{
	union number n = {0};
	size_t size = 0;
	void *slot;
	const char *s;
	int rc;

	switch (frame->kind) {
	case FRAME_STRV:
		rc = decode_string(d, v, &s, err);
		if (rc < 0)
			return rc;
		slot = append(d, frame->target, sizeof(s));
		if (!slot)
			return out_of_memory(d, err);
		memcpy(slot, &s, sizeof(s));
		return 0;
	case FRAME_U32V:
		rc = parse_number(d, OCI_KIND_U32, v, &n, &size, err);
		if (rc < 0)
			return rc;
		slot = append(d, frame->target, size);
		if (!slot)
			return out_of_memory(d, err);
		memcpy(slot, &n, size);
		return 0;
	case FRAME_MAP:
		rc = decode_string(d, v, &s, err);
		if (rc < 0)
			return rc;
		slot = append(d, frame->target, sizeof(struct oci_pair));
		if (!slot)
			return out_of_memory(d, err);
		*(struct oci_pair *)slot = (struct oci_pair){frame->key, s};
		return 0;
	default:
		if (v->type != LR_JSON_OBJECT)
			return wrong_type(d, "an object", v, err);
		slot = append(d, frame->target, frame->type->size);
		if (!slot)
			return out_of_memory(d, err);
		if (frame->kind == FRAME_DICT)
			memcpy((char *)slot + frame->type->key, &frame->key, sizeof(frame->key));
		return push(d, FRAME_OBJECT, frame->type, slot);
	}
}

/* ---- events ---------------------------------------------------------------------------- */

static int on_value(void *arg, const struct lr_json_value *v, struct lr_err *err)
{
	struct decoder *d = arg;
	struct frame *frame;

	if (d->skip) {
		d->skip += v->type == LR_JSON_OBJECT || v->type == LR_JSON_LIST;
		return 0;
	}
	if (!d->started) {
		if (v->type != LR_JSON_OBJECT)
			return wrong_type(d, "an object", v, err);
		d->started = true;
		return push(d, FRAME_OBJECT, d->root_type, d->root);
	}
	frame = &d->frames[d->depth - 1];
	return frame->kind == FRAME_OBJECT ? member_value(d, frame, v, err)
					   : element_value(d, frame, v, err);
}

/*
 * Programs write properties in the order of the specification's Go types, which is that of our
 * tables: the search starts where the last one ended and mostly succeeds at once.
 */
static const struct oci_field *find_field(struct frame *frame, const char *key, size_t len)
{
	const struct oci_type *type = frame->type;
	unsigned i = frame->next;

	for (unsigned tried = 0; tried < type->n; tried++, i++) {
		if (i >= type->n)
			i = 0;
		if (type->fields[i].len == len && memcmp(type->fields[i].name, key, len) == 0) {
			frame->next = i + 1;
			return &type->fields[i];
		}
	}
	return NULL;
}

static int on_key(void *arg, const char *key, size_t len, struct lr_err *err)
{
	struct decoder *d = arg;
	struct frame *frame = &d->frames[d->depth - 1];
	uint64_t bit;

	if (d->skip)
		return 0;
	if (frame->kind != FRAME_OBJECT) {
		frame->key = lr_strndup(d->arena, key, len);
		return frame->key ? 0 : out_of_memory(d, err);
	}
	frame->field = find_field(frame, key, len);
	if (!frame->field)
		return 0;
	bit = UINT64_C(1) << (frame->field - frame->type->fields);
	if (frame->seen & bit)
		return lr_err_set(err, EINVAL, d->what, false, "duplicate property");
	frame->seen |= bit;
	return LR_JSON_KEY_CHECKED;
}

/* execve(2) and friends want the NULL behind the last string, also when there is none. */
static int terminate(const struct decoder *d, void *target, struct lr_err *err)
{
	struct any_list list;
	const char *end = NULL;

	memcpy(&list, target, sizeof(list));
	list.v = lr_grow(d->arena, list.v, list.n, sizeof(end));
	if (!list.v)
		return out_of_memory(d, err);
	memcpy((char *)list.v + list.n * sizeof(end), &end, sizeof(end));
	memcpy(target, &list, sizeof(list));
	return 0;
}

static int check_required(const struct decoder *d, const struct frame *frame, struct lr_err *err)
{
	const struct oci_type *type = frame->type;

	for (unsigned i = 0; i < type->n; i++)
		if ((type->fields[i].flags & OCI_REQUIRED) && !(frame->filled >> i & 1))
			return lr_err_set(err, EINVAL, d->what, false,
					  "the required property \"%s\" is missing",
					  type->fields[i].name);
	return 0;
}

static int on_end(void *arg, struct lr_err *err)
{
	struct decoder *d = arg;
	struct frame *frame;

	if (d->skip) {
		d->skip--;
		return 0;
	}
	frame = &d->frames[--d->depth];
	if (frame->kind == FRAME_STRV)
		return terminate(d, frame->target, err);
	return frame->kind == FRAME_OBJECT ? check_required(d, frame, err) : 0;
}

int oci_table_decode(const struct oci_type *type, const struct lr_json_source *src,
		     struct lr_arena *arena, void *ret, struct lr_err *err)
{
	static const struct lr_json_handler handler = {
		.value = on_value, .key = on_key, .end = on_end};
	struct decoder d = {.arena = arena, .what = src->what, .root_type = type};
	int rc;

	d.root = lr_alloc(arena, type->size);
	if (!d.root)
		return out_of_memory(&d, err);
	rc = lr_json_read(src, &handler, &d, arena, err);
	if (rc < 0)
		return rc;
	memcpy(ret, d.root, type->size);
	return 0;
}
