/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: the systemd driver: a container's cgroup is that of a transient unit, which systemd makes
 * and ends (src/systemd); what it has no property for is written to the files beside it, which
 * Delegate= allows.
 */
#define LR_ROOM "cgroup"

#include <signal.h>
#include <unistd.h>

#include "src/cgroup/internal.h"
#include "src/systemd/systemd.h"

/* How long a unit that has just ended may still be known. */
#define FORGET_TRIES 100
#define FORGET_US    10000

/* ---- plan ------------------------------------------------------------------------------------ */

static struct lr_systemd_opts opts_of(const struct lr_cgroup_plan *plan,
				      const struct lr_cgroup_opts *o)
{
	return (struct lr_systemd_opts){.id = o->id,
					.annotations = o->annotations,
					.user = o->rootless,
					.v2 = plan->ref.mode == LR_CGROUP_V2};
}

int lr_cgroup_systemd_locate(struct lr_cgroup_plan *plan, const char *cgroups_path,
			     const struct lr_cgroup_opts *o, struct lr_arena *arena,
			     struct lr_err *err)
{
	struct lr_systemd_unit *u = lr_new(arena, struct lr_systemd_unit);
	struct lr_systemd_opts opts = opts_of(plan, o);
	const char *base, *path;
	int r = lr_systemd_check(err);

	if (r < 0)
		return r;
	if (!u)
		return lr_fail(err, ENOMEM, "cannot plan the unit");
	r = lr_systemd_unit_of(cgroups_path, &opts, arena, u, err);
	if (r == 0)
		r = lr_systemd_base(opts.user, arena, &base, err);
	if (r < 0)
		return r;
	path = lr_systemd_unit_path(u, arena);
	plan->unit = u;
	plan->ref.unit = u->name;
	plan->ref.user = opts.user;
	plan->ref.relative = path ? lr_strf(arena, "%s%s", base, path) : NULL;
	return plan->ref.relative ? 0 : lr_fail(err, ENOMEM, "cannot plan the unit");
}

/* The writes, as systemd is told of them. NULL: no memory. */
static const struct lr_systemd_limit *limits_of(const struct lr_cgroup_write *w, size_t n,
						struct lr_arena *arena)
{
	struct lr_systemd_limit *v = lr_new_n(arena, n + 1, struct lr_systemd_limit);

	for (size_t i = 0; v && i < n; i++) {
		/* BFQ has a scale of its own, systemd that of io.weight. */
		bool bfq = w[i].alt_file && lr_has_suffix(w[i].file, "/io.bfq.weight");

		v[i] = (struct lr_systemd_limit){.file = bfq ? w[i].alt_file : w[i].file,
						 .value = bfq ? w[i].alt_value : w[i].value,
						 .where = w[i].where};
	}
	return v;
}

int lr_cgroup_systemd_describe(struct lr_cgroup_plan *plan, const struct lr_cgroup_opts *o,
			       struct lr_arena *arena, struct lr_err *err)
{
	const struct lr_systemd_limit *v = limits_of(plan->writes, plan->n_writes, arena);
	struct lr_systemd_opts opts = opts_of(plan, o);

	if (!v)
		return lr_fail(err, ENOMEM, "cannot plan the unit");
	return lr_systemd_unit_describe(plan->unit, &opts, v, plan->n_writes, arena, err);
}

/* The length of a directory's path up to the unit's own. */
static size_t unit_len(const struct lr_cgroup_ref *ref, const char *dir)
{
	size_t n = strlen(ref->unit);
	const char *found = NULL;

	for (const char *p = strchr(dir, '/'); p; p = strchr(p + 1, '/'))
		if (strncmp(p + 1, ref->unit, n) == 0 && (!p[1 + n] || p[1 + n] == '/'))
			found = p;
	return found ? (size_t)(found - dir) + 1 + n : strlen(dir);
}

/* ---- the holder ------------------------------------------------------------------------------ */

void lr_cgroup_unhold(struct lr_cgroup_plan *plan)
{
	if (plan && plan->unit)
		lr_cgroup_settle(plan);
}

void lr_cgroup_settle(struct lr_cgroup_plan *plan)
{
	if (!plan)
		return;
	plan->hold = lr_close(plan->hold);
	lr_systemd_release(&plan->holder);
}

/* ---- create ---------------------------------------------------------------------------------- */

static int in_use(const struct lr_cgroup_plan *plan, struct lr_err *err)
{
	lr_refuse(err, EBUSY, "the systemd unit %s exists", plan->unit->name);
	lr_err_hint(err,
		    "another container uses this cgroupsPath, or one was not removed; see "
		    "systemctl status %s",
		    plan->unit->name);
	return lr_err_at(err, "linux.cgroupsPath");
}

/*
 * One of that name may be there: a failed one is reset, one that is on its way out is waited for, a
 * slice is shared, and one with processes is another container's.
 */
static int start(struct lr_dbus *c, const struct lr_cgroup_plan *plan, struct lr_err *err)
{
	const struct lr_systemd_unit *u = plan->unit;

	for (int tries = 0;; tries++) {
		int r = lr_systemd_start(c, u, plan->holder, err);

		if (r != -EEXIST)
			return r;
		if (u->is_slice)
			return 0;
		if (tries == FORGET_TRIES || lr_cgroup_populated(plan->ref.v[0].path) > 0)
			return in_use(plan, err);
		lr_systemd_forget(c, u->name);
		lr_sleep_us(FORGET_US);
		lr_err_clear(err);
	}
}

/* In the hierarchy by which systemd knows its units, the unit's directory has to be where it was
 * planned; the others' are made here if systemd does not. */
static int check_place(const struct lr_cgroup_plan *plan, struct lr_err *err)
{
	for (size_t i = 0; i < plan->ref.n; i++) {
		const struct lr_cgroup_place *p = &plan->ref.v[i];
		char dir[PATH_MAX];

		if (plan->ref.mode == LR_CGROUP_V2 ? *p->hierarchy
						   : !lr_streq(p->hierarchy, "name=systemd"))
			continue;
		snprintf(dir, sizeof(dir), "%.*s", (int)unit_len(&plan->ref, p->path), p->path);
		if (access(dir, F_OK) < 0)
			return lr_fail(err, errno, "systemd started %s, but not in %s",
				       plan->unit->name, dir);
	}
	return 0;
}

int lr_cgroup_systemd_create(struct lr_cgroup_plan *plan, struct lr_err *err)
{
	LR_CLEANUP_DBUS struct lr_dbus c;
	struct lr_err local = {0};
	int r;

	err = err ? err : &local;
	r = lr_systemd_open(plan->ref.user, &c, err);
	if (r == 0 && !plan->unit->is_slice)
		r = lr_systemd_hold(&plan->holder, &plan->hold, err);
	if (r == 0)
		r = start(&c, plan, err);
	if (r < 0) {
		lr_cgroup_settle(plan);
		plan->ref.n = 0;
		return r;
	}
	r = check_place(plan, err);
	if (r == 0)
		r = lr_cgroup_make_places(plan, err);
	/* Or the unit's own cgroup could not pass controllers on to the sub-cgroup. */
	if (r == 0 && plan->unit->subgroup && plan->ref.mode == LR_CGROUP_V2 && plan->holder > 0)
		r = lr_cgroup_join_pid(&plan->ref, plan->holder, err);
	if (r == 0)
		r = lr_cgroup_fill_places(plan, err);
	if (r < 0) {
		lr_cgroup_settle(plan);
		(void)!lr_cgroup_systemd_destroy(&plan->ref, true, NULL);
		plan->ref.n = 0;
	}
	return r;
}

/* ---- afterwards ------------------------------------------------------------------------------ */

int lr_cgroup_systemd_attach(const struct lr_cgroup_ref *ref, const char *dir, pid_t pid,
			     struct lr_err *err)
{
	return lr_systemd_attach(ref->user, ref->unit, dir + unit_len(ref, dir), pid, err);
}

int lr_cgroup_systemd_update(const struct lr_cgroup_ref *ref, const struct oci_resources *res,
			     struct lr_arena *arena, struct lr_err *err)
{
	struct lr_cgroup_gen g = {.arena = arena, .ref = ref, .err = err, .update = true};
	struct lr_systemd_props props = {0};
	const struct lr_systemd_limit *v;
	int r = lr_cgroup_gen_update(&g, res);

	if (r < 0)
		return r;
	v = limits_of(g.v, g.n, arena);
	if (!v)
		return lr_fail(err, ENOMEM, "cannot plan the unit");
	r = lr_systemd_limits(v, g.n, ref->mode == LR_CGROUP_V2, true, arena, &props, err);
	/* memory.checkBeforeUpdate: before systemd writes, too. */
	for (size_t i = 0; r == 0 && i < g.n; i++)
		if (g.v[i].flags & LR_W_CHECK_USAGE)
			r = lr_cgroup_write_all(&g.v[i], 1, false, NULL, NULL, err);
	if (r == 0 && props.n)
		r = lr_systemd_set(ref->user, ref->unit, &props, err);
	return r < 0 ? r : lr_cgroup_write_update(&g);
}

#define SYSTEMD_WAIT_MS 1000

/*
 * systemd, which is not told, ends the unit when the kernel says that the cgroup is empty. The
 * kernel says so some time after the last process, and not at all if the directory was removed by
 * then: so systemd has to remove it. It may also be gone itself.
 */
static void leave_to_systemd(const struct lr_cgroup_ref *ref)
{
	int i = lr_cgroup_find_v2(ref);
	int64_t end = lr_now_ms() + SYSTEMD_WAIT_MS;

	while (i >= 0 && access(ref->v[i].path, F_OK) == 0 && lr_now_ms() < end) {
		if (lr_cgroup_signal_all(ref, SIGKILL, NULL) < 0)
			lr_debug("cgroup: cannot kill all in %s yet", ref->relative);
		lr_sleep_us(10000);
	}
}

/* When a unit was empty for so long, systemd has not heard of it. */
#define UNHEARD_MS 200

/*
 * To systemd a process that has just died looks attached, and the kernel says nothing of a cgroup
 * that was always empty. When a process comes and goes, the kernel does. If the unit is another
 * container's by now, that disturbs nobody.
 */
static int pass_through(const struct lr_cgroup_ref *ref, struct lr_err *err)
{
	int hold = LR_NOFD, r;
	pid_t pid = 0;

	r = lr_systemd_hold(&pid, &hold, err);
	if (r == 0)
		r = lr_systemd_attach(ref->user, ref->unit, "", pid, err);
	lr_close(hold);
	lr_systemd_release(&pid);
	return r;
}

/* The unit may be somebody else's: it is not stopped, and no process is killed. If it is ours, it
 * ends with the holder, or when somebody has passed through. A slice does not end by itself. */
static int let_it_end(const struct lr_cgroup_ref *ref, struct lr_err *err)
{
	int64_t now = lr_now_ms(), end = now + LR_CGROUP_WAIT_MS, unheard = now + UNHEARD_MS;
	int i = lr_has_suffix(ref->unit, ".slice") ? -1 : lr_cgroup_find_v2(ref), populated = 0;
	struct lr_err why = {0};
	char dir[PATH_MAX], line[600];

	if (i < 0)
		return 0;
	snprintf(dir, sizeof(dir), "%.*s", (int)unit_len(ref, ref->v[i].path), ref->v[i].path);
	for (; access(dir, F_OK) == 0 && now < end; now = lr_now_ms()) {
		populated = lr_cgroup_populated(dir);
		if (populated != 0) {
			unheard = now + UNHEARD_MS;
		} else if (now >= unheard) {
			if (pass_through(ref, &why) < 0)
				lr_debug("cgroup: %s", lr_err_format(&why, line, sizeof(line)));
			unheard = end;
		}
		lr_sleep_us(10000);
	}
	return now >= end && populated > 0
		       ? lr_refuse(err, EBUSY, "the systemd unit %s is in use", ref->unit)
		       : 0;
}

int lr_cgroup_systemd_destroy(const struct lr_cgroup_ref *ref, bool kill, struct lr_err *err)
{
	struct lr_err why = {0};
	char line[600], dir[PATH_MAX];

	if (!kill) {
		int ends = let_it_end(ref, err);
		return ends < 0 ? ends : lr_cgroup_fs_destroy(ref, false, err);
	}
	LR_CLEANUP_DBUS struct lr_dbus c;
	int reached = lr_systemd_open(ref->user, &c, &why);
	if (reached < 0)
		leave_to_systemd(ref);
	int r = lr_cgroup_fs_destroy(ref, true, err);
	if (r < 0)
		return r;
	if (reached >= 0)
		reached = lr_systemd_stop(&c, ref->unit, &why);
	if (reached < 0)
		lr_debug("cgroup: %s", lr_err_format(&why, line, sizeof(line)));
	/* Above a sub-cgroup, in hierarchies that systemd does not care about. */
	for (size_t i = 0; i < ref->n; i++) {
		size_t len = unit_len(ref, ref->v[i].path);

		snprintf(dir, sizeof(dir), "%.*s", (int)len, ref->v[i].path);
		if (ref->v[i].path[len] && rmdir(dir) < 0 && errno != ENOENT)
			lr_debug("cgroup: %s stays: %s", dir, lr_strerror(errno));
	}
	return 0;
}
