/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forkd: seeds that other hosts hold, for all children of this one: the descriptor, a pool of
 * connections, and pages that came already, up to a limit.
 */
#ifndef LR_FORKD_REMOTE_H
#define LR_FORKD_REMOTE_H

#include <stdatomic.h>
#include <sys/socket.h>

#include "src/base/err.h"
#include "src/forkd/figures.h"
#include "src/seed/seed.h"
#include "src/wire/ticket.h"

struct remote {
	struct lr_seed seed;
	uint8_t id[LR_WIRE_ID];
	uint8_t *descriptor;
	uint64_t length, pages;
	atomic_llong unlinked; /* of lr_now_ms: until then no module is asked to read it by RDMA */
};

/* Connects, and fetches the descriptor, if it is not known yet. To be given back. */
int remote_fetch(const struct lr_ticket *t, struct remote **ret, struct lr_err *err);
void remote_put(struct remote *r);
void remote_get(struct remote *r); /* one more who gives it back */

/*
 * Pages of its file, LR_WIRE_CHUNK at most. *ret: where they are, in `spare` (of that size) or in
 * what is kept. f: where it is counted; or NULL. One try: -ESTALE: they are not to be had any more;
 * else it may be tried again.
 */
int remote_read(struct remote *r, uint64_t at, uint32_t pages, uint8_t *spare, const uint8_t **ret,
		struct figures *f, struct lr_err *err);
/* The same for some ranges, one behind the other in `to`. -EINVAL: they are not of the file. */
int remote_bring(struct remote *r, const struct lr_wire_range *v, size_t n, uint8_t *to,
		 struct figures *f, struct lr_err *err);

/*
 * What a child has touched, in its order: for the next ones of the same seed here, which begin with
 * that if they bring what nobody has touched yet. The first child that touches something is
 * remembered, up to a limit, as long as the seed is.
 */
#define REMOTE_TOUCHES 4096
struct remote_touch {
	uint64_t at; /* an address; a hint, as the next one may have something else there */
	const struct lr_seed_mm *mm;
	uint32_t pages;
};
void remote_touched(struct remote *r, const void *who, const struct remote_touch *t);
size_t remote_touches(struct remote *r);
void remote_touch(struct remote *r, size_t i, struct remote_touch *ret); /* below that */

/* A question that is answered by one message without a text, and the address of who answered. */
int remote_ask(struct remote *r, enum lr_wire_type type, enum lr_wire_type want,
	       struct lr_wire_msg *got, struct sockaddr_storage *where, struct lr_err *err);
int remote_use(struct remote *r, struct lr_err *err); /* the lease begins again */
void remote_clean(void);                              /* now and then: what nobody uses */

#endif
