/* SPDX-License-Identifier: Apache-2.0 */
/* cli: the program's own file is never shown to a container; see sys/selfexe.h. */
#define LR_ROOM ""
#include "src/cli/runtime.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/sys/selfexe.h"

const char *lr_cli_protect_how(void)
{
	const char *how = getenv("LEAN_RUNTIME_SELF");

	return how && *how ? how : NULL;
}

int lr_cli_protect(void *argv, struct lr_err *err)
{
	const char *how = lr_cli_protect_how();

	return how && strcmp(how, "copy") == 0 ? lr_selfexe_seal(argv, environ, err)
					       : lr_selfexe_protect(argv, environ, err);
}
