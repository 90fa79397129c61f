/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forkd: what came for each child, and how: counted by the thread that serves it, and read by whoever
 * asks. Those of the children that are over stay for a while: the last FIGURES_OVER of them.
 */
#ifndef LR_FORKD_FIGURES_H
#define LR_FORKD_FIGURES_H

#include <stdatomic.h>
#include <stdint.h>

#include "src/wire/wire.h"

#define FIGURES_OVER 256
#define FIGURES_BINS 256

struct figures {
	struct figures *next;
	uint8_t id[LR_WIRE_ID];
	atomic_uint pid, state; /* enum lr_wire_state */
	atomic_ullong v[LR_WIRE_FIGURES];
	atomic_uint bins[FIGURES_BINS]; /* of times: four for each power of two */
};

/* `brought`: what came already. NULL: no memory. */
struct figures *figures_begin(const uint8_t id[LR_WIRE_ID], const struct figures *brought);
/* It may be forgotten from now on. */
void figures_end(struct figures *f, enum lr_wire_state state);
/* A fault has been answered after so many ns. */
void figures_time(struct figures *f, uint64_t ns);
void figures_tell(const struct figures *f, struct lr_wire_child *ret);
/* All of them, the latest first, but for the first `skip`. Returns how many there are. */
uint32_t figures_list(uint32_t skip, struct lr_wire_msg *m);

#endif
