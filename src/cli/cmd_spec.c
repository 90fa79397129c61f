/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli: spec. The default configuration has the content that runc's has (an interactive sh with
 * three capabilities in five or six namespaces), so that what is written about the one holds for
 * the other; but for its ambient set, which has no effect while nothing is inheritable.
 */
#define LR_ROOM "spec"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libocispec/ocispec.h"
#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/cgroup/cgroup.h"
#include "src/cli/args.h"
#include "src/cli/buf.h"
#include "src/cli/commands.h"

#define STRV(...)                                                                                  \
	{                                                                                          \
		.v = (const char *[]){__VA_ARGS__, NULL},                                          \
		.n = LR_ARRAY_SIZE(((const char *[]){__VA_ARGS__}))                                \
	}
#define CAPS STRV("CAP_AUDIT_WRITE", "CAP_KILL", "CAP_NET_BIND_SERVICE")

static const struct oci_capabilities capabilities = {
	.bounding = CAPS, .effective = CAPS, .permitted = CAPS};

static struct oci_rlimit rlimits[] = {{.type = "RLIMIT_NOFILE", .hard = 1024, .soft = 1024}};

static const struct oci_process process = {
	.terminal = true,
	.args = STRV("sh"),
	.env = STRV("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		    "TERM=xterm"),
	.cwd = "/",
	.capabilities = &capabilities,
	.rlimits = {.v = rlimits, .n = LR_ARRAY_SIZE(rlimits)},
	.no_new_privileges = true,
};

static const struct oci_root root = {.path = "rootfs", .readonly = true};

enum { MOUNT_DEVPTS = 2, MOUNT_SYS = 5 };
static const struct oci_mount mounts[] = {
	{.destination = "/proc", .type = "proc", .source = "proc"},
	{.destination = "/dev",
	 .type = "tmpfs",
	 .source = "tmpfs",
	 .options = STRV("nosuid", "strictatime", "mode=755", "size=65536k")},
	[MOUNT_DEVPTS] = {.destination = "/dev/pts",
			  .type = "devpts",
			  .source = "devpts",
			  .options = STRV("nosuid", "noexec", "newinstance", "ptmxmode=0666",
					  "mode=0620", "gid=5")},
	{.destination = "/dev/shm",
	 .type = "tmpfs",
	 .source = "shm",
	 .options = STRV("nosuid", "noexec", "nodev", "mode=1777", "size=65536k")},
	{.destination = "/dev/mqueue",
	 .type = "mqueue",
	 .source = "mqueue",
	 .options = STRV("nosuid", "noexec", "nodev")},
	[MOUNT_SYS] = {.destination = "/sys",
		       .type = "sysfs",
		       .source = "sysfs",
		       .options = STRV("nosuid", "noexec", "nodev", "ro")},
	{.destination = "/sys/fs/cgroup",
	 .type = "cgroup",
	 .source = "cgroup",
	 .options = STRV("nosuid", "noexec", "nodev", "relatime", "ro")},
};

static const struct oci_strv masked_paths =
	STRV("/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
	     "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/sys/firmware",
	     "/proc/scsi");
static const struct oci_strv readonly_paths =
	STRV("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger");

static struct oci_device_cgroup no_devices[] = {{.allow = false, .access = "rwm"}};
static const struct oci_resources resources = {
	.devices = {.v = no_devices, .n = LR_ARRAY_SIZE(no_devices)}};

static const struct oci_strv rootless_devpts =
	STRV("nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620");
static const struct oci_strv rootless_sys = STRV("rbind", "nosuid", "noexec", "nodev", "ro");

static void add_namespace(struct oci_namespaces *list, const char *type)
{
	list->v[list->n++].type = type;
}

/*
 * Without privileges: a user namespace with the one id the caller owns, the host's network (a new
 * one would have nobody to configure it), no limits, no group that is not mapped, and /sys bound
 * from the host, because sysfs can only be mounted by the owner of a network namespace.
 */
static void make_rootless(struct oci_linux *l, struct oci_mount *m, struct oci_id_mapping *ids)
{
	add_namespace(&l->namespaces, "user");
	ids[0] = (struct oci_id_mapping){.host_id = geteuid(), .size = 1};
	ids[1] = (struct oci_id_mapping){.host_id = getegid(), .size = 1};
	l->uid_mappings.v = &ids[0];
	l->gid_mappings.v = &ids[1];
	l->uid_mappings.n = l->gid_mappings.n = 1;
	l->resources = NULL;
	m[MOUNT_DEVPTS].options = rootless_devpts;
	m[MOUNT_SYS].type = "none";
	m[MOUNT_SYS].source = "/sys";
	m[MOUNT_SYS].options = rootless_sys;
}

static char *default_config(bool rootless, struct lr_arena *arena, size_t *len)
{
	struct oci_mount m[LR_ARRAY_SIZE(mounts)];
	struct oci_namespace ns[8] = {0};
	struct oci_id_mapping ids[2];
	struct oci_linux l = {
		.namespaces = {.v = ns},
		.resources = &resources,
		.masked_paths = masked_paths,
		.readonly_paths = readonly_paths,
	};
	const struct oci_config c = {
		.oci_version = OCI_VERSION,
		.root = &root,
		.process = &process,
		.hostname = LR_CLI_NAME,
		.mounts = {.v = m, .n = LR_ARRAY_SIZE(m)},
		.linux_ = &l,
	};

	memcpy(m, mounts, sizeof(m));
	add_namespace(&l.namespaces, "pid");
	if (!rootless)
		add_namespace(&l.namespaces, "network");
	add_namespace(&l.namespaces, "ipc");
	add_namespace(&l.namespaces, "uts");
	add_namespace(&l.namespaces, "mount");
	if (lr_cgroup_is_v2())
		add_namespace(&l.namespaces, "cgroup");
	if (rootless)
		make_rootless(&l, m, ids);
	return oci_config_encode(&c, true, arena, len);
}

static int write_config(const char *bundle, const char *file, const char *text, size_t len,
			struct lr_err *err)
{
	LR_CLEANUP_FD int dir = lr_open(bundle, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return lr_fail(err, errno, "open bundle %s", bundle);
	LR_CLEANUP_FD int fd = openat(dir, file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0 && errno == EEXIST)
		return lr_refuse(err, EEXIST, "file %s exists. Remove it first", file);
	if (fd < 0)
		return lr_fail(err, errno, "create %s in %s", file, bundle);
	ssize_t r = lr_write_full(fd, text, len);
	if (r < 0) {
		(void)unlinkat(dir, file, 0); /* half a file would be in the way of the next try */
		return lr_fail(err, (int)-r, "write %s", file);
	}
	return 0;
}

int lr_cmd_spec(const struct lr_cli_args *args, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
	const char *bundle = lr_cli_str(args, LR_OPT_BUNDLE), *file = lr_cli_str(args, LR_OPT_FILE);
	bool rootless = false;
	size_t len = 0;

	/* The global --rootless has the same id and says nothing here. */
	for (size_t i = 0; i < args->n_values; i++)
		if (args->values[i].opt->id == LR_OPT_ROOTLESS &&
		    args->values[i].opt->kind == LR_KIND_FLAG)
			rootless = lr_streq(args->values[i].text, "true");

	char *text = arena ? default_config(rootless, arena, &len) : NULL;
	if (!text)
		return lr_fail(err, ENOMEM, "default configuration");
	text[len++] = '\n'; /* in the place of the NUL */
	if (file && lr_streq(file, "-"))
		return lr_cli_print(text, len, err);
	return write_config(bundle ? bundle : ".", file ? file : "config.json", text, len, err);
}
