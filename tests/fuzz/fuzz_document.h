/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of the targets for documents of libocispec: any bytes into the decoder; what it takes
 * must encode, decode again, and then encode to the same bytes. Expects DOCUMENT (config),
 * ENCODE(object, arena, len).
 */
#include "libocispec/ocispec.h"
#include "tests/fuzz/fuzz.h"

#define PASTE_(a, b, c) a##b##c
#define PASTE(a, b, c)  PASTE_(a, b, c)
#define DECODE          PASTE(oci_, DOCUMENT, _decode)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const struct PASTE(oci_, DOCUMENT, ) * object;
	struct lr_err err = {0};
	size_t len, len2;
	int rc = DECODE((const char *)data, size, a, &object, &err);

	FUZZ_CHECK(rc == 0 || (rc < 0 && err.code == -rc && err.msg[0]));
	if (rc < 0)
		return 0;
	char *text = ENCODE(object, a, &len);
	FUZZ_CHECK(text && DECODE(text, len, a, &object, &err) == 0);
	char *again = ENCODE(object, a, &len2);
	FUZZ_CHECK(again && len == len2 && memcmp(text, again, len) == 0);
	return 0;
}
