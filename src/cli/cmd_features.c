/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli: features (features.md, features-linux.md): what this program can do, whatever the host it
 * runs on. Each list comes from the room that implements it.
 */
#define LR_ROOM "features"
#include <errno.h>

#include "libocispec/ocispec.h"
#include "src/base/str.h"
#include "src/caps/caps.h"
#include "src/cli/args.h"
#include "src/cli/buf.h"
#include "src/cli/commands.h"
#include "src/cli/help.h"
#include "src/limits/limits.h"
#include "src/mount/mount.h"
#include "src/ns/ns.h"
#include "src/seccomp/seccomp.h"

#define STRV(...)                                                                                  \
	{                                                                                          \
		.v = (const char *[]){__VA_ARGS__, NULL},                                          \
		.n = LR_ARRAY_SIZE(((const char *[]){__VA_ARGS__}))                                \
	}

static const struct oci_strv hooks = STRV("prestart", "createRuntime", "createContainer",
					  "startContainer", "poststart", "poststop");

/* Annotations that change what the runtime does. One that ends in a dot stands for all that begin
 * with it. */
static const struct oci_strv unsafe_annotations =
	STRV("org.lean-runtime.bounding", "org.lean-runtime.cgroup", "org.lean-runtime.image",
	     "org.lean-runtime.mounts", "org.lean-runtime.network", "org.lean-runtime.profile",
	     "org.lean-runtime.rootfs", "org.lean-runtime.tmpfs", "org.lean.seed",
	     "org.lean.seed.fetch", "org.systemd.property.", "run.oci.");

static struct oci_strv list(const char *const *v)
{
	size_t n = 0;

	while (v[n])
		n++;
	return (struct oci_strv){.v = (const char **)v, .n = n};
}

static struct oci_strv counted(const char *const *v, size_t n)
{
	return (struct oci_strv){.v = (const char **)v, .n = n};
}

static int namespaces(struct lr_arena *a, struct oci_strv *ret)
{
	const char **v = lr_new_n(a, LR_NS_KINDS + 1, const char *);

	if (!v)
		return -ENOMEM;
	for (int kind = 0; kind < LR_NS_KINDS; kind++)
		v[kind] = lr_ns_name((enum lr_ns_kind)kind);
	*ret = counted(v, LR_NS_KINDS);
	return 0;
}

static int capabilities(struct lr_arena *a, struct oci_strv *ret)
{
	const char **v = lr_new_n(a, 65, const char *);

	if (!v)
		return -ENOMEM;
	*ret = counted(v, lr_caps_names(v, 64));
	return 0;
}

static int annotations(struct lr_arena *a, struct oci_map *ret)
{
	const struct oci_pair pairs[] = {
		{"org.lean-runtime.version", LR_VERSION},
		{"org.lean-runtime.commit", lr_cli_commit()},
		{"org.lean-runtime.checkpoint.enabled", "true"},
	};
	struct oci_pair *v = lr_new_n(a, LR_ARRAY_SIZE(pairs), struct oci_pair);

	if (!v)
		return -ENOMEM;
	memcpy(v, pairs, sizeof(pairs));
	ret->v = v;
	ret->n = LR_ARRAY_SIZE(pairs);
	return 0;
}

/* knownFlags: of the specification; supportedFlags: what this kernel takes, too. */
static int seccomp(struct lr_arena *a, struct oci_features_seccomp *ret)
{
	*ret = (struct oci_features_seccomp){
		.enabled = true,
		.actions = list(lr_seccomp_actions),
		.operators = list(lr_seccomp_operators),
		.archs = list(lr_seccomp_archs),
		.known_flags = list(lr_seccomp_flags),
	};
	const char **v = lr_new_n(a, ret->known_flags.n + 1, const char *);
	if (!v)
		return -ENOMEM;
	size_t n = 0;
	for (size_t i = 0; i < ret->known_flags.n; i++)
		if (lr_seccomp_flag_supported(lr_seccomp_flags[i]))
			v[n++] = lr_seccomp_flags[i];
	ret->supported_flags = counted(v, n);
	return 0;
}

int lr_cmd_features(const struct lr_cli_args *args, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
	struct oci_features f = {
		.oci_version_min = OCI_VERSION_MIN,
		.oci_version_max = OCI_VERSION,
		.hooks = hooks,
		.linux_ =
			{
				.cgroup = {.v1 = true,
					   .v2 = true,
					   .systemd = true,
					   .systemd_user = true,
					   .rdma = true},
				.apparmor_enabled = true,
				.selinux_enabled = true,
				.intel_rdt = {.enabled = true,
					      .schemata = true,
					      .monitoring = true},
				.memory_policy = {.modes = list(lr_limits_mempolicy_modes),
						  .flags = list(lr_limits_mempolicy_flags)},
				.idmap_enabled = true,
				.net_devices_enabled = true,
			},
		.potentially_unsafe_config_annotations = unsafe_annotations,
	};
	LR_CLEANUP_BUF struct lr_cli_buf out = {0};

	if (!arena)
		return lr_fail(err, ENOMEM, "lists");
	f.mount_options.v = (const char **)lr_mount_option_names(&f.mount_options.n);
	if (seccomp(arena, &f.linux_.seccomp) < 0 || namespaces(arena, &f.linux_.namespaces) < 0 ||
	    capabilities(arena, &f.linux_.capabilities) < 0 ||
	    annotations(arena, &f.annotations) < 0)
		return lr_fail(err, ENOMEM, "lists");
	const char *text = oci_features_encode(&f, true, arena, NULL);
	if (!text)
		return lr_fail(err, ENOMEM, "JSON");
	lr_cli_put(&out, "%s\n", text);
	return lr_cli_flush(&out, err);
}
