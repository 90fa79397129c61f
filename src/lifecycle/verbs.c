/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle: the verbs that only look at, signal or freeze an existing container. */
#define LR_ROOM "container"
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/lifecycle/container.h"
#include "src/sys/proc.h"
#include "src/sys/syscalls.h"

static void show(const struct lr_record *r, enum lr_status status, struct lr_container *ret)
{
	bool lives = status != LR_STOPPED && status != LR_CREATING;

	*ret = (struct lr_container){.status = status, .owner_uid = r->owner};
	ret->oci = lr_hook_state(r, lr_status_name(status), lives ? r->pid : 0);
	ret->oci.rootfs = r->rootfs;
	ret->oci.created = r->created;
	ret->oci.owner = "";
}

static int look(const struct lr_runtime *rt, const char *id, struct lr_arena *a,
		struct lr_container *ret, struct lr_err *err)
{
	LR_CLEANUP_EXISTING struct lr_existing c = LR_EXISTING_NONE;
	int r = lr_container_open(rt, id, false, a, &c, err);

	if (r >= 0)
		show(&c.record, c.status, ret);
	return r;
}

int lr_lifecycle_state(const struct lr_runtime *rt, const char *id, struct lr_arena *a,
		       struct lr_container *ret, struct lr_err *err)
{
	int r = look(rt, id, a, ret, err);

	if (r < 0 || ret->status != LR_CREATING)
		return r;
	/* As with runc and crun, whose callers know four states, and not this one. */
	lr_refuse(err, ENOENT, "container \"%s\" does not exist", id);
	return lr_err_hint(err, "it is being created, or that was cut off: 'delete --force' "
				"removes what there is");
}

int lr_lifecycle_list(const struct lr_runtime *rt, struct lr_arena *a, struct lr_container **ret,
		      size_t *n, struct lr_err *err)
{
	struct lr_store store;
	struct oci_strv ids;
	size_t found = 0;

	int r = lr_store_open(rt->root, false, a, &store, err);
	if (r < 0)
		return r;
	r = lr_store_list(&store, a, &ids, err);
	lr_store_close(&store);
	if (r < 0)
		return r;
	struct lr_container *v = lr_new_n(a, ids.n + 1, struct lr_container);
	if (!v)
		return lr_fail(err, ENOMEM, "list containers");
	for (size_t i = 0; i < ids.n; i++) {
		struct lr_err why = {0};
		char text[512];
		r = look(rt, ids.v[i], a, &v[found], &why);
		if (r >= 0)
			found++;
		else if (r != -ENOENT && r != -ENODATA) /* made or deleted just now */
			lr_warn("%s", lr_err_format(&why, text, sizeof(text)));
	}
	*ret = v;
	*n = found;
	return 0;
}

static int not_running(struct lr_err *err)
{
	/* go-runc and Podman match on these words. */
	lr_refuse(err, ESRCH, "container not running");
	if (err)
		err->terse = true;
	return -ESRCH;
}

static int signal_init(const struct lr_record *r, int sig, struct lr_err *err)
{
	int rc = lr_proc_signal(r->pid, r->start_time, sig);

	lr_debug("kill: signal %d to process %d: %d", sig, r->pid, rc);
	if (rc == -ESRCH)
		return not_running(err);
	return rc < 0 ? lr_fail(err, -rc, "send signal %d to process %d", sig, r->pid) : 0;
}

int lr_lifecycle_kill(const struct lr_runtime *rt, const char *id, int sig, bool all,
		      struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	LR_CLEANUP_EXISTING struct lr_existing c = LR_EXISTING_NONE;
	int r = lr_container_open(rt, id, false, a, &c, err);
	if (r < 0)
		return r;

	/* Without a pid namespace of its own, other processes do not die with init: SIGKILL is for
	 * all of them. */
	bool shared = !(c.record.namespaces & CLONE_NEWPID);
	if (all || (shared && sig == SIGKILL && c.cgroup.n))
		return c.cgroup.n               ? lr_cgroup_signal_all(&c.cgroup, sig, err)
		       : c.status == LR_STOPPED ? 0
						: signal_init(&c.record, sig, err);
	if (c.status == LR_STOPPED || c.record.pid == 0)
		return not_running(err);
	r = signal_init(&c.record, sig, err);
	/* On v1 a frozen process does not die, so the container is thawed. */
	if (r >= 0 && sig == SIGKILL && c.status == LR_PAUSED)
		r = lr_cgroup_freeze(&c.cgroup, false, err);
	return r;
}

static int freeze(const struct lr_runtime *rt, const char *id, bool frozen, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	LR_CLEANUP_EXISTING struct lr_existing c = LR_EXISTING_NONE;
	int r = lr_container_open(rt, id, true, a, &c, err);
	if (r < 0)
		return r;
	if (c.status == LR_STOPPED || c.status == LR_CREATING)
		return not_running(err);
	if (!frozen && c.status != LR_PAUSED)
		return lr_refuse(err, EINVAL, "container not paused");
	if (frozen && c.status == LR_PAUSED)
		return lr_refuse(err, EINVAL, "container not running or created: paused");
	if (!c.cgroup.n) {
		lr_refuse(err, EOPNOTSUPP, "the container has no cgroup to freeze");
		return lr_err_hint(
			err, "it was made with --cgroup-manager disabled, or without permission");
	}
	lr_debug("%s: cgroup %s", frozen ? "pause" : "resume",
		 c.cgroup.relative ? c.cgroup.relative : "");
	r = frozen ? lr_container_mark(&c.store, &c.record, false, a, err) : 0;
	return r < 0 ? r : lr_cgroup_freeze(&c.cgroup, frozen, err);
}

int lr_lifecycle_pause(const struct lr_runtime *rt, const char *id, struct lr_err *err)
{
	return freeze(rt, id, true, err);
}

int lr_lifecycle_resume(const struct lr_runtime *rt, const char *id, struct lr_err *err)
{
	return freeze(rt, id, false, err);
}

int lr_lifecycle_pids(const struct lr_runtime *rt, const char *id, struct lr_arena *a, pid_t **ret,
		      size_t *n, struct lr_err *err)
{
	LR_CLEANUP_EXISTING struct lr_existing c = LR_EXISTING_NONE;
	int r = lr_container_open(rt, id, false, a, &c, err);
	if (r < 0)
		return r;
	/* Also of a stopped container, as runc does: without a pid namespace of its own, other
	 * processes may outlive init. */
	if (c.cgroup.n)
		return lr_cgroup_pids(&c.cgroup, a, ret, n, err);
	*ret = lr_new(a, pid_t);
	if (!*ret)
		return lr_fail(err, ENOMEM, "list processes");
	**ret = c.record.pid;
	*n = c.status != LR_STOPPED && c.record.pid > 0;
	return 0;
}

int lr_lifecycle_stats(const struct lr_runtime *rt, const char *id, struct lr_arena *a,
		       struct lr_stats **ret, struct lr_err *err)
{
	LR_CLEANUP_EXISTING struct lr_existing c = LR_EXISTING_NONE;
	int r = lr_container_open(rt, id, false, a, &c, err);
	if (r < 0)
		return r;
	if (c.status == LR_STOPPED)
		return not_running(err);
	return lr_stats_read(&c.cgroup, a, ret, err);
}

int lr_lifecycle_watch(const struct lr_runtime *rt, const char *id, struct lr_stats_oom *oom,
		       int *pidfd, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	LR_CLEANUP_EXISTING struct lr_existing c = LR_EXISTING_NONE;
	int r = lr_container_open(rt, id, false, a, &c, err);
	if (r < 0)
		return r;
	LR_CLEANUP_FD int fd = lr_proc_pidfd(c.record.pid, c.record.start_time);
	if (fd == -ESRCH || (fd < 0 && c.status == LR_STOPPED))
		return not_running(err);
	if (fd < 0 && !lr_proc_no_pidfd(fd))
		return lr_fail(err, -fd, "open a pidfd");
	r = lr_stats_oom_open(&c.cgroup, oom, err);
	if (r >= 0)
		*pidfd = lr_take_fd(&fd);
	return r;
}
