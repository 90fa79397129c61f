/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture: whether the path that the kernel has of something leads a child to the same.
 *
 * Of what is in no mount namespace (detached by umount2(2) or open_tree(2), or left by a namespace that has ended) it
 * tells the path as if the mount were "/". To come by such a mount takes no right: a child with namespaces of its own
 * may have made it. Who is locked up in there, or has a file of it, would have the container's of that path.
 *
 * Of a mount that is in the mountinfo of the container's first process, the path is the true one, unless it is "/", and
 * nothing has to be looked up. But that lists only what is below the root of this process, and what is handed in from
 * outside may be a volume's. So every other path is looked up, as a child will, and has to lead to the same.
 */
#define LR_ROOM "capture"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/state.h"
#include "src/sys/path.h"
#include "src/sys/proc.h"
#include "src/sys/syscalls.h"
#include "src/sys/visit.h"

#define DELETED " (deleted)"

/* ---- the root that paths count from ------------------------------------------------------------ */

/* `arg` is a descriptor, which becomes the root. */
static int open_root(const void *arg)
{
	int fd = lr_open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || dup3(fd, *(const int *)arg, O_CLOEXEC) < 0)
		return -errno;
	lr_close(fd);
	return 0;
}

/* Of the whole mount namespace: its first process may have another one. Or a negative errno. */
static int root_of_namespace(const struct cap *c)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", c->opts->pid);
	LR_CLEANUP_FD int ns = lr_open(path, O_RDONLY | O_CLOEXEC);
	LR_CLEANUP_FD int fd = ns < 0 ? ns : lr_open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int r = lr_visit(ns, open_root, &fd);
	return r < 0 ? r : lr_take_fd(&fd);
}

static bool is_ours(const struct stat *st, uint64_t mount)
{
	struct stat own;
	uint64_t own_mount;

	return cap_stat_at(AT_FDCWD, "/", &own, &own_mount) == 0 && own.st_dev == st->st_dev &&
	       own.st_ino == st->st_ino && own_mount == mount;
}

const char *cap_root_path(struct cap *c)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/root", c->opts->pid);
	if (!c->root_path)
		c->root_path = cap_read_link(c->a, path);
	return c->root_path;
}

/* In all but a few containers the root of the first process is that of the namespace, and no child has to look. One that
 * is in no namespace is called "/" as well: so it is one of the container's mounts, or, as of a container without a mount
 * namespace of its own, our root. */
static int find_root(struct cap *c)
{
	const char *link = cap_root_path(c);
	char path[32];
	struct stat st;
	uint64_t mount;

	snprintf(path, sizeof(path), "/proc/%d/root", c->opts->pid);
	int fd = link ? lr_open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : LR_NOFD;
	if (fd >= 0 && lr_streq(link, "/") && cap_stat_at(fd, "", &st, &mount) == 0 &&
	    (cap_mount_is_inside(c, (unsigned)mount) || is_ours(&st, mount)))
		return fd;
	lr_close(fd);
	return root_of_namespace(c);
}

static int root_of(struct cap *c)
{
	if (c->root_known)
		return c->root;
	c->root_known = true;
	c->root = find_root(c);
	if (c->root < 0)
		cap_refuse(c, c->p, "the root of its mount namespace can't be looked at: %s",
			   lr_strerror(-c->root));
	return c->root;
}

void cap_reached_close(struct cap *c)
{
	if (c->root_known)
		c->root = lr_close(c->root);
	c->root_known = false;
}

/* ---- one path ---------------------------------------------------------------------------------- */

/* A directory has to be in the same mount, too: another one has not what is mounted below it. Of a device any file of
 * its number will do: standard input may be the host's /dev/null. */
static bool is_same(const struct stat *a, uint64_t mount, const struct stat *b, uint64_t other)
{
	if (S_ISCHR(a->st_mode) && S_ISCHR(b->st_mode))
		return a->st_rdev == b->st_rdev;
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
	       (!S_ISDIR(a->st_mode) || mount == other);
}

/* 1 or 0; or a negative errno. */
static int is_at(int fd, const struct stat *st, uint64_t mount)
{
	struct stat there;
	uint64_t its_mount;

	if (cap_stat_at(fd, "", &there, &its_mount) < 0)
		return -errno;
	return is_same(st, mount, &there, its_mount);
}

/* The same. */
static int leads_from(int root, const char *path, const struct stat *st, uint64_t mount)
{
	/* A link that is on the way by now would lead to our root, and not to the container's: there is none in a path
	 * of the kernel's. */
	LR_CLEANUP_FD int fd = lr_open_in_nolinks(root, path, O_PATH | O_NOFOLLOW, 0);

	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP ? 0 : fd;
	return is_at(fd, st, mount);
}

static void refuse_unseen(struct cap *c, const struct cap_process *p, const char *path, int code)
{
	cap_refuse(c, p, "where %s leads can't be looked at: %s", path, lr_strerror(code));
}

bool cap_path_leads(struct cap *c, const char *path, const struct stat *st, uint64_t mount)
{
	/* That is also the path of what was moved out of the directory that its mount shows, whichever mount that is. */
	const bool top = lr_streq(path, "/");

	if (!top && !lr_has_suffix(path, DELETED) && cap_mount_is_inside(c, (unsigned)mount))
		return true;
	const int root = root_of(c);
	if (root < 0)
		return true;
	const int r = top ? is_at(root, st, mount) : leads_from(root, path, st, mount);
	if (r < 0)
		refuse_unseen(c, c->p, path, -r);
	return r != 0;
}

/* ---- mappings ---------------------------------------------------------------------------------- */

/* *hash: of all but the inode. */
static bool is_known(const struct cap_led *k, const struct cap_led_file *f, uint64_t *hash)
{
	size_t i;

	*hash = lr_hash(lr_hash(LR_HASH, &f->device, sizeof(f->device)), f->name, strlen(f->name));
	if (!cap_index_find(&k->of, f->inode, *hash, &i))
		return false;
	return k->v[i].inode == f->inode && k->v[i].device == f->device &&
	       lr_streq(k->v[i].name, f->name);
}

/* Without memory it is looked at again. */
static void note(struct cap *c, const struct cap_led_file *f, uint64_t hash)
{
	struct cap_led *k = &c->led;
	struct cap_led_file *v = lr_grow(c->a, k->v, k->n, sizeof(*v));

	if (!v)
		return;
	k->v = v;
	if (cap_index_put(c->a, &k->of, f->inode, hash, k->n) >= 0)
		v[k->n++] = *f;
}

bool cap_mapping_leads(struct cap *c, const struct cap_process *p, const struct cap_vma *v)
{
	const struct cap_led_file f = {v->name, v->inode, makedev(v->major, v->minor)};
	char path[80];
	struct stat st;
	uint64_t mount, hash;

	if (is_known(&c->led, &f, &hash))
		return true;
	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", p->pid,
		 (unsigned long long)v->start, (unsigned long long)v->end);
	/* Who still runs may have unmapped it. Without the right to look there it can't be opened later either, which
	 * is told then. */
	if (cap_stat_at(AT_FDCWD, path, &st, &mount) < 0) {
		if (c->holds && errno != EPERM)
			refuse_unseen(c, p, v->name, errno);
		return true;
	}
	if (!cap_path_leads(c, v->name, &st, mount))
		return false;
	note(c, &f, hash);
	return true;
}

/* ---- where a process is ------------------------------------------------------------------------ */

/* NULL: errno says why. */
static char *look_at_place(struct cap *c, const struct cap_process *p, const char *name,
			   const char *what)
{
	char path[32];
	struct stat st;
	uint64_t mount;

	snprintf(path, sizeof(path), "/proc/%d/%s", p->pid, name);
	char *link = cap_read_link(c->a, path);
	if (!link || cap_stat_at(AT_FDCWD, path, &st, &mount) < 0)
		return NULL;
	if (!cap_path_leads(c, link, &st, mount))
		cap_refuse(c, p, "%s that %s (%s)", what,
			   lr_has_suffix(link, DELETED) ? "is deleted"
							: "is in none of the container's mounts",
			   link);
	return link;
}

int cap_places_look(struct cap *c, struct cap_process *p, struct lr_err *err)
{
	p->exe = look_at_place(c, p, "exe", "a program");
	if (p->exe)
		p->cwd = look_at_place(c, p, "cwd", "a working directory");
	if (p->exe && p->cwd)
		p->root = look_at_place(c, p, "root", "a root");
	return p->exe && p->cwd && p->root
		       ? 0
		       : lr_fail(err, errno, "look where process %d is", p->pid);
}
