/* SPDX-License-Identifier: Apache-2.0 */
/* mount: config.json's mounts compiled into operations. Pure; see mount.h. */
#define LR_ROOM "mount"
#include "src/mount/internal.h"

#include <errno.h>
#include <string.h>

#include "src/base/log.h"
#include "src/base/str.h"

/* Files below /proc that may be covered (lxcfs and friends do); everything else there could fool
 * the runtime or the kernel's LSM interface (CVE-2019-16884, CVE-2019-19921). */
static const char *const proc_allowed[] = {
	"/proc/cpuinfo",
	"/proc/diskstats",
	"/proc/meminfo",
	"/proc/stat",
	"/proc/swaps",
	"/proc/uptime",
	"/proc/loadavg",
	"/proc/slabinfo",
	"/proc/net/dev",
	"/proc/sys/kernel/ns_last_pid",
	"/proc/sys/crypto/fips_enabled",
};

/* File systems whose source and options name no files, so from where does not matter. */
static bool is_made_of_nothing(const char *type)
{
	return lr_has_word(
		"bpf cgroup cgroup2 configfs debugfs devpts devtmpfs fusectl hugetlbfs mqueue "
		"proc pstore ramfs securityfs sysfs tmpfs tracefs",
		type);
}

static bool is_cgroup_type(const char *type)
{
	return lr_streq(type, "cgroup") || lr_streq(type, "cgroup2");
}

static int plan_kind(struct lr_mount_op *op, struct lr_err *err)
{
	struct lr_mount_options *o = &op->o;
	bool none = !*op->type || lr_streq(op->type, "none");

	if (lr_streq(op->type, "bind"))
		o->bind = true;
	if (lr_streq(op->type, "rbind"))
		o->bind = o->rec = true;
	if (o->remount || (none && !o->bind && o->n_props && !*op->source))
		op->kind = LR_MOUNT_REMOUNT;
	else if (o->bind)
		op->kind = LR_MOUNT_BIND;
	else if (is_cgroup_type(op->type))
		op->kind = LR_MOUNT_CGROUP;
	else
		op->kind = LR_MOUNT_FS;

	if (op->kind == LR_MOUNT_FS && none) {
		lr_refuse(err, EINVAL, "mount of %s has no file system type", op->dest);
		lr_err_at(err, "mounts[%zu].type", op->index);
		lr_err_hint(err, "name a type, or add the option \"bind\" or \"rbind\"");
		return -EINVAL;
	}
	if (op->kind == LR_MOUNT_BIND && !*op->source) {
		lr_refuse(err, EINVAL, "bind mount on %s has no source", op->dest);
		lr_err_at(err, "mounts[%zu].source", op->index);
		return -EINVAL;
	}
	return 0;
}

static int refuse_dest(const struct lr_mount_op *op, struct lr_err *err, const char *why,
		       const char *hint)
{
	lr_refuse(err, EPERM, "mount on %s is refused: %s", op->dest, why);
	lr_err_at(err, "mounts[%zu].destination", op->index);
	if (hint)
		lr_err_hint(err, "%s", hint);
	return -EPERM;
}

static int plan_proc(struct lr_mount_op *op, struct lr_err *err)
{
	if (lr_streq(op->dest, "/proc")) {
		if (op->kind == LR_MOUNT_FS && lr_streq(op->type, "proc"))
			return 0;
		op->is_procfs = op->kind == LR_MOUNT_BIND;
		return op->is_procfs ? 0
				     : refuse_dest(op, err, "only a procfs may be mounted there",
						   "use type \"proc\"");
	}
	for (size_t i = 0; i < LR_ARRAY_SIZE(proc_allowed); i++)
		if (lr_streq(op->dest, proc_allowed[i]))
			return 0;
	return refuse_dest(op, err, "it is inside /proc",
			   "use linux.maskedPaths or linux.readonlyPaths to hide or protect it");
}

static int plan_dest(struct lr_mount_op *op, const struct oci_mount *m, struct lr_arena *arena,
		     struct lr_err *err)
{
	const char *given = m->destination;

	if (!given || !*given) {
		lr_refuse(err, EINVAL, "a mount needs a destination");
		lr_err_at(err, "mounts[%zu].destination", op->index);
		return -EINVAL;
	}
	char *clean = lr_alloc(arena, strlen(given) + 2);
	if (!clean)
		return lr_fail(err, ENOMEM, "mount plan"), -ENOMEM;
	lr_path_clean(given, clean);
	if (*given != '/')
		lr_warn("mounts[%zu].destination \"%s\" is not absolute: taken as %s", op->index,
			given, clean);
	op->dest = clean;
	op->name = strrchr(clean, '/') + 1;
	return 0;
}

/* What is mounted on "/" is the root from then on; but not of processes that have theirs. */
static int check_dest(struct lr_mount_op *op, bool running, struct lr_err *err)
{
	op->nolinks = lr_path_below(op->dest, "/proc") || lr_path_below(op->dest, "/sys") ||
		      (op->kind == LR_MOUNT_FS &&
		       (lr_streq(op->type, "proc") || lr_streq(op->type, "sysfs")));
	/* /proc/net is procfs' own link to self/net. */
	if (lr_streq(op->dest, "/proc/net/dev"))
		op->nolinks = false;
	if (op->kind == LR_MOUNT_REMOUNT)
		return 0;
	if (lr_mount_is_root(op) && (running || op->kind == LR_MOUNT_CGROUP))
		return refuse_dest(op, err, "that would cover the whole container",
				   "use root.path to choose the root file system");
	return lr_path_below(op->dest, "/proc") ? plan_proc(op, err) : 0;
}

static int plan_source(struct lr_mount_op *op, const struct oci_mount *m,
		       const struct lr_mount_opts *opts, struct lr_arena *arena)
{
	op->source = m->source ? m->source : "";
	if (op->kind != LR_MOUNT_BIND)
		return 0;
	if (*op->source != '/')
		op->source = lr_strf(arena, "%s/%s", opts->bundle ? opts->bundle : "", op->source);
	if (!op->source || !opts->root)
		return op->source ? 0 : -ENOMEM;
	char *clean = lr_alloc(arena, strlen(op->source) + 2);
	if (!clean)
		return -ENOMEM;
	lr_path_clean(op->source, clean);
	op->inside = lr_path_below(clean, opts->root);
	return 0;
}

static void push(struct lr_mount_change *v, size_t *n, struct lr_mount_change c)
{
	v[(*n)++] = c;
}

/* Propagation that must wait until the mount is in place: below a shared mount it would otherwise
 * become shared again when attached; and shared itself is asked for where it is. */
static bool prop_waits(const struct lr_mount_plan *plan, unsigned long type)
{
	return type == MS_SHARED || plan->root_prop == MS_SHARED || plan->late_props;
}

/*
 * Flags that a bind inherits from its source, and that no option asks for: once any flag is named,
 * these go, as mount(8) has it, and runc and crun. Which access times are kept is one flag with
 * three values for them, and "nodiratime" is part of it. In a user namespace the source's flags
 * stay: the kernel would lock them for whoever binds there.
 */
static uint64_t unnamed_flags(const struct lr_mount_plan *plan, const struct lr_mount_op *op)
{
	const struct lr_mount_options *o = &op->o;
	uint64_t named = o->set | o->clear | o->rset | o->rclear;
	uint64_t flags = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
			 MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NOSYMFOLLOW;

	if (op->kind != LR_MOUNT_BIND || !o->named || plan->opts.userns)
		return 0;
	if (o->clear & MOUNT_ATTR__ATIME)
		flags |= MOUNT_ATTR_NODIRATIME;
	if (o->set & MOUNT_ATTR_NODIRATIME)
		flags |= MOUNT_ATTR__ATIME;
	return flags & ~named;
}

static int plan_changes(struct lr_mount_plan *plan, struct lr_mount_op *op, struct lr_arena *arena)
{
	const struct lr_mount_options *o = &op->o;
	bool tree = op->kind == LR_MOUNT_REMOUNT || (op->kind == LR_MOUNT_BIND && o->rec);
	struct lr_mount_change *v = lr_new_n(arena, o->n_props + 2, struct lr_mount_change);
	struct lr_mount_change *p = lr_new_n(arena, o->n_props + 1, struct lr_mount_change);
	struct lr_mount_change top = {
		.set = o->set, .clear = o->clear, .unnamed = unnamed_flags(plan, op)};
	size_t n = 0, np = 0;

	if (!v || !p)
		return -ENOMEM;
	top.clear |= top.unnamed;
	if (!tree) { /* one mount: two layers of options become one */
		top.set |= o->rset & ~o->clear;
		top.clear |= o->rclear & ~o->set;
	} else if (o->rset | o->rclear) {
		push(v, &n,
		     (struct lr_mount_change){.set = o->rset, .clear = o->rclear, .rec = true});
	}
	for (size_t i = 0; i < o->n_props; i++) {
		struct lr_mount_change c = {.prop = o->props[i].type,
					    .rec = o->props[i].rec && tree,
					    .attached = prop_waits(plan, o->props[i].type)};
		push(p, &np, (struct lr_mount_change){.prop = c.prop, .attached = true});
		/* One call for both where they agree. */
		if (n && !v[n - 1].prop && v[n - 1].rec == c.rec && !c.attached)
			v[n - 1].prop = c.prop;
		else
			push(v, &n, c);
	}
	struct lr_mount_change *same = NULL;
	for (size_t i = 0; i < n && !same; i++)
		if (!v[i].rec && !v[i].attached && !(v[i].set | v[i].clear))
			same = &v[i];
	if ((top.set | top.clear) && same) {
		same->set = top.set;
		same->clear = top.clear;
		same->unnamed = top.unnamed;
	} else if (top.set | top.clear) {
		push(v, &n, top);
	}
	op->changes = v;
	op->n_changes = n;
	op->props = p;
	op->n_props = np;
	return 0;
}

/* Flags of a new file system, once for fsmount(2) and once for mount(2). */
static void plan_flags(struct lr_mount_op *op)
{
	const struct lr_mount_options *o = &op->o;

	op->attr = (o->rset & ~o->clear) | o->set;
	/* Devices, links and nested mount points are still to be made there: finish does it. */
	if (op->kind == LR_MOUNT_FS && (op->attr & MOUNT_ATTR_RDONLY) &&
	    (lr_streq(op->type, "tmpfs") || lr_streq(op->dest, "/dev"))) {
		op->attr &= ~(uint64_t)MOUNT_ATTR_RDONLY;
		op->finish_ro = op->keep = true;
	}
	/* What is to be found there later is looked at (lr_mount_check_seen). */
	if (op->kind == LR_MOUNT_FS && lr_streq(op->dest, "/dev"))
		op->keep = true;
	op->ms_flags = lr_mount_ms_flags(op->attr) | o->sb;
	/* The kernel wants the subtype of "fuse.x" split off, which only mount(2) does by
	 * itself. */
	if (strchr(op->type, '.'))
		op->o.only_mount2 = true;
}

static int plan_label(const struct lr_mount_plan *plan, struct lr_mount_op *op,
		      struct lr_arena *arena)
{
	static const char *const without[] = {"proc", "sysfs", "mqueue"}; /* mqueue: see fs.c */
	const char *label = plan->opts.mount_label;

	if (op->kind != LR_MOUNT_FS || !label || !*label)
		return 0;
	for (size_t i = 0; i < LR_ARRAY_SIZE(without); i++)
		if (lr_streq(op->type, without[i]))
			return 0;
	if (lr_mount_options_has(&op->o, plan->context))
		return 0;
	const char *text = lr_strf(arena, "%s=\"%s\"", plan->context, label);
	return text ? lr_mount_options_add(&op->o, plan->context, label, text, arena) : -ENOMEM;
}

/* devpts takes gid= as an id of the mounter's user namespace: gid 5 (tty) must be mapped there. */
static int check_devpts(const struct lr_mount_plan *plan, const struct lr_mount_op *op,
			struct lr_err *err)
{
	const struct oci_id_mappings *map = plan->opts.gid_map;

	if (!plan->opts.userns || !map || !map->n || !lr_streq(op->type, "devpts"))
		return 0;
	for (size_t i = 0; i < op->o.n_params; i++) {
		const struct lr_mount_param *p = &op->o.params[i];
		uint32_t gid;
		bool mapped = false;

		if (!lr_streq(p->key, "gid") || !p->value || lr_parse_u32(p->value, &gid) < 0)
			continue;
		for (size_t k = 0; k < map->n && !mapped; k++)
			mapped = gid >= map->v[k].container_id &&
				 gid - map->v[k].container_id < map->v[k].size;
		if (mapped)
			continue;
		lr_refuse(err, EINVAL, "devpts on %s: group %u is not mapped in the user namespace",
			  op->dest, gid);
		lr_err_at(err, "mounts[%zu].options", op->index);
		lr_err_hint(err, "drop \"gid=%u\", or map the group in linux.gidMappings", gid);
		return -EINVAL;
	}
	return 0;
}

static int check_options(const struct lr_mount_op *op, struct lr_err *err)
{
	const struct lr_mount_options *o = &op->o;
	const char *what = NULL, *need = NULL;

	if (o->copyup && (op->kind != LR_MOUNT_FS || !lr_streq(op->type, "tmpfs")))
		what = "tmpcopyup", need = "type \"tmpfs\"";
	else if (op->kind == LR_MOUNT_BIND || op->kind == LR_MOUNT_REMOUNT)
		;
	else if (o->src_nofollow || o->copy_symlink)
		what = o->copy_symlink ? "copy-symlink" : "src-nofollow", need = "a bind mount";
	if (what) {
		lr_refuse(err, EINVAL, "mount option \"%s\" needs %s", what, need);
		lr_err_at(err, "mounts[%zu].options", op->index);
		return -EINVAL;
	}
	if (op->kind == LR_MOUNT_BIND && (o->sb || o->n_params))
		lr_warn("mounts[%zu]: a bind mount takes no options of the file system: "
			"ignored%s%s",
			op->index, *o->data ? ": " : "", o->data);
	return 0;
}

/* The latest operation that is mounted right on the directory above, if its descriptor still
 * stands for that path when op's turn comes. */
static void plan_parent(struct lr_mount_plan *plan, struct lr_mount_op *op, size_t at)
{
	size_t len = (size_t)(op->name - op->dest) - 1; /* of the parent's path */

	op->parent = -1;
	if (op->kind != LR_MOUNT_FS || !len || lr_path_below(op->dest, "/proc"))
		return;
	for (size_t i = at; i-- > 0;) {
		struct lr_mount_op *p = &plan->ops[i];
		size_t n = strlen(p->dest);

		if (lr_mount_is_root(p)) /* covers all that was mounted before */
			return;
		if (p->kind == LR_MOUNT_REMOUNT || n > len || strncmp(p->dest, op->dest, n) != 0 ||
		    (n < len && op->dest[n] != '/'))
			continue;
		if (n == len && p->kind == LR_MOUNT_FS) {
			op->parent = (ssize_t)i;
			op->below_new = lr_streq(p->type, "tmpfs") && !p->o.copyup;
			p->keep = true;
		}
		return;
	}
}

static int plan_one(struct lr_mount_plan *plan, size_t i, const struct oci_mount *m,
		    struct lr_arena *arena, struct lr_err *err)
{
	struct lr_mount_op *op = &plan->ops[i];
	int r;

	*op = (struct lr_mount_op){
		.index = i, .parent = -1, .map = -1, .tree = LR_NOFD, .mfd = LR_NOFD};
	op->type = m->type ? m->type : "";
	op->source = m->source ? m->source : "";
	if ((r = plan_dest(op, m, arena, err)) < 0 ||
	    (r = lr_mount_options_parse(&m->options, op->type, i, arena, &op->o, err)) < 0 ||
	    (r = plan_kind(op, err)) < 0 || (r = check_dest(op, plan->opts.elsewhere, err)) < 0 ||
	    (r = check_options(op, err)) < 0 || (r = check_devpts(plan, op, err)) < 0 ||
	    (r = lr_mount_idmap_plan(plan, op, m, arena, err)) < 0)
		return r;
	if (plan_source(op, m, &plan->opts, arena) < 0 || plan_label(plan, op, arena) < 0 ||
	    plan_changes(plan, op, arena) < 0) {
		lr_fail(err, ENOMEM, "mount plan");
		return -ENOMEM;
	}
	plan_flags(op);
	op->names_files = op->kind == LR_MOUNT_FS && !is_made_of_nothing(op->type);
	op->inherit_mode = op->kind == LR_MOUNT_FS && lr_streq(op->type, "tmpfs") &&
			   !lr_mount_options_has(&op->o, "mode");
	plan_parent(plan, op, i);
	return 0;
}

static int plan_opts(struct lr_mount_plan *plan, const struct oci_mounts *mounts,
		     struct lr_err *err)
{
	static const char *const contexts[] = {"context", "fscontext", "defcontext", "rootcontext"};
	const char *type = plan->opts.mount_context_type, *prop = plan->opts.rootfs_propagation;

	bool all = true;
	plan->root_prop = MS_SLAVE;
	if (prop && *prop && !(plan->root_prop = lr_mount_prop_parse(prop, &all))) {
		lr_refuse(err, EINVAL, "unknown mount propagation \"%s\"", prop);
		lr_err_at(err, "linux.rootfsPropagation");
		return -EINVAL;
	}
	/* A mount made shared here may be the parent of a later one. */
	for (size_t i = 0; i < mounts->n; i++)
		for (size_t k = 0; k < mounts->v[i].options.n; k++)
			if (lr_mount_prop_parse(mounts->v[i].options.v[k], NULL) == MS_SHARED)
				plan->late_props = true;
	plan->unseen = all && plan->root_prop != MS_SHARED && !plan->late_props;

	plan->context = contexts[0];
	if (!type || !*type)
		return 0;
	for (size_t i = 0; i < LR_ARRAY_SIZE(contexts); i++)
		if (lr_streq(type, contexts[i])) {
			plan->context = contexts[i];
			return 0;
		}
	lr_refuse(err, EINVAL, "unknown SELinux mount context type \"%s\"", type);
	lr_err_at(err, "annotations.run.oci.mount_context_type");
	lr_err_hint(err, "one of context, fscontext, defcontext, rootcontext");
	return -EINVAL;
}

int lr_mount_plan(const struct oci_mounts *mounts, const struct lr_mount_opts *opts,
		  struct lr_arena *arena, struct lr_mount_plan **ret, struct lr_err *err)
{
	struct lr_mount_plan *plan = lr_new(arena, struct lr_mount_plan);

	if (plan) {
		plan->ops = lr_new_n(arena, mounts->n + 1, struct lr_mount_op);
		plan->maps = lr_new_n(arena, mounts->n + 1, struct lr_mount_map);
	}
	if (!plan || !plan->ops || !plan->maps) {
		lr_fail(err, ENOMEM, "mount plan");
		return -ENOMEM;
	}
	plan->opts = *opts;
	plan->root = LR_NOFD;
	int r = plan_opts(plan, mounts, err);
	for (size_t i = 0; i < mounts->n && r >= 0; i++, plan->n++)
		r = plan_one(plan, i, &mounts->v[i], arena, err);
	if (r < 0)
		return r;
	*ret = plan;
	return 0;
}

struct lr_mount_plan *lr_mount_copy(const struct lr_mount_plan *plan, struct lr_arena *arena)
{
	struct lr_mount_plan *p = lr_new(arena, struct lr_mount_plan);

	if (!p)
		return NULL;
	*p = *plan;
	p->ops = lr_new_n(arena, plan->n, struct lr_mount_op);
	p->maps = lr_new_n(arena, plan->n_maps, struct lr_mount_map);
	if (!p->ops || !p->maps)
		return NULL;
	if (plan->n)
		memcpy(p->ops, plan->ops, plan->n * sizeof(*p->ops));
	if (plan->n_maps)
		memcpy(p->maps, plan->maps, plan->n_maps * sizeof(*p->maps));
	return p;
}

bool lr_mount_can_be_bare(const struct lr_mount_plan *plan)
{
	for (size_t i = 0; i < plan->n; i++) {
		const struct lr_mount_op *op = &plan->ops[i];

		/* A source in the root may be made by an earlier mount. Without a cgroup namespace,
		 * the host's directory is bound. */
		if (op->names_files || op->inside || lr_mount_is_root(op) ||
		    (op->kind == LR_MOUNT_CGROUP && !plan->opts.cgroupns))
			return false;
	}
	return !lr_mount_no_new_api;
}

void lr_mount_go_bare(struct lr_mount_plan *plan, bool bare)
{
	plan->opts.elsewhere = bare;
}

void lr_mount_note_tmpfs(struct lr_mount_plan *plan)
{
	plan->notes_tmpfs = true;
	for (size_t i = 0; i < plan->n; i++)
		plan->ops[i].keep |= lr_mount_is_tmpfs(&plan->ops[i]);
}

bool lr_mount_has_tmpfs(const struct lr_mount_plan *plan, const char *dest, uint64_t *device)
{
	bool has = false;

	for (size_t i = 0; i < plan->n; i++) {
		const struct lr_mount_op *op = &plan->ops[i];
		if (op->kind == LR_MOUNT_REMOUNT || !lr_streq(op->dest, dest))
			continue;
		has = lr_mount_is_tmpfs(op);
		if (device)
			*device = op->device;
	}
	return has;
}

bool lr_mount_wants_cgroup(const struct lr_mount_plan *plan)
{
	for (size_t i = 0; i < plan->n; i++)
		if (plan->ops[i].kind == LR_MOUNT_CGROUP)
			return true;
	return false;
}

bool lr_mount_writes_contents(const struct lr_mount_plan *plan)
{
	for (size_t i = 0; i < plan->n; i++)
		if (plan->ops[i].o.copyup)
			return true;
	return false;
}
