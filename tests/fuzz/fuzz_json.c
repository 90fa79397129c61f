/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes into the JSON reader; what it takes is written out again, and must then read and
 * write to the same text: reader and writer agree on strings, numbers and nesting.
 */
#include "src/base/json.h"
#include "tests/fuzz/fuzz.h"

struct echo {
	struct lr_json_writer *w;
	unsigned depth;
	uint64_t is_list;
};

static int echo_value(void *arg, const struct lr_json_value *v, struct lr_err *err)
{
	struct echo *e = arg;
	bool list = v->type == LR_JSON_LIST;

	switch (v->type) {
	case LR_JSON_NULL:
		lr_json_null(e->w);
		return 0;
	case LR_JSON_BOOL:
		lr_json_bool(e->w, v->boolean);
		return 0;
	case LR_JSON_NUMBER:
		lr_json_raw(e->w, v->text, v->len);
		return 0;
	case LR_JSON_STRING:
		FUZZ_CHECK(!memchr(v->text, '\0', v->len));
		lr_json_strn(e->w, v->text, v->len);
		return 0;
	default:
		break;
	}
	FUZZ_CHECK(e->depth < LR_JSON_DEPTH);
	e->is_list &= ~(UINT64_C(1) << e->depth);
	e->is_list |= (uint64_t)list << e->depth;
	e->depth++;
	if (list)
		lr_json_list_open(e->w);
	else
		lr_json_obj_open(e->w);
	return 0;
}

static int echo_key(void *arg, const char *key, size_t len, struct lr_err *err)
{
	struct echo *e = arg;
	char *copy = strndup(key, len);

	FUZZ_CHECK(copy && strlen(copy) == len);
	lr_json_key(e->w, copy);
	free(copy);
	return 0;
}

static int echo_end(void *arg, struct lr_err *err)
{
	struct echo *e = arg;

	FUZZ_CHECK(e->depth > 0);
	e->depth--;
	if (e->is_list >> e->depth & 1)
		lr_json_list_close(e->w);
	else
		lr_json_obj_close(e->w);
	return 0;
}

static char *echo(const char *text, size_t len, bool indent, struct lr_arena *a, size_t *ret_len)
{
	static const struct lr_json_handler handler = {echo_value, echo_key, echo_end};
	struct lr_json_source src = {.text = text, .len = len, .max = 1u << 20, .what = "fuzz"};
	struct echo e = {.w = lr_json_writer_new(a, indent)};
	struct lr_err err = {0};
	int rc = lr_json_read(&src, &handler, &e, a, &err);
	char *out;

	FUZZ_CHECK(rc == 0 || (rc < 0 && err.code == -rc && err.msg[0]));
	if (rc < 0)
		return NULL;
	out = lr_json_finish(e.w, ret_len);
	FUZZ_CHECK(out && strlen(out) == *ret_len);
	return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	size_t len, pretty_len, again_len;
	char *text = echo((const char *)data, size, false, a, &len);

	if (!text)
		return 0;
	char *pretty = echo(text, len, true, a, &pretty_len);
	FUZZ_CHECK(pretty);
	char *again = echo(pretty, pretty_len, false, a, &again_len);
	FUZZ_CHECK(again && again_len == len && memcmp(again, text, len) == 0);
	return 0;
}
