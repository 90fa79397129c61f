/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup v2 against a tree of plain files: what is written where, and in which order. Hosts whose
 * controllers are all in v1 cannot show that otherwise.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libocispec/ocispec.h"
#include "src/cgroup/internal.h"
#include "src/sys/path.h"
#include "tests/unit/test.h"

static struct lr_arena *arena;
static struct lr_err err;
static struct lr_cgroup_plan *plan;
static char root[64], leaf[128];
static struct lr_cgroup_hierarchy hierarchy = {"", root, "/"};
static struct lr_cgroup_layout layout = {LR_CGROUP_V2, &hierarchy, 1};

static void put(const char *dir, const char *file, const char *text)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	f = fopen(path, "we");
	if (f) {
		fputs(text, f);
		fclose(f);
	}
}

static const char *get(const char *dir, const char *file)
{
	static char buf[4096];

	if (lr_cgroup_read(dir, file, buf, sizeof(buf)) < 0)
		return "(missing)";
	return buf;
}

#define ALL "cpuset cpu io memory hugetlb pids rdma misc\n"

/* root/a/c1, every level with the controllers given; c1 is empty and has some files. */
static void grow(const char *controllers)
{
	static const char *const files[] = {"memory.max",    "memory.low",     "memory.swap.max",
					    "cpu.weight",    "cpu.max",        "cpu.max.burst",
					    "io.weight",     "io.max",         "pids.max",
					    "cgroup.freeze", "hugetlb.2MB.max"};
	char mid[96];

	arena = lr_arena_new();
	memset(&err, 0, sizeof(err));
	strcpy(root, "/tmp/lr-test-cg-XXXXXX");
	if (!mkdtemp(root))
		return;
	snprintf(mid, sizeof(mid), "%s/a", root);
	snprintf(leaf, sizeof(leaf), "%s/c1", mid);
	mkdir(mid, 0755);
	mkdir(leaf, 0755);
	put(root, "cgroup.controllers", ALL);
	put(root, "cgroup.subtree_control", "");
	put(mid, "cgroup.controllers", controllers);
	put(mid, "cgroup.subtree_control", "cpu\n");
	put(leaf, "cgroup.controllers", controllers);
	put(leaf, "cgroup.events", "populated 0\nfrozen 0\n");
	for (size_t i = 0; i < LR_ARRAY_SIZE(files); i++)
		put(leaf, files[i], "");
}

static void fell(void)
{
	CHECK_INT(lr_remove_tree(AT_FDCWD, root), 0);
	CHECK(access(root, F_OK) < 0);
	lr_arena_free(arena);
}

/* "devices": all are allowed, as a program cannot be attached to plain files. */
static int create(const char *json)
{
	struct lr_cgroup_opts opts = {.id = "c1"};
	const struct oci_resources *res;
	char text[1024];
	int r;

	snprintf(text, sizeof(text), "{\"devices\":[{\"allow\":true}]%s%s}", *json ? "," : "",
		 json);
	r = oci_resources_decode(text, strlen(text), arena, &res, &err);
	if (r == 0)
		r = lr_cgroup_plan("/a/c1", res, &layout, &opts, arena, &plan, &err);
	if (r < 0)
		return r;
	r = lr_cgroup_create(plan, &err);
	lr_cgroup_settle(plan);
	return r;
}

static int update(const char *json)
{
	const struct oci_resources *res;
	int r = oci_resources_decode(json, strlen(json), arena, &res, &err);

	return r < 0 ? r : lr_cgroup_update(lr_cgroup_plan_ref(plan), res, arena, &err);
}

TEST(limits_are_written)
{
	grow(ALL);
	CHECK_INT(create("\"memory\":{\"limit\":100,\"swap\":300},\"cpu\":{\"shares\":1024},"
			 "\"pids\":{\"limit\":5},\"blockIO\":{\"weight\":1000},"
			 "\"hugepageLimits\":[{\"pageSize\":\"2MB\",\"limit\":4}]"),
		  0);
	CHECK_STR(get(leaf, "memory.max"), "100");
	CHECK_STR(get(leaf, "memory.swap.max"), "200");
	CHECK_STR(get(leaf, "cpu.weight"), "39");
	CHECK_STR(get(leaf, "pids.max"), "5");
	CHECK_STR(get(leaf, "io.weight"), "10000"); /* no io.bfq.weight here */
	CHECK_STR(get(leaf, "hugetlb.2MB.max"), "4");
	/* all there at the first look: nobody above was touched */
	CHECK_STR(get(root, "cgroup.subtree_control"), "");
	CHECK_STR(get(leaf, "cgroup.freeze"), "0"); /* reused: thawed */
	fell();
}

TEST(bfq_keeps_its_scale)
{
	grow(ALL);
	put(leaf, "io.bfq.weight", "");
	CHECK_INT(create("\"blockIO\":{\"weight\":1000}"), 0);
	CHECK_STR(get(leaf, "io.bfq.weight"), "1000");
	CHECK_STR(get(leaf, "io.weight"), "");
	fell();
}

TEST(controllers_are_passed_on_from_the_top)
{
	char mid[96];

	grow("cpu pids\n");
	snprintf(mid, sizeof(mid), "%s/a", root);
	CHECK_INT(create("\"memory\":{\"limit\":100}"), -EOPNOTSUPP);
	CHECK_STR(err.path, "linux.resources.memory.limit");
	CHECK_HAS(err.msg, "\"memory\" is not available");
	CHECK_HAS(err.msg, leaf);
	CHECK_STR(get(root, "cgroup.subtree_control"),
		  "+cpu +cpuset +memory +io +pids +hugetlb +rdma +misc");
	CHECK_STR(get(mid, "cgroup.subtree_control"), "+pids"); /* cpu was on */
	/* not asked for: does not matter */
	lr_err_clear(&err);
	CHECK_INT(create("\"pids\":{\"limit\":100}"), 0);
	CHECK_STR(err.msg, "");
	fell();
}

TEST(a_missing_file_is_named)
{
	grow(ALL);
	CHECK_INT(create("\"unified\":{\"memory.nonsense\":\"1\"}"), -ENOENT);
	CHECK_STR(err.path, "linux.resources.unified[\"memory.nonsense\"]");
	CHECK_HAS(err.msg, "memory.nonsense");
	CHECK_INT(create("\"cpu\":{\"idle\":1}"), -ENOENT);
	CHECK_STR(err.path, "linux.resources.cpu.idle");
	unlinkat(AT_FDCWD, strcat(strcpy((char[PATH_MAX]){0}, leaf), "/memory.swap.max"), 0);
	/* no swap at all is what a kernel that counts none gives anyway */
	CHECK_INT(create("\"memory\":{\"limit\":100,\"swap\":100}"), 0);
	CHECK_INT(create("\"memory\":{\"limit\":100,\"swap\":101}"), -ENOENT);
	CHECK_HAS(err.hint, "swapaccount=1");
	fell();
}

TEST(somebody_elses_cgroup)
{
	grow(ALL);
	put(leaf, "cgroup.events", "populated 1\nfrozen 0\n");
	CHECK_INT(create(""), -EBUSY);
	CHECK_STR(err.path, "linux.cgroupsPath");
	CHECK(access(leaf, F_OK) == 0);
	fell();
}

TEST(below_a_threaded_cgroup)
{
	grow("cpu pids\n");
	put(leaf, "cgroup.type", "domain invalid\n");
	CHECK_INT(create("\"pids\":{\"limit\":1}"), 0);
	CHECK_HAS(get(leaf, "cgroup.type"), "threaded");
	put(leaf, "cgroup.type", "domain invalid\n");
	CHECK_INT(create("\"memory\":{\"limit\":1}"), -EOPNOTSUPP);
	CHECK_HAS(err.msg, "threaded");
	fell();
}

TEST(update_combines_with_what_is_there)
{
	grow(ALL);
	CHECK_INT(create(""), 0);
	put(leaf, "memory.max", "1000\n");
	put(leaf, "cpu.max", "5000 100000\n");
	put(leaf, "memory.current", "600\n");
	CHECK_INT(update("{\"memory\":{\"swap\":1500}}"), 0);
	CHECK_STR(get(leaf, "memory.swap.max"), "500");
	CHECK_STR(get(leaf, "memory.max"), "1000\n");
	CHECK_INT(update("{\"cpu\":{\"period\":20000}}"), 0);
	CHECK_HAS(get(leaf, "cpu.max"), "5000 20000");
	CHECK_INT(update("{\"memory\":{\"limit\":500,\"checkBeforeUpdate\":true}}"), -EBUSY);
	CHECK_HAS(err.msg, "600 bytes are in use");
	CHECK_STR(get(leaf, "memory.max"), "1000\n");
	CHECK_INT(update("{\"memory\":{\"limit\":700,\"checkBeforeUpdate\":true}}"), 0);
	CHECK_HAS(get(leaf, "memory.max"), "700");
	CHECK_INT(update("{\"memory\":{\"limit\":500}}"), 0);
	CHECK_HAS(get(leaf, "memory.max"), "500");
	fell();
}

TEST(freezing_that_does_not_finish_is_undone)
{
	grow(ALL);
	CHECK_INT(create(""), 0);
	/* plain files: "frozen" stays 0 */
	CHECK_INT(lr_cgroup_freeze(lr_cgroup_plan_ref(plan), true, &err), -ETIMEDOUT);
	CHECK_STR(get(leaf, "cgroup.freeze"), "0");
	CHECK_HAS(err.hint, "thawed again");
	/* Who was paused before stays so, as far as can be. */
	CHECK_INT(lr_cgroup_freeze_again(lr_cgroup_plan_ref(plan), &err), -ETIMEDOUT);
	CHECK_STR(get(leaf, "cgroup.freeze"), "1");
	CHECK(!strstr(err.hint, "thawed"));
	put(leaf, "cgroup.events", "populated 1\nfrozen 1\n");
	CHECK_INT(lr_cgroup_freeze(lr_cgroup_plan_ref(plan), true, &err), 0);
	CHECK_INT(lr_cgroup_is_frozen(lr_cgroup_plan_ref(plan)), 1);
	fell();
}

TEST(kill_uses_the_kernels_file)
{
	grow(ALL);
	CHECK_INT(create(""), 0);
	put(leaf, "cgroup.kill", "");
	CHECK_INT(lr_cgroup_signal_all(lr_cgroup_plan_ref(plan), 9, &err), 0);
	CHECK_STR(get(leaf, "cgroup.kill"), "1");
	fell();
}
