/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forkd: one connection by RDMA to a seed of another host, for all of its children here. It reads
 * with nobody's help over there, into memory of its own, from which the caller gets a copy. So once
 * in a while it says by the control connection that it lives: leases know of no reads.
 */
#ifndef LR_FORKD_DIRECT_H
#define LR_FORKD_DIRECT_H

#include "src/base/err.h"
#include "src/forkd/link.h"

struct direct;

/* Whether this host could at all. */
int direct_check(struct lr_err *err);
/* Takes the control connection. pages: bytes of the file of pages. -ENOTSUP: the other host does not,
 * or not now; -ESTALE as for link_ask. */
int direct_connect(struct link *control, uint64_t pages, struct direct **ret, struct lr_err *err);
/* Ranges that are of the file, LR_WIRE_CHUNK together, one behind the other. An error is the end of
 * the connection; nothing in `to` means anything then. By one thread at a time; others wait. */
int direct_read(struct direct *d, const struct lr_wire_range *v, size_t n, uint8_t *to,
		struct lr_err *err);
void direct_close(struct direct *d); /* NULL-safe; nobody reads */

#endif
