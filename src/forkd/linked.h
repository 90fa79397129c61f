/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forkd: where the kernel modules of two hosts talk to each other by RDMA (docs/module.md): the one
 * has the pages of a held seed, the other has a source of them for this host's children. The daemons
 * carry a token from the one to the other, and no page.
 */
#ifndef LR_FORKD_LINKED_H
#define LR_FORKD_LINKED_H

#include "src/forkd/held.h"
#include "src/forkd/remote.h"

/* The answer to MODULE, for who has proved itself by the connection fd; port 0: it is not offered. */
void linked_offer(const struct held *h, int fd, struct lr_wire_msg *answer);

/* A source of the seed, which the module reads itself. device: /dev/lean-seed. An error says why there
 * is none: pages come in another way then. */
int linked_source(struct remote *r, int device, int *ret, struct lr_err *err);

#endif
