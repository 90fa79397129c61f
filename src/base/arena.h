/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base: one arena per specification and per plan, released at once.
 *
 * Memory from an arena is zeroed, aligned for any type, and lives until lr_arena_free. Not
 * thread-safe. All allocation functions return NULL, and set errno, when out of memory (or on
 * overflow of n * size) and leave the arena usable. NULL is an arena too: the one that
 * lr_arena_new gives when there is no memory, in which every allocation fails.
 */
#ifndef LR_BASE_ARENA_H
#define LR_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

#include "src/base/err.h"

struct lr_arena;

struct lr_arena *lr_arena_new(void);
void lr_arena_free(struct lr_arena *a); /* NULL-safe; keeps errno */
static inline void lr_arena_freep(struct lr_arena **a)
{
	lr_arena_free(*a);
}
#define LR_CLEANUP_ARENA __attribute__((cleanup(lr_arena_freep)))

void *lr_alloc(struct lr_arena *a, size_t size);
void *lr_alloc_n(struct lr_arena *a, size_t n, size_t size);
#define lr_new(a, type)      ((type *)lr_alloc((a), sizeof(type)))
#define lr_new_n(a, n, type) ((type *)lr_alloc_n((a), (n), sizeof(type)))

char *lr_strdup(struct lr_arena *a, const char *s);
char *lr_strndup(struct lr_arena *a, const char *s, size_t n);
/* The strings up to a NULL, one after the other: a tenth of what lr_strf takes for it. */
char *lr_concat(struct lr_arena *a, const char *first, ...) __attribute__((sentinel));
char *lr_strf(struct lr_arena *a, const char *fmt, ...) LR_PRINTF(2, 3);
char *lr_strfv(struct lr_arena *a, const char *fmt, va_list ap);

/*
 * Grows an array in the arena: returns a block of at least (n + 1) * size bytes that holds the n
 * elements of v. Capacity doubles, so appending is amortised O(1); pass what the last call
 * returned. Typical: v = lr_grow(a, v, n, sizeof *v); if (!v) ...; v[n++] = x;
 */
void *lr_grow(struct lr_arena *a, void *v, size_t n, size_t size);

#endif
