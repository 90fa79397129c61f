/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint: --fetch as text. In a file of its own: who needs this does not need criu. */
#define LR_ROOM "checkpoint"
#include <errno.h>
#include <string.h>

#include "src/base/str.h"
#include "src/checkpoint/checkpoint.h"

int lr_checkpoint_how(const char *fetch, struct lr_checkpoint_opts *o)
{
	static const char some[] = "prefetch:";

	o->prefetch_mib = 0;
	if (lr_has_prefix(fetch, some)) {
		const char *n = fetch + sizeof(some) - 1;
		if (lr_parse_u32(n, &o->prefetch_mib) < 0 || !o->prefetch_mib)
			return -EINVAL;
	} else if (strchr(fetch, ' ') || !lr_has_word("ondemand cache prefetch eager", fetch)) {
		return -EINVAL;
	}
	o->prefetch = o->prefetch_mib || lr_streq(fetch, "prefetch");
	o->eager = lr_streq(fetch, "eager");
	return 0;
}
