/* SPDX-License-Identifier: Apache-2.0 */
/* rootfs: the plan; see rootfs.h. */
#define LR_ROOM "rootfs"
#include <limits.h>

#include "src/base/log.h"
#include "src/base/str.h"
#include "src/rootfs/internal.h"

/* Root inode only, and not even that is writable. */
#define EMPTY_DATA "mode=0555,nr_blocks=1,nr_inodes=1"

static int check_paths(const struct oci_strv *paths, const char *property,
		       const struct lr_rootfs_opts *opts, struct lr_err *err)
{
	if (paths->n && !opts->new_mount_ns) {
		lr_refuse(err, EINVAL, "%s need a mount namespace of the container's own",
			  property);
		lr_err_hint(err, "add {\"type\": \"mount\"} to linux.namespaces");
		return lr_err_at(err, "linux.%s", property);
	}
	return 0;
}

/* Both would be done to mounts of the host, or of the namespace's owner. runc and crun leave them
 * out as well, and say nothing. */
static void leave_out(struct lr_rootfs_plan *plan, const char *propagation)
{
	if (plan->readonly)
		lr_warn("root.readonly is ignored: the container has no mount namespace of its "
			"own");
	if (propagation && propagation[0])
		lr_warn("linux.rootfsPropagation is ignored: the container has no mount namespace "
			"of its own");
	plan->readonly = false;
}

static int set_path(struct lr_rootfs_plan *plan, const char *path, const char *bundle,
		    struct lr_arena *arena)
{
	char *p = path[0] == '/' ? lr_strdup(arena, path) : lr_strf(arena, "%s/%s", bundle, path);
	if (!p)
		return -ENOMEM;
	for (size_t n = strlen(p); n > 1 && p[n - 1] == '/'; n--)
		p[n - 1] = '\0';
	plan->path = p;
	plan->dir = lr_strf(arena, "%s/.", p);
	return plan->dir ? 0 : -ENOMEM;
}

static bool is_bind(const struct oci_mount *m)
{
	for (size_t i = 0; i < m->options.n; i++)
		if (lr_streq(m->options.v[i], "bind") || lr_streq(m->options.v[i], "rbind"))
			return true;
	return false;
}

/* On /proc nothing but a procfs may be mounted (src/mount). */
static void find_tops(struct lr_rootfs_plan *plan, const struct oci_mounts *mounts)
{
	char dest[PATH_MAX];

	for (size_t i = 0; mounts && i < mounts->n; i++) {
		const struct oci_mount *m = &mounts->v[i];

		if (!m->destination || strlen(m->destination) + 2 > sizeof(dest))
			continue;
		lr_path_clean(m->destination, dest);
		if (lr_streq(dest, "/"))
			plan->has_proc = plan->has_sys = false;
		else if (lr_streq(dest, "/proc"))
			plan->has_proc = true;
		else if (lr_streq(dest, "/sys"))
			plan->has_sys = lr_streq(m->type, "sysfs") && !is_bind(m);
	}
}

int lr_rootfs_plan(const struct oci_root *root, const char *propagation,
		   const struct oci_strv *masked, const struct oci_strv *readonly,
		   const struct lr_rootfs_opts *opts, struct lr_arena *arena,
		   const struct lr_rootfs_plan **ret, struct lr_err *err)
{
	if (!root || !root->path || !root->path[0]) {
		lr_refuse(err, EINVAL, "the config names no root file system");
		return lr_err_at(err, "root.path");
	}
	struct lr_rootfs_plan *plan = lr_new(arena, struct lr_rootfs_plan);
	if (!plan || set_path(plan, root->path, opts->bundle, arena) < 0)
		return lr_fail(err, ENOMEM, "planning the root file system");

	plan->readonly = root->readonly;
	plan->no_pivot = opts->no_pivot;
	plan->new_mount_ns = opts->new_mount_ns;
	plan->userns = opts->userns;
	plan->prepared = opts->prepared;
	plan->empty_data = EMPTY_DATA;
	find_tops(plan, opts->mounts);
	if (opts->mount_label && opts->mount_label[0]) {
		plan->label = opts->mount_label;
		plan->empty_data = lr_strf(arena, EMPTY_DATA ",context=\"%s\"", opts->mount_label);
		if (!plan->empty_data)
			return lr_fail(err, ENOMEM, "planning the root file system");
	}

	int r = lr_rootfs_propagation(plan, propagation, err);
	if (r < 0)
		return r;
	if (masked) {
		r = check_paths(masked, "maskedPaths", opts, err);
		if (r < 0)
			return r;
		plan->masked = *masked;
	}
	if (readonly) {
		r = check_paths(readonly, "readonlyPaths", opts, err);
		if (r < 0)
			return r;
		plan->readonly_paths = *readonly;
	}
	if (!opts->new_mount_ns)
		leave_out(plan, propagation);
	*ret = plan;
	return 0;
}
