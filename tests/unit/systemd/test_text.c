/* SPDX-License-Identifier: Apache-2.0 */
/* dbus: GVariant's text form to bytes; what is expected is written out by the specification's rules
 * of alignment. */
#include "src/systemd/dbus.h"
#include "tests/unit/test.h"

static struct lr_err err;
static uint8_t buf[512];

/* The variant's signature and its bytes in hexadecimal, "i: 05000000". */
static const char *bytes_of(const char *text)
{
	static char out[1600];
	struct lr_dbus_out o = {.buf = buf, .cap = sizeof(buf)};
	size_t n, at;

	err = (struct lr_err){0};
	if (lr_dbus_put_text(&o, text, &err) < 0)
		return "refused";
	n = (size_t)sprintf(out, "%s:", (const char *)buf + 1);
	for (at = 2 + (size_t)buf[0]; at < o.len; at++)
		n += (size_t)sprintf(out + n, "%s%02x", n > 0 && at % 4 == 0 ? " " : "", buf[at]);
	return out;
}

TEST(basic_types)
{
	/* After the signature's 3 bytes comes padding to the value's own alignment. */
	CHECK_STR(bytes_of("true"), "b:00 01000000");
	CHECK_STR(bytes_of("false"), "b:00 00000000");
	CHECK_STR(bytes_of("5"), "i:00 05000000");
	CHECK_STR(bytes_of(" -1 "), "i:00 ffffffff");
	CHECK_STR(bytes_of("uint32 0x10"), "u:00 10000000");
	CHECK_STR(bytes_of("@u 7"), "u:00 07000000");
	CHECK_STR(bytes_of("byte 0xff"), "y:ff");
	CHECK_STR(bytes_of("int16 -2"), "n:00 feff");
	CHECK_STR(bytes_of("uint16 2"), "q:00 0200");
	CHECK_STR(bytes_of("uint64 18446744073709551615"), "t:00 00000000 ffffffff ffffffff");
	CHECK_STR(bytes_of("int64 -9223372036854775808"), "x:00 00000000 00000000 00000080");
	CHECK_STR(bytes_of("1.5"), "d:00 00000000 00000000 0000f83f");
	CHECK_STR(bytes_of("double 2"), "d:00 00000000 00000000 00000040");
}

TEST(strings)
{
	CHECK_STR(bytes_of("'ab'"), "s:00 02000000 616200");
	CHECK_STR(bytes_of("\"it's\""), "s:00 04000000 69742773 00");
	CHECK_STR(bytes_of("'a\\'\\n'"), "s:00 03000000 61270a00");
	CHECK_STR(bytes_of("objectpath '/x'"), "o:00 02000000 2f7800");
	CHECK_STR(bytes_of("''"), "s:00 00000000 00");
}

TEST(arrays_and_tuples)
{
	CHECK_STR(bytes_of("[byte 1, 2]"), "ay: 02000000 0102");
	CHECK_STR(bytes_of("[uint32 9]"), "au: 04000000 09000000");
	CHECK_STR(bytes_of("['a', 'b']"), "as: 0e000000 01000000 61000000 01000000 6200");
	CHECK_STR(bytes_of("@as []"), "as: 00000000");
	CHECK_STR(bytes_of("('a', true)"), "(sb):0000 01000000 61000000 01000000");
	CHECK_STR(bytes_of("(5,)"), "(i):000000 05000000");
	/* An array of structures begins at a multiple of eight, whatever is in it. */
	CHECK_STR(bytes_of("[('x', 'y')]"),
		  "a(ss):00 0e000000 00000000 01000000 78000000 01000000 7900");
	CHECK_STR(bytes_of("[@as [], ['q']]"),
		  "aas:000000 0e000000 00000000 06000000 01000000 7100");
}

TEST(what_is_no_value_is_refused)
{
	static const char *const bad[] = {
		"",
		"x",
		"'a",
		"[",
		"[]",
		"[1",
		"[1,",
		"[1,]",
		"[1, 'a']",
		"[1, true]",
		"[uint32 1, int32 2]",
		"(1",
		"()",
		"byte 256",
		"byte -1",
		"uint64",
		"5 6",
		"uint32 'a'",
		"string 5",
		"'a\\",
		"'\\x'",
		"@ 5",
		"@z 5",
		"@a 5",
		"@as [5]",
		"tru",
		"5x",
		"--5",
		"1.5.5",
		"-",
		"[[[[[[[[[[1]]]]]]]]]]",
		"{'a': 1}",
		"<5>",
		"nothing",
		"int32 3000000000",
		"(1, 2",
		"@(i 5",
		"@(ii) (1, 2, 3)",
		"uint64 18446744073709551616",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const char *got = bytes_of(bad[i]);

		lr_check(strcmp(got, "refused") == 0, __FILE__, __LINE__, "%s: got %s", bad[i],
			 got);
		CHECK_INT(err.code, 22);
		CHECK(err.hint[0]);
	}
}

TEST(what_does_not_fit_is_told)
{
	struct lr_dbus_out o = {.buf = buf, .cap = 16};

	CHECK_INT(lr_dbus_put_text(&o, "'longer than sixteen bytes'", &err), -ENOBUFS);
	CHECK(o.full && o.len <= 16);
}
