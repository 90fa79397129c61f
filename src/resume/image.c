/* SPDX-License-Identifier: Apache-2.0 */
/* resume: see image.h. */
#define LR_ROOM "resume"
#include "src/resume/image.h"

#include <string.h>

uint64_t image_room(struct image *m, size_t size, size_t align, void **ret)
{
	static uint8_t nowhere[65536];
	size_t at = (m->used + align - 1) & ~(align - 1);

	if (at > m->size || size > m->size - at || m->failed) {
		m->failed = true;
		if (ret)
			*ret = nowhere;
		return m->at;
	}
	m->used = at + size;
	if (ret)
		*ret = m->bytes + at;
	return m->at + at;
}

uint64_t image_put(struct image *m, const void *bytes, size_t size)
{
	void *to;
	uint64_t at = image_room(m, size, 16, &to);

	if (!m->failed && size)
		memcpy(to, bytes, size);
	return at;
}

void image_op(struct lr_resume_ops *ops, int nr, unsigned flags, uint64_t a0, uint64_t a1,
	      uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5)
{
	struct blob_op *v = lr_grow(ops->image->a, ops->v, ops->n, sizeof(*v));

	if (!v) {
		ops->image->failed = true;
		return;
	}
	ops->v = v;
	v[ops->n++] = (struct blob_op){nr, flags, {a0, a1, a2, a3, a4, a5}};
}

uint64_t image_list(struct lr_resume_ops *ops, uint64_t head, uint64_t which)
{
	struct blob_list l = {.head = head, .n = ops->n, .which = which};

	l.ops = image_put(ops->image, ops->v, ops->n * sizeof(*ops->v));
	return image_put(ops->image, &l, sizeof(l));
}

int image_check(const struct image *m, struct lr_err *err)
{
	return m->failed ? lr_fail(err, ENOMEM, "lay out the restorer") : 0;
}

int lr_resume_add(struct lr_resume_ops *ops, long nr, uint64_t a0, uint64_t a1, uint64_t a2,
		  uint64_t a3, uint64_t a4, uint64_t a5)
{
	image_op(ops, (int)nr, 0, a0, a1, a2, a3, a4, a5);
	return ops->image->failed ? -ENOMEM : 0;
}

uint64_t lr_resume_data(struct lr_resume_ops *ops, const void *bytes, size_t n)
{
	return image_put(ops->image, bytes, n);
}
