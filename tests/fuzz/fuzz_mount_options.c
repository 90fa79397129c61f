/* SPDX-License-Identifier: Apache-2.0 */
/* One mount of config.json as lines: destination, type, source, then an option each; two of them
 * are planned, so that the second may lie below the first. */
#include "src/base/str.h"
#include "src/mount/internal.h"
#include "tests/fuzz/fuzz.h"

#define OPTIONS_MAX 64

static void check_op(const struct lr_mount_op *op)
{
	const uint64_t atime = MOUNT_ATTR__ATIME;

	FUZZ_CHECK(op->dest[0] == '/' && op->name == strrchr(op->dest, '/') + 1);
	FUZZ_CHECK(!strstr(op->dest, "//") && !strstr(op->dest, "/../"));
	FUZZ_CHECK(op->kind != LR_MOUNT_CGROUP || op->dest[1]);
	FUZZ_CHECK(op->kind != LR_MOUNT_FS || !lr_streq(op->dest, "/proc") ||
		   lr_streq(op->type, "proc"));
	FUZZ_CHECK(op->kind == LR_MOUNT_REMOUNT || !lr_has_prefix(op->dest, "/proc/self"));
	FUZZ_CHECK(!(op->o.set & op->o.clear & ~atime) && !(op->o.rset & op->o.rclear & ~atime));
	FUZZ_CHECK((op->attr & atime) != atime);
	for (size_t i = 0; i < op->n_changes; i++)
		FUZZ_CHECK(op->changes[i].set | op->changes[i].clear | op->changes[i].prop);
	for (size_t i = 0; i < op->o.n_params; i++)
		FUZZ_CHECK(op->o.params[i].key && *op->o.data);
	FUZZ_CHECK(op->tree < 0 && op->mfd < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const char *v[OPTIONS_MAX + 1] = {NULL}, *head[3] = {NULL};
	struct oci_id_mapping map = {0, 100000, 65536};
	const struct oci_id_mappings maps = {&map, 1};
	const struct lr_mount_opts opts = {.bundle = "/bundle",
					   .userns = size & 1,
					   .uid_map = &maps,
					   .gid_map = &maps,
					   .mount_label = size & 2 ? "l" : NULL};
	size_t n = 0, lines = 0;
	char *text = lr_strndup(a, (const char *)data, size), *line;

	while (text && (line = strsep(&text, "\n")) && n < OPTIONS_MAX) {
		if (lines < 3)
			head[lines++] = line;
		else
			v[n++] = line;
	}
	struct oci_mount mount = {
		.destination = head[0], .type = head[1], .source = head[2], .options = {v, n}};
	struct oci_mount two[2] = {mount, mount};
	two[1].destination = head[0] ? lr_strf(a, "%s/below", head[0]) : "/x";
	struct lr_mount_plan *plan = NULL;
	struct lr_err err = {0};
	int r = lr_mount_plan(&(struct oci_mounts){two, 2}, &opts, a, &plan, &err);

	FUZZ_CHECK(r == 0 ? plan && plan->n == 2 : r < 0 && err.code == -r && err.msg[0]);
	for (size_t i = 0; r == 0 && i < 2; i++)
		check_op(&plan->ops[i]);
	return 0;
}
