/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint: the state of a running container to an image directory, and back.
 *
 * An engine does it: `criu` is the one there is. Its plan is pure: config.json, the options and
 * what was found of the container become criu's request (internal.h). Applying it is to open what
 * the request names, to start criu, and to answer its notifications.
 *
 * Who calls (src/lifecycle) has the record, the cgroup and the hooks, and hears of the restored
 * process as soon as there is one, so that whatever happens can be taken apart.
 *
 * An image directory says what is executed with a container's rights, as its bundle does. So it
 * counts only if nobody but the caller and root can write to it, or on the way to it.
 */
#ifndef LR_CHECKPOINT_CHECKPOINT_H
#define LR_CHECKPOINT_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "libocispec/config.h"
#include "src/base/arena.h"
#include "src/base/err.h"

/* As the command line has them. Some are for one of the two verbs alone. */
struct lr_checkpoint_opts {
	const char *image_path;   /* NULL: "checkpoint" in the working directory */
	const char *work_path;    /* NULL: image_path */
	const char *parent_path;  /* below image_path; NULL: none */
	const char *page_server;  /* "ADDRESS:PORT"; NULL: none */
	const char *cgroups;      /* soft, full, strict, ignore; NULL: soft */
	const char *network_lock; /* iptables, nftables, skip; NULL: criu's own choice */
	const char *lsm_profile, *lsm_mount_context;
	const char *criu;            /* the program; NULL: criu */
	const char *const *empty_ns; /* NULL-terminated, or NULL */
	int status_fd;               /* LR_NOFD: none */
	bool leave_running, pre_dump;
	bool tcp_established, tcp_close, tcp_skip_in_flight, ext_unix_sk;
	bool shell_job, file_locks, auto_dedup, lazy_pages, link_remap;
};

struct lr_checkpoint_job {
	const struct lr_checkpoint_opts *opts;
	const struct oci_config *config;
	pid_t pid;          /* the container's init */
	const char *notify; /* the runtime's directory that may be mounted on /run/notify */
	const char
		*freezer; /* a cgroup of v2 that criu may freeze; NULL: it stops them one by one */
};

struct lr_restore_job {
	const struct lr_checkpoint_opts *opts;
	const struct oci_config *config;
	const char *bundle, *rootfs; /* absolute */
	/* A directory of the runtime's, on which criu gets a tmpfs with the mounts that it needs:
	 * nobody else sees that. */
	const char *stage;
	/* Bind mounts that are not config.json's; keys are destinations. */
	const struct lr_checkpoint_bind *binds;
	size_t n_binds;
	/* In criu's process, before it is executed: what it leaves to its children as it has it. */
	int (*inherit)(void *arg, struct lr_err *err);
	/* criu runs, and waits for its request: whatever limits it has to keep are set. */
	int (*began)(void *arg, pid_t criu, struct lr_err *err);
	/* The first process is there, in its namespaces, and nothing is restored into it yet. */
	int (*born)(void *arg, pid_t pid, struct lr_err *err);
	/* The master of its terminal. */
	int (*console)(void *arg, int master, struct lr_err *err);
	void *arg;
};

struct lr_checkpoint_bind {
	const char *destination, *source;
	const struct oci_strv *options; /* as config.json has them; NULL: none */
};

struct lr_checkpoint_engine {
	const char *name;
	/* On failure the container is what it was. */
	int (*checkpoint)(const struct lr_checkpoint_job *job, struct lr_arena *a,
			  struct lr_err *err);
	/* *pid: a child of the caller, also on failure, where it may be gone already; 0: none. */
	int (*restore)(const struct lr_restore_job *job, struct lr_arena *a, pid_t *pid,
		       struct lr_err *err);
};

/* The engine of that name; NULL: the usual one. -EINVAL. */
int lr_checkpoint_engine(const char *name, const struct lr_checkpoint_engine **ret,
			 struct lr_err *err) LR_MUST_CHECK;

/* What can be refused before anything is looked at. */
int lr_checkpoint_check(const struct lr_checkpoint_opts *o, struct lr_err *err) LR_MUST_CHECK;

#endif
