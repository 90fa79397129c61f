/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle: checkpoint: a running container into an image directory. */
#define LR_ROOM "checkpoint"
#include "src/checkpoint/checkpoint.h"

#include <errno.h>
#include <signal.h>
#include <sys/file.h>

#include "libocispec/ocispec.h"
#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/lifecycle/compile.h"
#include "src/lifecycle/notify.h"
#include "src/sys/proc.h"
#include "src/sys/syscalls.h"

static int check(const struct lr_runtime *rt, const struct lr_existing *c, struct lr_err *err)
{
	if (c->status != LR_RUNNING && c->status != LR_PAUSED)
		return lr_refuse(err, EINVAL, "container cannot be checkpointed in %s state",
				 lr_status_name(c->status));
	if (lr_is_rootless(rt)) {
		lr_refuse(err, EPERM, "cannot checkpoint a rootless container");
		return lr_err_hint(err, "it takes root in the host's user namespace");
	}
	/* What it has written to its root may be nowhere in the bundle. */
	if (c->record.lean_slot || c->record.lean_net) {
		lr_refuse(err, EOPNOTSUPP,
			  "a container of the lean profile cannot be checkpointed: its root is not "
			  "the bundle's alone");
		return lr_err_hint(err, "create it without --lean");
	}
	return 0;
}

static int run_engine(const struct lr_existing *c, const struct lr_checkpoint_opts *o,
		      const struct lr_checkpoint_engine *engine, struct lr_arena *a,
		      struct lr_err *err)
{
	const struct lr_create_opts bundle = {.bundle = c->record.bundle, .two_phase = true};
	struct lr_checkpoint_job job = {
		.opts = o,
		.pid = c->record.pid,
		.lock = c->entry.dir,
		.paused = c->status == LR_PAUSED,
		.rootfs = c->record.rootfs,
		.relayed = c->record.flags & LR_RECORD_RELAYED,
		.cgroup = &c->cgroup,
		.delegate = oci_map_get(&c->record.annotations, LR_CGROUP_DELEGATE),
		.notify = lr_strf(a, "%s/%s/" LR_NOTIFY_DIR, c->store.path, c->record.id),
	};
	const char *path;
	bool lives_on = lr_checkpoint_lives_on(engine, o);

	if (!job.notify)
		return lr_fail(err, ENOMEM, "checkpoint");
	int r = lr_compile_read(&bundle, a, &path, &job.config, err);
	/* Of a process that stays and copies, until its end. */
	LR_CLEANUP_FD int copying =
		r >= 0 && o->background ? lr_store_copying(&c->entry, err) : LR_NOFD;
	if (r >= 0 && o->background && copying < 0)
		r = copying;
	if (r < 0)
		return r;
	r = engine->checkpoint(&job, a, err);
	/* All was well but for the last word of it. */
	if (r < 0 && !lives_on && err && lr_proc_alive(c->record.pid, c->record.start_time) == 0) {
		err->hint[0] = '\0';
		lr_err_hint(err, "the container has ended, as one does that is saved: its images "
				 "may be good");
	}
	return r;
}

/* Without its lock, so that it can be killed and deleted meanwhile. */
static int await(const struct lr_runtime *rt, const char *id, uint64_t end, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	LR_CLEANUP_EXISTING struct lr_existing c = LR_EXISTING_NONE;

	int r = lr_container_open(rt, id, false, a, &c, err);
	if (r >= 0)
		r = check(rt, &c, err);
	if (r >= 0 && c.status == LR_PAUSED)
		r = lr_refuse(err, EBUSY, "a paused container does not become ready");
	if (r < 0)
		return r;
	LR_CLEANUP_FD int pidfd = lr_pidfd_open(c.record.pid, 0);
	if (pidfd < 0 && pidfd != -ESRCH)
		return lr_fail(err, -pidfd, "look at the container");
	/* Its number was not another's when that was opened. */
	r = pidfd < 0 ? 0 : lr_proc_alive(c.record.pid, c.record.start_time);
	if (r < 0)
		return lr_fail(err, -r, "look at the container");
	if (r == 0)
		return lr_refuse(err, ECHILD, "the container has ended before it was ready");
	return lr_checkpoint_await(c.record.pid, pidfd, end, err);
}

/* Who copies has the container's memory in processes that are in it, and belong to no seed. They are
 * waited for without the container's lock, so that it can be killed and deleted meanwhile. */
static int open_uncopied(const struct lr_runtime *rt, const char *id, struct lr_arena *a,
			 struct lr_existing *ret, struct lr_err *err)
{
	for (;;) {
		int r = lr_container_open(rt, id, true, a, ret, err);
		if (r >= 0)
			r = check(rt, ret, err);
		if (r < 0)
			return r;
		LR_CLEANUP_FD int copied = lr_store_copied(&ret->entry, err);
		if (copied < 0)
			return copied == -ENOENT ? 0 : copied;
		lr_container_close(ret);
		*ret = (struct lr_existing)LR_EXISTING_NONE;
		lr_debug("checkpoint: %s: the seed before this one is still copied", id);
		while ((r = flock(copied, LOCK_SH)) < 0 && errno == EINTR)
			;
		if (r < 0)
			return lr_fail(err, errno, "wait for the seed before this one");
	}
}

static int save(const struct lr_runtime *rt, const char *id, const struct lr_checkpoint_opts *o,
		const struct lr_checkpoint_engine *engine, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	LR_CLEANUP_EXISTING struct lr_existing c = LR_EXISTING_NONE;

	int r = open_uncopied(rt, id, a, &c, err);
	if (r >= 0)
		r = run_engine(&c, o, engine, a, err);
	if (r < 0 || lr_checkpoint_lives_on(engine, o))
		return r;
	lr_debug("checkpoint: %s is in the images, and ends here", id);
	/* As runc and crun: what is in the images is not in the store any more. */
	r = lr_container_destroy(&c.entry, &c.record, c.config_text, c.config_len, NULL, a, err);
	if (r < 0)
		lr_err_hint(err,
			    "the container is saved: delete --force removes what is left of it");
	return r;
}

int lr_lifecycle_checkpoint(const struct lr_runtime *rt, const char *id,
			    const struct lr_checkpoint_opts *o, struct lr_err *err)
{
	const struct lr_checkpoint_engine *engine = NULL;
	const uint64_t end = o->ready_ms ? (uint64_t)lr_now_ms() + o->ready_ms : 0;

	/* A manager that goes away must not end criu's work in the middle. */
	signal(SIGPIPE, SIG_IGN);
	/* Nor a limit on the size of files: writing says what is wrong, and half a seed is removed. */
	signal(SIGXFSZ, SIG_IGN);
	int r = lr_checkpoint_check(o, err);
	if (r >= 0)
		r = lr_checkpoint_engine(o->engine, &engine, err);
	if (r < 0)
		return r;
	/* Between the two it may have given up waiting, again and again. */
	do {
		r = o->when_ready ? await(rt, id, end, err) : 0;
		if (r >= 0)
			r = save(rt, id, o, engine, err);
	} while (o->when_ready && r == -ENOMSG && (!end || (uint64_t)lr_now_ms() < end));
	return r;
}
