/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hook: runs one list of hooks of the specification (runtime.md, POSIX-platform hooks), in order.
 *
 * A hook gets the container's state as JSON on standard input, exactly the environment that it
 * names (or, if it names none, what the caller gives), default signals, no descriptor but 0, 1 and
 * 2, and a process group of its own. Where it runs (runtime's or container's namespaces) is where
 * the caller calls from; the paths resolve there. The container's first process, pid 1 of its
 * namespace, is a fine caller.
 *
 * The state is in the pipe before the hook starts, so a hook that never reads cannot block the
 * runtime or hit it with SIGPIPE. What the hook prints is read all along and its end kept for the
 * error. Waiting ends when the hook itself does, even if it left something running that holds its
 * output open.
 */
#ifndef LR_HOOK_H
#define LR_HOOK_H

#include <stdbool.h>
#include <stddef.h>

#include "libocispec/config.h"
#include "src/base/err.h"
#include "src/base/fd.h"

struct lr_hook_opts {
	int stdout_fd;   /* hooks' standard output goes here; LR_NOFD: captured */
	int stderr_fd;   /* the same for standard error */
	int tee_fd;      /* what is captured is copied here; LR_NOFD: nowhere */
	const char *dir; /* working directory; NULL: the caller's */
	/* for hooks without `env` (an empty one counts), NULL-terminated; NULL: the caller's */
	const char *const *env;
	bool keep_going; /* poststart, poststop: a failure is a warning, the next hook runs */
	/* In the hook's process, right before execve; NULL: nothing. Its failure is the hook's. */
	int (*become)(void *arg, struct lr_err *err);
	void *arg;
};
#define LR_HOOK_OPTS_INIT                                                                          \
	{                                                                                          \
		.stdout_fd = LR_NOFD, .stderr_fd = LR_NOFD, .tee_fd = LR_NOFD                      \
	}

/*
 * `kind` as in config.json ("createRuntime"). opts may be NULL: all as LR_HOOK_OPTS_INIT has it.
 * 0, or the first failure: "hook #2 of createRuntime (/path) exited with status 1: <end of its
 * output>" (-ECANCELED), "... timed out after 2 s" (-ETIMEDOUT), or what execve(2) said. Nothing
 * is left running after a timeout: the process group is killed. No heap. Leaves no zombie.
 */
int lr_hook_run(const struct oci_hook_list *hooks, const char *kind, const char *state_json,
		size_t len, const struct lr_hook_opts *opts, struct lr_err *err) LR_MUST_CHECK;

/* Pure: every path absolute, every timeout above zero. For create, before anything is made.
 * hooks may be NULL. -EINVAL with the place. */
int lr_hook_check(const struct oci_hooks *hooks, struct lr_err *err) LR_MUST_CHECK;

/* Opens (makes, appends to) a file for stdout_fd or stderr_fd: annotations run.oci.hooks.stdout
 * and run.oci.hooks.stderr. >= 0, close-on-exec, or -errno. */
int lr_hook_open_output(const char *path, struct lr_err *err) LR_MUST_CHECK;

#endif
