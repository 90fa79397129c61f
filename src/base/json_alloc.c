/* SPDX-License-Identifier: Apache-2.0 */
/* base: yajl's memory; see json_alloc.h. (Of its own, as json.c is long.) */
#define LR_ROOM "base"
#include "src/base/json_alloc.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Out of the arena, which needs to be told the old size when a block grows. */
struct block {
	size_t size;
	_Alignas(max_align_t) unsigned char data[];
};

void *lr_json_malloc(void *memory, size_t size)
{
	struct lr_json_memory *m = memory;
	struct block *b =
		size > SIZE_MAX - sizeof(*b) ? NULL : lr_alloc(m->arena, sizeof(*b) + size);

	if (!b && m->leave)
		longjmp(m->left, 1);
	if (!b)
		return NULL;
	b->size = size;
	return b->data;
}

void *lr_json_realloc(void *memory, void *p, size_t size)
{
	const struct block *old =
		p ? (struct block *)((unsigned char *)p - offsetof(struct block, data)) : NULL;
	void *grown = lr_json_malloc(memory, size);

	if (grown && old)
		memcpy(grown, p, old->size < size ? old->size : size);
	return grown;
}

void lr_json_free(void *memory, void *p)
{
	(void)memory;
	(void)p;
}
