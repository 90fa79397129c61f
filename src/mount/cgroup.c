/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount: mounts of type cgroup. On cgroup v2 the container's view of the one tree; on v1 and hybrid
 * hosts a tmpfs with one directory per hierarchy, as systemd lays it out on the host.
 */
#define LR_ROOM "mount"
#include "src/mount/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/str.h"

#define V1_ATTR      (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)
#define NAME_MAX_LEN 128

static const struct lr_mount_change read_only = {.set = MOUNT_ATTR_RDONLY};

static int fail(const struct lr_mount_op *op, int r, struct lr_err *err, const char *what,
		const char *which)
{
	lr_fail(err, -r, "%s %s", what, which);
	lr_err_at(err, "mounts[%zu]", op->index);
	return r;
}

static const struct lr_mount_cgroup *v2_of(const struct lr_mount_cgroup_view *view)
{
	for (size_t i = 0; i < view->n; i++)
		if (view->v2 || !*view->v[i].hierarchy)
			return &view->v[i];
	return NULL;
}

/* The tmpfs that holds the hierarchies; returns its root. */
static int make_top(struct lr_mount_plan *plan, struct lr_mount_op *op,
		    const struct lr_mount_env *env, struct lr_err *err)
{
	const char *label = plan->opts.mount_label;
	struct lr_mount_param params[2] = {{"mode", "755"}, {plan->context, label}};
	struct lr_mount_op top = *op;
	char data[512];

	top.kind = LR_MOUNT_FS;
	top.type = top.source = "tmpfs";
	top.o.params = params;
	top.o.n_params = label && *label ? 2 : 1;
	snprintf(data, sizeof(data), label && *label ? "mode=755,%s=\"%s\"" : "mode=755",
		 plan->context, label ? label : "");
	top.o.data = data;
	top.attr = V1_ATTR;
	top.ms_flags = lr_mount_ms_flags(V1_ATTR);
	top.keep = true;
	top.n_props = 0; /* last, so that the hierarchies have it too */
	int r = lr_mount_fs_apply(plan, &top, env, err);
	return r < 0 ? r : top.mfd;
}

/*
 * In the host's cgroup namespace the host's mount is bound, not mounted anew: a mount made there
 * without "nsdelegate" and friends would take these options from the whole host (the root's flags
 * follow the last mount from the initial namespace).
 */
static int apply_v2(struct lr_mount_plan *plan, struct lr_mount_op *op,
		    const struct lr_mount_env *env, struct lr_err *err)
{
	const struct lr_mount_cgroup *host = v2_of(env->cgroup);
	struct lr_mount_op fs = *op;

	if (!plan->opts.cgroupns && host && host->mountpoint)
		return lr_mount_bind_instead(plan, op, host->mountpoint, env, err);
	fs.kind = LR_MOUNT_FS;
	fs.type = "cgroup2";
	int r = lr_mount_fs_apply(plan, &fs, env, err);
	if ((r != -EPERM && r != -EBUSY) || !host || !host->host_dir)
		return r;
	/* A user namespace that does not own the cgroup namespace. */
	lr_err_clear(err);
	r = lr_mount_bind_instead(plan, op, host->host_dir, env, err);
	if (r != -ENOENT)
		return r;
	/* Rootless without a cgroup of its own: nothing to see, least of all the host's. */
	lr_err_clear(err);
	LR_CLEANUP_FD_LATE int top = make_top(plan, op, env, err);
	return top < 0 ? top : lr_mount_change_apply(plan, top, &read_only, env, err);
}

static void name_of(const struct lr_mount_cgroup *c, char *buf, size_t size)
{
	const char *slash = c->mountpoint ? strrchr(c->mountpoint, '/') : NULL;
	const char *name = slash && slash[1]                      ? slash + 1
			   : !*c->hierarchy                       ? "unified"
			   : lr_has_prefix(c->hierarchy, "name=") ? c->hierarchy + 5
								  : c->hierarchy;
	snprintf(buf, size, "%s", name);
}

/* "cpu" and "cpuacct" beside the directory "cpu,cpuacct". */
static int link_controllers(const struct lr_mount_cgroup *c, const char *dir, int top)
{
	char text[NAME_MAX_LEN];

	if (!strchr(c->hierarchy, ','))
		return 0;
	snprintf(text, sizeof(text), "%s", c->hierarchy);
	for (char *save = NULL, *p = strtok_r(text, ",", &save); p; p = strtok_r(NULL, ",", &save))
		if (!lr_streq(p, dir) && !strchr(p, '=') && symlinkat(dir, top, p) < 0 &&
		    errno != EEXIST)
			return -errno;
	return 0;
}

static int add_hierarchy(struct lr_mount_plan *plan, const struct lr_mount_op *op,
			 const struct lr_mount_cgroup *c, int top, const struct lr_mount_env *env,
			 struct lr_err *err)
{
	char name[NAME_MAX_LEN];
	uint64_t attr = V1_ATTR | (op->attr & MOUNT_ATTR_RDONLY);
	bool v2 = !*c->hierarchy;
	int r = -EPERM;

	name_of(c, name, sizeof(name));
	if (mkdirat(top, name, 0755) < 0 && errno != EEXIST)
		return fail(op, -errno, err, "create the cgroup directory", name);
	if (plan->opts.cgroupns)
		r = lr_mount_in(plan, env, top, name, "cgroup", v2 ? "cgroup2" : "cgroup",
				lr_mount_ms_flags(attr), v2 ? NULL : c->hierarchy);
	/* Its attributes: by apply_v1, for all at once. */
	if ((r == -EPERM || r == -EBUSY || r == -EINVAL) && c->host_dir)
		r = lr_mount_in(plan, env, top, name, c->host_dir, NULL, MS_BIND, NULL);
	if (r == -ENOENT) {
		/* A rootless runtime could not make a cgroup here: the directory stays empty. */
		lr_debug("mount: no cgroup in hierarchy %s", name);
		r = 0;
	}
	if (r < 0)
		return fail(op, r, err, "mount cgroup", *c->hierarchy ? c->hierarchy : "v2");
	r = link_controllers(c, name, top);
	return r < 0 ? fail(op, r, err, "link the controllers of", name) : 0;
}

static int apply_v1(struct lr_mount_plan *plan, struct lr_mount_op *op,
		    const struct lr_mount_env *env, struct lr_err *err)
{
	const struct lr_mount_cgroup_view *view = env->cgroup;
	LR_CLEANUP_FD_LATE int top = make_top(plan, op, env, err);
	int r = top < 0 ? top : 0;

	if (r == 0 && fchdir(top) < 0)
		r = fail(op, -errno, err, "enter", op->dest);
	for (size_t i = 0; i < view->n && r >= 0; i++)
		if (view->v[i].host_dir || plan->opts.cgroupns)
			r = add_hierarchy(plan, op, &view->v[i], top, env, err);
	if (r < 0)
		return r;
	struct lr_mount_change attr = {.set = V1_ATTR | (op->attr & MOUNT_ATTR_RDONLY),
				       .rec = true};
	r = lr_mount_change_apply(plan, top, &attr, env, err);
	for (size_t i = 0; i < op->n_props && r >= 0; i++) {
		struct lr_mount_change c = {.prop = op->props[i].prop, .rec = op->o.props[i].rec};
		r = lr_mount_change_apply(plan, top, &c, env, err);
	}
	return r;
}

int lr_mount_cgroup_apply(struct lr_mount_plan *plan, struct lr_mount_op *op,
			  const struct lr_mount_env *env, struct lr_err *err)
{
	if (!env->cgroup) {
		lr_refuse(err, EINVAL, "cgroup mount on %s: the container has no cgroup", op->dest);
		lr_err_at(err, "mounts[%zu]", op->index);
		return -EINVAL;
	}
	return env->cgroup->v2 || lr_streq(op->type, "cgroup2") ? apply_v2(plan, op, env, err)
								: apply_v1(plan, op, env, err);
}
