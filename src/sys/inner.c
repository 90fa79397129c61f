/* SPDX-License-Identifier: Apache-2.0 */
/* sys: numbers in pid namespaces; see inner.h. */
#include "src/sys/inner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD "NSpid:"

uint32_t lr_inner_of(const char *numbers, unsigned *depth)
{
	uint32_t inner = 0;
	unsigned n = 0;

	for (char *end; numbers && *numbers != '\n'; numbers = end, n++) {
		const unsigned long number = strtoul(numbers, &end, 10);
		if (end == numbers)
			break;
		inner = (uint32_t)number;
	}
	if (depth)
		*depth = n;
	return inner;
}

/* By lines: a program's name may begin as this one does, and before it all its groups are listed, of which there may be
 * 65,536. */
uint32_t lr_inner_pid(pid_t pid, unsigned *depth)
{
	char path[32], *line = NULL;
	const char *numbers = NULL;
	size_t size = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	FILE *f = fopen(path, "re");
	while (f && !numbers && getline(&line, &size, f) > 0)
		if (strncmp(line, FIELD, strlen(FIELD)) == 0)
			numbers = line + strlen(FIELD);
	const uint32_t inner = lr_inner_of(numbers, depth);
	free(line);
	if (f)
		fclose(f);
	return inner;
}
