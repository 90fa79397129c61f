/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seed: the frozen state of processes as two files, the descriptor and the pages.
 *
 * The descriptor is read where it lies: lr_seed_open checks all of it and allocates nothing, so a
 * length that lies costs nothing, and the restorer can use the same bytes without a library. After
 * that every index, range, string and address in it can be followed without another look. What the
 * numbers mean to a kernel (whether a process may be resumed from them) is not this room's concern.
 */
#ifndef LR_SEED_SEED_H
#define LR_SEED_SEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/arena.h"
#include "src/base/err.h"
#include "src/seed/format.h"

struct lr_seed_table {
	const uint8_t *at;
	uint64_t count;
	uint32_t stride;
};

struct lr_seed {
	const struct lr_seed_header *header;
	struct lr_seed_table table[LR_SEED_TYPES]; /* [0] is none */
};

/*
 * bytes: aligned to eight; they must stay, and not change, as long as `ret` is used. pages: the
 * length of the file of pages, UINT64_MAX if that is not at hand yet. -EPROTO: damaged or hostile;
 * -ENOTSUP: of a version, or with a section, that this program does not know.
 */
int lr_seed_open(const void *bytes, size_t size, uint64_t pages, struct lr_seed *ret,
		 struct lr_err *err);

/* The first page of a file of pages belongs to this descriptor. */
int lr_seed_check_pages(const struct lr_seed *s, const void *page, size_t size, struct lr_err *err);

static inline const void *lr_seed_entry(const struct lr_seed *s, enum lr_seed_type type, uint64_t i)
{
	return s->table[type].at + i * s->table[type].stride;
}
static inline uint32_t lr_seed_count(const struct lr_seed *s, enum lr_seed_type type)
{
	return (uint32_t)s->table[type].count;
}
/* lr_seed_process(s, i), lr_seed_thread(s, i), ... */
#define LR_SEED_GETTER(kind, NAME)                                                                 \
	static inline const struct lr_seed_##kind *lr_seed_##kind(const struct lr_seed *s,         \
								  uint64_t i)                      \
	{                                                                                          \
		return lr_seed_entry(s, LR_SEED_##NAME, i);                                        \
	}
LR_SEED_GETTER(host, HOST)
LR_SEED_GETTER(process, PROCESS)
LR_SEED_GETTER(thread, THREAD)
LR_SEED_GETTER(mm, MM)
LR_SEED_GETTER(vma, VMA)
LR_SEED_GETTER(run, RUN)
LR_SEED_GETTER(object, OBJECT)
LR_SEED_GETTER(backing, BACKING)
LR_SEED_GETTER(file, FILE)
LR_SEED_GETTER(fd, FD)
LR_SEED_GETTER(channel, CHANNEL)
LR_SEED_GETTER(watch, WATCH)
LR_SEED_GETTER(fs, FS)
LR_SEED_GETTER(cred, CRED)
LR_SEED_GETTER(limit, LIMIT)
LR_SEED_GETTER(action, ACTION)
LR_SEED_GETTER(signal, SIGNAL)
LR_SEED_GETTER(timer, TIMER)
LR_SEED_GETTER(tmpfs, TMPFS)
LR_SEED_GETTER(node, NODE)
LR_SEED_GETTER(terminal, TERMINAL)
LR_SEED_GETTER(changed, CHANGED)
LR_SEED_GETTER(endpoint, ENDPOINT)

/* The attribute at *at, of *left bytes, which are what follows then; false: there is none. */
struct lr_seed_attribute_at {
	const char *name;
	const void *value;
	uint32_t size;
};
bool lr_seed_next_attribute(const uint8_t **at, uint64_t *left, struct lr_seed_attribute_at *ret);

/* What the container has changed in its root; NULL: that is not in the seed. */
static inline const struct lr_seed_tmpfs *lr_seed_changes(const struct lr_seed *s)
{
	const uint32_t n = lr_seed_count(s, LR_SEED_TMPFS);

	return n && lr_seed_tmpfs(s, n - 1)->flags & LR_SEED_ROOT ? lr_seed_tmpfs(s, n - 1) : NULL;
}

/* The path of a node, from the root of its tmpfs; "" is the root. */
void lr_seed_node_path(const struct lr_seed *s, uint32_t node, char ret[LR_SEED_PATH + 1]);

/* Whether its pages may come when they are touched; all else is read into place. */
static inline bool lr_seed_may_wait(const struct lr_seed_vma *v)
{
	return v->kind == LR_SEED_ANON;
}
static inline const char *lr_seed_text(const struct lr_seed *s, uint32_t at)
{
	return (const char *)s->table[LR_SEED_STRING].at + at;
}
static inline const void *lr_seed_data(const struct lr_seed *s, const struct lr_seed_bytes *b)
{
	return s->table[LR_SEED_BYTES].at + b->at;
}

/*
 * To make one: add entries in the order that the ranges ask for, then finish. Memory is the
 * arena's. That it ran out is remembered, and lr_seed_finish reports it, so the results of the
 * other calls need not be checked.
 */
struct lr_seed_writer;
struct lr_seed_writer *lr_seed_writer_new(struct lr_arena *a);
/* entry: sizeof of the section's type. Returns its index. */
uint32_t lr_seed_add(struct lr_seed_writer *w, enum lr_seed_type type, const void *entry);
/* How many there are: the index of the next one. */
uint32_t lr_seed_next(const struct lr_seed_writer *w, enum lr_seed_type type);
/* To fill in what was not known yet; NULL if there is no such entry. Until the next lr_seed_add. */
void *lr_seed_edit(struct lr_seed_writer *w, enum lr_seed_type type, uint32_t i);
/* Of the string; "" is 0. */
uint32_t lr_seed_add_text(struct lr_seed_writer *w, const char *s);
struct lr_seed_bytes lr_seed_add_bytes(struct lr_seed_writer *w, const void *bytes, size_t n);
/* pages: length of the file of pages. The result has passed lr_seed_open. */
int lr_seed_finish(struct lr_seed_writer *w, uint64_t pages, const uint8_t id[16], void **ret,
		   size_t *size, struct lr_err *err);
void lr_seed_pages_header(const struct lr_seed_header *h, struct lr_seed_pages_header *ret);

/* Of the first and the last page of a file: struct lr_seed_backing.sum. */
int lr_seed_sum_file(int fd, uint64_t size, uint64_t *ret); /* 0 or -errno */

/* Makes the sum right again; for tests and fuzzing. */
void lr_seed_seal(void *bytes, size_t size);

/* JSON, indented, each table a list of objects; NULL without memory. */
char *lr_seed_dump(const struct lr_seed *s, struct lr_arena *a);

#endif
