/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint: private memory of a seed that goes to lean-forkd, by the kernel module (docs/module.md):
 * it keeps the pages of the twins, and nobody copies them. If anything about it fails, they are copied.
 */
#define LR_ROOM "checkpoint"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "kernel/include/uapi/lean_seed.h"

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/checkpoint/internal.h"
#include "src/forkctl/forkctl.h"

#ifdef __x86_64__
#include "src/seed/stretch.h"

#define DEVICE "/dev/lean-seed"

/* Whose limit there is: the pages that a seed keeps count against it, as long as the seed lives, and
 * those that the container writes meanwhile, too. */
static bool is_limited(const struct oci_config *c)
{
	const struct oci_resources *r = c->linux_ ? c->linux_->resources : NULL;

	return r && r->memory && r->memory->limit && *r->memory->limit > 0;
}

static void say_copied(const struct lr_err *why)
{
	char line[1200];

	lr_debug("checkpoint: memory is copied: %s", lr_err_format(why, line, sizeof(line)));
}

int lr_gift_may_export(struct lr_gift *g, const struct oci_config *config, struct lr_err *err)
{
	struct lr_err why = {0};

	int r = g->device = lr_open(DEVICE, O_RDWR | O_CLOEXEC);
	if (r < 0) {
		lr_fail(&why, errno, "open " DEVICE);
	} else if (is_limited(config)) {
		r = lr_refuse(&why, EDQUOT,
			      "linux.resources.memory.limit: what a seed keeps would "
			      "count against it");
	} else {
		r = lr_forkctl_exports(g->sock, &why);
		/* An answer that did not come may come yet, and would be taken for the next one's. */
		if (r < 0 && r != -ECONNREFUSED) {
			*err = why;
			return r;
		}
	}
	if (r >= 0)
		return 1;
	say_copied(&why);
	g->device = lr_close(g->device);
	return 0;
}

/* ---- what the module is asked for -------------------------------------------------------------- */

struct request {
	struct lean_seed_range *ranges;
	int32_t *pids;
};

static int make_request(const struct lr_seed_stretches *p, const pid_t *twins, size_t n,
			struct lr_arena *a, struct request *ret, struct lr_err *err)
{
	const struct request q = {lr_new_n(a, p->n, struct lean_seed_range),
				  lr_new_n(a, p->n, int32_t)};

	if (!q.ranges || !q.pids)
		return lr_fail(err, ENOMEM, "list the seed's pages");
	for (size_t i = 0; i < p->n; i++) {
		const struct lr_seed_stretch *x = &p->v[i];
		if (x->mm >= n)
			return lr_refuse(err, EPROTO, "the seed has more memories than twins");
		q.ranges[i].start = x->at ? x->start : LEAN_SEED_HOLE;
		q.ranges[i].length = x->pages * LR_SEED_PAGE;
		q.pids[i] = twins[x->mm];
	}
	*ret = q;
	return 0;
}

static int list(const struct lr_gift *g, struct lr_arena *a, struct lr_seed_stretches *ret,
		struct lr_err *err)
{
	uint64_t size = 0;
	void *bytes = NULL;
	struct lr_seed s;

	int r = lr_checkpoint_read_descriptor(g->descriptor, a, &bytes, &size, err);
	if (r >= 0)
		r = lr_seed_open(bytes, size, UINT64_MAX, &s, err);
	if (r < 0)
		return r;
	r = lr_seed_stretches(&s, a, ret);
	if (r < 0)
		return lr_fail(err, -r, "number the seed's pages");
	return ret->pages ? 0 : lr_refuse(err, ENODATA, "the seed has no memory of its own");
}

static int export(struct lr_gift *g, const pid_t *twins, size_t n, struct lr_arena *a,
		  struct lr_err *err)
{
	struct lr_seed_stretches p;
	struct request q;

	int r = list(g, a, &p, err);
	if (r >= 0)
		r = make_request(&p, twins, n, a, &q, err);
	if (r < 0)
		return r;
	if (p.n > UINT32_MAX)
		return lr_refuse(err, E2BIG, "the seed is in %zu parts", p.n);
	struct lean_seed_export arg = {.count = (uint32_t)p.n,
				       .ranges = (uint64_t)(uintptr_t)q.ranges,
				       .pids = (uint64_t)(uintptr_t)q.pids};
	g->exported = ioctl(g->device, LEAN_SEED_EXPORT, &arg);
	if (g->exported < 0)
		return lr_fail(err, errno, "give %llu pages to the kernel module",
			       (unsigned long long)(p.pages - p.zeros));
	lr_debug("checkpoint: the kernel module keeps %llu pages, none is copied",
		 (unsigned long long)(p.pages - p.zeros));
	return 0;
}

int lr_gift_export(void *gift, const pid_t *twins, size_t n, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_err why = {0};

	(void)err;
	if (export(gift, twins, n, a, &why) >= 0)
		return 1;
	say_copied(&why);
	return 0;
}
#endif
