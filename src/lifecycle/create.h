/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle: what create and run share: a container up to the point where its program may start;
 * internal. */
#ifndef LR_LIFECYCLE_CREATE_H
#define LR_LIFECYCLE_CREATE_H

#include "src/init/seed.h"
#include "src/lifecycle/compile.h"
#include "src/lifecycle/hide.h"
#include "src/tty/tty.h"

enum lr_birth_kind {
	LR_BIRTH_CREATE,     /* init waits for `start`; a terminal is sent to the console socket */
	LR_BIRTH_DETACHED,   /* run --detach: waits for lr_init_start; the same */
	LR_BIRTH_FOREGROUND, /* run: a terminal is sent to us, by b->console */
};

struct lr_birth {
	struct lr_runtime rt; /* the caller's, completed by what was found out */
	struct lr_store store;
	struct lr_entry entry;
	struct lr_compiled c;
	struct lr_seccomp_prog seccomp;
	struct lr_init_child child;
	const struct lr_given *given;
	struct lr_init_shared shared;
	struct lr_init_seed seed; /* of config.json's annotation */
	enum lr_hide hide;
	bool hands_out; /* lr_birth_hand_out has something to do */
	bool unsaved;   /* that the cgroup is ours is not in the record on disk yet */
	int stub;       /* the page; LR_NOFD: none */
	int console;    /* our end of the console socket, foreground only */
};
#define LR_BIRTH_NONE                                                                              \
	{                                                                                          \
		.store = {.fd = -EBADF}, .entry = LR_ENTRY_NONE, .child = LR_INIT_CHILD_NONE,      \
		.stub = -EBADF, .console = -EBADF, .seed = LR_INIT_SEED_NONE,                      \
		.c.hold = LR_LEAN_HOLD_NONE, .c.init = {                                           \
			.go = -EBADF,                                                              \
			.answer = -EBADF,                                                          \
			.process.console = -EBADF,                                                 \
			.tree = LR_TREE_NONE,                                                      \
			.hook_opts = LR_HOOK_OPTS_INIT                                             \
		}                                                                                  \
	}

/* Everything that can be known before anything is made: the store, the plan. *b is to be closed
 * in either case. */
int lr_birth_plan(const struct lr_runtime *rt, const struct lr_create_opts *o, struct lr_arena *a,
		  struct lr_birth *b, struct lr_err *err) LR_MUST_CHECK;

/* Makes everything up to the point where the program may start. On failure everything is undone. */
int lr_birth_make(const struct lr_create_opts *o, enum lr_birth_kind kind, struct lr_arena *a,
		  struct lr_birth *b, struct lr_err *err) LR_MUST_CHECK;

/* Both. */
int lr_birth(const struct lr_runtime *rt, const struct lr_create_opts *o, enum lr_birth_kind kind,
	     struct lr_arena *a, struct lr_birth *b, struct lr_err *err) LR_MUST_CHECK;

/* The steps of it that a restored container has, too: the record, the filter for exec, the cgroup
 * with its limits. */
int lr_birth_record(struct lr_birth *b, struct lr_arena *a, struct lr_err *err) LR_MUST_CHECK;
/* Writes that the cgroup is ours to the record on disk, if it is not there yet: before anybody can be
 * in that cgroup. */
int lr_birth_save(struct lr_birth *b, struct lr_err *err) LR_MUST_CHECK;
/* The process is known: to the record; *ignored (or NULL): the signals that it ignores. */
int lr_birth_record_pid(struct lr_birth *b, pid_t pid, uint64_t *ignored,
			struct lr_err *err) LR_MUST_CHECK;
/* arg: a struct lr_birth. Network devices and cache allocation, which need the process. */
int lr_birth_parent_work(void *arg, pid_t child, struct lr_err *err) LR_MUST_CHECK;

/* ---- run.c: staying with what was born --------------------------------------------------- */

int lr_birth_prepare_to_stay(const struct lr_birth *b, const struct lr_create_opts *o,
			     struct lr_tty_signals *signals, struct lr_err *err) LR_MUST_CHECK;
/* Until its end, and then deletes it, unless it is to be kept. notify: a socket (lr_notify_listen),
 * taken; or LR_NOFD. */
int lr_birth_stay(struct lr_birth *b, const struct lr_create_opts *o,
		  const struct lr_tty_signals *signals, int notify, struct lr_arena *a, int *status,
		  struct lr_err *err) LR_MUST_CHECK;

/* The program of a birth that is not LR_BIRTH_CREATE runs when this returns; and poststart hooks
 * have run. */
int lr_birth_start(struct lr_birth *b, const struct lr_create_opts *o, struct lr_arena *a,
		   struct lr_err *err) LR_MUST_CHECK;

/* exec for a library: the process runs, and the caller closes *child. i: of the container. */
int lr_exec_in_memory(const struct lr_runtime *rt, const struct lr_exec_opts *o,
		      const struct lr_given *given, struct lr_arena *a, struct lr_init_child *child,
		      struct lr_err *err) LR_MUST_CHECK;

/* Appends to a list of arguments, or to an environment, where the last NAME=value counts. `more`:
 * NULL-terminated, or NULL. */
int lr_append(struct oci_strv *list, const char *const *more, struct lr_arena *a,
	      struct lr_err *err) LR_MUST_CHECK;

/* --pidfd-socket (or crun's annotation run.oci.pidfd_receiver; annotations may be NULL) and
 * --pid-file. */
int lr_birth_hand_out(const struct lr_create_opts *o, const struct oci_map *annotations,
		      const struct lr_init_child *c, struct lr_err *err) LR_MUST_CHECK;

/* Undoes a birth that has succeeded; best effort, what goes wrong is warned about. *err is why; if
 * it says only that a process died, and memory was short, it is made to say so. */
void lr_birth_undo(struct lr_birth *b, struct lr_arena *a, struct lr_err *err);
/* Whether the kernel has killed something in the container because its memory limit was reached. */
bool lr_birth_out_of_memory(const struct lr_birth *b, struct lr_arena *a);
void lr_birth_close(struct lr_birth *b);

/*
 * The socket that takes the terminal's master: connected to `path`, or, without one, the first of
 * a pair whose second end is *ours (foreground). For run and exec alike. `terminal` and `path`
 * have to go together when detached.
 */
int lr_console_open(bool terminal, bool detached, const char *path, int *theirs, int *ours,
		    struct lr_err *err) LR_MUST_CHECK;

/* Foreground: we relay the terminal, and it has the size of the caller's, if there is one. */
void lr_console_relayed(struct lr_tty_console *tty, struct lr_arena *a);

#endif
