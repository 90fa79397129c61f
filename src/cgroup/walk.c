/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: through all directories of a tree. A container makes these as deep as it likes: so no more than three of them are open,
 * whatever the depth, and none is left out.
 */
#define LR_ROOM "cgroup"

#include "src/cgroup/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "src/base/arena.h"
#include "src/base/fd.h"

struct node {
	size_t parent; /* its index; of the top: 0 */
	const char *name;
};

struct tree {
	struct lr_arena *a; /* NULL before there is anything below */
	struct node *v;     /* the top is the first */
	size_t n;
	size_t *left; /* indices of those that were not looked at yet */
	size_t n_left;
	int top, at; /* descriptors: of the top, and of the node `index` */
	size_t index;
};

static int add(struct tree *t, size_t parent, const char *name)
{
	if (!t->a) {
		t->a = lr_arena_new();
		t->v = t->a ? lr_grow(t->a, NULL, 0, sizeof(*t->v)) : NULL;
		t->n = t->v != NULL;
	}
	struct node *v = t->n ? lr_grow(t->a, t->v, t->n, sizeof(*v)) : NULL;
	if (!v)
		return -ENOMEM;
	t->v = v;
	size_t *left = lr_grow(t->a, t->left, t->n_left, sizeof(*left));
	const char *copy = lr_strdup(t->a, name);
	if (!left || !copy)
		return -ENOMEM;
	t->left = left;
	left[t->n_left++] = t->n;
	v[t->n++] = (struct node){parent, copy};
	return 0;
}

static int open_below(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* From the one that was last looked at, if it is the parent; else from the top. */
static int open_node(struct tree *t, size_t i)
{
	if (t->v[i].parent == t->index)
		return open_below(t->at, t->v[i].name);
	size_t depth = 0;
	for (size_t k = i; k; k = t->v[k].parent)
		depth++;
	size_t *way = lr_alloc_n(t->a, depth, sizeof(*way));
	if (!way)
		return -ENOMEM;
	size_t step = depth;
	for (size_t k = i; k; k = t->v[k].parent)
		way[--step] = k;
	int fd = t->top;
	for (; step < depth && fd >= 0; step++) {
		int next = open_below(fd, t->v[way[step]].name);
		if (fd != t->top)
			close(fd);
		fd = next;
	}
	return fd;
}

/* d is of the node `index`. */
static int look(struct tree *t, DIR *d, lr_cgroup_visit_dir *visit, void *arg)
{
	int r = visit(dirfd(d), arg);

	for (struct dirent *e; r == 0 && (errno = 0, e = readdir(d));)
		if (e->d_name[0] != '.' && e->d_type == DT_DIR)
			r = add(t, t->index, e->d_name);
	/* Who was not seen would not be signalled. */
	return r == 0 && errno ? -errno : r;
}

static int look_at_next(struct tree *t, lr_cgroup_visit_dir *visit, void *arg)
{
	const size_t i = t->left[--t->n_left];
	int fd = open_node(t, i);

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	LR_CLEANUP_DIR DIR *d = copy < 0 ? NULL : fdopendir(copy);
	int r = d ? 0 : -errno;
	if (!d)
		lr_close(copy);
	if (t->at != t->top)
		close(t->at);
	t->at = fd;
	t->index = i;
	return r < 0 ? r : look(t, d, visit, arg);
}

int lr_cgroup_each_dir(const char *dir, lr_cgroup_visit_dir *visit, void *arg)
{
	int fd = lr_open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	LR_CLEANUP_DIR DIR *d = fdopendir(fd);
	if (!d) {
		int r = -errno;
		lr_close(fd);
		return r;
	}
	struct tree t = {.top = fd, .at = fd};
	int r = look(&t, d, visit, arg);
	while (r == 0 && t.n_left)
		r = look_at_next(&t, visit, arg);
	if (t.at != t.top)
		close(t.at);
	lr_arena_free(t.a);
	return r;
}
