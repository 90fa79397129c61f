/* SPDX-License-Identifier: Apache-2.0 */
/* criu: which files its images have that had been deleted. */
#define LR_ROOM "criu"
#include <errno.h>
#include <stdlib.h>

#include "src/base/str.h"
#include "src/criu/criu.h"
#include "src/criu/image.h"

#define REMAPS      0x59133954
#define REMAPS_NAME "remap-fpath.img"
#define FILES       0x56303138
#define FILES_NAME  "files.img"

#define PROCESS     2 /* remap_type: a file of /proc of a process that has ended */

struct ids {
	uint32_t *v;
	size_t n;
};

static int compare(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Of the files: sorted, each once. */
static int decode_ids(struct lr_criu_in in, struct lr_arena *a, struct ids *ret)
{
	struct lr_criu_in one;
	uint32_t id, type;
	size_t n = 0;

	int r = lr_criu_image_begin(&in, REMAPS);
	while (r >= 0 && (r = lr_criu_image_next(&in, &one)) > 0) {
		uint32_t *v = lr_grow(a, ret->v, n, sizeof(*v));
		if (!v)
			return -ENOMEM;
		ret->v = v;
		if (lr_criu_image_number(one, 1, &id) < 0 ||
		    lr_criu_image_number(one, 3, &type) < 0)
			return -EBADMSG;
		if (type != PROCESS)
			v[n++] = id;
	}
	if (r < 0 || !n)
		return r;
	qsort(ret->v, n, sizeof(*ret->v), compare);
	for (size_t i = 0; i < n; i++)
		if (!i || ret->v[i] != ret->v[ret->n - 1])
			ret->v[ret->n++] = ret->v[i];
	return 0;
}

/* zigzag, as protocol buffers have numbers with a sign; -1: it is not known. */
static int32_t signed_of(uint64_t v)
{
	return (int32_t)(uint32_t)(v >> 1) ^ -(int32_t)(v & 1);
}

/* reg_file_entry */
static int get_file(struct lr_criu_in in, struct lr_arena *a, uint32_t *id,
		    struct lr_criu_remap *ret)
{
	struct lr_criu_field p;
	int r;

	*ret = (struct lr_criu_remap){.mount = -1};
	while ((r = lr_criu_next(&in, &p)) > 0) {
		if ((p.number == 1 || p.number == 7) && p.wire != LR_CRIU_WIRE_VARINT)
			return -EBADMSG;
		if (p.number == 1)
			*id = (uint32_t)p.value;
		else if (p.number == 7)
			ret->mount = signed_of(p.value);
		else if (p.number == 6 && p.wire == LR_CRIU_WIRE_BYTES)
			ret->path = lr_strndup(a, (const char *)p.bytes.at,
					       (size_t)(p.bytes.end - p.bytes.at));
		else if (p.number == 6)
			return -EBADMSG;
		if (p.number == 6 && !ret->path)
			return -ENOMEM;
	}
	return r;
}

/* The entry's file, if it is one of files and directories: field 3. 1; 0. */
static int get_entry(struct lr_criu_in in, struct lr_arena *a, uint32_t *id,
		     struct lr_criu_remap *ret)
{
	struct lr_criu_field p;
	bool found = false;
	int r;

	while ((r = lr_criu_next(&in, &p)) > 0) {
		if (p.number != 3)
			continue;
		if (p.wire != LR_CRIU_WIRE_BYTES)
			return -EBADMSG;
		found = true;
		r = get_file(p.bytes, a, id, ret);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : found;
}

static int decode_files(struct lr_criu_in in, const struct ids *ids, struct lr_arena *a,
			struct lr_criu_remap **ret, size_t *n)
{
	struct lr_criu_in one;
	struct lr_criu_remap m;
	uint32_t id = 0;

	int r = lr_criu_image_begin(&in, FILES);
	while (r >= 0 && (r = lr_criu_image_next(&in, &one)) > 0) {
		r = get_entry(one, a, &id, &m);
		if (r <= 0 || !bsearch(&id, ids->v, ids->n, sizeof(id), compare))
			continue;
		struct lr_criu_remap *v = lr_grow(a, *ret, *n, sizeof(*v));
		if (!v)
			return -ENOMEM;
		*ret = v;
		v[(*n)++] = m;
		if (!m.path || m.path[0] != '/')
			return -EBADMSG;
	}
	return r < 0 ? r : *n < ids->n ? -EBADMSG : 0;
}

int lr_criu_decode_remaps(const uint8_t *remaps, size_t n_remaps, const uint8_t *files,
			  size_t n_files, struct lr_arena *a, struct lr_criu_remap **ret, size_t *n,
			  struct lr_err *err)
{
	struct ids ids = {0};

	*ret = NULL;
	*n = 0;
	int r = decode_ids((struct lr_criu_in){remaps, remaps + n_remaps}, a, &ids);
	if (r >= 0 && ids.n)
		r = decode_files((struct lr_criu_in){files, files + n_files}, &ids, a, ret, n);
	if (r == -ENOMEM)
		return lr_fail(err, ENOMEM, "read which files were deleted");
	return r < 0 ? lr_criu_image_wrong(REMAPS_NAME " or " FILES_NAME, err) : 0;
}

int lr_criu_read_remaps(int dir, struct lr_arena *a, struct lr_criu_remap **ret, size_t *n,
			struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *files = lr_arena_new();
	struct lr_criu_in remaps, all;

	*ret = NULL;
	*n = 0;
	int r = lr_criu_image_read(dir, REMAPS_NAME, files, &remaps, err);
	if (r == -ENOENT) {
		lr_err_clear(err);
		return 0;
	}
	if (r >= 0)
		r = lr_criu_image_read(dir, FILES_NAME, files, &all, err);
	return r < 0 ? r
		     : lr_criu_decode_remaps(remaps.at, (size_t)(remaps.end - remaps.at), all.at,
					     (size_t)(all.end - all.at), a, ret, n, err);
}
