/* SPDX-License-Identifier: Apache-2.0 */
/* dbus: messages to bytes and back, and addresses. */
#include "src/systemd/dbus.h"
#include "tests/unit/test.h"

static uint8_t buf[1024];
static struct lr_dbus_out out;
static struct lr_dbus_msg msg;

static const struct lr_dbus_method hello = {"org.freedesktop.DBus", "/org/freedesktop/DBus",
					    "org.freedesktop.DBus", "Hello", ""};

static void begin(void)
{
	out = (struct lr_dbus_out){.buf = buf, .cap = sizeof(buf)};
	memset(buf, 0xaa, sizeof(buf));
}

/* The message in buf, with one byte changed. */
static int parse_with(size_t at, uint8_t byte)
{
	uint8_t copy[sizeof(buf)];

	memcpy(copy, buf, out.len);
	copy[at] = byte;
	return lr_dbus_parse(copy, out.len, &msg);
}

TEST(a_call_is_what_the_specification_says)
{
	static const uint8_t want[] = "l\1\0\1\0\0\0\0\1\0\0\0\x6d\0\0\0"
				      "\1\1o\0\x15\0\0\0/org/freedesktop/DBus\0\0\0"
				      "\2\1s\0\x14\0\0\0org.freedesktop.DBus\0\0\0\0"
				      "\3\1s\0\5\0\0\0Hello\0\0\0"
				      "\6\1s\0\x14\0\0\0org.freedesktop.DBus\0\0\0";

	begin();
	lr_dbus_encode(&out, 1, &hello, NULL);
	CHECK(!out.full);
	CHECK_INT(out.len, sizeof(want));
	if (*(const uint8_t *)&(uint16_t){1} == 1) /* written down little-endian */
		CHECK(memcmp(buf, want, sizeof(want)) == 0);
}

TEST(back_again_with_a_body)
{
	const struct lr_dbus_method m = {"d", "/p", "i.f", "M", "sau"};
	uint8_t body_buf[64];
	struct lr_dbus_out body = {.buf = body_buf, .cap = sizeof(body_buf)};
	struct lr_dbus_array a;
	size_t len;

	begin();
	lr_dbus_put_string(&body, "text");
	a = lr_dbus_put_array(&body, 4);
	lr_dbus_put_u32(&body, 7);
	lr_dbus_end_array(&body, a);
	lr_dbus_encode(&out, 42, &m, &body);
	CHECK_INT(lr_dbus_length(buf, &len), 0);
	CHECK_INT(len, out.len);
	CHECK_INT(lr_dbus_parse(buf, out.len, &msg), 0);
	CHECK_INT(msg.type, LR_DBUS_CALL);
	CHECK_INT(msg.serial, 42);
	CHECK_STR(msg.path, "/p");
	CHECK_STR(msg.interface, "i.f");
	CHECK_STR(msg.member, "M");
	CHECK_STR(msg.signature, "sau");
	CHECK_STR(lr_dbus_get_string(&msg.body), "text");
	CHECK_INT(lr_dbus_get_u32(&msg.body), 4);
	CHECK_INT(lr_dbus_get_u32(&msg.body), 7);
	CHECK(!msg.body.bad);
	/* The end is the end, and what comes after it nothing. */
	CHECK_INT(lr_dbus_get_u32(&msg.body), 0);
	CHECK(msg.body.bad);
	CHECK_STR(lr_dbus_get_string(&msg.body), "");
}

TEST(malformed_messages_are_refused)
{
	size_t len;

	begin();
	lr_dbus_encode(&out, 1, &hello, NULL);
	CHECK_INT(parse_with(0, buf[0]), 0);
	CHECK_INT(parse_with(0, buf[0] == 'l' ? 'B' : 'l'), -EBADMSG); /* byte order */
	CHECK_INT(parse_with(0, 'x'), -EBADMSG);
	CHECK_INT(parse_with(1, 0), -EBADMSG);              /* type */
	CHECK_INT(parse_with(1, LR_DBUS_RETURN), -EBADMSG); /* to which call? */
	CHECK_INT(parse_with(3, 2), -EBADMSG);              /* version */
	CHECK_INT(parse_with(4, 1), -EBADMSG);              /* a body that is not there */
	CHECK_INT(parse_with(8, 0), -EBADMSG);              /* serial 0 */
	CHECK_INT(parse_with(16, 0), -EBADMSG);             /* field 0 */
	CHECK_INT(parse_with(16, 8), -EBADMSG);             /* a signature is no path */
	CHECK_INT(parse_with(18, 'v'), -EBADMSG);           /* a type that fields do not have */
	CHECK_INT(parse_with(19, 1), -EBADMSG);             /* no NUL after it */
	CHECK_INT(parse_with(20, 0xff), -EBADMSG);          /* longer than the message */
	CHECK_INT(parse_with(23, 0xff), -EBADMSG);
	CHECK_INT(parse_with(30, 0), -EBADMSG); /* a NUL inside */
	CHECK_INT(parse_with(46, 1), -EBADMSG); /* padding */
	const uint8_t *member = memmem(buf, out.len, "Hello", 6);
	REQUIRE(member);
	CHECK_INT(parse_with((size_t)(member + 5 - buf), 'x'), -EBADMSG); /* no NUL after it */
	CHECK_INT(lr_dbus_parse(buf, out.len - 1, &msg), -EBADMSG);
	CHECK_INT(lr_dbus_parse(buf, 3, &msg), -EBADMSG);
	buf[6] = 1; /* 64 KiB of body */
	CHECK_INT(lr_dbus_length(buf, &len), -EMSGSIZE);
	buf[7] = 0xff;
	CHECK_INT(lr_dbus_length(buf, &len), -EMSGSIZE);
}

TEST(unknown_fields_are_skipped)
{
	begin();
	lr_dbus_encode(&out, 1, &hello, NULL);
	/* The path, its code changed to one that does not exist: then only the path is missing. */
	CHECK_INT(parse_with(16, 10), -EBADMSG);
	buf[1] = 5; /* a type of message that does not exist has nothing it must have */
	CHECK_INT(parse_with(16, 10), 0);
	CHECK_STR(msg.path, "");
	CHECK_STR(msg.member, "Hello");
}

TEST(what_does_not_fit_is_told)
{
	out = (struct lr_dbus_out){.buf = buf, .cap = 40};
	lr_dbus_encode(&out, 1, &hello, NULL);
	CHECK(out.full);
	CHECK(out.len <= 40);
}

static struct sockaddr_un un;
static socklen_t un_len;

TEST(addresses)
{
	const char *list =
		"unix:path=/run/user/1000/bus,guid=ab;tcp:host=x;unix:abstract=/tmp/a%2Db;"
		"unix:tmpdir=/tmp;unix:guid=x,path=/y;unix:path=%zz";

	CHECK_INT(lr_dbus_address(&list, &un, &un_len), 1);
	CHECK_STR(un.sun_path, "/run/user/1000/bus");
	CHECK_INT(un_len, sizeof(sa_family_t) + 1 + strlen("/run/user/1000/bus"));
	CHECK_INT(lr_dbus_address(&list, &un, &un_len), -EAFNOSUPPORT);
	CHECK_INT(lr_dbus_address(&list, &un, &un_len), 1);
	CHECK_INT(un.sun_path[0], 0);
	CHECK_STR(un.sun_path + 1, "/tmp/a-b");
	CHECK_INT(un_len, sizeof(sa_family_t) + 1 + strlen("/tmp/a-b"));
	CHECK_INT(lr_dbus_address(&list, &un, &un_len), -EAFNOSUPPORT);
	CHECK_INT(lr_dbus_address(&list, &un, &un_len), 1);
	CHECK_STR(un.sun_path, "/y");
	CHECK_INT(lr_dbus_address(&list, &un, &un_len), -EINVAL);
	CHECK_INT(lr_dbus_address(&list, &un, &un_len), 0);
}

TEST(bad_addresses)
{
	char longer[200] = "unix:path=/", nothing[] = "";
	const char *list = longer;

	memset(longer + 11, 'x', sizeof(longer) - 12);
	CHECK_INT(lr_dbus_address(&list, &un, &un_len), -EINVAL);
	list = nothing;
	CHECK_INT(lr_dbus_address(&list, &un, &un_len), 0);
	list = "unix:path=";
	CHECK(lr_dbus_address(&list, &un, &un_len) < 0);
	list = "unix:path=/a%2";
	CHECK_INT(lr_dbus_address(&list, &un, &un_len), -EINVAL);
	list = "unix:path=/a%00b";
	CHECK_INT(lr_dbus_address(&list, &un, &un_len), -EINVAL);
	list = ";unix:path=/a";
	CHECK(lr_dbus_address(&list, &un, &un_len) < 0);
	CHECK_INT(lr_dbus_address(&list, &un, &un_len), 1);
}
