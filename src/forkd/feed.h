/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forkd: memory of children by the kernel module lean_seed (docs/module.md): the module asks which
 * pages of a seed are wanted, we bring them from the seed's host. All children of a seed share what
 * came. If we die, or the seed does, a child that touches what is not there gets SIGBUS: so nobody
 * has to be kept, or ended, as with userfaultfd.
 */
#ifndef LR_FORKD_FEED_H
#define LR_FORKD_FEED_H

#include "kernel/include/uapi/lean_seed.h"

#include "src/forkd/remote.h"
#include "src/seed/span.h"

#define FEED_DEVICE "/dev/lean-seed"

/* A descriptor that children of the seed map, numbered as src/seed/span.h says. Without the module,
 * or where it may not be used, an error that says why. */
int feed_source(struct remote *r, int *ret, struct lr_err *err);

/*
 * Pure: what has to be asked of the seed's host for a want: at most as many ranges as it has pages.
 * Those of zeros are not asked for. -EPROTO: a page that the seed does not have.
 */
int feed_plan(const struct lr_seed *s, const struct lr_seed_spans *p,
	      const struct lean_seed_want *w, struct lr_wire_range *v, size_t *n);
/* Pure: puts what came, one range behind the other, where the want has it, and zeros between. */
void feed_spread(const struct lr_seed *s, const struct lr_seed_spans *p,
		 const struct lean_seed_want *w, const uint8_t *came, uint8_t *to);

#endif
