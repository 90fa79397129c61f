/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "src/wire/fields.h"
#include "src/wire/ticket.h"
#include "src/wire/wire.h"
#include "tests/unit/test.h"

static uint8_t bytes[LR_WIRE_HEAD + LR_WIRE_CHUNK + 64];

/* Every member has a value of its own. */
static struct lr_wire_msg sample(enum lr_wire_type type)
{
	static const uint8_t data[] = {0, 1, 255};
	struct lr_wire_msg m = {.type = type,
				.tag = 0x1122334455667788,
				.code = LR_WIRE_EXPIRED,
				.count = 0x01020304,
				.flags = 0x05060708,
				.key = 0x090a0b0c,
				.at = 0x1000,
				.length = 0xa1a2a3a4a5a6a7a8,
				.pages = 0xb1b2b3b4b5b6b7b8,
				.lease = 0xc1c2c3c4c5c6c7c8,
				.text = lr_wire_text("a text", 6),
				.path = lr_wire_text("/a/\xc3\xa4", 5),
				.data = {data, sizeof(data)},
				.n = 2};

	memset(m.id, 0x1d, sizeof(m.id));
	memset(m.proof, 0x9f, sizeof(m.proof));
	m.ranges[0] = (struct lr_wire_range){0x1000, 1};
	m.ranges[1] = (struct lr_wire_range){0x7000, 255};
	if (type == LR_WIRE_CHILDREN_ARE) {
		m.children[0] = (struct lr_wire_child){
			{1}, 2, LR_WIRE_OVER, {3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}};
		m.children[1] = (struct lr_wire_child){
			{15}, 16, LR_WIRE_KILLED, {17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28}};
		return m;
	}
	m.seeds[0] = (struct lr_wire_seed){{1}, 2, 3, 4, 5, 6, 7, 15};
	m.seeds[1] = (struct lr_wire_seed){{8}, 9, 10, 11, 12, 13, 14, 16};
	return m;
}

static bool same(const struct lr_wire_bytes *a, const struct lr_wire_bytes *b)
{
	return a->n == b->n && memcmp(a->at, b->at, a->n) == 0;
}

static void check_field(struct lr_wire_msg *a, struct lr_wire_msg *b, enum wire_field f)
{
	if (f == F_CHILDREN) {
		CHECK_INT(b->n, 2);
		CHECK(memcmp(a->children, b->children, 2 * sizeof(a->children[0])) == 0);
	} else if (f == F_RANGES || f == F_SEEDS) {
		CHECK_INT(b->n, 2);
		for (size_t i = 0; i < a->n; i++)
			CHECK(f == F_RANGES ? a->ranges[i].at == b->ranges[i].at &&
						      a->ranges[i].pages == b->ranges[i].pages
					    : memcmp(&a->seeds[i], &b->seeds[i],
						     sizeof(a->seeds[i])) == 0);
	} else if (wire_takes_rest(f)) {
		CHECK(same(wire_place(a, f), wire_place(b, f)));
	} else if (f != F_NOTHING) {
		CHECK(memcmp(wire_place(a, f), wire_place(b, f), wire_most(f)) == 0);
	}
}

TEST(messages_come_back)
{
	int types = 0;

	for (uint32_t type = 0; type < 64; type++) {
		const uint8_t *fields = wire_fields(type);
		if (!fields)
			continue;
		types++;
		struct lr_wire_msg m = sample((enum lr_wire_type)type), got;
		ssize_t n = lr_wire_encode(&m, bytes, sizeof(bytes));
		CHECK(n >= LR_WIRE_HEAD);
		CHECK_INT(lr_wire_decode_all(bytes, (size_t)n, &got), 0);
		CHECK_INT(got.type, type);
		CHECK(got.tag == m.tag);
		for (const uint8_t *f = fields; *f; f++)
			check_field(&m, &got, *f);
		/* One byte more or less is another message, or none. */
		for (size_t k = 0; k < (size_t)n; k++)
			CHECK_INT(lr_wire_decode_all(bytes, k, &got), -EPROTO);
		CHECK_INT(lr_wire_decode_all(bytes, (size_t)n + 1, &got), -EPROTO);
	}
	CHECK_INT(types, 34);
}

TEST(a_message_as_bytes)
{
	struct lr_wire_msg m = {.type = LR_WIRE_READ, .tag = 0x0807, .n = 1};
	static const uint8_t want[] = {12, 0, 0, 0, 5,    0, 0, 0, 7, 8, 0, 0, 0, 0,
				       0,  0, 0, 0, 0x10, 0, 0, 0, 0, 0, 3, 0, 0, 0};

	m.ranges[0] = (struct lr_wire_range){0x100000, 3};
	CHECK_INT(lr_wire_encode(&m, bytes, sizeof(bytes)), sizeof(want));
	CHECK(memcmp(bytes, want, sizeof(want)) == 0);
	CHECK_INT(lr_wire_encode(&m, bytes, sizeof(want) - 1), -EMSGSIZE);
}

static int ranges_are(uint64_t at, uint32_t pages)
{
	uint8_t b[LR_WIRE_HEAD + WIRE_RANGE_SIZE];
	struct lr_wire_msg got;

	lr_wire_put_head(&(struct lr_wire_head){LR_WIRE_READ, WIRE_RANGE_SIZE, 0}, b);
	wire_put(b + LR_WIRE_HEAD, at, 8);
	wire_put(b + LR_WIRE_HEAD + 8, pages, 4);
	return lr_wire_decode_all(b, sizeof(b), &got);
}

TEST(ranges_are_bounded)
{
	CHECK_INT(ranges_are(4096, 1), 0);
	CHECK_INT(ranges_are(4096, 256), 0);
	CHECK_INT(ranges_are(4096, 257), -EPROTO);
	CHECK_INT(ranges_are(4096, 0), -EPROTO);
	CHECK_INT(ranges_are(4096, UINT32_MAX), -EPROTO);
	CHECK_INT(ranges_are(0, 1), -EPROTO);
	CHECK_INT(ranges_are(4097, 1), -EPROTO);
	CHECK_INT(ranges_are(UINT64_MAX - 4095, 1), -EPROTO);

	struct lr_wire_msg m = {.type = LR_WIRE_READ, .n = 2};
	m.ranges[0] = m.ranges[1] = (struct lr_wire_range){4096, 129};
	CHECK_INT(lr_wire_encode(&m, bytes, sizeof(bytes)), -EINVAL);
	m.n = 0;
	CHECK_INT(lr_wire_encode(&m, bytes, sizeof(bytes)), -EINVAL);
}

TEST(lists_are_whole)
{
	struct lr_wire_msg m = {.type = LR_WIRE_SEEDS_ARE, .n = LR_WIRE_SEEDS}, got;
	uint8_t b[LR_WIRE_HEAD + WIRE_RANGE_SIZE + 1] = {0};

	CHECK(lr_wire_encode(&m, bytes, sizeof(bytes)) > 0);
	m.n++;
	CHECK_INT(lr_wire_encode(&m, bytes, sizeof(bytes)), -EINVAL);
	lr_wire_put_head(&(struct lr_wire_head){LR_WIRE_READ, WIRE_RANGE_SIZE + 1, 0}, b);
	wire_put(b + LR_WIRE_HEAD, 4096, 8);
	wire_put(b + LR_WIRE_HEAD + 8, 1, 4);
	CHECK_INT(lr_wire_decode_all(b, sizeof(b), &got), -EPROTO);
}

TEST(a_child_is_in_a_state_that_is_known)
{
	struct lr_wire_msg m = {.type = LR_WIRE_CHILDREN_ARE, .n = LR_WIRE_KIN}, got;
	ssize_t n = lr_wire_encode(&m, bytes, sizeof(bytes));

	CHECK(n > 0 && n <= LR_WIRE_MESSAGE);
	CHECK_INT(lr_wire_decode_all(bytes, (size_t)n, &got), 0);
	wire_put(bytes + LR_WIRE_HEAD + 4 + 20, LR_WIRE_STATES, 4);
	CHECK_INT(lr_wire_decode_all(bytes, (size_t)n, &got), -EPROTO);
	m.n++;
	CHECK_INT(lr_wire_encode(&m, bytes, sizeof(bytes)), -EINVAL);
}

TEST(what_is_sent_has_a_longest)
{
	static uint8_t long_data[LR_WIRE_CHUNK + 1];
	static char path[LR_WIRE_PATH + 1];
	struct lr_wire_msg m = {.type = LR_WIRE_DATA, .data = {long_data, LR_WIRE_CHUNK}};

	CHECK(lr_wire_encode(&m, bytes, sizeof(bytes)) > 0);
	m.data.n++;
	CHECK_INT(lr_wire_encode(&m, bytes, sizeof(bytes)), -EINVAL);
	memset(path, 'p', sizeof(path));
	m = (struct lr_wire_msg){.type = LR_WIRE_ADD, .path = lr_wire_text(path, LR_WIRE_PATH)};
	CHECK(lr_wire_encode(&m, bytes, sizeof(bytes)) > 0);
	m.path.n++;
	CHECK_INT(lr_wire_encode(&m, bytes, sizeof(bytes)), -EINVAL);
}

TEST(what_ranges_ask_for)
{
	struct lr_wire_msg m = {.type = LR_WIRE_READ, .n = 2};

	m.ranges[0] = (struct lr_wire_range){4096, 3};
	m.ranges[1] = (struct lr_wire_range){1 << 20, 5};
	CHECK_INT(lr_wire_asked(&m), 8 * LR_WIRE_PAGE);
}

TEST(each_code_has_a_name)
{
	for (uint32_t code = 1; code < LR_WIRE_CODES; code++)
		CHECK(lr_wire_code_name(code) &&
		      strcmp(lr_wire_code_name(code), "unknown refusal") != 0);
	CHECK_STR(lr_wire_code_name(LR_WIRE_REVOKED), "revoked");
	CHECK_STR(lr_wire_code_name(0), "unknown refusal");
	CHECK_STR(lr_wire_code_name(LR_WIRE_CODES), "unknown refusal");
}

TEST(a_token_that_is_shown)
{
	uint8_t shown[LR_WIRE_TOKEN_SHOWN + 8] = {0}, token[LR_WIRE_PROOF], got[LR_WIRE_PROOF];

	memset(token, 0x7c, sizeof(token));
	lr_wire_put_token(token, shown);
	CHECK_INT(lr_wire_get_token(shown, sizeof(shown), got), 0);
	CHECK(memcmp(got, token, sizeof(token)) == 0);
	CHECK_INT(lr_wire_get_token(shown, LR_WIRE_TOKEN_SHOWN, got), 0);
	CHECK_INT(lr_wire_get_token(shown, LR_WIRE_TOKEN_SHOWN - 1, got), -EPROTO);
	CHECK_INT(lr_wire_get_token(NULL, 0, got), -EPROTO);
	for (size_t i = 0; i < 16; i++) {
		shown[i] ^= 0x40;
		CHECK_INT(lr_wire_get_token(shown, sizeof(shown), got), -EPROTO);
		shown[i] ^= 0x40;
	}
}

TEST(heads_are_bounded)
{
	struct lr_wire_head h = {LR_WIRE_DATA, LR_WIRE_CHUNK, 1}, got;
	uint8_t b[LR_WIRE_HEAD];

	lr_wire_put_head(&h, b);
	CHECK_INT(lr_wire_get_head(b, &got), 0);
	CHECK_INT(got.length, LR_WIRE_CHUNK);
	h.length++;
	lr_wire_put_head(&h, b);
	CHECK_INT(lr_wire_get_head(b, &got), -EPROTO);
	h = (struct lr_wire_head){LR_WIRE_PING, 1, 1};
	lr_wire_put_head(&h, b);
	CHECK_INT(lr_wire_get_head(b, &got), -EPROTO);
	b[0] = 0;
	CHECK_INT(lr_wire_get_head(b, &got), 0);
	b[6] = 1;
	CHECK_INT(lr_wire_get_head(b, &got), -EPROTO);
	b[6] = 0;
	b[4] = 99;
	CHECK_INT(lr_wire_get_head(b, &got), -EPROTO);
}

TEST(texts_are_printable)
{
	struct lr_wire_msg m = {.type = LR_WIRE_REFUSED, .code = LR_WIRE_REVOKED};

	m.text = lr_wire_text("a\nb", 3);
	CHECK_INT(lr_wire_encode(&m, bytes, sizeof(bytes)), -EINVAL);
	m.text = lr_wire_text("\x1b[2J", 4);
	CHECK_INT(lr_wire_encode(&m, bytes, sizeof(bytes)), -EINVAL);
	char longer[LR_WIRE_TEXT + 1];
	memset(longer, 'x', sizeof(longer));
	m.text = lr_wire_text(longer, sizeof(longer));
	CHECK_INT(lr_wire_encode(&m, bytes, sizeof(bytes)), -EINVAL);
	m.text.n = 0;
	CHECK(lr_wire_encode(&m, bytes, sizeof(bytes)) > 0);
	m.code = LR_WIRE_CODES;
	CHECK_INT(lr_wire_encode(&m, bytes, sizeof(bytes)), -EINVAL);
	m = (struct lr_wire_msg){.type = LR_WIRE_ADD, .path = lr_wire_text("a\0b", 3)};
	CHECK_INT(lr_wire_encode(&m, bytes, sizeof(bytes)), -EINVAL);
}

TEST(hello_and_greeting)
{
	struct lr_wire_hello h = {1, 3, LR_WIRE_PLAIN, "0123456789abcde"}, got;
	struct lr_wire_greeting g = {.version = 2, .challenge = {7}}, back;
	uint8_t b[LR_WIRE_GREETING];

	lr_wire_put_hello(&h, b);
	CHECK_INT(lr_wire_get_hello(b, &got), 0);
	CHECK(got.oldest == 1 && got.newest == 3 && got.way == LR_WIRE_PLAIN);
	CHECK(memcmp(got.id, h.id, LR_WIRE_ID) == 0);
	for (int i = 0; i < 16; i++) {
		b[i] ^= 0x80;
		CHECK(lr_wire_get_hello(b, &got) == -EPROTO || i == 10 || i == 11);
		b[i] ^= 0x80;
	}
	h.oldest = 0;
	lr_wire_put_hello(&h, b);
	CHECK_INT(lr_wire_get_hello(b, &got), -EPROTO);
	lr_wire_put_greeting(&g, b);
	CHECK_INT(lr_wire_get_greeting(b, &back), 0);
	CHECK(back.version == 2 && !back.code && back.challenge[0] == 7);
	/* But for the version, there is one way to write it. */
	for (int i = 0; i < 16; i++) {
		b[i] ^= 0x80;
		CHECK(lr_wire_get_greeting(b, &back) == -EPROTO || i == 8 || i == 9);
		b[i] ^= 0x80;
	}
	g.code = LR_WIRE_REVOKED; /* and a version: which of them? */
	lr_wire_put_greeting(&g, b);
	CHECK_INT(lr_wire_get_greeting(b, &back), -EPROTO);
	g.version = 0;
	lr_wire_put_greeting(&g, b);
	CHECK_INT(lr_wire_get_greeting(b, &back), 0);
	g.code = LR_WIRE_CODES;
	lr_wire_put_greeting(&g, b);
	CHECK_INT(lr_wire_get_greeting(b, &back), -EPROTO);
	g.code = 0;
	lr_wire_put_greeting(&g, b);
	CHECK_INT(lr_wire_get_greeting(b, &back), -EPROTO);
}

#define ID     "000102030405060708090a0b0c0d0e0f"
#define SECRET "__________________________________________8"
#define START  "lean-seed:1:tls:" ID ":" SECRET "@"

static void ticket_is(const char *text, const char *host, unsigned port)
{
	struct lr_ticket t;
	char out[LR_TICKET_TEXT];

	CHECK_INT(lr_ticket_decode(text, strlen(text), &t), 0);
	CHECK_STR(t.host, host);
	CHECK_INT(t.port, port);
	CHECK(t.id[15] == 15 && t.secret[0] == 255 && t.secret[31] == 255);
	CHECK_INT(lr_ticket_encode(&t, out), 0);
	CHECK_STR(out, text);
}

TEST(tickets)
{
	ticket_is(START "192.0.2.1:7411", "192.0.2.1", 7411);
	ticket_is(START "[2001:db8::1]:1", "2001:db8::1", 1);
	ticket_is(START "[fe80::1%eth0]:1", "fe80::1%eth0", 1);
	ticket_is("lean-seed:1:plain:" ID ":" SECRET "@host-1.example:65535", "host-1.example",
		  65535);
}

TEST(no_tickets)
{
	static const char *const bad[] = {
		"",
		"lean-seed:1:tls:",
		START,
		START "host",
		START "host:",
		START "host:0",
		START "host:01",
		START "host:65536",
		START "host:123456",
		START ":1",
		START "ho st:1",
		START "a:b:1",
		START "[host]:1",
		START "[]:1",
		START "host:1\n",
		START "a/b:1",
		"lean-seed:2:tls:" ID ":" SECRET "@host:1",
		"lean-seed:1:tls:" ID ":__________________________________________9@host:1",
		"lean-seed:1:tls:000102030405060708090A0B0C0D0E0F:" SECRET "@host:1",
		"lean-seed:1:tls:" ID ":" SECRET "host:1",
	};
	struct lr_ticket t;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_INT(lr_ticket_decode(bad[i], strlen(bad[i]), &t), -EINVAL);
	/* A name fills its member, with the NUL, and no more. */
	char longer[sizeof(START) + LR_TICKET_HOST + 2] = START;
	memset(longer + sizeof(START) - 1, 'h', LR_TICKET_HOST);
	memcpy(longer + sizeof(START) - 1 + LR_TICKET_HOST, ":1", 3);
	CHECK_INT(lr_ticket_decode(longer, strlen(longer), &t), -EINVAL);
	memcpy(longer + sizeof(START) - 2 + LR_TICKET_HOST, ":1", 3);
	CHECK_INT(lr_ticket_decode(longer, strlen(longer), &t), 0);
	const char *good = START "host:1";
	for (size_t n = 0; n < strlen(good); n++)
		CHECK_INT(lr_ticket_decode(good, n, &t), -EINVAL);
}

TEST(where_a_ticket_is)
{
	const char *rest;

	CHECK_INT(lr_ticket_place("file:/run/t", &rest), LR_TICKET_FILE);
	CHECK_STR(rest, "/run/t");
	CHECK_INT(lr_ticket_place("env:SEED", &rest), LR_TICKET_ENV);
	CHECK_STR(rest, "SEED");
	CHECK_INT(lr_ticket_place("lean-seed:1", &rest), LR_TICKET_HERE);
}

/* For what a child ends, and for what it waits: by the numbers of docs/seed-protocol.md. */
TEST(what_is_final)
{
	for (uint32_t code = 0; code < LR_WIRE_CODES; code++)
		CHECK_INT(lr_wire_code_is_final(code), code == 2 || code == 3 || code == 9);
}
