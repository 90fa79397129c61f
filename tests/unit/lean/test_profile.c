/* SPDX-License-Identifier: Apache-2.0 */
/* lean: who asked for what, and who is listened to. */
#include "tests/unit/test.h"

#include <errno.h>

#include "src/base/str.h"
#include "src/lean/lean.h"

#define P "org.lean-runtime."

static struct lr_lean_profile get(const char *text, const struct oci_map *annotations)
{
	struct lr_lean_profile p = {0};
	struct lr_err err = {0};

	CHECK_INT(lr_lean_profile(text, annotations, &p, &err), 0);
	return p;
}

static int fails(const char *text, const struct oci_map *annotations, struct lr_err *err)
{
	struct lr_lean_profile p;

	*err = (struct lr_err){0};
	return lr_lean_profile(text, annotations, &p, err);
}

TEST(off_unless_asked_for)
{
	static const char *const off[] = {NULL, "", "none", "lean,none", "rootfs,none"};

	for (size_t i = 0; i < LR_ARRAY_SIZE(off); i++) {
		struct lr_lean_profile p = get(off[i], NULL);
		CHECK(!p.on);
		for (int k = 0; k < LR_LEAN_PARTS; k++)
			CHECK_INT(p.way[k], LR_LEAN_CONFIG);
	}
}

TEST(lean_is_all_parts)
{
	struct lr_lean_profile p = get("lean", NULL);

	CHECK(p.on);
	for (int k = 0; k < LR_LEAN_PARTS; k++)
		CHECK(p.way[k] != LR_LEAN_CONFIG);
	CHECK_INT(p.way[LR_LEAN_NETWORK], LR_LEAN_AUTO);
}

TEST(a_list_is_what_it_names)
{
	struct lr_lean_profile p = get("rootfs,network=pool", NULL);

	CHECK(p.on);
	CHECK_INT(p.way[LR_LEAN_ROOTFS], LR_LEAN_RO);
	CHECK_INT(p.way[LR_LEAN_NETWORK], LR_LEAN_POOL);
	CHECK_INT(p.way[LR_LEAN_MOUNTS], LR_LEAN_CONFIG);
	CHECK_INT(p.way[LR_LEAN_CGROUP], LR_LEAN_CONFIG);
	p = get("lean,cgroup=new,bounding=config,,", NULL);
	CHECK_INT(p.way[LR_LEAN_CGROUP], LR_LEAN_CONFIG);
	CHECK_INT(p.way[LR_LEAN_BOUNDING], LR_LEAN_CONFIG);
	CHECK_INT(p.way[LR_LEAN_MOUNTS], LR_LEAN_AUTO);
}

TEST(every_part_can_be_as_the_config_has_it)
{
	static const char *const names[] = {"rootfs", "cgroup", "network", "mounts", "bounding"};

	CHECK_INT(LR_ARRAY_SIZE(names), LR_LEAN_PARTS);
	for (size_t i = 0; i < LR_ARRAY_SIZE(names); i++) {
		char text[64];
		int left = 0;
		snprintf(text, sizeof(text), "lean,%s=config", names[i]);
		struct lr_lean_profile p = get(text, NULL);
		for (int k = 0; k < LR_LEAN_PARTS; k++)
			left += p.way[k] == LR_LEAN_CONFIG;
		CHECK_INT(left, 1);
	}
}

TEST(annotations_decide)
{
	/* The profile is the first to be heard, wherever it stands. */
	struct oci_pair v[] = {
		{P "network", "host"}, {P "profile", "lean"}, {P "tmpfs", "/tmp"}, {"other", "x"}};
	const struct oci_map all = {v, LR_ARRAY_SIZE(v)};
	struct lr_lean_profile p = get("none", &all);

	CHECK(p.on);
	CHECK_INT(p.way[LR_LEAN_NETWORK], LR_LEAN_HOST);
	CHECK_INT(p.way[LR_LEAN_ROOTFS], LR_LEAN_RO);
	CHECK_STR(p.tmpfs, "/tmp");

	struct oci_pair off[] = {{P "profile", "none"}};
	CHECK(!get("lean", &(struct oci_map){off, 1}).on);
	/* An image is asked for by being named. */
	struct oci_pair image[] = {{P "image", "/i"}};
	p = get(NULL, &(struct oci_map){image, 1});
	CHECK(p.on);
	CHECK_STR(p.image, "/i");
	CHECK_INT(p.way[LR_LEAN_ROOTFS], LR_LEAN_CONFIG);
}

TEST(what_is_not_known_is_an_error)
{
	struct oci_pair v[] = {{P "cgroup", "none"}};
	struct lr_err err;

	CHECK_INT(fails("rootsf", NULL, &err), -EINVAL);
	CHECK_HAS(err.msg, "rootsf");
	CHECK_INT(fails("network=public", NULL, &err), -EINVAL);
	CHECK_HAS(err.msg, "public");
	CHECK_INT(fails("root", NULL, &err), -EINVAL); /* no prefixes */
	CHECK_INT(fails(NULL, &(struct oci_map){v, 1}, &err), -EINVAL);
	CHECK_HAS(err.path, P "cgroup");
}

TEST(annotations_are_sorted)
{
	for (size_t i = 1; lr_lean_annotations[i]; i++)
		CHECK(strcmp(lr_lean_annotations[i - 1], lr_lean_annotations[i]) < 0);
}
