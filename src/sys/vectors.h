/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys: the state components of an x86-64 processor as XSAVE has them (vector registers and their like), each a bit of
 * XCR0.
 *
 * A process has the tiles of AMX only when it has asked the kernel for them (ARCH_REQ_XCOMP_PERM), and a thread has
 * room for them from when it first uses them. ptrace(2) shows an area with that room for each thread, but a signal
 * frame with it, for a thread that has none, has the kernel leave the vector registers out without a word.
 */
#ifndef LR_SYS_VECTORS_H
#define LR_SYS_VECTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LR_VECTORS_KEYS_NUMBER      9
#define LR_VECTORS_KEYS             (UINT64_C(1) << LR_VECTORS_KEYS_NUMBER)
#define LR_VECTORS_TILE_CONFIG      (UINT64_C(1) << 17)
#define LR_VECTORS_TILE_DATA_NUMBER 18 /* as ARCH_REQ_XCOMP_PERM has it */
#define LR_VECTORS_TILE_DATA        (UINT64_C(1) << LR_VECTORS_TILE_DATA_NUMBER)
#define LR_VECTORS_TILES            (LR_VECTORS_TILE_CONFIG | LR_VECTORS_TILE_DATA)

/* Of an area in standard form, in bytes: where the words are that the processor leaves to programs, and where the header,
 * of which the first word is what is in use; and how much is before the components' own. */
#define LR_VECTORS_WORDS  464
#define LR_VECTORS_HEADER 512
#define LR_VECTORS_HEAD   576

/* Those that are in use, by the header of an area of at least LR_VECTORS_HEAD bytes. */
uint64_t lr_vectors_used(const void *area);
/* Whether there are protection keys here: the processor has them, and the kernel has switched them on. */
bool lr_vectors_has_keys(void);
/* What a new program's PKRU is: key 0, that of ordinary memory, is open, and the others are not. */
#define LR_VECTORS_NEW_PKRU 0x55555554U
/* The rights by protection keys (PKRU), where there are keys, and the area has room for them. They are read whether or not
 * the header says that they are in use: kernels differ in what they write there. */
bool lr_vectors_pkru(const void *area, size_t size, uint32_t *ret);
/* Of an area that has room for them. They are in use from then on: what is not is open. */
void lr_vectors_set_pkru(void *area, uint32_t pkru);
/* Bytes of an area with these and no other components, as this processor lays it out. */
size_t lr_vectors_size(uint64_t components);

#endif
