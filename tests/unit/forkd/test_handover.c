/* SPDX-License-Identifier: Apache-2.0 */
/* What is handed over from a daemon to the next one, as bytes. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "src/forkd/forkd.h"
#include "src/forkd/handover.h"
#include "src/forkd/held.h"
#include "tests/unit/test.h"

#define NOW 1000000

struct forkd_config forkd_config;

TEST(a_head_of_another_version_is_not_guessed_at)
{
	struct handover_head h = {"LEANKEE", HANDOVER_VERSION, sizeof(struct handover_seed), 3, 0};
	struct handover_head got = {0};
	uint8_t longer[sizeof(h) + 8] = {0};

	h.magic[7] = 'P';
	CHECK_INT(handover_get_head(&h, sizeof(h), &got), 0);
	CHECK_INT(got.rows, 3);
	for (size_t n = 0; n < sizeof(h); n++)
		CHECK_INT(handover_get_head(&h, n, &got), -EPROTO);
	h.version++;
	memcpy(longer, &h, sizeof(h));
	CHECK_INT(handover_get_head(&h, sizeof(h), &got), -ENOTSUP);
	CHECK_INT(handover_get_head(longer, sizeof(longer), &got), -ENOTSUP);
	h.version--;
	memcpy(longer, &h, sizeof(h));
	CHECK_INT(handover_get_head(longer, sizeof(longer), &got), -EPROTO);
	h.size++;
	CHECK_INT(handover_get_head(&h, sizeof(h), &got), -ENOTSUP);
	h.size--;
	h.rows = HELD_MAX;
	CHECK_INT(handover_get_head(&h, sizeof(h), &got), 0);
	h.rows++;
	CHECK_INT(handover_get_head(&h, sizeof(h), &got), -EPROTO);
	h.rows = 0;
	h.zero = 1;
	CHECK_INT(handover_get_head(&h, sizeof(h), &got), -EPROTO);
	h.zero = 0;
	h.magic[0]++;
	CHECK_INT(handover_get_head(&h, sizeof(h), &got), -EPROTO);
}

static int got(const struct handover_seed *s, size_t files, struct handover_seed *ret)
{
	return handover_get_seed(s, sizeof(*s), files, NOW, ret);
}

TEST(a_seed_has_its_files_or_has_ended)
{
	struct handover_seed s = {.lease = 1000, .until = NOW + 1000}, ret;

	CHECK_INT(got(&s, 2, &ret), 0);
	CHECK_INT(ret.ended, 0);
	for (size_t n = 0; n < sizeof(s); n++)
		CHECK_INT(handover_get_seed(&s, n, 2, NOW, &ret), -EPROTO);
	CHECK_INT(got(&s, 0, &ret), -EPROTO);
	CHECK_INT(got(&s, 1, &ret), -EPROTO);
	s.ended = LR_WIRE_REVOKED;
	CHECK_INT(got(&s, 2, &ret), -EPROTO);
	CHECK_INT(got(&s, 0, &ret), 0);
	CHECK_INT(ret.ended, LR_WIRE_REVOKED);
	s.ended = LR_WIRE_CODES;
	CHECK_INT(got(&s, 0, &ret), -EPROTO);
	s.ended = 0;
	s.zero = 1;
	CHECK_INT(got(&s, 2, &ret), -EPROTO);
}

TEST(a_lease_goes_on_and_does_not_grow)
{
	struct handover_seed s = {.lease = 1000, .until = NOW + 1}, ret;

	CHECK_INT(got(&s, 2, &ret), 0);
	CHECK_INT(ret.ended, 0);
	CHECK_INT(ret.until, NOW + 1);
	s.until = NOW;
	CHECK_INT(got(&s, 2, &ret), 0);
	CHECK_INT(ret.ended, LR_WIRE_EXPIRED);
	s.until = INT64_MIN;
	CHECK_INT(got(&s, 2, &ret), 0);
	CHECK_INT(ret.ended, LR_WIRE_EXPIRED);
	s.until = NOW + 1001;
	CHECK_INT(got(&s, 2, &ret), -EPROTO);
	s.lease = UINT64_MAX;
	s.until = INT64_MAX;
	CHECK_INT(got(&s, 2, &ret), -EPROTO);
}
