/* SPDX-License-Identifier: Apache-2.0 */
/* The other side of a conversation by D-Bus, for a process of a test's own that plays it by a
 * script. What comes unexpected ends it with status 1. */
#ifndef LR_TEST_PEER_H
#define LR_TEST_PEER_H

#include <string.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/systemd/dbus.h"

static int peer;                        /* its end */
static uint8_t peer_bytes[LR_DBUS_MAX]; /* the call that was taken last */

static inline void peer_say(const char *text)
{
	(void)!write(peer, text, strlen(text));
}

static inline void peer_expect(const char *text, size_t n)
{
	char got[256] = "";

	if (lr_read_full(peer, got, n) != (ssize_t)n || memcmp(got, text, n) != 0)
		_exit(1);
}

static inline void peer_authenticate(void)
{
	peer_expect("\0AUTH EXTERNAL\r\n", 16);
	peer_say("DATA\r\n");
	peer_expect("DATA\r\nBEGIN\r\n", 13);
	peer_say("OK 1234deadbeef\r\n");
}

/* The next call, which has to be of that method (NULL: any); its serial number. */
static inline uint32_t peer_take(const char *member)
{
	struct lr_dbus_msg m;
	size_t len;

	if (lr_read_full(peer, peer_bytes, LR_DBUS_HEAD) != LR_DBUS_HEAD ||
	    lr_dbus_length(peer_bytes, &len) < 0 ||
	    lr_read_full(peer, peer_bytes + LR_DBUS_HEAD, len - LR_DBUS_HEAD) < 0 ||
	    lr_dbus_parse(peer_bytes, len, &m) < 0 || (member && strcmp(m.member, member) != 0))
		_exit(1);
	memset(peer_bytes + len, 0, sizeof(peer_bytes) - len);
	return m.serial;
}

/* Whether the call that was taken last has that word in it. */
static inline bool peer_took(const char *word)
{
	return memmem(peer_bytes, sizeof(peer_bytes), word, strlen(word));
}

/* ---- answers -------------------------------------------------------------------------------- */

struct peer_message {
	uint8_t type;
	uint32_t to;                /* the call that is answered */
	const char *error, *sender; /* NULL: none */
	const char *signal;         /* path, interface and member in one: "/p i.f M" */
	const char *signature;
};

static inline void peer_field(struct lr_dbus_out *o, uint8_t code, const char *type,
			      const char *text)
{
	lr_dbus_put_align(o, 8);
	lr_dbus_put_byte(o, code);
	lr_dbus_put_signature(o, type);
	if (type[0] == 'g')
		lr_dbus_put_signature(o, text);
	else
		lr_dbus_put_string(o, text);
}

static inline void peer_send(const struct peer_message *m, const struct lr_dbus_out *body)
{
	uint8_t buf[1024];
	struct lr_dbus_out o = {.buf = buf, .cap = sizeof(buf)};
	struct lr_dbus_array fields;
	char words[256], *save = words;

	lr_dbus_put_byte(&o, *(const uint8_t *)&(uint16_t){1} ? 'l' : 'B');
	lr_dbus_put_byte(&o, m->type);
	lr_dbus_put_byte(&o, 0);
	lr_dbus_put_byte(&o, 1);
	lr_dbus_put_u32(&o, (uint32_t)body->len);
	lr_dbus_put_u32(&o, 99);
	fields = lr_dbus_put_array(&o, 8);
	if (m->to) {
		lr_dbus_put_align(&o, 8);
		lr_dbus_put_byte(&o, 5);
		lr_dbus_put_signature(&o, "u");
		lr_dbus_put_u32(&o, m->to);
	}
	strcpy(words, m->signal ? m->signal : "");
	for (uint8_t code = 1; code <= 3 && m->signal; code++)
		peer_field(&o, code, code == 1 ? "o" : "s", strsep(&save, " "));
	if (m->error)
		peer_field(&o, 4, "s", m->error);
	if (m->sender)
		peer_field(&o, 7, "s", m->sender);
	peer_field(&o, 8, "g", m->signature);
	lr_dbus_end_array(&o, fields);
	lr_dbus_put_align(&o, 8);
	(void)!write(peer, o.buf, o.len);
	(void)!write(peer, body->buf, body->len);
}

/* One string: what most answers consist of. */
static inline void peer_answer(uint8_t type, uint32_t to, const char *error, const char *text)
{
	uint8_t buf[256];
	struct lr_dbus_out body = {.buf = buf, .cap = sizeof(buf)};
	const struct peer_message m = {
		.type = type,
		.to = to,
		.error = error,
		.signal = type == LR_DBUS_SIGNAL ? "/signal signal signal" : NULL,
		.signature = "s",
	};

	lr_dbus_put_string(&body, text);
	peer_send(&m, &body);
}

#endif
