/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint: what a container has made beside its processes, and what no child gets: mounts, and
 * cgroups below its own.
 *
 * All of it is looked at while the container runs. When the container is held, only three questions are
 * left, so that it is not held for long: have its mounts changed since (poll(2) on mountinfo tells, and
 * which mount namespace it is), is its first process where config.json has it (first.c), and are there
 * more or fewer cgroups (by the links of the directory).
 */
#define LR_ROOM "checkpoint"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/capture.h"
#include "src/checkpoint/internal.h"
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

static int look_at_mounts(const struct lr_made *x, const struct lr_capture_refuse *to,
			  struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_checkpoint_mount *mounts = NULL;
	char path[32], root[PATH_MAX] = "";
	struct lr_mounted_found f = {.root = root};
	struct lr_mounted found = {0};

	snprintf(path, sizeof(path), "/proc/%d/root", x->job->pid);
	if (readlink(path, root, sizeof(root) - 1) < 0)
		return lr_fail(err, errno, "read %s", path);
	lr_first_root(x->job, root, to);
	int r = lr_checkpoint_mounts(x->job->pid, a, &mounts, &f.n, err);
	f.mounts = mounts;
	if (r >= 0)
		r = compare(x, &f, a, &found, err);
	for (size_t i = 0; r >= 0 && i < found.n; i++)
		tell(to, &found.v[i], a);
	return r;
}

/* Before mounts are looked at, so that poll(2) tells of every change since: of changes in the namespace that the
 * process is in by now. If it goes to another one, that is seen by `space`. */
static int open_mountinfo(struct lr_made *x, struct lr_err *err)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", x->job->pid);
	lr_close(x->space);
	x->space = lr_open(path, O_RDONLY | O_CLOEXEC);
	if (x->space < 0)
		return lr_fail(err, errno, "open %s", path);
	snprintf(path, sizeof(path), "/proc/%d/mountinfo", x->job->pid);
	lr_close(x->mountinfo);
	x->mountinfo = lr_open(path, O_RDONLY | O_CLOEXEC);
	return x->mountinfo < 0 ? lr_fail(err, errno, "open %s", path) : 0;
}

static bool is_elsewhere(const struct lr_made *x)
{
	struct stat was, is;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", x->job->pid);
	return fstat(x->space, &was) < 0 || stat(path, &is) < 0 || was.st_ino != is.st_ino;
}

/* Closes them, too: while they are open, they keep the container's mounts. */
static bool has_new_mounts(struct lr_made *x)
{
	struct pollfd p = {.fd = x->mountinfo, .events = POLLPRI};
	bool changed = x->mountinfo < 0 || is_elsewhere(x) || poll(&p, 1, 0) != 0;

	x->space = lr_close(x->space);
	x->mountinfo = lr_close(x->mountinfo);
	return changed;
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

int lr_made_look(void *made, bool held, const struct lr_capture_refuse *refuse, struct lr_err *err)
{
	struct lr_made *x = made;
	uint64_t cgroups = lr_cgroup_count_below(x->job->cgroup, x->job->delegate);
	bool again = !held || cgroups != x->cgroups;
	int r = held ? 0 : open_mountinfo(x, err);

	x->cgroups = cgroups;
	lr_first_spaces(x->job, refuse);
	if (r >= 0 && (!held || has_new_mounts(x)))
		r = look_at_mounts(x, refuse, err);
	return r < 0 || !again ? r : look_at_cgroups(x, refuse, err);
}
