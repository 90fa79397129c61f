/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint: where the container's root is an overlay mount, the directory with what it has changed. */
#define LR_ROOM "checkpoint"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/capture/capture.h"
#include "src/checkpoint/internal.h"

int lr_checkpoint_mounts(pid_t pid, struct lr_arena *a, struct lr_checkpoint_mount **ret, size_t *n,
			 struct lr_err *err)
{
	size_t size = 32u << 10;
	char path[32], *text;
	ssize_t got;

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", pid);
	do {
		size *= 2;
		text = lr_alloc(a, size);
		if (!text)
			return lr_fail(err, ENOMEM, "read %s", path);
		got = lr_read_file_at(AT_FDCWD, path, text, size);
	} while (got == -EFBIG && size < 64u << 20);
	if (got < 0)
		return lr_fail(err, (int)-got, "read %s", path);
	return lr_checkpoint_mountinfo(text, a, ret, n, err);
}

const char *lr_checkpoint_upper(const char *options, struct lr_arena *a, bool *user)
{
	char *rest = lr_strdup(a, options), *word;
	const char *ret = NULL;

	*user = false;
	/* Commas of a path are escaped, as blanks are. */
	while (rest && (word = strsep(&rest, ","))) {
		if (lr_streq(word, "userxattr"))
			*user = true;
		if (!lr_has_prefix(word, "upperdir="))
			continue;
		lr_path_unescape(word);
		ret = word + strlen("upperdir=");
	}
	/* Where a path begins that does not, nobody knows any more. */
	return ret && ret[0] == '/' ? ret : NULL;
}

/* Of the file system that `root` is the root of: a host's mount of it. */
static const char *find(const struct lr_checkpoint_mount *v, size_t n, const struct stat *root,
			struct lr_arena *a, bool *user)
{
	char device[32];
	struct stat st;

	snprintf(device, sizeof(device), "%u:%u", major(root->st_dev), minor(root->st_dev));
	for (size_t i = 0; i < n; i++) {
		if (!lr_streq(v[i].type, "overlay") || !lr_streq(v[i].device, device) ||
		    !lr_streq(v[i].root, "/"))
			continue;
		/* The container's root may be a directory below. */
		if (stat(v[i].point, &st) < 0 || st.st_dev != root->st_dev ||
		    st.st_ino != root->st_ino)
			continue;
		return lr_checkpoint_upper(v[i].options, a, user);
	}
	return NULL;
}

static int open_upper(int root, struct lr_arena *a, bool *user, struct lr_err *err)
{
	struct lr_checkpoint_mount *mounts = NULL;
	struct stat st;
	size_t n = 0;

	if (fstat(root, &st) < 0)
		return lr_fail(err, errno, "look at the container's root");
	int r = lr_checkpoint_mounts(getpid(), a, &mounts, &n, err);
	if (r < 0)
		return r;
	const char *upper = find(mounts, n, &st, a, user);
	if (!upper) {
		lr_refuse(err, ENOTSUP,
			  "--with-changes: the container's root is no overlay mount whose upper "
			  "directory this host's mounts tell");
		return lr_err_hint(err, "the container's manager mounts it, or mount(8): in this "
					"mount namespace, with an absolute upperdir=");
	}
	int fd = lr_open(upper, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? lr_fail(err, errno, "open the upper directory %s", upper) : fd;
}

int lr_checkpoint_layer(pid_t pid, const struct lr_checkpoint_opts *o, struct lr_arena *a,
			struct lr_capture_layer *ret, struct lr_err *err)
{
	struct statvfs fs;
	struct lr_err why = {0};
	char path[32];

	*ret = (struct lr_capture_layer){.upper = LR_NOFD,
					 .carried = o->with_changes,
					 .bytes = (uint64_t)o->changes_bytes,
					 .files = (uint64_t)o->changes_files};
	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	LR_CLEANUP_FD int root = lr_open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 || fstatvfs(root, &fs) < 0)
		return lr_fail(err, errno, "look at the container's root");
	/* Then it has changed nothing: what is in that layer is its manager's. */
	if (fs.f_flag & ST_RDONLY) {
		lr_debug("checkpoint: the container's root is read-only: no changes");
		return 0;
	}
	int r = open_upper(root, a, &ret->user_attributes, &why);
	if (r >= 0)
		ret->upper = r;
	if (r < 0 && o->with_changes) {
		if (err)
			*err = why;
		return r;
	}
	return 0;
}
