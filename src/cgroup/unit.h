/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: systemd's units: what a container's is called, where its cgroup is, and which properties
 * it gets. All pure; values are in GVariant's text form (src/dbus), as annotations have them.
 *
 * What a limit's file is set to is told to systemd as well where it has a property for it: it
 * writes those files itself on daemon-reload, and would set back what it was not told.
 */
#ifndef LR_CGROUP_UNIT_H
#define LR_CGROUP_UNIT_H

#include "src/cgroup/internal.h"

struct lr_cgroup_prop {
	const char *name;  /* "MemoryMax" */
	const char *value; /* "uint64 67108864" */
	const char *where; /* place in config.json */
	bool newer;        /* can be left out where systemd does not know it (yet) */
};

struct lr_cgroup_props {
	struct lr_cgroup_prop *v;
	size_t n;
};

struct lr_cgroup_unit {
	const char *name;     /* "libpod-x.scope", or a slice */
	const char *slice;    /* that it is in; "-.slice": none */
	const char *subgroup; /* below the unit's cgroup; NULL: none */
	bool is_slice;
	struct lr_cgroup_props props;
};

/* linux.cgroupsPath "slice:prefix:name" and the annotation run.oci.systemd.subgroup. */
int lr_cgroup_unit_of(const char *cgroups_path, const struct lr_cgroup_opts *o,
		      struct lr_arena *arena, struct lr_cgroup_unit *ret,
		      struct lr_err *err) LR_MUST_CHECK;

/* "/a.slice/a-b.slice/prefix-name.scope/sub": where systemd puts it below its own cgroup. NULL: no
 * memory. */
const char *lr_cgroup_unit_path(const struct lr_cgroup_unit *u, struct lr_arena *arena);

/* What the writes come to as properties, for StartTransientUnit or (update) SetUnitProperties. */
int lr_cgroup_unit_limits(const struct lr_cgroup_write *writes, size_t n, bool v2, bool update,
			  struct lr_arena *arena, struct lr_cgroup_props *ret,
			  struct lr_err *err) LR_MUST_CHECK;
/* All properties of a new unit, PIDs excepted: its nature, limits, and the annotations
 * org.systemd.property.*, which win. */
int lr_cgroup_unit_describe(struct lr_cgroup_plan *plan, const struct lr_cgroup_opts *o,
			    struct lr_arena *arena, struct lr_err *err) LR_MUST_CHECK;

#endif
