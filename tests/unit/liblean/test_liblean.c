/* SPDX-License-Identifier: Apache-2.0 */
/* The library as a program uses it: real containers, below a root of the test's own. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lean/lean.h>

#include "src/lean/lean.h"
#include "src/lifecycle/lifecycle.h"
#include "tests/unit/test.h"

#define BUSYBOX "/bin/busybox"

static char dir[64], root[80], rootfs[80];

static void must(bool ok, const char *what)
{
	if (!ok) {
		printf("Bail out! %s: %s\n", what, strerror(errno));
		exit(1);
	}
}

static void write_file(const char *name, const char *text, mode_t mode)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/%s", rootfs, name);
	FILE *f = fopen(path, "w");
	must(f != NULL, path);
	fputs(text, f);
	fclose(f);
	must(chmod(path, mode) == 0, path);
}

static void shell(const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	must(system(line) == 0, line);
}

/* Mounts, files and control groups; a process of a test that failed may hold on to some. */
static void clean(void)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	LR_CLEANUP_FD int store = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct lr_err err = {0};
	char line[256];
	unsigned left = 0;

	if (store >= 0 && (lr_lean_pool_drain(store, root, &left, a, &err) < 0 || left))
		printf("# %u slots are left: %s\n", left, err.msg);
	snprintf(line, sizeof(line),
		 "umount -l %s/.lean/m* 2>/dev/null; rm -rf --one-file-system %s", root, dir);
	if (system(line) != 0)
		printf("# %s is left\n", dir);
}

/* Root, and a static busybox to fill the container with. */
static bool ready(void)
{
	static int state = -1;

	if (state >= 0)
		return state;
	state = geteuid() == 0 && access(BUSYBOX, X_OK) == 0;
	if (!state)
		return false;
	snprintf(dir, sizeof(dir), "/tmp/liblean-test-XXXXXX");
	must(mkdtemp(dir) != NULL, dir);
	must(chmod(dir, 0755) == 0, dir);
	snprintf(root, sizeof(root), "%s/root", dir);
	snprintf(rootfs, sizeof(rootfs), "%s/rootfs", dir);
	shell("mkdir -p %s/bin %s/proc %s/dev %s/sys %s/etc %s/tmp", rootfs, rootfs, rootfs, rootfs,
	      rootfs, rootfs);
	shell("cp " BUSYBOX " %s/bin/ && for a in sh sleep cat ls true id; do ln -s busybox "
	      "%s/bin/$a; done",
	      rootfs, rootfs);
	write_file("noexec", "#!/bin/sh\n", 0644);
	write_file("text", "no program\n", 0755);
	write_file("self", "#!/proc/self/exe\n", 0755);
	shell("ln -s /proc/self/exe %s/link", rootfs);
	atexit(clean);
	return true;
}
#define NEEDS_CONTAINERS                                                                           \
	do {                                                                                       \
		if (!ready())                                                                      \
			SKIP("needs root and " BUSYBOX);                                           \
	} while (0)

static const char *config(const char *process_extra)
{
	static char text[2048];

	snprintf(text, sizeof(text),
		 "{\"ociVersion\":\"1.0.2\",\"root\":{\"path\":\"nowhere\",\"readonly\":true},"
		 "\"hostname\":\"lean\",\"process\":{\"cwd\":\"/\",\"args\":[\"sh\",\"-c\",\"exit "
		 "7\"],\"env\":[\"PATH=/bin\",\"A=1\"],\"user\":{\"uid\":0,\"gid\":0}%s},"
		 "\"mounts\":[{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"},"
		 "{\"destination\":\"/dev\",\"type\":\"tmpfs\",\"source\":\"tmpfs\",\"options\":["
		 "\"mode=755\"]}],\"linux\":{\"namespaces\":[{\"type\":\"pid\"},{\"type\":"
		 "\"mount\"},"
		 "{\"type\":\"ipc\"},{\"type\":\"uts\"},{\"type\":\"network\"}]}}",
		 process_extra);
	return text;
}

static struct lean_template *open_it(const char *profile, const char *process_extra)
{
	struct lean_options o = {
		.size = sizeof(o),
		.config = config(process_extra),
		.rootfs = rootfs,
		.root = root,
		.profile = profile,
	};
	struct lean_template *t = NULL;
	struct lean_error e;

	if (lean_open(&o, &t, &e) < 0)
		printf("# %s\n", e.message);
	return t;
}

static struct lean_container *start(struct lean_template *t, const char *const *args)
{
	struct lean_start_options o = {
		.size = sizeof(o), .args = args, .fds = {LEAN_FD_NULL, 1, 2}};
	struct lean_container *c = NULL;
	struct lean_error e;

	if (lean_start(t, &o, &c, &e) < 0)
		printf("# %s\n", e.message);
	return c;
}

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Starts, and fails. */
static int start_fails(struct lean_template *t, const char *const *args, struct lean_error *e)
{
	struct lean_start_options o = {.size = sizeof(o), .args = args, .fds = {0, 1, 2}};
	struct lean_container *c = (void *)1;

	int r = lean_start(t, &o, &c, e);
	CHECK(r == 0 || c == (void *)1);
	return r;
}

static int end_of(struct lean_container *c)
{
	struct lean_error e;
	int status = -1;

	if (lean_wait(c, 20000, &status, &e) < 0 || lean_delete(c, LEAN_FORCE, &e) < 0)
		printf("# %s\n", e.message);
	return status;
}

/* What `args` prints in a container. */
static const char *output(struct lean_template *t, const char *const *args, const char *const *env)
{
	static char text[4096];
	struct lean_container *c;
	struct lean_error e;
	size_t len = 0;
	ssize_t n;
	int p[2];

	must(pipe2(p, O_CLOEXEC) == 0, "pipe");
	struct lean_start_options o = {
		.size = sizeof(o), .args = args, .env = env, .fds = {LEAN_FD_NULL, p[1], p[1]}};
	int r = lean_start(t, &o, &c, &e);
	close(p[1]);
	if (r < 0) {
		printf("# %s\n", e.message);
		close(p[0]);
		return "";
	}
	while ((n = read(p[0], text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)n;
	close(p[0]);
	text[len] = '\0';
	end_of(c);
	return text;
}

/* Containers below the root: none, after every test. */
static int left(void)
{
	char line[160];

	snprintf(line, sizeof(line), "exit $(ls %s | wc -l)", root);
	return WEXITSTATUS(system(line));
}

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

/* Who stays behind after kill -9 is in the record. */
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
