/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup: from config.json to directories, writes and device rules. */
#define LR_ROOM "cgroup"

#include "src/cgroup/internal.h"

#include <sys/stat.h>

/* Room for the longest file name in the cgroup and a NUL. */
#define PATH_ROOM (PATH_MAX - 256)

static int no_memory(struct lr_err *err)
{
	return lr_fail(err, ENOMEM, "cannot plan the cgroup");
}

/* The clean form "/a/b" of what was asked for, and whether it starts at the caller's own cgroup. */
static int resolve(const char *asked, const struct lr_cgroup_opts *o, struct lr_arena *arena,
		   const char **clean, bool *relative, struct lr_err *err)
{
	const char *path = asked && *asked ? asked : o->id;
	char *out;

	*relative = asked && *asked ? asked[0] != '/' : o->rootless;
	if (!path || !(out = lr_alloc(arena, strlen(path) + 2)))
		return no_memory(err);
	if (lr_path_has_dotdot(path) || strpbrk(path, "\n\r"))
		lr_refuse(err, EINVAL, "\"%.200s\" must not hold \"..\" or line breaks", path);
	else if (strlen(path) >= PATH_ROOM / 2)
		lr_refuse(err, ENAMETOOLONG, "the path is too long");
	else {
		lr_path_clean(path, out);
		if (out[1]) {
			*clean = out;
			return 0;
		}
		lr_refuse(err, EINVAL, "\"%.200s\" is the root of the hierarchy", path);
		lr_err_hint(err, "a container needs a cgroup of its own, such as /%s",
			    o->id ? o->id : "id");
	}
	lr_err_at(err, "linux.cgroupsPath");
	return -err->code;
}

/* Length of the part of the caller's own cgroup that a relative path is put below. */
static size_t base_len(const struct lr_cgroup_hierarchy *h, enum lr_cgroup_mode mode)
{
	const char *own = h->own ? h->own : "";
	size_t len = strlen(own);

	while (len && own[len - 1] == '/')
		len--;
	/* The caller's v2 cgroup has processes (the caller), so none of its children can have
	 * controllers: a sibling can. */
	if (mode == LR_CGROUP_V2)
		while (len && own[--len] != '/')
			;
	return len;
}

static int make_places(struct lr_cgroup_plan *p, const struct lr_cgroup_layout *l, bool relative,
		       struct lr_arena *arena, struct lr_err *err)
{
	p->ref.mode = l->mode;
	p->ref.v = lr_new_n(arena, l->n + 1, struct lr_cgroup_place);
	p->targets = lr_new_n(arena, l->n + 1, struct lr_cgroup_target);
	if (!p->ref.v || !p->targets)
		return no_memory(err);
	for (size_t i = 0; i < l->n; i++) {
		const struct lr_cgroup_hierarchy *h = &l->hierarchies[i];
		size_t base = relative ? base_len(h, l->mode) : 0;
		char *path = base ? lr_strf(arena, "%s%.*s%s", h->mountpoint, (int)base, h->own,
					    p->ref.relative)
				  : lr_concat(arena, h->mountpoint, p->ref.relative, NULL);

		if (!path)
			return no_memory(err);
		if (strlen(path) >= PATH_ROOM) {
			lr_refuse(err, ENAMETOOLONG, "the path is too long");
			return lr_err_at(err, "linux.cgroupsPath");
		}
		p->ref.v[i] = (struct lr_cgroup_place){.hierarchy = h->name, .path = path};
		p->targets[i] = (struct lr_cgroup_target){
			.mountpoint = h->mountpoint,
			.v2 = h->name[0] == '\0',
			.cpuset = lr_cgroup_name_has(h->name, "cpuset"),
		};
		p->ref.n++;
	}
	return 0;
}

/* ---- device rules ------------------------------------------------------------------------- */

/* No device controller. Fine where the rules would not forbid anything that was written down. */
static int devices_without_controller(const struct lr_cgroup_plan *p,
				      const struct oci_device_cgroups *d,
				      const struct lr_devrules *devs, enum lr_cgroup_manager m,
				      struct lr_err *err)
{
	bool denied = !devs->allow_rest;

	for (size_t i = 0; i < devs->n; i++)
		denied |= !devs->v[i].allow;
	if (p->rootless || m == LR_CGROUP_DISABLED || !d || d->n == 0 || !denied) {
		lr_debug("cgroup: no controller for device rules");
		return 0;
	}
	lr_refuse(err, EOPNOTSUPP, "the cgroup controller \"devices\" is not mounted");
	lr_err_hint(err, "mount it: mount -t cgroup -o devices cgroup /sys/fs/cgroup/devices");
	return lr_err_at(err, "linux.resources.devices");
}

static int plan_devices(struct lr_cgroup_plan *p, struct lr_cgroup_gen *g,
			const struct oci_device_cgroups *d, const struct lr_cgroup_opts *o)
{
	struct lr_devrules devs, flat;
	int r = lr_devrules_of(d, o->terminal, g->arena, &devs, g->err);

	if (r < 0)
		return r;
	if (lr_cgroup_dir(g->ref, LR_CTRL_DEVICES)) {
		r = lr_devrules_flatten(&devs, g->arena, &flat, g->err);
		if (r == 0)
			lr_cgroup_gen_devices_v1(g, &flat);
		return r < 0 ? r : g->r;
	}
	if (lr_cgroup_find_v2(g->ref) < 0)
		return devices_without_controller(p, d, &devs, o->manager, g->err);
	/* Nothing is forbidden: no program is the same. */
	if (devs.allow_rest && devs.n == 0)
		return 0;
	struct bpf_insn *insns;
	r = lr_devrules_program(&devs, g->arena, &insns, &p->n_insns, g->err);
	p->insns = insns;
	return r;
}

/* ---- limits --------------------------------------------------------------------------------- */

static void mark_targets(struct lr_cgroup_plan *p, const struct oci_resources *r)
{
	for (size_t i = 0; i < p->ref.n; i++) {
		struct lr_cgroup_target *t = &p->targets[i];

		for (enum lr_cgroup_ctrl c = 0; c < LR_CTRL_N; c++)
			if ((p->need & 1U << c) && lr_cgroup_find(&p->ref, c) == (int)i)
				t->wanted = true;
		/* A device program can only be where the rules are known not to be dropped. */
		if (t->v2 && p->n_insns && !p->rootless)
			t->wanted = true;
		t->has_cpus = r && r->cpu && r->cpu->cpus && *r->cpu->cpus;
		t->has_mems = r && r->cpu && r->cpu->mems && *r->cpu->mems;
	}
}

static int plan_limits(struct lr_cgroup_plan *p, const struct oci_resources *res,
		       const struct lr_cgroup_opts *o, struct lr_arena *arena, struct lr_err *err)
{
	struct lr_cgroup_gen g = {.arena = arena, .ref = &p->ref, .err = err};
	int r;

	if (res && p->ref.mode == LR_CGROUP_V2)
		lr_cgroup_gen_v2(&g, res);
	else if (res)
		lr_cgroup_gen_v1(&g, res);
	if (g.r < 0)
		return g.r;
	r = plan_devices(p, &g, res ? &res->devices : NULL, o);
	if (r < 0)
		return r;
	p->writes = g.v;
	p->n_writes = g.n;
	p->need = g.need;
	memcpy(p->where, g.where, sizeof(p->where));
	p->no_birth = res && res->pids && res->pids->limit && *res->pids->limit == 0;
	mark_targets(p, res);
	return 0;
}

int lr_cgroup_plan(const char *cgroups_path, const struct oci_resources *resources,
		   struct lr_cgroup_layout *layout, const struct lr_cgroup_opts *opts,
		   struct lr_arena *arena, struct lr_cgroup_plan **ret, struct lr_err *err)
{
	static struct lr_cgroup_layout nothing = {.mode = LR_CGROUP_NONE};
	struct lr_cgroup_plan *p = lr_new(arena, struct lr_cgroup_plan);
	bool relative = false;
	int r;

	if (!p)
		return no_memory(err);
	p->driver = lr_cgroup_driver_of(opts->manager);
	p->rootless = opts->rootless;
	p->ref.manager = opts->manager;
	p->hold = LR_NOFD;
	if (opts->manager == LR_CGROUP_DISABLED)
		layout = &nothing;
	if (opts->manager == LR_CGROUP_SYSTEMD)
		r = lr_cgroup_systemd_locate(p, cgroups_path, opts, arena, err);
	else
		r = resolve(cgroups_path, opts, arena, &p->ref.relative, &relative, err);
	if (r == 0 && relative && layout->n && !layout->hierarchies[0].own)
		r = lr_cgroup_probe_own(arena, layout, err);
	if (r == 0)
		r = make_places(p, layout, relative, arena, err);
	if (r == 0)
		r = plan_limits(p, resources, opts, arena, err);
	if (r == 0 && p->unit)
		r = lr_cgroup_systemd_describe(p, opts, arena, err);
	if (r == 0)
		r = lr_cgroup_plan_delegate(p, opts, arena, err);
	if (r < 0)
		return r;
	*ret = p;
	return 0;
}

const struct lr_cgroup_ref *lr_cgroup_plan_ref(const struct lr_cgroup_plan *plan)
{
	return &plan->ref;
}
