/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys: resolving a path below a root by hand, for kernels and filters without openat2(2).
 * Internal to src/sys; everyone else uses path.h.
 */
#ifndef LR_SYS_PATH_WALK_H
#define LR_SYS_PATH_WALK_H

#include <stdbool.h>
#include <sys/types.h>

/* As lr_open_in (links: true) and lr_open_in_nolinks (links: false). */
int lr_path_walk(int rootfd, const char *path, int flags, mode_t mode, bool links);

#endif
