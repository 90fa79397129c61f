/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forkd: what one peer may take of us: connections, attempts to connect, bytes. Pure but for a
 * table in memory, which is bounded; the caller has the time and a lock.
 */
#ifndef LR_FORKD_LIMITS_H
#define LR_FORKD_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#define LIMITS_PEERS    1024
#define LIMITS_ATTEMPTS 100 /* a second, and at once */

struct limits_peer {
	uint8_t address[16]; /* IPv4 as ::ffff:a.b.c.d */
	unsigned connections;
	int64_t seen; /* ms; 0: nobody */
	double attempts, bytes;
};

struct limits {
	unsigned most, per_peer, now;
	uint64_t rate; /* bytes a second; 0: any */
	struct limits_peer peers[LIMITS_PEERS];
};

/* A connection: 0; -EBUSY: the peer has too many, or tries too often; -ENOSPC: there are too many in
 * all. */
int limits_enter(struct limits *l, const uint8_t address[16], int64_t now);
/* After -ENOSPC, when another one has given its place. */
void limits_take(struct limits *l, const uint8_t address[16], int64_t now);
/* Which one that is: of those who have not proved themselves, in the order in which they came, the
 * first of the network that has most of them. So who floods us takes its own places away. n > 0. */
size_t limits_victim(const uint8_t (*v)[16], size_t n);
void limits_leave(struct limits *l, const uint8_t address[16], int64_t now);
/* Before bytes are sent: how many ms to wait first. */
int64_t limits_wait(struct limits *l, const uint8_t address[16], uint64_t bytes, int64_t now);

#endif
