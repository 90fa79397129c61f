/* SPDX-License-Identifier: Apache-2.0 */
/* cli: mounts add, mounts remove. */
#define LR_ROOM "mounts"
#include <errno.h>

#include "libocispec/ocispec.h"
#include "src/base/str.h"
#include "src/cli/commands.h"
#include "src/cli/runtime.h"

int lr_cmd_mounts(const struct lr_cli_args *args, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
	const char *what = args->operands[0], *id = args->operands[1], *file = args->operands[2];
	bool add = lr_streq(what, "add");
	struct lr_cli_runtime run;
	struct oci_mounts mounts;
	char *text;
	size_t len;

	if (!arena)
		return lr_fail(err, ENOMEM, "mounts");
	if (!add && !lr_streq(what, "remove"))
		return lr_refuse(err, EINVAL, "unknown command \"%s\": add or remove", what);
	int r = lr_cli_runtime(args, &run, err);
	if (r == 0)
		r = oci_read_input(file, arena, &text, &len, err);
	if (r == 0)
		r = oci_mounts_decode(text, len, arena, &mounts, err);
	return r < 0 ? r : lr_lifecycle_mounts(&run.rt, id, &mounts, add, err);
}
