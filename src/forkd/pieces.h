/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forkd: which addresses of a process still have the seed's contents, and which of the seed's
 * addresses those are. It begins as all memory that is to be filled, each address its own; what the
 * program unmaps or discards goes, what it moves is somewhere else then. Pure.
 */
#ifndef LR_FORKD_PIECES_H
#define LR_FORKD_PIECES_H

#include <stddef.h>
#include <stdint.h>

#define PIECES_MAX 65536     /* as many mappings as a process may have */
#define PIECES_ALL (1 << 20) /* of all processes of a container */

/* [start, end) contains what the seed has at source, and on. */
struct piece {
	uint64_t start, end, source;
};

/* Sorted, without overlaps. */
struct pieces {
	struct piece *v;
	size_t n;
};

/* Each returns 0, -ENOMEM, or -E2BIG; what fails changes nothing. */
int pieces_begin(struct pieces *p, size_t most); /* empty, with room for so many */
int pieces_copy(struct pieces *to, const struct pieces *from);
int pieces_cut(struct pieces *p, uint64_t start, uint64_t end);
int pieces_move(struct pieces *p, uint64_t from, uint64_t to, uint64_t length);
/* Behind all others, and its own. */
void pieces_add(struct pieces *p, uint64_t start, uint64_t end);
void pieces_free(struct pieces *p);

/* The one that contains the address, or the next one; NULL: none. */
const struct piece *pieces_find(const struct pieces *p, uint64_t at);

#endif
