/* SPDX-License-Identifier: Apache-2.0 */
/* cli: run, create, start, exec: the verbs that put a process into a container. */
#define LR_ROOM ""
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "src/base/str.h"
#include "src/cli/commands.h"
#include "src/cli/runtime.h"
#include "src/sys/selfexe.h"

static int create_opts(const struct lr_cli_args *args, struct lr_create_opts *o, struct lr_err *err)
{
	*o = (struct lr_create_opts){
		.id = lr_cli_id(args),
		.bundle = lr_cli_str(args, LR_OPT_BUNDLE),
		.config = lr_cli_str(args, LR_OPT_CONFIG),
		.console_socket = lr_cli_str(args, LR_OPT_CONSOLE_SOCKET),
		.pid_file = lr_cli_str(args, LR_OPT_PID_FILE),
		.pidfd_socket = lr_cli_str(args, LR_OPT_PIDFD_SOCKET),
		.no_pivot = lr_cli_flag(args, LR_OPT_NO_PIVOT),
		.no_new_keyring = lr_cli_flag(args, LR_OPT_NO_NEW_KEYRING),
		.no_mount_fallback = lr_cli_flag(args, LR_OPT_NO_MOUNT_FALLBACK),
		.detach = lr_cli_flag(args, LR_OPT_DETACH),
		.keep = lr_cli_flag(args, LR_OPT_KEEP),
		.no_subreaper = lr_cli_flag(args, LR_OPT_NO_SUBREAPER),
		.open_seed = lr_lifecycle_open_seed,
	};
	if (!lr_selfexe_is_hidden()) {
		o->hide = lr_cli_hide_now;
		o->hide_arg = args->argv;
	}
	return lr_cli_preserve_fds(args, &o->preserve_fds, err);
}

int lr_cmd_create(const struct lr_cli_args *args, struct lr_err *err)
{
	struct lr_cli_runtime run;
	struct lr_create_opts o;

	int r = lr_cli_runtime(args, &run, err);
	if (r == 0)
		r = create_opts(args, &o, err);
	return r < 0 ? r : lr_lifecycle_create(&run.rt, &o, err);
}

/* `run bundle/`: no id can look like that. `run bundle` may mean either: where the working
 * directory is a bundle, it is the name of a container. */
static bool names_bundle(const char *operand)
{
	bool may_be_id = operand[0] != '.' && !strchr(operand, '/');
	char path[PATH_MAX];

	if (may_be_id && access("config.json", F_OK) == 0)
		return false;
	return (size_t)snprintf(path, sizeof(path), "%s/config.json", operand) < sizeof(path) &&
	       access(path, F_OK) == 0;
}

/* By hand: only a bundle is given. The id is for one run, and for whoever looks at `list`. */
static int make_up_id(struct lr_create_opts *o, char id[32], struct lr_err *err)
{
	uint64_t random;

	if (o->bundle || !names_bundle(o->id))
		return 0;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return lr_fail(err, errno, "make up an id");
	snprintf(id, 32, "run-%012" PRIx64, random >> 16);
	o->bundle = o->id;
	o->id = id;
	return 0;
}

int lr_cmd_run(const struct lr_cli_args *args, struct lr_err *err)
{
	struct lr_cli_runtime run;
	struct lr_create_opts o;
	char id[32];
	int status = 0;

	int r = lr_cli_runtime(args, &run, err);
	if (r == 0)
		r = create_opts(args, &o, err);
	if (r == 0)
		r = make_up_id(&o, id, err);
	if (r < 0)
		return r;
	/* In the foreground all signals are blocked, and taken from a descriptor. */
	if (o.detach)
		signal(SIGPIPE, SIG_IGN);
	r = lr_lifecycle_run(&run.rt, &o, &status, err);
	return r < 0 ? r : status;
}

int lr_cmd_start(const struct lr_cli_args *args, struct lr_err *err)
{
	struct lr_cli_runtime run;

	int r = lr_cli_runtime(args, &run, err);
	return r < 0 ? r : lr_lifecycle_start(&run.rt, lr_cli_id(args), err);
}

static int additional_gids(const struct lr_cli_args *args, struct lr_arena *a,
			   struct lr_exec_opts *o, struct lr_err *err)
{
	const char **text;
	size_t n;

	int r = lr_cli_list(args, LR_OPT_ADDITIONAL_GIDS, a, &text, &n, err);
	if (r < 0 || n == 0)
		return r;
	uint32_t *gids = lr_new_n(a, n, uint32_t);
	if (!gids)
		return lr_fail(err, ENOMEM, "--additional-gids");
	for (size_t i = 0; i < n; i++)
		if (lr_parse_u32(text[i], &gids[i]) < 0)
			return lr_refuse(err, EINVAL, "--additional-gids: \"%s\" is no group id",
					 text[i]);
	o->additional_gids = gids;
	o->n_additional_gids = n;
	return 0;
}

static int exec_opts(const struct lr_cli_args *args, struct lr_arena *a, struct lr_exec_opts *o,
		     struct lr_err *err)
{
	const char **env = NULL, **caps = NULL, **cgroups = NULL;

	*o = (struct lr_exec_opts){
		.id = lr_cli_id(args),
		.process = lr_cli_str(args, LR_OPT_PROCESS),
		.args = (const char *const *)args->operands + 1,
		.cwd = lr_cli_str(args, LR_OPT_CWD),
		.user = lr_cli_str(args, LR_OPT_USER),
		.apparmor = lr_cli_str(args, LR_OPT_APPARMOR),
		.process_label = lr_cli_str(args, LR_OPT_PROCESS_LABEL),
		.no_new_privs = lr_cli_flag(args, LR_OPT_NO_NEW_PRIVS),
		.tty = lr_cli_flag(args, LR_OPT_TTY),
		.detach = lr_cli_flag(args, LR_OPT_DETACH),
		.ignore_paused = lr_cli_flag(args, LR_OPT_IGNORE_PAUSED),
		.no_subreaper = lr_cli_flag(args, LR_OPT_NO_SUBREAPER),
		.console_socket = lr_cli_str(args, LR_OPT_CONSOLE_SOCKET),
		.pid_file = lr_cli_str(args, LR_OPT_PID_FILE),
		.pidfd_socket = lr_cli_str(args, LR_OPT_PIDFD_SOCKET),
	};
	if (!o->process && !o->args[0])
		return lr_refuse(err, EINVAL,
				 "exec: process args cannot be empty: give a command "
				 "or --process");
	int r = lr_cli_list(args, LR_OPT_ENV, a, &env, NULL, err);
	if (r == 0)
		r = lr_cli_list(args, LR_OPT_CAP, a, &caps, NULL, err);
	if (r == 0)
		r = lr_cli_list(args, LR_OPT_CGROUP, a, &cgroups, &o->n_cgroups, err);
	if (r == 0)
		r = additional_gids(args, a, o, err);
	if (r == 0)
		r = lr_cli_preserve_fds(args, &o->preserve_fds, err);
	if (r < 0)
		return r;
	o->env = env;
	o->caps = caps;
	o->cgroups = cgroups;
	return 0;
}

int lr_cmd_exec(const struct lr_cli_args *args, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
	struct lr_cli_runtime run;
	struct lr_exec_opts o;
	int status = 0;

	if (!arena)
		return lr_fail(err, ENOMEM, "command line");
	int r = lr_cli_runtime(args, &run, err);
	if (r == 0)
		r = exec_opts(args, arena, &o, err);
	if (r == 0)
		r = lr_lifecycle_exec(&run.rt, &o, &status, err);
	return r < 0 ? r : status;
}
