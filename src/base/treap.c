/* SPDX-License-Identifier: Apache-2.0 */
/* base: a search tree; see treap.h. */
#include "src/base/treap.h"

#include <string.h>
#include <sys/auxv.h>

/* Of its address, and of a random number of the kernel's that nobody else knows (splitmix64). */
static uint64_t chance(const struct lr_treap_node *n)
{
	const void *secret = (const void *)getauxval(AT_RANDOM);
	uint64_t z = 0;

	if (secret)
		memcpy(&z, secret, sizeof(z));
	z += (uintptr_t)n * UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* Each is heavier than those below it. */
static struct lr_treap_node *put(struct lr_treap_node **at, struct lr_treap_node *n,
				 lr_treap_order *order, void *arg)
{
	struct lr_treap_node *top = *at;

	if (!top)
		return *at = n;
	const int r = order(arg, n, top);
	if (!r)
		return top;
	const int side = r > 0;
	struct lr_treap_node *found = put(&top->below[side], n, order, arg);
	struct lr_treap_node *heavy = top->below[side];
	if (heavy->weight > top->weight) {
		top->below[side] = heavy->below[!side];
		heavy->below[!side] = top;
		*at = heavy;
	}
	return found;
}

struct lr_treap_node *lr_treap_put(struct lr_treap_node **root, struct lr_treap_node *n,
				   lr_treap_order *order, void *arg)
{
	*n = (struct lr_treap_node){.weight = chance(n)};
	return put(root, n, order, arg);
}

struct lr_treap_node *lr_treap_find(struct lr_treap_node *root, const struct lr_treap_node *n,
				    lr_treap_order *order, void *arg)
{
	for (int r; root; root = root->below[r > 0]) {
		r = order(arg, n, root);
		if (!r)
			break;
	}
	return root;
}
