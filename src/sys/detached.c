/* SPDX-License-Identifier: Apache-2.0 */
/* sys: a file system that is mounted nowhere; see detached.h. */
#include "src/sys/detached.h"

#include <stddef.h>
#include <sys/mount.h>

#include "src/base/fd.h"
#include "src/sys/syscalls.h"

int lr_detached_open(const char *type, const char *mode, unsigned attributes)
{
	LR_CLEANUP_FD int fs = lr_fsopen(type, FSOPEN_CLOEXEC);
	int r = fs < 0 ? fs : 0;

	if (r >= 0 && mode)
		r = lr_fsconfig(fs, FSCONFIG_SET_STRING, "mode", mode, 0);
	if (r >= 0)
		r = lr_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
	return r < 0 ? r : lr_fsmount(fs, FSMOUNT_CLOEXEC, attributes);
}
