/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests: the private procfs, and the verified /proc where there can be no private one. A
 * seccomp filter takes fsopen away for that half. CVE-2025-52881: writes meant for /proc must not
 * land in what somebody mounted over it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/sys/path.h"
#include "src/sys/procfs.h"
#include "tests/unit/deny.h"
#include "tests/unit/test.h"

static bool private_ns(void)
{
	return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static void in_child(void (*body)(void))
{
	int st = -1;

	if (geteuid() != 0)
		SKIP("needs root");
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		if (private_ns())
			body();
		else
			lr_check(false, __FILE__, __LINE__, "unshare: %s", strerror(errno));
		fflush(stdout);
		_exit(lr_failures ? 1 : 0);
	}
	CHECK(pid > 0 && waitpid(pid, &st, 0) == pid);
	CHECK_INT(st, 0);
}

static void use(void)
{
	struct lr_err err = {0};
	char buf[256], path[64];
	LR_CLEANUP_FD int proc = lr_procfs_open(&err);

	if (proc < 0)
		lr_check(false, __FILE__, __LINE__, "%s", lr_err_format(&err, buf, sizeof buf));
	CHECK(proc >= 0 && fcntl(proc, F_GETFD) & FD_CLOEXEC);
	CHECK(lr_fs_magic(proc) == PROC_SUPER_MAGIC);
	for (int walk = 0; walk < 2; walk++) {
		lr_path_no_openat2 = walk;
		LR_CLEANUP_FD int comm = lr_procfs_openat(proc, "self/comm", O_RDWR);
		CHECK(comm >= 0);
		CHECK_INT(lr_procfs_write(proc, "self/comm", "named", 5), 0);
		CHECK(lr_read_full(comm, buf, 16) == 6 && memcmp(buf, "named\n", 6) == 0);
		CHECK_INT(lr_procfs_write(proc, "thread-self/comm", "other", 5), 0);
		snprintf(path, sizeof path, "%d/comm", getpid());
		LR_CLEANUP_FD int bypid = lr_procfs_openat(proc, path, O_RDONLY);
		CHECK(bypid >= 0 && lr_read_full(bypid, buf, 16) == 6 &&
		      memcmp(buf, "other\n", 6) == 0);
		LR_CLEANUP_FD int sys = lr_procfs_openat(proc, "sys/kernel/ostype", O_RDONLY);
		CHECK(sys >= 0);
		CHECK_INT(lr_procfs_openat(proc, "sys/kernel/no-such", O_RDONLY), -ENOENT);
		CHECK_INT(lr_procfs_write(proc, "sys/no-such", "1", 1), -ENOENT);
		/* Links, magic ones above all, and ways out. */
		CHECK(lr_procfs_openat(proc, "self/root", O_PATH | O_DIRECTORY) < 0);
		CHECK(lr_procfs_openat(proc, "self/cwd/etc", O_PATH) < 0);
		CHECK(lr_procfs_openat(proc, "self/exe", O_RDONLY) < 0);
		CHECK(lr_procfs_openat(proc, "mounts", O_RDONLY) < 0);
		CHECK(lr_procfs_openat(proc, "net/dev", O_RDONLY) < 0);
		/* On purpose. */
		LR_CLEANUP_FD int ns = lr_procfs_open_magic(proc, "self/ns/mnt", O_RDONLY);
		CHECK(ns >= 0 && lr_fs_magic(ns) == NSFS_MAGIC);
		LR_CLEANUP_FD int root = lr_procfs_open_magic(proc, "self/root", O_PATH);
		struct stat a, b;
		CHECK(root >= 0 && fstat(root, &a) == 0 && stat("/", &b) == 0 &&
		      a.st_ino == b.st_ino && a.st_dev == b.st_dev);
		snprintf(path, sizeof path, "%d/ns/net", getpid());
		LR_CLEANUP_FD int net = lr_procfs_open_magic(proc, path, O_RDONLY);
		CHECK(net >= 0 && lr_fs_magic(net) == NSFS_MAGIC);
		CHECK_INT(lr_procfs_open_magic(proc, "none", O_RDONLY), -EINVAL);
		CHECK(lr_procfs_open_magic(proc, "self/ns/none", O_RDONLY) < 0);
	}
	lr_path_no_openat2 = false;
}

TEST(reads_and_writes)
{
	in_child(use);
}

static void use_without_fsopen(void)
{
	deny(SYS_fsopen, ENOSYS);
	use();
}

static void use_with_fsopen_forbidden(void)
{
	deny(SYS_fsopen, EPERM);
	use();
}

TEST(reads_and_writes_without_fsopen)
{
	in_child(use_without_fsopen);
	in_child(use_with_fsopen_forbidden);
}

/* A decoy over /proc/self/comm. The write must reach the kernel or fail; never the decoy. */
static void cover(void)
{
	char path[64], decoy[] = "/tmp/lr-decoy-XXXXXX", buf[64];
	int fd = mkostemp(decoy, O_CLOEXEC);

	snprintf(path, sizeof path, "/proc/%d/comm", getpid());
	CHECK(fd >= 0 && mount(decoy, path, NULL, MS_BIND, NULL) == 0);
	unlink(decoy);
	for (int walk = 0; walk < 2; walk++) {
		lr_path_no_openat2 = walk;
		LR_CLEANUP_FD int proc = lr_procfs_open(NULL);
		CHECK(proc >= 0);
		int r = lr_procfs_write(proc, "self/comm", "hello", 5);
		CHECK(r == 0 || r == -EXDEV);
		CHECK_INT(pread(fd, buf, sizeof buf, 0), 0);
	}
	lr_path_no_openat2 = false;
	umount2(path, MNT_DETACH);
	close(fd);
}

static void private_is_not_covered(void)
{
	char buf[64];

	cover();
	LR_CLEANUP_FD int proc = lr_procfs_open(NULL);
	LR_CLEANUP_FD int comm = lr_procfs_openat(proc, "self/comm", O_RDONLY);
	CHECK(comm >= 0 && lr_read_full(comm, buf, 16) == 6 && memcmp(buf, "hello\n", 6) == 0);
}

static void covered_without_fsopen(void)
{
	deny(SYS_fsopen, ENOSYS);
	cover();
}

/* Something else of procfs over a file of procfs: same magic, same device. */
static void covered_by_procfs(void)
{
	char path[64], before[64] = "", after[64] = "";

	deny(SYS_fsopen, ENOSYS);
	snprintf(path, sizeof path, "/proc/%d/comm", getpid());
	CHECK(mount("/proc/sys/kernel/hostname", path, NULL, MS_BIND, NULL) == 0);
	CHECK(unshare(CLONE_NEWUTS) == 0 && sethostname("kept", 4) == 0);
	gethostname(before, sizeof before);
	for (int walk = 0; walk < 2; walk++) {
		lr_path_no_openat2 = walk;
		LR_CLEANUP_FD int proc = lr_procfs_open(NULL);
		int r = lr_procfs_write(proc, "self/comm", "stolen", 6);
		CHECK(r < 0);
		gethostname(after, sizeof after);
		CHECK_STR(after, before);
	}
	umount2(path, MNT_DETACH);
}

TEST(what_lies_over_a_file_is_not_written)
{
	in_child(private_is_not_covered);
	in_child(covered_without_fsopen);
	in_child(covered_by_procfs);
}

static void fake_proc(void)
{
	struct lr_err err = {0};
	char text[1024];

	CHECK(mount("tmpfs", "/proc", "tmpfs", 0, NULL) == 0);
	LR_CLEANUP_FD int private = lr_procfs_open(&err); /* does not mind */
	CHECK(private >= 0 && lr_fs_magic(private) == PROC_SUPER_MAGIC);
	deny(SYS_fsopen, ENOSYS);
	CHECK_INT(lr_procfs_open(&err), -EXDEV);
	CHECK_HAS(lr_err_format(&err, text, sizeof text), "/proc");
	CHECK(umount("/proc") == 0);
	/* A subtree of procfs is not its root. */
	CHECK(mount("/proc/sys", "/proc", NULL, MS_BIND, NULL) == 0);
	CHECK_INT(lr_procfs_open(&err), -EXDEV);
	CHECK(umount("/proc") == 0);
	CHECK(lr_procfs_open(NULL) >= 0);
}

TEST(a_proc_that_is_none_is_refused)
{
	in_child(fake_proc);
}
