/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture: what is in the container's own tmpfs, and in the upper layer of its root, which no twin
 * freezes: listed by a look, and copied while all is held.
 *
 * Of the upper layer only names are read, what is deleted or hides what lies below, and which names
 * are of one file. All else is read as the container sees it, by its root: so nothing goes along that
 * it could not read itself, whatever directory is taken for its upper layer.
 *
 * The container's processes may change all of it until they are held, and others may even then. So
 * every name is opened below the descriptor of the tmpfs, without links and without leaving it, and
 * what is read is what was opened.
 */
#ifndef LR_CAPTURE_TMPFS_H
#define LR_CAPTURE_TMPFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/err.h"
#include "src/seed/seed.h"

struct cap;

struct cap_node {
	struct lr_seed_node seed; /* parent, same: index in this tmpfs */
	char *name, *target;
	uint64_t inode, seen; /* as it is there; as the container sees it */
	uint8_t *attributes;
	size_t attributes_size;
	struct lr_seed_run *runs;
	size_t n_runs;
};

struct cap_tmpfs {
	const char *path;
	const char *called; /* in messages: "the tmpfs /t" */
	int fd;             /* of ours: its root, as the container sees it */
	int upper;          /* of the caller's: that layer; LR_NOFD: it is a tmpfs */
	uint64_t device;
	struct cap_node *nodes;
	size_t n;
	uint32_t *by_inode; /* index + 1, at a hash of the inode; 0: free */
	size_t places;
};

/* Opens and lists them; what can't be carried is refused. */
int cap_tmpfs_look(struct cap *c, struct lr_err *err);
/* The contents, while all is held: to the file of pages, before any memory. */
int cap_tmpfs_copy(struct cap *c, struct lr_err *err);
void cap_tmpfs_put(struct cap *c, struct lr_seed_writer *w);
void cap_tmpfs_close(struct cap *c);

/* Of the root's upper layer, where it is known and not carried: what processes use. */
void cap_changed_put(struct cap *c, struct lr_seed_writer *w);

bool cap_tmpfs_has(const struct cap *c, uint64_t device);
/* A path that the file has, as all in the container see it. NULL: it has none, or is in no such
 * tmpfs. */
const char *cap_tmpfs_path(const struct cap *c, uint64_t device, uint64_t inode);

#endif
