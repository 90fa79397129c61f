/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forkd: descriptors that come by the local socket, and whether they are what they are said to be.
 * Who sends them is root, but may be confined to a container, or wrong: what it names must not be
 * opened, written to, waited for or ended with more rights than its own.
 */
#ifndef LR_FORKD_GIVEN_H
#define LR_FORKD_GIVEN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "src/base/err.h"

/* 1, 0, or -errno if nobody can say. System calls only. */
int given_is_uffd(int fd);
/* One that tells of everything that changes what is missing, and never makes us wait. */
bool given_tells_all(int uffd);
/* A directory of a cgroup file system of version 2. */
bool given_is_cgroup(int fd);
/* The process, as we see it, is in that cgroup. */
bool given_is_member(int cgroup, pid_t pid);
/* A file in memory that nobody can change any more. */
bool given_is_sealed(int fd);
/* One that is, with these bytes. */
int given_make(const void *bytes, size_t n, struct lr_err *err);
/* A seed of the kernel module: nobody can change its pages. */
bool given_is_exported(int fd);
/* One that nobody can make shorter or longer. */
bool given_keeps_size(int fd);

#endif
