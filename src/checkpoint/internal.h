/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint: what its files share: the pure plans, and what they are made of. */
#ifndef LR_CHECKPOINT_INTERNAL_H
#define LR_CHECKPOINT_INTERNAL_H

#include <stdint.h>

#include "src/checkpoint/checkpoint.h"
#include "src/criu/criu.h"
#include "src/stats/stats.h"

/* ---- mountinfo.c --------------------------------------------------------------------------- */

struct lr_checkpoint_mount {
	int id, parent;
	const char *device; /* "0:6" of the file system */
	const char *root;   /* what of the file system is mounted */
	const char *point;  /* where, from the container's root */
	const char *type;
	uint64_t attributes;    /* MOUNT_ATTR_*, those that lr_checkpoint_attribute knows */
	bool slave;             /* of mounts that may be outside */
	uint32_t master, peers; /* the peer groups that it hears from, and that it is of; 0: none */
	const char *options;    /* of the file system, as they stand there */
};

/* MOUNT_ATTR_* of the option that takes a right away: "ro". 0: it is none. */
uint64_t lr_checkpoint_attribute(const char *word);

/* restore_plan.c: all of them that the options of a mount of config.json leave set. */
uint64_t lr_checkpoint_attributes(const struct oci_strv *options);

/* Pure. Cuts `text`, the contents of /proc/PID/mountinfo, into pieces. */
int lr_checkpoint_mountinfo(char *text, struct lr_arena *a, struct lr_checkpoint_mount **ret,
			    size_t *n, struct lr_err *err) LR_MUST_CHECK;
/* The same of an open mountinfo, and of what /proc/PID/mountinfo has now. */
int lr_checkpoint_mounts_at(int fd, struct lr_arena *a, struct lr_checkpoint_mount **ret, size_t *n,
			    struct lr_err *err) LR_MUST_CHECK;
int lr_checkpoint_mounts(pid_t pid, struct lr_arena *a, struct lr_checkpoint_mount **ret, size_t *n,
			 struct lr_err *err) LR_MUST_CHECK;

/* ---- mounted.c ----------------------------------------------------------------------------- */

struct lr_mounted_found {
	const struct lr_checkpoint_mount *mounts; /* as mountinfo has them */
	size_t n;
	const char *root; /* of the process whose they are, in its mount namespace: "/" */
	const struct lr_checkpoint_mount *host; /* our own; NULL: not known */
	size_t n_host;
};

struct lr_mounted {
	struct lr_mounted_change {
		enum lr_mounted_what {
			LR_MOUNTED_OWN,   /* a mount that config.json does not have */
			LR_MOUNTED_GONE,  /* a mount of config.json that is not there any more */
			LR_MOUNTED_FLAGS, /* one that has lost flags which config.json names */
		} what;
		const char *point, *type; /* type: of LR_MOUNTED_OWN */
		uint64_t lost;            /* MOUNT_ATTR_* */
	} * v;
	size_t n;
	bool ask; /* once more, with the host's mounts (lr_mounted_found.host): they decide */
};

/* Pure: whether the container can come to CAP_SYS_ADMIN, to mount or to go to other namespaces; whether
 * something is mounted on its root. */
bool lr_checkpoint_has_admin(const struct oci_config *c);
bool lr_checkpoint_mounts_root(const struct oci_mounts *m);

/*
 * Pure: what of a container's mounts is not as config.json says, and is neither the runtime's doing,
 * nor a hook's or the host's. What can't be told is left out.
 */
int lr_checkpoint_mounted(const struct oci_config *config, const struct lr_mounted_found *f,
			  struct lr_arena *a, struct lr_mounted *ret,
			  struct lr_err *err) LR_MUST_CHECK;

/* ---- made.c -------------------------------------------------------------------------------- */

struct lr_capture_refuse;

/* What the container has made beside its processes. */
struct lr_made {
	const struct lr_checkpoint_job *job;
	int mountinfo; /* LR_NOFD before the first look */
	int top; /* the mount that is its first process's root, "/", where mountinfo had that; 0: not so */
	uint64_t cgroups; /* lr_cgroup_count_below */
	struct lr_stats_limits
		limits; /* of its memory, from a look while it runs until it is held */
};
/* lr_capture.look and look_at_spaces */
int lr_made_look(void *made, bool held, const struct lr_capture_refuse *refuse, struct lr_err *err);
void lr_made_look_at_spaces(void *made, pid_t pid, const struct lr_capture_refuse *refuse);
void lr_made_close(struct lr_made *made);

/* ---- afford.c ------------------------------------------------------------------------------ */

struct lr_capture_cost;
struct lr_stats_left;

/* Pure. -ENOMEM: the kernel might end a process of the container, for want of memory. */
int lr_checkpoint_afford(const struct lr_capture_cost *cost, const struct lr_stats_left *left,
			 struct lr_err *err) LR_MUST_CHECK;
/* lr_capture.afford; made: lr_made */
int lr_made_afford(void *made, const struct lr_capture_cost *cost, struct lr_err *err);

/* ---- first.c ------------------------------------------------------------------------------- */

/* Refuses namespaces, or a root, that are not those in which config.json has the first process begin. pid: that process,
 * or its twin; root: where that process has its own, in its mount namespace. */
void lr_first_spaces(const struct lr_checkpoint_job *job, pid_t pid,
		     const struct lr_capture_refuse *to);
void lr_first_root(const struct lr_checkpoint_job *job, const char *root,
		   const struct lr_capture_refuse *to);

/* ---- layer.c ------------------------------------------------------------------------------- */

/* Pure: the upper directory of an overlay mount, as its options have it. NULL: it has none that can be
 * told, or there is no memory. user: its marks are the users' (userxattr). */
const char *lr_checkpoint_upper(const char *options, struct lr_arena *a, bool *user);

struct lr_capture_layer;

/*
 * The upper layer of the container's root. *ret: filled if it is known, with a descriptor that is the
 * caller's; upper: LR_NOFD if not, which is an error with o->with_changes. It is asked of the host's
 * mounts: what the container says of its own may name any directory of the host.
 */
int lr_checkpoint_layer(pid_t pid, const struct lr_checkpoint_opts *o, struct lr_arena *a,
			struct lr_capture_layer *ret, struct lr_err *err) LR_MUST_CHECK;

/* ---- stdio.c ------------------------------------------------------------------------------- */

#define LR_CHECKPOINT_STDIO "descriptors.json" /* in the image directory; runc's format */
#define LR_CHECKPOINT_NAME  96

/* What 0, 1 and 2 are: "" for what is the container's own, or the name that criu gives to what is
 * not: "pipe:[1]", "file[1:2]", "unix[3]". */
struct lr_checkpoint_stdio {
	char name[3][LR_CHECKPOINT_NAME];
};

int lr_checkpoint_stdio_look(pid_t pid, const struct lr_checkpoint_mount *mounts, size_t n,
			     struct lr_checkpoint_stdio *ret, struct lr_err *err) LR_MUST_CHECK;
int lr_checkpoint_stdio_save(const struct lr_checkpoint_stdio *s, int dir, struct lr_arena *a,
			     struct lr_err *err) LR_MUST_CHECK;
/* None is there: all are the container's own. */
int lr_checkpoint_stdio_load(int dir, struct lr_arena *a, struct lr_checkpoint_stdio *ret,
			     struct lr_err *err) LR_MUST_CHECK;
/* Pure. */
int lr_checkpoint_stdio_decode(const char *text, size_t len, struct lr_arena *a,
			       struct lr_checkpoint_stdio *ret, struct lr_err *err) LR_MUST_CHECK;

/* ---- saved.c ------------------------------------------------------------------------------- */

/* What the images may have of mounts. */
struct lr_saved_rules {
	struct lr_saved_name {
		const char *name; /* under which the images have what is bound there */
		uint64_t set;     /* MOUNT_ATTR_*, those that it has to have */
		bool private;     /* it hears from no mounts of the host's */
	} * v;
	size_t n;
	bool readonly, private; /* the root */
};

void lr_saved_begin(struct lr_saved_rules *rules, const struct oci_config *c);
/* options: as config.json has them; or NULL. set: more MOUNT_ATTR_* than they have. */
int lr_saved_allow(struct lr_saved_rules *rules, const char *name, const struct oci_strv *options,
		   uint64_t set, struct lr_arena *a, struct lr_err *err) LR_MUST_CHECK;

/* Pure. `v`: the mounts of all namespaces. -EPERM: the container could do more with what is mounted than
 * config.json says; -EOPNOTSUPP: something is mounted that config.json does not have, or that criu would
 * look for where the host has another by then. */
int lr_saved_judge(const struct lr_saved_rules *rules, const struct lr_criu_mount *v, size_t n,
		   struct lr_err *err) LR_MUST_CHECK;

/* Pure: whether criu makes a file system of that type anew, and its options lead nowhere. */
bool lr_saved_is_anew(const char *type);
/* Pure: whether there is such a one in the images, with that part of it mounted. */
bool lr_saved_has(const struct lr_criu_mount *v, size_t n, const char *type, const char *root);

/* ---- yard.c -------------------------------------------------------------------------------- */

/* The host's cgroup hierarchies as criu wants them (its "cgroup yard"): each in a directory of its name. n is 0: it mounts
 * them itself. */
struct lr_yard {
	struct lr_yard_entry {
		const char *name;  /* "unified", "systemd", "cpu,cpuacct" */
		const char *where; /* the host has it mounted */
	} * v;
	size_t n;
};

int lr_yard_look(const struct lr_checkpoint_opts *o, struct lr_arena *a, struct lr_yard *ret,
		 struct lr_err *err) LR_MUST_CHECK;
/* The same, by the text of /proc/self/cgroup, which it takes apart. */
int lr_yard_plan(const struct lr_cgroup_layout *l, char *text, struct lr_arena *a,
		 struct lr_yard *ret, struct lr_err *err) LR_MUST_CHECK;
/* A directory of links, which is in no mount namespace: a descriptor of it. LR_NOFD: there is none, with 0 entries or
 * where fsopen(2) is not to be had (before Linux 5.2). */
int lr_yard_link(const struct lr_yard *y, int *ret, struct lr_err *err) LR_MUST_CHECK;
/* A directory of bind mounts at that path: criu's children look into it from other roots, where a link would lead
 * elsewhere. */
int lr_yard_bind(const struct lr_yard *y, const char *at, struct lr_err *err) LR_MUST_CHECK;

/* ---- thaw.c -------------------------------------------------------------------------------- */

struct lr_thaw {
	pid_t guard; /* 0: it was not paused */
	int lives;   /* open for as long as the runtime lives */
	int init;    /* the container's pidfd; below 0: there are none here */
};

/* When criu is there, and nothing is asked of it yet. lr_thaw_end() in any case. */
int lr_thaw_begin(const struct lr_checkpoint_job *job, const struct lr_criu_session *criu,
		  struct lr_thaw *ret, struct lr_err *err) LR_MUST_CHECK;
/* r: what came of it, which is returned, unless all was well and the container can't be paused again. */
int lr_thaw_end(const struct lr_checkpoint_job *job, struct lr_thaw *t, int r,
		struct lr_err *err) LR_MUST_CHECK;

/* ---- plan.c -------------------------------------------------------------------------------- */

/* What was found of a running container. */
struct lr_checkpoint_found {
	pid_t pid;
	const struct lr_checkpoint_mount *mounts;
	size_t n_mounts;
	const int
		*at; /* for each of config.json's mounts: the id of what is there; -1: not known */
	int notify;  /* the id of what is mounted from job->notify; 0: nothing is */
	uint64_t netns, pidns; /* inodes of those it has joined; 0: it has its own, or the host's */
	bool devices;          /* its network namespace has more than a loopback */
	struct lr_checkpoint_stdio stdio;
	struct lr_yard yard;
	const char *config_file;
};

/* Pure: criu's request, and what its images may have of mounts. Directories are for the caller to fill
 * in. */
int lr_checkpoint_plan(const struct oci_config *config, const struct lr_checkpoint_opts *o,
		       const struct lr_checkpoint_found *f, struct lr_arena *a,
		       struct lr_criu_opts *ret, struct lr_saved_rules *rules,
		       struct lr_err *err) LR_MUST_CHECK;

/* What both plans take from the options. */
int lr_checkpoint_plan_opts(const struct lr_checkpoint_opts *o, struct lr_criu_opts *ret,
			    struct lr_err *err) LR_MUST_CHECK;
int lr_checkpoint_add(struct lr_criu_list *l, struct lr_criu_pair p, struct lr_arena *a,
		      struct lr_err *err) LR_MUST_CHECK;
bool lr_checkpoint_is_bind(const struct oci_mount *m);
/* A destination as it stands in the images. NULL: no memory. */
char *lr_checkpoint_clean(const char *path, struct lr_arena *a);
/* The path of the namespace of that type that config.json joins; NULL: none. */
const char *lr_checkpoint_joined(const struct oci_config *c, const char *type);
/* It has one that is not joined. */
bool lr_checkpoint_own(const struct oci_config *c, const char *type);
bool lr_checkpoint_has_terminal(const struct oci_config *c);
int lr_checkpoint_no_userns(const struct oci_config *c, struct lr_err *err) LR_MUST_CHECK;

/* For network namespaces that are joined, as runc names them in its images. */
#define LR_CHECKPOINT_NET "extRootNetNS"
#define LR_CHECKPOINT_PID "extRootPidNS"

/* ---- waits.c ------------------------------------------------------------------------------- */

/* Pure: refuses a FUSE that the host does not have. */
int lr_checkpoint_refuse_fuse(const struct lr_checkpoint_mount *mounts, size_t n,
			      const struct lr_checkpoint_mount *host, size_t n_host,
			      struct lr_err *err) LR_MUST_CHECK;
/* Refuses a process that others wait for when they open a file. */
int lr_checkpoint_refuse_waits(const struct lr_checkpoint_job *job, struct lr_arena *a,
			       struct lr_err *err) LR_MUST_CHECK;

/* ---- restore_plan.c ------------------------------------------------------------------------ */

struct lr_restore_found {
	struct lr_checkpoint_stdio stdio;
	int netns, pidns; /* numbers in criu's process of what is to be joined; LR_NOFD: none */
	int fd0;          /* ... of the caller's standard descriptors: this one and the next two */
	bool net;         /* the images have the contents of a network namespace */
	struct lr_yard yard;
	const char *config_file;
};

/*
 * What criu binds into the container, prepared below the stage with the attributes that it has to
 * have: where the null device masks several files, criu (4.2) makes one of these mounts writable.
 */
struct lr_restore_bind {
	const char *name; /* in the images */
	bool configured;  /* by a mount of config.json, whose destination that is */
	const char *source;
	size_t top;     /* so much of it leads to the root of the mount that it is in */
	const char *at; /* where all of that mount goes, below the stage */
	const struct oci_strv *options; /* as config.json has them; NULL: none */
	uint64_t set;                   /* MOUNT_ATTR_* */
	bool null;                      /* has to be the null device */
	/* What it is, however it is called: as mountinfo(5) has it. NULL: not known yet. */
	const char *device, *root;
};

struct lr_restore_plan {
	struct lr_criu_opts opts; /* but for directories and cgroups */
	struct lr_restore_bind *binds;
	size_t n;
	bool readonly; /* the root */
	struct lr_yard yard;
	const struct lr_criu_mount *saved; /* what the images have */
	size_t n_saved;
	const struct lr_checkpoint_mount *host,
		*root; /* all that criu's process sees; the root in there */
	size_t n_host;
};

/* Pure. */
int lr_restore_plan(const struct lr_restore_job *job, const struct lr_restore_found *f,
		    struct lr_arena *a, struct lr_restore_plan *ret,
		    struct lr_err *err) LR_MUST_CHECK;
/* Pure, once the binds' sources have been looked at: under which names criu finds them. */
int lr_restore_plan_binds(struct lr_restore_plan *p, struct lr_arena *a,
			  struct lr_err *err) LR_MUST_CHECK;
/* Pure: the container's cgroups, from /proc/PID/cgroup of criu, which is in them. */
int lr_restore_plan_cgroups(const char *text, struct lr_arena *a, struct lr_criu_opts *ret,
			    struct lr_err *err) LR_MUST_CHECK;

/* ---- verify.c ------------------------------------------------------------------------------ */

/* Pure. `mounts`: of criu's process, on its stage; the plan keeps them. */
int lr_restore_identify(struct lr_restore_plan *p, const struct lr_checkpoint_mount *mounts,
			size_t n, struct lr_arena *a, struct lr_err *err) LR_MUST_CHECK;
/* Pure. Whether it shows a part of the root that should be read-only, and is not. */
bool lr_restore_lacks_readonly(const struct lr_restore_plan *p,
			       const struct lr_checkpoint_mount *m);
/* Pure. `mounts`: of a mount namespace of what was restored. -EPERM if the container could do more with
 * one of the host's files than config.json says. */
int lr_restore_verify(const struct lr_restore_plan *p, const struct lr_checkpoint_mount *mounts,
		      size_t n, struct lr_err *err) LR_MUST_CHECK;

/* Pure. `mounts`: of the first process's namespace. -EPERM if something that was saved there, which may cover
 * what config.json masks, is not at its place. */
int lr_restore_verify_points(const struct lr_restore_plan *p,
			     const struct lr_checkpoint_mount *mounts, size_t n, struct lr_arena *a,
			     struct lr_err *err) LR_MUST_CHECK;

/* ---- restored.c ---------------------------------------------------------------------------- */

/* Verifies all mount namespaces of a process and of those below it, which stand still. What criu before 4.2
 * forgets to make read-only of the root becomes so. */
int lr_restore_verify_all(const struct lr_restore_plan *p, pid_t pid,
			  struct lr_err *err) LR_MUST_CHECK;

/* ---- deleted.c ----------------------------------------------------------------------------- */

/* Of what was saved of the container whose first process that is, which stands still; mounts: of the images.
 * -EOPNOTSUPP: criu would make one of them elsewhere. */
int lr_deleted_check_saved(pid_t pid, const struct lr_criu_remap *v, size_t n,
			   const struct lr_criu_mount *mounts, size_t n_mounts, struct lr_arena *a,
			   struct lr_err *err) LR_MUST_CHECK;
/* The same before they are restored, where the plan's binds have their sources. */
int lr_deleted_check(const struct lr_restore_plan *p, const char *rootfs,
		     const struct lr_criu_remap *v, size_t n, struct lr_arena *a,
		     struct lr_err *err) LR_MUST_CHECK;

/* ---- stage.c ------------------------------------------------------------------------------- */

#define LR_RESTORE_ROOT "root" /* below the stage: the rootfs */
#define LR_RESTORE_YARD "cgroups"

/* Finds out where each source is: no links are left in it, and `top` is known. */
int lr_restore_look(struct lr_restore_plan *plan, struct lr_arena *a,
		    struct lr_err *err) LR_MUST_CHECK;
/* In criu's process. */
int lr_restore_stage(const struct lr_restore_job *job, const struct lr_restore_plan *plan,
		     struct lr_err *err) LR_MUST_CHECK;

/* ---- images.c ------------------------------------------------------------------------------ */

struct lr_checkpoint_dirs {
	const char *images; /* absolute */
	const char *work;   /* for messages: where the log is */
	int images_fd, work_fd;
};
#define LR_CHECKPOINT_DIRS_NONE                                                                    \
	{                                                                                          \
		.images_fd = -EBADF, .work_fd = -EBADF                                             \
	}

/* Opens (makes: 0700) the directories, and sees to it that they are nobody else's. */
int lr_checkpoint_dirs_open(const struct lr_checkpoint_opts *o, bool make, struct lr_arena *a,
			    struct lr_checkpoint_dirs *ret, struct lr_err *err) LR_MUST_CHECK;
void lr_checkpoint_dirs_close(struct lr_checkpoint_dirs *d);

/* Whether criu has written the contents of a network namespace there. */
bool lr_checkpoint_has_net(int images_fd);

/* The administrator's own options for criu: the annotation, or one of the files; *ret NULL: none.
 * -EPERM if the annotation names a file that may be somebody else's. */
int lr_checkpoint_config_file(const struct oci_config *config, const char **ret,
			      struct lr_err *err) LR_MUST_CHECK;

/* ---- criu.c -------------------------------------------------------------------------------- */

extern const struct lr_checkpoint_engine lr_checkpoint_criu;

/* ---- fork.c -------------------------------------------------------------------------------- */

extern const struct lr_checkpoint_engine lr_checkpoint_fork;

/* Pure: how many pages of contents the seed has. */
uint64_t lr_checkpoint_pages(const struct lr_seed *s);

/* Pure: no option of another engine's. */
int lr_checkpoint_fork_opts(const struct lr_checkpoint_opts *o, struct lr_err *err) LR_MUST_CHECK;
/* Pure: what of config.json a seed can't carry. Returns how many reasons. */
#define LR_FORK_REASONS 8
size_t lr_checkpoint_fork_config(const struct oci_config *c, const char *why[LR_FORK_REASONS]);
/* Into memory of ours: what is checked is what is used. */
int lr_checkpoint_read_descriptor(int fd, struct lr_arena *a, void **ret, uint64_t *size,
				  struct lr_err *err) LR_MUST_CHECK;

/* ---- remote.c ------------------------------------------------------------------------------ */

struct lr_capture_pages;
struct lr_capture_wanted;

/* A seed on its way to lean-forkd: the two files, in memory, and what the kernel module has of it.
 * lr_gift_end also after a failure. */
struct lr_gift {
	const struct lr_checkpoint_opts *opts;
	int sock, descriptor, pages;
	int device, exported; /* the module's, and its seed; or LR_NOFD */
	bool asked;           /* it may be with the daemon, whatever was answered */
	bool told;            /* somebody has the ticket */
};
int lr_gift_begin(const struct lr_checkpoint_opts *o, struct lr_gift *g,
		  struct lr_err *err) LR_MUST_CHECK;
/* export.c: whether the module may be tried: 1 or 0; lr_capture.take. */
int lr_gift_may_export(struct lr_gift *g, const struct oci_config *config,
		       struct lr_err *err) LR_MUST_CHECK;
int lr_gift_export(void *gift, const pid_t *twins, size_t n, struct lr_err *err);
int lr_gift_give(void *gift, struct lr_err *err); /* lr_capture.written */
/* lr_capture.filled */
int lr_gift_fill(void *gift, const struct lr_capture_pages *now, bool last,
		 struct lr_capture_wanted *wanted, struct lr_err *err);
void lr_gift_end(struct lr_gift *g, bool failed);

/* ---- background.c -------------------------------------------------------------------------- */

/*
 * Does `work` in a process that stays, with o->tell by which it hands over the ticket; returns when
 * that has happened, and our caller's own `tell` has succeeded, or with the error of either.
 */
int lr_checkpoint_apart(const struct lr_checkpoint_job *job,
			int (*work)(void *arg, const struct lr_checkpoint_opts *o,
				    struct lr_err *err),
			void *arg, struct lr_err *err) LR_MUST_CHECK;

/* For lr_checkpoint_engine.open. */
int lr_checkpoint_fetch(const struct lr_checkpoint_opts *o, struct lr_arena *a,
			struct lr_init_seed *ret, struct lr_err *err) LR_MUST_CHECK;

#endif
