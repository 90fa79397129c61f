/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture: a running process and its descendants become a seed, and run on.
 *
 *	look      from outside, while they run: what can't be carried is refused, all of it named
 *	hold      every thread of every process stops
 *	take      registers and what only a stopped process tells; shared memory, what lies in pipes;
 *		  and each process forks a twin that never runs: its memory as it is now
 *	let go    they run on, whatever happens from here
 *	copy      from the twins, their memory to the file of pages; then the twins end
 *
 * What lies where in the file of pages is known before it is copied, but for pages of zeros, which
 * are left out. Where they may stay (`filled`, `take`), as holes, the descriptor is written before the
 * copy.
 *
 * Whoever runs this may be killed at any point; trace.h says why that does no harm. A twin is a
 * child of its process, with no signal at its end, and is waited for by it (a few calls are made in
 * the process once more).
 */
#ifndef LR_CAPTURE_CAPTURE_H
#define LR_CAPTURE_CAPTURE_H

#include <linux/bpf_common.h>
#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/err.h"

struct lr_capture_filter {
	struct sock_filter code[BPF_MAXINSNS];
	size_t n;
};

/* Of the file of pages. */
struct lr_capture_pages {
	uint64_t at, pages; /* at: in bytes */
};

/* Bytes of files that are open and have no name any more: more is refused, as all of it is copied while
 * the processes are held, and is memory in a child. */
#define LR_CAPTURE_DELETED (UINT64_C(64) << 20)

#define LR_CAPTURE_WANTED  64
struct lr_capture_wanted {
	struct lr_capture_pages v[LR_CAPTURE_WANTED];
	size_t n;
};

/* Where its root is an overlay mount: what it has changed there. */
struct lr_capture_layer {
	int upper;             /* a descriptor of the upper directory */
	bool user_attributes;  /* it is kept in user.overlay.*, in place of trusted.* */
	bool carried;          /* it goes along; otherwise what processes use of it is named */
	uint64_t bytes, files; /* more is refused */
};

/* tell(capture, what): there is `what`, which can't be carried. */
struct lr_capture_refuse {
	void (*tell)(void *capture, const char *what);
	void *capture;
};

/* What it takes of the memory that the processes themselves may have, in bytes. */
struct lr_capture_cost {
	uint64_t
		copies; /* at once: the kernel's notes of them and of their memory, for the twins */
	uint64_t written;  /* at most, until all is copied: what they write to is there twice */
	int oom_score_adj; /* the highest of theirs */
};

struct lr_capture {
	pid_t pid;      /* the root of the tree, as we see it */
	int descriptor; /* files that are empty, opened for reading and writing */
	int pages;
	/* Called when everything is held and taken; may be NULL. What it returns below 0 ends the
	 * capture. */
	int (*held)(void *arg, pid_t pid, struct lr_err *err);
	void *arg;
	bool refusals_only; /* look, and nothing else */
	/* Refuses what can't be carried and only the caller can see. Called while the processes run, and once
	 * more when all are held: it should be fast then. NULL: there is nothing. */
	int (*look)(void *arg, bool held, const struct lr_capture_refuse *refuse,
		    struct lr_err *err);
	/* The same of namespaces, with `look_arg`: of the first process while it runs, and later of its twin, which is
	 * where the process was when all were held. */
	void (*look_at_spaces)(void *arg, pid_t pid, const struct lr_capture_refuse *refuse);
	void *look_arg;
	/* Whether there is that much, with `look_arg`; called when all are held, and no twin is made yet: it should be
	 * fast. NULL: nobody knows. */
	int (*afford)(void *arg, const struct lr_capture_cost *cost, struct lr_err *err);
	/* Each thread has one filter of seccomp(2), and whoever resumes it loads that again. */
	bool known_filter;
	/* Whether a filter lets these calls through, whatever their arguments; NULL: nobody knows. */
	bool (*allows)(const struct lr_capture_filter *f, const int *calls, size_t n);
	/* Called when both files are written; may be NULL. What it returns below 0 makes it fail. */
	int (*written)(void *arg, struct lr_err *err);
	void *written_arg;
	/* Not NULL: private memory is copied after `written`, and this is told, with written_arg, what
	 * is in place. It adds to `wanted` what shall come next; whatever it says, what has to be
	 * there before a child is comes first. */
	int (*filled)(void *arg, const struct lr_capture_pages *now, bool last,
		      struct lr_capture_wanted *wanted, struct lr_err *err);
	/* Not NULL: private memory is not read, if this takes it. Called when the descriptor is written,
	 * with `written_arg` and the twins, one for each memory of the descriptor. 1: it has all that the
	 * file of pages has no contents for; 0: it has nothing, and all is copied. */
	int (*take)(void *arg, const pid_t *twins, size_t n, struct lr_err *err);
	/* All are held until then, and killed: the root, and with it its pid namespace. */
	bool end;
	/* Where its own tmpfs are that are carried, as clean paths in its root; NULL at the end. May be
	 * NULL. More bytes or files than that in all of them is refused. */
	const char *const *tmpfs;
	uint64_t tmpfs_bytes, tmpfs_files;
	const struct lr_capture_layer *layer; /* NULL: it is not known */
	/* If none of them waits in lean_seed_here(3) when all are held: -ENOMSG. */
	bool awaited;
	bool namespace_too; /* a process of its pid namespace that is no descendant is refused */
	bool without_exec;  /* or left out; it stands still meanwhile */
	bool own_user;      /* it is in a user namespace of its own */
	bool terminal;      /* it has one of its own, which is bound on /dev/console */
	bool relayed;       /* and whoever made that has it end lines with a newline alone */
	bool own_ipc;       /* and so are queues of its ipc namespace */
	bool own_policy;    /* its config.json says from which nodes its memory comes */
	bool close_tcp; /* connections of TCP are closed in children; otherwise they are refused */
	/* What the container began with; NULL: it does not matter. Other names are refused. */
	const char *hostname, *domainname;
};

struct lr_capture_stats {
	uint64_t pause_ns; /* from the first stop to the last one let go */
	uint64_t pages, zero_pages;
};

/*
 * -ENOTSUP: something can't be carried; `refusals` (freed by the caller, may be NULL as a pointer
 * or as a result) has a line for each.
 */
int lr_capture(const struct lr_capture *c, struct lr_capture_stats *stats, char **refusals,
	       struct lr_err *err);

/* Whether one of them waits in lean_seed_here(3) at this moment: 1 or 0. Nobody is stopped. */
int lr_capture_is_awaited(pid_t pid, struct lr_err *err);

#endif
