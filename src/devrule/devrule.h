/* SPDX-License-Identifier: Apache-2.0 */
/*
 * devrule: which devices a container may use.
 *
 * Takes: linux.resources.devices. The device nodes themselves are the device room's; where the
 * rules go, which is a control group, is the cgroup room's.
 *
 * config.json gives a list in which the last match decides. It becomes either what cgroup v1 can
 * say, a default and exceptions, or a program that the kernel runs on every open and mknod (v2).
 */
#ifndef LR_DEVRULE_DEVRULE_H
#define LR_DEVRULE_DEVRULE_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libocispec/config.h"
#include "src/base/arena.h"
#include "src/base/err.h"

enum { LR_DEV_M = 1, LR_DEV_R = 2, LR_DEV_W = 4, LR_DEV_ALL = 7 }; /* BPF_DEVCG_ACC_* */

struct lr_devrule {
	char type;            /* 'a', 'b', 'c' */
	int64_t major, minor; /* -1: any */
	unsigned access;      /* LR_DEV_* */
	bool allow;
	const char *where; /* place in config.json */
};

struct lr_devrules {
	struct lr_devrule *v;
	size_t n;
	bool allow_rest; /* what no rule speaks of */
};

#define LR_DEVRULES_WHERE "linux.resources.devices"

/* Pure. The rules of config.json (may be NULL), then the devices every container may use, one more
 * with a terminal; the last match decides. Everything before a rule that covers all is dropped.
 * -EINVAL with the place. */
int lr_devrules_of(const struct oci_device_cgroups *devices, bool terminal, struct lr_arena *arena,
		   struct lr_devrules *ret, struct lr_err *err) LR_MUST_CHECK;

/* Pure. The same as a default and exceptions to it. -EINVAL for holes that these cannot say. */
int lr_devrules_flatten(const struct lr_devrules *in, struct lr_arena *arena,
			struct lr_devrules *ret, struct lr_err *err) LR_MUST_CHECK;

/* Pure. The same as a program for BPF_PROG_TYPE_CGROUP_DEVICE. */
int lr_devrules_program(const struct lr_devrules *devs, struct lr_arena *arena,
			struct bpf_insn **ret, size_t *n, struct lr_err *err) LR_MUST_CHECK;
/* Loads and attaches it to that directory of a v2 tree, replacing what this runtime attached
 * before, unless the directory is `fresh` and cannot have any. */
int lr_devrules_attach(const char *dir, const struct bpf_insn *insns, size_t n, bool fresh,
		       struct lr_err *err) LR_MUST_CHECK;

#endif
