/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forkd: seeds that other hosts hold, for all children of this one: the descriptor, a pool of
 * connections, and pages that came already, up to a limit.
 */
#ifndef LR_FORKD_REMOTE_H
#define LR_FORKD_REMOTE_H

#include "src/base/err.h"
#include "src/forkd/figures.h"
#include "src/seed/seed.h"
#include "src/wire/ticket.h"

struct remote {
	struct lr_seed seed;
	uint8_t id[LR_WIRE_ID];
	uint8_t *descriptor;
	uint64_t length, pages;
};

/* Connects, and fetches the descriptor, if it is not known yet. To be given back. */
int remote_fetch(const struct lr_ticket *t, struct remote **ret, struct lr_err *err);
void remote_put(struct remote *r);
void remote_get(struct remote *r); /* one more who gives it back */

/*
 * Pages of its file, LR_WIRE_CHUNK at most. *ret: where they are, in `spare` (of that size) or in
 * what is kept. f: where it is counted; or NULL. One try: -ESTALE: they are not to be had any more; else it may be tried again.
 */
int remote_read(struct remote *r, uint64_t at, uint32_t pages, uint8_t *spare, const uint8_t **ret,
		struct figures *f, struct lr_err *err);
/* The same for some ranges, one behind the other in `to`. -EINVAL: they are not of the file. */
int remote_bring(struct remote *r, const struct lr_wire_range *v, size_t n, uint8_t *to,
		 struct figures *f, struct lr_err *err);
void remote_clean(void); /* now and then: what nobody uses */

#endif
