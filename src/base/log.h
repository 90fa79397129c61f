/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base: the log. Libraries call lr_debug (what happens, for --debug) and lr_warn (a property is
 * honoured in part, which the specification lets us do); they never report errors here, they
 * return them. Where lines go is decided by the one sink that the CLI installs; without a sink
 * nothing is formatted. The level check is inline: a disabled line costs a load and a branch.
 */
#ifndef LR_BASE_LOG_H
#define LR_BASE_LOG_H

#include "src/base/err.h"

enum lr_level { LR_ERROR, LR_WARN, LR_INFO, LR_DEBUG };

typedef void lr_log_sink(enum lr_level level, const char *line, void *arg);

extern enum lr_level lr_log_level; /* lines above it are dropped; starts at LR_WARN */
void lr_log_set_sink(lr_log_sink *sink, void *arg);
void lr_log_line(enum lr_level level, const char *fmt, ...) LR_PRINTF(2, 3);

#define lr_log(level, ...)                                                                         \
	do {                                                                                       \
		if ((level) <= lr_log_level)                                                       \
			lr_log_line((level), __VA_ARGS__);                                         \
	} while (0)
#define lr_debug(...) lr_log(LR_DEBUG, __VA_ARGS__)
#define lr_warn(...)  lr_log(LR_WARN, __VA_ARGS__)

#endif
