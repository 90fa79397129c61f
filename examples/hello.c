/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts N containers of a bundle, one after the other, and says how long one took.
 *
 *	cc hello.c $(pkg-config --cflags --libs lean) -o hello
 *	sudo ./hello BUNDLE [N [PROFILE]]
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <lean/lean.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	struct lean_options options = {
		.size = sizeof(options),
		.bundle = argc > 1 ? argv[1] : ".",
		.profile = argc > 3 ? argv[3] : "lean",
		.root = getenv("LEAN_ROOT"),
	};
	int n = argc > 2 ? atoi(argv[2]) : 1, status = 0;
	struct lean_template *t;
	struct lean_error e;

	(void)lean_protect(argv, NULL); /* if it can be had: starts cost less then */
	if (lean_open(&options, &t, &e) < 0 || lean_warm(t, 1, &e) < 0)
		errx(1, "%s", e.message);
	double start = now();
	for (int i = 0; i < n; i++) {
		struct lean_container *c;
		if (lean_start(t, NULL, &c, &e) < 0 || lean_wait(c, -1, &status, &e) < 0 ||
		    lean_delete(c, 0, &e) < 0)
			errx(1, "%s", e.message);
	}
	printf("%d containers, the last one ended with status %d; %.0f us each\n", n, status,
	       (now() - start) / n * 1e6);
	lean_close(t);
	return 0;
}
