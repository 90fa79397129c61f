/* SPDX-License-Identifier: Apache-2.0 */
/* limits: lists of CPUs and memory nodes as kernel bit masks. */
#define LR_ROOM "limits"
#include "src/limits/limits.h"

#include <errno.h>
#include <limits.h>

#define WORD_BITS (sizeof(unsigned long) * CHAR_BIT)

bool lr_limits_mask_has(const struct lr_limits_mask *mask, size_t bit)
{
	return mask->word && bit < mask->bits &&
	       (mask->word[bit / WORD_BITS] >> (bit % WORD_BITS) & 1);
}

static const char *spaces(const char *s)
{
	while (*s == ' ' || *s == '\t' || *s == '\n')
		s++;
	return s;
}

/* A number up to LR_LIMITS_LIST_MAX; returns what follows, or NULL. */
static const char *number(const char *s, unsigned *ret)
{
	unsigned v = 0;

	if (*s < '0' || *s > '9')
		return NULL;
	for (; *s >= '0' && *s <= '9'; s++) {
		v = v * 10 + (unsigned)(*s - '0');
		if (v > LR_LIMITS_LIST_MAX)
			return NULL;
	}
	*ret = v;
	return s;
}

/* One item: first, last, and of each `group` numbers the first `used`. */
struct item {
	unsigned first, last, used, group;
};

static const char *parse_item(const char *s, struct item *it)
{
	s = number(spaces(s), &it->first);
	if (!s)
		return NULL;
	it->last = it->first;
	it->used = it->group = 1;
	if (*s == '-') {
		s = number(s + 1, &it->last);
		if (s && *s == ':') {
			s = number(s + 1, &it->used);
			s = s && *s == '/' ? number(s + 1, &it->group) : NULL;
		}
	}
	if (!s || it->last < it->first || it->last >= LR_LIMITS_LIST_MAX || it->used == 0 ||
	    it->used > it->group)
		return NULL;
	s = spaces(s);
	return *s == ',' || *s == '\0' ? s : NULL;
}

static void set_item(struct lr_limits_mask *m, const struct item *it)
{
	for (unsigned i = it->first; i <= it->last; i++)
		if ((i - it->first) % it->group < it->used)
			m->word[i / WORD_BITS] |= 1ul << (i % WORD_BITS);
}

int lr_limits_parse_list(const char *text, const char *what, struct lr_arena *arena,
			 struct lr_limits_mask *ret, struct lr_err *err)
{
	struct lr_limits_mask m = {0};
	struct item it;
	unsigned top = 0;
	const char *s;

	/* First pass: is it valid, and how long must the mask be? */
	for (s = text;; s++) {
		s = parse_item(s, &it);
		if (!s) {
			lr_refuse(err, EINVAL, "\"%s\" is not a list of %ss", text, what);
			return lr_err_hint(err, "numbers and ranges below %d: 0-3,7",
					   LR_LIMITS_LIST_MAX);
		}
		if (it.last > top)
			top = it.last;
		if (*s == '\0')
			break;
	}
	m.bits = (top / WORD_BITS + 1) * WORD_BITS;
	m.word = lr_new_n(arena, m.bits / WORD_BITS, unsigned long);
	if (!m.word)
		return lr_fail(err, ENOMEM, "list of %ss", what);
	for (s = text;; s++) {
		s = parse_item(s, &it);
		set_item(&m, &it);
		if (*s == '\0')
			break;
	}
	*ret = m;
	return 0;
}
