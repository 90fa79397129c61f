/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: descriptors. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "tests/unit/test.h"

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static int leave_scope(void)
{
	LR_CLEANUP_FD int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	CHECK(is_open(fd));
	errno = ENOTTY;
	return fd;
}

static int take_out(void)
{
	LR_CLEANUP_FD int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	return lr_take_fd(&fd);
}

TEST(descriptors_close_themselves)
{
	int fd = leave_scope();

	CHECK_INT(errno, ENOTTY);
	CHECK(!is_open(fd));
	fd = take_out();
	CHECK(is_open(fd));
	fd = lr_close(fd);
	CHECK_INT(fd, LR_NOFD);
	errno = ENOTTY;
	CHECK_INT(lr_close(-1), LR_NOFD);
	CHECK_INT(lr_close(LR_NOFD), LR_NOFD);
	CHECK_INT(lr_close(-ENOENT), LR_NOFD);
	CHECK_INT(errno, ENOTTY);
}

static int leave_late(int at_least)
{
	LR_CLEANUP_FD_LATE int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, at_least);

	CHECK(is_open(fd));
	return fd;
}

TEST(low_descriptors_may_be_left_to_the_end)
{
	int low = leave_late(3), high = leave_late(LR_FD_LATE);

	CHECK(low < LR_FD_LATE && is_open(low));
	CHECK(high >= LR_FD_LATE && !is_open(high));
	close(low);
	CHECK_INT(lr_close_late(LR_NOFD), LR_NOFD);
}

TEST(heap_and_directories_too)
{
	LR_CLEANUP_FREE char *p = malloc(10);
	LR_CLEANUP_FREE char *none = NULL;
	LR_CLEANUP_DIR DIR *d = opendir("/");
	LR_CLEANUP_DIR DIR *no_dir = NULL;

	CHECK(p && !none && d && !no_dir); /* the leak checker judges */
}

static void on_alarm(int sig)
{
}

struct feeder {
	int fd;
	size_t total;
};

static void *feed(void *arg)
{
	const struct feeder *f = arg;
	char block[1000];

	memset(block, 'f', sizeof block);
	for (size_t done = 0; done < f->total; done += sizeof block) {
		usleep(300);
		if (write(f->fd, block, sizeof block) != sizeof block)
			break;
	}
	close(f->fd);
	return NULL;
}

TEST(whole_reads_survive_signals_and_pieces)
{
	static char buf[100000];
	struct sigaction sa = {.sa_handler = on_alarm}; /* no SA_RESTART */
	struct itimerval tick = {{0, 500}, {0, 500}}, off = {0};
	struct feeder f = {.total = 60000};
	pthread_t thread;
	sigset_t set;
	int p[2];

	REQUIRE(pipe2(p, O_CLOEXEC) == 0);
	f.fd = p[1];
	sigaction(SIGALRM, &sa, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &set, NULL); /* the thread inherits: the reader gets them */
	pthread_create(&thread, NULL, feed, &f);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	setitimer(ITIMER_REAL, &tick, NULL);
	CHECK_INT(lr_read_full(p[0], buf, sizeof buf), 60000);
	setitimer(ITIMER_REAL, &off, NULL);
	pthread_join(thread, NULL);
	CHECK_INT(lr_read_full(p[0], buf, sizeof buf), 0);
	CHECK_INT(lr_read_full(-1, buf, 1), -EBADF);
	close(p[0]);
}

TEST(whole_writes)
{
	static char buf[300000], back[300000];
	int p[2];

	memset(buf, 'w', sizeof buf);
	REQUIRE(pipe2(p, O_CLOEXEC) == 0);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		close(p[1]);
		ssize_t n = lr_read_full(p[0], back, sizeof back);
		_exit(n == sizeof back && memcmp(buf, back, sizeof back) == 0 ? 0 : 1);
	}
	close(p[0]);
	CHECK_INT(lr_write_full(p[1], buf, sizeof buf), sizeof buf);
	close(p[1]);
	int st = -1;
	CHECK(waitpid(pid, &st, 0) == pid);
	CHECK_INT(st, 0);
	CHECK_INT(lr_write_full(-1, buf, 1), -EBADF);
}

TEST(small_files)
{
	char dir[] = "/tmp/lr-fd-XXXXXX", buf[8];

	REQUIRE(mkdtemp(dir));
	int dirfd = open(dir, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	CHECK_INT(lr_write_file_at(dirfd, "f", "x"), -ENOENT); /* never creates */
	int fd = openat(dirfd, "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	CHECK_INT(lr_read_file_at(dirfd, "f", buf, sizeof buf), 0);
	CHECK_STR(buf, "");
	CHECK_INT(lr_write_file_at(dirfd, "f", "1234567"), 0);
	CHECK_INT(lr_read_file_at(dirfd, "f", buf, sizeof buf), 7);
	CHECK_STR(buf, "1234567");
	CHECK_INT(lr_write_file_at(dirfd, "f", "12345678"), 0);
	CHECK_INT(lr_read_file_at(dirfd, "f", buf, sizeof buf), -EFBIG);
	CHECK_INT(lr_read_file_at(dirfd, "none", buf, sizeof buf), -ENOENT);
	CHECK_INT(lr_read_file_at(dirfd, ".", buf, sizeof buf), -EISDIR);
	CHECK_INT(lr_write_file_at(AT_FDCWD, "/proc/self/comm", "renamed"), 0);
	CHECK(lr_read_file_at(AT_FDCWD, "/proc/self/comm", buf, sizeof buf) == -EFBIG);
	unlinkat(dirfd, "f", 0);
	close(dirfd);
	CHECK(rmdir(dir) == 0);
}
