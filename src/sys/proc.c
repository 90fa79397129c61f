/* SPDX-License-Identifier: Apache-2.0 */
/* sys: process identity; see proc.h. */
#include "src/sys/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/sys/syscalls.h"

/* One line, which comes whole in one read(2). */
static int read_line(const char *path, char *buf, size_t size)
{
	LR_CLEANUP_FD int fd = lr_open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	ssize_t n = read(fd, buf, size - 1);
	if (n <= 0)
		return n < 0 ? -errno : -EIO;
	buf[n] = '\0';
	return 0;
}

/* include/linux/sched.h. The kernel promises the field (proc_pid_stat(5)) and not what its bits
 * mean, but these two have not changed since Linux 2.6. */
#define PF_EXITING    0x04
#define PF_FORKNOEXEC 0x40

static void take_name(const char *line, const char *end, char name[16])
{
	const char *open = strchr(line, '(');
	int n = open && open < end ? (int)(end - open - 1) : 0;

	snprintf(name, 16, "%.*s", n, n ? open + 1 : "");
}

static char *skip_fields(char *p, int n)
{
	while (p && n-- > 0)
		p = strchr(p + 1, ' ');
	return p;
}

static int read_stat(const char *path, struct lr_proc_stat *ret)
{
	char buf[1024];
	int r = read_line(path, buf, sizeof(buf));

	if (r < 0)
		return r;
	/* The command name may hold spaces and parentheses: fields start after the last one. */
	char *p = strrchr(buf, ')');
	if (!p || p[1] != ' ')
		return -EIO;
	struct lr_proc_stat st = {.state = p[2]};
	take_name(buf, p, st.name);
	st.ppid = (pid_t)strtol(p + 3, &p, 10);
	p = skip_fields(p, 9 - 5);
	if (!p)
		return -EIO;
	unsigned long flags = strtoul(p, &p, 10);
	st.dies = flags & PF_EXITING;
	st.executed = !(flags & PF_FORKNOEXEC);
	p = skip_fields(p, 22 - 10);
	if (!p)
		return -EIO;
	st.start_time = strtoull(p, NULL, 10);
	p = skip_fields(p, 33 - 22);
	if (!p)
		return -EIO;
	st.ignored = (uint32_t)strtoul(p, &p, 10);
	st.caught = (uint32_t)strtoul(p, &p, 10);
	p = skip_fields(p, 38 - 35);
	if (!p)
		return -EIO;
	st.exit_signal = (int)strtol(p, NULL, 10);
	*ret = st;
	return 0;
}

int lr_proc_stat(pid_t pid, struct lr_proc_stat *ret)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	return read_stat(path, ret);
}

bool lr_proc_dies(pid_t pid)
{
	struct lr_proc_stat st;
	int r = lr_proc_stat(pid, &st);

	return r < 0 ? r == -ESRCH : st.dies;
}

int lr_proc_stat_self(struct lr_proc_stat *ret)
{
	return read_stat("/proc/self/stat", ret);
}

_Noreturn void lr_proc_end(int status)
{
	(void)syscall(SYS_exit_group, status);
	/* No filter sees what the processor raises, it cannot be ignored or blocked, and it ends
	 * even the first process of a pid namespace. */
	__builtin_trap();
}

int lr_proc_alive(pid_t pid, uint64_t start_time)
{
	struct lr_proc_stat st;
	int r = lr_proc_stat(pid, &st);

	if (r == -ESRCH)
		return 0;
	if (r < 0)
		return r;
	return st.start_time == start_time && st.state != 'Z' && st.state != 'X';
}

int lr_proc_pidfd(pid_t pid, uint64_t start_time)
{
	/* Open first, compare after: if the start time matches now, the descriptor, which was
	 * taken before, cannot belong to a later process of that number. */
	LR_CLEANUP_FD int fd = lr_pidfd_open(pid, 0);
	if (fd < 0)
		return fd == -EINVAL ? -ESRCH : fd;
	int alive = lr_proc_alive(pid, start_time);
	if (alive < 0)
		return alive;
	return alive ? lr_take_fd(&fd) : -ESRCH;
}

int lr_proc_signal(pid_t pid, uint64_t start_time, int sig)
{
	LR_CLEANUP_FD int fd = lr_proc_pidfd(pid, start_time);
	int r = fd >= 0 ? lr_pidfd_send_signal(fd, sig) : fd;

	if (!lr_proc_no_pidfd(r))
		return r;
	r = lr_proc_alive(pid, start_time);
	if (r <= 0)
		return r < 0 ? r : -ESRCH;
	return kill(pid, sig) < 0 ? -errno : 0;
}

int lr_proc_signal_own(pid_t pid, int pidfd, int sig)
{
	int r = pidfd >= 0 ? lr_pidfd_send_signal(pidfd, sig) : -ENOSYS;

	if (!lr_proc_no_pidfd(r))
		return r;
	return kill(pid, sig) < 0 ? -errno : 0;
}

/* What SIGCHLD does is the process's: threads that wait at the same time share what it was. */
static struct {
	pthread_mutex_t lock;
	unsigned waiting;
	struct sigaction old;
	bool changed;
} children = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool loses_children(const struct sigaction *a)
{
	return a->sa_handler == SIG_IGN || a->sa_flags & SA_NOCLDWAIT;
}

bool lr_proc_waiting(void)
{
	struct sigaction reap;

	pthread_mutex_lock(&children.lock);
	if (children.waiting++ == 0) {
		children.changed = sigaction(SIGCHLD, NULL, &children.old) == 0 &&
				   loses_children(&children.old);
		reap = children.old;
		reap.sa_flags &= ~SA_NOCLDWAIT;
		if (reap.sa_handler == SIG_IGN)
			reap.sa_handler = SIG_DFL;
		if (children.changed)
			sigaction(SIGCHLD, &reap, NULL);
	}
	pthread_mutex_unlock(&children.lock);
	return true;
}

void lr_proc_waited(const bool *waiting)
{
	if (!*waiting)
		return;
	pthread_mutex_lock(&children.lock);
	if (--children.waiting == 0 && children.changed)
		sigaction(SIGCHLD, &children.old, NULL);
	pthread_mutex_unlock(&children.lock);
}

bool lr_proc_mounts_changed(int *mountinfo)
{
	struct pollfd p = {.fd = *mountinfo, .events = POLLPRI};
	const bool changed = *mountinfo < 0 || poll(&p, 1, 0) != 0;

	*mountinfo = lr_close(*mountinfo);
	return changed;
}
