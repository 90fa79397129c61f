/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: where it was built without the headers of librdmacm and libibverbs: pages go by TCP. */
#define LR_ROOM "forkd"
#include "src/forkd/direct.h"
#include "src/forkd/outlet.h"

void outlet_open(struct held *h, int fd, struct outlet **o, struct lr_wire_msg *answer)
{
}

void outlet_enter(struct outlet *o, struct lr_wire_msg *answer)
{
}

void outlet_close(struct outlet *o)
{
}

void outlets_end(const struct held *h)
{
}

void outlets_clean(void)
{
}

int direct_check(struct lr_err *err)
{
	return lr_refuse(err, ENOTSUP,
			 "no RDMA: lean-forkd was built without it (Debian: libibverbs-dev, "
			 "librdmacm-dev)");
}

int direct_connect(struct link *control, uint64_t pages, struct direct **ret, struct lr_err *err)
{
	link_close(control);
	return direct_check(err);
}

int direct_read(struct direct *d, const struct lr_wire_range *v, size_t n, uint8_t *to,
		struct lr_err *err)
{
	return direct_check(err);
}

void direct_close(struct direct *d)
{
}
