/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that a unit test needs: TAP out; failures say where and what.
 *
 *   TEST(name) { CHECK(1 + 1 == 2); CHECK_INT(f(), 3); CHECK_STR(s, "x"); }
 *
 * Tests register themselves; main is here. A test that cannot run says SKIP("why").
 */
#ifndef LR_TEST_H
#define LR_TEST_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lr_test {
	const char *name;
	void (*run)(void);
	struct lr_test *next;
};

static struct lr_test *lr_tests, **lr_tests_tail = &lr_tests;
static int lr_failures;
static const char *lr_skip;

#define TEST(id)                                                                                   \
	static void test_##id(void);                                                               \
	static struct lr_test entry_##id = {#id, test_##id, NULL};                                 \
	__attribute__((constructor)) static void register_##id(void)                               \
	{                                                                                          \
		*lr_tests_tail = &entry_##id;                                                      \
		lr_tests_tail = &entry_##id.next;                                                  \
	}                                                                                          \
	static void test_##id(void)

#define CHECK(cond) lr_check((cond), __FILE__, __LINE__, "%s", #cond)
#define CHECK_INT(got, want)                                                                       \
	do {                                                                                       \
		long long g_ = (long long)(got), w_ = (long long)(want);                           \
		lr_check(g_ == w_, __FILE__, __LINE__, "%s: got %lld, want %lld", #got, g_, w_);   \
	} while (0)
#define CHECK_STR(got, want)                                                                       \
	do {                                                                                       \
		const char *g_ = (got), *w_ = (want);                                              \
		lr_check(g_ &&w_ &&strcmp(g_, w_) == 0, __FILE__, __LINE__,                        \
			 "%s: got \"%s\", want \"%s\"", #got, g_ ? g_ : "(null)",                  \
			 w_ ? w_ : "(null)");                                                      \
	} while (0)
#define CHECK_HAS(text, part)                                                                      \
	do {                                                                                       \
		const char *t_ = (text), *p_ = (part);                                             \
		lr_check(t_ &&strstr(t_, p_), __FILE__, __LINE__, "\"%s\" lacks \"%s\"",           \
			 t_ ? t_ : "(null)", p_);                                                  \
	} while (0)
/* Leaves the test function: the rest would only crash. */
#define REQUIRE(cond)                                                                              \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			lr_check(false, __FILE__, __LINE__, "%s", #cond);                          \
			return;                                                                    \
		}                                                                                  \
	} while (0)
#define SKIP(why)                                                                                  \
	do {                                                                                       \
		lr_skip = (why);                                                                   \
		return;                                                                            \
	} while (0)

__attribute__((format(printf, 4, 5), unused)) static void lr_check(bool ok, const char *file,
								   int line, const char *fmt, ...)
{
	if (ok)
		return;
	lr_failures++;
	va_list ap;
	va_start(ap, fmt);
	printf("# %s:%d: ", file, line);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

int main(void)
{
	int n = 0, failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (struct lr_test *t = lr_tests; t; t = t->next) {
		lr_failures = 0;
		lr_skip = NULL;
		t->run();
		failed += lr_failures > 0;
		printf("%sok %d - %s%s%s\n", lr_failures ? "not " : "", ++n, t->name,
		       lr_skip && !lr_failures ? " # SKIP " : "",
		       lr_skip && !lr_failures ? lr_skip : "");
	}
	printf("1..%d\n", n);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
