/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: which mounts are a container's own doing. */
#include <string.h>

#include "libocispec/ocispec.h"
#include "src/base/str.h"
#include "src/checkpoint/internal.h"
#include "tests/unit/test.h"

#define ADMIN  "\"capabilities\": {\"bounding\": [\"CAP_KILL\", \"CAP_SYS_ADMIN\"]}"
#define SPACE  "\"namespaces\": [{\"type\": \"mount\"}, {\"type\": \"pid\"}]"
#define USER   "\"namespaces\": [{\"type\": \"mount\"}, {\"type\": \"user\"}]"
#define PROC   "{\"destination\": \"/proc\", \"type\": \"proc\", \"source\": \"proc\"}"
#define DEV    "{\"destination\": \"/dev/\", \"type\": \"tmpfs\", \"source\": \"tmpfs\"}"
#define BASE   PROC ", " DEV
#define CGROUP "{\"destination\": \"/sys/fs/cgroup\", \"type\": \"cgroup\", \"source\": \"cgroup\"}"
#define BIND(to)                                                                                   \
	"{\"destination\": \"" to                                                                  \
	"\", \"type\": \"bind\", \"source\": \"/src\", \"options\": [\"rbind\", \"ro\"]}"
#define FILE_(to)                                                                                  \
	"{\"destination\": \"" to                                                                  \
	"\", \"type\": \"bind\", \"source\": \"/src\", \"options\": [\"bind\"]}"

#define ROOT   "10 1 8:1 /b/rootfs / rw,relatime master:3 - ext4 /dev/sda rw\n"
#define PROC_  "11 10 0:50 / /proc rw - proc proc rw\n"
#define DEV_   "12 10 0:51 / /dev rw - tmpfs tmpfs rw\n"
#define BASE_  ROOT PROC_ DEV_
#define OWN(n) "9" #n " 10 0:9" #n " / /own" #n " rw - tmpfs tmpfs rw\n"

/* host: none is asked for, if it is NULL. */
static const struct c {
	const char *what, *mounts, *process, *linux_, *more, *info, *host, *expect, *root;
} cases[] = {
	{"as it was made", BASE, ADMIN, SPACE, "", BASE_, NULL, "", "/"},
	{"a mount of its own", BASE, ADMIN, SPACE, "", BASE_ OWN(1) OWN(2), NULL,
	 "own /own1 tmpfs; own /own2 tmpfs; ", "/"},
	{"one on another", BASE, ADMIN, SPACE, "", BASE_ "93 12 0:93 / /dev rw - tmpfs tmpfs rw\n",
	 NULL, "own /dev tmpfs; ", "/"},
	{"a name with blanks and lines", BASE, ADMIN, SPACE, "",
	 BASE_ "93 12 0:93 / /a\\040b\\012c rw - tmpfs tmpfs rw\n", NULL, "own /a b\nc tmpfs; ",
	 "/"},
	{"others' mounts", BASE, ADMIN, "\"namespaces\": [{\"type\": \"pid\"}]", "", BASE_ OWN(1),
	 NULL, "", "/"},
	{"a mount namespace that it has joined", BASE, ADMIN,
	 "\"namespaces\": [{\"type\": \"mount\", \"path\": \"/x\"}]", "", BASE_ OWN(1), NULL, "",
	 "/"},

	/* Links of the image. */
	{"the last one by a link", BASE ", " FILE_("/var/run/s"), ADMIN, SPACE, "",
	 BASE_ "13 10 8:2 /src /run/s rw - ext4 /dev/sdb rw\n", NULL, "", "/"},
	{"and its own behind it", BASE ", " FILE_("/var/run/s"), ADMIN, SPACE, "",
	 BASE_ "13 10 8:2 /src /run/s rw - ext4 /dev/sdb rw\n" OWN(1), NULL, "own /own1 tmpfs; ",
	 "/"},
	{"one by a link before others", FILE_("/var/run/s") ", " BASE, ADMIN, SPACE, "",
	 ROOT "13 10 8:2 /src /run/s rw - ext4 /dev/sdb rw\n" PROC_ DEV_ OWN(1), NULL,
	 "own /own1 tmpfs; ", "/"},
	{"a tree by a link", BASE ", " BIND("/var/run/s"), ADMIN, SPACE, "",
	 BASE_ "13 10 8:2 /src /run/s ro - ext4 /dev/sdb rw\n"
	       "14 13 8:3 / /run/s/sub ro - ext4 /dev/sdc rw\n",
	 NULL, "", "/"},
	{"a masked path by a link", BASE, ADMIN, SPACE ", \"maskedPaths\": [\"/var/run/s\"]", "",
	 BASE_ "13 10 0:6 /null /run/s ro - devtmpfs devtmpfs rw\n", NULL, "", "/"},
	{"a link that is no mount",
	 BASE ", {\"destination\": \"/l\", \"type\": \"bind\", \"source\": \"/s\", \"options\": "
	      "[\"bind\", \"copy-symlink\"]}",
	 ADMIN, SPACE, "", BASE_ OWN(1), NULL, "own /own1 tmpfs; ", "/"},

	/* Trees. */
	{"what the host has below a bind", BASE ", " BIND("/data"), ADMIN, SPACE, "",
	 BASE_ "13 10 8:2 /src /data ro - ext4 /dev/sdb rw\n"
	       "14 13 8:3 / /data/sub ro - ext4 /dev/sdc rw\n",
	 "40 1 8:3 / /src/sub rw - ext4 /dev/sdc rw\n", "", "/"},
	{"what it has below a bind itself", BASE ", " BIND("/data"), ADMIN, SPACE, "",
	 BASE_ "13 10 8:2 /src /data ro - ext4 /dev/sdb rw\n"
	       "14 13 0:77 / /data/sub rw - tmpfs tmpfs rw\n",
	 "40 1 8:3 / /src/sub rw - ext4 /dev/sdc rw\n", "own /data/sub tmpfs; ", "/"},
	{"what lies below a bind, and others behind it", BIND("/data") ", " BASE, ADMIN, SPACE, "",
	 ROOT "13 10 8:2 /src /data ro - ext4 /dev/sdb rw\n"
	      "14 13 8:3 / /data/sub ro - ext4 /dev/sdc rw\n" PROC_ DEV_ OWN(1),
	 NULL, "own /own1 tmpfs; ", "/"},
	{"a mount in a tree, whose parts go on", BIND("/data") ", " FILE_("/data/x"), ADMIN, SPACE,
	 "",
	 ROOT "13 10 8:2 /src /data ro - ext4 /dev/sdb rw\n"
	      "14 13 8:3 / /data/x ro - ext4 /dev/sdc rw\n"
	      "15 13 8:4 / /data/y ro - ext4 /dev/sdd rw\n"
	      "16 14 8:2 /src /data/x rw - ext4 /dev/sdb rw\n",
	 "40 1 8:3 / /src/x rw - ext4 /dev/sdc rw\n41 1 8:4 / /src/y rw - ext4 /dev/sdc rw\n"
	 "42 1 8:2 / /src rw - ext4 /dev/sdc rw\n",
	 "", "/"},
	{"cgroup v1", BASE ", " CGROUP, ADMIN, SPACE, "",
	 BASE_ "13 10 0:52 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
	       "14 13 0:21 /c /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	       "15 13 0:22 /c /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu\n" OWN(1),
	 "30 1 0:21 / /sys/fs/cgroup/memory rw - cgroup cgroup rw\n"
	 "31 1 0:22 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw\n",
	 "own /own1 tmpfs; ", "/"},
	{"cgroup v1, and a bind on one of its hierarchies",
	 CGROUP ", " BASE ", " FILE_("/sys/fs/cgroup/systemd"), ADMIN, SPACE, "",
	 ROOT "13 10 0:52 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
	      "14 13 0:21 /c /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	      "15 13 0:22 /c /sys/fs/cgroup/systemd rw - cgroup cgroup rw,cpu\n" PROC_ DEV_
	      "16 15 0:22 /c /sys/fs/cgroup/systemd rw - cgroup cgroup rw,cpu\n" OWN(1),
	 NULL, "own /own1 tmpfs; ", "/"},
	{"cgroup v2", BASE ", " CGROUP, ADMIN, SPACE, "",
	 BASE_ "13 10 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n" OWN(1), NULL,
	 "own /own1 tmpfs; ", "/"},
	{"a tree that becomes read-only", BASE, ADMIN, SPACE ", \"readonlyPaths\": [\"/proc/sys\"]",
	 "",
	 BASE_ "13 11 0:50 /sys /proc/sys ro - proc proc rw\n"
	       "14 13 0:60 / /proc/sys/fs/binfmt_misc ro - binfmt_misc b rw\n",
	 "50 1 0:60 / /proc/sys/fs/binfmt_misc rw - binfmt_misc b rw\n", "", "/"},

	{"one that has what was masked and read-only before", BASE, ADMIN,
	 SPACE ", \"maskedPaths\": [\"/proc/acpi\"], \"readonlyPaths\": [\"/proc/sys\", \"/proc\"]",
	 "",
	 BASE_ "13 11 0:53 / /proc/acpi ro - tmpfs tmpfs ro\n"
	       "14 11 0:50 /sys /proc/sys ro - proc proc rw\n"
	       "15 11 0:50 / /proc ro - proc proc rw\n"
	       "16 15 0:53 / /proc/acpi ro - tmpfs tmpfs ro\n"
	       "17 15 0:50 /sys /proc/sys ro - proc proc rw\n",
	 "", "", "/"},
	{"one whose parts go on behind another tree in it", BASE ", " CGROUP, ADMIN,
	 SPACE ", \"readonlyPaths\": [\"/sys/firmware\", \"/sys\"]", "",
	 BASE_ "13 10 0:55 /firmware /sys/firmware ro - sysfs sysfs rw\n"
	       "14 10 0:55 / /sys ro - sysfs sysfs rw\n"
	       "15 14 0:52 / /sys/fs/cgroup ro - tmpfs tmpfs rw\n"
	       "16 15 0:21 /c /sys/fs/cgroup/cpu ro - cgroup cgroup rw\n"
	       "17 14 0:55 /firmware /sys/firmware ro - sysfs sysfs rw\n",
	 "30 1 0:21 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw\n", "", "/"},
	{"and then others", BASE, ADMIN, SPACE ", \"readonlyPaths\": [\"/proc\"]", "",
	 BASE_ "15 11 0:50 / /proc ro - proc proc rw\n"
	       "16 15 0:54 / /proc/acpi rw - tmpfs tmpfs rw\n",
	 "", "own /proc/acpi tmpfs; ", "/"},
	{"the kernel's own links", BASE, ADMIN,
	 SPACE ", \"maskedPaths\": [\"/proc/net\", \"/proc/self/fd\"], "
	       "\"readonlyPaths\": [\"/proc/mounts\", \"/proc/thread-self\"]",
	 "",
	 BASE_ "13 11 0:53 / /proc/1/net ro - tmpfs tmpfs ro\n"
	       "14 11 0:53 / /proc/1/fd ro - tmpfs tmpfs ro\n"
	       "15 11 0:50 /1/mounts /proc/1/mounts ro - proc proc rw\n"
	       "16 11 0:50 /1/task/1 /proc/1/task/1 ro - proc proc rw\n" OWN(1),
	 "", "own /own1 tmpfs; ", "/"},
	{"what only looks like one", BASE, ADMIN, SPACE ", \"maskedPaths\": [\"/proc/selfish\"]",
	 "", BASE_ OWN(1), NULL, "own /own1 tmpfs; ", "/"},

	/* What the runtime makes by itself. */
	{"a terminal, devices, readiness", BASE, ADMIN ", \"terminal\": true",
	 USER ", \"devices\": [{\"path\": \"/dev/fuse\", \"type\": \"c\", \"major\": 10, "
	      "\"minor\": 229}]",
	 "",
	 BASE_ "13 12 0:6 /null /dev/null rw - devtmpfs d rw\n"
	       "14 12 0:6 /tty /dev/tty rw - devtmpfs d rw\n"
	       "15 12 0:70 /fuse /dev/fuse rw - tmpfs t rw\n"
	       "16 12 0:71 /0 /dev/console rw - devpts devpts rw\n"
	       "17 10 0:72 /n /run/notify rw - tmpfs t rw\n",
	 NULL, "", "/"},
	{"a console without a terminal", BASE, ADMIN, SPACE, "",
	 BASE_ "16 12 0:71 /0 /dev/console rw - devpts devpts rw\n", NULL,
	 "own /dev/console devpts; ", "/"},
	{"masked paths, the first of which is older than all", BASE, ADMIN,
	 SPACE ", \"maskedPaths\": [\"/proc/keys\", \"/proc/none\", \"/proc/acpi\"]", "",
	 ROOT "13 11 0:6 /null /proc/keys ro - devtmpfs d rw\n" PROC_ DEV_
	      "14 11 0:53 / /proc/acpi ro - tmpfs tmpfs ro\n" OWN(1),
	 NULL, "own /own1 tmpfs; ", "/"},

	/* Hooks. */
	{"Docker's", BASE, ADMIN, SPACE,
	 ", \"hooks\": {\"prestart\": [{\"path\": \"/proc/7/exe\", \"args\": "
	 "[\"libnetwork-setkey\", \"x\"]}]}",
	 BASE_ OWN(1), NULL, "own /own1 tmpfs; ", "/"},
	{"others", BASE, ADMIN, SPACE, ", \"hooks\": {\"prestart\": [{\"path\": \"/h\"}]}",
	 BASE_ OWN(1), NULL, "", "/"},
	{"others, and protected paths behind them", BASE, ADMIN,
	 SPACE ", \"readonlyPaths\": [\"/proc/sys\"]",
	 ", \"hooks\": {\"createContainer\": [{\"path\": \"/h\"}]}",
	 BASE_ OWN(1) "14 11 0:50 /sys /proc/sys ro - proc proc rw\n" OWN(2), NULL,
	 "own /own2 tmpfs; ", "/"},
	{"others, and a cover that may be older", BASE, ADMIN,
	 SPACE ", \"maskedPaths\": [\"/proc/keys\"]",
	 ", \"hooks\": {\"createRuntime\": [{\"path\": \"/h\"}]}",
	 ROOT "13 11 0:6 /null /proc/keys ro - devtmpfs d rw\n" PROC_ DEV_ OWN(1), NULL, "", "/"},
	{"the last of all", BASE, ADMIN, SPACE ", \"readonlyPaths\": [\"/proc/sys\"]",
	 ", \"hooks\": {\"startContainer\": [{\"path\": \"/h\"}]}",
	 BASE_ "14 11 0:50 /sys /proc/sys ro - proc proc rw\n" OWN(1), NULL, "", "/"},

	/* Peers. */
	{"what came from the host", BASE ", " BIND("/data"), ADMIN, SPACE, "",
	 BASE_ "13 10 8:2 /src /data ro master:7 - ext4 /dev/sdb rw\n"
	       "14 13 8:3 / /data/usb ro master:9 - vfat /dev/sdc rw\n" OWN(
		       1) "15 13 8:4 / /data/two ro master:11 - vfat /dev/sdd rw\n",
	 "", "own /own1 tmpfs; ", "/"},
	{"a bind of its root", BASE, ADMIN, SPACE, "",
	 BASE_ "14 13 8:1 /b/rootfs/x /y rw master:3 - ext4 /dev/sda rw\n", NULL, "own /y ext4; ",
	 "/"},
	{"on a mount that it shares", BASE ", " BIND("/data"), ADMIN, SPACE, "",
	 BASE_ "13 10 8:2 /src /data ro shared:7 - ext4 /dev/sdb rw\n" OWN(
		 1) "14 13 8:3 / /data/both ro shared:9 - ext4 /dev/sdc rw\n"
		    "15 13 8:3 / /data/alone ro shared:8 - ext4 /dev/sdc rw\n",
	 "40 1 8:3 / /src/both rw shared:9 - ext4 /dev/sdc rw\n",
	 "own /own1 tmpfs; own /data/alone ext4; ", "/"},

	/* Who may not mount. */
	{"by exec --cap", BASE, "", SPACE, "", BASE_ OWN(1), NULL, "own /own1 tmpfs; ", "/"},
	{"where a link is not told", BASE ", " FILE_("/var/run/s"), "", SPACE, "",
	 BASE_ "13 10 8:2 /src /run/s rw - ext4 /dev/sdb rw\n" OWN(1), NULL, "", "/"},
	{"what is not there is not told", BASE ", " FILE_("/f"), "", SPACE, "", BASE_, NULL, "",
	 "/"},

	/* What is gone, and other flags. */
	{"gone", BASE ", " FILE_("/f"), ADMIN, SPACE, "", BASE_, NULL, "gone /f; ", "/"},
	{"a place that is deleted", BASE ", " FILE_("/f"), ADMIN, SPACE, "",
	 BASE_ "13 10 8:2 /src /f//deleted rw - ext4 /dev/sdb rw\n", NULL, "", "/"},
	{"maybe by a link, which is in a tree", BIND("/run") ", " BASE ", " FILE_("/var/run/s"),
	 ADMIN, SPACE, "",
	 ROOT "13 10 8:2 /src /run ro - ext4 /dev/sdb rw\n"
	      "14 13 8:2 /src /run/s rw - ext4 /dev/sdb rw\n" PROC_ DEV_,
	 NULL, "", "/"},
	{"below a mount on the root",
	 BASE ", {\"destination\": \"/\", \"type\": \"bind\", \"source\": \"/s\", \"options\": "
	      "[\"bind\"]}",
	 ADMIN, SPACE, "", ROOT, NULL, "", "/"},
	{"writable", BASE ", " BIND("/data"), ADMIN, SPACE ", \"readonlyPaths\": [\"/proc/sys\"]",
	 ", \"root\": {\"path\": \"r\", \"readonly\": true}",
	 BASE_ "13 10 8:2 /src /data rw,nosuid - ext4 /dev/sdb rw\n"
	       "14 11 0:50 /sys /proc/sys rw - proc proc rw\n",
	 NULL, "flags /data; flags /proc/sys; flags /; ", "/"},
	{"read-only as a file system",
	 BASE ", {\"destination\": \"/t\", \"type\": \"tmpfs\", \"source\": \"tmpfs\", "
	      "\"options\": [\"ro\", \"nosuid\", \"suid\"]}",
	 ADMIN, SPACE, "", BASE_ "13 10 0:80 / /t rw - tmpfs tmpfs ro,size=4k\n", NULL, "", "/"},
	{"changed by config.json itself",
	 BASE ", " BIND("/data") ", {\"destination\": \"/data\", \"type\": \"bind\", \"source\": "
				 "\"\", \"options\": [\"remount\", \"rw\"]}",
	 ADMIN, SPACE, "", BASE_ "13 10 8:2 /src /data rw - ext4 /dev/sdb rw\n", NULL, "", "/"},

	/* A root by chroot. */
	{"below another root", BASE ", " FILE_("/c/f") ", " FILE_("/c"), ADMIN, SPACE, "",
	 "14 10 8:2 / / rw - ext4 /dev/sdb rw\n13 10 8:2 /src /f rw - ext4 /dev/sdb rw\n" OWN(1),
	 NULL, "own /own1 tmpfs; ", "/c"},
	{"a mount of its own as its root", BASE, ADMIN, SPACE, "",
	 "91 10 0:91 / / rw - tmpfs tmpfs rw\n", NULL, "own /own1 tmpfs; ", "/own1"},
	{"one that a link has led there", BASE ", " BIND("/var/run/s"), ADMIN, SPACE, "",
	 "13 10 8:2 /src / rw - ext4 /dev/sdb rw\n", NULL, "", "/run/s"},
	{"what is in a tree of it", BASE ", " BIND("/var/run/s"), ADMIN, SPACE, "",
	 "13 10 8:2 /src / rw - ext4 /dev/sdb rw\n", NULL, "", "/run/s/sub"},
	{"its own, and not what is on all of it",
	 "{\"destination\": \"/\", \"type\": \"bind\", \"source\": \"/s\", \"options\": "
	 "[\"bind\"]}",
	 ADMIN, SPACE, "", "91 10 0:91 / / rw - tmpfs tmpfs rw\n", NULL, "own /own1 tmpfs; ",
	 "/own1"},
	{"no mount at all", BASE, ADMIN, SPACE, "", "", NULL, "", "/deep"},
};

static struct lr_checkpoint_mount *cut(const char *info, struct lr_arena *a, size_t *n)
{
	struct lr_checkpoint_mount *v = NULL;

	CHECK_INT(lr_checkpoint_mountinfo(lr_strdup(a, info), a, &v, n, NULL), 0);
	return v;
}

static const char *text_of(const struct lr_mounted *m, struct lr_arena *a)
{
	static const char *const words[] = {[LR_MOUNTED_OWN] = "own ",
					    [LR_MOUNTED_GONE] = "gone ",
					    [LR_MOUNTED_FLAGS] = "flags "};
	const char *text = "";

	for (size_t i = 0; i < m->n; i++)
		text = lr_concat(a, text, words[m->v[i].what], m->v[i].point,
				 m->v[i].type ? " " : "", m->v[i].type ? m->v[i].type : "", "; ",
				 NULL);
	return text;
}

TEST(what_config_json_does_not_explain_is_the_containers_own)
{
	for (size_t i = 0; i < LR_ARRAY_SIZE(cases); i++) {
		LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
		const struct c *c = &cases[i];
		struct lr_mounted_found f = {.root = c->root};
		const struct oci_config *config;
		struct lr_mounted m;
		struct lr_err err = {0};
		const char *json = lr_concat(
			a, "{\"ociVersion\": \"1.0.0\", \"mounts\": [", c->mounts,
			"], \"process\": {\"cwd\": \"/\", \"user\": {\"uid\": 0, "
			"\"gid\": 0}, \"args\": [\"x\"]",
			*c->process ? ", " : "", c->process, "}, ",
			strstr(c->more, "\"root\"") ? "" : "\"root\": {\"path\": \"r\"}, ",
			"\"linux\": {", c->linux_, "}", c->more, "}", NULL);

		if (oci_config_decode(json, strlen(json), a, &config, &err) < 0)
			printf("# %s: %s %s\n", c->what, err.msg, json);
		REQUIRE(!err.code);
		f.mounts = cut(c->info, a, &f.n);
		REQUIRE(lr_checkpoint_mounted(config, &f, a, &m, NULL) == 0);
		if (m.ask && c->host) {
			f.host = cut(c->host, a, &f.n_host);
			if (!f.host)
				f.host = f.mounts;
			REQUIRE(lr_checkpoint_mounted(config, &f, a, &m, NULL) == 0);
		}
		const char *text = text_of(&m, a);
		if (!lr_streq(text, c->expect))
			printf("# %s\n", c->what);
		CHECK_STR(text, c->expect);
	}
}

/* As many as a mount namespace may have (fs.mount-max), each in a group of its own. */
TEST(a_hundred_thousand_mounts_take_no_time)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct oci_namespace space = {.type = "mount"};
	struct oci_linux l = {.namespaces = {.v = &space, .n = 1}};
	const char *caps[] = {"CAP_SYS_ADMIN"};
	struct oci_capabilities c = {.bounding = {.v = caps, .n = 1}};
	struct oci_process p = {.capabilities = &c};
	const struct oci_config config = {.linux_ = &l, .process = &p};
	const size_t n = 100000;
	struct lr_checkpoint_mount *v = lr_new_n(a, n, struct lr_checkpoint_mount);
	struct lr_mounted m;

	REQUIRE(v);
	for (size_t i = 0; i < n; i++)
		v[i] = (struct lr_checkpoint_mount){.id = (int)i,
						    .device = "0:1",
						    .root = "/",
						    .point = i ? "/x" : "/",
						    .type = "tmpfs",
						    .options = "rw",
						    .peers = (uint32_t)i + 1};
	const struct lr_mounted_found f = {
		.mounts = v, .n = n, .root = "/", .host = v, .n_host = n / 2};
	REQUIRE(lr_checkpoint_mounted(&config, &f, a, &m, NULL) == 0);
	CHECK_INT(m.n, n / 2);
}
