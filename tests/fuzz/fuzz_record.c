/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A container's record: whoever can write below --root can write anything. What is read is held
 * against what was written from it.
 */
#include <errno.h>

#include "libocispec/ocispec.h"
#include "src/store/record.h"
#include "tests/fuzz/fuzz.h"

/* Every string ends, every pair is one. */
static size_t touch(const struct lr_record *r)
{
	const char *const texts[] = {r->id, r->oci_version, r->bundle, r->rootfs, r->created};
	const struct oci_map *const maps[] = {&r->annotations, &r->cgroups};
	size_t n = r->cgroup_path ? strlen(r->cgroup_path) : 0;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		FUZZ_CHECK(texts[i]);
		n += strlen(texts[i]);
	}
	for (size_t k = 0; k < sizeof(maps) / sizeof(maps[0]); k++)
		for (size_t i = 0; i < maps[k]->n; i++)
			n += strlen(maps[k]->v[i].key) + strlen(maps[k]->v[i].value);
	return n;
}

/* sealed: with checksums that are right, behind which the fuzzer would never come. */
static int try_out(const uint8_t *data, size_t size, bool sealed)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_record r, again;
	void *out;
	struct lr_err err = {0};
	const char *config = NULL, *config2 = NULL;
	size_t len = 0, len2 = 0, size2 = 0;

	if (!a)
		return 0;
	/* As the store reads it: with a NUL behind it. */
	char *bytes = lr_alloc(a, size + 1);
	if (!bytes)
		return 0;
	if (size)
		memcpy(bytes, data, size);
	if (sealed)
		lr_record_seal(bytes, size);
	int rc = lr_record_decode(bytes, size, a, &r, &config, &len, &err);
	if (rc < 0) {
		FUZZ_CHECK(err.code == -rc && err.msg[0]);
		return 0;
	}
	FUZZ_CHECK(r.pid >= 0 && len <= size);
	FUZZ_CHECK(touch(&r) <= size * 2);
	const struct oci_config *c;
	(void)!oci_config_decode(config, len, a, &c, NULL);
	if (lr_record_encode(&r, config, len, a, &out, &size2, &err) < 0)
		return 0;
	FUZZ_CHECK(lr_record_decode(out, size2, a, &again, &config2, &len2, &err) == 0);
	FUZZ_CHECK(len2 == len && memcmp(config2, config, len) == 0);
	FUZZ_CHECK(strcmp(again.id, r.id) == 0 && again.pid == r.pid && again.flags == r.flags);
	FUZZ_CHECK(again.cgroups.n == r.cgroups.n && touch(&again) == touch(&r));
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try_out(data, size, false);
	return try_out(data, size, true);
}
