/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys: a procfs nobody can have tampered with (CVE-2025-52881).
 *
 * Writes below /proc (id maps, LSM labels, sysctl, oom_score_adj, setgroups, time offsets) go
 * through a procfs of our own, mounted detached by fsopen(2), never through a path string that a
 * container may have covered. Where fsopen is refused (older kernels, nested hosts), /proc is
 * opened instead and verified to be a procfs root (magic, inode 1), and every file opened below it
 * is checked to be on procfs and reached without crossing a mount.
 */
#ifndef LR_SYS_PROCFS_H
#define LR_SYS_PROCFS_H

#include <stddef.h>
#include <sys/types.h>

#include "src/base/err.h"

/*
 * A directory descriptor of a verified procfs for the *caller's* pid namespace, close-on-exec.
 * The caller closes it. -errno with *err filled.
 */
int lr_procfs_open(struct lr_err *err) LR_MUST_CHECK;

/* Opens `path` ("self/attr/exec", "123/uid_map", "sys/net/ipv4/ip_forward") below that descriptor;
 * no symlink but "self"/"thread-self" at the front, no mount crossing. >= 0 or -errno. */
int lr_procfs_openat(int procfd, const char *path, int flags) LR_MUST_CHECK;

/* Opens for writing, writes once, closes. 0 or -errno. */
int lr_procfs_write(int procfd, const char *path, const char *text, size_t len) LR_MUST_CHECK;

/* Follows a magic link ("self/ns/net", "self/fd/7", "123/root") on purpose; the file system of what
 * it leads to is the caller's to check. >= 0 or -errno. */
int lr_procfs_open_magic(int procfd, const char *path, int flags) LR_MUST_CHECK;

#endif
