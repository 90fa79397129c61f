/* SPDX-License-Identifier: Apache-2.0 */
/* lean: taking slots and giving them back; see lean.h. */
#define LR_ROOM "lean"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/str.h"
#include "src/lean/internal.h"
#include "src/mount/mount.h"

/* A try takes a millisecond, a drain one or two. */
#define TRIES 200

/* Everything that taking a slot needs. */
struct taking {
	const struct lr_lean_plan *plan;
	const struct lr_lean_env *env;
	struct lr_arena *arena;
	struct lr_lean_home home;
	struct lr_lean_key key;
	unsigned n; /* the slot */
	struct lr_cgroup_plan *cgroup;
	const struct lr_mount_cgroup_view *view;
	int shared; /* the shared network namespace, or LR_NOFD; borrowed */
};

void lr_lean_hold_close(struct lr_lean_hold *h)
{
	h->enter.mntns = lr_close(h->enter.mntns);
	h->enter.netns = lr_close(h->enter.netns);
	h->warm = lr_close(h->warm);
}

/* ---- control groups of a slot ---------------------------------------------------------------- */

/*
 * A container without limits does not need to be counted either, and on v1 each hierarchy takes a
 * directory and a move of the process. Devices are always limited, and pausing needs the freezer.
 * The v2 tree of a hybrid host only counts: there the container stays where the caller is.
 */
static bool wanted(const char *hierarchy, const struct oci_resources *r)
{
	if (strstr(hierarchy, "devices") || strstr(hierarchy, "freezer"))
		return true;
	if (!r || !lr_cgroup_recyclable(hierarchy))
		return false;
	return (r->cpu && strstr(hierarchy, "cpuset")) || (r->network && strstr(hierarchy, "net_"));
}

static int find_layout(struct taking *t, struct lr_err *err)
{
	struct lr_cgroup_layout *all, *l = &t->key.layout;

	if (!t->plan->pool)
		return 0;
	int r = lr_cgroup_probe(t->arena, &all, err);
	if (r < 0)
		return r;
	*l = (struct lr_cgroup_layout){.mode = all->mode};
	l->hierarchies = lr_new_n(t->arena, all->n + 1, struct lr_cgroup_hierarchy);
	if (!l->hierarchies)
		return lr_fail(err, ENOMEM, "make the plan");
	for (size_t i = 0; i < all->n; i++)
		if (wanted(all->hierarchies[i].name, t->plan->config->linux_->resources))
			l->hierarchies[l->n++] = all->hierarchies[i];
	return 0;
}

static int plan_cgroup(struct taking *t, struct lr_err *err)
{
	const struct oci_linux *l = t->plan->config->linux_;
	struct lr_cgroup_layout *layout = &t->key.layout;

	static struct lr_mount_cgroup unified = {.hierarchy = "", .mountpoint = "/sys/fs/cgroup"};
	static const struct lr_mount_cgroup_view v2 = {.v2 = true, .n = 1, .v = &unified};

	if (!t->plan->pool) {
		t->view = &v2;
		return 0;
	}
	const char *path = lr_lean_cgroup_parent(&t->home, t->arena);
	path = path ? lr_strf(t->arena, "%s/%s.%u", path, t->key.name, t->n) : NULL;
	if (!path)
		return lr_fail(err, ENOMEM, "make the plan");
	int r = lr_cgroup_plan(path, l->resources, layout, t->env->cgroup, t->arena, &t->cgroup,
			       err);
	if (r < 0)
		return r;
	const struct lr_cgroup_ref *ref = lr_cgroup_plan_ref(t->cgroup);
	struct lr_mount_cgroup_view *view = lr_new(t->arena, struct lr_mount_cgroup_view);
	struct lr_mount_cgroup *v = lr_new_n(t->arena, ref->n + 1, struct lr_mount_cgroup);
	if (!view || !v)
		return lr_fail(err, ENOMEM, "make the plan");
	for (size_t i = 0; i < ref->n; i++)
		v[i] = (struct lr_mount_cgroup){
			.hierarchy = ref->v[i].hierarchy,
			.host_dir = ref->v[i].path,
			.mountpoint = layout->hierarchies[i].mountpoint,
		};
	*view = (struct lr_mount_cgroup_view){
		.v2 = layout->mode == LR_CGROUP_V2, .n = ref->n, .v = v};
	t->view = view;
	return 0;
}

/* ---- a new slot ------------------------------------------------------------------------------ */

static int make_tree(void *arg, struct lr_err *err)
{
	struct taking *t = arg;

	return lr_lean_build(t->plan, t->env, t->view, t->shared, t->arena, err);
}

static int pin_tree(void *arg, pid_t child, struct lr_err *err)
{
	struct taking *t = arg;
	char name[LR_LEAN_NAME];

	lr_lean_slot_path(name, "slot", t->key.name, t->n, NULL);
	return lr_lean_pin_make(&t->home, name, child, "mnt", err);
}

static void unmake_slot(struct taking *t)
{
	char state[LR_LEAN_NAME], slot[64];
	struct lr_err why = {0};

	lr_lean_slot_path(state, "used", t->key.name, t->n, t->env->id);
	snprintf(slot, sizeof(slot), "%s.%u", t->key.name, t->n);
	if (lr_lean_slot_remove(&t->home, slot, state, t->arena, &why) < 0)
		lr_warn("lean: %s", why.msg);
}

static bool has_file(const struct taking *t)
{
	char path[64];

	snprintf(path, sizeof(path), "key/%s", t->key.name);
	return faccessat(t->home.fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int learn(struct taking *t, struct lr_err *err)
{
	if (t->key.known && has_file(t))
		return 0;
	int r = find_layout(t, err);
	if (r >= 0)
		r = lr_lean_key_save(&t->home, &t->key, t->arena, err);
	t->key.known = r >= 0;
	return r;
}

/* Removes what killed runtimes have left, if nobody else has the lock: a new slot is made, so a
 * millisecond more does not matter. */
static void tidy(struct taking *t)
{
	LR_CLEANUP_FD int lock = lr_lean_home_lock(&t->home, LOCK_EX | LOCK_NB, NULL);
	struct lr_err why = {0};

	if (lock >= 0 && lr_lean_sweep(&t->home, t->env->store, false, t->arena, &why) < 0)
		lr_warn("lean: %s", why.msg);
}

static int make_slot(struct taking *t, struct lr_err *err)
{
	const struct lr_lean_maker maker = {make_tree, pin_tree, t};

	int r = lr_lean_home_fit(&t->home, err);
	if (r >= 0 && t->plan->image)
		r = lr_lean_image_mount(&t->home, t->plan->image, t->plan->rootfs, err);
	if (r < 0)
		return r;
	tidy(t);
	LR_CLEANUP_FD int lock = lr_lean_home_lock(&t->home, LOCK_SH, err);
	if (lock < 0)
		return lock;
	/* The home was drained meanwhile, and may be a new one by now. */
	if (!lr_lean_home_mounted(&t->home) ||
	    (t->plan->image && !lr_lean_image_mounted(t->plan->rootfs)))
		return -ESTALE;
	r = learn(t, err);
	if (r >= 0)
		r = lr_lean_slot_number(&t->home, t->key.name, t->env->id, &t->n, err);
	if (r < 0)
		return r;
	r = plan_cgroup(t, err);
	if (r >= 0 && t->plan->pool)
		r = lr_cgroup_create(t->cgroup, err);
	/* The cgroup is empty until a container takes the slot. The slot's link says whose it is,
	 * so our claim on the cgroup ends. */
	lr_cgroup_settle(t->cgroup);
	if (r >= 0 && t->plan->template_)
		r = lr_lean_make(&maker, err);
	if (r < 0) {
		unmake_slot(t);
		return r;
	}
	lr_debug("lean: slot %s.%u made", t->key.name, t->n);
	return 0;
}

static int open_tree_of(struct taking *t, struct lr_lean_hold *h)
{
	char name[LR_LEAN_NAME];

	if (!t->plan->template_)
		return t->plan->image && !lr_lean_image_mounted(t->plan->rootfs) ? -ENOENT : 0;
	lr_lean_slot_path(name, "slot", t->key.name, t->n, NULL);
	h->enter.mntns = lr_lean_pin_open(&t->home, name);
	return h->enter.mntns < 0 ? h->enter.mntns : 0;
}

static int find_key(struct taking *t, struct lr_err *err)
{
	int r = lr_lean_key_make(t->plan, t->shared, t->arena, &t->key, err);

	return r < 0 ? r : lr_lean_key_load(&t->home, &t->key, t->arena, err);
}

static int take_slot(struct taking *t, struct lr_lean_hold *h, struct lr_err *err)
{
	int r = find_key(t, err);
	if (r < 0)
		return r;
	bool found = !t->env->fresh && t->key.known &&
		     lr_lean_slot_grab(&t->home, t->key.name, t->env->id, &t->n);
	r = found ? plan_cgroup(t, err) : make_slot(t, err);
	if (r < 0)
		return r;
	r = open_tree_of(t, h);
	if (r == -ENOENT && found) {
		/* Somebody has unmounted it, or the host was started anew. */
		lr_debug("lean: slot %s.%u has lost its mounts", t->key.name, t->n);
		unmake_slot(t);
		r = make_slot(t, err);
		if (r < 0)
			return r;
		r = open_tree_of(t, h);
	}
	h->slot = lr_strf(t->arena, "%s/%s.%u", t->home.name, t->key.name, t->n);
	if (r < 0 || !h->slot) {
		unmake_slot(t);
		return lr_fail(err, r < 0 ? -r : ENOMEM, "open the prepared mount namespace");
	}
	h->cgroup = t->cgroup;
	h->view = t->plan->pool ? t->view : NULL;
	return 0;
}

static int take_warm(struct taking *t, struct lr_lean_hold *h, struct lr_err *err)
{
	int r = lr_lean_home_fit(&t->home, err);

	h->warm = r < 0 ? r : lr_lean_home_warm(&t->home, err);
	return h->warm < 0 ? h->warm : 0;
}

static int take_net(struct taking *t, struct lr_lean_hold *h, struct lr_err *err)
{
	const char *name = LR_LEAN_NET_SHARED;
	unsigned n = 0;

	if (t->plan->network == LR_LEAN_SHARED)
		h->enter.netns = lr_lean_net_shared(&t->home, t->env->store, t->arena, err);
	else if (t->plan->network == LR_LEAN_POOL)
		h->enter.netns =
			lr_lean_net_take(&t->home, t->env->id, t->env->fresh, &n, t->arena, err);
	else
		return 0;
	if (h->enter.netns < 0)
		return h->enter.netns;
	if (t->plan->network == LR_LEAN_SHARED)
		t->shared = h->enter.netns;
	else
		name = lr_strf(t->arena, LR_LEAN_NET_KEY ".%u", n);
	h->net = name ? lr_strf(t->arena, "%s/%s", t->home.name, name) : NULL;
	return h->net ? 0 : lr_fail(err, ENOMEM, "make the plan");
}

/* An image is kept mounted by slots. */
static bool needs_slot(const struct lr_lean_plan *p)
{
	return p->pool || p->template_ || p->image;
}

static bool needs(const struct lr_lean_plan *p)
{
	return needs_slot(p) || p->network == LR_LEAN_SHARED || p->network == LR_LEAN_POOL;
}

static int take(struct taking *t, bool again, struct lr_lean_hold *h, struct lr_err *err)
{
	const struct lr_lean_env *env = t->env;

	int r = lr_lean_home_open(env->store, env->store_path,
				  again ? LR_LEAN_HOME_REPAIR : LR_LEAN_HOME_MAKE, t->arena,
				  &t->home, err);
	if (r >= 0 && env->fresh)
		r = take_warm(t, h, err);
	if (r >= 0)
		r = take_net(t, h, err);
	if (r >= 0 && needs_slot(t->plan))
		r = take_slot(t, h, err);
	if (r < 0) {
		if (h->net)
			lr_lean_net_back(&t->home, strchr(h->net, '/') + 1, env->id, false,
					 t->arena);
		lr_lean_hold_close(h);
	}
	lr_lean_home_close(&t->home);
	return r;
}

int lr_lean_take(const struct lr_lean_plan *plan, const struct lr_lean_env *env,
		 struct lr_arena *arena, struct lr_lean_hold *ret, struct lr_err *err)
{
	int r = 0;

	*ret = (struct lr_lean_hold)LR_LEAN_HOLD_NONE;
	/* -ESTALE: the home was drained right now. */
	for (int tries = 0; needs(plan) && tries < TRIES; tries++) {
		struct taking t = {
			.plan = plan,
			.env = env,
			.arena = arena,
			.home = LR_LEAN_HOME_NONE,
			.shared = LR_NOFD,
		};
		struct lr_lean_hold h = LR_LEAN_HOLD_NONE;
		r = take(&t, tries > 0, &h, err);
		if (r >= 0)
			*ret = h;
		if (r != -ESTALE)
			return r;
		usleep(1000);
	}
	return r < 0 ? lr_fail(err, EBUSY, "the pool is being drained again and again") : 0;
}

/* ---- back ------------------------------------------------------------------------------------ */

/* *why: 0, or why the slot's control groups cannot be used again. */
static int put(int store, const char *store_path, const struct lr_lean_held *g, int *why,
	       struct lr_arena *arena, struct lr_err *err)
{
	LR_CLEANUP_HOME struct lr_lean_home h = LR_LEAN_HOME_NONE;
	const char *any = g->slot ? g->slot : g->net;

	*why = 0;
	if (!any)
		return 0;
	*why = g->slot && g->cgroup ? lr_cgroup_recycle(g->cgroup) : 0;
	bool clean = g->slot && *why == 0;
	bool own_net = g->net && !lr_has_suffix(g->net, "/" LR_LEAN_NET_SHARED);

	if (clean && !own_net && lr_lean_slot_return(store, g->slot, g->id))
		return 0;
	int r = lr_lean_home_named(store, store_path, any, arena, &h, err);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (g->slot)
		r = lr_lean_slot_release(&h, strchr(g->slot, '/') + 1, g->id, clean, arena, err);
	if (g->net)
		lr_lean_net_back(&h, strchr(g->net, '/') + 1, g->id, true, arena);
	return r;
}

int lr_lean_put(int store, const char *store_path, const struct lr_lean_held *g,
		struct lr_arena *arena, struct lr_err *err)
{
	int why;

	return put(store, store_path, g, &why, arena, err);
}

int lr_lean_warm(const struct lr_lean_plan *plan, const struct lr_lean_env *env, unsigned n,
		 struct lr_arena *arena, struct lr_err *err)
{
	struct lr_lean_env fresh = *env;
	int r = 0;

	fresh.fresh = true;
	for (unsigned i = 0; r >= 0 && i < n; i++) {
		struct lr_lean_hold h;
		r = lr_lean_take(plan, &fresh, arena, &h, err);
		if (r < 0)
			break;
		const struct lr_lean_held held = {
			.id = env->id,
			.slot = h.slot,
			.net = h.net,
			.cgroup = h.cgroup ? lr_cgroup_plan_ref(h.cgroup) : NULL,
		};
		int why = 0;
		r = put(env->store, env->store_path, &held, &why, arena, err);
		lr_lean_hold_close(&h);
		/* EOPNOTSUPP: control groups of this kind are never used again, which is no
		 * error. */
		if (r >= 0 && why < 0 && why != -EOPNOTSUPP)
			r = lr_fail(err, -why, "look whether slot %s is empty", h.slot);
	}
	return r;
}

int lr_lean_mark(int store, const char *store_path, const struct lr_lean_held *g, bool net,
		 struct lr_arena *arena, struct lr_err *err)
{
	LR_CLEANUP_HOME struct lr_lean_home h = LR_LEAN_HOME_NONE;
	const char *any = g->slot ? g->slot : net ? g->net : NULL;
	int r = any ? lr_lean_home_named(store, store_path, any, arena, &h, err) : -ENOENT;

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (g->slot)
		r = lr_lean_slot_mark(&h, strchr(g->slot, '/') + 1, g->id, err);
	return r >= 0 && net && g->net ? lr_lean_net_mark(&h, strchr(g->net, '/') + 1, g->id, err)
				       : r;
}
