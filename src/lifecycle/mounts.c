/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lifecycle: mounts of a container that runs already. Sources are opened as detached mounts here,
 * where they can be seen; a visitor puts them into their places.
 */
#define LR_ROOM "mounts"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>

#include "libocispec/ocispec.h"
#include "src/base/fd.h"
#include "src/init/init.h"
#include "src/lifecycle/container.h"
#include "src/sys/proc.h"
#include "src/sys/procfs.h"

struct visit {
	struct lr_mount_plan *plan;
	bool add;
};

/* In the container. */
static int change_mounts(void *arg, struct lr_err *err)
{
	const struct visit *v = arg;
	LR_CLEANUP_FD int root = lr_open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	/* A procfs of our own, as the container's /proc may be anything by now. It is for mount(2)
	 * and mountinfo only. */
	LR_CLEANUP_FD int procfd = v->add ? lr_procfs_open(NULL) : LR_NOFD;
	const struct lr_mount_env env = {.rootfd = root, .procfd = procfd < 0 ? LR_NOFD : procfd};

	if (root < 0)
		return lr_fail(err, errno, "open the container's root");
	if (!v->add)
		return lr_mount_remove(v->plan, root, err);
	int r = lr_mount_apply(v->plan, &env, err);
	return r < 0 ? r : lr_mount_finish(v->plan, &env, err);
}

/* For removal only the destinations count; sources and options may be anything. */
static int destinations(const struct oci_mounts *in, struct lr_arena *a, struct oci_mounts *ret,
			struct lr_err *err)
{
	static const char *options[] = {"bind", "remount", NULL};
	struct oci_mount *v = lr_new_n(a, in->n + 1, struct oci_mount);

	if (!v)
		return lr_fail(err, ENOMEM, "make the plan");
	for (size_t i = 0; i < in->n; i++)
		v[i] = (struct oci_mount){
			.destination = in->v[i].destination,
			.type = "none",
			.options = {.v = options, .n = 2},
		};
	*ret = (struct oci_mounts){.v = v, .n = in->n};
	return 0;
}

static int make_plan(const struct lr_existing *c, const struct oci_mounts *mounts, bool add,
		     struct lr_arena *a, struct lr_mount_plan **ret, struct lr_err *err)
{
	const struct oci_config *config;
	struct oci_mounts list = *mounts;

	int r = oci_config_decode(c->config_text, c->config_len, a, &config, err);
	if (r >= 0 && !add)
		r = destinations(mounts, a, &list, err);
	if (r < 0)
		return r;
	const struct lr_mount_opts opts = {
		.bundle = c->record.bundle,
		.mount_label = config->linux_ ? config->linux_->mount_label : NULL,
		.mount_context_type =
			oci_map_get(&c->record.annotations, "run.oci.mount_context_type"),
		.userns = c->record.namespaces & CLONE_NEWUSER,
		.cgroupns = c->record.namespaces & CLONE_NEWCGROUP,
		.netns = c->record.namespaces & CLONE_NEWNET,
		.userns_path = lr_strf(a, "/proc/%d/ns/user", c->record.pid),
		.elsewhere = true,
	};
	r = lr_mount_plan(&list, &opts, a, ret, err);
	if (r >= 0 && add && lr_mount_wants_cgroup(*ret))
		return lr_refuse(err, EINVAL,
				 "a cgroup mount cannot be added to a running container");
	return r;
}

int lr_lifecycle_mounts(const struct lr_runtime *rt, const char *id,
			const struct oci_mounts *mounts, bool add, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	LR_CLEANUP_EXISTING struct lr_existing c = LR_EXISTING_NONE;
	struct visit visit = {.add = add};

	int r = lr_container_open(rt, id, true, a, &c, err);
	if (r < 0)
		return r;
	if (c.status == LR_STOPPED || c.status == LR_CREATING)
		return lr_refuse(err, ESRCH, "container not running");
	if (!(c.record.namespaces & CLONE_NEWNS)) {
		lr_refuse(err, EINVAL, "the container has no mount namespace of its own");
		return lr_err_hint(err, "mount on the host: the container sees it");
	}
	LR_CLEANUP_FD int pidfd = lr_proc_pidfd(c.record.pid, c.record.start_time);
	if (pidfd == -ESRCH)
		return lr_refuse(err, ESRCH, "container not running");
	r = make_plan(&c, mounts, add, a, &visit.plan, err);
	if (r >= 0 && add)
		r = lr_mount_prepare(visit.plan, err);
	if (r < 0)
		return r;
	struct lr_init_exec plan = {
		.process.console = LR_NOFD,
		.visit = change_mounts,
		.visit_arg = &visit,
		.pid = c.record.pid,
		.start_time = c.record.start_time,
		.pidfd = pidfd,
		.namespaces = c.record.namespaces,
		.arena = a,
	};
	r = lr_init_visit(&plan, err);
	lr_mount_release(visit.plan);
	return r;
}
