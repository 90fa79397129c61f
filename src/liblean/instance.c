/* SPDX-License-Identifier: Apache-2.0 */
/* liblean: containers of a template, and processes in them; see template.h. */
#define LR_ROOM "instance"
#include "src/liblean/instance.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/sys/syscalls.h"

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

/* ---- start ----------------------------------------------------------------------------------- */

/* The config with other arguments, and more environment. */
static int override(const struct oci_config *c, const struct lr_template_start *o,
		    struct lr_arena *a, const struct oci_config **ret, struct lr_err *err)
{
	struct oci_config *own = lr_new(a, struct oci_config);
	struct oci_process *p = lr_new(a, struct oci_process);

	if (!own || !p)
		return lr_fail(err, ENOMEM, "make the plan");
	*own = *c;
	*p = *c->process;
	own->process = p;
	if (o->args) {
		p->args.v = (const char **)(size_t)o->args;
		for (p->args.n = 0; o->args[p->args.n]; p->args.n++)
			;
	}
	*ret = own;
	return o->env ? lr_append(&p->env, o->env, a, err) : 0;
}

static struct lr_instance *make_instance(struct lr_template *t)
{
	struct lr_instance *i = calloc(1, sizeof(*i));

	if (!i)
		return NULL;
	i->arena = lr_arena_new();
	if (!i->arena) {
		free(i);
		return NULL;
	}
	i->b = (struct lr_birth)LR_BIRTH_NONE;
	i->b.given = &t->given; /* its store is not ours to close */
	i->pidfd = LR_NOFD;
	pthread_mutex_init(&i->lock, NULL);
	i->t = t;
	lr_template_hold(t);
	return i;
}

void lr_instance_free(struct lr_instance *i)
{
	if (!i)
		return;
	lr_birth_close(&i->b);
	lr_close(i->pidfd);
	lr_template_close(i->t);
	pthread_mutex_destroy(&i->lock);
	lr_arena_free(i->arena);
	free(i);
}

static void take_stdio(const struct lr_template *t, const int from[3], int to[3])
{
	for (int k = 0; k < 3; k++)
		to[k] = from[k] == LR_STDIO_NULL ? t->null : from[k];
}

/* No longer needed once the program runs: descriptors, the lock. */
static void settle(struct lr_instance *i)
{
	struct lr_birth *b = &i->b;

	i->pid = b->child.pid;
	i->pidfd = lr_take_fd(&b->child.pidfd);
	lr_birth_close(b);
	b->given = &i->t->given;
}

static int start(struct lr_instance *i, const struct lr_template_start *o, struct lr_err *err)
{
	struct lr_given given = i->t->given;
	struct lr_create_opts opts = {.given = &given};
	int stdio[3];
	char id[40];
	int r = 0;

	if (!o->id)
		r = lr_template_name(id, err);
	opts.id = lr_strdup(i->arena, o->id ? o->id : id);
	if (r >= 0 && !opts.id)
		r = lr_fail(err, ENOMEM, "make the plan");
	if (r >= 0 && (o->args || o->env))
		r = override(given.config, o, i->arena, &given.config, err);
	if (r < 0)
		return r;
	take_stdio(i->t, o->stdio, stdio);
	given.stdio = stdio;
	struct lr_stack *stack = lr_template_stack(i->t, &given);
	if (!stack)
		return lr_fail(err, ENOMEM, "make a stack");
	r = lr_birth(&i->t->rt, &opts, LR_BIRTH_DETACHED, i->arena, &i->b, err);
	if (r >= 0) {
		r = lr_birth_start(&i->b, &opts, i->arena, err);
		if (r < 0)
			lr_birth_undo(&i->b, i->arena, err);
	}
	lr_template_stack_back(i->t, stack);
	settle(i);
	return r;
}

int lr_template_start(struct lr_template *t, const struct lr_template_start *o,
		      struct lr_instance **ret, struct lr_err *err)
{
	struct lr_instance *i = make_instance(t);

	if (!i)
		return lr_fail(err, ENOMEM, "start");
	int r = start(i, o, err);
	if (r < 0) {
		lr_instance_free(i);
		return r;
	}
	*ret = i;
	return 0;
}

/* ---- what it is ------------------------------------------------------------------------------ */

const char *lr_instance_id(const struct lr_instance *i)
{
	return i->b.c.record.id;
}

pid_t lr_instance_pid(const struct lr_instance *i)
{
	return i->pid;
}

int lr_instance_pidfd(const struct lr_instance *i)
{
	return i->pidfd;
}

/* ---- wait and signal ------------------------------------------------------------------------- */

/* 1: it has ended, and i->status is known. Under the lock, so that only one thread is told. */
static int reap(struct lr_instance *i)
{
	siginfo_t info = {0};
	int r = 0;

	pthread_mutex_lock(&i->lock);
	while (!i->reaped) {
		if (waitid((idtype_t)P_PIDFD, (id_t)i->pidfd, &info, WEXITED | WNOHANG | __WALL) <
		    0) {
			if (errno == EINTR)
				continue;
			r = -errno;
			/* The program waits for any child, or ignores SIGCHLD: its status is lost,
			 * that it has ended is not. */
			i->reaped = r == -ECHILD;
			i->status = r;
		} else if (info.si_pid == 0) {
			break;
		} else {
			i->reaped = true;
			i->status =
				info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
		}
		if (r < 0)
			break;
	}
	bool ended = i->reaped;
	pthread_mutex_unlock(&i->lock);
	return ended ? 1 : r;
}

/* 1: ended; 0: it goes on. */
static int wait_end(struct lr_instance *i, int timeout_ms)
{
	int64_t end = timeout_ms <= 0 ? 0 : lr_now_ms() + timeout_ms;

	pthread_mutex_lock(&i->lock);
	bool ended = i->reaped;
	pthread_mutex_unlock(&i->lock);
	while (!ended) {
		int left = timeout_ms <= 0 ? timeout_ms : (int)(end - lr_now_ms());
		struct pollfd p = {.fd = i->pidfd, .events = POLLIN};
		int n = poll(&p, 1, timeout_ms >= 0 && left < 0 ? 0 : left);
		if (n < 0 && errno != EINTR)
			return -errno;
		int r = n > 0 ? reap(i) : 0;
		if (r != 0)
			return r;
		if (n >= 0 && timeout_ms >= 0 && left <= 0)
			return 0;
		/* It has ended, but its tracer (strace) is told first, and nothing tells us when
		 * that was done. */
		if (n > 0)
			lr_sleep_us(1000);
	}
	return 1;
}

int lr_instance_wait(struct lr_instance *i, int timeout_ms, int *status, struct lr_err *err)
{
	int r = wait_end(i, timeout_ms);

	if (r < 0)
		return lr_fail(err, -r, "wait for process %d", i->pid);
	if (r == 0)
		return lr_refuse(err, ETIMEDOUT, "process %d still runs", i->pid);
	if (i->status < 0) {
		lr_fail(err, -i->status, "the status of process %d is lost", i->pid);
		return lr_err_hint(err, "something in this program waits for any child, or "
					"ignores SIGCHLD");
	}
	*status = i->status;
	return 0;
}

int lr_instance_signal(struct lr_instance *i, int sig, struct lr_err *err)
{
	int r = lr_pidfd_send_signal(i->pidfd, sig);

	return r < 0 ? lr_fail(err, -r, "send signal %d to process %d", sig, i->pid) : 0;
}

/* ---- pause ----------------------------------------------------------------------------------- */

static int freeze(struct lr_instance *i, bool frozen, struct lr_err *err)
{
	const struct lr_record *rec = &i->b.c.record;
	struct lr_entry e = LR_ENTRY_NONE;

	if (!rec->id)
		return lr_refuse(err, EINVAL, "only a container can be paused");
	const struct lr_cgroup_ref *cg = lr_cgroup_plan_ref(i->b.c.init.cgroup);
	if (!cg->n)
		return lr_refuse(err, EOPNOTSUPP, "the container has no cgroup to freeze");
	int r = lr_store_lock(&i->t->store, rec->id, &e, err);
	if (r >= 0 && frozen && rec->lean_slot) {
		LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
		r = a ? lr_container_mark(&i->t->store, rec, false, a, err)
		      : lr_fail(err, ENOMEM, "pause");
	}
	if (r >= 0)
		r = lr_cgroup_freeze(cg, frozen, err);
	lr_store_unlock(&e);
	return r;
}

int lr_instance_pause(struct lr_instance *i, struct lr_err *err)
{
	return freeze(i, true, err);
}

int lr_instance_resume(struct lr_instance *i, struct lr_err *err)
{
	return freeze(i, false, err);
}

/* ---- exec ----------------------------------------------------------------------------------- */

static int exec_start(struct lr_instance *i, const struct lr_exec_opts *o, const int stdio[3],
		      struct lr_instance *p, struct lr_err *err)
{
	struct lr_given given = i->t->given;
	struct lr_exec_opts opts = {
		.id = i->b.c.record.id,
		.process = o->process,
		.args = o->args,
		.cwd = o->cwd,
		.env = o->env,
		.user = o->user,
		.detach = true,
	};
	struct lr_init_child child = LR_INIT_CHILD_NONE;
	int own[3];

	take_stdio(i->t, stdio, own);
	given.stdio = own;
	struct lr_stack *stack = lr_template_stack(i->t, &given);
	if (!stack)
		return lr_fail(err, ENOMEM, "make a stack");
	int r = lr_exec_in_memory(&i->t->rt, &opts, &given, p->arena, &child, err);
	lr_template_stack_back(i->t, stack);
	p->pid = child.pid;
	p->pidfd = lr_take_fd(&child.pidfd);
	lr_init_child_close(&child);
	return r;
}

int lr_instance_exec(struct lr_instance *i, const struct lr_exec_opts *o, const int stdio[3],
		     struct lr_instance **ret, struct lr_err *err)
{
	if (!i->b.c.record.id)
		return lr_refuse(err, EINVAL, "only a container can be entered");
	struct lr_instance *p = make_instance(i->t);
	if (!p)
		return lr_fail(err, ENOMEM, "exec");
	int r = exec_start(i, o, stdio, p, err);
	if (r < 0) {
		lr_instance_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

/* ---- delete ---------------------------------------------------------------------------------- */

static int end(struct lr_instance *i, bool force, struct lr_err *err)
{
	const struct lr_cgroup_ref *cg = lr_cgroup_plan_ref(i->b.c.init.cgroup);
	int r = wait_end(i, 0);

	if (r > 0 || r < 0)
		return r < 0 ? lr_fail(err, -r, "wait for process %d", i->pid) : 0;
	if (!force) {
		lr_refuse(err, EBUSY, "container %s runs", i->b.c.record.id);
		return lr_err_hint(err, "wait for its end, or delete it by force");
	}
	r = lr_pidfd_send_signal(i->pidfd, SIGKILL);
	/* A frozen process does not even die (v1). */
	if (cg->n && lr_cgroup_is_frozen(cg) == 1)
		r = lr_cgroup_freeze(cg, false, err);
	if (r >= 0 || r == -ESRCH)
		r = wait_end(i, LR_KILL_TIMEOUT_MS);
	if (r == 0) {
		lr_refuse(err, EBUSY, "process %d does not die", i->pid);
		return lr_err_hint(err, "it hangs in the kernel (state D in ps)");
	}
	return r < 0 ? lr_fail(err, -r, "end process %d", i->pid) : 0;
}

int lr_instance_delete(struct lr_instance *i, bool force, struct lr_err *err)
{
	struct lr_compiled *c = &i->b.c;
	struct lr_entry e = LR_ENTRY_NONE;

	if (!c->record.id)
		return lr_refuse(err, EINVAL, "only a container can be deleted");
	int r = end(i, force, err);
	if (r < 0)
		return r;
	c->record.pid = 0; /* its number may be somebody else's by now */
	struct lr_err why = {0};
	r = lr_store_lock(&i->t->store, c->record.id, &e, &why);
	if (r >= 0)
		r = lr_container_destroy(&e, &c->record, c->kept, c->kept_len, c->bundle, i->arena,
					 &why);
	else if (r == -ENOENT)
		r = 0; /* by the command line, meanwhile */
	lr_store_unlock(&e);
	if (r < 0) {
		if (err)
			*err = why;
		return r;
	}
	lr_instance_free(i);
	return 0;
}
