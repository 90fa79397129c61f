/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: a search tree. */
#include <stddef.h>
#include <stdlib.h>

#include "src/base/treap.h"
#include "tests/unit/test.h"

struct number {
	struct lr_treap_node node;
	unsigned value;
};

static const struct number *number_of(const struct lr_treap_node *n)
{
	return (const void *)((const char *)n - offsetof(struct number, node));
}

/* arg: how often it is asked. */
static int by_value(void *arg, const struct lr_treap_node *a, const struct lr_treap_node *b)
{
	const unsigned x = number_of(a)->value, y = number_of(b)->value;

	++*(size_t *)arg;
	return x < y ? -1 : x > y;
}

static size_t depth(const struct lr_treap_node *n)
{
	const size_t left = n ? depth(n->below[0]) : 0, right = n ? depth(n->below[1]) : 0;

	return n ? 1 + (left > right ? left : right) : 0;
}

TEST(what_was_put_in_is_found)
{
	struct number v[1000] = {0}, again = {.value = 500}, other = {.value = 1};
	struct lr_treap_node *root = NULL;
	size_t asked = 0;

	CHECK(!lr_treap_find(root, &other.node, by_value, &asked));
	for (unsigned i = 0; i < 1000; i++) {
		v[i].value = i * 7919 % 1000 * 2;
		CHECK(lr_treap_put(&root, &v[i].node, by_value, &asked) == &v[i].node);
	}
	for (unsigned i = 0; i < 1000; i++)
		CHECK(lr_treap_find(root, &v[i].node, by_value, &asked) == &v[i].node);
	CHECK(!lr_treap_find(root, &other.node, by_value, &asked));
	const struct lr_treap_node *was = lr_treap_put(&root, &again.node, by_value, &asked);
	CHECK(was != &again.node && number_of(was)->value == 500);
}

/* The worst that a plain tree can have. */
TEST(nobody_makes_it_deep)
{
	const unsigned many = 100000;
	struct number *v = calloc(many, sizeof(*v));
	struct lr_treap_node *root = NULL;
	size_t asked = 0;

	REQUIRE(v);
	for (unsigned i = 0; i < many; i++) {
		v[i].value = i;
		lr_treap_put(&root, &v[i].node, by_value, &asked);
	}
	CHECK(depth(root) < 100);
	CHECK(asked < many * 40);
	free(v);
}
