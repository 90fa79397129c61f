/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle: run: create, start, stay until the end, clean up. */
#define LR_ROOM "run"
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/lifecycle/create.h"
#include "src/lifecycle/foreground.h"
#include "src/lifecycle/notify.h"

/* Whether processes may be left to us at the end. With the first process of a pid namespace all
 * others end; but a hook may leave something running. */
static bool leaves_others(const struct lr_birth *b)
{
	return !(b->c.init.ns.create & CLONE_NEWPID) || b->c.config->hooks;
}

static int stay(struct lr_birth *b, const struct lr_tty_signals *signals, int notify, int *status,
		struct lr_err *err)
{
	LR_CLEANUP_FD int sock = notify;
	int r = 0;

	/* kill, exec and delete must get the lock meanwhile. */
	lr_store_leave(&b->entry);
	/* The container may run for months: nothing stays open but what its end takes. */
	b->stub = lr_close(b->stub);
	if (sock >= 0)
		r = lr_notify_spawn(lr_take_fd(&sock), b->child.pidfd, err);
	if (r >= 0)
		r = lr_foreground(b->child.pid, b->child.pidfd, leaves_others(b), &b->console,
				  signals, status, err);
	b->child.pid = 0; /* reaped */
	if (r >= 0)
		b->c.record.pid = 0; /* another process may have the pid by now */
	return r;
}

/* It is fine if it was deleted while we stayed. */
static int clean_up(struct lr_birth *b, struct lr_arena *a, struct lr_err *err)
{
	struct lr_err why = {0};
	int r = lr_store_return(&b->entry, &why);

	if (r == -ENOENT)
		return 0;
	if (r < 0) {
		if (err)
			*err = why;
		return r;
	}
	return lr_container_destroy(&b->entry, &b->c.record, b->c.kept, b->c.kept_len, b->c.bundle,
				    a, err);
}

/* Processes that the container leaves behind become our children, and not those of somebody who
 * never waits. Only while we stay: a container in the background must outlive us. */
int lr_birth_prepare_to_stay(const struct lr_birth *b, const struct lr_create_opts *o,
			     struct lr_tty_signals *signals, struct lr_err *err)
{
	if (!o->no_subreaper && leaves_others(b) && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return lr_fail(err, errno, "become a subreaper");
	return lr_tty_signals_open(signals, true, err);
}

static int run(const struct lr_runtime *rt, const struct lr_create_opts *o,
	       struct lr_tty_signals *signals, struct lr_birth *b, struct lr_arena *a, int *status,
	       struct lr_err *err)
{
	LR_CLEANUP_FD int notify = LR_NOFD;

	int r = lr_birth_plan(rt, o, a, b, err);
	if (r >= 0 && !o->detach)
		r = lr_birth_prepare_to_stay(b, o, signals, err);
	if (r >= 0)
		r = lr_birth_make(o, o->detach ? LR_BIRTH_DETACHED : LR_BIRTH_FOREGROUND, a, b,
				  err);
	if (r < 0)
		return r;
	if (b->c.notify) {
		notify = lr_notify_listen(&b->entry, err);
		r = notify < 0 ? notify : 0;
	}
	if (r >= 0)
		r = lr_birth_start(b, o, a, err);
	if (r < 0) {
		lr_birth_undo(b, a, err);
		return r;
	}
	*status = 0;
	if (o->detach) {
		lr_store_unlock(&b->entry);
		if (notify >= 0)
			lr_notify_wait(lr_take_fd(&notify), b->child.pid, b->child.pidfd);
		return 0;
	}
	return lr_birth_stay(b, o, signals, lr_take_fd(&notify), a, status, err);
}

int lr_birth_stay(struct lr_birth *b, const struct lr_create_opts *o,
		  const struct lr_tty_signals *signals, int notify, struct lr_arena *a, int *status,
		  struct lr_err *err)
{
	int r = stay(b, signals, notify, status, err);

	if (r >= 0)
		lr_debug("run: it ended with status %d", *status);
	if (r >= 0 && *status == 128 + SIGKILL && lr_birth_out_of_memory(b, a))
		lr_warn("the container was killed because it reached its memory limit of %" PRId64
			" bytes (linux.resources.memory.limit)",
			*b->c.config->linux_->resources->memory->limit);
	if (o->keep)
		return r;
	int cleaned = clean_up(b, a, r < 0 ? NULL : err);
	return r < 0 ? r : cleaned;
}

int lr_lifecycle_run(const struct lr_runtime *rt, const struct lr_create_opts *o, int *status,
		     struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_birth b = LR_BIRTH_NONE;
	struct lr_tty_signals signals = {.fd = LR_NOFD};

	int r = run(rt, o, &signals, &b, a, status, err);
	/* The runtime ends next, and its descriptors with it; no late signal may change the status
	 * that it ends with. But after an error it still has to write the message, which may take
	 * time; and whoever bears others has to have room for them. */
	if (r >= 0 && !o->more)
		return r;
	lr_birth_close(&b);
	lr_tty_signals_close(&signals);
	return r;
}
