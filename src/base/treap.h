/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base: a search tree of nodes that lie in what they stand for. Nothing is allocated, and nothing is
 * taken out. Its shape is by chance (a treap): whoever chooses what is put in, and in which order,
 * can't make it deep.
 */
#ifndef LR_BASE_TREAP_H
#define LR_BASE_TREAP_H

#include <stdint.h>

struct lr_treap_node {
	struct lr_treap_node *below[2];
	uint64_t weight;
};

/* Below 0, 0 or above it, as of qsort(3). */
typedef int lr_treap_order(void *arg, const struct lr_treap_node *a, const struct lr_treap_node *b);

/* Puts n in, if the tree has none that is equal. Returns the one that is in now. An empty tree is NULL. */
struct lr_treap_node *lr_treap_put(struct lr_treap_node **root, struct lr_treap_node *n,
				   lr_treap_order *order, void *arg);
/* The node that is equal to n, or NULL. */
struct lr_treap_node *lr_treap_find(struct lr_treap_node *root, const struct lr_treap_node *n,
				    lr_treap_order *order, void *arg);

#endif
