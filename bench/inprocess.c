/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The critical path (set up a container whose program exits at once, and reap it) out of one
 * process: by liblean, and by the bare clone with the same namespaces and mounts (bare.h), in turn.
 *
 *	inprocess each ROUNDS GAP_US TOUCH_MB ROOTFS ROOT BUNDLE    each row ROUNDS times; lines
 *	                        ROW WALL_NS CPU_US WHOLE_NS, where WALL_NS is 0 for a failed run,
 *	                        CPU_US of this process and the container, and WHOLE_NS ends when
 *	                        nothing of the container is left; with TOUCH_MB of memory in use
 *	inprocess for SECONDS ROW ROOTFS ROOT BUNDLE    one row over and over; says "ready", then for
 *	                        each line that it reads, after as many seconds: RUNS OK WALL_NS
 *
 * The program is /true of the root file system, which ends with its argument 7.
 */
#include <stdbool.h>
#include <stdlib.h>

#include <lean/lean.h>

#include "bare.h"
#include "cpu.h"

#define MARK 7

static const char *rootfs;
static struct lean_template *templates[2];
static int64_t reaped; /* when the latest container was */

static int bare_run(int new_net)
{
	char *argv[] = {(char *)(size_t) "/true", (char *)(size_t) "7", NULL};

	int status = run(rootfs, new_net, argv);
	reaped = now();
	return status;
}

static int lean_run(struct lean_template *t)
{
	struct lean_container *c;
	struct lean_error e = {0};
	int status = -1;

	int r = lean_start(t, NULL, &c, &e);
	if (r >= 0)
		r = lean_wait(c, -1, &status, &e);
	reaped = now();
	if (r < 0 || lean_delete(c, 0, &e) < 0) {
		fprintf(stderr, "lean-bench: %s\n", e.message);
		return -1;
	}
	return status;
}

static int bare_net(void)
{
	return bare_run(1);
}

static int bare_host_net(void)
{
	return bare_run(0);
}

static int lean_lean(void)
{
	return lean_run(templates[1]);
}

static int lean_plain(void)
{
	return lean_run(templates[0]);
}

static const struct {
	const char *name;
	int (*run)(void);
} rows[] = {
	{"floor", bare_net},
	{"liblean", lean_plain},
	{"floor-host-net", bare_host_net},
	{"liblean-lean", lean_lean},
};
#define ROWS (int)(sizeof(rows) / sizeof(*rows))

static int open_templates(const char *root, const char *bundle)
{
	static const char *const profiles[] = {NULL, "lean"};
	struct lean_error e;

	for (int i = 0; i < 2; i++) {
		struct lean_options o = {.size = sizeof(o),
					 .bundle = bundle,
					 .root = root,
					 .profile = profiles[i]};
		if (lean_open(&o, &templates[i], &e) < 0 || lean_warm(templates[i], 1, &e) < 0) {
			fprintf(stderr, "lean-bench: %s\n", e.message);
			return 1;
		}
	}
	return 0;
}

/* As turns.py: a random one, then the same backwards; the same ones each time. */
static void next_order(int *order, int round)
{
	for (int k = ROWS - 1; k > 0; k--) {
		int other = round % 2 ? ROWS - 1 - k : (int)(random() % (k + 1)), was = order[k];
		if (round % 2 && other >= k)
			break;
		order[k] = order[other];
		order[other] = was;
	}
}

static int each(int rounds, long gap_us)
{
	struct timespec gap = {gap_us / 1000000, gap_us % 1000000 * 1000};

	int order[ROWS];

	for (int k = 0; k < ROWS; k++)
		order[k] = k;
	for (int i = 0; i < rounds; i++) {
		next_order(order, i);
		for (int k = 0; k < ROWS; k++) {
			int row = order[k];
			if (gap_us)
				nanosleep(&gap, NULL);
			int64_t cpu = cpu_us(), t = now();
			bool ok = rows[row].run() == MARK;
			int64_t whole = now() - t;
			cpu = cpu_us() - cpu;
			printf("%s %lld %lld %lld\n", rows[row].name,
			       ok ? (long long)(reaped - t) : 0, (long long)cpu, (long long)whole);
		}
		fflush(stdout);
	}
	return 0;
}

static int repeat(long seconds, const char *name)
{
	char line[16];
	int row = 0;

	while (row < ROWS && strcmp(rows[row].name, name) != 0)
		row++;
	if (row == ROWS)
		return 2;
	rows[row].run();
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		int64_t start = now(), end = start + (int64_t)seconds * 1000000000;
		long runs = 0, ok = 0;
		for (; now() < end; runs++)
			ok += rows[row].run() == MARK;
		printf("%ld %ld %lld\n", runs, ok, (long long)(now() - start));
		fflush(stdout);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (!getenv("LEAN_BENCH_UNPROTECTED"))
		(void)lean_protect(argv, NULL);
	if (argc == 8 && strcmp(argv[1], "each") == 0) {
		size_t touch = (size_t)atol(argv[4]) << 20;
		char *memory = malloc(touch + 1);
		if (!memory)
			die("malloc");
		memset(memory, 1, touch + 1);
		rootfs = argv[5];
		return open_templates(argv[6], argv[7]) || each(atoi(argv[2]), atol(argv[3]));
	}
	if (argc == 7 && strcmp(argv[1], "for") == 0) {
		rootfs = argv[4];
		return open_templates(argv[5], argv[6]) || repeat(atol(argv[2]), argv[3]);
	}
	fprintf(stderr, "usage: inprocess each ROUNDS GAP_US TOUCH_MB ROOTFS ROOT BUNDLE\n"
			"       inprocess for SECONDS ROW ROOTFS ROOT BUNDLE\n");
	return 2;
}
