/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount: what the files of this room share: the parsed options, one operation per mount, and the
 * small functions that plan, prepare and apply call in each other's files. Nobody else includes it.
 */
#ifndef LR_MOUNT_INTERNAL_H
#define LR_MOUNT_INTERNAL_H

#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/mount/mount.h"
#include "src/sys/syscalls.h"

/* Values are kernel ABI; Debian 12's <sys/mount.h> lacks them. */
#ifndef MS_LAZYTIME
#define MS_LAZYTIME (1 << 25)
#endif

/* ---- options.c --------------------------------------------------------------------------- */

struct lr_mount_param {
	const char *key;
	const char *value; /* NULL: a bare word */
};

struct lr_mount_prop {
	unsigned long type; /* MS_SHARED, MS_SLAVE, MS_PRIVATE or MS_UNBINDABLE */
	bool rec;
};

struct lr_mount_options {
	uint64_t set, clear;   /* MOUNT_ATTR_* for this mount; atime: clear has all of _ATIME */
	uint64_t rset, rclear; /* the same for the whole tree, applied before set and clear */
	unsigned long sb;      /* MS_* of the superblock, without MS_RDONLY */
	struct lr_mount_prop *props; /* in the order given */
	size_t n_props;
	struct lr_mount_param *params; /* data for the file system */
	size_t n_params;
	const char *data; /* the same joined by commas; "" if none */
	bool named; /* a flag of the mount or its superblock, set or cleared, by its plain name */
	bool bind, rec, remount;
	bool idmap, ridmap;
	const char *idmap_spec; /* crun's "uids=...;gids=..." or NULL */
	bool copyup, copy_symlink, src_nofollow, dest_nofollow;
	bool only_mount2; /* something that fsconfig(2) cannot say */
};

int lr_mount_options_parse(const struct oci_strv *options, const char *type, size_t index,
			   struct lr_arena *arena, struct lr_mount_options *ret,
			   struct lr_err *err) LR_MUST_CHECK;
/* Adds one parameter for the file system and keeps `data` in step. 0 or -ENOMEM. */
int lr_mount_options_add(struct lr_mount_options *o, const char *key, const char *value,
			 const char *text, struct lr_arena *arena) LR_MUST_CHECK;
bool lr_mount_options_has(const struct lr_mount_options *o, const char *key);
/* MS_* word of rootfsPropagation and of the propagation options; 0 if unknown. */
unsigned long lr_mount_prop_parse(const char *name, bool *rec);

/* ---- plan.c -------------------------------------------------------------------------------- */

enum lr_mount_kind {
	LR_MOUNT_FS, /* a new instance of a file system */
	LR_MOUNT_BIND,
	LR_MOUNT_REMOUNT, /* attributes, propagation or superblock options of what is mounted */
	LR_MOUNT_CGROUP,
};

/* One mount_setattr(2): a tree of one mount never has rec. */
struct lr_mount_change {
	uint64_t set, clear;
	uint64_t unnamed; /* of clear: what no option asks for, so it stays where it is locked */
	unsigned long prop;
	bool rec;
	bool attached; /* only once the mount is in its place */
};

struct lr_mount_map { /* one user namespace for id-mapped mounts, shared by equal mappings */
	const char *uids, *gids; /* lines for uid_map and gid_map */
	const char *path;        /* or an existing namespace */
	int fd;
	bool late; /* the child needs fd */
};

struct lr_mount_op {
	size_t index; /* mounts[index] */
	enum lr_mount_kind kind;
	const char *dest; /* absolute, clean */
	const char *name; /* its last component */
	const char *source;
	const char *inside; /* what a bind's source is below the container's root, or NULL */
	const char *type;
	struct lr_mount_options o;
	uint64_t attr;                   /* for fsmount(2) */
	unsigned long ms_flags;          /* the same and the superblock's, for mount(2) */
	struct lr_mount_change *changes; /* attributes and propagation: binds */
	size_t n_changes;
	struct lr_mount_change *props; /* propagation alone: new file systems */
	size_t n_props;
	ssize_t map;       /* plan->maps[map], or -1 */
	ssize_t parent;    /* plan->ops[parent] is mounted right on the directory above, or -1 */
	bool below_new;    /* ... and that is an empty tmpfs: the directory is missing */
	bool nolinks;      /* no symbolic link on the way */
	bool is_procfs;    /* what is bound must be a procfs: it goes to /proc */
	bool inherit_mode; /* tmpfs without mode=: take the mode of the directory it covers */
	bool names_files;  /* source or options may be paths from the caller's directory */
	bool finish_ro;    /* lr_mount_finish makes it read-only */
	bool keep;         /* another operation or finish needs mfd */
	int tree;     /* from prepare: a detached tree, or (is_link) a symbolic link; or LR_NOFD */
	bool is_link; /* copy-symlink, and the source is one */
	bool made;    /* a first try, by the newer calls, has made the directory */
	int mfd;      /* the mount's root once made and `keep`, or LR_NOFD */
	uint64_t device; /* of a tmpfs that is noted, or 0 */
};

/* Does it make another root? */
static inline bool lr_mount_is_root(const struct lr_mount_op *op)
{
	return !*op->name && op->kind != LR_MOUNT_REMOUNT;
}

static inline bool lr_mount_is_tmpfs(const struct lr_mount_op *op)
{
	return op->kind == LR_MOUNT_FS && lr_streq(op->type, "tmpfs");
}

struct lr_mount_plan {
	struct lr_mount_op *ops;
	size_t n;
	struct lr_mount_map *maps;
	size_t n_maps;
	struct lr_mount_opts opts;
	unsigned long root_prop; /* MS_SLAVE unless rootfsPropagation says otherwise */
	bool late_props;         /* something here is or will be shared */
	bool unseen;             /* nothing mounted here shows in another mount namespace */
	bool aliased;            /* a destination led through a link: texts do not tell all */
	ssize_t at;              /* the working directory is the root of ops[at], or -1: anywhere */
	int root;                /* what apply has mounted on "/", or LR_NOFD */
	const char *context;     /* key of the SELinux option */
	bool no_fsopen;          /* it was refused: do not try again */
	bool no_bench;           /* the same of bench.c */
	bool notes_tmpfs;
};

/* ---- idmap.c ------------------------------------------------------------------------------- */

/* Pure: finds or adds the mapping that op asks for; sets op->map. */
int lr_mount_idmap_plan(struct lr_mount_plan *plan, struct lr_mount_op *op,
			const struct oci_mount *m, struct lr_arena *arena,
			struct lr_err *err) LR_MUST_CHECK;
/* A descriptor of a user namespace with these maps. */
int lr_mount_idmap_open(const struct lr_mount_map *map, int procfd,
			struct lr_err *err) LR_MUST_CHECK;

/* Maps the ids of a detached tree; the map's fd is open. */
int lr_mount_idmap_apply(const struct lr_mount_plan *plan, const struct lr_mount_op *op, int tree,
			 struct lr_err *err) LR_MUST_CHECK;
/* Says why that failed; tree: LR_NOFD if there was none. */
int lr_mount_idmap_fail(const struct lr_mount_op *op, int r, int tree, struct lr_err *err);

/* ---- apply.c ------------------------------------------------------------------------------- */

/* The same as lr_mount_take_top for /sys, but it stays the plan's. */
int lr_mount_own_sysfs(const struct lr_mount_plan *plan);

/* ---- dest.c -------------------------------------------------------------------------------- */

/*
 * Where a mount goes: `fd` itself when name is NULL, else the entry `name` of the directory `fd`,
 * never followed. `own`: fd is to be closed. `made`: the directory was missing until now.
 */
struct lr_mount_dest {
	int fd;
	const char *name;
	bool own, made;
};

void lr_mount_dest_close(struct lr_mount_dest *d);
#define LR_MOUNT_CLEANUP_DEST __attribute__((cleanup(lr_mount_dest_close)))

/* Without a system call: the destination as a name in a directory that is open already. False if
 * there is none, *ret is then empty. */
bool lr_mount_dest_near(const struct lr_mount_plan *plan, const struct lr_mount_op *op,
			const struct lr_mount_env *env, struct lr_mount_dest *ret);
/* Opens the destination below the root, by rules against links; makes it if missing: a directory,
 * or a file when `like` (a descriptor, or LR_NOFD) is not a directory. */
int lr_mount_dest_open(struct lr_mount_plan *plan, const struct lr_mount_op *op,
		       const struct lr_mount_env *env, int like, struct lr_mount_dest *ret,
		       struct lr_err *err) LR_MUST_CHECK;
/* Opens what is there now: for remounts (below = LR_NOFD), and after mount(2), whose new mount has
 * no descriptor: then it must be another mount than `below`, which it was mounted on. */
int lr_mount_dest_reopen(struct lr_mount_plan *plan, const struct lr_mount_op *op,
			 const struct lr_mount_env *env, int below,
			 struct lr_err *err) LR_MUST_CHECK;

/* ---- setattr.c ----------------------------------------------------------------------------- */

/*
 * Changes the mount (tree) at fd. Where mount_setattr(2) is refused, it is remounted by mount(2);
 * but a detached mount (env is NULL) cannot be: then the result is -ENOSYS, without an error text,
 * and the caller tries again once it is attached.
 */
int lr_mount_change_apply(const struct lr_mount_plan *plan, int fd, const struct lr_mount_change *c,
			  const struct lr_mount_env *env, struct lr_err *err) LR_MUST_CHECK;

enum lr_mount_when { LR_MOUNT_DETACHED, LR_MOUNT_ATTACHED, LR_MOUNT_BOTH };
/* Those changes of a list that are due now. */
int lr_mount_changes_apply(const struct lr_mount_plan *plan, int fd,
			   const struct lr_mount_change *v, size_t n, enum lr_mount_when when,
			   const struct lr_mount_env *env, struct lr_err *err) LR_MUST_CHECK;

/* ---- legacy.c ------------------------------------------------------------------------------ */

/* mount(2) onto an open descriptor. 0 or -errno. */
int lr_mount_legacy(const struct lr_mount_env *env, int fd, const char *source, const char *type,
		    unsigned long flags, const char *data) LR_MUST_CHECK;
unsigned long lr_mount_ms_flags(uint64_t attr);
/* Attributes of the mount at fd as MOUNT_ATTR_*, from fstatfs(2). 0 or -errno. */
int lr_mount_attr_of(int fd, uint64_t *attr) LR_MUST_CHECK;
/* Remounts every mount at or below fd (parses mountinfo): mount_setattr(AT_RECURSIVE). */
int lr_mount_legacy_recursive(const struct lr_mount_env *env, int fd,
			      const struct lr_mount_change *c) LR_MUST_CHECK;

/* The path of what fd is, in the caller's mount namespace. 0 or -errno. */
int lr_mount_path_of(const struct lr_mount_env *env, int fd, char *buf, size_t size) LR_MUST_CHECK;

/* ---- fs.c ---------------------------------------------------------------------------------- */

/* Recipe for one new file system instance. */
struct lr_mount_fs {
	const char *type;
	const char *source; /* may be NULL */
	const struct lr_mount_param *params;
	size_t n_params;
	unsigned long sb; /* MS_*; MS_RDONLY counts */
	uint64_t attr;
	const char *mode; /* one more parameter, or NULL */
};

/* Puts a detached mount into its place. */
int lr_mount_attach(int mfd, const struct lr_mount_dest *dest) LR_MUST_CHECK;
/* The whole of an LR_MOUNT_FS operation. */
int lr_mount_fs_apply(struct lr_mount_plan *plan, struct lr_mount_op *op,
		      const struct lr_mount_env *env, struct lr_err *err) LR_MUST_CHECK;

/* ---- direct.c ------------------------------------------------------------------------------ */

#define LR_MOUNT_DATA_MAX 4096 /* mount(2) takes one page */

/* mount(2) on a path, with all of the operation's options. 0 or -errno. */
int lr_mount_on(const struct lr_mount_op *op, const char *path) LR_MUST_CHECK;
/* Is a new mount all that an LR_MOUNT_FS operation asks for, and can mount(2) take its options? */
bool lr_mount_is_plain(const struct lr_mount_op *op);
/* Nobody can change what we have just made in a tmpfs of ours. */
bool lr_mount_nobody_looks(const struct lr_mount_plan *plan, const struct lr_mount_env *env);
/* Can mount(2) alone do all of an LR_MOUNT_FS operation? */
bool lr_mount_is_direct(const struct lr_mount_plan *plan, const struct lr_mount_op *op);
/* Does it. *again: the place is good, the kernel refused; fsopen(2) may know why. */
int lr_mount_direct(struct lr_mount_plan *plan, struct lr_mount_op *op,
		    const struct lr_mount_env *env, bool *again, struct lr_err *err) LR_MUST_CHECK;
/* mount(2) on the directory `name`, which was just made in `dir`, the working directory; that it
 * still is afterwards. 0 or -errno. */
int lr_mount_in(const struct lr_mount_plan *plan, const struct lr_mount_env *env, int dir,
		const char *name, const char *source, const char *type, unsigned long flags,
		const char *data) LR_MUST_CHECK;

/* ---- bench.c ------------------------------------------------------------------------------- */

/* Whether the mount of an LR_MOUNT_FS operation can be made there. */
bool lr_mount_has_bench(const struct lr_mount_plan *plan, const struct lr_mount_op *op,
			const struct lr_mount_env *env);
/* Makes it: its root, which is to be moved away at once, or -errno and *err. *again: as after
 * lr_mount_clear_bench. */
int lr_mount_make_on_bench(const struct lr_mount_op *op, bool *again,
			   struct lr_err *err) LR_MUST_CHECK;
/* It can't be moved away. False: it can't be taken back either, and lies on the host's /proc, which
 * what follows may need. */
bool lr_mount_clear_bench(void) LR_MUST_CHECK;

/* ---- bind.c, cgroup.c, copyup.c ------------------------------------------------------------ */

int lr_mount_bind_apply(struct lr_mount_plan *plan, struct lr_mount_op *op,
			const struct lr_mount_env *env, struct lr_err *err) LR_MUST_CHECK;
/* Binds a host directory over op's destination, with op's attributes. */
int lr_mount_bind_instead(struct lr_mount_plan *plan, struct lr_mount_op *op, const char *source,
			  const struct lr_mount_env *env, struct lr_err *err) LR_MUST_CHECK;
/* Fills *err for a source that cannot be had; returns r. */
int lr_mount_fail_source(const struct lr_mount_op *op, int r, struct lr_err *err);
/* Tree of a host path, detached. >= 0 or -errno. */
int lr_mount_tree(const char *source, bool rec, bool nofollow) LR_MUST_CHECK;
int lr_mount_cgroup_apply(struct lr_mount_plan *plan, struct lr_mount_op *op,
			  const struct lr_mount_env *env, struct lr_err *err) LR_MUST_CHECK;
/* Copies what is in directory `from` into directory `to` (any descriptors), with its metadata. */
int lr_mount_copyup(int from, int to, struct lr_err *err) LR_MUST_CHECK;

#endif
