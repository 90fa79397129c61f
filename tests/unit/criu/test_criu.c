/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: criu's messages, what its log tells, and a program that is no criu. The bytes of
 * requests are read by protoc in tests/checkpoint/request.bats. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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
	/* restore { pid: 9 } and features { lazy_pages: true } */
	CHECK_INT(decode("\x08\x02\x10\x01\x22\x02\x08\x09", 8, &r), 0);
	CHECK_INT(r.pid, 9);
	CHECK_INT(decode("\x08\x09\x10\x01\x42\x02\x10\x01", 8, &r), 0);
	CHECK(r.lazy_pages && !r.mem_track);
	CHECK_INT(decode("\x08\x09\x10\x01\x42\x02\x08\x01", 8, &r), 0);
	CHECK(r.mem_track && !r.lazy_pages);
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
	CHECK_STR(telling("(00.1) Error (criu/r.c:1): rlimit: Can't setup RLIMIT_NOFILE for self\n"
			  "(00.2) Error (criu/c.c:3): that\n"),
		  "that");
	CHECK(!telling("(00.1) all is well\n"));
	CHECK(!telling("some more words, thirty-three or so, Error (x): in here\n"));
}

static int file_of(const char *text, size_t n)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	return write(fd, text, n) == (ssize_t)n ? fd : -1;
}

TEST(an_error_in_the_middle_of_a_long_log_is_found)
{
	static const char line[] = "(00.100000)     12: words of no use whatever they may be\n",
			  error[] = "(00.200000)     12: Error (criu/a.c:1): the cause\n";
	static char log[1 << 17];
	char dir[] = "/tmp/lr-test-criu-XXXXXX", why[80];

	REQUIRE(mkdtemp(dir));
	int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t before = 0; before < 400; before++) { /* wherever a piece of it ends */
		size_t n = 0;
		for (size_t i = 0; i < before; i++, n += strlen(line))
			memcpy(log + n, line, strlen(line));
		memcpy(log + n, error, strlen(error));
		n += strlen(error);
		int fd = openat(dirfd, "log", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		REQUIRE(write(fd, log, n) == (ssize_t)n);
		close(fd);
		lr_criu_why(dirfd, "log", -1, why, sizeof(why));
		CHECK_STR(why, "the cause");
	}
	/* A link in the directory of the log leads nowhere. */
	CHECK_INT(renameat(dirfd, "log", dirfd, "other"), 0);
	CHECK_INT(symlinkat("other", dirfd, "log"), 0);
	lr_criu_why(dirfd, "log", -1, why, sizeof(why));
	CHECK_STR(why, "");
	unlinkat(dirfd, "log", 0);
	unlinkat(dirfd, "other", 0);
	close(dirfd);
	rmdir(dir);
}

TEST(without_a_log_the_last_line_that_it_printed_tells)
{
	static const char said[] = "criu: one\ncriu: the\tother\n\n";
	char why[80];

	int output = file_of(said, strlen(said));
	lr_criu_why(-1, NULL, output, why, sizeof(why));
	CHECK_STR(why, "criu: the other");
	close(output);
	output = file_of("", 0);
	lr_criu_why(-1, NULL, output, why, sizeof(why));
	CHECK_STR(why, "");
	close(output);
}

/* A program in `dir` that is no criu. */
static void put_program(const char *dir, const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *f = fopen(path, "we");
	REQUIRE(f);
	fprintf(f, "#!/bin/sh\n%s\n", text);
	fclose(f);
	CHECK_INT(chmod(path, 0700), 0);
}

TEST(it_is_found_in_path_and_its_words_are_in_the_error)
{
	char dir[] = "/tmp/lr-test-criu-XXXXXX", path[128];
	const char *given = getenv("PATH");
	char *kept = given ? strdup(given) : NULL;
	struct lr_err err = {0};

	REQUIRE(mkdtemp(dir));
	put_program(dir, "criu", "echo it says this >&2");
	/* Empty parts of PATH are the working directory to a shell; not here. */
	snprintf(path, sizeof(path), ":/no/such/place:%s", dir);
	setenv("PATH", path, 1);
	CHECK(lr_criu_check(NULL, false, false, &err) < 0);
	CHECK_HAS(err.msg, "it says this");
	setenv("PATH", "/no/such/place", 1);
	CHECK_INT(lr_criu_check(NULL, false, false, &err), -ENOENT);
	snprintf(path, sizeof(path), "%s/criu", dir);
	unlink(path);
	rmdir(dir);
	if (kept)
		setenv("PATH", kept, 1);
	free(kept);
}

/* Signals that the caller blocks or ignores are criu's to have as usual. */
TEST(it_starts_with_signals_as_usual)
{
	char dir[] = "/tmp/lr-test-criu-XXXXXX", path[128];
	struct lr_err err = {0};
	sigset_t usr1, before;

	REQUIRE(mkdtemp(dir));
	put_program(dir, "no-criu", "awk '/^Sig(Blk|Ign)/ {printf \"%s \", $2}' /proc/self/status");
	snprintf(path, sizeof(path), "%s/no-criu", dir);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, &before);
	signal(SIGUSR2, SIG_IGN);
	CHECK(lr_criu_check(path, false, false, &err) < 0);
	CHECK_HAS(err.msg, ": 0000000000000000 0000000000000000");
	signal(SIGUSR2, SIG_DFL);
	sigprocmask(SIG_SETMASK, &before, NULL);
	unlink(path);
	rmdir(dir);
}

TEST(what_is_not_there_or_no_criu_is_told)
{
	struct lr_err err = {0};

	CHECK_INT(lr_criu_check("/no/such/criu", false, false, &err), -ENOENT);
	CHECK(strstr(err.hint, "install it"));
	CHECK(lr_criu_check("/bin/false", false, false, &err) < 0);
	CHECK(strstr(err.msg, "does not tell"));
}
