/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle: the pool of the lean profile, without a container. */
#define LR_ROOM "pool"
#include <errno.h>
#include <unistd.h>

#include "src/lean/lean.h"
#include "src/lifecycle/compile.h"

int lr_lifecycle_pool_status(const struct lr_runtime *rt, struct lr_arena *a,
			     struct lr_lean_pool *ret, struct lr_err *err)
{
	struct lr_store store;

	int r = lr_store_open(rt->root, false, a, &store, err);
	if (r == -ENOENT) {
		*ret = (struct lr_lean_pool){0};
		return 0;
	}
	if (r < 0)
		return r;
	r = lr_lean_pool_status(store.fd, store.path, a, ret, err);
	lr_store_close(&store);
	return r;
}

int lr_lifecycle_pool_drain(const struct lr_runtime *rt, unsigned *left, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_store store;

	*left = 0;
	int r = lr_store_open(rt->root, false, a, &store, err);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = lr_lean_pool_drain(store.fd, store.path, left, a, err);
	lr_store_close(&store);
	return r;
}

static int warm(const struct lr_runtime *rt, const struct lr_create_opts *o, unsigned n,
		const struct lr_store *store, struct lr_arena *a, struct lr_err *err)
{
	struct lr_compiled c;
	int r = lr_compile(rt, o, store->path, a, &c, err);

	if (r < 0)
		return r;
	if (!c.lean.pool && !c.lean.template_ && c.lean.network != LR_LEAN_POOL &&
	    c.lean.network != LR_LEAN_SHARED) {
		lr_refuse(err, EINVAL, "nothing can be made ready for this bundle");
		return lr_err_hint(err, "%s",
				   c.lean.why_not ? c.lean.why_not : "see docs/lean-profile.md");
	}
	return lr_compile_warm(rt, o, n, store, a, &c, err);
}

int lr_lifecycle_pool_warm(const struct lr_runtime *rt, const struct lr_create_opts *o, unsigned n,
			   struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_runtime lean = *rt;
	struct lr_create_opts opts = *o;
	struct lr_store store;

	if (!lean.lean)
		lean.lean = "lean";
	/* No container has this name. What a killed `warm` leaves under it is swept away. */
	opts.id = lr_strf(a, ".warm.%d", getpid());
	if (!opts.id)
		return lr_fail(err, ENOMEM, "make the plan");
	int r = lr_store_open(rt->root, true, a, &store, err);
	if (r < 0)
		return r;
	r = warm(&lean, &opts, n, &store, a, err);
	lr_store_close(&store);
	return r;
}
