/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: the state that a record stands for, and what the verbs decide by it. */
#include <signal.h>

#include "src/lifecycle/container.h"
#include "src/sys/proc.h"
#include "tests/unit/rootfs/child.h"

static struct lr_arena *arena;
static struct lr_store store;
static struct lr_entry entry;
static struct lr_record rec;
static struct lr_runtime rt;
static struct lr_err why;

/* A root directory with container `one`, whose record has that process (a pid that is a child). */
static void make_container(pid_t pid, uint32_t flags)
{
	struct lr_proc_stat st = {0};

	arena = lr_arena_new();
	rt = (struct lr_runtime){.root = lr_strdup(arena, in_base("root")), .euid = geteuid()};
	if (pid)
		CHECK_INT(lr_proc_stat(pid, &st), 0);
	rec = (struct lr_record){.pid = pid,
				 .start_time = st.start_time,
				 .flags = flags,
				 .id = "one",
				 .oci_version = "1.0.2",
				 .bundle = "/b",
				 .rootfs = "/r",
				 .created = "now",
				 .namespaces = CLONE_NEWPID};
	CHECK_INT(lr_store_open(rt.root, true, arena, &store, &why), 0);
	CHECK_INT(lr_store_create(&store, "one", &entry, &why), 0);
	CHECK_INT(lr_store_write(&entry, &rec, "{}", 2, arena, &why), 0);
	lr_store_leave(&entry);
}

static pid_t sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	CHECK(pid > 0);
	return pid;
}

static int status(void)
{
	const struct lr_cgroup_ref none = {0};

	return lr_container_status(&store, &rec, &none);
}

static void states(void)
{
	pid_t pid = sleeper();
	struct lr_store_fifos f;

	make_container(pid, LR_RECORD_CREATING);
	CHECK_INT(status(), LR_CREATING);
	rec.flags = LR_RECORD_STARTED;
	CHECK_INT(status(), LR_RUNNING);
	/* After create, the fifo tells. */
	rec.flags = 0;
	CHECK_INT(status(), LR_RUNNING);
	CHECK_INT(lr_store_fifos_make(&entry, &f, &why), 0);
	CHECK_INT(status(), LR_CREATED);
	lr_store_fifos_close(&f);
	CHECK_INT(status(), LR_RUNNING); /* nobody reads it */
	/* Another process of that number. */
	rec.start_time++;
	CHECK_INT(status(), LR_STOPPED);
	rec.start_time--;
	kill(pid, SIGKILL);
	CHECK_INT(waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOWAIT), 0);
	CHECK_INT(status(), LR_STOPPED); /* a zombie */
	wait_for(pid);
	CHECK_INT(status(), LR_STOPPED);
	rec.flags = LR_RECORD_CREATING;
	CHECK_INT(status(), LR_STOPPED); /* its creation was cut off */
	rec.pid = 0;
	CHECK_INT(status(), LR_CREATING);
	rec.flags = 0;
	CHECK_INT(status(), LR_STOPPED);
}

TEST(the_kernel_is_asked_which_state_it_is)
{
	NEED_ROOT();
	in_child(states, 0);
}

static void running(void)
{
	pid_t pid = sleeper();
	struct lr_container c;

	make_container(pid, LR_RECORD_STARTED);
	CHECK_INT(lr_lifecycle_state(&rt, "one", arena, &c, &why), 0);
	CHECK_STR(c.oci.status, "running");
	CHECK_INT(c.oci.pid, pid);
	CHECK_INT(lr_lifecycle_state(&rt, "two", arena, &c, &why), -ENOENT);
	CHECK_INT(lr_lifecycle_start(&rt, "one", &why), -EINVAL);
	CHECK_HAS(why.msg, "already running");
	CHECK_INT(lr_lifecycle_resume(&rt, "one", &why), -EINVAL);
	CHECK_HAS(why.msg, "not paused");
	CHECK_INT(lr_lifecycle_pause(&rt, "one", &why), -EOPNOTSUPP); /* no cgroup */
	CHECK_INT(lr_lifecycle_delete(&rt, "one", false, &why), -EBUSY);
	CHECK_HAS(why.msg, "not stopped: running");
	CHECK_INT(kill(pid, 0), 0);
	CHECK_INT(lr_lifecycle_kill(&rt, "one", SIGKILL, false, &why), 0);
	wait_for(pid);
	CHECK_INT(lr_lifecycle_kill(&rt, "one", SIGTERM, false, &why), -ESRCH);
	CHECK_STR(why.msg, "container not running");
	CHECK_INT(lr_lifecycle_kill(&rt, "one", SIGTERM, true, &why), 0);
	CHECK_INT(lr_lifecycle_start(&rt, "one", &why), -EINVAL);
	CHECK_HAS(why.msg, "has stopped");
	CHECK_INT(lr_lifecycle_state(&rt, "one", arena, &c, &why), 0);
	CHECK_STR(c.oci.status, "stopped");
	CHECK_INT(c.oci.pid, 0);
	CHECK_INT(lr_lifecycle_delete(&rt, "one", false, &why), 0);
	CHECK_INT(lr_lifecycle_delete(&rt, "one", false, &why), -ENOENT);
	CHECK_INT(lr_lifecycle_delete(&rt, "one", true, &why), 0);
}

TEST(a_running_one_and_its_end)
{
	NEED_ROOT();
	in_child(running, 0);
}

static void creating(void)
{
	pid_t pid = sleeper();
	struct lr_container c, *list;
	size_t n;

	make_container(pid, LR_RECORD_CREATING);
	/* None yet for whoever asks for it by name; but it can be found, and removed. */
	CHECK_INT(lr_lifecycle_state(&rt, "one", arena, &c, &why), -ENOENT);
	CHECK_INT(lr_lifecycle_list(&rt, arena, &list, &n, &why), 0);
	CHECK_INT(n, 1);
	CHECK_STR(list[0].oci.status, "creating");
	CHECK_INT(lr_lifecycle_start(&rt, "one", &why), -EINVAL);
	CHECK_HAS(why.msg, "still being created");
	CHECK_INT(lr_lifecycle_pause(&rt, "one", &why), -ESRCH);
	CHECK_INT(lr_lifecycle_delete(&rt, "one", false, &why), -EBUSY);
	CHECK_INT(lr_lifecycle_delete(&rt, "one", true, &why), 0);
	int how = wait_for(pid);
	CHECK(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
	CHECK_INT(lr_lifecycle_list(&rt, arena, &list, &n, &why), 0);
	CHECK_INT(n, 0);
	rt.root = in_base("no-root");
	CHECK_INT(lr_lifecycle_list(&rt, arena, &list, &n, &why), -ENOENT);
}

TEST(one_that_is_being_created)
{
	NEED_ROOT();
	in_child(creating, 0);
}

static void damaged(void)
{
	pid_t pid = sleeper();

	make_container(pid, LR_RECORD_STARTED);
	CHECK_INT(truncate(in_base("root/one/record"), 100), 0);
	CHECK_INT(lr_lifecycle_delete(&rt, "one", false, &why), -EPROTO);
	CHECK_INT(kill(pid, 0), 0);
	CHECK_INT(lr_lifecycle_delete(&rt, "one", true, &why), 0);
	int how = wait_for(pid);
	CHECK(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
	CHECK(access(in_base("root/one"), F_OK) < 0);
}

TEST(a_damaged_record_still_ends_its_process)
{
	NEED_ROOT();
	in_child(damaged, 0);
}

TEST(cgroups_go_into_the_record_and_come_back)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_cgroup_place places[] = {{"pids", "/sys/fs/cgroup/pids/x"},
					   {"", "/sys/fs/cgroup/x"}};
	const struct lr_cgroup_ref cg = {.n = 2, .v = places, .relative = "/x", .unit = "x.scope"};
	struct lr_cgroup_ref back;
	struct lr_record r = {0};

	CHECK_INT(lr_cgroup_to_record(&cg, a, &r, &why), 0);
	CHECK_INT(lr_cgroup_of_record(&r, a, &back, &why), 0);
	CHECK_INT(back.n, 2);
	CHECK_STR(back.v[1].path, "/sys/fs/cgroup/x");
	CHECK_STR(back.relative, "/x");
	CHECK_STR(back.unit, "x.scope");
	CHECK_INT(back.manager, LR_CGROUP_SYSTEMD);
}
