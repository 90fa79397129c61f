/* SPDX-License-Identifier: Apache-2.0 */
/* sys: to do something in another mount namespace. */
#ifndef LR_SYS_VISIT_H
#define LR_SYS_VISIT_H

#include "src/base/err.h"

/*
 * Calls `what` at the root of that mount namespace, in a child, as nobody comes back from there by its own root. Its
 * descriptors are ours; its memory is a copy. 0, or the negative errno that it returned, or that kept us from it.
 */
int lr_visit(int ns, int (*what)(const void *arg), const void *arg) LR_MUST_CHECK;

#endif
