/* SPDX-License-Identifier: Apache-2.0 */
/* seed: by what a mapped file is known again; see seed.h. */
#include <errno.h>
#include <unistd.h>

#include "src/base/str.h"
#include "src/seed/seed.h"

static int add_page(int fd, off_t at, uint64_t *sum)
{
	uint8_t page[LR_SEED_PAGE];
	ssize_t n = pread(fd, page, sizeof(page), at);

	if (n < 0)
		return -errno;
	*sum = lr_hash(*sum, page, (size_t)n);
	return 0;
}

int lr_seed_sum_file(int fd, uint64_t size, uint64_t *ret)
{
	*ret = LR_HASH;
	int r = add_page(fd, 0, ret);
	return r < 0 || size <= LR_SEED_PAGE ? r : add_page(fd, (off_t)(size - LR_SEED_PAGE), ret);
}
