/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base: JSON in and out. json.c is the only file of the project that includes yajl.
 *
 * The reader hands the events of one text to a handler and fails closed. Refused are: texts above
 * the size limit, more than LR_JSON_DEPTH nested objects and lists, invalid UTF-8 (also overlong
 * forms and lone surrogates, escaped or not), NUL in strings and keys, comments, anything after
 * the value, and keys that occur twice in one object. What the handler does not want is checked
 * all the same.
 *
 * The writer builds a text in an arena. Its functions return nothing: a failure (out of memory,
 * a value where a key is due) sticks, and lr_json_finish reports it by returning NULL.
 */
#ifndef LR_BASE_JSON_H
#define LR_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/arena.h"
#include "src/base/err.h"

#define LR_JSON_DEPTH 64
#define LR_JSON_MAX   (16u << 20) /* bytes, when the caller sets no limit */

/* ---- reader ---------------------------------------------------------------------------- */

struct lr_json_source {
	const char *text; /* needs no terminating NUL; not modified, not kept */
	size_t len;
	size_t max;       /* refuse longer texts with -EFBIG; 0: LR_JSON_MAX */
	const char *what; /* who speaks in errors: "config.json" (at most 15 characters) */
};

enum lr_json_type {
	LR_JSON_NULL,
	LR_JSON_BOOL,
	LR_JSON_NUMBER,
	LR_JSON_STRING,
	LR_JSON_OBJECT,
	LR_JSON_LIST,
};

struct lr_json_value {
	enum lr_json_type type;
	bool boolean;
	/*
	 * STRING: the decoded UTF-8, free of NULs; NUMBER: its digits as written ("-1.5e3").
	 * Not NUL-terminated; valid during the call only.
	 */
	const char *text;
	size_t len;
};

/* What `key` returns when it sees to duplicates of this key itself. */
#define LR_JSON_KEY_CHECKED 1

/*
 * Each returns 0 or, having filled *err, a negative errno that ends the reading. The reader then
 * adds the place ("process.rlimits[2].soft") to *err unless there is one already.
 */
struct lr_json_handler {
	/* A scalar; or the start of an OBJECT or LIST, whose `end` will follow. */
	int (*value)(void *arg, const struct lr_json_value *v, struct lr_err *err);
	/*
	 * The key of the next value. 0: the reader looks for duplicates (when the object ends);
	 * LR_JSON_KEY_CHECKED: it need not, the handler found this key to be new.
	 */
	int (*key)(void *arg, const char *key, size_t len, struct lr_err *err);
	/* The end of the innermost open OBJECT or LIST. */
	int (*end)(void *arg, struct lr_err *err);
};

/*
 * Reads the whole text. 0, or -EINVAL, -EFBIG, -ENOMEM, or what the handler returned. `scratch`
 * holds a few bytes per open object (and copies of keys that contain escapes).
 */
int lr_json_read(const struct lr_json_source *src, const struct lr_json_handler *handler, void *arg,
		 struct lr_arena *scratch, struct lr_err *err) LR_MUST_CHECK;

/* "a string", "an object": for messages. */
const char *lr_json_type_name(enum lr_json_type type);

/*
 * Whole numbers from their raw text, which must have the form of an integer: -EINVAL for
 * fractions and exponents (also 1.0 and 1e3), -ERANGE beyond min..max.
 */
int lr_json_int_of(const char *text, size_t len, int64_t min, int64_t max,
		   int64_t *ret) LR_MUST_CHECK;
int lr_json_uint_of(const char *text, size_t len, uint64_t max, uint64_t *ret) LR_MUST_CHECK;

/* ---- writer ---------------------------------------------------------------------------- */

struct lr_json_writer;

/* `indent`: one member a line, by two spaces, as Go's MarshalIndent(v, "", "  "); else compact. */
struct lr_json_writer *lr_json_writer_new(struct lr_arena *a, bool indent);

/* All take NULL for w: the failure of lr_json_writer_new need not be looked at. */
void lr_json_obj_open(struct lr_json_writer *w);
void lr_json_obj_close(struct lr_json_writer *w);
void lr_json_list_open(struct lr_json_writer *w);
void lr_json_list_close(struct lr_json_writer *w);
void lr_json_key(struct lr_json_writer *w, const char *key);
/* Bytes that are not UTF-8 are written as U+FFFD, as Go does. NULL: null. */
void lr_json_str(struct lr_json_writer *w, const char *s);
void lr_json_strn(struct lr_json_writer *w, const char *s, size_t len);
void lr_json_int(struct lr_json_writer *w, int64_t v);
void lr_json_uint(struct lr_json_writer *w, uint64_t v);
void lr_json_bool(struct lr_json_writer *w, bool v);
void lr_json_null(struct lr_json_writer *w);
/* A complete value that is JSON text already (a number with a fraction, a stored object). */
void lr_json_raw(struct lr_json_writer *w, const char *text, size_t len);

/* Key and value at once. */
static inline void lr_json_kstr(struct lr_json_writer *w, const char *key, const char *s)
{
	lr_json_key(w, key);
	lr_json_str(w, s);
}
static inline void lr_json_kint(struct lr_json_writer *w, const char *key, int64_t v)
{
	lr_json_key(w, key);
	lr_json_int(w, v);
}
static inline void lr_json_kuint(struct lr_json_writer *w, const char *key, uint64_t v)
{
	lr_json_key(w, key);
	lr_json_uint(w, v);
}
static inline void lr_json_kbool(struct lr_json_writer *w, const char *key, bool v)
{
	lr_json_key(w, key);
	lr_json_bool(w, v);
}

/*
 * The text, in the arena, NUL-terminated and without a final newline; *len (if given) without the
 * NUL. NULL when anything failed or the value is not complete. The writer is used up.
 */
char *lr_json_finish(struct lr_json_writer *w, size_t *len);

#endif
