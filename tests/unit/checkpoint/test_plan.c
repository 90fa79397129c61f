/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: what a container becomes in criu's requests. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/checkpoint/internal.h"
#include "src/sys/syscalls.h"
#include "tests/unit/test.h"

static const char *bind_options[] = {"rbind", "ro", NULL};
static struct oci_mount mounts[] = {
	{.destination = "/proc", .type = "proc", .source = "proc"},
	{.destination = "/link//to/",
	 .type = "bind",
	 .source = "/src",
	 .options = {bind_options, 2}},
};
static struct oci_namespace spaces[] = {{.type = "network"}, {.type = "mount"}};
static struct oci_linux linux_ = {.namespaces = {.v = spaces, .n = 2}};
static struct oci_hook hook = {.path = "/bin/true"};
static struct oci_hooks hooks = {.prestart = {.v = &hook, .n = 1}};
static struct oci_config config = {
	.mounts = {.v = mounts, .n = 2},
	.linux_ = &linux_,
	.hooks = &hooks,
};

static const char info[] = "10 1 8:1 /b/rootfs / rw,relatime master:3 - ext4 /dev/sda rw\n"
			   "11 10 0:50 / /proc rw - proc proc rw\n"
			   "12 11 0:50 /sys /proc/sys ro - proc proc rw\n"
			   "13 11 0:6 /null /proc/keys ro - devtmpfs devtmpfs rw\n"
			   "14 10 8:1 /src\\040x /run/made rw - ext4 /dev/sda rw\n"
			   "15 10 0:51 / /dev rw - tmpfs tmpfs rw\n";

static bool has(const struct lr_criu_list *l, const char *key)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].key && strcmp(l->v[i].key, key) == 0)
			return true;
	return false;
}

static int plan(const char *text, const struct lr_checkpoint_opts *o, struct lr_checkpoint_found *f,
		struct lr_arena *a, struct lr_criu_opts *ret, struct lr_err *err)
{
	static const int at[] = {11, 14};
	struct lr_checkpoint_mount *v;

	int r = lr_checkpoint_mountinfo(lr_strdup(a, text), a, &v, &f->n_mounts, err);
	f->mounts = v;
	f->at = at;
	struct lr_saved_rules rules;
	return r < 0 ? r : lr_checkpoint_plan(&config, o, f, a, ret, &rules, err);
}

TEST(the_upper_directory_is_told_by_the_options_of_the_mount)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	char line[] = "16 10 0:60 / / rw shared:1 - overlay overlay rw,lowerdir=/l,upperdir=/u\n";
	struct lr_checkpoint_mount *v;
	bool user = true;
	size_t n;

	REQUIRE(lr_checkpoint_mountinfo(line, a, &v, &n, NULL) == 0 && n == 1);
	CHECK_STR(v[0].options, "rw,lowerdir=/l,upperdir=/u");
	CHECK_STR(lr_checkpoint_upper(v[0].options, a, &user), "/u");
	CHECK(!user);
	CHECK_STR(
		lr_checkpoint_upper("rw,upperdir=/a\\040b\\054upperdir\\075/c,userxattr", a, &user),
		"/a b,upperdir=/c");
	CHECK(user);
	CHECK(!lr_checkpoint_upper("ro,lowerdir=/l:/m", a, &user));
	/* From where nobody knows. */
	CHECK(!lr_checkpoint_upper("rw,upperdir=up,workdir=work", a, &user));
	CHECK(!lr_checkpoint_upper("", a, &user));
}

TEST(mounts_that_criu_cannot_make_are_external)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const struct lr_checkpoint_opts o = {.status_fd = LR_NOFD};
	struct lr_checkpoint_found f = {.pid = 7};
	struct lr_criu_opts c;

	CHECK_INT(plan(info, &o, &f, a, &c, NULL), 0);
	CHECK_INT(c.external.n, 2);
	CHECK(has(&c.external, "mnt[/proc/keys]:/dev/null"));
	CHECK(has(&c.external, "mnt[/run/made]:/link/to")); /* where a link has led it */
	CHECK(c.ext_masters);
	CHECK_INT(c.pid, 7);
	CHECK_INT(c.empty_ns, -1);
	CHECK(!c.track_mem);
}

static int find_fuse(const char *its, const char *hosts)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_checkpoint_mount *v, *host;
	struct lr_err err = {0};
	size_t n, n_host;

	int r = lr_checkpoint_mountinfo(lr_strdup(a, its), a, &v, &n, &err);
	if (r >= 0)
		r = lr_checkpoint_mountinfo(lr_strdup(a, hosts), a, &host, &n_host, &err);
	return r < 0 ? r : lr_checkpoint_refuse_fuse(v, n, host, n_host, &err);
}

TEST(a_file_system_that_the_container_answers_for_is_refused)
{
	static const char host[] = "5 1 0:70 / /mnt rw - fuse.sshfs host: rw\n";

	CHECK_INT(find_fuse(info, host), 0);
	CHECK_INT(find_fuse("20 10 0:71 / /x rw - fuse.hello hello rw\n", host), -EOPNOTSUPP);
	CHECK_INT(find_fuse("20 10 0:71 / /x rw - fuse hello rw\n", host), -EOPNOTSUPP);
	CHECK_INT(find_fuse("20 10 7:1 / /x rw - fuseblk /dev/loop1 rw\n", host), -EOPNOTSUPP);
	CHECK_INT(find_fuse("20 10 0:71 / /x rw - fusectl none rw\n", host), 0);
	/* A volume. */
	CHECK_INT(find_fuse("20 10 0:70 /a /x rw - fuse.sshfs host: rw\n", host), 0);
}

/* lacks: how many mounts of the root should become read-only. */
static int verify(const char *stage, const char *restored, bool readonly, size_t *lacks,
		  struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_restore_bind binds[] = {
		{.source = "/src/ro", .top = 0, .at = "/s/0", .set = MOUNT_ATTR_RDONLY},
		{.source = "/mnt", .top = 4, .at = "/s/1", .configured = true},
	};
	static const struct lr_criu_mount saved[] = {
		{.type = LR_CRIU_FS_SYSFS, .root = "/"},
		{.type = LR_CRIU_FS_TMPFS, .root = "/"},
		{.type = LR_CRIU_FS_DEBUGFS, .root = "/", .key = "/k"},
	};
	struct lr_restore_plan p = {
		.binds = binds, .n = 2, .readonly = readonly, .saved = saved, .n_saved = 3};
	struct lr_checkpoint_mount *v;
	size_t n;

	p.opts.root = "/s/root";
	binds[0].configured = true;
	int r = lr_checkpoint_mountinfo(lr_strdup(a, stage), a, &v, &n, err);
	if (r >= 0)
		r = lr_restore_identify(&p, v, n, a, err);
	if (r >= 0)
		r = lr_checkpoint_mountinfo(lr_strdup(a, restored), a, &v, &n, err);
	for (size_t i = 0; lacks && r >= 0 && i < n; i++)
		*lacks += lr_restore_lacks_readonly(&p, &v[i]);
	return r < 0 ? r : lr_restore_verify(&p, v, n, err);
}

#define STAGE                                                                                      \
	"20 1 8:1 / /s/0 ro - ext4 /dev/sda rw\n"                                                  \
	"21 1 8:2 /sub /s/1 rw - ext4 /dev/sdb rw\n"                                               \
	"22 1 8:1 /b/rootfs /s/root rw - ext4 /dev/sda rw\n"                                       \
	"2 1 0:20 / /run rw - tmpfs tmpfs rw\n"                                                    \
	"3 1 0:21 / /sys rw - sysfs sysfs rw\n"                                                    \
	"4 3 0:22 / /sys/kernel/debug rw - debugfs debugfs rw\n"
#define ROOTFS "10 1 8:1 /b/rootfs / rw,relatime - ext4 /dev/sda rw\n"

static int verify_beside(const char *more, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();

	return verify(STAGE, lr_concat(a, ROOTFS, more, NULL), false, NULL, err);
}

TEST(what_was_restored_is_told_by_what_it_shows)
{
	struct lr_err err = {0};

	CHECK_INT(verify_beside("30 10 8:1 /src/ro /x ro,relatime - ext4 /dev/sda rw\n"
				"31 10 8:2 /sub /y rw - ext4 /dev/sdb rw\n"
				"32 10 0:50 / /proc rw - proc proc rw\n"
				"33 32 0:50 /sys /proc/sys ro - proc proc rw\n",
				NULL),
		  0);
	/* Wherever it is, and whatever the images call it. */
	CHECK_INT(verify_beside("30 10 8:1 /src/ro /y rw - ext4 /dev/sda rw\n", &err), -EPERM);
	CHECK(strstr(err.msg, "without the attributes"));
	CHECK_INT(verify_beside("30 10 8:1 /src/ro/part /y rw - ext4 /dev/sda rw\n", &err), -EPERM);
	CHECK_INT(verify_beside("30 10 8:1 /src/ro/part /y ro - ext4 /dev/sda rw\n", &err), 0);
	CHECK_INT(verify_beside("30 10 8:1 /b/rootfs/etc /y rw - ext4 /dev/sda rw\n", &err), 0);
	/* Another part of the same file system, whoever has moved it. */
	CHECK_INT(verify_beside("30 10 8:1 /src/moved /x ro - ext4 /dev/sda rw\n", &err), -EPERM);
	CHECK(strstr(err.msg, "not in config.json"));
	CHECK_INT(verify_beside("30 10 8:1 / /x ro - ext4 /dev/sda rw\n", &err), -EPERM);
	/* What was prepared has to be found. */
	CHECK_INT(verify("20 1 8:1 / /s/0 ro - ext4 /dev/sda rw\n", ROOTFS, false, NULL, &err),
		  -EPROTO);
}

TEST(what_is_neither_bound_nor_made_anew_is_not_restored)
{
	struct lr_err err = {0};

	/* A link has led elsewhere: another file system of the host's, or one that nobody knows. */
	CHECK_INT(verify_beside("30 10 0:20 /user /x rw - tmpfs tmpfs rw\n", &err), -EPERM);
	CHECK_INT(verify_beside("30 10 0:20 / /x rw - tmpfs tmpfs rw\n", &err), -EPERM);
	CHECK_INT(verify_beside("30 10 0:60 / /x rw - overlay overlay rw\n", &err), -EPERM);
	CHECK_INT(verify_beside("30 10 8:3 / /x rw - ext4 /dev/sdc rw\n", &err), -EPERM);
	/* One that is new, or that the container had. */
	CHECK_INT(verify_beside("30 10 0:61 /d /x rw - tmpfs tmpfs rw\n", &err), 0);
	CHECK_INT(verify_beside("30 10 0:21 / /x rw - sysfs sysfs rw\n", &err), 0);
	CHECK_INT(verify_beside("30 10 0:21 /fs /x rw - sysfs sysfs rw\n", &err), -EPERM);
	CHECK_INT(verify_beside("30 10 0:22 / /x rw - debugfs debugfs rw\n", &err), -EPERM);
}

TEST(all_of_a_root_that_is_to_be_read_only_is_so)
{
	struct lr_err err = {0};
	size_t lacks = 0;

	CHECK_INT(verify(STAGE,
			 ROOTFS "30 10 8:1 /b/rootfs/home /x rw - ext4 /dev/sda rw\n"
				"31 10 8:1 /b/rootfs/bin /y ro - ext4 /dev/sda rw\n"
				"32 10 8:2 /sub /z rw - ext4 /dev/sdb rw\n",
			 true, &lacks, &err),
		  -EPERM);
	CHECK_INT(lacks, 2);
	CHECK_STR(err.path, "root.readonly");
	CHECK_INT(verify(STAGE,
			 "10 1 8:1 /b/rootfs / ro,relatime - ext4 /dev/sda rw\n"
			 "30 10 8:1 /b/rootfs/home /x rw - ext4 /dev/sda rw\n",
			 true, NULL, &err),
		  -EPERM);
	CHECK_INT(verify(STAGE, "10 1 8:1 /b/rootfs / ro,relatime - ext4 /dev/sda rw\n", true, NULL,
			 &err),
		  0);
}

TEST(a_mount_that_config_json_lacks_is_refused)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const struct lr_checkpoint_opts o = {.status_fd = LR_NOFD};
	struct lr_checkpoint_found f = {.pid = 7};
	struct lr_err err = {0};
	struct lr_criu_opts c;
	char *more = lr_concat(a, info, "16 10 8:1 /etc /extra rw - ext4 /dev/sda rw\n", NULL);

	CHECK_INT(plan(more, &o, &f, a, &c, &err), -EOPNOTSUPP);
	CHECK(strstr(err.msg, "/extra"));
}

/* info, and one line more. */
static int plan_with(const char *line, struct lr_arena *a, struct lr_criu_opts *ret,
		     struct lr_err *err)
{
	const struct lr_checkpoint_opts o = {.status_fd = LR_NOFD};
	struct lr_checkpoint_found f = {.pid = 7, .notify = 17};

	return plan(lr_concat(a, info, line, NULL), &o, &f, a, ret, err);
}

TEST(what_the_runtime_mounts_itself_needs_no_line_of_config_json)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_err err = {0};
	struct lr_criu_opts c;

	CHECK_INT(plan_with("17 10 8:1 /n /run/notify ro - ext4 x rw\n", a, &c, NULL), 0);
	CHECK(has(&c.external, "mnt[/run/notify]:/run/notify"));
	CHECK_INT(plan_with("16 10 8:1 /n /run/notify ro - ext4 x rw\n", a, &c, &err), -EOPNOTSUPP);
	CHECK_INT(plan_with("16 10 0:30 /c1 /sys/fs/cgroup rw - cgroup2 c rw\n", a, &c, NULL), 0);
	CHECK(has(&c.external, "mnt[/sys/fs/cgroup]:/sys/fs/cgroup"));
	/* Where /dev of the host is a plain tmpfs. */
	CHECK_INT(plan_with("16 11 0:7 /null /proc/kcore ro - tmpfs t rw\n", a, &c, NULL), 0);
	CHECK(has(&c.external, "mnt[/proc/kcore]:/dev/null"));
	/* A whole tmpfs is in the images; a part of one that the container does not see is not. */
	CHECK_INT(plan_with("16 10 0:60 / /shm rw - tmpfs t rw\n", a, &c, NULL), 0);
	CHECK_INT(c.external.n, 2);
	CHECK_INT(plan_with("16 10 0:60 /part /shm rw - tmpfs t rw\n", a, &c, &err), -EOPNOTSUPP);
}

TEST(what_the_images_would_lack_is_refused)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	static const char *options[][3] = {
		{"bind", "idmap=uids=0-1-2"}, {"bind", "ridmap"}, {"bind", "nosymfollow"}};
	static struct oci_id_mapping mapping = {.size = 1};
	const struct oci_mount plain = mounts[1];
	struct lr_criu_opts c;

	for (int i = 0; i < 5; i++) {
		struct lr_err err = {0};
		mounts[1] = plain;
		if (i == 0)
			mounts[1].uid_mappings = (struct oci_id_mappings){.v = &mapping, .n = 1};
		else if (i == 1)
			mounts[1].gid_mappings = (struct oci_id_mappings){.v = &mapping, .n = 1};
		else
			mounts[1].options = (struct oci_strv){options[i - 2], 2};
		CHECK_INT(plan_with("", a, &c, &err), -EOPNOTSUPP);
		CHECK_STR(err.path, "mounts[1]");
	}
	mounts[1] = plain;
}

TEST(mountinfo_is_read_without_its_escapes)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	char line[] = "14 10 8:1 /src\\040x /a\\011b rw shared:1 master:2 - ext4 /dev/sda rw";
	struct lr_checkpoint_mount *v;
	size_t n;

	CHECK_INT(lr_checkpoint_mountinfo(line, a, &v, &n, NULL), 0);
	REQUIRE(n == 1);
	CHECK_STR(v->root, "/src x");
	CHECK_STR(v->point, "/a\tb");
	CHECK_STR(v->device, "8:1");
	CHECK_STR(v->type, "ext4");
	CHECK(v->id == 14 && v->parent == 10 && v->slave);
}

TEST(lines_that_are_none_are_refused)
{
	static const char *const wrong[] = {
		"x\n", "1 2 3\n", "10 1 8:1 / relative rw - ext4 x rw\n",
		"10 1 8:1 / /x rw shared:1\n", "-1 1 8:1 / /x rw - ext4 x rw\n"};
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_checkpoint_mount *v;
	struct lr_err err = {0};
	size_t n;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK_INT(lr_checkpoint_mountinfo(lr_strdup(a, wrong[i]), a, &v, &n, &err),
			  -EPROTO);
}

TEST(joined_namespaces_and_descriptors_of_the_host_are_external)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const struct lr_checkpoint_opts o = {.status_fd = LR_NOFD};
	struct lr_checkpoint_found f = {
		.netns = 4026531840,
		.pidns = 9,
		.stdio = {{"pipe:[1]", "file[1a:2]", "file[1a:2]"}},
	};
	struct lr_criu_opts c;

	CHECK_INT(plan(info, &o, &f, a, &c, NULL), 0);
	CHECK(has(&c.external, "net[4026531840]:extRootNetNS"));
	CHECK(has(&c.external, "pid[9]:extRootPidNS"));
	CHECK(has(&c.external, "file[1a:2]"));
	CHECK(!has(&c.external, "pipe:[1]"));
	CHECK_INT(c.external.n, 5);
}

TEST(a_network_that_hooks_have_made_is_left_to_them)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const struct lr_checkpoint_opts o = {.status_fd = LR_NOFD};
	struct lr_checkpoint_found f = {.devices = true};
	struct lr_criu_opts c;

	CHECK_INT(plan(info, &o, &f, a, &c, NULL), 0);
	CHECK_INT(c.empty_ns, CLONE_NEWNET);
	spaces[0].path = "/run/netns/x";
	CHECK_INT(plan(info, &o, &f, a, &c, NULL), 0);
	CHECK_INT(c.empty_ns, -1);
	spaces[0].path = NULL;
}

TEST(binds_are_found_by_what_config_json_says_with_their_attributes)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_yard_entry unified = {"unified", "/sys/fs/cgroup"};
	const struct lr_checkpoint_opts o = {.status_fd = LR_NOFD};
	const struct lr_restore_job job = {
		.opts = &o,
		.config = &config,
		.bundle = "/b",
		.rootfs = "/b/rootfs",
		.stage = "/stage",
	};
	const struct lr_restore_found f = {
		.netns = 9,
		.pidns = LR_NOFD,
		.fd0 = 4,
		.stdio = {{"pipe:[1]", "/dev/null", "pipe:[1]"}},
		.yard = {.v = &unified, .n = 1},
	};
	struct lr_restore_plan p;

	CHECK_INT(lr_restore_plan(&job, &f, a, &p, NULL), 0);
	CHECK_INT(p.n, 2);
	CHECK(p.binds[0].null && p.binds[0].set == MOUNT_ATTR_RDONLY);
	CHECK_STR(p.binds[1].name, "/link/to");
	CHECK_INT(p.binds[1].set, MOUNT_ATTR_RDONLY);
	/* All of the mount on / is bound, and a part of that is what criu gets. */
	p.binds[0].top = strlen("/dev");
	p.binds[1].top = 0;
	CHECK_INT(lr_restore_plan_binds(&p, a, NULL), 0);
	CHECK(has(&p.opts.external, "mnt[/dev/null]:/stage/0/null"));
	CHECK(has(&p.opts.external, "mnt[/link/to]:/stage/1/src"));
	CHECK_STR(p.opts.root, "/stage/root");
	CHECK_STR(p.opts.cgroup_yard, "/stage/cgroups");
	CHECK_INT(p.yard.n, 1);
	CHECK_INT(p.opts.inherit_fd.n, 2);
	CHECK(has(&p.opts.inherit_fd, "pipe:[1]"));
	CHECK(has(&p.opts.inherit_fd, "extRootNetNS"));
}

/* The plan of a restore in which the second mount of config.json has these options. */
static int plan_restore(const char **options, size_t n, const struct lr_restore_found *f,
			struct lr_arena *a, struct lr_restore_plan *ret)
{
	const struct lr_checkpoint_opts o = {.status_fd = LR_NOFD};
	const struct lr_restore_job job = {
		.opts = &o,
		.config = &config,
		.bundle = "/b",
		.rootfs = "/b/rootfs",
		.stage = "/stage",
	};
	const struct oci_mount plain = mounts[1];

	mounts[1].options = (struct oci_strv){options, n};
	int r = lr_restore_plan(&job, f, a, ret, NULL);
	mounts[1] = plain;
	return r;
}

TEST(of_each_kind_of_attribute_the_last_counts)
{
	static const struct {
		const char *options[4];
		uint64_t set;
	} cases[] = {
		{{"ro", "rw"}, 0},
		{{"rw", "ro"}, MOUNT_ATTR_RDONLY},
		{{"rro", "rnodev", "bind"}, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV},
		{{"ro", "rrw", "nosuid", "noexec"}, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC},
		{{"nosymfollow", "noexec", "exec"}, MOUNT_ATTR_NOSYMFOLLOW},
		{{"nodev", "nosuid", "dev", "suid"}, 0},
	};
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const struct lr_restore_found f = {.netns = LR_NOFD, .pidns = LR_NOFD};
	struct lr_restore_plan p;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *options[4];
		size_t n = 0;
		for (; n < 4 && cases[i].options[n]; n++)
			options[n] = cases[i].options[n];
		CHECK_INT(plan_restore(options, n, &f, a, &p), 0);
		REQUIRE(p.n == 2);
		CHECK_INT(p.binds[1].set, cases[i].set);
	}
}

TEST(sources_relative_to_the_bundle_sockets_and_a_network_that_was_left_out)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_restore_found f = {
		.netns = LR_NOFD,
		.pidns = 10,
		.fd0 = 4,
		.stdio = {{"unix[3]", "", "file[1a:2]"}},
	};
	struct lr_restore_plan p;

	mounts[1].source = "data";
	CHECK_INT(plan_restore(bind_options, 2, &f, a, &p), 0);
	mounts[1].source = "/src";
	REQUIRE(p.n == 2);
	CHECK(!p.opts.cgroup_yard);
	CHECK_STR(p.binds[1].source, "/b/data");
	CHECK_INT(p.opts.inherit_fd.n, 3);
	CHECK(has(&p.opts.inherit_fd, "extRootPidNS"));
	CHECK(has(&p.opts.inherit_fd, "socket:[3]"));
	CHECK(has(&p.opts.inherit_fd, "file[1a:2]"));
	CHECK_INT(p.opts.empty_ns, CLONE_NEWNET);
	f.net = true;
	CHECK_INT(plan_restore(bind_options, 2, &f, a, &p), 0);
	CHECK_INT(p.opts.empty_ns, -1);
}

TEST(each_controller_has_its_root)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_criu_opts c = LR_CRIU_OPTS_INIT;

	CHECK_INT(lr_restore_plan_cgroups("9:name=systemd:/a:b\n2:cpu,cpuacct:/x\n0::/y\n", a, &c,
					  NULL),
		  0);
	CHECK_INT(c.cg_root.n, 4);
	CHECK_STR(c.cg_root.v[0].key, "name=systemd");
	CHECK_STR(c.cg_root.v[0].value, "/a:b");
	CHECK_STR(c.cg_root.v[2].key, "cpuacct");
	CHECK_STR(c.cg_root.v[2].value, "/x");
	CHECK(!c.cg_root.v[3].key);
	CHECK_INT(lr_restore_plan_cgroups("nothing\n", a, &c, NULL), -EPROTO);
}

/* What the container, with no mount, is told to have as its standard input. */
static int look_at_input(int fd, struct lr_checkpoint_stdio *ret)
{
	return fd >= 0 && dup2(fd, 0) == 0 ? lr_checkpoint_stdio_look(getpid(), NULL, 0, ret, NULL)
					   : -EBADF;
}

static int look_at_unmounted(void)
{
	struct lr_checkpoint_stdio s;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("t", "/tmp", "tmpfs", 0, NULL) < 0)
		return 77;
	const int fd = open("/tmp/f", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (look_at_input(fd, &s) < 0 || strncmp(s.name[0], "file[", 5) != 0)
		return 1;
	if (umount2("/tmp", MNT_DETACH) < 0 || look_at_input(fd, &s) < 0)
		return 2;
	return *s.name[0] ? 3 : 0;
}

TEST(a_file_of_nobodys_mount_is_not_the_callers)
{
	int status = -1;
	const pid_t pid = fork();

	if (pid == 0)
		_exit(look_at_unmounted());
	waitpid(pid, &status, 0);
	if (WEXITSTATUS(status) == 77)
		SKIP("needs root");
	CHECK_INT(status, 0);
}

TEST(memory_is_not_the_callers)
{
	struct lr_checkpoint_stdio s;
	const int was = dup(0), fd = lr_memfd_create("own", MFD_CLOEXEC);

	CHECK_INT(look_at_input(fd, &s), 0);
	CHECK_STR(s.name[0], "");
	close(fd);
	if (was >= 0)
		dup2(was, 0);
	close(was);
}

TEST(descriptors_json_is_a_list_of_three_names)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	static const char *const wrong[] = {"{}", "[1]", "[[\"a\"]]", "[\"a\",\"b\",\"c\",\"d\"]",
					    "\"x\""};
	static const char good[] = "[\"pipe:[1]\",\"/dev/null\"]";
	struct lr_checkpoint_stdio s;
	struct lr_err err = {0};

	CHECK_INT(lr_checkpoint_stdio_decode(good, strlen(good), a, &s, NULL), 0);
	CHECK_STR(s.name[0], "pipe:[1]");
	CHECK_STR(s.name[2], "");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK(lr_checkpoint_stdio_decode(wrong[i], strlen(wrong[i]), a, &s, &err) < 0);
}

TEST(a_name_that_is_too_long_is_left_out)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	char text[2 * LR_CHECKPOINT_NAME], name[LR_CHECKPOINT_NAME + 1];
	struct lr_checkpoint_stdio s;

	for (int len = LR_CHECKPOINT_NAME - 1; len <= LR_CHECKPOINT_NAME; len++) {
		memset(name, 'x', sizeof(name));
		name[len] = '\0';
		snprintf(text, sizeof(text), "[\"%s\",\"y\"]", name);
		CHECK_INT(lr_checkpoint_stdio_decode(text, strlen(text), a, &s, NULL), 0);
		CHECK_STR(s.name[0], len < LR_CHECKPOINT_NAME ? name : "");
		CHECK_STR(s.name[1], "y");
	}
}

TEST(a_pre_dump_has_all_memory_at_once)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_checkpoint_opts o = {.status_fd = LR_NOFD, .lazy_pages = true};
	struct lr_checkpoint_found f = {.pid = 7};
	struct lr_criu_opts c;

	CHECK_INT(plan(info, &o, &f, a, &c, NULL), 0);
	CHECK(c.lazy_pages && !c.track_mem);
	o.pre_dump = true;
	CHECK_INT(plan(info, &o, &f, a, &c, NULL), 0);
	CHECK(!c.lazy_pages && c.track_mem);
}

TEST(a_page_server_has_an_address_and_a_port)
{
	static const char *const wrong[] = {
		"", "here", ":27", "here:", "here:0", "here:x", "here:-1", "here:65536"};
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_checkpoint_opts o = {.status_fd = LR_NOFD, .page_server = "[::1]:65535"};
	struct lr_checkpoint_found f = {.pid = 7};
	struct lr_criu_opts c;

	CHECK_INT(plan(info, &o, &f, a, &c, NULL), 0);
	CHECK_STR(c.page_server, "::1");
	CHECK_INT(c.page_server_port, 65535);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct lr_err err = {0};
		o.page_server = wrong[i];
		CHECK_INT(plan(info, &o, &f, a, &c, &err), -EINVAL);
		CHECK_HAS(err.msg, "ADDRESS:PORT");
	}
}

TEST(options_that_no_engine_can_keep_are_refused)
{
	static const char *const mount_ns[] = {"mount", NULL};
	struct lr_checkpoint_opts o = {.status_fd = LR_NOFD, .empty_ns = mount_ns};
	struct lr_criu_opts c;
	struct lr_err err = {0};

	CHECK_INT(lr_checkpoint_plan_opts(&o, &c, &err), -EOPNOTSUPP);
	o = (struct lr_checkpoint_opts){.status_fd = LR_NOFD, .cgroups = "some"};
	CHECK_INT(lr_checkpoint_plan_opts(&o, &c, &err), -EINVAL);
	o = (struct lr_checkpoint_opts){.status_fd = LR_NOFD, .network_lock = "some"};
	CHECK_INT(lr_checkpoint_plan_opts(&o, &c, &err), -EINVAL);
	o = (struct lr_checkpoint_opts){.status_fd = 3};
	CHECK_INT(lr_checkpoint_check(&o, &err), -EINVAL);
	o = (struct lr_checkpoint_opts){.status_fd = LR_NOFD, .parent_path = "/x"};
	CHECK_INT(lr_checkpoint_check(&o, &err), -EINVAL);
	const struct lr_checkpoint_engine *e;
	CHECK_INT(lr_checkpoint_engine(NULL, &e, &err), 0);
	CHECK_STR(e->name, "criu");
	CHECK_INT(lr_checkpoint_engine("magic", &e, &err), -EINVAL);
}

static int check_remote(const struct lr_checkpoint_opts *o, const char *why)
{
	struct lr_err err = {0};
	int r = lr_checkpoint_check(o, &err);

	if (why)
		CHECK_HAS(err.msg, why);
	return r;
}

TEST(what_goes_with_remote_and_what_does_not)
{
	char ticket[LR_TICKET_TEXT] = "";
	struct lr_checkpoint_opts o = {
		.status_fd = LR_NOFD, .engine = "fork", .ticket = ticket, .lease = 5};

	CHECK_INT(check_remote(&o, NULL), 0);
	o.image_path = "x";
	CHECK_INT(check_remote(&o, "--image-path"), -EINVAL);
	o.image_path = NULL;
	o.engine = "criu";
	CHECK_INT(check_remote(&o, "--engine=fork"), -EINVAL);
	o.engine = NULL;
	CHECK_INT(check_remote(&o, "--engine=fork"), -EINVAL);
	o = (struct lr_checkpoint_opts){.status_fd = LR_NOFD, .lease = 5};
	CHECK_INT(check_remote(&o, "--lease goes with --remote"), -EINVAL);
	o = (struct lr_checkpoint_opts){.status_fd = LR_NOFD, .forkd = "x"};
	CHECK_INT(check_remote(&o, "--forkd goes with --remote"), -EINVAL);
	o = (struct lr_checkpoint_opts){.status_fd = LR_NOFD, .prefetch = true};
	CHECK_INT(check_remote(&o, "--fetch goes with --remote"), -EINVAL);
	o.engine = "fork";
	o.ticket_from = "file:x";
	CHECK_INT(check_remote(&o, NULL), 0);
}

TEST(how_memory_comes)
{
	struct lr_checkpoint_opts o = {0};

	CHECK_INT(lr_checkpoint_how("ondemand", &o), 0);
	CHECK(!o.prefetch && !o.eager);
	CHECK_INT(lr_checkpoint_how("prefetch:64", &o), 0);
	CHECK(o.prefetch && !o.eager);
	CHECK_INT(o.prefetch_mib, 64);
	CHECK_INT(lr_checkpoint_how("prefetch", &o), 0);
	CHECK(o.prefetch);
	CHECK_INT(o.prefetch_mib, 0);
	CHECK_INT(lr_checkpoint_how("eager", &o), 0);
	CHECK(o.eager && !o.prefetch);
	static const char *const none[] = {
		"",           "soon",          "prefetch:",   "prefetch:0",
		"prefetch:x", "prefetch:-1",   "prefetch:1k", "prefetch:4294967296",
		"eager:1",    "ondemand cache"};
	for (size_t i = 0; i < LR_ARRAY_SIZE(none); i++)
		CHECK_INT(lr_checkpoint_how(none[i], &o), -EINVAL);
}

/* Every option of criu's, one at a time; and none. */
TEST(the_engine_fork_takes_no_option_of_another)
{
	static const char *const some[] = {"network", NULL};
	const struct lr_checkpoint_opts cases[] = {
		{.status_fd = LR_NOFD, .work_path = "x"},
		{.status_fd = LR_NOFD, .parent_path = "x"},
		{.status_fd = LR_NOFD, .page_server = "x"},
		{.status_fd = LR_NOFD, .cgroups = "x"},
		{.status_fd = LR_NOFD, .network_lock = "x"},
		{.status_fd = LR_NOFD, .lsm_profile = "x"},
		{.status_fd = LR_NOFD, .lsm_mount_context = "x"},
		{.status_fd = LR_NOFD, .empty_ns = some},
		{.status_fd = 3},
		{.status_fd = LR_NOFD, .pre_dump = true},
		{.status_fd = LR_NOFD, .tcp_established = true},
		{.status_fd = LR_NOFD, .tcp_skip_in_flight = true},
		{.status_fd = LR_NOFD, .ext_unix_sk = true},
		{.status_fd = LR_NOFD, .shell_job = true},
		{.status_fd = LR_NOFD, .file_locks = true},
		{.status_fd = LR_NOFD, .auto_dedup = true},
		{.status_fd = LR_NOFD, .lazy_pages = true},
		{.status_fd = LR_NOFD, .link_remap = true},
	};
	const struct lr_checkpoint_opts own = {.status_fd = LR_NOFD,
					       .image_path = "x",
					       .stop = true,
					       .leave_running = true,
					       .tcp_close = true};
	struct lr_err err = {0};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CHECK_INT(lr_checkpoint_fork_opts(&cases[i], &err), -EINVAL);
		CHECK_HAS(err.msg, "goes with --engine=criu");
	}
	CHECK_INT(lr_checkpoint_fork_opts(&own, &err), 0);
}

static void why_not(const struct oci_config *c, size_t n, const char *first)
{
	const char *why[LR_FORK_REASONS];

	REQUIRE(lr_checkpoint_fork_config(c, why) == n);
	CHECK_HAS(why[0], first);
}

/* docs/remote-fork.md, "Refused": each of it for itself, and all together. */
TEST(what_of_a_config_no_seed_carries)
{
	struct oci_namespace own[] = {{.type = "pid"}, {.type = "mount"}};
	struct oci_seccomp filter = {.listener_path = "/run/agent"};
	struct oci_linux l = {.namespaces = {.v = own, .n = 2}};
	struct oci_process p = {0};
	struct oci_config c = {.linux_ = &l, .process = &p};
	const char *why[LR_FORK_REASONS];

	CHECK_INT(lr_checkpoint_fork_config(&c, why), 0);
	own[0].path = "/proc/1/ns/pid";
	why_not(&c, 1, "no pid namespace");
	own[0].path = NULL;
	for (int joined = 0; joined < 2; joined++) {
		own[1] = (struct oci_namespace){.type = "user", .path = joined ? "/x" : NULL};
		if (joined)
			why_not(&c, 1, "a user namespace that it shares");
		else
			CHECK_INT(lr_checkpoint_fork_config(&c, why), 0);
		own[1] = (struct oci_namespace){.type = "time", .path = joined ? "/x" : NULL};
		why_not(&c, 1, "a time namespace");
	}
	own[1] = (struct oci_namespace){.type = "mount"};
	p = (struct oci_process){.terminal = true};
	CHECK_INT(lr_checkpoint_fork_config(&c, why), 0);
	p = (struct oci_process){.apparmor_profile = "x"};
	why_not(&c, 1, "a label");
	p = (struct oci_process){.selinux_label = "x"};
	why_not(&c, 1, "a label");
	p = (struct oci_process){0};
	l.seccomp = &filter;
	why_not(&c, 1, "an agent");
	p.selinux_label = "x";
	own[0].path = "/x";
	why_not(&c, 3, "no pid namespace");
}
