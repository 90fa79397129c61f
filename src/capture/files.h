/* SPDX-License-Identifier: Apache-2.0 */
/* capture: descriptors of others. */
#ifndef LR_CAPTURE_FILES_H
#define LR_CAPTURE_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A descriptor of ours for the same open file, or a negative errno. */
int cap_borrow(pid_t pid, int fd);

/* The inode of the other end of a Unix socket in the network namespace of that process; 0: it has
 * none, or a name, or it can't be known. */
uint64_t cap_unix_peer(pid_t pid, uint64_t inode);

struct cap;
struct cap_file;
/* sockets.c: a socket that is of no pair, by a descriptor of ours. Returns why it can't be carried, or
 * NULL. */
const char *cap_endpoint_look(struct cap *c, struct cap_file *f, int fd);

#endif
