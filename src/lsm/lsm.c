/* SPDX-License-Identifier: Apache-2.0 */
/* lsm: see lsm.h. */
#define LR_ROOM "lsm"
#include "src/lsm/lsm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/sys/procfs.h"

/* One page is what the kernel takes in a write to /proc/self/attr. */
#define NAME_MAX_LEN 4000

static int check_name(const char *name, const char *property, struct lr_err *err)
{
	if (strlen(name) > NAME_MAX_LEN || strpbrk(name, "\n\r")) {
		lr_refuse(err, EINVAL, "not a name the kernel could take");
		return lr_err_at(err, "process.%s", property);
	}
	return 0;
}

int lr_lsm_plan(const char *apparmor_profile, const char *selinux_label, struct lr_lsm_plan *ret,
		struct lr_err *err)
{
	struct lr_lsm_plan p = {0};
	int r = 0;

	if (apparmor_profile && *apparmor_profile) {
		p.apparmor = apparmor_profile;
		r = check_name(p.apparmor, "apparmorProfile", err);
	}
	if (r == 0 && selinux_label && *selinux_label) {
		p.selinux = selinux_label;
		r = check_name(p.selinux, "selinuxLabel", err);
	}
	if (r == 0)
		*ret = p;
	return r;
}

bool lr_lsm_apparmor_enabled(void)
{
	char text[8];

	return lr_read_file_at(AT_FDCWD, "/sys/module/apparmor/parameters/enabled", text,
			       sizeof(text)) > 0 &&
	       text[0] == 'Y';
}

bool lr_lsm_selinux_enabled(void)
{
	struct statfs st;

	/* Mounted only where SELinux is on; /selinux is where it was before 2011. */
	return (statfs("/sys/fs/selinux", &st) == 0 && st.f_type == SELINUX_MAGIC) ||
	       (statfs("/selinux", &st) == 0 && st.f_type == SELINUX_MAGIC);
}

static int check_selinux(const char *label, const char *where, struct lr_err *err)
{
	if (lr_lsm_selinux_enabled())
		return 0;
	lr_refuse(err, EINVAL,
		  "SELinux is not enabled on this host, label \"%s\" cannot be applied", label);
	lr_err_at(err, "%s", where);
	return lr_err_hint(err, "boot with selinux=1, or leave the label out");
}

int lr_lsm_check(struct lr_lsm_plan *plan, struct lr_err *err)
{
	if (plan->apparmor && !lr_lsm_apparmor_enabled()) {
		if (!lr_streq(plan->apparmor, "unconfined")) {
			lr_refuse(err, EINVAL,
				  "AppArmor is not enabled on this host, profile "
				  "\"%s\" cannot be applied",
				  plan->apparmor);
			lr_err_at(err, "process.apparmorProfile");
			return lr_err_hint(err, "boot with apparmor=1 security=apparmor, or leave "
						"the profile out");
		}
		plan->apparmor = NULL;
	}
	return plan->selinux ? check_selinux(plan->selinux, "process.selinuxLabel", err) : 0;
}

int lr_lsm_check_mount_label(const char *label, struct lr_err *err)
{
	return label && *label ? check_selinux(label, "linux.mountLabel", err) : 0;
}

/*
 * attr/apparmor/exec is AppArmor's alone (5.8); attr/exec is shared by all LSMs and belongs to the
 * first one, which is right where the directory doesn't exist.
 */
static int apply_apparmor(const char *profile, int procfd, struct lr_err *err)
{
	char text[sizeof("exec ") + NAME_MAX_LEN];
	int len = snprintf(text, sizeof(text), "exec %s", profile);
	int r = lr_procfs_write(procfd, "self/attr/apparmor/exec", text, (size_t)len);

	if (r == -ENOENT)
		r = lr_procfs_write(procfd, "self/attr/exec", text, (size_t)len);
	if (r == 0) {
		lr_debug("lsm: AppArmor profile %s at exec", profile);
		return 0;
	}
	lr_fail(err, -r, "cannot apply AppArmor profile \"%s\"", profile);
	lr_err_step(err, "attr/exec");
	lr_err_at(err, "process.apparmorProfile");
	return r == -ENOENT ? lr_err_hint(err, "is the profile loaded? see aa-status(8)") : r;
}

static int write_selinux(const char *path, const char *label, int procfd, struct lr_err *err)
{
	/* A zero-length write is no write at all: one NUL is how libselinux clears a label. */
	int r = lr_procfs_write(procfd, path, label, *label ? strlen(label) : 1);

	if (r == 0) {
		lr_debug("lsm: SELinux label \"%s\" for %s", label, path);
		return 0;
	}
	lr_fail(err, -r, "cannot apply SELinux label \"%s\"", label);
	lr_err_step(err, path);
	lr_err_at(err, "process.selinuxLabel");
	return lr_err_hint(err, "the policy must know the label and allow the runtime to use it; "
				"see ausearch -m avc");
}

int lr_lsm_apply(const struct lr_lsm_plan *plan, int procfd, struct lr_err *err)
{
	int r = 0;

	if (plan->apparmor)
		r = apply_apparmor(plan->apparmor, procfd, err);
	if (r == 0 && plan->selinux)
		r = write_selinux("self/attr/exec", plan->selinux, procfd, err);
	return r;
}

int lr_lsm_label_keys(const struct lr_lsm_plan *plan, int procfd, bool on, struct lr_err *err)
{
	if (!plan->selinux)
		return 0;
	return write_selinux("self/attr/keycreate", on ? plan->selinux : "", procfd, err);
}
