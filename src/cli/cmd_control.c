/* SPDX-License-Identifier: Apache-2.0 */
/* cli: kill, delete, pause, resume. */
#define LR_ROOM ""
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "src/base/str.h"
#include "src/cli/commands.h"
#include "src/cli/runtime.h"
#include "src/cli/signal_name.h"

int lr_cli_signal(const char *text)
{
	static const struct {
		const char *name;
		int base, step;
	} realtime[] = {{"RTMIN+", 34, 1}, {"RTMAX-", 64, -1}}; /* the libc takes 32 and 33 */
	uint32_t n;

	if (lr_parse_u32(text, &n) == 0)
		return n < NSIG ? (int)n : -EINVAL;
	if (strncasecmp(text, "SIG", 3) == 0)
		text += 3;
	for (int sig = 1; sig < 32; sig++) {
		const char *name = lr_signal_name(sig);
		if (name && strcasecmp(name, text) == 0)
			return sig;
	}
	if (strcasecmp(text, "IOT") == 0)
		return SIGABRT;
	if (strcasecmp(text, "CLD") == 0)
		return SIGCHLD;
	if (strcasecmp(text, "IO") == 0)
		return SIGPOLL;
	for (size_t i = 0; i < LR_ARRAY_SIZE(realtime); i++) {
		size_t len = strlen(realtime[i].name);
		if (strncasecmp(text, realtime[i].name, len - 1) != 0)
			continue;
		if (!text[len - 1])
			return realtime[i].base;
		if (text[len - 1] == realtime[i].name[len - 1] &&
		    lr_parse_u32(text + len, &n) == 0 && n <= 30)
			return realtime[i].base + realtime[i].step * (int)n;
	}
	return -EINVAL;
}

struct kill_how {
	int sig;
	bool all;
};

static int kill_one(const struct lr_runtime *rt, const char *id, void *arg, struct lr_err *err)
{
	const struct kill_how *how = arg;
	return lr_lifecycle_kill(rt, id, how->sig, how->all, err);
}

int lr_cmd_kill(const struct lr_cli_args *args, struct lr_err *err)
{
	const char *name = args->n_operands > 1 ? args->operands[1] : "TERM";
	struct kill_how how = {.sig = lr_cli_signal(name), .all = lr_cli_flag(args, LR_OPT_ALL)};

	if (how.sig < 0)
		return lr_err_hint((lr_refuse(err, EINVAL, "unknown signal \"%s\"", name), err),
				   "a number up to 64, or a name such as TERM, SIGTERM, RTMIN+3");
	return lr_cli_each(args, kill_one, &how, err);
}

static int delete_one(const struct lr_runtime *rt, const char *id, void *arg, struct lr_err *err)
{
	return lr_lifecycle_delete(rt, id, *(bool *)arg, err);
}

int lr_cmd_delete(const struct lr_cli_args *args, struct lr_err *err)
{
	bool force = lr_cli_flag(args, LR_OPT_FORCE);

	return lr_cli_each(args, delete_one, &force, err);
}

static int pause_one(const struct lr_runtime *rt, const char *id, void *arg, struct lr_err *err)
{
	return lr_lifecycle_pause(rt, id, err);
}

int lr_cmd_pause(const struct lr_cli_args *args, struct lr_err *err)
{
	return lr_cli_each(args, pause_one, NULL, err);
}

static int resume_one(const struct lr_runtime *rt, const char *id, void *arg, struct lr_err *err)
{
	return lr_lifecycle_resume(rt, id, err);
}

int lr_cmd_resume(const struct lr_cli_args *args, struct lr_err *err)
{
	return lr_cli_each(args, resume_one, NULL, err);
}
