/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup: making a plan's directories and limits, or nothing. */
#define LR_ROOM "cgroup"

#include "src/cgroup/internal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* How often others may make and remove a cgroup of that name while we try to have it. */
#define CLAIM_TRIES 100

/* Usually the parent is there and one mkdir(2) does it. */
static int make_dir(const char *path, struct lr_cgroup_target *t)
{
	char part[PATH_MAX];
	size_t len = strlen(t->mountpoint);

	t->made = 0;
	if (mkdir(path, 0755) == 0) {
		t->made = (size_t)(strrchr(path, '/') - path);
		return 0;
	}
	if (errno != ENOENT)
		return -errno;
	while (path[len]) {
		size_t slash = len;

		len += 1 + strcspn(path + len + 1, "/");
		memcpy(part, path, len);
		part[len] = '\0';
		if (mkdir(part, 0755) == 0) {
			if (!t->made)
				t->made = slash;
		} else if (errno != EEXIST || !path[len]) {
			return -errno;
		}
	}
	return 0;
}

static void unmake_dir(const char *path, struct lr_cgroup_target *t)
{
	char part[PATH_MAX];
	size_t len = strlen(path);

	if (!t->made)
		return;
	memcpy(part, path, len + 1);
	while (len > t->made) {
		/* Not empty: another container has moved in beside ours meanwhile. */
		if (rmdir(part) < 0 && errno != ENOENT)
			break;
		while (part[len] != '/')
			len--;
		part[len] = '\0';
	}
	t->made = 0;
}

static int in_use(const struct lr_cgroup_place *p, struct lr_err *err)
{
	lr_refuse(err, EBUSY, "the cgroup %s exists and has processes", p->path);
	lr_err_hint(err,
		    "another container uses this cgroupsPath, or one was not removed; "
		    "see %s/cgroup.procs",
		    p->path);
	return lr_err_at(err, "linux.cgroupsPath");
}

/* A directory of that name is there already: ours if nobody lives in it. */
static int reuse(const struct lr_cgroup_place *p, struct lr_err *err)
{
	int r = lr_cgroup_populated(p->path);

	if (r < 0)
		return lr_fail(err, -r, "cannot look into the existing cgroup %s", p->path);
	if (r > 0)
		return in_use(p, err);
	lr_debug("cgroup: %s is there and empty, reused", p->path);
	/* Left frozen, it would stop our first process for good. */
	if (p->hierarchy[0] == '\0')
		(void)lr_cgroup_put(p->path, "cgroup.freeze", "0");
	else if (lr_cgroup_name_has(p->hierarchy, "freezer"))
		(void)lr_cgroup_put(p->path, "freezer.state", "THAWED");
	return 0;
}

/* What of config.json wants this directory: the first limit that would be written there. */
static const char *wanted_by(const struct lr_cgroup_plan *plan, const char *path)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < plan->n_writes; i++)
		if (plan->writes[i].where && strncmp(plan->writes[i].file, path, len) == 0 &&
		    plan->writes[i].file[len] == '/')
			return plan->writes[i].where;
	return "linux.cgroupsPath";
}

/* Hierarchies without controllers are there for /proc/self/cgroup to read well only. */
static bool is_spare(const struct lr_cgroup_plan *plan, size_t i)
{
	return lr_has_prefix(plan->ref.v[i].hierarchy, "name=") ||
	       (plan->targets[i].v2 && plan->ref.mode == LR_CGROUP_HYBRID);
}

/* 0, or -errno; -ESTALE: somebody has removed it since. */
static int take(struct lr_cgroup_plan *plan, size_t i, bool fresh, struct lr_err *err)
{
	const struct lr_cgroup_place *p = &plan->ref.v[i];
	/* One will do: the same is the first for all, and nobody makes others without it. */
	int r = plan->hold < 0 ? lr_cgroup_claim(plan, p, fresh, err) : 0;

	if (r == -EBUSY) {
		/* Claimed before we could, so it is his, and not ours to remove. */
		plan->targets[i].made = 0;
		return in_use(p, err);
	}
	/* Not before it is claimed: who was to come has come by then. */
	return r < 0 || fresh ? r : reuse(p, err);
}

/* 1: made or reused; 0: left out; -errno. */
static int make_place(struct lr_cgroup_plan *plan, size_t i, struct lr_err *err)
{
	const struct lr_cgroup_place *p = &plan->ref.v[i];
	struct lr_cgroup_target *t = &plan->targets[i];
	int r = make_dir(p->path, t);
	bool fresh = r == 0;

	if (r == -EEXIST && plan->rootless && !t->wanted && access(p->path, W_OK) < 0)
		r = -errno;         /* somebody else's of that name: as if it could not be made */
	if (r == -EEXIST || r == 0) /* a unit is ours: systemd refuses another of that name */
		r = plan->unit ? 0 : take(plan, i, fresh, err);
	else if ((r == -EACCES || r == -EPERM || r == -EROFS) && !t->wanted &&
		 (plan->rootless || is_spare(plan, i))) {
		lr_debug("cgroup: %s left out: %s", p->path, lr_strerror(-r));
		return 0;
	} else if (r < 0) {
		lr_fail(err, -r, "cannot create %s", p->path);
		/* Only where it could be left out is the limit the cause. */
		lr_err_at(err, "%s",
			  plan->rootless || is_spare(plan, i) ? wanted_by(plan, p->path)
							      : "linux.cgroupsPath");
		if (r == -EACCES || r == -EPERM || r == -EROFS)
			lr_err_hint(err,
				    t->wanted && plan->rootless
					    ? "limits need a cgroup this user may write to: "
					      "have it delegated (systemd: Delegate=yes) or "
					      "remove them"
					    : "make the cgroup file system writable here, or "
					      "run without cgroups (--cgroup-manager=disabled)");
		return r;
	}
	if (r == 0 && t->cpuset)
		r = lr_cgroup_cpuset_fill(t, p->path, fresh, &plan->batch, err);
	return r < 0 ? r : 1;
}

/* Keeps ref and targets in step without the hierarchies that were left out. */
static void drop_place(struct lr_cgroup_plan *plan, size_t i)
{
	size_t rest = plan->ref.n - i - 1;

	memmove(&plan->ref.v[i], &plan->ref.v[i + 1], rest * sizeof(plan->ref.v[0]));
	memmove(&plan->targets[i], &plan->targets[i + 1], rest * sizeof(plan->targets[0]));
	plan->ref.n--;
}

/* What is not the container's: whoever cleans up after it must not touch what another one has under
 * the same path. */
static void undo(struct lr_cgroup_plan *plan)
{
	for (size_t i = plan->ref.n; i-- > 0;)
		unmake_dir(plan->ref.v[i].path, &plan->targets[i]);
	plan->ref.n = 0;
	if (!plan->unit)
		plan->hold = lr_close(plan->hold);
}

int lr_cgroup_make_places(struct lr_cgroup_plan *plan, struct lr_err *err)
{
	if (!plan->unit)
		lr_cgroup_claim_order(plan);
	for (size_t i = 0, tries = 0; i < plan->ref.n;) {
		int r = make_place(plan, i, err);

		if (r == -ESTALE && tries++ < CLAIM_TRIES)
			continue;
		if (r == -ESTALE)
			r = in_use(&plan->ref.v[i], err);
		if (r < 0) {
			undo(plan);
			return r;
		}
		if (r == 0)
			drop_place(plan, i);
		else
			i++;
	}
	return 0;
}

static int apply_devices(struct lr_cgroup_plan *plan, struct lr_err *err)
{
	int i = plan->n_insns ? lr_cgroup_find_v2(&plan->ref) : -1, r;

	if (i < 0)
		return 0;
	r = lr_devrules_attach(plan->ref.v[i].path, plan->insns, plan->n_insns,
			       plan->targets[i].made != 0, err);
	if ((r == -EPERM || r == -EACCES) && plan->rootless) {
		/* Device nodes of the host are out of reach of a user namespace anyway. */
		lr_debug("cgroup: device rules left out: not permitted");
		lr_err_clear(err);
		return 0;
	}
	return r;
}

bool lr_cgroup_joins_late(const struct lr_cgroup_plan *plan)
{
	return plan->driver->create == lr_cgroup_fs_create && !plan->rootless &&
	       (plan->ref.mode == LR_CGROUP_V1 || plan->ref.mode == LR_CGROUP_HYBRID);
}

int lr_cgroup_fill_places(struct lr_cgroup_plan *plan, struct lr_err *err)
{
	const struct lr_cgroup_held held = {
		.fd = plan->hold,
		.dir = plan->ref.n ? plan->ref.v[0].path : NULL,
		.file = plan->hold_file,
	};
	int r = 0;

	if (plan->ref.mode == LR_CGROUP_V2 && plan->ref.n)
		r = lr_cgroup_enable(plan->targets[0].mountpoint, plan->ref.v[0].path, plan->need,
				     plan->where, err);
	if (r == 0)
		r = lr_cgroup_write_all(plan->writes, plan->n_writes, plan->rootless, &plan->batch,
					held.dir && held.file ? &held : NULL, err);
	return r < 0 ? r : apply_devices(plan, err);
}

int lr_cgroup_fs_create(struct lr_cgroup_plan *plan, struct lr_err *err)
{
	struct lr_err local = {0};

	if (!err)
		err = &local; /* what it says of a failure decides what is done about it */
	int r = lr_cgroup_make_places(plan, err);
	if (r < 0)
		return r;
	r = lr_cgroup_fill_places(plan, err);
	if (r < 0)
		undo(plan);
	return r;
}
