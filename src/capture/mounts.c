/* SPDX-License-Identifier: Apache-2.0 */
/* capture: which files are of the container's mounts: by mountinfo of its first process. */
#define LR_ROOM "capture"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/state.h"
#include "src/sys/proc.h"

/* A line of mountinfo begins with the mount's number. */
static int note_mounts(struct cap *c)
{
	int r = 0;

	for (const char *line = c->mounts; r >= 0 && line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (*line)
			r = cap_index_put(c->a, &c->mount_of, 0, strtoul(line, NULL, 10),
					  (size_t)(line - c->mounts));
	}
	return r;
}

void cap_mounts_close(struct cap_before *b)
{
	b->mountinfo = lr_close(b->mountinfo);
	lr_arena_free(b->of_mounts);
	b->of_mounts = NULL;
	b->mounts = NULL;
}

/* Mountinfo has what is mounted below its process's root, in the namespace that this was in when it was opened. */
static bool are_as_before(struct cap *c)
{
	struct cap_before *b = c->before;
	const char *root = cap_root_path(c);

	return !lr_proc_mounts_changed(&b->mountinfo) && c->stayed && b->mounts && root &&
	       lr_streq(root, b->root_path);
}

/* Opened before it is read, so that every change since is told. Without memory for it, it is read again when they are
 * held. */
static void keep_mounts(struct cap *c, const char *path)
{
	struct cap_before *b = c->before;
	const char *root = cap_root_path(c);
	size_t size;

	cap_mounts_close(b);
	b->mountinfo = lr_open(path, O_RDONLY | O_CLOEXEC);
	b->of_mounts = lr_arena_new();
	b->root_path = root && b->of_mounts ? lr_strdup(b->of_mounts, root) : NULL;
	if (b->mountinfo >= 0 && b->root_path)
		(void)cap_read_all(b->of_mounts, path, &b->mounts, &size, NULL);
}

int cap_mounts_read(struct cap *c)
{
	char path[40];
	size_t size;
	int r = 0;

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", c->opts->pid);
	if (!c->mounts && !c->holds)
		keep_mounts(c, path);
	if (!c->mounts && (!c->holds || are_as_before(c)))
		c->mounts = c->before->mounts;
	if (!c->mounts)
		r = cap_read_all(c->a, path, &c->mounts, &size, NULL);
	return r < 0 || c->mount_of.root ? r : note_mounts(c);
}

static const char *mount_line(struct cap *c, unsigned id)
{
	size_t at;

	return cap_mounts_read(c) >= 0 && cap_index_find(&c->mount_of, 0, id, &at) ? c->mounts + at
										   : NULL;
}

bool cap_mount_is_inside(struct cap *c, unsigned id)
{
	return mount_line(c, id);
}

bool cap_mount_is_ours(struct cap *c, unsigned id)
{
	char *text, number[16];
	size_t size;

	snprintf(number, sizeof(number), "%u ", id);
	if (cap_read_all(c->a, "/proc/thread-self/mountinfo", &text, &size, NULL) < 0)
		return false;
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (lr_has_prefix(line, number))
			return true;
	}
	return false;
}

/* Behind " - ", up to a blank; NULL: it is no mount of theirs. */
static const char *mount_type(struct cap *c, unsigned id)
{
	const char *line = mount_line(c, id), *end = line ? strchrnul(line, '\n') : NULL;
	const char *type = line ? strstr(line, " - ") : NULL;

	return type && type < end ? type + 3 : NULL;
}

/* With a blank behind it. fusectl is the kernel's own. */
static bool is_served(const char *type)
{
	return lr_has_prefix(type, "fuse") && !lr_has_prefix(type, "fusectl ");
}

bool cap_mount_may_wait(struct cap *c, unsigned id)
{
	const char *type = mount_type(c, id);

	return !type || is_served(type);
}

bool cap_mounts_may_wait(struct cap *c)
{
	if (cap_mounts_read(c) < 0)
		return true;
	for (const char *at = c->mounts; (at = strstr(at, " - fuse"));)
		if (is_served(at += 3))
			return true;
	return false;
}

/* Of a directory above a mount that is renamed poll(2) tells nothing: that changes where the mount is, and no number. */
static void read_again(struct cap *c)
{
	if (!c->holds || c->mounts != c->before->mounts)
		return;
	c->mounts = NULL;
	c->mount_of = (struct cap_index){0};
	cap_mounts_close(c->before);
}

const char *cap_mount_of_proc(struct cap *c, unsigned id)
{
	const char *type = mount_type(c, id);
	char *field = NULL, *rest = NULL;

	if (!type || !lr_has_prefix(type, "proc "))
		return NULL;
	read_again(c);
	const char *found = mount_line(c, id);
	if (!found)
		return NULL;
	/* A path that can be told may be four times as long here, where a space is "\040". */
	char *line = lr_strndup(c->a, found, strcspn(found, "\n"));
	for (int i = 0; line && i < 4; i++) /* number, parent, device, root */
		field = strtok_r(i ? NULL : line, " ", &rest);
	if (!field || !lr_streq(field, "/") || !(field = strtok_r(NULL, " ", &rest)))
		return NULL;
	lr_path_unescape(field);
	return field;
}
