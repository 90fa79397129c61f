/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint: what is mounted in the container: proc_pid_mountinfo(5). */
#define LR_ROOM "checkpoint"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/checkpoint/internal.h"
#include "src/sys/syscalls.h"

static const struct lr_name attributes[] = {
	{"nodev", MOUNT_ATTR_NODEV},   {"noexec", MOUNT_ATTR_NOEXEC},
	{"nosuid", MOUNT_ATTR_NOSUID}, {"nosymfollow", MOUNT_ATTR_NOSYMFOLLOW},
	{"ro", MOUNT_ATTR_RDONLY},
};

uint64_t lr_checkpoint_attribute(const char *word)
{
	const struct lr_name *found = lr_name_find(attributes, LR_ARRAY_SIZE(attributes), word);

	return found ? found->value : 0;
}

static uint64_t all_attributes(char *options)
{
	uint64_t all = 0;
	char *word;

	while ((word = strsep(&options, ",")))
		all |= lr_checkpoint_attribute(word);
	return all;
}

/* "master:7". 0: it is another tag. */
static uint32_t group_of(const char *tag, const char *kind)
{
	uint32_t group;

	return !lr_has_prefix(tag, kind) || lr_parse_u32(tag + strlen(kind), &group) < 0 ? 0
											 : group;
}

/* Fields up to the root's mount options; then tags, "-", and the type of the file system. */
enum { ID, PARENT, DEVICE, ROOT, POINT, OPTIONS, FIXED };

static bool parse_line(char *line, struct lr_checkpoint_mount *m)
{
	char *field[FIXED], *rest = line, *word;
	uint32_t id, parent;
	int n = 0;

	*m = (struct lr_checkpoint_mount){0};
	while (n < FIXED && (word = strsep(&rest, " ")))
		field[n++] = word;
	if (n < FIXED || lr_parse_u32(field[ID], &id) < 0 ||
	    lr_parse_u32(field[PARENT], &parent) < 0 || id > INT32_MAX || parent > INT32_MAX)
		return false;
	while ((word = strsep(&rest, " ")) && !lr_streq(word, "-")) {
		m->slave |= lr_has_prefix(word, "master:");
		m->master |= group_of(word, "master:");
		m->peers |= group_of(word, "shared:");
	}
	char *type = word ? strsep(&rest, " ") : NULL;
	if (!type || field[POINT][0] != '/')
		return false;
	lr_path_unescape(field[ROOT]);
	lr_path_unescape(field[POINT]);
	m->id = (int)id;
	m->parent = (int)parent;
	m->device = field[DEVICE];
	m->root = field[ROOT];
	m->point = field[POINT];
	m->type = type;
	/* What is mounted lies between them. */
	m->options = strsep(&rest, " ") && rest ? rest : "";
	m->attributes = all_attributes(field[OPTIONS]);
	return true;
}

int lr_checkpoint_mountinfo(char *text, struct lr_arena *a, struct lr_checkpoint_mount **ret,
			    size_t *n, struct lr_err *err)
{
	struct lr_checkpoint_mount *v = NULL;
	size_t count = 0;
	char *line;

	while ((line = strsep(&text, "\n"))) {
		if (!*line)
			continue;
		v = lr_grow(a, v, count, sizeof(*v));
		if (!v)
			return lr_fail(err, ENOMEM, "look at mounts");
		if (!parse_line(line, &v[count++]))
			return lr_refuse(err, EPROTO, "a line of mountinfo is not understood");
	}
	*ret = v;
	*n = count;
	return 0;
}

int lr_checkpoint_mounts_at(int fd, struct lr_arena *a, struct lr_checkpoint_mount **ret, size_t *n,
			    struct lr_err *err)
{
	size_t size = 32u << 10, have = 0;
	char *text = NULL;
	ssize_t got;

	do {
		char *const before = text;
		size *= 2;
		text = lr_alloc(a, size);
		if (!text)
			return lr_fail(err, ENOMEM, "read mountinfo");
		if (have)
			memcpy(text, before, have);
		got = lr_read_full(fd, text + have, size - 1 - have);
		have += got > 0 ? (size_t)got : 0;
	} while (got > 0 && have == size - 1 && size < 64u << 20);
	if (got >= 0 && have == size - 1)
		got = -EFBIG;
	if (got < 0)
		return lr_fail(err, (int)-got, "read mountinfo");
	text[have] = '\0';
	return lr_checkpoint_mountinfo(text, a, ret, n, err);
}

int lr_checkpoint_mounts(pid_t pid, struct lr_arena *a, struct lr_checkpoint_mount **ret, size_t *n,
			 struct lr_err *err)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", pid);
	LR_CLEANUP_FD int fd = lr_open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? lr_fail(err, errno, "open %s", path)
		      : lr_checkpoint_mounts_at(fd, a, ret, n, err);
}
