/* SPDX-License-Identifier: Apache-2.0 */
/*
 * liblean: a template is a bundle that is read once and started often. What is started is a
 * container as any other: it has its record, every verb works on it, and whatever is left of it
 * when the caller is killed goes by delete --force.
 *
 * A template does not change once it is open, but for its pool of stacks: any thread may start
 * from it at any time. An instance may be used by several threads, too.
 */
#ifndef LR_LIBLEAN_TEMPLATE_H
#define LR_LIBLEAN_TEMPLATE_H

#include "src/lifecycle/lifecycle.h"

struct lr_template;
struct lr_instance;

struct lr_template_opts {
	struct lr_runtime rt; /* strings are copied */
	const char *bundle;   /* directory; NULL: rootfs */
	const char *config;   /* text of config.json; NULL: the bundle's */
	size_t config_len;
	const char *rootfs; /* instead of root.path; NULL: that */
};

int lr_template_open(const struct lr_template_opts *o, struct lr_template **ret,
		     struct lr_err *err) LR_MUST_CHECK;
/* Those started from it go on; NULL-safe. */
void lr_template_close(struct lr_template *t);
/* n slots ready for its containers; without the lean profile there is nothing to do. */
int lr_template_warm(struct lr_template *t, unsigned n, struct lr_err *err) LR_MUST_CHECK;

struct lr_template_start {
	const char *id;          /* NULL: a random one */
	const char *const *args; /* NULL: process.args; NULL-terminated */
	const char *const *env;  /* "K=V", added to process.env; may be NULL */
	int stdio[3];            /* descriptors, or LR_STDIO_NULL */
};
#define LR_STDIO_NULL (-1)

/* The program runs when this returns. */
int lr_template_start(struct lr_template *t, const struct lr_template_start *o,
		      struct lr_instance **ret, struct lr_err *err) LR_MUST_CHECK;

const char *lr_instance_id(const struct lr_instance *i);
pid_t lr_instance_pid(const struct lr_instance *i);
int lr_instance_pidfd(
	const struct lr_instance *i); /* readable when it has ended; not to be closed */
/* -ETIMEDOUT after that many milliseconds (-1: never); -ECHILD: somebody else has waited for it. */
int lr_instance_wait(struct lr_instance *i, int timeout_ms, int *status,
		     struct lr_err *err) LR_MUST_CHECK;
/* -ESRCH: it has ended. */
int lr_instance_signal(struct lr_instance *i, int sig, struct lr_err *err) LR_MUST_CHECK;
int lr_instance_pause(struct lr_instance *i, struct lr_err *err) LR_MUST_CHECK;
int lr_instance_resume(struct lr_instance *i, struct lr_err *err) LR_MUST_CHECK;
/* Takes it apart, and frees it if that has worked. -EBUSY: it runs, and force is not set. */
int lr_instance_delete(struct lr_instance *i, bool force, struct lr_err *err) LR_MUST_CHECK;
/* Forgets it; the container stays as it is. NULL-safe. */
void lr_instance_free(struct lr_instance *i);

/* Another process in it, on its own: wait for it and free it. o->id and what is for terminals,
 * pid files and sockets is ignored. */
int lr_instance_exec(struct lr_instance *i, const struct lr_exec_opts *o, const int stdio[3],
		     struct lr_instance **ret, struct lr_err *err) LR_MUST_CHECK;

#endif
