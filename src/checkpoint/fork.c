/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint: the engine `fork`: a container becomes a seed, two files of docs/seed-format.md, and
 * runs on. Containers that continue it are born as any other (init/seed.h).
 */
#define LR_ROOM "checkpoint"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/checkpoint/internal.h"
#include "src/seccomp/seccomp.h"
#ifdef __x86_64__
#include "src/capture/capture.h"
#endif

/* The files, and what they are called until they are whole. */
#define DESCRIPTOR "descriptor"
#define PAGES      "pages"
#define UNFINISHED ".new"

/* ---- what is refused ------------------------------------------------------------------------- */

/* Pure: the option that is another engine's; NULL: none. */
static const char *foreign_option(const struct lr_checkpoint_opts *o)
{
	const struct {
		bool given;
		const char *name;
	} options[] = {
		{o->work_path, "--work-path"},
		{o->parent_path, "--parent-path"},
		{o->page_server, "--page-server"},
		{o->cgroups, "--manage-cgroups-mode"},
		{o->network_lock, "--network-lock"},
		{o->lsm_profile, "--lsm-profile"},
		{o->lsm_mount_context, "--lsm-mount-context"},
		{o->empty_ns && o->empty_ns[0], "--empty-ns"},
		{o->status_fd >= 0, "--status-fd"},
		{o->pre_dump, "--pre-dump"},
		{o->tcp_established, "--tcp-established"},
		{o->tcp_skip_in_flight, "--tcp-skip-in-flight"},
		{o->ext_unix_sk, "--ext-unix-sk"},
		{o->shell_job, "--shell-job"},
		{o->file_locks, "--file-locks"},
		{o->auto_dedup, "--auto-dedup"},
		{o->lazy_pages, "--lazy-pages"},
		{o->link_remap, "--link-remap"},
	};

	for (size_t i = 0; i < LR_ARRAY_SIZE(options); i++)
		if (options[i].given)
			return options[i].name;
	return NULL;
}

int lr_checkpoint_fork_opts(const struct lr_checkpoint_opts *o, struct lr_err *err)
{
	const char *name = foreign_option(o);

	return name ? lr_refuse(err, EINVAL, "%s goes with --engine=criu", name) : 0;
}

static bool has_label(const struct oci_process *p)
{
	return (p->apparmor_profile && *p->apparmor_profile) ||
	       (p->selinux_label && *p->selinux_label);
}

size_t lr_checkpoint_fork_config(const struct oci_config *c, const char *why[LR_FORK_REASONS])
{
	const struct oci_seccomp *filter = c->linux_ ? c->linux_->seccomp : NULL;
	size_t n = 0;

	if (!lr_checkpoint_own(c, "pid"))
		why[n++] = "linux.namespaces: it has no pid namespace of its own";
	if (lr_checkpoint_joined(c, "user"))
		why[n++] = "linux.namespaces: a user namespace that it shares";
	if (lr_checkpoint_own(c, "time") || lr_checkpoint_joined(c, "time"))
		why[n++] = "linux.namespaces: a time namespace";
	if (has_label(c->process))
		why[n++] = "process: a label of a security module";
	if (filter && filter->listener_path)
		why[n++] = "linux.seccomp.listenerPath: a filter that asks an agent";
	return n;
}

#ifdef __x86_64__

/* ---- checkpoint ------------------------------------------------------------------------------ */

struct saving {
	int dir;
	const struct lr_checkpoint_job *job;
	struct lr_capture capture;
	struct lr_capture_layer layer;
};

static int finish(void *arg, struct lr_err *err)
{
	const struct saving *x = arg;

	/* Whoever sees only one of them sees that the two do not belong together. */
	if (renameat(x->dir, PAGES UNFINISHED, x->dir, PAGES) < 0 ||
	    renameat(x->dir, DESCRIPTOR UNFINISHED, x->dir, DESCRIPTOR) < 0)
		return lr_fail(err, errno, "put the seed's files in place");
	return 0;
}

static int make_file(int dir, const char *name, struct lr_err *err)
{
	/* Who has left one there, and has it open, could read on. */
	if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
		return lr_fail(err, errno, "remove the seed's file %s", name);
	int fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? lr_fail(err, errno, "make the seed's file %s", name) : fd;
}

/* Each on a line of its own, as there may be many. */
static int tell_refusals(const char *why[], size_t n, char *text, struct lr_err *err)
{
	char *save = NULL;

	for (size_t i = 0; i < n; i++)
		lr_warn("cannot be carried: %s", why[i]);
	for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save), n++)
		lr_warn("cannot be carried: %s", line);
	if (!n)
		return 0;
	lr_refuse(err, ENOTSUP, "a seed cannot carry %zu of the container's resources", n);
	return lr_err_hint(err, "the lines before this one name them; --engine=criu carries more");
}

static int capture(struct saving *x, struct lr_err *err)
{
	const char *why[LR_FORK_REASONS];
	LR_CLEANUP_FREE char *refusals = NULL;
	struct lr_capture_stats stats = {0};
	size_t n = lr_checkpoint_fork_config(x->job->config, why);

	x->capture.refusals_only = n > 0;
	int r = lr_capture(&x->capture, &stats, &refusals, err);
	if (n || refusals)
		r = tell_refusals(why, n, refusals, err);
	if (r >= 0)
		lr_debug("checkpoint: %llu pages, %llu us held", (unsigned long long)stats.pages,
			 (unsigned long long)stats.pause_ns / 1000);
	return r;
}

static int save(struct saving *x, struct lr_err *err)
{
	LR_CLEANUP_FD int pages = make_file(x->dir, PAGES UNFINISHED, err);
	LR_CLEANUP_FD int descriptor =
		pages < 0 ? pages : make_file(x->dir, DESCRIPTOR UNFINISHED, err);

	if (descriptor < 0)
		return descriptor;
	x->capture.pages = pages;
	x->capture.descriptor = descriptor;
	return capture(x, err);
}

static int to_files(struct saving *x, struct lr_arena *a, struct lr_err *err)
{
	struct lr_checkpoint_dirs d = LR_CHECKPOINT_DIRS_NONE;

	int r = lr_checkpoint_dirs_open(x->job->opts, true, a, &d, err);
	if (r < 0)
		return r;
	x->dir = d.images_fd;
	x->capture.written = finish;
	x->capture.written_arg = x;
	r = save(x, err);
	if (r < 0) {
		unlinkat(x->dir, PAGES UNFINISHED, 0);
		unlinkat(x->dir, DESCRIPTOR UNFINISHED, 0);
	}
	lr_checkpoint_dirs_close(&d);
	return r;
}

static int to_daemon(void *saving, const struct lr_checkpoint_opts *o, struct lr_err *err)
{
	struct saving *x = saving;
	struct lr_gift g;

	int r = lr_gift_begin(o, &g, err);
	if (r >= 0)
		r = lr_gift_may_export(&g, x->job->config, err);
	if (r >= 0) {
		x->capture.take = r > 0 ? lr_gift_export : NULL;
		x->capture.pages = g.pages;
		x->capture.descriptor = g.descriptor;
		x->capture.written = lr_gift_give;
		x->capture.written_arg = &g;
		x->capture.filled = o->background ? lr_gift_fill : NULL;
		r = capture(x, err);
	}
	lr_gift_end(&g, r < 0);
	return r;
}

static bool allows(const struct lr_capture_filter *f, const int *calls, size_t n)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const struct lr_seccomp_prog p = {.v = (struct sock_filter *)f->code,
					  .n = (unsigned short)f->n};

	return lr_seccomp_allows(&p, calls, n, a);
}

/* Those that config.json has made: what it binds is the host's. NULL: no memory. */
static const char *const *list_tmpfs(const struct oci_mounts *mounts, struct lr_arena *a)
{
	const char **v = lr_new_n(a, mounts->n + 1, const char *);
	size_t n = 0;

	for (size_t i = 0; v && i < mounts->n; i++) {
		const struct oci_mount *m = &mounts->v[i];
		if (!m->type || !lr_streq(m->type, "tmpfs") || lr_checkpoint_is_bind(m))
			continue;
		v[n] = lr_checkpoint_clean(m->destination, a);
		if (!v[n++])
			return NULL;
	}
	return v;
}

static int checkpoint(const struct lr_checkpoint_job *job, struct lr_arena *a, struct lr_err *err)
{
	const bool own_names = lr_checkpoint_own(job->config, "uts");
	struct lr_made made = {.job = job, .mountinfo = LR_NOFD};
	struct saving x = {
		.job = job,
		.capture = {.pid = job->pid,
			    .namespace_too = true,
			    .own_user = lr_checkpoint_own(job->config, "user"),
			    .terminal = job->config->process->terminal,
			    .relayed = job->relayed,
			    .own_ipc = lr_checkpoint_own(job->config, "ipc"),
			    .own_policy = job->config->linux_ && job->config->linux_->memory_policy,
			    .hostname = own_names ? job->config->hostname : NULL,
			    .domainname = own_names ? job->config->domainname : NULL,
			    .known_filter = job->config->linux_ && job->config->linux_->seccomp,
			    .allows = allows,
			    .look = lr_made_look,
			    .look_at_spaces = lr_made_look_at_spaces,
			    .look_arg = &made,
			    .afford = lr_made_afford,
			    .tmpfs = list_tmpfs(&job->config->mounts, a),
			    .tmpfs_bytes = (uint64_t)job->opts->tmpfs_bytes,
			    .tmpfs_files = (uint64_t)job->opts->tmpfs_files,
			    .close_tcp = job->opts->tcp_close,
			    .awaited = job->opts->when_ready,
			    .without_exec = job->opts->without_exec,
			    .end = job->opts->stop},
	};

	int r = lr_checkpoint_fork_opts(job->opts, err);
	if (r >= 0 && !x.capture.tmpfs)
		r = lr_fail(err, ENOMEM, "list the container's tmpfs");
	if (r >= 0 && job->paused) {
		lr_refuse(err, EBUSY, "a paused container cannot become a seed");
		r = lr_err_hint(err, "resume it first, or use --engine=criu");
	}
	if (r < 0)
		return r;
	r = lr_checkpoint_layer(job->pid, job->opts, a, &x.layer, err);
	if (r < 0)
		return r;
	x.capture.layer = x.layer.upper >= 0 ? &x.layer : NULL;
	if (!job->opts->ticket)
		r = to_files(&x, a, err);
	else
		r = job->opts->background ? lr_checkpoint_apart(job, to_daemon, &x, err)
					  : to_daemon(&x, job->opts, err);
	x.layer.upper = lr_close(x.layer.upper);
	lr_made_close(&made);
	return r;
}
#else
static int checkpoint(const struct lr_checkpoint_job *job, struct lr_arena *a, struct lr_err *err)
{
	(void)job;
	(void)a;
	return lr_refuse(err, ENOTSUP, "the engine fork is for x86-64");
}
#endif

/* ---- restore --------------------------------------------------------------------------------- */

static int open_file(int dir, const char *name, uint64_t *size, struct lr_err *err)
{
	struct stat st;

	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		lr_fail(err, errno, "open the seed's file %s", name);
		lr_close(fd);
		return lr_err_hint(err, "--image-path names a directory of checkpoint "
					"--engine=fork");
	}
	*size = (uint64_t)st.st_size;
	return fd;
}

int lr_checkpoint_read_descriptor(int fd, struct lr_arena *a, void **ret, uint64_t *size,
				  struct lr_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return lr_fail(err, errno, "look at the seed's descriptor");
	*size = (uint64_t)st.st_size;
	/* Whoever wrote it, or read it before, left it at its end. */
	if (lseek(fd, 0, SEEK_SET) < 0)
		return lr_fail(err, errno, "read the seed's descriptor");
	if (*size > LR_SEED_MOST)
		return lr_refuse(err, EFBIG, "the seed's descriptor has %llu bytes",
				 (unsigned long long)*size);
	*ret = lr_alloc(a, *size);
	if (!*ret)
		return lr_fail(err, ENOMEM, "read the seed");
	ssize_t n = lr_read_full(fd, *ret, *size);
	if (n < 0)
		return lr_fail(err, (int)-n, "read the seed's descriptor");
	*size = (uint64_t)n;
	return 0;
}

uint64_t lr_checkpoint_pages(const struct lr_seed *s)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < lr_seed_count(s, LR_SEED_RUN); i++)
		n += lr_seed_run(s, i)->pages;
	return n;
}

static int from_files(const struct lr_checkpoint_opts *o, struct lr_arena *a,
		      struct lr_init_seed *ret, struct lr_err *err)
{
	struct lr_checkpoint_dirs d = LR_CHECKPOINT_DIRS_NONE;
	uint64_t size = 0, pages = 0;
	void *bytes = NULL;

	int r = lr_checkpoint_dirs_open(o, false, a, &d, err);
	if (r >= 0)
		r = ret->descriptor = open_file(d.images_fd, DESCRIPTOR, &size, err);
	if (r >= 0)
		r = lr_checkpoint_read_descriptor(ret->descriptor, a, &bytes, &size, err);
	if (r >= 0)
		r = ret->pages = open_file(d.images_fd, PAGES, &pages, err);
	if (r >= 0)
		r = lr_seed_open(bytes, size, pages, &ret->seed, err);
	lr_checkpoint_dirs_close(&d);
	if (r >= 0 && o->stats) {
		o->stats->memory = "files";
		o->stats->described = o->stats->brought = lr_now_ns();
		o->stats->pages = o->stats->files = lr_checkpoint_pages(&ret->seed);
	}
	return r < 0 ? r : 0;
}

static int open_seed(const struct lr_checkpoint_opts *o, struct lr_arena *a,
		     struct lr_init_seed *ret, struct lr_err *err)
{
	*ret = LR_INIT_SEED_NONE;
	int r = lr_checkpoint_fork_opts(o, err);
	if (r >= 0 && o->tcp_close) {
		lr_refuse(err, EINVAL, "--tcp-close is for restore with --engine=criu");
		r = lr_err_hint(err, "a seed has no connections: those that it had closed for its "
				     "children are closed (checkpoint --tcp-close)");
	}
	if (r < 0)
		return r;
	ret->stats = o->stats;
	return o->ticket_from ? lr_checkpoint_fetch(o, a, ret, err) : from_files(o, a, ret, err);
}

const struct lr_checkpoint_engine lr_checkpoint_fork = {
	.name = "fork",
	.runs_on = true,
	.checkpoint = checkpoint,
	.open = open_seed,
};
