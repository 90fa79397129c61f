/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests: opening paths that a container may have prepared. Every case runs twice, by openat2
 * and by the walk, and both must agree. Below `base`, `root` is the container's root; what lies
 * beside it is the host.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/sys/path.h"
#include "tests/unit/child.h"
#include "tests/unit/test.h"

static char base[64];
static int basefd = -1, rootfd = -1;

static void make_file(int dir, const char *path, const char *text)
{
	int fd = openat(dir, path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && lr_write_full(fd, text, strlen(text)) >= 0);
	close(fd);
}

static bool set_up(void)
{
	snprintf(base, sizeof base, "/tmp/lr-path-XXXXXX");
	if (!mkdtemp(base))
		return false;
	basefd = open(base, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	if (mkdirat(basefd, "root", 0755) < 0 || mkdirat(basefd, "host", 0755) < 0)
		return false;
	rootfd = openat(basefd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	make_file(basefd, "secret", "host secret");
	make_file(basefd, "host/file", "host file");
	mkdirat(rootfd, "a", 0755);
	mkdirat(rootfd, "a/b", 0755);
	mkdirat(rootfd, "a/b/c", 0755);
	mkdirat(rootfd, "etc", 0755);
	make_file(rootfd, "a/b/file", "deep");
	make_file(rootfd, "etc/passwd", "mine");
	make_file(rootfd, "top", "top");
	make_file(rootfd, "secret", "inner secret");
	static const char *const links[][2] = {
		{"up", "../secret"},
		{"upup", "../../../../../../../../secret"},
		{"abs", "/etc/passwd"},
		{"absdir", "/etc"},
		{"reldir", "a/b"},
		{"a/b/back", "../../etc"},
		{"a/b/out", "../../../../host"},
		{"chain1", "chain2"},
		{"chain2", "absdir"},
		{"self", "self"},
		{"ping", "pong"},
		{"pong", "ping"},
		{"dangling", "/nowhere/at/all"},
		{"dangling_here", "newfile"},
		{"dangling_out", "../../newfile"},
		{"slashes", "//etc///passwd"},
		{"trailing", "etc/"},
		{"a/dot", "."},
		{"a/dotdot", ".."},
		{"toroot", "/"},
		{"filelink", "top"},
	};
	for (size_t i = 0; i < LR_ARRAY_SIZE(links); i++)
		CHECK(symlinkat(links[i][1], rootfd, links[i][0]) == 0);
	return rootfd >= 0;
}

static void tear_down(void)
{
	close(rootfd), close(basefd);
	CHECK_INT(lr_remove_tree(AT_FDCWD, base), 0);
	CHECK(access(base, F_OK) < 0);
}

static int no_openat2; /* 0, 1: which half of a case runs */

#define BOTH_WAYS                                                                                  \
	for (no_openat2 = 0; no_openat2 < 2 && (lr_path_no_openat2 = no_openat2, true);            \
	     no_openat2++)

/* -errno, or 0 with the file's text in buf. */
static int read_in(const char *path, bool links, char buf[64])
{
	LR_CLEANUP_FD int fd = links ? lr_open_in(rootfd, path, O_RDONLY, 0)
				     : lr_open_in_nolinks(rootfd, path, O_RDONLY, 0);

	buf[0] = '\0';
	if (fd < 0)
		return fd;
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	ssize_t n = lr_read_full(fd, buf, 63);
	buf[n > 0 ? n : 0] = '\0';
	return 0;
}

TEST(files_are_found_and_nothing_leads_outside)
{
	static const struct {
		const char *path, *text;
		int code, code_nolinks;
	} cases[] = {
		{"/top", "top", 0, 0},
		{"top", "top", 0, 0},
		{"a/b/file", "deep", 0, 0},
		{"//a//b/./file", "deep", 0, 0},
		{"a/../top", "top", 0, 0},
		{"../top", "top", 0, 0},
		{"../../../../../../top", "top", 0, 0},
		{"a/b/../../../../top", "top", 0, 0},
		{"../secret", "inner secret", 0, 0},
		{"up", "inner secret", 0, -ELOOP},
		{"upup", "inner secret", 0, -ELOOP},
		{"abs", "mine", 0, -ELOOP},
		{"absdir/passwd", "mine", 0, -ELOOP},
		{"absdir/../top", "top", 0, -ELOOP},
		{"reldir/file", "deep", 0, -ELOOP},
		{"reldir/../b/file", "deep", 0, -ELOOP}, /* ".." of where the link leads */
		{"reldir/../../top", "top", 0, -ELOOP},
		{"reldir/back/passwd", "mine", 0, -ELOOP},
		{"a/b/out/file", NULL, -ENOENT, -ELOOP},
		{"a/b/back/passwd", "mine", 0, -ELOOP},
		{"chain1/passwd", "mine", 0, -ELOOP},
		{"slashes", "mine", 0, -ELOOP},
		{"trailing/passwd", "mine", 0, -ELOOP},
		{"a/dot/b/file", "deep", 0, -ELOOP},
		{"a/dotdot/top", "top", 0, -ELOOP},
		{"toroot/top", "top", 0, -ELOOP},
		{"toroot/../../top", "top", 0, -ELOOP},
		{"self", NULL, -ELOOP, -ELOOP},
		{"self/x", NULL, -ELOOP, -ELOOP},
		{"ping", NULL, -ELOOP, -ELOOP},
		{"dangling", NULL, -ENOENT, -ELOOP},
		{"nothing", NULL, -ENOENT, -ENOENT},
		{"nothing/x", NULL, -ENOENT, -ENOENT},
		{"top/x", NULL, -ENOTDIR, -ENOTDIR},
		{"top/..", NULL, -ENOTDIR, -ENOTDIR},
		{"top/", NULL, -ENOTDIR, -ENOTDIR},
		{"filelink/", NULL, -ENOTDIR, -ELOOP},
	};
	char buf[64];

	REQUIRE(set_up());
	BOTH_WAYS
	{
		for (size_t i = 0; i < LR_ARRAY_SIZE(cases); i++) {
			int r = read_in(cases[i].path, true, buf);
			lr_check(r == cases[i].code, __FILE__, __LINE__,
				 "%s (walk %d): got %d, want %d", cases[i].path, no_openat2, r,
				 cases[i].code);
			if (r == 0)
				CHECK_STR(buf, cases[i].text);
			r = read_in(cases[i].path, false, buf);
			lr_check(r == cases[i].code_nolinks, __FILE__, __LINE__,
				 "%s without links (walk %d): got %d, want %d", cases[i].path,
				 no_openat2, r, cases[i].code_nolinks);
		}
	}
	lr_path_no_openat2 = false;
	tear_down();
}

static bool same_file(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

TEST(directories_and_the_root_itself)
{
	static const char *const roots[] = {"/",        ".",   "..",        "a/..",     "toroot",
					    "a/dotdot", "/..", "a/b/../..", "toroot/.", "///"};

	REQUIRE(set_up());
	BOTH_WAYS
	{
		for (size_t i = 0; i < LR_ARRAY_SIZE(roots); i++) {
			LR_CLEANUP_FD int fd =
				lr_open_in(rootfd, roots[i], O_PATH | O_DIRECTORY, 0);
			lr_check(fd >= 0 && same_file(fd, rootfd), __FILE__, __LINE__,
				 "%s (walk %d): %d", roots[i], no_openat2, fd);
		}
		CHECK_INT(lr_open_in(rootfd, "top", O_PATH | O_DIRECTORY, 0), -ENOTDIR);
		CHECK_INT(lr_open_in(rootfd, "", O_PATH, 0), -ENOENT);
		CHECK_INT(lr_open_in(-1, "top", O_PATH, 0), -EBADF);
	}
	lr_path_no_openat2 = false;
	tear_down();
}

TEST(the_flags_mean_the_same)
{
	struct stat st;

	REQUIRE(set_up());
	BOTH_WAYS
	{
		/* The link itself. */
		LR_CLEANUP_FD int link = lr_open_in(rootfd, "abs", O_PATH | O_NOFOLLOW, 0);
		CHECK(link >= 0 && fstat(link, &st) == 0 && S_ISLNK(st.st_mode));
		CHECK_INT(lr_open_in(rootfd, "abs", O_RDONLY | O_NOFOLLOW, 0), -ELOOP);
		CHECK_INT(lr_open_in_nolinks(rootfd, "abs", O_PATH, 0), -ELOOP);
		/* Creation, with its mode, also through a dangling link that stays inside. */
		umask(0);
		LR_CLEANUP_FD int made =
			lr_open_in(rootfd, "a/made", O_CREAT | O_EXCL | O_WRONLY, 0640);
		CHECK(made >= 0 && fstat(made, &st) == 0);
		CHECK_INT(st.st_mode & 07777, 0640);
		CHECK_INT(lr_open_in(rootfd, "a/made", O_CREAT | O_EXCL | O_WRONLY, 0640), -EEXIST);
		CHECK_INT(lr_open_in(rootfd, "abs", O_CREAT | O_EXCL | O_WRONLY, 0640), -EEXIST);
		LR_CLEANUP_FD int through =
			lr_open_in(rootfd, "dangling_out", O_CREAT | O_WRONLY, 0600);
		CHECK(through >= 0);
		CHECK(faccessat(rootfd, "newfile", F_OK, 0) == 0);
		CHECK(faccessat(basefd, "newfile", F_OK, 0) < 0);
		umask(022);
		CHECK(unlinkat(rootfd, "a/made", 0) == 0 && unlinkat(rootfd, "newfile", 0) == 0);
		CHECK_INT(lr_open_in(rootfd, "/", O_WRONLY, 0), -EISDIR);
		CHECK_INT(lr_open_in(rootfd, "a", O_RDWR, 0), -EISDIR);
	}
	lr_path_no_openat2 = false;
	tear_down();
}

TEST(deep_paths_and_long_names)
{
	char path[4096] = "", name[300];
	size_t n = 0;

	REQUIRE(set_up());
	for (int i = 0; i < 50; i++)
		n += (size_t)snprintf(path + n, sizeof path - n, "d%d/", i);
	memset(name, 'n', sizeof name);
	name[sizeof name - 1] = '\0';
	BOTH_WAYS
	{
		LR_CLEANUP_FD int fd = lr_mkdir_in(rootfd, path, 0755);
		CHECK(fd >= 0);
		LR_CLEANUP_FD int again = lr_open_in(rootfd, path, O_PATH | O_DIRECTORY, 0);
		CHECK(fd >= 0 && again >= 0 && same_file(fd, again));
		CHECK_INT(lr_open_in(rootfd, name, O_PATH, 0), -ENAMETOOLONG);
		static char huge[5000];
		memset(huge, '/', sizeof huge - 1);
		CHECK_INT(lr_open_in(rootfd, huge, O_PATH, 0), -ENAMETOOLONG);
	}
	lr_path_no_openat2 = false;
	/* Forty links are as many as the kernel follows, and as we do; but where the kernel must
	 * begin anew, because it came upon something to wait for, it counts those of its first try,
	 * too. */
	for (int i = 0; i < 45; i++) {
		char from[16], to[16];
		snprintf(from, sizeof from, "l%d", i);
		snprintf(to, sizeof to, i ? "l%d" : "top", i - 1);
		CHECK(symlinkat(to, rootfd, from) == 0);
	}
	char buf[64];
	BOTH_WAYS
	{
		CHECK_INT(read_in(lr_path_no_openat2 ? "l39" : "l19", true, buf), 0);
		CHECK_INT(read_in("l40", true, buf), -ELOOP);
	}
	lr_path_no_openat2 = false;
	tear_down();
}

TEST(making_directories)
{
	static const struct {
		const char *path, *there; /* below the root */
		int code;
	} cases[] = {
		{"/x/y/z", "x/y/z", 0},
		{"a/b/new", "a/b/new", 0},
		{"absdir/sub/one", "etc/sub/one", 0},
		{"reldir/sub", "a/b/sub", 0},
		{"up2/../x2", "x2", 0},
		{"../../esc", "esc", 0},
		{"upper/n", "n", 0},
		{"top/x", NULL, -ENOTDIR},
		{"top", NULL, -ENOTDIR},
		{"dangling/x", NULL, -ENOENT},
		{"self/x", NULL, -ELOOP},
		{"/", ".", 0},
	};

	REQUIRE(set_up());
	CHECK(symlinkat("../../..", rootfd, "upper") == 0);
	CHECK(mkdirat(rootfd, "up2", 0755) == 0);
	BOTH_WAYS
	{
		for (size_t i = 0; i < LR_ARRAY_SIZE(cases); i++) {
			LR_CLEANUP_FD int fd = lr_mkdir_in(rootfd, cases[i].path, 0750);
			lr_check(cases[i].code ? fd == cases[i].code : fd >= 0, __FILE__, __LINE__,
				 "%s (walk %d): %d", cases[i].path, no_openat2, fd);
			if (fd < 0 || !cases[i].there)
				continue;
			LR_CLEANUP_FD int want = openat(rootfd, cases[i].there, O_PATH | O_CLOEXEC);
			CHECK(same_file(fd, want));
		}
		CHECK(faccessat(basefd, "esc", F_OK, 0) < 0);
		CHECK(faccessat(basefd, "n", F_OK, 0) < 0);
		struct stat st;
		CHECK(fstatat(rootfd, "x/y", &st, 0) == 0 && (st.st_mode & 0777) == 0750);
		CHECK_INT(lr_remove_tree(rootfd, "x"), 0);
		CHECK_INT(lr_remove_tree(rootfd, "esc"), 0);
		CHECK_INT(lr_remove_tree(rootfd, "n"), 0);
		CHECK_INT(lr_remove_tree(rootfd, "etc/sub"), 0);
	}
	lr_path_no_openat2 = false;
	tear_down();
}

TEST(making_files)
{
	struct stat st;

	REQUIRE(set_up());
	BOTH_WAYS
	{
		LR_CLEANUP_FD int a = lr_mkfile_in(rootfd, "/n/m/file", 0644);
		CHECK(a >= 0 && fstat(a, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0);
		CHECK(faccessat(rootfd, "n/m/file", F_OK, 0) == 0);
		LR_CLEANUP_FD int b = lr_mkfile_in(rootfd, "absdir/made", 0600);
		CHECK(b >= 0 && faccessat(rootfd, "etc/made", F_OK, 0) == 0);
		/* What is there stays what it is. */
		LR_CLEANUP_FD int c = lr_mkfile_in(rootfd, "top", 0600);
		CHECK(c >= 0 && fstat(c, &st) == 0 && st.st_size == 3);
		LR_CLEANUP_FD int d = lr_mkfile_in(rootfd, "a/b", 0600);
		CHECK(d >= 0 && fstat(d, &st) == 0 && S_ISDIR(st.st_mode));
		LR_CLEANUP_FD int e = lr_mkfile_in(rootfd, "abs", 0600);
		CHECK(e >= 0 && fstat(e, &st) == 0 && st.st_size == 4);
		/* Never out by a dangling link. */
		CHECK(lr_mkfile_in(rootfd, "dangling_out", 0600) < 0);
		CHECK(faccessat(basefd, "newfile", F_OK, 0) < 0);
		CHECK_INT(lr_mkfile_in(rootfd, "newdir/", 0600), -EINVAL);
		CHECK_INT(lr_remove_tree(rootfd, "n"), 0);
		CHECK_INT(lr_remove_tree(rootfd, "etc/made"), 0);
	}
	lr_path_no_openat2 = false;
	tear_down();
}

/* ---- magic links, races, filters: in a child --------------------------------------------- */

static void magic_body(void)
{
	static const char *const magic[] = {"self/root",   "self/root/etc", "self/cwd",
					    "self/exe",    "self/fd/0",     "self/fd/0/x",
					    "self/ns/mnt", "self/ns/net",   "self/root/../etc"};
	int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char buf[256];

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return;
	BOTH_WAYS
	{
		for (size_t i = 0; i < LR_ARRAY_SIZE(magic); i++) {
			int r = lr_open_in(proc, magic[i], O_PATH, 0);
			lr_check(r == -ELOOP, __FILE__, __LINE__, "%s (walk %d): %d", magic[i],
				 no_openat2, r);
			lr_close(r);
		}
		/* procfs' plain links are links like any other. */
		LR_CLEANUP_FD int comm = lr_open_in(proc, "self/comm", O_RDONLY, 0);
		CHECK(comm >= 0 && lr_read_full(comm, buf, sizeof buf) > 0);
		LR_CLEANUP_FD int mounts = lr_open_in(proc, "mounts", O_RDONLY, 0);
		CHECK(mounts >= 0);
		LR_CLEANUP_FD int net = lr_open_in(proc, "net/dev", O_RDONLY, 0);
		CHECK(net >= 0);
		LR_CLEANUP_FD int thread = lr_open_in(proc, "thread-self/comm", O_RDONLY, 0);
		CHECK(thread >= 0);
		/* An image's link into procfs. */
		LR_CLEANUP_FD int host = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
		int r = lr_open_in(host, "/proc/self/root/etc/passwd", O_PATH, 0);
		CHECK_INT(r, -ELOOP);
		lr_close(r);
	}
	lr_path_no_openat2 = false;
}

TEST(magic_links_are_never_followed)
{
	if (geteuid() != 0)
		SKIP("needs root");
	in_child(magic_body);
}

/* Somebody swaps a directory and a link to the host while we resolve. */
static void race_body(void)
{
	char buf[64];
	size_t opened = 0, leaked = 0;

	pid_t swapper = fork();
	if (swapper == 0)
		for (;;) { /* RENAME_EXCHANGE */
			syscall(SYS_renameat2, rootfd, "swap", rootfd, "swap2", 2);
		}
	BOTH_WAYS
	{
		for (int i = 0; i < 20000; i++) {
			int r = read_in("swap/../secret", true, buf);
			leaked += r == 0 && strcmp(buf, "host secret") == 0;
			opened += r == 0;
			r = read_in("swap/secret", true, buf);
			leaked += r == 0 && strcmp(buf, "host secret") == 0;
		}
	}
	kill(swapper, SIGKILL);
	waitpid(swapper, NULL, 0);
	CHECK_INT(leaked, 0);
	CHECK(opened > 0);
}

TEST(racing_renames_lead_nowhere)
{
	REQUIRE(set_up());
	CHECK(mkdirat(rootfd, "swap", 0755) == 0);
	CHECK(symlinkat("../../..", rootfd, "swap2") == 0);
	in_child(race_body);
	lr_path_no_openat2 = false;
	tear_down();
}

/* A directory is moved up and out of a deep place while ".." is resolved below it. */
static void move_out_body(void)
{
	char buf[64];
	size_t leaked = 0;

	pid_t mover = fork();
	if (mover == 0)
		for (;;) {
			renameat(rootfd, "a/b", rootfd, "moved");
			renameat(rootfd, "moved", rootfd, "a/b");
		}
	BOTH_WAYS
	{
		for (int i = 0; i < 20000; i++) {
			int r = read_in("a/b/c/../../../../secret", true, buf);
			leaked += r == 0 && strcmp(buf, "host secret") == 0;
		}
	}
	kill(mover, SIGKILL);
	waitpid(mover, NULL, 0);
	CHECK_INT(leaked, 0);
}

TEST(moved_directories_lead_nowhere)
{
	REQUIRE(set_up());
	in_child(move_out_body);
	lr_path_no_openat2 = false;
	tear_down();
}

TEST(descriptors_are_not_leaked)
{
	int before = dup(0);

	close(before);
	REQUIRE(set_up());
	int base_next = dup(0);
	close(base_next);
	BOTH_WAYS
	{
		static const char *const paths[] = {
			"a/b/file",      "a/b/c/../../b/file", "self",         "top/x", "nothing/x",
			"chain1/passwd", "dangling",           "a/b/out/file", "upup"};
		for (size_t i = 0; i < LR_ARRAY_SIZE(paths); i++) {
			lr_close(lr_open_in(rootfd, paths[i], O_PATH, 0));
			lr_close(lr_open_in_nolinks(rootfd, paths[i], O_RDONLY, 0));
			lr_close(lr_mkdir_in(rootfd, paths[i], 0755));
			lr_close(lr_mkfile_in(rootfd, paths[i], 0644));
		}
	}
	lr_path_no_openat2 = false;
	int next = dup(0);
	CHECK_INT(next, base_next);
	close(next);
	tear_down();
}

/* ---- the runtime's own directories ------------------------------------------------------- */

TEST(mkdir_p)
{
	char path[256];
	struct stat st;

	REQUIRE(set_up());
	snprintf(path, sizeof path, "%s/p/q/r", base);
	CHECK_INT(lr_mkdir_p(path, 0700), 0);
	CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0700);
	CHECK_INT(lr_mkdir_p(path, 0700), 0);
	snprintf(path, sizeof path, "%s//p/q2///r2/", base);
	CHECK_INT(lr_mkdir_p(path, 0700), 0);
	CHECK(stat(path, &st) == 0);
	snprintf(path, sizeof path, "%s/secret/x", base);
	CHECK_INT(lr_mkdir_p(path, 0700), -ENOTDIR);
	snprintf(path, sizeof path, "%s/secret", base);
	CHECK(lr_mkdir_p(path, 0700) < 0); /* a file is not the directory asked for */
	tear_down();
}

static void remove_body(void)
{
	char path[256];
	struct stat st;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		CHECK(false);
		return;
	}
	/* A mount of another file system, and one of the same. The old descriptor is of the old
	 * namespace, which does not see them. */
	close(basefd);
	basefd = open(base, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	CHECK(mkdirat(basefd, "tree", 0755) == 0 && mkdirat(basefd, "tree/m", 0755) == 0);
	snprintf(path, sizeof path, "%s/tree/m", base);
	CHECK(mount("tmpfs", path, "tmpfs", 0, NULL) == 0);
	make_file(basefd, "tree/m/inside", "x");
	CHECK(lr_remove_tree(basefd, "tree") < 0);
	CHECK(fstatat(basefd, "tree/m/inside", &st, 0) == 0);
	CHECK(umount(path) == 0);

	char host[256];
	snprintf(host, sizeof host, "%s/host", base);
	CHECK(mount(host, path, NULL, MS_BIND, NULL) == 0);
	CHECK(lr_remove_tree(basefd, "tree") < 0);
	CHECK(fstatat(basefd, "host/file", &st, 0) == 0);
	/* Given itself as the thing to remove. */
	CHECK(lr_remove_tree(basefd, "tree/m") < 0);
	CHECK(fstatat(basefd, "host/file", &st, 0) == 0);
	CHECK(umount(path) == 0);
	CHECK_INT(lr_remove_tree(basefd, "tree"), 0);
}

TEST(removing_trees)
{
	struct stat st;

	if (geteuid() != 0)
		SKIP("needs root");
	REQUIRE(set_up());
	CHECK_INT(lr_remove_tree(basefd, "none"), 0);
	/* A link is removed, not followed. */
	CHECK(symlinkat("host", basefd, "link") == 0);
	CHECK_INT(lr_remove_tree(basefd, "link"), 0);
	CHECK(fstatat(basefd, "host/file", &st, 0) == 0);
	CHECK(symlinkat("../host", basefd, "root/linkdir") == 0);
	BOTH_WAYS in_child(remove_body);
	lr_path_no_openat2 = false;
	tear_down();
}
