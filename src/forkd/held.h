/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forkd: the seeds that this host holds, their secrets and leases. A lease runs from the last use.
 * One that ended is remembered for a while by its secret alone, so that who asks is told why, and
 * can believe it.
 */
#ifndef LR_FORKD_HELD_H
#define LR_FORKD_HELD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "src/base/err.h"
#include "src/forkd/handover.h"
#include "src/wire/wire.h"

#define HELD_MAX 1024 /* with those that ended */

struct held {
	uint8_t id[LR_WIRE_ID], secret[LR_WIRE_SECRET];
	atomic_uint ended; /* enum lr_wire_code */
	atomic_ullong sent;
	atomic_ullong missing;  /* bytes of the file of pages that are still to come */
	unsigned users;         /* who has a pointer; under the table's lock */
	unsigned readers;       /* who may read: the files stay for them */
	bool replaced;          /* not in the table any more */
	uint64_t lease;         /* ms */
	int64_t until;          /* of lr_now_ms */
	uint64_t length, pages; /* bytes */
	uint8_t *descriptor;
	int fd;                    /* the file of pages */
	int file;                  /* the descriptor's, sealed and in memory: for the next daemon */
	struct handover_row *row;  /* what the keeper knows of it; or NULL */
	struct exported *exported; /* what of it the kernel module has; NULL: nothing */
	uint8_t *there;            /* a bit for each page that has come; NULL: all are in place */
	struct lr_wire_range wanted[LR_WIRE_RANGES]; /* of what has not */
	size_t n_wanted;
};

/* Takes no descriptor. -EEXIST: it is here already. Files are checked. */
int held_add(int descriptor, int pages, uint64_t lease, struct held **ret, struct lr_err *err);
/* The same; but only the first page is there, until held_fill says more. */
int held_add_filling(int descriptor, int pages, uint64_t lease, struct held **ret,
		     struct lr_err *err);
/* What the processes alone had is the kernel module's, and has no contents in the file. */
int held_add_exported(int descriptor, int pages, int exported, uint64_t lease, struct held **ret,
		      struct lr_err *err);
/* These bytes are in place; with all of them, in a file that nobody can change any more, the seed is
 * whole. What somebody waits for is in m->ranges then. -EINVAL: there can't be such bytes. -ESTALE: it
 * has ended, or is whole. */
int held_fill(struct held *h, uint64_t at, uint64_t length, struct lr_wire_msg *m);
/* Every page is in place, and none changes any more. */
bool held_is_whole(struct held *h);
/* What is missing does not come any more. */
void held_abandon(struct held *h);
/* Whether that is in place, after this time at most. */
bool held_wait(struct held *h, const struct lr_wire_range *r, int64_t ms);
/* The two files of a directory; nobody but root or us may be able to write there. */
int held_add_directory(const char *path, uint64_t lease, struct held **ret, struct lr_err *err);
/* What the daemon before us held. Neither descriptor is taken. It is checked as what anybody brings,
 * and has its lease. */
int held_inherit(const struct handover_seed *s, const int files[HANDOVER_FILES],
		 struct lr_err *err);
/* NULL: unknown. To be given back. */
struct held *held_get(const uint8_t id[LR_WIRE_ID]);
void held_put(struct held *h);
/* Of who has proved that it has the secret: only for these descriptor and pages are kept after the
 * end. 0, or why it ended. */
enum lr_wire_code held_read(struct held *h);
void held_unread(struct held *h);
/* Some bytes of the file of pages: how many; 0: it has become shorter; -errno. By who reads. */
ssize_t held_pread(const struct held *h, void *to, size_t n, uint64_t at);
void held_use(struct held *h); /* the lease begins again */
uint64_t held_left(const struct held *h);

/* The lease begins again, with another length if that is not 0. -ENOENT. */
int held_extend(const uint8_t id[LR_WIRE_ID], uint64_t lease);
int held_revoke(const uint8_t id[LR_WIRE_ID]);
void held_expire(void); /* now and then */
size_t held_count(void);
/* Those from `skip` on, or the one with the id. Returns how many there are in all. */
uint32_t held_list(const uint8_t *id, uint32_t skip, struct lr_wire_msg *m);

#endif
