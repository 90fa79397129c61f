/* SPDX-License-Identifier: Apache-2.0 */
/* cli: values of options that people write by hand. All pure; 0, -EINVAL or -ERANGE. */
#ifndef LR_CLI_NUMBER_H
#define LR_CLI_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/err.h"

/* Flags of one letter that may share a word (-td); more are taken for a mistyped long option. */
#define LR_CLI_LETTERS_MAX 3

/* 1 0 t f T F true false True False TRUE FALSE, as Go's strconv.ParseBool. */
int lr_cli_parse_bool(const char *text, bool *ret) LR_MUST_CHECK;
/* 4096, 512m, 1GB, 2GiB, 1.5g: powers of 1024. -1 stands for "no limit". */
int lr_cli_parse_size(const char *text, int64_t *ret) LR_MUST_CHECK;
/* 5s, 500ms, 1m30s, 2h; a bare number is seconds. Milliseconds, at least 1. */
int lr_cli_parse_duration(const char *text, int64_t *ret_ms) LR_MUST_CHECK;

#endif
