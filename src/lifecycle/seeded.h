/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lifecycle: containers that continue a seed because their config.json says so: the way of managers,
 * which know create and start, and annotations.
 *
 * Podman takes annotations from images, too. So what an annotation may name is what lies in the
 * directory that whoever set up the runtime has named (--seed-dir), or a ticket, which is its own
 * permission; and without such a directory it is refused.
 */
#ifndef LR_LIFECYCLE_SEEDED_H
#define LR_LIFECYCLE_SEEDED_H

#include "src/checkpoint/checkpoint.h"
#include "src/init/init.h"
#include "src/init/seed.h"
#include "src/lifecycle/container.h"

#define LR_SEEDED_ANNOTATION "org.lean.seed" /* a ticket, or a name in --seed-dir */
#define LR_SEEDED_FETCH                                                                            \
	"org.lean.seed.fetch" /* ondemand (default), cache, prefetch, prefetch:N, eager */

bool lr_seeded(const struct oci_config *c);

/* When its memory comes. -EINVAL: the annotation says nothing that there is. */
int lr_seeded_how(const struct oci_config *c, struct lr_checkpoint_opts *o) LR_MUST_CHECK;

/* Whether the root belongs to this container alone, where its seed changes files of it: not the host's
 * root, and of no other container that is there. many: others will be born in it. */
int lr_seeded_check_root(const struct lr_store *store, const struct lr_record *r, bool many,
			 struct lr_err *err) LR_MUST_CHECK;

/* After the birth of a container that waits for `start`: what that needs, for the record. */
void lr_seeded_record(const struct lr_init_seed *s, const struct oci_config *c,
		      struct lr_record *r);

/* `start`: takes the seed from the process that waits; then, when that has been told, lets its
 * processes run. answer: where it says what goes wrong; taken. After a failure it is dead. */
struct lr_seeded_start {
	struct lr_init_seed seed;
	int pidfd, report;
};
#define LR_SEEDED_START_NONE                                                                       \
	(struct lr_seeded_start)                                                                   \
	{                                                                                          \
		.seed = LR_INIT_SEED_NONE, .pidfd = LR_NOFD, .report = LR_NOFD                     \
	}
int lr_seeded_take(const struct lr_existing *c, struct lr_arena *a, struct lr_seeded_start *ret,
		   struct lr_err *err) LR_MUST_CHECK;
int lr_seeded_go(const struct lr_existing *c, struct lr_seeded_start *s, int answer,
		 struct lr_err *err) LR_MUST_CHECK;
void lr_seeded_start_close(struct lr_seeded_start *s);

#endif
