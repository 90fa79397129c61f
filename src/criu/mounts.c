/* SPDX-License-Identifier: Apache-2.0 */
/*
 * criu: what its images say of mounts. Magics, and numbers of fields, are those of criu's magic.h and images/.
 */
#define LR_ROOM "criu"
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/criu/criu.h"
#include "src/criu/image.h"

#define MOUNTS    0x55563928
#define TREE      0x50273030
#define IDS       0x54432030

#define TREE_NAME "pstree.img"
/* What a namespace may have, by default; for all that the images have, as the container stands still meanwhile. */
#define MOST_MOUNTS 100000

/* Numbers of fields. */
#define PID             1 /* of pstree_entry */
#define MOUNT_NAMESPACE 9 /* of task_kobj_ids_entry */

struct known {
	uint8_t number;
	bool is_text;
	uint16_t offset;
};

#define NUMBER(number_, member_)                                                                   \
	{                                                                                          \
		(number_), false, offsetof(struct lr_criu_mount, member_)                          \
	}
#define TEXT(number_, member_)                                                                     \
	{                                                                                          \
		(number_), true, offsetof(struct lr_criu_mount, member_)                           \
	}

/* Of mnt_entry. */
static const struct known known[] = {
	NUMBER(1, type),      NUMBER(2, id),     NUMBER(3, device),   NUMBER(4, parent),
	NUMBER(5, flags),     TEXT(6, root),     TEXT(7, point),      TEXT(8, source),
	TEXT(9, options),     NUMBER(10, peers), NUMBER(11, master),  NUMBER(12, plugin),
	NUMBER(13, external), TEXT(14, fsname),  NUMBER(16, deleted), TEXT(18, key),
};

static int get_field(const struct lr_criu_field *p, struct lr_arena *a, struct lr_criu_mount *m)
{
	const struct known *k = known, *const end = known + LR_ARRAY_SIZE(known);

	while (k < end && k->number != p->number)
		k++;
	if (k == end)
		return 0; /* one that nothing here depends on */
	if (p->wire != (k->is_text ? LR_CRIU_WIRE_BYTES : LR_CRIU_WIRE_VARINT))
		return -EBADMSG;
	void *const at = (char *)m + k->offset;
	if (!k->is_text) {
		*(uint32_t *)at = (uint32_t)p->value;
		return 0;
	}
	const char *const text =
		lr_strndup(a, (const char *)p->bytes.at, (size_t)(p->bytes.end - p->bytes.at));
	*(const char **)at = text;
	return text ? 0 : -ENOMEM;
}

static int get_mount(struct lr_criu_in in, struct lr_arena *a, struct lr_criu_mount *m)
{
	struct lr_criu_field p;
	int r;

	*m = (struct lr_criu_mount){.root = "", .point = "", .source = "", .options = ""};
	while ((r = lr_criu_next(&in, &p)) > 0) {
		r = get_field(&p, a, m);
		if (r < 0)
			return r;
	}
	/* Before criu 3.17, what is external had its name in place of its root. */
	return r >= 0 && (!*m->root || !*m->point || (m->external && !m->key)) ? -EBADMSG : r;
}

int lr_criu_decode_mounts(const uint8_t *bytes, size_t n, struct lr_arena *a,
			  struct lr_criu_mount **v, size_t *count, struct lr_err *err)
{
	struct lr_criu_in in = {bytes, bytes + n}, one;
	int r = lr_criu_image_begin(&in, MOUNTS);

	while (r >= 0 && (r = lr_criu_image_next(&in, &one)) > 0) {
		if (*count == MOST_MOUNTS)
			return lr_refuse(err, E2BIG, "the images have more than %d mounts",
					 MOST_MOUNTS);
		struct lr_criu_mount *grown = lr_grow(a, *v, *count, sizeof(*grown));
		if (grown)
			*v = grown;
		r = grown ? get_mount(one, a, &grown[*count]) : -ENOMEM;
		*count += r >= 0;
	}
	if (r == -ENOMEM)
		return lr_fail(err, ENOMEM, "read an image of mounts");
	return r < 0 ? lr_refuse(err, EBADMSG, "an image of mounts is not understood") : 0;
}

/* -ENOENT: it has no image of that, as what has ended and waits for its parent. */
static int namespace_of(int dir, uint32_t pid, uint32_t *ret, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_criu_in in, one = {0};
	char name[32];

	*ret = 0;
	snprintf(name, sizeof(name), "ids-%u.img", pid);
	int r = lr_criu_image_read(dir, name, a, &in, err);
	if (r < 0)
		return r;
	r = lr_criu_image_begin(&in, IDS);
	if (r >= 0)
		r = lr_criu_image_next(&in, &one);
	if (r > 0)
		r = lr_criu_image_number(one, MOUNT_NAMESPACE, ret);
	return r < 0 || !*ret ? lr_criu_image_wrong(name, err) : 0;
}

struct namespaces {
	uint32_t *v;
	size_t n;
};

static int note(struct namespaces *s, uint32_t ns, struct lr_arena *a)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i] == ns)
			return 0;
	uint32_t *v = lr_grow(a, s->v, s->n, sizeof(*v));
	if (!v)
		return -ENOMEM;
	s->v = v;
	v[s->n++] = ns;
	return 0;
}

/* The first process comes first, and so does its namespace. Other images may be older ones'. */
static int list_namespaces(int dir, struct lr_arena *a, struct namespaces *ret, struct lr_err *err)
{
	struct lr_criu_in in, one;
	uint32_t pid, ns;

	int r = lr_criu_image_read(dir, TREE_NAME, a, &in, err);
	if (r < 0)
		return r;
	if (lr_criu_image_begin(&in, TREE) < 0)
		return lr_criu_image_wrong(TREE_NAME, err);
	while ((r = lr_criu_image_next(&in, &one)) > 0) {
		if (lr_criu_image_number(one, PID, &pid) < 0 || !pid)
			return lr_criu_image_wrong(TREE_NAME, err);
		r = namespace_of(dir, pid, &ns, err);
		if (r == -ENOENT && ret->n)
			continue;
		if (r < 0)
			return r;
		if (note(ret, ns, a) < 0)
			return lr_fail(err, ENOMEM, "list mount namespaces");
	}
	return r < 0 || !ret->n ? lr_criu_image_wrong(TREE_NAME, err) : 0;
}

static int add_namespace(int dir, uint32_t ns, bool first, struct lr_arena *a,
			 struct lr_criu_mount **v, size_t *n, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *file = lr_arena_new();
	const size_t before = *n;
	struct lr_criu_in in;
	char name[32];

	snprintf(name, sizeof(name), "mountpoints-%u.img", ns);
	int r = lr_criu_image_read(dir, name, file, &in, err);
	if (r >= 0)
		r = lr_criu_decode_mounts(in.at, (size_t)(in.end - in.at), a, v, n, err);
	for (size_t i = before; i < *n; i++)
		(*v)[i].first = first;
	return r;
}

int lr_criu_read_mounts(int dir, struct lr_arena *a, struct lr_criu_mount **ret, size_t *n,
			struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *files = lr_arena_new();
	struct namespaces all = {0};

	*ret = NULL;
	*n = 0;
	int r = list_namespaces(dir, files, &all, err);
	for (size_t i = 0; i < all.n && r >= 0; i++)
		r = add_namespace(dir, all.v[i], i == 0, a, ret, n, err);
	return r;
}
