/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli: the table as documents. Only lean-runtime-doc, a program of the build, contains this; it
 * writes the man page and the completions of three shells.
 */
#ifndef LR_CLI_DOC_H
#define LR_CLI_DOC_H

#include "src/cli/buf.h"

/* The man page's generated parts, each by its name in the template. False: no such part. */
bool lr_cli_doc_man_part(const char *part, struct lr_cli_buf *out);

void lr_cli_doc_bash(struct lr_cli_buf *out);
void lr_cli_doc_zsh(struct lr_cli_buf *out);
void lr_cli_doc_fish(struct lr_cli_buf *out);

#endif
