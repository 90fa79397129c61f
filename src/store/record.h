/* SPDX-License-Identifier: Apache-2.0 */
/* store: the bytes of a record; internal to src/store. The format is described in store.h. */
#ifndef LR_STORE_RECORD_H
#define LR_STORE_RECORD_H

#include "libocispec/ocispec.h"
#include "src/store/store.h"

/* Room for all that config.json may hold. It may become longer when we encode it, and it is in the
 * file twice. */
#define RECORD_MAX (4u * OCI_CONFIG_MAX)

/* Where the part of the header is that changes, and its bytes. It is there twice. */
#define RECORD_LIVE_OFFSET 16
struct record_live {
	uint64_t start_time;
	int32_t pid;
	uint32_t flags;
	uint64_t sum;
};
void lr_record_live(const struct lr_record *r, struct record_live ret[2]);

/* Sets pid, start time and flags. False: not even these are known. */
bool lr_record_salvage(const void *bytes, size_t size, struct lr_record *ret);

/* Puts the right checksums into a copy. The fuzzer uses it, as it would not guess them. */
void lr_record_seal(void *copy, size_t size);

/* *ret: the whole file. -EFBIG, -ENOMEM. */
int lr_record_encode(const struct lr_record *r, const char *config, size_t config_len,
		     struct lr_arena *a, void **ret, size_t *size,
		     struct lr_err *err) LR_MUST_CHECK;

#endif
