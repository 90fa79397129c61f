/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors, and trees of processes. */
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include "tests/fork/subject.h"

static int regular(void)
{
	int fd = open("regular", O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);

	EXPECT(write(fd, "0123456789", 10) == 10 && lseek(fd, 4, SEEK_SET) == 4);
	return fd;
}

static void check_regular(int fd, int copy)
{
	char c;

	EXPECT(fcntl(fd, F_GETFL) & O_APPEND && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	EXPECT(fcntl(copy, F_GETFD) == 0);
	EXPECT(read(fd, &c, 1) == 1 && c == '4');
	/* One open file under two numbers. */
	EXPECT(read(copy, &c, 1) == 1 && c == '5');
}

static void check_pipe(const int p[2])
{
	char text[32] = "";

	EXPECT(fcntl(p[1], F_GETPIPE_SZ) == 131072 && fcntl(p[0], F_GETFL) & O_NONBLOCK);
	EXPECT(read(p[0], text, sizeof(text)) == 11 && strcmp(text, "in the pipe") == 0);
	EXPECT(read(p[0], text, sizeof(text)) == -1 && errno == EAGAIN);
	EXPECT(write(p[1], "more", 4) == 4 && read(p[0], text, sizeof(text)) == 4);
}

static void check_pair(const int s[2])
{
	char text[32] = "";

	EXPECT(read(s[0], text, sizeof(text)) == 4 && strcmp(text, "to 0") == 0);
	EXPECT(read(s[1], text, sizeof(text)) == 4 && strcmp(text, "to 1") == 0);
	EXPECT(write(s[0], "again", 5) == 5 && read(s[1], text, sizeof(text)) == 5);
}

void subject_files(void)
{
	int file = regular(), copy = dup(file), p[2], s[2], eof[2];
	int event = eventfd(7, EFD_SEMAPHORE), timer = timerfd_create(CLOCK_MONOTONIC, 0);
	int epoll = epoll_create1(EPOLL_CLOEXEC), high = fcntl(file, F_DUPFD, 700);
	const struct itimerspec when = {{0, 30000000}, {0, 30000000}};
	struct epoll_event e = {.events = EPOLLIN, .data.u64 = 0x1122334455667788}, seen;
	uint64_t n = 0;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	int sig = signalfd(-1, &set, SFD_NONBLOCK);
	EXPECT(pipe2(p, O_NONBLOCK) == 0 && fcntl(p[1], F_SETPIPE_SZ, 131072) == 131072);
	EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0 && pipe(eof) == 0);
	close(eof[1]);
	EXPECT(write(p[1], "in the pipe", 11) == 11);
	EXPECT(write(s[1], "to 0", 4) == 4 && write(s[0], "to 1", 4) == 4);
	EXPECT(epoll_ctl(epoll, EPOLL_CTL_ADD, event, &e) == 0);
	EXPECT(timerfd_settime(timer, 0, &when, NULL) == 0);
	subject_ready();
	check_regular(file, copy);
	check_pipe(p);
	check_pair(s);
	EXPECT(read(eof[0], &n, 1) == 0);
	EXPECT(epoll_wait(epoll, &seen, 1, 0) == 1 && seen.data.u64 == e.data.u64);
	for (int i = 0; i < 7; i++)
		EXPECT(read(event, &n, 8) == 8 && n == 1);
	EXPECT(epoll_wait(epoll, &seen, 1, 0) == 0);
	EXPECT(read(timer, &n, 8) == 8 && n >= 1 && read(timer, &n, 8) == 8);
	struct signalfd_siginfo info;
	kill(getpid(), SIGUSR2);
	EXPECT(read(sig, &info, sizeof(info)) == sizeof(info) && info.ssi_signo == SIGUSR2);
	EXPECT(lseek(high, 0, SEEK_CUR) == 6 && fcntl(701, F_GETFD) == -1);
}

/* ---- trees ----------------------------------------------------------------------------------- */

static pid_t zombie(int status)
{
	siginfo_t info;
	pid_t pid = fork();

	if (pid == 0) {
		if (status > 255)
			raise(SIGKILL);
		_exit(status);
	}
	EXPECT(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
	return pid;
}

void subject_tree(void)
{
	int up[2], down[2], status;
	pid_t ids[4] = {0};

	EXPECT(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 && personality(ADDR_NO_RANDOMIZE) >= 0);
	EXPECT(pipe(up) == 0 && pipe(down) == 0);
	mode_t mask = umask(027);
	(void)mask;
	pid_t dead = zombie(7), killed = zombie(256), child = fork();
	if (child == 0) {
		setsid();
		EXPECT(chdir("/") == 0);
		pid_t grandchild = fork();
		char c = 0;
		if (grandchild == 0) {
			setpgid(0, 0);
			ids[0] = getpid();
			ids[1] = getppid();
			ids[2] = getpgid(0);
			ids[3] = getsid(0);
			EXPECT(read(down[0], &c, 1) == 1 && c == '!');
			bool same = ids[0] == getpid() && ids[1] == getppid() &&
				    ids[2] == getpgid(0) && ids[3] == getsid(0);
			_exit(same ? 11 : 12);
		}
		EXPECT(waitpid(grandchild, &status, 0) == grandchild);
		EXPECT(write(up[1], &status, sizeof(status)) == sizeof(status));
		_exit(getpid() == getsid(0) ? 13 : 14);
	}
	const struct timespec pause = {.tv_nsec = 200000000};
	nanosleep(&pause, NULL);
	subject_ready();
	EXPECT(write(down[1], "!", 1) == 1);
	EXPECT(read(up[0], &status, sizeof(status)) == sizeof(status));
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 11);
	EXPECT(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 13);
	EXPECT(waitpid(dead, &status, 0) == dead && WIFEXITED(status) && WEXITSTATUS(status) == 7);
	EXPECT(waitpid(killed, &status, 0) == killed && WIFSIGNALED(status));
	/* Nobody that the program does not know of; but who is killed leaves a twin, which only
	 * those see who ask for children without a signal. */
	int options = access("killed", F_OK) == 0 ? 0 : __WALL;
	EXPECT(waitpid(-1, &status, options) == -1 && errno == ECHILD);
	EXPECT(umask(0) == 027);
	int reaper = 0;
	EXPECT(prctl(PR_GET_CHILD_SUBREAPER, &reaper) == 0 && reaper == 1);
	EXPECT(personality(0xffffffff) & ADDR_NO_RANDOMIZE);
}

#define BROOD 600
#define EARLY 400 /* of them end one after the other when they go on */

/* Nobody waits for its children: those that end leave its list of them while that is read. */
void subject_brood(void)
{
	const int fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event none;

	EXPECT(fd >= 0 && signal(SIGCHLD, SIG_IGN) != SIG_ERR);
	for (int i = 0; i < BROOD; i++) {
		pid_t pid = fork();
		EXPECT(pid >= 0);
		if (pid)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* A call that the kernel makes again for nobody. */
		do
			epoll_wait(fd, &none, 1, -1);
		while (i >= EARLY);
		usleep((useconds_t)i * 300);
		_exit(0);
	}
	subject_ready();
}
