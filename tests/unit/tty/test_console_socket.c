/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: descriptors over Unix sockets. */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/sys/path.h"
#include "src/tty/tty.h"
#include "tests/unit/test.h"

static bool is_cloexec(int fd)
{
	return fcntl(fd, F_GETFD) & FD_CLOEXEC;
}

static bool same_file(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

TEST(a_descriptor_and_its_name_arrive)
{
	struct lr_err err = {0};
	char name[64] = "";
	int sock[2], p[2];

	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock) == 0);
	REQUIRE(pipe2(p, O_CLOEXEC) == 0);
	CHECK_INT(lr_tty_send_fd(sock[0], p[1], "/dev/pts/7", &err), 0);
	int fd = lr_tty_recv_fd(sock[1], name, sizeof name, &err);
	REQUIRE(fd >= 0);
	CHECK_STR(name, "/dev/pts/7");
	CHECK(is_cloexec(fd));
	CHECK(same_file(fd, p[1]));
	CHECK_INT(write(fd, "x", 1), 1);
	close(fd);
	close(sock[0]), close(sock[1]), close(p[0]), close(p[1]);
}

TEST(the_message_is_one_and_has_no_terminator)
{
	char buf[64];
	int sock[2];

	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, sock) == 0);
	CHECK_INT(lr_tty_send_fd(sock[0], 0, "abc", NULL), 0);
	CHECK_INT(recv(sock[1], buf, sizeof buf, MSG_DONTWAIT), 3);
	CHECK(memcmp(buf, "abc", 3) == 0);
	close(sock[0]), close(sock[1]);
}

TEST(a_long_name_is_cut_for_the_reader)
{
	char name[4] = "";
	int sock[2];

	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, sock) == 0);
	CHECK_INT(lr_tty_send_fd(sock[0], 0, "/dev/pts/7", NULL), 0);
	int fd = lr_tty_recv_fd(sock[1], name, sizeof name, NULL);
	CHECK(fd >= 0);
	CHECK_STR(name, "/de");
	close(fd), close(sock[0]), close(sock[1]);
}

TEST(names_out_of_range_are_refused)
{
	static char big[5000];
	struct lr_err err = {0};
	int sock[2];

	memset(big, 'x', sizeof big - 1);
	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, sock) == 0);
	CHECK_INT(lr_tty_send_fd(sock[0], 0, "", &err), -EINVAL);
	CHECK_INT(lr_tty_send_fd(sock[0], 0, big, &err), -EINVAL);
	big[4095] = '\0';
	CHECK_INT(lr_tty_send_fd(sock[0], 0, big, &err), 0);
	close(sock[0]), close(sock[1]);
}

TEST(a_closed_peer_is_an_error_not_a_signal)
{
	struct lr_err err = {0};
	int sock[2];

	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, sock) == 0);
	close(sock[1]);
	CHECK_INT(lr_tty_recv_fd(sock[0], NULL, 0, &err), -EPIPE);
	CHECK_INT(lr_tty_send_fd(sock[0], 0, "x", &err), -EPIPE);
	close(sock[0]);
}

static int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void send_many(int sock, size_t n_fds)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int) * 8)];
	} control = {0};
	struct iovec iov = {(void *)"x", 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n_fds) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memset(CMSG_DATA(c), 0, sizeof(int) * n_fds); /* descriptor 0, n times */
	}
	CHECK_INT(sendmsg(sock, &msg, 0), 1);
}

TEST(none_or_several_descriptors_are_refused_and_closed)
{
	static const size_t counts[] = {0, 2, 3, 8};
	struct lr_err err = {0};
	int sock[2];

	for (size_t i = 0; i < 4; i++) {
		REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, sock) == 0);
		int before = count_fds();
		send_many(sock[0], counts[i]);
		CHECK_INT(lr_tty_recv_fd(sock[1], NULL, 0, &err), -EBADMSG);
		CHECK_INT(count_fds(), before);
		close(sock[0]), close(sock[1]);
	}
}

/* Listens at `name` in the directory; the path may be longer than sun_path. */
static int listen_in(const char *dir, const char *name)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	snprintf(sa.sun_path, sizeof sa.sun_path, "/proc/self/fd/%d/%s", at, name);
	bool ok = bind(fd, (struct sockaddr *)&sa, sizeof sa) == 0 && listen(fd, 4) == 0;
	close(at);
	if (!ok)
		close(fd);
	return ok ? fd : -1;
}

static void connect_and_pass(const char *dir, const char *name)
{
	struct lr_err err = {0};
	char path[4096], got[32] = "";

	REQUIRE(lr_mkdir_p(dir, 0700) == 0);
	int listener = listen_in(dir, name);
	REQUIRE(listener >= 0);
	snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = lr_tty_connect(path, &err);
	CHECK(fd >= 0);
	CHECK(fd < 0 || is_cloexec(fd));
	int peer = fd >= 0 ? accept(listener, NULL, NULL) : -1;
	if (peer >= 0) {
		CHECK_INT(lr_tty_send_fd(fd, 0, "pty", &err), 0);
		int passed = lr_tty_recv_fd(peer, got, sizeof got, &err);
		CHECK(passed >= 0);
		CHECK_STR(got, "pty");
		close(passed);
	}
	close(peer), close(fd), close(listener);
}

TEST(console_sockets_of_any_path_length)
{
	char base[] = "/tmp/lr-tty-XXXXXX", dir[4000];

	REQUIRE(mkdtemp(base));
	connect_and_pass(base, "short.sock");
	/* 107 bytes are the longest that fit with their NUL, 108 the shortest that do not. */
	for (size_t len = 106; len <= 109; len++) {
		char name[128] = "";
		memset(name, 'n', len - strlen(base) - 1);
		name[0] = (char)('a' + len % 26);
		connect_and_pass(base, name);
	}
	size_t n = (size_t)snprintf(dir, sizeof dir, "%s", base);
	while (n < 3000)
		n += (size_t)snprintf(dir + n, sizeof dir - n, "/%0100d", 7);
	connect_and_pass(dir, "deep.sock");
	CHECK_INT(lr_remove_tree(AT_FDCWD, base), 0);
}

TEST(what_cannot_be_connected_to_says_why)
{
	char base[] = "/tmp/lr-tty-XXXXXX", path[64], text[1024];
	struct lr_err err = {0};

	REQUIRE(mkdtemp(base));
	snprintf(path, sizeof path, "%s/none", base);
	CHECK_INT(lr_tty_connect(path, &err), -ENOENT);
	CHECK_HAS(lr_err_format(&err, text, sizeof text), path);
	int listener = listen_in(base, "dead");
	close(listener);
	snprintf(path, sizeof path, "%s/dead", base);
	CHECK_INT(lr_tty_connect(path, &err), -ECONNREFUSED);
	CHECK_HAS(lr_err_format(&err, text, sizeof text), "nobody listens");
	CHECK_INT(lr_remove_tree(AT_FDCWD, base), 0);
}
