/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resume: watches of inotify, by their paths in the child's root, with the rights by which files are
 * opened. When all else is open: so nothing of that is an event. The kernel gives out numbers one after
 * the other, so those that are not in use are taken and given back; what that, or others, have put into
 * the queue until then is read away.
 */
#define LR_ROOM "resume"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/resume/resuming.h"

/* One that has no events, and is an error where what is to be watched is watched already: or the mask
 * of that would change. */
#define NUMBER_ONLY (IN_MASK_CREATE | IN_EXCL_UNLINK)

struct watching {
	const struct lr_resume *r;
	int fd;
	uint32_t next; /* the number that the kernel gives out next, if it is right */
};

static int failed(const struct watching *x, const char *path, int code, struct lr_err *err)
{
	lr_fail(err, code, "watch %s, as the seed did", path);
	switch (code) {
	case ENOSPC:
		return lr_err_hint(err, "its user has as many watches as "
					"fs.inotify.max_user_watches (sysctl) allows");
	case EEXIST:
		return lr_err_hint(err, "it is the same file here as another one that the seed "
					"watches: use the root file system that it was made with");
	case EACCES:
		return lr_err_hint(err, "config.json's process may not read it here");
	case ENOENT:
		return resume_hint_changed(x->r, err);
	default:
		return -code;
	}
}

/* What is open there, and no name that may be another's by now. inotify_add_watch(2) takes a path: in
 * the working directory, which is a procfs of ours. */
static int add(const struct watching *x, int target, uint32_t mask)
{
	char path[48];

	snprintf(path, sizeof(path), "%sself/fd/%d", x->r->proc < 0 ? "/proc/" : "", target);
	return inotify_add_watch(x->fd, path, mask);
}

static int pass_numbers(struct watching *x, int target, uint32_t until)
{
	while (x->next < until) {
		int watch = add(x, target, NUMBER_ONLY);
		if (watch < 0 || inotify_rm_watch(x->fd, watch) < 0)
			return -errno;
		x->next = (uint32_t)watch + 1;
	}
	return 0;
}

/* A link is watched where the seed watched one: it is not followed. */
static int check_type(const struct lr_seed_watch *w, int target, const char *path,
		      struct lr_err *err)
{
	struct stat st;

	if (fstat(target, &st) < 0)
		return lr_fail(err, errno, "look at %s", path);
	if ((st.st_mode & S_IFMT) == w->data)
		return 0;
	lr_refuse(err, ENOTSUP, "watch %s, as the seed did: it is another kind of file here", path);
	return lr_err_hint(err, "use the root file system that the seed was made with");
}

static int add_watch(struct watching *x, const struct lr_seed_watch *w, struct lr_err *err)
{
	const char *path = lr_seed_text(x->r->seed, w->path);
	LR_CLEANUP_FD int target = resume_open_path(path, O_PATH | O_NOFOLLOW);

	if (target < 0)
		return failed(x, path, errno, err);
	int type = check_type(w, target, path, err);
	if (type < 0)
		return type;
	int rc = pass_numbers(x, target, w->number);
	if (rc < 0)
		return failed(x, path, -rc, err);
	int watch = add(x, target, w->mask | IN_MASK_CREATE);
	if (watch < 0)
		return failed(x, path, errno, err);
	if ((uint32_t)watch != w->number)
		return lr_refuse(err, ENOTSUP,
				 "the watch of %s, which was %u in the seed, is %d here", path,
				 w->number, watch);
	x->next = w->number + 1;
	return 0;
}

static int read_away(int fd, struct lr_err *err)
{
	char events[4096];
	int unread = 0;

	while (ioctl(fd, FIONREAD, &unread) == 0 && unread)
		if (read(fd, events, sizeof(events)) < 0)
			return lr_fail(err, errno, "read what adding watches has left");
	return 0;
}

static int watch_all(const struct lr_resume *r, const struct lr_seed_file *f, int fd,
		     struct lr_err *err)
{
	struct watching x = {r, fd, 1};
	int rc = 0;

	for (uint32_t i = 0; rc >= 0 && i < f->watches.count; i++)
		rc = add_watch(&x, lr_seed_watch(r->seed, f->watches.first + i), err);
	return rc < 0 ? rc : read_away(fd, err);
}

int resume_watch_files(const struct lr_resume *r, struct lr_err *err)
{
	int rc = 0;

	LR_CLEANUP_FD int here = lr_open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (here < 0 || (r->proc >= 0 && fchdir(r->proc) < 0))
		return lr_fail(err, errno, "go to /proc, to watch files");
	for (uint32_t i = 0; rc >= 0 && i < lr_seed_count(r->seed, LR_SEED_FILE); i++) {
		const struct lr_seed_file *f = lr_seed_file(r->seed, i);
		if (f->kind == LR_SEED_INOTIFY)
			rc = watch_all(r, f, r->files[i], err);
	}
	return fchdir(here) < 0 && rc >= 0 ? lr_fail(err, errno, "go back") : rc;
}
