/* SPDX-License-Identifier: Apache-2.0 */
/* capture: watches of inotify; see watches.h. */
#define LR_ROOM "capture"
#include "src/capture/watches.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/files.h"
#include "src/capture/state.h"
#include "src/sys/path.h"
#include "src/sys/tables.h"

/* ---- what the kernel tells --------------------------------------------------------------------- */

/* "inotify wd:1 ino:5f2 sdev:800013 mask:800afce ignored_mask:0 fhandle-bytes:8 ...": numbers are
 * hexadecimal, and the device has twenty bits of a minor. */
bool cap_watch_told(struct lr_arena *a, const char *line, struct cap_told *ret)
{
	const size_t n = strcspn(line, "\n");
	uint64_t device;

	*ret = (struct cap_told){0};
	if (sscanf(line, "inotify wd:%x ino:%" SCNx64 " sdev:%" SCNx64 " mask:%x", &ret->number,
		   &ret->inode, &device, &ret->mask) != 4)
		return false;
	ret->device = makedev((unsigned)(device >> 20), (unsigned)(device & 0xfffff));
	const char *text = lr_strndup(a, line, n), *handle = text ? strstr(text, "fhandle") : NULL;
	ret->key = text ? lr_strf(a, "%" PRIx64 " %" PRIx64 " %s", ret->inode, device,
				  handle ? handle : "")
			: NULL;
	return ret->key;
}

/* ---- those that are known ---------------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
	const struct cap_told *x = &((const struct cap_watched *)a)->told;
	const struct cap_told *y = &((const struct cap_watched *)b)->told;

	if (x->inode != y->inode)
		return x->inode < y->inode ? -1 : 1;
	return strcmp(x->key, y->key);
}

/* Of several that are the same the one that has been searched for, or the first, stays. */
static void put_in_order(struct cap_paths *k)
{
	size_t n = 0;

	if (k->n)
		qsort(k->v, k->n, sizeof(*k->v), by_key);
	for (size_t i = 0; i < k->n; i++) {
		if (!n || by_key(&k->v[n - 1], &k->v[i])) {
			k->v[n++] = k->v[i];
			continue;
		}
		const unsigned mask = k->v[n - 1].told.mask | k->v[i].told.mask;
		if (k->v[i].searched)
			k->v[n - 1] = k->v[i];
		k->v[n - 1].told.mask = mask;
	}
	k->n = n;
}

static struct cap_watched *known(const struct cap *c, const struct cap_told *told)
{
	const struct cap_watched x = {.told = *told};

	return c->paths->n ? bsearch(&x, c->paths->v, c->paths->n, sizeof(x), by_key) : NULL;
}

static int add(struct cap *c, const char *info, struct lr_err *err)
{
	struct cap_paths *k = c->paths;

	for (const char *at = info; (at = strstr(at, "inotify wd:")); at++) {
		struct cap_watched x = {0};
		/* What can't be read is refused when it is looked at. */
		if (!cap_watch_told(k->a, at, &x.told))
			continue;
		struct cap_watched *v = lr_grow(k->a, k->v, k->n, sizeof(*v));
		if (!v)
			return lr_fail(err, ENOMEM, "list what is watched");
		k->v = v;
		v[k->n++] = x;
	}
	return 0;
}

/* ---- while they run ---------------------------------------------------------------------------- */

static int add_of(struct cap *c, pid_t pid, struct lr_err *err)
{
	char path[48];
	int r = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	LR_CLEANUP_DIR DIR *d = opendir(path);
	for (struct dirent *e; r >= 0 && d && (e = readdir(d));) {
		char *info, link[32];
		size_t size;
		const int fd = atoi(e->d_name);
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
		const ssize_t n = readlink(path, link, sizeof(link) - 1);
		link[n > 0 ? n : 0] = 0;
		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", pid, fd);
		if (lr_streq(link, "anon_inode:inotify") &&
		    cap_read_all(c->a, path, &info, &size, NULL) >= 0)
			r = add(c, info, err);
	}
	return r;
}

int cap_watches_root(const struct cap *c)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/root", c->opts->pid);
	int fd = lr_open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static bool leads_there(const struct cap_watched *w, int root)
{
	struct stat st;
	LR_CLEANUP_FD int fd = lr_open_in_nolinks(root, w->path, O_PATH | O_NOFOLLOW, 0);

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == w->path_device &&
	       st.st_ino == w->path_inode;
}

static int add_all(struct cap *c, struct lr_err *err)
{
	struct lr_table *v = lr_new_n(c->a, c->n, struct lr_table);
	struct lr_tables all = {0};
	int r = 0;

	if (!v)
		return lr_fail(err, ENOMEM, "list what is watched");
	for (size_t i = 0; r >= 0 && i < c->n; i++)
		if (!(c->p[i].seed.flags & LR_SEED_ZOMBIE) &&
		    lr_tables_add(&all, &v[i], c->p[i].pid))
			r = add_of(c, c->p[i].pid, err);
	return r;
}

int cap_watches_find(struct cap *c, struct lr_err *err)
{
	const int r = add_all(c, err);

	put_in_order(c->paths);
	/* Directories are opened for it. Whoever would be waited for is refused by name soon. */
	if (r < 0 || !c->paths->n || cap_would_wait(c, false))
		return r;
	LR_CLEANUP_FD int root = cap_watches_root(c);
	/* It is gone: that is found out by others. */
	if (root < 0)
		return 0;
	for (size_t i = 0; i < c->paths->n; i++)
		if (c->paths->v[i].path && !leads_there(&c->paths->v[i], root))
			c->paths->v[i].searched = false;
	return cap_watches_search(c, root, err);
}

/* ---- one descriptor ---------------------------------------------------------------------------- */

/* What is being looked at. */
struct looked {
	struct cap *c;
	const struct cap_process *p;
	int fd, root;
	struct cap_file *f;
};

static void refuse(const struct looked *x, bool passing, const char *why)
{
	cap_refuse(x->c, x->p, "descriptor %d: an inotify %s", x->fd,
		   why ? why : "(out of memory)");
	x->c->n_passing += passing;
}

/* Nobody can put an event back. */
static void look_unread(const struct looked *x)
{
	LR_CLEANUP_FD int fd = cap_borrow(x->p->pid, x->fd);
	int unread = 0;

	if (fd < 0 || ioctl(fd, FIONREAD, &unread) < 0)
		refuse(x, false, "that can't be asked for its events");
	else if (unread)
		refuse(x, true,
		       "with events that are not read yet (let its program read them, and "
		       "try again)");
}

static const char *why_not(const struct looked *x, const struct cap_told *told,
			   const struct cap_watched *w)
{
	struct lr_arena *a = x->c->a;

	if (!x->c->paths->all_told)
		return "of whose watches this kernel does not tell all (Linux 5.19 does)";
	if (!w->path)
		return lr_strf(a,
			       "that watches what has no name in the container, or none that is "
			       "found: inode %" PRIu64 " of device %u:%u",
			       told->inode, major(told->device), minor(told->device));
	/* The look at the tmpfs would be an event that its program has not read. */
	if (told->mask & CAP_WATCH_READS && cap_tmpfs_has(x->c, w->path_device))
		return lr_strf(a,
			       "that is told who reads a tmpfs, as checkpoint does: %s (leave "
			       "IN_ACCESS, IN_OPEN and IN_CLOSE_NOWRITE out)",
			       w->path);
	return NULL;
}

static void look_watch(const struct looked *x, const char *line)
{
	struct cap_told told;
	struct cap_watch *v = lr_grow(x->c->a, x->f->watches, x->f->n_watches, sizeof(*v));

	if (!v || !cap_watch_told(x->c->a, line, &told)) {
		refuse(x, false, "whose watches this program can't read");
		return;
	}
	x->f->watches = v;
	const struct cap_watched *w = known(x->c, &told);
	const char *why = w ? why_not(x, &told, w) : NULL;
	if (why)
		refuse(x, false, why);
	else if (!w)
		refuse(x, true, "whose watches change (try again)");
	else if (!leads_there(w, x->root))
		refuse(x, true, lr_strf(x->c->a, "that watches what is renamed (%s)", w->path));
	else
		v[x->f->n_watches++] = (struct cap_watch){.number = told.number,
							  .events = told.mask,
							  .data = w->type,
							  .path = w->path};
}

static int by_number(const void *a, const void *b)
{
	const struct cap_watch *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

/* Numbers are come by, one after the other. */
static void look_numbers(const struct looked *x)
{
	const size_t n = x->f->n_watches;

	if (!n)
		return;
	qsort(x->f->watches, n, sizeof(*x->f->watches), by_number);
	x->c->watch_numbers += x->f->watches[n - 1].number;
	if (x->c->watch_numbers > LR_SEED_WATCH_NUMBERS)
		refuse(x, false,
		       lr_strf(x->c->a,
			       "whose watch has the number %u: those of all are %u together at "
			       "the most",
			       x->f->watches[n - 1].number, LR_SEED_WATCH_NUMBERS));
}

void cap_watches_look(struct cap *c, const struct cap_process *p, int fd, const char *info,
		      struct cap_file *f)
{
	LR_CLEANUP_FD int root = cap_watches_root(c);
	const struct looked x = {c, p, fd, root, f};

	f->seed.kind = LR_SEED_INOTIFY;
	for (const char *at = info; (at = strstr(at, "inotify wd:")); at++)
		look_watch(&x, at);
	look_numbers(&x);
	look_unread(&x);
}
