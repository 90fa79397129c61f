/* SPDX-License-Identifier: Apache-2.0 */
/* cli: help, made from the table. */
#ifndef LR_CLI_HELP_H
#define LR_CLI_HELP_H

#include "src/cli/buf.h"
#include "src/cli/table.h"

/* Help on one verb, or with NULL the list of all and the global options. */
void lr_cli_help(const struct lr_cli_verb *verb, struct lr_cli_buf *out);
/* The three lines of --version. */
void lr_cli_version(struct lr_cli_buf *out);
const char *lr_cli_commit(void);

#endif
