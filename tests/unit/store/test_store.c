/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: entries, locks, and who is believed. */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "src/base/fd.h"
#include "src/store/holder.h"
#include "src/store/store.h"
#include "src/store/trust.h"
#include "tests/unit/rootfs/child.h"

static struct lr_arena *arena;
static struct lr_store store;
static struct lr_err why;

static void with_store(void (*body)(void))
{
	arena = lr_arena_new();
	CHECK_INT(lr_store_open(in_base("root"), true, arena, &store, &why), 0);
	body();
	lr_store_close(&store);
	lr_arena_free(arena);
}

static const struct lr_record sample = {.pid = 1,
					.start_time = 2,
					.id = "one",
					.oci_version = "1.0.2",
					.bundle = "/b",
					.rootfs = "/r",
					.created = "now"};

static int load(const char *id, struct lr_record *r)
{
	const char *text;
	size_t len;

	return lr_store_load(&store, id, arena, r, &text, &len, &why);
}

static void life(void)
{
	struct lr_entry e = LR_ENTRY_NONE, again = LR_ENTRY_NONE;
	struct lr_record r = sample;
	struct oci_strv ids;

	CHECK_INT(load("one", &r), -ENOENT);
	CHECK_INT(lr_store_create(&store, "one", &e, &why), 0);
	CHECK_INT(lr_store_create(&store, "one", &again, &why), -EEXIST);
	CHECK_INT(load("one", &r), -ENODATA);
	CHECK_INT(lr_store_write(&e, &sample, "{}", 2, arena, &why), 0);
	r.pid = 77;
	r.flags = LR_RECORD_STARTED;
	CHECK_INT(lr_store_update(&e, &r, &why), 0);
	r = (struct lr_record){0};
	CHECK_INT(load("one", &r), 0);
	CHECK_INT(r.pid, 77);
	CHECK_INT(r.flags, LR_RECORD_STARTED);
	CHECK_INT(r.owner, geteuid());
	/* A second write is a new file, and the old one is whole until then. */
	CHECK_INT(lr_store_write(&e, &sample, "{}", 2, arena, &why), 0);
	CHECK_INT(load("one", &r), 0);
	CHECK_INT(r.pid, 1);
	CHECK_INT(lr_store_list(&store, arena, &ids, &why), 0);
	CHECK_INT(ids.n, 1);
	CHECK_INT(lr_store_remove(&e, &why), 0);
	CHECK_INT(lr_store_remove(&e, &why), 0);
	/* Whoever waited for the lock of what is gone by now. */
	lr_store_leave(&e);
	CHECK_INT(lr_store_return(&e, &why), -ENOENT);
	lr_store_unlock(&e);
	CHECK_INT(load("one", &r), -ENOENT);
}

/* For as long as any copy of the descriptor is open, whoever has made it. */
static void copied(void)
{
	struct lr_entry e = LR_ENTRY_NONE;

	CHECK_INT(lr_store_create(&store, "one", &e, &why), 0);
	CHECK_INT(lr_store_copied(&e, &why), -ENOENT);
	int fd = lr_store_copying(&e, &why);
	CHECK_INT(fd >= 0, 1);
	CHECK_INT(lr_store_copying(&e, &why), -EWOULDBLOCK);
	int kept = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	lr_close(fd);
	int wait = lr_store_copied(&e, &why);
	CHECK_INT(wait >= 0, 1);
	CHECK_INT(flock(wait, LOCK_SH | LOCK_NB), -1);
	lr_close(kept);
	CHECK_INT(flock(wait, LOCK_SH | LOCK_NB), 0);
	lr_close(wait);
	CHECK_INT(lr_store_copied(&e, &why), -ENOENT);
	CHECK_INT(lr_store_remove(&e, &why), 0);
	lr_store_unlock(&e);
}

static void copied_in_store(void)
{
	with_store(copied);
}

TEST(who_copies_is_waited_for)
{
	NEED_ROOT();
	in_child(copied_in_store, 0);
}

static void life_in_store(void)
{
	with_store(life);
}

TEST(an_entry_from_its_creation_to_its_removal)
{
	NEED_ROOT();
	in_child(life_in_store, 0);
}

TEST(who_has_a_lock_is_in_a_line)
{
	static const char waits[] = "1: -> FLOCK  ADVISORY  WRITE 1234 00:17:5678 0 EOF";
	const dev_t dev = makedev(0, 0x17);

	CHECK_INT(lr_store_owner("1: FLOCK  ADVISORY  WRITE 1234 00:17:5678 0 EOF", dev, 5678),
		  1234);
	CHECK_INT(lr_store_owner("21:\tFLOCK  ADVISORY  WRITE 7 fd:101:5 0 EOF",
				 makedev(0xfd, 0x101), 5),
		  7);
	CHECK_INT(lr_store_owner(waits, dev, 5678), 0);
	CHECK_INT(lr_store_owner("1: FLOCK  ADVISORY  READ  1234 00:17:5678 0 EOF", dev, 5678), 0);
	CHECK_INT(lr_store_owner("1: POSIX  ADVISORY  WRITE 1234 00:17:5678 0 EOF", dev, 5678), 0);
	CHECK_INT(lr_store_owner("1: OFDLCK ADVISORY  WRITE -1 00:17:5678 0 EOF", dev, 5678), 0);
	CHECK_INT(lr_store_owner("1: FLOCK  ADVISORY  WRITE -1 00:17:5678 0 EOF", dev, 5678), 0);
	CHECK_INT(lr_store_owner("1: FLOCK  ADVISORY  WRITE 1234 00:18:5678 0 EOF", dev, 5678), 0);
	CHECK_INT(lr_store_owner("1: FLOCK  ADVISORY  WRITE 1234 00:17:56789 0 EOF", dev, 5678), 0);
	CHECK_INT(lr_store_owner("1: FLOCK  ADVISORY  WRITE 1234", dev, 5678), 0);
	CHECK_INT(lr_store_owner("", dev, 5678), 0);
}

/* Ends when the pipe does. */
static pid_t waits_for(int to[2])
{
	char c;
	pid_t pid = fork();

	if (pid == 0) {
		close(to[1]);
		_exit(read(to[0], &c, 1) != 0);
	}
	return pid;
}

static void held(void)
{
	struct lr_entry e = LR_ENTRY_NONE, other = LR_ENTRY_NONE;
	char want[64];
	int to[2];

	CHECK_INT(lr_store_create(&store, "one", &e, &why), 0);
	CHECK_INT(pipe(to), 0);
	pid_t pid = waits_for(to);
	snprintf(want, sizeof(want), "process %d (test_store) keeps", getpid());
	CHECK_INT(lr_store_await(&store, "one", 20, &other, &why), -EBUSY);
	CHECK(strstr(why.msg, want));
	snprintf(want, sizeof(want), "kill -KILL %d", getpid());
	CHECK(strstr(why.hint, want));
	/* It has a copy. */
	e.dir = lr_close(e.dir);
	CHECK_INT(lr_store_await(&store, "one", 20, &other, &why), -EBUSY);
	snprintf(want, sizeof(want), "process %d has ended", getpid());
	CHECK(strstr(why.msg, want));
	CHECK(!strstr(why.hint, "kill"));
	close(to[1]);
	CHECK_INT(lr_store_await(&store, "one", 5000, &other, &why), 0);
	CHECK_INT(waitpid(pid, NULL, 0), pid);
	lr_store_unlock(&e);
	lr_store_unlock(&other);
	CHECK_INT(lr_store_await(&store, "none", 20, &other, &why), -ENOENT);
}

static void held_in_store(void)
{
	with_store(held);
}

TEST(who_keeps_a_lock_is_named)
{
	NEED_ROOT();
	in_child(held_in_store, 0);
}

static void other_name(void)
{
	struct lr_entry e = LR_ENTRY_NONE;
	struct lr_record r;

	CHECK_INT(lr_store_create(&store, "two", &e, &why), 0);
	CHECK_INT(lr_store_write(&e, &sample, "{}", 2, arena, &why), 0);
	CHECK_INT(load("two", &r), -EPROTO);
	/* And its process is not this one's to be killed. */
	CHECK_INT(lr_store_salvage(&e, arena, &r, &why), 0);
	CHECK_INT(r.pid, 0);
	CHECK_STR(r.id, "two");
	lr_store_unlock(&e);
}

static void other_name_in_store(void)
{
	with_store(other_name);
}

TEST(a_record_is_of_its_own_name)
{
	NEED_ROOT();
	in_child(other_name_in_store, 0);
}

static void no_lock(void)
{
	struct lr_entry e = LR_ENTRY_NONE;
	struct lr_err err = {0};

	deny(SYS_flock, ENOLCK);
	CHECK_INT(lr_store_create(&store, "one", &e, &err), -ENOLCK);
	CHECK(access(in_base("root/one"), F_OK) < 0 && errno == ENOENT);
}

static void no_lock_in_store(void)
{
	with_store(no_lock);
}

TEST(a_directory_that_cannot_be_locked_is_not_left)
{
	NEED_ROOT();
	in_child(no_lock_in_store, 0);
}

/* Somebody has removed ours; the name is the next container's. */
static void removed_twice(void)
{
	struct lr_entry e = LR_ENTRY_NONE, next = LR_ENTRY_NONE;
	struct lr_record r;

	CHECK_INT(lr_store_create(&store, "one", &e, &why), 0);
	CHECK_INT(unlink(in_base("root/one/record")), 0);
	CHECK_INT(rmdir(in_base("root/one")), 0);
	CHECK_INT(lr_store_create(&store, "one", &next, &why), 0);
	CHECK_INT(lr_store_write(&next, &sample, "{}", 2, arena, &why), 0);
	CHECK_INT(lr_store_write(&e, &sample, "{}", 2, arena, &why), 0); /* which nobody finds */
	CHECK_INT(lr_store_write(&e, &sample, "{}", 2, arena, &why), -ENOENT);
	CHECK_INT(lr_store_remove(&e, &why), 0);
	CHECK_INT(load("one", &r), 0);
	CHECK_INT(lr_store_remove(&next, &why), 0);
	CHECK_INT(load("one", &r), -ENOENT);
	lr_store_unlock(&e);
	lr_store_unlock(&next);
}

static void removed_twice_in_store(void)
{
	with_store(removed_twice);
}

TEST(who_was_removed_removes_no_other)
{
	NEED_ROOT();
	in_child(removed_twice_in_store, 0);
}

static void no_stat(void)
{
	struct lr_entry e = LR_ENTRY_NONE;
	struct lr_err err = {0};

	CHECK_INT(lr_store_create(&store, "one", &e, &why), 0);
	lr_store_unlock(&e);
	deny(SYS_fstat, EIO);
	deny(SYS_newfstatat, EIO);
	CHECK_INT(lr_store_lock(&store, "one", &e, &err), -EIO);
}

static void no_stat_in_store(void)
{
	with_store(no_stat);
}

TEST(what_cannot_be_looked_at_is_not_taken_for_gone)
{
#ifdef SYS_newfstatat
	NEED_ROOT();
	in_child(no_stat_in_store, 0);
#else
	SKIP("another system call here");
#endif
}

/* ---- who is believed ------------------------------------------------------------------------ */

static int trust(const char *path)
{
	return lr_trust_path(in_base("%s", path), &why);
}

static void ways(void)
{
	CHECK_INT(mkdir(in_base("a"), 0755), 0);
	CHECK_INT(mkdir(in_base("a/b"), 0700), 0);
	CHECK_INT(symlink("../a/b", in_base("a/link")), 0);
	CHECK_INT(symlink("loop", in_base("loop")), 0);
	CHECK_INT(trust("a/b"), 1);
	CHECK_INT(trust("a/./b/../b//"), 1);
	CHECK_INT(trust("a/link"), 1);
	CHECK_INT(trust("a/not/there"), 0);
	CHECK_INT(trust("loop/x"), -ELOOP);

	/* The last one, and one on the way. */
	CHECK_INT(chmod(in_base("a/b"), 0770), 0);
	CHECK_INT(trust("a/b"), -EPERM);
	CHECK_INT(chmod(in_base("a/b"), 01777), 0);
	CHECK_INT(trust("a/b"), -EPERM);
	CHECK_INT(chmod(in_base("a/b"), 0755), 0);
	CHECK_INT(chmod(in_base("a"), 01777), 0);
	CHECK_INT(trust("a/b"), 1);
	CHECK_INT(chmod(in_base("a"), 0777), 0);
	CHECK_INT(trust("a/b"), -EPERM);
	CHECK_INT(chmod(in_base("a"), 0755), 0);
	CHECK_INT(lchown(in_base("a/link"), 1234, 0), 0);
	CHECK_INT(trust("a/link"), -EPERM);
	CHECK_INT(trust("a/b"), 1);
	CHECK_INT(chown(in_base("a"), 1234, 0), 0);
	CHECK_INT(trust("a/b"), -EPERM);
	/* Their own is theirs. */
	CHECK_INT(chown(in_base("a/b"), 1234, 0), 0);
	CHECK_INT(chmod(base, 0755), 0);
	CHECK_INT(seteuid(1234), 0);
	CHECK_INT(trust("a/b"), 1);
	CHECK_INT(seteuid(0), 0);
	CHECK_INT(seteuid(4321), 0);
	CHECK_INT(trust("a/b"), -EPERM);
}

TEST(the_way_to_the_root_directory)
{
	NEED_ROOT();
	in_child(ways, 0);
}

TEST(ids)
{
	static const char *const good[] = {"a", "A-b_c+d.e", "0", "-x", "+"};
	static const char *const bad[] = {"", ".", "..", ".x", "a/b", "a b", "\xc3\xa4", "a\n"};
	char longest[LR_STORE_ID_MAX + 2];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CHECK_INT(lr_store_check_id(good[i], &why), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_INT(lr_store_check_id(bad[i], &why), -EINVAL);
	memset(longest, 'x', sizeof(longest));
	longest[LR_STORE_ID_MAX + 1] = '\0';
	CHECK_INT(lr_store_check_id(longest, &why), -EINVAL);
	CHECK_INT(lr_store_check_id(longest + 1, &why), 0);
}
