/* SPDX-License-Identifier: Apache-2.0 */
/*
 * liblean: the public face (include/lean/lean.h) of template.h. Nothing happens here but checks of
 * what came from outside, and translation.
 */
#define LR_ROOM "liblean"
#include <lean/lean.h>

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/liblean/template.h"
#include "src/sys/selfexe.h"

#define API          __attribute__((visibility("default")))

#define DEFAULT_ROOT "/run/lean-runtime"

/* Public handles are ours by another name. */
static struct lr_template *template_of(struct lean_template *t)
{
	return (struct lr_template *)t;
}

static struct lr_instance *instance_of(const void *handle)
{
	return (struct lr_instance *)(size_t)handle;
}

static int tell(int r, const struct lr_err *err, struct lean_error *error)
{
	if (r >= 0)
		return 0;
	if (error) {
		error->code = -r;
		memcpy(error->path, err->path, sizeof(error->path));
		lr_err_format(err, error->message, sizeof(error->message));
	}
	return r;
}

/*
 * The caller's structure, which may be older and shorter, or newer and longer: then what we do not
 * know must be zero.
 */
static int take(void *ours, size_t size, const void *theirs, size_t min, struct lr_err *err)
{
	size_t given;

	if (!theirs)
		return lr_refuse(err, EINVAL, "no options are given");
	memcpy(&given, theirs, sizeof(given));
	if (given < min)
		return lr_refuse(err, EINVAL, "the size of the options is not set");
	memcpy(ours, theirs, given < size ? given : size);
	for (size_t i = size; i < given; i++)
		if (((const char *)theirs)[i])
			return lr_refuse(err, EINVAL,
					 "the options need a later version of the library");
	return 0;
}

API const char *lean_version(void)
{
	return LR_VERSION;
}

API int lean_protect(char **argv, struct lean_error *error)
{
	struct lr_err err = {0};

	if (lr_selfexe_mounted(argv, environ)) {
		/* Now, as no thread waits for it yet. */
		lr_selfexe_let_go();
		return 0;
	}
	lr_refuse(&err, EPERM, "the program cannot be executed from a view of its file");
	lr_err_hint(&err, "it takes CAP_SYS_ADMIN and Linux 5.12");
	return tell(-EPERM, &err, error);
}

/* ---- templates ------------------------------------------------------------------------------ */

/* The child replaces 0, 1 and 2 by the container's, so none of ours may have these numbers. */
static int check_standard(struct lr_err *err)
{
	struct pollfd p[3] = {{.fd = 0}, {.fd = 1}, {.fd = 2}};

	(void)poll(p, 3, 0);
	for (int i = 0; i < 3; i++)
		if (p[i].revents & POLLNVAL) {
			lr_refuse(err, EBADF, "descriptor %d of this program is closed", i);
			return lr_err_hint(err, "open /dev/null as 0, 1 and 2 in daemons");
		}
	return 0;
}

static int open_template(const struct lean_options *o, struct lean_template **ret,
			 struct lr_err *err)
{
	static const enum lr_cgroup_manager managers[] = {
		[LEAN_CGROUPS_FS] = LR_CGROUP_CGROUPFS,
		[LEAN_CGROUPS_SYSTEMD] = LR_CGROUP_SYSTEMD,
		[LEAN_CGROUPS_NONE] = LR_CGROUP_DISABLED,
	};
	struct lr_template *t;

	if (!o->bundle && !(o->config && o->rootfs)) {
		lr_refuse(err, EINVAL, "nothing to open");
		return lr_err_hint(err, "give a bundle, or config and rootfs");
	}
	if ((unsigned)o->cgroups > LEAN_CGROUPS_NONE)
		return lr_refuse(err, EINVAL, "cgroups: %d is no way to make them", o->cgroups);
	if (o->root && o->root[0] != '/')
		return lr_refuse(err, EINVAL, "root: \"%s\" is not absolute", o->root);
	const struct lr_template_opts opts = {
		.rt = {.root = o->root ? o->root : DEFAULT_ROOT,
		       .manager = managers[o->cgroups],
		       .rootless = -1,
		       .lean = o->profile},
		.bundle = o->bundle,
		.config = o->config,
		.config_len = o->config ? strlen(o->config) : 0,
		.rootfs = o->rootfs,
	};
	int r = lr_template_open(&opts, &t, err);
	if (r >= 0)
		*ret = (struct lean_template *)t;
	return r;
}

API int lean_open(const struct lean_options *options, struct lean_template **ret,
		  struct lean_error *error)
{
	struct lean_options o = {0};
	struct lr_err err = {0};

	int r = take(&o, sizeof(o), options, sizeof(o), &err);
	if (r >= 0)
		r = check_standard(&err);
	if (r >= 0)
		r = open_template(&o, ret, &err);
	return tell(r, &err, error);
}

API void lean_close(struct lean_template *t)
{
	lr_template_close(template_of(t));
}

API int lean_warm(struct lean_template *t, unsigned n, struct lean_error *error)
{
	struct lr_err err = {0};

	return tell(lr_template_warm(template_of(t), n, &err), &err, error);
}

/* ---- containers ----------------------------------------------------------------------------- */

/* If one is closed, the library's next descriptor gets its number, and the container that one. */
static int check_fds(const int fds[3], struct lr_err *err)
{
	struct pollfd p[3] = {{.fd = fds[0]}, {.fd = fds[1]}, {.fd = fds[2]}};

	int r = check_standard(err);
	if (r < 0)
		return r;
	(void)poll(p, 3, 0);
	for (int i = 0; i < 3; i++)
		if (fds[i] < LEAN_FD_NULL || p[i].revents & POLLNVAL)
			return lr_refuse(err, EBADF, "fds[%d]: %d is no descriptor", i, fds[i]);
	return 0;
}

API int lean_start(struct lean_template *t, const struct lean_start_options *options,
		   struct lean_container **ret, struct lean_error *error)
{
	struct lean_start_options o = {.fds = {0, 1, 2}};
	struct lr_instance *i;
	struct lr_err err = {0};

	int r = options ? take(&o, sizeof(o), options, sizeof(o), &err) : 0;
	if (r >= 0)
		r = check_fds(o.fds, &err);
	const struct lr_template_start start = {
		.id = o.id,
		.args = o.args,
		.env = o.env,
		.stdio = {o.fds[0], o.fds[1], o.fds[2]},
	};
	if (r >= 0)
		r = lr_template_start(template_of(t), &start, &i, &err);
	if (r >= 0)
		*ret = (struct lean_container *)i;
	return tell(r, &err, error);
}

API const char *lean_id(const struct lean_container *c)
{
	return lr_instance_id(instance_of(c));
}

API pid_t lean_pid(const struct lean_container *c)
{
	return lr_instance_pid(instance_of(c));
}

API int lean_pidfd(const struct lean_container *c)
{
	return lr_instance_pidfd(instance_of(c));
}

API int lean_wait(struct lean_container *c, int timeout_ms, int *status, struct lean_error *error)
{
	struct lr_err err = {0};

	return tell(lr_instance_wait(instance_of(c), timeout_ms, status, &err), &err, error);
}

API int lean_signal(struct lean_container *c, int signal, struct lean_error *error)
{
	struct lr_err err = {0};

	return tell(lr_instance_signal(instance_of(c), signal, &err), &err, error);
}

API int lean_pause(struct lean_container *c, struct lean_error *error)
{
	struct lr_err err = {0};

	return tell(lr_instance_pause(instance_of(c), &err), &err, error);
}

API int lean_resume(struct lean_container *c, struct lean_error *error)
{
	struct lr_err err = {0};

	return tell(lr_instance_resume(instance_of(c), &err), &err, error);
}

API int lean_delete(struct lean_container *c, unsigned flags, struct lean_error *error)
{
	struct lr_err err = {0};

	int r = flags & ~LEAN_FORCE ? lr_refuse(&err, EINVAL, "flags %#x are not known", flags) : 0;
	if (r >= 0)
		r = lr_instance_delete(instance_of(c), flags & LEAN_FORCE, &err);
	return tell(r, &err, error);
}

API void lean_forget(struct lean_container *c)
{
	lr_instance_free(instance_of(c));
}

/* ---- more processes in a container ----------------------------------------------------------- */

API int lean_exec(struct lean_container *c, const struct lean_exec_options *options,
		  struct lean_process **ret, struct lean_error *error)
{
	struct lean_exec_options o = {0};
	struct lr_instance *p;
	struct lr_err err = {0};

	int r = take(&o, sizeof(o), options, sizeof(o), &err);
	if (r >= 0)
		r = check_fds(o.fds, &err);
	const struct lr_exec_opts exec = {
		.args = o.args,
		.env = o.env,
		.cwd = o.cwd,
		.user = o.user,
	};
	if (r >= 0)
		r = lr_instance_exec(instance_of(c), &exec, o.fds, &p, &err);
	if (r >= 0)
		*ret = (struct lean_process *)p;
	return tell(r, &err, error);
}

API pid_t lean_process_pid(const struct lean_process *p)
{
	return lr_instance_pid(instance_of(p));
}

API int lean_process_pidfd(const struct lean_process *p)
{
	return lr_instance_pidfd(instance_of(p));
}

API int lean_process_wait(struct lean_process *p, int timeout_ms, int *status,
			  struct lean_error *error)
{
	struct lr_err err = {0};

	return tell(lr_instance_wait(instance_of(p), timeout_ms, status, &err), &err, error);
}

API int lean_process_signal(struct lean_process *p, int signal, struct lean_error *error)
{
	struct lr_err err = {0};

	return tell(lr_instance_signal(instance_of(p), signal, &err), &err, error);
}

API void lean_process_free(struct lean_process *p)
{
	lr_instance_free(instance_of(p));
}
