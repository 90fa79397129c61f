/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle: a bundle's config.json, read and checked. */
#define LR_ROOM "config"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libocispec/ocispec.h"
#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/hook/hook.h"
#include "src/lifecycle/compile.h"
#include "src/sys/syscalls.h"

int lr_compile_bundle(const struct lr_create_opts *o, struct lr_arena *a, const char **ret,
		      struct lr_err *err)
{
	char real[PATH_MAX];

	/* Without a slash at the end: libc asks faccessat2 about it, which sandboxes refuse. */
	char *dir = lr_strdup(a, o->bundle ? o->bundle : ".");
	for (size_t n = dir ? strlen(dir) : 0; n > 1 && dir[n - 1] == '/'; n--)
		dir[n - 1] = '\0';
	if (!dir || !realpath(dir, real)) {
		lr_fail(err, errno, "bundle %s", o->bundle ? o->bundle : ".");
		return lr_err_hint(err, "--bundle names a directory with a config.json");
	}
	*ret = lr_strdup(a, real);
	return *ret ? 0 : lr_fail(err, ENOMEM, "read the bundle");
}

/* No component is empty, "." or "..". */
static bool is_straight(const char *path)
{
	if (path[0] != '/')
		return false;
	for (const char *p = path; *p; p += strcspn(p, "/")) {
		size_t n = strcspn(++p, "/");
		if (n == 0 || (n <= 2 && memcmp(p, "..", n) == 0))
			return false;
	}
	return true;
}

/*
 * The usual bundle has no symbolic link on the way to its config.json, which one open that follows
 * none tells. Then its path is already what realpath(3) would find by a call for each directory.
 * After any failure the slow way is taken, which knows what to say.
 */
static int open_straight(const struct lr_create_opts *o, struct lr_arena *a)
{
	const struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
		.resolve = RESOLVE_NO_SYMLINKS,
	};

	if (!o->bundle || !is_straight(o->bundle) || o->config)
		return -ELOOP;
	const char *path = lr_concat(a, o->bundle, "/config.json", NULL);
	return path ? lr_openat2(AT_FDCWD, path, &how) : -ENOMEM;
}

static int do_without_process(const struct oci_config **config, struct lr_arena *a,
			      struct lr_err *err)
{
	struct oci_config *own = lr_new(a, struct oci_config);

	if (!own)
		return lr_fail(err, ENOMEM, "read the bundle");
	*own = **config;
	own->process = &lr_no_process;
	*config = own;
	return 0;
}

int lr_compile_read(const struct lr_create_opts *o, struct lr_arena *a, const char **bundle,
		    const struct oci_config **config, struct lr_err *err)
{
	LR_CLEANUP_FD int straight = open_straight(o, a);
	char *text;
	size_t len;
	int r = 0;

	if (straight < 0)
		r = lr_compile_bundle(o, a, bundle, err);
	else if (!(*bundle = lr_strdup(a, o->bundle)))
		r = lr_fail(err, ENOMEM, "read the bundle");
	if (r < 0)
		return r;
	const char *path =
		o->config && o->config[0] == '/'
			? o->config
			: lr_strf(a, "%s/%s", *bundle, o->config ? o->config : "config.json");
	if (!path)
		return lr_fail(err, ENOMEM, "read the bundle");
	r = straight >= 0 ? oci_read_fd(straight, path, a, &text, &len, err)
			  : oci_read_file(AT_FDCWD, path, a, &text, &len, err);
	if (r == -ENOENT)
		lr_err_hint(err, "a bundle is a directory with a config.json; `lean-runtime spec` "
				 "makes one");
	if (r >= 0)
		r = oci_config_decode(text, len, a, config, err);
	if (r >= 0 && o->two_phase && !(*config)->process)
		r = do_without_process(config, a, err);
	return r < 0 ? r : lr_compile_check(*config, err);
}

int lr_compile_no_process(struct lr_err *err)
{
	lr_refuse(err, EINVAL, "the process is missing");
	lr_err_hint(err, "config.json has no program to start: add one, with args and cwd");
	return lr_err_at(err, "process");
}

int lr_compile_check(const struct oci_config *c, struct lr_err *err)
{
	if (!c->root || !c->root->path) {
		lr_refuse(err, EINVAL, "the root file system is missing");
		return lr_err_at(err, "root.path");
	}
	if (!c->process)
		return lr_compile_no_process(err);
	return lr_hook_check(c->hooks, err);
}
