/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests that mount, unshare and pivot: each body runs in a forked child with a mount namespace
 * of its own and a tmpfs at a temporary directory, both gone when it ends. Used by the tests of
 * rootfs, device, hook and netdev.
 */
#ifndef LR_TEST_CHILD_H
#define LR_TEST_CHILD_H

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/test.h"

static char base[64]; /* the temporary directory */

#define NEED_ROOT()                                                                                \
	do {                                                                                       \
		if (geteuid() != 0)                                                                \
			SKIP("needs root");                                                        \
	} while (0)

/* In the child: leave, with what went wrong. Also what REQUIRE's return leads to. */
static inline int wait_for(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* Runs body in a child with the namespaces `flags`; its failures count here. */
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
		_exit(lr_failures ? 1 : 0);
	}
	int status = wait_for(pid);
	CHECK(WIFEXITED(status));
	CHECK_INT(WEXITSTATUS(status), 0);
	CHECK_INT(rmdir(base), 0);
}

/* From here on, `nr` fails with `code` in this process and its children. */
__attribute__((unused)) static void deny(int nr, int code)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)code),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog p = {.len = sizeof(f) / sizeof(f[0]), .filter = f};

	CHECK_INT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_INT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p), 0);
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
