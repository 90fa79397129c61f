/* SPDX-License-Identifier: Apache-2.0 */
/* cli: a growing text and its way to standard output. */
#define LR_ROOM ""
#include "src/cli/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/fd.h"

static bool reserve(struct lr_cli_buf *b, size_t more)
{
	if (b->failed)
		return false;
	if (b->size - b->len > more)
		return true;
	size_t size = (b->len + more + 1) * 2;
	char *data = realloc(b->data, size < 4096 ? 4096 : size);
	if (!data) {
		b->failed = true;
		return false;
	}
	b->data = data;
	b->size = size < 4096 ? 4096 : size;
	return true;
}

void lr_cli_puts(struct lr_cli_buf *b, const char *text)
{
	size_t n = strlen(text);

	if (!reserve(b, n))
		return;
	memcpy(b->data + b->len, text, n + 1);
	b->len += n;
}

void lr_cli_put(struct lr_cli_buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0 || !reserve(b, (size_t)n)) {
		b->failed = true;
		return;
	}
	va_start(ap, fmt);
	vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
}

void lr_cli_buf_free(struct lr_cli_buf *b)
{
	free(b->data);
	*b = (struct lr_cli_buf){0};
}

int lr_cli_print(const char *text, size_t len, struct lr_err *err)
{
	ssize_t r = lr_write_full(STDOUT_FILENO, text, len);

	return r < 0 ? lr_fail(err, (int)-r, "standard output") : 0;
}

int lr_cli_flush(struct lr_cli_buf *b, struct lr_err *err)
{
	int r = b->failed ? lr_fail(err, ENOMEM, "standard output")
			  : lr_cli_print(b->data ? b->data : "", b->len, err);

	b->len = 0;
	return r;
}
