/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: one process whose memory comes when it is touched. */
#ifndef LR_FORKD_CHILD_H
#define LR_FORKD_CHILD_H

#include <stdbool.h>
#include <stdint.h>

#include "src/forkd/children.h"
#include "src/forkd/pieces.h"

#define CHILDREN_MAX 1024 /* processes of one connection, with their forks */
#define ORPHANS      64

/* A process that came by the socket, and those it forked meanwhile. */
struct family {
	unsigned users;
	int pid, pidfd, slot; /* slot: the keeper's */
};

struct fault {
	uint64_t at;
	int64_t heard; /* ns; 0: not measured */
};

struct child {
	int uffd;
	const struct lr_seed_mm *mm;
	struct family *family;
	struct pieces pieces;
	uint64_t cursor;      /* up to here all of it has come */
	struct fault *faults; /* not answered yet: each thread may have one */
	size_t faults_n, faults_room;
	bool waiting; /* an event has to be read first */
};

struct session {
	int sock, cgroup;
	struct remote *remote;
	struct figures *figures;
	uint32_t around, flags;
	uint64_t most; /* pages that come before anybody touches them */
	/* of what a child before has touched: how much, and what comes next */
	size_t touches, touch;
	uint8_t *spare;
	struct child v[CHILDREN_MAX];
	size_t n;
	int orphans[ORPHANS]; /* of processes that end */
	size_t n_orphans;
	uint32_t taken;
	bool failed, ending, started, again;
};

/* Ends all of them, and says why. */
void children_end(struct session *s, const char *why);

/* 0; -EAGAIN: an event has to be read first. Any other error has ended the children. */
int child_fill(struct session *s, struct child *c, uint64_t at);
#define CHILD_COMPLETE 1 /* nothing of the seed is missing any more */
int child_prefetch(struct session *s, struct child *c);
/* What a child before has touched, if it is still the seed's there. */
int child_prefetch_touch(struct session *s, struct child *c, const struct remote_touch *t);

/* Pure: the memory of the mm that is to be filled. What is read into place by the restorer is not
 * under a userfaultfd: nobody tells when the program gives that up, and something else is there.
 * 0; -ENOMEM. */
int child_pieces(const struct lr_seed *s, const struct lr_seed_mm *mm, struct pieces *ret);
/* Pure: the run of the mm that contains the address, or the next one; NULL: none. */
const struct lr_seed_run *child_run(const struct lr_seed *s, const struct lr_seed_mm *mm,
				    uint64_t source);
/* Pure: which pages to fill for a fault: [*start, *end) contains it, and comes from *from of the
 * file of pages. False: zeros. */
struct child_window {
	uint64_t start, end, from;
};
bool child_window(const struct lr_seed *s, const struct lr_seed_mm *mm, const struct pieces *p,
		  uint64_t at, uint32_t around, struct child_window *ret);
/* Pure: the first at or after `at` that the seed has. False: none. */
bool child_next(const struct lr_seed *s, const struct lr_seed_mm *mm, const struct pieces *p,
		uint64_t at, uint32_t most, struct child_window *ret);

#endif
