/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup: the lines of /proc/PID/cgroup: "4:memory:/user/x", "1:name=systemd:/", "0::/". */
#define LR_ROOM "cgroup"

#include "src/cgroup/internal.h"

int lr_cgroup_text(pid_t pid, struct lr_arena *arena, char **ret, struct lr_err *err)
{
	char dir[32];

	snprintf(dir, sizeof(dir), "/proc/%d", pid);
	errno = ENOMEM;
	*ret = lr_cgroup_slurp(arena, dir, "cgroup");
	return *ret ? 0 : lr_fail(err, errno, "read %s/cgroup", dir);
}

int lr_cgroup_line(char **text, struct lr_cgroup_line *ret, struct lr_err *err)
{
	char *line = *text ? strsep(text, "\n") : NULL;

	if (!line || !*line)
		return 0;
	(void)strsep(&line, ":");
	ret->hierarchy = strsep(&line, ":");
	ret->path = line;
	if (!line || line[0] != '/')
		return lr_refuse(err, EPROTO, "a line of /proc/PID/cgroup is not understood");
	return 1;
}
