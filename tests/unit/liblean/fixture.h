/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the library share: a root file system, configs, containers that end. */
#ifndef FIXTURE_H
#define FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lean/lean.h>

#include "src/lean/lean.h"
#include "src/lifecycle/lifecycle.h"
#include "tests/unit/test.h"

#define UNUSED  __attribute__((unused))

#define BUSYBOX "/bin/busybox"

static char dir[64], root[80], rootfs[80];

UNUSED static void must(bool ok, const char *what)
{
	if (!ok) {
		printf("Bail out! %s: %s\n", what, strerror(errno));
		exit(1);
	}
}

UNUSED static void write_file(const char *name, const char *text, mode_t mode)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/%s", rootfs, name);
	FILE *f = fopen(path, "w");
	must(f != NULL, path);
	fputs(text, f);
	fclose(f);
	must(chmod(path, mode) == 0, path);
}

UNUSED static void shell(const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	must(system(line) == 0, line);
}

/* Mounts, files and control groups; a process of a test that failed may hold on to some. */
UNUSED static void clean(void)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	LR_CLEANUP_FD int store = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct lr_err err = {0};
	char line[256];
	unsigned left = 0;

	if (store >= 0 && (lr_lean_pool_drain(store, root, &left, a, &err) < 0 || left))
		printf("# %u slots are left: %s\n", left, err.msg);
	snprintf(line, sizeof(line),
		 "umount -l %s/.lean/m* 2>/dev/null; rm -rf --one-file-system %s", root, dir);
	if (system(line) != 0)
		printf("# %s is left\n", dir);
}

/* Root, and a static busybox to fill the container with. */
UNUSED static bool ready(void)
{
	static int state = -1;

	if (state >= 0)
		return state;
	state = geteuid() == 0 && access(BUSYBOX, X_OK) == 0;
	if (!state)
		return false;
	snprintf(dir, sizeof(dir), "/tmp/liblean-test-XXXXXX");
	must(mkdtemp(dir) != NULL, dir);
	must(chmod(dir, 0755) == 0, dir);
	snprintf(root, sizeof(root), "%s/root", dir);
	snprintf(rootfs, sizeof(rootfs), "%s/rootfs", dir);
	shell("mkdir -p %s/bin %s/proc %s/dev %s/sys %s/etc %s/tmp", rootfs, rootfs, rootfs, rootfs,
	      rootfs, rootfs);
	shell("cp " BUSYBOX " %s/bin/ && for a in sh sleep cat ls true id; do ln -s busybox "
	      "%s/bin/$a; done",
	      rootfs, rootfs);
	write_file("noexec", "#!/bin/sh\n", 0644);
	write_file("text", "no program\n", 0755);
	write_file("self", "#!/proc/self/exe\n", 0755);
	shell("ln -s /proc/self/exe %s/link", rootfs);
	atexit(clean);
	return true;
}
#define NEEDS_CONTAINERS                                                                           \
	do {                                                                                       \
		if (!ready())                                                                      \
			SKIP("needs root and " BUSYBOX);                                           \
	} while (0)

/* What a test adds to the config: ",\"key\":value" each, but for namespaces, which are these. */
struct parts {
	const char *process, *mounts, *linux_, *namespaces;
};

#define NAMESPACES "{\"type\":\"mount\"},{\"type\":\"ipc\"},{\"type\":\"uts\"}"
#define OWN_PID    ",{\"type\":\"pid\"},{\"type\":\"network\"}"
/* For a user namespace: its ids are the host's. */
#define MAPPING(key) ",\"" key "\":[{\"containerID\":0,\"hostID\":0,\"size\":65536}]"
#define SAME_IDS     MAPPING("uidMappings") MAPPING("gidMappings")

UNUSED static const char *or_empty(const char *s)
{
	return s ? s : "";
}

UNUSED static const char *config_of(struct parts p)
{
	static char text[4096];

	snprintf(text, sizeof(text),
		 "{\"ociVersion\":\"1.0.2\",\"root\":{\"path\":\"nowhere\",\"readonly\":true},"
		 "\"hostname\":\"lean\",\"process\":{\"cwd\":\"/\",\"args\":[\"sh\",\"-c\",\"exit "
		 "7\"],\"env\":[\"PATH=/bin\",\"A=1\"],\"user\":{\"uid\":0,\"gid\":0}%s},"
		 "\"mounts\":[{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"},"
		 "{\"destination\":\"/dev\",\"type\":\"tmpfs\",\"source\":\"tmpfs\",\"options\":["
		 "\"mode=755\"]}%s],\"linux\":{\"namespaces\":[" NAMESPACES "%s]%s}}",
		 or_empty(p.process), or_empty(p.mounts), p.namespaces ? p.namespaces : OWN_PID,
		 or_empty(p.linux_));
	return text;
}

UNUSED static const char *config(const char *process_extra)
{
	return config_of((struct parts){.process = process_extra});
}

UNUSED static int open_parts(const char *profile, struct parts p, struct lean_template **t,
			     struct lean_error *e)
{
	struct lean_options o = {
		.size = sizeof(o),
		.config = config_of(p),
		.rootfs = rootfs,
		.root = root,
		.profile = profile,
	};

	return lean_open(&o, t, e);
}

UNUSED static struct lean_template *open_it(const char *profile, const char *process_extra)
{
	struct lean_template *t = NULL;
	struct lean_error e;

	if (open_parts(profile, (struct parts){.process = process_extra}, &t, &e) < 0)
		printf("# %s\n", e.message);
	return t;
}

UNUSED static struct lean_container *start(struct lean_template *t, const char *const *args)
{
	struct lean_start_options o = {
		.size = sizeof(o), .args = args, .fds = {LEAN_FD_NULL, 1, 2}};
	struct lean_container *c = NULL;
	struct lean_error e;

	if (lean_start(t, &o, &c, &e) < 0)
		printf("# %s\n", e.message);
	return c;
}

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Starts, and fails. */
UNUSED static int start_fails(struct lean_template *t, const char *const *args,
			      struct lean_error *e)
{
	struct lean_start_options o = {.size = sizeof(o), .args = args, .fds = {0, 1, 2}};
	struct lean_container *c = (void *)1;

	int r = lean_start(t, &o, &c, e);
	CHECK(r == 0 || c == (void *)1);
	return r;
}

UNUSED static int end_of(struct lean_container *c)
{
	struct lean_error e;
	int status = -1;

	if (lean_wait(c, 20000, &status, &e) < 0 || lean_delete(c, LEAN_FORCE, &e) < 0)
		printf("# %s\n", e.message);
	return status;
}

/* What `args` prints in a container. */
UNUSED static const char *output(struct lean_template *t, const char *const *args,
				 const char *const *env)
{
	static char text[4096];
	struct lean_container *c;
	struct lean_error e;
	size_t len = 0;
	ssize_t n;
	int p[2];

	must(pipe2(p, O_CLOEXEC) == 0, "pipe");
	struct lean_start_options o = {
		.size = sizeof(o), .args = args, .env = env, .fds = {LEAN_FD_NULL, p[1], p[1]}};
	int r = lean_start(t, &o, &c, &e);
	close(p[1]);
	if (r < 0) {
		printf("# %s\n", e.message);
		close(p[0]);
		return "";
	}
	while ((n = read(p[0], text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)n;
	close(p[0]);
	text[len] = '\0';
	end_of(c);
	return text;
}

/* Containers below the root: none, after every test. */
UNUSED static int left(void)
{
	char line[160];

	snprintf(line, sizeof(line), "exit $(ls %s | wc -l)", root);
	return WEXITSTATUS(system(line));
}

#endif
