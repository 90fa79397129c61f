/* SPDX-License-Identifier: Apache-2.0 */
/* cli: parsed options as the rooms below take them. */
#define LR_ROOM ""
#include "src/cli/runtime.h"

#include <errno.h>
#include <regex.h>
#include <unistd.h>

#include "libocispec/ocispec.h"
#include "src/base/fd.h"
#include "src/base/str.h"

int lr_cli_runtime(const struct lr_cli_args *args, struct lr_cli_runtime *ret, struct lr_err *err)
{
	static const int rootless[] = {[LR_CLI_AUTO] = -1, [LR_CLI_TRUE] = 1, [LR_CLI_FALSE] = 0};
	const char *manager = lr_cli_cgroup_manager(args);

	ret->rt = (struct lr_runtime){
		.root = ret->root,
		.manager = LR_CGROUP_CGROUPFS,
		.rootless = rootless[lr_cli_rootless(args)],
		.lean = lr_cli_lean(args),
		.seed_dir = lr_cli_str(args, LR_OPT_SEED_DIR),
		.seed_forkd = lr_cli_str(args, LR_OPT_SEED_FORKD),
		.euid = lr_cli_euid(),
		.egid = lr_cli_egid(),
	};
	if (manager && lr_streq(manager, "systemd"))
		ret->rt.manager = LR_CGROUP_SYSTEMD;
	else if (manager && lr_streq(manager, "disabled"))
		ret->rt.manager = LR_CGROUP_DISABLED;
	return lr_cli_root(args, ret->root, sizeof(ret->root), err);
}

int lr_cli_list(const struct lr_cli_args *args, enum lr_cli_opt_id id, struct lr_arena *a,
		const char ***ret, size_t *n, struct lr_err *err)
{
	size_t count = lr_cli_count(args, id), at = 0;

	*ret = NULL;
	if (n)
		*n = count;
	if (count == 0)
		return 0;
	const char **v = lr_new_n(a, count + 1, const char *);
	if (!v)
		return lr_fail(err, ENOMEM, "command line");
	for (size_t i = 0; i < count; i++)
		v[i] = lr_cli_next(args, id, &at);
	*ret = v;
	return 0;
}

int lr_cli_preserve_fds(const struct lr_cli_args *args, int *ret, struct lr_err *err)
{
	int64_t n = lr_cli_num(args, LR_OPT_PRESERVE_FDS, 0);

	if (n < 0 || n > INT_MAX - 3)
		return lr_refuse(err, EINVAL, "--preserve-fds=%lld: not a number of descriptors",
				 (long long)n);
	*ret = (int)n;
	return 0;
}

static int each_match(const struct lr_runtime *rt, const char *pattern, lr_cli_each_fn *fn,
		      void *arg, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
	struct lr_container *list;
	regex_t re;
	size_t n;

	if (!arena)
		return lr_fail(err, ENOMEM, "list of containers");
	int r = regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB);
	if (r != 0) {
		char why[128];
		regerror(r, &re, why, sizeof(why));
		return lr_refuse(err, EINVAL, "regular expression \"%s\": %s", pattern, why);
	}
	r = lr_lifecycle_list(rt, arena, &list, &n, err);
	if (r == -ENOENT) { /* no root, nothing that matches */
		lr_err_clear(err);
		n = 0;
		r = 0;
	}
	for (size_t i = 0; r >= 0 && i < n; i++) {
		struct lr_err later = {0};
		if (regexec(&re, list[i].oci.id, 0, NULL, 0) != 0)
			continue;
		int done = fn(rt, list[i].oci.id, arg, err->code ? &later : err);
		if (done < 0 && !later.code)
			err->code = -done;
	}
	regfree(&re);
	return r < 0 ? r : -err->code;
}

int lr_cli_each(const struct lr_cli_args *args, lr_cli_each_fn *fn, void *arg, struct lr_err *err)
{
	struct lr_cli_runtime run;

	int r = lr_cli_runtime(args, &run, err);
	if (r < 0)
		return r;
	if (lr_cli_flag(args, LR_OPT_REGEX))
		return each_match(&run.rt, lr_cli_id(args), fn, arg, err);
	return fn(&run.rt, lr_cli_id(args), arg, err);
}
