/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint: the request for a restore. Pure. */
#define LR_ROOM "restore"
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/checkpoint/internal.h"
#include "src/sys/syscalls.h"

static int add_bind(struct lr_restore_plan *p, struct lr_restore_bind b, const char *name,
		    const char *stage, struct lr_arena *a, struct lr_err *err)
{
	struct lr_restore_bind *v = lr_grow(a, p->binds, p->n, sizeof(*v));

	b.name = lr_checkpoint_clean(name, a);
	b.at = lr_strf(a, "%s/%zu", stage, p->n);
	if (!v || !b.name || !b.at || !b.source)
		return lr_fail(err, ENOMEM, "plan");
	p->binds = v;
	v[p->n++] = b;
	return 0;
}

int lr_restore_plan_binds(struct lr_restore_plan *p, struct lr_arena *a, struct lr_err *err)
{
	int r = 0;

	for (size_t i = 0; i < p->n && r >= 0; i++) {
		const struct lr_restore_bind *b = &p->binds[i];
		const char *rest = b->source + b->top;
		struct lr_criu_pair mount = {
			.key = lr_strf(a, "mnt[%s]:%s%s%s", b->name, b->at,
				       *rest && *rest != '/' ? "/" : "", rest),
		};
		r = mount.key ? lr_checkpoint_add(&p->opts.external, mount, a, err)
			      : lr_fail(err, ENOMEM, "plan");
	}
	return r;
}

static const struct lr_name opposites[] = {
	{"dev", MOUNT_ATTR_NODEV},
	{"exec", MOUNT_ATTR_NOEXEC},
	{"rw", MOUNT_ATTR_RDONLY},
	{"suid", MOUNT_ATTR_NOSUID},
	{"symfollow", MOUNT_ATTR_NOSYMFOLLOW},
};

/* "ro", or "rro" for a tree. The last of each kind counts. */
uint64_t lr_checkpoint_attributes(const struct oci_strv *options)
{
	uint64_t all = 0;

	for (size_t i = 0; options && i < options->n; i++) {
		const char *word = options->v[i];
		const char *plain = word[0] == 'r' ? word + 1 : word;
		const struct lr_name *clear;
		uint64_t set = lr_checkpoint_attribute(word);
		if (!set)
			set = lr_checkpoint_attribute(plain);
		clear = lr_name_find(opposites, LR_ARRAY_SIZE(opposites), word);
		if (!clear)
			clear = lr_name_find(opposites, LR_ARRAY_SIZE(opposites), plain);
		if (set)
			all |= set;
		else if (clear)
			all &= ~clear->value;
	}
	return all;
}

/* What the images do not use does no harm, so all that a container can have is named. */
static int plan_mounts(const struct lr_restore_job *job, struct lr_arena *a,
		       struct lr_restore_plan *p, struct lr_err *err)
{
	const struct oci_mounts *mounts = &job->config->mounts;
	const struct lr_restore_bind null = {
		.source = "/dev/null",
		.set = MOUNT_ATTR_RDONLY,
		.null = true,
	};

	int r = add_bind(p, null, "/dev/null", job->stage, a, err);
	for (size_t i = 0; i < mounts->n && r >= 0; i++) {
		const struct oci_mount *m = &mounts->v[i];
		if (!lr_checkpoint_is_bind(m) || !m->source || !m->destination)
			continue;
		struct lr_restore_bind b = {.configured = true};
		b.source = m->source[0] == '/' ? m->source
					       : lr_strf(a, "%s/%s", job->bundle, m->source);
		/* What is mounted below a source is refused when it is dumped, so a tree is one mount. */
		b.options = &m->options;
		b.set = lr_checkpoint_attributes(&m->options);
		r = add_bind(p, b, m->destination, job->stage, a, err);
	}
	for (size_t i = 0; i < job->n_binds && r >= 0; i++) {
		struct lr_restore_bind b = {.source = job->binds[i].source};
		b.options = job->binds[i].options;
		b.set = lr_checkpoint_attributes(b.options);
		r = add_bind(p, b, job->binds[i].destination, job->stage, a, err);
	}
	return r;
}

static int add_fd(struct lr_criu_opts *ret, const char *key, int fd, struct lr_arena *a,
		  struct lr_err *err)
{
	return lr_checkpoint_add(&ret->inherit_fd, (struct lr_criu_pair){.key = key, .fd = fd}, a,
				 err);
}

/* Two that were one pipe are one again: the first of the caller's counts. */
static int plan_stdio(const struct lr_restore_found *f, struct lr_arena *a,
		      struct lr_criu_opts *ret, struct lr_err *err)
{
	const struct lr_checkpoint_stdio *s = &f->stdio;
	int r = 0;

	for (int i = 0; i < 3 && r >= 0; i++) {
		const char *name = s->name[i];
		bool seen = false;
		for (int k = 0; k < i; k++)
			seen |= lr_streq(s->name[k], name);
		if (seen)
			continue;
		if (lr_has_prefix(name, "unix["))
			name = lr_strf(a, "socket:%s", name + strlen("unix"));
		else if (!lr_has_prefix(name, "pipe:[") && !lr_has_prefix(name, "file["))
			continue;
		char *key = name ? lr_strdup(a, name) : NULL;
		r = key ? add_fd(ret, key, f->fd0 + i, a, err) : lr_fail(err, ENOMEM, "plan");
	}
	return r;
}

static int plan_namespaces(const struct lr_restore_found *f, struct lr_arena *a,
			   struct lr_criu_opts *ret, struct lr_err *err)
{
	int r = f->netns < 0 ? 0 : add_fd(ret, LR_CHECKPOINT_NET, f->netns, a, err);

	return r < 0 || f->pidns < 0 ? r : add_fd(ret, LR_CHECKPOINT_PID, f->pidns, a, err);
}

/* Each controller of "9:cpu,cpuacct:/path" by itself; the v2 tree, "0::/path", is for what is not
 * named. */
static int plan_cgroup(const struct lr_cgroup_line *line, struct lr_arena *a,
		       struct lr_criu_opts *ret, struct lr_err *err)
{
	char *rest = lr_strdup(a, line->hierarchy), *controller;
	struct lr_criu_pair p = {.value = line->path};
	int r = 0;

	if (!rest)
		return lr_fail(err, ENOMEM, "plan");
	if (!*rest)
		return lr_checkpoint_add(&ret->cg_root, p, a, err);
	while (r >= 0 && (controller = strsep(&rest, ","))) {
		p.key = controller;
		r = lr_checkpoint_add(&ret->cg_root, p, a, err);
	}
	return r;
}

int lr_restore_plan_cgroups(const char *text, struct lr_arena *a, struct lr_criu_opts *ret,
			    struct lr_err *err)
{
	char *rest = text ? lr_strdup(a, text) : NULL;
	struct lr_cgroup_line line;
	int r = !text || rest ? 1 : lr_fail(err, ENOMEM, "plan");

	while (r > 0 && (r = lr_cgroup_line(&rest, &line, err)) > 0) {
		const int added = plan_cgroup(&line, a, ret, err);
		r = added < 0 ? added : 1;
	}
	return r;
}

int lr_restore_plan(const struct lr_restore_job *job, const struct lr_restore_found *f,
		    struct lr_arena *a, struct lr_restore_plan *ret, struct lr_err *err)
{
	const struct lr_checkpoint_opts *o = job->opts;
	struct lr_restore_plan p = {.readonly = job->config->root && job->config->root->readonly};
	struct lr_criu_opts *c = &p.opts;

	int r = lr_checkpoint_plan_opts(o, c, err);
	if (r >= 0)
		r = lr_checkpoint_no_userns(job->config, err);
	if (r < 0)
		return r;
	c->log_file = "restore.log";
	c->root = lr_concat(a, job->stage, "/" LR_RESTORE_ROOT, NULL);
	p.yard = f->yard;
	c->cgroup_yard = f->yard.n ? lr_concat(a, job->stage, "/" LR_RESTORE_YARD, NULL) : NULL;
	c->rst_sibling = true;
	c->evasive_devices = true;
	c->ext_masters = true;
	c->config_file = f->config_file;
	c->lsm_profile = o->lsm_profile;
	c->lsm_mount_context = o->lsm_mount_context;
	if (!f->net && lr_checkpoint_own(job->config, "network"))
		c->empty_ns = CLONE_NEWNET; /* it was left out */
	if (!c->root || (f->yard.n && !c->cgroup_yard))
		return lr_fail(err, ENOMEM, "plan");
	r = plan_mounts(job, a, &p, err);
	if (r >= 0)
		r = plan_namespaces(f, a, c, err);
	if (r >= 0 && !lr_checkpoint_has_terminal(job->config))
		r = plan_stdio(f, a, c, err);
	if (r >= 0)
		*ret = p;
	return r;
}
