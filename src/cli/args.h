/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli: the command line, parsed.
 *
 * What is accepted is the union of Go's flag package (runc) and argp (crun): --opt value,
 * --opt=value, -opt value, -o value, -o=value; =true and =false for flags; short flags in one word
 * (-td); options before and after operands; -- ends the options. A word that could be an option is
 * never silently taken for something else.
 */
#ifndef LR_CLI_ARGS_H
#define LR_CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/err.h"
#include "src/cli/table.h"

struct lr_cli_value {
	const struct lr_cli_opt *opt;
	const char *text; /* flags: "true" or "false" */
};

struct lr_cli_args {
	char **argv;                    /* as main has it */
	const struct lr_cli_verb *verb; /* NULL: none was given */
	char **operands;                /* NULL-terminated; strings of argv */
	size_t n_operands;
	struct lr_cli_value *values; /* in the order of the command line, globals first */
	size_t n_values;
};

/*
 * Fills *ret, which points into argv. -EINVAL (or -ENOMEM) with *err filled; *ret then holds what
 * was understood up to there, so that --log is known. lr_cli_args_free in either case, and
 * before the next: there is memory for one.
 */
int lr_cli_parse(int argc, char **argv, struct lr_cli_args *ret, struct lr_err *err) LR_MUST_CHECK;
void lr_cli_args_free(struct lr_cli_args *args);

/* Whether there are as many operands as the verb takes: 0 or -EINVAL. Apart from lr_cli_parse,
 * because `VERB --help` needs none. */
int lr_cli_check_operands(const struct lr_cli_args *args, struct lr_err *err) LR_MUST_CHECK;

/* ---- values: an option that was not given is NULL, false or the default ------------------ */

const char *lr_cli_str(const struct lr_cli_args *args, enum lr_cli_opt_id id);
bool lr_cli_flag(const struct lr_cli_args *args, enum lr_cli_opt_id id);
/* INT, SIZE (bytes) and DURATION (milliseconds); checked by the parser, so they cannot fail. */
int64_t lr_cli_num(const struct lr_cli_args *args, enum lr_cli_opt_id id, int64_t otherwise);
/* The next value of a repeatable option: start with *at == 0, ends with NULL. */
const char *lr_cli_next(const struct lr_cli_args *args, enum lr_cli_opt_id id, size_t *at);
size_t lr_cli_count(const struct lr_cli_args *args, enum lr_cli_opt_id id);

/* The container's id: the first operand. */
static inline const char *lr_cli_id(const struct lr_cli_args *args)
{
	return args->n_operands ? args->operands[0] : NULL;
}

/* ---- globals ----------------------------------------------------------------------------- */

enum lr_cli_tri { LR_CLI_AUTO, LR_CLI_TRUE, LR_CLI_FALSE };
/* --rootless in front of the verb. */
enum lr_cli_tri lr_cli_rootless(const struct lr_cli_args *args);

/* "cgroupfs", "systemd", "disabled"; NULL when the caller did not say (the container's record, or
 * cgroupfs for a new one, then decides: half of the callers leave it out). */
const char *lr_cli_cgroup_manager(const struct lr_cli_args *args);

/* The lean profile, as lr_lean_profile takes it: --lean; or LEAN_RUNTIME_PROFILE; or "lean" when
 * the program was started under a name that ends in "-lean", which is all that Docker's
 * --add-runtime can choose; else NULL. */
const char *lr_cli_lean(const struct lr_cli_args *args);

uid_t lr_cli_euid(void); /* of this process */
gid_t lr_cli_egid(void);

/*
 * The directory of the state: --root; or /run/lean-runtime for root; or
 * $XDG_RUNTIME_DIR/lean-runtime for anyone else and for root of a user namespace, who cannot write
 * to /run. Absolute. Writes to buf; -errno with *err filled.
 */
int lr_cli_root(const struct lr_cli_args *args, char *buf, size_t size,
		struct lr_err *err) LR_MUST_CHECK;

#endif
