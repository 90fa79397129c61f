/* SPDX-License-Identifier: Apache-2.0 */
/* base: a bump allocator over a list of zeroed chunks. */
#define LR_ROOM "base"
#include "src/base/arena.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_MIN (32u << 10)
#define ALIGN     _Alignof(max_align_t)

struct chunk {
	struct chunk *next;
	size_t used, size;
	_Alignas(max_align_t) unsigned char data[];
};

struct lr_arena {
	struct chunk *head;
};

/*
 * The program's first arena has its first chunk here: a command line then needs no heap at all,
 * and libc's costs four system calls before it gives anything. Only once: threads may ask, and a
 * second owner would have to zero it.
 */
#define FIRST_SIZE (128u << 10)
static _Alignas(struct chunk) unsigned char first_chunk[FIRST_SIZE];
static atomic_flag first_taken = ATOMIC_FLAG_INIT;

struct lr_arena *lr_arena_new(void)
{
	struct chunk *c = (struct chunk *)first_chunk;
	struct lr_arena *a = (struct lr_arena *)c->data;

	if (atomic_flag_test_and_set_explicit(&first_taken, memory_order_relaxed))
		return calloc(1, sizeof(*a));
	c->size = FIRST_SIZE - sizeof(*c);
	c->used = (sizeof(*a) + ALIGN - 1) & ~(ALIGN - 1);
	a->head = c;
	return a;
}

/* The first one's end is the program's. */
static void release(void *p)
{
	if ((unsigned char *)p < first_chunk || (unsigned char *)p >= first_chunk + FIRST_SIZE)
		free(p);
}

void lr_arena_free(struct lr_arena *a)
{
	if (!a)
		return;
	int saved = errno;
	for (struct chunk *c = a->head, *next; c; c = next) {
		next = c->next;
		release(c);
	}
	release(a);
	errno = saved;
}

void *lr_alloc(struct lr_arena *a, size_t size)
{
	if (!a || size > SIZE_MAX / 2) {
		errno = ENOMEM;
		return NULL;
	}
	size = (size + ALIGN - 1) & ~(ALIGN - 1);

	struct chunk *c = a->head;
	if (!c || c->size - c->used < size) {
		size_t want = size > CHUNK_MIN ? size : CHUNK_MIN;
		/* calloc: fresh pages from the kernel are zero already and are not touched
		 * twice. */
		c = calloc(1, sizeof(*c) + want);
		if (!c)
			return NULL;
		c->size = want;
		c->next = a->head;
		a->head = c;
	}
	void *p = c->data + c->used;
	c->used += size;
	return p;
}

void *lr_alloc_n(struct lr_arena *a, size_t n, size_t size)
{
	size_t total;

	if (__builtin_mul_overflow(n, size, &total))
		total = SIZE_MAX;
	return lr_alloc(a, total ? total : 1);
}

char *lr_strndup(struct lr_arena *a, const char *s, size_t n)
{
	size_t len = strnlen(s, n);
	char *p = lr_alloc(a, len + 1);

	if (p)
		memcpy(p, s, len);
	return p;
}

char *lr_strdup(struct lr_arena *a, const char *s)
{
	return lr_strndup(a, s, strlen(s));
}

char *lr_concat(struct lr_arena *a, const char *first, ...)
{
	size_t len = 0;
	va_list ap;

	va_start(ap, first);
	for (const char *s = first; s; s = va_arg(ap, const char *))
		len += strlen(s);
	va_end(ap);
	char *text = lr_alloc(a, len + 1), *end = text;
	if (!text)
		return NULL;
	va_start(ap, first);
	for (const char *s = first; s; s = va_arg(ap, const char *))
		end = stpcpy(end, s);
	va_end(ap);
	return text;
}

char *lr_strfv(struct lr_arena *a, const char *fmt, va_list ap)
{
	/* Nearly always it fits into what is left of the chunk, and is formatted once. */
	struct chunk *c = a ? a->head : NULL;
	size_t room = c ? c->size - c->used : 0;
	char *free = c ? (char *)c->data + c->used : NULL;
	va_list again;

	va_copy(again, ap);
	int n = vsnprintf(free, room, fmt, again);
	va_end(again);
	if (n < 0)
		return NULL;
	if ((size_t)n < room)
		return lr_alloc(a, (size_t)n + 1);
	if (room)
		memset(free, 0, room);
	char *p = lr_alloc(a, (size_t)n + 1);
	if (p)
		vsnprintf(p, (size_t)n + 1, fmt, ap);
	return p;
}

char *lr_strf(struct lr_arena *a, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	char *p = lr_strfv(a, fmt, ap);
	va_end(ap);
	return p;
}

void *lr_grow(struct lr_arena *a, void *v, size_t n, size_t size)
{
	/* Full exactly at 0, 4, 8, 16, 32, ... elements. */
	if (v && (n < 4 || (n & (n - 1))))
		return v;
	if (v && n > SIZE_MAX / 2 / size)
		return NULL;

	size_t capacity = n < 4 ? 4 : n * 2;
	void *bigger = lr_alloc_n(a, capacity, size);
	if (bigger && n)
		memcpy(bigger, v, n * size);
	return bigger;
}
