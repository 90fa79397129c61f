/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: linux.namespaces, mappings and offsets become a plan. */
#include <errno.h>
#include <sched.h>

#include "libocispec/ocispec.h"
#include "src/ns/ns.h"
#include "src/sys/syscalls.h"
#include "tests/unit/test.h"

static struct lr_err why;
static struct lr_ns_plan plan;

/* The plan of a config with that "linux" object. */
static int make(const char *linux_, uint32_t euid)
{
	static struct lr_arena *a;
	const struct oci_config *c = NULL;
	const struct lr_ns_caller caller = {.euid = euid};

	lr_arena_free(a);
	a = lr_arena_new();
	char *text = lr_strf(
		a, "{\"ociVersion\": \"1.0.2\", \"root\": {\"path\": \"r\"}, \"linux\": {%s}}",
		linux_);
	why = (struct lr_err){0};
	plan = (struct lr_ns_plan){0};
	int r = oci_config_decode(text, strlen(text), a, &c, &why);
	return r < 0 ? r : lr_ns_plan(c->linux_, &caller, a, &plan, &why);
}

#define MAPS                                                                                       \
	"\"uidMappings\": [{\"containerID\": 0, \"hostID\": 1000, \"size\": 1},"                   \
	" {\"containerID\": 1, \"hostID\": 100000, \"size\": 65536}],"                             \
	"\"gidMappings\": [{\"containerID\": 0, \"hostID\": 100, \"size\": 1}]"

TEST(new_ones_are_flags_and_joined_ones_are_paths)
{
	CHECK_INT(make("\"namespaces\": [{\"type\": \"pid\"}, {\"type\": \"mount\"},"
		       "{\"type\": \"network\", \"path\": \"/run/netns/x\"}]",
		       0),
		  0);
	CHECK_INT(plan.create, CLONE_NEWPID | CLONE_NEWNS);
	CHECK_STR(plan.join[LR_NS_NET], "/run/netns/x");
	CHECK_INT(plan.index[LR_NS_NET], 2);
	CHECK(lr_ns_private(&plan, LR_NS_NET) && lr_ns_private(&plan, LR_NS_PID));
	CHECK(!lr_ns_private(&plan, LR_NS_IPC));
	CHECK(!plan.staged && !plan.uid_map);
}

TEST(every_kind_has_its_flag)
{
	CHECK_INT(make("\"namespaces\": [{\"type\": \"user\"}, {\"type\": \"time\"}, {\"type\": "
		       "\"pid\"},"
		       "{\"type\": \"network\"}, {\"type\": \"ipc\"}, {\"type\": \"uts\"},"
		       "{\"type\": \"cgroup\"}, {\"type\": \"mount\"}]," MAPS,
		       0),
		  0);
	CHECK_INT(plan.create, CLONE_NEWUSER | CLONE_NEWTIME | CLONE_NEWPID | CLONE_NEWNET |
				       CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_NEWNS);
}

TEST(twice_unknown_and_relative_are_refused_with_their_place)
{
	CHECK_INT(make("\"namespaces\": [{\"type\": \"pid\"}, {\"type\": \"pid\"}]", 0), -EINVAL);
	CHECK_STR(why.path, "linux.namespaces[1].type");
	CHECK_HAS(why.msg, "listed twice");
	/* Also one new and one joined. */
	CHECK_INT(
		make("\"namespaces\": [{\"type\": \"ipc\"}, {\"type\": \"ipc\", \"path\": \"/x\"}]",
		     0),
		-EINVAL);
	CHECK(make("\"namespaces\": [{\"type\": \"moon\"}]", 0) < 0);
	CHECK_HAS(why.path, "linux.namespaces[0]");
	CHECK_INT(make("\"namespaces\": [{\"type\": \"uts\", \"path\": \"ns\"}]", 0), -EINVAL);
	CHECK_STR(why.path, "linux.namespaces[0].path");
}

TEST(mappings_become_the_kernels_lines)
{
	CHECK_INT(make("\"namespaces\": [{\"type\": \"user\"}]," MAPS, 0), 0);
	CHECK_STR(plan.uid_map, "0 1000 1\n1 100000 65536\n");
	CHECK_STR(plan.gid_map, "0 100 1\n");
	CHECK(!plan.rootless_maps);
	CHECK_INT(make("\"namespaces\": [{\"type\": \"user\"}]," MAPS, 1000), 0);
	CHECK(plan.rootless_maps);
}

TEST(mappings_need_a_user_namespace_and_a_size)
{
	CHECK_INT(make("\"namespaces\": [{\"type\": \"pid\"}]," MAPS, 0), -EINVAL);
	CHECK_STR(why.path, "linux.uidMappings");
	/* Of a joined one they only describe what is there. */
	CHECK_INT(make("\"namespaces\": [{\"type\": \"user\", \"path\": \"/u\"}]," MAPS, 0), 0);
	CHECK(!plan.uid_map);
	CHECK_INT(make("\"namespaces\": [{\"type\": \"user\"}],"
		       "\"uidMappings\": [{\"containerID\": 0, \"hostID\": 0, \"size\": 0}],"
		       "\"gidMappings\": [{\"containerID\": 0, \"hostID\": 0, \"size\": 1}]",
		       0),
		  -EINVAL);
	CHECK_STR(why.path, "linux.uidMappings[0].size");
}

TEST(offsets_belong_to_a_new_time_namespace)
{
	CHECK_INT(make("\"timeOffsets\": {\"boottime\": {\"secs\": 5}}", 0), -EINVAL);
	CHECK_STR(why.path, "linux.timeOffsets");
	CHECK_INT(make("\"namespaces\": [{\"type\": \"time\", \"path\": \"/t\"}],"
		       "\"timeOffsets\": {\"boottime\": {\"secs\": 5}}",
		       0),
		  -EINVAL);
	CHECK_INT(make("\"namespaces\": [{\"type\": \"time\"}],"
		       "\"timeOffsets\": {\"monotonic\": {\"secs\": -7, \"nanosecs\": 9},"
		       "\"boottime\": {\"secs\": 5}}",
		       0),
		  0);
	CHECK_STR(plan.time_offsets, "monotonic -7 9\nboottime 5 0\n");
	CHECK_INT(make("\"namespaces\": [{\"type\": \"time\"}],"
		       "\"timeOffsets\": {\"monotonic\": {\"nanosecs\": 1000000000}}",
		       0),
		  -EINVAL);
}

TEST(a_process_in_between_where_it_is_needed)
{
	CHECK_INT(make("\"namespaces\": [{\"type\": \"user\", \"path\": \"/u\"}]", 0), 0);
	CHECK(plan.staged);
	CHECK_INT(make("\"namespaces\": [{\"type\": \"user\"}, {\"type\": \"time\"}]," MAPS, 0), 0);
	CHECK(!plan.staged);
	CHECK_INT(make("\"namespaces\": [{\"type\": \"user\"}, {\"type\": \"time\"}]," MAPS, 1000),
		  0);
	CHECK(plan.staged);
	CHECK_INT(make("\"namespaces\": [{\"type\": \"user\"}]," MAPS, 1000), 0);
	CHECK(!plan.staged);
}
