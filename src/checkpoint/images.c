/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint: the directories that criu reads and writes, and the administrator's options for it.
 */
#define LR_ROOM "checkpoint"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/checkpoint/internal.h"
#include "src/store/trust.h"
#include "src/sys/path.h"

#define PARENT "parent" /* a link that criu makes and follows */

static char *absolute(const char *path, struct lr_arena *a)
{
	char cwd[PATH_MAX];

	if (path[0] == '/')
		return lr_strdup(a, path);
	return getcwd(cwd, sizeof(cwd)) ? lr_concat(a, cwd, "/", path, NULL) : NULL;
}

/* criu writes there as root, and follows links; and what it reads there becomes processes. */
static int open_one(const char *given, const char *what, bool make, struct lr_arena *a,
		    const char **path, struct lr_err *err)
{
	*path = absolute(given, a);
	if (!*path)
		return lr_fail(err, errno ? errno : ENOMEM, "find %s %s", what, given);
	int r = lr_trust_images(*path, what, err);
	if (r == 0 && make) {
		r = lr_mkdir_p(*path, 0700);
		if (r < 0)
			return lr_fail(err, -r, "make %s %s", what, *path);
		r = lr_trust_images(*path, what, err);
	}
	if (r < 0)
		return r;
	int fd = lr_open(*path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? lr_fail(err, errno, "open %s %s", what, *path) : fd;
}

/* A file that criu reads, or empties and writes. `making`: what is in it does not count. */
static int check_file(int dir, const char *path, const char *name, bool making, struct lr_err *err)
{
	char what[NAME_MAX + 16];
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : lr_fail(err, errno, "look at %s/%s", path, name);
	/* criu listens on a socket when memory is fetched lazily. */
	if (S_ISDIR(st.st_mode) || S_ISSOCK(st.st_mode))
		return 0;
	if (S_ISLNK(st.st_mode) && lr_streq(name, PARENT))
		st.st_mode &= ~(mode_t)0777;
	else if (!S_ISREG(st.st_mode) || (making && st.st_nlink > 1))
		return lr_refuse(err, EPERM,
				 "%s/%s is a link, or no file: criu would write to another one, "
				 "or read it",
				 path, name);
	if (!lr_trust_ours(&st)) {
		snprintf(what, sizeof(what), "%s, in", name);
		return lr_trust_refuse_image(&st, what, path, err);
	}
	/* Who has it open could read on. */
	if (making && st.st_mode & 077 && lr_has_suffix(name, ".img") && unlinkat(dir, name, 0) < 0)
		return lr_fail(err, errno, "remove %s/%s", path, name);
	return 0;
}

/* Whoever could once write to the directory, or has packed it, may have left something there. */
static int check_files(int dir, const char *path, bool making, struct lr_err *err)
{
	int r = 0, fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	LR_CLEANUP_DIR DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d) {
		r = lr_fail(err, errno, "read %s", path);
		lr_close(fd);
	}
	while (r >= 0 && d && (e = readdir(d)))
		r = check_file(dir, path, e->d_name, making, err);
	return r;
}

/* Images that hold what was written since those of a parent were made, and so on. */
static int check_all(int dir, const char *path, bool making, struct lr_arena *a, struct lr_err *err)
{
	LR_CLEANUP_FD int at = LR_NOFD;

	int r = check_files(dir, path, making, err);
	while (r >= 0) {
		int next = openat(at < 0 ? dir : at, PARENT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (next < 0)
			return 0;
		lr_close(at);
		at = next;
		path = lr_concat(a, path, "/" PARENT, NULL);
		r = path ? lr_trust_images(path, "the parent directory", err)
			 : lr_fail(err, ENOMEM, "find the parent directory");
		if (r >= 0)
			r = check_files(at, path, false, err);
	}
	return r;
}

/* Others may have files of their own in a work directory. */
static int check_logs(int dir, const char *path, struct lr_err *err)
{
	static const char *const names[] = {"dump.log", "restore.log", "stats-dump",
					    "stats-restore"};
	int r = 0;

	for (size_t i = 0; i < LR_ARRAY_SIZE(names) && r >= 0; i++)
		r = check_file(dir, path, names[i], true, err);
	return r;
}

/* What was dumped before: criu itself only warns when it is not there. */
static int check_parent(const struct lr_checkpoint_opts *o, const struct lr_checkpoint_dirs *d,
			struct lr_arena *a, struct lr_err *err)
{
	struct stat st;
	const char *path;

	if (!o->parent_path)
		return 0;
	if (fstatat(d->images_fd, o->parent_path, &st, 0) < 0)
		return lr_fail(err, errno, "--parent-path %s, below %s", o->parent_path, d->images);
	if (!S_ISDIR(st.st_mode))
		return lr_refuse(err, ENOTDIR, "--parent-path %s is no directory", o->parent_path);
	path = lr_concat(a, d->images, "/", o->parent_path, NULL);
	int r = path ? lr_trust_images(path, "the parent directory", err)
		     : lr_fail(err, ENOMEM, "find the parent directory");
	return r < 0 ? r : 0;
}

int lr_checkpoint_dirs_open(const struct lr_checkpoint_opts *o, bool make, struct lr_arena *a,
			    struct lr_checkpoint_dirs *ret, struct lr_err *err)
{
	struct lr_checkpoint_dirs d = LR_CHECKPOINT_DIRS_NONE;

	int r = d.images_fd = open_one(o->image_path ? o->image_path : "checkpoint",
				       "the image directory", make, a, &d.images, err);
	d.work = d.images;
	if (r >= 0 && o->work_path) {
		r = d.work_fd = open_one(o->work_path, "the work directory", true, a, &d.work, err);
	} else if (r >= 0) {
		d.work_fd = fcntl(d.images_fd, F_DUPFD_CLOEXEC, 3);
		if (d.work_fd < 0)
			r = lr_fail(err, errno, "keep the image directory open");
	}
	if (r >= 0)
		r = check_all(d.images_fd, d.images, make, a, err);
	if (r >= 0)
		r = check_logs(d.work_fd, d.work, err);
	if (r >= 0)
		r = check_parent(o, &d, a, err);
	if (r < 0)
		lr_checkpoint_dirs_close(&d);
	else
		*ret = d;
	return r < 0 ? r : 0;
}

void lr_checkpoint_dirs_close(struct lr_checkpoint_dirs *d)
{
	d->images_fd = lr_close(d->images_fd);
	d->work_fd = lr_close(d->work_fd);
}

bool lr_checkpoint_has_net(int images_fd)
{
	int fd = openat(images_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	LR_CLEANUP_DIR DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	bool found = false;

	if (!d)
		lr_close(fd);
	while (d && !found && (e = readdir(d)))
		found = lr_has_prefix(e->d_name, "netdev-");
	return found;
}

#define CONFIG_DIR "/etc/criu/"

/*
 * criu executes what its options name (action-script), with root's rights and outside of the
 * container. Managers as Podman make annotations of the image's own those of the container: so one
 * only chooses among the administrator's files. (A file of an image's belongs to root, too: its
 * owner tells nothing.)
 */
static int check_config_file(const char *path, struct lr_err *err)
{
	const char *name = path + strlen(CONFIG_DIR);

	if (lr_has_prefix(path, CONFIG_DIR) && *name && *name != '.' && !strchr(name, '/'))
		return 0;
	lr_refuse(err, EPERM,
		  "%.200s is not a file in " CONFIG_DIR ", and criu executes what its options name",
		  path);
	lr_err_at(err, "annotations[org.criu.config]");
	return lr_err_hint(err,
			   "have it in " CONFIG_DIR ", where only the administrator can put it");
}

int lr_checkpoint_config_file(const struct oci_config *config, const char **ret, struct lr_err *err)
{
	static const char *const files[] = {CONFIG_DIR "lean-runtime.conf", CONFIG_DIR "runc.conf",
					    CONFIG_DIR "crun.conf"};

	*ret = NULL;
	for (size_t i = 0; i < config->annotations.n; i++) {
		const struct oci_pair *a = &config->annotations.v[i];
		if (!lr_streq(a->key, "org.criu.config"))
			continue;
		if (!*a->value)
			return 0; /* asks for none at all */
		*ret = a->value;
		return check_config_file(a->value, err);
	}
	for (size_t i = 0; i < LR_ARRAY_SIZE(files) && !*ret; i++)
		if (access(files[i], R_OK) == 0)
			*ret = files[i];
	return 0;
}
