/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes from a bus and from its environment: messages, values in GVariant's text form (from
 * annotations) and addresses. The first byte chooses which.
 */
#include <errno.h>

#include "src/systemd/dbus.h"
#include "tests/fuzz/fuzz.h"

static bool within(const char *s, const uint8_t *buf, size_t len)
{
	const uint8_t *p = (const uint8_t *)s;

	return !*s || (p >= buf && p + strlen(s) < buf + len);
}

static void message(const uint8_t *data, size_t size)
{
	struct lr_dbus_msg m;
	size_t len;

	if (size < LR_DBUS_HEAD || lr_dbus_length(data, &len) < 0)
		return;
	FUZZ_CHECK(len >= LR_DBUS_HEAD && len <= LR_DBUS_MAX);
	if (lr_dbus_parse(data, size, &m) < 0)
		return;
	FUZZ_CHECK(len == size && m.serial);
	FUZZ_CHECK(within(m.path, data, size) && within(m.interface, data, size) &&
		   within(m.member, data, size) && within(m.error, data, size) &&
		   within(m.sender, data, size) && within(m.signature, data, size));
	/* The body, as the message says it is; whatever it says. */
	for (const char *s = m.signature; *s; s++) {
		if (*s == 's' || *s == 'o')
			FUZZ_CHECK(within(lr_dbus_get_string(&m.body), data, size));
		else if (*s == 'g' || *s == 'v')
			FUZZ_CHECK(within(lr_dbus_get_signature(&m.body), data, size));
		else
			(void)lr_dbus_get_u32(&m.body);
	}
	FUZZ_CHECK(m.body.pos <= m.body.len);
}

static void value(const char *text)
{
	static uint8_t buf[4096];
	struct lr_dbus_out o = {.buf = buf, .cap = sizeof(buf)};
	struct lr_err err = {0};
	int r = lr_dbus_put_text(&o, text, &err);

	FUZZ_CHECK(o.len <= o.cap);
	FUZZ_CHECK(r == 0 || r == -EINVAL || r == -ENOBUFS);
	if (r < 0) {
		FUZZ_CHECK(err.code == -r);
		return;
	}
	/* A signature and something after it. */
	FUZZ_CHECK(buf[0] && o.len > buf[0] + (size_t)2 && strlen((char *)buf + 1) == buf[0]);
}

static void addresses(const char *text)
{
	struct sockaddr_un to;
	socklen_t len;
	int r;

	while ((r = lr_dbus_address(&text, &to, &len)))
		FUZZ_CHECK(r < 0 || (len > sizeof(sa_family_t) + 1 && len <= sizeof(to)));
	FUZZ_CHECK(!*text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char text[LR_DBUS_MAX + 1];

	if (size == 0 || size > LR_DBUS_MAX)
		return 0;
	if (data[0] == 'm') {
		/* Exactly as long as it is, for the sanitizers. */
		uint8_t *copy = malloc(size);
		memcpy(copy, data + 1, size - 1);
		message(copy, size - 1);
		free(copy);
		return 0;
	}
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	if (data[0] == 't')
		value(text);
	else if (data[0] == 'a')
		addresses(text);
	return 0;
}
