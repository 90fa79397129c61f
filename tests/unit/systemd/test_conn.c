/* SPDX-License-Identifier: Apache-2.0 */
/* dbus: conversations with a scripted peer, which does what a real one never would. */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/systemd/dbus.h"
#include "tests/unit/systemd/peer.h"
#include "tests/unit/test.h"

static struct lr_dbus conn;
static struct lr_dbus_msg msg;
static struct lr_err err;

static const struct lr_dbus_method method = {"d", "/p", "i.f", "Method", ""};

/* ---- our side ------------------------------------------------------------------------------- */

static pid_t child;

/* Runs the script in a process of its own; the result is what greeting it comes to. */
static int meet(void (*script)(void), bool direct)
{
	int sv[2];

	err = (struct lr_err){0};
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
		return -1000;
	child = fork();
	if (child == 0) {
		close(sv[0]);
		peer = sv[1];
		script();
		/* The end of the conversation is ours to choose. */
		(void)!read(peer, &(char){0}, 1);
		_exit(0);
	}
	close(sv[1]);
	return lr_dbus_greet(&conn, sv[0], direct, &err);
}

/* 0 when the peer saw what it expected. */
static int part(void)
{
	int status = -1;

	lr_dbus_close(&conn);
	waitpid(child, &status, 0);
	return status;
}

static void polite(void)
{
	uint32_t to;

	peer_authenticate();
	peer_answer(LR_DBUS_RETURN, peer_take(NULL), NULL, ":1.7"); /* Hello */
	to = peer_take(NULL);
	peer_answer(LR_DBUS_SIGNAL, 0, NULL, "of no interest");
	peer_answer(LR_DBUS_RETURN, to + 5, NULL, "to somebody else");
	peer_answer(LR_DBUS_RETURN, to, NULL, "yes");
	peer_answer(LR_DBUS_SIGNAL, 0, NULL, "later");
}

TEST(a_conversation)
{
	CHECK_INT(meet(polite, false), 0);
	CHECK_INT(lr_dbus_call(&conn, &method, NULL, &msg, &err), 0);
	CHECK_STR(lr_dbus_get_string(&msg.body), "yes");
	CHECK_INT(lr_dbus_next(&conn, &msg, &err), 0);
	CHECK_INT(msg.type, LR_DBUS_SIGNAL);
	CHECK_STR(lr_dbus_get_string(&msg.body), "later");
	CHECK_INT(part(), 0);
}

/* systemd up to 245 takes EXTERNAL as it is, and what is sent with it is not a word more. */
static void curt(void)
{
	peer_expect("\0AUTH EXTERNAL\r\n", 16);
	peer_say("OK x\r\n");
	peer_expect("BEGIN\r\n", 7);
	/* No bus in between: no Hello, and signals come at once. */
	peer_answer(LR_DBUS_SIGNAL, 0, NULL, "unasked");
	peer_answer(LR_DBUS_ERROR, peer_take(NULL), "org.x.Error.NoSuchUnit", "Unit x not loaded.");
	peer_answer(LR_DBUS_ERROR, peer_take(NULL), "org.x.Error.Mute", "");
}

TEST(an_error_has_a_name_and_a_reason)
{
	CHECK_INT(meet(curt, true), 0);
	CHECK_INT(lr_dbus_match(&conn, "type='signal'", &err), 0);
	CHECK_INT(lr_dbus_call(&conn, &method, NULL, &msg, &err), -EREMOTEIO);
	CHECK_STR(conn.error, "org.x.Error.NoSuchUnit");
	CHECK_STR(err.msg, "systemd refuses Method: Unit x not loaded.");
	CHECK_INT(lr_dbus_call(&conn, &method, NULL, &msg, &err), -EREMOTEIO);
	CHECK_HAS(err.msg, "org.x.Error.Mute");
	CHECK_INT(part(), 0);
}

static void rejecting(void)
{
	peer_expect("\0AUTH EXTERNAL\r\n", 16);
	peer_say("REJECTED EXTERNAL ANONYMOUS\r\n");
}

static void endless_line(void)
{
	for (int i = 0; i < 100; i++)
		peer_say("DATADATADATA");
}

static void no_line(void)
{
	peer_say("OK\n");
}

static void hangs_up(void)
{
	close(peer);
	_exit(0);
}

TEST(refused_at_the_door)
{
	CHECK_INT(meet(rejecting, false), -EACCES);
	CHECK_INT(part(), 0);
	CHECK_INT(meet(endless_line, false), -EBADMSG);
	part();
	CHECK_INT(meet(no_line, false), -EBADMSG);
	part();
	CHECK(meet(hangs_up, false) < 0);
	CHECK_HAS(err.msg, "talking to systemd");
	part();
}

static void garbage(void)
{
	peer_authenticate();
	peer_take(NULL);
	peer_say("What is this? Certainly no message of D-Bus.");
}

static void too_long(void)
{
	static const uint8_t head[LR_DBUS_HEAD] = {'l', 2, 0, 1, 0, 0, 0, 0x7f, 1};

	peer_authenticate();
	peer_take(NULL);
	(void)!write(peer, head, sizeof(head));
}

static void cut_off(void)
{
	peer_authenticate();
	peer_take(NULL);
	peer_say("l\2");
	_exit(0);
}

TEST(malformed_answers_end_it)
{
	CHECK_INT(meet(garbage, true), 0);
	CHECK_INT(lr_dbus_call(&conn, &method, NULL, &msg, &err), -EBADMSG);
	part();
	if (*(const uint8_t *)&(uint16_t){1}) {
		CHECK_INT(meet(too_long, true), 0);
		CHECK_INT(lr_dbus_call(&conn, &method, NULL, &msg, &err), -EMSGSIZE);
		part();
	}
	CHECK_INT(meet(cut_off, true), 0);
	CHECK_INT(lr_dbus_call(&conn, &method, NULL, &msg, &err), -ECONNRESET);
	part();
}

static void silent(void)
{
	peer_authenticate();
	peer_take(NULL);
}

TEST(silence_is_not_waited_for_forever)
{
	struct timespec now;

	CHECK_INT(meet(silent, true), 0);
	clock_gettime(CLOCK_MONOTONIC, &now);
	CHECK(conn.deadline > (int64_t)now.tv_sec * 1000);
	conn.deadline = (int64_t)now.tv_sec * 1000; /* less than a second ago */
	CHECK_INT(lr_dbus_call(&conn, &method, NULL, &msg, &err), -ETIMEDOUT);
	CHECK_HAS(err.hint, "does not answer");
	part();
}

TEST(too_much_to_say)
{
	static uint8_t buf[2 * LR_DBUS_MAX];
	struct lr_dbus_out body = {.buf = buf, .cap = sizeof(buf)};

	CHECK_INT(meet(silent, true), 0);
	body.len = LR_DBUS_MAX;
	CHECK_INT(lr_dbus_call(&conn, &method, &body, &msg, &err), -EMSGSIZE);
	body = (struct lr_dbus_out){.buf = buf, .cap = 2};
	lr_dbus_put_u32(&body, 1);
	CHECK_INT(lr_dbus_call(&conn, &method, &body, &msg, &err), -EMSGSIZE);
	kill(child, SIGKILL);
	part();
}

TEST(nobody_is_there)
{
	setenv("XDG_RUNTIME_DIR", "/nonexistent", 1);
	unsetenv("DBUS_SESSION_BUS_ADDRESS");
	CHECK_INT(lr_dbus_open(true, &conn, &err), -ENOENT);
	CHECK_HAS(err.msg, "/nonexistent/bus");
	CHECK_HAS(err.hint, "cgroupfs");
	unsetenv("XDG_RUNTIME_DIR");
	CHECK_INT(lr_dbus_open(true, &conn, &err), -ENOENT);
	CHECK_HAS(err.msg, "XDG_RUNTIME_DIR");
	setenv("DBUS_SESSION_BUS_ADDRESS", "tcp:host=localhost", 1);
	CHECK_INT(lr_dbus_open(true, &conn, &err), -EAFNOSUPPORT);
	CHECK_INT(conn.fd, LR_NOFD);
}
