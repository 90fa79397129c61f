/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle: pid files, pidfd sockets, time stamps. */
#define LR_ROOM "container"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/lifecycle/container.h"
#include "src/tty/tty.h"

void lr_timestamp(char buf[40])
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	char *end = lr_utc(buf, now.tv_sec);
	snprintf(end, 12, ".%09ldZ", now.tv_nsec);
}

int lr_write_pid_file(const char *path, pid_t pid, struct lr_err *err)
{
	/* A reader that waits for the file to appear never sees it empty. */
	char tmp[PATH_MAX], text[16];
	const char *slash = strrchr(path, '/');
	int dir = slash ? (int)(slash - path) + 1 : 0;

	if ((size_t)snprintf(tmp, sizeof(tmp), "%.*s.%s.%d", dir, path, path + dir, getpid()) >=
	    sizeof(tmp))
		return lr_fail(err, ENAMETOOLONG, "write the pid file %s", path);
	LR_CLEANUP_FD int fd = lr_open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0) {
		lr_fail(err, errno, "create the pid file %s", path);
		return lr_err_hint(err,
				   "the directory given by --pid-file must exist and be writable");
	}
	int len = snprintf(text, sizeof(text), "%d", pid);
	ssize_t n = lr_write_full(fd, text, (size_t)len);
	if (n < 0 || rename(tmp, path) < 0) {
		int why = n < 0 ? (int)-n : errno;
		unlink(tmp);
		return lr_fail(err, why, "write the pid file %s", path);
	}
	return 0;
}

int lr_send_pidfd(const char *path, int pidfd, struct lr_err *err)
{
	if (pidfd < 0) {
		lr_refuse(err, EOPNOTSUPP, "no pidfd to send to %s", path);
		return lr_err_hint(err, "--pidfd-socket needs Linux 5.3");
	}
	LR_CLEANUP_FD int sock = lr_tty_connect(path, err);
	if (sock < 0)
		return sock;
	return lr_tty_send_fd(sock, pidfd, "pidfd", err);
}
