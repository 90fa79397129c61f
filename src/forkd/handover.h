/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forkd: held seeds outlive the daemon. Each has a row in memory that the daemon shares with its
 * keeper, as they share descriptors. So when the daemon ends, the keeper knows what there is. It
 * waits for the next daemon at a socket beside the one for commands (SOCKET.keeper), closes what
 * ends meanwhile, and hands the rest over: to root and its own user alone, and for as long as the
 * socket's name is there and --keep says.
 *
 * At any moment one of two keepers has the name. The next daemon takes the rows first, has a keeper
 * of its own then, gives that one the name by rename(2), and says only then that it has them. A
 * keeper without the name hands nothing over, and lets go of what is held when its daemon ends.
 */
#ifndef LR_FORKD_HANDOVER_H
#define LR_FORKD_HANDOVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/err.h"
#include "src/wire/wire.h"

/* Of what two daemons say to each other here. Another one is not believed, nor guessed at. */
#define HANDOVER_VERSION 1
#define HANDOVER_FILES   2 /* the descriptor, sealed and in memory; the file of pages */

/* ---- rows: written by the daemon, under the lock of who has the seeds ---------------------- */

struct handover_row {
	atomic_bool used; /* written last, taken away first */
	atomic_bool whole;
	atomic_uint ended; /* enum lr_wire_code; written before anybody is told */
	/* Open while they are here: they are taken away first, and closed then. */
	atomic_int files[HANDOVER_FILES];
	atomic_llong until; /* of lr_now_ms */
	atomic_ullong lease, sent;
	uint8_t id[LR_WIRE_ID], secret[LR_WIRE_SECRET];
};

/* Once; before there is a keeper. keep: ms that it waits for the next daemon. */
int handover_begin(const char *control, uint64_t keep, struct lr_err *err);
/* NULL: there are none. */
struct handover_row *handover_row(size_t i);
/* What is held is for no other daemon. */
void handover_forget(void);

/*
 * One daemon begins at a time. What one finds left behind and removes, another may have just made.
 * The descriptor of SOCKET.lock, which is there for so long; -EWOULDBLOCK: another one takes too
 * long.
 */
int handover_turn(const char *control, struct lr_err *err) LR_MUST_CHECK;
void handover_turn_over(const char *control, int turn);

/* ---- the socket: bound before there is a keeper, under another name ------------------------- */

int handover_listen(struct lr_err *err);
int handover_enter(struct lr_err *err); /* it gets the name */
void handover_leave(void);              /* before that: it is gone */
int handover_fd(void);

/* ---- the keeper's: system calls only -------------------------------------------------------- */

/* Whether the descriptor is of what is handed over. */
bool handover_needs(int fd);
/* Since then nobody is the daemon. Whether there is something to wait for; what has ended is
 * closed. */
bool handover_waits(int64_t since);
/* Waits for the next daemon, and has let go of everything if it took that. */
void handover_give(int ms);
void handover_drop(void); /* lets go of everything */

/* ---- what is said: pure --------------------------------------------------------------------- */

struct handover_head {
	char magic[8];
	uint32_t version, size, rows, zero; /* size: of each row that follows */
};

struct handover_seed {
	uint8_t id[LR_WIRE_ID], secret[LR_WIRE_SECRET];
	uint32_t ended, zero;
	uint64_t lease, sent;
	int64_t until; /* of lr_now_ms */
};
_Static_assert(sizeof(struct handover_head) == 24, "as version 1 has it");
_Static_assert(sizeof(struct handover_seed) == 80, "as version 1 has it");

#define HANDOVER_DONE "LEANDONE" /* the next daemon's answer to all of it */

/* -EPROTO: these bytes are none; -ENOTSUP: of another version, which may have any number of rows. */
int handover_get_head(const void *bytes, size_t n, struct handover_head *ret);
/* -EPROTO. A lease that is over by now has ended, whatever is said. */
int handover_get_seed(const void *bytes, size_t n, size_t files, int64_t now,
		      struct handover_seed *ret);

#endif
