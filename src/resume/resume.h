/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resume: a process becomes what a seed holds, with threads and descendants.
 *
 * A caller opens everything that has to be opened while it has rights and a library
 * (lr_resume_open), clones a process in the right pid namespace, and that one becomes the seed's
 * first (lr_resume_become). It makes its descendants. Each lays out its memory, its threads, and
 * then tells by the socket that all is in place; when the caller says go (lr_resume_wait), they
 * run. What confines a process comes last: `confine` before that, `filter` after it.
 *
 * Nothing of the resuming program stays but a range of memory, which lr_resume_clean takes away.
 */
#ifndef LR_RESUME_RESUME_H
#define LR_RESUME_RESUME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/arena.h"
#include "src/base/err.h"
#include "src/seed/seed.h"

/* Where the restorer is put: between programs that are loaded low and what the kernel maps from the
 * top. */
#define LR_RESUME_LOWEST  UINT64_C(0x100000000000)
#define LR_RESUME_HIGHEST UINT64_C(0x500000000000)

struct lr_resume;
struct lr_resume_ops; /* the system calls of one thread, in the making */

struct lr_resume_lazy {
	uint32_t index; /* of the process */
};

struct lr_resume_opts {
	const struct lr_seed *seed;
	int pages;  /* the file of pages; checked to be the seed's */
	int report; /* the processes' end of a SOCK_SEQPACKET pair */
	/*
	 * LR_NOFD: pages are read into place. Otherwise a SOCK_SEQPACKET on which each process
	 * sends its userfaultfd, with struct lr_resume_lazy: private anonymous memory is to be
	 * filled through it, pages without a run with zeros. Whoever gets it also gets the
	 * events FORK, REMAP, REMOVE and UNMAP. If the last copy of that descriptor is closed
	 * while the process lives, what has not come yet turns into zeros: so somebody has to
	 * hold one who ends the process first.
	 *
	 * What is no socket is a source of the kernel module (docs/module.md): such memory is
	 * mapped from it (src/seed/span.h), and no process has the descriptor when it runs.
	 */
	int lazy;
	int stdio[3]; /* for 0, 1 and 2; LR_NOFD: /dev/null */
	/* The slave of the pseudo-terminal that the seed's becomes, and nobody's controlling terminal
	 * yet; LR_NOFD: there is none. relayed: lines end in it with a newline alone. The size that it
	 * has is given to it again when all is in place, so that programs learn of it. */
	int terminal;
	bool relayed;
	/*
	 * Adds calls (lr_resume_add) that each thread makes when it has everything, before anybody
	 * runs: ids, capabilities. May be NULL: the thread keeps the caller's. With it, no process
	 * can be looked at by others of the seed (PR_SET_DUMPABLE) until lr_resume_clean.
	 */
	int (*confine)(void *arg, const struct lr_seed_thread *t, struct lr_resume_ops *ops,
		       struct lr_err *err);
	/* The same for its very last calls, when all descriptors of ours are closed: a filter, and
	 * what was needed to load it. May be NULL. */
	int (*filter)(void *arg, const struct lr_seed_thread *t, struct lr_resume_ops *ops,
		      struct lr_err *err);
	/*
	 * With what rights paths are opened and descriptors are made: `lower` before, `raise` after.
	 * A file remembers who opened it, and whoever reads it later sees what that one may.
	 * May be NULL: with the caller's.
	 */
	int (*lower)(void *arg, struct lr_err *err);
	int (*raise)(void *arg, struct lr_err *err);
	/* config.json's working directory: processes may be in it that could not go there. NULL: none. */
	const char *cwd;
	/* Whether a tmpfs of the container's own, which may be changed, was mounted at that path, and
	 * which (st_dev). NULL: none was. */
	bool (*has_tmpfs)(void *arg, const char *path, uint64_t *device);
	/* "/" is this process's alone, and may be changed as its seed says, with the rights of `lower`.
	 */
	bool own_root;
	void *arg;
	size_t confine_room; /* bytes of calls and data that both add for a thread, at the most */
	int proc;            /* a procfs that can be trusted; LR_NOFD: /proc */
};

/* What `confine` needs for so many calls and bytes. */
#define LR_RESUME_ROOM(calls, bytes) ((calls)*UINT64_C(112) + (bytes) + 16)

/* Pure: each run that is read into place in any case: what is written of mapped files, shared memory,
 * and what is in tmpfs. by_module: and memory that the kernel module can't stand for. */
int lr_resume_in_place(const struct lr_seed *seed, bool by_module,
		       int (*each)(void *arg, const struct lr_seed_run *run, struct lr_err *err),
		       void *arg, struct lr_err *err);

/*
 * Checks that this machine can run it, and opens its files. Memory is the arena's; descriptors
 * stay open until the process ends. -ENOTSUP names what doesn't fit.
 */
int lr_resume_open(const struct lr_resume_opts *o, struct lr_arena *a, struct lr_resume **ret,
		   struct lr_err *err);

/* In a process with the id of the seed's first one, and one thread. Returns on failure only. */
int lr_resume_become(struct lr_resume *r, struct lr_err *err);

/* Exit status of a process that could not become what it was. */
#define LR_RESUME_FAILED 125

/* What is left of the restorer in a process: a range of its memory. */
struct lr_resume_left {
	uint64_t start, size;
};

/*
 * The other end of the pair: until all are in place. Then `ready` (may be NULL), and they go.
 * root: the first process, or who bears it, as we see it; a descendant that is killed meanwhile is found below it.
 * left: of each process of the seed, by index; zombies have none. After a failure the caller ends
 * the processes (the end of their pid namespace does).
 */
int lr_resume_wait(const struct lr_seed *seed, pid_t root, int report, int (*ready)(void *arg),
		   void *arg, struct lr_resume_left *left, struct lr_err *err);

/*
 * Waits, not for long, until each process has closed its end of the pair, which is the last step but a few: who is held
 * before that, to take the restorer out of it, is held up, and has to be held again.
 */
void lr_resume_let_leave(int report);

/*
 * Takes it out of a process that runs; pid as the caller sees it. Does nothing to one that has ended,
 * or executed another program.
 */
#define LR_RESUME_DUMPABLE 1U /* others may look at the process from now on */
#define LR_RESUME_RESIZED  2U /* its terminal may have another size: it gets SIGWINCH */
int lr_resume_clean(pid_t pid, const struct lr_resume_left *left, unsigned how, struct lr_err *err);
/* The same for all of them, and for those that they have borne since. root: the seed's first, or who has borne it, as the
 * caller sees it. */
int lr_resume_clean_all(const struct lr_seed *seed, pid_t root, const struct lr_resume_left *left,
			struct lr_err *err);

/* For `confine`: a call with numbers; bytes it needs in memory, where they will be. */
int lr_resume_add(struct lr_resume_ops *ops, long nr, uint64_t a0, uint64_t a1, uint64_t a2,
		  uint64_t a3, uint64_t a4, uint64_t a5);
uint64_t lr_resume_data(struct lr_resume_ops *ops, const void *bytes, size_t n);

#endif
