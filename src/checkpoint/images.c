/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint: the directories that criu reads and writes, and the administrator's options for it.
 */
#define LR_ROOM "checkpoint"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/checkpoint/internal.h"
#include "src/store/trust.h"
#include "src/sys/path.h"

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
	if (r >= 0)
		r = d.work_fd = o->work_path ? open_one(o->work_path, "the work directory", true, a,
							&d.work, err)
					     : fcntl(d.images_fd, F_DUPFD_CLOEXEC, 3);
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
