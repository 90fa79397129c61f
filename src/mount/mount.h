/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount: everything that `mounts` of config.json asks for (runtime-spec 1.3, config.md "Mounts").
 *
 * The root mount itself, pivot_root, masked and read-only paths and device nodes belong to the
 * rooms rootfs and device.
 *
 *   plan     pure: options parsed, destinations checked, flags computed; every refusal that needs
 *            no system call happens here, with its place in config.json
 *   prepare  in the parent, before clone, in the host's mount namespace: detaches trees that the
 *            child could not reach or must not own (user namespace), and maps ids. No system call
 *            when no mount needs it
 *   apply    in the child, before pivot_root: mounts in the listed order below env->rootfd. The
 *            process is to end soon (lr_close_late)
 *   finish   in the child, after device nodes, the terminal and hooks: turns read-only what had to
 *            be writable until then (tmpfs with "ro", /dev with "ro")
 *   release  closes what prepare and apply opened; both processes call it
 *
 * A destination is opened once, inside the root, so nothing can be swapped between looking at it
 * and mounting on it. A new file system is mounted there by one mount(2) (direct.c). What that
 * cannot do, and every bind, is made by the detached-mount API (fsopen, open_tree, mount_setattr,
 * move_mount) on descriptors. Where a kernel or a filter refuses it (ENOSYS, EPERM), mount(2) on
 * /proc/self/fd/N gives the same mount.
 */
#ifndef LR_MOUNT_MOUNT_H
#define LR_MOUNT_MOUNT_H

#include <stdbool.h>
#include <stddef.h>

#include "libocispec/config.h"
#include "src/base/arena.h"
#include "src/base/err.h"

struct lr_mount_plan;

/* All strings and mappings are borrowed and must live as long as the plan. */
struct lr_mount_opts {
	const char *bundle;             /* absolute; relative bind sources start here */
	const char *root;               /* the container's root on the host, absolute; or NULL */
	const char *mount_label;        /* linux.mountLabel, or NULL */
	const char *mount_context_type; /* annotation run.oci.mount_context_type: "context" (also
					   NULL), "fscontext", "defcontext", "rootcontext" */
	const char *rootfs_propagation; /* linux.rootfsPropagation, or NULL (rslave) */
	bool userns;                    /* the child runs in a user namespace of its own */
	bool cgroupns;                  /* ... in a new (or given) cgroup namespace */
	bool netns;                     /* ... in a new network namespace (for hints only) */
	bool elsewhere;   /* apply runs where bind sources cannot be seen: prepare takes all */
	bool no_fallback; /* --no-mount-fallback: what is asked, or an error */
	const struct oci_id_mappings *uid_map; /* linux.uidMappings, NULL or n == 0: none */
	const struct oci_id_mappings *gid_map;
	const char *userns_path; /* namespace file to join, when the mappings are not given */
	bool detach; /* the child will not see the host's files: prepare opens every source */
};

/*
 * The container's cgroups as the cgroup mount shows them; filled by the caller. One entry for
 * cgroup v2 (v2 = true); otherwise one per hierarchy, and on a hybrid host one more whose
 * `hierarchy` is "" for the v2 tree.
 */
struct lr_mount_cgroup_view {
	bool v2;
	size_t n;
	struct lr_mount_cgroup {
		const char *hierarchy;  /* "memory", "cpu,cpuacct", "name=systemd", "" (v2) */
		const char *host_dir;   /* the container's own cgroup: an absolute host path */
		const char *mountpoint; /* where the host has the hierarchy; its last component
					   names the directory in the container */
	} * v;
};

struct lr_mount_env {
	int rootfd; /* the container's root, O_PATH, in the caller's mount namespace; until apply
		       has mounted another one on it (lr_mount_take_root) */
	int procfd; /* private procfs (src/sys/procfs.h), or LR_NOFD: /proc is used if needed */
	bool alone; /* nobody else is in the mount namespace */
	bool bench; /* a new mount may be made on a directory of the host's first (bench.c) */
	const struct lr_mount_cgroup_view *cgroup; /* NULL: a cgroup mount is an error */
	/* Called before what shows the cgroup or fills memory that is charged to it; may be called
	 * often. NULL: the caller is where it belongs. */
	int (*join_cgroup)(void *arg, struct lr_err *err);
	void *arg;
};

/* Pure. -EINVAL (or another -errno) with the place in config.json in *err. */
int lr_mount_plan(const struct oci_mounts *mounts, const struct lr_mount_opts *opts,
		  struct lr_arena *arena, struct lr_mount_plan **ret,
		  struct lr_err *err) LR_MUST_CHECK;

/* Whether apply can do without the host's files, if prepare opens all that is bound. */
bool lr_mount_can_be_bare(const struct lr_mount_plan *plan);
/* Before prepare: apply will not see the host's files; or it will after all. */
void lr_mount_go_bare(struct lr_mount_plan *plan, bool bare);

int lr_mount_prepare(struct lr_mount_plan *plan, struct lr_err *err) LR_MUST_CHECK;
int lr_mount_apply(struct lr_mount_plan *plan, const struct lr_mount_env *env,
		   struct lr_err *err) LR_MUST_CHECK;
/* For an apply that comes later, when the root may be read-only: makes every destination that is
 * missing, but those inside of what it will mount itself. */
int lr_mount_make_places(struct lr_mount_plan *plan, const struct lr_mount_env *env,
			 struct lr_err *err) LR_MUST_CHECK;
/* What apply has mounted on "/", which is the container's root now: the caller's. LR_NOFD:
 * nothing. */
int lr_mount_take_root(struct lr_mount_plan *plan);
/* The root of what apply has mounted on `dest`, if that is a tmpfs which nobody else sees, with
 * nothing in it but what the plan has put there, and no set-group-id bit to be handed down. The
 * plan's; LR_NOFD: no such thing, or it is not known. */
int lr_mount_new_tmpfs(const struct lr_mount_plan *plan, const struct lr_mount_env *env,
		       const char *dest);
/* The root directory of the procfs or sysfs (`type`) that apply has mounted on `dest`, which is the
 * caller's from now on. LR_NOFD: there is none, or it is not known. */
int lr_mount_take_top(struct lr_mount_plan *plan, const char *dest, const char *type);
/* Whether `seen`, which is open at `dest`, is what the plan has mounted there, or else the root's
 * own: a link of the image may have led another mount there. -EPERM. */
int lr_mount_check_seen(const struct lr_mount_plan *plan, const struct lr_mount_env *env,
			const char *dest, int seen, struct lr_err *err) LR_MUST_CHECK;
int lr_mount_finish(struct lr_mount_plan *plan, const struct lr_mount_env *env,
		    struct lr_err *err) LR_MUST_CHECK;
/* In a running container: detaches what is mounted at each destination, the last one first. */
int lr_mount_remove(const struct lr_mount_plan *plan, int rootfd, struct lr_err *err) LR_MUST_CHECK;
void lr_mount_release(struct lr_mount_plan *plan); /* NULL-safe, may be called twice */

/* The same plan with a state of its own: what is done to it leaves this one alone. NULL: no
 * memory. */
struct lr_mount_plan *lr_mount_copy(const struct lr_mount_plan *plan, struct lr_arena *arena);

/* Before apply: it notes which tmpfs it makes. */
void lr_mount_note_tmpfs(struct lr_mount_plan *plan);
/* Whether the last mount at `dest`, a clean path, is a new tmpfs. *device (may be NULL): the one that
 * apply has made, if it noted that, or 0: by now another mount may be there, as links of the image
 * and what is below a bind lead where no text tells. */
bool lr_mount_has_tmpfs(const struct lr_mount_plan *plan, const char *dest, uint64_t *device);

/* True if some mount is of type cgroup or cgroup2: apply will want env->cgroup. */
bool lr_mount_wants_cgroup(const struct lr_mount_plan *plan);

/* True if apply writes contents of files. The kernel charges these to the owner of the memory that
 * the writer has, so for a container it must be a process with a memory of its own. */
bool lr_mount_writes_contents(const struct lr_mount_plan *plan);

/* Every option with a meaning of its own, sorted, for `features`; NULL-terminated, static. */
const char *const *lr_mount_option_names(size_t *n);

/* Use mount(2) only; never use it directly (tests). */
extern bool lr_mount_no_new_api, lr_mount_no_direct;

#endif
