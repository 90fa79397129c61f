/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: slots from their making to their removal, in a mount namespace of their own. */
#define LR_ROOM "lean"
#include <sys/sysmacros.h>

#include "src/lean/internal.h"
#include "tests/unit/rootfs/child.h"

static struct lr_arena *arena;
static struct lr_lean_home home;
static struct lr_err why;
static int store;

static const char key[] = "0123456789abcdef";

/* A root directory with a home, and containers `one` and `two` in it. */
static void make_home(void)
{
	arena = lr_arena_new();
	CHECK_INT(mkdir(in_base("root"), 0700), 0);
	CHECK_INT(mkdir(in_base("root/one"), 0700), 0);
	CHECK_INT(mkdir(in_base("root/two"), 0700), 0);
	store = open(in_base("root"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(store >= 0);
	CHECK_INT(lr_lean_home_open(store, in_base("root"), LR_LEAN_HOME_MAKE, arena, &home, &why),
		  0);
}

static bool there(const char *dir, unsigned n, const char *id)
{
	char path[LR_LEAN_NAME];

	lr_lean_slot_path(path, dir, key, n, id);
	return faccessat(home.fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static const char *name_of(unsigned n)
{
	return lr_strf(arena, "%s.%u", key, n);
}

static unsigned make_slot(const char *id)
{
	unsigned n = 4711;

	CHECK_INT(lr_lean_slot_number(&home, key, id, &n, &why), 0);
	return n;
}

static void hands(void)
{
	unsigned n = 99;

	make_home();
	CHECK(!lr_lean_slot_grab(&home, key, "one", &n));
	CHECK_INT(make_slot("one"), 0);
	CHECK_INT(make_slot("two"), 1);
	CHECK(there("slot", 0, NULL) && there("used", 0, "one") && there("used", 1, "two"));
	/* Nobody gets what is used. */
	CHECK(!lr_lean_slot_grab(&home, key, "two", &n));
	CHECK_INT(lr_lean_slot_release(&home, name_of(1), "two", true, arena, &why), 0);
	CHECK(there("free", 1, NULL) && !there("used", 1, "two"));
	CHECK(lr_lean_slot_grab(&home, key, "three", &n));
	CHECK_INT(n, 1);
	CHECK(there("used", 1, "three") && !there("free", 1, NULL));
	/* Another key's slots are none of this one's. */
	CHECK_INT(lr_lean_slot_release(&home, name_of(1), "three", true, arena, &why), 0);
	CHECK(!lr_lean_slot_grab(&home, "0123456789abcdee", "one", &n));
	/* The short way back, for who has it only. */
	char *named = lr_strf(arena, "%s/%s.0", home.name, key);
	CHECK(!lr_lean_slot_return(store, named, "two"));
	CHECK(there("used", 0, "one"));
	CHECK(lr_lean_slot_return(store, named, "one"));
	CHECK(there("free", 0, NULL));
	CHECK(!lr_lean_slot_return(store, named, "one"));
	CHECK(!lr_lean_slot_return(store, "elsewhere/x.0", "one"));
}

TEST(a_slot_has_one_owner)
{
	NEED_ROOT();
	in_child(hands, 0);
}

static void unfit(void)
{
	unsigned n = 0;

	make_home();
	/* Marked: it goes to nobody else. */
	CHECK_INT(make_slot("one"), 0);
	CHECK_INT(lr_lean_slot_mark(&home, name_of(0), "one", &why), 0);
	CHECK_INT(lr_lean_slot_release(&home, name_of(0), "one", true, arena, &why), 0);
	CHECK(!there("slot", 0, NULL) && !there("free", 0, NULL) && !there("dirty", 0, "one"));
	/* Not clean. */
	CHECK_INT(make_slot("one"), 0);
	CHECK_INT(lr_lean_slot_release(&home, name_of(0), "one", false, arena, &why), 0);
	CHECK(!there("slot", 0, NULL) && !there("used", 0, "one"));
	/* One for a rush is removed after it; twice given back is once. */
	while (n < LR_LEAN_SLOTS_KEPT)
		n = make_slot("one");
	CHECK_INT(lr_lean_slot_release(&home, name_of(n), "one", true, arena, &why), 0);
	CHECK_INT(lr_lean_slot_release(&home, name_of(n), "one", true, arena, &why), 0);
	CHECK(!there("slot", n, NULL) && there("slot", n - 1, NULL));
	/* Of somebody else: nothing. */
	CHECK_INT(lr_lean_slot_release(&home, name_of(0), "two", false, arena, &why), 0);
	CHECK(there("used", 0, "one"));
	CHECK(lr_lean_slot_release(&home, "no-number", "one", true, arena, &why) < 0);
}

TEST(what_is_not_fit_is_removed)
{
	NEED_ROOT();
	in_child(unfit, 0);
}

static void sweep(void)
{
	char path[LR_LEAN_NAME];

	make_home();
	CHECK_INT(make_slot("one"), 0);
	CHECK_INT(make_slot("gone"), 1);
	CHECK_INT(make_slot("two"), 2);
	CHECK_INT(lr_lean_slot_release(&home, name_of(2), "two", true, arena, &why), 0);
	/* Half made or half removed by somebody who was killed. */
	CHECK_INT(make_slot(".4711"), 3);
	/* And one that lost its owner with the power. */
	CHECK_INT(make_slot("two"), 4);
	lr_lean_slot_path(path, "used", key, 4, "two");
	CHECK_INT(unlinkat(home.fd, path, 0), 0);

	CHECK_INT(lr_lean_sweep(&home, store, false, arena, &why), 3);
	CHECK(there("used", 0, "one") && there("free", 2, NULL));
	CHECK(!there("slot", 1, NULL) && !there("slot", 3, NULL) && !there("slot", 4, NULL));
	CHECK_INT(lr_lean_sweep(&home, store, true, arena, &why), 1);
	CHECK(there("used", 0, "one") && !there("slot", 2, NULL));
}

TEST(sweeping_takes_what_is_nobodys)
{
	NEED_ROOT();
	in_child(sweep, 0);
}

static void drain(void)
{
	unsigned left = 99;

	make_home();
	CHECK_INT(make_slot("one"), 0);
	CHECK_INT(lr_lean_pool_drain(store, in_base("root"), &left, arena, &why), 0);
	CHECK_INT(left, 1);
	CHECK(there("used", 0, "one"));
	CHECK_INT(lr_lean_slot_release(&home, name_of(0), "one", true, arena, &why), 0);
	CHECK_INT(lr_lean_pool_drain(store, in_base("root"), &left, arena, &why), 0);
	CHECK_INT(left, 0);
	CHECK(access(in_base("root/.lean"), F_OK) < 0);

	/* Half made: neither lock nor directories. And a drain that was killed. */
	CHECK_INT(mkdir(in_base("root/.lean"), 0700), 0);
	CHECK_INT(mkdir(in_base("root/.lean/%s", home.name), 0700), 0);
	CHECK_INT(mkdir(in_base("root/.lean/dead.m1.2"), 0700), 0);
	CHECK_INT(mkdir(in_base("root/.lean/dead.m1.2/key"), 0700), 0);
	CHECK_INT(lr_lean_pool_drain(store, in_base("root"), &left, arena, &why), 0);
	CHECK(access(in_base("root/.lean"), F_OK) < 0);
	/* Only the latter. */
	CHECK_INT(mkdir(in_base("root/.lean"), 0700), 0);
	CHECK_INT(mkdir(in_base("root/.lean/dead.m1.2"), 0700), 0);
	CHECK_INT(lr_lean_pool_drain(store, in_base("root"), &left, arena, &why), 0);
	CHECK(access(in_base("root/.lean"), F_OK) < 0);
}

TEST(draining_leaves_nothing_but_what_is_used)
{
	NEED_ROOT();
	in_child(drain, 0);
}

static int make_nothing(void *arg, struct lr_err *err)
{
	(void)arg, (void)err;
	return 0;
}

static int fail_to_make(void *arg, struct lr_err *err)
{
	(void)arg;
	return lr_refuse(err, ENODEV, "this cannot be made");
}

static int die(void *arg, struct lr_err *err)
{
	(void)arg, (void)err;
	_exit(3);
}

static int count_pin(void *arg, pid_t child, struct lr_err *err)
{
	(void)err;
	*(int *)arg += kill(child, 0) == 0;
	return 0;
}

static void maker(void)
{
	int pinned = 0;
	struct lr_lean_maker m = {make_nothing, count_pin, &pinned};

	CHECK_INT(lr_lean_make(&m, &why), 0);
	CHECK_INT(pinned, 1); /* it lived when it was pinned */
	m.make = fail_to_make;
	CHECK_INT(lr_lean_make(&m, &why), -ENODEV);
	CHECK_STR(why.msg, "this cannot be made");
	m.make = die;
	CHECK_INT(lr_lean_make(&m, &why), -EPIPE);
	CHECK_INT(pinned, 1);
	/* And no child is left in any case. */
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

TEST(a_maker_never_stays)
{
	NEED_ROOT();
	in_child(maker, 0);
}

static void build(void)
{
	static const struct oci_root root = {.path = base};
	static const struct oci_linux nothing;
	const struct oci_config config = {.root = &root, .linux_ = &nothing};
	const struct lr_lean_env env = {.bundle = "/"};
	struct lr_lean_plan p = {.config = &config, .rootfs = base};
	struct stat st;

	arena = lr_arena_new();
	CHECK_INT(mkdir(in_base("dev"), 0700), 0);
	CHECK_INT(stat(base, &st), 0);
	p.seen.dev = (uint64_t)major(st.st_dev) << 32 | minor(st.st_dev);
	p.seen.ino = st.st_ino + 1;
	CHECK_INT(lr_lean_build(&p, &env, NULL, LR_NOFD, arena, &why), -EAGAIN);
	p.seen.ino = st.st_ino;
	p.seen.dev++;
	CHECK_INT(lr_lean_build(&p, &env, NULL, LR_NOFD, arena, &why), -EAGAIN);
	CHECK_HAS(why.msg, "was replaced by another directory");
}

/* Whoever finds the slot by what the plan has seen would get it. */
TEST(no_template_is_made_of_another_root_than_the_plans)
{
	NEED_ROOT();
	in_child(build, 0);
}

/* One whose mounts all are read-only is none for who asks for what config.json says. */
TEST(what_decides_how_a_template_looks_is_in_its_key)
{
	static const struct oci_root root = {.path = "/", .readonly = true};
	static const struct oci_linux nothing;
	const struct oci_config config = {.root = &root, .linux_ = &nothing};
	struct lr_lean_plan p = {.config = &config, .template_ = true, .rootfs = "/"};
	struct lr_lean_key as_configured, read_only;

	arena = lr_arena_new();
	CHECK_INT(lr_lean_key_make(&p, LR_NOFD, arena, &as_configured, &why), 0);
	p.profile.way[LR_LEAN_ROOTFS] = LR_LEAN_RO;
	CHECK_INT(lr_lean_key_make(&p, LR_NOFD, arena, &read_only, &why), 0);
	CHECK(strcmp(as_configured.name, read_only.name) != 0);
	lr_arena_free(arena);
}
