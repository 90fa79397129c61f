/* SPDX-License-Identifier: Apache-2.0 */
/* sys: a program of the system's that does something for us, and no part of a start that is fast.
 */
#ifndef LR_SYS_TOOL_H
#define LR_SYS_TOOL_H

#include "src/base/err.h"

#define LR_TOOL_SAID 256

/*
 * Runs argv[0], a bare name, and waits until it has ended. It is looked for where systems have such
 * programs: PATH may be missing (some callers clear it), and should not be trusted. Its environment
 * is empty, and no signal blocked. What it prints is part of our one error, and no line of its own for callers to trip
 * over: said is its first line, "" if there is none. keep: a descriptor that it keeps open, for a
 * lock that is to last as long as it does; or LR_NOFD. Returns its exit status, 128 + the signal
 * that ended it, or -errno; -ENOENT: there is no such program.
 */
int lr_tool_run(const char *const argv[], int keep, char said[LR_TOOL_SAID]) LR_MUST_CHECK;

#endif
