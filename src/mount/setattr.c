/* SPDX-License-Identifier: Apache-2.0 */
/* mount: attributes and propagation of mounts, by mount_setattr(2) or by remounting. */
#define LR_ROOM "mount"
#include "src/mount/internal.h"

#include <errno.h>

#include "src/base/log.h"

static int by_setattr(const struct lr_mount_plan *plan, int fd, const struct lr_mount_change *c)
{
	struct mount_attr attr = {.attr_set = c->set, .attr_clr = c->clear, .propagation = c->prop};

	if (lr_mount_no_new_api)
		return -ENOSYS;
	return lr_mount_setattr(fd, "", AT_EMPTY_PATH | (c->rec ? AT_RECURSIVE : 0), &attr);
}

static int by_remount(const struct lr_mount_env *env, int fd, const struct lr_mount_change *c)
{
	int r = 0;

	if ((c->set | c->clear) && c->rec) {
		r = lr_mount_legacy_recursive(env, fd, c);
	} else if (c->set | c->clear) {
		uint64_t attr;
		r = lr_mount_attr_of(fd, &attr);
		if (r == 0) {
			attr = (attr & ~c->clear) | c->set;
			r = lr_mount_legacy(env, fd, NULL, NULL,
					    MS_REMOUNT | MS_BIND | lr_mount_ms_flags(attr), NULL);
		}
	}
	if (r == 0 && c->prop)
		r = lr_mount_legacy(env, fd, NULL, NULL, c->prop | (c->rec ? MS_REC : 0), NULL);
	return r;
}

/*
 * "rw" of a source that is read-only and locked by a user namespace: Podman writes "rw" into every
 * mount that does not say "ro", so it is no demand. Clearing nosuid, nodev or noexec is one.
 */
static bool only_rw_is_locked(int fd, const struct lr_mount_change *c)
{
	uint64_t attr;

	return (c->clear & MOUNT_ATTR_RDONLY) && !c->rec && lr_mount_attr_of(fd, &attr) == 0 &&
	       (attr & MOUNT_ATTR_RDONLY);
}

int lr_mount_change_apply(const struct lr_mount_plan *plan, int fd, const struct lr_mount_change *c,
			  const struct lr_mount_env *env, struct lr_err *err)
{
	int r = by_setattr(plan, fd, c);

	if (lr_not_offered(r) && !env)
		return -ENOSYS;
	if (lr_not_offered(r)) {
		int second = by_remount(env, fd, c);
		if (r == -ENOSYS || second == 0)
			r = second;
	}
	if (r == -EPERM && c->unnamed) {
		struct lr_mount_change less = *c;
		less.clear &= ~c->unnamed;
		less.unnamed = 0;
		return less.set | less.clear | less.prop
			       ? lr_mount_change_apply(plan, fd, &less, env, err)
			       : 0;
	}
	if (r == -EPERM && !plan->opts.no_fallback && only_rw_is_locked(fd, c)) {
		struct lr_mount_change less = *c;
		less.clear &= ~(uint64_t)MOUNT_ATTR_RDONLY;
		lr_warn("a bind source is read-only and locked by the user namespace: it stays "
			"read-only though \"rw\" is asked");
		if (!(less.set | less.clear | less.prop))
			return 0;
		return lr_mount_change_apply(plan, fd, &less, env, err);
	}
	if (r == -EPERM) {
		lr_fail(err, EPERM, "change mount attributes");
		lr_err_hint(err, "flags of a mount that a more privileged user namespace made "
				 "(nosuid, nodev, noexec, ro, atime) cannot be cleared");
		return r;
	}
	if (r == -EINVAL && c->prop == 0)
		lr_fail(err, EINVAL,
			"change mount attributes: not a mount point, or not supported");
	else if (r < 0)
		lr_fail(err, -r, "change mount %s", c->prop ? "propagation" : "attributes");
	return r;
}

int lr_mount_changes_apply(const struct lr_mount_plan *plan, int fd,
			   const struct lr_mount_change *v, size_t n, enum lr_mount_when when,
			   const struct lr_mount_env *env, struct lr_err *err)
{
	for (size_t i = 0; i < n; i++) {
		if (when != LR_MOUNT_BOTH && v[i].attached != (when == LR_MOUNT_ATTACHED))
			continue;
		int r = lr_mount_change_apply(plan, fd, &v[i], env, err);
		if (r < 0)
			return r;
	}
	return 0;
}
