/* SPDX-License-Identifier: Apache-2.0 */
/* cli: parsed options as the rooms below take them. */
#ifndef LR_CLI_RUNTIME_H
#define LR_CLI_RUNTIME_H

#include <limits.h>

#include "src/base/arena.h"
#include "src/cli/args.h"
#include "src/lifecycle/hide.h"
#include "src/lifecycle/lifecycle.h"

/* The globals; `root` is storage for rt->root. */
struct lr_cli_runtime {
	struct lr_runtime rt;
	char root[PATH_MAX];
};
int lr_cli_runtime(const struct lr_cli_args *args, struct lr_cli_runtime *ret,
		   struct lr_err *err) LR_MUST_CHECK;

/* Hides the program's own file as lr_hide decides, before anything is known of the container.
 * LEAN_RUNTIME_SELF in the environment, "mount" or "copy", says how. argv: of main. */
int lr_cli_hide(enum lr_hide_birth birth, char **argv, struct lr_err *err) LR_MUST_CHECK;
/* lr_create_opts.hide: executes the program again. argv: of main. */
int lr_cli_hide_now(void *argv, struct lr_err *err) LR_MUST_CHECK;

/* All values of a repeatable option, NULL-terminated; NULL when it was not given. *n may be
 * NULL. */
int lr_cli_list(const struct lr_cli_args *args, enum lr_cli_opt_id id, struct lr_arena *a,
		const char ***ret, size_t *n, struct lr_err *err) LR_MUST_CHECK;

/* --preserve-fds: at least 0. */
int lr_cli_preserve_fds(const struct lr_cli_args *args, int *ret, struct lr_err *err) LR_MUST_CHECK;

/* Calls fn for the container named on the command line or, with --regex, for each that matches,
 * even after one failed; the first failure is returned. */
typedef int lr_cli_each_fn(const struct lr_runtime *rt, const char *id, void *arg,
			   struct lr_err *err);
int lr_cli_each(const struct lr_cli_args *args, lr_cli_each_fn *fn, void *arg,
		struct lr_err *err) LR_MUST_CHECK;

#endif
