/* SPDX-License-Identifier: Apache-2.0 */
/* seed: what is in the tmpfs of a container, and in the upper layer of its root: whether it can be
 * there, and where it is. */
#define LR_ROOM "seed"
#include <string.h>
#include <sys/stat.h>

#include "src/base/str.h"
#include "src/seed/check.h"

bool lr_seed_next_attribute(const uint8_t **at, uint64_t *left, struct lr_seed_attribute_at *ret)
{
	struct lr_seed_attribute head;

	if (*left < sizeof(head))
		return false;
	memcpy(&head, *at, sizeof(head));
	uint64_t size = ((uint64_t)head.name + head.value + 3) & ~UINT64_C(3);
	if (!head.name || size > *left - sizeof(head))
		return false;
	const char *name = (const char *)*at + sizeof(head);
	if (strnlen(name, head.name) != head.name - 1)
		return false;
	*ret = (struct lr_seed_attribute_at){name, name + head.name, head.value};
	*at += sizeof(head) + size;
	*left -= sizeof(head) + size;
	return true;
}

/* Rights that an attribute gives, and labels, are not a seed's to give. */
static bool attribute_is_known(const char *name)
{
	return lr_has_prefix(name, "user.") || lr_streq(name, "system.posix_acl_access") ||
	       lr_streq(name, "system.posix_acl_default");
}

static bool attributes_fit(const struct lr_seed *s, const struct lr_seed_bytes *b)
{
	const uint8_t *at = lr_seed_data(s, b);
	uint64_t left = b->length;
	struct lr_seed_attribute_at a;

	if (left > LR_SEED_ATTRIBUTES)
		return false;
	while (left)
		if (!lr_seed_next_attribute(&at, &left, &a) || !attribute_is_known(a.name))
			return false;
	return true;
}

static bool name_fits(const char *name)
{
	size_t n = strlen(name);

	return n && n <= 255 && !strchr(name, '/') && !lr_streq(name, ".") && !lr_streq(name, "..");
}

/* So every path can be walked, and ends at the root. */
static bool place_fits(const struct lr_seed *s, uint32_t i, uint32_t root)
{
	size_t length = 0;
	uint32_t depth = 0;

	while (i != root) {
		const struct lr_seed_node *n = lr_seed_node(s, i);
		const char *name = lr_seed_text(s, n->name);
		if (n->parent >= i || n->parent < root || !name_fits(name) ||
		    !S_ISDIR(lr_seed_node(s, n->parent)->mode))
			return false;
		length += strlen(name) + 1;
		if (++depth > LR_SEED_DEPTH || length > LR_SEED_PATH)
			return false;
		i = n->parent;
	}
	return true;
}

/* Only what can lie above another layer, and says no more than that. */
static bool whiteout_fits(const struct lr_seed_node *n, bool layer)
{
	return layer && n->mode == LR_SEED_WHITEOUT && n->same == LR_SEED_NONE && !n->size &&
	       !n->attributes.length;
}

static bool kind_fits(const struct lr_seed *s, const struct lr_seed_node *n, bool layer)
{
	bool link = *lr_seed_text(s, n->target);

	switch (n->mode & S_IFMT) {
	case S_IFREG:
		return !link;
	case S_IFLNK:
		return link && !n->runs.count;
	case S_IFDIR:
	case S_IFIFO:
	case S_IFSOCK:
		return !link && !n->runs.count;
	case S_IFCHR:
		return !link && !n->runs.count && whiteout_fits(n, layer);
	default:
		return false;
	}
}

/* `same` is the file itself, and not another one of its other names. */
static bool same_fits(const struct lr_seed *s, uint32_t i, uint32_t root)
{
	const struct lr_seed_node *n = lr_seed_node(s, i);

	if (n->same == LR_SEED_NONE)
		return true;
	return n->same < i && n->same > root && !n->runs.count &&
	       lr_seed_node(s, n->same)->same == LR_SEED_NONE &&
	       !S_ISDIR(lr_seed_node(s, n->same)->mode) && !S_ISDIR(n->mode) &&
	       !S_ISCHR(lr_seed_node(s, n->same)->mode);
}

static bool flags_fit(const struct lr_seed_node *n, bool layer)
{
	return !(n->flags & ~LR_SEED_OPAQUE) && (!n->flags || (layer && S_ISDIR(n->mode)));
}

static int check_node(const struct lr_seed *s, const struct lr_seed_tmpfs *t, uint32_t i,
		      uint64_t *at, struct lr_err *err)
{
	const struct lr_seed_node *n = lr_seed_node(s, i);
	const uint32_t root = t->nodes.first;
	const bool layer = t->flags & LR_SEED_ROOT;

	if (n->mode & ~(uint32_t)(S_IFMT | 07777) || !kind_fits(s, n, layer) ||
	    !flags_fit(n, layer))
		return SEED_BAD("nodes", i, "is of an unknown kind");
	if (i == root ? n->parent != LR_SEED_NONE || !S_ISDIR(n->mode) : !place_fits(s, i, root))
		return SEED_BAD("nodes", i, "is nowhere");
	if (!same_fits(s, i, root))
		return SEED_BAD("nodes", i, "is another name of nothing");
	if (n->size > LR_SEED_TOP || !attributes_fit(s, &n->attributes))
		return SEED_BAD("nodes", i, "is garbled");
	return seed_check_runs(s, &n->runs, n->size, at, err);
}

/* The root's is one at the most: the last. */
static bool flags_of_one_fit(const struct lr_seed *s, uint32_t i)
{
	const struct lr_seed_tmpfs *t = lr_seed_tmpfs(s, i);

	if (t->flags & ~LR_SEED_ROOT)
		return false;
	return !t->flags || (i + 1 == lr_seed_count(s, LR_SEED_TMPFS) &&
			     lr_streq(lr_seed_text(s, t->path), "/"));
}

int seed_check_tmpfs(const struct lr_seed *s, uint64_t *at, struct lr_err *err)
{
	int r = 0;

	if (!lr_seed_count(s, LR_SEED_TMPFS) && lr_seed_count(s, LR_SEED_NODE))
		return lr_refuse(err, EPROTO, "the seed has nodes that belong to nobody");
	for (uint32_t i = 0; r >= 0 && i < lr_seed_count(s, LR_SEED_TMPFS); i++) {
		const struct lr_seed_tmpfs *t = lr_seed_tmpfs(s, i);
		if (*lr_seed_text(s, t->path) != '/' || !t->nodes.count)
			return SEED_BAD("tmpfs", i, "is nowhere");
		if (!flags_of_one_fit(s, i))
			return SEED_BAD("tmpfs", i, "is of an unknown kind");
		for (uint32_t k = 0; r >= 0 && k < t->nodes.count; k++)
			r = check_node(s, t, t->nodes.first + k, at, err);
	}
	return r;
}

void lr_seed_node_path(const struct lr_seed *s, uint32_t node, char ret[LR_SEED_PATH + 1])
{
	size_t at = LR_SEED_PATH;

	ret[at] = 0;
	for (;;) {
		const struct lr_seed_node *n = lr_seed_node(s, node);
		if (n->parent == LR_SEED_NONE)
			break;
		const char *name = lr_seed_text(s, n->name);
		size_t length = strlen(name);
		if (ret[at])
			ret[--at] = '/';
		at -= length;
		memcpy(ret + at, name, length);
		node = n->parent;
	}
	memmove(ret, ret + at, LR_SEED_PATH + 1 - at);
}
