/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup: `update`: what is present is written, nothing else is touched. */
#define LR_ROOM "cgroup"

#include "src/cgroup/internal.h"

#include <unistd.h>

/* v2: a limit may be the first that asks for its controller. From the root of the tree down, or,
 * where it is mounted elsewhere, from where the container's own path begins. */
static int enable(const struct lr_cgroup_ref *ref, const struct lr_cgroup_gen *g,
		  struct lr_err *err)
{
	const char *path = ref->n ? ref->v[0].path : "";
	char top[PATH_MAX] = LR_CGROUP_ROOT;

	if (!g->need)
		return 0;
	if (!lr_has_prefix(path, LR_CGROUP_ROOT "/")) {
		size_t len = strlen(path), own = strlen(ref->relative);

		if (!lr_has_suffix(path, ref->relative) || len >= sizeof(top))
			return 0;
		memcpy(top, path, len - own);
		top[len - own] = '\0';
	}
	return lr_cgroup_enable(top, path, g->need, g->where, err);
}

int lr_cgroup_gen_update(struct lr_cgroup_gen *g, const struct oci_resources *r)
{
	if (g->ref->mode == LR_CGROUP_V2)
		lr_cgroup_gen_v2(g, r);
	else
		lr_cgroup_gen_v1(g, r);
	return g->r;
}

int lr_cgroup_write_update(const struct lr_cgroup_gen *g)
{
	int r = g->ref->mode == LR_CGROUP_V2 ? enable(g->ref, g, g->err) : 0;

	return r < 0 ? r : lr_cgroup_write_all(g->v, g->n, false, NULL, NULL, g->err);
}

int lr_cgroup_fs_update(const struct lr_cgroup_ref *ref, const struct oci_resources *r,
			struct lr_arena *arena, struct lr_err *err)
{
	struct lr_cgroup_gen g = {.arena = arena, .ref = ref, .err = err, .update = true};
	int rc = lr_cgroup_gen_update(&g, r);

	return rc < 0 ? rc : lr_cgroup_write_update(&g);
}
