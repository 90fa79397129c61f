/* SPDX-License-Identifier: Apache-2.0 */
/* cli: pool status, warm, drain. */
#define LR_ROOM "pool"
#include <errno.h>

#include "src/base/json.h"
#include "src/base/str.h"
#include "src/cli/buf.h"
#include "src/cli/commands.h"
#include "src/cli/runtime.h"
#include "src/lean/lean.h"

#define MOST_AT_ONCE 1024

static void as_table(const struct lr_lean_pool *p, struct lr_cli_buf *out)
{
	lr_cli_put(out, "%-20s%-8s%-8s%-8s%s\n", "KEY", "FREE", "USED", "LOST", "ROOTFS");
	for (size_t i = 0; i < p->n; i++)
		lr_cli_put(out, "%-20s%-8u%-8u%-8u%s\n", p->v[i].key, p->v[i].free, p->v[i].used,
			   p->v[i].lost, p->v[i].rootfs);
}

static const char *as_json(const struct lr_lean_pool *p, struct lr_arena *a)
{
	struct lr_json_writer *w = lr_json_writer_new(a, true);

	lr_json_obj_open(w);
	lr_json_kstr(w, "path", p->path);
	lr_json_kbool(w, "sharedNetwork", p->shared_net);
	lr_json_key(w, "slots");
	lr_json_list_open(w);
	for (size_t i = 0; i < p->n; i++) {
		lr_json_obj_open(w);
		lr_json_kstr(w, "key", p->v[i].key);
		lr_json_kstr(w, "rootfs", p->v[i].rootfs);
		lr_json_kuint(w, "free", p->v[i].free);
		lr_json_kuint(w, "used", p->v[i].used);
		lr_json_kuint(w, "lost", p->v[i].lost);
		lr_json_obj_close(w);
	}
	lr_json_list_close(w);
	lr_json_obj_close(w);
	return lr_json_finish(w, NULL);
}

static int status(const struct lr_cli_args *args, const struct lr_runtime *rt, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
	LR_CLEANUP_BUF struct lr_cli_buf out = {0};
	const char *format = lr_cli_str(args, LR_OPT_FORMAT);
	struct lr_lean_pool pool;

	if (!arena)
		return lr_fail(err, ENOMEM, "status");
	int r = lr_lifecycle_pool_status(rt, arena, &pool, err);
	if (r < 0)
		return r;
	if (format && lr_streq(format, "json")) {
		const char *text = as_json(&pool, arena);
		if (!text)
			return lr_fail(err, ENOMEM, "status");
		lr_cli_put(&out, "%s\n", text);
	} else {
		as_table(&pool, &out);
	}
	return lr_cli_flush(&out, err);
}

static int warm(const struct lr_cli_args *args, const struct lr_runtime *rt, struct lr_err *err)
{
	const struct lr_create_opts o = {.bundle = lr_cli_str(args, LR_OPT_BUNDLE)};
	int64_t n = lr_cli_num(args, LR_OPT_NUMBER, 1);

	if (n < 1 || n > MOST_AT_ONCE)
		return lr_refuse(err, EINVAL, "--count: 1 to %d", MOST_AT_ONCE);
	return lr_lifecycle_pool_warm(rt, &o, (unsigned)n, err);
}

static int drain(const struct lr_runtime *rt, struct lr_err *err)
{
	unsigned left;

	int r = lr_lifecycle_pool_drain(rt, &left, err);
	if (r < 0 || left == 0)
		return r;
	lr_refuse(err, EBUSY, "%u slots are in use", left);
	return lr_err_hint(err, "what was free is gone; delete the containers for the rest");
}

int lr_cmd_pool(const struct lr_cli_args *args, struct lr_err *err)
{
	const char *what = args->operands[0];
	struct lr_cli_runtime run;

	int r = lr_cli_runtime(args, &run, err);
	if (r < 0)
		return r;
	if (lr_streq(what, "status"))
		return status(args, &run.rt, err);
	if (lr_streq(what, "warm"))
		return warm(args, &run.rt, err);
	if (lr_streq(what, "drain"))
		return drain(&run.rt, err);
	return lr_refuse(err, EINVAL, "unknown command \"%s\": status, warm or drain", what);
}
