/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base: a search tree of nodes that lie in what they stand for. Nothing is allocated, and nothing is
 * taken out. It stays flat whatever is put in, in whatever order: what it looks like is by chance (a
 * treap), so that whoever chooses keys can't make it deep.
 */
#ifndef LR_BASE_TREE_H
#define LR_BASE_TREE_H

#include <stdint.h>

struct lr_tree_node {
	struct lr_tree_node *below[2];
	uint64_t weight;
};

/* Below 0, 0 or above it, as of qsort(3). */
typedef int lr_tree_order(void *arg, const struct lr_tree_node *a, const struct lr_tree_node *b);

/* The node that is equal to n: one that was there, or n itself, which is now. An empty tree is NULL. */
struct lr_tree_node *lr_tree_put(struct lr_tree_node **root, struct lr_tree_node *n,
				 lr_tree_order *order, void *arg);
/* The same; NULL: there is none. */
struct lr_tree_node *lr_tree_find(struct lr_tree_node *root, const struct lr_tree_node *n,
				  lr_tree_order *order, void *arg);

#endif
