/* SPDX-License-Identifier: Apache-2.0 */
/* cli: checkpoint and restore. */
#define LR_ROOM ""
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/json.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/checkpoint/checkpoint.h"
#include "src/cli/buf.h"
#include "src/cli/commands.h"
#include "src/cli/number.h"
#include "src/cli/runtime.h"

static int checkpoint_opts(const struct lr_cli_args *args, struct lr_arena *a,
			   struct lr_checkpoint_opts *o, struct lr_err *err)
{
	int64_t status_fd = lr_cli_num(args, LR_OPT_STATUS_FD, -1);
	const char **empty = NULL;

	if (status_fd > INT_MAX)
		return lr_refuse(err, EINVAL, "--status-fd=%lld: no descriptor has that number",
				 (long long)status_fd);
	const char *fetch = lr_cli_str(args, LR_OPT_FETCH);
	int r = lr_cli_list(args, LR_OPT_EMPTY_NS, a, &empty, NULL, err);
	*o = (struct lr_checkpoint_opts){
		.engine = lr_cli_str(args, LR_OPT_ENGINE),
		.image_path = lr_cli_str(args, LR_OPT_IMAGE_PATH),
		.work_path = lr_cli_str(args, LR_OPT_WORK_PATH),
		.parent_path = lr_cli_str(args, LR_OPT_PARENT_PATH),
		.page_server = lr_cli_str(args, LR_OPT_PAGE_SERVER),
		.cgroups = lr_cli_str(args, LR_OPT_MANAGE_CGROUPS_MODE),
		.network_lock = lr_cli_str(args, LR_OPT_NETWORK_LOCK),
		.lsm_profile = lr_cli_str(args, LR_OPT_LSM_PROFILE),
		.lsm_mount_context = lr_cli_str(args, LR_OPT_LSM_MOUNT_CONTEXT),
		.criu = lr_cli_str(args, LR_OPT_CRIU),
		.empty_ns = empty,
		.status_fd = status_fd < 0 ? LR_NOFD : (int)status_fd,
		.forkd = lr_cli_str(args, LR_OPT_FORKD),
		.lease = (uint64_t)lr_cli_num(args, LR_OPT_LEASE, 0),
		.tmpfs_bytes = lr_cli_num(args, LR_OPT_TMPFS_BYTES, LR_CHECKPOINT_TMPFS_BYTES),
		.tmpfs_files = lr_cli_num(args, LR_OPT_TMPFS_FILES, LR_CHECKPOINT_TMPFS_FILES),
		.tmpfs_bound = lr_cli_str(args, LR_OPT_TMPFS_BYTES) ||
			       lr_cli_str(args, LR_OPT_TMPFS_FILES),
		.with_changes = lr_cli_flag(args, LR_OPT_WITH_CHANGES),
		.changes_bytes =
			lr_cli_num(args, LR_OPT_CHANGES_BYTES, LR_CHECKPOINT_CHANGES_BYTES),
		.changes_files =
			lr_cli_num(args, LR_OPT_CHANGES_FILES, LR_CHECKPOINT_CHANGES_FILES),
		.changes_bound = lr_cli_str(args, LR_OPT_CHANGES_BYTES) ||
				 lr_cli_str(args, LR_OPT_CHANGES_FILES),
		.background = lr_cli_flag(args, LR_OPT_BACKGROUND),
		.without_exec = lr_cli_flag(args, LR_OPT_WITHOUT_EXEC),
		.leave_running = lr_cli_flag(args, LR_OPT_LEAVE_RUNNING),
		.stop = lr_cli_flag(args, LR_OPT_STOP),
		.pre_dump = lr_cli_flag(args, LR_OPT_PRE_DUMP),
		.tcp_established = lr_cli_flag(args, LR_OPT_TCP_ESTABLISHED),
		.tcp_close = lr_cli_flag(args, LR_OPT_TCP_CLOSE),
		.tcp_skip_in_flight = lr_cli_flag(args, LR_OPT_TCP_SKIP_IN_FLIGHT),
		.ext_unix_sk = lr_cli_flag(args, LR_OPT_EXT_UNIX_SK),
		.shell_job = lr_cli_flag(args, LR_OPT_SHELL_JOB),
		.file_locks = lr_cli_flag(args, LR_OPT_FILE_LOCKS),
		.auto_dedup = lr_cli_flag(args, LR_OPT_AUTO_DEDUP),
		.lazy_pages = lr_cli_flag(args, LR_OPT_LAZY_PAGES),
		.link_remap = lr_cli_flag(args, LR_OPT_LINK_REMAP),
	};
	if (r >= 0 && fetch && lr_checkpoint_how(fetch, o) < 0)
		r = lr_refuse(err, EINVAL, "--fetch=%.64s: there is no such way", fetch);
	return r;
}

/* Bare: without an end. */
static int when_ready(const struct lr_cli_args *args, struct lr_checkpoint_opts *o,
		      struct lr_err *err)
{
	const char *time = lr_cli_str(args, LR_OPT_WHEN_READY);
	int64_t ms = 0;

	if (!time)
		return 0;
	if (*time && lr_cli_parse_duration(time, &ms) < 0)
		return lr_refuse(err, EINVAL, "--when-ready=%.64s is no time: 500ms, 5s, 1m30s",
				 time);
	o->when_ready = true;
	o->ready_ms = (uint64_t)ms;
	return 0;
}

/* The only one that can. */
static void choose_engine(struct lr_checkpoint_opts *o)
{
	if (!o->engine && (o->ticket || o->ticket_from))
		o->engine = "fork";
}

static int print_ticket(void *arg, const char *ticket, struct lr_err *err)
{
	(void)arg;
	char line[LR_TICKET_TEXT + 1];
	int n = snprintf(line, sizeof(line), "%s\n", ticket);

	return lr_cli_print(line, (size_t)n, err);
}

int lr_cmd_checkpoint(const struct lr_cli_args *args, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_cli_runtime run;
	char ticket[LR_TICKET_TEXT] = "";
	struct lr_checkpoint_opts o;

	int r = lr_cli_runtime(args, &run, err);
	if (r == 0)
		r = checkpoint_opts(args, a, &o, err);
	if (r >= 0)
		r = when_ready(args, &o, err);
	if (r < 0)
		return r;
	if (lr_cli_flag(args, LR_OPT_REMOTE)) {
		o.ticket = ticket;
		o.tell = print_ticket;
	}
	choose_engine(&o);
	return lr_lifecycle_checkpoint(&run.rt, lr_cli_id(args), &o, err);
}

#define MOST_AT_ONCE 10000
#define ID_ROOM      1100 /* more than an id may have: what is cut off is refused */

static void undo(const struct lr_runtime *rt, const char *base, int64_t n)
{
	char id[ID_ROOM], line[1200];
	struct lr_err why = {0};

	for (int64_t i = 1; i <= n; i++) {
		snprintf(id, sizeof(id), "%s-%" PRId64, base, i);
		if (lr_lifecycle_delete(rt, id, true, &why) < 0)
			lr_warn("delete %s: %s", id, lr_err_format(&why, line, sizeof(line)));
	}
}

/* All, or none. */
static int restore_many(const struct lr_runtime *rt, const struct lr_create_opts *create,
			const struct lr_checkpoint_opts *o, int64_t n, struct lr_err *err)
{
	char id[ID_ROOM];
	struct lr_create_opts one = *create;
	int status, r = 0;

	if (n < 1 || n > MOST_AT_ONCE)
		return lr_refuse(err, EINVAL, "--count: 1 to %d", MOST_AT_ONCE);
	if (!create->detach || create->pid_file)
		return lr_refuse(err, EINVAL,
				 create->detach ? "--count does not go with --pid-file"
						: "--count goes with --detach");
	one.id = id;
	one.more = true;
	one.many = n > 1;
	for (int64_t i = 1; r >= 0 && i <= n; i++) {
		snprintf(id, sizeof(id), "%s-%" PRId64, create->id, i);
		r = lr_lifecycle_restore(rt, &one, o, &status, err);
		if (r < 0)
			undo(rt, create->id, i - 1);
	}
	return r;
}

static void put_us(struct lr_json_writer *w, const char *key, int64_t from, int64_t to)
{
	lr_json_kuint(w, key, (uint64_t)(to - from) / 1000);
}

/* The container runs by now: what can't be told does not undo that. */
static void tell_stats(const struct lr_init_seed_stats *s)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_json_writer *w = lr_json_writer_new(a, false);

	lr_json_obj_open(w);
	lr_json_kstr(w, "id", s->id);
	lr_json_kstr(w, "memory", s->memory);
	lr_json_kstr(w, "fetch", s->fetch);
	lr_json_kuint(w, "pages", s->pages);
	lr_json_kuint(w, "bytes", s->pages * 4096);
	lr_json_key(w, "pagesBefore");
	lr_json_obj_open(w);
	lr_json_kuint(w, "files", s->files);
	lr_json_kuint(w, "cache", s->cached);
	lr_json_kuint(w, "tcp", s->tcp);
	lr_json_kuint(w, "rdma", s->rdma);
	lr_json_obj_close(w);
	lr_json_kuint(w, "bytesBefore", (s->files + s->cached + s->tcp + s->rdma) * 4096);
	lr_json_key(w, "us");
	lr_json_obj_open(w);
	put_us(w, "descriptor", s->begun, s->described);
	put_us(w, "pages", s->described, s->brought);
	put_us(w, "container", s->brought, s->made);
	put_us(w, "memory", s->made, s->runs);
	put_us(w, "all", s->begun, s->runs);
	lr_json_obj_close(w);
	lr_json_obj_close(w);
	const char *line = lr_json_finish(w, NULL);
	if (!line || dprintf(STDERR_FILENO, "%s\n", line) < 0)
		lr_warn("restore: the figures can't be told");
}

static int check_stats(const struct lr_checkpoint_opts *o, struct lr_err *err)
{
	if (o->engine && lr_streq(o->engine, "fork"))
		return 0;
	lr_refuse(err, EINVAL, "--stats goes with --engine=fork and with --remote");
	return lr_err_hint(err, "criu writes its own, stats-restore, into --work-path");
}

int lr_cmd_restore(const struct lr_cli_args *args, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_cli_runtime run;
	struct lr_checkpoint_opts o;
	/* criu neither pivots nor starts a program of ours: nothing of this program is in there. */
	const struct lr_create_opts create = {
		.id = lr_cli_id(args),
		.bundle = lr_cli_str(args, LR_OPT_BUNDLE),
		.console_socket = lr_cli_str(args, LR_OPT_CONSOLE_SOCKET),
		.pid_file = lr_cli_str(args, LR_OPT_PID_FILE),
		.no_pivot = lr_cli_flag(args, LR_OPT_NO_PIVOT),
		.detach = lr_cli_flag(args, LR_OPT_DETACH),
		.no_subreaper = lr_cli_flag(args, LR_OPT_NO_SUBREAPER),
	};
	int status = 0;

	int r = lr_cli_runtime(args, &run, err);
	if (r == 0)
		r = checkpoint_opts(args, a, &o, err);
	if (r < 0)
		return r;
	o.ticket_from = lr_cli_str(args, LR_OPT_REMOTE);
	choose_engine(&o);
	const char *fetch = lr_cli_str(args, LR_OPT_FETCH);
	struct lr_init_seed_stats stats = {.tell = tell_stats,
					   .fetch = fetch           ? fetch
						    : o.ticket_from ? "ondemand"
								    : "eager"};
	if (lr_cli_flag(args, LR_OPT_STATS)) {
		r = check_stats(&o, err);
		if (r < 0)
			return r;
		o.stats = &stats;
	}
	if (create.detach)
		signal(SIGPIPE, SIG_IGN);
	if (lr_cli_str(args, LR_OPT_NUMBER))
		return restore_many(&run.rt, &create, &o, lr_cli_num(args, LR_OPT_NUMBER, 1), err);
	r = lr_lifecycle_restore(&run.rt, &create, &o, &status, err);
	return r < 0 ? r : status;
}
