/* SPDX-License-Identifier: Apache-2.0 */
/* cli: checkpoint and restore. */
#define LR_ROOM ""
#include <errno.h>
#include <limits.h>
#include <signal.h>

#include "src/base/fd.h"
#include "src/checkpoint/checkpoint.h"
#include "src/cli/commands.h"
#include "src/cli/runtime.h"

static int checkpoint_opts(const struct lr_cli_args *args, struct lr_arena *a,
			   struct lr_checkpoint_opts *o, struct lr_err *err)
{
	int64_t status_fd = lr_cli_num(args, LR_OPT_STATUS_FD, -1);
	const char **empty = NULL;

	if (status_fd > INT_MAX)
		return lr_refuse(err, EINVAL, "--status-fd=%lld: no descriptor has that number",
				 (long long)status_fd);
	int r = lr_cli_list(args, LR_OPT_EMPTY_NS, a, &empty, NULL, err);
	*o = (struct lr_checkpoint_opts){
		.image_path = lr_cli_str(args, LR_OPT_IMAGE_PATH),
		.work_path = lr_cli_str(args, LR_OPT_WORK_PATH),
		.parent_path = lr_cli_str(args, LR_OPT_PARENT_PATH),
		.page_server = lr_cli_str(args, LR_OPT_PAGE_SERVER),
		.cgroups = lr_cli_str(args, LR_OPT_MANAGE_CGROUPS_MODE),
		.network_lock = lr_cli_str(args, LR_OPT_NETWORK_LOCK),
		.lsm_profile = lr_cli_str(args, LR_OPT_LSM_PROFILE),
		.lsm_mount_context = lr_cli_str(args, LR_OPT_LSM_MOUNT_CONTEXT),
		.criu = lr_cli_str(args, LR_OPT_CRIU),
		.empty_ns = empty,
		.status_fd = status_fd < 0 ? LR_NOFD : (int)status_fd,
		.leave_running = lr_cli_flag(args, LR_OPT_LEAVE_RUNNING),
		.pre_dump = lr_cli_flag(args, LR_OPT_PRE_DUMP),
		.tcp_established = lr_cli_flag(args, LR_OPT_TCP_ESTABLISHED),
		.tcp_close = lr_cli_flag(args, LR_OPT_TCP_CLOSE),
		.tcp_skip_in_flight = lr_cli_flag(args, LR_OPT_TCP_SKIP_IN_FLIGHT),
		.ext_unix_sk = lr_cli_flag(args, LR_OPT_EXT_UNIX_SK),
		.shell_job = lr_cli_flag(args, LR_OPT_SHELL_JOB),
		.file_locks = lr_cli_flag(args, LR_OPT_FILE_LOCKS),
		.auto_dedup = lr_cli_flag(args, LR_OPT_AUTO_DEDUP),
		.lazy_pages = lr_cli_flag(args, LR_OPT_LAZY_PAGES),
		.link_remap = lr_cli_flag(args, LR_OPT_LINK_REMAP),
	};
	return r;
}

int lr_cmd_checkpoint(const struct lr_cli_args *args, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_cli_runtime run;
	struct lr_checkpoint_opts o;

	int r = lr_cli_runtime(args, &run, err);
	if (r == 0)
		r = checkpoint_opts(args, a, &o, err);
	return r < 0 ? r : lr_lifecycle_checkpoint(&run.rt, lr_cli_id(args), &o, err);
}

int lr_cmd_restore(const struct lr_cli_args *args, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_cli_runtime run;
	struct lr_checkpoint_opts o;
	/* criu neither pivots nor starts a program of ours: nothing of this program is in there. */
	const struct lr_create_opts create = {
		.id = lr_cli_id(args),
		.bundle = lr_cli_str(args, LR_OPT_BUNDLE),
		.console_socket = lr_cli_str(args, LR_OPT_CONSOLE_SOCKET),
		.pid_file = lr_cli_str(args, LR_OPT_PID_FILE),
		.no_pivot = lr_cli_flag(args, LR_OPT_NO_PIVOT),
		.detach = lr_cli_flag(args, LR_OPT_DETACH),
		.no_subreaper = lr_cli_flag(args, LR_OPT_NO_SUBREAPER),
	};
	int status = 0;

	int r = lr_cli_runtime(args, &run, err);
	if (r == 0)
		r = checkpoint_opts(args, a, &o, err);
	if (r < 0)
		return r;
	if (create.detach)
		signal(SIGPIPE, SIG_IGN);
	r = lr_lifecycle_restore(&run.rt, &create, &o, &status, err);
	return r < 0 ? r : status;
}
