/* SPDX-License-Identifier: Apache-2.0 */
/* rootfs: the whole way from attach to finish, in namespaces of the test's own. */
#include "tests/unit/rootfs/child.h"

#include <dirent.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include "src/base/str.h"
#include "src/rootfs/internal.h"
#include "src/sys/path.h"
#include "src/sys/procfs.h"

#define STRV(...)                                                                                  \
	((struct oci_strv){.v = (const char *[]){__VA_ARGS__, NULL},                               \
			   .n = sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)})

struct request {
	struct oci_root root;
	const char *propagation;
	struct oci_strv masked, readonly;
	bool no_pivot, no_mount_ns;
	bool no_dev_mount; /* /dev of the image itself */
	bool has_tops;     /* config.json mounts a procfs and a sysfs */
	bool holds_tops;   /* and their roots are known since then */
	void (*before_pivot)(int rootfd);
};

static const struct oci_mounts tops = {
	.v = (struct oci_mount[]){{.destination = "/proc", .type = "proc"},
				  {.destination = "/sys", .type = "sysfs"}},
	.n = 2,
};

static struct lr_err err;
static const struct lr_rootfs_plan *plan_of(const struct request *q, struct lr_arena *arena)
{
	const struct lr_rootfs_plan *plan = NULL;
	struct lr_rootfs_opts opts = {
		.bundle = in_base("bundle"),
		.no_pivot = q->no_pivot,
		.new_mount_ns = !q->no_mount_ns,
		.mounts = q->has_tops ? &tops : NULL,
	};

	memset(&err, 0, sizeof(err));
	int r = lr_rootfs_plan(&q->root, q->propagation, &q->masked, &q->readonly, &opts, arena,
			       &plan, &err);
	CHECK_INT(r, plan ? 0 : -err.code);
	return plan;
}

static void make_bundle(void)
{
	static const char *const dirs[] = {"",
					   "/rootfs",
					   "/rootfs/proc",
					   "/rootfs/sys",
					   "/rootfs/dev",
					   "/rootfs/sub",
					   "/rootfs/private",
					   "/rootfs/private2"};

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		CHECK_INT(mkdir(in_base("bundle%s", dirs[i]), 0755), 0);
	put_file(in_base("bundle/rootfs/marker"), "container");
	put_file(in_base("bundle/rootfs/secret"), "secret");
	put_file(in_base("bundle/rootfs/secret2"), "secret2");
	put_file(in_base("bundle/rootfs/private/inside"), "x");
	put_file(in_base("bundle/rootfs/private2/inside"), "x");
	put_file(in_base("host-file"), "host");
}

static bool show(const char *what, int r)
{
	char line[1200];

	if (r < 0)
		printf("# %s: %s\n", what, lr_err_format(&err, line, sizeof(line)));
	CHECK(r >= 0);
	return r >= 0;
}

/* The whole of it, as init does. The caller stands in the container when it returns true. */
static bool enter(const struct request *q)
{
	struct lr_arena *arena = lr_arena_new();
	const struct lr_rootfs_plan *plan = plan_of(q, arena);
	struct lr_rootfs_state s = LR_ROOTFS_STATE_INIT;
	char path[64];

	if (!show("plan", plan ? 0 : -1) || !show("null", lr_rootfs_open_null(plan, &s, &err)) ||
	    !show("attach", lr_rootfs_attach(plan, &s, &err)))
		return false;
	if (!q->no_mount_ns) {
		CHECK_INT(fchdir(s.rootfd), 0);
		CHECK_INT(mount("tmpfs", "sub", "tmpfs", MS_NOSUID | MS_NOEXEC, NULL), 0);
		CHECK_INT(mkdir("sub/below", 0755), 0);
		CHECK_INT(mount("tmpfs", "sub/below", "tmpfs", 0, NULL), 0);
		if (!q->no_dev_mount)
			CHECK_INT(mount("tmpfs", "dev", "tmpfs", MS_NOSUID, NULL), 0);
	}
	int devfd = lr_rootfs_open_dev(s.rootfd, &err);
	if (!show("open_dev", devfd) || !show("links", lr_rootfs_dev_links(devfd, &err)))
		return false;
	close(devfd);
	if (q->before_pivot)
		q->before_pivot(s.rootfd);
	if (q->holds_tops) {
		s.procfs = openat(s.rootfd, "proc", O_PATH | O_CLOEXEC);
		s.sysfs = openat(s.rootfd, "sys", O_PATH | O_CLOEXEC);
	}
	if (!show("protect", lr_rootfs_protect(plan, &s, &err)) ||
	    !show("pivot", lr_rootfs_pivot(plan, &s, &err)) ||
	    !show("finish", lr_rootfs_finish(plan, &s, &err)))
		return false;
	CHECK_STR(getcwd(path, sizeof(path)), "/");
	lr_rootfs_state_close(&s);
	lr_arena_free(arena);
	return true;
}

static int count_entries(const char *path)
{
	DIR *d = opendir(path);
	int n = 0;

	if (!d)
		return -1;
	for (struct dirent *e; (e = readdir(d));)
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	closedir(d);
	return n;
}

static int try_write(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	int r = fd < 0 ? errno : 0;

	if (fd >= 0)
		close(fd);
	return r;
}

/* ---- plan ---------------------------------------------------------------------------------- */

static int plan_error(const struct request *q)
{
	struct lr_arena *arena = lr_arena_new();
	const struct lr_rootfs_plan *plan = plan_of(q, arena);

	lr_arena_free(arena);
	return plan ? 0 : err.code;
}

TEST(plan_takes_every_propagation)
{
	static const char *const names[] = {"private", "rprivate", "slave",      "rslave",
					    "shared",  "rshared",  "unbindable", "runbindable",
					    "",        NULL};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct request q = {.root.path = "rootfs", .propagation = names[i]};
		CHECK_INT(plan_error(&q), 0);
	}
	struct request q = {.root.path = "rootfs", .propagation = "shares"};
	CHECK_INT(plan_error(&q), EINVAL);
	CHECK_STR(err.path, "linux.rootfsPropagation");
	CHECK_HAS(err.msg, "\"shares\"");
}

static bool can_be_bare(const struct request *q)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const struct lr_rootfs_plan *p = plan_of(q, a);

	return p && lr_rootfs_can_be_bare(p);
}

TEST(what_reaches_the_host_takes_a_copy_of_its_mounts)
{
	static const char *const reach[] = {"shared", "rshared", "slave", "private", "unbindable"};
	static const char *const do_not[] = {"", "rslave", "rprivate", "runbindable"};
	struct request q = {.root.path = "rootfs"};

	for (size_t i = 0; i < LR_ARRAY_SIZE(reach); i++) {
		q.propagation = reach[i];
		CHECK(!can_be_bare(&q));
	}
	for (size_t i = 0; i < LR_ARRAY_SIZE(do_not); i++) {
		q.propagation = do_not[i];
		CHECK(can_be_bare(&q));
	}
	q.no_pivot = true;
	q.propagation = NULL;
	CHECK(!can_be_bare(&q));
	q = (struct request){.root.path = "rootfs", .no_mount_ns = true};
	CHECK(!can_be_bare(&q));
}

TEST(what_spreads_to_the_host_is_not_made_on_its_directories)
{
	static const char *const spread[] = {"shared", "rshared", "slave", "private", "unbindable"};
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_rootfs_state s = LR_ROOTFS_STATE_INIT;
	struct request q = {.root.path = "rootfs"};

	snprintf(base, sizeof(base), "/b");
	CHECK(lr_rootfs_has_bench(plan_of(&q, a), &s));
	for (size_t i = 0; i < LR_ARRAY_SIZE(spread); i++) {
		q.propagation = spread[i];
		CHECK(!lr_rootfs_has_bench(plan_of(&q, a), &s));
	}
	q = (struct request){.root.path = "rootfs", .no_mount_ns = true};
	CHECK(!lr_rootfs_has_bench(plan_of(&q, a), &s));
	q.no_mount_ns = false;
	s.bare = 0; /* none of its directories is there */
	CHECK(!lr_rootfs_has_bench(plan_of(&q, a), &s));
}

TEST(a_host_in_memory_takes_a_copy_of_its_mounts)
{
	/* Of linux/magic.h: ramfs, tmpfs; ext4, overlayfs, xfs. */
	static const long first[] = {0x858458f6, 0x01021994},
			  later[] = {0xef53, 0x794c7630, 0x58465342};

	for (size_t i = 0; i < LR_ARRAY_SIZE(first); i++)
		CHECK(lr_rootfs_may_be_first(first[i]));
	for (size_t i = 0; i < LR_ARRAY_SIZE(later); i++)
		CHECK(!lr_rootfs_may_be_first(later[i]));
}

TEST(plan_finds_the_root)
{
	struct lr_arena *arena = lr_arena_new();
	struct request q = {.root.path = "rootfs//"};

	snprintf(base, sizeof(base), "/b");
	const struct lr_rootfs_plan *plan = plan_of(&q, arena);
	REQUIRE(plan);
	CHECK_STR(plan->path, "/b/bundle/rootfs");
	q.root.path = "/srv/root/";
	plan = plan_of(&q, arena);
	REQUIRE(plan);
	CHECK_STR(plan->path, "/srv/root");
	q.root.path = "/";
	plan = plan_of(&q, arena);
	REQUIRE(plan);
	CHECK_STR(plan->path, "/");
	q.root.path = "";
	CHECK_INT(plan_error(&q), EINVAL);
	CHECK_STR(err.path, "root.path");
	lr_arena_free(arena);
}

TEST(plan_refuses_what_it_cannot_do)
{
	struct request q = {.root.path = "r", .readonly = STRV("/proc/sys"), .no_mount_ns = true};
	CHECK_INT(plan_error(&q), EINVAL);
	CHECK_STR(err.path, "linux.readonlyPaths");

	/* Left out, as by others: it would be done to the host's mounts. */
	q = (struct request){.root = {.path = "r", .readonly = true},
			     .propagation = "shared",
			     .no_mount_ns = true};
	CHECK_INT(plan_error(&q), 0);

	q = (struct request){.root.path = "r", .propagation = "rprivate", .no_pivot = true};
	CHECK_INT(plan_error(&q), EINVAL);
	CHECK_HAS(err.msg, "pivot_root");
}

/* ---- attach and pivot ----------------------------------------------------------------------- */

static void keep_proc(int rootfd)
{
	CHECK_INT(fchdir(rootfd), 0);
	CHECK_INT(mount("proc", "proc", "proc", 0, NULL), 0);
}

static void body_pivot(void)
{
	struct request q = {.root.path = "rootfs", .before_pivot = keep_proc};

	make_bundle();
	int fds = open_fds();
	if (!enter(&q))
		return;
	CHECK_INT(open_fds(), fds + 1); /* rootfd is left to the end */
	CHECK_STR(get_file("/marker"), "container");
	CHECK_STR(get_file("/../../marker"), "container");
	CHECK(!get_file(in_base("host-file")));
	/* The host's mounts are gone, not only covered. */
	const char *mounts = get_file("/proc/self/mountinfo");
	REQUIRE(mounts);
	int lines = 0;
	for (const char *p = mounts; (p = strchr(p, '\n')); p++)
		lines++;
	CHECK_INT(lines, 5); /* root, sub, sub/below, dev, proc */
}

TEST(pivot_leaves_nothing_of_the_host)
{
	NEED_ROOT();
	in_child(body_pivot, 0);
}

static void body_old_kernel(int code)
{
	struct request q = {
		.root = {.path = "rootfs", .readonly = true},
		.masked = STRV("/secret", "/private"),
		.readonly = STRV("/sub", "/marker"),
		.before_pivot = keep_proc,
	};

	make_bundle();
	deny(SYS_open_tree, code);
	deny(SYS_move_mount, code);
	deny(SYS_mount_setattr, code);
	deny(SYS_openat2, code);
	if (!enter(&q))
		return;
	CHECK_STR(get_file("/marker"), "container");
	CHECK_STR(get_file("/secret"), "");
	CHECK_INT(chmod("/secret", 0600) < 0 ? errno : 0, EROFS);
	CHECK_INT(count_entries("/private"), 0);
	CHECK_INT(try_write("/sub/new"), EROFS);
	CHECK_INT(try_write("/new"), EROFS);
	struct statvfs st;
	CHECK_INT(statvfs("/sub", &st), 0);
	CHECK(st.f_flag & ST_NOSUID);
	CHECK(st.f_flag & ST_NOEXEC);
}

static void body_enosys(void)
{
	body_old_kernel(ENOSYS);
}
static void body_eperm(void)
{
	body_old_kernel(EPERM);
}

TEST(older_kernels_and_filters_get_the_same)
{
	NEED_ROOT();
	in_child(body_enosys, 0);
	in_child(body_eperm, 0);
}

static void body_wrong_root(void)
{
	struct lr_arena *arena = lr_arena_new();
	struct lr_rootfs_state s = LR_ROOTFS_STATE_INIT;
	struct request q = {.root.path = "rootfs/marker"};

	make_bundle();
	const struct lr_rootfs_plan *plan = plan_of(&q, arena);
	REQUIRE(plan);
	CHECK_INT(lr_rootfs_attach(plan, &s, &err), -ENOTDIR);
	CHECK_STR(err.path, "root.path");
	q.root.path = "missing";
	plan = plan_of(&q, arena);
	REQUIRE(plan);
	CHECK_INT(lr_rootfs_attach(plan, &s, &err), -ENOENT);
	CHECK_HAS(err.msg, "bundle/missing");
	lr_arena_free(arena);
}

TEST(root_must_be_a_directory)
{
	NEED_ROOT();
	in_child(body_wrong_root, 0);
}

static void body_chroot(void)
{
	struct request q = {.root.path = "rootfs", .no_mount_ns = true};

	make_bundle();
	if (!enter(&q))
		return;
	CHECK_STR(get_file("/marker"), "container");
	CHECK_INT(chdir(".."), 0);
	CHECK_STR(get_file("marker"), "container");
}

TEST(without_mount_namespace_it_is_chroot)
{
	NEED_ROOT();
	in_child(body_chroot, 0);
}

static void body_no_pivot(void)
{
	struct request q = {
		.root.path = "rootfs",
		.no_pivot = true,
		.masked = STRV("/secret", "/private"),
		.before_pivot = keep_proc,
	};

	make_bundle();
	int host = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs;
	CHECK(faccessat(host, "proc/self", F_OK, 0) == 0);
	if (!enter(&q))
		return;
	CHECK_STR(get_file("/marker"), "container");
	CHECK_STR(get_file("/secret"), "");
	CHECK_INT(count_entries("/private"), 0);
	CHECK(get_file("/proc/self/status")); /* its own stays */
	/* Whoever gets back to the host's tree finds no proc and no sysfs there. */
	CHECK_INT(fchdir(host), 0);
	CHECK(faccessat(host, "proc/self", F_OK, 0) < 0);
	CHECK(statfs("sys", &fs) < 0 || fs.f_type != 0x62656572);
}

TEST(no_pivot_hides_the_hosts_proc_and_sys)
{
	NEED_ROOT();
	in_child(body_no_pivot, 0);
}

static void body_userns(void)
{
	struct request q = {
		.root = {.path = "rootfs", .readonly = true},
		.masked = STRV("/secret", "/private", "/private2"),
		.readonly = STRV("/sub"),
	};

	make_bundle();
	if (!become_userns_root())
		SKIP("no user namespaces here");
	if (!enter(&q))
		return;
	CHECK_STR(get_file("/marker"), "container");
	CHECK_STR(get_file("/secret"), "");
	CHECK_INT(count_entries("/private2"), 0);
	CHECK_INT(try_write("/sub/new"), EROFS);
	CHECK_INT(try_write("/new"), EROFS);
}

TEST(works_in_a_user_namespace)
{
	NEED_ROOT();
	in_child(body_userns, 0);
}

/* ---- protect ------------------------------------------------------------------------------- */

static void body_masked(void)
{
	struct request q = {
		.root.path = "rootfs",
		.masked = STRV("/secret", "/private", "/missing", "/marker/below", "/missing/too",
			       "/private2", "/secret2", "/proc/meminfo", "/proc/fs"),
		.before_pivot = keep_proc,
	};

	make_bundle();
	int fds = open_fds();
	if (!enter(&q))
		return;
	/* The root and the covers are left to the end, and nothing that leads below a cover. */
	CHECK(open_fds() <= fds + 2 + (int)q.masked.n);
	struct stat st;
	CHECK_INT(stat("/secret", &st), 0);
	CHECK(S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3));
	CHECK_STR(get_file("/secret"), "");
	CHECK_STR(get_file("/secret2"), "");
	/* It is the host's device: its mode and owner are out of reach, writing is not. */
	CHECK_INT(chmod("/secret", 0600) < 0 ? errno : 0, EROFS);
	CHECK_INT(chown("/secret2", 1, 1) < 0 ? errno : 0, EROFS);
	CHECK_INT(stat("/secret", &st), 0);
	CHECK_INT(st.st_mode, S_IFCHR | 0666);
	CHECK_INT(try_write("/secret"), 0);
	CHECK_STR(get_file("/proc/meminfo"), "");
	CHECK_INT(count_entries("/private"), 0);
	CHECK_INT(count_entries("/proc/fs"), 0);
	CHECK_INT(try_write("/private/new"), EROFS);
	CHECK_INT(try_write("/private2/new"), EROFS);
	CHECK_STR(get_file("/marker"), "container");
	CHECK_INT(access("/missing", F_OK), -1);
}

TEST(masked_paths_are_empty)
{
	NEED_ROOT();
	in_child(body_masked, 0);
}

static void mount_tops(int rootfd)
{
	keep_proc(rootfd);
	CHECK_INT(mount("sysfs", "sys", "sysfs", 0, NULL), 0);
	/* Read-only with what is below. */
	CHECK_INT(mount("tmpfs", "proc/sys/fs", "tmpfs", 0, NULL), 0);
}

/* What there always is is in it, and what there never is. */
static struct request known = {
	.root.path = "rootfs",
	.masked = STRV("/proc/asound", "/proc/fs", "/proc/latency_stats", "/proc/keys",
		       "/proc/timer_stats", "/proc/timer_list", "/sys/firmware", "/sys/kernel",
		       "/proc/irq", "/proc/scsi", "/secret", "/private"),
	.readonly = STRV("/proc/sys", "/proc/bus", "/proc/nothing", "/sub"),
	.has_tops = true,
	.before_pivot = mount_tops,
};

static int refused_by; /* what a kernel lacks: then each directory has a file system of its own */

static void body_known(void)
{
	static const char *const dirs[] = {"/proc/fs", "/proc/irq", "/sys/firmware", "/sys/kernel",
					   "/private"};
	static const char *const files[] = {"/proc/keys", "/proc/timer_list", "/secret"};
	struct stat first, st;

	make_bundle();
	if (!enter(&known))
		return;
	CHECK_INT(stat(dirs[0], &first), 0);
	for (size_t i = 0; i < LR_ARRAY_SIZE(dirs); i++) {
		CHECK_INT(count_entries(dirs[i]), 0);
		CHECK_INT(stat(dirs[i], &st), 0);
		CHECK(refused_by || st.st_dev == first.st_dev);
	}
	for (size_t i = 0; i < LR_ARRAY_SIZE(files); i++) {
		CHECK_STR(get_file(files[i]), "");
		CHECK_INT(chmod(files[i], 0600) < 0 ? errno : 0, EROFS);
	}
	CHECK_INT(try_write("/proc/sys/kernel/hostname"), EROFS);
	/* Without mount_setattr(2), what is mounted below stays as it is. */
	CHECK(refused_by == SYS_mount_setattr || try_write("/proc/sys/fs/new") == EROFS);
	CHECK_INT(try_write("/sub/new"), EROFS);
	CHECK_INT(try_write("/proc/self/comm"), 0);
}

TEST(what_the_kernel_has_below_proc_and_sys_is_protected)
{
	NEED_ROOT();
	known.holds_tops = false;
	in_child(body_known, 0);
	known.holds_tops = true;
	in_child(body_known, 0);
}

static void body_known_denied(void)
{
	deny(refused_by, EPERM);
	body_known();
}

TEST(what_the_kernel_has_is_protected_by_older_calls_too)
{
	static const int calls[] = {SYS_move_mount, SYS_open_tree, SYS_openat2, SYS_mount_setattr};

	NEED_ROOT();
	for (size_t i = 0; i < LR_ARRAY_SIZE(calls); i++) {
		refused_by = calls[i];
		in_child(body_known_denied, 0);
	}
	refused_by = 0;
}

/* Attached, with what config.json mounts. */
static bool enter_with_tops(const struct lr_rootfs_plan *plan, struct lr_rootfs_state *s)
{
	CHECK_INT(unshare(CLONE_NEWNS), 0);
	CHECK_INT(lr_rootfs_open_null(plan, s, &err), 0);
	if (!show("attach", lr_rootfs_attach(plan, s, &err)))
		return false;
	mount_tops(s->rootfd);
	return true;
}

static size_t count_procfs(void)
{
	size_t n = 0;

	for (int fd = 0; fd < LR_FD_LATE; fd++)
		n += lr_fs_magic(fd) == PROC_SUPER_MAGIC;
	return n;
}

static void body_covered_top(void)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
	struct lr_rootfs_state s = LR_ROOTFS_STATE_INIT;
	struct request q = {
		.root.path = "rootfs", .masked = STRV("/proc/keys", "/proc"), .has_tops = true};

	make_bundle();
	const struct lr_rootfs_plan *plan = plan_of(&q, arena);
	REQUIRE(plan && enter_with_tops(plan, &s));
	size_t before = count_procfs();
	CHECK_INT(lr_rootfs_protect(plan, &s, &err), 0);
	CHECK_INT(count_procfs(), before);
	lr_rootfs_state_close(&s);
}

TEST(no_descriptor_leads_below_a_protection)
{
	NEED_ROOT();
	in_child(body_covered_top, 0);
}

/* As if the module that the directory is of had gone, and come back. */
static void body_cover_is_gone(void)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
	struct lr_rootfs_state s = LR_ROOTFS_STATE_INIT;

	make_bundle();
	const struct lr_rootfs_plan *plan = plan_of(&known, arena);
	REQUIRE(plan && enter_with_tops(plan, &s));
	LR_CLEANUP_FD int top = openat(s.rootfd, "proc", O_PATH | O_CLOEXEC);
	struct lr_rootfs_cover c = {.fd = LR_NOFD, .dir = top, .name = "fs"};
	CHECK_INT(lr_rootfs_cover_put(&c, top, "irq"), -ESTALE);
	c.name = "gone";
	CHECK_INT(lr_rootfs_cover_put(&c, top, "irq"), -ESTALE);
	lr_rootfs_state_close(&s);
}

TEST(what_is_not_a_cover_any_more_covers_nothing)
{
	NEED_ROOT();
	in_child(body_cover_is_gone, 0);
}

/* As one who shares the rootfs can do, wherever our mount namespace is. */
static void rename_proc(const char *name)
{
	CHECK_INT(renameat(AT_FDCWD, in_base("bundle/rootfs/%s", name), AT_FDCWD,
			   in_base("bundle/rootfs/other")),
		  0);
	CHECK_INT(mkdir(in_base("bundle/rootfs/%s", name), 0755), 0);
}

static void body_renamed(void)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
	struct lr_rootfs_state s = LR_ROOTFS_STATE_INIT;
	int to[2];
	char byte;

	make_bundle();
	const struct lr_rootfs_plan *plan = plan_of(&known, arena);
	REQUIRE(plan);
	CHECK_INT(pipe(to), 0);
	pid_t other = fork();
	if (other == 0) {
		close(to[1]);
		if (read(to[0], &byte, 1) == 1)
			rename_proc("proc");
		_exit(lr_failures ? 1 : 0);
	}
	REQUIRE(enter_with_tops(plan, &s));
	s.procfs = openat(s.rootfd, "proc", O_PATH | O_CLOEXEC);
	CHECK_INT(write(to[1], "", 1), 1);
	CHECK_INT(wait_for(other), 0);
	CHECK_INT(lr_rootfs_protect(plan, &s, &err), -ESTALE);
	CHECK_HAS(err.msg, "/proc is no longer what mounts of config.json put there");
	lr_rootfs_state_close(&s);
}

TEST(a_procfs_that_is_elsewhere_meanwhile_is_found_out)
{
	NEED_ROOT();
	in_child(body_renamed, 0);
}

/* As when the module goes whose directory was covered first. */
static const char *covered_first;

static void body_first_is_gone(void)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
	struct lr_rootfs_state s = LR_ROOTFS_STATE_INIT;
	struct request q = {.root.path = "rootfs",
			    .masked = STRV("/sys/firmware", "/proc/irq"),
			    .has_tops = true};

	make_bundle();
	const struct lr_rootfs_plan *plan = plan_of(&q, arena);
	REQUIRE(plan);
	CHECK_INT(unshare(CLONE_NEWNS), 0);
	CHECK_INT(lr_rootfs_open_null(plan, &s, &err), 0);
	CHECK_INT(lr_rootfs_attach(plan, &s, &err), 0);
	mount_tops(s.rootfd);
	LR_CLEANUP_FD int proc = openat(s.rootfd, "proc", O_PATH | O_CLOEXEC);
	s.empty.dir = proc;
	s.empty.name = covered_first;
	CHECK_INT(lr_rootfs_protect(plan, &s, &err), 0);
	for (size_t i = 0; i < q.masked.n; i++) {
		LR_CLEANUP_FD int at = openat(s.rootfd, q.masked.v[i] + 1, O_PATH | O_CLOEXEC);
		CHECK_INT(lr_fs_magic(at), TMPFS_MAGIC);
	}
	lr_rootfs_state_close(&s);
}

TEST(a_cover_whose_place_is_gone_is_made_anew)
{
	NEED_ROOT();
	covered_first = "no-such-module";
	in_child(body_first_is_gone, 0);
	covered_first = "fs"; /* there again, and not covered */
	in_child(body_first_is_gone, 0);
}

/* Without a slash in front they count from the root, as with runc and crun. */
static void body_relative(void)
{
	struct request q = {
		.root.path = "rootfs",
		.masked = STRV("secret", "private", "", "none/at/all"),
		.readonly = STRV("sub", "proc/sys"),
		.before_pivot = keep_proc,
	};

	make_bundle();
	if (!enter(&q))
		return;
	CHECK_STR(get_file("/secret"), "");
	CHECK_INT(count_entries("/private"), 0);
	CHECK_INT(try_write("/sub/new"), EROFS);
	CHECK_INT(try_write("/proc/sys/kernel/hostname"), EROFS);
}

TEST(relative_paths_count_from_the_root)
{
	NEED_ROOT();
	in_child(body_relative, 0);
}

/* Masked directories are one file system: read-only as such and by each mount, and full. */
static const char *empties[2];

static void body_one_empty(void)
{
	struct request q = {.root.path = "rootfs",
			    .masked = STRV(empties[0], empties[1]),
			    .has_tops = true,
			    .before_pivot = mount_tops};
	char new[64];
	struct stat a, b;

	make_bundle();
	if (!enter(&q))
		return;
	CHECK_INT(stat(empties[0], &a), 0);
	CHECK_INT(stat(empties[1], &b), 0);
	CHECK(a.st_dev == b.st_dev);
	/* What CAP_SYS_ADMIN can do to it: the mount, then the file system. */
	CHECK_INT(mount(NULL, empties[0], NULL, MS_REMOUNT | MS_BIND, NULL), 0);
	CHECK_INT(chmod(empties[0], 0777) < 0 ? errno : 0, EROFS);
	CHECK_INT(mount(NULL, empties[0], NULL, MS_REMOUNT, NULL), 0);
	snprintf(new, sizeof(new), "%s/new", empties[0]);
	CHECK_INT(mkdir(new, 0755) < 0 ? errno : 0, ENOSPC);
	CHECK_INT(chmod(empties[1], 0777) < 0 ? errno : 0, EROFS);
}

TEST(masked_directories_are_one_that_cannot_be_filled)
{
	NEED_ROOT();
	empties[0] = "/private";
	empties[1] = "/private2";
	in_child(body_one_empty, 0);
	empties[0] = "/proc/fs";
	empties[1] = "/sys/firmware";
	in_child(body_one_empty, 0);
}

static void odd_links(int rootfd)
{
	CHECK_INT(symlinkat("/", rootfd, "top"), 0);
	CHECK_INT(symlinkat("/proc/self/fd/0", rootfd, "magic"), 0);
	CHECK_INT(symlinkat("loop", rootfd, "loop"), 0);
	keep_proc(rootfd);
}

static struct {
	const char *path, *says;
	bool masked;
} refused;

static void body_refused(void)
{
	struct lr_arena *arena = lr_arena_new();
	struct lr_rootfs_state s = LR_ROOTFS_STATE_INIT;
	struct oci_strv paths = STRV(refused.path), none = {0};
	struct request q = {.root.path = "rootfs",
			    .masked = refused.masked ? paths : none,
			    .readonly = refused.masked ? none : paths};

	make_bundle();
	const struct lr_rootfs_plan *plan = plan_of(&q, arena);
	REQUIRE(plan);
	CHECK_INT(lr_rootfs_open_null(plan, &s, &err), 0);
	CHECK_INT(lr_rootfs_attach(plan, &s, &err), 0);
	odd_links(s.rootfd);
	CHECK(lr_rootfs_protect(plan, &s, &err) < 0);
	CHECK_STR(err.path, refused.masked ? "linux.maskedPaths[0]" : "linux.readonlyPaths[0]");
	CHECK(strstr(err.msg, refused.says) || strstr(err.hint, refused.says));
	lr_rootfs_state_close(&s);
	lr_arena_free(arena);
}

static void body_root_by_link(void)
{
	struct request q = {
		.root.path = "rootfs", .readonly = STRV("/top"), .before_pivot = odd_links};

	make_bundle();
	if (!enter(&q))
		return;
	CHECK_INT(try_write("/new"), EROFS);
	CHECK_INT(try_write("/sub/new"), EROFS);
}

TEST(protection_that_would_have_no_effect_is_refused)
{
	static const char *const roots[] = {"/top", "/sub/../top", "/sub/..", "/", "/./."};
	static const char *const nowhere[] = {"/magic", "/loop/x"};

	NEED_ROOT();
	for (size_t i = 0; i < 5; i++) {
		refused.path = roots[i];
		refused.says = "the container's root";
		refused.masked = true;
		in_child(body_refused, 0);
	}
	for (size_t i = 0; i < 4; i++) {
		refused.path = nowhere[i / 2];
		refused.says = "symbolic link";
		refused.masked = i % 2;
		in_child(body_refused, 0);
	}
	in_child(body_root_by_link, 0);
}

static void link_out(int rootfd)
{
	/* What the image would like to have covered or opened on the host. */
	CHECK_INT(symlinkat(in_base("host-file"), rootfd, "link"), 0);
	CHECK_INT(symlinkat("../../../../../../..", rootfd, "up"), 0);
	CHECK_INT(symlinkat("/secret", rootfd, "inner"), 0);
	CHECK_INT(symlinkat("../../../secret2", rootfd, "climb"), 0);
}

static int host_fd = -1;

static void body_masked_links(void)
{
	char up[128];
	make_bundle();
	snprintf(up, sizeof(up), "/up%s", in_base("host-file"));
	struct request q = {
		.root.path = "rootfs",
		.masked = STRV("/link", up, "/inner", "/climb"),
		.readonly = STRV("/link", up),
		.before_pivot = link_out,
	};

	host_fd = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (!enter(&q))
		return;
	CHECK_STR(get_file("/secret"), "");  /* through /inner */
	CHECK_STR(get_file("/secret2"), ""); /* through /climb, which ends at the root */
	/* The host's file is as it was. */
	char text[8] = "";
	int fd = openat(host_fd, "host-file", O_RDWR | O_CLOEXEC);
	CHECK_INT(read(fd, text, sizeof(text) - 1), 4);
	CHECK_STR(text, "host");
}

TEST(masked_links_resolve_in_the_container)
{
	NEED_ROOT();
	in_child(body_masked_links, 0);
}

static const char *false_null;

static void body_bad_null(void)
{
	struct request q = {.root.path = "rootfs", .masked = STRV("/secret")};
	struct lr_arena *arena = lr_arena_new();
	struct lr_rootfs_state s = LR_ROOTFS_STATE_INIT;

	/* CVE-2025-31133: what files are covered with must be the null device. */
	make_bundle();
	const struct lr_rootfs_plan *plan = plan_of(&q, arena);
	REQUIRE(plan);
	CHECK_INT(mount(false_null ? false_null : in_base("host-file"), "/dev/null", NULL, MS_BIND,
			NULL),
		  0);
	CHECK_INT(lr_rootfs_open_null(plan, &s, &err), -ENODEV);
	CHECK_HAS(err.msg, "1:3");
	CHECK_STR(get_file(in_base("bundle/rootfs/secret")), "secret");
	lr_rootfs_state_close(&s);
	lr_arena_free(arena);
}

TEST(masking_needs_the_real_null_device)
{
	NEED_ROOT();
	in_child(body_bad_null, 0);
	false_null = "/dev/zero";
	in_child(body_bad_null, 0);
}

static void body_readonly(void)
{
	struct request q = {
		.root = {.path = "rootfs"},
		.readonly = STRV("/sub", "/missing", "/marker", "/marker/x", "/proc/sys", "/link"),
		.before_pivot = keep_proc,
	};

	make_bundle();
	CHECK_INT(symlink("/private", in_base("bundle/rootfs/link")), 0);
	if (!enter(&q))
		return;
	CHECK_INT(try_write("/sub/new"), EROFS);
	CHECK_INT(try_write("/sub/below/new"), EROFS); /* recursive */
	CHECK_INT(try_write("/marker"), EROFS);
	CHECK_INT(try_write("/private/new"), EROFS);
	CHECK_INT(try_write("/proc/sys/kernel/hostname"), EROFS);
	CHECK_INT(try_write("/new"), 0);
	struct statvfs st;
	CHECK_INT(statvfs("/sub", &st), 0);
	CHECK(st.f_flag & ST_NOSUID);
	CHECK(st.f_flag & ST_NOEXEC);
	CHECK_INT(statvfs("/sub/below", &st), 0);
	CHECK(!(st.f_flag & ST_NOEXEC));
}

TEST(readonly_paths_keep_their_flags)
{
	NEED_ROOT();
	in_child(body_readonly, 0);
}

static void open_ways_out(int rootfd)
{
	keep_proc(rootfd);
	CHECK_INT(dup2(open(base, O_PATH | O_DIRECTORY), 70), 70);
	CHECK_INT(dup2(lr_procfs_open(&err), 71), 71);
	CHECK_INT(symlinkat("/proc/self/fd/70", rootfd, "host"), 0);
	CHECK_INT(symlinkat("/proc/self/fd/71/sys", rootfd, "bare"), 0);
}

/* A path that leads elsewhere at each look cannot bring in what our descriptors lead to: not the
 * host's files, and not the private procfs, in which nothing is masked. */
static void body_readonly_magic(void)
{
	static const char *const ways[] = {"/host", "/bare"};
	struct request q = {
		.root = {.path = "rootfs"},
		.readonly = STRV("/sub"),
		.before_pivot = open_ways_out,
	};

	make_bundle();
	if (!enter(&q))
		return;
	for (size_t i = 0; i < 2; i++) {
		struct stat st;
		CHECK_INT(stat(ways[i], &st), 0);
		CHECK_INT(mount(ways[i], "/private", NULL, MS_BIND | MS_REC, NULL), -1);
		CHECK_INT(errno, EINVAL);
	}
}

TEST(readonly_paths_lead_nowhere_else)
{
	NEED_ROOT();
	in_child(body_readonly_magic, 0);
}

/* mount(2) returns no descriptor: the path is looked up again, and may lead elsewhere by then. */
static void body_bound_elsewhere(void)
{
	make_bundle();
	int rootfd = open(in_base("bundle/rootfs"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	int from = openat(rootfd, "private", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int at = openat(rootfd, "private2", O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(mount("tmpfs", in_base("bundle/rootfs/sub"), "tmpfs", 0, NULL), 0);
	CHECK_INT(lr_rootfs_bind_ro(rootfd, "/sub", from, at, 0), -ESTALE);
	CHECK_INT(try_write(in_base("bundle/rootfs/sub/new")), 0);
	CHECK_INT(lr_rootfs_bind_ro(rootfd, "/private2", from, at, 0), 0);
	CHECK_INT(try_write(in_base("bundle/rootfs/private2/new")), EROFS);
}

TEST(what_is_mounted_elsewhere_is_not_made_read_only)
{
	NEED_ROOT();
	in_child(body_bound_elsewhere, 0);
}

static void body_readonly_root(void)
{
	struct request q = {.root = {.path = "rootfs", .readonly = true}};

	make_bundle();
	host_fd = open(in_base("bundle/rootfs"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (!enter(&q))
		return;
	CHECK_INT(try_write("/new"), EROFS);
	CHECK_INT(try_write("/sub/new"), 0);
	CHECK_INT(try_write("/dev/new"), 0);
	/* The container's mount only: the host may go on writing. */
	int fd = openat(host_fd, "from-host", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	CHECK(fd >= 0);
}

TEST(readonly_root_leaves_mounts_and_host_writable)
{
	NEED_ROOT();
	in_child(body_readonly_root, 0);
}

/* ---- propagation --------------------------------------------------------------------------- */

static const char *wanted_propagation;
static bool without_pivot;

/* "Host": a namespace whose mounts are all shared. "Container": a child's copy of it. */
static void body_propagation(void)
{
	int ready[2], go[2];
	char c = 0;

	make_bundle();
	CHECK_INT(mkdir(in_base("bundle/rootfs/late"), 0755), 0);
	CHECK_INT(mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL), 0);
	REQUIRE(pipe(ready) == 0 && pipe(go) == 0);
	const char *before = get_file("/proc/self/mountinfo");
	char *copy = strdup(before ? before : "");
	pid_t pid = fork();
	REQUIRE(pid >= 0);
	if (pid == 0) {
		struct request q = {
			.root.path = "rootfs",
			.propagation = wanted_propagation,
			.no_pivot = without_pivot,
			.masked = STRV("/secret", "/private"),
			.before_pivot = keep_proc,
		};
		lr_failures = 0;
		CHECK_INT(unshare(CLONE_NEWNS), 0);
		if (!enter(&q))
			_exit(1);
		CHECK_INT(mount("tmpfs", "/private2", "tmpfs", 0, NULL), 0);
		CHECK_INT(write(ready[1], "x", 1), 1);
		CHECK_INT(read(go[0], &c, 1), 1);
		bool slave = !wanted_propagation || strstr(wanted_propagation, "slave");
		CHECK_INT(access("/late/from-host", F_OK), slave ? 0 : -1);

		const char *line = get_file("/proc/self/mountinfo");
		char root[512] = "";
		while (line && !strstr(root, " / / ")) {
			const char *end = strchr(line, '\n');
			if (!end)
				break;
			snprintf(root, sizeof(root), "%.*s", (int)(end - line), line);
			line = end + 1;
			if (strstr(root, "/bundle/rootfs / "))
				break;
		}
		const char *p = wanted_propagation ? wanted_propagation : "";
		CHECK_INT(strstr(root, " shared:") != NULL, strstr(p, "shared") != NULL);
		CHECK_INT(strstr(root, " unbindable ") != NULL, strstr(p, "unbindable") != NULL);
		fflush(stdout);
		_exit(lr_failures ? 1 : 0);
	}
	close(ready[1]);
	CHECK_INT(read(ready[0], &c, 1), 1);
	/* Nothing the container mounted or unmounted happened here. */
	CHECK_STR(get_file("/proc/self/mountinfo"), copy);
	CHECK_STR(get_file(in_base("bundle/rootfs/secret")), "secret");
	CHECK_INT(mount("tmpfs", in_base("bundle/rootfs/late"), "tmpfs", 0, NULL), 0);
	put_file(in_base("bundle/rootfs/late/from-host"), "x");
	CHECK_INT(write(go[1], "x", 1), 1);
	CHECK_INT(wait_for(pid), 0);
	free(copy);
}

TEST(propagation_spares_the_host)
{
	static const char *const names[] = {NULL,      "rslave",     "slave",
					    "private", "rprivate",   "shared",
					    "rshared", "unbindable", "runbindable"};
	NEED_ROOT();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int before = lr_failures;
		wanted_propagation = names[i];
		in_child(body_propagation, 0);
		if (lr_failures != before)
			printf("# with \"%s\"\n", names[i] ? names[i] : "(default)");
	}
	without_pivot = true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int before = lr_failures;
		wanted_propagation = names[i];
		if (names[i] && (strstr(names[i], "private") || strstr(names[i], "bindable")))
			continue; /* refused by the plan */
		in_child(body_propagation, 0);
		if (lr_failures != before)
			printf("# without pivot, with \"%s\"\n", names[i] ? names[i] : "(default)");
	}
}

/* ---- /dev ---------------------------------------------------------------------------------- */

static const char *link_of(const char *path)
{
	static char target[256];
	ssize_t n = readlink(path, target, sizeof(target) - 1);

	if (n < 0)
		return NULL;
	target[n] = '\0';
	return target;
}

static void body_dev_links(void)
{
	struct request q = {.root.path = "rootfs", .no_dev_mount = true};

	make_bundle();
	put_file(in_base("bundle/rootfs/dev/ptmx"), "old");
	CHECK_INT(symlink("elsewhere", in_base("bundle/rootfs/dev/stdin")), 0);
	if (!enter(&q))
		return;
	CHECK_STR(link_of("/dev/fd"), "/proc/self/fd");
	CHECK_STR(link_of("/dev/stdout"), "/proc/self/fd/1");
	CHECK_STR(link_of("/dev/stderr"), "/proc/self/fd/2");
	CHECK_STR(link_of("/dev/stdin"), "elsewhere");
	CHECK_STR(link_of("/dev/ptmx"), "pts/ptmx");
}

TEST(dev_links)
{
	NEED_ROOT();
	in_child(body_dev_links, 0);
}

static void body_dev_symlink(void)
{
	make_bundle();
	CHECK_INT(rmdir(in_base("bundle/rootfs/dev")), 0);
	CHECK_INT(symlink(base, in_base("bundle/rootfs/dev")), 0);
	int rootfd = open(in_base("bundle/rootfs"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(lr_rootfs_open_dev(rootfd, &err), -ELOOP);
	CHECK_HAS(err.msg, "symbolic link");
	CHECK_INT(unlink(in_base("bundle/rootfs/dev")), 0);
	CHECK_INT(symlink("sub", in_base("bundle/rootfs/dev")), 0);
	CHECK_INT(lr_rootfs_open_dev(rootfd, &err), -ELOOP);
	/* Missing: made. */
	CHECK_INT(unlink(in_base("bundle/rootfs/dev")), 0);
	int fd = lr_rootfs_open_dev(rootfd, &err);
	CHECK(fd >= 0);
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

TEST(dev_must_not_be_a_link)
{
	NEED_ROOT();
	in_child(body_dev_symlink, 0);
}
