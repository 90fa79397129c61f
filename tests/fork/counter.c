/* SPDX-License-Identifier: Apache-2.0 */
/* counter FILE: counts in a file, a hundred times a second. What goes on is its memory. Static: for
 * a container with nothing else in it. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char text[32];

	for (unsigned long i = 1; argc > 1; i++) {
		snprintf(text, sizeof(text), "%lu\n", i);
		int fd = open(argv[1], O_WRONLY | O_CREAT, 0666);
		if (fd < 0 || pwrite(fd, text, strlen(text), 0) < 0)
			return 1;
		close(fd);
		usleep(10000);
	}
	return 2;
}
