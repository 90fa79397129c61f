/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli: where the log goes.
 *
 * --log names a file (appended to, made with mode 0644), "file:PATH", "journald:NAME" or
 * "syslog:NAME"; without it entries go to standard error. A file holds lines of
 *   text   time="2026-01-02T03:04:05Z" level=error msg="..."
 *   json   {"level":"error","msg":"...","time":"2026-01-02T03:04:05Z"}
 * which is what containerd, Docker and Podman read back. Each entry is one write(2).
 *
 * Podman parses the whole of a JSON log as one object, so at the default level only the one
 * error that ends the program is written there; warnings join it when a level is asked for.
 */
#ifndef LR_CLI_LOG_SINK_H
#define LR_CLI_LOG_SINK_H

#include "src/base/log.h"
#include "src/cli/args.h"

/* Opens what the globals ask for and installs the sink. 0 or -errno with *err filled; errors then
 * go to standard error. */
int lr_cli_log_open(const struct lr_cli_args *args, struct lr_err *err) LR_MUST_CHECK;

/* The one error that ends the program: to the log, and to standard error in any case. */
void lr_cli_report(const struct lr_err *err);

/* One entry with its newline; cut to what fits. Returns its length. For the tests, too. */
size_t lr_cli_log_text(enum lr_level level, const char *msg, int64_t unix_time, char *buf,
		       size_t size);
size_t lr_cli_log_json(enum lr_level level, const char *msg, int64_t unix_time, char *buf,
		       size_t size);

#endif
