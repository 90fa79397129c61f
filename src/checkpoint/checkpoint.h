/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint: the state of a running container to an image directory, and back.
 *
 * An engine does it. The plan of `criu` is pure: config.json, the options and what was found of the
 * container become criu's request (internal.h). Applying it is to open what the request names, to
 * start criu, and to answer its notifications. `fork` has the kernel's own fork for a copy of
 * memory, and the container that continues it is born as any other (fork.c).
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
#include <stdint.h>
#include <sys/types.h>

#include "libocispec/config.h"
#include "src/base/arena.h"
#include "src/base/err.h"
#include "src/cgroup/cgroup.h"
#include "src/init/seed.h"
#include "src/wire/ticket.h"

#define LR_CHECKPOINT_TMPFS_BYTES   (INT64_C(256) << 20)
#define LR_CHECKPOINT_TMPFS_FILES   INT64_C(65536)
#define LR_CHECKPOINT_CHANGES_BYTES (INT64_C(256) << 20)
#define LR_CHECKPOINT_CHANGES_FILES INT64_C(65536)

/* As the command line has them. Some are for one of the two verbs alone. */
struct lr_checkpoint_opts {
	const char *engine;       /* NULL: the usual one */
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
	/* The engine fork, by this host's lean-forkd in place of image_path. */
	const char *forkd; /* its control socket; NULL: the usual one */
	/* With a ticket: called with it before the container ends; may be NULL. What it returns below 0
	 * takes the seed back, and the container goes on. */
	int (*tell)(void *arg, const char *ticket, struct lr_err *err);
	void *tell_arg;
	char *ticket;    /* NULL: no; checkpoint: where it is written, LR_TICKET_TEXT */
	bool background; /* what is in memory is copied after the ticket */
	uint64_t lease;  /* of it, in ms; 0: the daemon's */
	const char
		*ticket_from;  /* restore: a ticket, or where one is (lr_ticket_place); NULL: no */
	bool prefetch;         /* what nobody touches comes, too, */
	uint32_t prefetch_mib; /* but no more than so many MiB of it; 0: all */
	bool eager;            /* all comes before anything is made */
	/* restore, of the engine fork: to be told what it cost; NULL: no. */
	struct lr_init_seed_stats *stats;
	/* The most that a seed has in its tmpfs; below 0: any number. tmpfs_bound: somebody asked. */
	int64_t tmpfs_bytes, tmpfs_files;
	bool tmpfs_bound;
	/* What it has changed in its root goes along, up to so much. */
	bool with_changes, changes_bound;
	int64_t changes_bytes, changes_files;
	bool without_exec; /* processes that exec sent in are left out of a seed */
	/* Not before a process waits in lean_seed_here(3): for so long, in ms; 0: for ever. */
	bool when_ready;
	uint64_t ready_ms;
	bool leave_running, stop, pre_dump;
	bool tcp_established, tcp_close, tcp_skip_in_flight, ext_unix_sk;
	bool shell_job, file_locks, auto_dedup, lazy_pages, link_remap;
};

struct lr_checkpoint_job {
	const struct lr_checkpoint_opts *opts;
	const struct oci_config *config;
	pid_t pid; /* the container's init */
	int lock; /* by it nobody else changes the container; a process that stays longer closes it */
	bool paused;
	bool relayed;       /* its terminal was made for a runtime in the foreground */
	const char *rootfs; /* absolute; NULL: not known */
	const char *notify; /* the runtime's directory that may be mounted on /run/notify */
	const struct lr_cgroup_ref *cgroup; /* the container's */
	const char *delegate; /* the annotation LR_CGROUP_DELEGATE that it has; or NULL */
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
	bool runs_on; /* what was saved runs on, unless it is to stop; otherwise the other way */
	/* On failure the container is what it was. -ENOMSG: with when_ready, and nobody waits any
	 * more. */
	int (*checkpoint)(const struct lr_checkpoint_job *job, struct lr_arena *a,
			  struct lr_err *err);
	/* *pid: a child of the caller, also on failure, where it may be gone already; 0: none. */
	int (*restore)(const struct lr_restore_job *job, struct lr_arena *a, pid_t *pid,
		       struct lr_err *err);
	/* In place of `restore`: what a container that is born as any other continues. */
	int (*open)(const struct lr_checkpoint_opts *o, struct lr_arena *a,
		    struct lr_init_seed *ret, struct lr_err *err);
};

/* "prefetch:64" and its like (--fetch): what it says of `o`. -EINVAL: it is none. */
int lr_checkpoint_how(const char *fetch, struct lr_checkpoint_opts *o) LR_MUST_CHECK;

/*
 * For `start`: a seed that `open` opened at the creation, by descriptors that the container's first
 * process has kept. lazy: LR_NOFD if its pages are in place. how: what lr_checkpoint_how said.
 */
int lr_checkpoint_reopen(int descriptor, int lazy, const struct lr_checkpoint_opts *how,
			 struct lr_arena *a, struct lr_init_seed *ret,
			 struct lr_err *err) LR_MUST_CHECK;

/* The engine of that name; NULL: the usual one. -EINVAL. */
int lr_checkpoint_engine(const char *name, const struct lr_checkpoint_engine **ret,
			 struct lr_err *err) LR_MUST_CHECK;

/*
 * Until one of the processes below that one waits in lean_seed_here(3). pidfd: of it. -ETIMEDOUT: none
 * did until `end` (of lr_now_ms; 0: for ever). -ECHILD: it has ended.
 */
int lr_checkpoint_await(pid_t pid, int pidfd, uint64_t end, struct lr_err *err) LR_MUST_CHECK;

/* Whether the container is still there afterwards. */
bool lr_checkpoint_lives_on(const struct lr_checkpoint_engine *e,
			    const struct lr_checkpoint_opts *o);

/* What can be refused before anything is looked at. */
int lr_checkpoint_check(const struct lr_checkpoint_opts *o, struct lr_err *err) LR_MUST_CHECK;

#endif
