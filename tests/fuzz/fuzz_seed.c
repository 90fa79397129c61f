/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptor of a seed: it comes from a disk or over a wire. Whatever opens is followed to the
 * end of every reference, and read as if to resume from it.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "src/seed/socket.h"
#include "tests/fuzz/fuzz.h"

static uint64_t sum_bytes(const struct lr_seed *s, const struct lr_seed_bytes *b)
{
	const uint8_t *at = lr_seed_data(s, b);
	uint64_t n = 0;

	for (uint64_t i = 0; i < b->length; i++)
		n += at[i];
	return n;
}

/* What a socket of TCP is bound to, and what it listens with, as whoever makes it again hands it to the kernel. */
static void check_listener(const struct lr_seed *s, const struct lr_seed_endpoint *e)
{
	const uint64_t length = e->domain == AF_INET ? 16 : 28;
	const uint8_t *at = lr_seed_data(s, &e->address);
	uint16_t family;

	FUZZ_CHECK(e->address.length == length && e->backlog <= INT32_MAX);
	memcpy(&family, at, sizeof(family));
	FUZZ_CHECK(family == e->domain && (at[2] || at[3]));
	FUZZ_CHECK(memchr(e->congestion, 0, sizeof(e->congestion)));
	for (const char *name = e->congestion; *name; name++)
		FUZZ_CHECK(*name > ' ' && *name <= '~');
	for (unsigned i = 0; i < 32; i++)
		if (e->set >> i & 1)
			FUZZ_CHECK(i < LR_SEED_OPTIONS && lr_seed_option_fits(i, e->domain) &&
				   e->options[i] >= 0);
}

/* What whoever makes them again counts up to. */
static void check_watches(const struct lr_seed *s, const struct lr_seed_file *f)
{
	uint32_t last = 0;

	for (uint32_t i = 0; i < f->watches.count; i++) {
		const struct lr_seed_watch *w = lr_seed_watch(s, f->watches.first + i);
		FUZZ_CHECK(w->number > last && w->number <= LR_SEED_WATCH_NUMBERS);
		FUZZ_CHECK(lr_seed_text(s, w->path)[0] == '/');
		last = w->number;
	}
}

static uint64_t follow_file(const struct lr_seed *s, const struct lr_seed_file *f)
{
	char text[LR_SEED_ADDRESS_TEXT];

	if (f->kind == LR_SEED_INOTIFY)
		check_watches(s, f);
	if (f->kind != LR_SEED_ENDPOINT_FILE)
		return f->kind;
	FUZZ_CHECK(f->args[0] < lr_seed_count(s, LR_SEED_ENDPOINT));
	const struct lr_seed_endpoint *e = lr_seed_endpoint(s, f->args[0]);
	if (e->state == LR_SEED_LISTENS && e->domain != AF_UNIX)
		check_listener(s, e);
	lr_seed_address_text(lr_seed_data(s, &e->address), e->address.length, text);
	FUZZ_CHECK(text[0] && strlen(text) < sizeof(text));
	return sum_bytes(s, &e->address) + strlen(lr_seed_text(s, e->dir));
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

/* As whoever makes sockets reads them: no file of one leads out of its directory. */
static uint64_t check_endpoints(const struct lr_seed *s)
{
	char text[LR_SEED_ADDRESS_TEXT], path[128] = "";
	uint64_t sum = 0;

	for (uint32_t i = 0; i < lr_seed_count(s, LR_SEED_ENDPOINT); i++) {
		const struct lr_seed_endpoint *e = lr_seed_endpoint(s, i);
		const char *address = lr_seed_data(s, &e->address), *dir = lr_seed_text(s, e->dir);
		sum += sum_bytes(s, &e->address);
		lr_seed_address_text(address, e->address.length, text);
		sum += strlen(text);
		if (!lr_seed_has_path(s, e))
			continue;
		memcpy(path, address + 2, e->address.length - 2);
		path[e->address.length - 2] = 0;
		FUZZ_CHECK(strlen(path) == e->address.length - 2 && dir[0] == '/');
		FUZZ_CHECK(!strstr(dir, "/../") && strlen(dir) <= LR_SEED_PATH);
		FUZZ_CHECK(lr_seed_socket_base(dir, path) <= (int)strlen(dir));
		FUZZ_CHECK(path[0] == '/' || (strncmp(path, "../", 3) && !strstr(path, "/../")));
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
	n += check_tmpfs(&s) + check_endpoints(&s);
	for (uint32_t i = 0; i < lr_seed_count(&s, LR_SEED_THREAD); i++)
		n += sum_bytes(&s, &lr_seed_thread(&s, i)->xsave);
	for (uint32_t i = 0; i < lr_seed_count(&s, LR_SEED_PROCESS); i++) {
		const struct lr_seed_process *p = lr_seed_process(&s, i);
		for (uint32_t k = 0; k < p->fds.count; k++)
			n += lr_seed_file(&s, lr_seed_fd(&s, p->fds.first + k)->file)->kind;
	}
	for (uint32_t i = 0; i < lr_seed_count(&s, LR_SEED_FILE); i++)
		n += follow_file(&s, lr_seed_file(&s, i));
	char *text = lr_seed_dump(&s, a);
	FUZZ_CHECK(!text || strlen(text) + n);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try_out(data, size, false);
	return try_out(data, size, true);
}
