/* SPDX-License-Identifier: Apache-2.0 */
/* init: named, numbered rendezvous; see sync.h. */
#define LR_ROOM "sync"
#include "src/init/sync.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/init/child.h"
#include "src/init/program.h"

#define MAGIC 0x4c52534eu

enum kind { KIND_STEP = 1, KIND_ERROR, KIND_PROGRAM };

struct message {
	uint32_t magic;
	uint16_t kind;
	uint16_t step;
	int32_t value;
	struct lr_err err; /* of KIND_ERROR; KIND_PROGRAM: err.msg is its name */
};
#define STEP_SIZE offsetof(struct message, err)

static const char *const names[LR_STEPS] = {
	[LR_STEP_NONE] = "none",     [LR_STEP_CLONED] = "cloned",     [LR_STEP_MAPPED] = "mapped",
	[LR_STEP_ROOTED] = "rooted", [LR_STEP_HOOKED] = "hooked",     [LR_STEP_FILTER] = "filter",
	[LR_STEP_AGENT] = "agent",   [LR_STEP_RECORDED] = "recorded", [LR_STEP_READY] = "ready",
	[LR_STEP_START] = "start",
};

const char *lr_step_name(enum lr_step step)
{
	return step < LR_STEPS ? names[step] : "unknown";
}

int lr_sync_pair(int sv[2], struct lr_err *err)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return lr_fail(err, errno, "make the sync socket");
	return 0;
}

static int send_message(int sock, const struct message *m, size_t size)
{
	ssize_t n;

	do
		n = send(sock, m, size, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	/* ECONNRESET: it died without reading what we had sent before. */
	return n < 0 ? (errno == ECONNRESET ? -EPIPE : -errno) : 0;
}

int lr_sync_send(int sock, enum lr_step step, int32_t value, struct lr_err *err)
{
	struct message m = {
		.magic = MAGIC, .kind = KIND_STEP, .step = (uint16_t)step, .value = value};
	int r = send_message(sock, &m, STEP_SIZE);

	if (r < 0) {
		lr_fail(err, -r, "the process on the other side is gone");
		return lr_err_step(err, lr_step_name(step));
	}
	return 0;
}

int lr_sync_write(int sock, enum lr_step step, int32_t value, struct lr_err *err)
{
	struct message m = {
		.magic = MAGIC, .kind = KIND_STEP, .step = (uint16_t)step, .value = value};

	if (lr_write_full(sock, &m, STEP_SIZE) < 0) {
		lr_fail(err, EPIPE, "the process on the other side is gone");
		return lr_err_step(err, lr_step_name(step));
	}
	return 0;
}

int lr_sync_died(enum lr_step step, struct lr_err *err)
{
	lr_refuse(err, EPIPE, "the container's first process died");
	lr_err_hint(err, LR_SYNC_DIED_HINT);
	return lr_err_step(err, lr_step_name(step));
}

void lr_sync_send_err(int sock, const struct lr_err *why)
{
	struct message m = {.magic = MAGIC, .kind = KIND_ERROR, .err = *why};

	/* When create has ended, this is a fifo that leads to `start`, for write(2) only; and the
	 * container's filter may refuse the calls of sockets. */
	int r = send_message(sock, &m, sizeof(m));
	if (r < 0 && r != -EPIPE)
		(void)lr_write_full(sock, &m, sizeof(m));
}

/* One datagram; returns its size, 0 at the end of file. The kernel drops descriptors that came
 * along.
 */
static ssize_t receive(int sock, struct message *m)
{
	ssize_t n;

	/* ECONNRESET: the other side died without reading what we sent it. It is told once, before
	 * what that side had sent itself. */
	do
		n = recv(sock, m, sizeof(*m), 0);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0 && errno == ENOTSOCK)
		return lr_read_full(sock, m, sizeof(*m));
	return n < 0 ? -errno : n;
}

/* Nothing in the error is trusted to be terminated: the child may be compromised by then. */
static void take_error(struct message *m, struct lr_err *err)
{
	m->err.room[sizeof(m->err.room) - 1] = '\0';
	m->err.step[sizeof(m->err.step) - 1] = '\0';
	m->err.path[sizeof(m->err.path) - 1] = '\0';
	m->err.msg[sizeof(m->err.msg) - 1] = '\0';
	m->err.hint[sizeof(m->err.hint) - 1] = '\0';
	m->err.terse = !!*(const unsigned char *)&m->err.terse;
	if (m->err.code <= 0)
		m->err.code = EPROTO;
	/* exit(3) takes the lowest byte: 256 would be success. */
	if (m->err.exit_code < 0 || m->err.exit_code > 255)
		m->err.exit_code = 0;
	if (err)
		*err = m->err;
}

static bool is_error(const struct message *m, ssize_t n)
{
	return m->magic == MAGIC && m->kind == KIND_ERROR && n == (ssize_t)sizeof(*m);
}

int lr_sync_wait(int sock, enum lr_step step, int32_t *value, struct lr_err *err)
{
	struct message m = {0};
	ssize_t n = receive(sock, &m);

	if (n < 0) {
		lr_fail(err, (int)-n, "read what the other side says");
		return lr_err_step(err, lr_step_name(step));
	}
	if (n == 0)
		return lr_sync_died(step, err);
	if (is_error(&m, n)) {
		take_error(&m, err);
		return -m.err.code;
	}
	if (m.magic != MAGIC || m.kind != KIND_STEP || (size_t)n != STEP_SIZE || m.step != step) {
		lr_refuse(err, EPROTO, "expected step %s, got %s", lr_step_name(step),
			  lr_step_name(m.step));
		return lr_err_step(err, lr_step_name(step));
	}
	if (value)
		*value = m.value;
	return 0;
}

int lr_sync_tell(int sock, enum lr_step step, int32_t value, struct lr_err *err)
{
	struct message m = {0};
	ssize_t n;

	int r = lr_sync_send(sock, step, value, err);
	if (r != -EPIPE)
		return r;
	while ((n = receive(sock, &m)) > 0 && !is_error(&m, n))
		;
	if (n <= 0)
		return lr_sync_died(step, err);
	take_error(&m, err);
	return -m.err.code;
}

void lr_sync_send_program(int sock, const char *path)
{
	struct message m = {.magic = MAGIC, .kind = KIND_PROGRAM};

	snprintf(m.err.msg, sizeof(m.err.msg), "%s", path);
	/* Or a fifo; see lr_sync_send_err. */
	if (send_message(sock, &m, sizeof(m)) == -ENOTSOCK)
		(void)lr_write_full(sock, &m, sizeof(m));
}

/* What is there, without waiting: somebody else may have taken it away. In a fifo it is one
 * write(2). */
static ssize_t receive_now(int sock, struct message *m)
{
	ssize_t n;

	do
		n = recv(sock, m, sizeof(*m), MSG_DONTWAIT);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0 && errno == ENOTSOCK)
		do
			n = read(sock, m, sizeof(*m));
		while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static ssize_t wait_report(int sock, pid_t pid, uint64_t start_time, struct message *m)
{
	ssize_t n;

	do {
		n = lr_init_wait_report(sock, pid, start_time);
		if (n > 0)
			n = receive_now(sock, m);
	} while (n == -EAGAIN);
	return n;
}

int lr_sync_wait_exec(int sock, pid_t pid, uint64_t start_time, char *program, struct lr_err *err)
{
	char unasked[LR_SYNC_PROGRAM_SIZE];
	struct message m = {0};
	ssize_t n = wait_report(sock, pid, start_time, &m);

	program = program ? program : unasked;
	program[0] = '\0';
	if (n == sizeof(m) && m.magic == MAGIC && m.kind == KIND_PROGRAM) {
		snprintf(program, LR_SYNC_PROGRAM_SIZE, "%.*s", (int)LR_SYNC_PROGRAM_SIZE - 1,
			 m.err.msg);
		n = wait_report(sock, pid, start_time, &m);
	}
	if (n == 0)
		return 0;
	if (n < 0)
		return lr_fail(err, (int)-n, "wait for the program to be executed");
	if (n == sizeof(int32_t)) /* stub.c */
		return lr_program_explain(program[0] ? program : "the program", (int)m.magic, err);
	if (!is_error(&m, n))
		return lr_refuse(err, EPROTO, "unexpected message before the program was executed");
	take_error(&m, err);
	return -m.err.code;
}
