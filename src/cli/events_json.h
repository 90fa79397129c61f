/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LR_CLI_EVENTS_JSON_H
#define LR_CLI_EVENTS_JSON_H

#include "src/base/arena.h"
#include "src/stats/stats.h"

/*
 * cli: {"type":"stats","id":...,"data":{...}}, one line without its newline, with the member names
 * that containerd's go-runc and Docker decode. NULL when out of memory.
 */
char *lr_cli_stats_json(const char *id, const struct lr_stats *s, struct lr_arena *a);

#endif
