/* SPDX-License-Identifier: Apache-2.0 */
/* init: how a newborn talks with its parent; see child.h. */
#include "src/init/child.h"

/* ---- a process of its own: by the sync socket ------------------------------------------------ */

static int socket_wait(struct lr_child *c, enum lr_step step, int32_t *value, struct lr_err *err)
{
	return lr_sync_wait(c->becoming.sync, step, value, err);
}

static int socket_tell(struct lr_child *c, enum lr_step step, struct lr_err *err)
{
	return lr_sync_send(c->becoming.sync, step, 0, err);
}

static void socket_report(struct lr_child *c, const struct lr_err *why)
{
	lr_sync_send_err(c->becoming.sync, why);
}

const struct lr_medium lr_medium_socket = {socket_wait, socket_tell, socket_report};

/* ---- in the caller's memory ------------------------------------------------------------------ */

/* The parent does nothing until our execve. All that a stage could wait for was done before the
 * clone; lr_init_alone has made sure of that. */
static int memory_wait(struct lr_child *c, enum lr_step step, int32_t *value, struct lr_err *err)
{
	(void)c, (void)step, (void)value, (void)err;
	return 0;
}

static int memory_tell(struct lr_child *c, enum lr_step step, struct lr_err *err)
{
	(void)c, (void)step, (void)err;
	return 0;
}

static void memory_report(struct lr_child *c, const struct lr_err *why)
{
	c->err = *why;
}

const struct lr_medium lr_medium_memory = {memory_wait, memory_tell, memory_report};
