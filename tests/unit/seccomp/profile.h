/* SPDX-License-Identifier: Apache-2.0 */
/* Reads linux.seccomp out of a config.json below tests/data. */
#ifndef LR_TEST_PROFILE_H
#define LR_TEST_PROFILE_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "libocispec/ocispec.h"

static inline const struct oci_seccomp *read_profile(const char *name, struct lr_arena *arena)
{
	const struct oci_config *c;
	struct lr_err err = {0};
	const char *dir = getenv("LR_TEST_DATA");
	char path[512], line[1024], *text;
	size_t len;

	snprintf(path, sizeof(path), "%s/seccomp/%s.json", dir ? dir : "tests/data", name);
	if (oci_read_file(AT_FDCWD, path, arena, &text, &len, &err) < 0 ||
	    oci_config_decode(text, len, arena, &c, &err) < 0) {
		printf("# %s: %s\n", path, lr_err_format(&err, line, sizeof(line)));
		return NULL;
	}
	return c->linux_->seccomp;
}

#endif
