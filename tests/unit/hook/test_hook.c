/* SPDX-License-Identifier: Apache-2.0 */
/* hook: order, state, environment, failures, timeouts, and hooks that misbehave. Hooks are shell
 * scripts in the temporary directory of each case. */
#include "tests/unit/rootfs/child.h"

#include <signal.h>
#include <time.h>

#include "src/base/log.h"
#include "src/hook/hook.h"

#define STATE "{\"ociVersion\":\"1.3.0\",\"id\":\"x\",\"status\":\"creating\"}"

static struct lr_err err;

#define STRV(...)                                                                                  \
	((struct oci_strv){.v = (const char *[]){__VA_ARGS__, NULL},                               \
			   .n = sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)})

/* A script named `name` in the temporary directory: its path. */
static const char *script(const char *name, const char *text)
{
	const char *path = in_base("%s", name);
	char all[2048];

	snprintf(all, sizeof(all), "#!/bin/sh\ncd %s\n%s\n", base, text);
	put_file(path, all);
	return strdup(path);
}

static int run_list(struct oci_hook *v, size_t n, const struct lr_hook_opts *opts)
{
	struct oci_hook_list list = {.v = v, .n = n};

	memset(&err, 0, sizeof(err));
	int fds = open_fds();
	int r = lr_hook_run(&list, "createRuntime", STATE, strlen(STATE), opts, &err);
	CHECK_INT(open_fds(), fds);
	CHECK_INT(waitpid(-1, NULL, WNOHANG | __WALL), -1); /* no zombie */
	return r;
}

static int run(const char *text)
{
	struct oci_hook v[] = {{.path = script("hook", text), .env = STRV("PATH=/usr/bin:/bin")}};

	return run_list(v, 1, NULL);
}

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

TEST(check)
{
	int32_t zero = 0, negative = -3, one = 1;
	struct oci_hook v[] = {{.path = "/bin/true", .timeout = &one}, {.path = "true"}};
	struct oci_hooks hooks = {.poststop = {.v = v, .n = 1}};

	CHECK_INT(lr_hook_check(NULL, &err), 0);
	CHECK_INT(lr_hook_check(&hooks, &err), 0);
	hooks.poststop.n = 2;
	CHECK_INT(lr_hook_check(&hooks, &err), -EINVAL);
	CHECK_STR(err.path, "hooks.poststop[1].path");
	v[1] = (struct oci_hook){.path = "/bin/true", .timeout = &zero};
	memset(&err, 0, sizeof(err));
	CHECK_INT(lr_hook_check(&hooks, &err), -EINVAL);
	CHECK_STR(err.path, "hooks.poststop[1].timeout");
	v[1].timeout = &negative;
	CHECK_INT(lr_hook_check(&hooks, &err), -EINVAL);
	v[1] = (struct oci_hook){0};
	CHECK_INT(lr_hook_check(&hooks, &err), -EINVAL);
}

static void body_order(void)
{
	struct oci_hook v[] = {
		{.path = script("one", "cat > state; echo one $* \"[$A]\" >> log; env > env"),
		 .args = STRV("own-name", "x", "y z"),
		 .env = STRV("A=b c", "PATH=/usr/bin:/bin")},
		{.path = script("two", "echo two >> log; PATH=/usr/bin:/bin; env > env2"),
		 .env = {.v = (const char *[]){NULL}}},
	};

	setenv("LEAK", "1", 1);
	CHECK_INT(run_list(v, 2, NULL), 0);
	CHECK_STR(get_file(in_base("log")), "one x y z [b c]\ntwo\n");
	CHECK_STR(get_file(in_base("state")), STATE);
	CHECK(!strstr(get_file(in_base("env")), "LEAK"));
	const char *env = get_file(in_base("env2"));
	CHECK(env && !strstr(env, "LEAK") && !strstr(env, "A=b"));
	CHECK_INT(lr_hook_run(NULL, "poststop", STATE, 1, NULL, &err), 0);
}

TEST(hooks_run_in_order_with_their_own_environment)
{
	NEED_ROOT();
	in_child(body_order, 0);
}

static void body_inherited(void)
{
	struct oci_hook v[] = {{.path = script("one", "PATH=/usr/bin:/bin; env > env")}};
	struct lr_hook_opts opts = LR_HOOK_OPTS_INIT;

	setenv("CALLERS", "1", 1);
	CHECK_INT(run_list(v, 1, &opts), 0);
	CHECK(strstr(get_file(in_base("env")), "CALLERS=1"));
	opts.env = (const char *[]){"GIVEN=1", NULL};
	CHECK_INT(run_list(v, 1, &opts), 0);
	CHECK(strstr(get_file(in_base("env")), "GIVEN=1"));
	CHECK(!strstr(get_file(in_base("env")), "CALLERS"));
}

TEST(hooks_without_one_inherit_an_environment)
{
	NEED_ROOT();
	in_child(body_inherited, 0);
}

static void body_failures(void)
{
	CHECK_INT(run("echo some output; echo 'what went wrong' >&2; exit 3"), -ECANCELED);
	CHECK_HAS(err.msg, "hook #1 of createRuntime (/tmp/lr-test-");
	CHECK_HAS(err.msg, "exited with status 3: some output what went wrong");
	CHECK_STR(err.path, "hooks.createRuntime[0]");
	CHECK_INT(run("kill -9 $$"), -ECANCELED);
	CHECK_HAS(err.msg, "signal 9 (SIGKILL)");
	CHECK_INT(run("exit 0"), 0);

	struct oci_hook v[] = {{.path = "/bin/true"}, {.path = "/nowhere/hook"}};
	CHECK_INT(run_list(v, 2, NULL), -ENOENT);
	CHECK_HAS(err.msg, "hook #2 of createRuntime (/nowhere/hook): executing it: no such file");
	put_file(in_base("plain"), "x");
	CHECK_INT(chmod(in_base("plain"), 0644), 0);
	v[1].path = strdup(in_base("plain"));
	CHECK_INT(run_list(v, 2, NULL), -EACCES);

	/* The first failure ends the list. */
	struct oci_hook w[] = {{.path = "/bin/false"}, {.path = script("after", ": > ran")}};
	CHECK_INT(run_list(w, 2, NULL), -ECANCELED);
	CHECK_INT(access(in_base("ran"), F_OK), -1);
}

TEST(failures_say_why)
{
	NEED_ROOT();
	in_child(body_failures, 0);
}

static int warnings;
static char warning[1200];

static void sink(enum lr_level level, const char *line, void *arg)
{
	if (level != LR_WARN)
		return;
	warnings++;
	snprintf(warning, sizeof(warning), "%s", line);
}

static void body_keep_going(void)
{
	struct lr_hook_opts opts = LR_HOOK_OPTS_INIT;
	struct oci_hook v[] = {
		{.path = "/bin/false"}, {.path = "/nowhere"}, {.path = script("after", ": > ran")}};

	opts.keep_going = true;
	lr_log_set_sink(sink, NULL);
	CHECK_INT(run_list(v, 3, &opts), 0);
	CHECK_INT(warnings, 2);
	CHECK_HAS(warning, "hook #2");
	CHECK_INT(access(in_base("ran"), F_OK), 0);
	CHECK_INT(err.code, 0);
}

TEST(poststop_keeps_going)
{
	NEED_ROOT();
	in_child(body_keep_going, 0);
}

static void body_timeout(void)
{
	int32_t one = 1, ten = 10;
	struct oci_hook v[] = {
		{.path = script("slow", "echo $$ > pid; /bin/sleep 60 & echo $! > child; wait"),
		 .timeout = &one}};

	int64_t start = now();
	CHECK_INT(run_list(v, 1, NULL), -ETIMEDOUT);
	CHECK_HAS(err.msg, "timed out after 1 s");
	CHECK(now() - start >= 1000 && now() - start < 5000);
	/* All of it is gone, also what it had started. */
	const char *pid = get_file(in_base("pid"));
	CHECK(pid && kill(atoi(pid), 0) < 0 && errno == ESRCH);
	pid = get_file(in_base("child"));
	bool gone = false;
	for (int i = 0; i < 100 && pid && !gone; i++) {
		char path[64];
		snprintf(path, sizeof(path), "/proc/%d/stat", atoi(pid));
		const char *stat = get_file(path);
		gone = !stat || strstr(stat, ") Z ");
		usleep(10000);
		pid = get_file(in_base("child"));
	}
	CHECK(gone);

	v[0] = (struct oci_hook){.path = "/bin/true", .timeout = &ten};
	start = now();
	CHECK_INT(run_list(v, 1, NULL), 0);
	CHECK(now() - start < 5000);
}

TEST(timeouts_end_all_of_it)
{
	NEED_ROOT();
	in_child(body_timeout, 0);
}

static void body_not_reading(void)
{
	static char state[3 << 20];
	struct oci_hook v[] = {{.path = "/bin/true"},
			       {.path = script("count", "/usr/bin/wc -c > size")}};
	struct oci_hook_list list = {.v = v, .n = 2};
	static const size_t sizes[] = {1, 4096, 65536, 65537, 500000, sizeof(state)};

	memset(state, ' ', sizeof(state));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char want[32];
		snprintf(want, sizeof(want), "%zu\n", sizes[i]);
		CHECK_INT(lr_hook_run(&list, "prestart", state, sizes[i], NULL, &err), 0);
		CHECK_STR(get_file(in_base("size")), want);
	}
}

/* A user with many pipes gets small ones (pipe(7), pipe-user-pages-soft). */
static void body_small_pipes(void)
{
	static char state[40000];
	struct oci_hook v[] = {{.path = script("count", "/usr/bin/wc -c > size")}};
	struct oci_hook_list list = {.v = v, .n = 1};
	int p[2];

	memset(state, ' ', sizeof(state));
	CHECK_INT(chmod(base, 0777), 0);
	CHECK_INT(setgid(65534) | setuid(65534), 0);
	for (int i = 0; i < 5000 && pipe2(p, O_CLOEXEC) == 0; i++) {
		if (fcntl(p[0], F_GETPIPE_SZ) < (int)sizeof(state))
			break;
	}
	if (fcntl(p[0], F_GETPIPE_SZ) >= (int)sizeof(state))
		printf("# no small pipes here\n");
	CHECK_INT(lr_hook_run(&list, "prestart", state, sizeof(state), NULL, &err), 0);
	CHECK_STR(get_file(in_base("size")), "40000\n");
}

TEST(a_hook_that_never_reads_blocks_nobody)
{
	NEED_ROOT();
	in_child(body_not_reading, 0);
	in_child(body_small_pipes, 0);
}

static void body_output(void)
{
	/* Far more than a pipe holds, on both. */
	CHECK_INT(run("i=0; while [ $i -lt 20000 ]; do echo \"line $i of a lot of output\"; "
		      "echo err >&2; i=$((i+1)); done; echo THE END >&2; exit 7"),
		  -ECANCELED);
	CHECK_HAS(err.msg, "status 7");
	CHECK_HAS(err.msg, "err THE END");

	/* Passed on, and into files. */
	struct lr_hook_opts opts = LR_HOOK_OPTS_INIT;
	struct oci_hook v[] = {{.path = script("both", "echo out; echo err >&2")}};
	int p[2];
	REQUIRE(pipe2(p, O_CLOEXEC) == 0);
	opts.tee_fd = p[1];
	CHECK_INT(run_list(v, 1, &opts), 0);
	char text[64] = "";
	CHECK_INT(read(p[0], text, sizeof(text) - 1), 8);
	CHECK_STR(text, "out\nerr\n");
	opts = (struct lr_hook_opts)LR_HOOK_OPTS_INIT;
	opts.stdout_fd = lr_hook_open_output(in_base("out"), &err);
	CHECK_INT(run_list(v, 1, &opts), 0);
	CHECK_INT(run_list(v, 1, &opts), 0);
	CHECK_STR(get_file(in_base("out")), "out\nout\n");
	CHECK(lr_hook_open_output(in_base("no/such/dir"), &err) == -ENOENT);
}

TEST(output_is_read_and_bounded)
{
	NEED_ROOT();
	in_child(body_output, 0);
}

static void body_left_behind(void)
{
	/* A daemon that holds the output open must not hold us. */
	int64_t start = now();
	CHECK_INT(run("/bin/sleep 5 & echo $! > child"), 0);
	CHECK(now() - start < 3000);
	const char *pid = get_file(in_base("child"));
	CHECK(pid && kill(atoi(pid), SIGKILL) == 0);
}

TEST(what_a_hook_leaves_running_is_not_waited_for)
{
	NEED_ROOT();
	in_child(body_left_behind, 0);
}

static void on_signal(int sig)
{
	(void)sig;
}

static void body_clean(void)
{
	sigset_t set;
	struct sigaction act = {.sa_handler = on_signal};

	/* Everything that must not be inherited. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
	sigaction(SIGTERM, &act, NULL);
	sigfillset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	int leak = dup2(open("/dev/null", O_RDONLY), 77);
	CHECK_INT(leak, 77);
	CHECK_INT(run("exec /bin/cat /proc/self/status > status"), 0);
	const char *status = get_file(in_base("status"));
	CHECK_HAS(status, "SigBlk:\t0000000000000000");
	CHECK_HAS(status, "SigIgn:\t0000000000000000");
	CHECK_INT(run("/bin/ls /proc/self/fd > fds"), 0);
	/* 3 is ls reading the directory. */
	CHECK_STR(get_file(in_base("fds")), "0\n1\n2\n3\n");
	/* The caller's own are as they were. */
	struct sigaction now_act;
	sigaction(SIGCHLD, NULL, &now_act);
	CHECK(now_act.sa_handler == SIG_IGN);
	sigaction(SIGTERM, NULL, &now_act);
	CHECK(now_act.sa_handler == on_signal);
	sigprocmask(SIG_SETMASK, NULL, &set);
	CHECK(sigismember(&set, SIGUSR1) == 1);
	/* The status gets through although SIGCHLD is ignored. */
	CHECK_INT(run("exit 4"), -ECANCELED);
	CHECK_HAS(err.msg, "status 4");
}

TEST(hooks_inherit_nothing)
{
	NEED_ROOT();
	in_child(body_clean, 0);
}

static void body_no_stdio(void)
{
	close(0);
	close(2);
	CHECK_INT(run("read line; echo \"$line\" > line"), 0);
	CHECK_STR(get_file(in_base("line")), STATE "\n");
}

TEST(works_without_standard_descriptors)
{
	NEED_ROOT();
	in_child(body_no_stdio, 0);
}

static void body_pid1(void)
{
	pid_t pid = fork(); /* pid 1 of the new namespace */

	if (pid == 0) {
		CHECK_INT(getpid(), 1);
		CHECK_INT(run("exit 0"), 0);
		CHECK_INT(run("exit 2"), -ECANCELED);
		int32_t one = 1;
		struct oci_hook v[] = {
			{.path = script("slow", "exec /bin/sleep 60"), .timeout = &one}};
		CHECK_INT(run_list(v, 1, NULL), -ETIMEDOUT);
		fflush(stdout);
		_exit(lr_failures ? 1 : 0);
	}
	CHECK_INT(wait_for(pid), 0);
}

TEST(works_in_the_first_process_of_a_namespace)
{
	NEED_ROOT();
	in_child(body_pid1, CLONE_NEWPID);
}

static void body_directory(void)
{
	struct lr_hook_opts opts = LR_HOOK_OPTS_INIT;
	struct oci_hook v[] = {{.path = "/bin/pwd"}};
	int p[2];

	REQUIRE(pipe2(p, O_CLOEXEC) == 0);
	opts.tee_fd = p[1];
	opts.dir = "/usr";
	CHECK_INT(run_list(v, 1, &opts), 0);
	char text[64] = "";
	CHECK_INT(read(p[0], text, sizeof(text) - 1), 5);
	CHECK_STR(text, "/usr\n");
	opts.dir = "/nowhere";
	CHECK_INT(run_list(v, 1, &opts), -ENOENT);
	CHECK_HAS(err.msg, "working directory");
}

TEST(working_directory)
{
	NEED_ROOT();
	in_child(body_directory, 0);
}

/* Fails clone(2) with CLONE_PIDFD as a kernel before 5.2 would, and later pidfd calls. */
static void body_old_kernel(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_PIDFD, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog p = {.len = sizeof(f) / sizeof(f[0]), .filter = f};
	int32_t one = 1;

	CHECK_INT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_INT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p), 0);
	deny(SYS_close_range, ENOSYS);
	deny(SYS_memfd_create, EINVAL);
	CHECK_INT(run("/bin/sleep 0.1; echo words; exit 5"), -ECANCELED);
	CHECK_HAS(err.msg, "status 5: words");
	int leak = dup2(open("/dev/null", O_RDONLY), 77);
	CHECK_INT(leak, 77);
	CHECK_INT(run("/bin/ls /proc/self/fd > fds"), 0);
	CHECK_STR(get_file(in_base("fds")), "0\n1\n2\n3\n");
	struct oci_hook v[] = {{.path = script("slow", "exec /bin/sleep 60"), .timeout = &one}};
	CHECK_INT(run_list(v, 1, NULL), -ETIMEDOUT);
}

TEST(older_kernels)
{
	NEED_ROOT();
	in_child(body_old_kernel, 0);
}
