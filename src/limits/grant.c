/* SPDX-License-Identifier: Apache-2.0 */
/* limits: what only CAP_SYS_RESOURCE of the initial user namespace may raise; see limits.h. */
#define LR_ROOM "limits"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/limits/limits.h"
#include "src/sys/procfs.h"

static void grant_rlimit(const struct lr_limits_rlimit *l, pid_t pid)
{
	uint64_t now[2];

	if (syscall(SYS_prlimit64, pid, l->resource, NULL, now) < 0 || l->hard <= now[1])
		return;
	now[1] = l->hard;
	if (syscall(SYS_prlimit64, pid, l->resource, now, NULL) == 0)
		lr_debug("limits: hard limit %d of process %d raised to %ju", l->resource, pid,
			 (uintmax_t)l->hard);
}

static void grant_oom(int32_t adj, pid_t pid)
{
	LR_CLEANUP_FD int procfd = lr_procfs_open(NULL);
	char path[48], text[16];

	if (procfd < 0)
		return;
	snprintf(path, sizeof(path), "%d/oom_score_adj", pid);
	snprintf(text, sizeof(text), "%d", adj);
	if (lr_procfs_write(procfd, path, text, strlen(text)) >= 0)
		lr_debug("limits: oom_score_adj of process %d is %s", pid, text);
}

void lr_limits_grant(const struct lr_limits_rlimits *rlimits, const int32_t *oom_score_adj,
		     pid_t pid)
{
	for (size_t i = 0; i < rlimits->n; i++)
		grant_rlimit(&rlimits->v[i], pid);
	if (oom_score_adj)
		grant_oom(*oom_score_adj, pid);
}
