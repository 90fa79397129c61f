/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forkd: where a peer reads a held seed by RDMA. Each seed has a protection domain of its own (for
 * each adapter), with one region, its file of pages, that can be read and nothing else. A peer's
 * queue pair belongs to that domain: whatever keys it guesses, it reads this seed. It exists as long
 * as the control connection that asked for it.
 */
#ifndef LR_FORKD_OUTLET_H
#define LR_FORKD_OUTLET_H

#include "src/forkd/held.h"

struct outlet;

/* The answer to RDMA, for who has proved itself by the connection fd; with port 0 there is no
 * outlet. One that the connection had before is closed. */
void outlet_open(struct held *h, int fd, struct outlet **o, struct lr_wire_msg *answer);
/* The answer to ENTERED. It may take a while: the pages are pinned. */
void outlet_enter(struct outlet *o, struct lr_wire_msg *answer);
void outlet_close(struct outlet *o); /* NULL-safe */

/* Nobody reads the seed by RDMA when this returns. */
void outlets_end(const struct held *h);
void outlets_clean(void); /* now and then: what nobody uses */

#endif
