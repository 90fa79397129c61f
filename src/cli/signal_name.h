/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LR_CLI_SIGNAL_NAME_H
#define LR_CLI_SIGNAL_NAME_H

#include "src/base/err.h"

/* cli: the number of "9", "KILL", "SIGKILL", "sigkill", "RTMIN+3"; -EINVAL. */
int lr_cli_signal(const char *text) LR_MUST_CHECK;

#endif
