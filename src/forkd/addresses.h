/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forkd: addresses of ours by which peers came, where we listen by RDMA, too. There are few places for
 * them, and a peer chooses the address by which it comes: the one that nobody has asked for longest
 * gives way. Pure; the caller has a lock, and what listens at each place.
 */
#ifndef LR_FORKD_ADDRESSES_H
#define LR_FORKD_ADDRESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDRESSES 16

struct addresses {
	struct {
		struct sockaddr_storage at;
		uint64_t used; /* of `uses` */
	} v[ADDRESSES];
	size_t n;
	uint64_t uses;
};

/* Whether it is there, and is used. *place: where it is, or where it may be put. */
bool addresses_find(struct addresses *a, const struct sockaddr_storage *sa, size_t *place);
/* At that place, instead of what was there. */
void addresses_put(struct addresses *a, size_t place, const struct sockaddr_storage *sa);

/* Leaves nothing but address and port, so that bytes can be compared; one of IPv4 that came by a socket
 * of IPv6 becomes what it is. */
void address_clean(struct sockaddr_storage *sa);
uint16_t address_port(const struct sockaddr_storage *sa);
void address_set_port(struct sockaddr_storage *sa, uint16_t port);

#endif
