/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp: programs in files and in the cache; whatever is wrong there, the result is right. */
#include "tests/unit/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/seccomp/seccomp.h"
#include "src/sys/path.h"
#include "src/sys/syscalls.h"
#include "tests/unit/seccomp/profile.h"

static struct lr_arena *arena;
static struct lr_err err;
static char dir[64];

static int make_root(void)
{
	arena = lr_arena_new();
	strcpy(dir, "/tmp/lr-seccomp-XXXXXX");
	return mkdtemp(dir) ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
}

static void remove_root(int fd)
{
	CHECK_INT(lr_remove_tree(AT_FDCWD, dir), 0);
	close(fd);
	lr_arena_free(arena);
}

/* The one file in a directory, and how many there are. */
static int count_files(int fd, char *name)
{
	int n = 0;
	DIR *d = fdopendir(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));

	for (struct dirent *e; (e = readdir(d));)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
			strcpy(name, e->d_name);
			n++;
		}
	closedir(d);
	return n;
}

static struct lr_seccomp_plan a_plan(const char *name)
{
	static const char *names[1];
	static struct oci_seccomp_rule rule;
	struct oci_seccomp s = {.default_action = "SCMP_ACT_ERRNO", .syscalls = {&rule, 1}};
	struct lr_seccomp_plan plan = {0};

	names[0] = name;
	rule = (struct oci_seccomp_rule){.names = {names, 1}, .action = "SCMP_ACT_ALLOW"};
	CHECK_INT(lr_seccomp_plan(&s, NULL, arena, &plan, &err), 0);
	return plan;
}

static bool same(const struct lr_seccomp_prog *a, const struct lr_seccomp_prog *b)
{
	return a->n == b->n && memcmp(a->v, b->v, a->n * sizeof(*a->v)) == 0 &&
	       a->flags == b->flags && a->notify == b->notify;
}

TEST(a_program_survives_a_file)
{
	LR_CLEANUP_FD int fd = lr_memfd_create("x", MFD_CLOEXEC);
	struct lr_seccomp_prog p, q;
	struct lr_seccomp_plan plan;

	arena = lr_arena_new();
	plan = a_plan("read");
	CHECK_INT(lr_seccomp_compile(&plan, arena, &p, &err), 0);
	p.notify = true;
	p.flags = 3;
	p.listener_path = "/run/agent.sock";
	p.listener_metadata = "";
	CHECK_INT(lr_seccomp_save(&p, fd, &err), 0);
	lseek(fd, 0, SEEK_SET);
	CHECK_INT(lr_seccomp_restore(fd, arena, &q, &err), 0);
	CHECK(same(&p, &q));
	CHECK_STR(q.listener_path, "/run/agent.sock");
	CHECK_STR(q.listener_metadata, "");

	/* Every single changed byte, and every shorter or longer file, is noticed. */
	off_t size = lseek(fd, 0, SEEK_END);
	unsigned char *bytes = lr_alloc(arena, (size_t)size), was;
	CHECK(pread(fd, bytes, (size_t)size, 0) == size);
	int accepted = 0;
	for (off_t i = 0; i < size; i++) {
		was = bytes[i] ^ 0x41;
		CHECK(pwrite(fd, &was, 1, i) == 1);
		lseek(fd, 0, SEEK_SET);
		accepted += lr_seccomp_restore(fd, arena, &q, &err) == 0;
		CHECK(pwrite(fd, &bytes[i], 1, i) == 1);
	}
	CHECK_INT(accepted, 0);
	for (off_t i = 0; i < size; i++) {
		CHECK(ftruncate(fd, i) == 0);
		lseek(fd, 0, SEEK_SET);
		CHECK_INT(lr_seccomp_restore(fd, arena, &q, &err), -EBADMSG);
	}
	CHECK(pwrite(fd, bytes, (size_t)size, 0) == size && ftruncate(fd, size + 1) == 0);
	lseek(fd, 0, SEEK_SET);
	CHECK_INT(lr_seccomp_restore(fd, arena, &q, &err), -EBADMSG);
	lr_arena_free(arena);
}

TEST(checker_knows_bad_programs)
{
	static const struct sock_filter ret = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_filter v[3] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), ret, ret};

	CHECK(lr_seccomp_valid(v, 3));
	CHECK(!lr_seccomp_valid(v, 0));
	CHECK(!lr_seccomp_valid(v, 1));
	v[0].k = 64; /* behind struct seccomp_data */
	CHECK(!lr_seccomp_valid(v, 3));
	v[0].k = 2;
	CHECK(!lr_seccomp_valid(v, 3));
	v[0] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2);
	CHECK(!lr_seccomp_valid(v, 3));
	v[0].jf = 1;
	CHECK(lr_seccomp_valid(v, 3));
	v[0] = (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 2);
	CHECK(!lr_seccomp_valid(v, 3));
	v[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0);
	CHECK(!lr_seccomp_valid(v, 3));
}

TEST(second_time_from_the_cache)
{
	struct lr_seccomp_prog first, second;
	char name[300];
	struct stat before, after;
	int root = make_root();

	REQUIRE(root >= 0);
	LR_CLEANUP_FD int cache = lr_seccomp_cache_open(root);
	REQUIRE(cache >= 0);
	struct lr_seccomp_plan plan = a_plan("read");
	plan.listener_path = "/not/part/of/it";
	CHECK_INT(lr_seccomp_get(&plan, cache, arena, &first, &err), 0);
	CHECK_INT(count_files(cache, name), 1);
	CHECK(fstatat(cache, name, &before, 0) == 0 && (before.st_mode & 07777) == 0600);
	plan.listener_path = "/run/agent.sock";
	CHECK_INT(lr_seccomp_get(&plan, cache, arena, &second, &err), 0);
	CHECK(same(&first, &second));
	CHECK_STR(second.listener_path, "/run/agent.sock");
	CHECK(fstatat(cache, name, &after, 0) == 0 && after.st_ino == before.st_ino);

	/* Prove that it is read: a planted program, valid in every respect, is what comes out. */
	struct lr_seccomp_plan other = a_plan("write");
	CHECK_INT(lr_seccomp_get(&other, cache, arena, &first, &err), 0);
	CHECK_INT(count_files(cache, name), 2);
	CHECK(!same(&first, &second));
	remove_root(root);
}

TEST(another_policy_under_the_same_name)
{
	struct lr_seccomp_prog p, q;
	char name[300], name2[300];
	int root = make_root();

	REQUIRE(root >= 0);
	LR_CLEANUP_FD int cache = lr_seccomp_cache_open(root);
	struct lr_seccomp_plan a = a_plan("read"), b;
	CHECK_INT(lr_seccomp_get(&a, cache, arena, &p, &err), 0);
	CHECK_INT(count_files(cache, name), 1);
	CHECK_INT(renameat(cache, name, cache, "saved"), 0);
	b = a_plan("write");
	CHECK_INT(lr_seccomp_get(&b, cache, arena, &q, &err), 0);
	CHECK_INT(unlinkat(cache, "saved", 0), 0);
	CHECK_INT(count_files(cache, name2), 1);
	/* As if the two hashes were equal. */
	CHECK_INT(renameat(cache, name2, cache, name), 0);
	a = a_plan("read");
	CHECK_INT(lr_seccomp_get(&a, cache, arena, &q, &err), 0);
	CHECK(same(&p, &q));
	remove_root(root);
}

TEST(damage_is_repaired)
{
	struct lr_seccomp_prog p, q;
	char name[300];
	int root = make_root();

	REQUIRE(root >= 0);
	LR_CLEANUP_FD int cache = lr_seccomp_cache_open(root);
	struct lr_seccomp_plan plan = a_plan("read");
	CHECK_INT(lr_seccomp_get(&plan, cache, arena, &p, &err), 0);
	CHECK_INT(count_files(cache, name), 1);
	for (int kind = 0; kind < 5; kind++) {
		int fd = openat(cache, name, O_RDWR | O_CLOEXEC);
		REQUIRE(fd >= 0);
		off_t size = lseek(fd, 0, SEEK_END);

		switch (kind) {
		case 0:
			CHECK(ftruncate(fd, size / 2) == 0);
			break;
		case 1: /* one instruction: everything is allowed */
			CHECK(pwrite(fd, "\xff\x7f", 2, size - 2) == 2);
			break;
		case 2:
			CHECK(ftruncate(fd, 0) == 0);
			break;
		case 3: /* somebody else could have written it */
			CHECK(fchmod(fd, 0666) == 0);
			break;
		case 4:
			CHECK(unlinkat(cache, name, 0) == 0 &&
			      symlinkat("/etc/passwd", cache, name) == 0);
			break;
		}
		close(fd);
		CHECK_INT(lr_seccomp_get(&plan, cache, arena, &q, &err), 0);
		CHECK(same(&p, &q));
		struct stat st;
		CHECK(fstatat(cache, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
		      (st.st_mode & 07777) == 0600 && st.st_size > 0);
		CHECK_INT(count_files(cache, name), 1);
	}
	if (geteuid() == 0) {
		CHECK_INT(fchownat(cache, name, 1, 1, 0), 0);
		CHECK_INT(lr_seccomp_get(&plan, cache, arena, &q, &err), 0);
		struct stat st;
		CHECK(fstatat(cache, name, &st, 0) == 0 && st.st_uid == 0);
	}
	remove_root(root);
}

TEST(a_directory_of_others_is_not_used)
{
	int root = make_root();

	REQUIRE(root >= 0);
	CHECK_INT(mkdirat(root, ".seccomp", 0755), 0);
	CHECK_INT(fchmodat(root, ".seccomp", 0755, 0), 0);
	CHECK(lr_seccomp_cache_open(root) == -EPERM);
	CHECK_INT(unlinkat(root, ".seccomp", AT_REMOVEDIR), 0);
	CHECK_INT(symlinkat("/tmp", root, ".seccomp"), 0);
	CHECK(lr_seccomp_cache_open(root) < 0);
	struct lr_seccomp_plan plan = a_plan("read");
	struct lr_seccomp_prog p;
	CHECK_INT(lr_seccomp_get(&plan, LR_NOFD, arena, &p, &err), 0);
	remove_root(root);
}

TEST(it_does_not_grow_for_ever)
{
	struct lr_seccomp_prog p;
	char name[300], call[32];
	int root = make_root();

	REQUIRE(root >= 0);
	LR_CLEANUP_FD int cache = lr_seccomp_cache_open(root);
	for (int i = 0; i < 600; i++) {
		snprintf(call, sizeof(call), "call_%d", i);
		struct lr_seccomp_plan plan = a_plan(call);
		CHECK_INT(lr_seccomp_get(&plan, cache, arena, &p, &err), 0);
	}
	int n = count_files(cache, name);
	CHECK(n > 0 && n <= 256);
	remove_root(root);
}

TEST(every_difference_makes_another_key)
{
	size_t len, len2;

	arena = lr_arena_new();
	struct lr_seccomp_plan a = a_plan("read"), b;
	const void *x = lr_seccomp_canonical(&a, arena, &len);
	for (int i = 0; i < 4; i++) {
		b = a;
		uint32_t archs[2] = {a.archs[0], 3};
		struct lr_seccomp_rule rule = a.rules[0];

		b.default_action += i == 0;
		b.flags += i == 1;
		if (i == 2) {
			b.archs = archs;
			b.n_archs = 2;
		}
		rule.action += i == 3;
		b.rules = &rule;
		const void *y = lr_seccomp_canonical(&b, arena, &len2);
		CHECK(len != len2 || memcmp(x, y, len) != 0);
	}
	lr_arena_free(arena);
}
