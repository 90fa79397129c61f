/* SPDX-License-Identifier: Apache-2.0 */
/* init: finding and executing the program; see program.h. */
#define LR_ROOM "exec"
#include "src/init/program.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/str.h"
#include "src/sys/syscalls.h"

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static bool overrides_modes(void)
{
	return lr_has_cap(CAP_DAC_OVERRIDE) || lr_has_cap(CAP_DAC_READ_SEARCH);
}

/* 0, or what keeps it from being executed: ENOENT, EISDIR, EACCES, ... */
static int executable(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno;
	if (S_ISDIR(st.st_mode))
		return EISDIR;
	if (!S_ISREG(st.st_mode))
		return EACCES;
	int r = lr_faccessat2(AT_FDCWD, path, X_OK, AT_EACCESS);
	if (r == 0 || !lr_not_offered(r))
		return -r;
	/* Before Linux 5.8, and in sandboxes. Real and effective ids are the same here, but
	 * access(2) knows nothing of an ordinary user's capabilities. */
	int code = access(path, X_OK) < 0 ? errno : 0;
	return code == EACCES && (st.st_mode & 0111) && overrides_modes() ? 0 : code;
}

static int refuse(const char *name, int code, struct lr_err *err)
{
	if (code == EISDIR)
		/* Docker before 23 knows 126 by "permission denied" only, later ones by either. */
		lr_refuse(err, code, "exec: \"%s\": is a directory: permission denied", name);
	else if (code == EACCES)
		lr_refuse(err, code, "exec: \"%s\": permission denied", name);
	else
		lr_fail(err, code, "exec: \"%s\": stat %s", name, name);
	if (err)
		err->terse = true;
	if (code == EACCES)
		lr_err_hint(err,
			    "the user of the process may not execute it: see its mode, and noexec "
			    "of its mount");
	else if (code == EISDIR)
		lr_err_hint(err, "name a program in it");
	else if (code == ENOENT)
		lr_err_hint(err, "the image has no program of that path, or a link to nothing");
	return lr_err_at(err, "process.args[0]");
}

static const char *path_of(const char *const *envp)
{
	for (; envp && *envp; envp++)
		if (lr_has_prefix(*envp, "PATH="))
			return *envp + strlen("PATH=");
	return DEFAULT_PATH;
}

int lr_program_find(const char *name, const char *const *envp, char *path, size_t size,
		    struct lr_err *err)
{
	int found = ENOENT; /* the best reason among the candidates */
	size_t len = strlen(name);

	if (strchr(name, '/')) {
		int why = executable(name);
		if (why == 0 && len >= size)
			why = ENAMETOOLONG;
		if (why)
			return refuse(name, why, err);
		memcpy(path, name, len + 1);
		return 0;
	}
	for (const char *dir = path_of(envp); len && *dir;) {
		size_t n = strcspn(dir, ":");
		/* An empty entry means the working directory. */
		if (n + 1 + len + 1 <= size) {
			memcpy(path, n ? dir : ".", n ? n : 1);
			size_t at = n ? n : 1;
			path[at] = '/';
			memcpy(path + at + 1, name, len + 1);
			int why = executable(path);
			if (why == 0)
				return 0;
			if (why == EACCES)
				found = why;
		}
		dir += n;
		dir += *dir == ':';
	}
	if (found == EACCES)
		return refuse(name, found, err);
	lr_refuse(err, ENOENT, "exec: \"%s\": executable file not found in $PATH", name);
	if (err)
		err->terse = true;
	lr_err_hint(err, "the image has none in %.160s (PATH of process.env)", path_of(envp));
	return lr_err_at(err, "process.args[0]");
}

int lr_program_exec(const char *path, const char *const *argv, const char *const *envp,
		    struct lr_err *err)
{
	execve(path, (char *const *)argv, (char *const *)envp);
	return lr_program_explain(path, errno, err);
}

int lr_program_explain(const char *path, int why, struct lr_err *err)
{
	/* The page said it, or something that has taken its place: whatever it says, it has
	 * failed. */
	if (why <= 0)
		why = EPROTO;
	lr_fail(err, why, "exec %s", path);
	if (err)
		err->terse = true;
	if (why == ENOENT)
		lr_err_hint(err,
			    "the file is there: its interpreter (#! line or ELF loader) is not");
	else if (why == ENOEXEC)
		lr_err_hint(
			err,
			"it is a program for another architecture, or a script without #! line");
	return lr_err_at(err, "process.args[0]");
}
