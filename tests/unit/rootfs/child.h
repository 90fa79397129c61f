/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests that mount, unshare and pivot: each body runs in a forked child with a mount namespace
 * of its own and a tmpfs at a temporary directory, both gone when it ends.
 */
#ifndef LR_TEST_CHILD_H
#define LR_TEST_CHILD_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/deny.h"
#include "tests/unit/test.h"

static char base[64]; /* the temporary directory */

#define SKIPPED 77 /* status of a child */

#define NEED_ROOT()                                                                                \
	do {                                                                                       \
		if (geteuid() != 0)                                                                \
			SKIP("needs root");                                                        \
	} while (0)

static inline int wait_for(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* Runs body in a child with the namespaces `flags`; its failures count here, and its SKIP. */
__attribute__((unused)) static void in_child(void (*body)(void), int flags)
{
	fflush(stdout);
	snprintf(base, sizeof(base), "/tmp/lr-test-XXXXXX");
	REQUIRE(mkdtemp(base));
	pid_t pid = fork();
	REQUIRE(pid >= 0);
	if (pid == 0) {
		lr_failures = 0;
		if (unshare(CLONE_NEWNS | flags) < 0 ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		    mount("tmpfs", base, "tmpfs", 0, NULL) < 0) {
			printf("# cannot set the child up: %s\n", strerror(errno));
			_exit(1);
		}
		body();
		fflush(stdout);
		_exit(lr_failures ? 1 : lr_skip ? SKIPPED : 0);
	}
	int status = wait_for(pid);
	CHECK(WIFEXITED(status));
	CHECK_INT(rmdir(base), 0);
	if (WEXITSTATUS(status) == SKIPPED)
		SKIP("the child could not do it");
	CHECK_INT(WEXITSTATUS(status), 0);
}

__attribute__((unused, format(printf, 1, 2))) static const char *in_base(const char *fmt, ...)
{
	static char paths[8][512];
	static int next;
	char *p = paths[next++ % 8];
	va_list ap;

	int n = snprintf(p, sizeof(paths[0]), "%s/", base);
	va_start(ap, fmt);
	vsnprintf(p + n, sizeof(paths[0]) - (size_t)n, fmt, ap);
	va_end(ap);
	return p;
}

__attribute__((unused)) static void put_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	CHECK(fd >= 0);
	if (fd >= 0) {
		CHECK_INT(write(fd, text, strlen(text)), strlen(text));
		close(fd);
	}
}

/* In the child: root of a user namespace that has no other id. False: there are none here. */
__attribute__((unused)) static bool become_userns_root(void)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return false;
	put_file("/proc/self/setgroups", "deny");
	put_file("/proc/self/uid_map", "0 0 1");
	put_file("/proc/self/gid_map", "0 0 1");
	return true;
}

/* The start of a file; "" if it is empty, NULL if it cannot be read. */
__attribute__((unused)) static const char *get_file(const char *path)
{
	static char text[65536];
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return NULL;
	size_t n = 0;
	for (ssize_t r; n < sizeof(text) - 1 && (r = read(fd, text + n, sizeof(text) - 1 - n)) > 0;)
		n += (size_t)r;
	close(fd);
	text[n] = '\0';
	return text;
}

__attribute__((unused)) static int open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

#endif
