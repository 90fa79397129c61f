/* SPDX-License-Identifier: Apache-2.0 */
/* Bind mounts: attributes, propagation, links, id maps, user namespaces. */
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/utsname.h>

#include "src/mount/internal.h"
#include "src/sys/syscalls.h"
#include "tests/unit/deny.h"
#include "tests/unit/mount/fixture.h"

static bool kernel_before(int major, int minor)
{
	struct utsname u;
	int a = 0, b = 0;

	CHECK(uname(&u) == 0 && sscanf(u.release, "%d.%d", &a, &b) == 2);
	return a < major || (a == major && b < minor);
}

/* A source tree of two mounts: /tmp/src and /tmp/src/sub. */
static void make_tree(unsigned long flags)
{
	mkdir("/tmp/src", 0755);
	CHECK_INT(mount("src", "/tmp/src", "tmpfs", flags & ~(unsigned long)MS_RDONLY, NULL), 0);
	mkdir("/tmp/src/sub", 0755);
	CHECK(fx_write("/tmp/src/file", "content"));
	CHECK_INT(mount("sub", "/tmp/src/sub", "tmpfs", 0, NULL), 0);
	CHECK(fx_write("/tmp/src/sub/file", "below"));
	if (flags & MS_RDONLY)
		CHECK_INT(mount(NULL, "/tmp/src", NULL, MS_REMOUNT | MS_BIND | flags, NULL), 0);
}

IN_NS(attributes, 0)
{
	make_tree(MS_NOSUID);
	fx_both(fx, MOUNTS(M("/a", "bind", "/tmp/src", "bind"),
			   M("/b", "none", "/tmp/src", "rbind", "ro"),
			   M("/c", "bind", "/tmp/src", "rbind", "rro", "noexec"),
			   M("/d", "bind", "/tmp/src", "rbind", "rro", "rw"),
			   M("/e", "bind", "src", "bind", "suid", "nodev", "noatime"),
			   M("/f", "bind", "/tmp/src", "rbind", "rnosuid", "rnoexec", "rnodev",
			     "rnosymfollow", "rnodiratime", "rstrictatime"),
			   M("/g/h/file", "bind", "/tmp/src/file", "ro", "rprivate")));
	/* No flag is named: those of the source stay. */
	CHECK_HAS(fx_lines[0], "/a / rw,nosuid,relatime  tmpfs");
	CHECK(!strstr(fx_lines[0], "/a/sub "));
	CHECK_HAS(fx_lines[0], "/b / ro,relatime");
	CHECK_HAS(fx_lines[0], "/b/sub / rw,relatime");
	CHECK_HAS(fx_lines[0], "/c / ro,noexec,relatime");
	CHECK_HAS(fx_lines[0], "/c/sub / ro,relatime");
	CHECK_HAS(fx_lines[0], "/d / rw,relatime");
	CHECK_HAS(fx_lines[0], "/d/sub / ro,relatime");
	CHECK_HAS(fx_lines[0], "/e / rw,nodev,noatime");
	CHECK_HAS(fx_lines[0], "/f/sub / rw,nosuid,nodev,noexec,nodiratime,nosymfollow");
	CHECK_HAS(fx_lines[0], "/g/h/file /file ro,relatime");
}

IN_NS(read_only_all_the_way_down, 0)
{
	make_tree(0);
	CHECK_INT(fx_mount(fx, MOUNTS(M("/a", "bind", "/tmp/src", "rbind", "rro"))), 0);
	CHECK(!fx_write(ROOT "/a/x", ""));
	CHECK_INT(errno, EROFS);
	CHECK(!fx_write(ROOT "/a/sub/x", ""));
	CHECK(fx_write("/tmp/src/sub/x", "")); /* the source itself is as it was */
}

IN_NS(rw_undoes_a_read_only_source, 0)
{
	make_tree(MS_RDONLY);
	fx_both(fx, MOUNTS(M("/a", "bind", "/tmp/src", "bind", "rw"),
			   M("/b", "bind", "/tmp/src", "bind")));
	CHECK_HAS(fx_lines[0], "/a / rw");
	CHECK_HAS(fx_lines[0], "/b / ro");
}

IN_NS(propagation, 0)
{
	make_tree(0);
	CHECK_INT(mount(NULL, "/tmp/src", NULL, MS_REC | MS_SHARED, NULL), 0);
	fx_both(fx, MOUNTS(M("/a", "bind", "/tmp/src", "rbind", "rprivate"),
			   M("/b", "bind", "/tmp/src", "rbind", "rslave"),
			   M("/c", "bind", "/tmp/src", "rbind", "slave", "shared"),
			   M("/d", "bind", "/tmp/src", "rbind", "private", "ro"),
			   M("/e", "bind", "/tmp/src", "rbind", "runbindable"),
			   M("/f", "bind", "/tmp/src", "rbind")));
	CHECK_HAS(fx_lines[0], "/a/sub / rw,relatime  tmpfs");
	CHECK_HAS(fx_lines[0], "/b / rw,relatime master, tmpfs");
	CHECK_HAS(fx_lines[0], "/b/sub / rw,relatime master, tmpfs");
	CHECK_HAS(fx_lines[0], "/c / rw,relatime shared,master, tmpfs");
	CHECK_HAS(fx_lines[0], "/c/sub / rw,relatime shared, tmpfs");
	CHECK_HAS(fx_lines[0], "/d / ro,relatime  tmpfs");
	CHECK_HAS(fx_lines[0], "/e/sub / rw,relatime unbindable, tmpfs");
	CHECK_HAS(fx_lines[0], "/f / rw,relatime shared, tmpfs");
}

IN_NS(propagation_without_shared, 0)
{
	make_tree(0);
	CHECK_INT(mount(NULL, "/tmp/src", NULL, MS_REC | MS_SHARED, NULL), 0);
	fx_both(fx, MOUNTS(M("/a", "bind", "/tmp/src", "rbind", "rprivate", "ro"),
			   M("/b", "bind", "/tmp/src", "rbind", "rslave", "rro"),
			   M("/c", "bind", "/tmp/src", "rbind", "unbindable")));
	CHECK_HAS(fx_lines[0], "/a / ro,relatime  tmpfs");
	CHECK_HAS(fx_lines[0], "/b/sub / ro,relatime master, tmpfs");
	CHECK_HAS(fx_lines[0], "/c / rw,relatime unbindable, tmpfs");
	CHECK_HAS(fx_lines[0], "/c/sub / rw,relatime shared, tmpfs");
}

/* What is mounted on is opened again by its path. Whoever changes that meanwhile gains nothing. */
IN_NS(a_path_that_was_changed_is_refused, 0)
{
	struct lr_mount_plan *plan;
	struct oci_mounts *mounts = MOUNTS(M("/a", "tmpfs", "tmpfs"));

	REQUIRE(mkdir(ROOT "/a", 0755) == 0);
	REQUIRE(lr_mount_plan(mounts, &fx->opts, fx->arena, &plan, &fx->err) == 0);
	LR_CLEANUP_FD int below = open(ROOT "/a", O_PATH | O_CLOEXEC);
	CHECK_INT(lr_mount_dest_reopen(plan, &plan->ops[0], &fx->env, below, &fx->err), -ESTALE);
	REQUIRE(mount("tmpfs", ROOT "/a", "tmpfs", 0, NULL) == 0);
	LR_CLEANUP_FD int fd = lr_mount_dest_reopen(plan, &plan->ops[0], &fx->env, below, &fx->err);
	CHECK(fd >= 0);
}

IN_NS(files_and_sockets, 0)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX, .sun_path = "/tmp/sock"};
	struct stat st;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK_INT(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	CHECK(fx_write("/tmp/f", "text"));
	fx_both(fx, MOUNTS(M("/run/sock", "bind", "/tmp/sock", "bind"),
			   M("/etc/f", "bind", "f", "rbind", "ro", "rprivate")));
	CHECK_INT(fx_mount(fx, MOUNTS(M("/run/sock", "bind", "/tmp/sock", "bind"))), 0);
	CHECK_INT(stat(ROOT "/run/sock", &st), 0);
	CHECK(S_ISSOCK(st.st_mode));
	close(fd);
}

IN_NS(errors, 0)
{
	for (int i = 0; i < 2; i++) {
		lr_mount_no_new_api = i;
		CHECK_INT(fx_mount(fx, MOUNTS(M("/a", "bind", "/tmp", "bind"),
					      M("/b", "bind", "/no/such", "bind"))),
			  -ENOENT);
		CHECK_HAS(fx->text, "/no/such: no such file or directory");
		CHECK_HAS(fx->text, "mounts[1].source");
		CHECK(fx_write("/tmp/f", "text"));
		mkdir(ROOT "/dir", 0755);
		CHECK_INT(fx_mount(fx, MOUNTS(M("/dir", "bind", "/tmp/f", "bind"))) < 0, 1);
		CHECK_HAS(fx->text,
			  "the source is not a directory and the destination is a directory");
	}
}

IN_NS(read_only_root_lacks_the_mount_point, 0)
{
	CHECK_INT(mount(NULL, ROOT, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), 0);
	CHECK_INT(fx_mount(fx, MOUNTS(M("/a", "bind", "/tmp", "bind"))), -EROFS);
	CHECK_HAS(fx->text, "create it in the image");
	CHECK_INT(fx_mount(fx, MOUNTS(M("/a", "tmpfs", "t"))), -EROFS);
}

static void check_links(struct fx *fx)
{
	char target[64] = "";
	struct stat st;

	CHECK(fx_write("/tmp/f", "text"));
	CHECK_INT(symlink("f", "/tmp/link"), 0);
	CHECK(fx_write(ROOT "/t", "under"));
	CHECK_INT(symlink("t", ROOT "/l"), 0);

	CHECK_INT(
		fx_mount(fx, MOUNTS(M("/copied/link", "bind", "/tmp/link", "bind", "copy-symlink"),
				    M("/copied/link", "bind", "/tmp/link", "bind", "copy-symlink"),
				    M("/plain", "bind", "/tmp/f", "bind", "copy-symlink"))),
		0);
	CHECK_STR(fx->text, "");
	CHECK_INT(readlink(ROOT "/copied/link", target, sizeof(target)), 1);
	CHECK_STR(target, "f");
	CHECK_STR(fx_read(ROOT "/plain"), "text");
	CHECK_INT(fx_mount(fx, MOUNTS(M("/t", "bind", "/tmp/link", "bind", "copy-symlink"))),
		  -EEXIST);

	/* The link itself on a file, and a file on the link itself. */
	CHECK(fx_write(ROOT "/on", ""));
	CHECK_INT(fx_mount(fx, MOUNTS(M("/on", "bind", "/tmp/link", "bind", "src-nofollow"))), 0);
	CHECK_STR(fx->text, "");
	CHECK_INT(lstat(ROOT "/on", &st), 0);
	CHECK(S_ISLNK(st.st_mode));
	CHECK_INT(fx_mount(fx, MOUNTS(M("/l", "bind", "/tmp/f", "bind", "dest-nofollow"))), 0);
	CHECK_STR(fx->text, "");
	CHECK_INT(lstat(ROOT "/l", &st), 0);
	CHECK(S_ISREG(st.st_mode));
	CHECK_STR(fx_read(ROOT "/t"), "under");
	CHECK_INT(fx_mount(fx, MOUNTS(M("/t", "bind", "/tmp/link", "bind"))), 0);
	CHECK_STR(fx_read(ROOT "/t"), "text"); /* followed by default */
}

IN_NS(nofollow, 0)
{
	check_links(fx);
}

IN_NS(nofollow_mount2, 0)
{
	lr_mount_no_new_api = true;
	check_links(fx);
}

IN_NS(idmap, 0)
{
	struct stat st;
	struct oci_mount m = M("/a", "bind", "/tmp/src", "rbind", "ro");
	struct oci_id_mapping u = {0, 5000, 100}, g = {0, 6000, 100};

	make_tree(0);
	CHECK_INT(chown("/tmp/src/file", 7, 8), 0);
	m.uid_mappings = (struct oci_id_mappings){&u, 1};
	m.gid_mappings = (struct oci_id_mappings){&g, 1};
	int r = fx_mount(fx, MOUNTS(m, M("/b", "bind", "/tmp/src", "rbind",
					 "ridmap=uids=0-5000-100;gids=0-6000-100")));
	if (r == -EINVAL && kernel_before(6, 3))
		SKIP("this kernel cannot id-map tmpfs");
	CHECK_INT(r, 0);
	CHECK_STR(fx->text, "");
	CHECK_INT(stat(ROOT "/a/file", &st), 0);
	CHECK_INT(st.st_uid, 5007);
	CHECK_INT(st.st_gid, 6008);
	CHECK_INT(stat(ROOT "/a/sub/file", &st), 0);
	CHECK_INT(st.st_uid, 0); /* idmap is for the top mount */
	CHECK_INT(stat(ROOT "/b/sub/file", &st), 0);
	CHECK_INT(st.st_uid, 5000);
	CHECK_HAS(fx_line("/a"), "ro,relatime,idmapped");
	CHECK_INT(stat("/tmp/src/file", &st), 0);
	CHECK_INT(st.st_uid, 7);

	/* What cannot be mapped says so: a procfs, and no kernel interface for it. */
	CHECK_INT(fx_mount(fx, MOUNTS(M("/c", "bind", "/proc/sys", "bind",
					"idmap=uids=0-1-1;gids=0-1-1"))),
		  -EINVAL);
	CHECK_HAS(fx->text, "must support id-mapped mounts");
	lr_mount_no_new_api = true;
	CHECK_INT(fx_mount(fx, MOUNTS(m)), -ENOSYS);
	CHECK_HAS(fx->text, "5.12");
}

IN_NS(idmap_leaves_no_process, 0)
{
	mkdir("/tmp/src", 0755);
	fx_mount(fx, MOUNTS(M("/a", "bind", "/tmp/src", "bind", "idmap=uids=0-1-1;gids=0-1-1")));
	CHECK_INT(waitpid(-1, NULL, WNOHANG), -1);
	CHECK_INT(errno, ECHILD);
	CHECK_INT(fx_mount(fx, MOUNTS(M("/a", "bind", "/tmp/src", "bind",
					"idmap=uids=0-1-9#5-1-9;gids=0-1-1"))) < 0,
		  1);
	CHECK_HAS(fx->text, "uid_map");
	CHECK_INT(waitpid(-1, NULL, WNOHANG), -1);
}

/* The child sits in a user namespace and cannot reach the source: the parent prepares it. */
IN_NS(prepared_for_a_user_namespace, 0)
{
	struct lr_mount_plan *plan = NULL;
	struct oci_id_mapping map = {0, 70000, 1000};
	struct oci_id_mappings maps = {&map, 1};

	mkdir("/tmp/secret", 0700);
	mkdir("/tmp/secret/src", 0755);
	CHECK_INT(mount("src", "/tmp/secret/src", "tmpfs", 0, NULL), 0);
	CHECK(fx_write("/tmp/secret/src/file", "reached"));
	CHECK_INT(symlink("somewhere", "/tmp/secret/link"), 0);
	CHECK_INT(mount(NULL, "/tmp/secret/src", NULL, MS_SHARED, NULL), 0);
	CHECK_INT(chown(ROOT, 70000, 70000), 0);
	fx->opts.userns = true;
	fx->opts.uid_map = fx->opts.gid_map = &maps;
	CHECK_INT(lr_mount_plan(
			  MOUNTS(M("/a", "bind", "/tmp/secret/src", "rbind", "ro", "nosuid"),
				 M("/b", "bind", "/tmp/secret/src", "rbind", "rprivate", "idmap"),
				 M("/l", "bind", "/tmp/secret/link", "copy-symlink"),
				 M("/sh", "bind", "/tmp/secret/src", "rbind", "rshared")),
			  &fx->opts, fx->arena, &plan, &fx->err),
		  0);
	int r = lr_mount_prepare(plan, &fx->err);
	if (r == -EINVAL && kernel_before(6, 3))
		SKIP("this kernel cannot id-map tmpfs");
	CHECK_INT(r, 0);
	REQUIRE(fx->err.code == 0);

	int ready[2], go[2];
	REQUIRE(pipe(ready) == 0 && pipe(go) == 0);
	pid_t pid = fork();
	if (pid == 0) {
		char c;
		struct stat st;
		lr_failures = 0;
		unshare(CLONE_NEWUSER | CLONE_NEWNS);
		close(ready[1]);
		CHECK_INT(read(go[0], &c, 1), 1);
		CHECK_INT(setresgid(0, 0, 0) | setresuid(0, 0, 0), 0);
		fx->env.rootfd = open(ROOT, O_PATH | O_DIRECTORY | O_CLOEXEC);
		CHECK_INT(access("/tmp/secret/src", F_OK), -1);
		CHECK_INT(lr_mount_apply(plan, &fx->env, &fx->err), 0);
		CHECK_STR(fx->err.msg, "");
		CHECK_STR(fx_read(ROOT "/a/file"), "reached");
		CHECK_INT(stat(ROOT "/a/file", &st), 0);
		CHECK_INT(st.st_uid, 65534);
		CHECK_INT(stat(ROOT "/b/file", &st), 0);
		CHECK_INT(st.st_uid, 0);
		CHECK_HAS(fx_line("/a"), "/a / ro,nosuid,relatime master, tmpfs");
		CHECK_HAS(fx_line("/sh"), "/sh / rw,relatime shared,master, tmpfs");
		CHECK_INT(lstat(ROOT "/l", &st), 0);
		fflush(NULL);
		_exit(lr_failures ? 1 : 0);
	}
	char c, path[64];
	close(ready[1]);
	CHECK_INT(read(ready[0], &c, 1), 0);
	snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)pid);
	CHECK(fx_write(path, "0 70000 1000"));
	snprintf(path, sizeof(path), "/proc/%d/gid_map", (int)pid);
	CHECK(fx_write(path, "0 70000 1000"));
	CHECK_INT(write(go[1], "x", 1), 1);
	int status = -1;
	waitpid(pid, &status, 0);
	CHECK_INT(status, 0);
	lr_mount_release(plan);
}

IN_NS(prepare_costs_nothing_when_nothing_needs_it, 0)
{
	struct lr_mount_plan *plan = NULL;
	CHECK_INT(lr_mount_plan(MOUNTS(M("/a", "bind", "/no/such", "rbind")), &fx->opts, fx->arena,
				&plan, &fx->err),
		  0);
	CHECK_INT(lr_mount_prepare(plan, &fx->err), 0); /* else it would miss the source */
	fx->opts.userns = true;
	CHECK_INT(lr_mount_plan(MOUNTS(M("/a", "bind", "/no/such", "rbind")), &fx->opts, fx->arena,
				&plan, &fx->err),
		  0);
	CHECK_INT(lr_mount_prepare(plan, &fx->err), -ENOENT);
	CHECK_STR(fx->err.path, "mounts[0].source");
}

/* Flags that a less privileged mounter may not clear. */
IN_NS(locked_flags, 0)
{
	make_tree(MS_NOSUID | MS_NODEV | MS_RDONLY);
	become_userns_root();
	fx->env.rootfd = open(ROOT, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 2; i++) {
		lr_mount_no_new_api = i;
		lr_log_set_sink(NULL, NULL);
		CHECK_INT(
			fx_mount(fx, MOUNTS(M("/a", "bind", "/tmp/src", "rbind", "noexec"),
					    M("/b", "bind", "/tmp/src", "rbind", "rw", "noexec"))),
			0);
		CHECK_STR(fx->text, "");
		CHECK_HAS(fx_line("/a"), "/a / ro,nosuid,nodev,noexec,relatime");
		CHECK_HAS(fx_line("/b"), "/b / ro,nosuid,nodev,noexec,relatime");
		CHECK_INT(fx_mount(fx, MOUNTS(M("/c", "bind", "/tmp/src", "rbind", "suid"))),
			  -EPERM);
		CHECK_HAS(fx->text, "cannot be cleared");
		CHECK_HAS(fx->text, "mounts[0].options");
		CHECK_INT(fx_mount(fx, MOUNTS(M("/c", "bind", "/tmp/src", "bind"))), -EINVAL);
		CHECK_HAS(fx->text, i ? "bind" : "use \"rbind\"");
	}
}

#define MIXED                                                                                      \
	MOUNTS(M("/dev", "tmpfs", "tmpfs", "nosuid", "ro", "mode=755"),                            \
	       M("/dev/shm", "tmpfs", "shm", "noexec", "rslave"),                                  \
	       M("/b", "bind", "/tmp/src", "rbind", "rro", "rprivate", "nosuid"),                  \
	       M("/c", "bind", "/tmp/src", "bind", "ro", "noatime", "unbindable"),                 \
	       M("/c", "", "", "bind", "remount", "nodev"), M("/proc", "proc", "proc", "ro"),      \
	       M("/sys/fs/cgroup", "cgroup", "cgroup", "ro"))

IN_NS(any_call_may_be_refused, 0)
{
	static const struct {
		const char *name;
		int nr;
	} calls[] = {
		{"fsopen", SYS_fsopen},
		{"fsmount", SYS_fsmount},
		{"move_mount", SYS_move_mount},
		{"open_tree", SYS_open_tree},
		{"mount_setattr", SYS_mount_setattr},
		{"openat2", SYS_openat2},
	};
	static const int codes[] = {EPERM, ENOSYS};
	static struct lr_mount_cgroup memory = {"memory", "/tmp/cg", "/sys/fs/cgroup/memory"};
	static const struct lr_mount_cgroup_view view = {.n = 1, .v = &memory};
	char *seen = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	REQUIRE(seen != MAP_FAILED);
	make_tree(0);
	CHECK_INT(mount(NULL, "/tmp/src", NULL, MS_REC | MS_SHARED, NULL), 0);
	mkdir("/tmp/cg", 0755);
	fx->env.cgroup = &view;
	fx_both(fx, MIXED);
	for (size_t i = 0; i < LR_ARRAY_SIZE(calls) * 2; i++) {
		int status = -1;

		fflush(NULL);
		memset(seen, 0, 65536);
		pid_t pid = fork();
		if (pid == 0) {
			lr_failures = 0;
			deny(calls[i / 2].nr, codes[i % 2]);
			CHECK_INT(fx_mount(fx, MIXED), 0);
			CHECK_STR(fx->text, "");
			fx_mountinfo(seen, 65536);
			fx_new_root(fx);
			fflush(NULL);
			_exit(lr_failures > 0);
		}
		CHECK_INT(waitpid(pid, &status, 0), pid);
		CHECK_INT(status, 0);
		CHECK_STR(seen, fx_lines[0]);
		if (status != 0 || strcmp(seen, fx_lines[0]) != 0)
			printf("# ... when %s says %s\n", calls[i / 2].name,
			       strerror(codes[i % 2]));
		lr_close(fx->env.rootfd);
		fx->env.rootfd = open(ROOT, O_PATH | O_DIRECTORY | O_CLOEXEC);
	}
}
