/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle: start: one byte into the fifo that init blocks on, and its answer. */
#define LR_ROOM "start"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "libocispec/ocispec.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/init/init.h"
#include "src/init/sync.h"
#include "src/lifecycle/compile.h"
#include "src/lifecycle/notify.h"
#include "src/lifecycle/seeded.h"
#include "src/sys/proc.h"
#include "src/sys/syscalls.h"

static int check_status(const struct lr_existing *c, struct lr_err *err)
{
	switch (c->status) {
	case LR_CREATED:
		return 0;
	case LR_STOPPED:
		return lr_refuse(err, EINVAL, "cannot start a container that has stopped");
	case LR_CREATING:
		return lr_refuse(err, EINVAL,
				 "cannot start a container that is still being created");
	default:
		return lr_refuse(err, EINVAL, "cannot start an already running container");
	}
}

static int tell(const struct lr_entry *e, struct lr_store_fifos *f, struct lr_err *err)
{
	int r = lr_store_fifos_open(e, f);
	if (r < 0)
		return lr_fail(err, -r, "reach the container's init");
	if (write(f->go, "", 1) != 1)
		r = lr_fail(err, errno, "tell init to start");
	lr_store_fifos_remove(e);
	if (r < 0)
		lr_store_fifos_close(f);
	return r;
}

static int let_go(const struct lr_existing *c, struct lr_err *err)
{
	char program[LR_SYNC_PROGRAM_SIZE] = "";
	struct lr_store_fifos f;

	int r = tell(&c->entry, &f, err);
	if (r < 0)
		return r;
	r = lr_sync_wait_exec(f.answer, c->record.pid, c->record.start_time, program, err);
	lr_store_fifos_close(&f);
	return r < 0 ? r
		     : lr_init_check_executed(c->record.pid, c->record.start_time,
					      program[0] ? program : NULL, c->record.has_seccomp,
					      err);
}

/* What it had for `start` is gone; and others may be sent in now. */
static int record_seed_runs(struct lr_existing *c, struct lr_arena *a, struct lr_err *err)
{
	c->record.seed_report = c->record.seed_descriptor = c->record.seed_lazy = 0;
	c->record.flags |= LR_RECORD_STARTED;
	return lr_store_write(&c->entry, &c->record, c->config_text, c->config_len, a, err);
}

static int let_seed_go(struct lr_existing *c, struct lr_arena *a, struct lr_err *err)
{
	struct lr_seeded_start s;
	struct lr_store_fifos f;

	int r = lr_seeded_take(c, a, &s, err);
	if (r >= 0)
		r = tell(&c->entry, &f, err);
	if (r >= 0) {
		r = lr_seeded_go(c, &s, lr_take_fd(&f.answer), err);
		lr_store_fifos_close(&f);
	}
	if (r >= 0) {
		r = record_seed_runs(c, a, err);
		if (r < 0)
			(void)lr_pidfd_send_signal(s.pidfd, SIGKILL);
	}
	lr_seeded_start_close(&s);
	return r;
}

/* Returns when the program runs, or with the error that init reports. */
static int go(struct lr_existing *c, struct lr_arena *a, struct lr_err *err)
{
	int r = c->record.seed_report ? let_seed_go(c, a, err) : let_go(c, err);

	if (r >= 0)
		lr_debug("start: the program runs");
	return r;
}

static int run_poststart(struct lr_existing *c, struct lr_arena *a, struct lr_err *err)
{
	const struct oci_config *config;

	if (!(c->record.hooks & LR_RECORD_POSTSTART))
		return 0;
	int r = oci_config_decode(c->config_text, c->config_len, a, &config, err);
	if (r < 0 || !config->hooks)
		return r;
	struct oci_state st = lr_hook_state(&c->record, "running", c->record.pid);
	return lr_run_hooks(&config->hooks->poststart, "poststart", c->record.bundle, false, &st, a,
			    err);
}

int lr_lifecycle_start(const struct lr_runtime *rt, const char *id, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	LR_CLEANUP_EXISTING struct lr_existing c = LR_EXISTING_NONE;
	LR_CLEANUP_FD int notify = LR_NOFD;

	int r = lr_container_open(rt, id, true, a, &c, err);
	if (r >= 0)
		r = check_status(&c, err);
	if (r >= 0 && c.record.flags & LR_RECORD_NO_PROGRAM)
		r = lr_compile_no_process(err);
	if (r < 0)
		return r;
	if (c.record.notify && getenv("NOTIFY_SOCKET")) {
		notify = lr_notify_listen(&c.entry, err);
		if (notify < 0)
			return notify;
	}
	LR_CLEANUP_FD int pidfd =
		notify >= 0 ? lr_proc_pidfd(c.record.pid, c.record.start_time) : LR_NOFD;
	r = go(&c, a, err);
	if (r < 0)
		return r;
	r = run_poststart(&c, a, err);
	if (r < 0) {
		/* runtime.md, lifecycle step 10: an error, and the container is stopped. */
		lr_store_unlock(&c.entry);
		int killed = lr_lifecycle_kill(rt, id, SIGKILL, true, NULL);
		lr_debug("start: poststart failed, kill: %d", killed);
		return r;
	}
	if (notify >= 0) {
		/* The container may take its time to get ready: state, kill and delete must get the
		 * lock. */
		lr_store_unlock(&c.entry);
		lr_notify_wait(lr_take_fd(&notify), c.record.pid, pidfd);
	}
	return 0;
}
