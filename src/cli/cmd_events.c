/* SPDX-License-Identifier: Apache-2.0 */
/* cli: events. One JSON object a line: stats at intervals, and each out-of-memory event, until the
 * container stops. */
#define LR_ROOM ""
#include <errno.h>
#include <poll.h>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/base/json.h"
#include "src/base/log.h"
#include "src/cli/buf.h"
#include "src/cli/commands.h"
#include "src/cli/events_json.h"
#include "src/cli/runtime.h"

#define LOOK_MS 200 /* without a pidfd: how soon the end is seen */

static int print_line(const char *text, struct lr_err *err)
{
	LR_CLEANUP_BUF struct lr_cli_buf out = {0};

	if (!text)
		return lr_fail(err, ENOMEM, "events");
	lr_cli_put(&out, "%s\n", text);
	return lr_cli_flush(&out, err);
}

static int print_stats(const struct lr_runtime *rt, const char *id, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
	struct lr_stats *stats;

	if (!arena)
		return lr_fail(err, ENOMEM, "events");
	int r = lr_lifecycle_stats(rt, id, arena, &stats, err);
	return r < 0 ? r : print_line(lr_cli_stats_json(id, stats, arena), err);
}

static int print_oom(const char *id, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();

	if (!arena)
		return lr_fail(err, ENOMEM, "events");
	struct lr_json_writer *w = lr_json_writer_new(arena, false);
	lr_json_obj_open(w);
	lr_json_kstr(w, "type", "oom");
	lr_json_kstr(w, "id", id);
	lr_json_obj_close(w);
	return print_line(lr_json_finish(w, NULL), err);
}

struct watch {
	struct lr_stats_oom oom;
	int pidfd;
};

/* Where there are no pidfds. */
static bool has_stopped(const struct lr_runtime *rt, const char *id)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
	struct lr_container c;
	struct lr_err err = {0};
	int r = arena ? lr_lifecycle_state(rt, id, arena, &c, &err) : 0;

	return r < 0 || (arena && c.status == LR_STOPPED);
}

/* One turn: waits until the container stops (returns 1), memory runs out, or stats are due. */
static int turn(struct watch *w, const struct lr_runtime *rt, const char *id, int64_t *due,
		int64_t interval, struct lr_err *err)
{
	struct pollfd fds[] = {{.fd = w->pidfd, .events = POLLIN},
			       {.fd = w->oom.fd, .events = POLLIN}};
	int64_t left = *due - lr_now_ms();

	left = left < 0 ? 0 : left > INT_MAX ? INT_MAX : left;
	if (w->pidfd < 0 && left > LOOK_MS)
		left = LOOK_MS;
	int n = poll(fds, 2, (int)left);
	if (n < 0)
		return errno == EINTR ? 0 : lr_fail(err, errno, "events: poll");
	if (fds[1].revents) {
		int events = lr_stats_oom_read(&w->oom);
		if (events < 0) /* the cgroup is gone: the container's end will be seen too */
			lr_stats_oom_close(&w->oom);
		int r = events > 0 ? print_oom(id, err) : 0;
		if (r < 0)
			return r;
	}
	if (fds[0].revents || (w->pidfd < 0 && has_stopped(rt, id)))
		return 1;
	if (lr_now_ms() < *due)
		return 0;
	*due += interval;
	if (*due < lr_now_ms()) /* suspended or starved meanwhile: no burst to catch up */
		*due = lr_now_ms() + interval;
	return print_stats(rt, id, err);
}

int lr_cmd_events(const struct lr_cli_args *args, struct lr_err *err)
{
	const char *id = lr_cli_id(args);
	int64_t interval = lr_cli_num(args, LR_OPT_INTERVAL, 5000);
	struct watch w = {.oom = LR_STATS_OOM_INIT, .pidfd = LR_NOFD};
	struct lr_cli_runtime run;

	int r = lr_cli_runtime(args, &run, err);
	if (r < 0)
		return r;
	if (lr_cli_flag(args, LR_OPT_STATS))
		return print_stats(&run.rt, id, err);
	r = lr_lifecycle_watch(&run.rt, id, &w.oom, &w.pidfd, err);
	int64_t due = lr_now_ms() + interval;
	while (r == 0)
		r = turn(&w, &run.rt, id, &due, interval, err);
	lr_stats_oom_close(&w.oom);
	lr_close(w.pidfd);
	return r < 0 ? r : 0;
}
