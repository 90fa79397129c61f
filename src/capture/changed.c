/* SPDX-License-Identifier: Apache-2.0 */
/* capture: which files that processes use the container had changed in its root, where these do not
 * go along; see tmpfs.h. For the errors of who continues the seed: what can't be found out is left
 * out. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/state.h"
#include "src/sys/path.h"

#define MOST 64

struct naming {
	int root, upper;
	const char *v[MOST];
	size_t n;
};

/* A file in the upper layer, which no other mount covers. */
static bool is_changed(const struct naming *x, const char *path)
{
	struct stat st;

	if (path[0] != '/' || !path[1])
		return false;
	LR_CLEANUP_FD int seen = lr_open_beneath(x->root, path + 1, O_PATH);
	LR_CLEANUP_FD int own = seen < 0 ? seen : lr_open_beneath(x->upper, path + 1, O_PATH);
	return own >= 0 && fstat(own, &st) == 0 && S_ISREG(st.st_mode);
}

static void name(struct naming *x, const char *path)
{
	if (!path || x->n == MOST)
		return;
	for (size_t i = 0; i < x->n; i++)
		if (lr_streq(x->v[i], path))
			return;
	if (is_changed(x, path))
		x->v[x->n++] = path;
}

void cap_changed_put(struct cap *c, struct lr_seed_writer *w)
{
	const struct lr_capture_layer *layer = c->opts->layer;
	char path[32];

	if (!layer || layer->carried)
		return;
	snprintf(path, sizeof(path), "/proc/%d/root", c->opts->pid);
	LR_CLEANUP_FD int root = lr_open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct naming x = {.root = root, .upper = layer->upper};
	if (root < 0)
		return;
	for (size_t i = 0; i < c->n; i++)
		name(&x, c->p[i].exe);
	for (size_t i = 0; i < c->n; i++)
		for (size_t k = 0; k < c->p[i].maps.n; k++)
			name(&x, c->p[i].maps.v[k].name);
	for (size_t i = 0; i < c->n_files; i++)
		if (c->files[i]->seed.kind == LR_SEED_REGULAR)
			name(&x, c->files[i]->path);
	for (size_t i = 0; i < x.n; i++)
		lr_seed_add(w, LR_SEED_CHANGED,
			    &(struct lr_seed_changed){.path = lr_seed_add_text(w, x.v[i])});
}
