/* SPDX-License-Identifier: Apache-2.0 */
/* store: the bytes of a record; internal to src/store. The format is described in store.h. */
#ifndef LR_STORE_RECORD_H
#define LR_STORE_RECORD_H

#include "libocispec/ocispec.h"
#include "src/store/store.h"

/* Room for all that config.json may hold, which may become longer when it is written again; and
 * that stands in the file twice. */
#define RECORD_MAX (4u * OCI_CONFIG_MAX)

/* Where the changing part of the header is, and its bytes: the same twice. */
#define RECORD_LIVE_OFFSET 16
struct record_live {
	uint64_t start_time;
	int32_t pid;
	uint32_t flags;
	uint64_t sum;
};
void lr_record_live(const struct lr_record *r, struct record_live ret[2]);

/* Whether pid, start time and flags are known, whatever became of the rest; sets these. */
bool lr_record_salvage(const void *bytes, size_t size, struct lr_record *ret);

/* Puts the right checksums into a copy; for the fuzzer, too, which would not find them. */
void lr_record_seal(void *copy, size_t size);

/* *ret: the whole file. -EFBIG, -ENOMEM. */
int lr_record_encode(const struct lr_record *r, const char *config, size_t config_len,
		     struct lr_arena *a, void **ret, size_t *size,
		     struct lr_err *err) LR_MUST_CHECK;

#endif
