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

#define LR_VECTORS_TILE_CONFIG      (UINT64_C(1) << 17)
#define LR_VECTORS_TILE_DATA_NUMBER 18 /* as ARCH_REQ_XCOMP_PERM has it */
#define LR_VECTORS_TILE_DATA        (UINT64_C(1) << LR_VECTORS_TILE_DATA_NUMBER)
#define LR_VECTORS_TILES            (LR_VECTORS_TILE_CONFIG | LR_VECTORS_TILE_DATA)

/* Of an area in standard form: how much of it is before the components' own. */
#define LR_VECTORS_HEAD 576

/* Those that are in use, by the header of an area of at least LR_VECTORS_HEAD bytes. */
uint64_t lr_vectors_used(const void *area);
/* The rights by protection keys, if the processor has them and the area has room for them. Ptrace(2) tells them whether or
 * not they are in use by the header. */
bool lr_vectors_pkru(const void *area, size_t size, uint32_t *ret);
/* For an area that has them. */
void lr_vectors_set_pkru(void *area, uint32_t pkru);
/* Bit k: there are rights by key k, where key 0 is that of ordinary memory. A new program has none by the others. */
uint32_t lr_vectors_keys(uint32_t pkru);
/* Bytes of an area with these and no other components, as this processor lays it out. */
size_t lr_vectors_size(uint64_t components);

#endif
