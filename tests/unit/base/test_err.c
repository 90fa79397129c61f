/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: errors as values, and the log. */
#define LR_ROOM "testroom"

#include <errno.h>
#include <string.h>

#include "src/base/err.h"
#include "src/base/log.h"
#include "tests/unit/test.h"

static char text[2048];

TEST(the_whole_line)
{
	struct lr_err err = {0};

	CHECK_INT(lr_fail(&err, ENOENT, "cannot open %s", "/x"), -ENOENT);
	CHECK_INT(err.code, ENOENT);
	CHECK_STR(lr_err_format(&err, text, sizeof text),
		  "testroom: cannot open /x: no such file or directory");
	CHECK_INT(lr_err_step(&err, "pivot"), -ENOENT);
	CHECK_INT(lr_err_at(&err, "mounts[%d]", 3), -ENOENT);
	CHECK_INT(lr_err_hint(&err, "make it"), -ENOENT);
	CHECK_STR(lr_err_format(&err, text, sizeof text),
		  "testroom: pivot: cannot open /x: no such file or directory (at mounts[3]); make "
		  "it");
	err.terse = true;
	CHECK_STR(lr_err_format(&err, text, sizeof text),
		  "cannot open /x: no such file or directory (at mounts[3]); make it");
}

TEST(texts_are_those_of_the_older_runtimes)
{
	CHECK_STR(lr_strerror(ESRCH), "no such process");
	CHECK_STR(lr_strerror(EBUSY), "device or resource busy");
	CHECK_STR(lr_strerror(0), "unknown error");
	CHECK_STR(lr_strerror(-1), "unknown error");
	CHECK_STR(lr_strerror(100000), "unknown error");
#ifdef __GLIBC__
	for (int code = 1; code < 200; code++)
		if (strerrordesc_np(code))
			CHECK_STR(lr_strerror(code) + 1, strerrordesc_np(code) + 1);
#endif
}

TEST(a_refusal_has_no_strerror)
{
	struct lr_err err = {0};

	CHECK_INT(lr_refuse(&err, EINVAL, "no such option"), -EINVAL);
	CHECK_STR(lr_err_format(&err, text, sizeof text), "testroom: no such option");
}

TEST(the_innermost_speaks_and_outer_ones_add)
{
	struct lr_err err = {0};

	lr_refuse(&err, EPERM, "inner");
	lr_err_step(&err, "first");
	lr_err_step(&err, "second");
	lr_err_at(&err, "a.b");
	lr_err_at(&err, "a");
	lr_err_hint(&err, "one");
	lr_err_hint(&err, "two");
	CHECK_STR(err.step, "first");
	CHECK_STR(err.path, "a.b");
	CHECK_STR(err.hint, "one");

	lr_refuse(&err, EIO, "another"); /* replaces all of it */
	CHECK_STR(lr_err_format(&err, text, sizeof text), "testroom: another");
	lr_err_clear(&err);
	CHECK_INT(err.code, 0);
	CHECK_STR(lr_err_format(&err, text, sizeof text), "");
}

TEST(without_an_err_the_code_still_comes_back)
{
	CHECK_INT(lr_fail(NULL, ENOENT, "x"), -ENOENT);
	CHECK_INT(lr_refuse(NULL, EPERM, "x"), -EPERM);
	lr_err_clear(NULL);
	/* Used as tail calls of a failing function: never success. */
	CHECK(lr_err_at(NULL, "x") < 0);
	CHECK(lr_err_step(NULL, "x") < 0);
	CHECK(lr_err_hint(NULL, "x") < 0);
}

TEST(long_texts_are_cut_not_overrun)
{
	static char big[4096];
	struct lr_err err = {0};
	char small[16];

	memset(big, 'x', sizeof big - 1);
	lr_fail(&err, EINVAL, "%s", big);
	lr_err_at(&err, "%s", big);
	lr_err_step(&err, big);
	lr_err_hint(&err, "%s", big);
	CHECK_INT(strlen(err.msg), sizeof err.msg - 1);
	CHECK_INT(strlen(err.path), sizeof err.path - 1);
	CHECK_INT(strlen(err.step), sizeof err.step - 1);
	CHECK_INT(strlen(err.hint), sizeof err.hint - 1);
	lr_err_format(&err, small, sizeof small);
	CHECK_INT(strlen(small), sizeof small - 1);
	CHECK_INT(strlen(lr_err_format(&err, text, sizeof text)), strlen(text));
}

TEST(it_is_one_line_whatever_a_path_contains)
{
	struct lr_err err = {0};

	lr_refuse(&err, EINVAL, "bad\npath\r\x1b[2J\x7f");
	lr_err_format(&err, text, sizeof text);
	CHECK(!strpbrk(text, "\n\r\x1b\x7f"));
	CHECK_HAS(text, "bad path");
}

TEST(an_unknown_errno_does_no_harm)
{
	struct lr_err err = {0};

	CHECK_INT(lr_fail(&err, 54321, "odd"), -54321);
	CHECK_HAS(lr_err_format(&err, text, sizeof text), "odd");
}

/* ---- log --------------------------------------------------------------------------------- */

static int lines;
static char last[2048];
static enum lr_level last_level;

static void sink(enum lr_level level, const char *line, void *arg)
{
	lines++;
	last_level = level;
	snprintf(last, sizeof last, "%s%s", (const char *)arg, line);
	errno = EBADF;
}

TEST(the_log_filters_by_level)
{
	lr_warn("nobody listens");
	lr_log_set_sink(sink, (void *)"> ");
	lr_debug("dropped %d", 1);
	CHECK_INT(lines, 0);
	errno = ENOTTY;
	lr_warn("seen %d", 2);
	CHECK_INT(errno, ENOTTY);
	CHECK_INT(lines, 1);
	CHECK_INT(last_level, LR_WARN);
	CHECK_STR(last, "> seen 2");
	lr_log_level = LR_DEBUG;
	lr_debug("now %s", "too");
	CHECK_STR(last, "> now too");
	lr_log_level = LR_WARN;
	lr_log_set_sink(NULL, NULL);
	lr_warn("gone");
	CHECK_INT(lines, 2);
}
