/* SPDX-License-Identifier: Apache-2.0 */
/* sys: the children of a thread; see children.h. */
#include "src/sys/children.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

void lr_children_open(struct lr_children *c, pid_t pid, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, tid);
	c->at = c->n = 0;
	c->fd = lr_open(path, O_RDONLY | O_CLOEXEC);
	c->error = c->fd < 0 ? -errno : 0;
}

/* True: there is text. */
static bool fill(struct lr_children *c)
{
	ssize_t n = c->error < 0 ? c->error : lr_read_full(c->fd, c->text, sizeof(c->text));

	c->error = n < 0 ? (int)n : 0;
	c->n = n < 0 ? 0 : (unsigned)n;
	c->at = 0;
	return n > 0;
}

/* Each number has a blank behind it. */
pid_t lr_children_next(struct lr_children *c)
{
	pid_t pid = 0;

	while (c->at < c->n || fill(c)) {
		char digit = c->text[c->at++];
		if (digit == ' ')
			return pid;
		pid = pid * 10 + (digit - '0');
	}
	return c->error;
}

void lr_children_close(struct lr_children *c)
{
	c->fd = lr_close(c->fd);
}
