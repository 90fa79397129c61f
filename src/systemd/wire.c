/* SPDX-License-Identifier: Apache-2.0 */
/* dbus: bytes of messages, both ways. Pure. Numbers are those of the D-Bus specification. */
#include "src/systemd/dbus.h"

#include <endian.h>
#include <string.h>

#include "src/base/str.h"

#define NATIVE_ORDER (__BYTE_ORDER == __LITTLE_ENDIAN ? 'l' : 'B')

enum { PATH = 1, INTERFACE, MEMBER, ERROR_NAME, REPLY_SERIAL, DESTINATION, SENDER, SIGNATURE };

/* ---- writing ------------------------------------------------------------------------------ */

static void put(struct lr_dbus_out *o, const void *bytes, size_t n)
{
	if (o->full || n > o->cap - o->len) {
		o->full = true;
		return;
	}
	memcpy(o->buf + o->len, bytes, n);
	o->len += n;
}

void lr_dbus_put_align(struct lr_dbus_out *o, size_t to)
{
	static const uint8_t zeros[8];

	put(o, zeros, -o->len & (to - 1));
}

void lr_dbus_put_byte(struct lr_dbus_out *o, uint8_t v)
{
	put(o, &v, sizeof(v));
}

void lr_dbus_put_u16(struct lr_dbus_out *o, uint16_t v)
{
	lr_dbus_put_align(o, sizeof(v));
	put(o, &v, sizeof(v));
}

void lr_dbus_put_u32(struct lr_dbus_out *o, uint32_t v)
{
	lr_dbus_put_align(o, sizeof(v));
	put(o, &v, sizeof(v));
}

void lr_dbus_put_u64(struct lr_dbus_out *o, uint64_t v)
{
	lr_dbus_put_align(o, sizeof(v));
	put(o, &v, sizeof(v));
}

void lr_dbus_put_string(struct lr_dbus_out *o, const char *s)
{
	size_t len = strlen(s);

	if (len > LR_DBUS_MAX) {
		o->full = true;
		return;
	}
	lr_dbus_put_u32(o, (uint32_t)len);
	put(o, s, len + 1);
}

void lr_dbus_put_signature(struct lr_dbus_out *o, const char *s)
{
	size_t len = strlen(s);

	if (len > UINT8_MAX) {
		o->full = true;
		return;
	}
	lr_dbus_put_byte(o, (uint8_t)len);
	put(o, s, len + 1);
}

struct lr_dbus_array lr_dbus_put_array(struct lr_dbus_out *o, size_t align)
{
	struct lr_dbus_array a;

	lr_dbus_put_u32(o, 0);
	a.length_at = o->len - sizeof(uint32_t);
	lr_dbus_put_align(o, align);
	a.begin = o->len;
	return a;
}

void lr_dbus_end_array(struct lr_dbus_out *o, struct lr_dbus_array a)
{
	uint32_t n = (uint32_t)(o->len - a.begin);

	if (!o->full)
		memcpy(o->buf + a.length_at, &n, sizeof(n));
}

static void put_field(struct lr_dbus_out *o, uint8_t code, const char *type, const char *value)
{
	lr_dbus_put_align(o, 8);
	lr_dbus_put_byte(o, code);
	lr_dbus_put_signature(o, type);
	if (lr_streq(type, "g"))
		lr_dbus_put_signature(o, value);
	else
		lr_dbus_put_string(o, value);
}

void lr_dbus_encode(struct lr_dbus_out *o, uint32_t serial, const struct lr_dbus_method *m,
		    const struct lr_dbus_out *body)
{
	struct lr_dbus_array fields;

	lr_dbus_put_byte(o, NATIVE_ORDER);
	lr_dbus_put_byte(o, LR_DBUS_CALL);
	lr_dbus_put_byte(o, 0); /* flags */
	lr_dbus_put_byte(o, 1); /* version of the protocol */
	lr_dbus_put_u32(o, body ? (uint32_t)body->len : 0);
	lr_dbus_put_u32(o, serial);
	fields = lr_dbus_put_array(o, 8);
	put_field(o, PATH, "o", m->path);
	put_field(o, INTERFACE, "s", m->interface);
	put_field(o, MEMBER, "s", m->member);
	put_field(o, DESTINATION, "s", m->destination);
	if (m->signature[0])
		put_field(o, SIGNATURE, "g", m->signature);
	lr_dbus_end_array(o, fields);
	lr_dbus_put_align(o, 8);
	if (body) {
		o->full |= body->full;
		put(o, body->buf, body->len);
	}
}

/* ---- reading ------------------------------------------------------------------------------ */

static const uint8_t *get(struct lr_dbus_in *in, size_t align, size_t n)
{
	size_t pad = -in->pos & (align - 1);
	const uint8_t *p;

	if (in->bad || pad > in->len - in->pos || n > in->len - in->pos - pad) {
		in->bad = true;
		return NULL;
	}
	for (size_t i = 0; i < pad; i++)
		in->bad |= in->buf[in->pos + i] != 0;
	p = in->buf + in->pos + pad;
	in->pos += pad + n;
	return in->bad ? NULL : p;
}

uint8_t lr_dbus_get_byte(struct lr_dbus_in *in)
{
	const uint8_t *p = get(in, 1, 1);

	return p ? *p : 0;
}

uint32_t lr_dbus_get_u32(struct lr_dbus_in *in)
{
	const uint8_t *p = get(in, 4, 4);
	uint32_t v = 0;

	if (p)
		memcpy(&v, p, sizeof(v));
	return v;
}

/* len bytes and the NUL that has to follow; none may be among them. */
static const char *get_text(struct lr_dbus_in *in, size_t len)
{
	const uint8_t *p = len > LR_DBUS_MAX ? NULL : get(in, 1, len + 1);

	in->bad |= !p;
	if (p && (p[len] != '\0' || memchr(p, '\0', len)))
		in->bad = true;
	return p && !in->bad ? (const char *)p : "";
}

const char *lr_dbus_get_string(struct lr_dbus_in *in)
{
	return get_text(in, lr_dbus_get_u32(in));
}

const char *lr_dbus_get_signature(struct lr_dbus_in *in)
{
	return get_text(in, lr_dbus_get_byte(in));
}

static uint32_t word_at(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

int lr_dbus_length(const uint8_t head[LR_DBUS_HEAD], size_t *ret)
{
	uint32_t body = word_at(head + 4), fields = word_at(head + 12);

	if (head[0] != NATIVE_ORDER || head[3] != 1)
		return -EBADMSG;
	if (body > LR_DBUS_MAX || fields > LR_DBUS_MAX)
		return -EMSGSIZE;
	*ret = LR_DBUS_HEAD + ((fields + (size_t)7) & ~(size_t)7) + body;
	return *ret > LR_DBUS_MAX ? -EMSGSIZE : 0;
}

/* Of fields that are new to us: those that exist are strings, signatures and numbers. */
static bool skip_field(struct lr_dbus_in *in, const char *type)
{
	if (lr_streq(type, "s") || lr_streq(type, "o"))
		lr_dbus_get_string(in);
	else if (lr_streq(type, "g"))
		lr_dbus_get_signature(in);
	else if (lr_streq(type, "u"))
		lr_dbus_get_u32(in);
	else
		return false;
	return !in->bad;
}

static bool get_field(struct lr_dbus_in *in, struct lr_dbus_msg *m)
{
	static const char types[] = "\0osssussg";
	const char **const texts[] = {
		[PATH] = &m->path,        [INTERFACE] = &m->interface, [MEMBER] = &m->member,
		[ERROR_NAME] = &m->error, [REPLY_SERIAL] = NULL,       [DESTINATION] = NULL,
		[SENDER] = &m->sender,    [SIGNATURE] = &m->signature,
	};
	uint8_t code;
	const char *type;

	(void)get(in, 8, 0);
	code = lr_dbus_get_byte(in);
	type = lr_dbus_get_signature(in);
	if (in->bad || code == 0)
		return false;
	if (code > SIGNATURE || code == DESTINATION)
		return skip_field(in, type);
	if (type[0] != types[code] || type[1])
		return false;
	if (code == REPLY_SERIAL)
		m->reply_serial = lr_dbus_get_u32(in);
	else if (code == SIGNATURE)
		m->signature = lr_dbus_get_signature(in);
	else
		*texts[code] = lr_dbus_get_string(in);
	return !in->bad;
}

/* What each type of message has to have. */
static bool is_complete(const struct lr_dbus_msg *m)
{
	switch (m->type) {
	case LR_DBUS_CALL:
		return m->path[0] && m->member[0];
	case LR_DBUS_RETURN:
		return m->reply_serial;
	case LR_DBUS_ERROR:
		return m->reply_serial && m->error[0];
	case LR_DBUS_SIGNAL:
		return m->path[0] && m->interface[0] && m->member[0];
	default: /* "unknown types must be ignored" */
		return m->type != 0;
	}
}

int lr_dbus_parse(const uint8_t *buf, size_t len, struct lr_dbus_msg *ret)
{
	struct lr_dbus_msg m = {.path = "",
				.interface = "",
				.member = "",
				.error = "",
				.sender = "",
				.signature = ""};
	size_t total;

	if (len < LR_DBUS_HEAD || lr_dbus_length(buf, &total) < 0 || total != len)
		return -EBADMSG;
	struct lr_dbus_in in = {
		.buf = buf, .len = LR_DBUS_HEAD + word_at(buf + 12), .pos = LR_DBUS_HEAD};
	m.type = buf[1];
	m.serial = word_at(buf + 8);
	while (in.pos < in.len)
		if (!get_field(&in, &m))
			return -EBADMSG;
	in.len = len;
	(void)get(&in, 8, 0);
	if (in.bad || m.serial == 0 || !is_complete(&m))
		return -EBADMSG;
	m.body = (struct lr_dbus_in){.buf = buf + in.pos, .len = len - in.pos};
	*ret = m;
	return 0;
}
