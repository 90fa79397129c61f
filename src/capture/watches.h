/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture: watches of inotify. The kernel tells of each which inode it is of, and no path. So a path is
 * looked for while the processes run, which may take a while; when they are held, it is looked at alone
 * whether it still leads there.
 */
#ifndef LR_CAPTURE_WATCHES_H
#define LR_CAPTURE_WATCHES_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/arena.h"
#include "src/base/err.h"

struct cap;
struct cap_process;
struct cap_file;

/* Who reads a directory or a file, as we do, is told to these. */
#define CAP_WATCH_READS (IN_ACCESS | IN_OPEN | IN_CLOSE_NOWRITE)

/* A line of fdinfo. */
struct cap_told {
	unsigned number, mask;
	uint64_t inode, device; /* device: of the file system, as makedev(3) has it */
	const char *key;        /* number, file system and handle: what no other inode has */
};

struct cap_watched {
	struct cap_told told; /* mask: of all watches of it */
	bool searched;
	char *path;                       /* in the container's root; NULL: none was found */
	uint64_t path_device, path_inode; /* as stat(2) has them there */
	uint32_t type;                    /* S_IFDIR and so on */
};

/* What is known of them, from one attempt to the next. */
struct cap_paths {
	struct lr_arena *a;
	bool all_told; /* the kernel tells IN_ONESHOT and IN_EXCL_UNLINK of a watch (Linux 5.19) */
	struct cap_watched *v; /* by inode and key */
	size_t n;
};

/* Pure: the watch that the line is of. False: it is none, or there is no memory. */
bool cap_watch_told(struct lr_arena *a, const char *line, struct cap_told *ret);

/* While the processes run: paths of all that they watch, for c->paths. */
int cap_watches_find(struct cap *c, struct lr_err *err);
/* search.c: paths for those that have not been searched for; root: the container's. */
int cap_watches_search(struct cap *c, int root, struct lr_err *err);
/* Of one descriptor, with what fdinfo has; refuses what can't be carried. */
void cap_watches_look(struct cap *c, const struct cap_process *p, int fd, const char *info,
		      struct cap_file *f);

/* The container's root, as an O_PATH descriptor of ours; or a negative errno. */
int cap_watches_root(const struct cap *c);

#endif
