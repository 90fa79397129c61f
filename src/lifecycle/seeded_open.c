/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle: what the annotation names; see seeded.h. */
#define LR_ROOM "seed"
#include "src/lifecycle/seeded.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libocispec/ocispec.h"
#include "src/base/str.h"
#include "src/checkpoint/checkpoint.h"
#include "src/lifecycle/compile.h"
#include "src/store/trust.h"

static int refuse(struct lr_err *err, int code, const char *what, const char *hint)
{
	lr_refuse(err, code, "%s", what);
	lr_err_hint(err, "%s", hint);
	return lr_err_at(err, "annotations[\"" LR_SEEDED_ANNOTATION "\"]");
}

/* A name in the directory, which may stand before it. NULL: it is none. */
static const char *name_in(const char *dir, const char *value)
{
	size_t n = strlen(dir);

	while (n > 1 && dir[n - 1] == '/')
		n--;
	if (strncmp(value, dir, n) == 0 && value[n] == '/')
		value += n + 1;
	return value[0] == '\0' || value[0] == '.' || strchr(value, '/') ? NULL : value;
}

/* Whoever could write there would choose among the tickets of others, by their names. */
static int trust(const char *dir, struct lr_arena *a, struct lr_err *err)
{
	char cwd[PATH_MAX];

	if (dir[0] != '/') {
		if (!getcwd(cwd, sizeof(cwd)))
			return lr_fail(err, errno, "find --seed-dir %s", dir);
		dir = lr_concat(a, cwd, "/", dir, NULL);
	}
	int r = dir ? lr_trust_images(dir, "--seed-dir", err)
		    : lr_fail(err, ENOMEM, "find --seed-dir");
	return r < 0 ? r : 0;
}

/* A directory of `checkpoint --engine=fork`, or a file with a ticket. */
static int find(const char *dir, const char *value, struct lr_arena *a,
		struct lr_checkpoint_opts *o, struct lr_err *err)
{
	const char *name = name_in(dir, value);
	struct stat st;
	int r = trust(dir, a, err);

	if (r < 0)
		return r;

	if (!name)
		return refuse(err, EINVAL, "it names no seed in --seed-dir",
			      "give a ticket, or the name of what lies there");
	const char *path = lr_concat(a, dir, "/", name, NULL);
	const char *ticket = lr_concat(a, "file:", path, NULL);
	if (!path || !ticket)
		return lr_fail(err, ENOMEM, "find the seed");
	if (lstat(path, &st) < 0) {
		lr_fail(err, errno, "look at the seed %s", path);
		return lr_err_at(err, "annotations[\"" LR_SEEDED_ANNOTATION "\"]");
	}
	if (S_ISDIR(st.st_mode))
		o->image_path = path;
	else if (S_ISREG(st.st_mode))
		o->ticket_from = ticket;
	else
		return refuse(err, EINVAL,
			      "neither a directory with a seed, nor a file with a ticket",
			      "a link is not followed");
	return 0;
}

static int check(const struct lr_runtime *rt, const struct oci_config *c,
		 struct lr_checkpoint_opts *o, struct lr_err *err)
{
	const char *fetch = oci_map_get(&c->annotations, LR_SEEDED_FETCH);

	if (!rt->seed_dir || !rt->seed_dir[0])
		return refuse(
			err, EPERM, "seeds are not continued by annotations here",
			"give the runtime --seed-dir DIR, and name a seed in DIR or a ticket");
	if (lr_is_rootless(rt))
		return refuse(err, EPERM, "a seed is not continued as rootless",
			      "it takes root in the host's user namespace");
	if (lr_seeded_how(c, o) < 0) {
		lr_refuse(err, EINVAL,
			  "\"%.64s\" is neither ondemand, cache, prefetch, prefetch:N nor eager",
			  fetch);
		return lr_err_at(err, "annotations[\"" LR_SEEDED_FETCH "\"]");
	}
	return 0;
}

int lr_lifecycle_open_seed(const struct lr_runtime *rt, const struct oci_config *c,
			   struct lr_arena *a, struct lr_init_seed *ret, struct lr_err *err)
{
	const char *value = oci_map_get(&c->annotations, LR_SEEDED_ANNOTATION);
	const struct lr_checkpoint_engine *engine = NULL;
	struct lr_checkpoint_opts o = {
		.engine = "fork",
		.status_fd = LR_NOFD,
		.forkd = rt->seed_forkd,
	};

	*ret = LR_INIT_SEED_NONE;
	int r = check(rt, c, &o, err);
	if (r >= 0 && lr_has_prefix(value, LR_TICKET_PREFIX))
		o.ticket_from = value;
	else if (r >= 0)
		r = find(rt->seed_dir, value, a, &o, err);
	if (r >= 0)
		r = lr_checkpoint_engine(o.engine, &engine, err);
	return r < 0 ? r : engine->open(&o, a, ret, err);
}
