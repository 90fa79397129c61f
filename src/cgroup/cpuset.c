/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: a new v1 cpuset has no CPUs and no memory nodes (unless its parent has
 * cgroup.clone_children), and nothing can join it (ENOSPC) until it gets its parent's.
 */
#define LR_ROOM "cgroup"

#include "src/cgroup/internal.h"

#define LIST_MAX 4096

static int read_list(struct lr_cgroup_batch *batch, const char *dir, const char *file,
		     char buf[LIST_MAX])
{
	ssize_t n = lr_cgroup_read_batched(batch, dir, file, buf, LIST_MAX);

	if (n < 0)
		return (int)n;
	buf[strcspn(buf, "\n")] = '\0';
	return 0;
}

/* From the mount point down to the parent of dir: fills what is empty. */
static int fill_ancestors(struct lr_cgroup_batch *batch, const char *mountpoint, const char *dir,
			  const char *file, char list[LIST_MAX])
{
	char path[PATH_MAX], own[LIST_MAX];
	size_t len = strlen(mountpoint);
	int r;

	snprintf(path, sizeof(path), "%s", dir);
	path[len] = '\0';
	r = read_list(batch, path, file, list);
	while (r == 0 && strchr(dir + len + 1, '/')) {
		len += 1 + strcspn(dir + len + 1, "/");
		memcpy(path, dir, len);
		path[len] = '\0';
		r = read_list(batch, path, file, own);
		if (r == 0 && own[0])
			memcpy(list, own, sizeof(own));
		else if (r == 0)
			r = lr_cgroup_put_batched(batch, path, file, list);
	}
	return r;
}

static int fill(struct lr_cgroup_batch *batch, const char *mountpoint, const char *dir, bool fresh,
		const char *file)
{
	char parent[PATH_MAX], list[LIST_MAX];
	const char *slash = strrchr(dir, '/');
	int r;

	if (!fresh) {
		r = read_list(batch, dir, file, list);
		if (r < 0 || list[0])
			return r;
	}
	snprintf(parent, sizeof(parent), "%.*s", (int)(slash - dir), dir);
	r = read_list(batch, parent, file, list);
	if (r == 0 && !list[0])
		r = fill_ancestors(batch, mountpoint, dir, file, list);
	return r < 0 ? r : lr_cgroup_put_batched(batch, dir, file, list);
}

int lr_cgroup_cpuset_fill(const struct lr_cgroup_target *t, const char *dir, bool fresh,
			  struct lr_cgroup_batch *batch, struct lr_err *err)
{
	/* What the configuration sets needs the parent's value only where the parent is new too. */
	bool new_parent = t->made && strchr(dir + t->made + 1, '/');
	const char *file = "cpuset.cpus";
	int r = 0;

	if (!t->has_cpus || new_parent)
		r = fill(batch, t->mountpoint, dir, fresh, file);
	if (r == 0 && (!t->has_mems || new_parent)) {
		file = "cpuset.mems";
		r = fill(batch, t->mountpoint, dir, fresh, file);
	}
	if (r < 0)
		return lr_fail(err, -r, "cannot inherit %s into %s", file, dir);
	return 0;
}
