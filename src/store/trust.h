/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store: who could have written what is read; also for the pool of the lean profile.
 *
 * A record says which process gets a signal and which cgroup is removed, and that is done with the
 * caller's rights. So it counts only if nobody but the caller and root can have written it: not the
 * file, not its directory, not the root directory, and nothing on the way to that. (What belongs to
 * root in the file system of a container's image passes for root's, but can't be put in the place
 * of the root directory by anybody else.)
 */
#ifndef LR_STORE_TRUST_H
#define LR_STORE_TRUST_H

#include <stdbool.h>
#include <sys/stat.h>

#include "src/base/err.h"

/* Belongs to the caller or to root, and nobody else may write to it. */
bool lr_trust_ours(const struct stat *st);

/* Looks at a directory by its absolute path, and at everything on the way to it. 1: all is there,
 * and can be trusted; 0: not all is there, so look again when it has been made; -EPERM, with a hint
 * what to do. */
int lr_trust_path(const char *path, struct lr_err *err) LR_MUST_CHECK;

/* The same of a directory of checkpoint images, whose contents become processes: `what` is its
 * name in messages, as "the image directory". */
int lr_trust_images(const char *path, const char *what, struct lr_err *err) LR_MUST_CHECK;

/* -EPERM about a file or directory for which lr_trust_ours is false; _image: of a checkpoint's. */
int lr_trust_refuse_image(const struct stat *st, const char *what, const char *path,
			  struct lr_err *err);
int lr_trust_refuse(const struct stat *st, const char *what, const char *path, struct lr_err *err);

#endif
