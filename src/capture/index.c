/* SPDX-License-Identifier: Apache-2.0 */
/* capture: what is looked up by number. Processes are held meanwhile, so it must not take longer for each the
 * more of them there are. */
#define LR_ROOM "capture"
#include <errno.h>
#include <stddef.h>

#include "src/capture/state.h"

struct entry {
	struct lr_treap_node node;
	uint64_t of, number;
	size_t at;
};

static const struct entry *entry_of(const struct lr_treap_node *n)
{
	return (const void *)((const char *)n - offsetof(struct entry, node));
}

static int by_number(void *arg, const struct lr_treap_node *a, const struct lr_treap_node *b)
{
	const struct entry *x = entry_of(a), *y = entry_of(b);

	(void)arg;
	if (x->of != y->of)
		return x->of < y->of ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

bool cap_index_find(const struct cap_index *i, uint64_t of, uint64_t number, size_t *ret)
{
	const struct entry wanted = {.of = of, .number = number};
	const struct lr_treap_node *n = lr_treap_find(i->root, &wanted.node, by_number, NULL);

	if (n && ret)
		*ret = entry_of(n)->at;
	return n;
}

int cap_index_put(struct lr_arena *a, struct cap_index *i, uint64_t of, uint64_t number, size_t at)
{
	struct entry *e = lr_new(a, struct entry);

	if (!e)
		return -ENOMEM;
	*e = (struct entry){.of = of, .number = number, .at = at};
	lr_treap_put(&i->root, &e->node, by_number, NULL);
	return 0;
}
