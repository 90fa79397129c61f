/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint: what would have criu, or us, wait for a container that stands still. One that means harm can still do it
 * after we have looked; any other is told before it is held.
 */
#define LR_ROOM "checkpoint"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/checkpoint/internal.h"
#include "src/sys/tables.h"

/* FAN_CLASS_CONTENT and FAN_CLASS_PRE_CONTENT: who opens a file waits for that process to agree. */
#define ASKED_FIRST 0xcu

/* 1, 0, or a negative errno. */
static int is_asked_first(int fds, const char *name)
{
	static const char before[] = "fanotify flags:";
	char text[1024], path[64];

	ssize_t n = readlinkat(fds, name, text, sizeof(text) - 1);
	/* It is closed by now, or has a name too long to be that. */
	if (n < 0)
		return errno == ENOENT || errno == ENAMETOOLONG ? 0 : -errno;
	text[n] = '\0';
	if (!lr_streq(text, "anon_inode:[fanotify]"))
		return 0;
	snprintf(path, sizeof(path), "../fdinfo/%.16s", name);
	LR_CLEANUP_FD int fd = openat(fds, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	n = lr_read_full(fd, text, sizeof(text) - 1);
	if (n < 0)
		return (int)n;
	text[n] = '\0';
	const char *at = strstr(text, before);
	return at && strtoul(at + strlen(before), NULL, 16) & ASKED_FIRST;
}

static int look_at_process(pid_t pid, struct lr_err *err)
{
	char path[32];
	int r = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	LR_CLEANUP_DIR DIR *d = opendir(path);
	if (!d)
		return errno == ENOENT || errno == ESRCH ? 0 : lr_fail(err, errno, "read %s", path);
	for (struct dirent *e; errno = 0, r == 0 && (e = readdir(d));)
		if (e->d_name[0] != '.')
			r = is_asked_first(dirfd(d), e->d_name);
	if (r > 0)
		return lr_refuse(
			err, EOPNOTSUPP,
			"process %d is asked by fanotify(7) before files are opened: it cannot "
			"answer while it is saved, and criu would wait for it",
			pid);
	r = r < 0 ? r : -errno;
	return r < 0 && r != -ESRCH ? lr_fail(err, -r, "read %s", path) : 0;
}

/* A FUSE whose server may be in the container. */
static bool is_own_fuse(const struct lr_checkpoint_mount *m, const struct lr_checkpoint_mount *host,
			size_t n)
{
	if (!lr_has_word("fuse fuseblk", m->type) && !lr_has_prefix(m->type, "fuse."))
		return false;
	for (size_t i = 0; i < n; i++)
		if (lr_streq(host[i].device, m->device))
			return false;
	return true;
}

int lr_checkpoint_refuse_fuse(const struct lr_checkpoint_mount *mounts, size_t n,
			      const struct lr_checkpoint_mount *host, size_t n_host,
			      struct lr_err *err)
{
	for (size_t i = 0; i < n; i++)
		if (is_own_fuse(&mounts[i], host, n_host))
			return lr_refuse(
				err, EOPNOTSUPP,
				"what is mounted on %.128s (%.32s) is not among the host's mounts: "
				"its server may be in the container, and cannot answer while that "
				"is saved",
				mounts[i].point, mounts[i].type);
	return 0;
}

int lr_checkpoint_refuse_waits(const struct lr_checkpoint_job *job, struct lr_arena *a,
			       struct lr_err *err)
{
	struct lr_tables all = {0};
	pid_t *pids;
	size_t n;

	int r = lr_cgroup_pids(job->cgroup, a, &pids, &n, err);
	struct lr_table *v = r < 0 ? NULL : lr_new_n(a, n + 1, struct lr_table);
	if (r >= 0 && !v)
		return lr_fail(err, ENOMEM, "look at what the container has open");
	/* Thousands of them may have one table. */
	for (size_t i = 0; r >= 0 && i < n; i++)
		if (lr_tables_add(&all, &v[i], pids[i]))
			r = look_at_process(pids[i], err);
	return r;
}
