/* SPDX-License-Identifier: Apache-2.0 */
/* caps: the name table against libcap, masks, and what a process really has afterwards. */
#include "tests/unit/fork.h"
#include "tests/unit/test.h"

#include <errno.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/str.h"
#include "src/caps/caps.h"

#ifndef __GLIBC__
/* What Debian's libcap.a, which was compiled for glibc with fortification, wants beyond musl. */
int __asprintf_chk(char **ret, int flag, const char *fmt, ...);
int __asprintf_chk(char **ret, int flag, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int n = vasprintf(ret, fmt, ap);
	va_end(ap);
	return n;
}
#endif

static int warnings;
static char last_warning[512];

static void sink(enum lr_level level, const char *line, void *arg)
{
	warnings += level == LR_WARN;
	snprintf(last_warning, sizeof(last_warning), "%s", line);
}

TEST(table_is_the_one_of_libcap)
{
	int last = lr_caps_last();

	for (int i = 0; lr_caps_name(i); i++) {
		char *theirs = cap_to_name(i), upper[64];
		size_t j = 0;

		REQUIRE(theirs && strlen(theirs) < sizeof(upper));
		for (; theirs[j]; j++)
			upper[j] =
				theirs[j] >= 'a' && theirs[j] <= 'z' ? theirs[j] - 32 : theirs[j];
		upper[j] = '\0';
		CHECK_STR(lr_caps_name(i), upper);
		cap_free(theirs);
	}
	CHECK_INT(last, cap_max_bits() - 1);

	const char *v[64];
	size_t n = lr_caps_names(v, 64);
	CHECK(n >= 38 && n <= (size_t)last + 1);
	CHECK_STR(v[0], "CAP_CHOWN");
	CHECK(!lr_caps_name(-1) && !lr_caps_name(64));
}

TEST(people_spell_as_they_like)
{
	struct lr_err err = {0};

	CHECK_INT(lr_caps_parse("CAP_SYS_ADMIN", &err), CAP_SYS_ADMIN);
	CHECK_INT(lr_caps_parse("cap_sys_admin", &err), CAP_SYS_ADMIN);
	CHECK_INT(lr_caps_parse("net_raw", &err), CAP_NET_RAW);
	CHECK_INT(lr_caps_parse("BPF", &err), CAP_BPF);
	CHECK_INT(lr_caps_parse("", &err), -EINVAL);
	CHECK_INT(lr_caps_parse("CAP_", &err), -EINVAL);
	CHECK_INT(lr_caps_parse("CAP_CHOWNX", &err), -EINVAL);
	CHECK_HAS(err.msg, "CAP_CHOWNX");
}

TEST(plan_warns_and_ignores_the_unknown)
{
	const char *names[] = {"CAP_CHOWN", "CAP_NO_SUCH", "chown", "CAP_checkpoint_restore",
			       "CAP_CHECKPOINT_RESTORE"};
	struct oci_capabilities c = {.bounding = {names, 5}};
	struct lr_caps_plan p;
	struct lr_err err = {0};

	lr_log_set_sink(sink, NULL);
	warnings = 0;
	CHECK_INT(lr_caps_plan(&c, &p, &err), 0);
	CHECK_INT(p.bounding, LR_CAPS_BIT(0) | LR_CAPS_BIT(40));
	CHECK_INT(warnings, 3);
	CHECK_HAS(last_warning, "bounding[3]");
	CHECK_INT(lr_caps_plan(NULL, &p, &err), 0);
	CHECK(!p.bounding && !p.effective && !p.permitted && !p.inheritable && !p.ambient);
}

TEST(plan_refuses_what_no_kernel_grants)
{
	const char *three[] = {"CAP_CHOWN", "CAP_KILL", "CAP_BPF"}, *one[] = {"CAP_KILL"};
	struct oci_capabilities c = {
		.bounding = {one, 1}, .effective = {three, 3}, .permitted = {one, 1}};
	struct lr_caps_plan p;
	struct lr_err err = {0};

	CHECK_INT(lr_caps_plan(&c, &p, &err), -EPERM);
	CHECK_STR(err.path, "process.capabilities.effective");
	CHECK_HAS(err.msg, "CAP_CHOWN is not in the permitted set");
	c.permitted = c.effective; /* outside bounding: not after the next execve */
	CHECK_INT(lr_caps_plan(&c, &p, &err), 0);
	c.inheritable = c.permitted;
	CHECK_INT(lr_caps_plan(&c, &p, &err), -EPERM);
	CHECK_STR(err.path, "process.capabilities.inheritable");
	CHECK_HAS(err.msg, "CAP_CHOWN is not in the bounding set");
}

TEST(plan_leaves_out_ambient_ones_that_cannot_be)
{
	const char *three[] = {"CAP_CHOWN", "CAP_KILL", "CAP_BPF"}, *one[] = {"CAP_KILL"};
	struct oci_capabilities c = {
		.bounding = {three, 3}, .permitted = {one, 1}, .ambient = {three, 3}};
	struct lr_caps_plan p;
	struct lr_err err = {0};

	lr_log_set_sink(sink, NULL);
	warnings = 0;
	CHECK_INT(lr_caps_plan(&c, &p, &err), 0);
	CHECK_INT(p.ambient, 0);
	c.inheritable = c.permitted;
	CHECK_INT(lr_caps_plan(&c, &p, &err), 0);
	CHECK_INT(p.ambient, LR_CAPS_BIT(CAP_KILL));
	CHECK_INT(warnings, 0);
}

TEST(grant_makes_nothing_inheritable)
{
	struct lr_caps_plan p = {.inheritable = LR_CAPS_BIT(CAP_CHOWN)};

	lr_caps_grant(&p, CAP_CHOWN);
	CHECK_INT(p.ambient, LR_CAPS_BIT(CAP_CHOWN));
	lr_caps_grant(&p, CAP_SYSLOG);
	CHECK_INT(p.ambient, LR_CAPS_BIT(CAP_CHOWN));
	CHECK_INT(p.inheritable, LR_CAPS_BIT(CAP_CHOWN));
	CHECK_INT(p.bounding, LR_CAPS_BIT(CAP_CHOWN) | LR_CAPS_BIT(CAP_SYSLOG));
	CHECK_INT(p.bounding, p.permitted);
	CHECK_INT(p.bounding, p.effective);
}

static uint64_t own(cap_flag_t set)
{
	uint64_t mask = 0;
	cap_t c = cap_get_proc();

	for (int i = 0; i <= lr_caps_last(); i++) {
		cap_flag_value_t v = CAP_CLEAR;
		cap_get_flag(c, i, set, &v);
		mask |= v == CAP_SET ? LR_CAPS_BIT(i) : 0;
	}
	cap_free(c);
	return mask;
}

static int applies_as_another_user(void)
{
	struct lr_err err = {0};
	uint64_t want = LR_CAPS_BIT(CAP_CHOWN) | LR_CAPS_BIT(CAP_NET_BIND_SERVICE);
	struct lr_caps_plan p = {.bounding = want,
				 .effective = want,
				 .permitted = want,
				 .inheritable = LR_CAPS_BIT(CAP_NET_BIND_SERVICE),
				 .ambient = LR_CAPS_BIT(CAP_NET_BIND_SERVICE)};

	if (lr_caps_apply_bounding(&p, &err) || lr_caps_keep(&err) || setresgid(1, 1, 1) ||
	    setresuid(1, 1, 1) || lr_caps_apply_final(&p, &err))
		return 10;
	if (own(CAP_EFFECTIVE) != want || own(CAP_PERMITTED) != want)
		return 11;
	if (own(CAP_INHERITABLE) != p.inheritable)
		return 12;
	for (int i = 0; i <= lr_caps_last(); i++)
		if (cap_get_bound(i) != !!(want & LR_CAPS_BIT(i)) ||
		    cap_get_ambient(i) != (i == CAP_NET_BIND_SERVICE))
			return 13;
	return 0;
}

static int applies_nothing(void)
{
	struct lr_err err = {0};
	struct lr_caps_plan p = {0};

	if (lr_caps_apply_bounding(&p, &err) || lr_caps_apply_final(&p, &err))
		return 10;
	return own(CAP_PERMITTED) || own(CAP_EFFECTIVE) || cap_get_bound(0) ||
	       cap_get_bound(lr_caps_last());
}

static int gives_what_it_can(void)
{
	struct lr_err err = {0};
	uint64_t both = LR_CAPS_BIT(CAP_CHOWN) | LR_CAPS_BIT(CAP_KILL);
	struct lr_caps_plan p = {.bounding = both, .effective = both, .permitted = both};
	struct lr_caps_plan only = {.permitted = LR_CAPS_BIT(CAP_KILL),
				    .effective = LR_CAPS_BIT(CAP_KILL)};

	lr_log_set_sink(sink, NULL);
	warnings = 0;
	if (lr_caps_apply_final(&only, &err) || lr_caps_apply_final(&p, &err))
		return 10;
	if (own(CAP_PERMITTED) != LR_CAPS_BIT(CAP_KILL) || warnings != 1)
		return 11;
	/* The bounding set can no longer be changed, and says why. */
	if (lr_caps_apply_bounding(&p, &err) != -EPERM || !strstr(err.hint, "CAP_SETPCAP"))
		return 12;
	return 0;
}

static int clears_old_ambient(void)
{
	struct lr_err err = {0};
	struct lr_caps_plan p = {.bounding = ~UINT64_C(0),
				 .inheritable = LR_CAPS_BIT(CAP_KILL) | LR_CAPS_BIT(CAP_CHOWN),
				 .ambient = LR_CAPS_BIT(CAP_KILL)};

	p.permitted = p.effective = p.inheritable;
	if (lr_caps_apply_final(&p, &err))
		return 10;
	p.ambient = LR_CAPS_BIT(CAP_CHOWN);
	if (lr_caps_apply_final(&p, &err))
		return 11;
	return cap_get_ambient(CAP_KILL) || !cap_get_ambient(CAP_CHOWN);
}

TEST(a_process_gets_exactly_its_sets)
{
	if (geteuid() != 0)
		SKIP("needs root");
	CHECK_INT(in_child(applies_as_another_user), 0);
	CHECK_INT(in_child(applies_nothing), 0);
	CHECK_INT(in_child(gives_what_it_can), 0);
	CHECK_INT(in_child(clears_old_ambient), 0);
}
