/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle: opening an existing container, and telling in which state it is. */
#define LR_ROOM "container"
#include "src/lifecycle/container.h"

#include <errno.h>

#include "libocispec/ocispec.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/lean/lean.h"
#include "src/sys/proc.h"

static const char *const names[] = {"creating", "created", "running", "paused", "stopped"};

const char *lr_status_name(enum lr_status s)
{
	return names[s];
}

int lr_cgroup_of_record(const struct lr_record *r, struct lr_arena *a, struct lr_cgroup_ref *ret,
			struct lr_err *err)
{
	struct lr_cgroup_ref cg = {
		.mode = (enum lr_cgroup_mode)r->cgroup_mode,
		.manager = r->cgroup_unit ? LR_CGROUP_SYSTEMD : LR_CGROUP_CGROUPFS,
		.relative = r->cgroup_path,
		.unit = r->cgroup_unit,
		.user = r->cgroup_user,
		.n = r->cgroups.n,
		.v = lr_new_n(a, r->cgroups.n + 1, struct lr_cgroup_place),
	};

	if (!cg.v)
		return lr_fail(err, ENOMEM, "read the record");
	for (size_t i = 0; i < cg.n; i++)
		cg.v[i] = (struct lr_cgroup_place){r->cgroups.v[i].key, r->cgroups.v[i].value};
	*ret = cg;
	return 0;
}

int lr_cgroup_to_record(const struct lr_cgroup_ref *cg, struct lr_arena *a, struct lr_record *r,
			struct lr_err *err)
{
	struct oci_map places = {.v = lr_new_n(a, cg->n + 1, struct oci_pair), .n = cg->n};

	if (!places.v)
		return lr_fail(err, ENOMEM, "make the record");
	for (size_t i = 0; i < cg->n; i++)
		places.v[i] = (struct oci_pair){cg->v[i].hierarchy, cg->v[i].path};
	r->cgroup_mode = cg->mode;
	r->cgroup_path = cg->relative;
	r->cgroups = places;
	r->cgroup_unit = cg->unit;
	r->cgroup_user = cg->user;
	return 0;
}

int lr_container_status(const struct lr_store *store, const struct lr_record *r,
			const struct lr_cgroup_ref *cg)
{
	if (r->pid == 0)
		return r->flags & LR_RECORD_CREATING ? LR_CREATING : LR_STOPPED;
	int alive = lr_proc_alive(r->pid, r->start_time);
	if (alive <= 0)
		return alive < 0 ? alive : LR_STOPPED;
	if (r->flags & LR_RECORD_CREATING)
		return LR_CREATING;
	int frozen = cg->n ? lr_cgroup_is_frozen(cg) : 0;
	if (frozen != 0)
		return frozen < 0 ? frozen : LR_PAUSED;
	if (r->flags & LR_RECORD_STARTED)
		return LR_RUNNING;
	/* Not a flag of the record: `start` may have been killed before it could set it. */
	int waits = lr_store_fifo_waits(store, r->id);
	return waits < 0 ? waits : waits ? LR_CREATED : LR_RUNNING;
}

int lr_container_open(const struct lr_runtime *rt, const char *id, bool lock, struct lr_arena *a,
		      struct lr_existing *ret, struct lr_err *err)
{
	return lr_container_open_by(rt, id, lock ? lr_store_lock : NULL, a, ret, err);
}

int lr_container_open_by(const struct lr_runtime *rt, const char *id, lr_container_lock *lock,
			 struct lr_arena *a, struct lr_existing *ret, struct lr_err *err)
{
	struct lr_existing c = LR_EXISTING_NONE;

	int r = lr_store_check_id(id, err);
	if (r >= 0)
		r = lr_store_open(rt->root, false, a, &c.store, err);
	if (r == -ENOENT)
		return lr_err_hint(
			(lr_refuse(err, ENOENT, "container \"%s\" does not exist", id), err),
			"'lean-runtime list' shows those of a --root");
	if (r >= 0 && lock)
		r = lock(&c.store, id, &c.entry, err);
	if (r >= 0)
		r = lr_store_load(&c.store, id, a, &c.record, &c.config_text, &c.config_len, err);
	if (r >= 0)
		r = lr_cgroup_of_record(&c.record, a, &c.cgroup, err);
	if (r >= 0) {
		r = lr_container_status(&c.store, &c.record, &c.cgroup);
		if (r < 0)
			lr_fail(err, -r, "find out the state of container %s", id);
	}
	if (r < 0) {
		lr_container_close(&c);
		return r;
	}
	c.status = (enum lr_status)r;
	*ret = c;
	ret->entry.store = &ret->store;
	return 0;
}

void lr_container_close(struct lr_existing *c)
{
	lr_store_unlock(&c->entry);
	lr_store_close(&c->store);
}

struct oci_state lr_hook_state(const struct lr_record *r, const char *status, pid_t pid)
{
	return (struct oci_state){
		.oci_version = OCI_VERSION,
		.id = r->id,
		.status = status,
		.pid = pid,
		.bundle = r->bundle,
		.annotations = r->annotations,
	};
}

int lr_open_hook_outputs(const struct oci_map *annotations, struct lr_hook_opts *opts,
			 struct lr_err *err)
{
	const char *out = oci_map_get(annotations, "run.oci.hooks.stdout");
	const char *errors = oci_map_get(annotations, "run.oci.hooks.stderr");

	if (out && (opts->stdout_fd = lr_hook_open_output(out, err)) < 0)
		return opts->stdout_fd;
	if (errors && (opts->stderr_fd = lr_hook_open_output(errors, err)) < 0) {
		lr_close_hook_outputs(opts);
		return -err->code;
	}
	return 0;
}

void lr_close_hook_outputs(struct lr_hook_opts *opts)
{
	opts->stdout_fd = lr_close(opts->stdout_fd);
	opts->stderr_fd = lr_close(opts->stderr_fd);
}

int lr_run_hooks(const struct oci_hook_list *hooks, const char *kind, const char *dir,
		 bool keep_going, const struct oci_state *state, struct lr_arena *a,
		 struct lr_err *err)
{
	struct lr_hook_opts opts = LR_HOOK_OPTS_INIT;
	size_t len;

	if (!hooks->n)
		return 0;
	opts.dir = dir;
	opts.keep_going = keep_going;
	char *text = oci_state_encode(state, false, a, &len);
	if (!text)
		return lr_fail(err, ENOMEM, "encode the state for hooks");
	int r = lr_open_hook_outputs(&state->annotations, &opts, err);
	if (r < 0)
		return r;
	lr_debug("hooks: %zu of %s", hooks->n, kind);
	r = lr_hook_run(hooks, kind, text, len, &opts, err);
	lr_close_hook_outputs(&opts);
	return r;
}

int lr_container_mark(const struct lr_store *s, const struct lr_record *r, bool net,
		      struct lr_arena *a, struct lr_err *err)
{
	const struct lr_lean_held held = {.id = r->id, .slot = r->lean_slot, .net = r->lean_net};

	return lr_lean_mark(s->fd, s->path, &held, net, a, err);
}
