/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: the rendezvous, and a child that does not keep to it. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/init/sync.h"
#include "tests/unit/test.h"

#define MAGIC 0x4c52534eu

/* As sync.c lays it out. */
struct raw {
	uint32_t magic;
	uint16_t kind, step;
	int32_t value;
	struct lr_err err;
};

struct pair {
	int parent, child;
	struct lr_err err;
};

static struct pair make(void)
{
	struct pair p = {.parent = LR_NOFD, .child = LR_NOFD};
	int sv[2];

	if (lr_sync_pair(sv, &p.err) == 0) {
		p.parent = sv[0];
		p.child = sv[1];
	}
	return p;
}

static void done(struct pair *p)
{
	lr_close(p->parent);
	lr_close(p->child);
}

TEST(a_step_and_its_value)
{
	struct pair p = make();
	int32_t value = 0;

	CHECK_INT(lr_sync_send(p.child, LR_STEP_CLONED, 1234, &p.err), 0);
	CHECK_INT(lr_sync_wait(p.parent, LR_STEP_CLONED, &value, &p.err), 0);
	CHECK_INT(value, 1234);
	done(&p);
}

TEST(another_step_is_a_protocol_error)
{
	struct pair p = make();

	CHECK_INT(lr_sync_send(p.child, LR_STEP_READY, 0, &p.err), 0);
	CHECK_INT(lr_sync_wait(p.parent, LR_STEP_ROOTED, NULL, &p.err), -EPROTO);
	CHECK_HAS(p.err.msg, "rooted");
	CHECK_HAS(p.err.msg, "ready");
	done(&p);
}

TEST(a_dead_child_is_told_from_one_that_says_why)
{
	struct pair p = make();
	struct lr_err why = {0};

	p.child = lr_close(p.child);
	CHECK_INT(lr_sync_wait(p.parent, LR_STEP_READY, NULL, &p.err), -EPIPE);
	done(&p);
	p = make();
	lr_err_set(&why, ENOSPC, "mount", true, "no room");
	lr_sync_send_err(p.child, &why);
	p.child = lr_close(p.child);
	CHECK_INT(lr_sync_wait(p.parent, LR_STEP_READY, NULL, &p.err), -ENOSPC);
	CHECK_HAS(p.err.msg, "no room");
	done(&p);
}

TEST(what_a_dead_child_said_comes_before_the_broken_pipe)
{
	struct pair p = make();
	struct lr_err why = {0};

	CHECK_INT(lr_sync_send(p.child, LR_STEP_ROOTED, 0, &p.err), 0);
	lr_err_set(&why, EACCES, "cgroup", true, "cannot join");
	lr_sync_send_err(p.child, &why);
	p.child = lr_close(p.child);
	CHECK_INT(lr_sync_tell(p.parent, LR_STEP_MAPPED, 1, &p.err), -EACCES);
	CHECK_HAS(p.err.msg, "cannot join");
	done(&p);
	p = make();
	p.child = lr_close(p.child);
	CHECK_INT(lr_sync_tell(p.parent, LR_STEP_MAPPED, 1, &p.err), -EPIPE);
	done(&p);
}

TEST(nothing_in_an_error_is_believed)
{
	struct pair p = make();
	struct raw m = {.magic = MAGIC, .kind = 2};

	memset(&m.err, 'A', sizeof(m.err));
	m.err.code = -7;
	CHECK_INT(send(p.child, &m, sizeof(m), 0), sizeof(m));
	CHECK_INT(lr_sync_wait(p.parent, LR_STEP_READY, NULL, &p.err), -EPROTO);
	CHECK_INT(strlen(p.err.msg), sizeof(p.err.msg) - 1);
	CHECK_INT(strlen(p.err.hint), sizeof(p.err.hint) - 1);
	CHECK_INT(strlen(p.err.room), sizeof(p.err.room) - 1);
	done(&p);
}

TEST(what_the_stub_says_is_an_error_whatever_it_says)
{
	const int32_t said[] = {ENOENT, 0, -1, INT32_MIN};
	const int want[] = {-ENOENT, -EPROTO, -EPROTO, -EPROTO};

	for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
		struct pair p = make();
		CHECK_INT(send(p.child, &said[i], sizeof(said[i]), 0), sizeof(said[i]));
		CHECK_INT(lr_sync_wait_exec(p.parent, getpid(), 0, NULL, &p.err), want[i]);
		CHECK_INT(p.err.code, -want[i]);
		done(&p);
	}
}

TEST(the_program_is_named_in_what_the_stub_says)
{
	char program[LR_SYNC_PROGRAM_SIZE];
	const int32_t why = ENOEXEC;
	struct pair p = make();

	lr_sync_send_program(p.child, "/bin/alien");
	CHECK_INT(send(p.child, &why, sizeof(why), 0), sizeof(why));
	CHECK_INT(lr_sync_wait_exec(p.parent, getpid(), 0, program, &p.err), -ENOEXEC);
	CHECK_STR(program, "/bin/alien");
	CHECK_HAS(p.err.msg, "/bin/alien");
	done(&p);

	p = make();
	lr_sync_send_program(p.child, "/bin/true");
	close(p.child);
	CHECK_INT(lr_sync_wait_exec(p.parent, getpid(), 0, NULL, &p.err), 0);
	p.child = -1;
	done(&p);
}

TEST(cut_off_and_foreign_messages_are_refused)
{
	struct raw m = {.magic = MAGIC, .kind = 1, .step = LR_STEP_READY};
	const size_t step = offsetof(struct raw, err);
	const size_t sizes[] = {1, 4, step - 1, step + 1, sizeof(m)};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct pair p = make();
		CHECK_INT(send(p.child, &m, sizes[i], 0), sizes[i]);
		CHECK_INT(lr_sync_wait(p.parent, LR_STEP_READY, NULL, &p.err), -EPROTO);
		done(&p);
	}
	struct pair p = make();
	m.magic++;
	CHECK_INT(send(p.child, &m, step, 0), step);
	CHECK_INT(lr_sync_wait_exec(p.parent, getpid(), 0, NULL, &p.err), -EPROTO);
	done(&p);
}

static int open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* A child that sends descriptors must not fill our table with them. */
TEST(descriptors_are_not_taken)
{
	struct pair p = make();
	struct raw m = {.magic = MAGIC, .kind = 1, .step = LR_STEP_READY};
	struct iovec iov = {&m, offsetof(struct raw, err)};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(4 * sizeof(int))];
	} control = {0};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	const int fds[4] = {0, 0, 0, 0};

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(c), fds, sizeof(fds));
	int before = open_fds();
	CHECK(sendmsg(p.child, &msg, 0) > 0);
	CHECK_INT(lr_sync_wait(p.parent, LR_STEP_READY, NULL, &p.err), 0);
	CHECK_INT(open_fds(), before);
	done(&p);
}
