/* SPDX-License-Identifier: Apache-2.0 */
/* The library as a program uses it: real containers, below a root of the test's own. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>

#include "tests/unit/liblean/fixture.h"

TEST(what_is_wrong_is_said_by_open)
{
	struct lean_options o = {.bundle = "/nowhere", .root = "/tmp"};
	struct lean_template *t = (void *)1;
	struct lean_error e = {0};

	CHECK_INT(lean_open(&o, &t, &e), -EINVAL);
	CHECK_HAS(e.message, "size");
	o.size = sizeof(o);
	CHECK_INT(lean_open(&o, &t, &e), -ENOENT);
	CHECK_INT(e.code, ENOENT);
	CHECK_HAS(e.message, "/nowhere");
	o = (struct lean_options){.size = sizeof(o)};
	CHECK_INT(lean_open(&o, &t, &e), -EINVAL);
	CHECK_INT(lean_open(&o, &t, NULL), -EINVAL);
	CHECK_INT(lean_open(NULL, &t, &e), -EINVAL);
	CHECK(t == (void *)1);
	lean_close(NULL);
	lean_forget(NULL);
	lean_process_free(NULL);
	CHECK_STR(lean_version(), LR_VERSION);
}

TEST(options_of_a_later_version)
{
	struct {
		struct lean_options o;
		long later;
	} o = {.o = {.bundle = "/nowhere"}, .later = 1};
	struct lean_template *t;
	struct lean_error e;

	o.o.size = sizeof(o);
	CHECK_INT(lean_open(&o.o, &t, &e), -EINVAL);
	CHECK_HAS(e.message, "later version");
	o.later = 0;
	CHECK_INT(lean_open(&o.o, &t, &e), -ENOENT);
}

TEST(configs_that_a_template_cannot_have)
{
	NEEDS_CONTAINERS;
	struct lean_options o = {.size = sizeof(o), .rootfs = rootfs, .root = root};
	struct lean_template *t;
	struct lean_error e;

	o.config = config(",\"terminal\":true");
	CHECK_INT(lean_open(&o, &t, &e), -EOPNOTSUPP);
	CHECK_STR(e.path, "process.terminal");
	o.config = config(",\"rlimits\":[{\"type\":\"RLIMIT_X\",\"soft\":1,\"hard\":1}]");
	CHECK_INT(lean_open(&o, &t, &e), -EINVAL);
	CHECK_HAS(e.path, "process.rlimits");
	o.config = "{";
	CHECK(lean_open(&o, &t, &e) < 0);
}

TEST(start_wait_delete)
{
	NEEDS_CONTAINERS;
	struct lean_template *t = open_it(NULL, "");
	struct lean_container *c;
	struct lean_error e;
	char path[200];
	int status;

	REQUIRE(t);
	REQUIRE(lean_start(t, NULL, &c, &e) == 0);
	CHECK(strncmp(lean_id(c), "lean-", 5) == 0);
	CHECK(lean_pid(c) > 0);
	snprintf(path, sizeof(path), "%s/%s/record", root, lean_id(c));
	CHECK(access(path, F_OK) == 0);
	lean_close(t); /* what was started goes on */
	CHECK_INT(lean_wait(c, -1, &status, &e), 0);
	CHECK_INT(status, 7);
	CHECK_INT(lean_wait(c, 0, &status, &e), 0); /* any number of times */
	CHECK_INT(status, 7);
	CHECK_INT(lean_signal(c, SIGTERM, &e), -ESRCH);
	CHECK_INT(lean_delete(c, 0, &e), 0);
	CHECK(access(path, F_OK) < 0);
	CHECK_INT(left(), 0);
}

TEST(arguments_environment_descriptors)
{
	NEEDS_CONTAINERS;
	struct lean_template *t = open_it(NULL, "");
	int open_fds[100];

	REQUIRE(t);
	/* Not close-on-exec: a program's libraries may forget that. */
	for (int i = 0; i < 100; i++)
		open_fds[i] = open("/etc/hostname", O_RDONLY);
	CHECK_STR(output(t, ARGS("sh", "-c", "echo $A $B"), ARGS("A=2", "B=3")), "2 3\n");
	CHECK_STR(output(t, ARGS("sh", "-c", "echo $A $B"), NULL), "1\n");
	CHECK_STR(output(t, ARGS("ls", "/proc/self/fd"), NULL), "0\n1\n2\n3\n");
	CHECK_STR(output(t, ARGS("cat"), NULL), "");
	for (int i = 0; i < 100; i++)
		close(open_fds[i]);
	lean_close(t);
}

TEST(programs_that_cannot_be_executed)
{
	NEEDS_CONTAINERS;
	struct lean_template *t = open_it(NULL, "");
	struct lean_error e;

	REQUIRE(t);
	CHECK_INT(start_fails(t, ARGS("nothing"), &e), -ENOENT);
	CHECK_HAS(e.message, "executable file not found in $PATH");
	CHECK_INT(start_fails(t, ARGS("/noexec"), &e), -EACCES);
	CHECK_INT(start_fails(t, ARGS("/text"), &e), -ENOEXEC);
	CHECK_HAS(e.message, "/text");
	CHECK_STR(e.path, "process.args[0]");
	CHECK_INT(left(), 0);
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	lean_close(t);
}

#define DEEP  150
#define SMALL (128 << 10)

static char deepest[2 * DEEP + 32];

static void *cat_deepest(void *t)
{
	CHECK_STR(output(t, ARGS("cat", deepest), NULL), "150\n");
	return NULL;
}

/* Who copies has memory of its own, and in it the stack of the thread that starts the container. */
static void copy_up_deep(const char *profile)
{
	const struct parts parts = {
		.mounts = ",{\"destination\":\"/deep\",\"type\":\"tmpfs\",\"source\":\"tmpfs\","
			  "\"options\":[\"tmpcopyup\"]}"};
	struct lean_template *t = NULL;
	struct lean_error e = {0};
	pthread_attr_t small;
	pthread_t thread;

	strcpy(deepest, "/deep");
	for (int i = 0; i < DEEP; i++)
		strcat(deepest, "/d");
	strcat(deepest, "/file");
	shell("mkdir -p %s/deep && cd %s/deep && for i in $(seq %d); do mkdir -p d && cd d && echo "
	      "$i >file; done",
	      rootfs, rootfs, DEEP);
	CHECK_INT(open_parts(profile, parts, &t, &e), 0);
	REQUIRE(t);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, SMALL);
	CHECK_INT(pthread_create(&thread, &small, cat_deepest, t), 0);
	pthread_join(thread, NULL);
	CHECK_INT(left(), 0);
	lean_close(t);
}

TEST(deep_directories_are_copied_up)
{
	NEEDS_CONTAINERS;
	copy_up_deep(NULL);
}

TEST(deep_directories_are_copied_up_lean)
{
	NEEDS_CONTAINERS;
	copy_up_deep("lean");
}

static const char *filtered(const char *syscalls)
{
	static char text[4096];
	const char *plain = config(""), *at = strstr(plain, "\"linux\":{");

	must(at, "config");
	at += strlen("\"linux\":{");
	snprintf(text, sizeof(text),
		 "%.*s\"seccomp\":{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[%s]},%s",
		 (int)(at - plain), plain, syscalls, at);
	return text;
}

/* The sealed program in between is under the filter already. */
TEST(a_filter_that_refuses_execve_and_every_end)
{
	NEEDS_CONTAINERS;
	struct lean_options o = {
		.size = sizeof(o),
		.config = filtered(
			"{\"names\":[\"execve\",\"write\",\"exit\",\"exit_group\",\"kill\","
			"\"tgkill\"],\"action\":\"SCMP_ACT_ERRNO\"}"),
		.rootfs = rootfs,
		.root = root,
	};
	struct lean_template *t = NULL;
	struct lean_error e;

	REQUIRE(lean_open(&o, &t, &e) == 0);
	CHECK(start_fails(t, ARGS("true"), &e) < 0);
	CHECK_HAS(e.message, "before it executed its program");
	CHECK_INT(left(), 0);
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	lean_close(t);
}

/* The page has a pipe of ours, and closes it by fcntl(2) while it executes the program. */
TEST(a_filter_that_would_leave_a_descriptor_of_ours)
{
	NEEDS_CONTAINERS;
	struct lean_options o = {
		.size = sizeof(o),
		.config = filtered("{\"names\":[\"fcntl\"],\"action\":\"SCMP_ACT_ERRNO\","
				   "\"args\":[{\"index\":1,\"value\":2,\"op\":\"SCMP_CMP_EQ\"},"
				   "{\"index\":2,\"value\":1,\"op\":\"SCMP_CMP_EQ\"}]}"),
		.rootfs = rootfs,
		.root = root,
	};
	struct lean_template *t = NULL;
	struct lean_error e;

	REQUIRE(lean_open(&o, &t, &e) == 0);
	CHECK_INT(start_fails(t, ARGS("true"), &e), -EPERM);
	CHECK_INT(left(), 0);
	lean_close(t);
}

/* CVE-2019-5736: what stands behind it is not this program. */
TEST(self_exe_is_not_ours)
{
	NEEDS_CONTAINERS;
	struct lean_template *t = open_it(NULL, "");

	REQUIRE(t);
	struct lean_container *c = start(t, ARGS("/self"));
	REQUIRE(c);
	CHECK_INT(end_of(c), 126);
	c = start(t, ARGS("/link"));
	REQUIRE(c);
	CHECK_INT(end_of(c), 126);
	lean_close(t);
}

TEST(ids)
{
	NEEDS_CONTAINERS;
	struct lean_template *t = open_it(NULL, "");
	struct lean_start_options o = {
		.size = sizeof(o), .id = "one", .args = ARGS("sleep", "60"), .fds = {0, 1, 2}};
	struct lean_container *c, *d;
	struct lean_error e;

	REQUIRE(t);
	REQUIRE(lean_start(t, &o, &c, &e) == 0);
	CHECK_STR(lean_id(c), "one");
	CHECK_INT(lean_start(t, &o, &d, &e), -EEXIST);
	o.id = "../one";
	CHECK_INT(lean_start(t, &o, &d, &e), -EINVAL);
	CHECK_INT(lean_delete(c, 0, &e), -EBUSY);
	CHECK_INT(lean_delete(c, LEAN_FORCE, &e), 0);
	CHECK_INT(left(), 0);
	lean_close(t);
}

TEST(timeouts_and_signals)
{
	NEEDS_CONTAINERS;
	struct lean_template *t = open_it(NULL, "");
	struct lean_error e;
	int status;

	REQUIRE(t);
	struct lean_container *c = start(t, ARGS("sleep", "60"));
	REQUIRE(c);
	CHECK_INT(lean_wait(c, 0, &status, &e), -ETIMEDOUT);
	CHECK_INT(lean_wait(c, 10, &status, &e), -ETIMEDOUT);
	CHECK_INT(lean_signal(c, SIGKILL, &e), 0);
	CHECK_INT(lean_wait(c, -1, &status, &e), 0);
	CHECK_INT(status, 128 + SIGKILL);
	CHECK_INT(lean_delete(c, 0, &e), 0);
	lean_close(t);
}

/* strace or a debugger: the pidfd says that it has ended, but there is nothing to wait for yet. */
TEST(somebody_traces_it)
{
	NEEDS_CONTAINERS;
	struct lean_template *t = open_it(NULL, "");
	struct lean_error e;
	int status = -1, ready[2];
	char byte = 0;

	REQUIRE(t && pipe2(ready, O_CLOEXEC) == 0);
	struct lean_container *c = start(t, ARGS("sleep", "60"));
	REQUIRE(c);
	pid_t tracer = fork();
	if (tracer == 0) {
		struct pollfd p = {.fd = lean_pidfd(c), .events = POLLIN};

		if (ptrace(PTRACE_SEIZE, lean_pid(c), NULL, NULL) == 0 &&
		    write(ready[1], &byte, 1) == 1)
			poll(&p, 1, 20000);
		usleep(50000); /* for the other one to look */
		_exit(0);
	}
	close(ready[1]);
	CHECK_INT(read(ready[0], &byte, 1), 1);
	CHECK_INT(lean_signal(c, SIGKILL, &e), 0);
	CHECK_INT(lean_wait(c, -1, &status, &e), 0);
	CHECK_INT(status, 128 + SIGKILL);
	CHECK_INT(lean_delete(c, 0, &e), 0);
	waitpid(tracer, NULL, 0);
	close(ready[0]);
	lean_close(t);
}

TEST(pause_and_resume)
{
	NEEDS_CONTAINERS;
	struct lean_template *t = open_it(NULL, "");
	struct lean_error e;
	char byte;
	int p[2];

	REQUIRE(t);
	REQUIRE(pipe2(p, O_CLOEXEC) == 0);
	struct lean_container *c;
	struct lean_start_options o = {.size = sizeof(o),
				       .args = ARGS("sh", "-c", "while :; do echo; done"),
				       .fds = {LEAN_FD_NULL, p[1], p[1]}};
	REQUIRE(lean_start(t, &o, &c, &e) == 0);
	close(p[1]);
	CHECK_INT(lean_pause(c, &e), 0);
	/* Frozen: what is in the pipe can be read, and nothing follows. */
	fcntl(p[0], F_SETFL, O_NONBLOCK);
	while (read(p[0], &byte, 1) == 1)
		;
	CHECK_INT(errno, EAGAIN);
	CHECK_INT(lean_resume(c, &e), 0);
	fcntl(p[0], F_SETFL, 0);
	CHECK_INT(read(p[0], &byte, 1), 1);
	/* Also in the freezer it can be deleted. */
	CHECK_INT(lean_pause(c, &e), 0);
	CHECK_INT(lean_delete(c, LEAN_FORCE, &e), 0);
	close(p[0]);
	CHECK_INT(left(), 0);
	lean_close(t);
}

TEST(exec)
{
	NEEDS_CONTAINERS;
	struct lean_template *t = open_it(NULL, "");
	struct lean_process *q = NULL;
	struct lean_error e;
	char text[64] = "";
	int p[2], status;
	pid_t pid;

	REQUIRE(t);
	REQUIRE(pipe2(p, O_CLOEXEC) == 0);
	struct lean_container *c = start(t, ARGS("sleep", "60"));
	REQUIRE(c);
	struct lean_exec_options o = {.size = sizeof(o),
				      .args = ARGS("sh", "-c", "echo $A $B $(id -u) $PWD; exit 9"),
				      .env = ARGS("B=4"),
				      .cwd = "/proc",
				      .user = "5:6",
				      .fds = {LEAN_FD_NULL, p[1], p[1]}};
	CHECK_INT(lean_exec(c, &o, &q, &e), 0);
	REQUIRE(q);
	CHECK(lean_process_pid(q) > 0 && lean_process_pidfd(q) >= 0);
	CHECK_INT(lean_process_wait(q, -1, &status, &e), 0);
	CHECK_INT(status, 9);
	CHECK_INT(lean_process_signal(q, 0, &e), -ESRCH);
	lean_process_free(q);
	CHECK(read(p[0], text, sizeof(text) - 1) > 0);
	CHECK_STR(text, "1 4 5 /proc\n");
	o.args = ARGS("nothing");
	CHECK_INT(lean_exec(c, &o, &q, &e), -ENOENT);
	o.args = ARGS("/text");
	o.user = NULL;
	CHECK_INT(lean_exec(c, &o, &q, &e), -ENOEXEC);
	close(p[0]);
	close(p[1]);
	/* This thread's children are born where they were before. */
	pid = fork();
	if (pid == 0)
		_exit(getpid() == 1);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK_INT(lean_delete(c, LEAN_FORCE, &e), 0);
	lean_close(t);
}

static atomic_int handled;

static void handler(int sig)
{
	(void)sig;
	handled++;
}

/* The child shares our memory, and is another user: nothing of that may stay. */
TEST(the_program_is_as_before)
{
	NEEDS_CONTAINERS;
	struct lean_template *t = open_it(NULL, "");
	sigset_t set, before, after;
	mode_t mask = umask(0077);
	struct lean_container *c;
	char cwd[200];

	REQUIRE(t);
	signal(SIGRTMAX, handler);
	signal(SIGUSR1, handler);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_SETMASK, &set, &before);
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	const char *text = output(t, ARGS("cat", "/proc/self/status"), NULL);
	CHECK_HAS(text, "Umask:\t0022\n");
	CHECK_HAS(text, "SigBlk:\t0000000000000000");
	CHECK_HAS(text, "SigIgn:\t0000000000000000");
	CHECK_INT(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 1);
	lean_close(t);
	t = open_it(NULL, "");
	REQUIRE(t);
	c = start(t, ARGS("true"));
	REQUIRE(c);
	CHECK_INT(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 1);
	CHECK_INT(end_of(c), 0);
	sigprocmask(SIG_SETMASK, &before, &after);
	CHECK(sigismember(&after, SIGUSR2) == 1 && sigismember(&after, SIGUSR1) == 0);
	CHECK_INT(umask(mask), 0077);
	CHECK(getcwd(cwd, sizeof(cwd)) && access(cwd, F_OK) == 0);
	CHECK_INT(handled, 0);
	signal(SIGRTMAX, SIG_DFL);
	signal(SIGUSR1, SIG_DFL);
	lean_close(t);
}

TEST(somebody_takes_the_status)
{
	NEEDS_CONTAINERS;
	struct lean_template *t = open_it(NULL, "");
	struct lean_error e;
	int status;

	REQUIRE(t);
	signal(SIGCHLD, SIG_IGN);
	struct lean_container *c = start(t, ARGS("true"));
	REQUIRE(c);
	CHECK_INT(lean_wait(c, -1, &status, &e), -ECHILD);
	CHECK_INT(lean_delete(c, 0, &e), 0);
	signal(SIGCHLD, SIG_DFL);
	CHECK_INT(left(), 0);
	lean_close(t);
}

static atomic_int good;

static void *worker(void *arg)
{
	struct lean_template *t = arg;
	char text[16];

	for (int i = 0; i < 20; i++) {
		snprintf(text, sizeof(text), "exit %d", i);
		struct lean_container *c = start(t, ARGS("sh", "-c", text));
		good += c && end_of(c) == i;
	}
	return NULL;
}

static void run_threads(const char *profile, const char *extra)
{
	struct lean_template *t = open_it(profile, extra);
	pthread_t threads[8];

	REQUIRE(t);
	good = 0;
	CHECK_INT(lean_warm(t, 2, NULL), 0);
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, worker, t);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	CHECK_INT(good, 160);
	CHECK_INT(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 1);
	CHECK_INT(left(), 0);
	lean_close(t);
}

TEST(threads)
{
	NEEDS_CONTAINERS;
	run_threads(NULL, ",\"noNewPrivileges\":true");
}

TEST(threads_lean)
{
	NEEDS_CONTAINERS;
	run_threads("lean", ",\"noNewPrivileges\":true");
}

/* Slots that a program warms have nobody's name in ROOT: another one may sweep them away meanwhile.
 */
static int warm_often(void)
{
	struct lean_template *t = open_it("lean", "");
	struct lean_error e;

	for (int i = 0; t && i < 40; i++) {
		if (lean_warm(t, 2, &e) < 0) {
			printf("# %s\n", e.message);
			return 1;
		}
	}
	return t ? 0 : 1;
}

TEST(several_programs_warm_slots_at_once)
{
	NEEDS_CONTAINERS;
	pid_t programs[4];
	int status;

	fflush(stdout);
	for (int i = 0; i < 4; i++) {
		programs[i] = fork();
		if (programs[i] == 0) {
			status = warm_often();
			fflush(stdout);
			_exit(status);
		}
	}
	for (int i = 0; i < 4; i++) {
		REQUIRE(waitpid(programs[i], &status, 0) == programs[i]);
		CHECK_INT(status, 0);
	}
	CHECK_INT(left(), 0);
}

/* Who stays behind after kill -9 is in the record. */
static void replace_root(const char *which)
{
	shell("rm -rf %s.new && cp -a %s %s.new && echo %s >%s.new/which && mv %s %s.$(cat "
	      "%s/which) "
	      "&& mv %s.new %s",
	      rootfs, rootfs, rootfs, which, rootfs, rootfs, rootfs, rootfs, rootfs, rootfs);
}

/* What is kept ready from one must not come to containers of the other. */
TEST(a_root_that_was_replaced)
{
	NEEDS_CONTAINERS;
	shell("echo first >%s/which", rootfs);
	struct lean_template *t = open_it("mounts,rootfs", "");

	REQUIRE(t);
	replace_root("second");
	CHECK_STR(output(t, ARGS("cat", "/which"), NULL), "second\n");
	CHECK_STR(output(t, ARGS("cat", "/which"), NULL), "second\n");
	shell("mv %s %s.second && mv %s.first %s", rootfs, rootfs, rootfs, rootfs);
	CHECK_STR(output(t, ARGS("cat", "/which"), NULL), "first\n");
	lean_close(t);
	t = open_it("mounts,rootfs", "");
	REQUIRE(t);
	CHECK_STR(output(t, ARGS("cat", "/which"), NULL), "first\n");
	lean_close(t);
}

/* The names of slots say whose they are, and have no space for such an id: the pool would take the
 * container for one that is gone, and end it. */
TEST(a_long_id_gets_nothing_from_a_pool)
{
	NEEDS_CONTAINERS;
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lean_template *t = open_it("lean", "");
	struct lean_start_options o = {
		.size = sizeof(o), .args = ARGS("sleep", "300"), .fds = {LEAN_FD_NULL, 1, 2}};
	LR_CLEANUP_FD int store = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct lean_container *c = NULL;
	struct lean_error e;
	struct lr_err err = {0};
	unsigned in_use = 0;
	char id[251] = {0};
	int status = 0;

	REQUIRE(t && store >= 0);
	memset(id, 'x', sizeof(id) - 1);
	o.id = id;
	REQUIRE(lean_start(t, &o, &c, &e) == 0);
	CHECK_INT(lr_lean_pool_drain(store, root, &in_use, a, &err), 0);
	CHECK_INT(lean_wait(c, 100, &status, &e), -ETIMEDOUT);
	CHECK_INT(lean_delete(c, LEAN_FORCE, &e), 0);
	CHECK_INT(left(), 0);
	lean_close(t);
}

TEST(forgotten_containers_are_found)
{
	NEEDS_CONTAINERS;
	const struct lr_runtime rt = {.root = root, .manager = LR_CGROUP_CGROUPFS};
	struct lean_template *t = open_it(NULL, "");
	struct lr_err err = {0};

	REQUIRE(t);
	struct lean_container *c = start(t, ARGS("sleep", "60"));
	REQUIRE(c);
	pid_t pid = lean_pid(c);
	char *id = strdup(lean_id(c));
	lean_forget(c);
	CHECK_INT(left(), 1);
	CHECK_INT(lr_lifecycle_delete(&rt, id, true, &err), 0);
	CHECK_INT(left(), 0);
	CHECK_INT(waitpid(pid, NULL, 0), pid);
	free(id);
	lean_close(t);
}
