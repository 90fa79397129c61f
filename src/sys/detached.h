/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys: a file system that is mounted in no mount namespace: nobody finds it by a path, and it is gone with its
 * last descriptor, also when the process that holds it is killed.
 */
#ifndef LR_SYS_DETACHED_H
#define LR_SYS_DETACHED_H

#include "src/base/err.h"

/* Its root; the caller closes it. mode: of a tmpfs's root, octal digits; NULL: the file system's own. attributes:
 * MOUNT_ATTR_*. -errno; -ENOSYS before Linux 5.2. */
int lr_detached_open(const char *type, const char *mode, unsigned attributes) LR_MUST_CHECK;

#endif
