/* SPDX-License-Identifier: Apache-2.0 */
/* stats: from cgroup v2's files, in the terms of v1 that readers of `events` know. */
#define LR_ROOM "stats"

#include "src/stats/parse.h"

#include <stdlib.h>

#include "src/base/str.h"

static void cpu(const char *dir, struct lr_stats *s)
{
	char text[4096];

	if (lr_stats_text(dir, "cpu.stat", text)) {
		s->cpu.total = lr_stats_key(text, "usage_usec") * 1000;
		s->cpu.user = lr_stats_key(text, "user_usec") * 1000;
		s->cpu.kernel = lr_stats_key(text, "system_usec") * 1000;
		s->cpu.periods = lr_stats_key(text, "nr_periods");
		s->cpu.throttled_periods = lr_stats_key(text, "nr_throttled");
		s->cpu.throttled_time = lr_stats_key(text, "throttled_usec") * 1000;
	}
	lr_stats_read_psi(dir, "cpu.pressure", &s->cpu.psi);
}

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a == UINT64_MAX || b == UINT64_MAX ? UINT64_MAX : a + b;
}

static void memory(const char *dir, struct lr_arena *arena, struct lr_stats *s)
{
	char *text = lr_cgroup_slurp(arena, dir, "memory.stat");
	struct lr_stats_mem *u = &s->memory.usage;
	char events[4096];

	if (!text)
		return;
	s->memory.present = true;
	s->memory.use_hierarchy = true;
	lr_stats_parse_map(arena, text, &s->memory.stat.v, &s->memory.stat.n);
	s->memory.cache = lr_stats_key(text, "file");
	u->usage = lr_stats_number(dir, "memory.current");
	u->limit = lr_stats_number(dir, "memory.max");
	u->max = lr_stats_number(dir, "memory.peak"); /* since 5.19 */
	s->memory.kernel.usage = lr_stats_key(text, "kernel");
	if (lr_stats_text(dir, "memory.events", events)) {
		u->failcnt = lr_stats_key(events, "max");
		s->memory.oom_kill = lr_stats_key(events, "oom_kill");
	}
	/* v1 counts memory and swap together; v2 swap alone. */
	if (lr_stats_text(dir, "memory.swap.current", events)) {
		s->memory.swap.usage = sum(u->usage, strtoull(events, NULL, 10));
		s->memory.swap.limit = sum(u->limit, lr_stats_number(dir, "memory.swap.max"));
		if (lr_stats_text(dir, "memory.swap.events", events))
			s->memory.swap.failcnt = lr_stats_key(events, "fail");
	}
	lr_stats_read_psi(dir, "memory.pressure", &s->memory.psi);
}

/* "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6" */
static void io(const char *dir, struct lr_arena *arena, struct lr_stats *s)
{
	static const struct {
		const char *key, *op;
		bool bytes;
	} fields[] = {{"rbytes=", "Read", true},    {"wbytes=", "Write", true},
		      {"dbytes=", "Discard", true}, {"rios=", "Read", false},
		      {"wios=", "Write", false},    {"dios=", "Discard", false}};
	char *text = lr_cgroup_slurp(arena, dir, "io.stat"), *line;

	while (text && (line = strsep(&text, "\n")) && *line) {
		char *end, *p;
		uint64_t major = strtoull(line, &end, 10), minor;

		if (*end != ':')
			continue;
		minor = strtoull(end + 1, &end, 10);
		for (size_t i = 0; i < LR_ARRAY_SIZE(fields); i++) {
			struct lr_stats_blkio_list *l = fields[i].bytes ? &s->blkio.io_service_bytes
									: &s->blkio.io_serviced;

			if ((p = strstr(end, fields[i].key)) &&
			    lr_stats_add_blkio(arena, l, major, minor, fields[i].op,
					       strtoull(p + strlen(fields[i].key), NULL, 10)) < 0)
				return;
		}
	}
	lr_stats_read_psi(dir, "io.pressure", &s->blkio.psi);
}

void lr_stats_v2(const char *dir, struct lr_arena *arena, struct lr_stats *s)
{
	cpu(dir, s);
	memory(dir, arena, s);
	io(dir, arena, s);
}
