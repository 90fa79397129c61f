/* SPDX-License-Identifier: Apache-2.0 */
/* lean: fingerprints of network namespaces; internal to src/lean. */
#ifndef LR_LEAN_PROVE_H
#define LR_LEAN_PROVE_H

#include "src/lean/internal.h"

#define LR_LEAN_PRINT_MAX 16384

/* Of the caller's namespace. Its length, or -errno. */
int lr_lean_net_print(char *buf, size_t size) LR_MUST_CHECK;
/* True if the print of that namespace is this one. The caller stays where it is. */
bool lr_lean_net_is_new(int netns, const char *print, struct lr_arena *a);

#endif
