/* SPDX-License-Identifier: Apache-2.0 */
/* sys: tables of descriptors; see tables.h. */
#include "src/sys/tables.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As in <linux/kcmp.h>, which not every system has. */
#define KCMP_FILES 2

static pid_t pid_of(const struct lr_treap_node *n)
{
	return ((const struct lr_table *)((uintptr_t)n - offsetof(struct lr_table, node)))->pid;
}

static int by_table(void *arg, const struct lr_treap_node *a, const struct lr_treap_node *b)
{
	(void)arg;
	const long r = syscall(SYS_kcmp, pid_of(a), pid_of(b), KCMP_FILES, 0, 0);

	return r == 0 ? 0 : r == 1 ? -1 : 1;
}

bool lr_tables_add(struct lr_tables *all, struct lr_table *t, pid_t pid)
{
	t->pid = pid;
	return lr_treap_put(&all->root, &t->node, by_table, NULL) == &t->node;
}
