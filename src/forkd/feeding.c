/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: which pages of a seed the kernel module means. Pure. */
#include <errno.h>
#include <string.h>

#include "src/forkd/feed.h"

_Static_assert(LEAN_SEED_WANT_MAX <= LR_WIRE_RANGES, "a want is one question");
_Static_assert(LEAN_SEED_WANT_MAX *LR_WIRE_PAGE <= LR_WIRE_CHUNK, "and one answer");

int feed_plan(const struct lr_seed *s, const struct lr_seed_spans *p,
	      const struct lean_seed_want *w, struct lr_wire_range *v, size_t *n)
{
	*n = 0;
	if (!w->count || w->count > LEAN_SEED_WANT_MAX)
		return -EPROTO;
	for (uint32_t i = 0; i < w->count; i++) {
		if (w->index[i] >= p->pages)
			return -EPROTO;
		const uint64_t at = lr_seed_span_page(s, p, w->index[i]);
		struct lr_wire_range *last = *n ? &v[*n - 1] : NULL;
		if (!at)
			continue;
		if (last && last->at + (uint64_t)last->pages * LR_WIRE_PAGE == at)
			last->pages++;
		else
			v[(*n)++] = (struct lr_wire_range){at, 1};
	}
	return 0;
}

void feed_spread(const struct lr_seed *s, const struct lr_seed_spans *p,
		 const struct lean_seed_want *w, const uint8_t *came, uint8_t *to)
{
	for (uint32_t i = 0; i < w->count; i++, to += LR_WIRE_PAGE) {
		if (!lr_seed_span_page(s, p, w->index[i])) {
			memset(to, 0, LR_WIRE_PAGE);
			continue;
		}
		memcpy(to, came, LR_WIRE_PAGE);
		came += LR_WIRE_PAGE;
	}
}
