/* SPDX-License-Identifier: Apache-2.0 */
/* capture: see tmpfs.h. */
#define LR_ROOM "capture"
#include "src/capture/tmpfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/state.h"
#include "src/sys/path.h"
#include "src/sys/syscalls.h"

/* One tmpfs that is being looked at. */
struct look {
	struct cap *c;
	struct cap_tmpfs *t;
	uint64_t *bytes, *files; /* of all */
	uint64_t most_bytes, most_files;
	uint8_t *attributes; /* LR_SEED_ATTRIBUTES: those of a file; NULL until one has any */
};

/* Taken away, or made something else, by who still runs; or something is mounted there, which is the
 * bundle's. */
static bool is_gone(int code)
{
	return code == ENOENT || code == ENOTDIR || code == ELOOP || code == EXDEV;
}

/* ---- which node a file is -------------------------------------------------------------------- */

static uint32_t *place_of(const struct cap_tmpfs *t, uint64_t inode)
{
	size_t i = (size_t)(inode * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (t->places - 1);

	while (t->by_inode[i] && t->nodes[t->by_inode[i] - 1].inode != inode)
		i = (i + 1) & (t->places - 1);
	return &t->by_inode[i];
}

static bool note_inode(struct cap *c, struct cap_tmpfs *t, uint32_t node)
{
	if (2 * (t->n + 1) > t->places) {
		t->places = t->places ? t->places * 4 : 64;
		t->by_inode = lr_new_n(c->a, t->places, uint32_t);
		for (uint32_t i = 0; t->by_inode && i < node; i++)
			if (t->nodes[i].seed.same == LR_SEED_NONE)
				*place_of(t, t->nodes[i].inode) = i + 1;
	}
	if (!t->by_inode)
		return false;
	uint32_t *place = place_of(t, t->nodes[node].inode);
	if (*place)
		t->nodes[node].seed.same = *place - 1;
	else
		*place = node + 1;
	return true;
}

static struct cap_tmpfs *of_device(const struct cap *c, uint64_t device)
{
	for (size_t i = 0; i < c->n_tmpfs; i++)
		if (c->tmpfs[i].device == device)
			return &c->tmpfs[i];
	return NULL;
}

bool cap_tmpfs_has(const struct cap *c, uint64_t device)
{
	return of_device(c, device);
}

/* false: it is longer than a path may be, or deeper. */
static bool path_in(const struct cap_tmpfs *t, uint32_t node, char ret[LR_SEED_PATH + 1])
{
	size_t at = LR_SEED_PATH;
	unsigned depth = 0;

	ret[at] = 0;
	for (; node; node = t->nodes[node].seed.parent) {
		size_t length = strlen(t->nodes[node].name);
		if (++depth > LR_SEED_DEPTH || length + 1 > at)
			return false;
		if (ret[at])
			ret[--at] = '/';
		at -= length;
		memcpy(ret + at, t->nodes[node].name, length);
	}
	memmove(ret, ret + at, LR_SEED_PATH + 1 - at);
	return true;
}

const char *cap_tmpfs_path(const struct cap *c, uint64_t device, uint64_t inode)
{
	const struct cap_tmpfs *t = of_device(c, device);
	uint32_t node = t && t->places ? *place_of(t, inode) : 0;
	char path[LR_SEED_PATH + 1];

	if (!node || !path_in(t, node - 1, path))
		return NULL;
	return node == 1 ? t->path : lr_concat(c->a, t->path, "/", path, NULL);
}

/* ---- to list it ------------------------------------------------------------------------------ */

static int no_memory(const struct look *x, struct lr_err *err)
{
	return lr_fail(err, ENOMEM, "list %s", x->t->called);
}

/* It is the container's, whatever process has put it there. */
static void refuse(const struct look *x, const char *name, const char *why)
{
	cap_refuse(x->c, x->c->p, "%s in %s (%s)", why, x->t->called, name);
}

static int64_t ns(const struct timespec *t)
{
	return (int64_t)((uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec);
}

/* As it is there. */
struct entry {
	int fd; /* what the container sees, with O_PATH; LR_NOFD: nothing, as it is a whiteout */
	struct stat st;
	uint64_t inode;
	bool opaque;
};

static struct cap_node *add_node(struct look *x, const char *name, const struct entry *e)
{
	const struct stat *st = &e->st;
	const bool whiteout = st->st_mode == LR_SEED_WHITEOUT;
	struct cap_tmpfs *t = x->t;
	struct cap_node *v = lr_grow(x->c->a, t->nodes, t->n, sizeof(*v));

	if (!v)
		return NULL;
	t->nodes = v;
	v += t->n;
	*v = (struct cap_node){
		.name = lr_strdup(x->c->a, name), .inode = e->inode, .seen = st->st_ino};
	v->seed = (struct lr_seed_node){.parent = LR_SEED_NONE,
					.same = LR_SEED_NONE,
					.mode = st->st_mode,
					.uid = st->st_uid,
					.gid = st->st_gid,
					.flags = e->opaque ? LR_SEED_OPAQUE : 0,
					.atime = ns(&st->st_atim),
					.mtime = ns(&st->st_mtim)};
	if (!whiteout && (!cap_id_inside(x->c, &x->c->uids, &v->seed.uid) ||
			  !cap_id_inside(x->c, &x->c->gids, &v->seed.gid)))
		refuse(x, name, "an owner that its user namespace does not know");
	v->seed.size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
	/* Whiteouts are names of one inode. */
	if (!v->name || (!whiteout && !note_inode(x->c, t, (uint32_t)t->n)))
		return NULL;
	t->n++;
	return v;
}

/* Whoever fills it may have millions: no more is listed than is carried. */
static int count(const struct look *x, uint64_t *sum, uint64_t more, uint64_t most,
		 const char *what)
{
	*sum += more;
	if (*sum <= most)
		return 0;
	if (x->t->upper >= 0)
		cap_refuse(x->c, x->c->p, "more than %llu %s among what it changed in its root",
			   (unsigned long long)most, what);
	else
		cap_refuse(x->c, x->c->p, "more than %llu %s in its tmpfs, with those in %s",
			   (unsigned long long)most, what, x->t->path);
	return -EFBIG;
}

/* Also what is no file's contents: names, targets and attributes may be more than these. */
static int count_bytes(const struct look *x, uint64_t more)
{
	return count(x, x->bytes, more, x->most_bytes, "bytes");
}

static int add_attribute(struct look *x, struct cap_node *n, const char *path, const char *name)
{
	uint8_t value[4096];
	ssize_t size = getxattr(path, name, value, sizeof(value));

	if (size < 0) {
		if (errno == ERANGE)
			refuse(x, n->name, "a long extended attribute");
		return errno == ERANGE || errno == ENODATA ? 0 : -errno;
	}
	struct lr_seed_attribute head = {(uint32_t)strlen(name) + 1, (uint32_t)size};
	size_t more = (sizeof(head) + head.name + head.value + 3) & ~(size_t)3;
	if (n->attributes_size + more > LR_SEED_ATTRIBUTES) {
		refuse(x, n->name, "many extended attributes");
		return 0;
	}
	if (!x->attributes)
		x->attributes = lr_alloc(x->c->a, LR_SEED_ATTRIBUTES);
	if (!x->attributes)
		return -ENOMEM;
	uint8_t *v = x->attributes + n->attributes_size;
	memset(v, 0, more);
	memcpy(v, &head, sizeof(head));
	memcpy(v + sizeof(head), name, head.name);
	memcpy(v + sizeof(head) + head.name, value, head.value);
	n->attributes_size += more;
	return 0;
}

static int list_attributes(struct look *x, struct cap_node *n, int fd)
{
	char path[40], names[4096];
	int r = 0;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ssize_t size = listxattr(path, names, sizeof(names));
	if (size < 0 && errno == ERANGE)
		refuse(x, n->name, "many extended attributes");
	else if (size < 0 && errno != ENOTSUP)
		return -errno;
	for (const char *name = names; r >= 0 && size > 0 && name < names + size;
	     name += strlen(name) + 1) {
		if (lr_streq(name, "security.capability"))
			refuse(x, n->name, "a program with capabilities");
		else if (x->c->opts->own_user && lr_has_prefix(name, "system.posix_acl_"))
			refuse(x, n->name, "an access list in a user namespace");
		else if (lr_has_prefix(name, "user.") || lr_has_prefix(name, "system.posix_acl_"))
			r = add_attribute(x, n, path, name);
	}
	if (r < 0 || !n->attributes_size)
		return r;
	r = count_bytes(x, n->attributes_size);
	if (r < 0)
		return r;
	n->attributes = lr_alloc(x->c->a, n->attributes_size);
	if (!n->attributes)
		return -ENOMEM;
	memcpy(n->attributes, x->attributes, n->attributes_size);
	return 0;
}

/* What the runtime has put into /dev itself: the child's has put its own. There is more of that than of
 * anything else, so it is told without opening it. */
static bool is_default(const struct look *x, uint32_t parent, int dir, const struct lr_dirent *e)
{
	static const char *const links[][2] = {
		{"fd", "/proc/self/fd"},       {"stdin", "/proc/self/fd/0"},
		{"stdout", "/proc/self/fd/1"}, {"stderr", "/proc/self/fd/2"},
		{"core", "/proc/kcore"},       {"ptmx", "pts/ptmx"},
	};
	char target[32] = "";

	if (parent || !lr_streq(x->t->path, "/dev"))
		return false;
	if (e->type != DT_LNK)
		return e->type == DT_CHR || e->type == DT_BLK;
	if (readlinkat(dir, e->name, target, sizeof(target) - 1) < 0)
		return false;
	for (size_t i = 0; i < LR_ARRAY_SIZE(links); i++)
		if (lr_streq(e->name, links[i][0]) && lr_streq(target, links[i][1]))
			return true;
	return false;
}

static bool is_carried(struct look *x, const char *name, const struct stat *st)
{
	switch (st->st_mode & S_IFMT) {
	case S_IFREG:
	case S_IFDIR:
	case S_IFLNK:
	case S_IFIFO:
	case S_IFSOCK:
		return true;
	default:
		/* Those of /dev are config.json's. */
		if (!lr_streq(x->t->path, "/dev"))
			refuse(x, name, "a device");
		return false;
	}
}

/* What no seed may have (seed/tmpfs.c). */
static void refuse_impossible(const struct look *x, const struct cap_node *n)
{
	char path[LR_SEED_PATH + 1];

	if (!path_in(x->t, (uint32_t)(n - x->t->nodes), path))
		refuse(x, n->name, "a file that is nested too deeply");
	if (n->seed.size > LR_SEED_TOP)
		refuse(x, n->name, "a file that is too long");
}

/* Of overlayfs, in the upper layer itself: its first character; 0: it has none; or a negative errno. */
static int overlay_attribute(const struct look *x, int fd, const char *which)
{
	char path[40], name[40], mark[2];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	snprintf(name, sizeof(name), "%s.overlay.%s",
		 x->c->opts->layer->user_attributes ? "user" : "trusted", which);
	ssize_t n = getxattr(path, name, mark, 1);
	if (n < 0 && errno == ERANGE) /* A longer one is one, too. */
		return '?';
	if (n < 0)
		return errno == ENODATA || errno == ENOTSUP ? 0 : -errno;
	return n ? mark[0] : 0;
}

static int look_at_marks(struct look *x, const char *name, int upper, struct entry *ret)
{
	int redirect = overlay_attribute(x, upper, "redirect");
	int opaque = redirect < 0 ? redirect : overlay_attribute(x, upper, "opaque");

	if (opaque < 0)
		return opaque;
	if (redirect)
		refuse(x, name, "a directory that was renamed, and is in a lower layer,");
	ret->opaque = opaque == 'y';
	return 0;
}

/* An entry of the upper layer, by what the container sees in its place. */
static int see(struct look *x, uint32_t parent, const char *name, int upper, struct entry *ret)
{
	char path[LR_SEED_PATH + 257];
	struct stat own;

	if (fstat(upper, &own) < 0)
		return -errno;
	if (S_ISCHR(own.st_mode) && own.st_rdev == 0) {
		ret->st = (struct stat){.st_mode = LR_SEED_WHITEOUT};
		return 0;
	}
	if (!path_in(x->t, parent, path)) /* It is refused. */
		return -ENOENT;
	snprintf(path + strlen(path), 257, "%s%s", *path ? "/" : "", name);
	ret->fd = lr_open_beneath(x->t->fd, path, O_PATH);
	if (ret->fd == -ENAMETOOLONG) {
		refuse(x, name, "a file that is nested too deeply");
		return -ENOENT;
	}
	if (ret->fd < 0)
		return ret->fd;
	if (fstat(ret->fd, &ret->st) < 0)
		return -errno;
	if ((own.st_mode ^ ret->st.st_mode) & S_IFMT)
		return -ENOENT;
	ret->inode = own.st_ino;
	return S_ISDIR(own.st_mode) ? look_at_marks(x, name, upper, ret) : 0;
}

static int open_entry(struct look *x, uint32_t parent, int dir, const char *name, struct entry *ret)
{
	int fd = lr_open_beneath(dir, name, O_PATH);

	*ret = (struct entry){.fd = LR_NOFD};
	if (fd < 0)
		return fd;
	if (x->t->upper >= 0) {
		int r = see(x, parent, name, fd, ret);
		lr_close(fd);
		return r;
	}
	ret->fd = fd;
	if (fstat(fd, &ret->st) < 0)
		return -errno;
	ret->inode = ret->st.st_ino;
	return 0;
}

/* 0, or a negative errno: -EFBIG is told, and ends it. */
static int add_seen(struct look *x, uint32_t parent, const char *name, const struct entry *e)
{
	const struct stat *st = &e->st;
	char target[4096] = "";

	if (S_ISLNK(st->st_mode) && readlinkat(e->fd, "", target, sizeof(target) - 1) < 0)
		return -errno;
	int r = count(x, x->files, 1, x->most_files, "files");
	if (r >= 0)
		r = count_bytes(x, strlen(name) + strlen(target));
	struct cap_node *n = r < 0 ? NULL : add_node(x, name, e);
	if (!n)
		return r < 0 ? r : -ENOMEM;
	n->seed.parent = parent;
	refuse_impossible(x, n);
	n->target = lr_strdup(x->c->a, target);
	if (!n->target)
		return -ENOMEM;
	if (n->seed.same != LR_SEED_NONE || !(S_ISREG(st->st_mode) || S_ISDIR(st->st_mode)))
		return 0;
	if (S_ISREG(st->st_mode))
		r = count_bytes(x, (uint64_t)st->st_blocks * 512);
	return r < 0 ? r : list_attributes(x, n, e->fd);
}

static int add_entry(struct look *x, uint32_t parent, int dir, const char *name)
{
	struct entry e;
	int r = open_entry(x, parent, dir, name, &e);

	if (r < 0)
		r = is_gone(-r) ? 0 : r;
	else if (e.fd < 0 || is_carried(x, name, &e.st))
		r = add_seen(x, parent, name, &e);
	lr_close(e.fd);
	return r;
}

static int list_directory(struct look *x, uint32_t i)
{
	char path[LR_SEED_PATH + 1];
	struct lr_dir d;
	int r = 0;

	if (!path_in(x->t, i, path)) /* It is refused. */
		return 0;
	LR_CLEANUP_FD int fd = lr_open_beneath(x->t->upper >= 0 ? x->t->upper : x->t->fd,
					       i ? path : ".", O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return is_gone(-fd) ? 0 : fd;
	lr_dir_begin(&d, fd);
	for (const struct lr_dirent *e; r >= 0 && (e = lr_dir_next(&d));)
		if (!lr_streq(e->name, ".") && !lr_streq(e->name, "..") && !is_default(x, i, fd, e))
			r = add_entry(x, i, fd, e->name);
	return r < 0 ? r : -errno;
}

static int list(struct look *x, struct lr_err *err)
{
	struct entry e = {.fd = x->t->fd};

	if (fstat(x->t->fd, &e.st) < 0)
		return lr_fail(err, errno, "look at %s", x->t->called);
	e.inode = e.st.st_ino;
	struct cap_node *root = add_node(x, "", &e);
	if (!root)
		return no_memory(x, err);
	root->target = root->name;
	int r = list_attributes(x, root, x->t->fd);
	/* A directory's own come behind all that is there when it is read. */
	for (uint32_t i = 0; r >= 0 && i < x->t->n; i++)
		if (S_ISDIR(x->t->nodes[i].seed.mode))
			r = list_directory(x, i);
	return r < 0 && r != -EFBIG ? lr_fail(err, -r, "list %s", x->t->called) : 0;
}

/* ---- to find it ------------------------------------------------------------------------------ */

/* 1: it is one; 0: it is none that is carried; or a negative errno. */
static int is_own(int fd, uint64_t *device)
{
	struct statx st;
	struct statfs fs;
	struct stat own;

	if (fstatfs(fd, &fs) < 0 || fstat(fd, &own) < 0)
		return -errno;
	int r = lr_statx(fd, "", AT_EMPTY_PATH, 0, &st);
	if (r < 0)
		return r;
	*device = own.st_dev;
	return fs.f_type == TMPFS_MAGIC && !(fs.f_flags & ST_RDONLY) &&
	       st.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

static int open_one(struct cap *c, int root, const char *path, struct lr_err *err)
{
	const struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
				     .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	uint64_t device = 0;
	LR_CLEANUP_FD int fd = lr_openat2(root, path, &how);

	if (fd < 0 && is_gone(-fd))
		return 0;
	int r = fd < 0 ? fd : is_own(fd, &device);
	if (r < 0)
		return lr_fail(err, -r, "open the tmpfs %s", path);
	if (!r || of_device(c, device))
		return 0;
	struct cap_tmpfs *v = lr_grow(c->a, c->tmpfs, c->n_tmpfs, sizeof(*v));
	const char *called = lr_concat(c->a, "the tmpfs ", path, NULL);
	if (!v || !called)
		return lr_fail(err, ENOMEM, "list the tmpfs");
	c->tmpfs = v;
	v[c->n_tmpfs++] = (struct cap_tmpfs){.path = path,
					     .called = called,
					     .fd = lr_take_fd(&fd),
					     .upper = LR_NOFD,
					     .device = device};
	return 0;
}

/* The last one, and no device's: its files are known by their paths. */
static int open_layer(struct cap *c, int root, struct lr_err *err)
{
	if (!c->opts->layer || !c->opts->layer->carried)
		return 0;
	struct cap_tmpfs *v = lr_grow(c->a, c->tmpfs, c->n_tmpfs, sizeof(*v));
	int fd = v ? fcntl(root, F_DUPFD_CLOEXEC, 3) : -1;
	if (fd < 0)
		return lr_fail(err, v ? errno : ENOMEM, "list what it changed in its root");
	c->tmpfs = v;
	v[c->n_tmpfs++] = (struct cap_tmpfs){.path = "/",
					     .called = "its root",
					     .fd = fd,
					     .upper = c->opts->layer->upper,
					     .device = UINT64_MAX};
	return 0;
}

static int list_all(struct cap *c, struct lr_err *err)
{
	uint64_t bytes = 0, files = 0;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < c->n_tmpfs; i++) {
		const bool layer = c->tmpfs[i].upper >= 0;
		struct look x = {c,
				 &c->tmpfs[i],
				 &bytes,
				 &files,
				 layer ? c->opts->layer->bytes : c->opts->tmpfs_bytes,
				 layer ? c->opts->layer->files : c->opts->tmpfs_files,
				 NULL};
		if (layer)
			bytes = files = 0;
		r = list(&x, err);
	}
	return r;
}

int cap_tmpfs_look(struct cap *c, struct lr_err *err)
{
	static const char *const none[] = {NULL};
	const char *const *tmpfs = c->opts->tmpfs ? c->opts->tmpfs : none;
	char path[32];
	int r = 0;

	if (!*tmpfs && !(c->opts->layer && c->opts->layer->carried))
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/root", c->opts->pid);
	LR_CLEANUP_FD int root = lr_open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return lr_fail(err, errno, "open %s", path);
	for (const char *const *p = tmpfs; r >= 0 && *p; p++)
		r = open_one(c, root, *p, err);
	if (r >= 0)
		r = open_layer(c, root, err);
	return r < 0 ? r : list_all(c, err);
}

void cap_tmpfs_close(struct cap *c)
{
	for (size_t i = 0; i < c->n_tmpfs; i++)
		c->tmpfs[i].fd = lr_close(c->tmpfs[i].fd);
}

/* ---- contents -------------------------------------------------------------------------------- */

static int open_file(const struct cap_tmpfs *t, uint32_t i, struct lr_err *err)
{
	char path[LR_SEED_PATH + 1];
	struct stat st;

	if (!path_in(t, i, path))
		return lr_refuse(err, ENAMETOOLONG, "a path in %s is too long", t->called);
	LR_CLEANUP_FD int fd = lr_open_beneath(t->fd, path, O_PATH);
	if (fd < 0 || fstat(fd, &st) < 0)
		return lr_fail(err, fd < 0 ? -fd : errno, "open \"%s\" in %s", path, t->called);
	/* Nobody of the container runs. */
	if (!S_ISREG(st.st_mode) || st.st_ino != t->nodes[i].seen)
		return lr_refuse(err, EBUSY, "somebody changes %s while it is read", t->called);
	int again = cap_open_again(fd, O_RDONLY | O_NOATIME);
	return again < 0 ? cap_open_failed(
				   lr_fail(err, errno, "open \"%s\" in %s", path, t->called), err)
			 : again;
}

/* What is counted is the room that files take. A file system that compresses has more in it, one that
 * knows of no holes shows zeros for ever; and who is not held, as another container with the same
 * root, may write more. */
static uint64_t most_of(const struct cap *c, bool layer)
{
	uint64_t most = layer ? c->opts->layer->bytes : c->opts->tmpfs_bytes;

	for (size_t i = 0; i < c->n_tmpfs; i++)
		if ((c->tmpfs[i].upper >= 0) == layer)
			most = most > UINT64_MAX - c->tmpfs[i].n * LR_SEED_PAGE
				       ? UINT64_MAX
				       : most + c->tmpfs[i].n * LR_SEED_PAGE;
	return most;
}

static int copy_file(struct cap *c, struct cap_tmpfs *t, uint32_t i, uint8_t *buffer,
		     uint64_t *left, struct lr_err *err)
{
	struct cap_node *n = &t->nodes[i];
	LR_CLEANUP_FD int fd = open_file(t, i, err);

	if (fd < 0)
		return fd;
	const struct cap_contents from = {fd, n->seed.size, &n->runs, &n->n_runs, NULL, left};
	int r = cap_runs_copy(c, &from, buffer, err);
	if (r != -EFBIG)
		return r;
	lr_refuse(err, EFBIG, "files in %s have more bytes than the room that they take",
		  t->called);
	return lr_err_hint(err, "--%s-bytes counts them, too, when they are copied",
			   t->upper >= 0 ? "changes" : "tmpfs");
}

int cap_tmpfs_copy(struct cap *c, struct lr_err *err)
{
	LR_CLEANUP_FREE uint8_t *buffer = NULL;
	uint64_t left[] = {0, 0}; /* of all tmpfs; of the layer */
	int r = 0;

	for (size_t i = 0; i < c->n_tmpfs; i++)
		left[c->tmpfs[i].upper >= 0] = most_of(c, c->tmpfs[i].upper >= 0);
	for (size_t i = 0; i < c->n_tmpfs; i++)
		for (uint32_t k = 0; r >= 0 && k < c->tmpfs[i].n; k++) {
			const struct lr_seed_node *n = &c->tmpfs[i].nodes[k].seed;
			if (!S_ISREG(n->mode) || !n->size || n->same != LR_SEED_NONE)
				continue;
			if (!buffer)
				buffer = malloc((size_t)CAP_BATCH * LR_SEED_PAGE);
			r = buffer ? copy_file(c, &c->tmpfs[i], k, buffer,
					       &left[c->tmpfs[i].upper >= 0], err)
				   : lr_fail(err, ENOMEM, "copy the tmpfs");
		}
	return r;
}

/* ---- the seed's ------------------------------------------------------------------------------ */

static void put_node(struct lr_seed_writer *w, const struct cap_node *n, uint32_t first)
{
	struct lr_seed_node s = n->seed;

	s.parent += s.parent == LR_SEED_NONE ? 0 : first;
	s.same += s.same == LR_SEED_NONE ? 0 : first;
	s.name = lr_seed_add_text(w, n->name);
	s.target = lr_seed_add_text(w, n->target);
	s.attributes = lr_seed_add_bytes(w, n->attributes, n->attributes_size);
	s.runs = (struct lr_seed_range){lr_seed_next(w, LR_SEED_RUN), (uint32_t)n->n_runs};
	for (size_t i = 0; i < n->n_runs; i++)
		lr_seed_add(w, LR_SEED_RUN, &n->runs[i]);
	lr_seed_add(w, LR_SEED_NODE, &s);
}

void cap_tmpfs_put(struct cap *c, struct lr_seed_writer *w)
{
	for (size_t i = 0; i < c->n_tmpfs; i++) {
		const struct cap_tmpfs *t = &c->tmpfs[i];
		struct lr_seed_tmpfs s = {.path = lr_seed_add_text(w, t->path),
					  .flags = t->upper >= 0 ? LR_SEED_ROOT : 0,
					  .nodes = {lr_seed_next(w, LR_SEED_NODE), (uint32_t)t->n}};
		for (size_t k = 0; k < t->n; k++)
			put_node(w, &t->nodes[k], s.nodes.first);
		lr_seed_add(w, LR_SEED_TMPFS, &s);
	}
}
