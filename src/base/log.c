/* SPDX-License-Identifier: Apache-2.0 */
/* base: the log; see log.h. */
#include "src/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

enum lr_level lr_log_level = LR_WARN;
static lr_log_sink *sink;
static void *sink_arg;

void lr_log_set_sink(lr_log_sink *s, void *arg)
{
	sink = s;
	sink_arg = arg;
}

void lr_log_line(enum lr_level level, const char *fmt, ...)
{
	if (!sink)
		return;

	int saved = errno;
	char line[1024];
	va_list ap;
	va_start(ap, fmt);
	if (vsnprintf(line, sizeof(line), fmt, ap) >= 0)
		sink(level, line, sink_arg);
	va_end(ap);
	errno = saved;
}
