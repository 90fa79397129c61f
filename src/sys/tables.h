/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys: tables of descriptors, which processes may share (CLONE_FILES of clone(2)): thousands of processes may have one
 * with a million descriptors, and whoever looks at each process's looks at it thousands of times.
 */
#ifndef LR_SYS_TABLES_H
#define LR_SYS_TABLES_H

#include <stdbool.h>
#include <sys/types.h>

#include "src/base/treap.h"

/* Of a process; the caller's memory, which stays. */
struct lr_table {
	struct lr_treap_node node;
	pid_t pid;
};

/* Empty: {0}. */
struct lr_tables {
	struct lr_treap_node *root;
};

/*
 * False: a process that was added before has the same table, as far as its number is still its own, so whoever has
 * looked at that one has seen this one's. Where kcmp(2) can't tell, it is another table.
 */
bool lr_tables_add(struct lr_tables *all, struct lr_table *t, pid_t pid);

#endif
