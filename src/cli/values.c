/* SPDX-License-Identifier: Apache-2.0 */
/* cli: reading parsed options, and what the globals amount to. */
#define LR_ROOM ""
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/cli/args.h"
#include "src/cli/number.h"

static const struct lr_cli_value *last(const struct lr_cli_args *args, enum lr_cli_opt_id id)
{
	for (size_t i = args->n_values; i-- > 0;)
		if (args->values[i].opt->id == id)
			return &args->values[i];
	return NULL;
}

const char *lr_cli_str(const struct lr_cli_args *args, enum lr_cli_opt_id id)
{
	const struct lr_cli_value *v = last(args, id);
	return v ? v->text : NULL;
}

bool lr_cli_flag(const struct lr_cli_args *args, enum lr_cli_opt_id id)
{
	const struct lr_cli_value *v = last(args, id);
	return v && v->opt->kind == LR_KIND_FLAG && lr_streq(v->text, "true");
}

int64_t lr_cli_num(const struct lr_cli_args *args, enum lr_cli_opt_id id, int64_t otherwise)
{
	const struct lr_cli_value *v = last(args, id);
	int64_t n = otherwise;
	int r;

	if (!v)
		return otherwise;
	if (v->opt->kind == LR_KIND_SIZE)
		r = lr_cli_parse_size(v->text, &n);
	else if (v->opt->kind == LR_KIND_DURATION)
		r = lr_cli_parse_duration(v->text, &n);
	else
		r = lr_parse_i64(v->text, &n);
	return r < 0 ? otherwise : n;
}

const char *lr_cli_next(const struct lr_cli_args *args, enum lr_cli_opt_id id, size_t *at)
{
	while (*at < args->n_values) {
		const struct lr_cli_value *v = &args->values[(*at)++];
		if (v->opt->id == id)
			return v->text;
	}
	return NULL;
}

size_t lr_cli_count(const struct lr_cli_args *args, enum lr_cli_opt_id id)
{
	size_t at = 0, n = 0;

	while (lr_cli_next(args, id, &at))
		n++;
	return n;
}

enum lr_cli_tri lr_cli_rootless(const struct lr_cli_args *args)
{
	/* `spec --rootless` shares the id, but is a flag and not this one. */
	for (size_t i = args->n_values; i-- > 0;) {
		const struct lr_cli_value *v = &args->values[i];
		if (v->opt->id != LR_OPT_ROOTLESS || v->opt->kind != LR_KIND_CHOICE)
			continue;
		if (lr_streq(v->text, "true"))
			return LR_CLI_TRUE;
		return lr_streq(v->text, "false") ? LR_CLI_FALSE : LR_CLI_AUTO;
	}
	return LR_CLI_AUTO;
}

const char *lr_cli_cgroup_manager(const struct lr_cli_args *args)
{
	const char *manager = NULL;

	for (size_t i = 0; i < args->n_values; i++) {
		const struct lr_cli_value *v = &args->values[i];
		if (v->opt->id == LR_OPT_CGROUP_MANAGER)
			manager = v->text;
		else if (v->opt->id == LR_OPT_SYSTEMD_CGROUP && lr_streq(v->text, "true"))
			manager = "systemd";
	}
	return manager;
}

const char *lr_cli_lean(const struct lr_cli_args *args)
{
	const char *given = lr_cli_str(args, LR_OPT_LEAN);

	if (given)
		return *given ? given : "lean";
	given = getenv("LEAN_RUNTIME_PROFILE");
	if (given && *given)
		return given;
	return args->argv[0] && lr_has_suffix(args->argv[0], "-lean") ? "lean" : NULL;
}

/* Root of a user namespace other than the first: uid 0, but /run belongs to somebody else. */
static bool in_user_namespace(void)
{
	char map[128], *end;

	if (lr_read_file_at(AT_FDCWD, "/proc/self/uid_map", map, sizeof(map)) < 0)
		return false;
	/* The first namespace has the one line "0 0 4294967295". */
	unsigned long inside = strtoul(map, &end, 10);
	unsigned long outside = strtoul(end, &end, 10);
	unsigned long count = strtoul(end, &end, 10);
	return inside != 0 || outside != 0 || count != 4294967295UL;
}

/* A program that is started once and never changes its ids knows this without a system call. */
uid_t lr_cli_euid(void)
{
	return (uid_t)getauxval(AT_EUID);
}

gid_t lr_cli_egid(void)
{
	return (gid_t)getauxval(AT_EGID);
}

static int default_root(char *buf, size_t size, struct lr_err *err)
{
	const char *xdg = getenv("XDG_RUNTIME_DIR");
	int n;

	if (xdg && xdg[0] != '/')
		xdg = NULL; /* empty or relative: the base directory specification says ignore */
	bool user = lr_cli_euid() != 0 || (xdg && in_user_namespace());
	if (user && xdg) {
		n = snprintf(buf, size, "%s/%s", xdg, LR_CLI_NAME);
	} else if (user) {
		snprintf(buf, size, "/run/user/%u", lr_cli_euid());
		if (access(buf, W_OK | X_OK) < 0) {
			lr_refuse(err, EACCES, "no directory to keep state in");
			return lr_err_hint(err, "set XDG_RUNTIME_DIR, or use --root");
		}
		n = snprintf(buf, size, "/run/user/%u/%s", lr_cli_euid(), LR_CLI_NAME);
	} else {
		n = snprintf(buf, size, "/run/%s", LR_CLI_NAME);
	}
	if (n < 0 || (size_t)n >= size)
		return lr_fail(err, ENAMETOOLONG, "XDG_RUNTIME_DIR");
	return 0;
}

int lr_cli_root(const struct lr_cli_args *args, char *buf, size_t size, struct lr_err *err)
{
	const char *root = lr_cli_str(args, LR_OPT_ROOT);
	int n;

	if (!root)
		return default_root(buf, size, err);
	if (!root[0])
		return lr_refuse(err, EINVAL, "--root is empty");
	if (root[0] == '/') {
		n = snprintf(buf, size, "%s", root);
	} else {
		if (!getcwd(buf, size))
			return lr_fail(err, errno, "working directory");
		size_t len = strlen(buf);
		n = snprintf(buf + len, size - len, "%s%s", len > 1 ? "/" : "", root);
		size -= len;
	}
	if (n < 0 || (size_t)n >= size)
		return lr_fail(err, ENAMETOOLONG, "--root %s", root);
	return 0;
}
