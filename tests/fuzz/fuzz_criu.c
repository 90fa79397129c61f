/* SPDX-License-Identifier: Apache-2.0 */
/* What criu answers, what it writes into its log, and its images of mounts and of what was deleted. */
#include <errno.h>

#include "src/criu/criu.h"
#include "tests/fuzz/fuzz.h"

static void image(const uint8_t *data, size_t size)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_criu_mount *v = NULL;
	struct lr_err err = {0};
	size_t n = 0;

	int rc = lr_criu_decode_mounts(data, size, a, &v, &n, &err);
	FUZZ_CHECK(rc == 0 || (rc == -EBADMSG && err.msg[0]));
	for (size_t i = 0; i < n; i++)
		FUZZ_CHECK(v[i].root && v[i].point && v[i].source && v[i].options);
	/* The first two bytes say where the other image begins. */
	if (size < 2)
		return;
	const size_t middle = (data[0] | (size_t)data[1] << 8) % (size - 1);
	struct lr_criu_remap *d;
	rc = lr_criu_decode_remaps(data + 2, middle, data + 2 + middle, size - 2 - middle, a, &d,
				   &n, &err);
	FUZZ_CHECK(rc == 0 || (rc == -EBADMSG && err.msg[0]));
	for (size_t i = 0; rc == 0 && i < n; i++)
		FUZZ_CHECK(d[i].path[0] == '/');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lr_criu_response r;
	struct lr_err err = {0};
	char line[64];

	int rc = lr_criu_decode(data, size, &r, &err);
	FUZZ_CHECK(rc == 0 || (rc == -EBADMSG && err.msg[0]));
	FUZZ_CHECK(strlen(r.script) < sizeof(r.script) && strlen(r.message) < sizeof(r.message));
	FUZZ_CHECK(r.version >= 0);
	if (lr_criu_telling((const char *)data, size, line, sizeof(line)))
		for (const char *c = line; *c; c++)
			FUZZ_CHECK(*c >= ' ' && *c < 0x7f);
	image(data, size);
	return 0;
}
