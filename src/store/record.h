/* SPDX-License-Identifier: Apache-2.0 */
/* store: the bytes of a record; internal to src/store. */
#ifndef LR_STORE_RECORD_H
#define LR_STORE_RECORD_H

#include "src/store/store.h"

#define RECORD_MAX (16u << 20)

/* Where the changing part of the header is, and its bytes. */
#define RECORD_LIVE_OFFSET 16
struct record_live {
	uint64_t start_time;
	int32_t pid;
	uint32_t flags;
};

void *lr_record_encode(const struct lr_record *r, const char *config, size_t config_len,
		       struct lr_arena *a, size_t *size);

#endif
