/* SPDX-License-Identifier: Apache-2.0 */
/* wire: see ticket.h. */
#include "src/wire/ticket.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/base/str.h"

#define BASE64        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
#define SECRET_LENGTH 43

void lr_wire_id_text(const uint8_t id[LR_WIRE_ID], char out[LR_WIRE_HEX])
{
	for (size_t i = 0; i < LR_WIRE_ID; i++)
		snprintf(out + 2 * i, 3, "%02x", id[i]);
}

int lr_wire_id_of(const char *text, size_t n, uint8_t ret[LR_WIRE_ID])
{
	static const char digits[] = "0123456789abcdef";

	if (n != 2 * LR_WIRE_ID)
		return -EINVAL;
	for (size_t i = 0; i < LR_WIRE_ID; i++) {
		const char *high = memchr(digits, text[2 * i], 16);
		const char *low = memchr(digits, text[2 * i + 1], 16);
		if (!high || !low)
			return -EINVAL;
		ret[i] = (uint8_t)((high - digits) << 4 | (low - digits));
	}
	return 0;
}

/* 256 bits in 43 characters of six: two bits at the end are zero. */
static void secret_text(const uint8_t secret[LR_WIRE_SECRET], char out[SECRET_LENGTH + 1])
{
	for (size_t i = 0; i < SECRET_LENGTH; i++) {
		unsigned v = 0;
		for (size_t bit = 6 * i; bit < 6 * i + 6; bit++)
			v = v << 1 | (bit < 256 ? secret[bit / 8] >> (7 - bit % 8) & 1U : 0U);
		out[i] = BASE64[v];
	}
	out[SECRET_LENGTH] = 0;
}

static int secret_of(const char *text, size_t n, uint8_t ret[LR_WIRE_SECRET])
{
	if (n != SECRET_LENGTH)
		return -EINVAL;
	memset(ret, 0, LR_WIRE_SECRET);
	for (size_t i = 0; i < n; i++) {
		const char *c = memchr(BASE64, text[i], 64);
		if (!c)
			return -EINVAL;
		unsigned v = (unsigned)(c - BASE64);
		for (size_t k = 0; k < 6; k++) {
			size_t bit = 6 * i + k;
			unsigned one = v >> (5 - k) & 1U;
			if (bit < 256)
				ret[bit / 8] |= (uint8_t)(one << (7 - bit % 8));
			else if (one)
				return -EINVAL;
		}
	}
	return 0;
}

/* ---- host and port ------------------------------------------------------------------------ */

static bool is_host(const char *s, size_t n, bool v6)
{
	if (!n || n >= LR_TICKET_HOST)
		return false;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];
		bool common = (c < 0x80 && isalnum(c)) || c == '.' || c == '-';
		if (!common && !(v6 && (c == ':' || c == '%')))
			return false;
	}
	return true;
}

static int port_of(const char *s, size_t n, uint16_t *ret)
{
	unsigned v = 0;

	if (!n || n > 5 || s[0] == '0')
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return -EINVAL;
		v = 10 * v + (unsigned)(s[i] - '0');
	}
	if (v > UINT16_MAX)
		return -EINVAL;
	*ret = (uint16_t)v;
	return 0;
}

static int place_of(const char *s, size_t n, struct lr_ticket *t)
{
	const char *colon = memrchr(s, ':', n);
	size_t host = colon ? (size_t)(colon - s) : 0;
	bool v6 = host > 2 && s[0] == '[' && s[host - 1] == ']';

	if (!colon || port_of(colon + 1, n - host - 1, &t->port) < 0)
		return -EINVAL;
	if (v6) {
		s++;
		host -= 2;
		if (!memchr(s, ':', host))
			return -EINVAL;
	}
	if (!is_host(s, host, v6))
		return -EINVAL;
	memcpy(t->host, s, host);
	t->host[host] = 0;
	return 0;
}

/* ---- all ---------------------------------------------------------------------------------- */

static const char *const ways[] = {
	[LR_WIRE_TLS] = LR_TICKET_PREFIX "1:tls:", [LR_WIRE_PLAIN] = LR_TICKET_PREFIX "1:plain:"};

int lr_ticket_decode(const char *text, size_t n, struct lr_ticket *ret)
{
	struct lr_ticket t = {0};
	size_t at = 0;

	for (int way = LR_WIRE_TLS; way <= LR_WIRE_PLAIN; way++) {
		size_t length = strlen(ways[way]);
		if (n > length && memcmp(text, ways[way], length) == 0) {
			t.way = (enum lr_wire_way)way;
			at = length;
		}
	}
	const size_t fixed = 2 * LR_WIRE_ID + 1 + SECRET_LENGTH + 1;
	if (!at || n - at < fixed || n >= LR_TICKET_TEXT)
		return -EINVAL;
	text += at;
	n -= at;
	if (lr_wire_id_of(text, 2 * LR_WIRE_ID, t.id) < 0 || text[2 * LR_WIRE_ID] != ':' ||
	    secret_of(text + 2 * LR_WIRE_ID + 1, SECRET_LENGTH, t.secret) < 0 ||
	    text[fixed - 1] != '@' || place_of(text + fixed, n - fixed, &t) < 0)
		return -EINVAL;
	*ret = t;
	return 0;
}

int lr_ticket_encode(const struct lr_ticket *t, char out[LR_TICKET_TEXT])
{
	char id[LR_WIRE_HEX], secret[SECRET_LENGTH + 1];
	bool v6 = strchr(t->host, ':');

	if ((t->way != LR_WIRE_TLS && t->way != LR_WIRE_PLAIN) || !t->port ||
	    !is_host(t->host, strlen(t->host), v6))
		return -EINVAL;
	lr_wire_id_text(t->id, id);
	secret_text(t->secret, secret);
	int n = snprintf(out, LR_TICKET_TEXT, "%s%s:%s@%s%s%s:%u", ways[t->way], id, secret,
			 v6 ? "[" : "", t->host, v6 ? "]" : "", t->port);
	return n < LR_TICKET_TEXT ? 0 : -EINVAL;
}

enum lr_ticket_place lr_ticket_place(const char *arg, const char **rest)
{
	static const struct {
		const char *prefix;
		enum lr_ticket_place place;
	} v[] = {{"file:", LR_TICKET_FILE}, {"env:", LR_TICKET_ENV}};

	for (size_t i = 0; i < LR_ARRAY_SIZE(v); i++)
		if (lr_has_prefix(arg, v[i].prefix)) {
			*rest = arg + strlen(v[i].prefix);
			return v[i].place;
		}
	*rest = arg;
	return LR_TICKET_HERE;
}
