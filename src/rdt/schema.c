/* SPDX-License-Identifier: Apache-2.0 */
/* rdt: texts of schemata files, "L3:0=7f0;1=1f". */
#define LR_ROOM "rdt"
#include "src/rdt/rdt.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "src/base/str.h"

/* A piece of text. */
struct span {
	const char *p;
	size_t n;
};

/* Cuts the next piece off *s at any of `seps`; false at the end. Blanks around it are dropped. */
static bool next(const char **s, const char *end, const char *seps, struct span *ret)
{
	const char *p = *s;

	if (p >= end)
		return false;
	size_t n = 0;
	while (p + n < end && !strchr(seps, p[n]))
		n++;
	*s = p + n + 1;
	while (n && (*p == ' ' || *p == '\t' || *p == '\r'))
		p++, n--;
	while (n && (p[n - 1] == ' ' || p[n - 1] == '\t' || p[n - 1] == '\r'))
		n--;
	*ret = (struct span){p, n};
	return true;
}

static bool same(struct span a, struct span b)
{
	return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
}

/* Values compare without leading zeros and case: the kernel prints 7f0 where 07F0 was written. */
static bool same_value(struct span a, struct span b)
{
	while (a.n > 1 && *a.p == '0')
		a.p++, a.n--;
	while (b.n > 1 && *b.p == '0')
		b.p++, b.n--;
	return a.n == b.n && strncasecmp(a.p, b.p, a.n) == 0;
}

/* Splits "key<sep>value". */
static bool split(struct span s, char sep, struct span *key, struct span *value)
{
	const char *at = memchr(s.p, sep, s.n);

	if (!at)
		return false;
	const char *k = s.p, *v = at + 1;
	*value = (struct span){v, 0}; /* stays so if nothing follows */
	(void)next(&v, s.p + s.n, "", value);
	return next(&k, at, "", key);
}

/* The value of kind:id in a schemata text. */
static bool find(const char *have, struct span kind, struct span id, struct span *value)
{
	const char *end = have + strlen(have);
	struct span line, k, rest, item, i;

	while (next(&have, end, "\n", &line)) {
		if (!split(line, ':', &k, &rest) || !same(k, kind))
			continue;
		const char *s = rest.p;
		while (next(&s, rest.p + rest.n, ";", &item))
			if (split(item, '=', &i, value) && same(i, id))
				return true;
	}
	return false;
}

bool lr_rdt_schema_within(const char *want, const char *have)
{
	const char *end = want + strlen(want);
	struct span line, kind, rest, item, id, w, h;

	while (next(&want, end, "\n", &line)) {
		if (line.n == 0)
			continue;
		if (!split(line, ':', &kind, &rest))
			return false;
		const char *s = rest.p;
		while (next(&s, rest.p + rest.n, ";", &item)) {
			if (item.n == 0)
				continue;
			if (!split(item, '=', &id, &w) || !find(have, kind, id, &h) ||
			    !same_value(w, h))
				return false;
		}
	}
	return true;
}

int lr_rdt_combine(const char *l3, const char *mb, struct lr_arena *arena, const char **ret,
		   struct lr_err *err)
{
	*ret = NULL;
	if (mb && (!lr_has_prefix(mb, "MB:") || strchr(mb, '\n'))) {
		lr_refuse(err, EINVAL, "must be one line that starts with \"MB:\"");
		return lr_err_at(err, "linux.intelRdt.memBwSchema");
	}
	if (!l3 && !mb)
		return 0;

	size_t max = (l3 ? strlen(l3) : 0) + (mb ? strlen(mb) : 0) + 3, len = 0;
	char *out = lr_alloc(arena, max);
	if (!out)
		return lr_fail(err, ENOMEM, "schemata");
	if (l3) {
		const char *s = l3, *end = l3 + strlen(l3);
		struct span line;

		/* config-linux.md: of l3CacheSchema only "the non-MB: line(s)" count. */
		while (next(&s, end, "\n", &line)) {
			if (line.n == 0 || (line.n >= 3 && memcmp(line.p, "MB:", 3) == 0))
				continue;
			memcpy(out + len, line.p, line.n);
			len += line.n;
			out[len++] = '\n';
		}
	}
	if (mb) {
		memcpy(out + len, mb, strlen(mb));
		len += strlen(mb);
		out[len++] = '\n';
	}
	out[len] = '\0';
	*ret = out;
	return 0;
}
