/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dbus: values from GVariant's text form, in two passes over the text: what type it is, then its
 * bytes. Left out is what no property of a unit needs: maybe types, dictionaries, variants in
 * variants, byte strings, signatures.
 */
#define LR_ROOM "systemd"
#include "src/systemd/dbus.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/str.h"

#define BASIC     "ybnqiuxtdso"
#define DEPTH_MAX 8
#define TYPE_MAX  64

struct text {
	const char *p;
	unsigned depth;
};

static const struct lr_name keywords[] = {
	{"boolean", 'b'}, {"byte", 'y'},   {"double", 'd'},     {"int16", 'n'},
	{"int32", 'i'},   {"int64", 'x'},  {"objectpath", 'o'}, {"string", 's'},
	{"uint16", 'q'},  {"uint32", 'u'}, {"uint64", 't'},
};

/* The end of the first complete type of a signature; NULL: there is none. */
static const char *type_end(const char *s, unsigned depth)
{
	if (depth > DEPTH_MAX)
		return NULL;
	if (*s == 'a')
		return type_end(s + 1, depth + 1);
	if (*s != '(')
		return *s && strchr(BASIC, *s) ? s + 1 : NULL;
	for (s++; s && *s != ')';)
		s = type_end(s, depth + 1);
	return s && s[-1] != '(' ? s + 1 : NULL;
}

static size_t align_of(char type)
{
	switch (type) {
	case 'y':
		return 1;
	case 'n':
	case 'q':
		return 2;
	case 'x':
	case 't':
	case 'd':
	case '(':
		return 8;
	default:
		return 4;
	}
}

static void skip_space(struct text *t)
{
	while (isspace((unsigned char)*t->p))
		t->p++;
}

static bool take(struct text *t, char c)
{
	skip_space(t);
	if (*t->p != c)
		return false;
	t->p++;
	return true;
}

/* A type in front of a value, "uint64 " or "@at ", into type[]. 1: there is one. */
static int take_type(struct text *t, char type[TYPE_MAX])
{
	const struct lr_name *k;
	char word[TYPE_MAX];
	size_t n;
	bool at = take(t, '@');

	n = at ? strcspn(t->p, " \t\n") : strspn(t->p, "abcdefghijklmnopqrstuvwxyz0123456789");
	if (n == 0 || n >= sizeof(word) || (!at && isdigit((unsigned char)*t->p)))
		return at ? -EINVAL : 0;
	memcpy(word, t->p, n);
	word[n] = '\0';
	k = at ? NULL : lr_name_find(keywords, LR_ARRAY_SIZE(keywords), word);
	if (!at && !k)
		return 0;
	t->p += n;
	if (k) {
		type[0] = (char)k->value;
		type[1] = '\0';
		return 1;
	}
	const char *end = type_end(word, 0);
	if (!end || *end)
		return -EINVAL;
	memcpy(type, word, n + 1);
	return 1;
}

/* ---- first pass: the type -------------------------------------------------------------------- */

static int type_of(struct text *t, char *type, size_t room);

static int skip_string(struct text *t)
{
	char quote = *t->p++;

	while (*t->p && *t->p != quote)
		t->p += t->p[0] == '\\' && t->p[1] ? 2 : 1;
	if (*t->p != quote)
		return -EINVAL;
	t->p++;
	return 0;
}

/* The elements up to `close`; type gets that of the first (arrays) or of all. */
static int type_of_all(struct text *t, char close, char *type, size_t room)
{
	char other[TYPE_MAX];
	size_t n = 0;

	while (!take(t, close)) {
		bool first = n == 0, all = close == ')';
		char *into = first || all ? type + strlen(type) : other;
		int r;

		if (!first && !take(t, ','))
			return -EINVAL;
		if (!first && all && take(t, close))
			return 0;
		*into = '\0';
		r = type_of(t, into, into == other ? sizeof(other) : room - (size_t)(into - type));
		if (r < 0)
			return r;
		n++;
	}
	/* An empty one has to be told its type. */
	return n ? 0 : -EINVAL;
}

static int type_of_list(struct text *t, char *type, size_t room)
{
	bool array = *t->p++ == '[';
	int r;

	if (room < 4 || t->depth >= DEPTH_MAX)
		return -EINVAL;
	t->depth++;
	type[0] = array ? 'a' : '(';
	type[1] = '\0';
	r = type_of_all(t, array ? ']' : ')', type + 1, room - 2);
	t->depth--;
	if (r == 0 && !array)
		strcat(type, ")");
	return r;
}

/* Over a value whose type is written in front of it. */
static int skip_value(struct text *t)
{
	char ignored[TYPE_MAX];

	skip_space(t);
	if (t->p[0] == '[' && t->p[1] == ']') {
		t->p += 2;
		return 0;
	}
	return type_of(t, ignored, sizeof(ignored));
}

static int type_of(struct text *t, char *type, size_t room)
{
	char given[TYPE_MAX];
	int r = take_type(t, given);
	size_t n;

	if (r > 0 && strlen(given) >= room)
		return -EINVAL;
	if (r > 0) {
		strcpy(type, given);
		return skip_value(t);
	}
	skip_space(t);
	if (r < 0 || room < 2 || !*t->p)
		return -EINVAL;
	if (*t->p == '[' || *t->p == '(')
		return type_of_list(t, type, room);
	type[1] = '\0';
	if (*t->p == '\'' || *t->p == '"') {
		type[0] = 's';
		return skip_string(t);
	}
	n = strcspn(t->p, " \t\n,)]");
	if (strncmp(t->p, "true", n) == 0 || strncmp(t->p, "false", n) == 0)
		type[0] = 'b';
	else
		type[0] = memchr(t->p, '.', n) ? 'd' : 'i';
	t->p += n;
	return n ? 0 : -EINVAL;
}

/* ---- second pass: the bytes ----------------------------------------------------------------- */

static int put_value(struct lr_dbus_out *o, struct text *t, const char *type);

static int put_quoted(struct lr_dbus_out *o, struct text *t)
{
	static const char from[] = "abfnrtv\\'\"", to[] = "\a\b\f\n\r\t\v\\'\"";
	struct lr_dbus_array bytes = lr_dbus_put_array(o, 1);
	char quote = *t->p++;

	for (; *t->p != quote; t->p++) {
		const char *known;

		if (*t->p != '\\') {
			if (!*t->p)
				return -EINVAL;
			lr_dbus_put_byte(o, (uint8_t)*t->p);
			continue;
		}
		known = *++t->p ? strchr(from, *t->p) : NULL;
		if (!known)
			return -EINVAL;
		lr_dbus_put_byte(o, (uint8_t)to[known - from]);
	}
	t->p++;
	lr_dbus_end_array(o, bytes);
	lr_dbus_put_byte(o, '\0');
	return 0;
}

static int put_integer(struct lr_dbus_out *o, const char *word, char type)
{
	static const struct {
		char type;
		int64_t min;
		uint64_t max;
	} ranges[] = {
		{'y', 0, UINT8_MAX},  {'n', INT16_MIN, INT16_MAX},
		{'q', 0, UINT16_MAX}, {'i', INT32_MIN, INT32_MAX},
		{'u', 0, UINT32_MAX}, {'x', INT64_MIN, INT64_MAX},
		{'t', 0, UINT64_MAX},
	};
	bool minus = word[0] == '-';
	char *end;
	size_t i = 0;

	if (!isdigit((unsigned char)word[minus]))
		return -EINVAL;
	errno = 0;
	uint64_t v = strtoull(word + minus, &end, 0);
	while (ranges[i].type != type)
		i++;
	if (*end || errno || (minus ? v > -(uint64_t)ranges[i].min : v > ranges[i].max))
		return -EINVAL;
	if (minus)
		v = -v;
	switch (align_of(type)) {
	case 1:
		lr_dbus_put_byte(o, (uint8_t)v);
		break;
	case 2:
		lr_dbus_put_u16(o, (uint16_t)v);
		break;
	case 4:
		lr_dbus_put_u32(o, (uint32_t)v);
		break;
	default:
		lr_dbus_put_u64(o, v);
	}
	return 0;
}

static int put_word(struct lr_dbus_out *o, const char *word, char type)
{
	double d;
	uint64_t bits;
	char *end;

	if (type == 'b') {
		if (!lr_streq(word, "true") && !lr_streq(word, "false"))
			return -EINVAL;
		lr_dbus_put_u32(o, word[0] == 't');
		return 0;
	}
	if (type != 'd')
		return put_integer(o, word, type);
	d = strtod(word, &end);
	if (*end)
		return -EINVAL;
	memcpy(&bits, &d, sizeof(bits));
	lr_dbus_put_u64(o, bits);
	return 0;
}

static int put_basic(struct lr_dbus_out *o, struct text *t, char type)
{
	char word[TYPE_MAX];
	size_t n;

	if (type == 's' || type == 'o')
		return *t->p == '\'' || *t->p == '"' ? put_quoted(o, t) : -EINVAL;
	n = strcspn(t->p, " \t\n,)]");
	if (n == 0 || n >= sizeof(word))
		return -EINVAL;
	memcpy(word, t->p, n);
	word[n] = '\0';
	t->p += n;
	return put_word(o, word, type);
}

static int put_array(struct lr_dbus_out *o, struct text *t, const char *element)
{
	struct lr_dbus_array a;
	int r = 0;

	if (!take(t, '['))
		return -EINVAL;
	a = lr_dbus_put_array(o, align_of(*element));
	for (bool first = true; r == 0 && !take(t, ']'); first = false)
		r = first || take(t, ',') ? put_value(o, t, element) : -EINVAL;
	lr_dbus_end_array(o, a);
	return r;
}

static int put_tuple(struct lr_dbus_out *o, struct text *t, const char *type)
{
	int r = take(t, '(') ? 0 : -EINVAL;

	lr_dbus_put_align(o, 8);
	for (const char *one = type; r == 0 && *one != ')'; one = type_end(one, 0))
		r = one == type || take(t, ',') ? put_value(o, t, one) : -EINVAL;
	/* A comma at the end is how a tuple of one is written. */
	if (r == 0 && !take(t, ')'))
		r = take(t, ',') && take(t, ')') ? 0 : -EINVAL;
	return r;
}

static int put_value(struct lr_dbus_out *o, struct text *t, const char *type)
{
	char given[TYPE_MAX];
	int r = take_type(t, given);

	skip_space(t);
	if (r < 0 || o->full)
		return r < 0 ? r : -ENOBUFS;
	if (r > 0 && strncmp(given, type, strlen(given)) != 0)
		return -EINVAL;
	if (*type == 'a')
		return put_array(o, t, type + 1);
	return *type == '(' ? put_tuple(o, t, type + 1) : put_basic(o, t, *type);
}

int lr_dbus_put_text(struct lr_dbus_out *o, const char *text, struct lr_err *err)
{
	struct text t = {.p = text};
	char type[TYPE_MAX] = "";
	int r = type_of(&t, type, sizeof(type));

	if (r == 0) {
		t = (struct text){.p = text};
		lr_dbus_put_signature(o, type);
		r = put_value(o, &t, type);
		skip_space(&t);
	}
	if (r == -ENOBUFS || (r == 0 && o->full))
		return lr_refuse(err, ENOBUFS, "too long for a message");
	if (r == 0 && !*t.p)
		return 0;
	lr_refuse(err, EINVAL, "not a value: %.100s", text);
	return lr_err_hint(err, "write it as GVariant has it: 'text', true, 5, uint64 5, ['a', "
				"'b']");
}
