/* SPDX-License-Identifier: Apache-2.0 */
/* What the plans of checkpoint and restore are made from, and that others write: a container's
 * mountinfo, descriptors.json of the images, /proc/PID/cgroup. The first byte chooses which. */
#include <errno.h>

#include "src/base/fd.h"
#include "src/checkpoint/internal.h"
#include "tests/fuzz/fuzz.h"

static void mountinfo(char *text, struct lr_arena *a)
{
	static struct oci_mount mount = {.destination = "/a", .type = "bind", .source = "/b"};
	static const struct oci_config config = {.mounts = {.v = &mount, .n = 1}};
	const struct lr_checkpoint_opts o = {.status_fd = LR_NOFD};
	struct lr_checkpoint_found f = {0};
	struct lr_checkpoint_mount *v;
	struct lr_saved_rules rules;
	struct lr_criu_opts c;
	struct lr_err err = {0};
	int at = 1;

	if (lr_checkpoint_mountinfo(text, a, &v, &f.n_mounts, &err) < 0) {
		FUZZ_CHECK(err.msg[0]);
		return;
	}
	f.mounts = v;
	f.at = &at;
	if (lr_checkpoint_plan(&config, &o, &f, a, &c, &rules, &err) < 0) {
		FUZZ_CHECK(err.msg[0]);
		return;
	}
	FUZZ_CHECK(c.external.n <= f.n_mounts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_criu_opts c = LR_CRIU_OPTS_INIT;
	struct lr_checkpoint_stdio s = {0};
	struct lr_err err = {0};

	if (!a || !size)
		return 0;
	char *text = lr_strndup(a, (const char *)data + 1, size - 1);
	if (!text)
		return 0;
	switch (data[0]) {
	case 'm':
		mountinfo(text, a);
		break;
	case 'd':
		if (lr_checkpoint_stdio_decode(text, strlen(text), a, &s, &err) < 0)
			FUZZ_CHECK(err.msg[0]);
		for (int i = 0; i < 3; i++)
			FUZZ_CHECK(strlen(s.name[i]) < LR_CHECKPOINT_NAME);
		break;
	case 'c':
		if (lr_restore_plan_cgroups(text, a, &c, &err) < 0)
			FUZZ_CHECK(err.msg[0]);
		break;
	default:
		break;
	}
	return 0;
}
