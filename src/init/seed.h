/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init: the birth that ends by continuing a seed, in place of process.args.
 *
 * All that makes a container comes before it, by the same stages. Its files are opened in there
 * with the runtime's rights, and memory and threads are put in place; then every thread gives up
 * what is not its own, by the restorer's last calls (src/resume): ids, groups, capabilities,
 * no-new-privileges, filter.
 *
 * Each thread becomes what it was when the seed was made. That is refused before anything is made,
 * if it is more than the process of config.json could have come to.
 */
#ifndef LR_INIT_SEED_H
#define LR_INIT_SEED_H

#include "src/base/arena.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/seed/seed.h"

struct lr_init_child;
struct lr_init_plan;
struct lr_init_process;

/* What it cost to continue a seed, for whoever asks. ns of lr_now_ns. */
struct lr_init_seed_stats {
	const char *memory; /* comes from: "files", "userfaultfd", "module" */
	int64_t begun, described, brought, made, runs;
	uint64_t pages;                                   /* that the seed has */
	uint64_t files, cached, tcp, rdma;                /* those that came before it runs */
	void (*tell)(const struct lr_init_seed_stats *s); /* as soon as it runs */
	const char *id, *fetch;                           /* the container's; --fetch, for `tell` */
};

struct lr_init_seed {
	struct lr_seed seed;
	int pages; /* the file of pages */
	/* Its descriptor, as a file: `start`, which is another process than `create`, opens the seed by
	 * it. LR_NOFD: it is not needed. */
	int descriptor;
	int report[2]; /* where the restorer tells: our end, and the child's */
	/*
	 * Of memory that comes when it is touched: the socket of whoever has it, or a source of the
	 * kernel module (lr_resume_opts.lazy); LR_NOFD: all is read into place. `attend`: before a process sends
	 * anything there; cgroup: where they all are, or LR_NOFD. `ready`: when all are in place,
	 * and before one of them runs. Either may be NULL; what returns below 0 ends the birth.
	 */
	int lazy;
	int (*attend)(void *arg, int cgroup, struct lr_err *err);
	int (*ready)(void *arg, struct lr_err *err);
	void *arg;
	struct lr_init_seed_stats *stats; /* NULL: nobody asks */
};

#define LR_INIT_SEED_NONE                                                                          \
	(struct lr_init_seed)                                                                      \
	{                                                                                          \
		.pages = LR_NOFD, .descriptor = LR_NOFD, .report = {LR_NOFD, LR_NOFD},             \
		.lazy = LR_NOFD                                                                    \
	}

/* What `open` of an engine has opened; the report is its child's. */
void lr_init_seed_close(struct lr_init_seed *s);

/* Pure: whether a container of this plan can continue the seed. -ENOTSUP, -EPERM. */
int lr_init_seed_check(const struct lr_init_plan *p, const struct lr_seed *seed,
		       struct lr_err *err) LR_MUST_CHECK;
/* What capabilities a process of the plan could come to have. Pure. */
uint64_t lr_init_seed_reach(const struct lr_init_process *p);
/* Its part about rights: whether each thread has what the process of the plan could have. Pure. */
int lr_init_seed_check_creds(const struct lr_init_process *p, const struct lr_seed *seed,
			     struct lr_err *err) LR_MUST_CHECK;

/*
 * The last part of lr_init_start, and for `start` all of it: the child has been told, and its
 * processes run when this returns. c->pid, c->seed; c->report and c->sync: where the restorer, and
 * the child before that, tell what goes wrong. The latter is closed when they run.
 */
int lr_init_continue(struct lr_init_child *c, struct lr_err *err) LR_MUST_CHECK;

#endif
