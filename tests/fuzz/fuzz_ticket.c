/* SPDX-License-Identifier: Apache-2.0 */
/* A ticket comes from a command line, a file or an annotation. */
#include "src/wire/ticket.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lr_ticket t;
	char out[LR_TICKET_TEXT];

	if (lr_ticket_decode((const char *)data, size, &t) < 0)
		return 0;
	FUZZ_CHECK(memchr(t.host, 0, sizeof(t.host)) && t.port);
	FUZZ_CHECK(lr_ticket_encode(&t, out) == 0);
	FUZZ_CHECK(strlen(out) == size && memcmp(out, data, size) == 0);
	return 0;
}
