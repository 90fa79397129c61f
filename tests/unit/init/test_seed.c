/* SPDX-License-Identifier: Apache-2.0 */
/* Who may continue a seed: each thread of it may be what the process of config.json could become. */
#include <linux/capability.h>
#include <sched.h>

#include "src/base/fd.h"
#include "src/init/init.h"
#include "src/init/seed.h"
#include "tests/unit/seed/sample.h"
#include "tests/unit/test.h"

#define CHOWN  LR_CAPS_BIT(CAP_CHOWN)
#define SETUID LR_CAPS_BIT(CAP_SETUID)
#define SETGID LR_CAPS_BIT(CAP_SETGID)

/* A container of its own pid namespace, whose root has one capability; and a seed of that. */
struct asked {
	struct lr_arena *a;
	struct lr_init_plan plan;
	struct lr_seed seed;
	struct lr_seed_cred *cred;
	struct lr_seed_process *first;
	struct oci_mount mount[2];
	struct lr_rootfs_plan root;
	struct lr_err err;
};

static bool set_mounts(struct asked *x, size_t n)
{
	const struct oci_mounts mounts = {x->mount, n};
	const struct lr_mount_opts opts = {.bundle = "/b"};

	return lr_mount_plan(&mounts, &opts, x->a, &x->plan.tree.mounts, &x->err) == 0;
}

static bool begin(struct asked *x)
{
	void *bytes;
	size_t size;

	*x = (struct asked){
		.a = lr_arena_new(),
		.plan = {.ns.create = CLONE_NEWPID, .process.caps = {CHOWN, CHOWN, 0, CHOWN, 0}}};
	if (lr_seed_finish(sample_writer(x->a), SAMPLE_PAGES, SAMPLE_ID, &bytes, &size, NULL) < 0 ||
	    lr_seed_open(bytes, size, SAMPLE_PAGES, &x->seed, NULL) < 0)
		return false;
	x->cred = (struct lr_seed_cred *)lr_seed_cred(&x->seed, 0);
	*x->cred = (struct lr_seed_cred){.permitted = CHOWN, .effective = CHOWN, .bounding = CHOWN};
	x->first = (struct lr_seed_process *)lr_seed_process(&x->seed, 0);
	x->first->pid = 1;
	x->root.new_mount_ns = true;
	x->plan.tree.rootfs = &x->root;
	x->mount[0] =
		(struct oci_mount){.destination = "/tmp/", .type = "tmpfs", .source = "tmpfs"};
	return set_mounts(x, 1);
}

static int ask(struct asked *x)
{
	return lr_init_seed_check(&x->plan, &x->seed, &x->err);
}

TEST(what_it_was_it_may_be)
{
	struct asked x;

	REQUIRE(begin(&x));
	CHECK_INT(ask(&x), 0);
	/* Less, too. */
	*x.cred = (struct lr_seed_cred){0};
	CHECK_INT(ask(&x), 0);
	lr_arena_free(x.a);
}

TEST(what_is_in_a_tmpfs_needs_one)
{
	struct asked x;

	REQUIRE(begin(&x));
	CHECK_INT(ask(&x), 0);
	/* The host's. */
	x.mount[1] = (struct oci_mount){.destination = "/tmp",
					.type = "tmpfs",
					.source = "/tmp",
					.options = {(const char *[]){"bind"}, 1}};
	REQUIRE(set_mounts(&x, 2));
	CHECK_INT(ask(&x), -ENOTSUP);
	CHECK_STR(x.err.msg, "the seed has files in the tmpfs /tmp, and there is none");
	REQUIRE(set_mounts(&x, 0));
	CHECK_INT(ask(&x), -ENOTSUP);
	/* An empty one is missed by nobody. */
	((struct lr_seed_tmpfs *)lr_seed_tmpfs(&x.seed, 0))->nodes.count = 1;
	CHECK_INT(ask(&x), 0);
	lr_arena_free(x.a);
}

TEST(what_changes_the_root_needs_one_that_is_writable_and_its_own)
{
	struct asked x;

	REQUIRE(begin(&x));
	REQUIRE(lr_seed_changes(&x.seed));
	x.root.readonly = true;
	CHECK_INT(ask(&x), -EROFS);
	CHECK_STR(x.err.msg, "the seed changes files of its root, and this one is read-only");
	CHECK_STR(x.err.path, "root.readonly");
	x.root.readonly = x.root.new_mount_ns = false;
	CHECK_INT(ask(&x), -ENOTSUP);
	/* Without changes it does not matter. */
	((struct lr_seed_tmpfs *)lr_seed_changes(&x.seed))->flags = 0;
	((struct lr_seed_tmpfs *)lr_seed_tmpfs(&x.seed, 1))->nodes.count = 1;
	x.root.readonly = true;
	CHECK_INT(ask(&x), 0);
	lr_arena_free(x.a);
}

TEST(no_file_runs_as_somebody_else)
{
	struct asked x;

	REQUIRE(begin(&x));
	struct lr_seed_node *n = (struct lr_seed_node *)lr_seed_node(&x.seed, 2);
	n->uid = 7;
	CHECK_INT(ask(&x), 0);
	n->mode |= S_ISUID;
	CHECK_INT(ask(&x), -EPERM);
	n->uid = 0;
	CHECK_INT(ask(&x), 0);
	n->gid = 7;
	n->mode |= S_ISGID;
	CHECK_INT(ask(&x), -EPERM);
	/* Who can become them may make one. */
	n->uid = 7;
	x.plan.process.caps.bounding |= SETUID | SETGID;
	CHECK_INT(ask(&x), 0);
	lr_arena_free(x.a);
}

TEST(no_socket_is_somebody_elses)
{
	struct asked x;

	REQUIRE(begin(&x));
	struct lr_seed_endpoint *e = (struct lr_seed_endpoint *)lr_seed_endpoint(&x.seed, 0);
	e->uid = 7;
	CHECK_INT(ask(&x), -EPERM);
	CHECK(strstr(x.err.msg, "endpoint 0"));
	x.plan.process.caps.bounding |= SETUID;
	CHECK_INT(ask(&x), 0);
	e->gid = 7;
	CHECK_INT(ask(&x), -EPERM);
	x.plan.process.caps.bounding |= SETGID;
	CHECK_INT(ask(&x), 0);
	lr_arena_free(x.a);
}

TEST(no_pair_is_somebody_elses)
{
	struct asked x;

	REQUIRE(begin(&x));
	struct lr_seed_channel *c = (struct lr_seed_channel *)lr_seed_channel(&x.seed, 0);
	c->uid = 7;
	CHECK_INT(ask(&x), -EPERM);
	CHECK(strstr(x.err.msg, "channel 0"));
	x.plan.process.caps.bounding |= SETUID;
	CHECK_INT(ask(&x), 0);
	c->gid = 7;
	CHECK_INT(ask(&x), -EPERM);
	x.plan.process.caps.bounding |= SETGID;
	CHECK_INT(ask(&x), 0);
	lr_arena_free(x.a);
}

#define MEMORY 6 /* of the sample's files */

TEST(no_memory_is_somebody_elses)
{
	struct asked x;

	REQUIRE(begin(&x));
	struct lr_seed_file *f = (struct lr_seed_file *)lr_seed_file(&x.seed, MEMORY);
	f->args[2] = 7;
	CHECK_INT(ask(&x), -EPERM);
	CHECK(strstr(x.err.msg, "file 6"));
	x.plan.process.caps.bounding |= SETUID;
	CHECK_INT(ask(&x), 0);
	f->args[3] = 7;
	CHECK_INT(ask(&x), -EPERM);
	x.plan.process.caps.bounding |= SETGID;
	CHECK_INT(ask(&x), 0);
	lr_arena_free(x.a);
}

static void own_all(const struct asked *x, uint32_t uid)
{
	for (uint32_t i = 0; i < lr_seed_count(&x->seed, LR_SEED_ENDPOINT); i++)
		((struct lr_seed_endpoint *)lr_seed_endpoint(&x->seed, i))->uid = uid;
	((struct lr_seed_channel *)lr_seed_channel(&x->seed, 0))->uid = uid;
	((struct lr_seed_file *)lr_seed_file(&x->seed, MEMORY))->args[2] = uid;
}

TEST(no_set_has_more_capabilities)
{
	struct asked x;

	REQUIRE(begin(&x));
	uint64_t *const sets[] = {&x.cred->permitted, &x.cred->effective, &x.cred->inheritable,
				  &x.cred->bounding, &x.cred->ambient};
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		uint64_t was = *sets[i];
		*sets[i] |= LR_CAPS_BIT(CAP_SYS_ADMIN);
		CHECK_INT(ask(&x), -EPERM);
		CHECK(strstr(x.err.msg, "CAP_SYS_ADMIN"));
		*sets[i] = was;
	}
	CHECK_INT(ask(&x), 0);
	/* Effective ones are permitted ones, and an ordinary user has what is ambient. */
	x.cred->permitted = 0;
	CHECK_INT(ask(&x), -EPERM);
	x.cred->permitted = CHOWN;
	x.plan.process.user.uid = 5;
	for (int i = 0; i < 4; i++)
		x.cred->uids[i] = 5;
	own_all(&x, 5);
	CHECK_INT(ask(&x), 0); /* by a program that is set-user-ID */
	x.plan.process.no_new_privileges = true;
	CHECK_INT(ask(&x), -EPERM);
	/* Root has what it was given; execve adds nothing of the bounding set. */
	x.plan.process.user.uid = 0;
	own_all(&x, 0);
	for (int i = 0; i < 4; i++)
		x.cred->uids[i] = 0;
	CHECK_INT(ask(&x), 0);
	x.plan.process.caps.bounding |= SETUID;
	x.cred->permitted |= SETUID;
	CHECK_INT(ask(&x), -EPERM);
	x.plan.process.no_new_privileges = false;
	CHECK_INT(ask(&x), 0);
	lr_arena_free(x.a);
}

TEST(ids_change_with_a_capability_only)
{
	struct asked x;

	REQUIRE(begin(&x));
	for (int i = 0; i < 4; i++) {
		x.cred->uids[i] = 7;
		CHECK_INT(ask(&x), -EPERM);
		x.cred->uids[i] = 0;
		x.cred->gids[i] = 7;
		CHECK_INT(ask(&x), -EPERM);
		x.cred->gids[i] = 0;
	}
	for (int i = 0; i < 4; i++)
		x.cred->uids[i] = x.cred->gids[i] = 7;
	x.plan.process.caps.bounding |= SETUID;
	CHECK_INT(ask(&x), -EPERM);
	x.plan.process.caps.bounding |= SETGID;
	CHECK_INT(ask(&x), 0);
	/* Those for files follow the effective ones. */
	x.cred->uids[3] = 0;
	CHECK_INT(ask(&x), -ENOTSUP);
	x.cred->uids[3] = 7;
	x.cred->gids[3] = 0;
	CHECK_INT(ask(&x), -ENOTSUP);
	x.cred->gids[3] = 7;
	CHECK_INT(ask(&x), 0);
	x.cred->securebits = 1;
	CHECK_INT(ask(&x), -ENOTSUP);
	CHECK(strstr(x.err.msg, "secure bits"));
	lr_arena_free(x.a);
}

TEST(further_groups_are_those_of_the_process)
{
	struct asked x;

	REQUIRE(begin(&x));
	/* Some bytes of the seed that can be numbers of groups. */
	uint32_t *groups = (uint32_t *)(uintptr_t)lr_seed_data(&x.seed, &x.cred->groups);
	groups[0] = 10;
	groups[1] = 11;
	x.cred->groups.length = 2 * sizeof(*groups);
	const uint32_t both[] = {10, 11};
	x.plan.process.user.gids = (uint32_t *)both;
	x.plan.process.user.n_gids = 2;
	CHECK_INT(ask(&x), 0);
	x.plan.process.user.n_gids = 1;
	CHECK_INT(ask(&x), -EPERM);
	CHECK(strstr(x.err.msg, "is of group 11"));
	x.plan.process.caps.bounding |= SETGID;
	CHECK_INT(ask(&x), 0);
	lr_arena_free(x.a);
}

TEST(ambient_capabilities_are_inheritable)
{
	struct asked x;

	REQUIRE(begin(&x));
	x.plan.process.caps.inheritable = CHOWN;
	x.cred->ambient = CHOWN;
	CHECK_INT(ask(&x), -EPERM);
	x.cred->inheritable = CHOWN;
	CHECK_INT(ask(&x), 0);
	lr_arena_free(x.a);
}

TEST(a_user_namespace_knows_all_ids)
{
	struct oci_id_mapping u[] = {{0, 100000, 1000}, {1000, 5, 1}}, g[] = {{0, 7, 10}};
	struct oci_id_mappings uids = {u, 2}, gids = {g, 1};
	struct lr_seed_node *n;
	struct asked x;

	REQUIRE(begin(&x));
	x.plan.ns.create = CLONE_NEWPID | CLONE_NEWUSER;
	x.plan.ns.uids = &uids;
	x.plan.ns.gids = &gids;
	x.plan.process.caps = (struct lr_caps_plan){
		SETUID | SETGID | CHOWN, SETUID | SETGID | CHOWN, 0, SETUID | SETGID | CHOWN, 0};
	CHECK_INT(ask(&x), 0);
	x.cred->uids[2] = 1000;
	CHECK_INT(ask(&x), 0);
	x.cred->uids[2] = 1001;
	CHECK_INT(ask(&x), -ENOTSUP);
	CHECK_HAS(x.err.msg, "user 1001");
	x.cred->uids[2] = 0;
	x.cred->gids[3] = 10;
	CHECK_INT(ask(&x), -ENOTSUP);
	CHECK_HAS(x.err.msg, "group 10");
	CHECK_STR(x.err.path, "linux.gidMappings");
	x.cred->gids[3] = 0;
	n = (struct lr_seed_node *)lr_seed_node(&x.seed, 2);
	n->uid = 2000;
	CHECK_INT(ask(&x), -ENOTSUP);
	CHECK_STR(x.err.path, "linux.uidMappings");
	/* Where there is no such namespace, every id is one. */
	x.plan.ns.create = CLONE_NEWPID;
	CHECK_INT(ask(&x), 0);
	lr_arena_free(x.a);
}

TEST(some_containers_continue_none)
{
	struct asked x;

	REQUIRE(begin(&x));
	x.first->pid = 2;
	CHECK_INT(ask(&x), -ENOTSUP);
	x.first->pid = 1;
	x.plan.ns.create = 0;
	CHECK_INT(ask(&x), -ENOTSUP);
	x.plan.ns.create = CLONE_NEWPID;
	x.plan.ns.join[LR_NS_USER] = "/proc/1/ns/user";
	CHECK_INT(ask(&x), -ENOTSUP);
	x.plan.ns.join[LR_NS_USER] = NULL;
	x.plan.ns.staged = true;
	CHECK_INT(ask(&x), -ENOTSUP);
	x.plan.ns.staged = false;
	x.plan.process.lsm.apparmor = "x";
	CHECK_INT(ask(&x), -ENOTSUP);
	x.plan.process.lsm.apparmor = NULL;
	x.plan.process.lsm.selinux = "x";
	CHECK_INT(ask(&x), -ENOTSUP);
	x.plan.process.lsm.selinux = NULL;
	struct oci_hooks hooks = {.start_container.n = 1};
	x.plan.hooks = &hooks;
	CHECK_INT(ask(&x), -ENOTSUP);
	x.plan.hooks = NULL;
	struct lr_seccomp_prog asks = {.notify = true};
	x.plan.process.seccomp = &asks;
	CHECK_INT(ask(&x), -ENOTSUP);
	x.plan.process.seccomp = NULL;
	CHECK_INT(ask(&x), 0);
	lr_arena_free(x.a);
}
