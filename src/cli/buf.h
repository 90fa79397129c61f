/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli: text for the user, gathered and written by one write(2), so that output is whole or absent
 * and costs one system call. Running out of memory is remembered and told by the flush.
 */
#ifndef LR_CLI_BUF_H
#define LR_CLI_BUF_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/err.h"

struct lr_cli_buf {
	char *data;
	size_t len, size;
	bool failed;
};

void lr_cli_put(struct lr_cli_buf *b, const char *fmt, ...) LR_PRINTF(2, 3);
void lr_cli_puts(struct lr_cli_buf *b, const char *text);
void lr_cli_buf_free(struct lr_cli_buf *b);
#define LR_CLEANUP_BUF __attribute__((cleanup(lr_cli_buf_free)))

/* Writes to standard output and empties the buffer. 0 or -errno with *err filled. */
int lr_cli_flush(struct lr_cli_buf *b, struct lr_err *err) LR_MUST_CHECK;
/* The same for a text in hand. */
int lr_cli_print(const char *text, size_t len, struct lr_err *err) LR_MUST_CHECK;

#endif
