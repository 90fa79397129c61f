/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resume: what was in the container's own tmpfs, into those of the new container; and what it had
 * changed in its root, into the new one's.
 *
 * A seed may say anything, and what is here already may be an image's. So every directory is opened
 * below the root of the tmpfs, or of the container, without links and without leaving it, and names
 * are made in there alone. A tmpfs is made anew, with all rights. The root is what others have made:
 * it is changed with the rights that config.json's process could have, so that the kernel judges
 * whether the container itself could have done so.
 */
#define LR_ROOM "resume"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/resume/resuming.h"
#include "src/sys/path.h"
#include "src/sys/syscalls.h"

struct filling {
	struct lr_resume *r;
	const char *kind, *path; /* for messages */
	bool layer;              /* it lies above what is there: the root's */
	int root, dir;           /* dir: of the node `in`; LR_NOFD: none yet */
	uint32_t in;
};

static int failed_in_root(int code, struct lr_err *err)
{
	if (code == ENOSPC || code == EDQUOT)
		return lr_err_hint(err, "the file system that its root is on is full");
	if (code == EPERM || code == EACCES)
		return lr_err_hint(err, "config.json's process could not do that itself: its user, "
					"or its capabilities");
	return -code;
}

static int failed(const struct filling *x, int code, const char *name, struct lr_err *err)
{
	lr_fail(err, code, "make \"%s\" in %s%s again", name, x->kind, x->path);
	if (x->layer)
		return failed_in_root(code, err);
	if (code == ENOSPC || code == EDQUOT)
		return lr_err_hint(err, "it is smaller than what the seed has in it: its size= in "
					"config.json");
	return code == EROFS ? lr_err_hint(err, "it is read-only in config.json") : -code;
}

/* ---- what is there already ------------------------------------------------------------------- */

static int clear(const struct filling *x, int dir, unsigned depth, struct lr_err *err);

static bool is_in_the_way(int code)
{
	/* What the bundle has mounted there stays. */
	return code != EBUSY && code != EXDEV && code != ENOTEMPTY;
}

static int clear_entry(const struct filling *x, int dir, const char *name, unsigned depth,
		       struct lr_err *err)
{
	struct stat st;
	int r = 0;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return lr_fail(err, errno, "look at \"%s\" in %s%s", name, x->kind, x->path);
	if (S_ISDIR(st.st_mode)) {
		LR_CLEANUP_FD int sub = lr_open_beneath(dir, name, O_RDONLY | O_DIRECTORY);
		if (sub == -EXDEV)
			return 0;
		r = sub < 0 ? lr_fail(err, -sub, "open \"%s\" in %s%s", name, x->kind, x->path)
			    : clear(x, sub, depth + 1, err);
	}
	if (r >= 0 && unlinkat(dir, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0 &&
	    is_in_the_way(errno))
		return failed(x, errno, name, err);
	return r;
}

/* `tmpcopyup` has put files there, which the container of the seed may have removed. */
static int clear(const struct filling *x, int dir, unsigned depth, struct lr_err *err)
{
	int r = 0, fd = lr_open_beneath(dir, ".", O_RDONLY | O_DIRECTORY);
	LR_CLEANUP_DIR DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d) {
		r = lr_fail(err, fd < 0 ? -fd : errno, "list %s%s", x->kind, x->path);
		lr_close(fd);
		return r;
	}
	if (depth > LR_SEED_DEPTH)
		return lr_refuse(err, ELOOP, "%s%s has directories deeper than %u", x->kind,
				 x->path, LR_SEED_DEPTH);
	for (struct dirent *e; errno = 0, r >= 0 && (e = readdir(d));)
		if (!lr_streq(e->d_name, ".") && !lr_streq(e->d_name, ".."))
			r = clear_entry(x, dirfd(d), e->d_name, depth, err);
	return r >= 0 && errno ? lr_fail(err, errno, "list %s%s", x->kind, x->path) : r;
}

/* ---- one node -------------------------------------------------------------------------------- */

static struct timespec time_of(int64_t ns)
{
	int64_t s = ns / 1000000000, rest = ns % 1000000000;

	return (struct timespec){(time_t)(s - (rest < 0)),
				 (long)(rest < 0 ? rest + 1000000000 : rest)};
}

static bool has_attribute(int fd, const struct lr_seed_attribute_at *a)
{
	uint8_t value[4096];
	ssize_t n = fgetxattr(fd, a->name, value, sizeof(value));

	return n >= 0 && (size_t)n == a->size && memcmp(value, a->value, a->size) == 0;
}

static bool is_of_node(const struct filling *x, const struct lr_seed_node *n, const char *name)
{
	const uint8_t *at = lr_seed_data(x->r->seed, &n->attributes);
	uint64_t left = n->attributes.length;
	struct lr_seed_attribute_at a;

	while (lr_seed_next_attribute(&at, &left, &a))
		if (lr_streq(a.name, name))
			return true;
	return false;
}

/* What a directory of the image has, or a file there gets by the access list of its directory, and the
 * container had taken away: it may let others in. */
static int remove_attributes(const struct filling *x, const struct lr_seed_node *n, int fd)
{
	char names[4096];
	ssize_t size = flistxattr(fd, names, sizeof(names));

	if (size < 0)
		return errno == ENOTSUP || errno == EBADF ? 0 : -errno;
	for (const char *name = names; name < names + size; name += strlen(name) + 1)
		if ((lr_has_prefix(name, "user.") || lr_has_prefix(name, "system.posix_acl_")) &&
		    !is_of_node(x, n, name) && fremovexattr(fd, name) < 0 && errno != ENODATA)
			return -errno;
	return 0;
}

static int set_mode(const struct lr_seed_node *n, int fd, struct stat *st)
{
	if (fstat(fd, st) < 0)
		return -errno;
	return (st->st_mode ^ n->mode) & 07777 && fchmod(fd, n->mode & 07777) < 0 ? -errno : 0;
}

/* What is so already takes no right. The owner comes last, as who gives a file away may do no more with
 * it; and its mode again then, as the kernel takes set-id bits away. It also does from who is not in
 * the group, and says nothing. */
static int set_owner(const struct lr_seed_node *n, int fd, struct stat *st)
{
	if ((st->st_uid != n->uid || st->st_gid != n->gid) && fchown(fd, n->uid, n->gid) < 0)
		return -errno;
	int r = set_mode(n, fd, st);
	if (r >= 0 && fstat(fd, st) < 0)
		r = -errno;
	return r < 0 ? r : (st->st_mode ^ n->mode) & 07777 ? -EPERM : 0;
}

/* Times of what is somebody else's stay what they are. */
static bool times_may_stay(const struct filling *x, int code)
{
	return x->layer && (code == EPERM || code == EACCES || code == EBADF);
}

static int set_meta(const struct filling *x, const struct lr_seed_node *n, int fd)
{
	const struct timespec times[2] = {time_of(n->atime), time_of(n->mtime)};
	const uint8_t *at = lr_seed_data(x->r->seed, &n->attributes);
	uint64_t left = n->attributes.length;
	struct lr_seed_attribute_at a;
	struct stat st;

	/* The root directory's may be its manager's. */
	int r = x->layer && n->parent != LR_SEED_NONE ? remove_attributes(x, n, fd) : 0;
	while (r >= 0 && lr_seed_next_attribute(&at, &left, &a))
		if (!has_attribute(fd, &a) && fsetxattr(fd, a.name, a.value, a.size, 0) < 0)
			r = -errno;
	if (r >= 0)
		r = set_mode(n, fd, &st);
	if (r >= 0 && futimens(fd, times) < 0 && !times_may_stay(x, errno))
		r = -errno;
	return r < 0 ? r : set_owner(n, fd, &st);
}

/* Of what can't be opened. */
static int set_meta_at(const struct filling *x, const struct lr_seed_node *n, const char *name)
{
	const struct timespec times[2] = {time_of(n->atime), time_of(n->mtime)};

	/* A link has no mode of its own. */
	if (!S_ISLNK(n->mode) && fchmodat(x->dir, name, n->mode & 07777, 0) < 0)
		return -errno;
	if (utimensat(x->dir, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return fchownat(x->dir, name, n->uid, n->gid, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int make_file(const struct filling *x, const struct lr_seed_node *n, const char *name)
{
	LR_CLEANUP_FD int fd =
		openat(x->dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : resume_fill_file(x->r, &n->runs, n->size, fd);

	return r < 0 ? r : set_meta(x, n, fd);
}

/* Of a file in the same tmpfs, or root. By its name: a link of a descriptor takes a capability. */
static int make_name(const struct filling *x, const struct lr_seed_node *n, const char *name)
{
	char path[LR_SEED_PATH + 1];

	lr_seed_node_path(x->r->seed, n->same, path);
	char *slash = strrchr(path, '/');
	const char *last = slash ? slash + 1 : path;
	if (slash)
		*slash = 0;
	LR_CLEANUP_FD int dir = lr_open_beneath(x->root, slash ? path : ".", O_PATH | O_DIRECTORY);
	return dir < 0 ? dir : linkat(dir, last, x->dir, name, 0) < 0 ? -errno : 0;
}

/* Its owner and times come last: what is made in it would change them. */
static int make_directory(const struct filling *x, const char *name)
{
	struct stat st;

	if (mkdirat(x->dir, name, 0700) == 0)
		return 0;
	/* Where something is mounted below. */
	if (errno != EEXIST || fstatat(x->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? 0 : -EEXIST;
}

/* A file that its process could write to, in a directory where it could not make another one. */
static int write_over(const struct filling *x, const struct lr_seed_node *n, const char *name)
{
	LR_CLEANUP_FD int fd = lr_open_beneath(x->dir, name, O_RDWR | O_NONBLOCK);
	int r = fd < 0 ? fd : ftruncate(fd, 0) < 0 ? -errno : 0;

	if (r >= 0)
		r = resume_fill_file(x->r, &n->runs, n->size, fd);
	return r < 0 ? r : set_meta(x, n, fd);
}

/* The new root's own, which the seed has another one for, or none. 1: that is all, as the bundle has
 * mounted something there, which stays, or as it was written over. */
static int make_way(const struct filling *x, const struct lr_seed_node *n, const char *name,
		    struct lr_err *err)
{
	struct stat st;

	if (fstatat(x->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : failed(x, errno, name, err);
	if (!S_ISDIR(st.st_mode) || !S_ISDIR(n->mode)) {
		struct lr_err why = {0};
		int r = clear_entry(x, x->dir, name, 0, &why);
		if ((r == -EACCES || r == -EPERM) && n->same == LR_SEED_NONE &&
		    S_ISREG(st.st_mode) && S_ISREG(n->mode) && write_over(x, n, name) >= 0)
			return 1;
		if (r < 0 && err)
			*err = why;
		return r < 0 ? r : fstatat(x->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	}
	if (!(n->flags & LR_SEED_OPAQUE))
		return 0;
	LR_CLEANUP_FD int sub = lr_open_beneath(x->dir, name, O_RDONLY | O_DIRECTORY);
	if (sub == -EXDEV)
		return 1;
	return sub < 0 ? failed(x, -sub, name, err) : clear(x, sub, 0, err);
}

static int make(const struct filling *x, const struct lr_seed_node *n, const char *name)
{
	if (n->mode == LR_SEED_WHITEOUT)
		return 0;
	if (S_ISDIR(n->mode))
		return make_directory(x, name);
	if (unlinkat(x->dir, name, 0) < 0 && errno != ENOENT)
		return errno == EBUSY ? 0 : -errno; /* The bundle's own is mounted there. */
	if (n->same != LR_SEED_NONE)
		return make_name(x, n, name);
	if (S_ISREG(n->mode))
		return make_file(x, n, name);
	int r = S_ISLNK(n->mode) ? symlinkat(lr_seed_text(x->r->seed, n->target), x->dir, name)
				 : mknodat(x->dir, name, (n->mode & S_IFMT) | 0600, 0);
	return r < 0 ? -errno : set_meta_at(x, n, name);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int enter(struct filling *x, uint32_t node)
{
	char path[LR_SEED_PATH + 1];

	if (x->dir >= 0 && x->in == node)
		return 0;
	x->dir = lr_close(x->dir);
	lr_seed_node_path(x->r->seed, node, path);
	x->dir = lr_open_beneath(x->root, *path ? path : ".", O_RDONLY | O_DIRECTORY);
	/* Of the root, one that its process may pass through, and not read. */
	if (x->dir == -EACCES && x->layer)
		x->dir = lr_open_beneath(x->root, *path ? path : ".", O_PATH | O_DIRECTORY);
	x->in = node;
	return x->dir < 0 ? x->dir : 0;
}

static int make_one(struct filling *x, const struct lr_seed_node *n, struct lr_err *err)
{
	const char *name = lr_seed_text(x->r->seed, n->name);
	int r = enter(x, n->parent);

	/* Something of the bundle's is mounted on the directory that it was in. */
	if (r == -EXDEV)
		return 0;
	if (r >= 0 && x->layer) {
		int there = make_way(x, n, name, err);
		if (there)
			return there < 0 ? there : 0;
	}
	if (r >= 0)
		r = make(x, n, name);
	return r < 0 ? failed(x, -r, name, err) : 0;
}

static int make_all(struct filling *x, const struct lr_seed_range *nodes, struct lr_err *err)
{
	const struct lr_seed *s = x->r->seed;
	int r = 0;

	for (uint32_t i = 1; r >= 0 && i < nodes->count; i++)
		r = make_one(x, lr_seed_node(s, nodes->first + i), err);
	if (r < 0)
		return r;
	for (uint32_t i = nodes->count; i-- > 0;) {
		const struct lr_seed_node *n = lr_seed_node(s, nodes->first + i);
		if (!S_ISDIR(n->mode))
			continue;
		r = enter(x, nodes->first + i);
		if (r >= 0)
			r = set_meta(x, n, x->dir);
		if (r < 0 && r != -EXDEV)
			return failed(x, -r, lr_seed_text(s, n->name), err);
	}
	return 0;
}

/* Whatever the plan says: an image's link may have led another mount there, or the path to another
 * mount. What the host has bound may be a tmpfs, too, so it has to be the one that was made. */
static int open_root(const char *path, uint64_t device, struct lr_err *err)
{
	const struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
				     .resolve = RESOLVE_NO_MAGICLINKS};
	struct statfs fs;
	struct statx st;
	struct stat own;
	int fd = lr_openat2(AT_FDCWD, path, &how);

	if (fd < 0 || fstatfs(fd, &fs) < 0 || fstat(fd, &own) < 0 ||
	    lr_statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) < 0) {
		lr_close(fd);
		return lr_fail(err, fd < 0 ? -fd : errno, "open the tmpfs %s", path);
	}
	if (fs.f_type == TMPFS_MAGIC && st.stx_attributes & STATX_ATTR_MOUNT_ROOT &&
	    own.st_dev == device)
		return fd;
	lr_close(fd);
	lr_refuse(err, ENOTSUP, "%s is no tmpfs of the container's own", path);
	return lr_err_hint(err, "another mount of config.json lies over it, or a link of the image "
				"leads to one");
}

static int note_device(struct lr_resume *r, int fd, struct lr_err *err)
{
	struct stat st;
	uint64_t *v = lr_grow(r->a, r->tmpfs, r->n_tmpfs, sizeof(*v));

	if (!v || fstat(fd, &st) < 0)
		return lr_fail(err, v ? errno : ENOMEM, "look at a tmpfs");
	r->tmpfs = v;
	v[r->n_tmpfs++] = st.st_dev;
	return 0;
}

static int fill(struct lr_resume *r, const struct lr_seed_tmpfs *t, struct lr_err *err)
{
	struct filling x = {.r = r,
			    .kind = "the tmpfs ",
			    .path = lr_seed_text(r->seed, t->path),
			    .dir = LR_NOFD};
	uint64_t device = 0;

	if (!r->opts.has_tmpfs || !r->opts.has_tmpfs(r->opts.arg, x.path, &device))
		return t->nodes.count == 1 ? 0
					   : lr_refuse(err, ENOTSUP,
						       "the seed has files in the tmpfs %s, and "
						       "there is none",
						       x.path);
	LR_CLEANUP_FD int root = open_root(x.path, device, err);
	if (root < 0)
		return root;
	x.root = root;
	int rc = note_device(r, root, err);
	/* What the runtime has made in /dev is in no seed. */
	if (rc >= 0 && !lr_streq(x.path, "/dev"))
		rc = clear(&x, root, 0, err);
	if (rc >= 0)
		rc = make_all(&x, &t->nodes, err);
	x.dir = lr_close(x.dir);
	return rc;
}

int resume_fill_tmpfs(struct lr_resume *r, struct lr_err *err)
{
	const mode_t mask = umask(0);
	int rc = 0;

	for (uint32_t i = 0; rc >= 0 && i < lr_seed_count(r->seed, LR_SEED_TMPFS); i++)
		if (!(lr_seed_tmpfs(r->seed, i)->flags & LR_SEED_ROOT))
			rc = fill(r, lr_seed_tmpfs(r->seed, i), err);
	umask(mask);
	return rc;
}

/* Whatever the plan says. */
static int open_own_root(const struct lr_resume *r, struct lr_err *err)
{
	struct statvfs fs;

	if (!r->opts.own_root)
		return lr_refuse(err, ENOTSUP,
				 "the seed changes files of its root, and this one is not its own");
	int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && fstatvfs(fd, &fs) == 0 && !(fs.f_flag & ST_RDONLY))
		return fd;
	int code = fd < 0 || !(fs.f_flag & ST_RDONLY) ? errno : EROFS;
	lr_close(fd);
	return lr_fail(err, code, "open the root, of which the seed changes files");
}

int resume_change_root(struct lr_resume *r, struct lr_err *err)
{
	const struct lr_seed_tmpfs *t = lr_seed_changes(r->seed);

	if (!t)
		return 0;
	LR_CLEANUP_FD int root = open_own_root(r, err);
	if (root < 0)
		return root;
	struct filling x = {.r = r,
			    .kind = "the root",
			    .path = "",
			    .layer = true,
			    .root = root,
			    .dir = LR_NOFD};
	const mode_t mask = umask(0);
	int rc = make_all(&x, &t->nodes, err);
	x.dir = lr_close(x.dir);
	umask(mask);
	return rc;
}

bool resume_is_in_tmpfs(const struct lr_resume *r, uint64_t device)
{
	for (size_t i = 0; i < r->n_tmpfs; i++)
		if (r->tmpfs[i] == device)
			return true;
	return false;
}
