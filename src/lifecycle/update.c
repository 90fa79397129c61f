/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle: update: new limits for a living container. */
#define LR_ROOM "update"
#include <errno.h>

#include "libocispec/ocispec.h"
#include "src/base/fd.h"
#include "src/lifecycle/container.h"
#include "src/rdt/rdt.h"

static int update_rdt(const struct lr_existing *c, const char *l3, const char *mb,
		      struct lr_arena *a, struct lr_err *err)
{
	const struct oci_config *config;
	struct lr_rdt_plan plan;

	int r = oci_config_decode(c->config_text, c->config_len, a, &config, err);
	if (r < 0)
		return r;
	/* A container without a resctrl group gets one of its own name, as if it had been created
	 * with it. */
	const struct oci_intel_rdt none = {0};
	const struct oci_intel_rdt *rdt =
		config->linux_ && config->linux_->intel_rdt ? config->linux_->intel_rdt : &none;
	r = lr_rdt_plan(rdt, c->record.id, a, &plan, err);
	if (r < 0)
		return r;
	LR_CLEANUP_FD int root = lr_rdt_open(err);
	return root < 0 ? root : lr_rdt_update(&plan, l3, mb, a, root, err);
}

int lr_lifecycle_update(const struct lr_runtime *rt, const char *id,
			const struct oci_resources *res, const char *l3_cache_schema,
			const char *mem_bw_schema, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	LR_CLEANUP_EXISTING struct lr_existing c = LR_EXISTING_NONE;

	int r = lr_container_open(rt, id, true, a, &c, err);
	if (r < 0)
		return r;
	if (c.status == LR_STOPPED)
		return lr_refuse(err, ESRCH, "container not running");
	if (!c.cgroup.n)
		return lr_refuse(err, EOPNOTSUPP, "the container has no cgroup");
	r = lr_container_mark(&c.store, &c.record, false, a, err);
	if (r >= 0)
		r = lr_cgroup_update(&c.cgroup, res, a, err);
	if (r >= 0 && (l3_cache_schema || mem_bw_schema))
		r = update_rdt(&c, l3_cache_schema, mem_bw_schema, a, err);
	return r;
}
