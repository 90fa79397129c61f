/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture of the mount tests: each IN_NS test runs in a forked child with a mount namespace of its
 * own, in which a fresh tmpfs is the container's root; it ends with the child. Needs root.
 */
#ifndef FIXTURE_H
#define FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/mount/mount.h"
#include "src/sys/procfs.h"
#include "tests/unit/test.h"

#define ROOT "/tmp/lr-root"

struct fx {
	struct lr_arena *arena;
	struct lr_mount_env env;
	struct lr_mount_opts opts;
	struct lr_err err;
	char text[1200]; /* of the last error */
};

/* One mount: M("/dest", "type", "source", "option", ...). */
#define M(dest, fs, src, ...)                                                                      \
	{                                                                                          \
		.destination = (dest), .type = (fs), .source = (src), .options = OPTS(__VA_ARGS__) \
	}
#define OPTS(...)                                                                                  \
	{                                                                                          \
		.v = (const char *[]){__VA_ARGS__ __VA_OPT__(, ) NULL},                            \
		.n = sizeof((const char *[]){__VA_ARGS__ __VA_OPT__(, ) NULL}) / sizeof(char *) -  \
		     1                                                                             \
	}
#define MOUNTS(...)                                                                                \
	&(struct oci_mounts)                                                                       \
	{                                                                                          \
		.v = (struct oci_mount[]){__VA_ARGS__},                                            \
		.n = sizeof((struct oci_mount[]){__VA_ARGS__}) / sizeof(struct oci_mount)          \
	}

__attribute__((unused)) static int fx_start(struct fx *fx, int flags)
{
	*fx = (struct fx){.arena = lr_arena_new(), .opts = {.bundle = "/tmp"}};
	umask(0);
	if (unshare(CLONE_NEWNS | flags) < 0 || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -errno;
	/* Nothing of the machine's /tmp is touched. */
	if (mount("tmp", "/tmp", "tmpfs", 0, "mode=1777") < 0 || mkdir(ROOT, 0755) < 0 ||
	    mount("root", ROOT, "tmpfs", 0, "mode=755") < 0)
		return -errno;
	fx->env.rootfd = open(ROOT, O_PATH | O_DIRECTORY | O_CLOEXEC);
	fx->env.procfd = lr_procfs_open(&fx->err);
	fx->env.alone = true;
	return fx->env.procfd < 0 ? fx->env.procfd : 0;
}

/* All stages. The text of an error is in fx->text. */
__attribute__((unused)) static int fx_mount(struct fx *fx, const struct oci_mounts *mounts)
{
	struct lr_mount_plan *plan = NULL;
	int r = lr_mount_plan(mounts, &fx->opts, fx->arena, &plan, &fx->err);

	if (r == 0)
		r = lr_mount_prepare(plan, &fx->err);
	if (r == 0)
		r = lr_mount_apply(plan, &fx->env, &fx->err);
	if (r == 0)
		r = lr_mount_finish(plan, &fx->env, &fx->err);
	fx->text[0] = '\0';
	if (r < 0)
		lr_err_format(&fx->err, fx->text, sizeof(fx->text));
	lr_mount_release(plan);
	return r;
}

/*
 * The mountinfo lines below ROOT, without what differs from mount to mount (ids, devices, numbers
 * of peer groups): "/dest root options propagation type source superblock-options\n" each.
 */
__attribute__((unused)) static void fx_mountinfo(char *out, size_t size)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[8192];
	size_t len = 0;

	out[0] = '\0';
	while (f && fgets(line, sizeof(line), f)) {
		char root[1024], where[1024], opts[1024], type[128], source[1024], sb[2048];
		char prop[128] = "";
		char *dash = strstr(line, " - ");
		int at = 0;
		if (!dash ||
		    sscanf(line, "%*d %*d %*s %1023s %1023s %1023s%n", root, where, opts, &at) !=
			    3 ||
		    sscanf(dash + 3, "%127s %1023s %2047s", type, source, sb) != 3)
			continue;
		if (!lr_has_prefix(where, ROOT "/"))
			continue;
		*dash = '\0';
		for (char *p = strtok(line + at, " "); p; p = strtok(NULL, " ")) {
			p[strcspn(p, ":")] = '\0';
			strcat(strcat(prop, p), ",");
		}
		len += (size_t)snprintf(out + len, len < size ? size - len : 0,
					"%s %s %s %s %s %s %s\n", where + strlen(ROOT), root, opts,
					prop, type, source, sb);
	}
	if (f)
		fclose(f);
}

/* Starts over. Private first: unmounting would reach the peers of what is shared. */
__attribute__((unused)) static void fx_new_root(struct fx *fx)
{
	lr_close(fx->env.rootfd);
	CHECK_INT(mount(NULL, ROOT, NULL, MS_REC | MS_PRIVATE, NULL), 0);
	CHECK_INT(umount2(ROOT, MNT_DETACH), 0);
	CHECK_INT(mount("root", ROOT, "tmpfs", 0, "mode=755"), 0);
	fx->env.rootfd = open(ROOT, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* The same mounts must look the same in mountinfo, which is left in fx_lines, by whatever way: the
 * new interface, mount(2) on descriptors, mount(2) directly, the same where others could look. */
static char fx_lines[4][65536];

__attribute__((unused)) static void fx_both(struct fx *fx, const struct oci_mounts *mounts)
{
	for (int i = 0; i < 4; i++) {
		lr_mount_no_new_api = i == 1;
		lr_mount_no_direct = i < 2;
		fx->env.alone = i < 3;
		CHECK_INT(fx_mount(fx, mounts), 0);
		CHECK_STR(fx->text, "");
		fx_mountinfo(fx_lines[i], sizeof(fx_lines[i]));
		fx_new_root(fx);
	}
	fx->env.alone = true;
	CHECK(fx_lines[0][0]);
	for (int i = 1; i < 4; i++)
		CHECK_STR(fx_lines[0], fx_lines[i]);
}

/* The last line for a destination, or "". Static buffer. */
__attribute__((unused)) static const char *fx_line(const char *dest)
{
	static char all[65536], line[4096];
	size_t n = strlen(dest);

	fx_mountinfo(all, sizeof(all));
	line[0] = '\0';
	for (char *save = NULL, *p = strtok_r(all, "\n", &save); p; p = strtok_r(NULL, "\n", &save))
		if (strncmp(p, dest, n) == 0 && p[n] == ' ')
			snprintf(line, sizeof(line), "%s", p);
	return line;
}

__attribute__((unused)) static bool fx_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	lr_close(fd);
	return ok;
}

/* Root of a user namespace that has no other id. */
__attribute__((unused)) static void become_userns_root(void)
{
	CHECK_INT(unshare(CLONE_NEWUSER | CLONE_NEWNS), 0);
	CHECK(fx_write("/proc/self/setgroups", "deny"));
	CHECK(fx_write("/proc/self/uid_map", "0 0 1"));
	CHECK(fx_write("/proc/self/gid_map", "0 0 1"));
}

__attribute__((unused)) static const char *fx_read(const char *path)
{
	static char buf[4096];
	ssize_t n = lr_read_file_at(AT_FDCWD, path, buf, sizeof(buf));

	return n < 0 ? "(unreadable)" : buf;
}

__attribute__((unused)) static void fx_run(void (*body)(struct fx *), int flags)
{
	fflush(NULL);
	if (geteuid() != 0)
		SKIP("needs root");
	pid_t pid = fork();
	if (pid == 0) {
		struct fx fx;
		int r = fx_start(&fx, flags);
		if (r < 0) {
			printf("# no mount namespace: %s\n", strerror(-r));
			fflush(NULL);
			_exit(r == -EPERM ? 77 : 1);
		}
		body(&fx);
		lr_arena_free(fx.arena);
		fflush(NULL);
		_exit(lr_failures ? 1 : lr_skip ? 78 : 0);
	}
	int status;
	REQUIRE(waitpid(pid, &status, 0) == pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		SKIP("mount namespaces are refused here");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 78)
		SKIP("this kernel cannot do it");
	CHECK(WIFEXITED(status));
	CHECK_INT(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), 0);
}

#define IN_NS(id, flags)                                                                           \
	static void body_##id(struct fx *fx);                                                      \
	TEST(id)                                                                                   \
	{                                                                                          \
		fx_run(body_##id, (flags));                                                        \
	}                                                                                          \
	static void body_##id(struct fx *fx)

#endif
