/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base: JSON over yajl; see json.h. yajl sees a text only after one pass here has found it to be
 * UTF-8 with sound escapes: yajl itself lets overlong forms and lone surrogates pass.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yajl/yajl_gen.h>
#include <yajl/yajl_parse.h>

#include "src/base/json.h"
#include "src/base/json_alloc.h"
#include "src/base/str.h"

/* ---- UTF-8 and escapes ----------------------------------------------------------------- */

/* Length of the UTF-8 sequence at s (Unicode 15, table 3-7), 0 when it is ill-formed. */
static size_t utf8_sequence(const unsigned char *s, size_t left)
{
	unsigned char lead = s[0], low = 0x80, high = 0xbf;
	size_t n;

	if (lead < 0x80)
		return 1;
	if (lead >= 0xc2 && lead <= 0xdf)
		n = 2;
	else if (lead >= 0xe0 && lead <= 0xef)
		n = 3;
	else if (lead >= 0xf0 && lead <= 0xf4)
		n = 4;
	else
		return 0;
	if (left < n)
		return 0;
	if (lead == 0xe0)
		low = 0xa0; /* below: overlong */
	else if (lead == 0xed)
		high = 0x9f; /* above: surrogates */
	else if (lead == 0xf0)
		low = 0x90; /* below: overlong */
	else if (lead == 0xf4)
		high = 0x8f; /* above: beyond U+10FFFF */
	if (s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

/* Offset of the first byte that is not part of well-formed UTF-8; len when there is none. */
static size_t utf8_check(const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t i = 0;

	while (i < len) {
		uint64_t word;

		while (len - i >= sizeof(word)) {
			memcpy(&word, s + i, sizeof(word));
			if (word & UINT64_C(0x8080808080808080))
				break;
			i += sizeof(word);
		}
		if (i == len)
			break;
		size_t n = utf8_sequence(s + i, len - i);
		if (n == 0)
			return i;
		i += n;
	}
	return len;
}

/* The value of \uXXXX at s, or -1. */
static int escape_unit(const char *s, const char *end)
{
	int unit = 0;

	if (end - s < 6 || s[0] != '\\' || s[1] != 'u')
		return -1;
	for (int i = 2; i < 6; i++) {
		char c = s[i];
		int digit = c >= '0' && c <= '9'   ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
			    : c >= 'A' && c <= 'F' ? c - 'A' + 10
						   : -1;
		if (digit < 0)
			return -1;
		unit = unit << 4 | digit;
	}
	return unit;
}

/*
 * Offset of the first escaped surrogate that has no partner, or len. Other faults of escapes are
 * left to yajl. Backslashes occur in strings only, so no tokens are needed here.
 */
static size_t surrogate_check(const char *text, size_t len)
{
	const char *end = text + len, *s = text;

	while ((s = memchr(s, '\\', (size_t)(end - s)))) {
		int unit = escape_unit(s, end);

		if (unit >= 0xd800 && unit <= 0xdfff) {
			int next = escape_unit(s + 6, end);

			if (unit >= 0xdc00 || next < 0xdc00 || next > 0xdfff)
				return (size_t)(s - text);
			s += 12;
		} else {
			s += end - s < 2 ? 1 : 2;
		}
		if (s == end)
			break;
	}
	return len;
}

/* ---- reader ---------------------------------------------------------------------------- */

struct name {
	const char *text;
	size_t len;
};

struct level {
	bool list;
	size_t index;     /* list: of the current element */
	struct name key;  /* object: of the current member */
	size_t first_key; /* object: where its keys start in reader.keys */
};

struct reader {
	const struct lr_json_source *src;
	const struct lr_json_handler *handler;
	void *arg;
	struct lr_arena *scratch;
	struct lr_err *err;
	int rc;
	unsigned depth;
	struct level levels[LR_JSON_DEPTH];
	struct name *keys; /* keys of the open objects that are to be checked for duplicates */
	size_t n_keys, cap_keys;
};

const char *lr_json_type_name(enum lr_json_type type)
{
	static const char *const names[] = {"null",     "a boolean", "a number",
					    "a string", "an object", "a list"};
	return names[type];
}

static int fail(struct reader *r, int code, const char *msg)
{
	r->rc = lr_err_set(r->err, code, r->src->what, false, "%s", msg);
	return r->rc;
}

static bool is_plain_key(const struct name *key)
{
	for (size_t i = 0; i < key->len; i++) {
		char c = key->text[i];
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '_' || c == '-'))
			return false;
	}
	return key->len > 0;
}

/* Appends `process.rlimits[2]` or, for keys like host names, `annotations["a.b"]`. */
static size_t path_key(char *buf, size_t size, size_t at, const struct name *key)
{
	bool plain = is_plain_key(key), cut = key->len > 80;
	int n = snprintf(buf + at, size - at, "%s%.*s%s%s", plain ? (at ? "." : "") : "[\"",
			 cut ? 77 : (int)key->len, key->text, cut ? "..." : "", plain ? "" : "\"]");

	return n < 0 ? at : at + (size_t)n;
}

static void path_format(const struct reader *r, char *buf, size_t size)
{
	size_t at = 0;

	buf[0] = '\0';
	for (unsigned i = 0; i < r->depth && at < size - 1; i++) {
		const struct level *l = &r->levels[i];

		if (l->list) {
			int n = snprintf(buf + at, size - at, "[%zu]", l->index);
			at += n < 0 ? 0 : (size_t)n;
		} else if (l->key.text) {
			at = path_key(buf, size, at, &l->key);
		}
	}
	for (char *c = buf; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
}

/* Ends the reading with what the handler (or fail) said; yajl wants 0 for "stop". */
static int stop(struct reader *r, int rc)
{
	char path[sizeof(((struct lr_err *)0)->path)];

	r->rc = rc;
	path_format(r, path, sizeof(path));
	if (path[0])
		lr_err_at(r->err, "%s", path);
	return 0;
}

static int on_value(struct reader *r, const struct lr_json_value *v)
{
	bool nests = v->type == LR_JSON_OBJECT || v->type == LR_JSON_LIST;
	int rc;

	if (r->depth > 0 && r->levels[r->depth - 1].list)
		r->levels[r->depth - 1].index++;
	if (nests && r->depth == LR_JSON_DEPTH)
		return stop(r, fail(r, EINVAL, "objects and lists are nested too deep"));
	rc = r->handler->value(r->arg, v, r->err);
	if (rc < 0)
		return stop(r, rc);
	if (nests) {
		r->levels[r->depth++] = (struct level){
			.list = v->type == LR_JSON_LIST,
			.index = SIZE_MAX, /* the first element makes it 0 */
			.first_key = r->n_keys,
		};
	}
	return 1;
}

static int on_null(void *ctx)
{
	return on_value(ctx, &(struct lr_json_value){.type = LR_JSON_NULL});
}

static int on_boolean(void *ctx, int v)
{
	return on_value(ctx, &(struct lr_json_value){.type = LR_JSON_BOOL, .boolean = v != 0});
}

static int on_number(void *ctx, const char *text, size_t len)
{
	return on_value(ctx,
			&(struct lr_json_value){.type = LR_JSON_NUMBER, .text = text, .len = len});
}

static int on_string(void *ctx, const unsigned char *text, size_t len)
{
	struct reader *r = ctx;

	if (memchr(text, '\0', len)) {
		/* The element is not counted yet, but the error is about it. */
		if (r->depth > 0 && r->levels[r->depth - 1].list)
			r->levels[r->depth - 1].index++;
		return stop(r, fail(r, EINVAL, "a string must not contain the character U+0000"));
	}
	return on_value(r, &(struct lr_json_value){
				   .type = LR_JSON_STRING, .text = (const char *)text, .len = len});
}

static int on_start_map(void *ctx)
{
	return on_value(ctx, &(struct lr_json_value){.type = LR_JSON_OBJECT});
}

static int on_start_array(void *ctx)
{
	return on_value(ctx, &(struct lr_json_value){.type = LR_JSON_LIST});
}

static int remember_key(struct reader *r, struct name key)
{
	/* Not lr_grow: n_keys falls when an object ends, and what was there stays ours. */
	if (r->n_keys == r->cap_keys) {
		size_t cap = r->cap_keys ? r->cap_keys * 2 : 64;
		struct name *grown = lr_new_n(r->scratch, cap, struct name);

		if (!grown)
			return -ENOMEM;
		if (r->n_keys)
			memcpy(grown, r->keys, r->n_keys * sizeof(*grown));
		r->keys = grown;
		r->cap_keys = cap;
	}
	r->keys[r->n_keys++] = key;
	return 0;
}

static int on_key(void *ctx, const unsigned char *bytes, size_t len)
{
	struct reader *r = ctx;
	const char *text = (const char *)bytes;
	struct level *l = &r->levels[r->depth - 1];
	int rc;

	l->key = (struct name){NULL, 0};
	if (memchr(text, '\0', len))
		return stop(r, fail(r, EINVAL, "a key must not contain the character U+0000"));
	/* Keys with escapes come out of a buffer that yajl uses again. */
	if ((uintptr_t)text < (uintptr_t)r->src->text ||
	    (uintptr_t)text >= (uintptr_t)r->src->text + r->src->len) {
		text = lr_strndup(r->scratch, text, len);
		if (!text)
			return stop(r, fail(r, ENOMEM, lr_strerror(ENOMEM)));
	}
	l->key = (struct name){text, len};
	rc = r->handler->key(r->arg, text, len, r->err);
	if (rc < 0)
		return stop(r, rc);
	if (rc != LR_JSON_KEY_CHECKED && remember_key(r, l->key) < 0)
		return stop(r, fail(r, ENOMEM, lr_strerror(ENOMEM)));
	return 1;
}

static int compare_names(const void *left, const void *right)
{
	const struct name *a = left, *b = right;

	if (a->len != b->len)
		return a->len < b->len ? -1 : 1;
	return memcmp(a->text, b->text, a->len);
}

/* The key that occurs twice among keys[0..n), or NULL. Reorders them. */
static const struct name *find_duplicate(struct name *keys, size_t n)
{
	if (n > 16) {
		qsort(keys, n, sizeof(*keys), compare_names);
		for (size_t i = 1; i < n; i++)
			if (compare_names(&keys[i - 1], &keys[i]) == 0)
				return &keys[i];
		return NULL;
	}
	for (size_t i = 1; i < n; i++)
		for (size_t k = 0; k < i; k++)
			if (compare_names(&keys[k], &keys[i]) == 0)
				return &keys[i];
	return NULL;
}

static int on_end_map(void *ctx)
{
	struct reader *r = ctx;
	struct level *l = &r->levels[r->depth - 1];
	size_t n = r->n_keys - l->first_key;
	const struct name *twice = n > 1 ? find_duplicate(r->keys + l->first_key, n) : NULL;
	int rc;

	if (twice) {
		l->key = *twice;
		return stop(r, fail(r, EINVAL, "duplicate property"));
	}
	r->n_keys = l->first_key;
	r->depth--;
	rc = r->handler->end(r->arg, r->err);
	return rc < 0 ? stop(r, rc) : 1;
}

static int on_end_array(void *ctx)
{
	struct reader *r = ctx;
	int rc;

	r->depth--;
	rc = r->handler->end(r->arg, r->err);
	return rc < 0 ? stop(r, rc) : 1;
}

static const yajl_callbacks callbacks = {
	.yajl_null = on_null,
	.yajl_boolean = on_boolean,
	.yajl_number = on_number,
	.yajl_string = on_string,
	.yajl_start_map = on_start_map,
	.yajl_map_key = on_key,
	.yajl_end_map = on_end_map,
	.yajl_start_array = on_start_array,
	.yajl_end_array = on_end_array,
};

/* An error about the text itself: line and column count characters from 1. */
static int syntax_error(const struct lr_json_source *src, size_t offset, const char *msg,
			struct lr_err *err)
{
	size_t line = 1, column = 1;

	for (size_t i = 0; i < offset && i < src->len; i++) {
		if (src->text[i] == '\n') {
			line++;
			column = 1;
		} else if ((src->text[i] & 0xc0) != 0x80) {
			column++;
		}
	}
	return lr_err_set(err, EINVAL, src->what, false, "line %zu, column %zu: %s", line, column,
			  msg);
}

static int yajl_failure(struct reader *r, yajl_handle parser, size_t offset)
{
	const struct lr_json_source *src = r->src;
	const unsigned char *text = (const unsigned char *)src->text;
	unsigned char *said = yajl_get_error(parser, 0, text, src->len);
	char msg[160];

	snprintf(msg, sizeof(msg), "%s", said ? (const char *)said : "not JSON");
	if (said)
		yajl_free_error(parser, said);
	msg[strcspn(msg, "\n")] = '\0';
	/* yajl stops behind the character it does not like. */
	if (strstr(msg, "premature EOF"))
		offset = src->len;
	else if (offset > 0)
		offset--;
	return syntax_error(src, offset, msg, r->err);
}

static int check_text(const struct lr_json_source *src, struct lr_err *err)
{
	size_t max = src->max ? src->max : LR_JSON_MAX, bad;

	if (src->len > max)
		return lr_err_set(err, EFBIG, src->what, false,
				  "%zu bytes are more than the %zu allowed", src->len, max);
	bad = utf8_check(src->text, src->len);
	if (bad < src->len)
		return syntax_error(src, bad, "not valid UTF-8", err);
	bad = surrogate_check(src->text, src->len);
	if (bad < src->len)
		return syntax_error(src, bad, "half of a surrogate pair", err);
	return 0;
}

static int parse(struct reader *r, struct lr_json_memory *m)
{
	const struct lr_json_source *src = r->src;
	yajl_alloc_funcs funcs = {lr_json_malloc, lr_json_realloc, lr_json_free, m};
	yajl_handle parser = yajl_alloc(&callbacks, &funcs, r); /* freed with the arena */

	yajl_config(parser, yajl_dont_validate_strings, 1); /* check_text did */
	yajl_status status = yajl_parse(parser, (const unsigned char *)src->text, src->len);
	size_t offset = yajl_get_bytes_consumed(parser);
	if (status == yajl_status_ok) {
		status = yajl_complete_parse(parser);
		offset = src->len;
	}
	if (status == yajl_status_client_canceled)
		return r->rc;
	return status == yajl_status_ok ? 0 : yajl_failure(r, parser, offset);
}

int lr_json_read(const struct lr_json_source *src, const struct lr_json_handler *handler, void *arg,
		 struct lr_arena *scratch, struct lr_err *err)
{
	struct reader r = {
		.src = src, .handler = handler, .arg = arg, .scratch = scratch, .err = err};
	struct lr_json_memory m = {.arena = scratch, .leave = true};
	int rc = check_text(src, err);

	if (rc < 0)
		return rc;
	if (src->len == 0)
		return syntax_error(src, 0, "the text is empty", err);
	if (setjmp(m.left))
		return lr_err_set(err, ENOMEM, src->what, false, "%s", lr_strerror(ENOMEM));
	return parse(&r, &m);
}

/* ---- numbers --------------------------------------------------------------------------- */

/* Digits only, at least one. */
static int digits_of(const char *text, size_t len, uint64_t *ret)
{
	uint64_t v = 0;
	bool over = false;

	if (len == 0)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		over |= __builtin_mul_overflow(v, UINT64_C(10), &v);
		over |= __builtin_add_overflow(v, (uint64_t)(text[i] - '0'), &v);
	}
	if (over)
		return -ERANGE;
	*ret = v;
	return 0;
}

int lr_json_uint_of(const char *text, size_t len, uint64_t max, uint64_t *ret)
{
	bool negative = len > 0 && text[0] == '-';
	uint64_t v;
	int rc = digits_of(text + negative, len - negative, &v);

	if (rc < 0)
		return rc;
	if ((negative && v != 0) || v > max)
		return -ERANGE;
	*ret = v;
	return 0;
}

int lr_json_int_of(const char *text, size_t len, int64_t min, int64_t max, int64_t *ret)
{
	bool negative = len > 0 && text[0] == '-';
	uint64_t v;
	int64_t value;
	int rc = digits_of(text + negative, len - negative, &v);

	if (rc < 0)
		return rc;
	if (v > (uint64_t)INT64_MAX + negative)
		return -ERANGE;
	value = negative ? (int64_t)(0 - v) : (int64_t)v;
	if (value < min || value > max)
		return -ERANGE;
	*ret = value;
	return 0;
}

/* ---- writer ---------------------------------------------------------------------------- */

struct lr_json_writer {
	struct lr_json_memory memory;
	yajl_gen gen;
	char *text;
	size_t len, cap;
	uint64_t is_list; /* bit i: what is open at depth i */
	unsigned depth;
	bool opening; /* the innermost object or list is not written yet: it may stay empty */
	bool has_key; /* a value is due */
	bool failed;
};

static void gen_print(void *ctx, const char *s, size_t len)
{
	struct lr_json_writer *w = ctx;

	if (w->failed)
		return;
	if (w->cap - w->len <= len) {
		size_t cap = w->cap;
		char *grown;

		while (cap - w->len <= len && cap <= SIZE_MAX / 2)
			cap *= 2;
		grown = cap - w->len > len ? lr_alloc(w->memory.arena, cap) : NULL;
		if (!grown) {
			w->failed = true;
			return;
		}
		memcpy(grown, w->text, w->len);
		w->text = grown;
		w->cap = cap;
	}
	memcpy(w->text + w->len, s, len);
	w->len += len;
}

static yajl_gen make_gen(struct lr_json_memory *m)
{
	yajl_alloc_funcs funcs = {lr_json_malloc, lr_json_realloc, lr_json_free, m};

	if (setjmp(m->left))
		return NULL;
	m->leave = true;
	yajl_gen gen = yajl_gen_alloc(&funcs);
	m->leave = false; /* what is written goes by gen_print */
	return gen;
}

struct lr_json_writer *lr_json_writer_new(struct lr_arena *a, bool indent)
{
	struct lr_json_writer *w = lr_new(a, struct lr_json_writer);

	if (!w)
		return NULL;
	w->memory.arena = a;
	w->cap = 512;
	w->text = lr_alloc(a, w->cap);
	w->gen = w->text ? make_gen(&w->memory) : NULL;
	if (!w->gen)
		return NULL;
	yajl_gen_config(w->gen, yajl_gen_print_callback, gen_print, w);
	if (indent) {
		yajl_gen_config(w->gen, yajl_gen_beautify, 1);
		yajl_gen_config(w->gen, yajl_gen_indent_string, "  ");
	}
	return w;
}

static void note(struct lr_json_writer *w, yajl_gen_status status)
{
	if (status != yajl_gen_status_ok)
		w->failed = true;
}

static bool in_list(const struct lr_json_writer *w)
{
	return w->depth > 0 && (w->is_list >> (w->depth - 1) & 1);
}

/* yajl would write an empty object over three lines, so an opening waits for the first member. */
static void write_opening(struct lr_json_writer *w)
{
	if (!w->opening)
		return;
	w->opening = false;
	note(w, in_list(w) ? yajl_gen_array_open(w->gen) : yajl_gen_map_open(w->gen));
}

/* Before any value. False: nothing may be written. */
static bool begin_value(struct lr_json_writer *w)
{
	if (!w || w->failed)
		return false;
	if (w->depth > 0 && !in_list(w) && !w->has_key) {
		w->failed = true;
		return false;
	}
	write_opening(w);
	w->has_key = false;
	return !w->failed;
}

static void open_nested(struct lr_json_writer *w, bool list)
{
	if (!begin_value(w))
		return;
	if (w->depth == LR_JSON_DEPTH || (w->depth == 0 && w->len > 0)) {
		w->failed = true;
		return;
	}
	if (list)
		w->is_list |= UINT64_C(1) << w->depth;
	else
		w->is_list &= ~(UINT64_C(1) << w->depth);
	w->depth++;
	w->opening = true;
}

static void close_nested(struct lr_json_writer *w, bool list)
{
	if (!w || w->failed)
		return;
	if (w->depth == 0 || in_list(w) != list || w->has_key) {
		w->failed = true;
		return;
	}
	w->depth--;
	if (w->opening) {
		w->opening = false;
		note(w, yajl_gen_number(w->gen, list ? "[]" : "{}", 2));
	} else {
		note(w, list ? yajl_gen_array_close(w->gen) : yajl_gen_map_close(w->gen));
	}
}

void lr_json_obj_open(struct lr_json_writer *w)
{
	open_nested(w, false);
}

void lr_json_obj_close(struct lr_json_writer *w)
{
	close_nested(w, false);
}

void lr_json_list_open(struct lr_json_writer *w)
{
	open_nested(w, true);
}

void lr_json_list_close(struct lr_json_writer *w)
{
	close_nested(w, true);
}

/* Ill-formed bytes become U+FFFD, one for each. */
static char *repair_utf8(struct lr_arena *a, const char *s, size_t len, size_t *ret_len)
{
	char *out = len < SIZE_MAX / 3 ? lr_alloc(a, len * 3 + 1) : NULL;
	size_t n = 0;

	if (!out)
		return NULL;
	for (size_t i = 0; i < len;) {
		size_t good = utf8_sequence((const unsigned char *)s + i, len - i);

		if (good) {
			memcpy(out + n, s + i, good);
			n += good;
			i += good;
		} else {
			memcpy(out + n, "\xef\xbf\xbd", 3);
			n += 3;
			i++;
		}
	}
	*ret_len = n;
	return out;
}

static void gen_string(struct lr_json_writer *w, const char *s, size_t len)
{
	if (utf8_check(s, len) < len) {
		s = repair_utf8(w->memory.arena, s, len, &len);
		if (!s) {
			w->failed = true;
			return;
		}
	}
	note(w, yajl_gen_string(w->gen, (const unsigned char *)s, len));
}

void lr_json_key(struct lr_json_writer *w, const char *key)
{
	if (!w || w->failed)
		return;
	if (w->depth == 0 || in_list(w) || w->has_key) {
		w->failed = true;
		return;
	}
	write_opening(w);
	gen_string(w, key, strlen(key));
	w->has_key = true;
}

void lr_json_strn(struct lr_json_writer *w, const char *s, size_t len)
{
	if (begin_value(w))
		gen_string(w, s, len);
}

void lr_json_str(struct lr_json_writer *w, const char *s)
{
	if (s)
		lr_json_strn(w, s, strlen(s));
	else
		lr_json_null(w);
}

void lr_json_int(struct lr_json_writer *w, int64_t v)
{
	if (begin_value(w))
		note(w, yajl_gen_integer(w->gen, v));
}

void lr_json_raw(struct lr_json_writer *w, const char *text, size_t len)
{
	/* yajl writes a "number" as it is given. */
	if (begin_value(w))
		note(w, yajl_gen_number(w->gen, text, len));
}

void lr_json_uint(struct lr_json_writer *w, uint64_t v)
{
	char buf[LR_DIGITS];
	const char *digits = lr_digits(buf, v);

	lr_json_raw(w, digits, strlen(digits));
}

void lr_json_bool(struct lr_json_writer *w, bool v)
{
	if (begin_value(w))
		note(w, yajl_gen_bool(w->gen, v));
}

void lr_json_null(struct lr_json_writer *w)
{
	if (begin_value(w))
		note(w, yajl_gen_null(w->gen));
}

char *lr_json_finish(struct lr_json_writer *w, size_t *len)
{
	if (!w || w->failed || w->depth > 0 || w->len == 0)
		return NULL;
	/* yajl ends an indented text with a newline; Go's encoder, and so runc, does not. */
	if (w->text[w->len - 1] == '\n')
		w->len--;
	w->text[w->len] = '\0';
	if (len)
		*len = w->len;
	return w->text;
}
