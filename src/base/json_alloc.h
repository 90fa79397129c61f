/* SPDX-License-Identifier: Apache-2.0 */
/* base: memory out of an arena for a library that wants to be given malloc, realloc and free. */
#ifndef LR_BASE_JSON_ALLOC_H
#define LR_BASE_JSON_ALLOC_H

#include "src/base/arena.h"

void *lr_json_malloc(void *arena, size_t size);
void *lr_json_realloc(void *arena, void *p, size_t size);
void lr_json_free(void *arena, void *p); /* the arena's end is its */

#endif
