/* SPDX-License-Identifier: Apache-2.0 */
/* caps: see caps.h. */
#define LR_ROOM "caps"
#include "src/caps/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/str.h"

/* config.json holds exact names: a lower-case or prefix-less one is a typing error of its
 * author. */
static uint64_t mask_of(const struct oci_strv *set, const char *which)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < set->n; i++) {
		int cap = lr_has_prefix(set->v[i], "CAP_") ? lr_caps_parse(set->v[i], NULL) : -1;

		if (cap < 0 || !lr_streq(lr_caps_name(cap), set->v[i]))
			lr_warn("process.capabilities.%s[%zu]: unknown capability \"%s\" ignored",
				which, i, set->v[i]);
		else
			mask |= LR_CAPS_BIT(cap);
	}
	return mask;
}

/* One line, however many they are. */
static void warn_of(uint64_t mask, const char *set, const char *why)
{
	char names[64 * 24];
	size_t len = 0;

	if (!mask)
		return;
	for (int i = 0; i < 64; i++)
		if (mask & LR_CAPS_BIT(i))
			len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s",
						len ? ", " : "",
						lr_caps_name(i) ? lr_caps_name(i) : "a new one");
	lr_warn("process.capabilities.%s: %s: %s", set, why, names);
}

/* The kernel refuses such sets (capabilities(7)), and runc and crun pass its refusal on. */
static int check_within(uint64_t beyond, const char *set, const char *limit, struct lr_err *err)
{
	if (!beyond)
		return 0;
	lr_refuse(err, EPERM, "%s is not in the %s set", lr_caps_name(__builtin_ctzll(beyond)),
		  limit);
	lr_err_hint(err, "add it to process.capabilities.%s, or leave it out", limit);
	return lr_err_at(err, "process.capabilities.%s", set);
}

int lr_caps_plan(const struct oci_capabilities *caps, struct lr_caps_plan *ret, struct lr_err *err)
{
	*ret = (struct lr_caps_plan){0};
	if (!caps)
		return 0;
	ret->bounding = mask_of(&caps->bounding, "bounding");
	ret->effective = mask_of(&caps->effective, "effective");
	ret->inheritable = mask_of(&caps->inheritable, "inheritable");
	ret->permitted = mask_of(&caps->permitted, "permitted");
	ret->ambient = mask_of(&caps->ambient, "ambient");

	/* All runtimes leave out ambient ones that aren't both permitted and inheritable: `runc
	 * spec` of 1.1 writes some, and Buildah asks for eleven in each RUN. */
	ret->ambient &= ret->permitted & ret->inheritable;
	int r = check_within(ret->inheritable & ~ret->bounding, "inheritable", "bounding", err);
	return r < 0 ? r
		     : check_within(ret->effective & ~ret->permitted, "effective", "permitted",
				    err);
}

void lr_caps_grant(struct lr_caps_plan *plan, int cap)
{
	plan->bounding |= LR_CAPS_BIT(cap);
	plan->effective |= LR_CAPS_BIT(cap);
	plan->permitted |= LR_CAPS_BIT(cap);
	plan->ambient |= LR_CAPS_BIT(cap) & plan->inheritable;
}

int lr_caps_last(void)
{
	int low = 0, high = 63; /* CAP_CHOWN always exists, bit 63 is the ABI's limit */

	while (low < high) {
		int mid = (low + high + 1) / 2;

		if (prctl(PR_CAPBSET_READ, mid, 0, 0, 0) >= 0)
			low = mid;
		else
			high = mid - 1;
	}
	return low;
}

/* Newer capabilities than the kernel's are silently cut off by capset(2): say so. */
static void warn_unknown_to_kernel(const struct lr_caps_plan *p)
{
	uint64_t all = p->bounding | p->effective | p->inheritable | p->permitted | p->ambient;
	int top = all ? 63 - __builtin_clzll(all) : 0;

	/* 37, CAP_AUDIT_READ, came with 3.16: older kernels cannot run this program anyway. */
	if (top <= CAP_AUDIT_READ || prctl(PR_CAPBSET_READ, top, 0, 0, 0) >= 0)
		return;
	warn_of(all & ~((UINT64_C(2) << lr_caps_last()) - 1), "*", "unknown to this kernel");
}

int lr_caps_apply_bounding(const struct lr_caps_plan *plan, struct lr_err *err)
{
	warn_unknown_to_kernel(plan);
	for (int i = 0; i < 64; i++) {
		if (plan->bounding & LR_CAPS_BIT(i))
			continue;
		/* Dropping one that is gone already is harmless, and cheaper than asking first. */
		if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0) == 0)
			continue;
		if (errno == EINVAL)
			return 0; /* beyond the kernel's last */
		int code = errno;
		if (code == EPERM && prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 0)
			continue;
		lr_fail(err, code, "cannot drop %s from the bounding set",
			lr_caps_name(i) ? lr_caps_name(i) : "a capability");
		lr_err_step(err, "PR_CAPBSET_DROP");
		lr_err_at(err, "process.capabilities.bounding");
		return lr_err_hint(err, "the runtime needs CAP_SETPCAP in its user namespace");
	}
	return 0;
}

int lr_caps_keep(struct lr_err *err)
{
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0)
		return 0;
	lr_fail(err, errno, "cannot keep capabilities across the change of user");
	return lr_err_step(err, "PR_SET_KEEPCAPS");
}

static int capset_raw(uint64_t effective, uint64_t permitted, uint64_t inheritable)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	for (int i = 0; i < 2; i++) {
		data[i].effective = (uint32_t)(effective >> (32 * i));
		data[i].permitted = (uint32_t)(permitted >> (32 * i));
		data[i].inheritable = (uint32_t)(inheritable >> (32 * i));
	}
	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

static int capget_raw(uint64_t *permitted, uint64_t *inheritable)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data) < 0)
		return -errno;
	*permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
	*inheritable = data[0].inheritable | (uint64_t)data[1].inheritable << 32;
	return 0;
}

/*
 * The kernel refused the sets: something in them isn't ours to give (rootless, a nested container).
 * Give what can be given and say what could not. Inheritable ones must be in the bounding set too,
 * unless already inheritable.
 */
static int capset_what_can_be(struct lr_caps_plan *p, struct lr_err *err)
{
	uint64_t permitted = 0, inheritable = 0, bounding = 0;
	int r = capget_raw(&permitted, &inheritable);

	if (r < 0)
		return lr_fail(err, -r, "capget");
	for (int i = 0; i < 64; i++)
		if ((p->inheritable & LR_CAPS_BIT(i)) && prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 1)
			bounding |= LR_CAPS_BIT(i);

	uint64_t can_inherit = inheritable | (permitted & bounding);

	warn_of(p->permitted & ~permitted, "permitted", "left out, cannot be granted");
	warn_of(p->inheritable & ~can_inherit, "inheritable", "left out, cannot be granted");
	p->permitted &= permitted;
	p->effective &= p->permitted;
	p->inheritable &= can_inherit;
	p->ambient &= p->permitted & p->inheritable;
	r = capset_raw(p->effective, p->permitted, p->inheritable);
	if (r < 0) {
		lr_fail(err, -r, "cannot set the capabilities");
		lr_err_step(err, "capset");
		return lr_err_at(err, "process.capabilities");
	}
	return 0;
}

static int apply_ambient(const struct lr_caps_plan *p, struct lr_err *err)
{
	/* capset has already cut the ambient set down to permitted & inheritable: usually to
	 * nothing, and then there is nothing to clear. EINVAL: before 4.3 there are no ambient
	 * ones. */
	if (!(p->permitted & p->inheritable))
		return 0;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 &&
	    (errno != EINVAL || p->ambient)) {
		lr_fail(err, errno, "cannot clear the ambient set");
		return lr_err_at(err, "process.capabilities.ambient");
	}
	for (int i = 0; i < 64; i++) {
		if (!(p->ambient & LR_CAPS_BIT(i)))
			continue;
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i, 0, 0) == 0)
			continue;
		/* EINVAL: unknown to the kernel, warned about before. EPERM: a securebit
		 * forbids. */
		if (errno == EPERM)
			warn_of(LR_CAPS_BIT(i), "ambient", "left out, cannot be raised");
		else if (errno != EINVAL)
			return lr_fail(err, errno, "cannot raise ambient %s", lr_caps_name(i));
	}
	return 0;
}

int lr_caps_apply_final(const struct lr_caps_plan *plan, struct lr_err *err)
{
	struct lr_caps_plan p = *plan;
	int r = capset_raw(p.effective, p.permitted, p.inheritable);

	lr_debug("caps: effective %#jx permitted %#jx inheritable %#jx ambient %#jx",
		 (uintmax_t)p.effective, (uintmax_t)p.permitted, (uintmax_t)p.inheritable,
		 (uintmax_t)p.ambient);
	if (r == -EPERM)
		r = capset_what_can_be(&p, err);
	else if (r < 0) {
		lr_fail(err, -r, "cannot set the capabilities");
		lr_err_step(err, "capset");
		r = lr_err_at(err, "process.capabilities");
	}
	return r < 0 ? r : apply_ambient(&p, err);
}
