/* SPDX-License-Identifier: Apache-2.0 */
/* init: finding the program in the container, with the messages callers of runc know. */
#ifndef LR_INIT_PROGRAM_H
#define LR_INIT_PROGRAM_H

#include <stddef.h>

#include "src/base/err.h"

/*
 * Finds `name` as execvp(3) would: with a slash as it is, else in the PATH of envp (or the usual
 * default). Called inside the container, as its user, in its working directory. Writes the path to
 * `path`. Errors are terse, in the words Docker and Podman turn into exit codes 126 and 127:
 *   exec: "foo": executable file not found in $PATH
 *   exec: "/no/such": stat /no/such: no such file or directory
 *   exec: "/etc": is a directory: permission denied
 *   exec: "/etc/passwd": permission denied
 */
int lr_program_find(const char *name, const char *const *envp, char *path, size_t size,
		    struct lr_err *err) LR_MUST_CHECK;

/* execve(2); returns only to report why not. */
int lr_program_exec(const char *path, const char *const *argv, const char *const *envp,
		    struct lr_err *err) LR_MUST_CHECK;

/* The error of an execve(2) of `path`. */
int lr_program_explain(const char *path, int why, struct lr_err *err);

#endif
