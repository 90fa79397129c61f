/* SPDX-License-Identifier: Apache-2.0 */
/* store: who has the lock of a container. */
#define LR_ROOM "store"
#include "src/store/holder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/sys/proc.h"

/* How a lock is introduced in /proc/PID/fdinfo. */
#define LOCK "lock:\t"

pid_t lr_store_owner(const char *line, dev_t dev, ino_t inode)
{
	unsigned major_nr, minor_nr;
	unsigned long number;
	int pid;

	/* Of those who wait, there is an arrow in front of the kind. */
	if (sscanf(line, "%*d: FLOCK %*s WRITE %d %x:%x:%lu", &pid, &major_nr, &minor_nr,
		   &number) != 4)
		return 0;
	return pid > 0 && makedev(major_nr, minor_nr) == dev && number == inode ? pid : 0;
}

/* Goes through the whole lines at the start of text, and moves what follows to its start. The length of that. */
static size_t take_lines(char *text, const struct stat *st, pid_t *ret)
{
	char *at = text, *end;

	for (; !*ret && (end = strchr(at, '\n')); at = end + 1) {
		*end = '\0';
		*ret = lr_store_owner(at, st->st_dev, st->st_ino);
	}
	size_t rest = strlen(at);
	memmove(text, at, rest + 1);
	return rest;
}

/* 0: it is not to be seen, as in another pid namespace. */
static pid_t find_owner(const struct stat *st)
{
	LR_CLEANUP_FD int fd = lr_open("/proc/locks", O_RDONLY | O_CLOEXEC);
	char text[4096];
	size_t len = 0;
	pid_t pid = 0;
	ssize_t n;

	while (fd >= 0 && !pid && (n = read(fd, text + len, sizeof(text) - 1 - len)) > 0) {
		text[len + (size_t)n] = '\0';
		len = take_lines(text, st, &pid);
	}
	return pid;
}

/* A descriptor tells which locks are its own. False: who took it has ended, and its number may be another's by
 * now, or it has closed its own; a copy of that is with somebody whom it has started. */
static bool still_has(pid_t pid, const struct stat *st)
{
	char path[sizeof("/proc//fdinfo") + LR_DIGITS], text[4096];

	snprintf(path, sizeof(path), "/proc/%d/fdinfo", pid);
	LR_CLEANUP_DIR DIR *d = opendir(path);
	if (!d)
		return errno == EACCES || errno == EPERM; /* it hides itself */
	for (struct dirent *e; (e = readdir(d));) {
		if (lr_read_file_at(dirfd(d), e->d_name, text, sizeof(text)) <= 0)
			continue;
		for (const char *at = text; (at = strstr(at, LOCK)); at++)
			if (lr_store_owner(at + strlen(LOCK), st->st_dev, st->st_ino) == pid)
				return true;
	}
	return false;
}

int lr_store_held(int dir, const char *id, struct lr_err *err)
{
	struct lr_proc_stat proc;
	struct stat st;
	pid_t pid = fstat(dir, &st) < 0 ? 0 : find_owner(&st);

	if (!pid) {
		lr_refuse(err, EBUSY,
			  "somebody who is not in /proc/locks keeps container %s locked", id);
		return lr_err_hint(err,
				   "a runtime at work on it does not end: end that, and try again");
	}
	if (!still_has(pid, &st) || lr_proc_stat(pid, &proc) < 0) {
		lr_refuse(err, EBUSY,
			  "process %d has ended, and what it has started keeps container %s locked",
			  pid, id);
		return lr_err_hint(err, "end that, and try again");
	}
	lr_refuse(err, EBUSY, "process %d (%s) keeps container %s locked, and does not end", pid,
		  proc.name, id);
	if (proc.state == 'T')
		return lr_err_hint(err,
				   "it was stopped: kill -CONT %d lets it go on; or kill -KILL %d, "
				   "and try again",
				   pid, pid);
	return lr_err_hint(err, "kill -KILL %d, and try again", pid);
}
