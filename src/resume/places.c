/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resume: where processes are: their working directories, and roots of their own (chroot(2)). Paths of
 * both count from the container's root, so all are opened before any process changes its root. No
 * link is followed: descriptors of the host's are still open, and a link to one of them would lead
 * out of the container (as in CVE-2024-21626).
 */
#define LR_ROOM "resume"
#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/resume/resuming.h"

/* O_PATH asks for no right to the directory itself, so it is opened once more, as ".": that takes the
 * right to search it, as chdir(2) does. */
static int open_dir(struct lr_resume *r, const char *path, const char *what, struct lr_err *err)
{
	LR_CLEANUP_FD int fd = resume_open_path(path, O_PATH | O_DIRECTORY);
	int dir = fd < 0 ? -1 : openat(fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return dir < 0 ? lr_fail(err, errno, "open %s, which is a process's %s", path, what)
		       : resume_keep(r, dir, err);
}

/* In config.json's own working directory any program of the container may be started, whether or not
 * its user could go there. So it is opened with all rights. */
static bool is_beginning(const struct lr_resume *r, const struct lr_seed_fs *fs)
{
	return r->opts.cwd && lr_streq(lr_seed_text(r->seed, fs->cwd), r->opts.cwd);
}

int resume_open_places(struct lr_resume *r, bool beginnings, struct lr_err *err)
{
	const uint32_t n = lr_seed_count(r->seed, LR_SEED_FS);

	for (uint32_t i = 0; i < n; i++) {
		const struct lr_seed_fs *fs = lr_seed_fs(r->seed, i);
		const char *root = lr_seed_text(r->seed, fs->root);
		struct resume_place *p = &r->places[i];
		if (!beginnings) {
			*p = (struct resume_place){LR_NOFD, LR_NOFD};
			if (!lr_streq(root, "/") && (p->root = open_dir(r, root, "root", err)) < 0)
				return p->root;
		}
		if (is_beginning(r, fs) != beginnings)
			continue;
		p->cwd = open_dir(r, lr_seed_text(r->seed, fs->cwd), "working directory", err);
		if (p->cwd < 0)
			return p->cwd;
	}
	return 0;
}

int resume_enter_place(const struct lr_resume *r, const struct lr_seed_process *p,
		       struct lr_err *err)
{
	const struct lr_seed_fs *fs = lr_seed_fs(r->seed, p->fs);

	if (fchdir(r->places[p->fs].cwd) < 0)
		return lr_fail(err, errno, "chdir to %s", lr_seed_text(r->seed, fs->cwd));
	umask((mode_t)fs->umask);
	return 0;
}

void plan_root(struct one *x, struct lr_resume_ops *ops)
{
	const struct resume_place *p = &x->r->places[x->p->fs];

	if (p->root < 0)
		return;
	image_op(ops, SYS_fchdir, 0, (uint64_t)p->root, 0, 0, 0, 0, 0);
	image_op(ops, SYS_chroot, 0, image_put(&x->image, ".", sizeof(".")), 0, 0, 0, 0, 0);
	image_op(ops, SYS_fchdir, 0, (uint64_t)p->cwd, 0, 0, 0, 0, 0);
}
