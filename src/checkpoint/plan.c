/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint: the request for a dump. Pure.
 *
 * What criu cannot make again by itself is external: a bind mount whose source is the host's goes
 * into the images by the destination that config.json has for it (which a link of the image may
 * have led elsewhere), and is bound from the source that config.json names when it is restored.
 */
#define LR_ROOM "checkpoint"
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/checkpoint/internal.h"
#include "src/sys/syscalls.h"

#define LOG_LEVEL 4 /* what runc and crun ask for: what explains a failure is in it */

int lr_checkpoint_add(struct lr_criu_list *l, struct lr_criu_pair p, struct lr_arena *a,
		      struct lr_err *err)
{
	struct lr_criu_pair *v = lr_grow(a, l->v, l->n, sizeof(*v));

	if (!v)
		return lr_fail(err, ENOMEM, "plan");
	l->v = v;
	v[l->n++] = p;
	return 0;
}

bool lr_checkpoint_is_bind(const struct oci_mount *m)
{
	if (m->type && lr_streq(m->type, "bind"))
		return true;
	for (size_t i = 0; i < m->options.n; i++)
		if (lr_streq(m->options.v[i], "bind") || lr_streq(m->options.v[i], "rbind"))
			return true;
	return false;
}

char *lr_checkpoint_clean(const char *path, struct lr_arena *a)
{
	char *clean = lr_alloc(a, strlen(path) + 2);

	if (clean)
		lr_path_clean(path, clean);
	return clean;
}

const char *lr_checkpoint_joined(const struct oci_config *c, const char *type)
{
	const struct oci_linux *l = c->linux_;

	for (size_t i = 0; l && i < l->namespaces.n; i++)
		if (lr_streq(l->namespaces.v[i].type, type) && l->namespaces.v[i].path &&
		    *l->namespaces.v[i].path)
			return l->namespaces.v[i].path;
	return NULL;
}

bool lr_checkpoint_own(const struct oci_config *c, const char *type)
{
	const struct oci_linux *l = c->linux_;

	for (size_t i = 0; l && i < l->namespaces.n; i++)
		if (lr_streq(l->namespaces.v[i].type, type))
			return !l->namespaces.v[i].path || !*l->namespaces.v[i].path;
	return false;
}

/* Then the caller's standard descriptors are not the container's, and what it has put in their
 * places is its own. */
bool lr_checkpoint_has_terminal(const struct oci_config *c)
{
	return c->process && c->process->terminal;
}

/* Half of a restore is done by processes in the container's user namespace, some with its root's
 * ids and some with none that count: images that both could open would be open to everybody. */
int lr_checkpoint_no_userns(const struct oci_config *c, struct lr_err *err)
{
	if (!lr_checkpoint_own(c, "user") && !lr_checkpoint_joined(c, "user"))
		return 0;
	lr_refuse(
		err, EOPNOTSUPP,
		"a container with a user namespace cannot be checkpointed or restored: criu could "
		"not read the images in there, unless all users could");
	return lr_err_at(err, "linux.namespaces");
}

/* ---- options ------------------------------------------------------------------------------- */

static const struct lr_name cgroup_modes[] = {
	{"full", LR_CRIU_CGROUPS_FULL},
	{"ignore", LR_CRIU_CGROUPS_IGNORE},
	{"soft", LR_CRIU_CGROUPS_SOFT},
	{"strict", LR_CRIU_CGROUPS_STRICT},
};

static const struct lr_name locks[] = {
	{"iptables", LR_CRIU_LOCK_IPTABLES},
	{"nftables", LR_CRIU_LOCK_NFTABLES},
	{"skip", LR_CRIU_LOCK_SKIP},
};

static const struct lr_name namespaces[] = {
	{"cgroup", CLONE_NEWCGROUP}, {"ipc", CLONE_NEWIPC}, {"mount", CLONE_NEWNS},
	{"network", CLONE_NEWNET},   {"pid", CLONE_NEWPID}, {"user", CLONE_NEWUSER},
	{"uts", CLONE_NEWUTS},
};

static int choose(const struct lr_name *table, size_t n, const char *word, const char *option,
		  int *ret, struct lr_err *err)
{
	const struct lr_name *found = word ? lr_name_find(table, n, word) : NULL;

	if (word && !found)
		return lr_refuse(err, EINVAL, "%s: \"%s\" is none of its values", option, word);
	if (found)
		*ret = (int)found->value;
	return 0;
}

/* criu empties a network namespace only: of the others it would make new ones in any case. */
static int empty_namespaces(const char *const *names, int *ret, struct lr_err *err)
{
	int flags = 0;

	for (; names && *names; names++) {
		const struct lr_name *n =
			lr_name_find(namespaces, LR_ARRAY_SIZE(namespaces), *names);
		if (!n)
			return lr_refuse(err, EINVAL, "--empty-ns: \"%.32s\" is no namespace",
					 *names);
		if (n->value != CLONE_NEWNET) {
			lr_refuse(err, EOPNOTSUPP,
				  "--empty-ns %s: criu can leave a network namespace empty, and no "
				  "other",
				  *names);
			return lr_err_hint(err, "--empty-ns network");
		}
		flags |= (int)n->value;
	}
	if (flags)
		*ret = flags;
	return 0;
}

/* "10.0.0.1:27", "[::1]:27". */
static int page_server(const char *text, struct lr_criu_opts *ret, struct lr_arena *a,
		       struct lr_err *err)
{
	const char *colon = text ? strrchr(text, ':') : NULL;
	uint32_t port;

	if (!text)
		return 0;
	if (!colon || colon == text || lr_parse_u32(colon + 1, &port) < 0 || port < 1 ||
	    port > 65535) {
		lr_refuse(err, EINVAL, "--page-server: \"%.64s\" is not ADDRESS:PORT", text);
		return lr_err_hint(err, "where `criu page-server` listens, as 192.0.2.1:27");
	}
	size_t n = (size_t)(colon - text);
	if (text[0] == '[' && colon[-1] == ']') {
		text++;
		n -= 2;
	}
	char *address = lr_strndup(a, text, n);
	if (!address)
		return lr_fail(err, ENOMEM, "plan");
	ret->page_server = address;
	ret->page_server_port = (int)port;
	return 0;
}

int lr_checkpoint_plan_opts(const struct lr_checkpoint_opts *o, struct lr_criu_opts *ret,
			    struct lr_err *err)
{
	*ret = (struct lr_criu_opts)LR_CRIU_OPTS_INIT;
	ret->log_level = LOG_LEVEL;
	ret->notify_scripts = true;
	ret->orphan_pts_master = true;
	ret->manage_cgroups = true;
	ret->manage_cgroups_mode = LR_CRIU_CGROUPS_SOFT;
	ret->tcp_established = o->tcp_established;
	ret->tcp_close = o->tcp_close;
	ret->ext_unix_sk = o->ext_unix_sk;
	ret->shell_job = o->shell_job;
	ret->file_locks = o->file_locks;
	ret->auto_dedup = o->auto_dedup;
	ret->lazy_pages = o->lazy_pages;
	int r = choose(cgroup_modes, LR_ARRAY_SIZE(cgroup_modes), o->cgroups,
		       "--manage-cgroups-mode", &ret->manage_cgroups_mode, err);
	if (r >= 0)
		r = choose(locks, LR_ARRAY_SIZE(locks), o->network_lock, "--network-lock",
			   &ret->network_lock, err);
	return r < 0 ? r : empty_namespaces(o->empty_ns, &ret->empty_ns, err);
}

/* ---- mounts -------------------------------------------------------------------------------- */

/* The host's null device, which covers masked files; its mount may lie below another one. */
static bool is_null_cover(const struct lr_checkpoint_mount *m)
{
	return lr_streq(m->root, "/null") &&
	       (lr_streq(m->type, "devtmpfs") || lr_streq(m->type, "tmpfs"));
}

/* The container has all of that file system, or a directory of it that this one is in: criu mounts
 * that, and binds. */
static bool is_part_of_another(const struct lr_checkpoint_found *f,
			       const struct lr_checkpoint_mount *m)
{
	for (size_t i = 0; i < f->n_mounts; i++) {
		const struct lr_checkpoint_mount *o = &f->mounts[i];
		if (o != m && lr_streq(o->device, m->device) && lr_streq(o->root, "/") &&
		    !lr_streq(m->root, "/"))
			return true;
	}
	return false;
}

/* As a whole; the contents of a tmpfs are in the images. */
static bool is_made_anew(const struct lr_checkpoint_mount *m)
{
	return lr_streq(m->root, "/") && lr_saved_is_anew(m->type);
}

static bool is_cgroup(const struct lr_checkpoint_mount *m)
{
	return lr_streq(m->type, "cgroup") || lr_streq(m->type, "cgroup2");
}

static const struct oci_mount *configured(const struct oci_config *c,
					  const struct lr_checkpoint_found *f,
					  const struct lr_checkpoint_mount *m)
{
	for (size_t i = c->mounts.n; i-- > 0;)
		if (f->at[i] == m->id)
			return &c->mounts.v[i];
	return NULL;
}

static int unknown(const struct lr_checkpoint_mount *m, struct lr_err *err)
{
	lr_refuse(err, EOPNOTSUPP,
		  "what is mounted on %.128s (%.32s, %.128s of it) is not in config.json, so it "
		  "could not be restored",
		  m->point, m->type, m->root);
	return lr_err_hint(err, "unmount it, or have it in `mounts` when the container is created");
}

/* The name under which the images have it; NULL: criu sees to it. */
static int name_of(const struct oci_config *c, const struct lr_checkpoint_found *f,
		   const struct lr_checkpoint_mount *m, struct lr_arena *a, const char **ret,
		   struct lr_err *err)
{
	const struct oci_mount *o = configured(c, f, m);
	const char *name = NULL;

	*ret = NULL;
	if (is_null_cover(m) && !o)
		name = "/dev/null";
	else if (o && lr_checkpoint_is_bind(o))
		name = lr_checkpoint_clean(o->destination, a);
	else if (is_made_anew(m) || is_part_of_another(f, m))
		return 0;
	else if (is_cgroup(m) || m->id == f->notify)
		name = m->point;
	else
		return unknown(m, err);
	*ret = name;
	return name ? 0 : lr_fail(err, ENOMEM, "plan");
}

/* An entry for cgroups makes several mounts of v1's. */
static bool is_of(const struct oci_mount *m, const char *destination, const char *name)
{
	return lr_streq(destination, name) ||
	       (m->type && lr_has_prefix(m->type, "cgroup") && lr_path_below(name, destination));
}

/* The attributes are those of config.json, or those that the runtime gives to a mask. */
static int allow(const struct oci_config *c, const char *name, struct lr_arena *a,
		 struct lr_saved_rules *rules, struct lr_err *err)
{
	const uint64_t usual = lr_streq(name, "/dev/null") ? MOUNT_ATTR_RDONLY : 0;
	bool found = false;
	int r = 0;

	for (size_t i = 0; i < rules->n; i++)
		if (lr_streq(rules->v[i].name, name))
			return 0;
	for (size_t i = 0; i < c->mounts.n && r >= 0; i++) {
		const struct oci_mount *m = &c->mounts.v[i];
		const char *clean = m->destination ? lr_checkpoint_clean(m->destination, a) : "";
		if (!clean)
			return lr_fail(err, ENOMEM, "plan");
		if (!is_of(m, clean, name))
			continue;
		found = true;
		r = lr_saved_allow(rules, name, &m->options, 0, a, err);
	}
	return r >= 0 && (usual || !found) ? lr_saved_allow(rules, name, NULL, usual, a, err) : r;
}

static int plan_mounts(const struct oci_config *c, const struct lr_checkpoint_found *f,
		       struct lr_arena *a, struct lr_criu_opts *ret, struct lr_saved_rules *rules,
		       struct lr_err *err)
{
	int r = 0;

	for (size_t i = 0; i < f->n_mounts && r >= 0; i++) {
		const struct lr_checkpoint_mount *m = &f->mounts[i];
		const char *name;
		ret->ext_masters |= m->slave;
		if (lr_streq(m->point, "/"))
			continue;
		r = name_of(c, f, m, a, &name, err);
		if (r < 0 || !name)
			continue;
		struct lr_criu_pair p = {.key = lr_strf(a, "mnt[%s]:%s", m->point, name)};
		r = p.key ? lr_checkpoint_add(&ret->external, p, a, err)
			  : lr_fail(err, ENOMEM, "plan");
		if (r >= 0)
			r = allow(c, name, a, rules, err);
	}
	return r;
}

static bool has_mapped_ids(const struct oci_mount *m)
{
	bool mapped = m->uid_mappings.n || m->gid_mappings.n;

	for (size_t k = 0; k < m->options.n; k++)
		mapped |= lr_has_prefix(m->options.v[k], "idmap") ||
			  lr_has_prefix(m->options.v[k], "ridmap");
	return mapped;
}

/* Nothing in the images would tell of it, and it would be lost when they are restored. */
static int refuse_what_is_lost(const struct oci_config *c, struct lr_err *err)
{
	for (size_t i = 0; i < c->mounts.n; i++) {
		const struct oci_mount *m = &c->mounts.v[i];
		const char *what =
			has_mapped_ids(m) ? "the mapped ids"
			: lr_checkpoint_is_bind(m) && lr_checkpoint_attributes(&m->options) &
							      MOUNT_ATTR_NOSYMFOLLOW
				? "\"nosymfollow\""
				: NULL;
		if (!what)
			continue;
		lr_refuse(err, EOPNOTSUPP, "criu cannot restore %s of a mount", what);
		return lr_err_at(err, "mounts[%zu]", i);
	}
	return 0;
}

/* ---- namespaces and stdio ------------------------------------------------------------------ */

static int add_external(struct lr_criu_opts *ret, const char *key, struct lr_arena *a,
			struct lr_err *err)
{
	return key ? lr_checkpoint_add(&ret->external, (struct lr_criu_pair){.key = key}, a, err)
		   : lr_fail(err, ENOMEM, "plan");
}

static int plan_namespaces(const struct lr_checkpoint_found *f, struct lr_arena *a,
			   struct lr_criu_opts *ret, struct lr_err *err)
{
	int r = 0;

	if (f->netns)
		r = add_external(
			ret,
			lr_strf(a, "net[%llu]:" LR_CHECKPOINT_NET, (unsigned long long)f->netns), a,
			err);
	if (r >= 0 && f->pidns)
		r = add_external(
			ret,
			lr_strf(a, "pid[%llu]:" LR_CHECKPOINT_PID, (unsigned long long)f->pidns), a,
			err);
	return r;
}

/*
 * Network devices that hooks have put there, as Docker's do, have their other ends in the host's
 * network, and are put there again when it is restored.
 */
static void leave_network(const struct oci_config *c, const struct lr_checkpoint_found *f,
			  struct lr_criu_opts *ret)
{
	const struct oci_hooks *h = c->hooks;

	if (h && (h->prestart.n || h->create_runtime.n || h->create_container.n) && f->devices &&
	    lr_checkpoint_own(c, "network"))
		ret->empty_ns = CLONE_NEWNET;
}

/* A pipe needs no word: criu dumps this end of it. */
static int plan_stdio(const struct lr_checkpoint_stdio *s, struct lr_arena *a,
		      struct lr_criu_opts *ret, struct lr_err *err)
{
	int r = 0;

	for (int i = 0; i < 3 && r >= 0; i++) {
		bool seen = false;
		for (int k = 0; k < i; k++)
			seen |= lr_streq(s->name[k], s->name[i]);
		if (!seen &&
		    (lr_has_prefix(s->name[i], "file[") || lr_has_prefix(s->name[i], "unix[")))
			r = add_external(ret, s->name[i], a, err);
	}
	return r;
}

int lr_checkpoint_plan(const struct oci_config *config, const struct lr_checkpoint_opts *o,
		       const struct lr_checkpoint_found *f, struct lr_arena *a,
		       struct lr_criu_opts *ret, struct lr_saved_rules *rules, struct lr_err *err)
{
	struct lr_criu_opts c;

	lr_saved_begin(rules, config);
	int r = lr_checkpoint_plan_opts(o, &c, err);
	if (r >= 0)
		r = lr_checkpoint_no_userns(config, err);
	if (r >= 0)
		r = page_server(o->page_server, &c, a, err);
	if (r < 0)
		return r;
	c.pid = f->pid;
	c.log_file = "dump.log";
	c.config_file = f->config_file;
	c.parent_img = o->parent_path;
	c.track_mem = o->pre_dump || o->parent_path;
	c.leave_running = o->leave_running;
	c.link_remap = o->link_remap;
	c.tcp_skip_in_flight = o->tcp_skip_in_flight;
	c.status_fd = o->status_fd;
	if (o->pre_dump)
		c.lazy_pages = false; /* memory alone, and all of it */
	leave_network(config, f, &c);
	r = plan_namespaces(f, a, &c, err);
	if (r >= 0)
		r = refuse_what_is_lost(config, err);
	if (r >= 0)
		r = plan_mounts(config, f, a, &c, rules, err);
	if (r >= 0 && !lr_checkpoint_has_terminal(config))
		r = plan_stdio(&f->stdio, a, &c, err);
	if (r >= 0)
		*ret = c;
	return r;
}
