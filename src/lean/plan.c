/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lean: what the profile makes of a config.json. Pure, but for a look at root.path. What would
 * change more than docs/lean-profile.md says is left as the config has it.
 */
#define LR_ROOM "lean"
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "src/base/log.h"
#include "src/base/str.h"
#include "src/lean/internal.h"
#include "src/sys/syscalls.h"

/* A slot's name and the container's have to fit into one file name. */
static bool fits(const char *id)
{
	return strlen(id) <= 200;
}

static const struct oci_namespace *find_ns(const struct oci_linux *l, const char *type)
{
	for (size_t i = 0; i < l->namespaces.n; i++)
		if (lr_streq(l->namespaces.v[i].type, type))
			return &l->namespaces.v[i];
	return NULL;
}

static bool is_new(const struct oci_linux *l, const char *type)
{
	const struct oci_namespace *ns = find_ns(l, type);

	return ns && (!ns->path || !*ns->path);
}

static bool lists(const struct oci_strv *v, const char *word)
{
	for (size_t i = 0; i < v->n; i++)
		if (lr_streq(v->v[i], word))
			return true;
	return false;
}

/* In any of its sets: what is only inheritable now may be permitted after the next execve. */
static bool has_cap(const struct oci_config *c, const char *cap)
{
	const struct oci_capabilities *k = c->process->capabilities;

	return k && (lists(&k->bounding, cap) || lists(&k->permitted, cap) ||
		     lists(&k->inheritable, cap) || lists(&k->ambient, cap));
}

static bool has_option(const struct oci_mount *m, const char *option)
{
	return lists(&m->options, option);
}

static bool host_hooks(const struct oci_config *c)
{
	return c->hooks &&
	       (c->hooks->prestart.n || c->hooks->create_runtime.n || c->hooks->create_container.n);
}

/* ---- network --------------------------------------------------------------------------------- */

/* Whether the config asks for a network namespace that nobody will configure. */
static bool plain_network(const struct oci_config *c, const struct oci_linux *l)
{
	if (!is_new(l, "network") || find_ns(l, "user") || host_hooks(c) || l->net_devices.n)
		return false;
	for (size_t i = 0; i < l->sysctl.n; i++)
		if (lr_has_prefix(l->sysctl.v[i].key, "net."))
			return false;
	return true;
}

/* This container must not be able to change a namespace that others will be in. Root may write
 * below /proc/sys/net without any capability. */
static bool may_share(const struct oci_config *c, const struct oci_linux *l)
{
	return !has_cap(c, "CAP_NET_ADMIN") && !has_cap(c, "CAP_SYS_ADMIN") &&
	       (lists(&l->readonly_paths, "/proc/sys") || lists(&l->masked_paths, "/proc/sys"));
}

static enum lr_lean_way network_of(const struct lr_lean_profile *p, const struct oci_config *c,
				   const struct oci_linux *l, const struct lr_lean_facts *f)
{
	enum lr_lean_way way = p->way[LR_LEAN_NETWORK];

	if (way == LR_LEAN_CONFIG || f->rootless || !plain_network(c, l))
		return LR_LEAN_CONFIG;
	/* Newer Docker enters the namespace between create and start, without any hook. */
	if (way == LR_LEAN_AUTO)
		way = f->two_phase ? LR_LEAN_CONFIG : LR_LEAN_SHARED;
	/* The same goes for one of the pool, which others get after it. */
	if ((way == LR_LEAN_SHARED || way == LR_LEAN_POOL) && !may_share(c, l))
		way = LR_LEAN_CONFIG;
	if (way == LR_LEAN_POOL && !fits(f->id))
		way = LR_LEAN_CONFIG;
	return way;
}

/* ---- cgroup ---------------------------------------------------------------------------------- */

static bool cgroup_writable(const struct oci_mounts *m)
{
	for (size_t i = 0; i < m->n; i++) {
		const char *type = m->v[i].type ? m->v[i].type : "";
		if (lr_has_prefix(type, "cgroup") && !has_option(&m->v[i], "ro"))
			return true;
		/* The host's cgroup mount, or a part of it. */
		if (m->v[i].source && lr_has_prefix(m->v[i].source, "/sys") &&
		    !has_option(&m->v[i], "ro"))
			return true;
	}
	return false;
}

static bool counts(const struct oci_resources *r)
{
	const struct oci_cpu *c = r ? r->cpu : NULL;

	if (!r)
		return false;
	if (c && (c->shares || c->quota || c->burst || c->period || c->realtime_runtime ||
		  c->realtime_period || c->idle))
		return true;
	/* Since Linux 6.11, v1 remembers the largest number of processes (pids.peak). */
	if (r->pids && r->pids->limit && *r->pids->limit != -1)
		return true;
	return r->memory || r->block_io || r->hugepage_limits.n || r->rdma.n || r->unified.n;
}

static bool wants_pool(const struct lr_lean_profile *p, const struct oci_config *c,
		       const struct oci_linux *l, const struct lr_lean_facts *f)
{
	enum lr_lean_way way = p->way[LR_LEAN_CGROUP];

	if (way == LR_LEAN_CONFIG || f->rootless || !f->manager_is_fs || !fits(f->id))
		return false;
	/* A caller that names a cgroup looks for the container there, as Podman does for its
	 * statistics. */
	if (way == LR_LEAN_AUTO && l->cgroups_path && *l->cgroups_path)
		return false;
	/* Where there is a limit, the kernel counts, and would go on from what the last container
	 * has used. A v2 cgroup always counts; but making one takes two system calls only. */
	if (f->cgroup_v2 || counts(l->resources))
		return false;
	/* With a pid namespace of its own, the end of the first process proves that nobody is left.
	 * And nobody in the container may be able to make sub-cgroups or to change limits. */
	return is_new(l, "pid") && !find_ns(l, "user") && !has_cap(c, "CAP_SYS_ADMIN") &&
	       !cgroup_writable(&c->mounts);
}

/* ---- mounts ---------------------------------------------------------------------------------- */

static const char *no_template(const struct lr_lean_plan *p, const struct oci_linux *l,
			       const struct lr_lean_facts *f)
{
	const struct oci_config *c = p->config;
	const char *prop = l->rootfs_propagation;

	if (p->profile.way[LR_LEAN_MOUNTS] == LR_LEAN_CONFIG)
		return "not asked for";
	if (!fits(f->id))
		return "the container's long id";
	if (f->rootless || find_ns(l, "user"))
		return "a user namespace";
	if (!is_new(l, "mount") || !is_new(l, "pid"))
		return "no mount or pid namespace of its own";
	if (has_cap(c, "CAP_SYS_ADMIN"))
		return "CAP_SYS_ADMIN, which could change the template's file systems";
	if (f->no_pivot)
		return "--no-pivot";
	if (host_hooks(c))
		return "hooks that see the host's files and the container's at once";
	if (prop && *prop && !lr_has_word("rslave slave rprivate private", prop))
		return "linux.rootfsPropagation";
	return NULL;
}

enum place { OWN, BASE, NOWHERE };

/* A bind mount whose source is below the container's root, by its path on the host. */
static bool is_inside_root(const struct lr_lean_plan *p, const struct lr_lean_facts *f,
			   const struct oci_mount *m)
{
	const char *root = p->config->root ? p->config->root->path : NULL, *source = m->source;
	size_t n = strlen(f->bundle);

	if (!root || !source || lr_streq(root, "/"))
		return false;
	if (*root == '/' && strncmp(root, f->bundle, n) == 0 && root[n] == '/')
		root += n + 1;
	if (*source == '/' && strncmp(source, f->bundle, n) == 0 && source[n] == '/')
		source += n + 1;
	return lr_path_below(source, root);
}

static enum place place_of(const struct lr_lean_plan *p, const struct oci_linux *l,
			   const struct lr_lean_facts *f, const struct oci_mount *m,
			   const char *dest)
{
	const char *type = m->type ? m->type : "";

	/* It would cover the template's root, or its source is only there when the root is made in
	 * the usual way. */
	if (lr_streq(dest, "/") || is_inside_root(p, f, m))
		return NOWHERE;
	if (lr_streq(dest, "/dev"))
		return lr_streq(type, "tmpfs") && !has_option(m, "tmpcopyup") ? BASE : NOWHERE;
	/* sysfs shows the network namespace of the process that mounts it. */
	if (lr_streq(type, "sysfs") && has_option(m, "ro") &&
	    (p->network == LR_LEAN_SHARED || p->network == LR_LEAN_HOST))
		return BASE;
	/* Without a cgroup namespace, it shows one container's directories on v1 (those of the
	 * slot, if it has some), and the host's tree on v2. */
	if (lr_has_prefix(type, "cgroup") && !find_ns(l, "cgroup"))
		return p->pool || f->cgroup_v2 ? BASE : NOWHERE;
	return OWN;
}

static bool covered(const struct oci_mounts *own, const char *dest)
{
	for (size_t i = 0; i < own->n; i++)
		if (lr_path_below(dest, own->v[i].destination))
			return true;
	return false;
}

/* Whether this mount would cover one that the container makes itself: their order would be
 * reversed. */
static bool covers(const struct oci_mounts *own, const char *dest)
{
	for (size_t i = 0; i < own->n; i++)
		if (lr_path_below(own->v[i].destination, dest))
			return true;
	return false;
}

static int split_mounts(struct lr_lean_plan *p, const struct oci_linux *l,
			const struct lr_lean_facts *f, struct lr_arena *a, struct lr_err *err)
{
	const struct oci_mounts *all = &p->config->mounts;
	bool have_dev = false, have_proc = false, in_image = false;

	p->base.v = lr_new_n(a, all->n + 1, struct oci_mount);
	p->own.v = lr_new_n(a, all->n + 1, struct oci_mount);
	if (!p->base.v || !p->own.v)
		return lr_fail(err, ENOMEM, "make the plan");
	for (size_t i = 0; i < all->n; i++) {
		struct oci_mount m = all->v[i];
		char *dest = m.destination ? lr_alloc(a, strlen(m.destination) + 2) : NULL;

		if (!dest) {
			p->why_not = "a mount without a destination";
			return 0;
		}
		lr_path_clean(m.destination, dest);
		m.destination = dest;
		enum place where = place_of(p, l, f, &m, dest);
		if (covered(&p->own, dest)) {
			if (where == NOWHERE)
				p->why_not = "a mount that needs the host's files";
			where = OWN;
		} else if (where == NOWHERE || (where == BASE && covers(&p->own, dest))) {
			p->why_not = "a mount of another kind than the template has";
		} else if (where == BASE && in_image) {
			p->why_not = "a mount that links of the image may lead to where the "
				     "template mounts later";
		}
		in_image |= where == OWN && !lr_path_below(dest, "/proc") &&
			    !lr_path_below(dest, "/dev") && !lr_path_below(dest, "/sys");
		have_dev |= where == BASE && lr_streq(dest, "/dev");
		have_proc |= lr_streq(dest, "/proc") && m.type && lr_streq(m.type, "proc");
		struct oci_mounts *to = where == BASE ? &p->base : &p->own;
		to->v[to->n++] = m;
	}
	if (!have_dev || !have_proc)
		p->why_not = "no /dev or /proc of its own";
	return 0;
}

/* ---- bounding set ---------------------------------------------------------------------------- */

/*
 * With no-new-privileges an execve never adds to the permitted set, so no program can get what only
 * the bounding set holds (capabilities(7), cap_bprm_creds_from_file). But what the bounding set
 * lacks, root would lose at the next execve: then it has to be set.
 */
static bool bounding_is_idle(const struct oci_process *p)
{
	const struct oci_capabilities *k = p->capabilities;

	if (!k || !p->no_new_privileges || k->ambient.n || k->inheritable.n)
		return false;
	for (size_t i = 0; i < k->permitted.n; i++)
		if (!lists(&k->bounding, k->permitted.v[i]))
			return false;
	return true;
}

/* ---- the config that remains ----------------------------------------------------------------- */

/* Writable paths: tmpfs over the read-only root. */
static int add_tmpfs(const struct lr_lean_profile *p, struct oci_config *c, struct lr_arena *a,
		     struct lr_err *err)
{
	static const char *open_to_all[] = {"nosuid", "nodev", "mode=1777", NULL};
	static const char *roots[] = {"nosuid", "nodev", "mode=0755", NULL};
	size_t n = c->mounts.n, more = 0;

	for (const char *w = p->tmpfs; w && *w; w += strcspn(w, ":"), w += *w == ':')
		more++;
	if (!more)
		return 0;
	struct oci_mount *v = lr_new_n(a, n + more, struct oci_mount);
	if (!v)
		return lr_fail(err, ENOMEM, "make the plan");
	if (n)
		memcpy(v, c->mounts.v, n * sizeof(*v));
	for (const char *w = p->tmpfs; *w; w += strcspn(w, ":"), w += *w == ':') {
		char *path = lr_strndup(a, w, strcspn(w, ":"));
		if (!path)
			return lr_fail(err, ENOMEM, "make the plan");
		if (path[0] != '/' || !path[1]) {
			lr_refuse(err, EINVAL, "\"%s\" is no absolute path below the root", path);
			return lr_err_at(err, "annotations.org.lean-runtime.tmpfs");
		}
		v[n++] = (struct oci_mount){
			.destination = path,
			.type = "tmpfs",
			.source = "tmpfs",
			.options = {.v = lr_has_suffix(path, "tmp") ? open_to_all : roots, .n = 3},
		};
	}
	c->mounts = (struct oci_mounts){.v = v, .n = n};
	return 0;
}

/* network=host: the namespace is not asked for. */
static int drop_network(struct oci_linux *l, struct lr_arena *a, struct lr_err *err)
{
	struct oci_namespace *v = lr_new_n(a, l->namespaces.n + 1, struct oci_namespace);
	size_t n = 0;

	if (!v)
		return lr_fail(err, ENOMEM, "make the plan");
	for (size_t i = 0; i < l->namespaces.n; i++)
		if (!lr_streq(l->namespaces.v[i].type, "network"))
			v[n++] = l->namespaces.v[i];
	l->namespaces.v = v;
	l->namespaces.n = n;
	return 0;
}

static bool may_have_image(const struct lr_lean_plan *p, const struct lr_lean_facts *f,
			   struct lr_err *err)
{
	if (f->rootless)
		lr_refuse(err, EPERM, "%s: only root may mount an image", p->rootfs);
	else if (p->why_not)
		lr_refuse(err, ENOSYS, "%s: an image needs Linux 5.8", p->rootfs);
	else if (!fits(f->id))
		lr_refuse(err, ENAMETOOLONG, "%s: an image needs a shorter container id",
			  p->rootfs);
	else
		return true;
	return false;
}

/* A root in a file is mounted in the home, and is a directory from then on. */
static int plan_image(struct lr_lean_plan *p, const struct lr_lean_facts *f, const struct statx *st,
		      struct oci_root *root, struct lr_arena *a, struct lr_err *err)
{
	if (!may_have_image(p, f, err))
		return lr_err_at(err, "root.path");
	const char *name = lr_lean_home_name(a, err);
	const char *home = name ? lr_strf(a, "%s/" LR_LEAN_DIR "/%s", f->store_path, name) : NULL;

	p->image = p->rootfs;
	p->rootfs = home ? lr_lean_image_dir(home, st, a) : NULL;
	if (!p->rootfs)
		return name ? lr_fail(err, ENOMEM, "make the plan") : -EIO;
	root->path = p->rootfs;
	root->readonly = true;
	return 0;
}

/* Leaves out all that is kept ready, as that takes mounts. */
static void keep_nothing(struct lr_lean_plan *p, const char *why)
{
	p->pool = false;
	if (p->network != LR_LEAN_HOST)
		p->network = LR_LEAN_CONFIG;
	p->why_not = why;
}

static struct lr_lean_seen seen_as(const struct statx *st)
{
	struct lr_lean_seen s = {
		.dev = (uint64_t)st->stx_dev_major << 32 | st->stx_dev_minor,
		.ino = st->stx_ino,
		.file = S_ISREG(st->stx_mode),
		.mount = st->stx_attributes & STATX_ATTR_MOUNT_ROOT,
	};

	if (s.file) {
		s.size = st->stx_size;
		s.mtime_s = st->stx_mtime.tv_sec;
		s.mtime_ns = st->stx_mtime.tv_nsec;
	}
	return s;
}

static bool same(const struct lr_lean_seen *a, const struct lr_lean_seen *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       a->mtime_s == b->mtime_s && a->mtime_ns == b->mtime_ns && a->file == b->file &&
	       a->mount == b->mount;
}

bool lr_lean_plan_holds(const struct lr_lean_plan *p, const char *id)
{
	struct lr_lean_seen now = {0};
	struct statx st;

	if (!p->profile.on || !fits(id))
		return !p->profile.on;
	if (lr_statx(AT_FDCWD, p->image ? p->image : p->rootfs, 0, STATX_BASIC_STATS, &st) >= 0)
		now = seen_as(&st);
	return same(&now, &p->seen);
}

/*
 * A root that is a mount of its own (a manager's overlay) belongs to one container, and a template
 * would keep it busy after that container's end.
 */
static int look_at_root(struct lr_lean_plan *p, const struct lr_lean_facts *f,
			struct oci_root *root, struct lr_arena *a, struct lr_err *err)
{
	const char *path = p->profile.image ? p->profile.image : root->path;
	struct statx st;

	p->rootfs = path[0] == '/' ? path : lr_strf(a, "%s/%s", f->bundle, path);
	if (!p->rootfs)
		return lr_fail(err, ENOMEM, "make the plan");
	if (lr_statx(AT_FDCWD, p->rootfs, 0, STATX_BASIC_STATS, &st) < 0) {
		if (p->profile.image)
			return lr_err_at((lr_fail(err, errno, "%s", path), err),
					 "annotations.org.lean-runtime.image");
		if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
			return lr_err_at((lr_fail(err, errno, "%s", path), err), "root.path");
		keep_nothing(p, "no root directory"); /* the room that attaches it will say why */
		return 0;
	}
	if (!(st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT))
		keep_nothing(p, "a kernel before 5.8, which does not tell what is a mount");
	p->seen = seen_as(&st);
	if (p->seen.file)
		return plan_image(p, f, &st, root, a, err);
	if (p->profile.image) {
		lr_refuse(err, EINVAL, "%s is not a file", path);
		return lr_err_at(err, "annotations.org.lean-runtime.image");
	}
	if (p->seen.mount && p->profile.way[LR_LEAN_MOUNTS] != LR_LEAN_TEMPLATE)
		p->why_not = "a root directory that is a mount";
	return 0;
}

static int adapt(struct lr_lean_plan *p, const struct oci_linux *l, const struct lr_lean_facts *f,
		 struct lr_arena *a, struct lr_err *err)
{
	struct oci_config *c = lr_new(a, struct oci_config);
	struct oci_root *root = lr_new(a, struct oci_root);
	struct oci_linux *linux_ = lr_new(a, struct oci_linux);

	if (!c || !root || !linux_)
		return lr_fail(err, ENOMEM, "make the plan");
	*c = *p->config;
	*root = *c->root;
	*linux_ = *l;
	if (p->profile.way[LR_LEAN_ROOTFS] == LR_LEAN_RO && is_new(l, "mount"))
		root->readonly = true;
	int r = look_at_root(p, f, root, a, err);
	if (r >= 0)
		r = add_tmpfs(&p->profile, c, a, err);
	if (r >= 0 && p->network == LR_LEAN_HOST)
		r = drop_network(linux_, a, err);
	c->root = root;
	c->linux_ = linux_;
	p->config = c;
	return r;
}

int lr_lean_plan(const struct lr_lean_profile *profile, const struct oci_config *config,
		 const struct lr_lean_facts *facts, struct lr_arena *a, struct lr_lean_plan *ret,
		 struct lr_err *err)
{
	static const struct oci_linux nothing;
	const struct oci_linux *l = config->linux_ ? config->linux_ : &nothing;
	struct lr_lean_plan p = {.profile = *profile, .config = config};

	if (!profile->on) {
		*ret = p;
		return 0;
	}
	p.network = network_of(profile, config, l, facts);
	p.pool = wants_pool(profile, config, l, facts);
	p.keep_bounding =
		profile->way[LR_LEAN_BOUNDING] == LR_LEAN_KEEP && bounding_is_idle(config->process);
	int r = adapt(&p, l, facts, a, err);
	if (r < 0)
		return r;
	l = p.config->linux_;
	if (!p.why_not)
		p.why_not = no_template(&p, l, facts);
	if (!p.why_not)
		r = split_mounts(&p, l, facts, a, err);
	if (r < 0)
		return r;
	p.template_ = !p.why_not;
	lr_debug("lean: network %d, cgroup pool %d, template %d%s%s", p.network, p.pool,
		 p.template_, p.why_not ? ", because of " : "", p.why_not ? p.why_not : "");
	*ret = p;
	return 0;
}
