/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint: where the container's root is an overlay mount, the directory with what it has changed. */
#define LR_ROOM "checkpoint"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/capture/capture.h"
#include "src/checkpoint/internal.h"
#include "src/sys/syscalls.h"

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

/* Of the file system that `root` is the root of: a host's mount of it. failed: of one that may be
 * it. */
static const char *find(const struct lr_checkpoint_mount *v, size_t n, const struct statx *root,
			struct lr_arena *a, bool *user, int *failed)
{
	char device[32];
	struct stat st;

	snprintf(device, sizeof(device), "%u:%u", root->stx_dev_major, root->stx_dev_minor);
	for (size_t i = 0; i < n; i++) {
		if (!lr_streq(v[i].type, "overlay") || !lr_streq(v[i].device, device) ||
		    !lr_streq(v[i].root, "/"))
			continue;
		/* The container's root may be a directory below. */
		if (stat(v[i].point, &st) < 0) {
			/* Another mount may be above it. */
			*failed = errno == ENOENT || errno == ENOTDIR ? *failed : errno;
			continue;
		}
		if (st.st_dev != makedev(root->stx_dev_major, root->stx_dev_minor) ||
		    st.st_ino != root->stx_ino)
			continue;
		return lr_checkpoint_upper(v[i].options, a, user);
	}
	return NULL;
}

static int open_upper(const struct statx *root, struct lr_arena *a, bool *user, struct lr_err *err)
{
	struct lr_checkpoint_mount *mounts = NULL;
	size_t n = 0;
	int failed = 0;

	int r = lr_checkpoint_mounts(getpid(), a, &mounts, &n, err);
	if (r < 0)
		return r;
	const char *upper = find(mounts, n, root, a, user, &failed);
	if (!upper && failed)
		return lr_fail(err, failed,
			       "--with-changes: look at the mount of the container's root");
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

static int look(pid_t pid, struct statx *ret, struct lr_err *err)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	LR_CLEANUP_FD int root = lr_open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	/* By what the kernel knows: a process of the container may serve its root (FUSE), and answer
	 * nobody. */
	int r = root < 0 ? -errno
			 : lr_statx(root, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
				    STATX_BASIC_STATS | STATX_MNT_ID, ret);
	return r < 0 ? lr_fail(err, -r, "look at the container's root") : 0;
}

static int is_read_only(pid_t pid, const struct statx *root, struct lr_arena *a, struct lr_err *err)
{
	struct lr_checkpoint_mount *v = NULL;
	size_t n = 0;
	int r = lr_checkpoint_mounts(pid, a, &v, &n, err);

	for (size_t i = 0; r >= 0 && i < n; i++)
		if ((uint64_t)v[i].id == root->stx_mnt_id)
			return v[i].attributes & MOUNT_ATTR_RDONLY ||
			       lr_streq(v[i].options, "ro") || lr_has_prefix(v[i].options, "ro,");
	return r;
}

int lr_checkpoint_layer(pid_t pid, const struct lr_checkpoint_opts *o, struct lr_arena *a,
			struct lr_capture_layer *ret, struct lr_err *err)
{
	struct lr_err why = {0};
	struct statx root;

	*ret = (struct lr_capture_layer){.upper = LR_NOFD,
					 .carried = o->with_changes,
					 .bytes = (uint64_t)o->changes_bytes,
					 .files = (uint64_t)o->changes_files};
	int r = look(pid, &root, err);
	if (r >= 0)
		r = is_read_only(pid, &root, a, err);
	/* Then it has changed nothing: what is in that layer is its manager's. */
	if (r > 0)
		lr_debug("checkpoint: the container's root is read-only: no changes");
	if (r != 0)
		return r < 0 ? r : 0;
	r = open_upper(&root, a, &ret->user_attributes, &why);
	if (r >= 0)
		ret->upper = r;
	if (r < 0 && o->with_changes) {
		if (err)
			*err = why;
		return r;
	}
	return 0;
}
