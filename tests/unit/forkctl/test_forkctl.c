/* SPDX-License-Identifier: Apache-2.0 */
/* Whom the runtime gives tickets, from whom it takes them, and what it makes of answers. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/forkctl/forkctl.h"
#include "tests/unit/test.h"

#define NOBODY 65534

static void listen_at(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	if (s < 0 || bind(s, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(s, 8) < 0)
		_exit(1);
}

/* The kernel remembers as which user a process has begun to listen. */
static pid_t listener(const char *path, uid_t uid)
{
	int p[2];
	char c;

	if (pipe2(p, O_CLOEXEC) < 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		if (setresuid(uid, uid, uid) < 0)
			_exit(1);
		listen_at(path);
		(void)!write(p[1], "", 1);
		pause();
		_exit(0);
	}
	close(p[1]);
	ssize_t n = read(p[0], &c, 1);
	close(p[0]);
	return n == 1 ? pid : -1;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

TEST(only_a_daemon_of_root_or_ours)
{
	char dir[] = "/tmp/forkctl.XXXXXX", ours[64], other[64];
	struct lr_err err = {0};

	if (geteuid())
		SKIP("needs root");
	REQUIRE(mkdtemp(dir) && chmod(dir, 0777) == 0);
	snprintf(ours, sizeof(ours), "%s/ours", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	pid_t a = listener(ours, 0), b = listener(other, NOBODY);
	REQUIRE(a > 0 && b > 0);
	int s = lr_forkctl_connect(ours, &err);
	CHECK(s >= 0);
	close(s);
	CHECK_INT(lr_forkctl_connect(other, &err), -EPERM);
	end(a);
	end(b);
	unlink(ours);
	unlink(other);
	rmdir(dir);
}

#define TICKET                                                                                     \
	"lean-seed:1:tls:00112233445566778899aabbccddeeff:"                                        \
	"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA@host:7411"

static int ticket_in(const char *path, uid_t owner, mode_t mode)
{
	static const char text[] = TICKET "\n";
	char got[LR_TICKET_TEXT], arg[80];
	struct lr_err err = {0};
	int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, text, sizeof(text) - 1) < 0 || fchown(fd, owner, (gid_t)-1) < 0 ||
	    fchmod(fd, mode) < 0)
		return -EIO;
	close(fd);
	snprintf(arg, sizeof(arg), "file:%s", path);
	int r = lr_forkctl_ticket(arg, got, &err);
	/* What it says of a wrong one has no secret. */
	return r < 0 && strstr(err.msg, "AAAA") ? -EILSEQ : r;
}

TEST(a_ticket_is_in_a_file_of_ours_alone)
{
	char dir[] = "/tmp/forkctl.XXXXXX", path[64];

	REQUIRE(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/ticket", dir);
	CHECK_INT(ticket_in(path, geteuid(), 0600), 0);
	CHECK_INT(ticket_in(path, geteuid(), 0640), -EPERM);
	CHECK_INT(ticket_in(path, geteuid(), 0604), -EPERM);
	if (geteuid() == 0)
		CHECK_INT(ticket_in(path, NOBODY, 0600), -EPERM);
	unlink(path);
	rmdir(dir);
}

/* What lr_forkctl_source makes of an answer that is there already; NULL: of the end. */
static int source_by(const struct lr_wire_msg *answer, int fd, int *ret)
{
	const uint8_t id[LR_WIRE_ID] = {1};
	struct lr_err err = {0};
	int s[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s) < 0)
		return -EIO;
	if (answer && lr_forkctl_send(s[1], answer, &fd, fd >= 0) < 0)
		return -EIO;
	shutdown(s[1], SHUT_WR);
	int r = lr_forkctl_source(s[0], id, ret, &err);
	close(s[0]);
	close(s[1]);
	return r;
}

/* After a refusal there is another way; after no answer there is none, as it may come yet. */
TEST(a_source_or_why_there_is_none)
{
	const struct lr_wire_msg ok = {.type = LR_WIRE_OK};
	struct lr_wire_msg no = {.type = LR_WIRE_REFUSED, .code = LR_WIRE_FAILED};
	struct stat a, b;
	int fd = -1, null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	no.text = lr_wire_text("why", 3);
	REQUIRE(null >= 0);
	CHECK_INT(source_by(&ok, null, &fd), 0);
	CHECK(fstat(fd, &a) == 0 && fstat(null, &b) == 0 && a.st_rdev == b.st_rdev);
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	CHECK_INT(source_by(&ok, -1, &fd), -ECONNREFUSED);
	CHECK_INT(source_by(&no, -1, &fd), -ECONNREFUSED);
	CHECK_INT(source_by(NULL, -1, &fd), -EPIPE);
	no = (struct lr_wire_msg){.type = LR_WIRE_TICKET};
	CHECK_INT(source_by(&no, -1, &fd), -EPROTO);
	close(null);
}

TEST(a_ticket_is_in_a_variable)
{
	char got[LR_TICKET_TEXT];
	struct lr_err err = {0};

	setenv("FORKCTL_TICKET", TICKET, 1);
	CHECK_INT(lr_forkctl_ticket("env:FORKCTL_TICKET", got, &err), 0);
	CHECK_STR(got, TICKET);
	CHECK_INT(lr_forkctl_ticket(TICKET, got, &err), 0);
	unsetenv("FORKCTL_TICKET");
	CHECK_INT(lr_forkctl_ticket("env:FORKCTL_TICKET", got, &err), -ENOENT);
	CHECK_HAS(err.msg, "FORKCTL_TICKET");
}

/* ---- answers ------------------------------------------------------------------------------ */

/* A socket on which that answer waits; the other end in *peer. */
static int answered(const struct lr_wire_msg *m, const int *fds, size_t n, int *peer)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	*peer = pair[1];
	CHECK_INT(m ? lr_forkctl_send(pair[1], m, fds, n) : 0, 0);
	return pair[0];
}

static int removed(const struct lr_wire_msg *answer, struct lr_err *err)
{
	static const uint8_t id[LR_WIRE_ID];
	int peer = -1, sock = answered(answer, NULL, 0, &peer);

	int r = lr_forkctl_remove(sock, id, err);
	close(sock);
	close(peer);
	return r;
}

TEST(an_answer_is_the_one_to_the_question)
{
	struct lr_wire_msg m = {.type = LR_WIRE_OK};
	struct lr_err err = {0};

	CHECK_INT(removed(&m, &err), 0);
	m.type = LR_WIRE_PING;
	CHECK_INT(removed(&m, &err), -EPROTO);
	m = (struct lr_wire_msg){.type = LR_WIRE_REFUSED,
				 .code = LR_WIRE_NO_SEED,
				 .text = lr_wire_text("none is here", 12)};
	CHECK_INT(removed(&m, &err), -ENOENT);
	CHECK_HAS(err.msg, "none is here");
	m.code = LR_WIRE_REVOKED;
	CHECK_INT(removed(&m, &err), -ECONNREFUSED);
	CHECK_HAS(err.msg, "none is here");
}

TEST(a_ticket_that_is_too_long_is_none)
{
	char text[LR_TICKET_TEXT], ticket[LR_TICKET_TEXT];
	struct lr_wire_msg m = {.type = LR_WIRE_TICKET};
	struct lr_err err = {0};

	memset(text, 't', sizeof(text));
	for (size_t n = LR_TICKET_TEXT - 1; n <= LR_TICKET_TEXT; n++) {
		int peer = -1;
		m.text = lr_wire_text(text, n);
		int sock = answered(&m, NULL, 0, &peer);
		CHECK_INT(lr_forkctl_add(sock, "/seed", -1, -1, 0, ticket, &err),
			  n < LR_TICKET_TEXT ? 0 : -EPROTO);
		close(sock);
		close(peer);
	}
	CHECK_INT(strlen(ticket), LR_TICKET_TEXT - 1);
}

static int open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

TEST(a_seed_without_its_descriptor_is_none)
{
	const struct lr_wire_msg m = {.type = LR_WIRE_DESCRIPTOR};
	const int fds[2] = {STDIN_FILENO, STDIN_FILENO};
	uint8_t id[LR_WIRE_ID];
	struct lr_err err = {0};
	int peer = -1;

	for (size_t n = 0; n <= 2; n++) {
		int sock = answered(&m, fds, n, &peer), got = -1, before = open_fds();
		CHECK_INT(lr_forkctl_fetch(sock, TICKET, &got, id, &err), n == 1 ? 0 : -EPROTO);
		CHECK_INT(got >= 0, n == 1);
		if (got >= 0)
			close(got);
		/* All that nobody wanted are closed. */
		CHECK_INT(open_fds(), before);
		close(sock);
		close(peer);
	}
}

/* Bytes with so many descriptors, as no program of ours sends them. */
static void send_raw(int sock, size_t size, size_t n)
{
	static uint8_t bytes[LR_WIRE_MESSAGE + 1];
	struct iovec iov = {bytes, size};
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(32 * sizeof(int))];
	} control = {0};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = CMSG_SPACE(n * sizeof(int))};

	control.h.cmsg_level = SOL_SOCKET;
	control.h.cmsg_type = SCM_RIGHTS;
	control.h.cmsg_len = CMSG_LEN(n * sizeof(int));
	for (size_t i = 0; i < n; i++)
		memcpy(CMSG_DATA(&control.h) + i * sizeof(int), &(int){STDIN_FILENO}, sizeof(int));
	CHECK_INT(sendmsg(sock, &m, 0), size);
}

TEST(what_comes_uncalled_for_is_closed)
{
	static const struct {
		size_t size, fds;
		ssize_t want;
	} cases[] = {
		{16, 2, 16},
		{16, 3, 16},
		{16, 5, 16},
		{16, 32, -EMSGSIZE},
		{LR_WIRE_MESSAGE + 1, 2, -EMSGSIZE},
	};
	int pair[2];

	REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct lr_forkctl_in in;
		const int before = open_fds();
		send_raw(pair[1], cases[i].size, cases[i].fds);
		CHECK_INT(lr_forkctl_receive(pair[0], &in), cases[i].want);
		CHECK(in.n <= 3);
		lr_forkctl_close(&in);
		CHECK_INT(open_fds(), before);
	}
	close(pair[0]);
	close(pair[1]);
}
