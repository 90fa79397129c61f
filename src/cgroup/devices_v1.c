/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup: device rules, as version 1 takes them. */
#define LR_ROOM "cgroup"
#include "src/cgroup/internal.h"

static const char *number(char buf[LR_DIGITS], int64_t n)
{
	return n < 0 ? "*" : lr_digits(buf, (uint64_t)n);
}

void lr_cgroup_gen_devices_v1(struct lr_cgroup_gen *g, const struct lr_devrules *flat)
{
	const char *def = flat->allow_rest ? "devices.allow" : "devices.deny";
	const char *exc = flat->allow_rest ? "devices.deny" : "devices.allow";
	char major[LR_DIGITS], minor[LR_DIGITS];

	/*
	 * "a" forgets all exceptions. Below a restricted parent nobody may allow all (EPERM); a new
	 * cgroup starts with all that its parent has, which is as much as can be given.
	 */
	lr_cgroup_emit(g, LR_CTRL_DEVICES, LR_W_DEVICE | (flat->allow_rest ? LR_W_EPERM_OK : 0),
		       LR_DEVRULES_WHERE, def, "a");
	for (size_t i = 0; i < flat->n; i++) {
		const struct lr_devrule *d = &flat->v[i];

		lr_cgroup_emit(g, LR_CTRL_DEVICES, LR_W_DEVICE, d->where, exc, "%c %s:%s %s%s%s",
			       d->type, number(major, d->major), number(minor, d->minor),
			       d->access & LR_DEV_R ? "r" : "", d->access & LR_DEV_W ? "w" : "",
			       d->access & LR_DEV_M ? "m" : "");
	}
}
