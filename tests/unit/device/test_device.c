/* SPDX-License-Identifier: Apache-2.0 */
/* device: plans, nodes, what must be refused, and binding where nodes cannot be made. */
#include "tests/unit/rootfs/child.h"

#include <sys/sysmacros.h>

#include "src/device/device.h"
#include "src/sys/syscalls.h"

static struct lr_err err;

static const struct lr_device_plan *plan_of(struct oci_device *v, size_t n, bool userns,
					    struct lr_arena *arena)
{
	struct oci_devices devices = {.v = v, .n = n};
	struct lr_device_opts opts = {.userns = userns, .needs_dev = true};
	const struct lr_device_plan *plan = NULL;

	memset(&err, 0, sizeof(err));
	int r = lr_device_plan(&devices, &opts, arena, &plan, &err);
	CHECK_INT(r, plan ? 0 : -err.code);
	return plan;
}

static int apply_in(struct oci_device *v, size_t n, bool userns, bool fresh)
{
	struct lr_arena *arena = lr_arena_new();
	const struct lr_device_plan *plan = plan_of(v, n, userns, arena);
	int rootfd = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int devfd = open(in_base("dev"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = -EINVAL;

	if (plan) {
		mode_t mask = umask(fresh ? 0 : 022); /* an ACL has the same effect */
		int fds = open_fds();
		r = lr_device_apply(plan, rootfd, devfd, fresh, &err);
		CHECK_INT(open_fds(), fds);
		umask(mask);
	}
	close(rootfd);
	close(devfd);
	lr_arena_free(arena);
	return r;
}

static int apply(struct oci_device *v, size_t n, bool userns)
{
	return apply_in(v, n, userns, false);
}

static struct stat node(const char *path)
{
	struct stat st = {0};

	CHECK_INT(lstat(in_base("%s", path), &st), 0);
	return st;
}

#define CHECK_NODE(path, type, maj, min, perm)                                                     \
	do {                                                                                       \
		struct stat st_ = node(path);                                                      \
		CHECK_INT(st_.st_mode, (type) | (perm));                                           \
		CHECK_INT(st_.st_rdev, makedev(maj, min));                                         \
	} while (0)

/* ---- plan ---------------------------------------------------------------------------------- */

TEST(needs_dev)
{
	static struct {
		const char *destination, *type, *option;
		bool needs;
	} cases[] = {
		{"/dev", "tmpfs", "nosuid", true}, {"/dev", "bind", "ro", false},
		{"/dev/", NULL, "rbind", false},   {"//dev/../dev", "none", "bind", false},
		{"/dev/pts", "bind", "rw", true},  {"dev", "bind", "rw", false},
		{"/device", "bind", "bind", true},
	};

	CHECK(lr_device_needs_dev(NULL));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *options[] = {"nodev", cases[i].option, NULL};
		struct oci_mount v[] = {
			{.destination = "/proc", .type = "proc"},
			{.destination = cases[i].destination,
			 .type = cases[i].type,
			 .options = {.v = options, .n = 2}},
		};
		struct oci_mounts m = {.v = v, .n = 2};
		if (lr_device_needs_dev(&m) != cases[i].needs)
			printf("# %s\n", cases[i].destination);
		CHECK(lr_device_needs_dev(&m) == cases[i].needs);
	}
}

TEST(plan_adds_the_defaults)
{
	struct lr_arena *arena = lr_arena_new();
	uint32_t mode = S_IFCHR | 0600;
	struct oci_device v[] = {
		{.type = "c", .path = "/dev//net/./tun", .major = 10, .minor = 200},
		{.type = "c", .path = "/dev/null", .major = 1, .minor = 3, .file_mode = &mode},
		{.type = "u", .path = "/dev/ptmx", .major = 5, .minor = 2},
		{.type = "p", .path = "/run/x/fifo"},
	};
	const struct lr_device_plan *plan = plan_of(v, 4, false, arena);

	REQUIRE(plan);
	CHECK_INT(plan->n, 3 + 5);
	CHECK_STR(plan->v[0].path, "/dev/net/tun");
	CHECK_STR(plan->v[0].dir, "net");
	CHECK_STR(plan->v[0].name, "tun");
	CHECK(plan->v[0].in_dev);
	CHECK_INT(plan->v[1].mode, S_IFCHR | 0600);
	CHECK_STR(plan->v[2].dir, "run/x");
	CHECK(!plan->v[2].in_dev);
	CHECK_STR(plan->v[7].path, "/dev/tty");
	CHECK_INT(plan->v[7].index, -1);

	struct lr_device_opts opts = {.needs_dev = false};
	CHECK_INT(lr_device_plan(NULL, &opts, arena, &plan, &err), 0);
	CHECK_INT(plan->n, 0);
	lr_arena_free(arena);
}

static void refuse(struct oci_device d, int code, const char *part)
{
	struct lr_arena *arena = lr_arena_new();
	struct oci_device v[] = {{.type = "c", .path = "/dev/ok", .major = 1, .minor = 3}, d};

	CHECK(!plan_of(v, 2, false, arena));
	CHECK_INT(err.code, code);
	CHECK_STR(err.path, "linux.devices[1]");
	CHECK_HAS(err.msg, part);
	lr_arena_free(arena);
}

TEST(plan_refuses)
{
	refuse((struct oci_device){.type = "x", .path = "/dev/x"}, EINVAL, "\"x\"");
	refuse((struct oci_device){.type = "a", .path = "/dev/x"}, EINVAL, "device type");
	refuse((struct oci_device){.type = NULL, .path = "/dev/x"}, EINVAL, "device type");
	refuse((struct oci_device){.type = "c", .path = "dev/x"}, EINVAL, "absolute");
	refuse((struct oci_device){.type = "c", .path = NULL}, EINVAL, "absolute");
	refuse((struct oci_device){.type = "c", .path = "/dev/"}, EINVAL, "directory");
	refuse((struct oci_device){.type = "c", .path = "/dev/.."}, EINVAL, "directory");
	refuse((struct oci_device){.type = "c", .path = "/dev/x", .major = -1}, EINVAL, "major");
	refuse((struct oci_device){.type = "b", .path = "/dev/x", .minor = 1 << 20}, EINVAL,
	       "minor");
	refuse((struct oci_device){.type = "b", .path = "/dev/ok", .major = 1, .minor = 3}, EEXIST,
	       "twice");
}

/* ---- apply --------------------------------------------------------------------------------- */

static void check_defaults(void)
{
	CHECK_NODE("dev/null", S_IFCHR, 1, 3, 0666);
	CHECK_NODE("dev/zero", S_IFCHR, 1, 5, 0666);
	CHECK_NODE("dev/full", S_IFCHR, 1, 7, 0666);
	CHECK_NODE("dev/random", S_IFCHR, 1, 8, 0666);
	CHECK_NODE("dev/urandom", S_IFCHR, 1, 9, 0666);
	CHECK_NODE("dev/tty", S_IFCHR, 5, 0, 0666);
}

static bool fresh_dev;

static void body_make(void)
{
	uint32_t mode = 04751, uid = 12, gid = 34;
	struct oci_device v[] = {
		{.type = "c", .path = "/dev/net/tun", .major = 10, .minor = 200},
		{.type = "b",
		 .path = "/dev/loop0",
		 .major = 7,
		 .file_mode = &mode,
		 .uid = &uid,
		 .gid = &gid},
		{.type = "p", .path = "/run/fifo", .uid = &uid},
	};

	CHECK_INT(mkdir(in_base("dev"), 0755), 0);
	CHECK_INT(apply_in(v, 3, false, fresh_dev), 0);
	check_defaults();
	CHECK_NODE("dev/net/tun", S_IFCHR, 10, 200, 0666);
	CHECK_NODE("dev/loop0", S_IFBLK, 7, 0, 04751);
	CHECK_INT(node("dev/loop0").st_uid, 12);
	CHECK_INT(node("dev/loop0").st_gid, 34);
	CHECK_INT(node("run/fifo").st_mode, S_IFIFO | 0666);
	CHECK_INT(node("run/fifo").st_uid, 12);
	CHECK_INT(node("dev/net").st_mode, S_IFDIR | 0755);
	/* All of it is there already: nothing to complain of. */
	CHECK_INT(apply(v, 3, false), 0);
}

TEST(nodes_are_made)
{
	NEED_ROOT();
	for (int i = 0; i < 2; i++) {
		fresh_dev = i;
		in_child(body_make, 0);
	}
}

static void body_existing(void)
{
	uint32_t mode = 0640;
	struct oci_device v[] = {
		{.type = "c", .path = "/dev/x", .major = 1, .minor = 5, .file_mode = &mode}};

	CHECK_INT(mkdir(in_base("dev"), 0755), 0);
	CHECK_INT(mknod(in_base("dev/x"), S_IFCHR | 0600, makedev(1, 5)), 0);
	CHECK_INT(apply(v, 1, false), 0);
	CHECK_NODE("dev/x", S_IFCHR, 1, 5, 0640);

	/* Without fchmodat2(2), Linux < 6.6. */
	mode = 0604;
	deny(452, ENOSYS);
	CHECK_INT(apply(v, 1, false), 0);
	CHECK_NODE("dev/x", S_IFCHR, 1, 5, 0604);

	v[0].minor = 7;
	CHECK_INT(apply(v, 1, false), -EEXIST);
	CHECK_HAS(err.msg, "character device 1:5");
	CHECK_STR(err.path, "linux.devices[0]");
	v[0].type = "b";
	v[0].minor = 5;
	CHECK_INT(apply(v, 1, false), -EEXIST);
}

TEST(existing_nodes_are_kept_or_refused)
{
	NEED_ROOT();
	in_child(body_existing, 0);
}

static void body_links(void)
{
	struct oci_device v[] = {{.type = "c", .path = "/dev/x", .major = 1, .minor = 5},
				 {.type = "c", .path = "/dev/sub/y", .major = 1, .minor = 5}};

	/* "host" is outside of the container's root, which is `base`/c. */
	CHECK_INT(mkdir(in_base("dev"), 0755), 0);
	CHECK_INT(mkdir(in_base("host"), 0755), 0);
	put_file(in_base("host/file"), "host");
	CHECK_INT(chmod(in_base("host/file"), 0600), 0);
	CHECK_INT(symlink("../host/file", in_base("dev/x")), 0);
	CHECK_INT(apply(v, 1, false), -EEXIST);
	CHECK_HAS(err.msg, "symbolic link");
	CHECK_INT(apply(v, 1, true), -EEXIST);
	CHECK_INT(node("host/file").st_mode, S_IFREG | 0600);

	/* Dangling: nothing is made where it points. */
	CHECK_INT(unlink(in_base("dev/x")), 0);
	CHECK_INT(symlink("../host/new", in_base("dev/x")), 0);
	CHECK_INT(apply(v, 1, false), -EEXIST);
	CHECK_INT(apply(v, 1, true), -EEXIST);
	CHECK_INT(access(in_base("host/new"), F_OK), -1);

	/* A directory on the way that leads out of /dev stays inside it. */
	CHECK_INT(unlink(in_base("dev/x")), 0);
	CHECK_INT(symlink("../../../host", in_base("dev/sub")), 0);
	CHECK_INT(mkdir(in_base("dev/host"), 0755), 0);
	CHECK_INT(apply(v, 2, false), 0);
	CHECK_INT(access(in_base("host/y"), F_OK), -1);
	CHECK_NODE("dev/host/y", S_IFCHR, 1, 5, 0666);
}

TEST(links_lead_nowhere)
{
	NEED_ROOT();
	in_child(body_links, 0);
}

static void body_bind(void)
{
	struct oci_device v[] = {{.type = "p", .path = "/dev/fifo"}};

	CHECK_INT(mkdir(in_base("dev"), 0755), 0);
	CHECK_INT(apply(v, 1, true), 0);
	check_defaults();
	struct statx stx;
	CHECK_INT(lr_statx(AT_FDCWD, in_base("dev/null"), AT_SYMLINK_NOFOLLOW, 0, &stx), 0);
	CHECK(stx.stx_attributes & STATX_ATTR_MOUNT_ROOT);
	int fd = open(in_base("dev/null"), O_WRONLY | O_CLOEXEC);
	CHECK_INT(write(fd, "x", 1), 1);
	/* It is the host's. */
	CHECK_INT(chmod(in_base("dev/null"), 0666) < 0 ? errno : 0, EROFS);
	CHECK_INT(apply(v, 1, true), 0);
}

static void body_bind_old(void)
{
	deny(SYS_open_tree, ENOSYS);
	body_bind();
}

static void body_bind_no_setattr(void)
{
	deny(SYS_mount_setattr, ENOSYS);
	body_bind();
}

static void body_no_mknod(void)
{
	deny(SYS_mknodat, EPERM);
	CHECK_INT(mkdir(in_base("dev"), 0755), 0);
	CHECK_INT(apply(NULL, 0, false), 0);
	check_defaults();
}

static void body_bind_wrong(void)
{
	/* The host's /dev/zero is not what the config means by it, and there is no 1:250. */
	struct oci_device v[] = {{.type = "c", .path = "/dev/zero", .major = 1, .minor = 250}};

	CHECK_INT(mkdir(in_base("dev"), 0755), 0);
	CHECK_INT(apply(v, 1, true), -ENODEV);
	CHECK_HAS(err.msg, "1:250");
	CHECK_STR(err.path, "linux.devices[0]");
}

static void body_bind_mode(void)
{
	/* What is bound is the host's: its mode and owner stay. */
	uint32_t mode = 0600, uid = 7;
	struct oci_device v[] = {{.type = "c",
				  .path = "/dev/null",
				  .major = 1,
				  .minor = 3,
				  .file_mode = &mode,
				  .uid = &uid}};

	CHECK_INT(mkdir(in_base("dev"), 0755), 0);
	CHECK_INT(mkdir(in_base("host"), 0755), 0);
	CHECK_INT(mknod(in_base("host/null"), S_IFCHR | 0666, makedev(1, 3)), 0);
	CHECK_INT(chmod(in_base("host/null"), 0666), 0);
	put_file(in_base("dev/null"), "");
	CHECK_INT(mount(in_base("host/null"), in_base("dev/null"), NULL, MS_BIND, NULL), 0);
	CHECK_INT(apply(v, 1, false), 0);
	CHECK_NODE("host/null", S_IFCHR, 1, 3, 0666);
	CHECK_INT(node("host/null").st_uid, 0);
}

TEST(bound_where_nodes_cannot_be_made)
{
	NEED_ROOT();
	in_child(body_bind, 0);
	in_child(body_bind_old, 0);
	in_child(body_bind_no_setattr, 0);
	in_child(body_no_mknod, 0);
	in_child(body_bind_wrong, 0);
	in_child(body_bind_mode, 0);
}

static void body_userns(void)
{
	if (!become_userns_root())
		SKIP("no user namespaces here");
	CHECK_INT(mount("tmpfs", base, "tmpfs", 0, NULL), 0);
	CHECK_INT(mkdir(in_base("dev"), 0755), 0);
	CHECK_INT(apply(NULL, 0, true), 0);
	check_defaults();
	/* Also without being told. */
	CHECK_INT(mkdir(in_base("dev2"), 0755), 0);
	CHECK_INT(mount("tmpfs", in_base("dev"), "tmpfs", 0, NULL), 0);
	CHECK_INT(apply(NULL, 0, false), 0);
	check_defaults();
	int fd = open(in_base("dev/zero"), O_RDONLY | O_CLOEXEC);
	char c = 1;
	CHECK_INT(read(fd, &c, 1), 1);
	CHECK_INT(c, 0);
}

TEST(works_in_a_user_namespace)
{
	NEED_ROOT();
	in_child(body_userns, 0);
}
