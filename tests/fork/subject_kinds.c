/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of descriptors: devices that every container has, directories, paths, processes, and pairs of sockets
 * of which an end is shut down. */
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "tests/fork/subject.h"

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

static const struct device {
	const char *path;
	int flags;
	unsigned minor;
} devices[] = {{"/dev/null", O_RDWR | O_APPEND, 3},
	       {"/dev/zero", O_RDONLY | O_NONBLOCK, 5},
	       {"/dev/full", O_WRONLY, 7},
	       {"/dev/random", O_RDONLY, 8},
	       {"/dev/urandom", O_RDWR, 9}};
#define DEVICES (sizeof(devices) / sizeof(devices[0]))

static void check_devices(const int fd[DEVICES])
{
	const int of = O_ACCMODE | O_NONBLOCK | O_APPEND;
	char c = 'x';
	struct stat st;

	for (size_t i = 0; i < DEVICES; i++) {
		EXPECT(fstat(fd[i], &st) == 0 && S_ISCHR(st.st_mode));
		EXPECT(st.st_rdev == makedev(1, devices[i].minor));
		EXPECT((fcntl(fd[i], F_GETFL) & of) == (devices[i].flags & of));
	}
	EXPECT(read(fd[0], &c, 1) == 0 && write(fd[0], "x", 1) == 1);
	EXPECT(read(fd[1], &c, 1) == 1 && c == 0);
	EXPECT(write(fd[2], "x", 1) == -1 && errno == ENOSPC);
	EXPECT(read(fd[4], &c, 1) == 1);
}

/* As what they were opened, and where who reads it was. */
static void check_paths(int dir, off_t at, int path, int link)
{
	struct stat st, own;
	int fd;

	EXPECT(lseek(dir, 0, SEEK_CUR) == at && fcntl(dir, F_GETFL) & O_DIRECTORY);
	EXPECT((fd = openat(dir, "inner", O_RDONLY)) >= 0 && close(fd) == 0);
	EXPECT(fcntl(path, F_GETFL) & O_PATH && read(path, &fd, 1) == -1 && errno == EBADF);
	EXPECT(fstat(path, &st) == 0 && stat("directory/inner", &own) == 0);
	EXPECT(st.st_ino == own.st_ino && st.st_dev == own.st_dev);
	EXPECT(fstat(link, &st) == 0 && S_ISLNK(st.st_mode) && fcntl(link, F_GETFL) & O_PATH);
}

struct pair {
	int type, end, how;
	int s[2];
};

static void make_pair(struct pair *p)
{
	EXPECT(socketpair(AF_UNIX, p->type, 0, p->s) == 0);
	if (p->type == SOCK_STREAM)
		EXPECT(write(p->s[0], "to 1", 4) == 4 && write(p->s[1], "to 0", 4) == 4);
	EXPECT(shutdown(p->s[p->end], p->how) == 0);
}

static void check_pair(const struct pair *p)
{
	const bool writes = p->how == SHUT_RD, reads = p->how == SHUT_WR;
	const int end = p->s[p->end], other = p->s[!p->end];
	char text[8];

	/* What came before it is there. */
	for (int k = 0; p->type == SOCK_STREAM && k < 2; k++)
		EXPECT(read(p->s[k], text, sizeof(text)) == 4 && text[3] == (k ? '1' : '0'));
	EXPECT(send(end, "x", 1, MSG_NOSIGNAL) == (writes ? 1 : -1) && (writes || errno == EPIPE));
	EXPECT(send(other, "x", 1, MSG_NOSIGNAL) == (reads ? 1 : -1) && (reads || errno == EPIPE));
	if (p->type == SOCK_DGRAM) /* it waits, and says nothing of an end */
		return;
	EXPECT(recv(end, text, sizeof(text), MSG_DONTWAIT) == (reads ? 1 : 0));
	EXPECT(recv(other, text, sizeof(text), MSG_DONTWAIT) == (writes ? 1 : 0));
}

static int pidfd(pid_t pid, unsigned flags)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, flags);

	EXPECT(fd >= 0);
	return fd;
}

static void is_running(int fd, bool running)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	EXPECT(poll(&p, 1, running ? 0 : -1) == !running);
}

/* A process that knows its parent and the brother before it. */
static pid_t knows(int brother, int answer)
{
	pid_t pid = fork();
	char c = 0;

	if (pid)
		return pid;
	int own = pidfd(getpid(), 0), parent = pidfd(getppid(), 0);
	EXPECT(read(answer, &c, 1) == 1 && c == 'a');
	is_running(own, true);
	is_running(parent, true);
	is_running(brother, false);
	_exit(21);
}

static void check_processes(pid_t child, int fd, int same, int epoll, int dead, int ended)
{
	struct epoll_event e;
	siginfo_t info = {0};

	is_running(fd, true);
	EXPECT(fcntl(fd, F_GETFL) & O_NONBLOCK && fcntl(same, F_GETFL) & O_NONBLOCK);
	EXPECT(waitid(P_PIDFD, (id_t)fd, &info, WEXITED) == -1 && errno == EAGAIN);
	EXPECT(epoll_wait(epoll, &e, 1, 0) == 0);
	EXPECT(syscall(SYS_pidfd_send_signal, same, SIGTERM, NULL, 0) == 0);
	is_running(fd, false);
	EXPECT(epoll_wait(epoll, &e, 1, -1) == 1 && e.data.u64 == 77);
	EXPECT(waitid(P_PIDFD, (id_t)dead, &info, WEXITED) == 0 && info.si_pid == ended);
	EXPECT(info.si_status == 9);
	/* It is still there for the one who asks for it. */
	EXPECT(waitid(P_PIDFD, (id_t)fd, &info, WEXITED | WNOWAIT) == 0 && info.si_pid == child);
	EXPECT(info.si_status == SIGTERM);
}

void subject_kinds(void)
{
	struct pair pairs[] = {
		{SOCK_STREAM, 0, SHUT_WR, {0}},    {SOCK_STREAM, 1, SHUT_RD, {0}},
		{SOCK_STREAM, 1, SHUT_RDWR, {0}},  {SOCK_SEQPACKET, 1, SHUT_WR, {0}},
		{SOCK_SEQPACKET, 0, SHUT_RD, {0}}, {SOCK_DGRAM, 0, SHUT_WR, {0}},
	};
	struct epoll_event e = {.events = EPOLLIN, .data.u64 = 77};
	int fd[DEVICES], answer[2], status;
	char names[64];
	siginfo_t info;

	for (size_t i = 0; i < DEVICES; i++)
		EXPECT((fd[i] = open(devices[i].path, devices[i].flags)) >= 0);
	EXPECT(mkdir("directory", 0700) == 0 && symlink("inner", "directory/link") == 0);
	EXPECT(close(open("directory/inner", O_WRONLY | O_CREAT, 0600)) == 0);
	int dir = open("directory", O_RDONLY | O_DIRECTORY), path = open("directory/inner", O_PATH);
	int link = open("directory/link", O_PATH | O_NOFOLLOW);
	EXPECT(dir >= 0 && path >= 0 && link >= 0);
	EXPECT(syscall(SYS_getdents64, dir, names, sizeof(names)) > 0);
	const off_t at = lseek(dir, 0, SEEK_CUR);
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		make_pair(&pairs[i]);
	EXPECT(pipe(answer) == 0);
	pid_t child = fork();
	if (child == 0)
		for (;;)
			pause();
	int process = pidfd(child, O_NONBLOCK), same = dup(process), epoll = epoll_create1(0);
	EXPECT(epoll_ctl(epoll, EPOLL_CTL_ADD, process, &e) == 0);
	pid_t ended = fork();
	if (ended == 0)
		_exit(9);
	EXPECT(waitid(P_PID, (id_t)ended, &info, WEXITED | WNOWAIT) == 0);
	int dead = pidfd(ended, 0);
	pid_t brother = knows(process, answer[0]);
	const struct timespec pause = {.tv_nsec = 200000000};
	nanosleep(&pause, NULL);
	subject_ready();
	check_devices(fd);
	check_paths(dir, at, path, link);
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		check_pair(&pairs[i]);
	check_processes(child, process, same, epoll, dead, ended);
	EXPECT(write(answer[1], "a", 1) == 1);
	EXPECT(waitpid(brother, &status, 0) == brother && WIFEXITED(status));
	EXPECT(WEXITSTATUS(status) == 21);
}
