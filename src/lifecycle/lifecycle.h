/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lifecycle: the OCI state machine (runtime.md): one function a verb.
 *
 *	creating -> created -> running <-> paused
 *	               |          |
 *	               +----------+--> stopped -> (deleted)
 *
 * Functions return 0 or -errno with *err filled; they print nothing and never exit. What they
 * return is in the caller's arena. A verb that fails leaves what it found: create and run undo
 * everything they made.
 */
#ifndef LR_LIFECYCLE_LIFECYCLE_H
#define LR_LIFECYCLE_LIFECYCLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "libocispec/config.h"
#include "libocispec/state.h"
#include "src/base/arena.h"
#include "src/base/err.h"
#include "src/caps/caps.h"
#include "src/cgroup/cgroup.h"
#include "src/stats/stats.h"

/* What holds for every verb. */
struct lr_runtime {
	const char *root;               /* --root */
	enum lr_cgroup_manager manager; /* --cgroup-manager, --systemd-cgroup */
	int rootless;                   /* --rootless: 1 yes, 0 no, -1 find out */
	uid_t euid;                     /* who calls */
	gid_t egid;
	const char *lean;       /* the lean profile, as lr_lean_profile takes it; or NULL */
	const char *seed_dir;   /* what annotations may name (seeded.h); NULL: nothing */
	const char *seed_forkd; /* lean-forkd's socket for that; NULL: the usual one */
};

struct lr_create_opts {
	const char *id;
	const char *bundle;         /* directory; NULL: the working directory */
	const char *config;         /* file name; NULL: config.json in the bundle */
	const char *console_socket; /* NULL: none */
	const char *pid_file;       /* NULL: none */
	const char *pidfd_socket;   /* NULL: none; gets a pidfd of init */
	bool two_phase;             /* create, and start later */
	bool no_pivot;
	bool no_new_keyring;
	bool no_mount_fallback; /* refuse, if a mount cannot be had just as it was asked for */
	int preserve_fds;
	/* run only */
	bool detach;
	bool keep; /* do not delete when the process is gone */
	bool no_subreaper;
	bool more;                 /* others are born next: nothing of this one stays open */
	bool many;                 /* and they have the same root */
	struct lr_init_seed *seed; /* what is continued in place of process.args; NULL: nothing */
	/* lr_lifecycle_open_seed, or NULL where an annotation does not name a seed. A pointer, so
	 * that liblean is not linked with it. */
	int (*open_seed)(const struct lr_runtime *rt, const struct oci_config *c,
			 struct lr_arena *a, struct lr_init_seed *ret, struct lr_err *err);
	/* Called where our file has to be hidden, before anything is made: executes our program
	 * again, hidden (sys/selfexe.h), or says why it cannot. NULL: our file is hidden
	 * already. */
	int (*hide)(void *arg, struct lr_err *err);
	void *hide_arg;
	const struct lr_given *given; /* compile.h; NULL: the bundle has to be read */
	/* If the bundle has been read: its absolute path, and what lr_compile_read found; else
	 * NULL. */
	const char *read_bundle;
	const struct oci_config *read_config;
};

/* For lr_create_opts: what config.json's annotation names (docs/remote-fork.md). The caller closes
 * its descriptors, also after a failure. */
int lr_lifecycle_open_seed(const struct lr_runtime *rt, const struct oci_config *c,
			   struct lr_arena *a, struct lr_init_seed *ret,
			   struct lr_err *err) LR_MUST_CHECK;
int lr_lifecycle_create(const struct lr_runtime *rt, const struct lr_create_opts *o,
			struct lr_err *err) LR_MUST_CHECK;
/* create + start; unless detached also waits, and deletes. *status: for exit(3): 0..255. */
int lr_lifecycle_run(const struct lr_runtime *rt, const struct lr_create_opts *o, int *status,
		     struct lr_err *err) LR_MUST_CHECK;
int lr_lifecycle_start(const struct lr_runtime *rt, const char *id,
		       struct lr_err *err) LR_MUST_CHECK;

/* What the lean profile keeps ready below the root (src/lean). warm: n slots for o->bundle. */
struct lr_lean_pool;
int lr_lifecycle_pool_status(const struct lr_runtime *rt, struct lr_arena *a,
			     struct lr_lean_pool *ret, struct lr_err *err) LR_MUST_CHECK;
int lr_lifecycle_pool_warm(const struct lr_runtime *rt, const struct lr_create_opts *o, unsigned n,
			   struct lr_err *err) LR_MUST_CHECK;
/* *left: slots that containers use. */
int lr_lifecycle_pool_drain(const struct lr_runtime *rt, unsigned *left,
			    struct lr_err *err) LR_MUST_CHECK;

enum lr_status { LR_CREATING, LR_CREATED, LR_RUNNING, LR_PAUSED, LR_STOPPED };
const char *lr_status_name(enum lr_status s);

/* One container as `state` and `list` show it: oci.status, oci.pid (0 unless it lives) and
 * oci.rootfs, created, owner are set. */
struct lr_container {
	enum lr_status status;
	struct oci_state oci;
	uid_t owner_uid;
};
/* -ENOENT also while it is being created. */
int lr_lifecycle_state(const struct lr_runtime *rt, const char *id, struct lr_arena *a,
		       struct lr_container *ret, struct lr_err *err) LR_MUST_CHECK;
/* Every container of the root, by id. Entries that cannot be read are warned about and left out.
 * -ENOENT: there is no such root. */
int lr_lifecycle_list(const struct lr_runtime *rt, struct lr_arena *a, struct lr_container **ret,
		      size_t *n, struct lr_err *err) LR_MUST_CHECK;

/* sig: a number. all: every process of the container (needs a cgroup or a private pid
 * namespace). */
int lr_lifecycle_kill(const struct lr_runtime *rt, const char *id, int sig, bool all,
		      struct lr_err *err) LR_MUST_CHECK;
int lr_lifecycle_delete(const struct lr_runtime *rt, const char *id, bool force,
			struct lr_err *err) LR_MUST_CHECK;
int lr_lifecycle_pause(const struct lr_runtime *rt, const char *id,
		       struct lr_err *err) LR_MUST_CHECK;
int lr_lifecycle_resume(const struct lr_runtime *rt, const char *id,
			struct lr_err *err) LR_MUST_CHECK;
int lr_lifecycle_pids(const struct lr_runtime *rt, const char *id, struct lr_arena *a, pid_t **ret,
		      size_t *n, struct lr_err *err) LR_MUST_CHECK;
int lr_lifecycle_update(const struct lr_runtime *rt, const char *id, const struct oci_resources *r,
			const char *l3_cache_schema, const char *mem_bw_schema,
			struct lr_err *err) LR_MUST_CHECK;
/* Mounts into a running container, or (add == false) takes away what is mounted at each
 * destination. */
int lr_lifecycle_mounts(const struct lr_runtime *rt, const char *id,
			const struct oci_mounts *mounts, bool add,
			struct lr_err *err) LR_MUST_CHECK;
int lr_lifecycle_stats(const struct lr_runtime *rt, const char *id, struct lr_arena *a,
		       struct lr_stats **ret, struct lr_err *err) LR_MUST_CHECK;
/* *oom can be polled (lr_stats_oom_read); *pidfd becomes readable when the container stops; LR_NOFD
 * where there are no pidfds: then ask for its state. */
int lr_lifecycle_watch(const struct lr_runtime *rt, const char *id, struct lr_stats_oom *oom,
		       int *pidfd, struct lr_err *err) LR_MUST_CHECK;

struct lr_exec_opts {
	const char *id;
	const char *process;     /* --process: a file with a process object; NULL: args below */
	const char *const *args; /* NULL-terminated */
	const char *cwd;         /* NULL: the container's */
	const char *const *env;  /* NULL-terminated "K=V", added to the container's; may be NULL */
	const char *user;        /* "UID[:GID]", NULL: the container's */
	const uint32_t *additional_gids;
	size_t n_additional_gids;
	const char *const *caps;              /* NULL-terminated names, added; may be NULL */
	const char *apparmor, *process_label; /* NULL: the container's */
	bool no_new_privs;
	bool tty;
	bool detach;
	bool ignore_paused;
	bool no_subreaper;
	const char *console_socket, *pid_file, *pidfd_socket;
	int preserve_fds;
	const char *const *cgroups; /* --cgroup, "[ctrl[,ctrl]:]path" */
	size_t n_cgroups;
};
/* *status: as for run. */
int lr_lifecycle_exec(const struct lr_runtime *rt, const struct lr_exec_opts *o, int *status,
		      struct lr_err *err) LR_MUST_CHECK;

/* Into opts->image_path. Unless it is left running, the container is deleted when it is there. */
struct lr_checkpoint_opts;
int lr_lifecycle_checkpoint(const struct lr_runtime *rt, const char *id,
			    const struct lr_checkpoint_opts *opts,
			    struct lr_err *err) LR_MUST_CHECK;
/* A container of that id and bundle whose processes are those of the images. What o says of the
 * start of a program does not count. *status: as for run. */
int lr_lifecycle_restore(const struct lr_runtime *rt, const struct lr_create_opts *o,
			 const struct lr_checkpoint_opts *opts, int *status,
			 struct lr_err *err) LR_MUST_CHECK;

#endif
