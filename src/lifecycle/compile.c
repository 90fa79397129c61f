/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lifecycle: config.json to plans, as a table of sections (below). Probes the host; makes nothing
 * but the files that hooks write to.
 */
#define LR_ROOM "config"
#include "src/lifecycle/compile.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libocispec/ocispec.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/lifecycle/notify.h"

/* What a section works with. */
struct work {
	const struct lr_runtime *rt;
	const struct lr_create_opts *o;
	const char *root; /* of the store, absolute */
	struct lr_ns_caller caller;
	const struct oci_linux *l; /* of c->config, also if that has none */
	struct lr_compiled *c;
	struct lr_arena *a;
};

static void set_config(struct work *w, const struct oci_config *config)
{
	static const struct oci_linux nothing;

	w->c->config = config;
	w->l = config->linux_ ? config->linux_ : &nothing;
}

/* The mounts of config.json, and the one for readiness messages. */
static int all_mounts(const struct work *w, struct oci_mounts *ret, struct lr_err *err)
{
	const struct lr_compiled *c = w->c;
	static const char *options[] = {"bind", "ro", "nosuid", "nodev", "noexec", NULL};
	const struct oci_mounts *given = c->lean.template_ ? &c->lean.own : &c->config->mounts;
	size_t n = given->n;

	*ret = *given;
	if (!c->notify)
		return 0;
	struct oci_mount *v = lr_new_n(w->a, n + 1, struct oci_mount);
	char *source = lr_strf(w->a, "%s/%s/" LR_NOTIFY_DIR, w->root, w->o->id);
	if (!v || !source)
		return lr_fail(err, ENOMEM, "make the plan");
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

/* Those that run before the pivot: createContainer hooks in there, and others that enter the mount
 * namespace by themselves, to bind files of the host's into the root (NVIDIA's). */
static bool looks_back(const struct oci_hooks *h)
{
	return h && (h->prestart.n || h->create_runtime.n || h->create_container.n);
}

static int compile_tree(struct work *w, struct lr_err *err)
{
	struct lr_compiled *c = w->c;
	struct lr_init_plan *p = &c->init;
	struct oci_mounts mounts;
	const struct lr_tree_opts opts = {
		.bundle = c->bundle,
		.all = &c->config->mounts,
		.here = &mounts,
		.propagation = w->l->rootfs_propagation,
		.mount_context_type =
			oci_map_get(&c->config->annotations, "run.oci.mount_context_type"),
		.userns_path = p->ns.join[LR_NS_USER],
		.no_pivot = w->o->no_pivot,
		.no_fallback = w->o->no_mount_fallback,
		.new_mount_ns = p->ns.create & CLONE_NEWNS,
		.userns = lr_ns_private(&p->ns, LR_NS_USER),
		.cgroupns = lr_ns_private(&p->ns, LR_NS_CGROUP),
		.netns = lr_ns_private(&p->ns, LR_NS_NET),
		.kind = c->lean.template_ ? LR_TREE_FROM_TEMPLATE : LR_TREE_WHOLE,
		.rootless = lr_is_rootless(w->rt),
		.looks_back = looks_back(c->config->hooks),
	};

	int r = lr_lsm_check_mount_label(w->l->mount_label, err);
	if (r >= 0)
		r = all_mounts(w, &mounts, err);
	return r < 0 ? r : lr_tree_plan(c->config->root, w->l, &opts, w->a, &p->tree, err);
}

static int compile_names(struct work *w, struct lr_err *err)
{
	struct lr_compiled *c = w->c;
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
	return lr_sysctl_plan(&w->l->sysctl, own, w->a, &p->sysctl, err);
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
		return lr_fail(err, ENOMEM, "make the plan");
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

/* The lean profile may change the config; the sections below compile what it makes of it. */
static int compile_lean(struct work *w, struct lr_err *err)
{
	struct lr_lean_profile profile;
	struct lr_compiled *c = w->c;

	int r = lr_lean_profile(w->rt->lean, &c->config->annotations, &profile, err);
	if (r < 0 || !profile.on)
		return r;
	const struct lr_lean_facts facts = {
		.id = w->o->id,
		.bundle = c->bundle,
		.store_path = w->root,
		.two_phase = w->o->two_phase,
		.no_pivot = w->o->no_pivot,
		.rootless = lr_is_rootless(w->rt),
		.manager_is_fs = w->rt->manager == LR_CGROUP_CGROUPFS,
		.cgroup_v2 = lr_cgroup_is_v2(),
	};
	r = lr_lean_plan(&profile, c->config, &facts, w->a, &c->lean, err);
	if (r >= 0)
		set_config(w, c->lean.config);
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
		.delegate = oci_map_get(&c->config->annotations, LR_CGROUP_DELEGATE),
	};

	if (opts.delegate) {
		opts.root_uid = l ? root_on_host(&l->uid_mappings, rt->euid) : rt->euid;
		opts.root_gid = l ? root_on_host(&l->gid_mappings, rt->egid) : rt->egid;
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
	c->init.tree.cgroup = c->hold.view;
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

static int compile_cgroup(struct work *w, struct lr_err *err)
{
	struct lr_compiled *c = w->c;
	struct lr_cgroup_layout *layout = w->o->given ? w->o->given->layout : NULL;
	const struct lr_cgroup_opts opts = cgroup_opts(w->rt, w->o, c);

	if (c->lean.pool)
		return 0; /* lr_compile_take */
	int r = layout ? 0 : lr_cgroup_probe(w->a, &layout, err);
	c->layout = layout;
	if (r >= 0)
		r = lr_cgroup_plan(w->l->cgroups_path, w->l->resources, layout, &opts, w->a,
				   &c->init.cgroup, err);
	if (r < 0)
		return r;
	const struct lr_cgroup_ref *ref = lr_cgroup_plan_ref(c->init.cgroup);
	if (lr_mount_wants_cgroup(c->init.tree.mounts)) {
		r = cgroup_view(layout, ref, w->a, &c->init.tree.cgroup, err);
		if (r < 0)
			return r;
	}
	return lr_cgroup_to_record(ref, w->a, &c->record, err);
}

/* An annotation that cannot be honoured is warned about, and no error. But a handler is refused: a
 * program for another kind of machine must not be executed on this one. */
static int check_annotations(struct work *w, struct lr_err *err)
{
	const struct oci_config *c = w->c->config;
	bool systemd = w->rt->manager == LR_CGROUP_SYSTEMD;
	static const char *const ignored[][2] = {
		{"run.oci.seccomp.plugins", "have an agent listen at linux.seccomp.listenerPath"},
		{"run.oci.systemd.force_cgroup_v1", "it is not supported"},
		{"run.oci.timens_offset", "use linux.timeOffsets"},
	};
	static const char subgroup[] = "run.oci.systemd.subgroup";

	for (size_t i = 0; i < LR_ARRAY_SIZE(ignored); i++)
		if (oci_map_get(&c->annotations, ignored[i][0]))
			lr_warn("annotation %s is ignored: %s", ignored[i][0], ignored[i][1]);
	if (!systemd && oci_map_get(&c->annotations, subgroup))
		lr_warn("annotation %s is ignored: it is for the systemd cgroup manager "
			"(--systemd-cgroup)",
			subgroup);
	for (size_t i = 0; i < c->annotations.n; i++)
		if (!systemd && lr_has_prefix(c->annotations.v[i].key, "org.systemd.property."))
			lr_debug("annotation %s is for the systemd cgroup manager: ignored",
				 c->annotations.v[i].key);
	const char *const handler = oci_map_get(&c->annotations, "run.oci.handler");
	if (!handler || !*handler)
		return 0;
	lr_refuse(err, EOPNOTSUPP, "there is no handler \"%s\" to run the program with", handler);
	lr_err_hint(
		err,
		"programs are executed by the kernel; binfmt_misc can give them an interpreter");
	return lr_err_at(err, "annotations[\"run.oci.handler\"]");
}

static int compile_hooks(struct work *w, struct lr_err *err)
{
	struct lr_compiled *c = w->c;
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
static int keep_config(struct work *w, struct lr_err *err)
{
	struct lr_compiled *c = w->c;
	const struct oci_linux *l = w->l;
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

	c->kept = oci_config_encode(&kept, false, w->a, &c->kept_len);
	return c->kept ? 0 : lr_fail(err, ENOMEM, "make the plan");
}

static int fill_record(struct work *w, struct lr_err *err)
{
	struct lr_compiled *c = w->c;
	char now[40];

	lr_timestamp(now);
	struct lr_record *r = &c->record;
	r->id = w->o->id;
	r->oci_version = OCI_VERSION;
	r->bundle = c->bundle;
	r->rootfs = c->init.tree.rootfs->path;
	r->created = lr_strdup(w->a, now);
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
	return r->created ? 0 : lr_fail(err, ENOMEM, "make the plan");
}

/* Sockets and readiness, as a service manager's environment has them. A library's caller has none
 * for us. */
static int take_environment(struct work *w, struct lr_err *err)
{
	struct lr_compiled *c = w->c;

	if (w->o->given)
		return 0;
	c->notify = getenv("NOTIFY_SOCKET") != NULL;
	c->listen_fds = lr_listen_fds(err);
	return c->listen_fds;
}

static int compile_process(struct work *w, struct lr_err *err)
{
	struct lr_compiled *c = w->c;
	const struct lr_process_opts opts = {
		.annotations = &c->config->annotations,
		.personality = w->l->personality,
		.mempolicy = w->l->memory_policy,
		.rootless = lr_is_rootless(w->rt),
		.preserve_fds = w->o->preserve_fds,
		.listen_fds = c->listen_fds,
		.keyring = w->o->no_new_keyring ? NULL : lr_strf(w->a, "_ses.%s", w->o->id),
	};
	struct oci_process process = *c->config->process;

	if (c->notify) {
		const char **env = lr_new_n(w->a, process.env.n + 2, const char *);
		if (!env)
			return lr_fail(err, ENOMEM, "make the plan");
		for (size_t i = 0; i < process.env.n; i++)
			env[i] = process.env.v[i];
		env[process.env.n++] = LR_NOTIFY_ENV;
		process.env.v = env;
	}
	int r = lr_compile_process(&process, &opts, w->a, &c->init.process, err);
	c->init.process.tty.mount = true;
	c->init.process.keep_bounding = c->lean.keep_bounding;
	if (r >= 0 && w->o->given)
		r = lr_process_given(c->config->process, w->o->given, w->a, &c->init.process, err);
	return r;
}

/* Every room takes the id mappings from the config, so those that a new user namespace lacks there
 * are filled in. */
static int fill_id_maps(struct work *w, struct lr_err *err)
{
	const struct oci_linux *l = w->c->config->linux_, *mapped = l;
	int r = l ? lr_ns_default_maps(l, &w->caller, w->a, &mapped, err) : 0;

	if (r < 0 || mapped == l)
		return r;
	struct oci_config *config = lr_new(w->a, struct oci_config);
	if (!config)
		return lr_fail(err, ENOMEM, "make the plan");
	*config = *w->c->config;
	config->linux_ = mapped;
	set_config(w, config);
	return 0;
}

static int compile_namespaces(struct work *w, struct lr_err *err)
{
	return lr_ns_plan(w->l, &w->caller, w->a, &w->c->init.ns, err);
}

static int compile_netdev(struct work *w, struct lr_err *err)
{
	return lr_netdev_plan(&w->l->net_devices, &w->l->namespaces, w->a, &w->c->netdev, err);
}

static int compile_rdt(struct work *w, struct lr_err *err)
{
	return lr_rdt_plan(w->l->intel_rdt, w->o->id, w->a, &w->c->rdt, err);
}

static int compile_seccomp(struct work *w, struct lr_err *err)
{
	return lr_seccomp_plan(w->l->seccomp, &w->c->config->annotations, w->a, &w->c->seccomp,
			       err);
}

/*
 * In this order, since a section takes what those above it have found. A template of liblean's goes
 * through all of them once; for each of its containers, only the sections marked EACH are repeated,
 * which depend on more than the config.
 */
static const struct {
	int (*run)(struct work *w, struct lr_err *err);
	enum { ONCE, EACH } when;
} sections[] = {
	{take_environment, ONCE}, /* the caller's */
	{compile_lean, ONCE},     /* changes the config */
	{fill_id_maps, ONCE},     /* so does this */
	{check_annotations, ONCE},
	{compile_namespaces, ONCE}, /* which are private decides much below */
	{compile_tree, ONCE},       /* root, mounts, /dev */
	{compile_names, ONCE},      /* host name and sysctl */
	{compile_process, EACH},    /* its arguments are the container's own */
	{compile_netdev, ONCE},
	{compile_rdt, EACH}, /* named by the id */
	{compile_seccomp, ONCE},
	{compile_cgroup, EACH}, /* named by the id; asks for the mounts */
	{compile_hooks, EACH},  /* opens files for their output */
	{fill_record, EACH},    /* from all of the above */
	{keep_config, ONCE},    /* and what the record keeps */
};

static int run_sections(struct work *w, bool again, struct lr_err *err)
{
	int r = 0;

	for (size_t i = 0; i < LR_ARRAY_SIZE(sections) && r >= 0; i++)
		if (!again || sections[i].when == EACH)
			r = sections[i].run(w, err);
	return r < 0 ? r : 0;
}

/* Takes what the template has, and copies what is changed when it is applied. */
static int begin_again(struct work *w, struct lr_err *err)
{
	const struct lr_given *g = w->o->given;
	struct oci_config *config = lr_new(w->a, struct oci_config);

	if (!config)
		return lr_fail(err, ENOMEM, "make the plan");
	*w->c = *g->master;
	*config = *w->c->config; /* the lean profile may have changed it */
	config->process = g->config->process;
	set_config(w, config);
	w->c->record = (struct lr_record){0};
	w->c->kept = g->kept;
	w->c->kept_len = g->kept_len;
	w->c->init.arena = w->a;
	return lr_tree_copy(&g->master->init.tree, w->a, &w->c->init.tree, err);
}

static int begin(struct work *w, struct lr_err *err)
{
	const struct lr_create_opts *o = w->o;
	const struct oci_config *config = o->given ? o->given->config : o->read_config;
	const char *bundle = o->given ? o->given->bundle : o->read_bundle;

	*w->c = (struct lr_compiled){
		.hold = LR_LEAN_HOLD_NONE,
		.init = {.tree = LR_TREE_NONE, .arena = w->a, .go = LR_NOFD, .answer = LR_NOFD},
	};
	int r = config ? 0 : lr_compile_read(o, w->a, &bundle, &config, err);
	if (r < 0)
		return r;
	w->c->bundle = bundle;
	set_config(w, config);
	return 0;
}

int lr_compile(const struct lr_runtime *rt, const struct lr_create_opts *o, const char *root,
	       struct lr_arena *a, struct lr_compiled *ret, struct lr_err *err)
{
	const struct lr_compiled *master = o->given ? o->given->master : NULL;
	/* The lean profile decides by the root and the id; where it would decide otherwise now, all
	 * is compiled anew. */
	bool again = master && lr_lean_plan_holds(&master->lean, o->id);
	struct lr_compiled c = {0};
	struct work w = {
		.rt = rt,
		.o = o,
		.root = root,
		.caller = {.euid = rt->euid, .egid = rt->egid, .confined = lr_is_rootless(rt)},
		.c = &c,
		.a = a,
	};

	int r = again ? begin_again(&w, err) : begin(&w, err);
	if (r >= 0)
		r = run_sections(&w, again, err);
	if (r >= 0)
		*ret = c;
	return r;
}
