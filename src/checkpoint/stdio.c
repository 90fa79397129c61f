/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint: standard input, output and error that lead out of the container. What is at their
 * other ends is not in the images: whoever restores brings his own, and they are attached by the
 * name that the old ones had.
 */
#define LR_ROOM "checkpoint"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "libocispec/ocispec.h"
#include "src/base/fd.h"
#include "src/base/json.h"
#include "src/base/str.h"
#include "src/checkpoint/internal.h"
#include "src/sys/path.h"

/* The mount that an open file belongs to, as the kernel counts mounts; -ENOENT: it was closed. */
static int mount_of(pid_t pid, int fd)
{
	char path[64], text[1024];
	uint32_t id;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", pid, fd);
	ssize_t n = lr_read_file_at(AT_FDCWD, path, text, sizeof(text));
	if (n < 0)
		return (int)n;
	char *at = strstr(text, "mnt_id:");
	if (!at)
		return -EPROTO;
	at += strlen("mnt_id:");
	at += strspn(at, "\t ");
	at[strcspn(at, "\n")] = '\0';
	return lr_parse_u32(at, &id) < 0 ? -EPROTO : (int)id;
}

static bool is_inside(int id, const struct lr_checkpoint_mount *mounts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (mounts[i].id == id)
			return true;
	return false;
}

/* Criu has ways of its own for terminals: one of the container's, or --shell-job. */
static bool is_terminal(const struct stat *st)
{
	unsigned kind = major(st->st_rdev);

	return S_ISCHR(st->st_mode) && (kind == 4 || kind == 5 || (kind >= 136 && kind <= 143));
}

/* 1, 0, or a negative errno. Of a file in none of the container's mounts: memory is in no mount of anybody's, and one that
 * the container has unmounted (lazily) is nobody's any more. The caller's is one of ours, or of another namespace
 * of the host's, where its path is the same. */
static int is_callers(const char *path, const struct stat *st, int mount, struct lr_err *err)
{
	char target[PATH_MAX];
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_checkpoint_mount *own = NULL;
	size_t n;

	if (!S_ISREG(st->st_mode))
		return 1;
	int r = lr_checkpoint_mounts(getpid(), a, &own, &n, err);
	if (r < 0 || is_inside(mount, own, n))
		return r < 0 ? r : 1;
	const ssize_t len = readlink(path, target, sizeof(target) - 1);
	target[len > 0 ? len : 0] = '\0';
	return lr_path_leads_to(target, st);
}

static int look_at_one(pid_t pid, int fd, const struct lr_checkpoint_mount *mounts, size_t n,
		       char name[LR_CHECKPOINT_NAME], struct lr_err *err)
{
	char path[64], target[LR_CHECKPOINT_NAME];
	struct stat st;
	unsigned inode;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	ssize_t len = readlink(path, target, sizeof(target) - 1);
	if (len < 0 && errno == ENOENT)
		return 0; /* closed */
	if (len < 0 || stat(path, &st) < 0)
		return lr_fail(err, errno, "look at descriptor %d of process %d", fd, pid);
	target[len] = '\0';
	if (S_ISFIFO(st.st_mode) && lr_has_prefix(target, "pipe:["))
		snprintf(name, LR_CHECKPOINT_NAME, "%s", target);
	else if (S_ISSOCK(st.st_mode) && sscanf(target, "socket:[%u]", &inode) == 1)
		snprintf(name, LR_CHECKPOINT_NAME, "unix[%u]", inode);
	else if (!is_terminal(&st)) {
		int id = mount_of(pid, fd);
		if (id < 0 && id != -ENOENT)
			return lr_fail(err, -id, "look at descriptor %d of process %d", fd, pid);
		int callers =
			id < 0 || is_inside(id, mounts, n) ? 0 : is_callers(path, &st, id, err);
		if (callers < 0)
			return callers;
		if (callers)
			snprintf(name, LR_CHECKPOINT_NAME, "file[%x:%llx]", (unsigned)id,
				 (unsigned long long)st.st_ino);
	}
	return 0;
}

int lr_checkpoint_stdio_look(pid_t pid, const struct lr_checkpoint_mount *mounts, size_t n,
			     struct lr_checkpoint_stdio *ret, struct lr_err *err)
{
	int r = 0;

	*ret = (struct lr_checkpoint_stdio){0};
	for (int i = 0; i < 3 && r >= 0; i++)
		r = look_at_one(pid, i, mounts, n, ret->name[i], err);
	return r;
}

int lr_checkpoint_stdio_save(const struct lr_checkpoint_stdio *s, int dir, struct lr_arena *a,
			     struct lr_err *err)
{
	struct lr_json_writer *w = lr_json_writer_new(a, false);
	size_t len;

	lr_json_list_open(w);
	for (int i = 0; i < 3; i++)
		lr_json_str(w, s->name[i]);
	lr_json_list_close(w);
	char *text = lr_json_finish(w, &len);
	if (!text)
		return lr_fail(err, ENOMEM, "write " LR_CHECKPOINT_STDIO);
	LR_CLEANUP_FD int fd = openat(dir, LR_CHECKPOINT_STDIO,
				      O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	ssize_t n = fd < 0 ? -errno : lr_write_full(fd, text, len);
	return n < 0 ? lr_fail(err, (int)-n, "write " LR_CHECKPOINT_STDIO) : 0;
}

struct reading {
	struct lr_checkpoint_stdio *ret;
	int n; /* names so far */
	int depth;
};

static int read_value(void *arg, const struct lr_json_value *v, struct lr_err *err)
{
	struct reading *r = arg;

	if (r->depth == 0 && v->type == LR_JSON_LIST) {
		r->depth++;
		return 0;
	}
	if (r->depth != 1 || v->type != LR_JSON_STRING || r->n >= 3)
		return lr_refuse(err, EINVAL, "expected a list of three names");
	/* Longer ones are paths of files that are the container's own. */
	if (v->len < LR_CHECKPOINT_NAME)
		memcpy(r->ret->name[r->n], v->text, v->len);
	r->n++;
	return 0;
}

static int read_key(void *arg, const char *key, size_t len, struct lr_err *err)
{
	return 0;
}

static int read_end(void *arg, struct lr_err *err)
{
	return 0;
}

int lr_checkpoint_stdio_decode(const char *text, size_t len, struct lr_arena *a,
			       struct lr_checkpoint_stdio *ret, struct lr_err *err)
{
	static const struct lr_json_handler handler = {read_value, read_key, read_end};
	const struct lr_json_source src = {.text = text, .len = len, .what = "descriptors"};
	struct lr_checkpoint_stdio s = {0};
	struct reading reading = {.ret = &s};

	int r = lr_json_read(&src, &handler, &reading, a, err);
	if (r >= 0)
		*ret = s;
	return r;
}

int lr_checkpoint_stdio_load(int dir, struct lr_arena *a, struct lr_checkpoint_stdio *ret,
			     struct lr_err *err)
{
	char *text;
	size_t len;

	*ret = (struct lr_checkpoint_stdio){0};
	int r = oci_read_file(dir, LR_CHECKPOINT_STDIO, a, &text, &len, err);
	if (r == -ENOENT) {
		lr_err_clear(err);
		return 0;
	}
	return r < 0 ? r : lr_checkpoint_stdio_decode(text, len, a, ret, err);
}
