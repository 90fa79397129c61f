/* SPDX-License-Identifier: Apache-2.0 */
/* user: strict parsing, the passwd reader, and the ids a process really gets. */
#include "tests/unit/fork.h"
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/arena.h"
#include "src/base/fd.h"
#include "src/user/user.h"

static int parse(const char *s, uint32_t *uid, uint32_t *gid, bool *has)
{
	struct lr_err err = {0};
	int r = lr_user_parse(s, uid, gid, has, &err);

	if (r < 0)
		CHECK_HAS(err.hint, "UID:GID");
	return r;
}

TEST(exec_user_is_strict)
{
	static const char *const bad[] = {
		"",
		":",
		":1",
		"1:",
		"1:2:3",
		"-1",
		"+1",
		" 1",
		"1 ",
		"1\n",
		"0x10",
		"1a",
		"root",
		"1:a",
		"1: 2",
		"1:-2",
		"1.0",
		"1,2",
		"4294967295",
		"4294967296",
		"18446744073709551616",
		"99999999999999999999999999",
		"1:4294967295",
		"0:root",
	};
	uint32_t uid = 7, gid = 8;
	bool has = false;

	CHECK_INT(parse("0", &uid, &gid, &has), 0);
	CHECK(uid == 0 && gid == 8 && !has);
	CHECK_INT(parse("1000:100", &uid, &gid, &has), 0);
	CHECK(uid == 1000 && gid == 100 && has);
	CHECK_INT(parse("4294967294:0", &uid, &gid, &has), 0);
	CHECK(uid == 4294967294u && gid == 0 && has);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		uid = 7;
		CHECK_INT(parse(bad[i], &uid, &gid, &has), -EINVAL);
		CHECK_INT(uid, 7);
	}
}

TEST(home_of_a_passwd_text)
{
	char home[64], text[512];
	static const char file[] = "# comment\n\nroot:x:0:0:root:/root:/bin/sh\n"
				   "short:x:5\nrel:x:6:6::home/rel:/bin/sh\n"
				   "neg:x:-1:0::/neg:\nspace:x: 7:0::/space:\n"
				   "a:x:1000:1000::/home/a:/bin/sh\nb:x:1000:1::/home/b:/bin/sh\n"
				   "last:x:1001:1::/home/last";

#define HOME(id) (strcpy(text, file), lr_user_home_in(text, id, home, sizeof(home)))
	CHECK(HOME(0));
	CHECK_STR(home, "/root");
	CHECK(HOME(1000));
	CHECK_STR(home, "/home/a");
	CHECK(HOME(1001));
	CHECK_STR(home, "/home/last");
	CHECK(!HOME(5));
	CHECK(!HOME(6));
	CHECK(!HOME(7));
	CHECK(!HOME(4294967295u));
	strcpy(text, file);
	CHECK(!lr_user_home_in(text, 1000, home, 7)); /* "/home/a" needs 8 */
}

/* A root directory with the given etc/passwd; returns its descriptor. */
static int fake_root(char *dir, const char *text, size_t len)
{
	char path[128];

	strcpy(dir, "/tmp/lr-user-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/etc", dir);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/etc/passwd", dir);
	if (text) {
		int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
		CHECK(lr_write_full(fd, text, len) == (ssize_t)len);
		close(fd);
	} else {
		mkfifo(path, 0644);
	}
	return open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void remove_root(const char *dir)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/etc/passwd", dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/etc", dir);
	rmdir(path);
	rmdir(dir);
}

TEST(home_from_files_of_all_shapes)
{
	char dir[64], home[64];
	size_t len = 0;
	char *big = malloc(200000);

	REQUIRE(big);
	/* Many lines, one far longer than the window, an embedded NUL, then the one wanted. */
	for (int i = 0; i < 2000; i++)
		len += (size_t)sprintf(big + len, "u%d:x:%d:1::/h/%d:/bin/sh\n", i, i + 10, i);
	memset(big + len, 'x', 9000);
	len += 9000;
	len += (size_t)sprintf(big + len, ":x:50000:1::/wrong:\n");
	big[len++] = '\0';
	len += (size_t)sprintf(big + len, "z:x:60000:1::/right:/bin/sh");

	LR_CLEANUP_FD int root = fake_root(dir, big, len);
	CHECK_INT(lr_user_home(root, 1509, home, sizeof(home)), 0);
	CHECK_STR(home, "/h/1499");
	CHECK_INT(lr_user_home(root, 60000, home, sizeof(home)), 0);
	CHECK_STR(home, "/right");
	CHECK_INT(lr_user_home(root, 50000, home, sizeof(home)), 0);
	CHECK_STR(home, "/"); /* too long a line never counts */
	CHECK_INT(lr_user_home(root, 70000, home, sizeof(home)), 0);
	CHECK_STR(home, "/");
	remove_root(dir);
	root = lr_close(root);

	root = fake_root(dir, NULL, 0); /* a FIFO must not block */
	CHECK_INT(lr_user_home(root, 0, home, sizeof(home)), 0);
	CHECK_STR(home, "/");
	remove_root(dir);
	CHECK_INT(lr_user_home(root, 0, home, sizeof(home)), 0);
	CHECK_STR(home, "/");
	CHECK_INT(lr_user_home(root, 0, home, 1), -ENAMETOOLONG);
	free(big);
}

TEST(plan_refuses_what_the_kernel_would_misread)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	uint32_t gids[] = {1, 2, UINT32_MAX}, mask = 027, bad_mask = 010000;
	struct oci_user u = {.uid = 1, .gid = 2, .umask = &mask};
	struct lr_user_plan p;
	struct lr_err err = {0};

	u.additional_gids.v = gids;
	u.additional_gids.n = 2;
	CHECK_INT(lr_user_plan(&u, NULL, a, &p, &err), 0);
	CHECK(p.uid == 1 && p.gid == 2 && p.n_gids == 2 && p.gids[1] == 2);
	CHECK(p.has_umask && p.umask == 027 && !p.keep_groups);

	struct oci_pair pair = {LR_USER_KEEP_GROUPS, "1"};
	struct oci_map notes = {&pair, 1};
	CHECK_INT(lr_user_plan(&u, &notes, a, &p, &err), -EINVAL);
	u.additional_gids.n = 0;
	CHECK_INT(lr_user_plan(&u, &notes, a, &p, &err), 0);
	CHECK(p.keep_groups);
	pair.value = "0";
	CHECK_INT(lr_user_plan(&u, &notes, a, &p, &err), 0);
	CHECK(!p.keep_groups);

	u.additional_gids.n = 3;
	CHECK_INT(lr_user_plan(&u, NULL, a, &p, &err), -EINVAL);
	CHECK_STR(err.path, "process.user.additionalGids[2]");
	u.additional_gids.n = 0;
	u.umask = &bad_mask;
	CHECK_INT(lr_user_plan(&u, NULL, a, &p, &err), -EINVAL);
	u.umask = NULL;
	u.gid = UINT32_MAX;
	CHECK_INT(lr_user_plan(&u, NULL, a, &p, &err), -EINVAL);
	CHECK_STR(err.path, "process.user.gid");
}

static int becomes(void)
{
	gid_t want[] = {30, 40}, got[8];
	struct lr_user_plan p = {.uid = 1001,
				 .gid = 1002,
				 .gids = want,
				 .n_gids = 2,
				 .has_umask = true,
				 .umask = 077};
	struct lr_err err = {0};
	uid_t r, e, s;

	if (lr_user_apply(&p, &err))
		return 10;
	if (getresuid(&r, &e, &s) || r != 1001 || e != 1001 || s != 1001)
		return 11;
	if (getresgid(&r, &e, &s) || r != 1002 || e != 1002 || s != 1002)
		return 12;
	if (getgroups(8, got) != 2 || got[0] != 30 || got[1] != 40 || umask(0) != 077)
		return 13;
	/* No way back, and the error says what is missing. */
	p.uid = 0;
	p.keep_groups = true;
	p.gid = 1002;
	if (lr_user_apply(&p, &err) != -EPERM || !strstr(err.hint, "CAP_SETUID"))
		return 14;
	return 0;
}

static int drops_groups(void)
{
	gid_t two[] = {3, 4};
	struct lr_user_plan p = {.uid = 5, .gid = 6};
	struct lr_err err = {0};

	if (setgroups(2, two))
		return 10;
	p.keep_groups = true;
	p.uid = 0;
	p.gid = 0;
	if (lr_user_apply(&p, &err) || getgroups(0, NULL) != 2)
		return 11;
	p.keep_groups = false;
	p.uid = 5;
	if (lr_user_apply(&p, &err) || getgroups(0, NULL) != 0)
		return 12;
	return 0;
}

/* In a user namespace whose gid map was written without privilege, setgroups is denied. */
static int userns_denies(void)
{
	gid_t one[] = {0};
	struct lr_user_plan p = {0};
	struct lr_err err = {0};

	/* Dumpable again, or /proc/self/ would belong to root after the change of user. */
	if (setresuid(1000, 1000, 1000) || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) ||
	    unshare(CLONE_NEWUSER))
		return 77;
	if (lr_write_file_at(AT_FDCWD, "/proc/self/setgroups", "deny") ||
	    lr_write_file_at(AT_FDCWD, "/proc/self/uid_map", "0 1000 1\n") ||
	    lr_write_file_at(AT_FDCWD, "/proc/self/gid_map", "0 0 1\n"))
		return 77;
	if (lr_user_apply(&p, &err))
		return 10;
	p.gids = one;
	p.n_gids = 1;
	if (lr_user_apply(&p, &err) != -EPERM || !strstr(err.hint, "denied"))
		return 11;
	p.n_gids = 0;
	p.uid = 1;
	if (lr_user_apply(&p, &err) != -EINVAL || !strstr(err.hint, "uidMappings"))
		return 12;
	return 0;
}

static int owns_stdio(void)
{
	struct lr_user_plan p = {.uid = 1001};
	struct lr_err err = {0};
	struct stat st;
	int pipes[2];

	if (pipe2(pipes, O_CLOEXEC) || dup2(pipes[1], 1) != 1)
		return 9;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (dup2(null, 2) != 2 || close(0) || lr_user_own_stdio(&p, &err))
		return 10;
	if (fstat(1, &st) || st.st_uid != 1001)
		return 11;
	if (fstat(2, &st) || st.st_uid != 0)
		return 12;
	return 0;
}

TEST(a_process_becomes_the_user)
{
	if (geteuid() != 0)
		SKIP("needs root");
	CHECK_INT(in_child(becomes), 0);
	CHECK_INT(in_child(drops_groups), 0);
	CHECK_INT(in_child(owns_stdio), 0);
	int r = in_child(userns_denies);
	if (r == 77)
		SKIP("no unprivileged user namespaces here");
	CHECK_INT(r, 0);
}
