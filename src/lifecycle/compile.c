/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle: config.json to plans. Reads the bundle and probes the host; makes nothing. */
#define LR_ROOM "config"
#include "src/lifecycle/compile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libocispec/ocispec.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/lifecycle/notify.h"
#include "src/sys/syscalls.h"

int lr_compile_bundle(const struct lr_create_opts *o, struct lr_arena *a, const char **ret,
		      struct lr_err *err)
{
	char real[PATH_MAX];

	/* Without a slash at the end: libc asks faccessat2 about it, which sandboxes refuse. */
	char *dir = lr_strdup(a, o->bundle ? o->bundle : ".");
	for (size_t n = dir ? strlen(dir) : 0; n > 1 && dir[n - 1] == '/'; n--)
		dir[n - 1] = '\0';
	if (!dir || !realpath(dir, real)) {
		lr_fail(err, errno, "bundle %s", o->bundle ? o->bundle : ".");
		return lr_err_hint(err, "--bundle names a directory with a config.json");
	}
	*ret = lr_strdup(a, real);
	return *ret ? 0 : lr_fail(err, ENOMEM, "read the bundle");
}

/* No component is empty, "." or "..". */
static bool is_straight(const char *path)
{
	if (path[0] != '/')
		return false;
	for (const char *p = path; *p; p += strcspn(p, "/")) {
		size_t n = strcspn(++p, "/");
		if (n == 0 || (n <= 2 && memcmp(p, "..", n) == 0))
			return false;
	}
	return true;
}

/*
 * The usual bundle has no symbolic link on the way to its config.json, which can be told by opening
 * that, and then its path is what realpath(3) would find with a call for each directory. Any
 * failure: the slow way, which knows what to say.
 */
static int open_straight(const struct lr_create_opts *o, struct lr_arena *a)
{
	const struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
		.resolve = RESOLVE_NO_SYMLINKS,
	};

	if (!o->bundle || !is_straight(o->bundle) || o->config)
		return -ELOOP;
	const char *path = lr_concat(a, o->bundle, "/config.json", NULL);
	return path ? lr_openat2(AT_FDCWD, path, &how) : -ENOMEM;
}

static int do_without_process(const struct oci_config **config, struct lr_arena *a,
			      struct lr_err *err)
{
	struct oci_config *own = lr_new(a, struct oci_config);

	if (!own)
		return lr_fail(err, ENOMEM, "read the bundle");
	*own = **config;
	own->process = &lr_no_process;
	*config = own;
	return 0;
}

int lr_compile_read(const struct lr_create_opts *o, struct lr_arena *a, const char **bundle,
		    const struct oci_config **config, struct lr_err *err)
{
	LR_CLEANUP_FD int straight = open_straight(o, a);
	char *text;
	size_t len;
	int r = 0;

	if (straight < 0)
		r = lr_compile_bundle(o, a, bundle, err);
	else if (!(*bundle = lr_strdup(a, o->bundle)))
		r = lr_fail(err, ENOMEM, "read the bundle");
	if (r < 0)
		return r;
	const char *path =
		o->config && o->config[0] == '/'
			? o->config
			: lr_strf(a, "%s/%s", *bundle, o->config ? o->config : "config.json");
	if (!path)
		return lr_fail(err, ENOMEM, "read the bundle");
	r = straight >= 0 ? oci_read_fd(straight, path, a, &text, &len, err)
			  : oci_read_file(AT_FDCWD, path, a, &text, &len, err);
	if (r == -ENOENT)
		lr_err_hint(err, "a bundle is a directory with a config.json; `lean-runtime spec` "
				 "makes one");
	if (r >= 0)
		r = oci_config_decode(text, len, a, config, err);
	if (r >= 0 && o->two_phase && !(*config)->process)
		r = do_without_process(config, a, err);
	return r < 0 ? r : lr_compile_check(*config, err);
}

int lr_compile_no_process(struct lr_err *err)
{
	lr_refuse(err, EINVAL, "the process is missing");
	lr_err_hint(err, "config.json has no program to start: add one, with args and cwd");
	return lr_err_at(err, "process");
}

int lr_compile_check(const struct oci_config *c, struct lr_err *err)
{
	if (!c->root || !c->root->path)
		return lr_err_at((lr_refuse(err, EINVAL, "the root file system is missing"), err),
				 "root.path");
	if (!c->process)
		return lr_compile_no_process(err);
	return lr_hook_check(c->hooks, err);
}

/* The mounts of config.json, and the one for readiness messages. */
static int all_mounts(const struct lr_compiled *c, const char *root, const char *id,
		      struct lr_arena *a, struct oci_mounts *ret, struct lr_err *err)
{
	static const char *options[] = {"bind", "ro", "nosuid", "nodev", "noexec", NULL};
	const struct oci_mounts *given = c->lean.template_ ? &c->lean.own : &c->config->mounts;
	size_t n = given->n;

	*ret = *given;
	if (!c->notify)
		return 0;
	struct oci_mount *v = lr_new_n(a, n + 1, struct oci_mount);
	char *source = lr_strf(a, "%s/%s/" LR_NOTIFY_DIR, root, id);
	if (!v || !source)
		return lr_fail(err, ENOMEM, "plan");
	if (n)
		memcpy(v, given->v, n * sizeof(*v));
	v[n] = (struct oci_mount){
		.destination = LR_NOTIFY_TARGET,
		.type = "bind",
		.source = source,
		.options = {.v = options, .n = LR_ARRAY_SIZE(options) - 1},
	};
	*ret = (struct oci_mounts){.v = v, .n = n + 1};
	return 0;
}

static int compile_files(struct lr_compiled *c, const struct oci_linux *l,
			 const struct lr_create_opts *o, const char *root, struct lr_arena *a,
			 struct lr_err *err)
{
	struct lr_init_plan *p = &c->init;
	bool userns = lr_ns_private(&p->ns, LR_NS_USER);
	const struct lr_rootfs_opts root_opts = {
		.bundle = c->bundle,
		.mount_label = l->mount_label,
		.mounts = &c->config->mounts,
		.no_pivot = o->no_pivot,
		.new_mount_ns = p->ns.create & CLONE_NEWNS,
		.userns = userns,
		.prepared = c->lean.template_,
	};
	struct lr_mount_opts mount_opts = {
		.bundle = c->bundle,
		.mount_label = l->mount_label,
		.mount_context_type =
			lr_annotation(&c->config->annotations, "run.oci.mount_context_type"),
		.rootfs_propagation = l->rootfs_propagation,
		.no_fallback = o->no_mount_fallback,
		.userns = userns,
		.cgroupns = lr_ns_private(&p->ns, LR_NS_CGROUP),
		.netns = lr_ns_private(&p->ns, LR_NS_NET),
		.uid_map = &l->uid_mappings,
		.gid_map = &l->gid_mappings,
		.userns_path = p->ns.join[LR_NS_USER],
		.elsewhere = c->lean.template_,
	};
	struct oci_mounts mounts;
	bool ready = c->lean.template_; /* the slot has the rest */

	int r = lr_lsm_check_mount_label(l->mount_label, err);
	if (r >= 0)
		r = lr_rootfs_plan(c->config->root, l->rootfs_propagation, &l->masked_paths,
				   &l->readonly_paths, &root_opts, a, &p->rootfs, err);
	if (r >= 0)
		r = all_mounts(c, root, o->id, a, &mounts, err);
	mount_opts.root = r < 0 ? NULL : p->rootfs->path;
	if (r >= 0)
		r = lr_mount_plan(&mounts, &mount_opts, a, &p->mounts, err);
	if (r < 0)
		return r;
	p->dev_is_ours = !ready && lr_device_needs_dev(&mounts);
	const struct lr_device_opts dev_opts = {.userns = userns,
						.needs_dev = p->dev_is_ours,
						.uid_map = &l->uid_mappings,
						.gid_map = &l->gid_mappings};
	return lr_device_plan(&l->devices, &dev_opts, a, &p->devices, err);
}

static int compile_sysctl(struct lr_compiled *c, const struct oci_linux *l, struct lr_arena *a,
			  struct lr_err *err)
{
	struct lr_init_plan *p = &c->init;
	const struct {
		enum lr_ns_kind kind;
		unsigned own;
	} kinds[] = {{LR_NS_IPC, LR_SYSCTL_IPC},
		     {LR_NS_NET, LR_SYSCTL_NET},
		     {LR_NS_UTS, LR_SYSCTL_UTS},
		     {LR_NS_USER, LR_SYSCTL_USER}};
	unsigned own = 0;

	for (size_t i = 0; i < LR_ARRAY_SIZE(kinds); i++)
		if (lr_ns_private(&p->ns, kinds[i].kind))
			own |= kinds[i].own;
	if ((c->config->hostname || c->config->domainname) && !(own & LR_SYSCTL_UTS)) {
		lr_refuse(err, EINVAL, "a host name of its own needs a UTS namespace");
		lr_err_hint(err,
			    "add {\"type\": \"uts\"} to linux.namespaces, or leave the name out");
		return lr_err_at(err, c->config->hostname ? "hostname" : "domainname");
	}
	p->hostname = c->config->hostname;
	p->domainname = c->config->domainname;
	return lr_sysctl_plan(&l->sysctl, own, a, &p->sysctl, err);
}

/* What the cgroup mount shows; computed only for configs that have one. */
static int cgroup_view(const struct lr_cgroup_layout *layout, const struct lr_cgroup_ref *ref,
		       struct lr_arena *a, const struct lr_mount_cgroup_view **ret,
		       struct lr_err *err)
{
	struct lr_mount_cgroup_view *view = lr_new(a, struct lr_mount_cgroup_view);
	struct lr_mount_cgroup *v = lr_new_n(a, layout->n + 1, struct lr_mount_cgroup);
	size_t n = 0;

	if (!view || !v)
		return lr_fail(err, ENOMEM, "plan");
	for (size_t i = 0; i < ref->n; i++)
		for (size_t j = 0; j < layout->n; j++)
			if (lr_streq(ref->v[i].hierarchy, layout->hierarchies[j].name))
				v[n++] = (struct lr_mount_cgroup){
					.hierarchy = ref->v[i].hierarchy,
					.host_dir = ref->v[i].path,
					.mountpoint = layout->hierarchies[j].mountpoint,
				};
	*view = (struct lr_mount_cgroup_view){.v2 = layout->mode == LR_CGROUP_V2, .n = n, .v = v};
	*ret = view;
	return 0;
}

/* What the lean profile makes of the config; the rest is compiled from what is left of it. */
static int compile_lean(const struct lr_runtime *rt, const struct lr_create_opts *o,
			const char *root, struct lr_compiled *c, struct lr_arena *a,
			struct lr_err *err)
{
	struct lr_lean_profile profile;

	int r = lr_lean_profile(rt->lean, &c->config->annotations, &profile, err);
	if (r < 0 || !profile.on)
		return r;
	const struct lr_lean_facts facts = {
		.id = o->id,
		.bundle = c->bundle,
		.store_path = root,
		.two_phase = o->two_phase,
		.no_pivot = o->no_pivot,
		.rootless = lr_is_rootless(rt),
		.manager_is_fs = rt->manager == LR_CGROUP_CGROUPFS,
		.cgroup_v2 = lr_cgroup_is_v2(),
	};
	r = lr_lean_plan(&profile, c->config, &facts, a, &c->lean, err);
	if (r >= 0)
		c->config = c->lean.config;
	return r;
}

/* The host's id of the container's root. */
static uint32_t root_on_host(const struct oci_id_mappings *m, uint32_t own)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->v[i].container_id == 0 && m->v[i].size > 0)
			return m->v[i].host_id;
	return own;
}

static struct lr_cgroup_opts cgroup_opts(const struct lr_runtime *rt,
					 const struct lr_create_opts *o,
					 const struct lr_compiled *c)
{
	const struct oci_linux *l = c->config->linux_;
	struct lr_cgroup_opts opts = {
		.id = o->id,
		.manager = rt->manager,
		.annotations = &c->config->annotations,
		.rootless = lr_is_rootless(rt),
		.terminal = c->config->process->terminal,
		.delegate = lr_annotation(&c->config->annotations, LR_CGROUP_DELEGATE),
	};

	if (opts.delegate) {
		opts.root_uid = l ? root_on_host(&l->uid_mappings, rt->euid) : rt->euid;
		opts.root_gid = l ? root_on_host(&l->gid_mappings, getegid()) : getegid();
	}
	return opts;
}

int lr_compile_take(const struct lr_runtime *rt, const struct lr_create_opts *o,
		    const struct lr_store *store, struct lr_arena *a, struct lr_compiled *c,
		    struct lr_err *err)
{
	if (!c->lean.profile.on)
		return 0;
	const struct lr_cgroup_opts cgroup = cgroup_opts(rt, o, c);
	const struct lr_lean_env env = {store->fd, store->path, o->id, c->bundle, &cgroup, false};
	int r = lr_lean_take(&c->lean, &env, a, &c->hold, err);
	if (r < 0)
		return r;
	c->init.lean = &c->hold.enter;
	c->record.lean_slot = c->hold.slot;
	c->record.lean_net = c->hold.net;
	if (!c->lean.pool)
		return 0;
	c->init.cgroup = c->hold.cgroup;
	c->init.cgroup_view = c->hold.view;
	c->record.lean_cgroup = true;
	return lr_cgroup_to_record(lr_cgroup_plan_ref(c->hold.cgroup), a, &c->record, err);
}

int lr_compile_warm(const struct lr_runtime *rt, const struct lr_create_opts *o, unsigned n,
		    const struct lr_store *store, struct lr_arena *a, struct lr_compiled *c,
		    struct lr_err *err)
{
	const struct lr_cgroup_opts cgroup = cgroup_opts(rt, o, c);
	const struct lr_lean_env env = {store->fd, store->path, o->id, c->bundle, &cgroup, false};

	return lr_lean_warm(&c->lean, &env, n, a, err);
}

static int compile_cgroup(const struct lr_runtime *rt, const struct lr_create_opts *o,
			  struct lr_compiled *c, const struct oci_linux *l, struct lr_arena *a,
			  struct lr_err *err)
{
	struct lr_cgroup_layout *layout = o->given ? o->given->layout : NULL;
	const struct lr_cgroup_opts opts = cgroup_opts(rt, o, c);

	if (c->lean.pool)
		return 0; /* lr_compile_take */
	int r = layout ? 0 : lr_cgroup_probe(a, &layout, err);
	c->layout = layout;
	if (r >= 0)
		r = lr_cgroup_plan(l->cgroups_path, l->resources, layout, &opts, a, &c->init.cgroup,
				   err);
	if (r < 0)
		return r;
	const struct lr_cgroup_ref *ref = lr_cgroup_plan_ref(c->init.cgroup);
	if (lr_mount_wants_cgroup(c->init.mounts)) {
		r = cgroup_view(layout, ref, a, &c->init.cgroup_view, err);
		if (r < 0)
			return r;
	}
	return lr_cgroup_to_record(ref, a, &c->record, err);
}

/* Annotations are wishes; one that cannot be granted is told, and no error. But a program for
 * another kind of machine had better not be executed on this one. */
static int check_annotations(const struct lr_runtime *rt, const struct oci_config *c,
			     struct lr_err *err)
{
	static const char *const ignored[][2] = {
		{"run.oci.seccomp.plugins", "have an agent listen at linux.seccomp.listenerPath"},
		{"run.oci.systemd.force_cgroup_v1", "it is not supported"},
		{"run.oci.timens_offset", "use linux.timeOffsets"},
	};
	static const char subgroup[] = "run.oci.systemd.subgroup";

	for (size_t i = 0; i < LR_ARRAY_SIZE(ignored); i++)
		if (lr_annotation(&c->annotations, ignored[i][0]))
			lr_warn("annotation %s is ignored: %s", ignored[i][0], ignored[i][1]);
	if (rt->manager != LR_CGROUP_SYSTEMD && lr_annotation(&c->annotations, subgroup))
		lr_warn("annotation %s is ignored: it is for the systemd cgroup manager "
			"(--systemd-cgroup)",
			subgroup);
	for (size_t i = 0; i < c->annotations.n; i++)
		if (rt->manager != LR_CGROUP_SYSTEMD &&
		    lr_has_prefix(c->annotations.v[i].key, "org.systemd.property."))
			lr_debug("annotation %s is for the systemd cgroup manager: ignored",
				 c->annotations.v[i].key);
	const char *const handler = lr_annotation(&c->annotations, "run.oci.handler");
	if (!handler || !*handler)
		return 0;
	lr_refuse(err, EOPNOTSUPP, "there is no handler \"%s\" to run the program with", handler);
	lr_err_hint(
		err,
		"programs are executed by the kernel; binfmt_misc can give them an interpreter");
	return lr_err_at(err, "annotations[\"run.oci.handler\"]");
}

static int compile_hooks(struct lr_compiled *c, struct lr_err *err)
{
	const struct oci_hooks *h = c->config->hooks;
	struct lr_hook_opts *opts = &c->init.hook_opts;

	*opts = (struct lr_hook_opts)LR_HOOK_OPTS_INIT;
	opts->dir = c->bundle;
	c->init.hooks = h;
	if (!h)
		return 0;
	c->record.hooks = (h->poststart.n ? LR_RECORD_POSTSTART : 0) |
			  (h->poststop.n ? LR_RECORD_POSTSTOP : 0);
	return lr_open_hook_outputs(&c->config->annotations, opts, err);
}

/* What later verbs need of config.json: the process for exec, hooks of start and delete. */
static int keep_config(struct lr_compiled *c, const struct oci_linux *l, struct lr_arena *a,
		       struct lr_err *err)
{
	bool has_process = c->config->process != &lr_no_process;
	const struct oci_hooks hooks = {
		.poststart =
			c->config->hooks ? c->config->hooks->poststart : (struct oci_hook_list){0},
		.poststop =
			c->config->hooks ? c->config->hooks->poststop : (struct oci_hook_list){0},
	};
	const struct oci_linux kept_linux = {
		.personality = l->personality,
		.memory_policy = l->memory_policy,
		.mount_label = l->mount_label,
		.intel_rdt = l->intel_rdt,
	};
	const struct oci_config kept = {
		.oci_version = c->config->oci_version,
		.root = c->config->root,
		.process = has_process ? c->config->process : NULL,
		.hooks = c->record.hooks ? &hooks : NULL,
		.linux_ = &kept_linux,
	};

	c->kept = oci_config_encode(&kept, false, a, &c->kept_len);
	return c->kept ? 0 : lr_fail(err, ENOMEM, "plan");
}

static int fill_record(struct lr_compiled *c, const struct lr_create_opts *o, struct lr_arena *a,
		       struct lr_err *err)
{
	char now[40];

	lr_timestamp(now);
	struct lr_record *r = &c->record;
	r->id = o->id;
	r->oci_version = OCI_VERSION;
	r->bundle = c->bundle;
	r->rootfs = c->init.rootfs->path;
	r->created = lr_strdup(a, now);
	r->annotations = c->config->annotations;
	r->flags = LR_RECORD_CREATING;
	if (c->config->process == &lr_no_process)
		r->flags |= LR_RECORD_NO_PROGRAM;
	r->notify = c->notify;
	r->has_seccomp = c->seccomp.given;
	for (int k = 0; k < LR_NS_KINDS; k++)
		if (lr_ns_private(&c->init.ns, (enum lr_ns_kind)k))
			r->namespaces |= lr_ns_flag((enum lr_ns_kind)k);
	c->init.state = lr_hook_state(r, NULL, 0);
	return r->created ? 0 : lr_fail(err, ENOMEM, "plan");
}

static int compile_process(const struct lr_runtime *rt, const struct lr_create_opts *o,
			   struct lr_compiled *c, const struct oci_linux *l, struct lr_arena *a,
			   struct lr_err *err)
{
	const struct lr_process_opts opts = {
		.annotations = &c->config->annotations,
		.personality = l->personality,
		.mempolicy = l->memory_policy,
		.rootless = lr_is_rootless(rt),
		.preserve_fds = o->preserve_fds,
		.listen_fds = c->listen_fds,
		.keyring = o->no_new_keyring ? NULL : lr_strf(a, "_ses.%s", o->id),
	};
	struct oci_process process = *c->config->process;

	if (c->notify) {
		const char **env = lr_new_n(a, process.env.n + 2, const char *);
		if (!env)
			return lr_fail(err, ENOMEM, "plan");
		for (size_t i = 0; i < process.env.n; i++)
			env[i] = process.env.v[i];
		env[process.env.n++] = LR_NOTIFY_ENV;
		process.env.v = env;
	}
	int r = lr_compile_process(&process, &opts, a, &c->init.process, err);
	c->init.process.tty.mount = true;
	return r;
}

/* What has the container's own name in it: its cgroup and its record. */
static int compile_place(const struct lr_runtime *rt, const struct lr_create_opts *o,
			 struct lr_compiled *c, const struct oci_linux *l, struct lr_arena *a,
			 struct lr_err *err)
{
	int r = compile_cgroup(rt, o, c, l, a, err);

	if (r >= 0)
		r = compile_hooks(c, err);
	return r < 0 ? r : fill_record(c, o, a, err);
}

/*
 * What was compiled for a template, with the parts that are a container's own: the process (its
 * arguments may be, too), the cgroup, the record, and what applying it will change.
 */
static int compile_again(const struct lr_runtime *rt, const struct lr_create_opts *o,
			 struct lr_arena *a, struct lr_compiled *ret, struct lr_err *err)
{
	static const struct oci_linux nothing;
	const struct lr_given *g = o->given;
	struct oci_config *config = lr_new(a, struct oci_config);
	struct lr_compiled c = *g->master;

	if (!config)
		return lr_fail(err, ENOMEM, "plan");
	*config = *c.config; /* the lean profile may have changed it */
	config->process = g->config->process;
	c.config = config;
	c.record = (struct lr_record){0};
	c.kept = g->kept;
	c.kept_len = g->kept_len;
	c.init.arena = a;
	c.init.mounts = lr_mount_copy(g->master->init.mounts, a);
	if (!c.init.mounts)
		return lr_fail(err, ENOMEM, "plan");
	const struct oci_linux *l = config->linux_ ? config->linux_ : &nothing;
	int r = compile_process(rt, o, &c, l, a, err);
	c.init.process.keep_bounding = c.lean.keep_bounding;
	if (r >= 0)
		r = lr_process_given(config->process, g, a, &c.init.process, err);
	if (r >= 0)
		r = lr_rdt_plan(l->intel_rdt, o->id, a, &c.rdt, err);
	if (r >= 0)
		r = compile_place(rt, o, &c, l, a, err);
	if (r >= 0)
		*ret = c;
	return r;
}

/* Every room takes the id mappings from the config. */
static int fill_id_maps(const struct lr_ns_caller *caller, struct lr_compiled *c,
			struct lr_arena *a, struct lr_err *err)
{
	const struct oci_linux *l = c->config->linux_, *mapped = l;
	int r = l ? lr_ns_default_maps(l, caller, a, &mapped, err) : 0;

	if (r < 0 || mapped == l)
		return r;
	struct oci_config *config = lr_new(a, struct oci_config);
	if (!config)
		return lr_fail(err, ENOMEM, "plan");
	*config = *c->config;
	config->linux_ = mapped;
	c->config = config;
	return 0;
}

int lr_compile(const struct lr_runtime *rt, const struct lr_create_opts *o, const char *root,
	       struct lr_arena *a, struct lr_compiled *ret, struct lr_err *err)
{
	static const struct oci_linux nothing;
	const struct lr_ns_caller caller = {
		.euid = rt->euid, .egid = getegid(), .confined = lr_is_rootless(rt)};
	struct lr_compiled c = {
		.hold = LR_LEAN_HOLD_NONE,
		.init = {.root = LR_ROOTFS_STATE_INIT,
			 .arena = a,
			 .go = LR_NOFD,
			 .made_devices = LR_NOFD,
			 .answer = LR_NOFD},
		.notify = !o->given && getenv("NOTIFY_SOCKET") != NULL,
	};

	if (o->given && o->given->master)
		return compile_again(rt, o, a, ret, err);
	if (o->given) {
		c.config = o->given->config;
		c.bundle = o->given->bundle;
	}
	if (o->read_config) {
		c.config = o->read_config;
		c.bundle = o->read_bundle;
	}
	int r = c.listen_fds = o->given ? 0 : lr_listen_fds(err);
	if (r >= 0 && !c.config)
		r = lr_compile_read(o, a, &c.bundle, &c.config, err);
	if (r >= 0)
		r = compile_lean(rt, o, root, &c, a, err);
	if (r >= 0)
		r = fill_id_maps(&caller, &c, a, err);
	if (r < 0)
		return r;
	const struct oci_linux *l = c.config->linux_ ? c.config->linux_ : &nothing;
	r = check_annotations(rt, c.config, err);
	if (r >= 0)
		r = lr_ns_plan(l, &caller, a, &c.init.ns, err);
	if (r >= 0)
		r = compile_files(&c, l, o, root, a, err);
	if (r >= 0)
		r = compile_sysctl(&c, l, a, err);
	if (r >= 0)
		r = compile_process(rt, o, &c, l, a, err);
	c.init.process.keep_bounding = c.lean.keep_bounding;
	if (r >= 0)
		r = lr_netdev_plan(&l->net_devices, &l->namespaces, a, &c.netdev, err);
	if (r >= 0)
		r = lr_rdt_plan(l->intel_rdt, o->id, a, &c.rdt, err);
	if (r >= 0)
		r = lr_seccomp_plan(l->seccomp, &c.config->annotations, a, &c.seccomp, err);
	if (r >= 0)
		r = compile_place(rt, o, &c, l, a, err);
	if (r >= 0)
		r = keep_config(&c, l, a, err);
	if (r >= 0 && o->given)
		r = lr_process_given(c.config->process, o->given, a, &c.init.process, err);
	if (r >= 0)
		*ret = c;
	return r;
}
