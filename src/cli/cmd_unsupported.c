/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli: verbs that are in the table so that callers can probe for their options (Podman runs
 * `checkpoint
 * --help` and `restore --lsm-mount-context`), and that refuse the work itself.
 */
#define LR_ROOM ""
#include <errno.h>

#include "src/cli/args.h"
#include "src/cli/commands.h"

static int refuse(const struct lr_cli_args *args, struct lr_err *err)
{
	return lr_refuse(err, EOPNOTSUPP, "%s is not supported in this version of %s",
			 args->verb->name, LR_CLI_NAME);
}

int lr_cmd_checkpoint(const struct lr_cli_args *args, struct lr_err *err)
{
	return refuse(args, err);
}

int lr_cmd_restore(const struct lr_cli_args *args, struct lr_err *err)
{
	return refuse(args, err);
}
