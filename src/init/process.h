/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init: what any process in a container is made of, first or exec'd, and the steps in which the
 * fresh child becomes it.
 *
 * The order is the one thing that matters here. What needs privilege comes first; the user id is
 * set before the last capabilities are given up; the seccomp filter is loaded at the very end.
 * Loading it takes CAP_SYS_ADMIN (or no-new-privileges), which is kept until then. So a filter has
 * to allow nothing of ours but capset and execve.
 */
#ifndef LR_INIT_PROCESS_H
#define LR_INIT_PROCESS_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "libocispec/config.h"
#include "src/base/err.h"
#include "src/caps/caps.h"
#include "src/limits/limits.h"
#include "src/lsm/lsm.h"
#include "src/seccomp/seccomp.h"
#include "src/tty/tty.h"
#include "src/user/user.h"

struct lr_init_seed;

/* Compiled before clone; the child only reads it, but for env (HOME), stub_argv and lsm. */
struct lr_init_process {
	const char *const *argv; /* NULL-terminated; argv[0] is the program; NULL: it only waits */
	const char **env;        /* NULL-terminated, with room for one more */
	size_t n_env;
	bool add_home;   /* env has no HOME: take it from the container's /etc/passwd */
	const char *cwd; /* absolute, in the container */
	struct lr_user_plan user;
	struct lr_caps_plan caps;
	struct lr_lsm_plan lsm;
	struct lr_limits_rlimits rlimits;
	struct lr_limits_sched sched;
	struct lr_limits_mempolicy mempolicy;
	struct lr_limits_affinity affinity;
	const int32_t *oom_score_adj;
	bool has_personality;
	unsigned long personality;
	const struct lr_seccomp_prog *seccomp; /* NULL: none */
	bool no_new_privileges;
	bool keep_bounding; /* see src/lean: with no_new_privileges it cannot be had */
	bool rootless;
	const char *keyring; /* name of a new session keyring; NULL: keep the caller's */
	int preserve_fds;    /* the program keeps those of 3 .. 3 + n - 1 that are the caller's */
	int console;         /* socket for the terminal's master, LR_NOFD: no terminal */
	struct lr_tty_console tty;
	/* We do not wait for its end, so no exit status will tell that it died before its program.
	 * Three system calls at its start find that out. */
	bool detached;
	const int *stdio; /* three descriptors to be 0, 1 and 2; NULL: the caller's */
	/* Where the page hides the caller's file: argv with room for two in front, and
	 * lr_init_stub_open. NULL: execute directly */
	const char **stub_argv;
	int stub;
	/* The page waits for lr_init_start: the parent has something to do that needs the process,
	 * and has to be done before its program runs. */
	bool held;
	struct lr_init_seed *seed; /* what it continues, in place of argv (seed.h); NULL: nothing */
};

/* The child's own state while it becomes the process. */
struct lr_becoming {
	int sync;
	int procfd;   /* private procfs, LR_NOFD when nothing needs it */
	int slave;    /* terminal, LR_NOFD: none; taken */
	int go;       /* gives the word to start; LR_NOFD: the medium does */
	int answer;   /* to `start`, once it is there; LR_NOFD: none */
	int hooks[2]; /* where the hooks of `start` write, LR_NOFD: nowhere of their own */
	bool shared;  /* in the caller's memory */
	bool in_root; /* the working directory is "/" */
	char program[PATH_MAX];
	char home[sizeof("HOME=") + PATH_MAX];
	char stub_text[24];
};
#define LR_BECOMING_NONE                                                                           \
	{                                                                                          \
		.sync = LR_NOFD, .procfd = LR_NOFD, .slave = LR_NOFD, .go = LR_NOFD,               \
		.answer = LR_NOFD, .hooks = {                                                      \
			LR_NOFD,                                                                   \
			LR_NOFD                                                                    \
		}                                                                                  \
	}

/* True if some step below writes to /proc. */
bool lr_process_wants_procfs(const struct lr_init_process *p);

/* First thing in the child: signals as a program expects them (`which`: lr_clone.reset), and a
 * umask of 0, since every stage that makes a file names its whole mode. */
int lr_process_reset_signals(uint64_t which, struct lr_err *err) LR_MUST_CHECK;

/*
 * Second: after the parent has granted what the child may not take itself (lr_limits_grant), and
 * still with the caller's own credentials, as in a user namespace /proc/self/oom_score_adj belongs
 * to somebody else.
 */
int lr_process_early(struct lr_init_process *p, struct lr_becoming *b,
		     struct lr_err *err) LR_MUST_CHECK;

/* A session keyring of its own, so that the caller's keys stay the caller's. */
int lr_process_keyring(const struct lr_init_process *p, int procfd,
		       struct lr_err *err) LR_MUST_CHECK;

/* Everything up to the filter and the program, in the container's root. Finds b->program. */
int lr_process_become(struct lr_init_process *p, struct lr_becoming *b,
		      struct lr_err *err) LR_MUST_CHECK;

/* Closes all descriptors from `first` on but those of `keep`, which it sorts. */
int lr_process_close_from(unsigned first, int *keep, size_t n, struct lr_err *err) LR_MUST_CHECK;

/* A filter with notifications is loaded before READY, because its agent needs the runtime.
 * No-op for other filters. */
int lr_process_load_notify(struct lr_init_process *p, struct lr_becoming *b,
			   struct lr_err *err) LR_MUST_CHECK;

/*
 * The page (stub.c) in a sealed memfd. -ENOSYS on a machine that it was not written for.
 */
#define LR_STUB_NAME "lean-stub" /* of the memfd */
int lr_init_stub_open(struct lr_err *err) LR_MUST_CHECK;
/* Whether the filter lets the page do its work. */
bool lr_init_stub_allowed(const struct lr_seccomp_prog *filter, struct lr_arena *arena);

/* What is done last, to the process itself and to each of its startContainer hooks: the filter,
 * unless lr_process_load_notify has loaded it, and no more capabilities than are its own. */
int lr_process_confine(const struct lr_init_process *p, struct lr_err *err) LR_MUST_CHECK;

/* The filter, the last capabilities, the program. Returns only with an error. */
int lr_process_execute(struct lr_init_process *p, struct lr_becoming *b, struct lr_err *err);

#endif
