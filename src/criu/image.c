/* SPDX-License-Identifier: Apache-2.0 */
/*
 * criu: what its images say of mounts. An image file is two magic numbers, then messages, each behind its length.
 * Numbers of files, magics and fields are those of criu's images/ and magic.h.
 */
#define LR_ROOM "criu"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/criu/criu.h"
#include "src/criu/fields.h"

#define IMAGE       0x54564319 /* each file's first number */
#define MOUNTS      0x55563928
#define TREE        0x50273030
#define IDS         0x54432030

#define MOUNTS_NAME "mountpoints-"
#define FILE_MOST   (64u << 20) /* of a file: a namespace has 100,000 mounts at most, by default */

/* Lengths and magics have the byte order of the machine that wrote them, which is ours. */
static bool get_u32(struct lr_criu_in *in, uint32_t *ret)
{
	if (in->end - in->at < (ptrdiff_t)sizeof(*ret))
		return false;
	memcpy(ret, in->at, sizeof(*ret));
	in->at += sizeof(*ret);
	return true;
}

static bool begins(struct lr_criu_in *in, uint32_t kind)
{
	uint32_t image, its;

	return get_u32(in, &image) && get_u32(in, &its) && image == IMAGE && its == kind;
}

/* 1; 0: there is none any more; -EBADMSG. */
static int next_message(struct lr_criu_in *in, struct lr_criu_in *ret)
{
	uint32_t n;

	if (in->at == in->end)
		return 0;
	if (!get_u32(in, &n) || n > (size_t)(in->end - in->at))
		return -EBADMSG;
	*ret = (struct lr_criu_in){in->at, in->at + n};
	in->at += n;
	return 1;
}

static const char *text(const struct lr_criu_in *in, struct lr_arena *a)
{
	const size_t n = in->at ? (size_t)(in->end - in->at) : 0;

	return lr_strndup(a, n ? (const char *)in->at : "", n);
}

static void set_number(struct lr_criu_mount *m, const struct lr_criu_part *p)
{
	uint32_t *const numbers[] = {NULL, &m->type, &m->id, &m->device, &m->parent, &m->flags};

	if (p->number > 0 && p->number < LR_ARRAY_SIZE(numbers))
		*numbers[p->number] = (uint32_t)p->value;
}

static int set_text(struct lr_criu_mount *m, const struct lr_criu_part *p, struct lr_arena *a)
{
	const char **const at = p->number == 6    ? &m->root
				: p->number == 7  ? &m->point
				: p->number == 8  ? &m->source
				: p->number == 9  ? &m->options
				: p->number == 18 ? &m->key
						  : NULL;

	if (at)
		*at = text(&p->bytes, a);
	return at && !*at ? -ENOMEM : 0;
}

/* Before criu 3.17, what is external had its name in place of its root. */
#define EXTERNAL 13

static int get_mount(struct lr_criu_in in, struct lr_arena *a, struct lr_criu_mount *m)
{
	struct lr_criu_part p;
	bool external = false;
	int r;

	*m = (struct lr_criu_mount){.root = "", .point = "", .source = "", .options = ""};
	while ((r = lr_criu_next(&in, &p)) > 0) {
		set_number(m, &p);
		external |= p.number == EXTERNAL && p.value;
		r = set_text(m, &p, a);
		if (r < 0)
			return r;
	}
	return r >= 0 && external && !m->key ? -EBADMSG : r;
}

int lr_criu_decode_mounts(const uint8_t *bytes, size_t n, struct lr_arena *a,
			  struct lr_criu_mount **v, size_t *count, struct lr_err *err)
{
	struct lr_criu_in in = {bytes, bytes + n}, one;
	int r = begins(&in, MOUNTS) ? 0 : -EBADMSG;

	while (r >= 0 && (r = next_message(&in, &one)) > 0) {
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

static int read_image(int dir, const char *name, struct lr_arena *a, struct lr_criu_in *ret,
		      struct lr_err *err)
{
	size_t size = 16u << 10;
	ssize_t n;
	char *buf;

	do {
		size *= 2;
		buf = lr_alloc(a, size);
		if (!buf)
			return lr_fail(err, ENOMEM, "read %s", name);
		n = lr_read_file_at(dir, name, buf, size);
	} while (n == -EFBIG && size < FILE_MOST);
	if (n < 0)
		return lr_fail(err, (int)-n, "read %s", name);
	*ret = (struct lr_criu_in){(const uint8_t *)buf, (const uint8_t *)buf + n};
	return 0;
}

/* A number of an image's first message. */
static int first_number(int dir, const char *name, uint32_t kind, uint64_t field,
			struct lr_arena *a, uint32_t *ret, struct lr_err *err)
{
	struct lr_criu_in in, one;
	struct lr_criu_part p;
	uint64_t value = 0;

	int r = read_image(dir, name, a, &in, err);
	if (r < 0)
		return r;
	r = begins(&in, kind) ? next_message(&in, &one) : -EBADMSG;
	while (r > 0 && (r = lr_criu_next(&one, &p)) > 0)
		if (p.number == field)
			value = p.value;
	if (r < 0 || value == 0 || value > UINT32_MAX)
		return lr_refuse(err, EBADMSG, "%s is not understood", name);
	*ret = (uint32_t)value;
	return 0;
}

/* The number of the mount namespace of the first process, which is the first in the tree. */
static int first_namespace(int dir, struct lr_arena *a, uint32_t *ret, struct lr_err *err)
{
	char name[32];
	uint32_t pid;

	int r = first_number(dir, "pstree.img", TREE, 1, a, &pid, err);
	if (r < 0)
		return r;
	snprintf(name, sizeof(name), "ids-%u.img", pid);
	return first_number(dir, name, IDS, 9, a, ret, err);
}

static int add_file(int dir, const char *name, const char *first, struct lr_arena *a,
		    struct lr_criu_mount **v, size_t *n, struct lr_err *err)
{
	const size_t before = *n;
	struct lr_criu_in in;

	int r = read_image(dir, name, a, &in, err);
	if (r >= 0)
		r = lr_criu_decode_mounts(in.at, (size_t)(in.end - in.at), a, v, n, err);
	for (size_t i = before; i < *n; i++)
		(*v)[i].first = lr_streq(name, first);
	return r;
}

int lr_criu_mounts(int dir, struct lr_arena *a, struct lr_criu_mount **ret, size_t *n,
		   struct lr_err *err)
{
	char first[32];
	struct dirent *e;
	uint32_t number;
	bool found = false;

	*ret = NULL;
	*n = 0;
	int r = first_namespace(dir, a, &number, err);
	if (r < 0)
		return r;
	snprintf(first, sizeof(first), MOUNTS_NAME "%u.img", number);
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	LR_CLEANUP_DIR DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		r = lr_fail(err, errno, "read the images");
		lr_close(fd);
		return r;
	}
	while (r >= 0 && (errno = 0, e = readdir(d))) {
		if (!lr_has_prefix(e->d_name, MOUNTS_NAME))
			continue;
		found |= lr_streq(e->d_name, first);
		r = add_file(dir, e->d_name, first, a, ret, n, err);
	}
	if (r >= 0 && errno)
		return lr_fail(err, errno, "read the images");
	return r < 0 || found ? r : lr_fail(err, ENOENT, "find %s", first);
}
