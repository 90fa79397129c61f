/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests: pseudo-terminals of a container's devpts. Each case builds a small root in a mount
 * namespace of a forked child, prepared as a hostile image might.
 */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "src/base/str.h"
#include "src/sys/path.h"
#include "src/tty/tty.h"
#include "tests/unit/test.h"

static char root[] = "/tmp";
static int rootfd;

/* Enters a fresh root: a tmpfs with /dev, and devpts on /dev/pts if asked. */
static bool make_root(bool devpts)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", root, "tmpfs", 0, "mode=755") < 0 || mkdir("/tmp/dev", 0755) < 0 ||
	    mkdir("/tmp/dev/pts", 0755) < 0)
		return false;
	if (devpts && mount("devpts", "/tmp/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
			    "newinstance,ptmxmode=0666,mode=0620,gid=5") < 0)
		return false;
	rootfd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return rootfd >= 0;
}

/* Runs the body of a test in a child in that root; its failures count as ours. */
static void run_in_root(bool devpts, void (*body)(void))
{
	int st = -1;

	if (geteuid() != 0)
		SKIP("needs root");
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		if (make_root(devpts))
			body();
		else
			lr_check(false, __FILE__, __LINE__, "make_root: %s", strerror(errno));
		fflush(stdout);
		_exit(lr_failures ? 1 : 0);
	}
	CHECK(pid > 0 && waitpid(pid, &st, 0) == pid);
	CHECK_INT(st, 0);
}

#define ROOT_TEST(id, devpts)                                                                      \
	static void body_##id(void);                                                               \
	TEST(id)                                                                                   \
	{                                                                                          \
		run_in_root(devpts, body_##id);                                                    \
	}                                                                                          \
	static void body_##id(void)

static int open_pty(const struct lr_tty_console *console, struct lr_tty_pty *pty, char text[1024])
{
	struct lr_err err = {0};
	int r = lr_tty_open_pty(rootfd, console, pty, &err);

	lr_err_format(&err, text, 1024);
	return r;
}

static int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void check_pty(const struct lr_tty_pty *pty)
{
	struct stat m, s, byname;
	char path[64], byte = 0;

	CHECK(fstat(pty->master, &m) == 0 && m.st_rdev == makedev(5, 2));
	CHECK(fstat(pty->slave, &s) == 0 && S_ISCHR(s.st_mode));
	snprintf(path, sizeof path, "%s%s", root, pty->name);
	CHECK(stat(path, &byname) == 0 && byname.st_rdev == s.st_rdev && byname.st_dev == s.st_dev);
	CHECK(fcntl(pty->master, F_GETFD) & FD_CLOEXEC);
	CHECK(fcntl(pty->slave, F_GETFD) & FD_CLOEXEC);
	CHECK_INT(write(pty->slave, "x", 1), 1);
	CHECK_INT(read(pty->master, &byte, 1), 1);
	CHECK_INT(byte, 'x');
}

ROOT_TEST(opens_the_containers_own, true)
{
	struct lr_tty_pty a, b;
	char text[1024];

	CHECK_INT(open_pty(&(struct lr_tty_console){0}, &a, text), 0);
	CHECK_STR(a.name, "/dev/pts/0");
	check_pty(&a);
	CHECK_INT(open_pty(&(struct lr_tty_console){0}, &b, text), 0);
	CHECK_STR(b.name, "/dev/pts/1");
	check_pty(&b);
}

ROOT_TEST(size_and_owner_are_set, true)
{
	struct oci_console_size size = {.height = 33, .width = 121};
	struct lr_tty_pty pty;
	struct winsize ws;
	struct stat st;
	char text[1024];

	CHECK_INT(open_pty(&(struct lr_tty_console){.size = &size, .uid = 1234}, &pty, text), 0);
	CHECK(ioctl(pty.slave, TIOCGWINSZ, &ws) == 0);
	CHECK_INT(ws.ws_row, 33);
	CHECK_INT(ws.ws_col, 121);
	CHECK(fstat(pty.slave, &st) == 0);
	CHECK_INT(st.st_uid, 1234);
	CHECK_INT(st.st_gid, 5);
	CHECK_INT(st.st_mode & 07777, 0620);
}

static void check_console(void)
{
	struct lr_tty_pty pty;
	struct stat s, c, below;
	char text[1024];

	CHECK_INT(open_pty(&(struct lr_tty_console){.mount = true}, &pty, text), 0);
	CHECK(fstat(pty.slave, &s) == 0);
	CHECK(stat("/tmp/dev/console", &c) == 0);
	CHECK(c.st_rdev == s.st_rdev && c.st_dev == s.st_dev);
	int fd = open("/tmp/dev/console", O_RDWR | O_NOCTTY);
	CHECK(fd >= 0 && isatty(fd));
	CHECK_INT(write(fd, "c", 1), 1);
	CHECK(read(pty.master, text, 1) == 1 && text[0] == 'c');
	CHECK(umount2("/tmp/dev/console", MNT_DETACH) == 0);
	CHECK(stat("/tmp/dev/console", &below) == 0 && S_ISREG(below.st_mode));
}

ROOT_TEST(the_slave_is_bound_on_the_console, true)
{
	check_console();
	check_console(); /* the file is there now */
}

ROOT_TEST(the_slave_is_bound_without_open_tree, true)
{
	char before[256], after[256];

	CHECK(chdir("/usr") == 0 && getcwd(before, sizeof before));
	lr_tty_no_open_tree = true;
	check_console();
	CHECK(getcwd(after, sizeof after));
	CHECK_STR(after, before);
}

ROOT_TEST(an_older_kernel_finds_the_slave_by_number, true)
{
	struct lr_tty_pty pty;
	char text[1024];

	lr_tty_no_gptpeer = true;
	CHECK_INT(open_pty(&(struct lr_tty_console){0}, &pty, text), 0);
	check_pty(&pty);
}

ROOT_TEST(without_openat2_too, true)
{
	lr_path_no_openat2 = true;
	check_console();
}

/* Each refusal: an error that names the object, no descriptor left, nothing mounted. */
static void check_refused(bool console, int want, const char *part)
{
	struct lr_tty_pty pty = {.master = -7, .slave = -7};
	struct stat st;
	char text[1024];
	int before = count_fds();
	int r = open_pty(&(struct lr_tty_console){.mount = console}, &pty, text);

	if (want)
		CHECK_INT(r, want);
	CHECK(r < 0);
	CHECK_HAS(text, part);
	CHECK_INT(pty.master, -7);
	CHECK_INT(count_fds(), before);
	CHECK(stat("/tmp/dev/console", &st) < 0 || !S_ISCHR(st.st_mode));
}

ROOT_TEST(no_devpts_is_refused, false)
{
	check_refused(false, -ENOTTY, "not a devpts");
	CHECK(rmdir("/tmp/dev/pts") == 0);
	check_refused(false, -ENOENT, "/dev/pts");
	CHECK(symlink("/dev/pts", "/tmp/dev/pts") == 0); /* the host's, if it were followed */
	check_refused(false, -ELOOP, "/dev/pts");
	CHECK(unlink("/tmp/dev/pts") == 0 && symlink("../proc", "/tmp/dev/pts") == 0);
	check_refused(false, -ELOOP, "/dev/pts");
}

ROOT_TEST(a_symlinked_dev_is_refused, true)
{
	CHECK(mkdir("/tmp/other", 0755) == 0);
	CHECK(mount("/tmp/dev", "/tmp/other", NULL, MS_BIND | MS_REC, NULL) == 0);
	CHECK(umount2("/tmp/dev", MNT_DETACH) < 0); /* not a mount */
	CHECK(umount2("/tmp/dev/pts", MNT_DETACH) == 0);
	CHECK(rename("/tmp/dev", "/tmp/real") == 0 && symlink("other", "/tmp/dev") == 0);
	check_refused(true, -ELOOP, "/dev/pts");
}

ROOT_TEST(a_covered_ptmx_is_refused, true)
{
	CHECK(close(open("/tmp/fake", O_CREAT | O_WRONLY, 0666)) == 0);
	CHECK(mount("/tmp/fake", "/tmp/dev/pts/ptmx", NULL, MS_BIND, NULL) == 0);
	check_refused(false, -ENOTTY, "ptmx");
	CHECK(umount("/tmp/dev/pts/ptmx") == 0);
	CHECK(mount("/dev/null", "/tmp/dev/pts/ptmx", NULL, MS_BIND, NULL) == 0);
	check_refused(false, -ENOTTY, "ptmx");
}

ROOT_TEST(a_ptmx_of_another_devpts_is_refused, true)
{
	struct lr_tty_pty own;
	char text[1024];

	/* It is 5:2 and on a devpts, but its terminals are elsewhere: number 0 here is
	 * another's. */
	CHECK_INT(open_pty(&(struct lr_tty_console){0}, &own, text), 0);
	CHECK(mkdir("/tmp/pts2", 0755) == 0);
	CHECK(mount("devpts", "/tmp/pts2", "devpts", 0, "newinstance,ptmxmode=666") == 0);
	CHECK(mount("/tmp/pts2/ptmx", "/tmp/dev/pts/ptmx", NULL, MS_BIND, NULL) == 0);
	check_refused(true, -ENOTTY, "ptmx");
	lr_tty_no_gptpeer = true;
	check_refused(true, -ENOTTY, "ptmx");
}

/* The same by /dev/ptmx, which is tried where pts/ptmx is missing or closed to us. */
ROOT_TEST(a_dev_ptmx_of_another_devpts_is_refused, true)
{
	struct lr_tty_pty own;
	char text[1024];

	CHECK_INT(open_pty(&(struct lr_tty_console){0}, &own, text), 0);
	CHECK(mkdir("/tmp/pts2", 0755) == 0);
	CHECK(mount("devpts", "/tmp/pts2", "devpts", 0, "newinstance,ptmxmode=666") == 0);
	CHECK(chmod("/tmp/dev/pts/ptmx", 0) == 0);
	CHECK(close(open("/tmp/dev/ptmx", O_CREAT | O_WRONLY, 0666)) == 0);
	CHECK(mount("/tmp/pts2/ptmx", "/tmp/dev/ptmx", NULL, MS_BIND, NULL) == 0);
	CHECK(setresuid(65534, 65534, 65534) == 0);
	check_refused(false, 0, "slave");
	lr_tty_no_gptpeer = true;
	check_refused(false, 0, "slave");
}

ROOT_TEST(a_dev_ptmx_that_is_something_else_is_refused, true)
{
	CHECK(chmod("/tmp/dev/pts/ptmx", 0) == 0);
	CHECK(close(open("/tmp/dev/ptmx", O_CREAT | O_WRONLY, 0666)) == 0);
	CHECK(setresuid(65534, 65534, 65534) == 0);
	check_refused(false, -ENOTTY, "/dev/ptmx");
}

/* ---- somebody who covers the slave's name at the worst moment -------------------------------- */

static _Atomic int listener = -1;

/* Stops this thread at TIOCSPTLCK, between the master's opening and the slave's. */
static bool stop_at_unlock(void)
{
	struct sock_filter stop[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCSPTLCK, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {LR_ARRAY_SIZE(stop), stop};

	listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
				SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
	return listener >= 0;
}

static void *cover_slave(void *unused)
{
	struct seccomp_notif asked = {0};
	struct seccomp_notif_resp go_on = {.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};

	while (listener < 0)
		usleep(100);
	CHECK(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) == 0);
	CHECK(mount("/dev/null", "/tmp/dev/pts/0", NULL, MS_BIND, NULL) == 0);
	go_on.id = asked.id;
	CHECK(ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &go_on) == 0);
	return NULL;
}

static int open_covered(struct lr_tty_pty *pty, char text[1024])
{
	pthread_t other;

	CHECK(pthread_create(&other, NULL, cover_slave, NULL) == 0);
	CHECK(stop_at_unlock());
	int r = open_pty(&(struct lr_tty_console){.mount = true}, pty, text);
	CHECK(pthread_join(other, NULL) == 0);
	return r;
}

/* CVE-2025-52565: whatever is bound over a terminal's name, the console is a terminal. */
ROOT_TEST(a_covered_slave_name_is_not_used, true)
{
	struct lr_tty_pty pty;
	struct stat st;
	char text[1024];

	CHECK_INT(open_covered(&pty, text), 0);
	CHECK(fstat(pty.slave, &st) == 0 && major(st.st_rdev) == 136);
	CHECK(stat("/tmp/dev/console", &st) == 0 && major(st.st_rdev) == 136);
}

/* Before Linux 4.13 the slave can be opened by its name only. */
ROOT_TEST(a_covered_slave_name_is_found_out, true)
{
	struct lr_tty_pty pty;
	char text[1024];

	lr_tty_no_gptpeer = true;
	CHECK_INT(open_covered(&pty, text), -ENOTTY);
	CHECK_HAS(text, "is not terminal 0");
}

ROOT_TEST(a_symlinked_console_is_refused, true)
{
	CHECK(close(open("/tmp/victim", O_CREAT | O_WRONLY, 0666)) == 0);
	CHECK(symlink("/tmp/victim", "/tmp/dev/console") == 0);
	check_refused(true, -ELOOP, "/dev/console");
	CHECK(unlink("/tmp/dev/console") == 0 && symlink("../victim", "/tmp/dev/console") == 0);
	check_refused(true, -ELOOP, "/dev/console");
	CHECK(unlink("/tmp/dev/console") == 0 && mkdir("/tmp/dev/console", 0755) == 0);
	check_refused(true, -EINVAL, "/dev/console");
}

ROOT_TEST(a_console_device_of_the_image_is_covered_not_opened, true)
{
	struct lr_tty_pty pty;
	struct stat st;
	char text[1024];

	if (mknod("/tmp/dev/console", S_IFCHR | 0600, makedev(1, 3)) < 0) {
		printf("# mknod: %s\n", strerror(errno));
		return;
	}
	CHECK_INT(open_pty(&(struct lr_tty_console){.mount = true}, &pty, text), 0);
	CHECK(stat("/tmp/dev/console", &st) == 0 && major(st.st_rdev) == 136);
}

ROOT_TEST(ptmx_of_dev_serves_where_pts_ptmx_may_not_be_opened, true)
{
	struct lr_tty_pty pty;
	char text[1024];

	CHECK(chmod("/tmp/dev/pts/ptmx", 0) == 0);
	if (mknod("/tmp/dev/ptmx", S_IFCHR | 0666, makedev(5, 2)) < 0 ||
	    chmod("/tmp/dev/ptmx", 0666) < 0)
		return;
	/* Without the right to override modes. The slave is the opener's own. */
	CHECK(setresuid(65534, 65534, 65534) == 0);
	CHECK_INT(open_pty(&(struct lr_tty_console){.uid = 65534}, &pty, text), 0);
	check_pty(&pty);
}

ROOT_TEST(attach_makes_it_the_controlling_terminal, true)
{
	struct lr_tty_pty pty;
	struct lr_err err = {0};
	char text[1024];

	CHECK_INT(open_pty(&(struct lr_tty_console){0}, &pty, text), 0);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		setsid();
		if (lr_tty_attach(pty.slave, &err) < 0)
			_exit(1);
		int tty = open("/dev/tty", O_RDWR);
		if (tty < 0 || tcgetsid(0) != getpid() || !isatty(1) || !isatty(2))
			_exit(2);
		if (fcntl(0, F_GETFD) || fcntl(1, F_GETFD) || fcntl(2, F_GETFD))
			_exit(3); /* close-on-exec would lose them */
		if (pty.slave > 2 && fcntl(pty.slave, F_GETFD) >= 0)
			_exit(4);
		_exit(0);
	}
	int st = -1;
	CHECK(waitpid(pid, &st, 0) == pid);
	CHECK_INT(st, 0);
}

ROOT_TEST(attach_without_a_session_says_so, true)
{
	struct lr_tty_pty pty;
	struct lr_err err = {0};
	char text[1024];

	CHECK_INT(open_pty(&(struct lr_tty_console){0}, &pty, text), 0);
	CHECK_INT(lr_tty_attach(pty.slave, &err), -EPERM); /* no setsid */
	CHECK_HAS(lr_err_format(&err, text, sizeof text), "controlling");
	CHECK(fcntl(pty.slave, F_GETFD) < 0);
}
