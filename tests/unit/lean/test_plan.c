/* SPDX-License-Identifier: Apache-2.0 */
/* lean: what may be shared, pooled and made from a template, and what must not be. */
#include "tests/unit/test.h"

#include <errno.h>

#include "libocispec/ocispec.h"
#include "src/base/str.h"
#include "src/lean/lean.h"

static struct lr_arena *arena;

#define NS       "{\"type\":\"pid\"},{\"type\":\"mount\"},{\"type\":\"ipc\"},{\"type\":\"uts\"}"
#define NET      "{\"type\":\"network\"}"
#define RO_PATHS "\"readonlyPaths\":[\"/proc/sys\"]"
#define MOUNTS                                                                                     \
	"{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"},"                       \
	"{\"destination\":\"/dev\",\"type\":\"tmpfs\",\"source\":\"tmpfs\"},"                      \
	"{\"destination\":\"/dev/pts\",\"type\":\"devpts\",\"source\":\"devpts\"}"

/* A config of these parts, planned with the profile and the facts. */
static struct lr_lean_plan plan_with(const char *text, const struct lr_lean_facts *facts,
				     const char *process, const char *top, const char *mounts,
				     const char *namespaces, const char *linux_)
{
	const struct oci_config *c = NULL;
	struct lr_lean_profile profile = {0};
	struct lr_lean_plan plan = {0};
	struct lr_err err = {0};
	char *json = lr_strf(arena,
			     "{\"ociVersion\":\"1.2.0\",\"root\":{\"path\":\"/\"},"
			     "\"process\":{\"cwd\":\"/\",\"args\":[\"x\"]%s},\"mounts\":[%s]%s,"
			     "\"linux\":{\"namespaces\":[%s]%s}}",
			     process, mounts, top, namespaces, linux_);

	CHECK_INT(oci_config_decode(json, strlen(json), arena, &c, &err), 0);
	CHECK_INT(lr_lean_profile(text, NULL, &profile, &err), 0);
	CHECK_INT(c ? lr_lean_plan(&profile, c, facts, arena, &plan, &err) : -EINVAL, 0);
	return plan;
}

static const struct lr_lean_facts usual = {
	.id = "x", .bundle = "/", .store_path = "/run/x", .manager_is_fs = true};

static struct lr_lean_plan plan(const char *process, const char *top, const char *linux_)
{
	return plan_with("lean", &usual, process, top, MOUNTS, NS "," NET, linux_);
}

TEST(a_plain_config_gets_everything)
{
	arena = lr_arena_new();
	struct lr_lean_plan p = plan("", "", "," RO_PATHS);

	CHECK_INT(p.network, LR_LEAN_SHARED);
	CHECK(p.pool);
	CHECK(p.config->root->readonly);
	/* "/" is a mount, and so not for a template of its own accord. */
	CHECK(!p.template_);
	p = plan_with("lean,mounts=template", &usual, "", "", MOUNTS, NS "," NET, "," RO_PATHS);
	CHECK(p.template_);
	CHECK_INT(p.base.n, 1);
	CHECK_STR(p.base.v[0].destination, "/dev");
	CHECK_INT(p.own.n, 2);
}

TEST(a_network_that_somebody_configures_is_private)
{
	static const char *const hooks[] = {"prestart", "createRuntime", "createContainer"};

	for (size_t i = 0; i < LR_ARRAY_SIZE(hooks); i++) {
		char top[128];
		snprintf(top, sizeof(top), ",\"hooks\":{\"%s\":[{\"path\":\"/bin/true\"}]}",
			 hooks[i]);
		CHECK_INT(plan("", top, "," RO_PATHS).network, LR_LEAN_CONFIG);
	}
	/* These see nothing of it from outside. */
	CHECK_INT(plan("", ",\"hooks\":{\"poststop\":[{\"path\":\"/bin/true\"}]}", "," RO_PATHS)
			  .network,
		  LR_LEAN_SHARED);
	CHECK_INT(plan("", "", "," RO_PATHS ",\"sysctl\":{\"net.ipv4.ip_forward\":\"1\"}").network,
		  LR_LEAN_CONFIG);
	CHECK_INT(plan("", "", "," RO_PATHS ",\"netDevices\":{\"eth9\":{}}").network,
		  LR_LEAN_CONFIG);
	CHECK_INT(plan_with("lean", &usual, "", "", MOUNTS,
			    NS ",{\"type\":\"network\",\"path\":\"/run/netns/x\"}", "," RO_PATHS)
			  .network,
		  LR_LEAN_CONFIG);
	struct lr_lean_facts facts = usual;
	facts.two_phase = true;
	CHECK_INT(plan_with("lean", &facts, "", "", MOUNTS, NS "," NET, "," RO_PATHS).network,
		  LR_LEAN_CONFIG);
	CHECK_INT(plan_with("network=shared", &facts, "", "", MOUNTS, NS "," NET, "," RO_PATHS)
			  .network,
		  LR_LEAN_SHARED);
}

TEST(a_network_that_the_container_can_change_is_private)
{
	static const char *const sets[] = {"bounding", "permitted", "inheritable", "ambient"};
	static const char *const ways[] = {"network=shared", "network=pool"};

	for (size_t w = 0; w < LR_ARRAY_SIZE(ways); w++) {
		for (size_t i = 0; i < LR_ARRAY_SIZE(sets); i++) {
			char process[128];
			snprintf(process, sizeof(process),
				 ",\"capabilities\":{\"%s\":[\"CAP_NET_ADMIN\"]}", sets[i]);
			CHECK_INT(plan_with(ways[w], &usual, process, "", MOUNTS, NS "," NET,
					    "," RO_PATHS)
					  .network,
				  LR_LEAN_CONFIG);
		}
		CHECK_INT(plan_with(ways[w], &usual, "", "", MOUNTS, NS "," NET, "").network,
			  LR_LEAN_CONFIG);
	}
}

TEST(control_groups_that_count_are_not_used_again)
{
	static const char *const no[] = {
		",\"resources\":{\"memory\":{\"limit\":1000000}}",
		",\"resources\":{\"cpu\":{\"shares\":100}}",
		",\"resources\":{\"blockIO\":{}}",
		",\"resources\":{\"pids\":{\"limit\":7}}",
		",\"resources\":{\"rdma\":{\"mlx5_0\":{\"hcaHandles\":1}}}",
		",\"cgroupsPath\":\"/x\"",
	};
	struct lr_lean_facts facts = usual;

	for (size_t i = 0; i < LR_ARRAY_SIZE(no); i++)
		CHECK(!plan("", "", no[i]).pool);
	CHECK(plan("", "", ",\"resources\":{\"pids\":{\"limit\":-1},\"cpu\":{\"cpus\":\"0\"}}")
		      .pool);
	CHECK(plan_with("cgroup=pool", &usual, "", "", MOUNTS, NS, ",\"cgroupsPath\":\"/x\"").pool);
	CHECK(!plan(",\"capabilities\":{\"bounding\":[\"CAP_SYS_ADMIN\"]}", "", "").pool);
	CHECK(!plan_with("lean", &usual, "", "", MOUNTS, "{\"type\":\"mount\"}", "").pool);
	CHECK(!plan_with("lean", &usual, "", "",
			 MOUNTS ",{\"destination\":\"/c\",\"type\":\"cgroup\"}", NS, "")
		       .pool);
	facts.cgroup_v2 = true;
	CHECK(!plan_with("lean", &facts, "", "", MOUNTS, NS, "").pool);
	facts = usual;
	facts.rootless = true;
	CHECK(!plan_with("lean", &facts, "", "", MOUNTS, NS, "").pool);
	facts = usual;
	facts.manager_is_fs = false;
	CHECK(!plan_with("lean", &facts, "", "", MOUNTS, NS, "").pool);
}

TEST(what_a_template_cannot_be_made_for)
{
	static const struct {
		const char *top, *mounts, *namespaces, *linux_;
	} no[] = {
		{"", MOUNTS, NS ",{\"type\":\"user\"}", ""},
		{"", MOUNTS, "{\"type\":\"mount\"}", ""},
		{",\"hooks\":{\"createContainer\":[{\"path\":\"/x\"}]}", MOUNTS, NS, ""},
		{"", MOUNTS, NS, ",\"rootfsPropagation\":\"shared\""},
		{"", "{\"destination\":\"/dev\",\"type\":\"tmpfs\"}", NS, ""}, /* no /proc */
		/* a link of the image's may lead it to /dev, where it would be covered */
		{"", "{\"destination\":\"/data\",\"type\":\"tmpfs\"}," MOUNTS, NS, ""},
	};

	for (size_t i = 0; i < LR_ARRAY_SIZE(no); i++) {
		struct lr_lean_plan p = plan_with("mounts=template", &usual, "", no[i].top,
						  no[i].mounts, no[i].namespaces, no[i].linux_);
		CHECK(!p.template_);
		CHECK(p.why_not);
	}
	/* It may remount what the next container of that template gets. */
	CHECK(!plan_with("mounts=template", &usual,
			 ",\"capabilities\":{\"permitted\":[\"CAP_SYS_ADMIN\"]}", "", MOUNTS, NS,
			 "")
		       .template_);
	CHECK(plan_with("mounts=template", &usual,
			",\"capabilities\":{\"permitted\":[\"CAP_SYS_CHROOT\"]}", "", MOUNTS, NS,
			"")
		      .template_);
}

TEST(an_id_that_is_too_long_gets_nothing_from_a_pool)
{
	struct lr_lean_facts facts = usual;
	char id[260];

	memset(id, 'x', 201);
	id[201] = '\0';
	facts.id = id;
	struct lr_lean_plan p = plan_with("mounts=template,cgroup=pool,network=pool", &facts, "",
					  "", MOUNTS, NS "," NET, "," RO_PATHS);
	CHECK(!p.pool);
	CHECK(!p.template_);
	CHECK_INT(p.network, LR_LEAN_CONFIG);
	id[200] = '\0';
	CHECK(plan_with("cgroup=pool", &facts, "", "", MOUNTS, NS, "").pool);
	lr_arena_free(arena);
}
