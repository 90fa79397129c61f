/* SPDX-License-Identifier: Apache-2.0 */
/* The table-driven decoder and encoder: every kind, every refusal. */
#include "libocispec/table.h"
#include "libocispec/tables.h"

#include <errno.h>

#include "tests/unit/test.h"

struct part {
	const char *key;
	uint32_t x;
};

struct inner {
	bool on;
	struct part *unused; /* no row: stays zero */
};

struct sample {
	const char *str;
	char *str2;
	bool b;
	int32_t i32;
	int64_t i64;
	uint16_t u16;
	uint32_t u32;
	uint64_t u64;
	const bool *ob;
	const int32_t *oi32;
	const int64_t *oi64;
	const uint16_t *ou16;
	const uint32_t *ou32;
	uint64_t *ou64;
	struct oci_strv strv;
	struct oci_map map;
	struct {
		uint32_t *v;
		size_t n;
	} nums;
	struct inner inner;
	const struct inner *pinner;
	struct {
		struct part *v;
		size_t n;
	} list, dict;
	bool flat_on;
};

static const struct oci_field part_fields[] = {
	OCI_U32(struct part, "x", x, OCI_REQUIRED | OCI_ALWAYS),
};
static const struct oci_type part_type = OCI_TYPE("part", struct part, part_fields);
static const struct oci_type keyed_type = OCI_TYPE_KEYED("keyed", struct part, key, part_fields);

static const struct oci_field inner_fields[] = {
	OCI_BOOL(struct inner, "on", on, 0),
};
static const struct oci_type inner_type = OCI_TYPE("inner", struct inner, inner_fields);

static const struct oci_field flat_fields[] = {
	OCI_BOOL(struct sample, "on", flat_on, 0),
};
static const struct oci_type flat_type = OCI_TYPE("flat", struct sample, flat_fields);

static const struct oci_field sample_fields[] = {
	OCI_STR(struct sample, "str", str, 0),
	OCI_STR(struct sample, "str2", str2, 0),
	OCI_BOOL(struct sample, "b", b, 0),
	OCI_I32(struct sample, "i32", i32, 0),
	OCI_I64(struct sample, "i64", i64, 0),
	OCI_U16(struct sample, "u16", u16, 0),
	OCI_U32(struct sample, "u32", u32, 0),
	OCI_U64(struct sample, "u64", u64, 0),
	OCI_OPT_BOOL(struct sample, "ob", ob, 0),
	OCI_OPT_I32(struct sample, "oi32", oi32, 0),
	OCI_OPT_I64(struct sample, "oi64", oi64, 0),
	OCI_OPT_U16(struct sample, "ou16", ou16, 0),
	OCI_OPT_U32(struct sample, "ou32", ou32, 0),
	OCI_OPT_U64(struct sample, "ou64", ou64, 0),
	OCI_STRV(struct sample, "strv", strv, 0),
	OCI_MAP(struct sample, "map", map, 0),
	OCI_U32V(struct sample, "nums", nums, 0),
	OCI_OBJ(struct sample, "inner", inner, &inner_type, 0),
	OCI_OPT_OBJ(struct sample, "pinner", pinner, &inner_type, 0),
	OCI_LIST(struct sample, "list", list, &part_type, 0),
	OCI_DICT(struct sample, "dict", dict, &keyed_type, 0),
	OCI_FLAT("flat", &flat_type, 0),
};
static const struct oci_type sample_type = OCI_TYPE("sample", struct sample, sample_fields);

static const struct oci_field always_fields[] = {
	OCI_STR(struct sample, "str", str, OCI_ALWAYS),
	OCI_BOOL(struct sample, "b", b, OCI_ALWAYS),
	OCI_U16(struct sample, "u16", u16, OCI_ALWAYS),
	OCI_STRV(struct sample, "strv", strv, OCI_ALWAYS),
	OCI_MAP(struct sample, "map", map, OCI_ALWAYS),
	OCI_U32V(struct sample, "nums", nums, OCI_ALWAYS),
	OCI_OBJ(struct sample, "inner", inner, &inner_type, OCI_ALWAYS),
	OCI_LIST(struct sample, "list", list, &part_type, OCI_ALWAYS),
	OCI_DICT(struct sample, "dict", dict, &keyed_type, OCI_ALWAYS),
	OCI_OPT_BOOL(struct sample, "ob", ob, OCI_ALWAYS),
};
static const struct oci_type always_type = OCI_TYPE("always", struct sample, always_fields);

static struct lr_arena *arena;
static struct lr_err err;
static struct sample s;

static int decode_as(const struct oci_type *type, const char *text, void *ret)
{
	struct lr_json_source src = {.text = text, .len = strlen(text), .what = "test"};

	lr_arena_free(arena);
	arena = lr_arena_new();
	memset(&err, 0, sizeof(err));
	return oci_table_decode(type, &src, arena, ret, &err);
}

static int decode(const char *text)
{
	memset(&s, 0x5a, sizeof(s));
	return decode_as(&sample_type, text, &s);
}

static void done(void)
{
	lr_arena_free(arena);
	arena = NULL;
}

#define REFUSES(json, at, part)                                                                    \
	do {                                                                                       \
		CHECK_INT(decode(json), -EINVAL);                                                  \
		CHECK_STR(err.path, at);                                                           \
		CHECK_HAS(err.msg, part);                                                          \
		CHECK_INT(*(unsigned char *)&s, 0x5a); /* untouched */                             \
	} while (0)

static const char full[] =
	"{\"str\":\"a\",\"str2\":\"\",\"b\":true,\"i32\":-2147483648,\"i64\":-9223372036854775808,"
	"\"u16\":65535,\"u32\":4294967295,\"u64\":18446744073709551615,\"ob\":false,\"oi32\":0,"
	"\"oi64\":-1,\"ou16\":0,\"ou32\":1,\"ou64\":0,\"strv\":[\"x\",\"\",\"y\",\"z\",\"w\"],"
	"\"map\":{\"k\":\"v\",\"\":\"\"},\"nums\":[0,1,2,3,4,4294967295],\"inner\":{\"on\":true},"
	"\"pinner\":{},\"list\":[{\"x\":0},{\"x\":1},{\"x\":2},{\"x\":3},{\"x\":4}],"
	"\"dict\":{\"b\":{\"x\":2},\"a\":{\"x\":1}},\"flat\":{\"on\":true}}";

TEST(every_kind)
{
	REQUIRE(decode(full) == 0);
	CHECK_STR(s.str, "a");
	CHECK_STR(s.str2, "");
	CHECK(s.b && s.i32 == INT32_MIN && s.i64 == INT64_MIN);
	CHECK(s.u16 == UINT16_MAX && s.u32 == UINT32_MAX && s.u64 == UINT64_MAX);
	REQUIRE(s.ob && s.oi32 && s.oi64 && s.ou16 && s.ou32 && s.ou64);
	CHECK(!*s.ob && *s.oi32 == 0 && *s.oi64 == -1 && *s.ou16 == 0 && *s.ou32 == 1);
	REQUIRE(s.strv.n == 5 && s.strv.v);
	CHECK_STR(s.strv.v[4], "w");
	CHECK(s.strv.v[5] == NULL);
	REQUIRE(s.map.n == 2);
	CHECK_STR(s.map.v[0].key, "k");
	CHECK_STR(s.map.v[0].value, "v");
	CHECK_STR(s.map.v[1].key, "");
	REQUIRE(s.nums.n == 6);
	CHECK(s.nums.v[5] == UINT32_MAX);
	CHECK(s.inner.on && s.pinner && !s.pinner->on && !s.pinner->unused);
	REQUIRE(s.list.n == 5);
	CHECK_INT(s.list.v[4].x, 4);
	CHECK(s.list.v[4].key == NULL);
	REQUIRE(s.dict.n == 2);
	CHECK_STR(s.dict.v[0].key, "b");
	CHECK_INT(s.dict.v[0].x, 2);
	CHECK_STR(s.dict.v[1].key, "a");
	CHECK(s.flat_on);
	CHECK_STR(oci_table_encode_text(&sample_type, &s, false, arena, NULL), full);
	done();
}

TEST(absence)
{
	static const char *const texts[] = {
		"{}",
		"{\"str\":null,\"b\":null,\"i32\":null,\"ou64\":null,\"strv\":null,\"map\":null,"
		"\"nums\":null,\"inner\":null,\"pinner\":null,\"list\":null,\"dict\":null}",
		"{\"unknown\":{\"str\":\"x\",\"a\":[1,{\"str\":1}]},\"Str\":\"x\",\"st\":1,\"x\":[]"
		"}",
	};
	static const struct sample zero;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		CHECK_INT(decode(texts[i]), 0);
		CHECK(memcmp(&s, &zero, sizeof(s)) == 0);
		CHECK_STR(oci_table_encode_text(&sample_type, &s, false, arena, NULL), "{}");
	}
	/* Present but empty. */
	REQUIRE(decode("{\"strv\":[],\"map\":{},\"list\":[],\"dict\":{},\"inner\":{}}") == 0);
	REQUIRE(s.strv.n == 0 && s.strv.v);
	CHECK(s.strv.v[0] == NULL);
	CHECK_STR(oci_table_encode_text(&sample_type, &s, false, arena, NULL), "{}");
	CHECK_STR(oci_table_encode_text(&always_type, &zero, false, arena, NULL),
		  "{\"str\":\"\",\"b\":false,\"u16\":0,\"strv\":[],\"map\":{},\"nums\":[],"
		  "\"inner\":{},\"list\":[],\"dict\":{}}");
	done();
}

TEST(order_does_not_matter)
{
	REQUIRE(decode("{\"flat\":{\"on\":true},\"?\":0,\"u64\":3,\"str\":\"a\",\"list\":[{\"?\":[]"
		       ","
		       "\"x\":9}]}") == 0);
	CHECK(s.flat_on && s.u64 == 3 && s.list.n == 1 && s.list.v[0].x == 9);
	CHECK_STR(s.str, "a");
	done();
}

TEST(numbers)
{
	REFUSES("{\"i32\":2147483648}", "i32", "2147483648 is out of range");
	REFUSES("{\"oi32\":-2147483649}", "oi32", "-2147483649 is out of range");
	REFUSES("{\"i64\":9223372036854775808}", "i64", "out of range");
	REFUSES("{\"i64\":-9223372036854775809}", "i64", "out of range");
	REFUSES("{\"u16\":65536}", "u16", "65536 is out of range (0 to 65535)");
	REFUSES("{\"ou32\":4294967296}", "ou32", "out of range (0 to 4294967295)");
	REFUSES("{\"u32\":-1}", "u32", "-1 is out of range");
	REFUSES("{\"u64\":18446744073709551616}", "u64", "out of range");
	REFUSES("{\"nums\":[1,4294967296]}", "nums[1]", "out of range");
	REFUSES("{\"u32\":1.5}", "u32", "expected a whole number, got 1.5");
	REFUSES("{\"u32\":1e3}", "u32", "expected a whole number, got 1e3");
	REFUSES("{\"u32\":1.0}", "u32", "expected a whole number, got 1.0");
	REFUSES("{\"u64\":123456789012345678901234567890123456789012345}", "u64", "...");
	CHECK_INT(decode("{\"i32\":-0,\"u32\":-0,\"i64\":9223372036854775807}"), 0);
	CHECK(s.i32 == 0 && s.u32 == 0 && s.i64 == INT64_MAX);
	done();
}

TEST(required_and_duplicate)
{
	REFUSES("{\"list\":[{\"x\":1},{}]}", "list[1]", "required property \"x\" is missing");
	REFUSES("{\"list\":[{\"x\":null}]}", "list[0]", "required property \"x\" is missing");
	REFUSES("{\"dict\":{\"a.b\":{}}}", "dict[\"a.b\"]", "required property");
	REFUSES("{\"str\":\"a\",\"b\":true,\"str\":\"a\"}", "str", "duplicate");
	REFUSES("{\"str\":null,\"str\":\"a\"}", "str", "duplicate");
	REFUSES("{\"map\":{\"a\":\"1\",\"b\":\"2\",\"a\":\"1\"}}", "map.a", "duplicate");
	REFUSES("{\"dict\":{\"a\":{\"x\":1},\"a\":{\"x\":1}}}", "dict.a", "duplicate");
	REFUSES("{\"list\":[{\"x\":1,\"x\":1}]}", "list[0].x", "duplicate");
	REFUSES("{\"?\":1,\"?\":1}", "[\"?\"]", "duplicate");
	REFUSES("{\"no\":{\"a\":[{\"b\":1,\"b\":1}]}}", "no.a[0].b", "duplicate");
	done();
}

TEST(shapes)
{
	REFUSES("{\"strv\":[\"a\",1]}", "strv[1]", "expected a string, got a number");
	REFUSES("{\"strv\":[null]}", "strv[0]", "expected a string, got null");
	REFUSES("{\"strv\":[[\"a\"]]}", "strv[0]", "expected a string, got a list");
	REFUSES("{\"nums\":[\"1\"]}", "nums[0]", "expected a number, got a string");
	REFUSES("{\"map\":{\"k\":1}}", "map.k", "expected a string, got a number");
	REFUSES("{\"map\":{\"k\":null}}", "map.k", "expected a string, got null");
	REFUSES("{\"list\":[1]}", "list[0]", "expected an object, got a number");
	REFUSES("{\"list\":[null]}", "list[0]", "expected an object, got null");
	REFUSES("{\"dict\":{\"d\":[]}}", "dict.d", "expected an object, got a list");
	REFUSES("[]", "", "expected an object, got a list");
	REFUSES("null", "", "expected an object, got null");
	REFUSES("\"x\"", "", "expected an object, got a string");
	done();
}

/* Every row of every table refuses every type but its own, and says where. */
static const char *const wrong_values[] = {"true", "1", "\"s\"", "{}", "[]"};

static const char *right_value(const struct oci_field *f)
{
	switch ((enum oci_kind)f->kind) {
	case OCI_KIND_STR:
		return "\"s\"";
	case OCI_KIND_BOOL:
		return "true";
	case OCI_KIND_STRV:
	case OCI_KIND_U32V:
	case OCI_KIND_LIST:
		return "[]";
	case OCI_KIND_MAP:
	case OCI_KIND_DICT:
	case OCI_KIND_OBJ:
		return "{}";
	default:
		return "1";
	}
}

static size_t check_types(const struct oci_type *type)
{
	char text[256], buf[4096];
	size_t checked = 0;

	CHECK(type->n <= 64 && type->size <= sizeof(buf));
	for (unsigned i = 0; i < type->n; i++) {
		const struct oci_field *f = &type->fields[i];

		CHECK_INT(f->len, strlen(f->name));
		CHECK(f->offset < type->size);
		for (unsigned k = 0; k < i; k++)
			CHECK(strcmp(type->fields[k].name, f->name) != 0);
		for (size_t w = 0; w < sizeof(wrong_values) / sizeof(wrong_values[0]); w++) {
			if (strcmp(wrong_values[w], right_value(f)) == 0)
				continue;
			snprintf(text, sizeof(text), "{\"%s\":%s}", f->name, wrong_values[w]);
			CHECK_INT(decode_as(type, text, buf), -EINVAL);
			CHECK_STR(err.path, f->name);
			CHECK_HAS(err.msg, "expected ");
			checked++;
		}
		if (f->type)
			checked += check_types(f->type);
	}
	return checked;
}

TEST(wrong_types)
{
	CHECK_INT(check_types(&sample_type), 4 * (22 + 1 + 1 + 1 + 1 + 1));
	CHECK(check_types(&oci_config_type) > 500);
	CHECK(check_types(&oci_state_type) > 20);
	CHECK(check_types(&oci_features_type) > 80);
	CHECK(check_types(&oci_container_process_state_type) > 20);
	done();
}
