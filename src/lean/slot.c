/* SPDX-License-Identifier: Apache-2.0 */
/* lean: slots change hands; see lean.h. */
#define LR_ROOM "lean"
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/str.h"
#include "src/lean/internal.h"
#include "src/mount/mount.h"

#define NAME_LEN 300

/* Everything that taking a slot needs. */
struct taking {
	struct lr_lean_plan *plan;
	const struct lr_lean_env *env;
	struct lr_arena *arena;
	struct lr_lean_home home;
	struct lr_lean_key key;
	unsigned n; /* the slot */
	struct lr_cgroup_plan *cgroup;
	const struct lr_mount_cgroup_view *view;
};

void lr_lean_hold_close(struct lr_lean_hold *h)
{
	h->enter.mntns = lr_close(h->enter.mntns);
	h->enter.netns = lr_close(h->enter.netns);
	h->enter.empty = lr_close(h->enter.empty);
}

static void free_name(const struct taking *t, unsigned n, char name[NAME_LEN])
{
	snprintf(name, NAME_LEN, "free/%s.%u", t->key.name, n);
}

static void used_name(const struct taking *t, unsigned n, char name[NAME_LEN])
{
	snprintf(name, NAME_LEN, "used/%s.%u@%s", t->key.name, n, t->env->id);
}

static void slot_name(const struct taking *t, unsigned n, char name[NAME_LEN])
{
	snprintf(name, NAME_LEN, "slot/%s.%u", t->key.name, n);
}

/* ---- control groups of a slot ---------------------------------------------------------------- */

/* Whoever is not limited does not need to be counted either: v1 asks for a directory, and a move
 * of the process, in each hierarchy. Devices are always limited; freezing is how to pause. */
static bool wanted(const char *hierarchy, const struct oci_resources *r)
{
	if (!*hierarchy || strstr(hierarchy, "devices") || strstr(hierarchy, "freezer"))
		return true;
	if (!r || !lr_cgroup_recyclable(hierarchy))
		return false;
	return (r->cpu && strstr(hierarchy, "cpuset")) || (r->pids && strstr(hierarchy, "pids")) ||
	       (r->network && strstr(hierarchy, "net_")) ||
	       (r->rdma.n && strstr(hierarchy, "rdma"));
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
		return lr_fail(err, ENOMEM, "plan");
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
	/* The home's path as a name: two roots never have the same slot. */
	uint64_t h = 0xcbf29ce484222325U;
	for (const char *p = t->home.path; *p; p++)
		h = (h ^ (unsigned char)*p) * 0x100000001b3U;
	const char *path = lr_strf(t->arena, "/lean-runtime.%08x/%s.%u", (unsigned)(h ^ h >> 32),
				   t->key.name, t->n);
	if (!path)
		return lr_fail(err, ENOMEM, "plan");
	int r = lr_cgroup_plan(path, l->resources, layout, t->env->cgroup, t->arena, &t->cgroup,
			       err);
	if (r < 0)
		return r;
	const struct lr_cgroup_ref *ref = lr_cgroup_plan_ref(t->cgroup);
	struct lr_mount_cgroup_view *view = lr_new(t->arena, struct lr_mount_cgroup_view);
	struct lr_mount_cgroup *v = lr_new_n(t->arena, ref->n + 1, struct lr_mount_cgroup);
	if (!view || !v)
		return lr_fail(err, ENOMEM, "plan");
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

	return lr_lean_build(t->plan, &t->key, t->env, t->view, t->arena, err);
}

static int pin_tree(void *arg, pid_t child, struct lr_err *err)
{
	struct taking *t = arg;
	char name[NAME_LEN];

	slot_name(t, t->n, name);
	return lr_lean_pin_make(&t->home, name, child, "mnt", err);
}

/* A number nobody has, by making its file. */
static int number_slot(struct taking *t, struct lr_err *err)
{
	for (unsigned n = 0; n < LR_LEAN_SLOTS_MAX; n++) {
		char name[NAME_LEN];
		slot_name(t, n, name);
		LR_CLEANUP_FD int fd =
			openat(t->home.fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd >= 0) {
			t->n = n;
			return 0;
		}
		if (errno != EEXIST)
			return lr_fail(err, errno, "create %s/%s", t->home.path, name);
	}
	return lr_refuse(err, ENOSPC, "%d slots are in use", LR_LEAN_SLOTS_MAX);
}

static void unmake_slot(struct taking *t, bool have_cgroup)
{
	char name[NAME_LEN];
	struct lr_err why = {0};

	if (have_cgroup && lr_cgroup_destroy(lr_cgroup_plan_ref(t->cgroup), true, &why) < 0)
		lr_warn("lean: %s", why.msg);
	slot_name(t, t->n, name);
	if (lr_lean_pin_remove(&t->home, name) < 0)
		lr_warn("lean: %s/%s is left: %s", t->home.path, name, lr_strerror(errno));
	used_name(t, t->n, name);
	(void)unlinkat(t->home.fd, name, 0);
}

static const char *kinds_of(const struct oci_strv *paths, struct lr_arena *a)
{
	char *kinds = lr_alloc(a, paths->n + 1);
	struct stat st;

	for (size_t i = 0; kinds && i < paths->n; i++)
		kinds[i] = stat(paths->v[i], &st) < 0 ? '-' : S_ISDIR(st.st_mode) ? 'd' : 'f';
	return kinds;
}

static int learn(struct taking *t, struct lr_err *err)
{
	if (t->key.known)
		return 0;
	/* The host's /proc has the same entries as the container's will, but for processes. */
	t->key.kinds = kinds_of(&t->plan->own_masked, t->arena);
	int r = t->key.kinds ? find_layout(t, err) : lr_fail(err, ENOMEM, "plan");
	if (r >= 0)
		r = lr_lean_key_save(&t->home, &t->key, t->arena, err);
	t->key.known = r >= 0;
	return r;
}

static int make_slot(struct taking *t, struct lr_err *err)
{
	const struct lr_lean_maker maker = {make_tree, pin_tree, t};
	char used[NAME_LEN];
	bool have_cgroup = false;

	int r = lr_lean_home_fit(&t->home, err);
	if (r >= 0)
		r = learn(t, err);
	if (r >= 0)
		r = number_slot(t, err);
	if (r < 0)
		return r;
	/* Named before there is anything to be left behind. */
	used_name(t, t->n, used);
	LR_CLEANUP_FD int fd = openat(t->home.fd, used, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		r = lr_fail(err, errno, "create %s/%s", t->home.path, used);
	if (r >= 0)
		r = plan_cgroup(t, err);
	if (r >= 0 && t->plan->pool) {
		r = lr_cgroup_create(t->cgroup, err);
		have_cgroup = r >= 0;
	}
	if (r >= 0 && t->plan->template_)
		r = lr_lean_make(&maker, err);
	if (r < 0) {
		unmake_slot(t, have_cgroup);
		return r;
	}
	lr_debug("lean: slot %s.%u made", t->key.name, t->n);
	return 0;
}

/* ---- one that is free ------------------------------------------------------------------------ */

static bool grab(struct taking *t, unsigned n)
{
	char from[NAME_LEN], to[NAME_LEN];

	free_name(t, n, from);
	used_name(t, n, to);
	if (renameat(t->home.fd, from, t->home.fd, to) < 0)
		return false;
	t->n = n;
	return true;
}

static bool grab_any(struct taking *t)
{
	size_t len = strlen(t->key.name);
	uint32_t n;

	/* The lowest is the one that is free if no two run at once. */
	if (grab(t, 0))
		return true;
	int fd = openat(t->home.fd, "free", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	LR_CLEANUP_DIR DIR *d = fd < 0 ? NULL : fdopendir(fd);
	for (struct dirent *e; d && (e = readdir(d));)
		if (strncmp(e->d_name, t->key.name, len) == 0 && e->d_name[len] == '.' &&
		    lr_parse_u32(e->d_name + len + 1, &n) == 0 && grab(t, n))
			return true;
	return false;
}

static int open_tree_of(struct taking *t, struct lr_lean_hold *h)
{
	char name[NAME_LEN];

	if (!t->plan->template_)
		return 0;
	slot_name(t, t->n, name);
	h->enter.mntns = lr_lean_pin_open(&t->home, name, CLONE_NEWNS);
	return h->enter.mntns < 0 ? h->enter.mntns : 0;
}

static int take_slot(struct taking *t, struct lr_lean_hold *h, struct lr_err *err)
{
	int r = lr_lean_key_make(t->plan, t->env, t->arena, &t->key, err);

	if (r >= 0)
		r = lr_lean_key_load(&t->home, &t->key, t->arena, err);
	if (r < 0)
		return r;
	bool made = !t->key.known || !grab_any(t);
	if (made)
		r = make_slot(t, err);
	else
		r = plan_cgroup(t, err);
	if (r < 0)
		return r;
	r = open_tree_of(t, h);
	if (r == -ENOENT && !made) {
		/* Somebody has unmounted it. */
		lr_debug("lean: slot %s.%u has lost its mounts", t->key.name, t->n);
		unmake_slot(t, t->plan->pool);
		made = true;
		r = make_slot(t, err);
		if (r < 0)
			return r;
		r = open_tree_of(t, h);
	}
	h->slot = lr_strf(t->arena, "%s/%s.%u", t->home.name, t->key.name, t->n);
	if (r < 0 || !h->slot) {
		unmake_slot(t, t->plan->pool);
		return lr_fail(err, r < 0 ? -r : ENOMEM, "open the prepared mount namespace");
	}
	h->cgroup = t->cgroup;
	h->view = t->plan->pool ? t->view : NULL;
	h->enter.plain = t->plan->plain;
	h->enter.masked = t->plan->own_masked;
	h->enter.readonly = t->plan->own_readonly;
	h->enter.kinds = strlen(t->key.kinds) == t->plan->own_masked.n ? t->key.kinds : NULL;
	return 0;
}

int lr_lean_take(struct lr_lean_plan *plan, const struct lr_lean_env *env, struct lr_arena *arena,
		 struct lr_lean_hold *ret, struct lr_err *err)
{
	struct taking t = {.plan = plan, .env = env, .arena = arena, .home = LR_LEAN_HOME_NONE};
	struct lr_lean_hold h = LR_LEAN_HOLD_NONE;
	bool net = plan->network == LR_LEAN_SHARED;

	*ret = h;
	if (!plan->pool && !plan->template_ && !net)
		return 0;
	int r = lr_lean_home_open(env->store, env->store_path, true, arena, &t.home, err);
	if (r >= 0 && net) {
		h.enter.netns = lr_lean_net_shared(&t.home, err);
		h.net = lr_strf(arena, "%s/" LR_LEAN_NET_SHARED, t.home.name);
		r = h.enter.netns < 0 ? h.enter.netns : !h.net ? lr_fail(err, ENOMEM, "plan") : 0;
	}
	if (r >= 0 && (plan->pool || plan->template_))
		r = take_slot(&t, &h, err);
	lr_lean_home_close(&t.home);
	if (r < 0) {
		lr_lean_hold_close(&h);
		return r;
	}
	*ret = h;
	return 0;
}

/* ---- back ------------------------------------------------------------------------------------ */

static int retire(const struct lr_lean_home *h, const char *slot, const char *used,
		  const struct lr_cgroup_ref *cgroup, struct lr_err *err)
{
	char pin[NAME_LEN];

	int r = cgroup->n ? lr_cgroup_destroy(cgroup, true, err) : 0;
	if (r < 0)
		return r;
	snprintf(pin, sizeof(pin), "slot/%s", slot);
	r = lr_lean_pin_remove(h, pin);
	if (r < 0)
		return lr_fail(err, -r, "remove %s/%s", h->path, pin);
	(void)unlinkat(h->fd, used, 0);
	lr_debug("lean: slot %s removed", slot);
	return 0;
}

static int put_slot(const struct lr_lean_home *h, const char *slot, const struct lr_lean_given *g,
		    struct lr_err *err)
{
	static const struct lr_cgroup_ref none;
	const struct lr_cgroup_ref *cgroup = g->cgroup ? g->cgroup : &none;
	char used[NAME_LEN], back[NAME_LEN], dirty[NAME_LEN];
	const char *dot = strchr(slot, '.');
	uint32_t n;

	if (!dot || lr_parse_u32(dot + 1, &n) < 0)
		return lr_refuse(err, EPROTO, "the record names no slot: \"%.64s\"", slot);
	snprintf(used, sizeof(used), "used/%s@%s", slot, g->id);
	snprintf(dirty, sizeof(dirty), "dirty/%s@%s", slot, g->id);
	snprintf(back, sizeof(back), "free/%s", slot);
	if (n < LR_LEAN_SLOTS_KEPT && (!cgroup->n || lr_cgroup_recycle(cgroup) == 0)) {
		if (renameat(h->fd, used, h->fd, back) == 0)
			return 0;
		if (errno != ENOENT)
			return lr_fail(err, errno, "give back %s/%s", h->path, used);
	}
	if (faccessat(h->fd, used, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return retire(h, slot, used, cgroup, err);
	if (faccessat(h->fd, dirty, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return retire(h, slot, dirty, cgroup, err);
	return 0; /* given back before, by somebody who was killed right then */
}

int lr_lean_put(int store, const char *store_path, const struct lr_lean_given *g,
		struct lr_arena *arena, struct lr_err *err)
{
	LR_CLEANUP_HOME struct lr_lean_home h = LR_LEAN_HOME_NONE;

	if (!g->slot)
		return 0;
	int r = lr_lean_home_named(store, store_path, g->slot, arena, &h, err);
	if (r == -ENOENT) /* drained by force */
		return g->cgroup ? lr_cgroup_destroy(g->cgroup, true, err) : 0;
	return r < 0 ? r : put_slot(&h, strchr(g->slot, '/') + 1, g, err);
}

int lr_lean_mark(int store, const char *store_path, const struct lr_lean_given *g, bool net,
		 struct lr_arena *arena, struct lr_err *err)
{
	LR_CLEANUP_HOME struct lr_lean_home h = LR_LEAN_HOME_NONE;
	const char *any = g->slot ? g->slot : net ? g->net : NULL;
	char used[NAME_LEN], dirty[NAME_LEN];
	int r = any ? lr_lean_home_named(store, store_path, any, arena, &h, err) : -ENOENT;

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (g->slot) {
		snprintf(used, sizeof(used), "used/%s@%s", strchr(g->slot, '/') + 1, g->id);
		snprintf(dirty, sizeof(dirty), "dirty/%s@%s", strchr(g->slot, '/') + 1, g->id);
		if (renameat(h.fd, used, h.fd, dirty) < 0 && errno != ENOENT)
			return lr_fail(err, errno, "mark %s/%s", h.path, used);
	}
	return net && g->net ? lr_lean_net_mark(&h, strchr(g->net, '/') + 1, err) : 0;
}
