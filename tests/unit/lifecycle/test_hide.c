/* SPDX-License-Identifier: Apache-2.0 */
/* How a birth hides the caller's file and memory, as a table. */
#include "libocispec/ocispec.h"
#include "src/lifecycle/hide.h"
#include "tests/unit/test.h"

#define PID    "{\"type\":\"pid\"}"
#define USER   "{\"type\":\"user\"}"
#define JOINED "{\"type\":\"pid\",\"path\":\"/proc/1/ns/pid\"}"
#define NET    "{\"type\":\"network\",\"path\":\"/proc/1/ns/net\"}"
#define FILES  "{\"type\":\"mount\",\"path\":\"/proc/1/ns/mnt\"}"
#define HOSTS  "{\"type\":\"user\",\"path\":\"/proc/1/ns/user\"}"
#define TRACE(set)                                                                                 \
	"\"process\":{\"cwd\":\"/\",\"args\":[\"x\"],\"capabilities\":{\"" set                     \
	"\":[\"CAP_CHOWN\",\"CAP_SYS_PTRACE\"]}}"
#define NO_TRACE                                                                                   \
	"\"process\":{\"cwd\":\"/"                                                                 \
	"\",\"args\":[\"x\"],\"capabilities\":{\"bounding\":[\"CAP_CHOWN\",\"CAP_SYS_"             \
	"ADMIN\"]}}"
#define FILTER "\"seccomp\":{\"defaultAction\":\"SCMP_ACT_ALLOW\"}"
#define HOOK(when)                                                                                 \
	"\"process\":{\"cwd\":\"/\",\"args\":[\"x\"]},\"hooks\":{\"" when                          \
	"\":[{\"path\":\"/bin/true\"}]}"
#define CAPS(uid, ambient)                                                                         \
	"\"process\":{\"cwd\":\"/\",\"args\":[\"x\"],\"user\":{\"uid\":" uid                       \
	",\"gid\":0},\"capabilities\":{\"bounding\":[\"CAP_CHOWN\"],\"inheritable\":[" ambient     \
	"],\"ambient\":[" ambient "],\"permitted\":[\"CAP_CHOWN\"]}}"
#define NONE "\"process\":{\"cwd\":\"/\",\"args\":[\"x\"]}"

enum who { RUN, CREATE, EXEC, START, ENTER }; /* the library's: START, ENTER */

static const struct row {
	enum who who;
	const char *namespaces, *rest, *linux_;
	enum lr_hide how;
	const char *path, *why; /* of a refusal */
} rows[] = {
	/* The command line. */
	{RUN, PID, NONE, NULL, LR_HIDE_STUB},
	{RUN, PID "," USER, NONE, NULL, LR_HIDE_STUB},
	{RUN, PID, TRACE("bounding"), NULL, LR_HIDE_STUB},
	{RUN, "", NONE, NULL, LR_HIDE_MOUNT},
	{RUN, JOINED, NONE, NULL, LR_HIDE_MOUNT},
	{RUN, PID "," NET, NONE, NULL, LR_HIDE_STUB},
	{RUN, NET "," PID "," HOSTS, NONE, NULL, LR_HIDE_MOUNT},
	{RUN, PID "," FILES, NONE, NULL, LR_HIDE_MOUNT},
	{RUN, PID, NONE, FILTER, LR_HIDE_STUB},
	{RUN, PID, "\"process\":{\"cwd\":\"/\",\"args\":[\"x\"],\"apparmorProfile\":\"p\"}", NULL,
	 LR_HIDE_MOUNT},
	{RUN, PID, "\"process\":{\"cwd\":\"/\",\"args\":[\"x\"],\"selinuxLabel\":\"l\"}", NULL,
	 LR_HIDE_MOUNT},
	{RUN, PID, "\"process\":{\"cwd\":\"/\",\"args\":[\"x\"],\"selinuxLabel\":\"\"}", NULL,
	 LR_HIDE_STUB},
	/* What the program is reached with, or its file may give, would not outlast the stub. */
	{RUN, PID, CAPS("1", ""), NULL, LR_HIDE_MOUNT},
	{RUN, PID "," USER, CAPS("1", ""), NULL, LR_HIDE_MOUNT},
	{RUN, PID, CAPS("1", "\"CAP_CHOWN\""), NULL, LR_HIDE_STUB},
	{RUN, PID, CAPS("0", ""), NULL, LR_HIDE_STUB},
	{RUN, PID, HOOK("createContainer"), NULL, LR_HIDE_MOUNT},
	{RUN, PID, HOOK("startContainer"), NULL, LR_HIDE_MOUNT},
	{RUN, PID, HOOK("poststop"), NULL, LR_HIDE_STUB},
	{CREATE, PID, NONE, NULL, LR_HIDE_STUB},
	{CREATE, PID "," USER, NONE, NULL, LR_HIDE_MOUNT},
	{EXEC, PID, NONE, NULL, LR_HIDE_MOUNT},
	{EXEC, PID, TRACE("bounding"), NULL, LR_HIDE_MOUNT},

	/* Started by a library: nobody sees what is born in a new pid namespace. */
	{START, PID, NONE, NULL, LR_HIDE_STUB},
	{START, PID "," NET, NONE, FILTER, LR_HIDE_STUB},
	{START, PID, TRACE("bounding"), NULL, LR_HIDE_STUB},
	{START, "", NO_TRACE, NULL, LR_HIDE_STUB},
	{START, USER, TRACE("bounding"), NULL, LR_HIDE_STUB},
	{START, "", TRACE("bounding"), NULL, LR_HIDE_REFUSE, "process.capabilities",
	 "CAP_SYS_PTRACE"},
	{START, HOSTS, TRACE("permitted"), NULL, LR_HIDE_REFUSE, "process.capabilities",
	 "new pid namespace"},
	{START, JOINED, NONE, NULL, LR_HIDE_REFUSE, "linux.namespaces[0].path", "/proc/1/ns/pid"},
	{START, USER "," JOINED, NONE, NULL, LR_HIDE_REFUSE, "linux.namespaces[1].path",
	 "lean-runtime"},
	{START, PID, "\"process\":{\"cwd\":\"/\",\"args\":[\"x\"],\"apparmorProfile\":\"p\"}", NULL,
	 LR_HIDE_REFUSE, "process.apparmorProfile", "lean_protect"},
	{START, PID, "\"process\":{\"cwd\":\"/\",\"args\":[\"x\"],\"selinuxLabel\":\"l\"}", NULL,
	 LR_HIDE_REFUSE, "process.selinuxLabel", "lean_protect"},

	/* A process of the container sees who enters it. */
	{ENTER, PID, NONE, NULL, LR_HIDE_STUB},
	{ENTER, PID, NO_TRACE, NULL, LR_HIDE_STUB},
	{ENTER, PID "," USER, TRACE("effective"), NULL, LR_HIDE_STUB},
	{ENTER, PID, TRACE("bounding"), NULL, LR_HIDE_REFUSE, "process.capabilities",
	 "new user namespace"},
	{ENTER, PID, TRACE("permitted"), NULL, LR_HIDE_REFUSE, "process.capabilities", "memory"},
	{ENTER, PID, TRACE("effective"), NULL, LR_HIDE_REFUSE, "process.capabilities", "memory"},
	{ENTER, PID, TRACE("inheritable"), NULL, LR_HIDE_REFUSE, "process.capabilities", "memory"},
	{ENTER, PID, TRACE("ambient"), NULL, LR_HIDE_REFUSE, "process.capabilities", "memory"},
	{ENTER, PID "," HOSTS, TRACE("bounding"), NULL, LR_HIDE_REFUSE, "process.capabilities",
	 "memory"},
};

static const struct oci_config *config(const struct row *row, struct lr_arena *a)
{
	const struct oci_config *c = NULL;
	struct lr_err err = {0};
	char text[1024];

	int len = snprintf(text, sizeof(text),
			   "{\"ociVersion\":\"1.0.2\",\"root\":{\"path\":\"/\"},%s,"
			   "\"linux\":{\"namespaces\":[%s]%s%s}}",
			   row->rest, row->namespaces, row->linux_ ? "," : "",
			   row->linux_ ? row->linux_ : "");
	CHECK_INT(oci_config_decode(text, (size_t)len, a, &c, &err), 0);
	CHECK_STR(err.msg, "");
	return c;
}

static enum lr_hide_birth birth_of(enum who who)
{
	return who == EXEC || who == ENTER ? LR_HIDE_ENTER
	       : who == CREATE             ? LR_HIDE_CREATE
					   : LR_HIDE_RUN;
}

TEST(what_hides_the_caller)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		const struct lr_hide_caller who = {.library = row->who >= START};
		const struct oci_config *c = config(row, a);
		struct lr_err err = {0};
		char line[1200];

		REQUIRE(c);
		int before = lr_failures;
		CHECK_INT(lr_hide(&who, birth_of(row->who), c, &err), row->how);
		CHECK_STR(err.path, row->path ? row->path : "");
		CHECK_HAS(lr_err_format(&err, line, sizeof(line)), row->why ? row->why : "");
		if (lr_failures > before)
			printf("# row %zu\n", i);
	}
}

/* Its file is hidden; what is in its memory is not. */
TEST(a_caller_that_is_hidden_already)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		const struct lr_hide_caller who = {.library = row->who >= START, .hidden = true};
		const struct oci_config *c = config(row, a);
		struct lr_err err = {0};
		bool memory = row->how == LR_HIDE_REFUSE && !strstr(row->why, "lean_protect");

		REQUIRE(c);
		CHECK_INT(lr_hide(&who, birth_of(row->who), c, &err),
			  memory ? LR_HIDE_REFUSE : LR_HIDE_NEEDLESS);
	}
}

TEST(what_the_caller_wants_and_what_is_not_known_yet)
{
	const struct lr_hide_caller any = {0}, mount = {.wants = LR_HIDE_MOUNT},
				    copy = {.wants = LR_HIDE_COPY};

	CHECK_INT(lr_hide(&any, LR_HIDE_RUN, NULL, NULL), LR_HIDE_STUB);
	CHECK_INT(lr_hide(&any, LR_HIDE_ENTER, NULL, NULL), LR_HIDE_MOUNT);
	CHECK_INT(lr_hide(&mount, LR_HIDE_RUN, NULL, NULL), LR_HIDE_MOUNT);
	CHECK_INT(lr_hide(&copy, LR_HIDE_RUN, NULL, NULL), LR_HIDE_COPY);
	CHECK_INT(lr_hide(&copy, LR_HIDE_ENTER, NULL, NULL), LR_HIDE_COPY);
}
