/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: the systemd driver and a systemd that is played by a process of the test's own: older
 * than the one that tests/vm has, slower, in trouble, or not to be trusted. No cgroup is touched.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "src/cgroup/internal.h"
#include "src/systemd/systemd.h"
#include "tests/unit/systemd/peer.h"
#include "tests/unit/test.h"

#define JOB      "/org/freedesktop/systemd1/job/7"
#define ERROR(x) "org.freedesktop.systemd1." x

static struct lr_err err;
static struct lr_systemd_prop props[] = {
	{"Delegate", "true", NULL, false},
	{"CollectMode", "'inactive-or-failed'", NULL, true},
	{"Broken", "5", "annotations[\"org.systemd.property.Broken\"]", false},
};
static struct lr_systemd_unit unit = {.name = "x.scope", .slice = "a.slice"};
static struct lr_cgroup_ref ref = {.mode = LR_CGROUP_V2,
				   .manager = LR_CGROUP_SYSTEMD,
				   .relative = "/a.slice/x.scope",
				   .unit = "x.scope"};

/* ---- systemd's side ------------------------------------------------------------------------- */

/* A connection that waits for jobs. */
static void welcome(void)
{
	peer_authenticate();
	peer_answer(LR_DBUS_RETURN, peer_take("Hello"), NULL, ":1.7");
	peer_answer(LR_DBUS_RETURN, peer_take("AddMatch"), NULL, "");
}

static void promise(uint32_t to)
{
	uint8_t buf[64];
	struct lr_dbus_out body = {.buf = buf, .cap = sizeof(buf)};

	lr_dbus_put_string(&body, JOB);
	peer_send(
		&(struct peer_message){
			.type = LR_DBUS_RETURN, .to = to, .sender = ":1.1", .signature = "o"},
		&body);
}

static void removed(const char *sender, const char *job, const char *result)
{
	uint8_t buf[256];
	struct lr_dbus_out body = {.buf = buf, .cap = sizeof(buf)};

	lr_dbus_put_u32(&body, 7);
	lr_dbus_put_string(&body, job);
	lr_dbus_put_string(&body, "x.scope");
	lr_dbus_put_string(&body, result);
	peer_send(&(struct peer_message){.type = LR_DBUS_SIGNAL,
					 .sender = sender,
					 .signal = "/org/freedesktop/systemd1 "
						   "org.freedesktop.systemd1.Manager JobRemoved",
					 .signature = "uoss"},
		  &body);
}

static void require(bool what)
{
	if (!what)
		_exit(1);
}

/* ---- our side ------------------------------------------------------------------------------- */

static pid_t systemd;

/* Everybody who connects hears the script once more. */
static void play(void (*script)(void), int connections)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	char address[200];
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	/* An abstract name: nothing to be cleaned up. */
	snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "lean-test-%d", (int)getpid());
	snprintf(address, sizeof(address), "unix:abstract=%s", at.sun_path + 1);
	setenv("DBUS_SYSTEM_BUS_ADDRESS", address, 1);
	err = (struct lr_err){0};
	if (bind(listener, (struct sockaddr *)&at,
		 (socklen_t)(sizeof(sa_family_t) + 1 + strlen(at.sun_path + 1))) < 0 ||
	    listen(listener, 4) < 0)
		perror("listen");
	systemd = fork();
	if (systemd == 0) {
		while (connections-- > 0) {
			peer = accept(listener, NULL, NULL);
			script();
			(void)!read(peer, &(char){0}, 1);
			close(peer);
		}
		_exit(0);
	}
	close(listener);
}

/* 0 when systemd saw what it expected. */
static int over(void)
{
	int status = -1;

	waitpid(systemd, &status, 0);
	return status;
}

static int create(void)
{
	struct lr_cgroup_plan plan = {.unit = &unit, .ref = ref, .hold = LR_NOFD};
	pid_t holder;
	int r;

	unit.props = (struct lr_systemd_props){props, LR_ARRAY_SIZE(props)};
	r = lr_cgroup_systemd_create(&plan, &err);
	/* The holder lives until the container's process has joined, and not after a failure. */
	holder = plan.holder;
	CHECK_INT(holder > 0, r == 0);
	if (r == 0)
		CHECK_INT(kill(holder, 0), 0);
	lr_cgroup_settle(&plan);
	if (r == 0)
		CHECK_INT(kill(holder, 0), -1);
	CHECK_INT(plan.hold, LR_NOFD);
	return r;
}

static void plain(void)
{
	welcome();
	uint32_t to = peer_take("StartTransientUnit");
	require(peer_took("x.scope") && peer_took("Delegate") && peer_took("PIDs"));
	promise(to);
	/* Of another job, and by somebody who only says so. */
	removed(":1.1", "/org/freedesktop/systemd1/job/8", "failed");
	removed(":1.66", JOB, "failed");
	removed(":1.1", JOB, "done");
}

TEST(a_scope_is_started)
{
	play(plain, 1);
	CHECK_INT(create(), 0);
	CHECK_INT(over(), 0);
}

static void older(void)
{
	welcome();
	uint32_t to = peer_take("StartTransientUnit");
	require(peer_took("CollectMode"));
	peer_answer(LR_DBUS_ERROR, to, "org.freedesktop.DBus.Error.PropertyReadOnly",
		    "Cannot set property CollectMode, or unknown property.");
	to = peer_take("StartTransientUnit");
	require(!peer_took("CollectMode") && peer_took("Delegate"));
	promise(to);
	removed(":1.1", JOB, "done");
}

TEST(an_older_systemd_gets_what_it_knows)
{
	play(older, 1);
	CHECK_INT(create(), 0);
	CHECK_INT(over(), 0);
}

static void picky(void)
{
	welcome();
	for (int i = 0; i < 2; i++)
		peer_answer(LR_DBUS_ERROR, peer_take("StartTransientUnit"),
			    "org.freedesktop.DBus.Error.PropertyReadOnly",
			    "Cannot set property Broken, or unknown property.");
}

TEST(a_property_that_it_does_not_know_is_named)
{
	play(picky, 1);
	CHECK_INT(create(), -EREMOTEIO);
	CHECK_STR(err.path, "annotations[\"org.systemd.property.Broken\"]");
	CHECK_INT(over(), 0);
}

static void dying(void)
{
	welcome();
	for (int i = 0; i < 3; i++) {
		peer_answer(LR_DBUS_ERROR, peer_take("StartTransientUnit"), ERROR("UnitExists"),
			    "Unit x.scope was already loaded or has a fragment file.");
		peer_answer(LR_DBUS_ERROR, peer_take("ResetFailedUnit"), ERROR("NoSuchUnit"), "");
	}
	promise(peer_take("StartTransientUnit"));
	removed(":1.1", JOB, "done");
}

TEST(a_unit_on_its_way_out_is_waited_for)
{
	struct lr_cgroup_place nowhere = {"", "/no/such/a.slice/x.scope"};

	ref.v = &nowhere;
	play(dying, 1);
	CHECK_INT(create(), 0);
	CHECK_INT(over(), 0);
}

static void failing(void)
{
	welcome();
	promise(peer_take("StartTransientUnit"));
	removed(":1.1", JOB, "failed");
}

TEST(a_job_that_fails)
{
	play(failing, 1);
	CHECK_INT(create(), -EREMOTEIO);
	CHECK_HAS(err.msg, "x.scope: failed");
	CHECK_HAS(err.hint, "journalctl -u x.scope");
	CHECK_INT(over(), 0);
}

static void jobless(void)
{
	welcome();
	peer_answer(LR_DBUS_RETURN, peer_take("StartTransientUnit"), NULL, "a string");
}

static void denying(void)
{
	welcome();
	peer_answer(LR_DBUS_ERROR, peer_take("StartTransientUnit"),
		    "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired",
		    "Interactive authentication required.");
}

static void vanishing(void)
{
	welcome();
	promise(peer_take("StartTransientUnit"));
	close(peer);
}

TEST(what_else_may_go_wrong)
{
	play(jobless, 1);
	CHECK_INT(create(), -EPROTO);
	CHECK_INT(over(), 0);
	play(denying, 1);
	CHECK_INT(create(), -EREMOTEIO);
	CHECK_HAS(err.msg, "Interactive authentication required.");
	CHECK_HAS(err.hint, "rootless containers need the user's own");
	CHECK_INT(over(), 0);
	play(vanishing, 1);
	CHECK_INT(create(), -ECONNRESET);
	over();
}

/* ---- destroy -------------------------------------------------------------------------------- */

static void stopping(void)
{
	welcome();
	promise(peer_take("StopUnit"));
	removed(":1.1", JOB, "done");
	peer_answer(LR_DBUS_RETURN, peer_take("ResetFailedUnit"), NULL, "");
}

static void forgotten(void)
{
	welcome();
	peer_answer(LR_DBUS_ERROR, peer_take("StopUnit"), ERROR("NoSuchUnit"),
		    "Unit x not loaded.");
}

TEST(a_unit_is_stopped)
{
	play(stopping, 1);
	CHECK_INT(lr_cgroup_systemd_destroy(&ref, true, &err), 0);
	CHECK_INT(over(), 0);
	play(forgotten, 1);
	CHECK_INT(lr_cgroup_systemd_destroy(&ref, true, &err), 0);
	CHECK_INT(over(), 0);
	/* Nobody there: what is left to do, systemd does by itself. */
	CHECK_INT(lr_cgroup_systemd_destroy(&ref, true, &err), 0);
}

static char unit_dir[] = "/tmp/lr-unit.XXXXXX", events[sizeof(unit_dir) + 20];
static struct lr_cgroup_ref mine;

static void make_unit_dir(void)
{
	static struct lr_cgroup_place place = {.hierarchy = "", .path = unit_dir};

	strcpy(strrchr(unit_dir, '.'), ".XXXXXX");
	REQUIRE(mkdtemp(unit_dir));
	snprintf(events, sizeof(events), "%s/cgroup.events", unit_dir);
	mine = ref;
	mine.v = &place;
	mine.n = 1;
}

static void populate(void)
{
	FILE *f = fopen(events, "we");

	REQUIRE(f && fputs("populated 1\n", f) >= 0 && fclose(f) == 0);
}

static void attaching(void)
{
	peer_authenticate();
	peer_answer(LR_DBUS_RETURN, peer_take("Hello"), NULL, ":1.7");
	peer_answer(LR_DBUS_RETURN, peer_take("AttachProcessesToUnit"), NULL, "");
	require(rmdir(unit_dir) == 0);
}

/* systemd hears by the directory's events that the unit has ended: so it is systemd that removes it. */
TEST(somebody_passes_through_an_empty_unit)
{
	make_unit_dir();
	play(attaching, 1);
	CHECK_INT(lr_cgroup_systemd_destroy(&mine, false, &err), 0);
	CHECK_INT(over(), 0);
}

static int asked[2];

static void unwanted(void)
{
	(void)!write(asked[1], "!", 1);
	stopping();
}

/* A systemd that notes that it was asked. */
static void play_unwanted(void)
{
	REQUIRE(pipe2(asked, O_NONBLOCK) == 0);
	play(unwanted, 1);
}

static void check_unasked(void)
{
	CHECK_INT(read(asked[0], &(char){0}, 1), -1);
	kill(systemd, SIGKILL);
	over();
	close(asked[0]);
	close(asked[1]);
}

TEST(a_unit_that_may_be_anothers_and_is_gone_is_not_asked_for)
{
	play_unwanted();
	CHECK_INT(lr_cgroup_systemd_destroy(&ref, false, &err), 0);
	check_unasked();
}

TEST(while_somebody_is_in_a_unit_it_is_waited_for)
{
	int status = -1;
	pid_t pid;

	make_unit_dir();
	populate();
	play_unwanted();
	pid = fork();
	REQUIRE(pid >= 0);
	if (pid == 0) {
		lr_sleep_us(600000);
		_exit(unlink(events) == 0 && rmdir(unit_dir) == 0 ? 0 : 1);
	}
	CHECK_INT(lr_cgroup_systemd_destroy(&mine, false, &err), 0);
	REQUIRE(waitpid(pid, &status, 0) == pid);
	CHECK_INT(status, 0);
	check_unasked();
}

TEST(an_empty_slice_is_left_to_who_made_it)
{
	make_unit_dir();
	mine.unit = "x.slice";
	play_unwanted();
	CHECK_INT(lr_cgroup_systemd_destroy(&mine, false, &err), 0);
	check_unasked();
}

TEST(a_unit_that_is_in_use_stays)
{
	make_unit_dir();
	populate();
	play_unwanted();
	CHECK_INT(lr_cgroup_systemd_destroy(&mine, false, &err), -EBUSY);
	check_unasked();
	CHECK_HAS(err.msg, "x.scope is in use");
	CHECK(access(events, F_OK) == 0);
	unlink(events);
	rmdir(unit_dir);
}

/* ---- plan ------------------------------------------------------------------------------------ */

TEST(limits_are_told)
{
	struct lr_cgroup_write writes[] = {
		{.file = "/cg/memory.max", .value = "7", .where = "here"},
		{.file = "/cg/io.bfq.weight",
		 .value = "1000",
		 .alt_file = "/cg/io.weight",
		 .alt_value = "default 5",
		 .where = "there"},
	};
	struct lr_cgroup_plan plan = {
		.unit = &unit, .ref = ref, .writes = writes, .n_writes = LR_ARRAY_SIZE(writes)};
	const struct lr_cgroup_opts o = {.id = "x"};
	struct lr_arena *arena = lr_arena_new();

	unit.props = (struct lr_systemd_props){0};
	REQUIRE(lr_cgroup_systemd_describe(&plan, &o, arena, &err) == 0);
	REQUIRE(unit.props.n > 2);
	const struct lr_systemd_prop *last = &unit.props.v[unit.props.n - 2];
	CHECK_STR(last[0].name, "MemoryMax");
	CHECK_STR(last[0].value, "uint64 7");
	/* In systemd's scale, not in BFQ's. */
	CHECK_STR(last[1].name, "IOWeight");
	CHECK_STR(last[1].value, "uint64 5");
	CHECK_STR(last[1].where, "there");
	lr_arena_free(arena);
}
