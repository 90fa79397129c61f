/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint: the engine criu: opens what the plan needs, and talks to the program. */
#define LR_ROOM "checkpoint"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/checkpoint/internal.h"
#include "src/sys/path.h"
#include "src/sys/proc.h"
#include "src/sys/syscalls.h"

#define INVENTORY "inventory.img" /* by it criu knows that images are there */

/* Adds what criu has to say, and where it has said it. */
static int explain(const char *verb, const struct lr_checkpoint_dirs *d, const char *log,
		   const struct lr_criu_session *s, const struct lr_criu_response *rsp, bool died,
		   struct lr_err *err)
{
	const char *const by = rsp->error ? lr_strerror(rsp->error) : "";
	char why[320];

	lr_criu_why(d->work_fd, log, s->output, why, sizeof(why));
	if (!*why && rsp->message[0])
		snprintf(why, sizeof(why), "%s", rsp->message);
	int code = rsp->error > 0 && rsp->error < 4096 ? rsp->error : EIO;
	lr_refuse(err, code, "criu could not %s: %s", verb,
		  *why   ? why
		  : died ? "it ended without an answer"
		  : *by  ? by
			 : "it does not say why");
	return lr_err_hint(err, "its log is %.200s/%s", d->work, log);
}

/* ---- checkpoint ---------------------------------------------------------------------------- */

static int inode_of(pid_t pid, const char *ns, uint64_t *ret, struct lr_err *err)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, ns);
	if (stat(path, &st) < 0)
		return lr_fail(err, errno, "look at %s", path);
	*ret = st.st_ino;
	return 0;
}

/* The namespace that config.json joins is external: nothing of it is dumped. */
static int look_at_namespaces(const struct lr_checkpoint_job *job, struct lr_checkpoint_found *f,
			      struct lr_err *err)
{
	uint64_t mine, its;

	int r = inode_of(getpid(), "mnt", &mine, err);
	if (r >= 0)
		r = inode_of(job->pid, "mnt", &its, err);
	if (r >= 0 && mine == its)
		return lr_refuse(err, EOPNOTSUPP,
				 "a container without a mount namespace of its own cannot be "
				 "checkpointed");
	if (r >= 0 && lr_checkpoint_joined(job->config, "network"))
		r = inode_of(job->pid, "net", &f->netns, err);
	if (r >= 0 && lr_checkpoint_joined(job->config, "pid"))
		r = inode_of(job->pid, "pid", &f->pidns, err);
	return r;
}

/* Lines of devices have a colon; those of the header have none. */
static int look_at_devices(pid_t pid, struct lr_arena *a, struct lr_checkpoint_found *f,
			   struct lr_err *err)
{
	char path[64], *text = lr_alloc(a, 262144);
	int n = 0;

	snprintf(path, sizeof(path), "/proc/%d/net/dev", pid);
	ssize_t len = text ? lr_read_file_at(AT_FDCWD, path, text, 262144) : -ENOMEM;
	if (len < 0)
		return lr_fail(err, (int)-len, "read %s", path);
	for (const char *at = text; (at = strchr(at, ':')); at++)
		n++;
	f->devices = n > 1;
	return 0;
}

static int mount_at(int root, const char *path)
{
	struct statx st;
	LR_CLEANUP_FD int fd = lr_open_in(root, path, O_PATH | O_CLOEXEC, 0);

	if (fd < 0 || lr_statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0 ||
	    !(st.stx_mask & STATX_MNT_ID))
		return -1;
	return (int)st.stx_mnt_id;
}

/* Before Linux 5.8, or if another mount is on top of it: by text. */
static int mount_named(const struct lr_checkpoint_found *f, const char *point)
{
	for (size_t i = f->n_mounts; point && i-- > 0;)
		if (lr_streq(f->mounts[i].point, point))
			return f->mounts[i].id;
	return -1;
}

/* Not by its place alone: a container moves another mount there, and would get the directory of the
 * runtime's in its place when it is restored. */
static int find_notify(int root, const char *dir, const struct lr_checkpoint_found *f)
{
	static const char at[] = "/run/notify";
	LR_CLEANUP_FD int fd = lr_open_in(root, at, O_PATH | O_CLOEXEC, 0);
	struct stat its, ours;

	if (fd < 0 || fstat(fd, &its) < 0 || stat(dir, &ours) < 0 || its.st_dev != ours.st_dev ||
	    its.st_ino != ours.st_ino)
		return 0;
	int id = mount_at(root, at);
	id = id < 0 ? mount_named(f, at) : id;
	return id < 0 ? 0 : id;
}

/* Where links of the image have led each destination. */
static int find_mounts(const struct lr_checkpoint_job *job, struct lr_arena *a,
		       struct lr_checkpoint_found *f, struct lr_err *err)
{
	const struct oci_mounts *m = &job->config->mounts;
	int *at = lr_new_n(a, m->n + 1, int);
	char path[64];

	if (!at)
		return lr_fail(err, ENOMEM, "plan");
	snprintf(path, sizeof(path), "/proc/%d/root", job->pid);
	LR_CLEANUP_FD int root = lr_open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return lr_fail(err, errno, "open %s", path);
	for (size_t i = 0; i < m->n; i++) {
		at[i] = mount_at(root, m->v[i].destination);
		if (at[i] < 0)
			at[i] = mount_named(f, lr_checkpoint_clean(m->v[i].destination, a));
	}
	f->at = at;
	f->notify = find_notify(root, job->notify, f);
	return 0;
}

/* Before a path of the container's is followed: the server of a FUSE in there may never answer. */
static int look_at_mounts(const struct lr_checkpoint_job *job, struct lr_arena *a,
			  struct lr_checkpoint_found *f, struct lr_err *err)
{
	struct lr_checkpoint_mount *mounts, *host;
	size_t n;

	int r = lr_checkpoint_mounts(job->pid, a, &mounts, &f->n_mounts, err);
	if (r >= 0)
		r = lr_checkpoint_mounts(getpid(), a, &host, &n, err);
	if (r < 0)
		return r;
	f->mounts = mounts;
	r = lr_checkpoint_refuse_fuse(mounts, f->n_mounts, host, n, err);
	return r < 0 ? r : find_mounts(job, a, f, err);
}

static int look(const struct lr_checkpoint_job *job, struct lr_arena *a,
		struct lr_checkpoint_found *f, struct lr_err *err)
{
	*f = (struct lr_checkpoint_found){
		.pid = job->pid,
	};
	int r = lr_checkpoint_config_file(job->config, &f->config_file, err);
	if (r >= 0)
		r = look_at_namespaces(job, f, err);
	if (r >= 0)
		r = look_at_devices(job->pid, a, f, err);
	if (r >= 0)
		r = look_at_mounts(job, a, f, err);
	if (r >= 0)
		r = lr_checkpoint_refuse_waits(job, a, err);
	if (r >= 0)
		r = lr_checkpoint_stdio_look(job->pid, f->mounts, f->n_mounts, &f->stdio, err);
	return r < 0 ? r : lr_yard_look(job->opts, a, &f->yard, err);
}

/* In criu's process: all memory of the container will be in files. */
static int keep_to_ourselves(void *arg, struct lr_err *err)
{
	umask(0077);
	return 0;
}

static int judge_images(const struct lr_checkpoint_dirs *d, const struct lr_saved_rules *rules,
			struct lr_arena *a, struct lr_criu_mount **v, size_t *n, struct lr_err *err)
{
	int r = lr_criu_read_mounts(d->images_fd, a, v, n, err);

	if (r >= 0)
		r = lr_saved_judge(rules, *v, *n, err);
	return r < 0 ? lr_err_hint(err, "the images are in %.200s", d->images) : r;
}

struct dumping {
	const struct lr_checkpoint_dirs *dirs;
	const struct lr_saved_rules *rules;
	pid_t pid;
	bool judged;
};

/* All is written, and the container stands still: if what was saved may not be restored, it goes on. */
static int at_post_dump(void *arg, const struct lr_criu_response *rsp, int *fd, struct lr_err *err)
{
	struct dumping *x = arg;

	if (!lr_streq(rsp->script, "post-dump"))
		return 0;
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_criu_remap *deleted;
	struct lr_criu_mount *v;
	size_t n, n_deleted;

	int r = judge_images(x->dirs, x->rules, a, &v, &n, err);
	if (r >= 0)
		r = lr_criu_read_remaps(x->dirs->images_fd, a, &deleted, &n_deleted, err);
	if (r >= 0)
		r = lr_deleted_check_saved(x->pid, deleted, n_deleted, v, n, a, err);
	x->judged = r >= 0;
	return r;
}

/* One more descriptor for criu: its number there. */
static int give(struct lr_criu_how *how, int *fds, int fd)
{
	fds[how->n_fds] = fd;
	return LR_CRIU_FIRST_FD + (int)how->n_fds++;
}

static int dump(const struct lr_checkpoint_job *job, const struct lr_checkpoint_dirs *d,
		const struct lr_yard *yard, struct lr_criu_opts *opts,
		const struct lr_saved_rules *rules, struct lr_err *err)
{
	LR_CLEANUP_FD int yard_fd = LR_NOFD;
	int fds[4] = {d->images_fd, d->work_fd};
	struct lr_criu_how how = {
		.program = job->opts->criu,
		.before = keep_to_ourselves,
		.saves = job->pid,
		.fds = fds,
		.n_fds = 2,
	};
	const struct lr_criu_request rq = {
		.type = job->opts->pre_dump ? LR_CRIU_PRE_DUMP : LR_CRIU_DUMP,
		.opts = opts,
	};
	struct lr_criu_session s = LR_CRIU_SESSION_NONE;
	struct lr_criu_response rsp = {0};
	struct dumping x = {.dirs = d, .rules = rules, .pid = job->pid};
	struct lr_thaw thaw;
	char yard_path[32];

	int r = lr_yard_link(yard, &yard_fd, err);
	if (r < 0)
		return r;
	/* What another one has said does not explain this one. */
	(void)unlinkat(d->work_fd, opts->log_file, 0);
	opts->images_dir_fd = LR_CRIU_FIRST_FD;
	opts->work_dir_fd = LR_CRIU_FIRST_FD + 1;
	/* The caller's. */
	if (job->opts->status_fd >= 0)
		opts->status_fd = give(&how, fds, job->opts->status_fd);
	if (yard_fd >= 0) {
		snprintf(yard_path, sizeof(yard_path), "/proc/self/fd/%d",
			 give(&how, fds, yard_fd));
		opts->cgroup_yard = yard_path;
	}
	r = lr_criu_open(&how, &s, err);
	if (r < 0)
		return r;
	r = lr_thaw_begin(job, &s, &thaw, err);
	if (r >= 0)
		r = lr_criu_ask(&s, &rq, job->opts->pre_dump ? NULL : at_post_dump, &x, &rsp, err);
	if (r == -EREMOTEIO || r == -EPIPE)
		r = explain(job->opts->pre_dump ? "pre-dump the container" : "dump the container",
			    d, opts->log_file, &s, &rsp, r == -EPIPE, err);
	if (r >= 0 && !job->opts->pre_dump && !x.judged)
		r = lr_refuse(err, EPROTO, "criu did not wait for what it saved to be checked");
	/* Nobody shall take it for a checkpoint. */
	if (!job->opts->pre_dump && !x.judged)
		(void)unlinkat(d->images_fd, INVENTORY, 0);
	lr_criu_close(&s);
	return lr_thaw_end(job, &thaw, r, err);
}

/* The container is not given up for a word alone. */
static int check_images(const struct lr_checkpoint_dirs *d, struct lr_err *err)
{
	if (faccessat(d->images_fd, INVENTORY, F_OK, 0) < 0 && errno == ENOENT)
		return lr_fail(err, errno,
			       "find " INVENTORY ", which criu says that it has written,");
	return 0;
}

static int checkpoint(const struct lr_checkpoint_job *job, struct lr_arena *a, struct lr_err *err)
{
	const struct lr_checkpoint_opts *o = job->opts;
	struct lr_checkpoint_dirs d = LR_CHECKPOINT_DIRS_NONE;
	struct lr_checkpoint_found f;
	struct lr_saved_rules rules;
	struct lr_criu_opts opts;

	int r = lr_criu_check(o->criu, o->lazy_pages && !o->pre_dump, o->pre_dump || o->parent_path,
			      err);
	if (r >= 0)
		r = lr_checkpoint_dirs_open(o, true, a, &d, err);
	if (r >= 0)
		r = look(job, a, &f, err);
	if (r >= 0)
		r = lr_checkpoint_plan(job->config, job->opts, &f, a, &opts, &rules, err);
	if (r >= 0 && !job->opts->pre_dump)
		r = lr_checkpoint_stdio_save(&f.stdio, d.images_fd, a, err);
	if (r >= 0)
		r = dump(job, &d, &f.yard, &opts, &rules, err);
	if (r >= 0 && !o->pre_dump && !o->leave_running)
		r = check_images(&d, err);
	lr_checkpoint_dirs_close(&d);
	return r;
}

/* ---- restore ------------------------------------------------------------------------------- */

/* Numbers in criu's process; after these come the namespaces that are joined. */
enum {
	FD_STDIO = LR_CRIU_FIRST_FD,
	FD_IMAGES = FD_STDIO + 3,
	FD_WORK,
	FD_NAMESPACES,
};

struct restoring {
	const struct lr_restore_job *job;
	const struct lr_checkpoint_dirs *dirs;
	struct lr_restore_plan plan;
	pid_t *pid;
	bool born, verified;
	int fds[7]; /* from FD_STDIO on */
	size_t n_fds;
};

/* In criu's process. What criu mounts in its directories it can only mount where these belong to
 * its own mount namespace. */
static int set_stage(void *arg, struct lr_err *err)
{
	struct restoring *x = arg;

	int r = x->job->inherit(x->job->arg, err);
	if (r >= 0)
		r = lr_restore_stage(x->job, &x->plan, err);
	if (r < 0)
		return r;
	x->fds[FD_IMAGES - FD_STDIO] = lr_open(x->dirs->images, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	x->fds[FD_WORK - FD_STDIO] = lr_open(x->dirs->work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (x->fds[FD_IMAGES - FD_STDIO] < 0 || x->fds[FD_WORK - FD_STDIO] < 0)
		return lr_fail(err, errno, "open the image directory for criu");
	return 0;
}

/* Which of the host's files the binds are, while they are on criu's stage. */
static int identify(struct restoring *x, pid_t criu, struct lr_arena *a, struct lr_err *err)
{
	struct lr_checkpoint_mount *mounts;
	size_t n;

	int r = lr_checkpoint_mounts(criu, a, &mounts, &n, err);
	return r < 0 ? r : lr_restore_identify(&x->plan, mounts, n, a, err);
}

/*
 * Everything is there, and nothing of it runs. A bind mount is in the images with the attributes
 * that it had, under the name of the place that config.json gives it: which of them is at which
 * place is for the container to change, by links and renamed directories, until criu has stopped
 * it. So one could get the source of another, without what protects that.
 */
static int verify(struct restoring *x, struct lr_err *err)
{
	int r = lr_restore_verify_all(&x->plan, *x->pid, err);

	x->verified = r >= 0;
	return r;
}

static int notified(void *arg, const struct lr_criu_response *rsp, int *fd, struct lr_err *err)
{
	struct restoring *x = arg;
	const struct lr_restore_job *job = x->job;

	if (lr_streq(rsp->script, "orphan-pts-master")) {
		if (*fd < 0)
			return lr_refuse(err, EPROTO, "criu sends no terminal");
		return job->console(job->arg, *fd, err);
	}
	if (rsp->pid > 0)
		*x->pid = rsp->pid;
	if (lr_streq(rsp->script, "setup-namespaces") && !x->born) {
		x->born = true;
		return job->born(job->arg, rsp->pid, err);
	}
	return lr_streq(rsp->script, "post-restore") ? verify(x, err) : 0;
}

/* *number: in criu's process. */
static int open_joined(struct restoring *x, const char *type, int *number, struct lr_err *err)
{
	const char *path = lr_checkpoint_joined(x->job->config, type);

	*number = LR_NOFD;
	if (!path)
		return 0;
	int fd = lr_open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return lr_fail(err, errno, "open the %s namespace %s", type, path);
	*number = FD_STDIO + (int)x->n_fds;
	x->fds[x->n_fds++] = fd;
	return 0;
}

static int talk(struct restoring *x, const struct lr_criu_session *s, struct lr_arena *a,
		struct lr_err *err)
{
	const struct lr_restore_job *job = x->job;
	struct lr_criu_opts *opts = &x->plan.opts;
	struct lr_criu_response rsp = {0};
	const struct lr_criu_request rq = {.type = LR_CRIU_RESTORE, .opts = opts};
	char *cgroup;

	int r = job->began(job->arg, s->pid, err);
	if (r >= 0)
		r = identify(x, s->pid, a, err);
	if (r >= 0)
		r = lr_cgroup_text(s->pid, a, &cgroup, err);
	if (r >= 0)
		r = lr_restore_plan_cgroups(cgroup, a, opts, err);
	if (r < 0)
		return r;
	(void)unlinkat(x->dirs->work_fd, opts->log_file, 0); /* another one's */
	opts->images_dir_fd = FD_IMAGES;
	opts->work_dir_fd = FD_WORK;
	r = lr_criu_ask(s, &rq, notified, x, &rsp, err);
	if (r == -EREMOTEIO || r == -EPIPE)
		return explain("restore the container", x->dirs, opts->log_file, s, &rsp,
			       r == -EPIPE, err);
	if (r >= 0 && rsp.pid > 0)
		*x->pid = rsp.pid;
	if (r >= 0 && *x->pid <= 0)
		r = lr_refuse(err, EPROTO, "criu does not name the restored process");
	if (r >= 0 && !x->verified)
		r = lr_refuse(err, EPROTO, "criu did not wait for what it restored to be checked");
	/* Without namespaces of its own there was no such moment. */
	return r >= 0 && !x->born ? job->born(job->arg, *x->pid, err) : r;
}

/* Before criu mounts anything of it. */
static int judge_saved(struct restoring *x, struct lr_arena *a, struct lr_err *err)
{
	const struct lr_restore_bind *b = x->plan.binds;
	struct lr_criu_mount *saved = NULL;
	struct lr_saved_rules rules;
	int r = 0;

	lr_saved_begin(&rules, x->job->config);
	for (size_t i = 0; i < x->plan.n && r >= 0; i++)
		r = lr_saved_allow(&rules, b[i].name, b[i].options, b[i].set, a, err);
	if (r >= 0)
		r = judge_images(x->dirs, &rules, a, &saved, &x->plan.n_saved, err);
	x->plan.saved = saved;
	return r;
}

/* Sources are where they are by now. */
static int check_deleted(const struct restoring *x, struct lr_arena *a, struct lr_err *err)
{
	struct lr_criu_remap *v;
	size_t n;

	int r = lr_criu_read_remaps(x->dirs->images_fd, a, &v, &n, err);
	return r < 0 ? r : lr_deleted_check(&x->plan, x->job->rootfs, v, n, a, err);
}

static int start(struct restoring *x, struct lr_restore_found *f, struct lr_arena *a,
		 struct lr_err *err)
{
	struct lr_criu_session s = LR_CRIU_SESSION_NONE;
	struct lr_criu_how how = {
		.program = x->job->opts->criu,
		.before = set_stage,
		.arg = x,
		.restores = true,
		.fds = x->fds,
	};

	int r = open_joined(x, "network", &f->netns, err);
	if (r >= 0)
		r = open_joined(x, "pid", &f->pidns, err);
	if (r >= 0)
		r = lr_restore_plan(x->job, f, a, &x->plan, err);
	if (r >= 0)
		r = judge_saved(x, a, err);
	if (r >= 0)
		r = lr_restore_look(&x->plan, a, err);
	if (r >= 0)
		r = check_deleted(x, a, err);
	if (r >= 0)
		r = lr_restore_plan_binds(&x->plan, a, err);
	how.n_fds = x->n_fds;
	if (r >= 0)
		r = lr_criu_open(&how, &s, err);
	if (r >= 0)
		r = talk(x, &s, a, err);
	lr_criu_close(&s);
	for (size_t i = FD_NAMESPACES - FD_STDIO; i < x->n_fds; i++)
		lr_close(x->fds[i]);
	return r;
}

static int restore(const struct lr_restore_job *job, struct lr_arena *a, pid_t *pid,
		   struct lr_err *err)
{
	struct lr_checkpoint_dirs d = LR_CHECKPOINT_DIRS_NONE;
	struct restoring x = {
		.job = job,
		.dirs = &d,
		.pid = pid,
		.fds = {0, 1, 2, LR_NOFD, LR_NOFD},
		.n_fds = FD_NAMESPACES - FD_STDIO,
	};
	struct lr_restore_found f = {.fd0 = FD_STDIO};

	*pid = 0;
	int r = lr_checkpoint_config_file(job->config, &f.config_file, err);
	if (r >= 0)
		r = lr_criu_check(job->opts->criu, job->opts->lazy_pages, false, err);
	if (r >= 0)
		r = lr_checkpoint_dirs_open(job->opts, false, a, &d, err);
	if (r >= 0)
		r = lr_checkpoint_stdio_load(d.images_fd, a, &f.stdio, err);
	if (r >= 0) {
		f.net = lr_checkpoint_has_net(d.images_fd);
		r = lr_yard_look(job->opts, a, &f.yard, err);
	}
	if (r >= 0)
		r = start(&x, &f, a, err);
	lr_checkpoint_dirs_close(&d);
	return r;
}

const struct lr_checkpoint_engine lr_checkpoint_criu = {
	.name = "criu",
	.checkpoint = checkpoint,
	.restore = restore,
};
