/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ns: namespaces, new and joined (config-linux.md, "namespaces", "uidMappings", "timeOffsets").
 *
 * The plan says which are created by the one clone3 and which are entered. The order in which a
 * process can do that is fixed by the kernel:
 *
 *   - a joined pid namespace, and a new or joined time namespace, hold for *children* only: the
 *     parent enters them, clones, and steps back out;
 *   - the others the child joins itself, a cgroup namespace after the cgroup. But in a *new* user
 *     namespace it has no right to any more: then the parent enters them, clones, and steps back;
 *   - a mount namespace resets root and working directory: the child enters it, alone;
 *   - a *joined* user namespace must be entered before the new ones are made, so that it owns
 *     them, and nobody comes back from it: that needs a process in between (lr_ns_plan.staged);
 *   - so does stepping in, if there is no way back: to return to a namespace takes rights in the
 *     user namespace that owns it, and the host's are not owned by the one that rootless managers
 *     run us in.
 */
#ifndef LR_NS_NS_H
#define LR_NS_NS_H

#include <stdbool.h>
#include <sys/types.h>

#include "libocispec/config.h"
#include "src/base/arena.h"
#include "src/base/err.h"

enum lr_ns_kind {
	LR_NS_USER,
	LR_NS_TIME,
	LR_NS_PID,
	LR_NS_NET,
	LR_NS_IPC,
	LR_NS_UTS,
	LR_NS_CGROUP,
	LR_NS_MOUNT,
	LR_NS_KINDS
};

struct lr_ns_plan {
	unsigned create;               /* CLONE_NEW* of the namespaces to make */
	const char *join[LR_NS_KINDS]; /* path, or NULL */
	size_t index[LR_NS_KINDS];     /* place in linux.namespaces, for errors */
	bool rootless_maps;            /* ids are mapped by somebody without privilege */
	const char *uid_map, *gid_map; /* text for /proc/PID/{u,g}id_map; NULL: no new user ns */
	const struct oci_id_mappings *uids, *gids; /* the same, for newuidmap(1) */
	const char *time_offsets;                  /* text for /proc/self/timens_offsets, or NULL */
	bool staged;                               /* a process in between is needed */
	bool staged_user; /* and it is the one that enters or makes the user namespace */
};

/* What a plan needs to know of the caller. */
struct lr_ns_caller {
	uint32_t euid, egid;
	bool confined; /* to a user namespace: its own other namespaces may belong to the host's */
};

/* Pure. A new user namespace for which the config maps no user ids, or no group ids, has the
 * caller's own as its 0, as with crun. *ret is `l` itself if nothing is missing there. */
int lr_ns_default_maps(const struct oci_linux *l, const struct lr_ns_caller *caller,
		       struct lr_arena *a, const struct oci_linux **ret,
		       struct lr_err *err) LR_MUST_CHECK;

/* Pure. Errors carry linux.namespaces[i] and friends. */
int lr_ns_plan(const struct oci_linux *l, const struct lr_ns_caller *caller, struct lr_arena *a,
	       struct lr_ns_plan *ret, struct lr_err *err) LR_MUST_CHECK;

/* True if the container will have a namespace of that kind other than the caller's. */
bool lr_ns_private(const struct lr_ns_plan *p, enum lr_ns_kind kind);
/* Who enters a joined namespace: the child, or whoever clones it. */
bool lr_ns_child_joins(const struct lr_ns_plan *p, enum lr_ns_kind kind);
unsigned lr_ns_flag(enum lr_ns_kind kind);
const char *lr_ns_name(enum lr_ns_kind kind); /* the specification's word: "network" */

/* Joined namespaces as descriptors, opened and checked (nsfs, right kind) in the host's view. */
struct lr_ns_fds {
	int join[LR_NS_KINDS]; /* LR_NOFD: not joined */
	int own[LR_NS_KINDS];  /* the caller's, where it must step back */
};

int lr_ns_open(const struct lr_ns_plan *p, struct lr_ns_fds *fds, struct lr_err *err) LR_MUST_CHECK;
void lr_ns_close(struct lr_ns_fds *fds);

/* Parent, around clone: enter what children must be born into, and return. */
int lr_ns_step_in(const struct lr_ns_plan *p, struct lr_ns_fds *fds,
		  struct lr_err *err) LR_MUST_CHECK;
int lr_ns_step_out(const struct lr_ns_plan *p, struct lr_ns_fds *fds,
		   struct lr_err *err) LR_MUST_CHECK;

/* The child of this plan is born in a joined cgroup namespace, and may be unable to enter its
 * cgroup from there: the parent has to move it. */
bool lr_ns_cgroup_first(const struct lr_ns_plan *p);

/* Parent: write the id maps of a child that was cloned with CLONE_NEWUSER. */
int lr_ns_write_maps(const struct lr_ns_plan *p, pid_t child, struct lr_err *err) LR_MUST_CHECK;

/* Process in between: enter the user namespace. */
int lr_ns_join_user(struct lr_ns_fds *fds, struct lr_err *err) LR_MUST_CHECK;
/* Becomes root of the user namespace: ids 0, no supplementary groups where the kernel allows. */
int lr_ns_become_root(struct lr_err *err) LR_MUST_CHECK;

/* Child: what it joins itself, and the cgroup namespace, which if new takes its root from where the
 * process is now. */
int lr_ns_enter_rest(const struct lr_ns_plan *p, struct lr_ns_fds *fds,
		     struct lr_err *err) LR_MUST_CHECK;

#endif
