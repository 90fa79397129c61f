/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: the memory of this host's children. One thread serves those that came by one connection. */
#ifndef LR_FORKD_CHILDREN_H
#define LR_FORKD_CHILDREN_H

#include <stdint.h>

#include "src/forkd/remote.h"

/*
 * sock: of SOCK_SEQPACKET, with SO_PASSCRED. Processes send their userfaultfd by it, with the index
 * of theirs in the seed (four bytes); READY asks whether all are kept. Returns when the socket's
 * other end is closed and no process is left. Takes the reference, sock and cgroup (or LR_NOFD).
 * m: the SERVE. most: pages that come before anybody touches them. brought: what came by the
 * connection before.
 */
void children_serve(int sock, struct remote *r, int cgroup, const struct lr_wire_msg *m,
		    uint64_t most, const struct figures *brought);

#endif
