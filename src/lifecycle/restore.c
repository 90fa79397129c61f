/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lifecycle: restore: a container whose processes come out of images. All around them is made as
 * for any other by the same code: record first, then the cgroup and its limits.
 */
#define LR_ROOM "restore"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/checkpoint/checkpoint.h"
#include "src/lifecycle/create.h"
#include "src/lifecycle/notify.h"
#include "src/sys/proc.h"
#include "src/sys/syscalls.h"

struct restoring {
	struct lr_birth *b;
	const struct lr_create_opts *o;
	struct lr_arena *a;
	bool has_console; /* the images had a terminal */
};

/* criu enters the cgroup first, so that all that it restores is charged there from the start. */
static int began(void *arg, pid_t criu, struct lr_err *err)
{
	struct restoring *x = arg;
	const struct lr_cgroup_ref *ref = lr_cgroup_plan_ref(x->b->c.init.cgroup);
	int r = ref->n ? lr_cgroup_join_pid(ref, criu, err) : 0;

	lr_cgroup_settle(x->b->c.init.cgroup);
	return r;
}

/*
 * What is of the process, and criu neither saves nor sets: it would come from our caller, with the
 * keys of his session. (What create leaves as the caller has it is left here, too.)
 */
static int inherit(void *arg, struct lr_err *err)
{
	struct restoring *x = arg;
	const struct lr_init_process *p = &x->b->c.init.process;
	struct lr_limits_sched io = p->sched;
	LR_CLEANUP_FD int proc = lr_open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (proc < 0)
		return lr_fail(err, errno, "open /proc");
	int r = lr_process_keyring(p, proc, err);
	lr_limits_affinity_reset(0);
	io.has_scheduler = false; /* that is in the images */
	if (r >= 0)
		r = lr_limits_sched_apply(&io, err);
	if (r >= 0)
		r = lr_limits_mempolicy_apply(&p->mempolicy, err);
	return r < 0 || !p->has_personality ? r : lr_limits_personality_apply(p->personality, err);
}

static int run_hooks(struct restoring *x, const struct oci_hook_list *hooks, const char *kind,
		     pid_t pid, struct lr_err *err)
{
	struct oci_state st = lr_hook_state(&x->b->c.record, "creating", pid);

	return lr_run_hooks(hooks, kind, x->b->c.bundle, false, &st, x->a, err);
}

/* The process is our child (criu's sibling): for undoing, and to stay with. */
static int adopt(struct lr_birth *b, pid_t pid, struct lr_err *err)
{
	struct lr_proc_stat st = {0};

	int r = pid > 0 ? lr_proc_stat(pid, &st) : -ESRCH;
	if (r < 0 && r != -ESRCH && r != -ENOENT)
		return lr_fail(err, -r, "look at the restored process %d", pid);
	if (r < 0)
		return lr_refuse(err, ESRCH, "the restored process has ended already");
	if (st.ppid != getpid())
		return lr_refuse(err, EPROTO, "criu names process %d, which it has not made", pid);
	b->child.pid = pid;
	b->child.pidfd = lr_proc_pidfd(pid, st.start_time);
	if (b->child.pidfd < 0)
		b->child.pidfd = LR_NOFD;
	return 0;
}

static int born(void *arg, pid_t pid, struct lr_err *err)
{
	struct restoring *x = arg;
	struct lr_birth *b = x->b;
	const struct oci_hooks *hooks = b->c.config->hooks;

	int r = adopt(b, pid, err);
	if (r >= 0)
		r = lr_birth_record_pid(b, pid, NULL, err);
	if (r >= 0 && (b->c.netdev->n || b->c.rdt.given))
		r = lr_birth_parent_work(b, pid, err);
	if (r >= 0 && hooks)
		r = run_hooks(x, &hooks->prestart, "prestart", pid, err);
	if (r >= 0 && hooks)
		r = run_hooks(x, &hooks->create_runtime, "createRuntime", pid, err);
	return r;
}

static int console(void *arg, int master, struct lr_err *err)
{
	struct restoring *x = arg;
	struct lr_init_process *p = &x->b->c.init.process;

	if (p->console < 0) {
		lr_refuse(err, EINVAL, "the images have a terminal, and process.terminal is false");
		return lr_err_hint(err, "set process.terminal in config.json, and give a "
					"--console-socket when detached");
	}
	x->has_console = true;
	return lr_tty_send_fd(p->console, master, "/dev/console", err);
}

/* Mount points that the root lacks, as a new copy of an image does; criu makes none. */
static int make_places(struct lr_birth *b, struct lr_err *err)
{
	LR_CLEANUP_FD int root = lr_open(b->c.record.rootfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct lr_mount_env env = {.rootfd = root, .procfd = LR_NOFD};

	if (root < 0)
		return lr_fail(err, errno, "open %s", b->c.record.rootfs);
	return lr_mount_make_places(b->c.init.tree.mounts, &env, err);
}

static int make_dir(const struct lr_entry *e, const char *name, struct lr_err *err)
{
	if (mkdirat(e->dir, name, 0755) < 0 && errno != EEXIST)
		return lr_fail(err, errno, "make %s/%s", e->id, name);
	return 0;
}

/* What create binds from the host that is not a bind mount of config.json. */
static int own_binds(struct restoring *x, struct lr_checkpoint_bind **ret, size_t *n,
		     struct lr_err *err)
{
	const struct lr_birth *b = x->b;
	const struct lr_mount_cgroup_view *view = b->c.init.tree.cgroup;
	const struct oci_mounts *mounts = &b->c.config->mounts;
	size_t most = 1 + (view ? view->n * mounts->n : 0), count = 0;
	struct lr_checkpoint_bind *v = lr_new_n(x->a, most, struct lr_checkpoint_bind);

	if (!v)
		return lr_fail(err, ENOMEM, "restore");
	/* A container that was dumped with a socket for readiness has its directory mounted. */
	v[count++] = (struct lr_checkpoint_bind){
		.destination = LR_NOTIFY_TARGET,
		.source = lr_strf(x->a, "%s/%s/" LR_NOTIFY_DIR, b->store.path, b->c.record.id),
	};
	for (size_t i = 0; view && i < mounts->n; i++) {
		const struct oci_mount *m = &mounts->v[i];
		if (!m->type || !lr_has_prefix(m->type, "cgroup"))
			continue;
		for (size_t k = 0; k < view->n; k++) {
			const char *slash = strrchr(view->v[k].mountpoint, '/');
			v[count++] = (struct lr_checkpoint_bind){
				.destination =
					view->v2 ? m->destination
						 : lr_concat(x->a, m->destination, slash, NULL),
				.source = view->v[k].host_dir,
				.options = &m->options,
			};
		}
	}
	for (size_t i = 0; i < count; i++)
		if (!v[i].destination || !v[i].source)
			return lr_fail(err, ENOMEM, "restore");
	*ret = v;
	*n = count;
	return 0;
}

static int run_engine(struct restoring *x, const struct lr_checkpoint_engine *engine,
		      const struct lr_checkpoint_opts *opts, struct lr_err *err)
{
	struct lr_birth *b = x->b;
	struct lr_restore_job job = {
		.opts = opts,
		.config = b->c.config,
		.bundle = b->c.bundle,
		.rootfs = b->c.record.rootfs,
		.stage = lr_strf(x->a, "%s/%s", b->store.path, b->c.record.id),
		.inherit = inherit,
		.began = began,
		.born = born,
		.console = console,
		.arg = x,
	};
	struct lr_checkpoint_bind *binds = NULL;
	char stage[PATH_MAX];
	pid_t pid = 0;

	if (!job.stage)
		return lr_fail(err, ENOMEM, "restore");
	int r = own_binds(x, &binds, &job.n_binds, err);
	if (r < 0)
		return r;
	job.binds = binds;
	r = make_dir(&b->entry, LR_NOTIFY_DIR, err);
	/* As mountinfo(5) will name it. */
	if (r >= 0 && !realpath(job.stage, stage))
		r = lr_fail(err, errno, "resolve %s", job.stage);
	job.stage = stage;
	if (r >= 0)
		r = engine->restore(&job, x->a, &pid, err);
	/* Named before it was born: for undoing. */
	if (r < 0 && pid > 0 && b->child.pid <= 0)
		(void)adopt(b, pid, NULL);
	return r;
}

/* Everything up to a restored container; on failure all is undone. */
static int make(struct restoring *x, const struct lr_checkpoint_engine *engine,
		const struct lr_checkpoint_opts *opts, struct lr_err *err)
{
	struct lr_birth *b = x->b;
	const struct lr_create_opts *o = x->o;

	int r = lr_console_open(b->c.config->process->terminal, o->detach, o->console_socket,
				&b->c.init.process.console, &b->console, err);
	if (r >= 0)
		r = lr_store_create(&b->store, o->id, &b->entry, err);
	if (r < 0)
		return r;
	mode_t mask = umask(0022);
	r = lr_birth_record(b, x->a, err);
	if (r >= 0)
		r = lr_birth_save(b, err);
	if (r >= 0)
		r = make_places(b, err);
	umask(mask);
	if (r >= 0)
		r = run_engine(x, engine, opts, err);
	b->c.init.process.console = lr_close(b->c.init.process.console);
	/* Only what the images had can come. */
	if (!x->has_console)
		b->console = lr_close(b->console);
	if (r >= 0) {
		b->child.runs = true; /* it never waits for us */
		b->c.record.flags &= ~(uint32_t)LR_RECORD_CREATING;
		b->c.record.flags |= LR_RECORD_STARTED;
		r = lr_birth_record_pid(b, b->child.pid, NULL, err);
	}
	if (r >= 0)
		r = lr_birth_start(b, o, x->a, err);
	if (r < 0)
		lr_birth_undo(b, x->a, err);
	return r;
}

static int check(const struct lr_runtime *rt, struct lr_err *err)
{
	if (!lr_is_rootless(rt))
		return 0;
	lr_refuse(err, EPERM, "cannot restore a container as rootless");
	return lr_err_hint(err, "it takes root in the host's user namespace");
}

/* An engine whose containers are born as any other, but for what they continue. */
static int run_seed(const struct lr_runtime *rt, const struct lr_create_opts *o,
		    const struct lr_checkpoint_engine *engine,
		    const struct lr_checkpoint_opts *opts, struct lr_arena *a, int *status,
		    struct lr_err *err)
{
	struct lr_create_opts create = *o;
	struct lr_init_seed seed;

	create.seed = &seed;
	if (opts->stats) {
		opts->stats->begun = lr_now_ns();
		opts->stats->id = o->id;
	}
	int r = engine->open(opts, a, &seed, err);
	if (r >= 0)
		r = lr_lifecycle_run(rt, &create, status, err);
	lr_init_seed_close(&seed);
	return r;
}

static int restore(const struct lr_runtime *given, const struct lr_create_opts *o,
		   const struct lr_checkpoint_opts *opts, struct lr_tty_signals *signals,
		   struct lr_birth *b, struct lr_arena *a, int *status, struct lr_err *err)
{
	const struct lr_checkpoint_engine *engine = NULL;
	struct restoring x = {.b = b, .o = o, .a = a};
	struct lr_runtime rt = *given;

	/* Its namespaces come out of the images: there is nothing to be prepared for it. */
	rt.lean = NULL;
	int r = lr_checkpoint_check(opts, err);
	if (r >= 0)
		r = lr_checkpoint_engine(opts->engine, &engine, err);
	if (r >= 0)
		r = check(&rt, err);
	if (r >= 0 && engine->open)
		return run_seed(&rt, o, engine, opts, a, status, err);
	if (r >= 0)
		r = lr_birth_plan(&rt, o, a, b, err);
	if (r >= 0 && !o->detach)
		r = lr_birth_prepare_to_stay(b, o, signals, err);
	if (r >= 0)
		r = make(&x, engine, opts, err);
	if (r < 0)
		return r;
	*status = 0;
	if (!o->detach)
		return lr_birth_stay(b, o, signals, LR_NOFD, a, status, err);
	lr_store_unlock(&b->entry);
	return 0;
}

int lr_lifecycle_restore(const struct lr_runtime *rt, const struct lr_create_opts *o,
			 const struct lr_checkpoint_opts *opts, int *status, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_tty_signals signals = {.fd = LR_NOFD};
	struct lr_birth b = LR_BIRTH_NONE;

	int r = restore(rt, o, opts, &signals, &b, a, status, err);
	if (r >= 0 && !o->more)
		return r;
	lr_birth_close(&b);
	lr_tty_signals_close(&signals);
	return r;
}
