/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture: paths of inodes that are watched. Where the file system takes handles, the kernel says where
 * the inode is. Where it does not (overlayfs), directories are read, those near the root first.
 * Whatever is found is opened, and the kernel asked of it what it has told of the watch.
 *
 * Who reads a directory is told to whoever watches that. So directories that are watched for it are read
 * when all others were.
 */
#define LR_ROOM "capture"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/state.h"
#include "src/capture/watches.h"
#include "src/sys/path.h"
#include "src/sys/syscalls.h"

/* What is read of all directories together: an image's, and not those of a disk. */
#define MOST_ENTRIES (1U << 18)

#define HANDLE_BYTES 128U

struct search {
	struct cap *c;
	struct cap_paths *k;
	int root, probe; /* probe: an inotify of ours */
	size_t entries;  /* that may still be read */
};

/* A mount of the container, and the directories of it that are still to be read. */
struct place {
	struct search *s;
	uint64_t device;
	const char *point;
	int fd; /* O_PATH */
	char **dirs, **late;
	size_t n_dirs, n_late;
};

/* ---- is it that one ---------------------------------------------------------------------------- */

/* What the kernel tells of a watch of what is open there. It has no events. */
static bool told_of(const struct search *s, int fd, struct cap_told *ret)
{
	char path[40], *text;
	size_t size;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int watch = inotify_add_watch(s->probe, path, IN_ONESHOT | IN_EXCL_UNLINK);
	if (watch < 0)
		return false;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", s->probe);
	int r = cap_read_all(s->c->a, path, &text, &size, NULL);
	const char *line = r < 0 ? NULL : strstr(text, "inotify wd:");
	inotify_rm_watch(s->probe, watch);
	return line && cap_watch_told(s->c->a, line, ret);
}

static bool is_sought(const struct cap_watched *w)
{
	return !w->searched && !w->path;
}

/* The first of those with that inode, or where it would be. */
static size_t first_of(const struct cap_paths *k, uint64_t inode)
{
	size_t low = 0, high = k->n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (k->v[middle].told.inode < inode)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void found(struct cap_watched *w, const struct stat *st, char *path)
{
	w->path = path;
	w->path_device = st->st_dev;
	w->path_inode = st->st_ino;
	w->type = st->st_mode & S_IFMT;
}

/* Whether what is open there is watched; its path, if that is not known yet. */
static const struct cap_watched *identify(struct search *s, int fd, const char *path)
{
	struct cap_told told;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return NULL;
	size_t i = first_of(s->k, st.st_ino);
	if (i == s->k->n || s->k->v[i].told.inode != st.st_ino || !told_of(s, fd, &told))
		return NULL;
	for (; i < s->k->n && s->k->v[i].told.inode == st.st_ino; i++) {
		struct cap_watched *w = &s->k->v[i];
		if (!lr_streq(w->told.key, told.key))
			continue;
		if (is_sought(w))
			found(w, &st, lr_strdup(s->k->a, path));
		return w;
	}
	return NULL;
}

/* ---- by handle --------------------------------------------------------------------------------- */

static bool take_handle(const char *key, struct file_handle *h)
{
	const char *at = strstr(key, "fhandle-bytes:"), *hex = strstr(key, "f_handle:");
	int type;

	if (!at || !hex ||
	    sscanf(at, "fhandle-bytes:%x fhandle-type:%x", &h->handle_bytes, (unsigned *)&type) !=
		    2 ||
	    h->handle_bytes > HANDLE_BYTES)
		return false;
	h->handle_type = type;
	hex += strlen("f_handle:");
	for (unsigned i = 0; i < h->handle_bytes; i++) {
		unsigned byte;
		if (sscanf(hex + (size_t)2 * i, "%2x", &byte) != 1)
			return false;
		h->f_handle[i] = (unsigned char)byte;
	}
	return true;
}

/* The kernel's path may be of another mount, or of before: it counts if it leads there. */
static void by_handle(struct search *s, int mount, struct cap_watched *w)
{
	uint64_t room[(sizeof(struct file_handle) + HANDLE_BYTES) / sizeof(uint64_t)];
	struct file_handle *h = (void *)room;
	struct stat st, again;
	char link[40];

	if (!take_handle(w->told.key, h))
		return;
	LR_CLEANUP_FD int fd = open_by_handle_at(mount, h, O_PATH | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	char *path = cap_read_link(s->k->a, link);
	if (!path || path[0] != '/')
		return;
	LR_CLEANUP_FD int named = lr_open_in_nolinks(s->root, path, O_PATH | O_NOFOLLOW, 0);
	if (named >= 0 && fstat(named, &again) == 0 && again.st_dev == st.st_dev &&
	    again.st_ino == st.st_ino)
		found(w, &st, path);
}

static void ask_handles(struct place *x)
{
	struct search *s = x->s;
	LR_CLEANUP_FD int mount = lr_open_beneath(x->fd, ".", O_RDONLY | O_DIRECTORY);

	for (size_t i = 0; mount >= 0 && i < s->k->n; i++)
		if (is_sought(&s->k->v[i]) && s->k->v[i].told.device == x->device)
			by_handle(s, mount, &s->k->v[i]);
}

/* ---- by reading directories -------------------------------------------------------------------- */

static bool seeks(const struct search *s, uint64_t device)
{
	for (size_t i = 0; i < s->k->n; i++)
		if (is_sought(&s->k->v[i]) && s->k->v[i].told.device == device)
			return true;
	return false;
}

/* dir: from the mount's root on, with a slash before each component. */
static char *full_path(const struct place *x, const char *dir)
{
	const char *point = lr_streq(x->point, "/") ? "" : x->point;

	return lr_strf(x->s->c->a, "%s%s", point, *dir || *point ? dir : "/");
}

static void remember(struct place *x, char *dir, bool late)
{
	char ***list = late ? &x->late : &x->dirs;
	size_t *n = late ? &x->n_late : &x->n_dirs;
	char **v = lr_grow(x->s->c->a, *list, *n, sizeof(char *));

	if (!v)
		return;
	*list = v;
	v[(*n)++] = dir;
}

static void look_at(struct place *x, int dir, const char *where, const char *name)
{
	struct search *s = x->s;
	struct statx st;

	if (lr_statx(dir, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC,
		     STATX_TYPE | STATX_INO, &st) < 0)
		return;
	const size_t i = first_of(s->k, st.stx_ino);
	const bool alike = i < s->k->n && s->k->v[i].told.inode == st.stx_ino;
	if (!alike && !S_ISDIR(st.stx_mode))
		return;
	char *path = lr_strf(s->c->a, "%s/%s", where, name);
	const char *whole = path ? full_path(x, path) : NULL;
	LR_CLEANUP_FD int fd =
		alike && whole ? lr_open_beneath(dir, name, O_PATH | O_NOFOLLOW) : LR_NOFD;
	const struct cap_watched *w = fd >= 0 ? identify(s, fd, whole) : NULL;
	if (path && S_ISDIR(st.stx_mode))
		remember(x, path, w && w->told.mask & CAP_WATCH_READS);
}

static void read_dir(struct place *x, const char *where)
{
	int fd = lr_open_beneath(x->fd, *where ? where + 1 : ".", O_RDONLY | O_DIRECTORY);
	LR_CLEANUP_DIR DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d)
		lr_close(fd);
	for (struct dirent *e; d && x->s->entries && (e = readdir(d));) {
		if (lr_streq(e->d_name, ".") || lr_streq(e->d_name, ".."))
			continue;
		x->s->entries--;
		look_at(x, dirfd(d), where, e->d_name);
	}
}

static void read_all(struct place *x)
{
	const struct cap_watched *w = identify(x->s, x->fd, x->point);

	remember(x, (char *)"", w && w->told.mask & CAP_WATCH_READS);
	for (size_t i = 0, k = 0; i < x->n_dirs || k < x->n_late;) {
		if (!x->s->entries || !seeks(x->s, x->device))
			return;
		read_dir(x, i < x->n_dirs ? x->dirs[i++] : x->late[k++]);
	}
}

/* ---- all mounts -------------------------------------------------------------------------------- */

/* What is mounted there by now, and not what lies below it. */
static bool is_mount(const struct search *s, int fd, unsigned id)
{
	char path[40], *text, *at;
	size_t size;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	return cap_read_all(s->c->a, path, &text, &size, NULL) >= 0 &&
	       (at = strstr(text, "mnt_id:")) && strtoul(at + strlen("mnt_id:"), NULL, 10) == id;
}

/* A line of mountinfo: number, parent, device, root, mount point. */
static void search_mount(struct search *s, const char *line, void (*how)(struct place *))
{
	unsigned id, of, minor;
	char *save = NULL, *text = lr_strndup(s->c->a, line, strcspn(line, "\n"));
	const char *type = text ? strstr(text, " - ") : NULL;

	if (!type || sscanf(text, "%u %*u %u:%u", &id, &of, &minor) != 3)
		return;
	const uint64_t device = makedev(of, minor);
	/* Others answer there, or everybody is in it. */
	if (!seeks(s, device) || lr_has_prefix(type, " - fuse") || lr_has_prefix(type, " - proc "))
		return;
	char *point = strtok_r(text, " ", &save);
	for (int i = 0; i < 4 && point; i++)
		point = strtok_r(NULL, " ", &save);
	if (!point)
		return;
	lr_path_unescape(point);
	LR_CLEANUP_FD int fd = lr_open_in_nolinks(s->root, point, O_PATH | O_NOFOLLOW, 0);
	struct place x = {.s = s, .device = device, .point = point, .fd = fd};
	if (fd >= 0 && is_mount(s, fd, id))
		how(&x);
}

static void search_mounts(struct search *s, const char *mounts, void (*how)(struct place *))
{
	for (const char *line = mounts; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		search_mount(s, line, how);
	}
}

/* Its paths would not be those of the mount namespace. */
static bool has_another_root(const struct cap *c)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/root", c->opts->pid);
	const char *root = cap_read_link(c->a, path);
	return !root || !lr_streq(root, "/");
}

int cap_watches_search(struct cap *c, int root, struct lr_err *err)
{
	LR_CLEANUP_FD int probe = inotify_init1(IN_CLOEXEC);
	struct search s = {c, c->paths, root, probe, MOST_ENTRIES};
	struct cap_told told;
	char path[40], *mounts;
	size_t size;

	if (probe < 0) {
		lr_refuse(err, EDQUOT,
			  "make an inotify, to ask what those of the container watch: %s",
			  lr_strerror(errno));
		return lr_err_hint(err, "fs.inotify.max_user_instances (sysctl) may be too low");
	}
	c->paths->all_told = told_of(&s, root, &told) && told.mask & IN_ONESHOT;
	for (size_t i = 0; i < c->paths->n; i++)
		if (!c->paths->v[i].searched)
			c->paths->v[i].path = NULL;
	snprintf(path, sizeof(path), "/proc/%d/mountinfo", c->opts->pid);
	if (!has_another_root(c) && cap_read_all(c->a, path, &mounts, &size, NULL) >= 0) {
		search_mounts(&s, mounts, ask_handles);
		search_mounts(&s, mounts, read_all);
	}
	for (size_t i = 0; i < c->paths->n; i++)
		c->paths->v[i].searched = true;
	return 0;
}
