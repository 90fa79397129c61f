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

bool lr_seeded_fetches(const struct oci_config *c, const char *how)
{
	const char *fetch = oci_map_get(&c->annotations, LR_SEEDED_FETCH);

	return fetch && lr_streq(fetch, how);
}

static int32_t number(int fd)
{
	return fd < 0 ? 0 : fd;
}

void lr_seeded_record(const struct lr_init_seed *s, const struct oci_config *c, struct lr_record *r)
{
	r->seed_report = number(s->report[0]);
	r->seed_descriptor = number(s->descriptor);
	r->seed_lazy = number(s->lazy);
	r->seed_prefetch = lr_seeded_fetches(c, "prefetch");
}
