/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tty: a pseudo-terminal inside the container.
 *
 * The container's image decides what lies at /dev/ptmx, /dev/pts and /dev/console until we have
 * looked, so every object is opened without following links and identified by its inode before it
 * is used: a slave path looked up by name was how CVE-2025-52565 bind-mounted host files.
 */
#define LR_ROOM "tty"

#include <linux/magic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/sys/path.h"
#include "src/sys/procfs.h"
#include "src/sys/syscalls.h"
#include "src/tty/tty.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

/* Unix 98 slaves: majors 136 to 143 (Documentation/admin-guide/devices.txt), 2^20 minors on 136. */
#define PTS_MAJOR_FIRST 136
#define PTS_MAJOR_LAST  143

bool lr_tty_no_gptpeer;
bool lr_tty_no_open_tree;

/* The container's devpts as an O_PATH directory. */
static int open_devpts(int rootfd, struct lr_err *err)
{
	LR_CLEANUP_FD int fd = lr_open_in_nolinks(rootfd, "/dev/pts", O_PATH | O_DIRECTORY, 0);
	const long magic = fd < 0 ? fd : lr_fs_magic(fd);

	if (magic == DEVPTS_SUPER_MAGIC)
		return lr_take_fd(&fd);
	if (magic < 0)
		lr_fail(err, (int)-magic, "cannot open /dev/pts in the container");
	else
		lr_refuse(err, ENOTTY, "/dev/pts in the container is not a devpts file system");
	return lr_err_hint(err, "process.terminal needs a mount of type devpts on /dev/pts");
}

/* A file bound over from elsewhere, another devpts for one, shows as another device. */
static bool same_device(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev;
}

/* pts: it has to be of that file system; or LR_NOFD. */
static int check_ptmx(int fd, int pts, const char *path, struct lr_err *err)
{
	struct stat st, dir = {0};

	if (fstat(fd, &st) < 0 || (pts >= 0 && fstat(pts, &dir) < 0))
		return lr_fail(err, errno, "cannot stat %s", path);
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(5, 2) ||
	    (pts >= 0 && st.st_dev != dir.st_dev))
		return lr_refuse(err, ENOTTY, "%s in the container is not the ptmx device", path);
	return 0;
}

/*
 * pts/ptmx belongs to this devpts for sure. With the host's devpts bound into a container it may
 * have mode 000, which a user namespace's root cannot open: then /dev/ptmx, which finds the devpts
 * in its own directory (Linux 4.7); the slave is verified anyway.
 */
static int open_ptmx(int rootfd, int pts, struct lr_err *err)
{
	LR_CLEANUP_FD int fd = openat(pts, "ptmx", O_RDWR | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);

	int why = errno, r = fd >= 0 ? check_ptmx(fd, pts, "/dev/pts/ptmx", err) : 0;
	if (fd >= 0)
		return r < 0 ? r : lr_take_fd(&fd);
	if (why != EACCES && why != ENOENT)
		return lr_fail(err, why, "cannot open /dev/pts/ptmx");

	/* O_PATH first: opening an unknown device can have effects. */
	LR_CLEANUP_FD int path = lr_open_in_nolinks(rootfd, "/dev/ptmx", O_PATH, 0);
	if (path < 0)
		return lr_fail(err, why, "cannot open /dev/pts/ptmx");
	r = check_ptmx(path, LR_NOFD, "/dev/ptmx", err);
	if (r < 0)
		return r;
	fd = lr_open_in_nolinks(rootfd, "/dev/ptmx", O_RDWR | O_NOCTTY, 0);
	if (fd < 0)
		return lr_fail(err, -fd, "cannot open /dev/ptmx");
	r = check_ptmx(fd, LR_NOFD, "/dev/ptmx", err);
	return r < 0 ? r : lr_take_fd(&fd);
}

/* The slave by its master: no name is involved, so nobody can have put another file there. */
static int open_slave(int pts, int master, unsigned number)
{
	char name[16];
	int fd = -1;

	if (lr_tty_no_gptpeer)
		errno = ENOTTY;
	else
		fd = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
	/* Given with the call, it would stay among the flags of the open file, whoever has that. */
	if (fd >= 0)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (fd >= 0 || (errno != ENOTTY && errno != EINVAL))
		return fd >= 0 ? fd : -errno;

	/* Linux < 4.13. The number means something on the master's own devpts only. */
	if (!same_device(master, pts))
		return -ENOTTY;
	snprintf(name, sizeof name, "%u", number);
	fd = openat(pts, name, O_RDWR | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 ? fd : -errno;
}

/* 1, 0, or a negative errno. */
static int is_slave(int fd, int pts, unsigned number)
{
	struct stat st, dir;

	if (fstat(fd, &st) < 0 || fstat(pts, &dir) < 0)
		return -errno;
	return S_ISCHR(st.st_mode) && st.st_dev == dir.st_dev &&
	       major(st.st_rdev) >= PTS_MAJOR_FIRST && major(st.st_rdev) <= PTS_MAJOR_LAST &&
	       (major(st.st_rdev) - PTS_MAJOR_FIRST) * 256 + minor(st.st_rdev) == number;
}

/* Before Linux 5.2, or where a filter hides open_tree: paths through a procfs that is ours. */
static int bind_by_path(int slave, int target, struct lr_err *err)
{
	char from[32], to[32];
	LR_CLEANUP_FD int proc = lr_procfs_open(err);
	LR_CLEANUP_FD int cwd = lr_open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = 0;

	if (proc < 0)
		return proc;
	if (cwd < 0)
		return lr_fail(err, errno, "cannot open the working directory");
	snprintf(from, sizeof from, "self/fd/%d", slave);
	snprintf(to, sizeof to, "self/fd/%d", target);
	if (fchdir(proc) < 0)
		return lr_fail(err, errno, "cannot enter /proc");
	if (mount(from, to, NULL, MS_BIND, NULL) < 0)
		r = lr_fail(err, errno, "cannot bind the terminal on /dev/console");
	if (fchdir(cwd) < 0 && r == 0)
		r = lr_fail(err, errno, "cannot return to the working directory");
	return r;
}

static int bind_slave(int slave, int target, struct lr_err *err)
{
	LR_CLEANUP_FD int tree =
		lr_tty_no_open_tree
			? -ENOSYS
			: lr_open_tree(slave, "",
				       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);

	if (tree >= 0) {
		int r = lr_move_mount(tree, "", target, "",
				      MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
		if (r == 0)
			return 0;
		if (r != -ENOSYS && r != -EPERM)
			return lr_fail(err, -r, "cannot mount the terminal on /dev/console");
	} else if (tree != -ENOSYS && tree != -EPERM) {
		return lr_fail(err, -tree, "cannot clone the mount of the terminal");
	}
	return bind_by_path(slave, target, err);
}

static int open_console(int dev)
{
	int fd = openat(dev, "console", O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT) {
		/* Created by mknod: it neither follows a link nor opens what somebody put there. */
		if (mknodat(dev, "console", S_IFREG | 0600, 0) < 0 && errno != EEXIST)
			return -errno;
		fd = openat(dev, "console", O_PATH | O_NOFOLLOW | O_CLOEXEC);
	}
	return fd >= 0 ? fd : -errno;
}

static int mount_console(int rootfd, int slave, struct lr_err *err)
{
	LR_CLEANUP_FD int dev = lr_open_in_nolinks(rootfd, "/dev", O_PATH | O_DIRECTORY, 0);
	struct stat st;

	if (dev < 0)
		return lr_fail(err, -dev, "cannot open /dev in the container");
	LR_CLEANUP_FD int target = open_console(dev);
	if (target < 0)
		return lr_fail(err, -target, "cannot create /dev/console");
	if (fstat(target, &st) < 0)
		return lr_fail(err, errno, "cannot stat /dev/console");
	if (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode))
		return lr_refuse(err, S_ISLNK(st.st_mode) ? ELOOP : EINVAL,
				 "/dev/console in the container is %s",
				 S_ISLNK(st.st_mode) ? "a symbolic link"
						     : "neither a file nor a device");
	return bind_slave(slave, target, err);
}

static int set_owner(int slave, uid_t uid, struct lr_err *err)
{
	struct stat st;

	if (fstat(slave, &st) < 0)
		return lr_fail(err, errno, "cannot stat the terminal");
	if (st.st_uid == uid || fchown(slave, uid, (gid_t)-1) == 0)
		return 0;
	/* One mapped id, or a devpts of a parent user namespace: it stays as it is, as
	 * stdio does. */
	if (errno == EPERM || errno == EINVAL || errno == EROFS) {
		lr_debug("tty: the terminal stays with uid %u, not %u: errno %d", st.st_uid, uid,
			 errno);
		return 0;
	}
	return lr_fail(err, errno, "cannot give the terminal to uid %u", uid);
}

static int set_size(int fd, const struct oci_console_size *size, struct lr_err *err)
{
	struct winsize ws = {0};

	if (!size || (!size->height && !size->width))
		return 0;
	ws.ws_row = size->height;
	ws.ws_col = size->width;
	if (ioctl(fd, TIOCSWINSZ, &ws) < 0)
		return lr_fail(err, errno, "cannot set the terminal's size");
	return 0;
}

/* See lr_tty_session_run. */
static int end_lines_plainly(int slave, struct lr_err *err)
{
	struct termios t;

	if (tcgetattr(slave, &t) == 0) {
		t.c_oflag &= ~(tcflag_t)ONLCR;
		if (tcsetattr(slave, TCSANOW, &t) == 0)
			return 0;
	}
	return lr_fail(err, errno, "cannot set the terminal's mode");
}

int lr_tty_open_pty(int rootfd, const struct lr_tty_console *console, struct lr_tty_pty *ret,
		    struct lr_err *err)
{
	LR_CLEANUP_FD int pts = open_devpts(rootfd, err);
	LR_CLEANUP_FD int master = LR_NOFD, slave = LR_NOFD;
	unsigned number = 0;
	int unlocked = 0, r;

	if (pts < 0)
		return pts;
	master = open_ptmx(rootfd, pts, err);
	if (master < 0)
		return master;
	if (ioctl(master, TIOCSPTLCK, &unlocked) < 0 || ioctl(master, TIOCGPTN, &number) < 0)
		return lr_fail(err, errno, "cannot unlock the pseudo-terminal");
	slave = open_slave(pts, master, number);
	if (slave < 0)
		return lr_fail(err, -slave, "cannot open the pseudo-terminal's slave");
	r = is_slave(slave, pts, number);
	if (r < 0)
		return lr_fail(err, -r, "cannot stat the pseudo-terminal's slave");
	if (!r)
		return lr_refuse(
			err, ENOTTY,
			"the pseudo-terminal's slave is not terminal %u of /dev/pts in the "
			"container",
			number);
	lr_debug("tty: made /dev/pts/%u", number);
	r = set_size(master, console->size, err);
	if (r == 0 && console->relayed)
		r = end_lines_plainly(slave, err);
	if (r == 0)
		r = set_owner(slave, console->uid, err);
	if (r == 0 && console->mount)
		r = mount_console(rootfd, slave, err);
	if (r < 0)
		return r;
	ret->master = lr_take_fd(&master);
	ret->slave = lr_take_fd(&slave);
	snprintf(ret->name, sizeof ret->name, "/dev/pts/%u", number);
	return 0;
}

int lr_tty_own_stdio(int slave, struct lr_err *err)
{
	int r = 0;

	for (int fd = 0; r == 0 && fd <= 2; fd++)
		if (slave == fd ? fcntl(fd, F_SETFD, 0) < 0 : dup2(slave, fd) < 0)
			r = lr_fail(err, errno, "cannot make the terminal descriptor %d", fd);
	if (slave > 2)
		lr_close(slave);
	return r;
}

int lr_tty_attach(int slave, struct lr_err *err)
{
	if (ioctl(slave, TIOCSCTTY, 0) == 0)
		return lr_tty_own_stdio(slave, err);
	int r = lr_fail(err, errno, "cannot make the terminal the controlling one");
	if (slave > 2)
		lr_close(slave);
	return r;
}
