/* SPDX-License-Identifier: Apache-2.0 */
/* base: strings and numbers; see str.h. */
#include "src/base/str.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

bool lr_has_suffix(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

int lr_parse_u64(const char *s, uint64_t *ret)
{
	uint64_t v = 0;

	if (!*s)
		return -EINVAL;
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return -EINVAL;
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
			return -ERANGE;
	}
	*ret = v;
	return 0;
}

int lr_parse_i64(const char *s, int64_t *ret)
{
	bool minus = *s == '-';
	uint64_t v;
	int r = lr_parse_u64(s + minus, &v);

	if (r < 0)
		return r;
	if (v > (uint64_t)INT64_MAX + minus)
		return -ERANGE;
	*ret = minus ? (int64_t)(0 - v) : (int64_t)v;
	return 0;
}

int lr_parse_u32(const char *s, uint32_t *ret)
{
	uint64_t v;
	int r = lr_parse_u64(s, &v);

	if (r < 0)
		return r;
	if (v > UINT32_MAX)
		return -ERANGE;
	*ret = (uint32_t)v;
	return 0;
}

uint64_t lr_hash(uint64_t hash, const void *bytes, size_t n)
{
	const unsigned char *p = bytes;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ p[i]) * 0x100000001b3U;
	return hash;
}

const char *lr_digits(char buf[LR_DIGITS], uint64_t v)
{
	char *p = buf + LR_DIGITS - 1;

	*p = '\0';
	do
		*--p = (char)('0' + v % 10);
	while (v /= 10);
	return p;
}

/*
 * The date by arithmetic: glibc's gmtime(3) and strftime(3) read the time zone files first. Days
 * since 1970 are counted from a 1 March of year 0, so that leap days come last (the proleptic
 * Gregorian calendar has cycles of 146,097 days in 400 years).
 */
char *lr_utc(char buf[LR_UTC], int64_t t)
{
	int64_t days = t / 86400 + 719468;
	int secs = (int)(t % 86400);
	int64_t era = days / 146097;
	int day = (int)(days % 146097);
	int year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	day -= 365 * year + year / 4 - year / 100;
	int month = (5 * day + 2) / 153;
	day -= (153 * month + 2) / 5;
	month += month < 10 ? 3 : -9;

	int n = snprintf(buf, LR_UTC, "%04d-%02d-%02dT%02d:%02d:%02d",
			 (int)(year + era * 400 + (month <= 2)), month, day + 1, secs / 3600,
			 secs / 60 % 60, secs % 60);
	return buf + n;
}

const struct lr_name *lr_name_find(const struct lr_name *table, size_t n, const char *name)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t mid = (low + high) / 2;
		int c = strcmp(name, table[mid].name);
		if (c == 0)
			return &table[mid];
		if (c < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}

const char *lr_name_of(const struct lr_name *table, size_t n, uint64_t value)
{
	for (size_t i = 0; i < n; i++)
		if (table[i].value == value)
			return table[i].name;
	return NULL;
}

void lr_path_clean(const char *path, char *out)
{
	size_t n = 0; /* bytes of out in use; "" stands for "/" until the end */

	while (*path) {
		size_t len = strcspn(path, "/");
		if (len == 2 && path[0] == '.' && path[1] == '.') {
			while (n > 0 && out[--n] != '/')
				;
		} else if (len > 0 && !(len == 1 && path[0] == '.')) {
			out[n++] = '/';
			memcpy(out + n, path, len);
			n += len;
		}
		path += len;
		path += *path == '/';
	}
	if (n == 0)
		out[n++] = '/';
	out[n] = '\0';
}

bool lr_path_has_dotdot(const char *path)
{
	for (const char *p = path; *p; p += strcspn(p, "/"), p += *p == '/')
		if (strcspn(p, "/") == 2 && p[0] == '.' && p[1] == '.')
			return true;
	return false;
}

const char *lr_path_below(const char *path, const char *dir)
{
	size_t n = lr_streq(dir, "/") ? 0 : strlen(dir);

	return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0') ? path + n : NULL;
}

static bool is_octal(char c, char most)
{
	return c >= '0' && c <= most;
}

void lr_path_unescape(char *s)
{
	char *out = s;

	while (*s) {
		if (s[0] == '\\' && is_octal(s[1], '3') && is_octal(s[2], '7') &&
		    is_octal(s[3], '7')) {
			*out++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 4;
		} else {
			*out++ = *s++;
		}
	}
	*out = '\0';
}

bool lr_has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	while (*text) {
		size_t n = strcspn(text, " \n");
		if (n == len && memcmp(text, word, n) == 0)
			return true;
		text += n;
		text += strspn(text, " \n");
	}
	return false;
}
