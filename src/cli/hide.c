/* SPDX-License-Identifier: Apache-2.0 */
/* cli: the program's own file is never shown to a container; see sys/selfexe.h. */
#define LR_ROOM ""
#include "src/cli/runtime.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/sys/selfexe.h"

static enum lr_hide wanted(void)
{
	const char *how = getenv("LEAN_RUNTIME_SELF");

	if (!how || !*how)
		return LR_HIDE_NEEDLESS;
	return strcmp(how, "copy") == 0 ? LR_HIDE_COPY : LR_HIDE_MOUNT;
}

int lr_cli_hide(enum lr_hide_birth birth, char **argv, struct lr_err *err)
{
	/* Whether it is hidden is what executing it again finds out. */
	const struct lr_hide_caller who = {.wants = wanted()};

	switch (lr_hide(&who, birth, NULL, err)) {
	case LR_HIDE_COPY:
		return lr_selfexe_seal(argv, environ, err);
	case LR_HIDE_MOUNT:
		return lr_selfexe_hide(argv, environ, err);
	default:
		return 0;
	}
}

int lr_cli_hide_now(void *argv, struct lr_err *err)
{
	return lr_selfexe_hide(argv, environ, err);
}
