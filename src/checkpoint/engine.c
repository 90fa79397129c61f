/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint: which engines there are, and what is refused for all of them. */
#define LR_ROOM "checkpoint"
#include <errno.h>
#include <string.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/checkpoint/internal.h"

/* The usual one first. */
static const struct lr_checkpoint_engine *const engines[] = {&lr_checkpoint_criu};

int lr_checkpoint_engine(const char *name, const struct lr_checkpoint_engine **ret,
			 struct lr_err *err)
{
	for (size_t i = 0; i < LR_ARRAY_SIZE(engines); i++)
		if (!name || lr_streq(engines[i]->name, name)) {
			*ret = engines[i];
			return 0;
		}
	return lr_refuse(err, EINVAL, "there is no engine \"%.32s\" to checkpoint with", name);
}

int lr_checkpoint_check(const struct lr_checkpoint_opts *o, struct lr_err *err)
{
	if (o->parent_path && o->parent_path[0] == '/') {
		lr_refuse(err, EINVAL, "--parent-path %.128s is absolute", o->parent_path);
		return lr_err_hint(err, "it counts from --image-path: ../NAME for a directory "
					"beside it");
	}
	if (o->status_fd >= 0 && !o->lazy_pages)
		return lr_refuse(err, EINVAL, "--status-fd goes with --lazy-pages");
	return 0;
}
