/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptor of a seed: it comes from a disk or over a wire. Whatever opens is followed to the
 * end of every reference, and read as if to resume from it.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "src/seed/seed.h"
#include "tests/fuzz/fuzz.h"

static uint64_t sum_bytes(const struct lr_seed *s, const struct lr_seed_bytes *b)
{
	const uint8_t *at = lr_seed_data(s, b);
	uint64_t n = 0;

	for (uint64_t i = 0; i < b->length; i++)
		n += at[i];
	return n;
}

static void check_memory(const struct lr_seed *s)
{
	for (uint32_t i = 0; i < lr_seed_count(s, LR_SEED_MM); i++) {
		const struct lr_seed_mm *m = lr_seed_mm(s, i);
		uint64_t end = 0;
		for (uint32_t k = 0; k < m->vmas.count; k++) {
			const struct lr_seed_vma *v = lr_seed_vma(s, m->vmas.first + k);
			FUZZ_CHECK(v->start >= end && v->end > v->start && v->end <= LR_SEED_TOP);
			end = v->end;
		}
		for (uint32_t k = 0; k < m->runs.count; k++) {
			const struct lr_seed_run *r = lr_seed_run(s, m->runs.first + k);
			FUZZ_CHECK(r->at + r->pages * LR_SEED_PAGE <= s->header->pages);
			FUZZ_CHECK(r->start + r->pages * LR_SEED_PAGE <= end);
		}
		(void)sum_bytes(s, &m->auxv);
		FUZZ_CHECK(strlen(lr_seed_text(s, m->exe)) < s->header->length);
	}
}

/* As whoever fills a tmpfs reads it: each path stays below the root. */
static uint64_t check_tmpfs(const struct lr_seed *s)
{
	char path[LR_SEED_PATH + 1];
	uint64_t sum = 0;

	for (uint32_t i = 0; i < lr_seed_count(s, LR_SEED_NODE); i++) {
		const struct lr_seed_node *n = lr_seed_node(s, i);
		const uint8_t *at = lr_seed_data(s, &n->attributes);
		uint64_t left = n->attributes.length;
		struct lr_seed_attribute_at a;
		lr_seed_node_path(s, i, path);
		FUZZ_CHECK(path[0] != '/' && strlen(path) <= LR_SEED_PATH);
		FUZZ_CHECK((n->parent == LR_SEED_NONE) == !*path);
		FUZZ_CHECK(strncmp(path, "../", 3) != 0 && !strstr(path, "/../"));
		FUZZ_CHECK(!S_ISCHR(n->mode) || (n->mode == LR_SEED_WHITEOUT && *path));
		FUZZ_CHECK((!S_ISCHR(n->mode) && !n->flags) || lr_seed_changes(s));
		while (lr_seed_next_attribute(&at, &left, &a))
			for (uint32_t k = 0; k < a.size; k++)
				sum += ((const uint8_t *)a.value)[k] + strlen(a.name);
		for (uint32_t k = 0; k < n->runs.count; k++) {
			const struct lr_seed_run *r = lr_seed_run(s, n->runs.first + k);
			FUZZ_CHECK(r->at + r->pages * LR_SEED_PAGE <= s->header->pages);
			FUZZ_CHECK(r->start < n->size);
		}
	}
	return sum;
}

static int try_out(const uint8_t *data, size_t size, bool sealed)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_seed s;
	struct lr_err err = {0};
	uint64_t n = 0;
	uint8_t *bytes = a ? lr_alloc(a, size + 8) : NULL;

	if (!bytes)
		return 0;
	if (size)
		memcpy(bytes, data, size);
	if (sealed && size >= sizeof(struct lr_seed_header)) {
		((struct lr_seed_header *)bytes)->length = size;
		lr_seed_seal(bytes, size);
	}
	int r = lr_seed_open(bytes, size, UINT64_MAX, &s, &err);
	if (r < 0) {
		FUZZ_CHECK(err.code == -r && err.msg[0]);
		return 0;
	}
	check_memory(&s);
	n += check_tmpfs(&s);
	for (uint32_t i = 0; i < lr_seed_count(&s, LR_SEED_THREAD); i++)
		n += sum_bytes(&s, &lr_seed_thread(&s, i)->xsave);
	for (uint32_t i = 0; i < lr_seed_count(&s, LR_SEED_PROCESS); i++) {
		const struct lr_seed_process *p = lr_seed_process(&s, i);
		for (uint32_t k = 0; k < p->fds.count; k++)
			n += lr_seed_file(&s, lr_seed_fd(&s, p->fds.first + k)->file)->kind;
	}
	char *text = lr_seed_dump(&s, a);
	FUZZ_CHECK(!text || strlen(text) + n);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try_out(data, size, false);
	return try_out(data, size, true);
}
