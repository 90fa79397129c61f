/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with a secret starts containers and enters them, while a hostile container (spy.c)
 * looks into every process that it sees. The children of the library share the program's memory.
 */
#include <signal.h>
#include <time.h>

#include "tests/unit/liblean/fixture.h"

#define CAPS(list)                                                                                 \
	",\"capabilities\":{\"bounding\":[" list "],\"permitted\":[" list "],\"effective\":[" list \
	"]}"
#define TRACE  CAPS("\"CAP_SYS_PTRACE\",\"CAP_DAC_OVERRIDE\"")
#define OTHER  CAPS("\"CAP_DAC_OVERRIDE\",\"CAP_NET_BIND_SERVICE\"")
#define ROUNDS 150

static char secret[64];

/* In its data, its heap, its stack and its environment. */
static bool ready_to_be_robbed(void)
{
	const char *spy = getenv("LEAN_SPY");

	if (!spy || !ready())
		return false;
	snprintf(secret, sizeof(secret), "secret-of-%d-%lx", getpid(), (long)time(NULL));
	setenv("SECRET", secret, 1);
	shell("cp %s %s/bin/spy", spy, rootfs);
	return true;
}
#define NEEDS_A_SPY                                                                                \
	do {                                                                                       \
		if (!ready_to_be_robbed())                                                         \
			SKIP("needs root, " BUSYBOX " and LEAN_SPY");                              \
	} while (0)

struct spy {
	struct lean_container *c;
	FILE *out;
};

/* In a container, when this returns. comm: see spy.c. */
static bool start_spy(struct lean_template *t, const char *comm, struct spy *ret)
{
	const char *const args[] = {"spy", secret, comm, NULL};
	struct lean_error e;
	char line[64] = "";
	int p[2];

	must(pipe2(p, O_CLOEXEC) == 0, "pipe");
	struct lean_start_options o = {
		.size = sizeof(o), .args = args, .fds = {LEAN_FD_NULL, p[1], LEAN_FD_NULL}};
	int r = lean_start(t, &o, &ret->c, &e);
	close(p[1]);
	if (r < 0)
		printf("# %s\n", e.message);
	ret->out = fdopen(p[0], "r");
	return r == 0 && fgets(line, sizeof(line), ret->out) && strcmp(line, "ready\n") == 0;
}

/* How many processes it has seen; it has found nothing. */
static unsigned long end_spy(struct spy *s)
{
	unsigned long seen = 0;
	char line[64] = "";
	struct lean_error e;

	/* It ends by itself when it has found the secret. */
	(void)lean_signal(s->c, SIGTERM, &e);
	CHECK(fgets(line, sizeof(line), s->out) != NULL);
	line[strcspn(line, "\n")] = '\0';
	CHECK_HAS(line, "processes, nothing");
	sscanf(line, "%lu", &seen);
	CHECK_INT(end_of(s->c), 0);
	fclose(s->out);
	return seen;
}

static int enter(struct lean_container *c, struct lean_error *e)
{
	struct lean_exec_options o = {
		.size = sizeof(o), .args = ARGS("true"), .fds = {LEAN_FD_NULL, 1, 2}};
	struct lean_process *p;
	int status = -1;

	int r = lean_exec(c, &o, &p, e);
	if (r < 0)
		return r;
	CHECK_INT(lean_process_wait(p, -1, &status, e), 0);
	CHECK_INT(status, 0);
	lean_process_free(p);
	return 0;
}

/* The spy is worth something: where it may look, it finds. */
TEST(the_spy_finds_what_it_may_look_at)
{
	NEEDS_A_SPY;
	int status;

	pid_t pid = fork();
	if (pid == 0) {
		must(freopen("/dev/null", "w", stdout) != NULL, "/dev/null");
		execl(getenv("LEAN_SPY"), "spy", secret, "test_secret", NULL);
		_exit(126);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
}

/* The spy of such a container sees who enters it, and finds nothing. */
static void enter_before_the_spy(struct parts parts)
{
	struct lean_template *t = NULL;
	struct lean_error e;
	struct spy spy;

	CHECK_INT(open_parts(NULL, parts, &t, &e), 0);
	REQUIRE(t);
	REQUIRE(start_spy(t, NULL, &spy));
	for (int i = 0; i < ROUNDS && lr_failures == 0; i++)
		CHECK_INT(enter(spy.c, &e), 0);
	CHECK(end_spy(&spy) > 0);
	lean_close(t);
}

TEST(who_enters_shows_nothing)
{
	NEEDS_A_SPY;
	enter_before_the_spy((struct parts){.process = OTHER});
}

TEST(a_container_that_may_trace_is_not_entered)
{
	NEEDS_A_SPY;
	struct lean_template *t = open_it(NULL, TRACE);
	struct lean_error e;
	struct spy spy;

	REQUIRE(t);
	REQUIRE(start_spy(t, NULL, &spy));
	for (int i = 0; i < ROUNDS && lr_failures == 0; i++)
		CHECK_INT(enter(spy.c, &e), -EOPNOTSUPP);
	CHECK_HAS(e.message, "CAP_SYS_PTRACE");
	CHECK_STR(e.path, "process.capabilities");
	/* What is born meanwhile it does not see. */
	for (int i = 0; i < ROUNDS / 5; i++) {
		struct lean_container *c = start(t, ARGS("true"));
		CHECK(c && end_of(c) == 0);
	}
	CHECK_INT(end_spy(&spy), 0);
	lean_close(t);
}

/* It sees the newborn and this program, and has what it takes in its user namespace only. */
TEST(a_user_namespace_keeps_out_who_may_trace)
{
	NEEDS_A_SPY;
	enter_before_the_spy((struct parts){.process = TRACE,
					    .namespaces = OWN_PID ",{\"type\":\"user\"}",
					    .linux_ = SAME_IDS});
}

TEST(a_shared_pid_namespace_shows_nothing)
{
	NEEDS_A_SPY;
	const struct parts parts = {.process = OTHER, .namespaces = ",{\"type\":\"network\"}"};
	struct lean_template *t = NULL;
	struct lean_error e;
	struct spy spy;

	CHECK_INT(open_parts(NULL, parts, &t, &e), 0);
	REQUIRE(t);
	/* In the processes of this program: it is busy, and the machine has many. */
	REQUIRE(start_spy(t, "test_secret", &spy));
	for (int i = 0; i < ROUNDS / 3; i++) {
		struct lean_container *c = start(t, ARGS("true"));
		CHECK(c && end_of(c) == 0);
		CHECK_INT(enter(spy.c, &e), 0);
	}
	CHECK(end_spy(&spy) > 0);
	lean_close(t);
}

TEST(a_shared_pid_namespace_with_who_may_trace_is_refused)
{
	NEEDS_A_SPY;
	struct lean_template *t = NULL;
	struct lean_error e;

	CHECK_INT(open_parts(NULL, (struct parts){.process = TRACE, .namespaces = ""}, &t, &e),
		  -EOPNOTSUPP);
	CHECK_STR(e.path, "process.capabilities");
	const struct parts joined = {.process = OTHER,
				     .namespaces =
					     ",{\"type\":\"pid\",\"path\":\"/proc/self/ns/pid\"}"};
	CHECK_INT(open_parts(NULL, joined, &t, &e), -EOPNOTSUPP);
	CHECK_STR(e.path, "linux.namespaces[3].path");
	CHECK(!t);
}
