/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library changes nothing of its caller's process: the program compares itself before and after
 * every call, whether that worked or not.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "src/base/str.h"
#include "tests/unit/deny.h"
#include "tests/unit/liblean/fixture.h"

extern char **environ;

/* ---- what it looks like ---------------------------------------------------------------------- */

struct picture {
	char text[32768];
	size_t len;
};

__attribute__((format(printf, 2, 3))) static void add(struct picture *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	p->len += (size_t)vsnprintf(p->text + p->len, sizeof(p->text) - p->len, fmt, ap);
	va_end(ap);
	must(p->len < sizeof(p->text), "picture");
}

static void add_link(struct picture *p, const char *path)
{
	char to[512];
	ssize_t n = readlink(path, to, sizeof(to) - 1);

	to[n < 0 ? 0 : n] = '\0';
	add(p, "%s -> %s\n", path, to);
}

/* Ids, capabilities, signals, affinity, umask, threads, ... but not what counts upwards. */
static void add_status(struct picture *p)
{
	static const char *const counters[] = {"Vm",           "Rss",          "voluntary",
					       "nonvoluntary", "HugetlbPages", "State",
					       "SigPnd",       "ShdPnd",       "SigQ"};
	FILE *f = fopen("/proc/thread-self/status", "re");
	char line[1024];

	must(f != NULL, "status");
	while (fgets(line, sizeof(line), f)) {
		bool counts = false;
		for (size_t i = 0; i < LR_ARRAY_SIZE(counters); i++)
			counts = counts || lr_has_prefix(line, counters[i]);
		if (!counts)
			add(p, "%s", line);
	}
	fclose(f);
}

static void add_file(struct picture *p, const char *path)
{
	char text[512] = "";
	ssize_t n = lr_read_file_at(AT_FDCWD, path, text, sizeof(text));

	add(p, "%s: %s\n", path, n < 0 ? "none" : text);
}

static void take(struct picture *p)
{
	static const char *const links[] = {"cwd",
					    "root",
					    "fd/0",
					    "fd/1",
					    "fd/2",
					    "ns/net",
					    "ns/mnt",
					    "ns/ipc",
					    "ns/cgroup",
					    "ns/uts",
					    "ns/pid",
					    "ns/user",
					    "ns/time",
					    "ns/pid_for_children",
					    "ns/time_for_children"};
	struct sigaction sa;
	uint64_t limit[2];
	char path[64];
	int on = -1;

	p->len = 0;
	for (size_t i = 0; i < LR_ARRAY_SIZE(links); i++) {
		snprintf(path, sizeof(path), "/proc/thread-self/%s", links[i]);
		add_link(p, path);
	}
	add_status(p);
	add_file(p, "/proc/thread-self/cgroup");
	add_file(p, "/proc/thread-self/oom_score_adj");
	add_file(p, "/proc/thread-self/attr/exec");
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		must(syscall(SYS_prlimit64, 0, i, NULL, limit) == 0, "prlimit");
		add(p, "limit %d: %llu %llu\n", i, (unsigned long long)limit[0],
		    (unsigned long long)limit[1]);
	}
	for (int sig = 1; sig < 32; sig++)
		if (sigaction(sig, NULL, &sa) == 0)
			add(p, "signal %d: %p %#x\n", sig, (void *)(size_t)sa.sa_handler,
			    sa.sa_flags);
	add(p, "dumpable %d, keepcaps %d, securebits %d, slack %d\n",
	    prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), prctl(PR_GET_KEEPCAPS, 0, 0, 0, 0),
	    prctl(PR_GET_SECUREBITS, 0, 0, 0, 0), prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0));
	prctl(PR_GET_CHILD_SUBREAPER, &on, 0, 0, 0);
	add(p, "subreaper %d, ", on);
	prctl(PR_GET_PDEATHSIG, &on, 0, 0, 0);
	add(p, "death signal %d, nice %d, policy %d, personality %d, pgid %d, sid %d\n", on,
	    getpriority(PRIO_PROCESS, 0), sched_getscheduler(0), personality(0xffffffff), getpgrp(),
	    getsid(0));
	add(p, "io priority %ld, keyring %ld\n", syscall(SYS_ioprio_get, 1, 0),
	    syscall(SYS_keyctl, 0, -3, 0));
	for (char **e = environ; *e; e++)
		add(p, "%s\n", *e);
}

/* Every descriptor, and how many children: they are the same when all handles are closed. */
static void take_all(struct picture *p)
{
	char path[64];

	take(p);
	for (int fd = 0; fd < 256; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (fcntl(fd, F_GETFD) >= 0) {
			add(p, "flags %d ", fcntl(fd, F_GETFD));
			add_link(p, path);
		}
	}
	siginfo_t info;
	add(p, "children: %d\n", waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL));
}

static void compare(const struct picture *a, const struct picture *b, const char *what)
{
	const char *p = a->text, *q = b->text;

	CHECK(strcmp(p, q) == 0);
	if (strcmp(p, q) == 0)
		return;
	printf("# changed by %s:\n", what);
	while (*p && *q) {
		size_t n = strcspn(p, "\n"), m = strcspn(q, "\n");
		if (n != m || strncmp(p, q, n) != 0)
			printf("#   %.*s\n#   is now %.*s\n", (int)n, p, (int)m, q);
		p += n + (p[n] != '\0');
		q += m + (q[m] != '\0');
	}
}

/* The call has to return that, and to leave all as it was. */
#define SAME(call, want)                                                                           \
	do {                                                                                       \
		static struct picture before_, after_;                                             \
		struct lean_error e_ = {0};                                                        \
		e = &e_;                                                                           \
		take(&before_);                                                                    \
		int got_ = (call);                                                                 \
		take(&after_);                                                                     \
		CHECK_INT(got_, want);                                                             \
		if (got_ != (want))                                                                \
			printf("# %s\n", e_.message);                                              \
		compare(&before_, &after_, #call);                                                 \
	} while (0)

/* ---- the calls ------------------------------------------------------------------------------- */

static void exercise_container(struct lean_container *c)
{
	struct lean_exec_options x = {.size = sizeof(x),
				      .args = ARGS("true"),
				      .user = "5:6",
				      .fds = {LEAN_FD_NULL, 1, 2}};
	struct lean_process *q = NULL;
	struct lean_error *e;
	int status;

	SAME(lean_exec(c, &x, &q, e), 0);
	REQUIRE(q);
	SAME(lean_process_wait(q, -1, &status, e), 0);
	SAME(lean_process_signal(q, SIGTERM, e), -ESRCH);
	lean_process_free(q);
	x.args = ARGS("nothing");
	SAME(lean_exec(c, &x, &q, e), -ENOENT);
	x.args = ARGS("/text");
	x.user = NULL;
	SAME(lean_exec(c, &x, &q, e), -ENOEXEC);
	x.fds[1] = 200;
	SAME(lean_exec(c, &x, &q, e), -EBADF);
	SAME(lean_wait(c, 0, &status, e), -ETIMEDOUT);
	SAME(lean_pause(c, e), 0);
	SAME(lean_resume(c, e), 0);
	SAME(lean_delete(c, 0, e), -EBUSY);
	SAME(lean_signal(c, SIGKILL, e), 0);
	SAME(lean_wait(c, -1, &status, e), 0);
	SAME(lean_delete(c, 0, e), 0);
}

static void exercise(const char *profile, struct parts parts)
{
	struct lean_start_options o = {.size = sizeof(o), .fds = {LEAN_FD_NULL, 1, 2}};
	static struct picture before, after;
	struct lean_container *c = NULL;
	struct lean_template *t = NULL;
	struct lean_error *e;
	char id[32];

	/* Its cgroup is the machine's: somebody else may run these tests, too. */
	snprintf(id, sizeof(id), "same-%d", getpid());
	take_all(&before);
	SAME(open_parts(profile, parts, &t, e), 0);
	REQUIRE(t);
	SAME(lean_warm(t, 1, e), 0);
	o.args = ARGS("nothing");
	SAME(lean_start(t, &o, &c, e), -ENOENT);
	o.args = ARGS("/text");
	SAME(lean_start(t, &o, &c, e), -ENOEXEC);
	o.fds[2] = 200;
	SAME(lean_start(t, &o, &c, e), -EBADF);
	o.fds[2] = 2;
	o.args = ARGS("sleep", "60");
	o.id = id;
	SAME(lean_start(t, &o, &c, e), 0);
	REQUIRE(c);
	SAME(lean_start(t, &o, &c, e), -EEXIST);
	exercise_container(c);
	lean_close(t);
	take_all(&after);
	compare(&before, &after, "all of it");
}

/* ---- the program ----------------------------------------------------------------------------- */

static void handler(int sig)
{
	(void)sig;
}

/* Nothing is as usual. */
static void be_odd(void)
{
	sigset_t set;
	cpu_set_t one;

	umask(0027);
	must(chdir(dir) == 0, dir);
	signal(SIGUSR1, handler);
	signal(SIGRTMAX, handler);
	signal(SIGPIPE, handler);
	signal(SIGHUP, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	(void)sched_setaffinity(0, sizeof(one), &one);
	setenv("NOTIFY_SOCKET", "/nowhere", 1);
	setenv("LISTEN_FDS", "1", 1);
	(void)setpriority(PRIO_PROCESS, 0, 3);
}

/* In a process of its own, as the next test is as usual again. */
#define IN_A_CHILD(what)                                                                           \
	do {                                                                                       \
		int status_;                                                                       \
		if (!ready())                                                                      \
			SKIP("needs root and " BUSYBOX);                                           \
		fflush(stdout);                                                                    \
		pid_t pid_ = fork();                                                               \
		if (pid_ == 0) {                                                                   \
			what;                                                                      \
			fflush(stdout);                                                            \
			_exit(lr_failures > 0);                                                    \
		}                                                                                  \
		CHECK_INT(waitpid(pid_, &status_, 0), pid_);                                       \
		CHECK_INT(status_, 0);                                                             \
	} while (0)

static void odd(const char *profile, struct parts parts)
{
	be_odd();
	for (int dumpable = 0; dumpable < 2; dumpable++) {
		prctl(PR_SET_DUMPABLE, dumpable, 0, 0, 0);
		exercise(profile, parts);
	}
}

#define USERNS                                                                                     \
	(struct parts)                                                                             \
	{                                                                                          \
		.namespaces = OWN_PID ",{\"type\":\"user\"}", .linux_ = SAME_IDS                   \
	}
#define COPY_UP                                                                                    \
	(struct parts)                                                                             \
	{                                                                                          \
		.mounts = ",{\"destination\":\"/etc\",\"type\":\"tmpfs\",\"source\":\"tmpfs\","    \
			  "\"options\":[\"tmpcopyup\"]}"                                           \
	}
#define NO_NEW_PRIVS                                                                               \
	(struct parts)                                                                             \
	{                                                                                          \
		.process = ",\"noNewPrivileges\":true,\"oomScoreAdj\":500,\"rlimits\":[{\"type\":" \
			   "\"RLIMIT_NOFILE\",\"soft\":64,\"hard\":64}]"                           \
	}

TEST(the_program_is_the_same)
{
	IN_A_CHILD(odd(NULL, (struct parts){0}));
}

TEST(the_same_with_limits)
{
	IN_A_CHILD(odd(NULL, NO_NEW_PRIVS));
}

TEST(the_same_with_the_lean_profile)
{
	IN_A_CHILD(odd("lean", NO_NEW_PRIVS));
}

TEST(the_same_with_a_user_namespace)
{
	IN_A_CHILD(odd(NULL, USERNS));
}

TEST(the_same_where_contents_are_copied)
{
	IN_A_CHILD(odd(NULL, COPY_UP));
}

static void *thread(void *arg)
{
	struct parts *parts = arg;

	exercise(NULL, *parts);
	exercise("lean", *parts);
	return NULL;
}

TEST(the_same_in_a_thread)
{
	struct parts parts = {0};
	pthread_t id;

	IN_A_CHILD(pthread_create(&id, NULL, thread, &parts); pthread_join(id, NULL));
}

/* ---- a child's own -ENOSYS ------------------------------------------------------------------- */

static void without_numa(void)
{
	const struct parts parts = {
		.linux_ = ",\"memoryPolicy\":{\"mode\":\"MPOL_BIND\",\"nodes\":\"0\"}"};
	struct lean_template *t = NULL;
	struct lean_error e = {0};
	static struct picture before, after;

	deny(SYS_set_mempolicy, ENOSYS);
	CHECK_INT(open_parts(NULL, parts, &t, &e), 0);
	REQUIRE(t);
	take_all(&before);
	for (int i = 0; i < 3; i++)
		CHECK_INT(start_fails(t, ARGS("true"), &e), -ENOSYS);
	CHECK_HAS(e.path, "linux.memoryPolicy");
	take_all(&after);
	compare(&before, &after, "starts that failed");
	lean_close(t);
}

TEST(a_child_that_lacks_a_system_call_is_born_once)
{
	IN_A_CHILD(without_numa());
}

/* ---- descriptors that are closed ------------------------------------------------------------- */

static void without_input(void)
{
	struct lean_template *t = open_it(NULL, "");
	struct lean_container *c = NULL;
	struct lean_error e = {0};

	REQUIRE(t);
	close(0);
	CHECK_INT(lean_start(t, NULL, &c, &e), -EBADF);
	CHECK_HAS(e.message, "descriptor 0 of this program is closed");
	CHECK_INT(fcntl(0, F_GETFD), -1);
	lean_close(t);
	CHECK_INT(open_parts(NULL, (struct parts){0}, &t, &e), -EBADF);
	CHECK_INT(fcntl(0, F_GETFD), -1);
}

/* The next descriptor would be the library's, and then the container's. */
TEST(standard_descriptors_must_be_open)
{
	IN_A_CHILD(without_input());
}
