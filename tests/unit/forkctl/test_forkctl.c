/* SPDX-License-Identifier: Apache-2.0 */
/* Whom the runtime gives tickets, and from whom it takes them. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
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

/* The kernel remembers who listened, also when he has become another since. */
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

static int ticket_in(const char *path, uid_t owner, mode_t mode)
{
	static const char text[] = "lean-seed:1:tls:00112233445566778899aabbccddeeff:"
				   "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA@host:7411\n";
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
