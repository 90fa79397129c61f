/* SPDX-License-Identifier: Apache-2.0 */
/* capture: ids as the container's own user namespace has them, which is how a seed has them: where its
 * children are, others may stand for the same. */
#define LR_ROOM "capture"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/str.h"
#include "src/capture/state.h"

/* "inside outside count", a line each; outside: as we see it. */
static int read_map(struct cap *c, const char *name, struct cap_map *ret, struct lr_err *err)
{
	char path[40], *text;
	size_t size;
	unsigned inside, outside, count;

	snprintf(path, sizeof(path), "/proc/%d/%s", c->opts->pid, name);
	int r = cap_read_all(c->a, path, &text, &size, err);
	*ret = (struct cap_map){0};
	for (const char *line = text; r >= 0 && line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (sscanf(line, "%u %u %u", &inside, &outside, &count) != 3)
			break;
		struct cap_mapped *v = lr_grow(c->a, ret->v, ret->n, sizeof(*v));
		if (!v)
			return lr_fail(err, ENOMEM, "read %s", path);
		ret->v = v;
		v[ret->n++] = (struct cap_mapped){inside, outside, count};
	}
	return r;
}

int cap_ids_look(struct cap *c, struct lr_err *err)
{
	int r = c->opts->own_user ? read_map(c, "uid_map", &c->uids, err) : 0;

	return r >= 0 && c->opts->own_user ? read_map(c, "gid_map", &c->gids, err) : r;
}

bool cap_id_inside(const struct cap *c, const struct cap_map *map, uint32_t *id)
{
	if (!c->opts->own_user)
		return true;
	for (size_t i = 0; i < map->n; i++)
		if (*id - map->v[i].outside < map->v[i].count) {
			*id = *id - map->v[i].outside + map->v[i].inside;
			return true;
		}
	return false;
}

void cap_ids_of_thread(struct cap *c, const struct cap_process *p, struct cap_thread *t)
{
	bool all = true;

	/* What it was is over. */
	if (p->seed.flags & LR_SEED_ZOMBIE)
		return;
	for (int i = 0; i < 4; i++) {
		all = cap_id_inside(c, &c->uids, &t->cred.uids[i]) && all;
		all = cap_id_inside(c, &c->gids, &t->cred.gids[i]) && all;
	}
	for (size_t i = 0; i < t->n_groups; i++)
		all = cap_id_inside(c, &c->gids, &t->groups[i]) && all;
	if (!all)
		cap_refuse(c, p, "a user or group that its user namespace does not know");
}
