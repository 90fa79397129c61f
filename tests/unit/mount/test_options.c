/* SPDX-License-Identifier: Apache-2.0 */
/* Every mount option of the table and what it becomes. */
#include "src/base/str.h"
#include "src/mount/internal.h"
#include "tests/unit/test.h"

#define RDONLY MOUNT_ATTR_RDONLY
#define ATIME  MOUNT_ATTR__ATIME

static struct lr_arena *arena;

static struct lr_mount_options parse(const char *const *v, const char *type)
{
	struct oci_strv s = {.v = (const char **)v};
	struct lr_mount_options o = {0};
	struct lr_err err = {0};

	if (!arena)
		arena = lr_arena_new();
	while (v[s.n])
		s.n++;
	CHECK_INT(lr_mount_options_parse(&s, type, 0, arena, &o, &err), 0);
	return o;
}
#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL}, "tmpfs")

/* What a single option does to a mount of which nothing is known. */
static const struct {
	const char *name;
	uint64_t set, clear, rset, rclear;
	unsigned long sb, prop;
	bool prop_rec;
} expect[] = {
	{"acl", .sb = MS_POSIXACL},
	{"async"},
	{"atime", .set = MOUNT_ATTR_RELATIME, .clear = ATIME},
	{"bind"},
	{"copy-symlink"},
	{"defaults"},
	{"dest-nofollow"},
	{"dev", .clear = MOUNT_ATTR_NODEV},
	{"diratime", .clear = MOUNT_ATTR_NODIRATIME},
	{"dirsync", .sb = MS_DIRSYNC},
	{"exec", .clear = MOUNT_ATTR_NOEXEC},
	{"idmap"},
	{"iversion", .sb = MS_I_VERSION},
	{"lazytime", .sb = MS_LAZYTIME},
	{"loud"},
	{"mand", .sb = MS_MANDLOCK},
	{"noacl"},
	{"noatime", .set = MOUNT_ATTR_NOATIME, .clear = ATIME},
	{"nodev", .set = MOUNT_ATTR_NODEV},
	{"nodiratime", .set = MOUNT_ATTR_NODIRATIME},
	{"noexec", .set = MOUNT_ATTR_NOEXEC},
	{"noiversion"},
	{"nolazytime"},
	{"nomand"},
	{"norelatime", .clear = ATIME},
	{"nostrictatime", .clear = ATIME},
	{"nosuid", .set = MOUNT_ATTR_NOSUID},
	{"nosymfollow", .set = MOUNT_ATTR_NOSYMFOLLOW},
	{"private", .prop = MS_PRIVATE},
	{"ratime", .rclear = ATIME},
	{"rbind"},
	{"rdev", .rclear = MOUNT_ATTR_NODEV},
	{"rdiratime", .rclear = MOUNT_ATTR_NODIRATIME},
	{"relatime", .clear = ATIME},
	{"remount"},
	{"rexec", .rclear = MOUNT_ATTR_NOEXEC},
	{"ridmap"},
	{"rnoatime", .rset = MOUNT_ATTR_NOATIME, .rclear = ATIME},
	{"rnodev", .rset = MOUNT_ATTR_NODEV},
	{"rnodiratime", .rset = MOUNT_ATTR_NODIRATIME},
	{"rnoexec", .rset = MOUNT_ATTR_NOEXEC},
	{"rnorelatime", .rclear = ATIME},
	{"rnostrictatime", .rclear = ATIME},
	{"rnosuid", .rset = MOUNT_ATTR_NOSUID},
	{"rnosymfollow", .rset = MOUNT_ATTR_NOSYMFOLLOW},
	{"ro", .set = RDONLY},
	{"rprivate", .prop = MS_PRIVATE, .prop_rec = true},
	{"rrelatime", .rclear = ATIME},
	{"rro", .rset = RDONLY},
	{"rrw", .rclear = RDONLY},
	{"rshared", .prop = MS_SHARED, .prop_rec = true},
	{"rslave", .prop = MS_SLAVE, .prop_rec = true},
	{"rstrictatime", .rset = MOUNT_ATTR_STRICTATIME, .rclear = ATIME},
	{"rsuid", .rclear = MOUNT_ATTR_NOSUID},
	{"rsymfollow", .rclear = MOUNT_ATTR_NOSYMFOLLOW},
	{"runbindable", .prop = MS_UNBINDABLE, .prop_rec = true},
	{"rw", .clear = RDONLY},
	{"shared", .prop = MS_SHARED},
	{"silent", .sb = MS_SILENT},
	{"slave", .prop = MS_SLAVE},
	{"src-nofollow"},
	{"strictatime", .set = MOUNT_ATTR_STRICTATIME, .clear = ATIME},
	{"suid", .clear = MOUNT_ATTR_NOSUID},
	{"symfollow", .clear = MOUNT_ATTR_NOSYMFOLLOW},
	{"sync", .sb = MS_SYNCHRONOUS},
	{"tmpcopyup"},
	{"unbindable", .prop = MS_UNBINDABLE},
};

TEST(every_option_alone)
{
	for (size_t i = 0; i < LR_ARRAY_SIZE(expect); i++) {
		struct lr_mount_options o = PARSE(expect[i].name);
		int before = lr_failures;

		CHECK_INT(o.set, expect[i].set);
		CHECK_INT(o.clear, expect[i].clear);
		CHECK_INT(o.rset, expect[i].rset);
		CHECK_INT(o.rclear, expect[i].rclear);
		CHECK_INT(o.sb, expect[i].sb);
		CHECK_INT(o.n_props, expect[i].prop != 0);
		CHECK_INT(o.n_props ? o.props[0].type : 0, expect[i].prop);
		CHECK_INT(o.n_props ? o.props[0].rec : 0, expect[i].prop_rec);
		CHECK_STR(o.data, "");
		if (lr_failures != before)
			printf("# ... in option %s\n", expect[i].name);
	}
}

TEST(names_are_sorted_and_all_tested)
{
	size_t n;
	const char *const *names = lr_mount_option_names(&n);

	CHECK_INT(n, LR_ARRAY_SIZE(expect));
	CHECK(names[n] == NULL);
	for (size_t i = 0; i < n; i++) {
		CHECK(i == 0 || strcmp(names[i - 1], names[i]) < 0);
		CHECK_STR(names[i], expect[i].name);
	}
}

/* config.md "Linux mount options" of runtime-spec 1.3, MUST, SHOULD and MAY. */
TEST(specification_is_covered)
{
	static const char *const spec[] = {
		"async",          "atime",      "bind",         "defaults",    "dev",
		"diratime",       "dirsync",    "exec",         "iversion",    "lazytime",
		"loud",           "mand",       "noatime",      "nodev",       "nodiratime",
		"noexec",         "noiversion", "nolazytime",   "nomand",      "norelatime",
		"nostrictatime",  "nosuid",     "nosymfollow",  "private",     "ratime",
		"rbind",          "rdev",       "rdiratime",    "relatime",    "remount",
		"rexec",          "rnoatime",   "rnodiratime",  "rnoexec",     "rnorelatime",
		"rnostrictatime", "rnosuid",    "rnosymfollow", "ro",          "rprivate",
		"rrelatime",      "rro",        "rrw",          "rshared",     "rslave",
		"rstrictatime",   "rsuid",      "rsymfollow",   "runbindable", "rw",
		"shared",         "silent",     "slave",        "strictatime", "suid",
		"symfollow",      "sync",       "tmpcopyup",    "unbindable",  "idmap",
		"ridmap",         "rnodev",
	};
	size_t n;
	const char *const *names = lr_mount_option_names(&n);

	for (size_t i = 0; i < LR_ARRAY_SIZE(spec); i++) {
		bool found = false;
		for (size_t k = 0; k < n; k++)
			found |= lr_streq(names[k], spec[i]);
		CHECK(found);
	}
}

TEST(later_wins)
{
	struct lr_mount_options o = PARSE("ro", "rw");
	CHECK_INT(o.set, 0);
	CHECK_INT(o.clear, RDONLY);
	o = PARSE("rw", "ro", "nosuid", "suid", "nodev");
	CHECK_INT(o.set, RDONLY | MOUNT_ATTR_NODEV);
	CHECK_INT(o.clear, MOUNT_ATTR_NOSUID);
	o = PARSE("sync", "async", "lazytime", "iversion", "noiversion");
	CHECK_INT(o.sb, MS_LAZYTIME);
	o = PARSE("bind", "rbind");
	CHECK(o.rec);
	o = PARSE("rbind", "bind");
	CHECK(o.rec && o.bind);
	o = PARSE("ridmap", "idmap");
	CHECK(o.idmap && !o.ridmap);
	o = PARSE("acl", "noacl");
	CHECK_INT(o.sb, 0);
}

TEST(recursive_and_plain)
{
	/* A later recursive option counts for the top mount, too; a later plain one only there. */
	struct lr_mount_options o = PARSE("rw", "rro");
	CHECK_INT(o.clear, 0);
	CHECK_INT(o.rset, RDONLY);
	o = PARSE("rro", "rw");
	CHECK_INT(o.rset, RDONLY);
	CHECK_INT(o.clear, RDONLY);
	o = PARSE("rro", "rrw");
	CHECK_INT(o.rset, 0);
	CHECK_INT(o.rclear, RDONLY);
	o = PARSE("noatime", "rstrictatime");
	CHECK_INT(o.set, 0);
	CHECK_INT(o.clear, 0);
	CHECK_INT(o.rset, MOUNT_ATTR_STRICTATIME);
}

TEST(access_time_is_one_field)
{
	struct lr_mount_options o = PARSE("noatime", "strictatime");
	CHECK_INT(o.set, MOUNT_ATTR_STRICTATIME);
	CHECK_INT(o.clear, ATIME);
	o = PARSE("noatime", "atime");
	CHECK_INT(o.set, MOUNT_ATTR_RELATIME);
	o = PARSE("noatime", "nostrictatime"); /* it is not strictatime already */
	CHECK_INT(o.set, MOUNT_ATTR_NOATIME);
	o = PARSE("noatime", "nodiratime");
	CHECK_INT(o.set, MOUNT_ATTR_NOATIME | MOUNT_ATTR_NODIRATIME);
}

TEST(data_for_the_file_system)
{
	struct lr_mount_options o = PARSE("nosuid", "mode=755", "size=64k", "newinstance");
	CHECK_STR(o.data, "mode=755,size=64k,newinstance");
	REQUIRE(o.n_params == 3);
	CHECK_STR(o.params[0].key, "mode");
	CHECK_STR(o.params[0].value, "755");
	CHECK_STR(o.params[2].key, "newinstance");
	CHECK(!o.params[2].value);
	CHECK(!o.only_mount2);

	o = PARSE("context=\"a:b:c:s0:c1,c2\"");
	CHECK_STR(o.params[0].value, "a:b:c:s0:c1,c2");
	CHECK_STR(o.data, "context=\"a:b:c:s0:c1,c2\"");
	CHECK(!o.only_mount2);
	o = PARSE("mode=755,size=64k");
	CHECK(o.only_mount2);
	o = PARSE("empty=");
	CHECK_STR(o.params[0].value, "");
	char longish[400] = "lowerdir=";
	memset(longish + 9, 'x', 300);
	o = PARSE(longish);
	CHECK(o.only_mount2); /* fsconfig takes 255 bytes */
}

TEST(what_fsconfig_cannot_say)
{
	CHECK(PARSE("iversion").only_mount2);
	CHECK(PARSE("silent").only_mount2);
	CHECK(PARSE("acl").only_mount2);
	CHECK(!PARSE("sync", "dirsync", "lazytime", "mand").only_mount2);
	struct lr_mount_options o = parse((const char *const[]){"noacl", NULL}, "ext4");
	CHECK_STR(o.data, "noacl");
	CHECK(!o.only_mount2);
}

TEST(words)
{
	CHECK(PARSE("remount").remount);
	CHECK(PARSE("tmpcopyup").copyup);
	CHECK(PARSE("copy-symlink").copy_symlink);
	CHECK(PARSE("src-nofollow").src_nofollow);
	CHECK(PARSE("dest-nofollow").dest_nofollow);
	struct lr_mount_options o = PARSE("ridmap=uids=0-1-2;gids=0-1-2");
	CHECK(o.ridmap && o.idmap);
	CHECK_STR(o.idmap_spec, "uids=0-1-2;gids=0-1-2");
	CHECK_STR(o.data, "");
}

TEST(empty_option_is_none)
{
	struct lr_mount_options o = PARSE("", "ro", "");

	CHECK_INT(o.set, RDONLY);
	CHECK_STR(o.data, "");
}

TEST(propagation_words)
{
	bool rec = false;

	CHECK_INT(lr_mount_prop_parse("rslave", &rec), MS_SLAVE);
	CHECK(rec);
	CHECK_INT(lr_mount_prop_parse("shared", &rec), MS_SHARED);
	CHECK(!rec);
	CHECK_INT(lr_mount_prop_parse("ro", &rec), 0);
}
