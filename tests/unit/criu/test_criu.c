/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: criu's messages, what its log tells, and a program that is no criu. The bytes of
 * requests are read by protoc in tests/checkpoint/request.bats. */
#include <errno.h>

#include "src/criu/criu.h"
#include "tests/unit/test.h"

static bool same(const uint8_t *got, size_t n, const void *want, size_t size)
{
	return n == size && memcmp(got, want, size) == 0;
}

TEST(requests_are_small_rows_of_fields)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_criu_opts o = LR_CRIU_OPTS_INIT;
	struct lr_criu_request rq = {.type = LR_CRIU_VERSION};
	uint8_t *bytes;
	size_t n;

	CHECK_INT(lr_criu_encode(&rq, a, &bytes, &n, NULL), 0);
	CHECK(same(bytes, n, "\x08\x0a", 2));
	/* All that is unset is left out. */
	rq = (struct lr_criu_request){.type = LR_CRIU_DUMP, .opts = &o};
	CHECK_INT(lr_criu_encode(&rq, a, &bytes, &n, NULL), 0);
	CHECK(same(bytes, n, "\x08\x01\x12\x00", 4));
	o.pid = 300;
	o.leave_running = true;
	o.log_file = "d";
	o.empty_ns = 0;
	CHECK_INT(lr_criu_encode(&rq, a, &bytes, &n, NULL), 0);
	CHECK(same(bytes, n,
		   "\x08\x01\x12\x0b\x10\xac\x02\x18\x01\x52\x01"
		   "d\xb0\x02\x00",
		   15));
}

TEST(lists_are_messages_in_messages)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_criu_pair fd = {.key = "k", .fd = 7}, root = {.value = "/c"};
	struct lr_criu_opts o = LR_CRIU_OPTS_INIT;
	const struct lr_criu_request rq = {.type = LR_CRIU_RESTORE, .opts = &o};
	uint8_t *bytes;
	size_t n;

	o.inherit_fd = (struct lr_criu_list){&fd, 1};
	o.cg_root = (struct lr_criu_list){&root, 1};
	CHECK_INT(lr_criu_encode(&rq, a, &bytes, &n, NULL), 0);
	CHECK(same(bytes, n, "\x08\x02\x12\x0f\xca\x01\x04\x12\x02/c\xda\x01\x05\x0a\x01k\x10\x07",
		   19));
}

static int decode(const char *bytes, size_t n, struct lr_criu_response *ret)
{
	struct lr_err err = {0};
	int r = lr_criu_decode((const uint8_t *)bytes, n, ret, &err);

	CHECK(r == 0 || (r == -EBADMSG && err.msg[0]));
	return r;
}

TEST(answers_are_read)
{
	struct lr_criu_response r;

	/* type: NOTIFY success: true notify { script: "post-dump" pid: 5 } */
	CHECK_INT(decode("\x08\x06\x10\x01\x2a\x0d\x0a\x09post-dump\x10\x05", 19, &r), 0);
	CHECK_INT(r.type, LR_CRIU_NOTIFY);
	CHECK(r.success);
	CHECK_STR(r.script, "post-dump");
	CHECK_INT(r.pid, 5);
	/* version { major: 4 minor: 2 sublevel: 1 }; a checkout counts as the next one */
	CHECK_INT(decode("\x08\x0a\x10\x01\x52\x06\x08\x04\x10\x02\x20\x01", 12, &r), 0);
	CHECK_INT(r.version, 40201);
	CHECK_INT(decode("\x08\x0a\x10\x01\x52\x07\x08\x04\x10\x02\x1a\x01g", 13, &r), 0);
	CHECK_INT(r.version, 40300);
	/* what later versions add is passed over */
	CHECK_INT(decode("\x08\x01\x10\x01\xfa\x01\x02zz\xf8\x01\x07", 12, &r), 0);
	CHECK(r.success);
	/* a message is cut and made printable */
	CHECK_INT(decode("\x08\x01\x38\x16\x4a\x03"
			 "a\nb",
			 9, &r),
		  0);
	CHECK_INT(r.error, 22);
	CHECK_STR(r.message, "a b");
}

TEST(answers_that_are_none_are_refused)
{
	struct lr_criu_response r;

	CHECK_INT(decode("", 0, &r), -EBADMSG);
	CHECK_INT(decode("\x08", 1, &r), -EBADMSG);
	CHECK_INT(decode("\x2a\x7f\x01", 3, &r), -EBADMSG);
	CHECK_INT(decode("\x2a\x02\x0a\x09", 4, &r), -EBADMSG);
	CHECK_INT(decode("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, &r), -EBADMSG);
	CHECK_INT(decode("\x0b", 1, &r), -EBADMSG);
}

static const char *telling(const char *log)
{
	static char buf[80];

	return lr_criu_telling(log, strlen(log), buf, sizeof(buf)) ? buf : NULL;
}

TEST(the_first_error_tells_unless_criu_can_do_without)
{
	CHECK_STR(telling("(00.1) Dumping\n(00.2) Error (criu/a.c:1): mnt: No such thing\n"
			  "(00.3) Error (criu/b.c:2): Dumping FAILED.\n"),
		  "mnt: No such thing");
	CHECK_STR(telling("(00.1) Error (criu/tun.c:85): tun: Unable to create tun: Operation not "
			  "permitted\n(00.2)     12: Error (criu/c.c:3): that"),
		  "that");
	CHECK(!telling("(00.1) all is well\n"));
	CHECK(!telling("some more words, thirty-three or so, Error (x): in here\n"));
}

TEST(what_is_not_there_or_no_criu_is_told)
{
	struct lr_err err = {0};

	CHECK_INT(lr_criu_check("/no/such/criu", false, false, &err), -ENOENT);
	CHECK(strstr(err.hint, "install it"));
	CHECK(lr_criu_check("/bin/false", false, false, &err) < 0);
	CHECK(strstr(err.msg, "does not tell"));
}
