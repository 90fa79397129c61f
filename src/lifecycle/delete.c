/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle: taking a container apart. */
#define LR_ROOM "delete"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "libocispec/ocispec.h"
#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/lean/lean.h"
#include "src/lifecycle/container.h"
#include "src/rdt/rdt.h"
#include "src/sys/proc.h"
#include "src/sys/syscalls.h"

/* How long `delete --force` waits for who has the lock: while the container lives, and when what runs in it
 * was killed. */
#define LR_LOCK_MS      10000
#define LR_LOCK_DEAD_MS 20000

/* Thaws again and again: init waits for all of its pid namespace to die, and who is alive until then
 * can freeze others. */
static int await_end(const struct lr_record *r, int pidfd, const struct lr_cgroup_ref *cg,
		     struct lr_err *err)
{
	const int64_t end = lr_now_ms() + LR_KILL_TIMEOUT_MS;
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	do {
		int n = poll(&p, 1, pidfd < 0 ? 10 : 100);
		if (n > 0)
			return 0;
		if (n < 0)
			lr_sleep_us(10000);
		int alive = lr_proc_alive(r->pid, r->start_time);
		if (alive <= 0)
			return alive < 0 ? lr_fail(err, -alive, "look at process %d", r->pid) : 0;
		lr_cgroup_let_die(cg);
	} while (lr_now_ms() < end);
	lr_refuse(err, EBUSY, "process %d does not die", r->pid);
	return lr_err_hint(
		err, "it hangs in the kernel (state D in ps): often a mount that does not answer");
}

/* SIGKILL, and wait until the process is gone (or a zombie, which is its parent's business). */
static int kill_init(const struct lr_record *r, const struct lr_cgroup_ref *cg, struct lr_err *err)
{
	if (r->pid == 0)
		return 0;
	LR_CLEANUP_FD int pidfd = lr_proc_pidfd(r->pid, r->start_time);
	if (pidfd == -ESRCH)
		return 0;
	int killed = pidfd < 0 ? pidfd : lr_pidfd_send_signal(pidfd, SIGKILL);
	if (killed < 0)
		killed = lr_proc_signal(r->pid, r->start_time, SIGKILL);
	if (killed < 0 && killed != -ESRCH)
		return lr_fail(err, -killed, "kill process %d", r->pid);
	if (cg->n && lr_cgroup_is_frozen(cg) == 1 && lr_cgroup_freeze(cg, false, err) < 0)
		return -err->code;
	return await_end(r, pidfd, cg, err);
}

/* Hooks run in the bundle, or, if that has been deleted, in the caller's directory. */
static void run_poststop(const struct lr_record *r, const char *text, size_t len, const char *dir,
			 struct lr_arena *a)
{
	const struct oci_config *config = NULL;
	struct lr_err why = {0};
	char line[512];

	if (!(r->hooks & LR_RECORD_POSTSTOP))
		return;
	int rc = oci_config_decode(text, len, a, &config, &why);
	if (rc >= 0 && config->hooks) {
		struct oci_state st = lr_hook_state(r, "stopped", 0);
		if (dir && access(dir, X_OK) < 0)
			dir = NULL;
		rc = lr_run_hooks(&config->hooks->poststop, "poststop", dir, true, &st, a, &why);
	}
	/* runtime.md: what goes wrong in poststop is logged, and deletion goes on. */
	if (rc < 0)
		lr_warn("poststop: %s", lr_err_format(&why, line, sizeof(line)));
}

static int destroy_cgroup(const struct lr_record *r, const struct lr_cgroup_ref *cg,
			  struct lr_err *err)
{
	/* Without the flag it may not be ours: it was to be made, turned out to be another
	 * container's, and the runtime was killed before it could record that. */
	bool ours = r->flags & LR_RECORD_CGROUP;
	int rc = lr_cgroup_destroy(cg, ours, err);

	if (rc == -EBUSY && !ours) {
		lr_warn("cgroup %s is in use by others: left alone", cg->relative);
		return 0;
	}
	return rc;
}

static int destroy_rdt(const struct lr_record *r, const char *text, size_t len, struct lr_arena *a,
		       struct lr_err *err)
{
	const struct oci_config *config;
	struct lr_rdt_plan plan;

	int rc = oci_config_decode(text, len, a, &config, err);
	if (rc >= 0)
		rc = lr_rdt_plan(config->linux_ ? config->linux_->intel_rdt : NULL, r->id, a, &plan,
				 err);
	if (rc < 0)
		return rc;
	LR_CLEANUP_FD int root = lr_rdt_open(err);
	return root < 0 ? root : lr_rdt_destroy(&plan, r->rdt_made, root, err);
}

static int give_back(const struct lr_entry *e, const struct lr_record *r,
		     const struct lr_cgroup_ref *cg, struct lr_arena *a, struct lr_err *err)
{
	const struct lr_lean_held held = {
		.id = r->id,
		.slot = r->lean_slot,
		.net = r->lean_net,
		.cgroup = r->lean_cgroup ? cg : NULL,
	};

	return lr_lean_put(e->store->fd, e->store->path, &held, a, err);
}

int lr_container_destroy(struct lr_entry *e, const struct lr_record *r, const char *config,
			 size_t config_len, const char *hooks_dir, struct lr_arena *a,
			 struct lr_err *err)
{
	struct lr_cgroup_ref cg;

	int rc = lr_cgroup_of_record(r, a, &cg, err);
	if (rc >= 0)
		rc = kill_init(r, &cg, err);
	if (rc >= 0 && cg.n && !r->lean_cgroup)
		rc = destroy_cgroup(r, &cg, err);
	if (rc >= 0 && (r->lean_slot || r->lean_net))
		rc = give_back(e, r, &cg, a, err);
	if (rc < 0)
		return rc;
	lr_debug("delete: process %d is gone, and its cgroup", r->pid);
	if (r->rdt_made) {
		rc = destroy_rdt(r, config, config_len, a, err);
		if (rc < 0)
			return rc;
	}
	/* Hooks run while the record is still there: if we are killed now, the next try
	 * runs them. */
	run_poststop(r, config, config_len, hooks_dir, a);
	rc = lr_store_remove(e, err);
	if (rc >= 0)
		lr_debug("delete: the record of %s is gone", r->id);
	return rc;
}

/* Without the lock: all that runs in it. The record's word is enough, as it is for `kill`. */
static int end_all(const struct lr_store *s, const char *id, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_cgroup_ref cg;
	struct lr_record r;

	int rc = lr_store_load(s, id, a, &r, NULL, NULL, err);
	if (rc >= 0)
		rc = lr_cgroup_of_record(&r, a, &cg, err);
	if (rc < 0)
		return rc;
	if (cg.n && r.flags & LR_RECORD_CGROUP)
		rc = lr_cgroup_signal_all(&cg, SIGKILL, err);
	int killed = r.pid ? lr_proc_signal(r.pid, r.start_time, SIGKILL) : 0;
	if (killed < 0 && killed != -ESRCH)
		return lr_fail(err, -killed, "kill process %d", r.pid);
	lr_cgroup_let_die(&cg);
	return rc;
}

/*
 * Who has the lock may not end for as long as the container lives (a criu that waits for one of its
 * processes, a seed whose copy is held up), so these end first. Who does not end even so, as a runtime that was
 * stopped, or waits for a disk, is not ours to kill: it is named.
 */
static int lock_by_force(const struct lr_store *s, const char *id, struct lr_entry *ret,
			 struct lr_err *err)
{
	struct lr_err why = {0};
	char line[512];

	int r = lr_store_await(s, id, LR_LOCK_MS, ret, err);
	if (r != -EBUSY)
		return r;
	lr_debug("delete: %s is locked: what runs in it is killed", id);
	if (end_all(s, id, &why) < 0)
		lr_warn("delete: %s", lr_err_format(&why, line, sizeof(line)));
	lr_err_clear(err);
	return lr_store_await(s, id, LR_LOCK_DEAD_MS, ret, err);
}

/* Removes what is left of a container whose record cannot be read. A record that was cut off when
 * it was first written names nothing. 1: it can be read by now, so begin again. */
static int remove_broken(const struct lr_runtime *rt, const char *id, lr_container_lock *lock,
			 bool damaged, struct lr_arena *a, struct lr_err *err)
{
	const struct lr_cgroup_ref none = {0};
	struct lr_store store;
	struct lr_entry e = LR_ENTRY_NONE;
	struct lr_record rec = {0};

	int r = lr_store_open(rt->root, false, a, &store, err);
	if (r < 0)
		return r;
	r = lock(&store, id, &e, err);
	/* A create that had only made the directory, or was writing, may have had the lock before
	 * us. */
	if (r == 0 && lr_store_load(&store, id, a, &rec, NULL, NULL, NULL) == 0)
		r = 1;
	if (r == 0 && damaged)
		r = lr_store_salvage(&e, a, &rec, err);
	if (r == 0)
		r = kill_init(&rec, &none, err);
	if (r == 0)
		r = lr_store_remove(&e, err);
	if (r == 0 && damaged)
		lr_warn("the record of %s was damaged: %s; its control group may be left", id,
			rec.pid ? "its process is gone" : "nothing is known of its process");
	lr_store_unlock(&e);
	lr_store_close(&store);
	return r;
}

static int look_and_delete(const struct lr_runtime *rt, const char *id, bool force,
			   struct lr_arena *a, struct lr_err *err)
{
	LR_CLEANUP_EXISTING struct lr_existing c = LR_EXISTING_NONE;
	lr_container_lock *lock = force ? lock_by_force : lr_store_lock;
	int r = lr_container_open_by(rt, id, lock, a, &c, err);

	if (r == -ENOENT &&
	    force) /* callers clean up with this, whether or not there is anything */
		return 0;
	if (r == -ENODATA || (force && r == -EPROTO))
		return remove_broken(rt, id, lock, r == -EPROTO, a, err);
	if (r < 0)
		return r;
	if (!force && c.status != LR_STOPPED && c.status != LR_CREATED) {
		lr_refuse(err, EBUSY, "cannot delete container %s that is not stopped: %s", id,
			  lr_status_name(c.status));
		return lr_err_hint(err, "stop it first, or use --force");
	}
	return lr_container_destroy(&c.entry, &c.record, c.config_text, c.config_len, NULL, a, err);
}

int lr_lifecycle_delete(const struct lr_runtime *rt, const char *id, bool force, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	int r;

	do
		r = look_and_delete(rt, id, force, a, err);
	while (r > 0);
	return r;
}
