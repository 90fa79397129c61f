/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli: one function a verb, in cmd_<verb>.c or with its kin. Each turns parsed arguments into a
 * call of a room below and prints the result. It returns the exit status, or a negative errno with
 * *err filled; it prints no error itself.
 */
#ifndef LR_CLI_COMMANDS_H
#define LR_CLI_COMMANDS_H

#include "src/base/err.h"

struct lr_cli_args;

int lr_cmd_checkpoint(const struct lr_cli_args *args, struct lr_err *err);
int lr_cmd_create(const struct lr_cli_args *args, struct lr_err *err);
int lr_cmd_delete(const struct lr_cli_args *args, struct lr_err *err);
int lr_cmd_events(const struct lr_cli_args *args, struct lr_err *err);
int lr_cmd_exec(const struct lr_cli_args *args, struct lr_err *err);
int lr_cmd_features(const struct lr_cli_args *args, struct lr_err *err);
int lr_cmd_help(const struct lr_cli_args *args, struct lr_err *err);
int lr_cmd_kill(const struct lr_cli_args *args, struct lr_err *err);
int lr_cmd_list(const struct lr_cli_args *args, struct lr_err *err);
int lr_cmd_mounts(const struct lr_cli_args *args, struct lr_err *err);
int lr_cmd_pause(const struct lr_cli_args *args, struct lr_err *err);
int lr_cmd_seed(const struct lr_cli_args *args, struct lr_err *err);
int lr_cmd_pool(const struct lr_cli_args *args, struct lr_err *err);
int lr_cmd_ps(const struct lr_cli_args *args, struct lr_err *err);
int lr_cmd_restore(const struct lr_cli_args *args, struct lr_err *err);
int lr_cmd_resume(const struct lr_cli_args *args, struct lr_err *err);
int lr_cmd_run(const struct lr_cli_args *args, struct lr_err *err);
int lr_cmd_spec(const struct lr_cli_args *args, struct lr_err *err);
int lr_cmd_start(const struct lr_cli_args *args, struct lr_err *err);
int lr_cmd_state(const struct lr_cli_args *args, struct lr_err *err);
int lr_cmd_update(const struct lr_cli_args *args, struct lr_err *err);

#endif
