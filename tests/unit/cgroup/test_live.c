/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: whole lives of cgroups on this host, whatever mode it is in. Everything happens below a
 * directory lr-test-<pid> in each hierarchy, and every test checks that none is left.
 */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libocispec/ocispec.h"
#include "src/cgroup/internal.h"
#include "src/stats/stats.h"
#include "src/sys/path.h"
#include "src/sys/syscalls.h"
#include "tests/unit/test.h"

static struct lr_arena *arena;
static struct lr_err err;
static struct lr_cgroup_layout *layout;
static struct lr_cgroup_plan *plan;
static const struct lr_cgroup_ref *ref;
static char top[64];

static int make(const char *name, const char *json)
{
	const struct oci_resources *res = NULL;
	struct lr_cgroup_opts opts = {.id = name};
	char path[128];
	int r;

	snprintf(top, sizeof(top), "/lr-test-%d", (int)getpid());
	snprintf(path, sizeof(path), "%s/%s", top, name);
	memset(&err, 0, sizeof(err));
	arena = lr_arena_new();
	r = lr_cgroup_probe(arena, &layout, &err);
	if (r == 0 && json)
		r = oci_resources_decode(json, strlen(json), arena, &res, &err);
	if (r == 0)
		r = lr_cgroup_plan(path, res, layout, &opts, arena, &plan, &err);
	if (r == 0) {
		ref = lr_cgroup_plan_ref(plan);
		r = lr_cgroup_create(plan, &err);
	}
	if (r < 0)
		printf("# %s: %s at %s; %s\n", name, err.msg, err.path, err.hint);
	return r;
}

/* Number of directories of ours that exist, over all hierarchies. */
static size_t left(void)
{
	size_t n = 0;

	for (size_t i = 0; i < layout->n; i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s%s", layout->hierarchies[i].mountpoint, top);
		n += access(path, F_OK) == 0;
	}
	return n;
}

static void finish(void)
{
	for (size_t i = 0; layout && i < layout->n; i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s%s", layout->hierarchies[i].mountpoint, top);
		rmdir(path);
	}
	CHECK_INT(left(), 0);
	lr_arena_free(arena);
	arena = NULL;
	plan = NULL;
	layout = NULL;
}

static bool can(void)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_cgroup_layout *l;

	if (geteuid() != 0 || lr_cgroup_probe(a, &l, &err) < 0 || l->n == 0)
		return false;
	for (size_t i = 0; i < l->n; i++)
		if (access(l->hierarchies[i].mountpoint, W_OK) < 0)
			return false;
	return true;
}
#define NEED_CGROUPS()                                                                             \
	if (!can())                                                                                \
	SKIP("needs root and writable cgroups")

/* A child in the container's cgroup, born there where possible; runs fn, or sleeps. */
static pid_t child(void (*fn)(void))
{
	int fd = lr_cgroup_clone_fd(plan), ready[2];
	struct clone_args args = {.exit_signal = SIGCHLD};
	bool born = fd >= 0;
	char c;
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC) < 0)
		return -1;
	if (born) {
		args.flags = CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)fd;
	}
	pid = lr_clone3(&args, sizeof(args));
	if (pid == 0) {
		alarm(20);
		if (lr_cgroup_join_self(plan, born, &err) < 0) {
			printf("# join: %s\n", err.msg);
			_exit(99);
		}
		if (write(ready[1], "x", 1) != 1)
			_exit(98);
		if (fn)
			fn();
		for (;;)
			pause();
	}
	lr_close(fd);
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		printf("# the child did not join\n");
	close(ready[0]);
	return pid;
}

static int reap(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	return status;
}

static char *text_of(const char *dir, const char *file)
{
	static char buf[4096];

	if (lr_cgroup_read(dir, file, buf, sizeof(buf)) < 0)
		strcpy(buf, "(unreadable)");
	buf[strcspn(buf, "\n")] = '\0';
	return buf;
}

/* ---- tests ---------------------------------------------------------------------------------- */

TEST(a_life)
{
	NEED_CGROUPS();
	pid_t *v, pid;
	size_t n;
	char line[128], file[64], own[8192];

	REQUIRE(make("life", "{\"pids\":{\"limit\":10},\"cpu\":{\"shares\":300}}") == 0);
	CHECK_INT(ref->n, layout->n);
	CHECK_STR(text_of(lr_cgroup_dir(ref, LR_CTRL_PIDS), "pids.max"), "10");
	pid = child(NULL);
	CHECK_INT(lr_cgroup_pids(ref, arena, &v, &n, &err), 0);
	CHECK_INT(n, 1);
	CHECK(n == 1 && v[0] == pid);
	/* in every hierarchy */
	snprintf(file, sizeof(file), "/proc/%d/cgroup", (int)pid);
	REQUIRE(lr_read_file_at(AT_FDCWD, file, own, sizeof(own)) > 0);
	snprintf(line, sizeof(line), "%s/life\n", top);
	size_t lines = 0, ours = 0;
	for (char *p = own; *p; p = strchr(p, '\n') + 1, lines++)
		ours += strncmp(strchr(strchr(p, ':') + 1, ':') + 1, line, strlen(line)) == 0;
	CHECK_INT(ours, lines);
	CHECK_INT(lines, layout->n);
	CHECK_INT(lr_cgroup_destroy(ref, true, &err), 0);
	CHECK(WIFSIGNALED(reap(pid)));
	CHECK_INT(lr_cgroup_destroy(ref, true, &err), 0); /* again: nothing to do */
	CHECK_INT(lr_cgroup_destroy(ref, false, &err), 0);
	finish();
}

TEST(a_cgroup_with_processes_is_not_taken_over)
{
	NEED_CGROUPS();
	struct lr_cgroup_plan *first;
	struct lr_arena *keep;
	pid_t pid;

	REQUIRE(make("taken", NULL) == 0);
	pid = child(NULL);
	lr_cgroup_settle(plan);
	first = plan;
	keep = arena;
	CHECK_INT(make("taken", NULL), -EBUSY);
	CHECK_STR(err.path, "linux.cgroupsPath");
	CHECK(access(lr_cgroup_main_dir(&first->ref), F_OK) == 0); /* not removed by the failure */
	/* Cleaning up after the failed one must not end the other's processes. */
	CHECK_INT(ref->n, 0);
	CHECK_INT(lr_cgroup_destroy(ref, true, &err), 0);
	CHECK_INT(kill(pid, 0), 0);
	kill(pid, SIGKILL);
	reap(pid);
	lr_arena_free(arena);
	/* empty: reused */
	CHECK_INT(make("taken", NULL), 0);
	lr_cgroup_settle(plan);
	CHECK_INT(lr_cgroup_destroy(ref, false, &err), 0);
	lr_arena_free(keep);
	finish();
}

TEST(a_cgroup_whose_processes_are_still_to_come_is_not_taken_over)
{
	NEED_CGROUPS();
	struct lr_cgroup_layout *places;
	struct lr_cgroup_plan *first;
	struct lr_arena *keep;

	/* Once made, once reused: both claim it. */
	for (int round = 0; round < 2; round++) {
		REQUIRE(make("claimed", NULL) == 0);
		first = plan;
		keep = arena;
		places = layout;
		CHECK_INT(make("claimed", NULL), -EBUSY);
		CHECK_STR(err.path, "linux.cgroupsPath");
		CHECK_HAS(err.msg, "exists and has processes");
		CHECK_INT(ref->n, 0);
		lr_cgroup_settle(plan);
		for (size_t i = 0; i < first->ref.n; i++)
			CHECK(access(first->ref.v[i].path, F_OK) == 0);
		lr_arena_free(arena);
		/* Whoever is refused does not end the claim. */
		CHECK_INT(make("claimed", NULL), -EBUSY);
		lr_arena_free(arena);
		lr_cgroup_settle(first);
		plan = first;
		arena = keep;
		layout = places;
		ref = lr_cgroup_plan_ref(plan);
		if (round == 0)
			lr_arena_free(keep);
	}
	CHECK_INT(lr_cgroup_destroy(ref, false, &err), 0);
	finish();
}

TEST(failure_leaves_nothing)
{
	NEED_CGROUPS();

	/* No such device: refused by the kernel, after everything has been made. */
	if (make("undo", "{\"blockIO\":{\"throttleReadBpsDevice\":[{\"major\":4000,\"minor\":7,"
			 "\"rate\":5}]}}") == 0) {
		CHECK_INT(lr_cgroup_destroy(ref, true, &err), 0);
		finish();
		SKIP("the kernel takes limits for absent devices");
	}
	CHECK_STR(err.path, "linux.resources.blockIO.throttleReadBpsDevice[0]");
	CHECK_HAS(err.hint, "no such block device");
	CHECK_INT(left(), 0); /* the parents are gone, too */
	finish();
}

TEST(deep_new_paths_can_be_joined)
{
	NEED_CGROUPS();
	pid_t pid;

	/* cpusets must be filled all the way down, or joining is ENOSPC. */
	REQUIRE(make("a/b/c/d", "{\"cpu\":{\"cpus\":\"0\"}}") == 0);
	CHECK_STR(text_of(lr_cgroup_dir(ref, LR_CTRL_CPUSET), "cpuset.cpus"), "0");
	pid = child(NULL);
	kill(pid, SIGKILL);
	CHECK_INT(WTERMSIG(reap(pid)), SIGKILL);
	for (int i = 0; i < 4; i++) {
		static const char *const parts[] = {"/a/b/c/d", "/a/b/c", "/a/b", "/a"};

		for (size_t k = 0; k < layout->n; k++) {
			char path[PATH_MAX];

			snprintf(path, sizeof(path), "%s%s%s", layout->hierarchies[k].mountpoint,
				 top, parts[i]);
			CHECK_INT(rmdir(path), 0);
		}
	}
	finish();
}

TEST(memory_limits_move_up_and_down)
{
	NEED_CGROUPS();
	static const char *const steps[][2] = {
		{"{\"memory\":{\"limit\":33554432,\"swap\":67108864}}", "33554432"},
		{"{\"memory\":{\"limit\":134217728,\"swap\":268435456}}", "134217728"},
		{"{\"memory\":{\"limit\":16777216,\"swap\":16777216}}", "16777216"},
		{"{\"memory\":{\"limit\":67108864,\"swap\":67108864}}", "67108864"}};

	REQUIRE(make("mem", steps[0][0]) == 0);
	const char *dir = lr_cgroup_dir(ref, LR_CTRL_MEMORY);
	bool v2 = ref->mode == LR_CGROUP_V2;
	for (size_t i = 0; i < LR_ARRAY_SIZE(steps); i++) {
		const struct oci_resources *res;

		REQUIRE(oci_resources_decode(steps[i][0], strlen(steps[i][0]), arena, &res, &err) ==
			0);
		CHECK_INT(lr_cgroup_update(ref, res, arena, &err), 0);
		CHECK_STR(text_of(dir, v2 ? "memory.max" : "memory.limit_in_bytes"), steps[i][1]);
	}
	CHECK_INT(lr_cgroup_destroy(ref, false, &err), 0);
	finish();
}

TEST(cpu_limits_update_in_any_order)
{
	NEED_CGROUPS();
	static const char *const steps[] = {
		"{\"cpu\":{\"quota\":100000,\"period\":100000}}",
		"{\"cpu\":{\"quota\":500000,\"burst\":400000}}",
		"{\"cpu\":{\"quota\":20000,\"burst\":10000}}", /* burst must go first */
		"{\"cpu\":{\"period\":50000}}",
		"{\"cpu\":{\"idle\":1}}",
		"{\"cpu\":{\"shares\":2000,\"idle\":0}}", /* shares are refused while idle */
		"{\"cpu\":{\"burst\":0,\"quota\":-1}}"};

	REQUIRE(make("cpu", NULL) == 0);
	const char *dir = lr_cgroup_dir(ref, LR_CTRL_CPU);
	for (size_t i = 0; i < LR_ARRAY_SIZE(steps); i++) {
		const struct oci_resources *res;

		REQUIRE(oci_resources_decode(steps[i], strlen(steps[i]), arena, &res, &err) == 0);
		if (lr_cgroup_update(ref, res, arena, &err) < 0) {
			printf("# step %zu: %s\n", i, err.msg);
			CHECK(false);
		}
	}
	if (ref->mode == LR_CGROUP_V2)
		CHECK_STR(text_of(dir, "cpu.max"), "max 50000");
	else {
		CHECK_STR(text_of(dir, "cpu.cfs_quota_us"), "-1");
		CHECK_STR(text_of(dir, "cpu.cfs_period_us"), "50000");
		CHECK_STR(text_of(dir, "cpu.cfs_burst_us"), "0");
		CHECK_STR(text_of(dir, "cpu.shares"), "2000");
		CHECK_STR(text_of(dir, "cpu.idle"), "0");
	}
	CHECK_INT(lr_cgroup_destroy(ref, false, &err), 0);
	finish();
}

TEST(a_limit_the_kernel_refuses_says_why)
{
	NEED_CGROUPS();
	static const char bad[] = "{\"cpu\":{\"cpus\":\"4000\"}}";
	const struct oci_resources *res;

	REQUIRE(make("why", NULL) == 0);
	REQUIRE(oci_resources_decode(bad, strlen(bad), arena, &res, &err) == 0);
	CHECK(lr_cgroup_update(ref, res, arena, &err) < 0);
	CHECK_STR(err.path, "linux.resources.cpu.cpus");
	CHECK_HAS(err.msg, "cpuset.cpus");
	CHECK_INT(lr_cgroup_destroy(ref, false, &err), 0);
	finish();
}

/* Up to 20 s, on a machine however busy. */
#define WAIT_UNTIL(cond)                                                                           \
	do {                                                                                       \
		for (int turn = 0; turn < 4000 && !(cond); turn++)                                 \
			usleep(5000);                                                              \
		CHECK(cond);                                                                       \
	} while (0)

static int *counter;

static void count(void)
{
	for (;;) {
		++*counter;
		usleep(500);
	}
}

TEST(freeze_stops_and_thaw_continues)
{
	NEED_CGROUPS();
	int before;
	pid_t pid;

	counter = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(make("freeze", NULL) == 0);
	pid = child(count);
	CHECK_INT(lr_cgroup_is_frozen(ref), 0);
	CHECK_INT(lr_cgroup_freeze(ref, true, &err), 0);
	CHECK_INT(lr_cgroup_is_frozen(ref), 1);
	before = *(volatile int *)counter;
	usleep(20000);
	CHECK_INT(*(volatile int *)counter, before);
	CHECK_INT(lr_cgroup_freeze(ref, true, &err), 0); /* again */
	CHECK_INT(lr_cgroup_freeze(ref, false, &err), 0);
	WAIT_UNTIL(*(volatile int *)counter > before);
	CHECK_INT(lr_cgroup_is_frozen(ref), 0);
	/* other signals leave a paused container paused; KILL ends it */
	CHECK_INT(lr_cgroup_freeze(ref, true, &err), 0);
	CHECK_INT(lr_cgroup_signal_all(ref, SIGUSR1, &err), 0);
	CHECK_INT(lr_cgroup_is_frozen(ref), 1);
	CHECK_INT(lr_cgroup_signal_all(ref, SIGKILL, &err), 0);
	CHECK(WIFSIGNALED(reap(pid)));
	CHECK_INT(lr_cgroup_destroy(ref, false, &err), 0);
	finish();
}

TEST(a_paused_container_can_be_destroyed)
{
	NEED_CGROUPS();
	pid_t pid;

	REQUIRE(make("paused", NULL) == 0);
	pid = child(NULL);
	CHECK_INT(lr_cgroup_freeze(ref, true, &err), 0);
	CHECK_INT(lr_cgroup_destroy(ref, true, &err), 0);
	CHECK_INT(WTERMSIG(reap(pid)), SIGKILL);
	finish();
}

/* Forks all the time, as fast as it can, ignoring what can be ignored. */
static void breed(void)
{
	signal(SIGCHLD, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	for (;;) {
		pid_t p = fork();

		if (p == 0) {
			usleep(1000);
			if (fork() == 0)
				usleep(500000);
			_exit(0);
		}
		usleep(200);
	}
}

static size_t population(pid_t **v)
{
	size_t n = 0;

	CHECK_INT(lr_cgroup_pids(ref, arena, v, &n, &err), 0);
	return n;
}

TEST(a_fork_bomb_does_not_escape)
{
	NEED_CGROUPS();
	pid_t pid, *v;
	size_t n;

	REQUIRE(make("bomb", "{\"pids\":{\"limit\":50}}") == 0);
	pid = child(breed);
	WAIT_UNTIL((n = population(&v)) > 2);
	for (size_t i = 1; i < n; i++)
		CHECK(v[i - 1] < v[i]);
	CHECK_INT(lr_cgroup_signal_all(ref, SIGTERM, &err), 0);
	CHECK_INT(lr_cgroup_signal_all(ref, SIGKILL, &err), 0);
	CHECK_INT(WTERMSIG(reap(pid)), SIGKILL);
	WAIT_UNTIL(population(&v) == 0);
	CHECK_INT(lr_cgroup_destroy(ref, false, &err), 0);
	finish();
}

TEST(a_fork_bomb_without_a_freezer_dies_too)
{
	NEED_CGROUPS();
	struct lr_cgroup_ref bare;
	pid_t pid;

	REQUIRE(make("bare", "{\"pids\":{\"limit\":50}}") == 0);
	int i = lr_cgroup_find(ref, LR_CTRL_PIDS);
	if (ref->mode == LR_CGROUP_V2 || i < 0) {
		CHECK_INT(lr_cgroup_destroy(ref, true, &err), 0);
		finish();
		SKIP("v2 always has one");
	}
	pid = child(breed);
	usleep(20000);
	bare = *ref;
	bare.v = &ref->v[i];
	bare.n = 1;
	CHECK_INT(lr_cgroup_destroy(&bare, true, &err), 0);
	CHECK_INT(WTERMSIG(reap(pid)), SIGKILL);
	CHECK_INT(lr_cgroup_destroy(ref, true, &err), 0);
	finish();
}

TEST(destroy_takes_what_the_container_made)
{
	NEED_CGROUPS();
	char path[PATH_MAX];
	const char *dir;
	pid_t pid, inner;

	REQUIRE(make("nest", NULL) == 0);
	dir = lr_cgroup_main_dir(ref);
	snprintf(path, sizeof(path), "%s/x", dir);
	CHECK_INT(mkdir(path, 0755), 0);
	/* a deep one: removal may not run out of descriptors or stack */
	for (int i = 0; i < 40; i++) {
		strcat(path, "/y");
		CHECK_INT(mkdir(path, 0755), 0);
	}
	snprintf(path, sizeof(path), "%s/x/y/side", dir);
	CHECK_INT(mkdir(path, 0755), 0);
	pid = child(NULL);
	inner = child(NULL);
	char text[16];
	snprintf(text, sizeof(text), "%d", (int)inner);
	CHECK_INT(lr_cgroup_put(path, "cgroup.procs", text), 0);
	pid_t *v;
	size_t n;
	CHECK_INT(lr_cgroup_pids(ref, arena, &v, &n, &err), 0);
	CHECK_INT(n, 2);
	CHECK_INT(lr_cgroup_destroy(ref, true, &err), 0);
	CHECK_INT(WTERMSIG(reap(pid)), SIGKILL);
	CHECK_INT(WTERMSIG(reap(inner)), SIGKILL);
	finish();
}

TEST(destroy_without_kill_names_who_is_left)
{
	NEED_CGROUPS();
	char number[16], path[PATH_MAX];
	pid_t pid;

	REQUIRE(make("busy", NULL) == 0);
	pid = child(NULL);
	snprintf(number, sizeof(number), "%d", (int)pid);
	snprintf(path, sizeof(path), "%s/empty", lr_cgroup_main_dir(ref));
	CHECK_INT(mkdir(path, 0755), 0);
	CHECK_INT(lr_cgroup_destroy(ref, false, &err), -EBUSY);
	CHECK_HAS(err.hint, number);
	CHECK(access(path, F_OK) == 0); /* nothing of theirs is touched */
	kill(pid, SIGKILL);
	reap(pid);
	CHECK_INT(lr_cgroup_destroy(ref, false, &err), 0);
	finish();
}

TEST(exec_joins_sub_cgroups)
{
	NEED_CGROUPS();
	static const char *const sub[] = {"inner"}, *const up[] = {"a/../../b"},
				 *const ctrl[] = {"pids,memory:inner"},
				 *const odd[] = {"xyz:inner"};
	char path[PATH_MAX];
	pid_t pid;

	REQUIRE(make("exec", NULL) == 0);
	bool v2 = ref->mode == LR_CGROUP_V2;
	for (size_t i = 0; i < ref->n; i++) {
		snprintf(path, sizeof(path), "%s/inner", ref->v[i].path);
		CHECK_INT(mkdir(path, 0755), 0);
		struct lr_cgroup_target t = {.mountpoint = layout->hierarchies[i].mountpoint};
		if (lr_cgroup_name_has(ref->v[i].hierarchy, "cpuset"))
			CHECK_INT(lr_cgroup_cpuset_fill(&t, path, true, NULL, &err), 0);
	}
	pid = fork();
	if (pid == 0) {
		struct lr_cgroup_join how = {.subpaths = up, .n = 1};
		char own[8192], want[128];
		const char *p = own;

		if (lr_cgroup_join_ref_self(ref, &how, &err) != -EINVAL)
			_exit(1);
		how.subpaths = odd;
		if (lr_cgroup_join_ref_self(ref, &how, &err) != -EINVAL)
			_exit(2);
		how.subpaths = ctrl;
		if (lr_cgroup_join_ref_self(ref, &how, &err) != (v2 ? -EINVAL : 0))
			_exit(3);
		if (!v2) {
			lr_read_file_at(AT_FDCWD, "/proc/self/cgroup", own, sizeof(own));
			snprintf(want, sizeof(want), ":pids:%s/exec/inner\n", top);
			if (!strstr(own, want) || strstr(strstr(own, want) + 1, "devices:/inner"))
				_exit(4);
			snprintf(want, sizeof(want), ":freezer:%s/exec\n", top);
			if (!strstr(own, want))
				_exit(5);
		}
		how.subpaths = sub;
		if (lr_cgroup_join_ref_self(ref, &how, &err) != 0)
			_exit(6);
		lr_read_file_at(AT_FDCWD, "/proc/self/cgroup", own, sizeof(own));
		snprintf(want, sizeof(want), "%s/exec/inner\n", top);
		for (size_t n = 0; n < ref->n; n++) {
			p = strstr(p, want);
			if (!p++)
				_exit(7);
		}
		if (lr_cgroup_join_ref_self(ref, NULL, &err) != 0)
			_exit(8);
		_exit(0);
	}
	CHECK_INT(reap(pid), 0);
	CHECK_INT(lr_cgroup_destroy(ref, false, &err), 0);
	finish();
}

/* Init moved itself down ("/fall/init.scope"), as a nested service manager does. A host whose v2
 * tree has controllers then answers EBUSY; here a copy of the tree, without the upper cgroup.procs,
 * does (ENOENT), and the file that is written instead shows where exec went. */
TEST(exec_falls_back_to_inits_own_v2_cgroup)
{
	NEED_CGROUPS();
	char path[PATH_MAX], text[16], fake[64] = "/tmp/lr-test-XXXXXX";
	pid_t init;
	int i;

	REQUIRE(make("fall", NULL) == 0);
	i = lr_cgroup_find_v2(ref);
	if (i < 0 || !mkdtemp(fake)) {
		CHECK_INT(lr_cgroup_destroy(ref, false, &err), 0);
		finish();
		SKIP("no v2 tree");
	}
	init = child(NULL);
	snprintf(path, sizeof(path), "%s/init.scope", ref->v[i].path);
	CHECK_INT(mkdir(path, 0755), 0);
	snprintf(text, sizeof(text), "%d", (int)init);
	CHECK_INT(lr_cgroup_put(path, "cgroup.procs", text), 0);

	struct lr_cgroup_place place = {"", lr_strf(arena, "%s%s/fall", fake, top)};
	struct lr_cgroup_ref copy = {
		.mode = LR_CGROUP_V2, .n = 1, .v = &place, .relative = ref->relative};
	struct lr_cgroup_join how = {.init_pid = init};
	snprintf(path, sizeof(path), "%s/init.scope", place.path);
	CHECK_INT(lr_mkdir_p(path, 0755), 0);
	CHECK(lr_cgroup_join_ref_self(&copy, &how, &err) < 0); /* not there either */
	strcat(path, "/cgroup.procs");
	close(creat(path, 0600));
	CHECK_INT(lr_cgroup_join_ref_self(&copy, &how, &err), 0);
	CHECK_STR(text_of(place.path, "init.scope/cgroup.procs"), "0");
	/* not when a sub-cgroup was asked for, nor without an init */
	const char *sub = "other";
	how.subpaths = &sub;
	how.n = 1;
	CHECK_INT(lr_cgroup_join_ref_self(&copy, &how, &err), -ENOENT);
	CHECK_INT(lr_cgroup_join_ref_self(&copy, NULL, &err), -ENOENT);
	CHECK_INT(lr_remove_tree(AT_FDCWD, fake), 0);
	CHECK_INT(lr_cgroup_destroy(ref, true, &err), 0);
	reap(init);
	finish();
}

TEST(moving_somebody_else)
{
	NEED_CGROUPS();
	pid_t pid, *v;
	size_t n;

	REQUIRE(make("move", NULL) == 0);
	pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	CHECK_INT(lr_cgroup_join_pid(ref, pid, &err), 0);
	CHECK_INT(lr_cgroup_pids(ref, arena, &v, &n, &err), 0);
	CHECK(n == 1 && v[0] == pid);
	CHECK_INT(lr_cgroup_join_pid(ref, 0, &err), -EINVAL);
	CHECK_INT(lr_cgroup_destroy(ref, true, &err), 0);
	reap(pid);
	finish();
}

static void burn(void)
{
	char *p = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(p, 1, 8 << 20);
	/* user time is sampled by ticks */
	for (volatile long i = 0; i < 300000000; i++)
		;
}

TEST(statistics)
{
	NEED_CGROUPS();
	struct lr_stats *s;
	pid_t pid;

	REQUIRE(make("stats", "{\"pids\":{\"limit\":7},\"memory\":{\"limit\":67108864}}") == 0);
	pid = child(burn);
	for (int i = 0; i < 100; i++) {
		usleep(20000);
		REQUIRE(lr_stats_read(ref, arena, &s, &err) == 0);
		if (s->cpu.user && s->memory.usage.usage > 8 << 20)
			break;
	}
	CHECK(s->cpu.total > 1000000);
	CHECK(s->cpu.user > 0 && s->cpu.user <= s->cpu.total + 20000000);
	CHECK(s->memory.present && s->memory.usage.usage > 8 << 20);
	CHECK_INT(s->memory.usage.limit, 67108864);
	CHECK(s->memory.stat.n > 10);
	CHECK(s->pids.present && s->pids.current == 1 && s->pids.limit == 7);
	if (ref->mode != LR_CGROUP_V2) {
		CHECK(s->cpuset.present && s->cpuset.cpus && *s->cpuset.cpus);
		CHECK_INT(s->cpuset.sched_relax_domain_level, -1);
		CHECK(s->cpu.percpu.n > 0 && s->cpu.percpu_user.n == s->cpu.percpu.n);
		CHECK(s->memory.usage.max >= s->memory.usage.usage);
	}
	CHECK_INT(lr_cgroup_destroy(ref, true, &err), 0);
	reap(pid);
	CHECK(lr_stats_read(ref, arena, &s, &err) < 0);
	finish();
}

static void eat(void)
{
	for (;;) {
		char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);
		memset(p, 1, 1 << 20);
	}
}

TEST(out_of_memory_is_told)
{
	NEED_CGROUPS();
	struct lr_stats_oom oom;
	pid_t pid, idle;

	REQUIRE(make("oom", "{\"memory\":{\"limit\":16777216,\"swap\":16777216}}") == 0);
	idle = child(NULL); /* a cgroup of v2 that nobody is in has come to its end */
	REQUIRE(lr_stats_oom_open(ref, &oom, &err) == 0);
	struct pollfd p = {.fd = oom.fd, .events = POLLIN};
	CHECK_INT(poll(&p, 1, 0), 0);
	CHECK_INT(lr_stats_oom_read(&oom), 0);
	pid = child(eat);
	int kills = 0; /* v2 tells, too, of a limit that is reached, before */
	while (kills == 0 && poll(&p, 1, 10000) == 1)
		kills = lr_stats_oom_read(&oom);
	CHECK(kills > 0);
	CHECK_INT(WTERMSIG(reap(pid)), SIGKILL);
	CHECK_INT(lr_cgroup_destroy(ref, true, &err), 0);
	reap(idle);
	CHECK_INT(poll(&p, 1, 1000), 1);
	int r = lr_stats_oom_read(&oom);
	if (r >= 0) /* the counter of the last kill came first */
		r = poll(&p, 1, 1000) == 1 ? lr_stats_oom_read(&oom) : -ENODEV;
	CHECK_INT(r, -ENODEV);
	lr_stats_oom_close(&oom);
	CHECK_INT(oom.fd, LR_NOFD);
	finish();
}

TEST(devices_are_denied_and_stay_so)
{
	NEED_CGROUPS();
	struct oci_device_cgroup all = {.allow = true};
	struct oci_device_cgroups list = {&all, 1};
	struct oci_resources res = {.devices = list};
	pid_t pid;
	int status;

	REQUIRE(make("dev", "{\"devices\":[{\"allow\":false,\"access\":\"rwm\"}]}") == 0);
	for (int round = 0; round < 2; round++) {
		int fd = lr_cgroup_clone_fd(plan);

		lr_close(fd);
		pid = fork();
		if (pid == 0) {
			if (lr_cgroup_join_self(plan, false, &err) < 0)
				_exit(200);
			if (open("/dev/null", O_RDWR) < 0)
				_exit(201);
			_exit(open("/dev/kmsg", O_RDONLY | O_NONBLOCK) < 0 ? errno : 0);
		}
		status = WEXITSTATUS(reap(pid));
		CHECK_INT(status, EPERM);
		/* update leaves them alone */
		CHECK_INT(lr_cgroup_update(ref, &res, arena, &err), 0);
	}
	CHECK_INT(lr_cgroup_destroy(ref, false, &err), 0);
	finish();
}

/* 0 when an unprivileged user gets on without limits and is refused with them. */
static int unprivileged(void)
{
	struct lr_cgroup_opts opts = {.id = "u", .rootless = true};
	int64_t limit = 5;
	struct oci_pids pids = {&limit};
	struct oci_resources none = {0}, some = {.pids = &pids};

	arena = lr_arena_new();
	if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
		return 1;
	if (lr_cgroup_probe(arena, &layout, &err) < 0 ||
	    lr_cgroup_plan("/lr-test-u", &none, layout, &opts, arena, &plan, &err) < 0)
		return 2;
	if (lr_cgroup_create(plan, &err) < 0 || plan->ref.n != 0)
		return 3;
	if (lr_cgroup_join_self(plan, false, &err) < 0 ||
	    lr_cgroup_destroy(&plan->ref, true, &err) < 0)
		return 4;
	if (lr_cgroup_plan("/lr-test-u", &some, layout, &opts, arena, &plan, &err) < 0)
		return 5;
	if (lr_cgroup_create(plan, &err) >= 0 || !strstr(err.hint, "delegated"))
		return 6;
	/* The same as a user who does not say that he is one: nothing is left out. */
	opts.rootless = false;
	if (lr_cgroup_plan("/lr-test-u", &none, layout, &opts, arena, &plan, &err) < 0)
		return 7;
	return lr_cgroup_create(plan, &err) == -EACCES ? 0 : 8;
}

TEST(unprivileged_users_go_without)
{
	NEED_CGROUPS();
	pid_t pid = fork();

	if (pid == 0)
		_exit(unprivileged());
	CHECK_INT(reap(pid), 0);
}

TEST(the_probe_finds_what_mountinfo_says)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_cgroup_layout *l;
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[4096];
	size_t mounts = 0;

	REQUIRE(f);
	CHECK_INT(lr_cgroup_probe(a, &l, &err), 0);
	while (fgets(line, sizeof(line), f)) {
		if (!strstr(line, " - cgroup"))
			continue;
		mounts++;
		bool found = false;
		for (size_t i = 0; i < l->n; i++) {
			char part[300];

			snprintf(part, sizeof(part), " %s ", l->hierarchies[i].mountpoint);
			found |= strstr(line, part) != NULL;
		}
		CHECK(found);
	}
	fclose(f);
	CHECK_INT(l->n, mounts);
	if (l->n) {
		CHECK_INT(lr_cgroup_probe_own(a, l, &err), 0);
		for (size_t i = 0; i < l->n; i++)
			CHECK(l->hierarchies[i].own && l->hierarchies[i].own[0] == '/');
	}
}

struct below {
	char text[512];
	size_t n;
};

static void note_below(void *arg, const char *hierarchy, const char *path)
{
	struct below *b = arg;
	size_t n = strlen(b->text);

	(void)hierarchy;
	snprintf(b->text + n, sizeof(b->text) - n, "%s ", path);
	b->n++;
}

static void sub(const char *name, bool make)
{
	for (size_t i = 0; i < ref->n; i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s/%s", ref->v[i].path, name);
		CHECK_INT(make ? mkdir(path, 0755) : rmdir(path), 0);
	}
}

TEST(what_is_below_a_containers_cgroup_is_listed_but_for_what_the_runtime_has_made)
{
	NEED_CGROUPS();
	REQUIRE(make("below", NULL) == 0);
	lr_cgroup_settle(plan);
	struct lr_cgroup_ref one = *ref;
	struct below b = {0};
	uint64_t none = lr_cgroup_count_below(ref, NULL);

	CHECK_INT(lr_cgroup_each_below(ref, NULL, note_below, &b, &err), 0);
	CHECK_INT(b.n, 0);
	sub("sub", true);
	CHECK(lr_cgroup_count_below(ref, NULL) != none);
	CHECK_INT(lr_cgroup_each_below(ref, NULL, note_below, &b, &err), 0);
	CHECK_INT(b.n, ref->n);

	/* Delegated, as on v2. */
	sub("sub/deep", true);
	sub("sub/deep/own", true);
	sub("subs", true);
	one.mode = LR_CGROUP_V2;
	one.n = 1;
	b = (struct below){0};
	CHECK_INT(lr_cgroup_each_below(&one, "./sub//deep", note_below, &b, &err), 0);
	CHECK_STR(b.text, "/subs /sub/deep/own ");
	none = lr_cgroup_count_below(&one, "sub/deep");
	sub("sub/deep/own", false);
	CHECK(lr_cgroup_count_below(&one, "sub/deep") != none);
	sub("sub/deep", false);
	sub("sub", false);
	sub("subs", false);
	CHECK_INT(lr_cgroup_destroy(ref, true, &err), 0);
	/* It has ended meanwhile. */
	CHECK_INT(lr_cgroup_each_below(ref, NULL, note_below, &b, &err), 0);
	finish();
}
