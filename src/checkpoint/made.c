/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint: what a container has made beside its processes, and what no child gets: mounts, and
 * cgroups below its own.
 *
 * All of it is looked at while the container runs. When the container is held, only three questions are
 * left, so that it is not held for long: have its mounts changed since, or been others (poll(2) on
 * mountinfo tells, and which mount its root is), is the root of its first process config.json's
 * (first.c), and are there more or fewer cgroups (by the links of the directory). Its namespaces are those of its
 * twin, so they are compared when the container runs on.
 */
#define LR_ROOM "checkpoint"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/capture.h"
#include "src/checkpoint/internal.h"
#include "src/sys/proc.h"
#include "src/sys/syscalls.h"

/* ---- mounts ---------------------------------------------------------------------------------- */

static const char *flags(uint64_t lost, struct lr_arena *a)
{
	static const char *const names[] = {"ro", "nosuid", "nodev", "noexec", "nosymfollow"};
	const char *text = "";

	for (size_t i = 0; i < LR_ARRAY_SIZE(names) && text; i++)
		if (lost & lr_checkpoint_attribute(names[i]))
			text = lr_concat(a, text, *text ? "," : "", names[i], NULL);
	return text;
}

static void tell(const struct lr_capture_refuse *to, const struct lr_mounted_change *c,
		 struct lr_arena *a)
{
	const char *what = NULL;

	switch (c->what) {
	case LR_MOUNTED_OWN:
		what = lr_concat(a, "a mount that config.json does not have (", c->type, " on ",
				 c->point, ")", NULL);
		break;
	case LR_MOUNTED_GONE:
		what = lr_concat(a, "a mount of config.json that is gone (", c->point, ")", NULL);
		break;
	case LR_MOUNTED_FLAGS:
		what = flags(c->lost, a);
		if (what)
			what = lr_concat(a, "a mount of config.json that has lost flags (",
					 c->point, ": ", what, ")", NULL);
		break;
	}
	to->tell(to->capture, what ? what : "a mount that config.json does not have");
}

static int compare(const struct lr_made *x, struct lr_mounted_found *f, struct lr_arena *a,
		   struct lr_mounted *ret, struct lr_err *err)
{
	struct lr_checkpoint_mount *host = NULL;

	int r = lr_checkpoint_mounted(x->job->config, f, a, ret, err);
	if (r < 0 || !ret->ask)
		return r;
	r = lr_checkpoint_mounts(getpid(), a, &host, &f->n_host, err);
	f->host = host;
	return r < 0 ? r : lr_checkpoint_mounted(x->job->config, f, a, ret, err);
}

/* root: where its first process has that, in its mount namespace. */
static int look_at_root(const struct lr_made *x, char root[PATH_MAX],
			const struct lr_capture_refuse *to, struct lr_err *err)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/root", x->job->pid);
	ssize_t n = readlink(path, root, PATH_MAX - 1);
	if (n < 0)
		return lr_fail(err, errno, "read %s", path);
	root[n] = 0;
	lr_first_root(x->job, root, to);
	return 0;
}

/* 0: an older kernel than Linux 5.8 does not tell, or it has ended, which others find out. */
static int mount_of_root(const struct lr_made *x)
{
	struct statx its;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/root", x->job->pid);
	int r = lr_statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_MNT_ID, &its);
	return r < 0 || !(its.stx_mask & STATX_MNT_ID) ? 0 : (int)its.stx_mnt_id;
}

/* By what mountinfo had there, and not by what was asked before, or after that. */
static void note_top(struct lr_made *x, const struct lr_mounted_found *f)
{
	const int mount = mount_of_root(x);

	x->top = 0;
	for (size_t i = 0; i < f->n && lr_streq(f->root, "/"); i++)
		if (f->mounts[i].id == mount && lr_streq(f->mounts[i].point, "/"))
			x->top = mount;
}

static int look_at_mounts(struct lr_made *x, const char *root, const struct lr_capture_refuse *to,
			  struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_checkpoint_mount *mounts = NULL;
	struct lr_mounted_found f = {.root = root};
	struct lr_mounted found = {0};

	int r = lr_checkpoint_mounts(x->job->pid, a, &mounts, &f.n, err);
	f.mounts = mounts;
	if (r >= 0)
		note_top(x, &f);
	if (r >= 0)
		r = compare(x, &f, a, &found, err);
	for (size_t i = 0; r >= 0 && i < found.n; i++)
		tell(to, &found.v[i], a);
	return r;
}

/* Before mounts are looked at, so that poll(2) tells of every change since: of the namespace that the process is in by
 * now. In another one its root is another mount. */
static int open_mountinfo(struct lr_made *x, struct lr_err *err)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", x->job->pid);
	lr_close(x->mountinfo);
	x->mountinfo = lr_open(path, O_RDONLY | O_CLOEXEC);
	return x->mountinfo < 0 ? lr_fail(err, errno, "open %s", path) : 0;
}

/* Mountinfo has what is mounted below its root, and chroot(2) changes no mount. It had all of it where that is the
 * whole namespace's, then and now. */
static bool has_seen_less(const struct lr_made *x, const char *root)
{
	return lr_checkpoint_own(x->job->config, "mount") &&
	       (!x->top || !lr_streq(root, "/") || mount_of_root(x) != x->top);
}

/* ---- cgroups --------------------------------------------------------------------------------- */

static void tell_cgroup(void *arg, const char *hierarchy, const char *path)
{
	const struct lr_capture_refuse *to = arg;
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const char *what = lr_concat(a, "a cgroup below the container's own (",
				     *hierarchy ? hierarchy : "cgroup v2", ": ", path, ")", NULL);

	to->tell(to->capture, what ? what : "a cgroup below the container's own");
}

static int look_at_cgroups(const struct lr_made *x, const struct lr_capture_refuse *to,
			   struct lr_err *err)
{
	struct lr_capture_refuse refuse = *to;

	return lr_cgroup_each_below(x->job->cgroup, x->job->delegate, tell_cgroup, &refuse, err);
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* For lr_made_afford. */
static int open_limits(struct lr_made *x, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();

	lr_stats_limits_close(&x->limits);
	return lr_stats_limits_open(x->job->cgroup, a, &x->limits, err);
}

int lr_made_look(void *made, bool held, const struct lr_capture_refuse *refuse, struct lr_err *err)
{
	struct lr_made *x = made;
	uint64_t cgroups = lr_cgroup_count_below(x->job->cgroup, x->job->delegate);
	bool again = !held || cgroups != x->cgroups;
	char root[PATH_MAX];
	int r = held ? 0 : open_mountinfo(x, err);

	x->cgroups = cgroups;
	if (r >= 0 && !held)
		r = open_limits(x, err);
	if (r >= 0)
		r = look_at_root(x, root, refuse, err);
	if (r >= 0 && (!held || lr_proc_mounts_changed(&x->mountinfo) || has_seen_less(x, root)))
		r = look_at_mounts(x, root, refuse, err);
	return r < 0 || !again ? r : look_at_cgroups(x, refuse, err);
}

void lr_made_look_at_spaces(void *made, pid_t pid, const struct lr_capture_refuse *refuse)
{
	const struct lr_made *x = made;

	lr_first_spaces(x->job, pid, refuse);
}

void lr_made_close(struct lr_made *made)
{
	made->mountinfo = lr_close(made->mountinfo);
	lr_stats_limits_close(&made->limits);
}
