/* SPDX-License-Identifier: Apache-2.0 */
/* New file systems, in a mount namespace of the test's own; by both mount interfaces. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "src/mount/internal.h"
#include "src/sys/path.h"
#include "src/sys/syscalls.h"
#include "tests/unit/mount/fixture.h"

#define DEFAULTS                                                                                   \
	M("/proc", "proc", "proc"),                                                                \
		M("/dev", "tmpfs", "tmpfs", "nosuid", "strictatime", "mode=755", "size=65536k"),   \
		M("/dev/pts", "devpts", "devpts", "nosuid", "noexec", "newinstance",               \
		  "ptmxmode=0666", "mode=0620", "gid=5"),                                          \
		M("/dev/shm", "tmpfs", "shm", "nosuid", "noexec", "nodev", "mode=1777",            \
		  "size=65536k"),                                                                  \
		M("/dev/mqueue", "mqueue", "mqueue", "nosuid", "noexec", "nodev"),                 \
		M("/sys", "sysfs", "sysfs", "nosuid", "noexec", "nodev", "ro")

IN_NS(default_mounts, CLONE_NEWIPC)
{
	CHECK_INT(fx_mount(fx, MOUNTS(DEFAULTS)), 0);
	CHECK_STR(fx->text, "");
	CHECK_STR(fx_line("/proc"), "/proc / rw,relatime  proc proc rw");
	CHECK_HAS(fx_line("/dev"), "/dev / rw,nosuid  tmpfs tmpfs rw,size=65536k,mode=755");
	CHECK_HAS(fx_line("/dev/pts"), "/dev/pts / rw,nosuid,noexec,relatime  devpts devpts "
				       "rw,gid=5,mode=620,ptmxmode=666");
	CHECK_HAS(fx_line("/dev/shm"), "/dev/shm / rw,nosuid,nodev,noexec,relatime  tmpfs shm");
	CHECK_STR(fx_line("/dev/mqueue"),
		  "/dev/mqueue / rw,nosuid,nodev,noexec,relatime  mqueue mqueue rw");
	CHECK_HAS(fx_line("/sys"), "/sys / ro,nosuid,nodev,noexec,relatime  sysfs sysfs r");
}

IN_NS(default_mounts_both_ways, CLONE_NEWIPC)
{
	fx_both(fx, MOUNTS(DEFAULTS));
}

IN_NS(flags_both_ways, CLONE_NEWIPC)
{
	fx_both(fx, MOUNTS(M("/a", "tmpfs", "tmpfs", "ro", "nosuid", "noatime"),
			   M("/b", "tmpfs", "tmpfs", "sync", "dirsync", "nodiratime", "mand"),
			   M("/c", "tmpfs", "tmpfs", "lazytime", "nosymfollow", "noexec", "nodev"),
			   M("/d", "tmpfs", "tmpfs", "strictatime", "shared"),
			   M("/d/e", "tmpfs", "tmpfs", "rslave", "silent"),
			   M("/f", "tmpfs", "tmpfs", "unbindable", "size=1m,nr_inodes=100"),
			   M("/g", "tmpfs", "tmpfs", "rro", "rnosuid", "rrelatime"),
			   M("/h", "proc", "proc", "ro", "hidepid=invisible"),
			   M("/i", "tmpfs", NULL, "mode=700", "uid=3", "gid=4")));
	CHECK_HAS(fx_lines[0], "/a / ro,nosuid,noatime  tmpfs tmpfs rw");
	CHECK_HAS(fx_lines[0], "/c / rw,nodev,noexec,relatime,nosymfollow");
	CHECK_HAS(fx_lines[0], "/d / rw shared, tmpfs");
	CHECK_HAS(fx_lines[0], "/f / rw,relatime unbindable, tmpfs");
	CHECK_HAS(fx_lines[0], "/g / ro,nosuid,relatime");
	CHECK_HAS(fx_lines[0], "/h / ro,relatime  proc proc ro,hidepid=invisible");
}

/* The root may have been put over "/", where paths lead to the host's mounts that it covers. */
IN_NS(attributes_below_a_root_over_the_hosts, 0)
{
	struct lr_mount_change ro = {.set = MOUNT_ATTR_RDONLY, .rec = true};

	CHECK_INT(mkdir(ROOT "/sub", 0755), 0);
	CHECK_INT(mkdir(ROOT "/tmp", 0755), 0); /* a mount of the host's, no mount here */
	CHECK_INT(mount("sub", ROOT "/sub", "tmpfs", 0, NULL), 0);
	LR_CLEANUP_FD int tree =
		lr_open_tree(AT_FDCWD, ROOT, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	REQUIRE(tree >= 0);
	REQUIRE(lr_move_mount(tree, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) == 0);
	CHECK_INT(lr_mount_legacy_recursive(&fx->env, tree, &ro), 0);
	errno = 0;
	CHECK(mkdirat(tree, "x", 0755) < 0 && errno == EROFS);
	errno = 0;
	CHECK(mkdirat(tree, "sub/x", 0755) < 0 && errno == EROFS);
	CHECK_INT(mkdir("/tmp/writable", 0755), 0);
}

IN_NS(without_private_procfs, 0)
{
	fx->env.procfd = lr_close(fx->env.procfd);
	lr_mount_no_new_api = true;
	CHECK_INT(fx_mount(fx, MOUNTS(M("/a", "tmpfs", "tmpfs", "ro"))), 0);
	CHECK_HAS(fx_line("/a"), "/a / ro,relatime");
}

static void check_tmpfs_mode(struct fx *fx)
{
	struct stat st;

	mkdir(ROOT "/old", 0710);
	chmod(ROOT "/old", 01710);
	CHECK_INT(fx_mount(fx, MOUNTS(M("/old", "tmpfs", "t"), M("/new", "tmpfs", "t"),
				      M("/deep/er", "tmpfs", "t", "mode=751"))),
		  0);
	CHECK(stat(ROOT "/old", &st) == 0 && (st.st_mode & 07777) == 01710);
	CHECK(stat(ROOT "/new", &st) == 0 && (st.st_mode & 07777) == 01777);
	CHECK(stat(ROOT "/deep/er", &st) == 0 && (st.st_mode & 07777) == 0751);
}

IN_NS(tmpfs_takes_the_mode_below, 0)
{
	check_tmpfs_mode(fx);
}

IN_NS(tmpfs_takes_the_mode_below_mount2, 0)
{
	lr_mount_no_new_api = true;
	check_tmpfs_mode(fx);
}

static void check_copyup(struct fx *fx)
{
	struct stat st, from;
	char target[16] = "";

	mkdir(ROOT "/var", 0755);
	mkdir(ROOT "/var/sub", 02750);
	chmod(ROOT "/var/sub", 02750);
	CHECK(fx_write(ROOT "/var/sub/file", "hello"));
	CHECK_INT(chown(ROOT "/var/sub/file", 12, 34), 0);
	CHECK_INT(chmod(ROOT "/var/sub/file", 04751), 0);
	CHECK_INT(utimensat(AT_FDCWD, ROOT "/var/sub/file",
			    (struct timespec[]){{1000, 1}, {2000, 2}}, 0),
		  0);
	CHECK_INT(symlink("sub/file", ROOT "/var/link"), 0);
	CHECK_INT(mknod(ROOT "/var/null", S_IFCHR | 0640, makedev(1, 3)), 0);
	CHECK_INT(mkfifo(ROOT "/var/fifo", 0604), 0);
	CHECK_INT(mkdir(ROOT "/var/mnt", 0700), 0);
	CHECK_INT(mount("m", ROOT "/var/mnt", "tmpfs", 0, NULL), 0);
	CHECK(fx_write(ROOT "/var/mnt/not-copied", "x"));
	CHECK_INT(chown(ROOT "/var", 77, 88), 0);
	CHECK_INT(chmod(ROOT "/var", 0711), 0);
	int fd = open(ROOT "/var/big", O_WRONLY | O_CREAT, 0600);
	for (int i = 0; i < 300; i++)
		CHECK_INT(write(fd, target, sizeof(target)), sizeof(target));
	CHECK_INT(ftruncate(fd, 3 << 20), 0);
	close(fd);
	utimensat(AT_FDCWD, ROOT "/var/sub", (struct timespec[]){{3000, 0}, {4000, 0}}, 0);

	CHECK_INT(fx_mount(fx, MOUNTS(M("/var", "tmpfs", "tmpfs", "tmpcopyup", "ro"))), 0);
	CHECK_STR(fx->text, "");
	CHECK_HAS(fx_line("/var"), "/var / ro,");
	CHECK_STR(fx_read(ROOT "/var/sub/file"), "hello");
	CHECK_INT(stat(ROOT "/var/sub/file", &st), 0);
	CHECK_INT(st.st_mode, S_IFREG | 04751);
	CHECK_INT(st.st_uid, 12);
	CHECK_INT(st.st_gid, 34);
	CHECK_INT(st.st_mtim.tv_sec, 2000);
	CHECK_INT(st.st_mtim.tv_nsec, 2);
	CHECK_INT(stat(ROOT "/var/sub", &st), 0);
	CHECK_INT(st.st_mode, S_IFDIR | 02750);
	CHECK_INT(st.st_mtim.tv_sec, 4000);
	CHECK_INT(readlink(ROOT "/var/link", target, sizeof(target)), 8);
	CHECK_INT(stat(ROOT "/var/null", &st), 0);
	CHECK_INT(st.st_mode, S_IFCHR | 0640);
	CHECK_INT(st.st_rdev, makedev(1, 3));
	CHECK_INT(stat(ROOT "/var/fifo", &st), 0);
	CHECK_INT(st.st_mode, S_IFIFO | 0604);
	CHECK_INT(stat(ROOT "/var/mnt", &st), 0);
	CHECK_INT(access(ROOT "/var/mnt/not-copied", F_OK), -1);
	CHECK_INT(stat(ROOT "/var/big", &st), 0);
	CHECK_INT(st.st_size, 3 << 20);
	CHECK_INT(stat(ROOT "/var", &from), 0);
	CHECK_INT(from.st_mode, S_IFDIR | 0711);
	CHECK_INT(from.st_uid, 77);
	CHECK_INT(from.st_gid, 88);
}

IN_NS(tmpcopyup, 0)
{
	check_copyup(fx);
}

IN_NS(tmpcopyup_mount2, 0)
{
	lr_mount_no_new_api = true;
	check_copyup(fx);
}

/* The copy of a file of nobody's, as a user namespace sees it, is its root's. */
IN_NS(tmpcopyup_lends_nobody_the_root_of_a_user_namespace, 0)
{
	struct lr_err err = {0};
	struct stat st;

	(void)fx;
	mkdir(ROOT "/from", 0755);
	mkdir(ROOT "/to", 0755);
	for (const char *const *f = (const char *const[]){"theirs", "ours", NULL}; *f; f++) {
		char path[64];
		snprintf(path, sizeof(path), ROOT "/from/%s", *f);
		CHECK(fx_write(path, "x"));
		CHECK_INT(chown(path, **f == 't' ? 1234 : 0, 0), 0);
		CHECK_INT(chmod(path, 06755), 0);
	}
	become_userns_root();
	int from = open(ROOT "/from", O_RDONLY), to = open(ROOT "/to", O_RDONLY);
	CHECK_INT(lr_mount_copyup(from, to, &err), 0);
	CHECK_INT(stat(ROOT "/to/theirs", &st), 0);
	CHECK_INT(st.st_mode, S_IFREG | 0755);
	CHECK_INT(stat(ROOT "/to/ours", &st), 0);
	CHECK_INT(st.st_mode, S_IFREG | 06755);
	close(from);
	close(to);
}

/* Stops before each file is opened to be read, for whoever traces us. */
static void copy_traced(int from, int to)
{
	const unsigned other = O_CREAT | O_DIRECTORY;
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, other, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog prog = {LR_ARRAY_SIZE(code), code};

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 || raise(SIGSTOP) != 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) < 0)
		_exit(2);
	_exit(lr_mount_copyup(from, to, NULL) < 0);
}

/* Between the look at a file and its opening another one is put in its place. */
IN_NS(tmpcopyup_gives_a_file_no_other_ones_bits, 0)
{
	int status, exchanges = 0;
	struct stat st;

	(void)fx;
	mkdir(ROOT "/from", 0755);
	mkdir(ROOT "/to", 0755);
	CHECK(fx_write(ROOT "/from/file", "root's"));
	CHECK_INT(chmod(ROOT "/from/file", 06755), 0);
	CHECK(fx_write(ROOT "/other", "a user's"));
	CHECK_INT(chown(ROOT "/other", 1234, 1234), 0);
	CHECK_INT(chmod(ROOT "/other", 0755), 0);
	int from = open(ROOT "/from", O_RDONLY), to = open(ROOT "/to", O_RDONLY);
	pid_t pid = fork();
	if (pid == 0)
		copy_traced(from, to);
	close(from);
	close(to);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFSTOPPED(status));
	CHECK_INT(ptrace(PTRACE_SETOPTIONS, pid, NULL,
			 (void *)(PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL)),
		  0);
	while (ptrace(PTRACE_CONT, pid, NULL, NULL) == 0 && waitpid(pid, &status, 0) == pid &&
	       WIFSTOPPED(status))
		exchanges += rename(ROOT "/other", ROOT "/from/file") == 0;
	CHECK(WIFEXITED(status));
	CHECK_INT(WEXITSTATUS(status), 0);
	CHECK_INT(exchanges, 1);
	CHECK_INT(stat(ROOT "/to/file", &st), 0);
	CHECK_INT(st.st_mode, S_IFREG | 0755);
	CHECK_INT(st.st_uid, 1234);
}

IN_NS(tmpcopyup_too_small, 0)
{
	mkdir(ROOT "/var", 0755);
	int fd = open(ROOT "/var/big", O_WRONLY | O_CREAT, 0600);
	CHECK_INT(ftruncate(fd, 3 << 20), 0);
	close(fd);
	CHECK_INT(fx_mount(fx, MOUNTS(M("/var", "tmpfs", "t", "tmpcopyup", "size=64k"))), -ENOSPC);
	CHECK_HAS(fx->text, "raise \"size\"");
	CHECK_STR(fx_line("/var"), "");
}

#define DEEP 150

/* What a thread of a program may have, and no more. */
#define SMALL (64 << 10)

static void *copy_up(void *arg)
{
	int *fds = arg;
	struct lr_err err = {0};

	return (void *)(intptr_t)lr_mount_copyup(fds[0], fds[1], &err);
}

/* The way back up has the entries that were read ahead, and the times. */
IN_NS(tmpcopyup_of_deep_directories_on_a_small_stack, 0)
{
	char from[DEEP * 2 + 32] = ROOT "/from", to[DEEP * 2 + 32] = ROOT "/to", file[400];
	pthread_attr_t small;
	pthread_t thread;
	struct stat st;
	void *r;

	(void)fx;
	mkdir(from, 0755);
	mkdir(to, 0755);
	int fds[] = {open(from, O_RDONLY), open(to, O_RDONLY)};
	for (int i = 0; i < DEEP; i++) {
		for (int k = 0; k < 3; k++) {
			snprintf(file, sizeof(file), "%s/%c-file", from, "AeZ"[k]);
			CHECK(fx_write(file, "x"));
		}
		strcat(from, "/d");
		strcat(to, "/d");
		CHECK_INT(mkdir(from, 0700 + i % 8), 0);
	}
	CHECK_INT(utimensat(AT_FDCWD, ROOT "/from/d", (struct timespec[]){{3000, 0}, {4000, 0}}, 0),
		  0);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, SMALL);
	CHECK_INT(pthread_create(&thread, &small, copy_up, fds), 0);
	pthread_join(thread, &r);
	CHECK_INT((intptr_t)r, 0);
	CHECK_INT(stat(to, &st), 0);
	CHECK_INT(st.st_mode, S_IFDIR | (0700 + (DEEP - 1) % 8));
	for (int i = DEEP; i > 0; i--) {
		*strrchr(to, '/') = '\0';
		for (int k = 0; k < 3; k++) {
			snprintf(file, sizeof(file), "%s/%c-file", to, "AeZ"[k]);
			CHECK_STR(fx_read(file), "x");
		}
	}
	CHECK_INT(stat(ROOT "/to/d", &st), 0);
	CHECK_INT(st.st_mtim.tv_sec, 4000);
}

IN_NS(tmpcopyup_without_end, 0)
{
	char path[600] = ROOT "/var";

	mkdir(path, 0755);
	for (int i = 0; i < 250; i++) {
		strcat(path, "/d");
		CHECK_INT(mkdir(path, 0700), 0);
	}
	CHECK_INT(fx_mount(fx, MOUNTS(M("/var", "tmpfs", "t", "tmpcopyup"))), -ENAMETOOLONG);
}

IN_NS(errors_say_what_the_kernel_said, 0)
{
	CHECK_INT(
		fx_mount(fx, MOUNTS(M("/ok", "tmpfs", "t"), M("/a", "tmpfs", "t", "size=banana"))),
		-EINVAL);
	CHECK_HAS(fx->text, "size");
	CHECK_HAS(fx->text, "mounts[1]");
	CHECK_INT(fx_mount(fx, MOUNTS(M("/a", "tmpfs", "t", "nonsense=1"))), -EINVAL);
	CHECK_HAS(fx->text, "nonsense");
	CHECK_INT(fx_mount(fx, MOUNTS(M("/a", "nosuchfs", "t"))), -ENODEV);
	CHECK_HAS(fx->text, "nosuchfs");
	CHECK(fx_write(ROOT "/file", ""));
	CHECK_INT(fx_mount(fx, MOUNTS(M("/file", "tmpfs", "t"))), -ENOTDIR);
	CHECK_INT(fx_mount(fx, MOUNTS(M("/file/below", "tmpfs", "t"))), -ENOTDIR);
	CHECK_STR(fx_line("/a"), "");
}

/* What a hostile image could prepare. */
static void check_links(struct fx *fx)
{
	CHECK_INT(symlink("/etc", ROOT "/proc"), 0);
	CHECK_INT(symlink("etc", ROOT "/sys"), 0);
	mkdir(ROOT "/etc", 0755);
	CHECK_INT(fx_mount(fx, MOUNTS(M("/proc", "proc", "proc"))), -ELOOP);
	CHECK_HAS(fx->text, "symbolic link");
	CHECK_HAS(fx->text, "mounts[0].destination");
	CHECK_INT(fx_mount(fx, MOUNTS(M("/sys", "sysfs", "sysfs"))), -ELOOP);
	CHECK_INT(fx_mount(fx, MOUNTS(M("/sys/fs/x", "tmpfs", "t"))), -ELOOP);
	CHECK_INT(fx_mount(fx, MOUNTS(M("/sys", "bind", "/tmp", "bind"))), -ELOOP);
	CHECK_STR(fx_line("/etc"), "");
	unlink(ROOT "/proc");

	/* Out of the root: resolved inside. */
	mkdir("/tmp/outside", 0755);
	CHECK_INT(symlink("/tmp/outside", ROOT "/a"), 0);
	CHECK_INT(symlink("../../../../../../tmp/outside", ROOT "/b"), 0);
	mkdir(ROOT "/tmp", 0755);
	mkdir(ROOT "/tmp/outside", 0755);
	CHECK_INT(fx_mount(fx, MOUNTS(M("/a", "tmpfs", "t"), M("/b/sub", "tmpfs", "t"))), 0);
	CHECK_STR(fx->text, "");
	CHECK_HAS(fx_line("/tmp/outside"), "tmpfs");
	CHECK_HAS(fx_line("/tmp/outside/sub"), "tmpfs");
	CHECK_INT(access("/tmp/outside/sub", F_OK), -1);

	/* A link to what is not there yet: made, inside. */
	CHECK_INT(symlink("/run/deep", ROOT "/var"), 0);
	CHECK_INT(symlink("../run2", ROOT "/etc/up"), 0);
	CHECK_INT(symlink("loop", ROOT "/loop"), 0);
	CHECK_INT(fx_mount(fx, MOUNTS(M("/var/run/x", "tmpfs", "t"), M("/etc/up", "tmpfs", "t"))),
		  0);
	CHECK_STR(fx->text, "");
	CHECK_HAS(fx_line("/run/deep/run/x"), "tmpfs");
	CHECK_HAS(fx_line("/run2"), "tmpfs");
	CHECK_INT(symlink("../new/file", ROOT "/etc/conf"), 0);
	CHECK(fx_write("/tmp/f", "text"));
	CHECK_INT(fx_mount(fx, MOUNTS(M("/etc/conf", "bind", "/tmp/f", "bind"))), 0);
	CHECK_STR(fx->text, "");
	CHECK_STR(fx_read(ROOT "/new/file"), "text");
	CHECK(fx_mount(fx, MOUNTS(M("/loop/x", "tmpfs", "t"))) < 0);

	/* The root itself, and a procfs by another name. */
	CHECK_INT(symlink("/", ROOT "/self"), 0);
	CHECK_INT(fx_mount(fx, MOUNTS(M("/self", "tmpfs", "t"))), -EPERM);
	CHECK_HAS(fx->text, "root of the container");
	mkdir(ROOT "/proc", 0755);
	CHECK_INT(symlink("/proc", ROOT "/p"), 0);
	CHECK_INT(fx_mount(fx, MOUNTS(M("/p", "tmpfs", "t"))), -EPERM);
	CHECK_INT(fx_mount(fx, MOUNTS(M("/proc", "proc", "proc"), M("/p/sys", "tmpfs", "t"))),
		  -EPERM);
	CHECK_HAS(fx->text, "procfs");
	CHECK_INT(symlink("/proc/self", ROOT "/me"), 0);
	CHECK_INT(fx_mount(fx, MOUNTS(M("/me/attr", "bind", "/tmp", "bind"))), -EPERM);
	CHECK_INT(fx_mount(fx, MOUNTS(M("/me/root", "bind", "/tmp", "bind"))) < 0, 1);
}

IN_NS(links, 0)
{
	check_links(fx);
}

IN_NS(links_mount2, 0)
{
	lr_mount_no_new_api = true;
	check_links(fx);
}

IN_NS(links_without_openat2, 0)
{
	lr_path_no_openat2 = true;
	check_links(fx);
}

/* A link in a tmpfs of ours: by its own text it would lead to the host. */
IN_NS(link_in_a_new_tmpfs, 0)
{
	struct stat before, after;

	CHECK_INT(symlink("/etc", "/tmp/link"), 0);
	CHECK_INT(stat("/etc", &before), 0);
	CHECK_INT(fx_mount(fx, MOUNTS(M("/new", "tmpfs", "one", "mode=755"),
				      M("/new/a", "bind", "/tmp/link", "bind", "copy-symlink"),
				      M("/new/b", "tmpfs", "two", "mode=755"),
				      M("/new/a", "tmpfs", "three", "mode=755"),
				      M("/new/c", "tmpfs", "four", "mode=755"))),
		  0);
	CHECK_STR(fx->text, "");
	CHECK_HAS(fx_line("/new/b"), "two");
	CHECK_HAS(fx_line("/etc"), "three");
	CHECK_HAS(fx_line("/new/c"), "four");
	CHECK_INT(stat("/etc", &after), 0);
	CHECK_INT(after.st_dev, before.st_dev);
}

IN_NS(covered_parent_is_not_used, 0)
{
	/* /x is a link to /dev: the tmpfs there hides the one that "/dev" stood for. */
	CHECK_INT(symlink("dev", ROOT "/x"), 0);
	CHECK_INT(fx_mount(fx, MOUNTS(M("/dev", "tmpfs", "one"), M("/x", "tmpfs", "two"),
				      M("/dev/shm", "tmpfs", "three"))),
		  0);
	struct stat st;
	CHECK_INT(stat(ROOT "/dev/shm", &st), 0);
	CHECK_HAS(fx_line("/dev"), "two");
	CHECK_HAS(fx_line("/dev/shm"), "three");
}

IN_NS(allowed_file_in_proc, 0)
{
	CHECK(fx_write("/tmp/meminfo", "fake\n"));
	CHECK_INT(fx_mount(fx, MOUNTS(M("/proc", "proc", "proc"),
				      M("/proc/meminfo", "bind", "/tmp/meminfo", "bind", "ro"),
				      M("/proc/net/dev", "bind", "meminfo", "bind"))),
		  0);
	CHECK_STR(fx->text, "");
	CHECK_STR(fx_read(ROOT "/proc/meminfo"), "fake\n");
	/* The kernel drops what covers /proc/net/dev when it looks the name up again. */
}

IN_NS(proc_may_only_be_bound_from_a_procfs, 0)
{
	mkdir("/tmp/forged", 0755);
	CHECK_INT(fx_mount(fx, MOUNTS(M("/proc", "bind", "/tmp/forged", "bind"))), -EPERM);
	CHECK_HAS(fx->text, "not the root of a procfs");
	CHECK_INT(fx_mount(fx, MOUNTS(M("/proc", "bind", "/proc/1", "rbind"))), -EPERM);
	CHECK_INT(fx_mount(fx, MOUNTS(M("/proc", "bind", "/proc", "rbind"))), 0);
	CHECK_INT(access(ROOT "/proc/self/status", F_OK), 0);
}

IN_NS(remount_of_what_is_there, 0)
{
	fx_both(fx,
		MOUNTS(M("/a", "tmpfs", "t", "nosuid"),
		       M("/a", "", "", "bind", "remount", "ro", "noexec"), M("/b", "tmpfs", "t"),
		       M("/b", "tmpfs", "t", "remount", "size=128k", "nodev"),
		       M("/c", "tmpfs", "t"), M("/c", NULL, NULL, "rshared")));
	CHECK_HAS(fx_lines[0], "/a / ro,nosuid,noexec,relatime");
	CHECK_HAS(fx_lines[0], "/b / rw,nodev,relatime  tmpfs t rw,size=128k");
	CHECK_HAS(fx_lines[0], "/c / rw,relatime shared,");
	mkdir(ROOT "/plain", 0755);
	CHECK_INT(fx_mount(fx, MOUNTS(M("/plain", "", "", "bind", "remount", "ro"))), -EINVAL);
	CHECK_HAS(fx->text, "mount point");
	CHECK_INT(fx_mount(fx, MOUNTS(M("/none", "", "", "bind", "remount", "ro"))), -ENOENT);
}

static bool has_new_dev(struct fx *fx, const struct oci_mounts *mounts)
{
	struct lr_mount_plan *plan = NULL;
	struct stat a, b;

	CHECK_INT(lr_mount_plan(mounts, &fx->opts, fx->arena, &plan, &fx->err), 0);
	CHECK_INT(lr_mount_apply(plan, &fx->env, &fx->err), 0);
	int fd = lr_mount_new_tmpfs(plan, &fx->env, "/dev");
	if (fd >= 0)
		CHECK(fstat(fd, &a) == 0 && stat(ROOT "/dev", &b) == 0 && a.st_dev == b.st_dev);
	lr_mount_release(plan);
	fx_new_root(fx);
	return fd >= 0;
}

IN_NS(new_tmpfs_is_known, 0)
{
#define DEV(...) M("/dev", "tmpfs", "t", __VA_ARGS__)
#define SHM      M("/dev/shm", "tmpfs", "t", "mode=1777")
	CHECK(has_new_dev(fx, MOUNTS(DEV("mode=755"), SHM)));
	CHECK(has_new_dev(fx, MOUNTS(DEV("mode=755", "ro"))));
	CHECK(!has_new_dev(fx, MOUNTS(DEV("mode=02755"), SHM)));
	CHECK(!has_new_dev(fx, MOUNTS(DEV("nosuid"), SHM))); /* that of the directory */
	CHECK(!has_new_dev(fx, MOUNTS(DEV("mode=755", "tmpcopyup"), SHM)));
	CHECK(!has_new_dev(fx, MOUNTS(DEV("mode=755", "shared"), SHM)));
	CHECK(!has_new_dev(fx, MOUNTS(DEV("mode=755"), SHM, M("/dev", "bind", "/tmp", "bind"))));
	CHECK(!has_new_dev(fx, MOUNTS(SHM)));
	fx->opts.rootfs_propagation = "slave";
	CHECK(!has_new_dev(fx, MOUNTS(DEV("mode=755"), SHM)));
	fx->opts.rootfs_propagation = "rslave";
	CHECK(has_new_dev(fx, MOUNTS(DEV("mode=755"), SHM)));
	fx->env.alone = false;
	CHECK(!has_new_dev(fx, MOUNTS(DEV("mode=755"), SHM)));
	fx->env.alone = true;
	mkdir(ROOT "/dev", 0755);
	CHECK_INT(symlink("dev", ROOT "/x"), 0);
	CHECK(!has_new_dev(fx, MOUNTS(DEV("mode=755"), SHM, M("/x", "tmpfs", "t"))));
}

IN_NS(dev_is_read_only_only_at_the_end, 0)
{
	struct lr_mount_plan *plan = NULL;
	CHECK_INT(lr_mount_plan(MOUNTS(M("/dev", "tmpfs", "t", "ro"), M("/dev/shm", "tmpfs", "s")),
				&fx->opts, fx->arena, &plan, &fx->err),
		  0);
	CHECK_INT(lr_mount_apply(plan, &fx->env, &fx->err), 0);
	CHECK(fx_write(ROOT "/dev/null", ""));
	CHECK_INT(lr_mount_finish(plan, &fx->env, &fx->err), 0);
	CHECK(!fx_write(ROOT "/dev/zero", ""));
	CHECK(fx_write(ROOT "/dev/shm/x", ""));
	lr_mount_release(plan);
	lr_mount_release(plan);
	lr_mount_release(NULL);
}

static int open_fds(int first)
{
	int n = 0;
	for (int fd = first; fd < 200; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

IN_NS(no_descriptor_is_left, CLONE_NEWIPC)
{
	/* Low ones may be: the process is to end soon. */
	while (dup(fx->env.rootfd) < LR_FD_LATE)
		;
	int before = open_fds(LR_FD_LATE);
	for (int i = 0; i < 3; i++) {
		lr_mount_no_new_api = i == 1;
		lr_mount_no_direct = i == 2;
		CHECK_INT(fx_mount(fx, MOUNTS(DEFAULTS, M("/t", "tmpfs", "t", "tmpcopyup"),
					      M("/b", "bind", "/tmp", "rbind", "ro"))),
			  0);
		CHECK_STR(fx->text, "");
		CHECK(fx_mount(fx, MOUNTS(M("/b", "bind", "/none", "rbind", "ro"))) < 0);
		CHECK(fx_mount(fx, MOUNTS(M("/b", "tmpfs", "t", "wrong"))) < 0);
		fx_new_root(fx);
	}
	CHECK_INT(open_fds(LR_FD_LATE), before);
}

/* ---- cgroup ---------------------------------------------------------------------------------- */

static struct lr_mount_cgroup v1[] = {
	{"cpu,cpuacct", "/tmp/cg/cpu,cpuacct/me", "/tmp/cg/cpu,cpuacct"},
	{"memory", "/tmp/cg/memory/me", "/tmp/cg/memory"},
	{"name=systemd", "/tmp/cg/systemd/me", "/tmp/cg/systemd"},
	{"", "/tmp/cg/unified/me", "/tmp/cg/unified"},
};

static void make_v1(void)
{
	mkdir("/tmp/cg", 0755);
	for (size_t i = 0; i < 4; i++) {
		char file[128];
		mkdir(v1[i].mountpoint, 0755);
		mkdir(v1[i].host_dir, 0755);
		snprintf(file, sizeof(file), "%s/cgroup.procs", v1[i].host_dir);
		CHECK(fx_write(file, "mine"));
	}
}

static void check_v1(struct fx *fx)
{
	static const struct lr_mount_cgroup_view view = {.n = 4, .v = v1};
	char target[32] = "";

	make_v1();
	fx->env.cgroup = &view;
	fx_both(fx, MOUNTS(M("/sys/fs/cgroup", "cgroup", "cgroup", "nosuid", "noexec", "nodev",
			     "relatime", "ro")));
	CHECK_HAS(fx_lines[0],
		  "/sys/fs/cgroup / ro,nosuid,nodev,noexec,relatime  tmpfs tmpfs rw,mode=755");
	CHECK_HAS(fx_lines[0], "/sys/fs/cgroup/memory /cg/memory/me ro,nosuid,nodev,noexec");
	CHECK_HAS(fx_lines[0], "/sys/fs/cgroup/systemd /cg/systemd/me ro");
	CHECK_HAS(fx_lines[0], "/sys/fs/cgroup/unified /cg/unified/me ro");

	CHECK_INT(fx_mount(fx, MOUNTS(M("/sys/fs/cgroup", "cgroup", "cgroup"))), 0);
	CHECK_HAS(fx_line("/sys/fs/cgroup"), "rw,nosuid,nodev,noexec");
	CHECK_INT(readlink(ROOT "/sys/fs/cgroup/cpuacct", target, sizeof(target)), 11);
	CHECK_STR(target, "cpu,cpuacct");
	CHECK_STR(fx_read(ROOT "/sys/fs/cgroup/cpu/cgroup.procs"), "mine");
	fx->env.cgroup = NULL;
	CHECK_INT(fx_mount(fx, MOUNTS(M("/x", "cgroup", "cgroup"))), -EINVAL);
}

IN_NS(cgroup_v1_binds, 0)
{
	check_v1(fx);
}

IN_NS(cgroup_v1_in_a_cgroup_namespace, CLONE_NEWCGROUP)
{
	/* The hierarchies of this machine, as they are mounted on most cgroup v1 hosts. */
	static struct lr_mount_cgroup host[] = {
		{"pids", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/pids"},
		{"name=systemd", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/systemd"},
		{"", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified"},
	};
	struct lr_mount_cgroup_view view = {.n = 3, .v = host};

	for (size_t i = 0; i < 3; i++)
		if (access(host[i].mountpoint, F_OK) < 0)
			SKIP("no hybrid cgroups here");
	fx->opts.cgroupns = true;
	fx->env.cgroup = &view;
	fx_both(fx, MOUNTS(M("/sys/fs/cgroup", "cgroup", "cgroup", "ro")));
	CHECK_HAS(fx_lines[0], "/sys/fs/cgroup/pids /");
	CHECK_HAS(fx_lines[0], "cgroup cgroup rw,pids");
	CHECK_HAS(fx_lines[0], "cgroup cgroup rw,name=systemd");
	CHECK_HAS(fx_lines[0], "cgroup2 cgroup rw");
}

IN_NS(cgroup_v2, CLONE_NEWCGROUP)
{
	static struct lr_mount_cgroup one = {"", "/sys/fs/cgroup/unified",
					     "/sys/fs/cgroup/unified"};
	static const struct lr_mount_cgroup_view view = {.v2 = true, .n = 1, .v = &one};

	if (access(one.mountpoint, F_OK) < 0)
		one.host_dir = one.mountpoint = "/sys/fs/cgroup";
	fx->env.cgroup = &view;
	fx->opts.cgroupns = true;
	fx_both(fx, MOUNTS(M("/sys/fs/cgroup", "cgroup", "cgroup", "ro", "nosuid")));
	CHECK_HAS(fx_lines[0], "ro,nosuid,relatime  cgroup2 cgroup rw");
	fx->opts.cgroupns = false; /* the host's own mount, not a new one */
	fx_both(fx, MOUNTS(M("/sys/fs/cgroup", "cgroup2", "cgroup", "ro", "nosuid")));
	CHECK_HAS(fx_lines[0], "/sys/fs/cgroup / ro,nosuid");
	CHECK_HAS(fx_lines[0], "cgroup2 cgroup2 rw");
}

/* ---- user namespaces ------------------------------------------------------------------------ */

IN_NS(sysfs_of_the_host_in_a_user_namespace, 0)
{
	become_userns_root();
	fx->env.rootfd = open(ROOT, O_PATH | O_DIRECTORY | O_CLOEXEC);
	fx->env.procfd = lr_procfs_open(&fx->err);
	fx->opts.userns = true;
	CHECK_INT(
		fx_mount(fx, MOUNTS(M("/sys", "sysfs", "sysfs", "nosuid", "noexec", "nodev", "ro"),
				    M("/dev", "tmpfs", "tmpfs", "nosuid"),
				    M("/dev/mqueue", "tmpfs", "mqueue", "nosuid"))),
		0);
	CHECK_STR(fx->text, "");
	CHECK_HAS(fx_line("/sys"), "/sys / ro,nosuid,nodev,noexec");
	CHECK_HAS(fx_line("/sys"), "sysfs");
	const char *below = fx_line("/sys/fs/cgroup");
	CHECK(!*below || strstr(below, " ro,"));
	CHECK_INT(fx_mount(fx, MOUNTS(M("/x", "ext4", "/dev/none"))) < 0, 1);
	CHECK_HAS(fx->text, "mounts[0]");
}

IN_NS(cgroup_that_could_not_be_made, 0)
{
	static struct lr_mount_cgroup none[] = {{"memory", "/tmp/no/such", "/tmp/no/memory"},
						{"", "/tmp/no/such", "/tmp/no/unified"}};
	struct lr_mount_cgroup_view view = {.n = 2, .v = none};

	fx->env.cgroup = &view;
	/* Podman without root is in a user namespace already: the config asks for none. */
	CHECK_INT(fx_mount(fx, MOUNTS(M("/a", "cgroup", "cgroup"))), 0);
	CHECK_INT(access(ROOT "/a/memory", F_OK) | access(ROOT "/a/unified", F_OK), 0);
	become_userns_root();
	fx->env.rootfd = open(ROOT, O_PATH | O_DIRECTORY | O_CLOEXEC);
	fx->env.procfd = lr_procfs_open(&fx->err);
	fx->opts.userns = fx->opts.cgroupns = true;
	CHECK_INT(fx_mount(fx, MOUNTS(M("/cg", "cgroup", "cgroup", "ro"))), 0);
	CHECK_INT(access(ROOT "/cg/memory", F_OK) | access(ROOT "/cg/unified", F_OK), 0);
	view.v2 = true;
	CHECK_INT(fx_mount(fx, MOUNTS(M("/cg2", "cgroup", "cgroup"))), 0);
	CHECK_HAS(fx_line("/cg2"), "/cg2 / ro,nosuid,nodev,noexec,relatime  tmpfs");
}

IN_NS(proc_of_a_foreign_pid_namespace_is_explained, 0)
{
	become_userns_root();
	fx->env.rootfd = open(ROOT, O_PATH | O_DIRECTORY | O_CLOEXEC);
	fx->opts.userns = true;
	CHECK_INT(fx_mount(fx, MOUNTS(M("/proc", "proc", "proc"))), -EPERM);
	CHECK_HAS(fx->text, "pid namespace");
	CHECK_INT(fx_mount(fx, MOUNTS(M("/proc", "bind", "/proc", "rbind"))), 0);
}

IN_NS(what_is_mounted_on_the_root_is_the_root, 0)
{
	struct stat st;

	for (int old = 0; old < 2; old++) {
		lr_mount_no_new_api = old;
		CHECK_INT(fx_mount(fx, MOUNTS(M("/dev", "tmpfs", "early"),
					      M("/", "tmpfs", "top", "mode=751"),
					      M("/dev/deep/er", "tmpfs", "x"))),
			  0);
		CHECK_STR(fx->text, "");
		CHECK(stat(ROOT, &st) == 0 && (st.st_mode & 07777) == 0751);
		CHECK_INT(access(ROOT "/dev/deep/er", F_OK), 0);
		CHECK_HAS(fx_line("/dev/deep/er"), "tmpfs");
		CHECK(fstat(fx->env.rootfd, &st) == 0 && (st.st_mode & 07777) == 0755);
		fx_new_root(fx);
	}
}
