/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: control groups v1, hybrid and v2, driven through the file system.
 *
 * Contract. A container's cgroup lives through four steps:
 *
 *   probe   what is mounted on this host                       (reads, once per start)
 *   plan    config.json + probe -> directories, writes, rules  (pure)
 *   create  parent process: directories, limits, device rules  (undoes everything on failure)
 *   join    the container's first process moves itself in      (or is born there by clone3)
 *
 * What remains is a `struct lr_cgroup_ref`: plain strings that the container's record keeps, and
 * all that the later verbs (exec, pause, kill, update, events, delete) and src/stats need. A ref read back from
 * a record is verified before anything is done through it: no operation here ever touches the
 * root of a hierarchy or a path with "..".
 *
 * Limits that cannot be honoured are errors that name the property, the controller and the
 * remedy; the properties that the specification lets a runtime ignore are reported by lr_warn.
 *
 * Join speed. Writing a pid to cgroup.procs takes a system-wide rwsem whose writer waits for an
 * RCU grace period (5-7 ms on an idle machine). A thread that moves only itself, by writing "0" to
 * the v1 file `tasks`, skips it (~15 µs), and so does being born in the cgroup (CLONE_INTO_CGROUP).
 * The join functions use these; the caller passes lr_cgroup_clone_fd to clone3.
 */
#ifndef LR_CGROUP_H
#define LR_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "libocispec/config.h"
#include "src/base/arena.h"
#include "src/base/err.h"

/* ---- what the host has ------------------------------------------------------------------- */

enum lr_cgroup_mode {
	LR_CGROUP_NONE,   /* nothing mounted, or cgroups disabled for this container */
	LR_CGROUP_V1,     /* one hierarchy per controller */
	LR_CGROUP_HYBRID, /* v1 controllers, and a v2 tree without controllers beside them */
	LR_CGROUP_V2,
};

struct lr_cgroup_hierarchy {
	const char *name;       /* "memory", "cpu,cpuacct", "name=systemd"; "" for the v2 tree */
	const char *mountpoint; /* absolute */
	const char *own; /* the caller's own cgroup as a path below mountpoint ("/", "/user/x");
			    NULL: not looked up, done when a relative cgroupsPath asks for it */
};

struct lr_cgroup_layout {
	enum lr_cgroup_mode mode;
	struct lr_cgroup_hierarchy *hierarchies;
	size_t n;
};

/*
 * Looks at /sys/fs/cgroup: one statfs(2) on v2, one directory listing and a statfs per entry on
 * v1; /proc/self/mountinfo only when that finds nothing. A host without cgroups is not an error
 * (mode LR_CGROUP_NONE). 0, -ENOMEM or another -errno.
 */
int lr_cgroup_probe(struct lr_arena *arena, struct lr_cgroup_layout **ret,
		    struct lr_err *err) LR_MUST_CHECK;

/* The one with these controllers, as /proc/PID/cgroup names it: their order may be another. NULL: it is not mounted. */
const struct lr_cgroup_hierarchy *lr_cgroup_mounted(const struct lr_cgroup_layout *layout,
						    const char *controllers);

/* A line of /proc/PID/cgroup. */
struct lr_cgroup_line {
	const char *hierarchy; /* "memory", "cpu,cpuacct", "name=systemd"; "" for the v2 tree */
	const char *path;
};
/* /proc/PID/cgroup. */
int lr_cgroup_text(pid_t pid, struct lr_arena *arena, char **ret, struct lr_err *err) LR_MUST_CHECK;
/* Pure. Takes the next line off *text. 1; 0: there was none; -EPROTO. */
int lr_cgroup_line(char **text, struct lr_cgroup_line *ret, struct lr_err *err) LR_MUST_CHECK;

/* Fills hierarchies[].own from /proc/self/cgroup and /proc/self/mountinfo. */
int lr_cgroup_probe_own(struct lr_arena *arena, struct lr_cgroup_layout *layout,
			struct lr_err *err) LR_MUST_CHECK;

/* ---- plan ---------------------------------------------------------------------------------- */

enum lr_cgroup_manager { LR_CGROUP_CGROUPFS, LR_CGROUP_SYSTEMD, LR_CGROUP_DISABLED };

struct lr_cgroup_opts {
	const char *id; /* the container's */
	enum lr_cgroup_manager manager;
	const struct oci_map *annotations; /* those for systemd are looked at; may be NULL */
	bool rootless; /* hierarchies that cannot be written are left out if no limit needs them */
	bool terminal; /* process.terminal: /dev/console (5:1) stays usable */
	const char *delegate; /* LR_CGROUP_DELEGATE of the container, or NULL */
	uid_t root_uid; /* with `delegate`: the container's root on the host, whose it will be */
	gid_t root_gid;
};

/* Annotation: the processes live in this sub-cgroup, which the container manages itself. */
#define LR_CGROUP_DELEGATE "run.oci.delegate-cgroup"

/* Where a container's processes are: strings only, kept in its record. n == 0: nowhere. */
struct lr_cgroup_place {
	const char *hierarchy; /* as lr_cgroup_hierarchy.name */
	const char *path;      /* absolute directory */
};

struct lr_cgroup_ref {
	enum lr_cgroup_mode mode;
	enum lr_cgroup_manager manager; /* who made it, and must change and remove it */
	size_t n;
	struct lr_cgroup_place *v;
	const char *relative; /* the cgroupsPath as resolved: "/docker/<id>" */
	const char *unit;     /* systemd's, "docker-<id>.scope"; NULL: another manager made it */
	bool user;            /* the unit is the user's systemd's, not the host's */
};

struct lr_cgroup_plan; /* in the arena */

/*
 * Compiles linux.cgroupsPath (NULL or "": "/<id>", rootless: "<id>" below the caller's own cgroup)
 * and linux.resources (may be NULL). Absolute paths start at each hierarchy's mount point,
 * relative ones at the caller's own cgroup there (on v2 at its parent, as a cgroup with processes
 * cannot have controllers for its children); ".." is refused. With the systemd manager it is
 * "slice:prefix:name" instead (NULL or "": ":lean-runtime:<id>", and an empty slice is system.slice
 * or user.slice). Pure, but for lr_cgroup_probe_own when a path is relative and the layout does not
 * have it yet, and a question to systemd with that manager.
 */
int lr_cgroup_plan(const char *cgroups_path, const struct oci_resources *resources,
		   struct lr_cgroup_layout *layout, const struct lr_cgroup_opts *opts,
		   struct lr_arena *arena, struct lr_cgroup_plan **ret,
		   struct lr_err *err) LR_MUST_CHECK;

/* Final once lr_cgroup_create has returned (rootless hierarchies may drop out there, all do when it
 * fails). */
const struct lr_cgroup_ref *lr_cgroup_plan_ref(const struct lr_cgroup_plan *plan);

/* ---- create and join ------------------------------------------------------------------------ */

/*
 * In the parent, before clone. -EBUSY when a cgroup of that name has processes, or somebody else
 * has just made or taken it and his are still to come; an empty one is reused (and thawed). From
 * here until lr_cgroup_settle and the join, others are refused so. On failure every directory made
 * here is gone again and the plan's ref is empty (n == 0): what exists under its paths belongs to
 * somebody else, so a record written before this call must forget them before anything is destroyed
 * by it.
 */
int lr_cgroup_create(struct lr_cgroup_plan *plan, struct lr_err *err) LR_MUST_CHECK;

/* Whether the container's first process may join when it comes to what is charged to it: v1. */
bool lr_cgroup_joins_late(const struct lr_cgroup_plan *plan);

/*
 * Once the container's first process is cloned: what kept the cgroup ours (a process in a systemd
 * scope, a lock) ends when that process has joined; the process is waited for here. Also after a
 * failure, and where no process is to join. Nothing to do without a plan.
 */
void lr_cgroup_settle(struct lr_cgroup_plan *plan);
/* After a failure: ends what would be in the way when the cgroup is destroyed. What keeps others
 * out until it is stays. */
void lr_cgroup_unhold(struct lr_cgroup_plan *plan);

/*
 * A directory descriptor for CLONE_INTO_CGROUP in the v2 tree, or LR_NOFD when there is none (v1)
 * or being born there would fail (pids.limit 0). The caller closes it. When clone3 answers ENOSYS,
 * EINVAL, E2BIG, EACCES, EOPNOTSUPP, EBUSY or EAGAIN with it: clone without, and pass
 * already_in_v2 = false below.
 */
int lr_cgroup_clone_fd(const struct lr_cgroup_plan *plan);
int lr_cgroup_ref_clone_fd(const struct lr_cgroup_ref *ref);

/* For LR_CGROUP_DELEGATE, in the container's first process once its cgroup namespace is made, whose
 * root is then the cgroup above. No-op without. */
int lr_cgroup_enter_delegate(const struct lr_cgroup_plan *plan, struct lr_err *err) LR_MUST_CHECK;

/*
 * The calling process, which must have one thread, enters the cgroup in every hierarchy. Needs
 * the host's cgroup mounts (before pivot_root) and the host's credentials.
 */
int lr_cgroup_join_self(const struct lr_cgroup_plan *plan, bool already_in_v2,
			struct lr_err *err) LR_MUST_CHECK;

/* From outside; slow (see above). For restored processes and tests. */
int lr_cgroup_join_pid(const struct lr_cgroup_ref *ref, pid_t pid,
		       struct lr_err *err) LR_MUST_CHECK;

/* How an exec'd process enters a container's cgroup. */
struct lr_cgroup_join {
	bool already_in_v2; /* born there by lr_cgroup_ref_clone_fd (no sub-cgroup given) */
	const char *const *subpaths; /* --cgroup: "path" for all or "ctrl[,ctrl]:path" for some
					hierarchies (v1), relative to the container's */
	size_t n;
	pid_t init_pid; /* in the caller's pid namespace; 0: no fall back */
};

/*
 * Like lr_cgroup_join_self. When v2 refuses (EBUSY, ENOENT, EOPNOTSUPP: a nested service manager
 * moved the container's processes into sub-cgroups) and no sub-cgroup was asked for, joins the
 * cgroup in which init_pid is now. `how` may be NULL.
 */
int lr_cgroup_join_ref_self(const struct lr_cgroup_ref *ref, const struct lr_cgroup_join *how,
			    struct lr_err *err) LR_MUST_CHECK;

/* ---- the living container ----------------------------------------------------------------- */

/*
 * Stops or continues every process. Waits (bounded, about 5 s) until the kernel says it is done;
 * when freezing does not finish, the cgroup is thawed again and -ETIMEDOUT returned. -EOPNOTSUPP
 * without a freezer.
 */
int lr_cgroup_freeze(const struct lr_cgroup_ref *ref, bool frozen,
		     struct lr_err *err) LR_MUST_CHECK;
/* What was frozen before: when that does not finish, -ETIMEDOUT, the kernel goes on stopping whoever it can. */
int lr_cgroup_freeze_again(const struct lr_cgroup_ref *ref, struct lr_err *err) LR_MUST_CHECK;

/* 1 when a freeze was asked for, 0 when not (or no cgroup is left), or -errno. */
int lr_cgroup_is_frozen(const struct lr_cgroup_ref *ref);

/*
 * Who is frozen by v1's freezer does not see SIGKILL: thaws the container's cgroup and all below it, which
 * the container may have frozen itself. To be called after SIGKILL: who was not killed would run on. Nothing to do on
 * v2, where a frozen process dies.
 */
void lr_cgroup_let_die(const struct lr_cgroup_ref *ref);

/*
 * Signals every process of the tree, sub-cgroups included, the caller excepted. SIGKILL reaches
 * processes that are being forked meanwhile, and thaws a paused container and what is frozen below it; other
 * signals leave it paused. 0 also when there is nobody.
 */
int lr_cgroup_signal_all(const struct lr_cgroup_ref *ref, int sig,
			 struct lr_err *err) LR_MUST_CHECK;

/* Process ids of the whole tree in the caller's pid namespace, sorted, unique. */
int lr_cgroup_pids(const struct lr_cgroup_ref *ref, struct lr_arena *arena, pid_t **ret, size_t *n,
		   struct lr_err *err) LR_MUST_CHECK;

/*
 * Tells the cgroups right below the container's own, and below those that the runtime has made there
 * (run.oci.delegate-cgroup: `delegate` is the annotation's value, or NULL), which are left out. path:
 * from the container's cgroup on ("/sub").
 */
typedef void lr_cgroup_tell(void *arg, const char *hierarchy, const char *path);
int lr_cgroup_each_below(const struct lr_cgroup_ref *ref, const char *delegate,
			 lr_cgroup_tell *tell, void *arg, struct lr_err *err) LR_MUST_CHECK;
/* A number that changes with how many there are. It is cheap, one stat(2) for each directory that is
 * looked at: the kernel counts directories as links. */
uint64_t lr_cgroup_count_below(const struct lr_cgroup_ref *ref, const char *delegate);

/*
 * Removes the trees, sub-cgroups included. Processes still there are killed when `kill` says so,
 * else they make it -EBUSY after a bounded wait (about 5 s), in which nothing of theirs is
 * touched: for records of containers that never got a process, whose cgroup may be somebody else's.
 * Success when nothing is there.
 */
int lr_cgroup_destroy(const struct lr_cgroup_ref *ref, bool kill, struct lr_err *err) LR_MUST_CHECK;

/*
 * For pools: 0 when nobody and nothing is left in the cgroup and it counts from zero again, so that
 * another container can have it; -EBUSY; -EOPNOTSUPP when the kernel keeps statistics of it.
 * Limits stay as they are; one that was ever frozen is the caller's to know of.
 */
int lr_cgroup_recycle(const struct lr_cgroup_ref *ref) LR_MUST_CHECK;
/* Of a v1 hierarchy, by its name: whether the kernel keeps none. */
bool lr_cgroup_recyclable(const char *hierarchy);
/* The host has the one tree of v2. */
bool lr_cgroup_is_v2(void);

/*
 * `update`: writes what is present in *resources and nothing else. Device rules are left as they
 * are, whatever *resources holds: a manager that echoes the whole specification must not take away
 * a GPU.
 */
int lr_cgroup_update(const struct lr_cgroup_ref *ref, const struct oci_resources *resources,
		     struct lr_arena *arena, struct lr_err *err) LR_MUST_CHECK;

#endif
