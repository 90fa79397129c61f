/* SPDX-License-Identifier: Apache-2.0 */
/* liblean: what template.c and instance.c share; internal. */
#ifndef LR_LIBLEAN_INSTANCE_H
#define LR_LIBLEAN_INSTANCE_H

#include <pthread.h>
#include <stdatomic.h>

#include "src/liblean/template.h"
#include "src/lifecycle/create.h"

struct lr_stack;

struct lr_template {
	struct lr_runtime rt;
	struct lr_arena *arena;
	struct lr_store store;
	struct lr_compiled master;
	struct lr_given given; /* but for stack and stdio, which are one start's */
	struct lr_seccomp_prog seccomp;
	int null;
	atomic_uint users; /* its owner, and instances */
	pthread_mutex_t lock;
	struct lr_stack *stacks; /* under the lock: those nobody uses */
};

struct lr_instance {
	struct lr_template *t;
	struct lr_arena *arena;
	struct lr_birth b; /* not for exec's: then record.id is NULL */
	pid_t pid;
	int pidfd;
	pthread_mutex_t lock; /* for what follows */
	bool reaped;
	int status; /* or -ECHILD: not known */
};

/* NULL: no memory. */
struct lr_stack *lr_template_stack(struct lr_template *t, struct lr_given *g);
void lr_template_stack_back(struct lr_template *t, struct lr_stack *s);
void lr_template_hold(struct lr_template *t); /* lr_template_close lets go */
/* "lean-" and 96 random bits. */
int lr_template_name(char id[40], struct lr_err *err) LR_MUST_CHECK;

#endif
