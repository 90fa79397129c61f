/* SPDX-License-Identifier: Apache-2.0 */
/* seed: what the members of entries have to mean together, once every reference is known to lead
 * somewhere. Part of lr_seed_open. */
#ifndef LR_SEED_CHECK_H
#define LR_SEED_CHECK_H

#include "src/seed/seed.h"

#define SEED_BAD(what, i, why)                                                                     \
	lr_refuse(err, EPROTO, "%s[%llu] of the seed %s", (what), (unsigned long long)(i), (why))

/* at: where in the file of pages the next run begins at the earliest. */
int seed_check_run(const struct lr_seed *s, uint64_t i, uint64_t lowest, uint64_t *at,
		   struct lr_err *err);
/* All of a file that is `size` bytes long. */
int seed_check_runs(const struct lr_seed *s, const struct lr_seed_range *runs, uint64_t size,
		    uint64_t *at, struct lr_err *err);

/* tmpfs.c */
int seed_check_tmpfs(const struct lr_seed *s, uint64_t *at, struct lr_err *err);

/* socket.c */
int seed_check_endpoints(const struct lr_seed *s, struct lr_err *err);

int lr_seed_check(const struct lr_seed *s, struct lr_err *err);

#endif
