/* SPDX-License-Identifier: Apache-2.0 */
/* lean: the container's first process takes what was prepared. System calls only. */
#define LR_ROOM "lean"
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>

#include "src/base/log.h"
#include "src/lean/internal.h"
#include "src/sys/syscalls.h"

int lr_lean_enter(struct lr_lean_enter *e, struct lr_err *err)
{
	int r = 0;

	if (e->netns >= 0) {
		r = lr_setns(e->netns, CLONE_NEWNET);
		if (r < 0)
			return lr_fail(err, -r, "enter the prepared network namespace");
	}
	if (e->mntns < 0)
		return 0;
	/* The slot's tree becomes the root; the copy is the container's own. */
	r = lr_setns(e->mntns, CLONE_NEWNS);
	if (r >= 0)
		r = lr_unshare(CLONE_NEWNS);
	if (r < 0)
		return lr_fail(err, -r, "copy the prepared mount namespace");
	/* Before the container's procfs covers it: what masks directories. */
	e->empty = lr_open("/proc", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return e->empty < 0 ? lr_fail(err, errno, "open the prepared /proc") : 0;
}

static bool is_missing(int code)
{
	return code == ENOENT;
}

static int bind(const char *source, const char *path)
{
	return mount(source, path, NULL, MS_BIND, NULL) < 0 ? -errno : 0;
}

/*
 * What the path was when the slot was made is a guess: a module may have been loaded since. The
 * wrong kind is ENOTDIR, which costs the kernel more than the right one.
 */
static int mask(const char *path, bool dir, const char *empty)
{
	int r = bind(dir ? empty : "/dev/null", path);

	return r == -ENOTDIR ? bind(dir ? "/dev/null" : empty, path) : r;
}

static int make_readonly(const char *path)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};

	if (mount(path, path, NULL, MS_BIND | MS_REC, NULL) < 0)
		return -errno;
	return lr_mount_setattr(AT_FDCWD, path, AT_RECURSIVE, &attr);
}

int lr_lean_protect(struct lr_lean_enter *e, struct lr_err *err)
{
	char empty[40];

	snprintf(empty, sizeof(empty), "/proc/self/fd/%d", e->empty);
	for (size_t i = 0; i < e->masked.n; i++) {
		bool dir = e->kinds && e->kinds[i] == 'd';
		int r = mask(e->masked.v[i], dir, empty);
		if (r < 0 && !is_missing(-r))
			return lr_fail(err, -r, "mask %s", e->masked.v[i]);
	}
	for (size_t i = 0; i < e->readonly.n; i++) {
		int r = make_readonly(e->readonly.v[i]);
		if (r < 0 && !is_missing(-r))
			return lr_fail(err, -r, "make %s read-only", e->readonly.v[i]);
	}
	e->empty = lr_close(e->empty);
	lr_debug("lean: %zu paths masked, %zu read-only", e->masked.n, e->readonly.n);
	return 0;
}
