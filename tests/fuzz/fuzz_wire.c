/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a peer, or who calls the local socket, sends: a hello, a greeting, a token for RDMA, then
 * messages one after the other. What is taken encodes to the same bytes.
 */
#include "src/wire/wire.h"
#include "tests/fuzz/fuzz.h"

static void try_clear(const uint8_t *data, size_t size)
{
	uint8_t again[LR_WIRE_GREETING], token[LR_WIRE_PROOF];
	struct lr_wire_hello h;
	struct lr_wire_greeting g;

	if (size >= LR_WIRE_HELLO && lr_wire_get_hello(data, &h) == 0) {
		lr_wire_put_hello(&h, again);
		FUZZ_CHECK(memcmp(again, data, LR_WIRE_HELLO) == 0);
	}
	if (size >= LR_WIRE_GREETING && lr_wire_get_greeting(data, &g) == 0) {
		lr_wire_put_greeting(&g, again);
		FUZZ_CHECK(memcmp(again, data, LR_WIRE_GREETING) == 0);
	}
	if (lr_wire_get_token(data, size, token) == 0) {
		lr_wire_put_token(token, again);
		FUZZ_CHECK(memcmp(again, data, LR_WIRE_TOKEN_SHOWN) == 0);
	}
}

/* In memory that ends where the message does, so that a look behind it is seen. */
static void try_message(const uint8_t *data, size_t n)
{
	static uint8_t again[LR_WIRE_HEAD + LR_WIRE_CHUNK];
	struct lr_wire_msg m;
	uint8_t *copy = malloc(n);

	if (!copy)
		return;
	memcpy(copy, data, n);
	if (lr_wire_decode_all(copy, n, &m) == 0) {
		FUZZ_CHECK(lr_wire_encode(&m, again, sizeof(again)) == (ssize_t)n);
		FUZZ_CHECK(memcmp(again, data, n) == 0);
		if (m.type == LR_WIRE_READ)
			FUZZ_CHECK(lr_wire_asked(&m) <= LR_WIRE_CHUNK);
	}
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lr_wire_head h;

	try_clear(data, size);
	while (size >= LR_WIRE_HEAD && lr_wire_get_head(data, &h) == 0) {
		size_t n = LR_WIRE_HEAD + (size_t)h.length;
		if (n > size)
			n = size; /* cut off: refused */
		try_message(data, n);
		data += n;
		size -= n;
	}
	return 0;
}
