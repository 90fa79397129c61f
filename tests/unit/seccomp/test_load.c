/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp: loaded for real, in forked children. */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/seccomp/seccomp.h"
#include "tests/unit/seccomp/profile.h"

static struct lr_arena *arena;
static struct lr_err err;

static int status_of(int (*f)(const struct lr_seccomp_prog *), const struct lr_seccomp_prog *p)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(f(p));
	waitpid(pid, &status, 0);
	return status;
}

static int exit_of(int (*f)(const struct lr_seccomp_prog *), const struct lr_seccomp_prog *p)
{
	int status = status_of(f, p);

	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int docker_like_child(const struct lr_seccomp_prog *p)
{
	struct lr_err e = {0};

	if (lr_seccomp_load(p, NULL, &e))
		return 10;
	if (syscall(SYS_getpid) <= 0 || getppid() <= 0)
		return 11;
	/* Forbidden by the profile. */
	if (syscall(SYS_mount, "none", "/", "none", 0, NULL) != -1 || errno != EPERM)
		return 12;
	if (syscall(SYS_keyctl, 0, 0, 0, 0, 0) != -1 || errno != EPERM)
		return 13;
	/* By argument. */
	if (socket(AF_VSOCK, SOCK_STREAM, 0) != -1 || errno != EPERM)
		return 14;
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	if (s < 0)
		return 15;
	if (syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0) != -1 || errno != EPERM)
		return 16;
	if (syscall(SYS_clone3, NULL, 0) != -1 || errno != ENOSYS)
		return 17;
	/* A long: of an int, the upper half of the register is anything on arm64. */
	if (syscall(SYS_personality, 0xffffffffL) < 0 || syscall(SYS_personality, 1L) != -1 ||
	    errno != EPERM)
		return 18;
	/* Newer than anything in the profile. */
	if (syscall(600) != -1 || errno != ENOSYS)
		return 19;
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	return waitpid(pid, NULL, 0) == pid ? 0 : 20;
}

TEST(docker_like_profile)
{
	struct lr_seccomp_plan plan;
	struct lr_seccomp_prog p;

	if (geteuid() != 0)
		SKIP("needs root");
	arena = lr_arena_new();
	const struct oci_seccomp *s = read_profile("docker-like", arena);
	REQUIRE(s);
	CHECK_INT(lr_seccomp_plan(s, NULL, arena, &plan, &err), 0);
	CHECK_INT(lr_seccomp_compile(&plan, arena, &p, &err), 0);
	CHECK_INT(exit_of(docker_like_child, &p), 0);
}

static struct lr_seccomp_prog simple(const char *name, const char *action)
{
	const char *names[] = {name};
	struct oci_seccomp_rule rule = {.names = {names, 1}, .action = action};
	struct oci_seccomp s = {.default_action = "SCMP_ACT_ALLOW",
				.syscalls = {&rule, 1},
				.listener_path = "/unused"};
	struct lr_seccomp_plan plan;
	struct lr_seccomp_prog p = {0};

	if (!arena)
		arena = lr_arena_new();
	CHECK_INT(lr_seccomp_plan(&s, NULL, arena, &plan, &err), 0);
	CHECK_INT(lr_seccomp_compile(&plan, arena, &p, &err), 0);
	return p;
}

static int calls_getppid(const struct lr_seccomp_prog *p)
{
	struct lr_err e = {0};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || lr_seccomp_load(p, NULL, &e))
		return 10;
	return syscall(SYS_getppid) < 0 ? errno : 0;
}

TEST(actions_in_the_kernel)
{
	struct lr_seccomp_prog p = simple("getppid", "SCMP_ACT_ERRNO");

	CHECK_INT(exit_of(calls_getppid, &p), EPERM);
	p = simple("getppid", "SCMP_ACT_LOG");
	CHECK_INT(exit_of(calls_getppid, &p), 0);
	p = simple("getppid", "SCMP_ACT_KILL_PROCESS");
	CHECK_INT(exit_of(calls_getppid, &p), 1000 + SIGSYS);
	p = simple("getppid", "SCMP_ACT_KILL");
	CHECK_INT(exit_of(calls_getppid, &p), 1000 + SIGSYS);
	p = simple("getppid", "SCMP_ACT_TRAP");
	CHECK_INT(exit_of(calls_getppid, &p), 1000 + SIGSYS);
	p = simple("getppid", "SCMP_ACT_TRACE"); /* nobody traces */
	CHECK_INT(exit_of(calls_getppid, &p), ENOSYS);
	p = simple("getuid", "SCMP_ACT_KILL");
	CHECK_INT(exit_of(calls_getppid, &p), 0);
	for (size_t i = 0; lr_seccomp_flags[i]; i++)
		CHECK(lr_seccomp_flag_supported(lr_seccomp_flags[i]));
	p = simple("getppid", "SCMP_ACT_ERRNO");
	p.flags = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_LOG |
		  SECCOMP_FILTER_FLAG_SPEC_ALLOW | LR_SECCOMP_WAIT_KILLABLE;
	CHECK_INT(exit_of(calls_getppid, &p), EPERM);
}

static int without_privilege(const struct lr_seccomp_prog *p)
{
	struct lr_err e = {0};

	if (setresuid(1, 1, 1))
		return 9;
	if (lr_seccomp_load(p, NULL, &e) != -EACCES || !strstr(e.hint, "noNewPrivileges"))
		return 10;
	return 0;
}

static int with_unknown_flag(const struct lr_seccomp_prog *p)
{
	struct lr_seccomp_prog q = *p;
	struct sock_filter bad = BPF_STMT(BPF_LD, 0);
	struct lr_err e = {0};

	q.v = &bad;
	q.n = 1;
	return lr_seccomp_load(&q, NULL, &e) != -EINVAL || !strstr(e.msg, "cannot load");
}

TEST(refusals_say_why)
{
	struct lr_seccomp_prog p = simple("getppid", "SCMP_ACT_ERRNO");

	if (geteuid() != 0)
		SKIP("needs root");
	CHECK_INT(exit_of(without_privilege, &p), 0);
	CHECK_INT(exit_of(with_unknown_flag, &p), 0);
	CHECK(!lr_seccomp_flag_supported("SECCOMP_FILTER_FLAG_NONE"));
}

/* ---- the listener --------------------------------------------------------------------------- */

static int listener_sock[2];

/* Loads the filter, tells the listener's number by write(2), then makes the call. */
static int notifying_child(const struct lr_seccomp_prog *p)
{
	struct lr_err e = {0};
	int fd = -1;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || lr_seccomp_load(p, &fd, &e) || fd < 0)
		return 10;
	if (!(fcntl(fd, F_GETFD) & FD_CLOEXEC))
		return 11;
	if (write(listener_sock[1], &fd, sizeof(fd)) != sizeof(fd))
		return 12;
	return syscall(SYS_getppid) == 4711 ? 0 : 13;
}

static int agent_socket(const char *path)
{
	char dir[512];
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
	    here = open(".", O_PATH | O_CLOEXEC);
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	/* bind(2) by a short name: the path may be longer than an address. */
	snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(path, '/') - path), path);
	strcpy(addr.sun_path, strrchr(path, '/') + 1);
	if (chdir(dir) || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 1) ||
	    fchdir(here))
		return -1;
	close(here);
	return fd;
}

/* What the agent gets: the text up to the end of the connection, and a descriptor. */
static int receive(int agent, char *text, size_t size)
{
	int conn = accept4(agent, NULL, NULL, SOCK_CLOEXEC), fd = -1;
	union {
		char buf[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} control;
	size_t len = 0;

	for (;;) {
		struct iovec iov = {text + len, size - 1 - len};
		struct msghdr msg = {.msg_iov = &iov,
				     .msg_iovlen = 1,
				     .msg_control = &control,
				     .msg_controllen = sizeof(control)};
		ssize_t n = recvmsg(conn, &msg, MSG_CMSG_CLOEXEC);

		if (n <= 0)
			break;
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
			if (c->cmsg_type == SCM_RIGHTS && len == 0)
				memcpy(&fd, CMSG_DATA(c), sizeof(fd));
		len += (size_t)n;
	}
	text[len] = '\0';
	close(conn);
	return fd;
}

static void answer_one(int listener, int64_t value)
{
	struct seccomp_notif req = {0};
	struct seccomp_notif_resp resp = {0};
	struct pollfd p = {.fd = listener, .events = POLLIN};

	CHECK_INT(poll(&p, 1, 10000), 1);
	CHECK_INT(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &req), 0);
	CHECK_INT(req.data.nr, SYS_getppid);
	resp.id = req.id;
	resp.val = value;
	CHECK_INT(ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &resp), 0);
}

static void with_agent(const char *path, size_t json_len)
{
	struct lr_seccomp_prog p = simple("getppid", "SCMP_ACT_NOTIFY");
	char *json = malloc(json_len + 1), *got = malloc(json_len + 100);
	int number = -1, status = -1;
	int agent = agent_socket(path);

	REQUIRE(agent >= 0);
	CHECK(p.notify);
	memset(json, 'x', json_len);
	json[json_len] = '\0';
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, listener_sock), 0);
	pid_t pid = fork();
	if (pid == 0)
		_exit(notifying_child(&p));
	close(listener_sock[1]);
	CHECK(read(listener_sock[0], &number, sizeof(number)) == sizeof(number));
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	int listener = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
	CHECK(listener >= 0);

	/* The agent is another process: it must be able to read while we write. */
	pid_t sender = fork();
	if (sender == 0)
		_exit(lr_seccomp_send_listener(path, listener, json, json_len, &err) ? 1 : 0);
	int theirs = receive(agent, got, json_len + 100);
	waitpid(sender, &status, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(theirs >= 0);
	CHECK(strcmp(got, json) == 0);
	answer_one(theirs, 4711);
	waitpid(pid, &status, 0);
	CHECK_INT(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
	close(theirs);
	close(listener);
	close(pidfd);
	close(listener_sock[0]);
	close(agent);
	unlink(path);
	free(json);
	free(got);
}

TEST(a_listener_reaches_the_agent)
{
	char dir[] = "/tmp/lr-agent-XXXXXX", path[512], deep[400];

	REQUIRE(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/agent.sock", dir);
	with_agent(path, 300);
	with_agent(path, 500000); /* more than one message */

	/* Longer than a socket address can hold. */
	snprintf(deep, sizeof(deep), "%s/%0150d", dir, 7);
	REQUIRE(mkdir(deep, 0700) == 0);
	snprintf(path, sizeof(path), "%s/agent.sock", deep);
	with_agent(path, 10);
	rmdir(deep);
	rmdir(dir);
}

TEST(no_agent_is_a_clear_error)
{
	CHECK_INT(lr_seccomp_send_listener("/nonexistent/agent.sock", 0, "{}", 2, &err), -ENOENT);
	CHECK_HAS(err.msg, "/nonexistent/agent.sock");
	CHECK_STR(err.path, "linux.seccomp.listenerPath");
	CHECK_HAS(err.hint, "running");
}
