/* SPDX-License-Identifier: Apache-2.0 */
/* caps: the names of <linux/capability.h> by number; checked against libcap in the unit test. */
#define LR_ROOM "caps"
#include "src/caps/caps.h"

#include <errno.h>
#include <strings.h>

#include "src/base/str.h"

static const char *const names[] = {
	"CAP_CHOWN",
	"CAP_DAC_OVERRIDE",
	"CAP_DAC_READ_SEARCH",
	"CAP_FOWNER",
	"CAP_FSETID",
	"CAP_KILL",
	"CAP_SETGID",
	"CAP_SETUID",
	"CAP_SETPCAP",
	"CAP_LINUX_IMMUTABLE",
	"CAP_NET_BIND_SERVICE",
	"CAP_NET_BROADCAST",
	"CAP_NET_ADMIN",
	"CAP_NET_RAW",
	"CAP_IPC_LOCK",
	"CAP_IPC_OWNER",
	"CAP_SYS_MODULE",
	"CAP_SYS_RAWIO",
	"CAP_SYS_CHROOT",
	"CAP_SYS_PTRACE",
	"CAP_SYS_PACCT",
	"CAP_SYS_ADMIN",
	"CAP_SYS_BOOT",
	"CAP_SYS_NICE",
	"CAP_SYS_RESOURCE",
	"CAP_SYS_TIME",
	"CAP_SYS_TTY_CONFIG",
	"CAP_MKNOD",
	"CAP_LEASE",
	"CAP_AUDIT_WRITE",
	"CAP_AUDIT_CONTROL",
	"CAP_SETFCAP",
	"CAP_MAC_OVERRIDE",
	"CAP_MAC_ADMIN",
	"CAP_SYSLOG",
	"CAP_WAKE_ALARM",
	"CAP_BLOCK_SUSPEND",
	"CAP_AUDIT_READ",
	"CAP_PERFMON",            /* 5.8 */
	"CAP_BPF",                /* 5.8 */
	"CAP_CHECKPOINT_RESTORE", /* 5.9 */
};

const char *lr_caps_name(int cap)
{
	return cap >= 0 && (size_t)cap < LR_ARRAY_SIZE(names) ? names[cap] : NULL;
}

int lr_caps_parse(const char *name, struct lr_err *err)
{
	const char *word = strncasecmp(name, "CAP_", 4) == 0 ? name + 4 : name;

	for (size_t i = 0; i < LR_ARRAY_SIZE(names); i++)
		if (strcasecmp(names[i] + 4, word) == 0)
			return (int)i;
	lr_refuse(err, EINVAL, "unknown capability \"%s\"", name);
	return lr_err_hint(err, "'lean-runtime features' lists the names");
}

size_t lr_caps_names(const char **v, size_t n)
{
	size_t count = (size_t)lr_caps_last() + 1;

	if (count > LR_ARRAY_SIZE(names))
		count = LR_ARRAY_SIZE(names);
	for (size_t i = 0; i < count && i < n; i++)
		v[i] = names[i];
	return count;
}
