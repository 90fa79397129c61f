/* SPDX-License-Identifier: Apache-2.0 */
/* lsm: what is asked for must be there; writes fail loudly, never silently. */
#include "tests/unit/test.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/lsm/lsm.h"
#include "src/sys/procfs.h"

TEST(absent_means_nothing_to_do)
{
	struct lr_lsm_plan p = {"x", "y"};
	struct lr_err err = {0};

	CHECK_INT(lr_lsm_plan(NULL, "", &p, &err), 0);
	CHECK(!p.apparmor && !p.selinux);
	CHECK_INT(lr_lsm_check(&p, &err), 0);
	CHECK_INT(lr_lsm_apply(&p, LR_NOFD, &err), 0);
	CHECK_INT(lr_lsm_label_keys(&p, LR_NOFD, true, &err), 0);
}

TEST(names_must_fit_one_write)
{
	char big[5000];
	struct lr_lsm_plan p;
	struct lr_err err = {0};

	memset(big, 'a', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	CHECK_INT(lr_lsm_plan(big, NULL, &p, &err), -EINVAL);
	CHECK_STR(err.path, "process.apparmorProfile");
	CHECK_INT(lr_lsm_plan("docker-default", "a\nb", &p, &err), -EINVAL);
	CHECK_STR(err.path, "process.selinuxLabel");
	CHECK_INT(lr_lsm_plan("docker-default", "a:b:c:s0", &p, &err), 0);
	CHECK_STR(p.apparmor, "docker-default");
	CHECK_STR(p.selinux, "a:b:c:s0");
}

TEST(apparmor_asked_for_and_absent)
{
	struct lr_lsm_plan p = {.apparmor = "docker-default"};
	struct lr_err err = {0};

	if (lr_lsm_apparmor_enabled())
		SKIP("AppArmor is enabled here");
	CHECK_INT(lr_lsm_check(&p, &err), -EINVAL);
	CHECK_HAS(err.msg, "AppArmor is not enabled");
	CHECK_STR(err.path, "process.apparmorProfile");
	p.apparmor = "unconfined";
	CHECK_INT(lr_lsm_check(&p, &err), 0);
	CHECK(!p.apparmor);
}

TEST(selinux_asked_for_and_absent)
{
	struct lr_lsm_plan p = {.selinux = "system_u:system_r:container_t:s0"};
	struct lr_err err = {0};

	if (lr_lsm_selinux_enabled())
		SKIP("SELinux is enabled here");
	CHECK_INT(lr_lsm_check(&p, &err), -EINVAL);
	CHECK_HAS(err.msg, "SELinux is not enabled");
}

TEST(a_refused_write_is_an_error)
{
	struct lr_err err = {0};
	struct lr_lsm_plan p = {.apparmor = "no-such-profile"};
	LR_CLEANUP_FD int proc = lr_procfs_open(&err);

	REQUIRE(proc >= 0);
	CHECK(lr_lsm_apply(&p, proc, &err) < 0);
	CHECK_HAS(err.msg, "no-such-profile");
	p = (struct lr_lsm_plan){.selinux = "no-such-label"};
	if (lr_lsm_selinux_enabled())
		SKIP("SELinux is enabled here");
	CHECK(lr_lsm_apply(&p, proc, &err) < 0);
	CHECK(lr_lsm_label_keys(&p, proc, true, &err) < 0);
	CHECK_HAS(err.msg, "no-such-label");
}
