/* SPDX-License-Identifier: Apache-2.0 */
/* criu: image files; see image.h. */
#define LR_ROOM "criu"
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "src/base/fd.h"
#include "src/criu/image.h"

#define IMAGE     0x54564319 /* each file's first number */
#define FILE_MOST (64u << 20)

/* Lengths and magics have the byte order of the machine that wrote them, which is ours. */
static bool get_u32(struct lr_criu_in *in, uint32_t *ret)
{
	if (in->end - in->at < (ptrdiff_t)sizeof(*ret))
		return false;
	memcpy(ret, in->at, sizeof(*ret));
	in->at += sizeof(*ret);
	return true;
}

int lr_criu_image_begin(struct lr_criu_in *in, uint32_t kind)
{
	uint32_t image, its;

	return get_u32(in, &image) && get_u32(in, &its) && image == IMAGE && its == kind ? 0
											 : -EBADMSG;
}

int lr_criu_image_next(struct lr_criu_in *in, struct lr_criu_in *ret)
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

int lr_criu_image_number(struct lr_criu_in in, uint64_t field, uint32_t *ret)
{
	struct lr_criu_field p;
	int r;

	*ret = 0;
	while ((r = lr_criu_next(&in, &p)) > 0) {
		if (p.number != field)
			continue;
		if (p.wire != LR_CRIU_WIRE_VARINT)
			return -EBADMSG;
		*ret = (uint32_t)p.value;
	}
	return r;
}

int lr_criu_image_wrong(const char *name, struct lr_err *err)
{
	return lr_refuse(err, EBADMSG, "%s is not understood", name);
}

int lr_criu_image_read(int dir, const char *name, struct lr_arena *a, struct lr_criu_in *ret,
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
