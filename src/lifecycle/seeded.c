/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle: what is known of a container that continues a seed; see seeded.h. */
#define LR_ROOM "seed"
#include "src/lifecycle/seeded.h"

#include "libocispec/ocispec.h"
#include "src/base/str.h"

bool lr_seeded(const struct oci_config *c)
{
	return oci_map_get(&c->annotations, LR_SEEDED_ANNOTATION);
}

int lr_seeded_how(const struct oci_config *c, struct lr_checkpoint_opts *o)
{
	const char *fetch = oci_map_get(&c->annotations, LR_SEEDED_FETCH);

	return fetch ? lr_checkpoint_how(fetch, o) : 0;
}

static int32_t number(int fd)
{
	return fd < 0 ? 0 : fd;
}

void lr_seeded_record(const struct lr_init_seed *s, const struct oci_config *c, struct lr_record *r)
{
	struct lr_checkpoint_opts how = {0};

	r->seed_report = number(s->report[0]);
	r->seed_descriptor = number(s->descriptor);
	r->seed_lazy = number(s->lazy);
	if (lr_seeded_how(c, &how) < 0) /* which was refused */
		return;
	r->seed_prefetch = how.prefetch;
	r->seed_prefetch_mib = how.prefetch_mib;
}
