/* SPDX-License-Identifier: Apache-2.0 */
/* resume: memory that comes when it is touched: userfaultfd(2), whose descriptor goes to whoever
 * has the pages, or a source of the kernel module, which is mapped. */
#define LR_ROOM "resume"
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/resume/resuming.h"
#include "src/sys/socket.h"

/* What a program does to memory that has not come yet has to be known to whoever fills it. */
#define FEATURES                                                                                   \
	(UFFD_FEATURE_EVENT_FORK | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE |          \
	 UFFD_FEATURE_EVENT_UNMAP)

static int hand_over(const struct one *x, struct lr_err *err)
{
	const struct lr_resume_lazy what = {.index = x->index};
	int r = lr_socket_send_fd(x->r->lazy, x->uffd, (const char *)&what, sizeof(what));

	return r < 0 ? lr_fail(err, -r, "hand the memory over to whoever has its pages") : 0;
}

int lazy_begin(struct one *x, struct lr_err *err)
{
	struct uffdio_api api = {.api = UFFD_API, .features = FEATURES};

	x->uffd = LR_NOFD;
	if (x->r->lazy < 0)
		return 0;
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		lr_fail(err, errno, "open userfaultfd");
		return lr_err_hint(err, "it takes CAP_SYS_PTRACE; --fetch=eager does without");
	}
	if (ioctl(fd, UFFDIO_API, &api) < 0) {
		int r = lr_fail(err, errno, "ask userfaultfd for events");
		lr_close(fd);
		return r;
	}
	x->uffd = resume_keep(x->r, fd, err);
	return x->uffd < 0 ? x->uffd : hand_over(x, err);
}

bool lazy_is(const struct one *x, const struct lr_seed_vma *v)
{
	return x->uffd >= 0 && lr_seed_may_wait(v);
}

const struct lr_seed_span *lazy_span(const struct one *x, const struct lr_seed_vma *v)
{
	return x->r->source < 0 ? NULL : lr_seed_span_at(&x->r->spans, x->p->mm, v->start);
}

void lazy_plan(struct one *x, struct lr_resume_ops *ops, const struct lr_seed_vma *v)
{
	const struct uffdio_register r = {.range = {v->start, v->end - v->start},
					  .mode = UFFDIO_REGISTER_MODE_MISSING};

	image_op(ops, SYS_ioctl, 0, (uint64_t)x->uffd, UFFDIO_REGISTER,
		 image_put(&x->image, &r, sizeof(r)), 0, 0, 0);
}
