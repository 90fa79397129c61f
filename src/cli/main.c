/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli: main. Parse, hide our own file, open the log, dispatch, report. The order matters to
 * callers: the log is open before anything can fail that they would want to read about.
 */
#define LR_ROOM ""
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/cli/args.h"
#include "src/cli/help.h"
#include "src/cli/log_sink.h"
#include "src/cli/runtime.h"

/*
 * A caller may have closed 0, 1 or 2; the next descriptor opened would take that number and be
 * handed to the container as its standard input or output. One poll tells of all three.
 */
static int guard_stdio(struct lr_err *err)
{
	struct pollfd fds[3] = {{.fd = 0}, {.fd = 1}, {.fd = 2}};
	bool closed = false;

	(void)poll(fds, 3, 0);
	for (int i = 0; i < 3; i++)
		closed |= (fds[i].revents & POLLNVAL) != 0;
	while (closed) {
		int fd = lr_open("/dev/null", O_RDWR);
		if (fd < 0)
			return lr_fail(err, errno, "/dev/null");
		if (fd > 2) {
			close(fd);
			break;
		}
	}
	return 0;
}

static int hide(const struct lr_cli_args *args, struct lr_err *err)
{
	uint8_t when = args->verb ? args->verb->hidden : LR_HIDDEN_NO;

	if (when == LR_HIDDEN_NO || lr_cli_flag(args, LR_OPT_HELP))
		return 0;
	return lr_cli_hide(when == LR_HIDDEN_LATER ? LR_HIDE_RUN : LR_HIDE_ENTER, args->argv, err);
}

static int dispatch(const struct lr_cli_args *args, struct lr_err *err)
{
	LR_CLEANUP_BUF struct lr_cli_buf out = {0};

	if (lr_cli_flag(args, LR_OPT_VERSION)) {
		lr_cli_version(&out);
		return lr_cli_flush(&out, err);
	}
	if (!args->verb || lr_cli_flag(args, LR_OPT_HELP)) {
		lr_cli_help(args->verb, &out);
		return lr_cli_flush(&out, err);
	}
	int r = lr_cli_check_operands(args, err);
	return r < 0 ? r : args->verb->run(args, err);
}

static int exit_status(int r, const struct lr_cli_args *args, const struct lr_err *err)
{
	if (r >= 0)
		return r;
	if (err->exit_code)
		return err->exit_code;
	return args->verb ? args->verb->fail : 1;
}

/*
 * Who reads our messages may be gone. For what only prints that is the end, as for any program;
 * what changes something is not to be torn off in the middle. `run` sees to that itself.
 */
static void ignore_broken_pipes(const struct lr_cli_verb *verb)
{
	static const uint32_t others = LR_ON(STATE) | LR_ON(LIST) | LR_ON(PS) | LR_ON(EVENTS) |
				       LR_ON(SPEC) | LR_ON(FEATURES) | LR_ON(HELP) | LR_ON(RUN);

	if (verb && !(others & UINT32_C(1) << verb->id))
		signal(SIGPIPE, SIG_IGN);
}

int main(int argc, char **argv)
{
	struct lr_cli_args args = {0};
	struct lr_err err = {0};

	int r = guard_stdio(&err);
	if (r == 0)
		r = lr_cli_parse(argc, argv, &args, &err);
	if (r == 0)
		r = hide(&args, &err);
	ignore_broken_pipes(args.verb);

	int opened = lr_cli_log_open(&args, r < 0 ? NULL : &err);
	if (r == 0)
		r = opened;
	if (r == 0)
		r = dispatch(&args, &err);
	if (r < 0) {
		signal(SIGPIPE, SIG_IGN); /* the exit status is to be told in any case */
		lr_cli_report(&err);
	}
	int status = exit_status(r, &args, &err);
	lr_cli_args_free(&args);
	return status;
}
