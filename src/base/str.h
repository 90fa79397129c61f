/* SPDX-License-Identifier: Apache-2.0 */
/* base: small string and number helpers. All pure; none allocates. */
#ifndef LR_BASE_STR_H
#define LR_BASE_STR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "src/base/err.h"

#define LR_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static inline bool lr_streq(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}
static inline bool lr_has_prefix(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}
bool lr_has_suffix(const char *s, const char *suffix);

/* Whole-string decimal numbers: no sign for u64, no space, no trailing text. -EINVAL, -ERANGE. */
int lr_parse_u64(const char *s, uint64_t *ret) LR_MUST_CHECK;
int lr_parse_i64(const char *s, int64_t *ret) LR_MUST_CHECK;
int lr_parse_u32(const char *s, uint32_t *ret) LR_MUST_CHECK;

/* FNV-1a, begun with LR_HASH and continued with what it returned. Two texts that differ in one byte
 * have different hashes. For names and against damage, not against malice. */
#define LR_HASH 0xcbf29ce484222325U
uint64_t lr_hash(uint64_t hash, const void *bytes, size_t n);

/* Decimal digits, NUL-terminated; returns where they begin in buf. */
#define LR_DIGITS 21
const char *lr_digits(char buf[LR_DIGITS], uint64_t v);

/* RFC 3339, UTC, without the zone: "1970-01-01T00:00:00". t: seconds since then, not negative.
 * Returns its end. */
#define LR_UTC 32
char *lr_utc(char buf[LR_UTC], int64_t t);

/*
 * A name -> value table, sorted by name (strcmp order; checked in the unit tests), searched by
 * bisection. NULL when unknown.
 */
struct lr_name {
	const char *name;
	uint64_t value;
};
const struct lr_name *lr_name_find(const struct lr_name *table, size_t n, const char *name);
/* First name with that value, or NULL. */
const char *lr_name_of(const struct lr_name *table, size_t n, uint64_t value);

/*
 * Cleans a path by text alone: joins repeated slashes, drops ".", resolves ".." without leaving
 * the root. Relative input is taken as if below "/". out needs strlen(path) + 2 bytes.
 */
void lr_path_clean(const char *path, char *out);
/* What of `path` comes after `dir`: "" if it is `dir`, or "/..."; NULL if it is elsewhere. Both are
 * clean. */
const char *lr_path_below(const char *path, const char *dir);
/* True when a path has a component "..". */
bool lr_path_has_dotdot(const char *path);
/* Undoes the escapes of /proc/PID/mountinfo, as \040 for a space, in place. */
void lr_path_unescape(char *s);

/* Walks comma-free text fields: true if `word` is one of the space- or newline-separated words. */
bool lr_has_word(const char *text, const char *word);

#endif
