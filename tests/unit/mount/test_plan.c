/* SPDX-License-Identifier: Apache-2.0 */
/* What is refused before any system call, and what a mount compiles to. */
#include "src/mount/internal.h"
#include "tests/unit/mount/fixture.h"

static struct lr_arena *arena;
static struct lr_err err;
static struct lr_mount_opts opts;

static struct lr_mount_plan *plan(const struct oci_mounts *m, int want)
{
	struct lr_mount_plan *p = NULL;

	if (!arena)
		arena = lr_arena_new();
	opts.bundle = "/bundle";
	err = (struct lr_err){0};
	CHECK_INT(lr_mount_plan(m, &opts, arena, &p, &err), want);
	return p;
}

static const char *refused(const struct oci_mounts *m, int code)
{
	static char text[1200];

	plan(m, -code);
	return lr_err_format(&err, text, sizeof(text));
}

TEST(kinds)
{
	struct lr_mount_plan *p =
		plan(MOUNTS(M("/a", "tmpfs", "tmpfs"), M("/b", "none", "/src", "rbind"),
			    M("/c", "bind", "rel", "ro"), M("/d", "", "", "bind", "remount", "ro"),
			    M("/e", "cgroup", "cgroup"), M("/f", NULL, NULL, "rslave")),
		     0);
	REQUIRE(p);
	CHECK_INT(p->ops[0].kind, LR_MOUNT_FS);
	CHECK_INT(p->ops[1].kind, LR_MOUNT_BIND);
	CHECK(p->ops[1].o.rec);
	CHECK_INT(p->ops[2].kind, LR_MOUNT_BIND);
	CHECK_STR(p->ops[2].source, "/bundle/rel");
	CHECK_INT(p->ops[3].kind, LR_MOUNT_REMOUNT);
	CHECK_INT(p->ops[4].kind, LR_MOUNT_CGROUP);
	CHECK_INT(p->ops[5].kind, LR_MOUNT_REMOUNT);
	CHECK(lr_mount_wants_cgroup(p));
	CHECK(!lr_mount_wants_cgroup(plan(MOUNTS(M("/a", "tmpfs", "")), 0)));
}

TEST(destinations)
{
	struct lr_mount_plan *p = plan(
		MOUNTS(M("rel/./x/../y//", "tmpfs", "tmpfs"), M("/../../up", "tmpfs", "tmpfs")), 0);
	REQUIRE(p);
	CHECK_STR(p->ops[0].dest, "/rel/y");
	CHECK_STR(p->ops[0].name, "y");
	CHECK_STR(p->ops[1].dest, "/up");

	CHECK(plan(MOUNTS(M("/", "tmpfs", "tmpfs"), M("/a/..", "bind", "/x", "bind")), 0));
	CHECK_HAS(refused(MOUNTS(M("/", "cgroup", "")), EPERM), "cover the whole container");
	opts.elsewhere = true; /* a container that runs */
	CHECK_HAS(refused(MOUNTS(M("/", "tmpfs", "tmpfs")), EPERM), "cover the whole container");
	CHECK_STR(err.path, "mounts[0].destination");
	refused(MOUNTS(M("/a/..", "bind", "/x", "bind")), EPERM);
	opts.elsewhere = false;
	refused(MOUNTS(M("", "tmpfs", "tmpfs")), EINVAL);
	refused(MOUNTS(M(NULL, "tmpfs", "tmpfs")), EINVAL);
	CHECK(plan(MOUNTS(M("/", "", "", "remount", "bind", "ro")), 0));
}

TEST(procfs_is_not_covered)
{
	static const char *const allowed[] = {
		"/proc/cpuinfo",
		"/proc/diskstats",
		"/proc/meminfo",
		"/proc/stat",
		"/proc/swaps",
		"/proc/uptime",
		"/proc/loadavg",
		"/proc/slabinfo",
		"/proc/net/dev",
		"/proc/sys/kernel/ns_last_pid",
		"/proc/sys/crypto/fips_enabled",
	};
	for (size_t i = 0; i < LR_ARRAY_SIZE(allowed); i++)
		CHECK(plan(MOUNTS(M(allowed[i], "bind", "/x", "bind")), 0));

	CHECK(plan(MOUNTS(M("/proc", "proc", "proc")), 0)->ops[0].nolinks);
	CHECK(plan(MOUNTS(M("/proc", "bind", "/proc", "rbind")), 0)->ops[0].is_procfs);
	CHECK(plan(MOUNTS(M("/process", "tmpfs", "tmpfs")), 0));
	CHECK_HAS(refused(MOUNTS(M("/proc", "tmpfs", "tmpfs")), EPERM), "only a procfs");
	CHECK_HAS(refused(MOUNTS(M("/proc/sys", "bind", "/x", "bind")), EPERM), "inside /proc");
	refused(MOUNTS(M("/proc/self/attr", "tmpfs", "tmpfs")), EPERM);
	refused(MOUNTS(M("/proc//./sysrq-trigger", "bind", "/x", "bind")), EPERM);
	refused(MOUNTS(M("proc/1", "tmpfs", "tmpfs")), EPERM);
	refused(MOUNTS(M("/proc/cpuinfo/x", "bind", "/x", "bind")), EPERM);
}

TEST(nonsense)
{
	CHECK_HAS(refused(MOUNTS(M("/a", "none", "/x", "ro")), EINVAL), "no file system type");
	CHECK_STR(err.path, "mounts[0].type");
	CHECK_HAS(refused(MOUNTS(M("/ok", "tmpfs", ""), M("/a", "bind", "", "bind")), EINVAL),
		  "no source");
	CHECK_STR(err.path, "mounts[1].source");
	CHECK_HAS(refused(MOUNTS(M("/a", "bind", "/x", "bind", "tmpcopyup")), EINVAL), "tmpfs");
	refused(MOUNTS(M("/a", "ramfs", "x", "tmpcopyup")), EINVAL);
	refused(MOUNTS(M("/a", "tmpfs", "x", "copy-symlink")), EINVAL);
	refused(MOUNTS(M("/a", "tmpfs", "x", "src-nofollow")), EINVAL);
}

TEST(flags_of_new_file_systems)
{
	struct lr_mount_plan *p =
		plan(MOUNTS(M("/proc", "proc", "proc", "nosuid", "noexec", "ro", "noatime"),
			    M("/t", "tmpfs", "t", "ro", "mode=700", "sync"),
			    M("/dev", "devtmpfs", "d", "rro", "strictatime")),
		     0);
	REQUIRE(p);
	CHECK_INT(p->ops[0].attr,
		  MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOATIME);
	CHECK_INT(p->ops[0].ms_flags, MS_NOSUID | MS_NOEXEC | MS_RDONLY | MS_NOATIME);
	CHECK(!p->ops[0].finish_ro);
	/* Written to later on: read-only at the end. */
	CHECK(p->ops[1].finish_ro && p->ops[1].attr == 0);
	CHECK_INT(p->ops[1].ms_flags, MS_RELATIME | MS_SYNCHRONOUS);
	CHECK(!p->ops[1].inherit_mode);
	CHECK(p->ops[2].finish_ro && p->ops[2].attr == MOUNT_ATTR_STRICTATIME);
}

static void check_change(const struct lr_mount_op *op, size_t i, uint64_t set, uint64_t clear,
			 unsigned long prop, bool rec)
{
	CHECK(i < op->n_changes);
	if (i >= op->n_changes)
		return;
	CHECK_INT(op->changes[i].set, set);
	CHECK_INT(op->changes[i].clear, clear);
	CHECK_INT(op->changes[i].prop, prop);
	CHECK_INT(op->changes[i].rec, rec);
}

TEST(changes_of_binds_are_merged)
{
	struct lr_mount_plan *p =
		plan(MOUNTS(M("/a", "bind", "/x", "rbind", "rprivate"),
			    M("/b", "bind", "/x", "bind", "private", "ro"),
			    M("/c", "bind", "/x", "rbind", "rro", "rprivate", "nosuid"),
			    M("/d", "bind", "/x", "bind", "rro", "nodev", "rprivate"),
			    M("/e", "bind", "/x", "rbind"),
			    M("/f", "bind", "/x", "rbind", "rprivate", "rw", "ro")),
		     0);
	const uint64_t others = MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NOSYMFOLLOW;
	REQUIRE(p);
	CHECK_INT(p->ops[0].n_changes, 1);
	check_change(&p->ops[0], 0, 0, 0, MS_PRIVATE, true);
	CHECK_INT(p->ops[1].n_changes, 1);
	check_change(&p->ops[1], 0, MOUNT_ATTR_RDONLY,
		     others | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, MS_PRIVATE, false);
	CHECK_INT(p->ops[1].changes[0].unnamed, p->ops[1].changes[0].clear);
	CHECK_INT(p->ops[2].n_changes, 2);
	check_change(&p->ops[2], 0, MOUNT_ATTR_RDONLY, 0, MS_PRIVATE, true);
	check_change(&p->ops[2], 1, MOUNT_ATTR_NOSUID, others | MOUNT_ATTR_NODEV, 0, false);
	CHECK_INT(p->ops[3].n_changes, 1); /* a tree of one */
	check_change(&p->ops[3], 0, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV,
		     others | MOUNT_ATTR_NOSUID, MS_PRIVATE, false);
	CHECK_INT(p->ops[4].n_changes, 0);
	CHECK_INT(p->ops[5].n_changes, 2);

	opts.userns = true;
	p = plan(MOUNTS(M("/b", "bind", "/x", "bind", "ro"), M("/c", "bind", "/x", "bind", "rw")),
		 0);
	opts.userns = false;
	REQUIRE(p);
	check_change(&p->ops[0], 0, MOUNT_ATTR_RDONLY, 0, 0, false);
	check_change(&p->ops[1], 0, 0, MOUNT_ATTR_RDONLY, 0, false);
}

TEST(shared_waits_for_its_place)
{
	struct lr_mount_plan *p = plan(MOUNTS(M("/a", "bind", "/x", "rbind", "rshared", "ro")), 0);
	REQUIRE(p && p->ops[0].n_changes == 2);
	CHECK(p->ops[0].changes[0].attached && p->ops[0].changes[0].prop == MS_SHARED);
	CHECK(!p->ops[0].changes[1].attached);

	opts.rootfs_propagation = "shared";
	p = plan(MOUNTS(M("/a", "bind", "/x", "rbind", "rprivate")), 0);
	CHECK(p && p->ops[0].changes[0].attached);
	opts.rootfs_propagation = "sideways";
	CHECK_HAS(refused(MOUNTS(M("/a", "tmpfs", "")), EINVAL), "sideways");
	CHECK_STR(err.path, "linux.rootfsPropagation");
	opts.rootfs_propagation = NULL;
}

TEST(parents)
{
	struct lr_mount_plan *p =
		plan(MOUNTS(M("/dev", "tmpfs", "tmpfs"), M("/dev/pts", "devpts", "devpts"),
			    M("/dev/shm/x", "tmpfs", "t"), M("/dev/shm", "tmpfs", "t"),
			    M("/dev", "bind", "/y", "bind"), M("/dev/mqueue", "mqueue", "mqueue")),
		     0);
	REQUIRE(p);
	CHECK_INT(p->ops[0].parent, -1);
	CHECK_INT(p->ops[1].parent, 0);
	CHECK(p->ops[0].keep && !p->ops[1].keep);
	CHECK_INT(p->ops[2].parent, -1);
	CHECK_INT(p->ops[3].parent, 0);
	CHECK_INT(p->ops[5].parent, -1); /* another mount covers it meanwhile */

	p = plan(MOUNTS(M("/dev", "tmpfs", "tmpfs"), M("/", "tmpfs", "tmpfs"),
			M("/dev/pts", "devpts", "devpts")),
		 0);
	CHECK(p && p->ops[2].parent == -1); /* another root does, too */
}

static bool can_be_bare(const struct oci_mounts *m)
{
	struct lr_mount_plan *p = plan(m, 0);

	return p && lr_mount_can_be_bare(p);
}

TEST(what_does_without_the_hosts_files)
{
	opts.root = "/bundle/rootfs";
	CHECK(can_be_bare(MOUNTS(M("/dev", "tmpfs", "tmpfs"), M("/proc", "proc", "proc"),
				 M("/a", "bind", "/x", "rbind", "rslave"),
				 M("/a", "", "", "remount", "bind", "ro"))));
	CHECK(!can_be_bare(MOUNTS(M("/o", "overlay", "o", "lowerdir=/x"))));
	CHECK(!can_be_bare(MOUNTS(M("/d", "ext4", "/dev/vda"))));
	CHECK(!can_be_bare(MOUNTS(M("/", "tmpfs", "tmpfs"))));
	/* It may be there only when another mount is. */
	CHECK(!can_be_bare(MOUNTS(M("/a", "bind", "/bundle/rootfs/etc", "bind"))));
	/* Bound from the host, but for a cgroup namespace. */
	CHECK(!can_be_bare(MOUNTS(M("/sys/fs/cgroup", "cgroup", "cgroup"))));
	opts.cgroupns = true;
	CHECK(can_be_bare(MOUNTS(M("/sys/fs/cgroup", "cgroup", "cgroup"))));
	opts.cgroupns = false;
	opts.root = NULL;
}

TEST(labels)
{
	opts.mount_label = "u:r:t:s0:c1,c2";
	struct lr_mount_plan *p = plan(MOUNTS(M("/a", "tmpfs", "t", "mode=1"),
					      M("/proc", "proc", "p"), M("/sys", "sysfs", "s"),
					      M("/m", "mqueue", "m"), M("/b", "bind", "/x", "bind"),
					      M("/c", "tmpfs", "t", "context=\"mine\"")),
				       0);
	REQUIRE(p);
	CHECK_STR(p->ops[0].o.data, "mode=1,context=\"u:r:t:s0:c1,c2\"");
	CHECK_STR(p->ops[0].o.params[1].value, "u:r:t:s0:c1,c2");
	for (size_t i = 1; i < 5; i++)
		CHECK_STR(p->ops[i].o.data, "");
	CHECK_STR(p->ops[5].o.data, "context=\"mine\"");
	opts.mount_context_type = "rootcontext";
	p = plan(MOUNTS(M("/a", "tmpfs", "t")), 0);
	CHECK(p && lr_streq(p->ops[0].o.data, "rootcontext=\"u:r:t:s0:c1,c2\""));
	opts.mount_context_type = "nocontext";
	refused(MOUNTS(M("/a", "tmpfs", "t")), EINVAL);
	opts.mount_context_type = opts.mount_label = NULL;
}

static struct oci_id_mappings one(uint32_t c, uint32_t h, uint32_t n)
{
	static struct oci_id_mapping v[8];
	static size_t i;

	v[i % 8] = (struct oci_id_mapping){c, h, n};
	return (struct oci_id_mappings){.v = &v[i++ % 8], .n = 1};
}

TEST(devpts_group_must_be_mapped)
{
	struct oci_id_mappings map = one(0, 1000, 1);
	opts.userns = true;
	opts.gid_map = &map;
	CHECK_HAS(
		refused(MOUNTS(M("/dev/pts", "devpts", "devpts", "newinstance", "gid=5")), EINVAL),
		"group 5 is not mapped");
	CHECK_HAS(err.hint, "drop \"gid=5\"");
	CHECK(plan(MOUNTS(M("/dev/pts", "devpts", "devpts", "gid=0")), 0));
	opts.userns = false;
	CHECK(plan(MOUNTS(M("/dev/pts", "devpts", "devpts", "gid=5")), 0));
	opts.gid_map = NULL;
}

TEST(idmaps)
{
	struct oci_mount m =
		M("/a", "bind", "/x", "bind", "idmap=uids=0-1-10#10-11-10;gids=0-100-10");
	struct oci_mount same =
		M("/b", "bind", "/y", "rbind", "ridmap=uids=0-1-10#10-11-10;gids=0-100-10");
	struct lr_mount_plan *p = plan(MOUNTS(m, same), 0);
	REQUIRE(p);
	CHECK_INT(p->n_maps, 1);
	CHECK_STR(p->maps[0].uids, "0 1 10\n10 11 10\n");
	CHECK_STR(p->maps[0].gids, "0 100 10\n");
	CHECK_INT(p->ops[1].map, 0);

	m = (struct oci_mount)M("/a", "bind", "/x", "bind");
	m.uid_mappings = one(0, 5000, 3);
	CHECK_HAS(refused(MOUNTS(m), EINVAL), "go together");
	m.gid_mappings = one(0, 6000, 3);
	p = plan(MOUNTS(m), 0);
	REQUIRE(p);
	CHECK_STR(p->maps[0].uids, "0 5000 3\n");
	CHECK_STR(p->maps[0].gids, "0 6000 3\n");

	refused(MOUNTS(M("/a", "bind", "/x", "bind", "idmap")), EINVAL);
	CHECK_HAS(refused(MOUNTS(M("/a", "tmpfs", "t", "idmap")), EINVAL), "only a bind mount");
	struct oci_id_mappings u = one(1, 2, 1000), g = one(0, 7, 100);
	opts.uid_map = &u;
	opts.gid_map = &g;
	p = plan(MOUNTS(M("/a", "bind", "/x", "bind", "idmap"),
			M("/b", "bind", "/x", "bind", "idmap=uids=@1-3-10;gids=@0-0-1")),
		 0);
	REQUIRE(p && p->n_maps == 2);
	CHECK_STR(p->maps[0].uids, "1 2 1000\n");
	CHECK_STR(p->maps[1].uids, "1 4 10\n");
	CHECK_STR(p->maps[1].gids, "0 7 1\n");
	CHECK_HAS(refused(MOUNTS(M("/b", "bind", "/x", "bind", "idmap=uids=@1-3-9999;gids=@0-0-1")),
			  EINVAL),
		  "not mapped");
	opts.uid_map = opts.gid_map = NULL;
	opts.userns_path = "/proc/1/ns/user";
	p = plan(MOUNTS(M("/a", "bind", "/x", "bind", "idmap")), 0);
	CHECK(p && lr_streq(p->maps[0].path, "/proc/1/ns/user"));
	opts.userns_path = NULL;
}

TEST(bad_idmap_texts)
{
	static const char *const bad[] = {
		"idmap=",
		"idmap=uids=0-1-10",
		"idmap=uids=0-1;gids=0-1-1",
		"idmap=uids=0-1-0;gids=0-1-1",
		"idmap=uids=0-1-1#;gids=0-1-1",
		"idmap=uids=a-1-1;gids=0-1-1",
		"idmap=x=0-1-1",
		"idmap=uids=0-1-1-1;gids=0-1-1",
		"idmap=uids=0-1-1;uids=0-1-1;gids=0-1-1",
		"idmap=uids=0-1-99999999999;gids=0-1-1",
		"idmap=uids=0--1-1;gids=0-1-1",
		"idmap=uids=-0-1-1;gids=0-1-1",
	};
	for (size_t i = 0; i < LR_ARRAY_SIZE(bad); i++)
		refused(MOUNTS(M("/a", "bind", "/x", "bind", bad[i])), EINVAL);
}
