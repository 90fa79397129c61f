/* SPDX-License-Identifier: Apache-2.0 */
/* base: memory out of an arena for yajl, which wants to be given malloc, realloc and free. */
#ifndef LR_BASE_JSON_ALLOC_H
#define LR_BASE_JSON_ALLOC_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/base/arena.h"

/*
 * yajl writes to what it asked for without a look whether it got any. So it is left, by longjmp(3), when the arena has
 * nothing more: it holds nothing but memory. `leave` is set while somebody waits in setjmp(3).
 */
struct lr_json_memory {
	struct lr_arena *arena;
	bool leave;
	jmp_buf left;
};

/* Their first parameter is a struct lr_json_memory. */
void *lr_json_malloc(void *memory, size_t size);
void *lr_json_realloc(void *memory, void *p, size_t size);
void lr_json_free(void *memory, void *p); /* the arena's end is its */

#endif
