// SPDX-License-Identifier: GPL-2.0
/* The transport on one host: pages are copied from the seed. */
#include <linux/err.h>
#include <linux/highmem.h>

#include "internal.h"

static int local_read(struct lean_source *source, struct lean_batch *batch)
{
	struct lean_seed *seed = source->private;
	struct page *from;
	unsigned int i;

	down_read(&seed->lock);
	if (seed->revoked) {
		up_read(&seed->lock);
		lean_source_fail(source, LEAN_SEED_REVOKED, -EOWNERDEAD, batch->index[0], true);
		return -EOWNERDEAD;
	}
	for (i = 0; i < batch->count; i++) {
		from = seed->pages[batch->index[i]];
		if (from)
			copy_highpage(batch->page[i]->page, from);
		else
			clear_highpage(batch->page[i]->page);
	}
	up_read(&seed->lock);
	return 0;
}

static void local_free(struct lean_source *source)
{
	lean_seed_put(source->private);
}

static const struct lean_transport local_transport = {
	.read = local_read,
	.free = local_free,
};

int lean_local_open(void __user *user, size_t size)
{
	struct lean_seed_open arg;
	struct lean_seed *seed;
	int err = lean_copy_in(&arg, sizeof(arg), user, size);

	if (err)
		return err;
	seed = lean_seed_of_fd(arg.seed);
	if (PTR_ERR(seed) == -EINVAL)
		return lean_feed_open(arg.seed, arg.readahead);
	if (IS_ERR(seed))
		return PTR_ERR(seed);
	return lean_source_create(&local_transport, seed, seed->npages, arg.readahead);
}
