/* SPDX-License-Identifier: Apache-2.0 */
/* sys: programs of the system's; see tool.h. */
#define LR_ROOM "sys"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/sys/proc.h"
#include "src/sys/syscalls.h"
#include "src/sys/tool.h"

static int spawn(const char *const argv[], int keep, int output, pid_t *pid)
{
	static const char *const dirs[] = {"/usr/bin", "/usr/local/bin", "/bin", "/usr/sbin"};
	char path[PATH_MAX], *no_env[] = {NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;
	int r = ENOENT;

	/* `run` has blocked what it passes on, and a library's caller what it likes. */
	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
	if (keep >= 0) /* onto itself: no longer closed by execve */
		posix_spawn_file_actions_adddup2(&actions, keep, keep);
	for (size_t i = 0; r == ENOENT && i < sizeof(dirs) / sizeof(*dirs); i++) {
		snprintf(path, sizeof(path), "%s/%s", dirs[i], argv[0]);
		r = posix_spawn(pid, path, &actions, &attr, (char *const *)argv, no_env);
	}
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return -r;
}

int lr_tool_run(const char *const argv[], int keep, char said[LR_TOOL_SAID])
{
	LR_CLEANUP_WAITING bool waiting = false;
	/* Not a pipe: who holds that could be somebody whom the tool has left behind. */
	LR_CLEANUP_FD int output = lr_memfd_create("tool-output", MFD_CLOEXEC);
	int status;
	pid_t pid;

	*said = '\0';
	if (output < 0)
		return output;
	waiting = lr_proc_waiting();
	int r = spawn(argv, keep, output, &pid);
	if (r < 0)
		return r;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	ssize_t n = pread(output, said, LR_TOOL_SAID - 1, 0);
	said[n > 0 ? n : 0] = '\0';
	said[strcspn(said, "\n")] = '\0';
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
