/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: which mounts of criu's images may be restored. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mount.h>

#include "src/base/str.h"
#include "src/checkpoint/internal.h"
#include "src/sys/syscalls.h"
#include "tests/unit/test.h"

static struct lr_err why;

static struct lr_saved_name names[] = {
	{"/dev/null", MOUNT_ATTR_RDONLY},
	{"/v", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID},
	{"/w", 0},
};

/* A root of an overlay's, and two volumes of one file system. */
#define ROOT                                                                                       \
	{                                                                                          \
		.first = true, .id = 10, .parent = 1, .type = LR_CRIU_FS_OVERLAYFS, .device = 60,  \
		.root = "/", .point = "/", .source = "overlay", .options = "upperdir=/u"           \
	}
#define DISK .device = 8, .source = "/dev/sda", .options = ""
#define READONLY                                                                                   \
	{                                                                                          \
		.first = true, .id = 11, .parent = 10, DISK, .root = "/srv/v", .point = "/v",      \
		.key = "/v", .flags = MS_RDONLY | MS_NOSUID | MS_RELATIME                          \
	}
#define WRITABLE                                                                                   \
	{                                                                                          \
		.first = true, .id = 12, .parent = 10, DISK, .root = "/srv/w", .point = "/w",      \
		.key = "/w"                                                                        \
	}

/* The three, and one more. */
static int judge_beside(struct lr_criu_mount more, bool readonly, struct lr_err *err)
{
	const struct lr_saved_rules rules = {.v = names, .n = 3, .readonly = readonly};
	const struct lr_criu_mount v[] = {more, ROOT, READONLY, WRITABLE};

	return lr_saved_judge(&rules, v, 4, err);
}

static int judge(struct lr_criu_mount more)
{
	struct lr_err err = {0};

	int r = judge_beside(more, false, &err);
	CHECK(r == 0 || err.msg[0]);
	return r;
}

TEST(what_config_json_names_has_its_attributes)
{
	const struct lr_saved_rules rules = {.v = names, .n = 3};
	struct lr_criu_mount v[] = {ROOT, READONLY};

	CHECK_INT(lr_saved_judge(&rules, v, 2, &why), 0);
	v[1].flags = MS_RDONLY;
	CHECK_INT(lr_saved_judge(&rules, v, 2, &why), -EPERM);
	v[1].flags = 0;
	CHECK_INT(lr_saved_judge(&rules, v, 2, &why), -EPERM);
	v[1].key = "/other";
	CHECK_INT(lr_saved_judge(&rules, v, 2, &why), -EOPNOTSUPP);
}

TEST(a_name_that_config_json_has_twice_is_as_either_is)
{
	struct lr_saved_name twice[] = {{"/v", MOUNT_ATTR_RDONLY}, {"/v", MOUNT_ATTR_NODEV}};
	const struct lr_saved_rules rules = {.v = twice, .n = 2};
	struct lr_criu_mount v[] = {ROOT, READONLY};

	v[1].flags = MS_RDONLY;
	CHECK_INT(lr_saved_judge(&rules, v, 2, &why), 0);
	v[1].flags = MS_NODEV;
	CHECK_INT(lr_saved_judge(&rules, v, 2, &why), 0);
	v[1].flags = MS_NOSUID;
	CHECK_INT(lr_saved_judge(&rules, v, 2, &why), -EPERM);
}

TEST(what_was_deleted_since_is_not_made_again)
{
	const struct lr_saved_rules rules = {.v = names, .n = 3};
	struct lr_criu_mount v[] = {ROOT,
				    WRITABLE,
				    {.type = LR_CRIU_FS_TMPFS,
				     .device = 50,
				     .root = "/d",
				     .point = "/p",
				     .source = "",
				     .options = ""}};

	v[1].deleted = 1;
	CHECK_INT(lr_saved_judge(&rules, v, 2, &why), -EOPNOTSUPP);
	v[1].deleted = 0;
	v[2].deleted = 1;
	CHECK_INT(lr_saved_judge(&rules, v, 3, &why), -EOPNOTSUPP);
}

TEST(what_is_private_hears_of_no_mounts_of_the_hosts)
{
	struct lr_saved_name private[] = {{"/w", 0, true}};
	struct lr_saved_rules rules = {.v = private, .n = 1};
	struct lr_criu_mount v[] = {ROOT, WRITABLE, WRITABLE};

	v[1].master = 7;
	CHECK_INT(lr_saved_judge(&rules, v, 2, &why), -EPERM);
	/* Another mount of the container's. */
	v[2].peers = 7;
	CHECK_INT(lr_saved_judge(&rules, v, 3, &why), 0);
	/* A part of it, elsewhere. */
	v[1].master = 0;
	v[2] = (struct lr_criu_mount)WRITABLE;
	v[2].key = NULL;
	v[2].master = 7;
	CHECK_INT(lr_saved_judge(&rules, v, 3, &why), -EPERM);
	private[0].private = false;
	CHECK_INT(lr_saved_judge(&rules, v, 3, &why), 0);
	v[0].master = 8;
	CHECK_INT(lr_saved_judge(&rules, v, 3, &why), 0);
	rules.private = true;
	CHECK_INT(lr_saved_judge(&rules, v, 3, &why), -EPERM);
}

TEST(rules_are_of_the_options)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const char *options[] = {"ro", "rprivate", NULL}, *later[] = {"private", "rslave", NULL};
	struct oci_strv some = {options, 2}, others = {later, 2};
	struct lr_saved_rules rules = {0};

	REQUIRE(lr_saved_allow(&rules, "/a", &some, MOUNT_ATTR_NODEV, a, NULL) == 0);
	REQUIRE(lr_saved_allow(&rules, "/b", &others, 0, a, NULL) == 0);
	REQUIRE(lr_saved_allow(&rules, "/c", NULL, 0, a, NULL) == 0);
	CHECK_INT(rules.v[0].set, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV);
	CHECK(rules.v[0].private);
	CHECK(!rules.v[1].private && !rules.v[2].private);
}

TEST(too_much_to_compare_is_refused)
{
	const size_t n = 20001;
	const struct lr_saved_rules rules = {.v = names, .n = 3};
	struct lr_criu_mount *v = calloc(n, sizeof(*v));

	REQUIRE(v);
	v[0] = (struct lr_criu_mount)ROOT;
	for (size_t i = 1; i < n; i++)
		v[i] = (struct lr_criu_mount)WRITABLE;
	CHECK_INT(lr_saved_judge(&rules, v, n, &why), -E2BIG);
	CHECK_INT(lr_saved_judge(&rules, v, 10000, &why), 0);
	free(v);
}

/* Also in forged images. */
TEST(a_type_by_another_name_leads_somewhere)
{
	const struct lr_saved_rules rules = {.v = names, .n = 3};
	struct lr_criu_mount v[] = {ROOT,
				    {.type = LR_CRIU_FS_TMPFS,
				     .device = 50,
				     .root = "/",
				     .point = "/p",
				     .source = "",
				     .options = ""}};

	CHECK_INT(lr_saved_judge(&rules, v, 2, &why), 0);
	v[1].fsname = "overlay";
	CHECK_INT(lr_saved_judge(&rules, v, 2, &why), -EOPNOTSUPP);
	v[1].fsname = NULL;
	v[1].plugin = 1;
	CHECK_INT(lr_saved_judge(&rules, v, 2, &why), -EOPNOTSUPP);
}

/* Volumes that overlap; criu has names in the first namespace alone. */
TEST(of_names_that_overlap_one_that_allows_it_is_enough)
{
	const struct lr_saved_rules rules = {.v = names, .n = 3};
	struct lr_criu_mount v[] = {ROOT, READONLY, WRITABLE, WRITABLE};

	v[1].root = "/srv";
	v[3].key = NULL;
	v[3].first = false;
	CHECK_INT(lr_saved_judge(&rules, v, 4, &why), 0);
	v[3].root = "/srv/v";
	CHECK_INT(lr_saved_judge(&rules, v, 4, &why), -EPERM);
}

TEST(a_part_of_what_is_named_is_no_freer)
{
	struct lr_criu_mount m = {
		.id = 20, .parent = 19, DISK, .root = "/srv/v/part", .point = "/p"};

	CHECK_INT(judge(m), -EPERM);
	m.flags = MS_RDONLY | MS_NOSUID;
	CHECK_INT(judge(m), 0);
	m.flags = 0;
	m.root = "/srv/w";
	CHECK_INT(judge(m), 0);
	/* What is neither of them is the host's. */
	m.root = "/srv/wider";
	CHECK_INT(judge(m), -EOPNOTSUPP);
	m.root = "/srv";
	CHECK_INT(judge(m), -EOPNOTSUPP);
	m.root = "/";
	CHECK_INT(judge(m), -EOPNOTSUPP);
}

/* criu would mount another file system. */
TEST(what_differs_is_no_part)
{
	struct lr_criu_mount whole = READONLY, m = {.id = 20,
						    .parent = 19,
						    DISK,
						    .root = "/srv/v/p",
						    .point = "/p",
						    .flags = MS_RDONLY | MS_NOSUID};
	const struct lr_saved_rules rules = {.v = names, .n = 3};

	whole.type = m.type = LR_CRIU_FS_OVERLAYFS;
	struct lr_criu_mount v[] = {ROOT, whole, m};
	CHECK_INT(lr_saved_judge(&rules, v, 3, &why), 0);
	v[2].source = "another";
	CHECK_INT(lr_saved_judge(&rules, v, 3, &why), -EOPNOTSUPP);
	v[2].source = m.source;
	v[2].options = "lowerdir=/";
	CHECK_INT(lr_saved_judge(&rules, v, 3, &why), -EOPNOTSUPP);
	v[2].options = m.options;
	v[2].type = LR_CRIU_FS_AUTO;
	CHECK_INT(lr_saved_judge(&rules, v, 3, &why), -EOPNOTSUPP);
	v[2].type = m.type;
	v[2].device++;
	CHECK_INT(lr_saved_judge(&rules, v, 3, &why), -EOPNOTSUPP);
	/* What criu can't mount, it binds, whatever is said of it. */
	v[2] = m;
	v[1].type = v[2].type = LR_CRIU_FS_OTHER;
	v[2].source = "/dev/root";
	CHECK_INT(lr_saved_judge(&rules, v, 3, &why), 0);
}

/* The container's own overlay, where config.json has a volume: criu might mount it before it binds that. */
TEST(a_whole_file_system_is_no_part_where_criu_could_mount_it)
{
	const struct lr_saved_rules rules = {.v = names, .n = 3};
	struct lr_criu_mount whole = WRITABLE;

	whole.root = "/";
	struct lr_criu_mount v[] = {ROOT, whole, whole};
	v[2].key = NULL;
	v[2].first = false;
	CHECK_INT(lr_saved_judge(&rules, v, 3, &why), 0);
	v[1].type = v[2].type = LR_CRIU_FS_TMPFS;
	CHECK_INT(lr_saved_judge(&rules, v, 3, &why), 0);
	v[1].type = v[2].type = LR_CRIU_FS_OVERLAYFS;
	CHECK_INT(lr_saved_judge(&rules, v, 3, &why), -EOPNOTSUPP);
	v[2].root = "/d";
	CHECK_INT(lr_saved_judge(&rules, v, 3, &why), 0);
}

TEST(a_part_has_all_attributes_that_its_name_has_anywhere)
{
	struct lr_saved_name twice[] = {{"/v", MOUNT_ATTR_RDONLY}, {"/v", MOUNT_ATTR_NODEV}};
	const struct lr_saved_rules rules = {.v = twice, .n = 2};
	struct lr_criu_mount v[] = {ROOT, READONLY, READONLY};

	v[2].key = NULL;
	CHECK_INT(lr_saved_judge(&rules, v, 3, &why), -EPERM);
	v[2].flags = MS_RDONLY | MS_NODEV;
	CHECK_INT(lr_saved_judge(&rules, v, 3, &why), 0);
	/* The images do not have this one. */
	twice[1].set = MOUNT_ATTR_NOSYMFOLLOW;
	CHECK_INT(lr_saved_judge(&rules, v, 3, &why), -EPERM);
	CHECK_INT(lr_saved_judge(&rules, v, 2, &why), 0);
}

TEST(the_root_is_one_and_its_parts_are_read_only_with_it)
{
	struct lr_criu_mount m = ROOT;

	m.first = false;
	CHECK_INT(judge_beside(m, false, &why), 0);
	CHECK_INT(judge_beside(m, true, &why), -EPERM);
	m.flags = MS_RDONLY;
	m.root = "/etc";
	m.point = "/p";
	CHECK_INT(judge_beside(m, true, &why), 0);
	/* Another overlay, whose directories would be the host's. */
	m = (struct lr_criu_mount)ROOT;
	m.device = 61;
	m.first = false;
	CHECK_INT(judge(m), -EOPNOTSUPP);
	/* Also where it is mounted on the first process's root. */
	m.first = true;
	m.id = 13;
	m.parent = 10;
	CHECK_INT(judge(m), -EOPNOTSUPP);
	/* What is mounted there is not taken for it. */
	m.type = LR_CRIU_FS_TMPFS;
	CHECK_INT(judge(m), 0);
}

TEST(images_without_a_root_are_refused)
{
	const struct lr_saved_rules rules = {.v = names, .n = 3};
	struct lr_criu_mount v[] = {ROOT, READONLY};

	v[0].first = false;
	CHECK_INT(lr_saved_judge(&rules, v, 2, &why), -EBADMSG);
	CHECK_INT(lr_saved_judge(&rules, v, 0, &why), -EBADMSG);
	v[0].first = true;
	v[0].parent = 11;
	CHECK_INT(lr_saved_judge(&rules, v, 2, &why), -EBADMSG);
}

TEST(file_systems_with_nothing_of_the_hosts_are_made_anew)
{
	const struct lr_saved_rules rules = {.v = names, .n = 3};
	struct lr_criu_mount v[] = {ROOT,
				    {.type = LR_CRIU_FS_TMPFS, .device = 50, .root = "/d"},
				    {.type = LR_CRIU_FS_TMPFS, .device = 50, .root = "/"}};

	v[1].point = "/a";
	v[2].point = "/b";
	for (int i = 1; i < 3; i++)
		v[i].source = v[i].options = "";
	CHECK_INT(lr_saved_judge(&rules, v, 3, &why), 0);
	/* A part alone: of what, nobody knows. */
	CHECK_INT(lr_saved_judge(&rules, v, 2, &why), -EOPNOTSUPP);
	/* By its type, and not by its number alone. */
	v[1].type = LR_CRIU_FS_OVERLAYFS;
	CHECK_INT(lr_saved_judge(&rules, v, 3, &why), -EOPNOTSUPP);
	v[1].type = LR_CRIU_FS_TMPFS;
	/* By what criu's number stands for. */
	static const uint32_t anew[] = {1, 2, 4, 5, 6, 8, 9, 10, 11, 12, 14, 19, 23};
	for (uint32_t type = 0, i = 0; type < 30; type++) {
		const bool is = i < LR_ARRAY_SIZE(anew) && type == anew[i];
		v[1].type = v[2].type = type;
		CHECK_INT(lr_saved_judge(&rules, v, 3, &why), is ? 0 : -EOPNOTSUPP);
		i += is;
	}
}

/* A tmpfs where the first process has a volume: criu would bind from the volume. */
TEST(a_part_of_what_is_named_and_made_anew_is_no_freer)
{
	const struct lr_saved_rules rules = {.v = names, .n = 3};
	struct lr_criu_mount v[] = {
		ROOT, READONLY, {.type = LR_CRIU_FS_TMPFS, .device = 50, .root = "/"}, {0}};

	v[1].type = LR_CRIU_FS_TMPFS;
	v[1].device = 50;
	v[1].root = "/";
	v[2].source = v[1].source;
	v[2].options = v[1].options;
	v[2].point = "/b";
	v[3] = v[2];
	v[3].root = "/d";
	CHECK_INT(lr_saved_judge(&rules, v, 4, &why), -EPERM);
	v[2].flags = v[3].flags = MS_RDONLY | MS_NOSUID;
	CHECK_INT(lr_saved_judge(&rules, v, 4, &why), 0);
}
