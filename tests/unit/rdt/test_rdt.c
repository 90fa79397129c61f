/* SPDX-License-Identifier: Apache-2.0 */
/* rdt: on an ordinary directory that plays resctrl (its files must be made by hand). */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/rdt/rdt.h"
#include "src/sys/path.h"

static char root_path[64];
static struct lr_arena *arena;

static int fake_root(void)
{
	strcpy(root_path, "/tmp/lr-rdt-XXXXXX");
	arena = lr_arena_new();
	return mkdtemp(root_path) ? open(root_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
}

static void remove_root(int fd)
{
	CHECK_INT(lr_remove_tree(AT_FDCWD, root_path), 0);
	close(fd);
	lr_arena_free(arena);
}

static void make_file(int root, const char *path, const char *text)
{
	int fd = openat(root, path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static const char *text_of(int root, const char *path)
{
	static char buf[512];

	return lr_read_file_at(root, path, buf, sizeof(buf)) < 0 ? "(none)" : buf;
}

static bool exists(int root, const char *path)
{
	return faccessat(root, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

TEST(plans)
{
	struct oci_intel_rdt c = {0};
	struct lr_rdt_plan p;
	struct lr_err err = {0};

	arena = lr_arena_new();
	CHECK_INT(lr_rdt_plan(NULL, "c1", arena, &p, &err), 0);
	CHECK(!p.given);
	CHECK_INT(lr_rdt_plan(&c, "c1", arena, &p, &err), 0);
	CHECK(p.own_group && !p.must_exist && !p.compare && !p.schemata && !p.monitor);
	CHECK_STR(p.group, "c1");

	const char *lines[] = {"L3:0=ff", "MB:0=70"};
	c = (struct oci_intel_rdt){.clos_id = "gold",
				   .l3_cache_schema = "L3:0=f\nMB:0=10\nL2:0=3",
				   .mem_bw_schema = "MB:0=50",
				   .schemata = {lines, 2},
				   .enable_monitoring = true};
	CHECK_INT(lr_rdt_plan(&c, "c1", arena, &p, &err), 0);
	CHECK(!p.own_group && !p.must_exist);
	CHECK_STR(p.compare, "L3:0=f\nL2:0=3\nMB:0=50\n");
	CHECK_STR(p.schemata, "L3:0=ff\nMB:0=70\n");
	CHECK_STR(p.monitor, "c1");
	c = (struct oci_intel_rdt){.clos_id = "/"};
	CHECK_INT(lr_rdt_plan(&c, "c1", arena, &p, &err), 0);
	CHECK_STR(p.group, ".");
	CHECK(p.must_exist);

	static const char *const bad[] = {"..", ".", "a/b", "info", "mon_groups", "../x", "a\nb"};
	for (size_t i = 0; i < LR_ARRAY_SIZE(bad); i++) {
		c.clos_id = bad[i];
		CHECK_INT(lr_rdt_plan(&c, "c1", arena, &p, &err), -EINVAL);
		CHECK_STR(err.path, "linux.intelRdt.closID");
	}
	c = (struct oci_intel_rdt){.mem_bw_schema = "MB:0=1\nL3:0=1"};
	CHECK_INT(lr_rdt_plan(&c, "c1", arena, &p, &err), -EINVAL);
	c.mem_bw_schema = "L3:0=1";
	CHECK_INT(lr_rdt_plan(&c, "c1", arena, &p, &err), -EINVAL);
	lr_arena_free(arena);
}

TEST(schemas_compare_by_value)
{
	static const char have[] = "    MB:0=100;1=70\n    L3:0=7f0;1=1f\n";

	CHECK(lr_rdt_schema_within("L3:0=7f0", have));
	CHECK(lr_rdt_schema_within("L3:1=01F;0=07F0\nMB:1=70", have));
	CHECK(lr_rdt_schema_within("", have));
	CHECK(lr_rdt_schema_within("\nL3: 0 = 7f0 ;\n", have));
	CHECK(!lr_rdt_schema_within("L3:0=7f", have));
	CHECK(!lr_rdt_schema_within("L3:2=1", have));
	CHECK(!lr_rdt_schema_within("L2:0=7f0", have));
	CHECK(!lr_rdt_schema_within("garbage", have));
	CHECK(!lr_rdt_schema_within("L3:0", have));
	CHECK(!lr_rdt_schema_within("L3:0=", have));
	CHECK(!lr_rdt_schema_within("L3:0=7f0", "L3:0=\n"));
	CHECK(lr_rdt_schema_within("L3:0=", "L3:0=\n"));
}

TEST(own_group_comes_and_goes)
{
	struct oci_intel_rdt c = {.l3_cache_schema = "L3:0=f", .enable_monitoring = true};
	struct lr_rdt_plan p;
	struct lr_err err = {0};
	int root = fake_root();

	REQUIRE(root >= 0);
	CHECK_INT(lr_rdt_plan(&c, "c1", arena, &p, &err), 0);

	/* The fake kernel does not fill a new group: the first write fails and all is undone. */
	CHECK(lr_rdt_apply(&p, root, 42, &err) < 0);
	CHECK(!exists(root, "c1"));
	CHECK_HAS(err.msg, "L3:0=f");

	CHECK_INT(mkdirat(root, "c1", 0755), 0);
	make_file(root, "c1/schemata", "");
	make_file(root, "c1/tasks", "");
	CHECK_INT(mkdirat(root, "c1/mon_groups", 0755), 0);
	CHECK_INT(mkdirat(root, "c1/mon_groups/c1", 0755), 0);
	make_file(root, "c1/mon_groups/c1/tasks", "");
	CHECK_INT(lr_rdt_apply(&p, root, 42, &err), 0); /* nothing made: all was there */
	CHECK_STR(text_of(root, "c1/schemata"), "L3:0=f\n");
	CHECK_STR(text_of(root, "c1/tasks"), "42");
	CHECK_STR(text_of(root, "c1/mon_groups/c1/tasks"), "42");

	CHECK_INT(lr_rdt_update(&p, "L3:0=3f", "MB:0=20", arena, root, &err), 0);
	CHECK_STR(text_of(root, "c1/schemata"), "L3:0=3f\nMB:0=20\n");
	CHECK_INT(lr_rdt_update(&p, NULL, NULL, arena, root, &err), 0);

	unlinkat(root, "c1/mon_groups/c1/tasks", 0);
	CHECK_INT(lr_rdt_destroy(&p, LR_RDT_MADE_MONITOR, root, &err), 0);
	CHECK(!exists(root, "c1/mon_groups/c1") && exists(root, "c1"));
	unlinkat(root, "c1/mon_groups", AT_REMOVEDIR);
	unlinkat(root, "c1/tasks", 0);
	unlinkat(root, "c1/schemata", 0);
	CHECK_INT(lr_rdt_destroy(&p, 3, root, &err), 0);
	CHECK(!exists(root, "c1"));
	CHECK_INT(lr_rdt_destroy(&p, 3, root, &err), 0);
	remove_root(root);
}

TEST(named_groups_are_shared)
{
	const char *lines[] = {"L3:0=ff"};
	struct oci_intel_rdt c = {.clos_id = "gold"};
	struct lr_rdt_plan p;
	struct lr_err err = {0};
	int root = fake_root();

	REQUIRE(root >= 0);
	CHECK_INT(lr_rdt_plan(&c, "c1", arena, &p, &err), 0);
	CHECK_INT(lr_rdt_apply(&p, root, 42, &err), -ENOENT);
	CHECK_HAS(err.hint, "prepared");
	CHECK(!exists(root, "gold"));

	CHECK_INT(mkdirat(root, "gold", 0755), 0);
	make_file(root, "gold/schemata", "L3:0=00f\n");
	make_file(root, "gold/tasks", "");
	CHECK_INT(lr_rdt_apply(&p, root, 42, &err), 0);
	CHECK_STR(text_of(root, "gold/tasks"), "42");
	CHECK_STR(text_of(root, "gold/schemata"), "L3:0=00f\n");

	c.l3_cache_schema = "L3:0=1f";
	CHECK_INT(lr_rdt_plan(&c, "c1", arena, &p, &err), 0);
	CHECK_INT(lr_rdt_apply(&p, root, 42, &err), -EEXIST);
	CHECK_HAS(err.msg, "another schema");
	c.l3_cache_schema = "L3:0=f";
	c.schemata = (struct oci_strv){lines, 1};
	CHECK_INT(lr_rdt_plan(&c, "c1", arena, &p, &err), 0);
	CHECK_INT(lr_rdt_apply(&p, root, 43, &err), 0);
	CHECK_HAS(text_of(root, "gold/schemata"), "L3:0=ff\n");
	CHECK_INT(lr_rdt_destroy(&p, LR_RDT_MADE_GROUP, root, &err), 0);
	CHECK(exists(root, "gold"));

	c = (struct oci_intel_rdt){.clos_id = "/"};
	make_file(root, "tasks", "");
	CHECK_INT(lr_rdt_plan(&c, "c1", arena, &p, &err), 0);
	CHECK_INT(lr_rdt_apply(&p, root, 44, &err), 0);
	CHECK_STR(text_of(root, "tasks"), "44");
	remove_root(root);
}

TEST(no_resctrl_is_a_clear_error)
{
	struct lr_err err = {0};
	int fd = lr_rdt_open(&err);

	if (fd >= 0) {
		close(fd);
		SKIP("resctrl is mounted here");
	}
	CHECK_INT(fd, -ENODEV);
	CHECK_HAS(err.hint, "mount -t resctrl");
}
