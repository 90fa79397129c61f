/* SPDX-License-Identifier: Apache-2.0 */
/*
 * systemd: its units, as containers have them: their names, places and properties, and the calls
 * by which systemd starts, changes and stops them.
 *
 * Contract. What a unit is called, where its cgroup is and which properties it has is pure. The
 * calls go by D-Bus (dbus.h), through a narrow client of this room's, since a static program cannot
 * load systemd's library. No cgroup is touched: the caller makes and reads them (src/cgroup).
 *
 * Values of properties are in GVariant's text form, as annotations have them. A limit is told to
 * systemd as well as written to its file, where systemd has a property for it: systemd writes those
 * files itself on daemon-reload, and would set back what it was not told.
 */
#ifndef LR_SYSTEMD_H
#define LR_SYSTEMD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "libocispec/config.h"
#include "src/base/arena.h"
#include "src/base/err.h"
#include "src/systemd/dbus.h"

/* ---- units ---------------------------------------------------------------------------------- */

struct lr_systemd_prop {
	const char *name;  /* "MemoryMax" */
	const char *value; /* "uint64 67108864" */
	const char *where; /* place in config.json */
	bool newer;        /* can be left out where systemd does not know it (yet) */
};

struct lr_systemd_props {
	struct lr_systemd_prop *v;
	size_t n;
};

struct lr_systemd_unit {
	const char *name;     /* "libpod-x.scope", or a slice */
	const char *slice;    /* that it is in; "-.slice": none */
	const char *subgroup; /* below the unit's cgroup; NULL: none */
	bool is_slice;
	struct lr_systemd_props props;
};

struct lr_systemd_opts {
	const char *id;                    /* the container's */
	const struct oci_map *annotations; /* may be NULL */
	bool user;                         /* the user's systemd, not the host's */
	bool v2;                           /* limits are those of cgroup v2 */
};

/* What is written to a cgroup's file. */
struct lr_systemd_limit {
	const char *file; /* absolute */
	const char *value;
	const char *where; /* place in config.json */
};

/* linux.cgroupsPath "slice:prefix:name" and the annotation run.oci.systemd.subgroup. */
int lr_systemd_unit_of(const char *cgroups_path, const struct lr_systemd_opts *o,
		       struct lr_arena *arena, struct lr_systemd_unit *ret,
		       struct lr_err *err) LR_MUST_CHECK;

/* "/a.slice/a-b.slice/prefix-name.scope/sub": where systemd puts it below its own cgroup. NULL: no
 * memory. */
const char *lr_systemd_unit_path(const struct lr_systemd_unit *u, struct lr_arena *arena);

/* Adds a property, or replaces that of its name: the last one wins. False: no memory, or no value. */
bool lr_systemd_put(struct lr_systemd_props *props, struct lr_systemd_prop one,
		    struct lr_arena *arena) LR_MUST_CHECK;
/* Adds what limits come to as properties; `update`: of a unit that exists. */
int lr_systemd_limits(const struct lr_systemd_limit *v, size_t n, bool v2, bool update,
		      struct lr_arena *arena, struct lr_systemd_props *ret,
		      struct lr_err *err) LR_MUST_CHECK;
/* Fills in all properties of a new unit but PIDs: its nature, limits, and the annotations
 * org.systemd.property.*, which win. */
int lr_systemd_unit_describe(struct lr_systemd_unit *u, const struct lr_systemd_opts *o,
			     const struct lr_systemd_limit *limits, size_t n,
			     struct lr_arena *arena, struct lr_err *err) LR_MUST_CHECK;

/* ---- calls (manager.c) ---------------------------------------------------------------------- */

/* -EOPNOTSUPP where systemd does not run. */
int lr_systemd_check(struct lr_err *err) LR_MUST_CHECK;
/* The cgroup that systemd's own units are below: "" for the host's, as a rule. */
int lr_systemd_base(bool user, struct lr_arena *arena, const char **ret,
		    struct lr_err *err) LR_MUST_CHECK;

/* A connection for lr_systemd_start and lr_systemd_stop, which wait until systemd has done it. */
int lr_systemd_open(bool user, struct lr_dbus *c, struct lr_err *err) LR_MUST_CHECK;
/* A scope gets `pid`; 0: none. -EEXIST: a unit of that name is there. */
int lr_systemd_start(struct lr_dbus *c, const struct lr_systemd_unit *u, pid_t pid,
		     struct lr_err *err) LR_MUST_CHECK;
/* 0, too, when it has ended by itself. */
int lr_systemd_stop(struct lr_dbus *c, const char *unit, struct lr_err *err) LR_MUST_CHECK;
/* One that failed stays known until somebody has looked at it: this says that somebody has. */
void lr_systemd_forget(struct lr_dbus *c, const char *unit);

/* Changes properties until the next boot. */
int lr_systemd_set(bool user, const char *unit, const struct lr_systemd_props *props,
		   struct lr_err *err) LR_MUST_CHECK;
/* Has systemd move a process (0: the caller) into a cgroup below the unit's ("" or "/sub"): a user
 * may not do so, unless the process is in a cgroup of the user's own systemd already. */
int lr_systemd_attach(bool user, const char *unit, const char *below, pid_t pid,
		      struct lr_err *err) LR_MUST_CHECK;

/* ---- the holder (holder.c) ------------------------------------------------------------------ */

/*
 * A scope lives as long as it has processes, so it cannot be made before there is one; but limits
 * and device rules have to be there before the container's first process is. A holder takes its
 * place: a copy of this process, that waits until every copy of *hold is closed. The container's
 * process closes its own when it has joined, and the kernel does when everybody else died: whenever
 * the runtime is killed, the holder ends, and systemd removes the empty scope by itself.
 */
int lr_systemd_hold(pid_t *holder, int *hold, struct lr_err *err) LR_MUST_CHECK;
/* Waits for the holder's end, and makes an end of it after a while. *holder is 0 then. */
void lr_systemd_release(pid_t *holder);

#endif
