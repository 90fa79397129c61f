/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON reader's refusals and the writer's bytes. */
#include "src/base/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/test.h"

/* A handler that writes down what it is told: "{", "key:", "n12", "s<len>:abc", "}". */
struct trace {
	char text[4096];
	size_t len;
	const char *refuse; /* a string value at which to fail */
};

static void note(struct trace *t, const char *fmt, ...) LR_PRINTF(2, 3);
static void note(struct trace *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(t->text + t->len, sizeof(t->text) - t->len, fmt, ap);
	va_end(ap);
	if (n > 0 && t->len + (size_t)n < sizeof(t->text))
		t->len += (size_t)n;
}

static int trace_value(void *arg, const struct lr_json_value *v, struct lr_err *err)
{
	struct trace *t = arg;

	switch (v->type) {
	case LR_JSON_NULL:
		note(t, "null ");
		break;
	case LR_JSON_BOOL:
		note(t, "%s ", v->boolean ? "true" : "false");
		break;
	case LR_JSON_NUMBER:
		note(t, "n%.*s ", (int)v->len, v->text);
		break;
	case LR_JSON_STRING:
		if (t->refuse && strlen(t->refuse) == v->len &&
		    memcmp(t->refuse, v->text, v->len) == 0)
			return lr_err_set(err, EPERM, "test", false, "refused");
		note(t, "s%zu:%.*s ", v->len, (int)v->len, v->text);
		break;
	case LR_JSON_OBJECT:
		note(t, "{ ");
		break;
	case LR_JSON_LIST:
		note(t, "[ ");
		break;
	}
	return 0;
}

static int trace_key(void *arg, const char *key, size_t len, struct lr_err *err)
{
	note(arg, "%.*s: ", (int)len, key);
	return 0;
}

static int trace_end(void *arg, struct lr_err *err)
{
	note(arg, "} ");
	return 0;
}

static const struct lr_json_handler tracer = {trace_value, trace_key, trace_end};

static struct trace traced;
static struct lr_err err;

static int read_n(const char *text, size_t len, size_t max)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_json_source src = {.text = text, .len = len, .max = max, .what = "test"};
	const char *refuse = traced.refuse;

	memset(&traced, 0, sizeof(traced));
	traced.refuse = refuse;
	memset(&err, 0, sizeof(err));
	return lr_json_read(&src, &tracer, &traced, a, &err);
}

static int read_text(const char *text)
{
	return read_n(text, strlen(text), 0);
}

#define ACCEPTS(json, want)                                                                        \
	do {                                                                                       \
		CHECK_INT(read_text(json), 0);                                                     \
		CHECK_STR(traced.text, want);                                                      \
	} while (0)
#define REFUSES(json, part)                                                                        \
	do {                                                                                       \
		CHECK_INT(read_text(json), -EINVAL);                                               \
		CHECK_HAS(err.msg, part);                                                          \
		CHECK_STR(err.room, "test");                                                       \
	} while (0)

TEST(events)
{
	ACCEPTS("{}", "{ } ");
	ACCEPTS(" [ ] ", "[ } ");
	ACCEPTS("{\"a\":[1,-2.5e+3,true,false,null,\"x\\n\\u00fc\"],\"b\":{\"a\":0}}",
		"{ a: [ n1 n-2.5e+3 true false null s4:x\n\xc3\xbc } b: { a: n0 } } ");
	ACCEPTS("\"top\"", "s3:top ");
	ACCEPTS("12", "n12 ");
	ACCEPTS("\"\\ud83d\\ude00 \\\\ud800\"", "s11:\xf0\x9f\x98\x80 \\ud800 ");
	ACCEPTS("\"\xf0\x9f\x98\x80\xe2\x82\xac\"", "s7:\xf0\x9f\x98\x80\xe2\x82\xac ");
}

TEST(syntax)
{
	static const char *const bad[] = {
		"",       " ",      "{",         "}",        "[",          "]",
		"{]",     "[}",     "{\"a\"}",   "{\"a\":}", "{\"a\":1,}", "[1,]",
		"[,1]",   "[1 2]",  "{a:1}",     "'a'",      "\"a",        "tru",
		"nul",    "nulll",  "01",        "-",        "1.",         ".5",
		"1e",     "+1",     "0x10",      "NaN",      "Infinity",   "\"\\x\"",
		"\"\n\"", "\"\t\"", "\"\\u12\"", "{} x",     "{}{}",       "1 2",
		"[] ,",   "{1:2}",  "{\"a\" 1}", "// c\n{}", "{} /* c */", "[1,/*c*/2]",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int rc = read_text(bad[i]);
		if (rc != -EINVAL)
			printf("# accepted: %s\n", bad[i]);
		CHECK_INT(rc, -EINVAL);
	}
	/* A byte order mark is not part of JSON; bytes of zero are not either. */
	CHECK_INT(read_text("\xef\xbb\xbf{}"), -EINVAL);
	CHECK_INT(read_n("{}\0", 3, 0), -EINVAL);
	CHECK_INT(read_n("{\"a\0b\":1}", 9, 0), -EINVAL);
}

TEST(line_and_column)
{
	REFUSES("{\n  \"\xc3\xbc\": x\n}", "line 2, column 8:");
	REFUSES("{\"a\": [1, 2\n", "premature EOF");
	REFUSES("{\"a\": [1, 2\n", "line 2, column 1:");
	REFUSES("[\n\n \"\xff\"]", "line 3, column 3: not valid UTF-8");
}

TEST(utf8)
{
	static const char *const bad[] = {
		"\x80",
		"\xc0\x80",
		"\xc1\xbf",
		"\xe0\x80\x80",
		"\xe0\x9f\xbf",
		"\xed\xa0\x80",
		"\xc3",
		"\xf0\x80\x80\x80",
		"\xf4\x90\x80\x80",
		"\xf5\x80\x80\x80",
		"\xe2\x82",
		"\xff",
		"\xf0\x9f\x98",
		"\xe2\x28\xa1",
		"\xfe",
	};
	char text[64];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		for (int pad = 0; pad < 10; pad++) {
			snprintf(text, sizeof(text), "\"%.*s%s\"", pad, "0123456789", bad[i]);
			REFUSES(text, "not valid UTF-8");
			snprintf(text, sizeof(text), "{\"%.*s%s\":1}", pad, "0123456789", bad[i]);
			REFUSES(text, "not valid UTF-8");
		}
	}
}

TEST(escapes)
{
	REFUSES("\"\\ud800\"", "surrogate");
	REFUSES("\"\\udc00\"", "surrogate");
	REFUSES("\"\\uD83D\\u0041\"", "surrogate");
	REFUSES("\"\\ud83d\\ud83d\"", "surrogate");
	REFUSES("{\"\\uDEAD\":1}", "surrogate");
	REFUSES("[\"a\", \"\\u0000\"]", "U+0000");
	CHECK_STR(err.path, "[1]");
	REFUSES("{\"a\\u0000b\": 1}", "U+0000");
	REFUSES("{\"x\":{\"y\": [0, {\"z\": \"\\u0000\"}]}}", "U+0000");
	CHECK_STR(err.path, "x.y[1].z");
	REFUSES("\"\\", "");
	REFUSES("\"\\u", "");
	REFUSES("\"\\ud83d\\", "surrogate");
}

TEST(duplicates)
{
	REFUSES("{\"a\":1,\"a\":1}", "duplicate");
	CHECK_STR(err.path, "a");
	REFUSES("{\"a\":1,\"\\u0061\":1}", "duplicate");
	REFUSES("{\"x\":[{\"b\":{},\"c\":0,\"b\":null}]}", "duplicate");
	CHECK_STR(err.path, "x[0].b");
	REFUSES("{\"\":1,\"\":1}", "duplicate");
	REFUSES("{\"a.b\":1,\"a.b\":1}", "duplicate");
	CHECK_STR(err.path, "[\"a.b\"]");
	ACCEPTS("{\"a\":{\"a\":{\"a\":1},\"b\":1},\"b\":1}",
		"{ a: { a: { a: n1 } b: n1 } b: n1 } ");
	ACCEPTS("[{\"a\":1},{\"a\":1}]", "[ { a: n1 } { a: n1 } } ");
}

/* n members k0..kn-1, then `last`. */
static char *big_object(size_t n, const char *last)
{
	char *text = malloc(n * 24 + 64), *at = text;

	if (!text)
		abort();
	at += sprintf(at, "{");
	for (size_t i = 0; i < n; i++)
		at += sprintf(at, "\"k%zu\":0,", i);
	sprintf(at, "\"%s\":0}", last);
	return text;
}

TEST(duplicates_among_many)
{
	static const size_t sizes[] = {2, 15, 16, 17, 18, 1000, 300000};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char *text = big_object(sizes[i], "other");
		struct timespec start, end;

		clock_gettime(CLOCK_MONOTONIC, &start);
		CHECK_INT(read_text(text), 0);
		clock_gettime(CLOCK_MONOTONIC, &end);
		/* 300,000 keys against each other would take minutes; sorted it is 0.2 s. */
		CHECK(end.tv_sec - start.tv_sec < 20);
		free(text);
		text = big_object(sizes[i], "k1");
		CHECK_INT(read_text(text), -EINVAL);
		CHECK_HAS(err.msg, "duplicate");
		CHECK_STR(err.path, "k1");
		free(text);
	}
}

TEST(limits)
{
	char text[6 * LR_JSON_DEPTH + 64];

	for (int objects = 0; objects < 2; objects++) {
		for (int depth = LR_JSON_DEPTH - 1; depth <= LR_JSON_DEPTH + 1; depth++) {
			char *at = text;

			for (int i = 0; i < depth; i++)
				at = stpcpy(at, objects ? "{\"\":" : "[");
			at = stpcpy(at, "1");
			for (int i = 0; i < depth; i++)
				at = stpcpy(at, objects ? "}" : "]");
			CHECK_INT(read_text(text), depth <= LR_JSON_DEPTH ? 0 : -EINVAL);
			if (depth > LR_JSON_DEPTH)
				CHECK_HAS(err.msg, "nested too deep");
		}
	}
	CHECK_INT(read_n("[1, 2]", 6, 6), 0);
	CHECK_INT(read_n("[1, 2]", 6, 5), -EFBIG);
	CHECK_HAS(err.msg, "6 bytes are more than the 5 allowed");
}

TEST(handler_refuses)
{
	traced.refuse = "no";
	CHECK_INT(read_text("{\"p\":{\"l\":[\"yes\",{\"x y\":\"no\"}]}}"), -EPERM);
	CHECK_STR(err.msg, "refused");
	CHECK_STR(err.path, "p.l[1][\"x y\"]");
	traced.refuse = NULL;
}

TEST(long_paths_are_cut)
{
	char text[600], *at = text;

	*at++ = '{';
	*at++ = '"';
	memset(at, 'k', 300);
	at += 300;
	strcpy(at, "\":{\"\x7f\xc3\xbc\":{\"a\":0,\"a\":0}}}");
	CHECK_INT(read_text(text), -EINVAL);
	CHECK(strlen(err.path) < sizeof(err.path));
	CHECK_HAS(err.path, "kkk...");
	CHECK_HAS(err.path, "[\"?\xc3\xbc\"].a");
	CHECK_HAS(err.msg, "duplicate");
}

TEST(integers)
{
	int64_t i;
	uint64_t u;

#define INT(text, min, max) lr_json_int_of(text, strlen(text), min, max, &i)
#define UINT(text, max)     lr_json_uint_of(text, strlen(text), max, &u)
	CHECK_INT(INT("0", 0, 0), 0);
	CHECK_INT(INT("-0", 0, 0), 0);
	CHECK_INT(INT("9223372036854775807", INT64_MIN, INT64_MAX), 0);
	CHECK(i == INT64_MAX);
	CHECK_INT(INT("-9223372036854775808", INT64_MIN, INT64_MAX), 0);
	CHECK(i == INT64_MIN);
	CHECK_INT(INT("9223372036854775808", INT64_MIN, INT64_MAX), -ERANGE);
	CHECK_INT(INT("-9223372036854775809", INT64_MIN, INT64_MAX), -ERANGE);
	CHECK_INT(INT("-1", 0, 10), -ERANGE);
	CHECK_INT(INT("11", 0, 10), -ERANGE);
	CHECK_INT(UINT("18446744073709551615", UINT64_MAX), 0);
	CHECK(u == UINT64_MAX);
	CHECK_INT(UINT("18446744073709551616", UINT64_MAX), -ERANGE);
	CHECK_INT(UINT("99999999999999999999999999999999999", UINT64_MAX), -ERANGE);
	CHECK_INT(UINT("-1", UINT64_MAX), -ERANGE);
	CHECK_INT(UINT("-0", UINT64_MAX), 0);
	CHECK_INT(UINT("65536", UINT16_MAX), -ERANGE);
	u = 7;
	CHECK_INT(UINT("1.5", UINT64_MAX), -EINVAL);
	CHECK_INT(UINT("1.0", UINT64_MAX), -EINVAL);
	CHECK_INT(UINT("1e3", UINT64_MAX), -EINVAL);
	CHECK_INT(UINT("", UINT64_MAX), -EINVAL);
	CHECK_INT(UINT("-", UINT64_MAX), -EINVAL);
	CHECK_INT(u, 7);
}

static void write_sample(struct lr_json_writer *w)
{
	lr_json_obj_open(w);
	lr_json_kstr(w, "s", "a\"b\\c/\n\x01 \xc3\xbc");
	lr_json_kint(w, "i", INT64_MIN);
	lr_json_kuint(w, "u", UINT64_MAX);
	lr_json_kbool(w, "t", true);
	lr_json_kstr(w, "n", NULL);
	lr_json_key(w, "l");
	lr_json_list_open(w);
	lr_json_list_open(w);
	lr_json_list_close(w);
	lr_json_obj_open(w);
	lr_json_obj_close(w);
	lr_json_raw(w, "1.5", 3);
	lr_json_list_close(w);
	lr_json_key(w, "e");
	lr_json_obj_open(w);
	lr_json_obj_close(w);
	lr_json_obj_close(w);
}

TEST(writer)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_json_writer *w = lr_json_writer_new(a, false);
	size_t len = 0;

	write_sample(w);
	const char *text = lr_json_finish(w, &len);
	CHECK_STR(text, "{\"s\":\"a\\\"b\\\\c/\\n\\u0001 \xc3\xbc\",\"i\":-9223372036854775808,"
			"\"u\":18446744073709551615,\"t\":true,\"n\":null,\"l\":[[],{},1.5],"
			"\"e\":{}}");
	CHECK_INT(len, strlen(text));
	CHECK_INT(read_text(text), 0);

	w = lr_json_writer_new(a, true);
	write_sample(w);
	CHECK_STR(lr_json_finish(w, NULL),
		  "{\n  \"s\": \"a\\\"b\\\\c/\\n\\u0001 \xc3\xbc\",\n"
		  "  \"i\": -9223372036854775808,\n  \"u\": 18446744073709551615,\n  \"t\": true,\n"
		  "  \"n\": null,\n  \"l\": [\n    [],\n    {},\n    1.5\n  ],\n  \"e\": {}\n}");

	w = lr_json_writer_new(a, true);
	lr_json_list_open(w);
	lr_json_list_close(w);
	CHECK_STR(lr_json_finish(w, NULL), "[]");
	w = lr_json_writer_new(a, false);
	lr_json_int(w, 7);
	CHECK_STR(lr_json_finish(w, NULL), "7");
}

TEST(writer_repairs_utf8)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_json_writer *w = lr_json_writer_new(a, false);

	lr_json_obj_open(w);
	lr_json_kstr(w, "k\xff", "a\xc0\x80z\xe2\x82\xac\xe2");
	lr_json_obj_close(w);
	const char *text = lr_json_finish(w, NULL);
	CHECK_STR(text,
		  "{\"k\xef\xbf\xbd\":\"a\xef\xbf\xbd\xef\xbf\xbdz\xe2\x82\xac\xef\xbf\xbd\"}");
	CHECK_INT(read_text(text), 0);
}

TEST(writer_grows)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_json_writer *w = lr_json_writer_new(a, false);
	char *big = calloc(1, 100001);

	REQUIRE(big);
	memset(big, 'x', 100000);
	lr_json_list_open(w);
	for (int i = 0; i < 1000; i++)
		lr_json_int(w, i);
	lr_json_str(w, big);
	lr_json_list_close(w);
	size_t len = 0;
	const char *text = lr_json_finish(w, &len);
	REQUIRE(text);
	CHECK_INT(len, strlen(text));
	CHECK_INT(len, 1 + 10 * 2 + 90 * 3 + 900 * 4 + 100002 + 1);
	CHECK_INT(read_text(text), 0);
	free(big);
}

TEST(writer_misuse)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_json_writer *w;

#define FAILS(...)                                                                                 \
	do {                                                                                       \
		w = lr_json_writer_new(a, false);                                                  \
		__VA_ARGS__;                                                                       \
		CHECK(lr_json_finish(w, NULL) == NULL);                                            \
	} while (0)
	FAILS();
	FAILS(lr_json_obj_open(w));
	FAILS(lr_json_obj_open(w), lr_json_list_close(w));
	FAILS(lr_json_list_open(w), lr_json_obj_close(w));
	FAILS(lr_json_obj_close(w));
	FAILS(lr_json_obj_open(w), lr_json_int(w, 1), lr_json_obj_close(w));
	FAILS(lr_json_obj_open(w), lr_json_key(w, "a"), lr_json_obj_close(w));
	FAILS(lr_json_obj_open(w), lr_json_key(w, "a"), lr_json_key(w, "b"));
	FAILS(lr_json_list_open(w), lr_json_key(w, "a"), lr_json_int(w, 1), lr_json_list_close(w));
	FAILS(lr_json_int(w, 1), lr_json_int(w, 2));
	FAILS(lr_json_int(w, 1), lr_json_obj_open(w), lr_json_obj_close(w));
	FAILS(lr_json_key(w, "a"));
	FAILS(for (int i = 0; i <= LR_JSON_DEPTH; i++) lr_json_list_open(w);
	      for (int i = 0; i <= LR_JSON_DEPTH; i++) lr_json_list_close(w));
	/* No writer, no crash. */
	write_sample(NULL);
	CHECK(lr_json_finish(NULL, NULL) == NULL);
	w = lr_json_writer_new(a, true);
	for (int i = 0; i < LR_JSON_DEPTH; i++)
		lr_json_list_open(w);
	for (int i = 0; i < LR_JSON_DEPTH; i++)
		lr_json_list_close(w);
	CHECK(lr_json_finish(w, NULL) != NULL);
}

/* An arena has so much left, and then gets nothing more: neither does anybody else in this process. */
static struct lr_arena *last_bytes(size_t left)
{
	const struct rlimit none = {0, 0};
	struct lr_arena *first = lr_arena_new(), *a = lr_arena_new();
	const size_t chunk = 32768;

	(void)first; /* the program's first one has more */
	CHECK(a && lr_alloc(a, chunk - left) != NULL);
	CHECK(setrlimit(RLIMIT_AS, &none) == 0);
	for (size_t size = 16 * chunk; size >= chunk; size /= 2)
		for (void *volatile p = a; p;)
			p = malloc(size);
	return a;
}

/* yajl looks at nothing that it is given. */
TEST(without_memory_it_fails_and_does_not_crash)
{
	static const char text[] = "{\"a\": \"\\u00e9 and more\", \"b\": [1, 2.5, null]}";
	const struct lr_json_source src = {.text = text, .len = sizeof(text) - 1, .what = "test"};
	int failed = 0, read = 0;

	for (size_t left = 0; left < 8192; left += 128) {
		int status;
		pid_t pid = fork();
		if (pid == 0) {
			struct trace t = {0};
			struct lr_arena *a = last_bytes(left);
			bool writes = lr_json_writer_new(a, true) != NULL;
			int rc = lr_json_read(&src, &tracer, &t, a, &err);
			_exit(rc == -ENOMEM ? 1 : rc ? 4 : writes ? 2 : 3);
		}
		CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) != 4);
		failed += WEXITSTATUS(status) == 1;
		read += WEXITSTATUS(status) == 2;
	}
	CHECK(failed > 0 && read > 0);
}
