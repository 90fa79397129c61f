/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys: opening paths that a container may have prepared.
 *
 * A root file descriptor (O_PATH or a directory) stands for the container's root; no path given
 * here can lead out of it, whatever symbolic links it holds: openat2(2) with RESOLVE_IN_ROOT, and
 * where the kernel or a filter refuses openat2 (ENOSYS, EPERM), a walk component by component with
 * O_NOFOLLOW that resolves links itself. Both give the same result (tested). Every descriptor is
 * close-on-exec. Results are >= 0 or -errno.
 */
#ifndef LR_SYS_PATH_H
#define LR_SYS_PATH_H

#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "src/base/err.h"

/* Opens `path` as seen from `rootfd` as "/". Symlinks are followed inside the root; procfs magic
 * links never are. mode counts with O_CREAT. */
int lr_open_in(int rootfd, const char *path, int flags, mode_t mode) LR_MUST_CHECK;

/* The same, but any symbolic link on the way is -ELOOP. */
int lr_open_in_nolinks(int rootfd, const char *path, int flags, mode_t mode) LR_MUST_CHECK;

/* Opens `path` below `dir`, through no link and into no other mount: -ELOOP, -EXDEV. A link that is
 * the last component can be opened with O_PATH. -ENOSYS where there is no openat2(2). */
int lr_open_beneath(int dir, const char *path, int flags) LR_MUST_CHECK;

/*
 * Makes every missing directory of `path` (mode `mode`, umask applies), and returns an O_PATH
 * descriptor of the last. Existing components may be symlinks (resolved inside the root).
 */
int lr_mkdir_in(int rootfd, const char *path, mode_t mode) LR_MUST_CHECK;

/* Makes missing parent directories (0755) and an empty regular file if nothing is there; returns
 * an O_PATH descriptor of what is there then. */
int lr_mkfile_in(int rootfd, const char *path, mode_t mode) LR_MUST_CHECK;

/* File system magic (statfs f_type) of an open descriptor, or -errno. */
long lr_fs_magic(int fd) LR_MUST_CHECK;

/* mkdir -p by string, for the runtime's own directories (host paths that root controls). */
int lr_mkdir_p(const char *path, mode_t mode) LR_MUST_CHECK;

/* Removes a directory tree of the runtime's own, never crossing a mount or following a link. */
int lr_remove_tree(int dirfd, const char *name) LR_MUST_CHECK;

/* Forces the openat2 fallback (tests). */
extern bool lr_path_no_openat2;

/* Whether a path that the kernel has of an open file, which has no links in it, leads to that file from our root. */
bool lr_path_leads_to(const char *path, const struct stat *st);

#endif
