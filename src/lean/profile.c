/* SPDX-License-Identifier: Apache-2.0 */
/* lean: which parts of the profile are on, and how; see lean.h. Pure. */
#define LR_ROOM "lean"
#include <string.h>

#include "src/base/str.h"
#include "src/lean/lean.h"

#define PREFIX "org.lean-runtime."

const char *const lr_lean_annotations[] = {
	PREFIX "bounding", PREFIX "cgroup",  PREFIX "image",
	PREFIX "mounts",   PREFIX "network", PREFIX "profile",
	PREFIX "rootfs",   PREFIX "tmpfs",   NULL,
};

/* A part's first way is its default. */
static const struct {
	const char *name;
	struct {
		const char *name;
		enum lr_lean_way way;
	} ways[6];
} parts[LR_LEAN_PARTS] = {
	[LR_LEAN_ROOTFS] = {"rootfs", {{"ro", LR_LEAN_RO}, {"config", LR_LEAN_CONFIG}}},
	[LR_LEAN_CGROUP] = {"cgroup",
			    {{"auto", LR_LEAN_AUTO},
			     {"pool", LR_LEAN_POOL},
			     {"new", LR_LEAN_CONFIG},
			     {"config", LR_LEAN_CONFIG}}},
	[LR_LEAN_NETWORK] = {"network",
			     {{"auto", LR_LEAN_AUTO},
			      {"shared", LR_LEAN_SHARED},
			      {"pool", LR_LEAN_POOL},
			      {"host", LR_LEAN_HOST},
			      {"new", LR_LEAN_CONFIG},
			      {"config", LR_LEAN_CONFIG}}},
	[LR_LEAN_MOUNTS] = {"mounts",
			    {{"auto", LR_LEAN_AUTO},
			     {"template", LR_LEAN_TEMPLATE},
			     {"config", LR_LEAN_CONFIG}}},
	[LR_LEAN_BOUNDING] = {"bounding",
			      {{"keep", LR_LEAN_KEEP},
			       {"drop", LR_LEAN_CONFIG},
			       {"config", LR_LEAN_CONFIG}}},
};

static bool is(const char *word, size_t len, const char *name)
{
	return strlen(name) == len && memcmp(word, name, len) == 0;
}

static int choose(struct lr_lean_profile *p, int part, const char *word, size_t len,
		  struct lr_err *err)
{
	for (size_t i = 0; i < LR_ARRAY_SIZE(parts[part].ways) && parts[part].ways[i].name; i++)
		if (is(word, len, parts[part].ways[i].name)) {
			p->way[part] = parts[part].ways[i].way;
			return 0;
		}
	lr_refuse(err, EINVAL, "\"%.*s\" is no way for %s in the lean profile", (int)len, word,
		  parts[part].name);
	return lr_err_hint(err, "the default is \"%s\"; see docs/lean-profile.md",
			   parts[part].ways[0].name);
}

static void all_parts(struct lr_lean_profile *p)
{
	p->on = true;
	for (int i = 0; i < LR_LEAN_PARTS; i++)
		p->way[i] = parts[i].ways[0].way;
}

/* "part" or "part=way". */
static int take_word(struct lr_lean_profile *p, const char *word, size_t len, struct lr_err *err)
{
	const char *eq = memchr(word, '=', len);
	size_t name = eq ? (size_t)(eq - word) : len;

	for (int i = 0; i < LR_LEAN_PARTS; i++) {
		if (!is(word, name, parts[i].name))
			continue;
		p->on = true;
		if (eq)
			return choose(p, i, eq + 1, len - name - 1, err);
		p->way[i] = parts[i].ways[0].way;
		return 0;
	}
	lr_refuse(err, EINVAL, "the lean profile has no part \"%.*s\"", (int)name, word);
	return lr_err_hint(
		err, "parts: rootfs, cgroup, network, mounts, bounding; \"lean\": all of them");
}

static int take_list(struct lr_lean_profile *p, const char *text, struct lr_err *err)
{
	*p = (struct lr_lean_profile){0};
	for (const char *w = text; *w; w += strcspn(w, ","), w += *w == ',') {
		size_t len = strcspn(w, ",");
		int r = 0;

		if (is(w, len, "lean"))
			all_parts(p);
		else if (is(w, len, "none"))
			*p = (struct lr_lean_profile){0};
		else if (len)
			r = take_word(p, w, len, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int take_annotations(struct lr_lean_profile *p, const struct oci_map *m, struct lr_err *err)
{
	const size_t skip = strlen(PREFIX);

	/* The profile's own annotation counts first, wherever it stands; those of parts are
	 * exceptions to it. */
	for (size_t i = 0; i < m->n; i++) {
		if (!lr_streq(m->v[i].key, PREFIX "profile"))
			continue;
		int r = take_list(p, m->v[i].value, err);
		if (r < 0)
			return lr_err_at(err, "annotations.%s", m->v[i].key);
	}
	for (size_t i = 0; i < m->n; i++) {
		const char *key = m->v[i].key, *value = m->v[i].value;

		if (!lr_has_prefix(key, PREFIX))
			continue;
		if (lr_streq(key + skip, "tmpfs"))
			p->tmpfs = value;
		if (lr_streq(key + skip, "image")) {
			p->image = value;
			p->on = true;
		}
		for (int k = 0; k < LR_LEAN_PARTS; k++) {
			if (!lr_streq(key + skip, parts[k].name))
				continue;
			p->on = true;
			if (choose(p, k, value, strlen(value), err) < 0)
				return lr_err_at(err, "annotations.%s", key);
		}
	}
	return 0;
}

int lr_lean_profile(const char *text, const struct oci_map *annotations,
		    struct lr_lean_profile *ret, struct lr_err *err)
{
	struct lr_lean_profile p = {0};

	int r = text ? take_list(&p, text, err) : 0;
	if (r >= 0 && annotations)
		r = take_annotations(&p, annotations, err);
	if (r >= 0)
		*ret = p;
	return r;
}
